"""Merges of git branches whose pipeline.lock differs."""

import subprocess
import unittest

from lock_local_test import LocalLockTest


class Branches(LocalLockTest):
    def setUp(self):
        super().setUp()
        for name in ("alpha", "beta", "gamma", "middle", "omega", "zeta"):
            self.index.add(name, "1.0")
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, code: int = 0) -> str:
        """Runs git in the test's folder, and returns its output. `code` is the expected exit code."""
        done = subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=test", "-c", "user.email=test@example.org", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def commit(self, *requirements: str):
        """Writes a pipeline with these requirements, locks it, and commits both files."""
        self.declare(*requirements)
        self.assertEqual(self.lock_command().code, 0)
        self.git("add", "pipeline.yaml", "pipeline.lock")
        self.git("commit", "-q", "-m", " ".join(requirements))

    def make_branches(self, before: list[str], theirs: list[str], ours: list[str]):
        """Makes two branches from a commit with the requirements `before`. The branch `theirs` is locked first; `main`, with `ours`, is locked when the index
        has newer versions."""
        self.commit(*before)
        self.git("checkout", "-q", "-b", "theirs")
        self.commit(*theirs)
        self.git("checkout", "-q", "main")
        self.newer_versions()
        self.commit(*ours)

    def test_branches_that_add_requirements_at_different_places_merge_cleanly(self):
        self.make_branches(["alpha", "middle", "other", "zeta"], ["alpha", "beta", "middle", "other", "zeta"], ["alpha", "middle", "omega", "other", "zeta"])
        self.git("merge", "--no-edit", "theirs")
        self.assertEqual(self.locked(), {"alpha": "1.0", "beta": "1.0", "middle": "1.0", "omega": "1.0", "other": "1.0", "zeta": "1.0"})
        self.assertEqual(self.lock_command("--check").code, 0, "nothing is left to resolve")
        self.assertEqual(self.run_pipe("--locked").steps(), {"one": "succeeded"})

    def test_pipe_lock_merges_branches_that_add_requirements_at_the_same_place(self):
        self.make_branches(["alpha", "zeta"], ["alpha", "beta", "other", "zeta"], ["alpha", "gamma", "zeta"])
        self.index.add("gamma", "1.1")
        self.index.add("beta", "1.1")
        self.git("merge", "--no-edit", "theirs", code=1)
        self.declare("alpha", "beta", "gamma", "other", "zeta")
        for words in (["run", "pipeline.yaml"], ["lock", "pipeline.yaml", "--check"]):
            refused = self.pipe(*words)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("git could not merge two versions", refused.err)
            self.assertIn("then run `pipe lock`", refused.err)
        conflict = self.lock()
        shown = self.lock_command("--diff")
        self.assertEqual((shown.code, self.lock()), (0, conflict), shown)

        merged = self.lock_command()
        self.assertEqual(merged.code, 0, merged)
        self.assertIn("has merged the two versions", merged.out)
        self.assertIn("+ beta 1.0", merged.out)
        self.assertEqual(self.locked(), {"alpha": "1.0", "beta": "1.0", "gamma": "1.0", "other": "1.0", "zeta": "1.0"},
                         "the merged file has the versions of the branches, not the newest ones")
        self.assertEqual(self.lock().count("- parent:"), 1)
        self.assertEqual(self.run_pipe("--locked").steps(), {"one": "succeeded"})

    def test_pipe_lock_keeps_our_version_where_both_branches_have_upgraded(self):
        self.commit("other", "zeta")
        self.git("checkout", "-q", "-b", "theirs")
        self.index.add("other", "1.1")
        self.assertEqual(self.lock_command("--upgrade").code, 0)
        self.git("commit", "-qam", "theirs")
        self.git("checkout", "-q", "main")
        self.index.add("other", "1.2")
        self.assertEqual(self.lock_command("--upgrade").code, 0)
        self.git("commit", "-qam", "ours")
        self.git("merge", "--no-edit", "theirs", code=1)
        merged = self.pipe("lock", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        self.assertTrue(merged.events("lock")[0]["merged"] and merged.events("lock")[0]["written"], merged)
        self.assertEqual(self.locked(), {"other": "1.2", "zeta": "1.0"})
        self.assertEqual(self.lock_command("--check").code, 0)


if __name__ == "__main__":
    unittest.main()
