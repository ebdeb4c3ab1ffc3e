"""A budget for artifacts on the disk: what `pipe run` warns of, and what `pipe clean --keep-storage` removes."""

import json
import os
import subprocess
import unittest

from support import PipeTest


class Storage(PipeTest):
    orchestrator = "local"

    def run_of(self, size: int, *words, **env):
        """Runs a pipeline with an artifact of 300,000 bytes, which all runs share, and one of `size` bytes."""
        self.pipeline({"shared": {"command": "head -c 300000 /dev/zero > ${outputs.x}", "outputs": ["x"]},
                       "make": {"command": "head -c ${params.size} /dev/zero > ${outputs.x}", "outputs": ["x"]}}, parameters={"size": size})
        return self.run_pipe(*words, **env)

    def runs(self) -> list[str]:
        return [run["id"] for run in json.loads(self.pipe("runs", "--output", "json").out)["runs"]]

    def artifacts(self) -> list[int]:
        """Returns the sizes of all artifacts."""
        return sorted(path.stat().st_size for path in (self.state / "artifacts").glob("??/*") if path.is_file())

    def test_the_oldest_runs_are_removed_until_the_rest_fits(self):
        for size in (100_000, 200_000, 400_000):
            self.run_of(size)
        self.assertEqual(self.artifacts(), [100_000, 200_000, 300_000, 400_000])
        said = self.pipe("clean", "--keep-storage", "950KB", "--dry-run")
        self.assertEqual((said.code, len(self.runs())), (0, 3), said)
        self.assertEqual(self.pipe("clean", "--keep-storage", "950KB").code, 0)
        self.assertEqual((len(self.runs()), self.artifacts()), (2, [200_000, 300_000, 400_000]), "artifacts that newer runs reuse stay")
        self.assertEqual(set(self.run_of(400_000).steps().values()), {"cached"})
        self.assertEqual(self.pipe("clean", "--keep-storage", "1B").code, 0)
        self.assertEqual((len(self.runs()), self.artifacts()), (1, [300_000, 400_000]), "the newest run stays")

    def test_a_dry_run_says_what_would_be_removed(self):
        self.run_of(100_000)
        self.run_of(200_000)  # The second run reuses a result of the first, which therefore keeps all of its results.
        would, done = (json.loads(self.pipe("clean", "--keep", "1", *words, "--output", "json").out) for words in (["--dry-run"], []))
        self.assertEqual(would["removed"], done["removed"])
        self.assertEqual(self.artifacts(), [100_000, 200_000, 300_000])
        self.assertGreaterEqual(json.loads(self.pipe("verify", "--output", "json").out)["bytes"], 600_000)

    def test_a_tag_keeps_a_run(self):
        self.run_of(100_000)
        self.assertEqual(self.pipe("tag", "latest", "keep").code, 0)
        self.run_of(200_000)
        self.assertIn("tag `keep`", self.pipe("clean", "--runs", "--keep", "0").err)
        self.assertEqual((len(self.runs()), self.artifacts()), (1, [100_000, 300_000]))

    @unittest.skipIf(os.geteuid() != 0, "mounts a file system")
    def test_a_full_disk_can_be_cleaned(self):
        self.state.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.state], check=False).returncode != 0:
            self.skipTest("mounts are not permitted here")
        self.addCleanup(subprocess.run, ["umount", self.state], check=True)
        for size in (500_000, 600_000, 700_000):
            self.run_of(size)
        with open(self.state / "fill", "wb", buffering=0) as fill, self.assertRaises(OSError):
            while True:
                fill.write(b"x" * 4096)
        cleaned = self.pipe("clean", "--runs", "--keep", "1", "--output", "json")
        self.assertEqual(cleaned.code, 0, cleaned)
        self.assertEqual((len(self.runs()), self.artifacts()), (1, [300_000, 700_000]))
        removed = json.loads(cleaned.out)
        self.assertEqual(sum(item["kind"] == "run" for item in removed["removed"]), 2)
        self.assertGreaterEqual(removed["bytes"], 1_100_000)

    def test_what_is_published_stays(self):
        self.run_of(100_000)
        self.pipe("artifacts", "latest", "make.x", "--publish", "kept")
        self.run_of(200_000)
        would = json.loads(self.pipe("clean", "--keep", "0", "--dry-run", "--output", "json").out)["removed"]
        self.assertEqual(next(item["bytes"] for item in would if item["kind"] == "artifacts"), 500_000)
        self.assertEqual(self.pipe("clean", "--keep-storage", "1B").code, 0)
        self.assertEqual(self.artifacts(), [100_000, 200_000, 300_000])
        published = next(path for path in (self.state / "artifacts").glob("??/*") if path.stat().st_size == 100_000)
        published.unlink()
        verified = self.pipe("verify")
        self.assertEqual(verified.code, 3, verified)
        self.assertIn((published.parent.name + published.name)[:12], verified.text)

    def test_a_run_warns_once_it_passes_the_budget(self):
        self.assertNotIn("warning", self.run_of(100_000, PIPE_KEEP_STORAGE="450KB").err)
        passed = self.run_of(200_000, PIPE_KEEP_STORAGE="450KB")
        self.assertRegex(passed.err, r"warning: the artifacts in .* take .* KiB, and the budget is .*: `pipe clean --keep-storage 450000B")
        self.assertNotIn("warning", self.run_of(200_000, PIPE_KEEP_STORAGE="450KB").err, "nothing was added")
        self.write("profiles.yaml", "small: {orchestrator: local, keep_storage: 1KiB}\n")
        self.assertIn("the budget is 1 KiB", self.run_of(1000, "--profile", "small").err)
        self.write("profiles.yaml", "small: {keep_storage: much}\n")
        self.assertIn("profiles.yaml:1:", self.run_of_wrong("--profile", "small"))
        (self.folder / "profiles.yaml").unlink()
        self.assertIn("PIPE_KEEP_STORAGE 'much' is not a size", self.run_of_wrong(PIPE_KEEP_STORAGE="much"))

    def run_of_wrong(self, *words, **env) -> str:
        """Returns the error message of a run with wrong settings."""
        return self.run_pipe(*words, code=2, **env).err

    def test_virtual_environments_that_no_process_uses_are_removed(self):
        cache = self.folder / "cache"
        for name in ("used", "idle"):
            self.write(f"cache/environments/{name}/bin/python", "x" * 100)
        user = subprocess.Popen(["sleep", "900"], env={**os.environ, "VIRTUAL_ENV": str(cache / "environments" / "used")})
        self.addCleanup(lambda: (user.kill(), user.wait()))
        said = json.loads(self.pipe("clean", "--environments", "--output", "json", PIPE_CACHE_DIR=str(cache)).out)
        self.assertEqual([(item["kind"], item["name"], item["bytes"]) for item in said["removed"]], [("virtual environment", "idle", 100)])
        self.assertTrue((cache / "environments" / "used" / "bin" / "python").exists())
        self.assertFalse((cache / "environments" / "idle").exists())
        self.write("cache/environments/idle/bin/python", "x")
        said = self.pipe("clean", "--all", "--dry-run", "--output", "json", PIPE_CACHE_DIR=str(cache))
        self.assertIn(("virtual environment", "idle"), [(item["kind"], item["name"]) for item in json.loads(said.out)["removed"]], "--all has them, too")

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_a_plan_works_in_a_folder_that_it_cannot_write(self):
        self.pipeline({"a": {"command": "true"}})
        self.folder.chmod(0o755)
        planned = subprocess.run([self.command, "plan", "-o", "local"], cwd=self.folder, user=23456, group=23456, capture_output=True, text=True,
                                 env={**os.environ, "HOME": "/nonexistent"})
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("1 to run, 0 to reuse", planned.stdout)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["pipeline.yaml"])


if __name__ == "__main__":
    unittest.main()
