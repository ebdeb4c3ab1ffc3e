"""Published artifacts that machines share through a bucket (scripts/testbed/s3: rclone). A machine is simulated by a state folder."""

import json
import shutil
import threading
import unittest

from support import PipeTest
from support_s3 import S3Bucket, ScriptedProxy, needs_s3

TRAIN = {"train": {"command": "cat data.txt > ${outputs.model}; chmod +x ${outputs.model}", "code": ["data.txt"], "outputs": ["model"], "publish": {"model": "production"}}}
PREDICT = {"predict": {"command": "cat ${inputs.model} > ${outputs.table}; if [ -x ${inputs.model} ]; then echo x >> ${outputs.table}; fi",
                       "inputs": {"model": "artifact:production"}, "outputs": ["table"]}}


@needs_s3
class Names(S3Bucket, PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.write("data.txt", "one\n")
        self.on("here")

    def on(self, machine: str):
        """Continues as another machine."""
        self.state = self.folder / machine

    def train(self, text: str):
        """Publishes a new version of `production` with this content, and returns the run's Result."""
        self.write("data.txt", text)
        self.pipeline(TRAIN)
        return self.run_pipe()

    def predict(self) -> str:
        """Runs the pipeline that uses `production`, and returns its output."""
        self.pipeline(PREDICT)
        self.run_pipe()
        return self.artifact("predict.table")

    def names(self, *words, name: str = "production", code: int = 0):
        """Executes `pipe artifacts --name`, and returns its JSON; None if it prints nothing. `code` is the expected exit code."""
        result = self.pipe("artifacts", "--name", name, "--output", "json", *words)
        self.assertEqual(result.code, code, result)
        return json.loads(result.out) if result.out else None

    def versions(self, name: str = "production") -> list[tuple[int, bool]]:
        """Returns the versions of a name; true marks the current one."""
        return [(version["version"], version["current"]) for version in self.names(name=name)["versions"]]

    def test_other_machines_use_what_one_machine_publishes(self):
        self.pipeline(PREDICT)
        self.assertIn(f"nothing is published as 'production' in s3://{self.bucket}/team/pipe", self.run_pipe(code=3).text)
        self.train("one\n")
        self.on("there")
        self.pipeline(PREDICT)
        self.assertEqual(self.plan()["predict"]["action"], "run")
        self.assertEqual(self.predict(), "one\nx\n")
        self.assertEqual(self.run_pipe().steps(), {"predict": "cached"})
        self.assertEqual(self.versions(), [(1, True)])
        self.on("here")
        self.train("two\n")
        self.on("there")
        self.pipeline(PREDICT)
        self.assertEqual(self.plan()["predict"]["changes"], ["data model changed"])
        self.assertEqual(self.predict(), "two\nx\n")
        self.on("here")
        self.assertEqual(self.predict(), "two\nx\n")
        self.assertEqual(self.run_pipe().steps(), {"predict": "cached"})

    def test_promotion_and_demotion_are_seen_everywhere(self):
        self.train("one\n")
        self.train("two\n")
        self.on("there")  # a machine that has no state folder yet
        self.assertEqual(self.versions(), [(2, True), (1, False)])
        self.assertEqual(self.names("--promote", "1"), {"name": "production", "current": 1})
        self.assertFalse(self.state.exists())
        self.names("--copy", str(self.folder / "out"))
        self.assertEqual((self.folder / "out").read_text(), "one\n")
        self.on("here")
        self.assertEqual(self.predict(), "one\nx\n")
        self.assertEqual(self.names("--demote"), {"name": "production", "current": 2})
        self.on("there")
        self.assertEqual(self.predict(), "two\nx\n")
        self.assertIn("has no version 7", self.pipe("artifacts", "--name", "production", "--promote", "7").err)
        self.assertIn("did you mean 'production'?", self.pipe("artifacts", "--name", "producton").err)
        self.pipeline({"predict": PREDICT["predict"] | {"inputs": {"model": "artifact:production@1"}}})
        self.run_pipe()
        self.assertEqual(self.artifact("predict.table"), "one\nx\n")

    def test_the_option_publish_writes_to_the_bucket(self):
        self.train("one\n")
        self.pipe("artifacts", "latest", "train.model", "--publish", "best")
        self.on("there")
        self.assertEqual(self.versions("best"), [(1, True)])

    def test_without_the_profile_the_state_folder_has_the_names(self):
        self.train("one\n")
        for profile in ("", "of_another_folder"):
            self.assertIn("nothing is published as 'production'", self.pipe("artifacts", "--name", "production", PIPE_PROFILE=profile).text)
        self.pipeline(PREDICT)
        self.assertIn("in this state folder", self.run_pipe(code=3, PIPE_PROFILE="").text)

    def test_machines_that_publish_at_once_lose_no_version(self):
        machines, results = [f"m{i}" for i in range(6)], {}
        for machine in machines:
            self.on(machine)
            self.train(machine)

        def publish(machine):
            process = self.start("artifacts", "latest", "train.model", "--publish", "best", "--state", str(self.folder / machine))
            results[machine] = self.finish(process)

        threads = [threading.Thread(target=publish, args=(machine,)) for machine in machines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results.values():
            self.assertEqual(result.code, 0, result)
        self.assertEqual(sorted(version for version, _ in self.versions("best")), [1, 2, 3, 4, 5, 6])
        self.assertEqual([name for name in self.objects() if ".claims/" in name], [])

    def test_a_record_that_another_has_written_meanwhile_is_read_again(self):
        """A server with conditional writes refuses the first write, because another machine has changed the record."""
        refused = []

        def trouble(method, path):
            if method == "PUT" and path.endswith("/production.json") and not refused:
                refused.append(path)
                shutil.copy(self.data / "team/pipe/published/other.json", self.data / "team/pipe/published/production.json")
                return 412
            return None

        self.pipeline({"train": TRAIN["train"] | {"publish": {"model": "other"}}})
        self.run_pipe()
        proxy = ScriptedProxy(trouble)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        self.train("two\n")
        self.assertEqual(len(refused), 1)
        self.assertEqual(self.versions(), [(2, True), (1, False)])

    def test_a_bucket_that_refuses_a_name_fails_no_step_and_the_next_run_publishes(self):
        proxy = ScriptedProxy(lambda method, path: 403 if method == "PUT" and "/published/" in path else None)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        run = self.train("one\n")
        self.assertEqual(run.steps(), {"train": "succeeded"})
        notices = [event["text"] for event in run.events("notice") if "not published" in event["text"]]
        self.assertEqual(len(notices), 1, run)
        self.assertIn("its output is not published as 'production' in s3://", notices[0])
        self.profile()
        self.assertEqual(self.run_pipe().steps(), {"train": "cached"})
        self.assertEqual(self.versions(), [(1, True)])

    def test_a_damaged_record_is_an_error(self):
        self.train("one\n")
        for text in ("{}", "no JSON", json.dumps({"format": 1, "change": "x", "name": {"versions": [], "promoted": [3]}})):
            (self.data / "team/pipe/published/production.json").write_text(text)
            self.pipeline(PREDICT)
            self.assertIn("the record of the artifact 'production'", self.run_pipe(code=3).text)


if __name__ == "__main__":
    unittest.main()
