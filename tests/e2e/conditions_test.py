"""Conditions of steps, `when` and `run_on`: how plans and runs report them, and their effect on reuse, resume and exit codes."""

import json
import os
import signal
import unittest

from support import PipeTest, wait_until

METRICS = "printf '{\"accuracy\": %s, \"scores\": [1, 2]}' ${params.accuracy} > ${outputs.metrics}"


class Conditions(PipeTest):
    orchestrator = "local"

    def gate(self, when: str = "${evaluate.metrics.accuracy} > ${params.threshold}", accuracy=0.95, **more):
        """Writes a pipeline: `evaluate` reports the accuracy, `deploy` has the condition, and `check` takes the output of `deploy`. `more` has more steps."""
        self.pipeline({
            "evaluate": {"command": METRICS, "outputs": {"metrics": "metrics.json"}, "parameters": {"accuracy": accuracy}},
            "deploy": {"command": "echo deployed > ${outputs.url}", "outputs": ["url"], "when": when},
            "check": {"command": "cat ${inputs.url}", "inputs": {"url": "deploy.url"}},
            **more,
        }, parameters={"threshold": 0.9})

    def test_a_condition_that_does_not_hold_skips_the_step_and_what_depends_on_it(self):
        self.gate(accuracy=0.85)
        run = self.run_pipe()
        self.assertEqual(run.steps(), {"evaluate": "succeeded", "deploy": "skipped", "check": "skipped"})
        ended = {event["step"]: event for event in run.events("step_finished")}
        self.assertEqual(ended["deploy"]["reason"], "when is false: evaluate.metrics.accuracy is 0.85, params.threshold is 0.9 "
                                                    "(${evaluate.metrics.accuracy} > ${params.threshold})")
        self.assertEqual(ended["check"]["reason"], "needs 'deploy', which was skipped")
        self.assertNotIn("failure", ended["deploy"])
        summary = run.events("summary")[0]
        self.assertEqual((summary["status"], summary["exit_code"], summary["skipped"]), ("succeeded", 0, 2))
        shown = self.pipe("show", "latest").out
        self.assertIn("evaluate.metrics.accuracy is 0.85", shown)
        self.assertIn("skipped", self.pipe("run", "pipeline.yaml", "-o", "local", "--no-cache").out)

    def test_a_run_with_nothing_to_do_skips_the_same_steps(self):
        self.gate(accuracy=0.85)
        self.run_pipe()
        # The next run records that nothing has changed (a fingerprint) only if the file is old: the time of a new one proves nothing.
        os.utime(self.folder / "pipeline.yaml", (1, 1))
        for _ in range(3):
            run = self.run_pipe()
            self.assertEqual(run.steps(), {"evaluate": "cached", "deploy": "skipped", "check": "skipped"})
            self.assertEqual(run.events("step_finished")[1]["reason"][:13], "when is false")
            self.assertEqual((run.events("summary")[0]["reused"], run.events("summary")[0]["skipped"]), (1, 2))
            shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
            self.assertEqual([step["status"] for step in shown["steps"]], ["cached", "skipped", "skipped"])
        self.gate(accuracy=0.95)
        self.assertEqual(self.run_pipe().steps(), {"evaluate": "succeeded", "deploy": "succeeded", "check": "succeeded"})
        self.gate(accuracy=0.96)
        self.assertEqual(self.run_pipe().steps(), {"evaluate": "succeeded", "deploy": "cached", "check": "cached"},
                         "a condition is no part of the key")

    def test_a_plan_decides_conditions_whose_values_are_known(self):
        self.gate(accuracy=0.85)
        plan = self.plan()
        self.assertEqual(plan["deploy"]["action"], "depends")
        self.assertEqual(plan["deploy"]["changes"][0], "when: ${evaluate.metrics.accuracy} > ${params.threshold}")
        self.assertEqual(plan["check"]["action"], "depends")
        self.assertIn("unless 'deploy' is skipped", plan["check"]["changes"])
        self.run_pipe()
        plan = self.plan()
        self.assertEqual((plan["evaluate"]["action"], plan["deploy"]["action"], plan["check"]["action"]), ("reuse", "skip", "skip"))
        self.assertIn("evaluate.metrics.accuracy is 0.85", plan["deploy"]["changes"][0])
        self.assertIn("2 to skip", self.pipe("plan", "pipeline.yaml", "-o", "local").out)

    def test_a_condition_over_a_missing_value_or_another_type_fails_the_step_with_the_reason(self):
        for when, said in (("${evaluate.metrics.acuracy} > 0.9", "evaluate.metrics has no member 'acuracy'; it has: accuracy, scores"),
                           ("${evaluate.metrics.scores} > 0.9", "is a list, not a number"),
                           ("${evaluate.metrics.scores.5} > 0.9", "is a list of 2 items and has no item '5'"),
                           ("${evaluate.metrics.accuracy} == 'good'", "is a number, but 'good' is a text")):
            self.gate(when)
            run = self.run_pipe(code=1)
            self.assertIn(said, run.failure("deploy")["message"])
        self.gate("${evaluate.metrics.scores.1} == 2")
        self.assertEqual(self.run_pipe().steps()["deploy"], "succeeded")

    def test_wrong_conditions_are_errors_of_the_file(self):
        for when, said in (("${evaluate.metric.accuracy} > 0.9", "did you mean 'metrics'?"),
                           ("${evalute.metrics.accuracy} > 0.9", "did you mean 'evaluate'?"),
                           ("${params.treshold} > 0.9", "did you mean 'threshold'?"),
                           ("${params.threshold}", "must be true or false"),
                           ("${params.threshold} = 1", "write `==`"),
                           ("${check.x} > 1", "no output 'x'"),
                           ("always", "write `run_on: always`")):
            self.gate(when)
            result = self.pipe("validate", "pipeline.yaml")
            self.assertEqual(result.code, 2, result)
            self.assertIn(said, result.err)
        self.gate("${deploy.url} > 1")
        self.assertIn("needs itself", self.pipe("validate", "pipeline.yaml").err)

    def test_instances_have_conditions_of_their_own(self):
        self.pipeline({"train": {"command": "true", "matrix": {"c": [1, 5, 9]}, "when": "${params.c} > ${params.least}"}}, parameters={"least": 4})
        self.assertEqual(list(self.run_pipe().steps().values()), ["skipped", "succeeded", "succeeded"])

    def test_secrets_of_a_step_whose_condition_is_false_are_not_checked(self):
        self.pipeline({"a": {"command": "true", "when": False, "secrets": ["PIPE_TEST_NO_SUCH_SECRET"]}})
        self.assertEqual(self.run_pipe().steps(), {"a": "skipped"})


class Ends(PipeTest):
    orchestrator = "local"

    def ends(self, train: str, **top):
        """Writes a pipeline: `train` executes this command, `use` takes its output, `alarm` runs on failure, and `tidy` always."""
        self.pipeline({
            "train": {"command": train, "outputs": ["model"]},
            "use": {"command": "cat ${inputs.model}", "inputs": {"model": "train.model"}},
            "alarm": {"command": "echo sent", "run_on": "failure"},
            "tidy": {"command": "echo tidied", "run_on": "always"},
        }, **top)

    def test_steps_with_run_on_failure_and_always_run_in_each_execution_mode(self):
        for mode in ("continue_on_failure", "stop_on_failure", "fail_fast"):
            self.ends("exit 3", execution_mode=mode)
            run = self.run_pipe(code=1)
            self.assertEqual(run.steps(), {"train": "failed", "use": "skipped", "alarm": "succeeded", "tidy": "succeeded"}, mode)
            self.assertEqual(run.events("summary")[0]["status"], "failed")

    def test_steps_with_run_on_are_never_reused_and_alarms_run_only_after_a_failure(self):
        self.ends("echo m > ${outputs.model}")
        self.assertEqual(self.run_pipe().steps(), {"train": "succeeded", "use": "succeeded", "alarm": "skipped", "tidy": "succeeded"})
        self.assertEqual(self.run_pipe().steps(), {"train": "cached", "use": "cached", "alarm": "skipped", "tidy": "succeeded"})
        plan = self.plan()
        self.assertEqual((plan["alarm"]["action"], plan["tidy"]["action"]), ("skip", "run"))
        self.assertEqual(plan["tidy"]["changes"], ["a step with `run_on: always` is not reused"])
        self.ends("echo n > ${outputs.model}")
        self.assertEqual(self.plan()["alarm"]["action"], "depends")

    def test_an_alarm_does_not_prevent_the_shortcut_for_unchanged_runs(self):
        self.pipeline({"train": {"command": "echo m > ${outputs.model}", "outputs": ["model"]}, "alarm": {"command": "false", "run_on": "failure"}})
        os.utime(self.folder / "pipeline.yaml", (1, 1))
        for status in ("succeeded", "cached", "cached"):
            self.assertEqual(self.run_pipe().steps(), {"train": status, "alarm": "skipped"})

    def test_an_alarm_waits_for_all_steps_that_may_fail(self):
        """`late` fails long after `use` was skipped, so the alarm, which comes after `use`, must wait for it."""
        self.pipeline({
            "gate": {"command": "echo x > ${outputs.x}", "outputs": ["x"], "when": False},
            "late": {"command": "sleep 0.3; exit 1", "outputs": ["y"]},
            "use": {"command": "true", "inputs": {"x": "gate.x", "y": "late.y"}},
            "alarm": {"command": "true", "run_on": "failure", "after": ["use"]},
        })
        self.assertEqual(self.run_pipe(code=1).steps()["alarm"], "succeeded")

    def test_a_step_that_runs_always_is_skipped_if_its_input_was_not_made(self):
        self.pipeline({
            "setup": {"command": "echo 1 > ${outputs.handle}", "outputs": ["handle"]},
            "train": {"command": "exit 1", "outputs": ["model"], "after": ["setup"]},
            "tidy": {"command": "cat ${inputs.handle}", "inputs": {"handle": "setup.handle"}, "after": ["train"], "run_on": "always"},
            "upload": {"command": "true", "inputs": {"model": "train.model"}, "run_on": "always"},
        })
        run = self.run_pipe(code=1)
        self.assertEqual(run.steps(), {"setup": "succeeded", "train": "failed", "tidy": "succeeded", "upload": "skipped"})

    def test_a_clean_up_of_a_stopped_run_does_not_begin(self):
        self.ends("echo up; sleep 600")
        process = self.start("run", "pipeline.yaml", "-o", "local", "--output", "json")
        wait_until(lambda: "running" in self.pipe("show", "latest").out, "a running step")
        os.killpg(process.pid, signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130)
        self.assertEqual(result.steps(), {"train": "cancelled", "use": "cancelled", "alarm": "cancelled", "tidy": "cancelled"})

    def test_resume_evaluates_conditions_again(self):
        self.write("slow.sh", "if [ -e $1 ]; then exit 0; fi; touch $1; sleep 600\n")
        self.pipeline({
            "evaluate": {"command": "echo false > ${outputs.good}", "outputs": ["good"]},
            "deploy": {"command": "true", "when": "${evaluate.good}"},
            "slow": {"command": ["sh", "slow.sh", str(self.folder / "mark")], "after": ["evaluate"]},
            "tidy": {"command": "true", "run_on": "always"},
        })
        process = self.start("run", "pipeline.yaml", "-o", "local")
        wait_until(lambda: (self.folder / "mark").exists(), "the slow step")
        process.kill()
        self.finish(process)
        result = self.pipe("resume", "latest", "--output", "json")
        self.assertEqual(result.code, 0, result)
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        self.assertEqual({step["step"]: step["status"] for step in shown["steps"]},
                         {"evaluate": "succeeded", "deploy": "skipped", "slow": "succeeded", "tidy": "succeeded"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
