"""`pipe clean --remote` removes old results and artifacts from a remote store, but nothing that a run on any machine uses. A machine is simulated by a state
folder."""

import json
import os
import pathlib
import signal
import time
import unittest

from support import PipeTest, files_below, wait_until
from support_s3 import S3Bucket, needs_s3

DAY = 24 * 3600
STEPS = {
    "load": {"command": "echo ${params.day} > ${outputs.text}; mkdir ${outputs.many}; echo 1 > ${outputs.many}/1", "outputs": ["text", "many"]},
    "end": {"command": "cat ${inputs.text} > ${outputs.all}; echo end >> ${outputs.all}", "inputs": {"text": "load.text"}, "outputs": ["all"]},
}


class Cleaned:
    """The tests, for a store whose files are below `store` and whose address is `url`."""

    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.pipeline(STEPS, parameters={"day": "monday"})
        self.on("one")

    def on(self, machine: str):
        """Continues as another machine."""
        self.state = self.folder / machine

    def run_day(self, day: str, **more):
        return self.run_pipe("--param", f"day={day}", **more)

    def files(self, kind: str = "") -> list[pathlib.Path]:
        """Returns the store's files of a kind, such as `results`, or all of them, without hidden ones."""
        return [file for file in files_below(self.store / kind) if not any(part.startswith(".") for part in file.relative_to(self.store).parts)]

    def make_older(self, days: float, kind: str = ""):
        """Sets the files' times of modification to this many days ago."""
        for file in self.files(kind):
            stamp = time.time() - days * DAY
            os.utime(file, (stamp, stamp))

    def clean(self, *words, code=0):
        """Cleans the store, and returns the command's JSON. `code` is the expected exit code."""
        result = self.pipe("clean", "--remote", *words, "--output", "json")
        self.assertEqual(result.code, code, result)
        return json.loads(result.out)

    def test_old_results_are_removed_and_young_ones_stay(self):
        self.run_day("monday")
        self.make_older(40)
        self.run_day("tuesday")  # The folder of both days has the same content.
        self.make_older(2)
        for file in self.files("results"):
            record = json.loads(file.read_text())
            if record["run"] == self.runs()[-1]:
                os.utime(file, (time.time() - 40 * DAY,) * 2)
        before = self.files()
        would = self.clean("--older-than", "30d", "--dry-run")
        self.assertEqual(self.files(), before)
        cleaned = self.clean("--older-than", "30d")
        self.assertEqual([(item["kind"], item["name"]) for item in cleaned["removed"]], [("results", "2 records"), ("artifacts", "2 that nothing needs")])
        self.assertEqual(would["removed"], cleaned["removed"])
        self.assertEqual((len(self.files("results")), len(self.files("artifacts")), len(self.files())), (2, 3, 5))
        self.on("two")
        self.assertEqual(set(self.run_day("tuesday").steps().values()), {"cached"})
        self.assertEqual(set(self.run_day("monday").steps().values()), {"succeeded"})

    def runs(self) -> list[str]:
        """Returns the identifiers of this machine's runs, the latest first."""
        return [run["id"] for run in json.loads(self.pipe("runs", "--output", "json").out)["runs"]]

    def test_a_budget_removes_the_oldest_and_published_artifacts_stay(self):
        self.pipeline({"make": {"command": "head -c 100000 /dev/zero | tr '\\0' ${params.day} > ${outputs.file}", "outputs": ["file"]}}, parameters={"day": "a"})
        for age, day in ((9, "a"), (8, "b"), (7, "c")):
            self.run_day(day)
            fresh = [file for file in self.files() if time.time() - file.stat().st_mtime < DAY]
            for file in fresh:
                os.utime(file, (time.time() - age * DAY,) * 2)
        self.assertEqual(self.pipe("artifacts", self.runs()[-1], "make.file", "--publish", "first").code, 0)
        self.clean("--keep-storage", "200kB")
        self.assertEqual(len(self.files("results")), 1)
        self.assertEqual(len(self.files("artifacts")), 2)
        cleaned = self.clean("--keep-storage", "50kB")
        self.assertEqual(len(self.files("artifacts")), 1)
        self.assertIn("stay", " ".join(cleaned["kept"]))

    def test_artifacts_that_a_run_uses_stay(self):
        self.run_day("monday")
        self.make_older(40)
        self.on("two")
        waits = f"until [ -e {self.folder}/go ]; do sleep 0.05; done; "
        self.pipeline({**STEPS, "end": {**STEPS["end"], "command": waits + STEPS["end"]["command"]}}, parameters={"day": "monday"})
        run = self.start("run", "pipeline.yaml", "-o", self.orchestrator, "--output", "json")
        wait_until(lambda: self.files("leases") and "running" in self.pipe("show", "latest").out or run.poll() is not None, "the run using the store")
        self.on("three")
        cleaned = self.clean("--older-than", "30d")
        kinds = {item["kind"]: item["name"] for item in cleaned["removed"]}
        self.assertEqual(kinds, {"results": "2 records", "artifacts": "1 that nothing needs"})
        self.assertIn("2 artifacts that a run needs", " ".join(cleaned["kept"]))
        self.write("go", "")
        result = self.finish(run)
        self.assertEqual(result.code, 0, result)
        self.assertEqual([event for event in result.events("notice") if str(self.url) in event["text"]], [])
        self.assertEqual(self.files("leases"), [])
        self.assertEqual(self.files("cleanings"), [])

    def started(self):
        """Returns a run that uses the store, and whose last step does not end."""
        self.pipeline({**STEPS, "end": {**STEPS["end"], "command": "sleep 600; " + STEPS["end"]["command"]}}, parameters={"day": "monday"})
        run = self.start("run", "pipeline.yaml", "-o", self.orchestrator, "--output", "json")
        wait_until(lambda: self.files("leases") or run.poll() is not None, "the run using the store")
        return run

    def test_the_lease_of_a_killed_run_does_not_delay_a_cleaning(self):
        run = self.started()
        run.kill()
        run.wait()
        self.assertEqual(len(self.files("leases")), 1)
        self.assertEqual(self.clean()["removed"], [], "a cleaning that removes nothing waits for nobody")

    def test_a_stopped_run_leaves_no_lease(self):
        run = self.started()
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).code, 130)
        self.assertEqual(self.files("leases"), [])

    def test_wrong_options_are_errors(self):
        for words, said in (((), "nothing to remove was named"), (("--older-than", "30d"), "add --remote"), (("--remote", "--runs", "--keep", "3"), "alone"),
                            (("--remote", "--older-than", "soon"), "30d, 12h"), (("--remote", "--keep-storage", "much"), "20GB"),
                            (("--remote",), "artifact_store")):
            result = self.pipe("clean", *words, **({"PIPE_PROFILE": ""} if words == ("--remote",) else {}))
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)


class SharedFolder(Cleaned, PipeTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "mnt"
        self.store.mkdir()
        self.url = f"file://{self.store}"
        self.write("profiles.yaml", json.dumps({"team": {"orchestrator": self.orchestrator, "artifact_store": self.url}}))

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_PROFILE": "team", **env})


@needs_s3
class Bucket(Cleaned, S3Bucket, PipeTest):
    def setUp(self):
        super().setUp()
        self.store, self.url = self.data / "team/pipe", f"s3://{self.bucket}/team/pipe"


if __name__ == "__main__":
    unittest.main()
