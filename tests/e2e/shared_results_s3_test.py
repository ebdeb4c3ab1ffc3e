"""Machines share results through a bucket over TLS (scripts/testbed/s3: rclone). Each state folder stands for a machine."""

import signal
import threading
import unittest

from support import PipeTest
from support_s3 import S3, S3Bucket, ScriptedProxy, needs_s3

NOTES = "first\n"
STEPS = {
    "load": {"command": "cat notes.txt > ${outputs.text}; mkdir -p ${outputs.many}/deep; echo 1 > ${outputs.many}/deep/1; ln -s deep/1 ${outputs.many}/link;"
                        " printf '#!/bin/sh\\necho ran\\n' > ${outputs.tool}; chmod +x ${outputs.tool}",
             "code": ["notes.txt"], "outputs": ["text", "many", "tool"]},
    "fan": {"matrix": {"x": [1, 2]}, "command": "{ cat ${inputs.text}; echo ${params.x}; } > ${outputs.y}", "inputs": {"text": "load.text"}, "outputs": ["y"]},
    "end": {"command": "cat ${inputs.ys}/*fan* ${inputs.many}/link > ${outputs.all}; ${inputs.tool} >> ${outputs.all}",
            "inputs": {"ys": "fan[*].y", "many": "load.many", "tool": "load.tool"}, "outputs": ["all"]},
}


@needs_s3
class OnDocker(S3Bucket, PipeTest):
    def setUp(self):
        super().setUp()
        self.write("notes.txt", NOTES)
        self.pipeline(STEPS)
        self.use_machine("here")

    def use_machine(self, machine: str):
        """Makes the commands that follow use the state folder of this machine."""
        self.state = self.folder / machine

    def count_by_kind(self) -> dict[str, int]:
        """Returns the number of the bucket's objects of each kind, such as `artifacts`."""
        names = [name.split("/")[2] for name in self.objects()]
        return {name: names.count(name) for name in names}

    def store_notices(self, result) -> list[str]:
        """Returns the texts of the run's notices about the bucket."""
        return [event["text"] for event in result.events("notice") if "s3://" in event["text"]]

    def assert_reused(self, result):
        """Fails unless the run has reused all steps, without a notice about the bucket."""
        self.assertEqual(set(result.steps().values()), {"cached"}, result)
        self.assertEqual(result.events("step_started"), [])
        self.assertEqual(self.store_notices(result), [])

    def test_steps_that_one_machine_has_run_are_reused_on_others(self):
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        run = result.events("run_started")[0]["run"]
        made = {name: self.artifact(name) for name in ("load.text", "fan.x-2.y", "end.all")}
        self.assertEqual(made["end.all"], "first\n1\nfirst\n2\n1\nran\n")
        self.assertEqual(self.count_by_kind(), {"artifacts": 6, "results": 4})
        for file in self.data.rglob("results/*"):
            self.assertNotIn(S3["SECRET_KEY"], file.read_text())

        self.use_machine("there")
        plans = self.plan()
        origin = f"s3://{self.bucket}/team/pipe, run {run}"
        self.assertEqual({plan["reused_from"] for plan in plans.values()}, {origin})
        result = self.run_pipe()
        self.assert_reused(result)
        self.assertEqual({event["reused_from"] for event in result.events("step_finished")}, {origin})
        self.assertEqual({name: self.artifact(name) for name in made}, made)
        self.assertIn(f"of {origin}", self.pipe("show", "latest").out)
        self.assertIn("its log is only on the machine that ran it", self.pipe("logs", "latest", "load").err)
        self.assert_nothing_left()

        self.profile(endpoint="https://10.213.68.2:1")
        self.assert_reused(self.run_pipe())  # The machine has the results now, and does not ask the store.
        self.profile()

        self.write("notes.txt", "second\n")
        self.use_machine("elsewhere")
        self.write("pipeline.yaml", (self.folder / "pipeline.yaml").read_text().replace("echo ran", "echo went"))
        self.assertEqual({plan["action"] for plan in self.plan().values()}, {"run"})
        self.write("notes.txt", NOTES)
        self.write("pipeline.yaml", (self.folder / "pipeline.yaml").read_text().replace("echo went", "echo ran").replace("cat ${inputs.ys}", "tac ${inputs.ys}"))
        self.assertEqual(self.plan()["end"]["action"], "run")
        self.assertEqual(self.run_pipe().steps(), {"load": "cached", "fan.x-1": "cached", "fan.x-2": "cached", "end": "succeeded"})

    def test_a_matrix_over_an_output_grows_from_the_store(self):
        self.pipeline({"split": {"command": "echo '[1, 2, 3]' > ${outputs.list}; mkdir ${outputs.parts}; echo a > ${outputs.parts}/a", "outputs": ["list", "parts"]},
                       "work": {"matrix": {"n": "${split.list[*]}"}, "command": "echo ${params.n} > ${outputs.o}", "outputs": ["o"]},
                       "part": {"matrix": {"part": "${split.parts[*]}"}, "command": "cp ${inputs.part} ${outputs.o}", "outputs": ["o"]},
                       "all": {"command": "cat ${inputs.os}/*-work* ${inputs.parts}/*-part* > ${outputs.all}", "inputs": {"os": "work[*].o", "parts": "part[*].o"}, "outputs": ["all"]}})
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        self.use_machine("there")
        self.assertEqual({step: plan["action"] for step, plan in self.plan().items()}, {"split": "reuse", "work": "unknown", "part": "unknown", "all": "run"})
        result = self.run_pipe()
        self.assert_reused(result)
        self.assertEqual(len(result.steps()), 6)
        self.assertEqual(self.artifact("all.all"), "1\n2\n3\na\n")

    def test_a_plan_does_not_decide_a_condition_over_an_output_that_only_the_bucket_has(self):
        self.pipeline({"score": {"command": "echo '{\"accuracy\": 0.95}' > ${outputs.metrics}", "outputs": ["metrics"]},
                       "tell": {"when": "${score.metrics.accuracy} > 0.9", "command": "echo told > ${outputs.o}", "outputs": ["o"]}})
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        self.assertEqual(self.plan()["tell"]["action"], "reuse")
        self.use_machine("there")
        plans = self.plan()
        self.assertEqual({step: plan["action"] for step, plan in plans.items()}, {"score": "reuse", "tell": "depends"})
        self.assertEqual(plans["tell"]["changes"], ["when: ${score.metrics.accuracy} > 0.9"])
        text = (self.folder / "pipeline.yaml").read_text()
        self.write("pipeline.yaml", text.replace("echo told", "echo said"))
        self.assertEqual(self.plan()["tell"]["changes"], ["when: ${score.metrics.accuracy} > 0.9", "never run before"])
        self.write("pipeline.yaml", text)
        self.assert_reused(self.run_pipe())

    def test_results_that_were_cleaned_here_are_downloaded_again(self):
        self.run_pipe()
        self.pipe("clean", "--runs", "--keep", "0")
        self.assertEqual([path for path in (self.state / "artifacts").rglob("*") if path.is_file()], [])
        text = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator).text
        self.assertIn(f"reused from s3://{self.bucket}/team/pipe, run ", text)
        self.assertEqual(self.artifact("end.all"), "first\n1\nfirst\n2\n1\nran\n")

    def test_without_the_cache_all_steps_run_and_no_artifact_is_uploaded_twice(self):
        self.run_pipe()
        proxy = ScriptedProxy(lambda method, path: None)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        self.use_machine("there")
        self.assertEqual(set(self.run_pipe("--no-cache").steps().values()), {"succeeded"})
        self.assertEqual([line for line in proxy.asked if line.startswith("GET") and "/results/" in line], [])
        self.assertEqual([line for line in proxy.asked if line.startswith("PUT") and "/artifacts/" in line], [])
        self.assertEqual(len([line for line in proxy.asked if line.startswith("PUT") and "/results/" in line]), 4)

    def test_errors_of_the_store_are_reported_before_the_run_starts(self):
        def refusal(**env):
            result = self.run_pipe(code=3, **env)
            self.assertEqual(result.events("run_started"), [])
            self.assertNotIn(S3["SECRET_KEY"], result.text)
            return result.text

        self.assertIn("the server does not accept the keys from", refusal(AWS_ACCESS_KEY_ID="SOMEBODY"))
        self.assertIn("there are no keys for the remote store", refusal(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""))
        self.assertIn("the server does not accept the keys from", self.pipe("plan", "pipeline.yaml", AWS_ACCESS_KEY_ID="SOMEBODY").text)
        self.profile(bucket=f"s3://{self.bucket}-not")
        self.assertIn("make the bucket (`aws s3 mb", refusal())
        self.assertIn("NoSuchBucket", self.pipe("plan", "pipeline.yaml").text)
        self.profile(endpoint="https://10.213.68.2:1")
        self.assertIn("check `endpoint` under `artifact_store`, the address of the server", refusal())

    def test_no_step_fails_when_the_store_fails_during_the_run(self):
        def trouble(method, path):
            return "cut" if method == "GET" and "/results/" in path else 403 if method == "PUT" and "/results/" in path else None

        proxy = ScriptedProxy(trouble)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        notices = self.store_notices(result)
        self.assertEqual(len(notices), 2, notices)
        self.assertIn("results of other machines cannot be reused: cannot read results/", notices[0])
        self.assertIn(f"s3://{self.bucket}/team/pipe lacks the results of '", notices[1])
        for step in result.steps():
            self.assertIn(f"'{step}'", notices[1])
        self.assertIn("AccessDenied: so it is", notices[1])

    def test_ctrl_c_ends_a_run_that_waits_for_the_store(self):
        is_waiting, may_continue = threading.Event(), threading.Event()

        def trouble(method, path):
            if method == "PUT" and "/artifacts/" in path:
                is_waiting.set()
                may_continue.wait(300)

        proxy = ScriptedProxy(trouble)
        self.addCleanup(proxy.end)
        self.addCleanup(may_continue.set)
        self.profile(endpoint=proxy.url)
        self.pipeline({"load": STEPS["load"]})
        process = self.start("run", "pipeline.yaml", "--output", "json")
        self.assertTrue(is_waiting.wait(180))
        process.send_signal(signal.SIGINT)
        result = self.finish(process, timeout=150)
        self.assertEqual(result.steps(), {"load": "succeeded"}, result)
        self.assertEqual(self.store_notices(result), [f"s3://{self.bucket}/team/pipe lacks the results of 'load': the run was stopped. Other machines run these steps again, "
                                             "until `pipe run --no-cache` here has shared the results"])

    def test_steps_whose_artifacts_are_damaged_in_the_store_run_again_and_replace_them(self):
        self.run_pipe()
        damaged = [file for file in self.data.rglob("artifacts/*/*") if file.read_bytes() == b"first\n2\n" or file.suffix == ".tar"]
        self.assertEqual(len(damaged), 2)
        for file in damaged:
            file.write_text("of no use")
        self.use_machine("there")
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"load": "succeeded", "fan.x-1": "cached", "fan.x-2": "succeeded", "end": "cached"}, result)
        self.assertEqual(len(self.store_notices(result)), 2, result)
        self.assertEqual(self.artifact("end.all"), "first\n1\nfirst\n2\n1\nran\n")
        self.use_machine("elsewhere")
        self.assert_reused(self.run_pipe())


class Locally(OnDocker):
    orchestrator = "local"


if __name__ == "__main__":
    unittest.main()
