"""Steps that run in rounds until a condition holds."""

import json
import os
import signal
import unittest

from support import PipeTest, wait_until

# Writes a state whose number is one higher than that of the round before.
FIT = """import json, sys
state = json.load(open(sys.argv[1]))['n'] + 1
print('in round', sys.argv[2])
json.dump({'n': state}, open(sys.argv[3], 'w'))
"""
# Adds the number of a round's results to that of the state, and sums them up.
CHOOSE = """import json, os, sys
folder = sys.argv[2]
results = [json.load(open(os.path.join(folder, entry['file']))) for entry in json.load(open(os.path.join(folder, 'index.json')))]
json.dump({'n': json.load(open(sys.argv[1]))['n'] + len(results), 'sum': sum(results)}, open(sys.argv[3], 'w'))
"""


def start() -> dict:
    """Returns the step that makes the first state."""
    return {"command": "echo '{\"n\": 0}' > ${outputs.state}", "outputs": {"state": "state.json"}}


def one_step(until: str = "${fit.state.n} >= 3", max_rounds: int = 5, **more) -> dict:
    """Returns a pipeline's steps: `fit` runs in rounds, each with the state of the round before, and `use` takes the last state. `more` has further keys of
    `fit`."""
    return {
        "start": start(),
        "fit": {"repeat": {"until": until, "max": max_rounds}, "command": ["python3", "fit.py", "${inputs.state}", "${params.round}", "${outputs.state}"],
                "inputs": {"state": {"first": "start.state", "then": "fit.state"}}, "outputs": {"state": "state.json"}, **more},
        "use": {"command": "cp ${inputs.state} ${outputs.copy}", "inputs": {"state": "fit.state"}, "outputs": {"copy": "copy.json"}},
    }


def search(until: str = "${choose.state.n} >= 6", trial: str = "echo ${params.item} > ${outputs.made}") -> dict:
    """Returns a pipeline's steps: each round tries two items more than the one before, and `choose` counts all items so far."""
    return {
        "start": start(),
        "propose": {"repeat": {"until": until, "max": 9}, "command": ["python3", "-c", "import json, sys; n = int(sys.argv[1]); json.dump(list(range(2 * n + 2)), open(sys.argv[2], 'w'))",
                                                                      "${params.round}", "${outputs.items}"],
                    "inputs": {"state": {"first": "start.state", "then": "choose.state"}}, "outputs": {"items": "items.json"}},
        "trial": {"repeat": "propose", "matrix": {"item": "${propose.items[*]}"}, "command": trial, "outputs": ["made"]},
        "choose": {"repeat": "propose", "command": ["python3", "choose.py", "${inputs.state}", "${inputs.results}", "${outputs.state}"],
                   "inputs": {"state": {"first": "start.state", "then": "choose.state"}, "results": "trial[*].made"}, "outputs": {"state": "state.json"}},
        "use": {"command": "cat ${inputs.state} > ${outputs.copy}", "inputs": {"state": "choose.state"}, "outputs": ["copy"]},
    }


class OnDocker(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("fit.py", FIT)
        self.write("choose.py", CHOOSE)

    def test_the_results_are_those_of_the_last_round(self):
        self.pipeline(one_step())
        for result in (self.run_pipe(), self.run_pipe()):
            made = {each["output"]: each["path"] for each in result.events("summary")[0]["results"]}
            self.assertEqual(list(made), ["start.state", "fit.state", "use.copy"])
            self.assertEqual(json.loads((self.folder / made["fit.state"]).read_text()), {"n": 3})
        self.assertEqual(json.loads(self.artifact("fit.state")), {"n": 3})
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        self.assertEqual([step["step"] for step in shown["steps"]], ["start", "fit.round-0", "fit.round-1", "fit.round-2", "use"])

    def test_rounds_end_when_the_condition_holds(self):
        self.pipeline(one_step())
        before = self.plan()
        self.assertEqual({step: plan["action"] for step, plan in before.items()}, {"start": "run", "fit.round-0": "run", "fit": "unknown", "use": "run"})
        self.assertEqual(before["fit"]["changes"], ["further rounds, 4 at most, until ${fit.state.n} >= 3"])
        first = self.run_pipe()
        self.assertEqual(first.steps(), {step: "succeeded" for step in ("start", "fit.round-0", "fit.round-1", "fit.round-2", "use")}, first)
        self.assertEqual([(event["step"], event["round"], event["steps"]) for event in first.events("step_expanded")], [("fit", 0, 3), ("fit", 1, 4), ("fit", 2, 5)])
        self.assertEqual(json.loads(self.artifact("use.copy")), {"n": 3})
        self.assertEqual((json.loads(self.artifact("fit.state")), json.loads(self.artifact("fit[round=0].state"))), ({"n": 3}, {"n": 1}))
        self.assertIn("in round 2", self.pipe("logs", "latest", "fit[round=2]").out)
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.assertEqual({step: plan["action"] for step, plan in self.plan().items()}, dict.fromkeys(first.steps(), "reuse"))
        self.assert_nothing_left()

    def test_a_search_in_rounds_over_what_the_last_round_found(self):
        self.pipeline(search())
        self.assertEqual({step: plan["action"] for step, plan in self.plan().items()},
                         {"start": "run", "propose.round-0": "run", "trial.round-0": "unknown", "choose.round-0": "run", "propose": "unknown", "use": "run"})
        first = self.run_pipe()
        steps = first.steps()
        self.assertEqual(set(steps.values()), {"succeeded"}, first)
        self.assertEqual(sorted(step for step in steps if step.startswith("trial.round-1")), [f"trial.round-1.item-{item}" for item in range(4)])
        self.assertEqual(json.loads(self.artifact("use.copy")), {"n": 6, "sum": 6})
        self.assertEqual(self.artifact("trial[round=1,item=3].made"), "3\n")
        plan = self.plan()
        self.assertEqual((set(plan), {step["action"] for step in plan.values()}), (set(steps), {"reuse"}))
        self.pipeline(search("${choose.state.n} >= 7"))
        plan = self.plan()
        self.assertEqual((plan["choose.round-1"]["action"], plan["propose.round-2"]["action"], plan["trial.round-2"]["action"]), ("reuse", "run", "unknown"))
        again = self.run_pipe()
        self.assertEqual({step for step, status in again.steps().items() if status == "succeeded"},
                         {"propose.round-2", "choose.round-2", "use", *(f"trial.round-2.item-{item}" for item in range(6))})
        self.assertEqual(len(again.steps()), len(steps) + 8)
        self.assert_nothing_left()


class AsProcesses(OnDocker):
    orchestrator = "local"

    def test_the_number_of_rounds_is_bounded_and_the_last_one_counts(self):
        self.pipeline(one_step("${fit.state.n} > 100", 4))
        result = self.run_pipe()
        self.assertEqual(result.steps(), {step: "succeeded" for step in ("start", "fit.round-0", "fit.round-1", "fit.round-2", "fit.round-3", "use")})
        self.assertEqual(json.loads(self.artifact("use.copy")), {"n": 4})
        self.assertEqual([notice["text"] for notice in result.events("notice") if notice.get("step") == "fit"],
                         ["no further round after 4, the most allowed: until is false: fit.state.n is 4 (${fit.state.n} > 100)"])
        self.assertEqual({step["action"] for step in self.plan().values()}, {"reuse"})

    def test_a_parameter_that_only_the_condition_names_counts_as_used(self):
        self.pipeline(one_step("${fit.state.n} > ${params.enough}"), parameters={"enough": 3})
        self.assertNotIn("unused-parameter", self.pipe("validate", "--output", "json").out)

    def test_without_a_condition_there_are_as_many_rounds_as_allowed(self):
        steps = one_step(max_rounds=3)
        del steps["fit"]["repeat"]["until"]
        self.pipeline(steps)
        self.assertEqual({plan["action"] for plan in self.plan().values()}, {"run"})
        result = self.run_pipe()
        self.assertEqual(len(result.steps()), 5, result)
        self.assertEqual([notice for notice in result.events("notice") if notice.get("step") == "fit"], [])

    def test_a_condition_of_another_step_sees_the_last_round(self):
        steps = one_step("${params.round} >= 1")
        steps["use"]["when"] = "${fit.state.n} > 2"
        steps["next"] = {"command": "echo", "after": ["fit"]}
        self.pipeline(steps)
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"start": "succeeded", "fit.round-0": "succeeded", "fit.round-1": "succeeded", "use": "skipped", "next": "succeeded"})
        self.assertIn("fit.state.n is 2", [event["reason"] for event in result.events("step_finished") if event["step"] == "use"][0])

    def test_a_round_that_fails_ends_the_rounds(self):
        self.write("fit.py", "import sys\nif sys.argv[2] == '1': sys.exit('no')\n" + FIT)
        self.pipeline({**one_step(), "always": {"command": "echo", "run_on": "failure"}})
        ended = self.run_pipe(code=1)
        self.assertEqual(ended.steps(), {"start": "succeeded", "fit.round-0": "succeeded", "fit.round-1": "failed", "use": "skipped", "always": "succeeded"}, ended)
        self.assertIn("needs 'fit.round-1', which failed", [event["reason"] for event in ended.events("step_finished") if event["step"] == "use"])
        shown = self.pipe("show", "latest")
        self.assertIn("fit.round-1", shown.out)
        self.assertNotIn("fit.round-2", shown.out)

    def test_a_trial_that_fails_leaves_the_others_and_ends_the_rounds(self):
        self.pipeline(search(trial="test ${params.round}${params.item} != 12 && echo ${params.item} > ${outputs.made}"))
        steps = self.run_pipe(code=1).steps()
        self.assertEqual({step: status for step, status in steps.items() if status != "succeeded"}, {"trial.round-1.item-2": "failed", "choose.round-1": "skipped", "use": "skipped"})
        self.assertEqual(steps["trial.round-1.item-3"], "succeeded")
        self.pipeline(search())
        again = self.run_pipe()
        self.assertEqual(set(again.steps().values()), {"cached", "succeeded"}, again)

    def test_steps_that_tolerate_failures_are_skipped_with_rounds_that_do_not_begin(self):
        steps = search()
        steps["choose"]["inputs"]["results"] = {"from": "trial[*].made", "missing": "allow"}
        self.pipeline({**steps, "start": {**start(), "command": "exit 3"}})
        ended = self.run_pipe(code=1)
        self.assertEqual(ended.steps(), {"start": "failed", "propose": "skipped", "trial": "skipped", "choose": "skipped", "use": "skipped"}, ended)
        steps["propose"]["when"] = "${start.state.n} > 0"
        self.pipeline(steps)
        self.assertEqual(self.run_pipe().steps(), {"start": "succeeded", "propose": "skipped", "trial": "skipped", "choose": "skipped", "use": "skipped"})

    def test_an_allowed_failure_ends_the_rounds_for_all_their_steps(self):
        self.write("fit.py", "import sys\nif sys.argv[2] == '1': sys.exit('no')\n" + FIT)
        steps = one_step(allow_failure=True)
        steps["check"] = {"repeat": "fit", "command": "cp ${inputs.state} ${outputs.copy}", "inputs": {"state": "fit.state"}, "outputs": ["copy"]}
        steps["use"] = {"command": "cat ${inputs.copy}", "inputs": {"copy": "check.copy"}}
        self.pipeline({**steps, "next": {"command": "echo", "run_on": "always"}})
        ended = self.run_pipe()
        self.assertEqual(ended.steps(), {"start": "succeeded", "fit.round-0": "succeeded", "check.round-0": "succeeded", "fit.round-1": "failed", "check.round-1": "skipped",
                                         "use": "skipped", "next": "succeeded"}, ended)
        self.assertEqual([event["reason"] for event in ended.events("step_finished") if event["step"] == "use"], ["needs 'check.round-1', which was skipped"])
        steps["fit"]["when"] = "${start.state.n} > 0"
        self.pipeline(steps)
        self.assertEqual(self.run_pipe().steps(), {"start": "cached", "fit": "skipped", "check": "skipped", "use": "skipped"})

    def test_a_condition_over_a_missing_value_fails_the_step(self):
        self.pipeline(one_step("${fit.state.loss} < 1"))
        ended = self.run_pipe(code=1)
        self.assertEqual(ended.steps(), {"start": "succeeded", "fit.round-0": "succeeded", "fit": "failed", "use": "skipped"}, ended)
        self.assertIn("until: ${fit.state.loss} < 1: ", ended.failure("fit")["message"])

    def test_a_condition_decides_whether_there_are_rounds(self):
        self.pipeline(one_step(when="${start.state.n} > 0"))
        self.assertEqual({step: plan["action"] for step, plan in self.plan().items()}, {"start": "run", "fit": "unknown", "use": "run"})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"start": "succeeded", "fit": "skipped", "use": "skipped"}, result)
        self.assertEqual({step: plan["action"] for step, plan in self.plan().items()}, {"start": "reuse", "fit": "skip", "use": "skip"})

    def test_selecting_or_forcing_a_step_applies_to_all_its_rounds(self):
        steps = search()
        self.pipeline({**steps, "other": {"command": "echo"}})
        self.assertNotIn("other", self.run_pipe("--step", "choose").steps())
        forced = self.run_pipe("--force", "choose").steps()
        self.assertEqual({step for step, status in forced.items() if step.startswith("choose") and status == "succeeded"}, {"choose.round-0", "choose.round-1"})
        forced = self.run_pipe("--force", "trial").steps()
        self.assertEqual({status for step, status in forced.items() if step.startswith("trial")}, {"succeeded"})
        for name in ("choose[round=1]", "choose.round-1"):
            unknown = self.run_pipe("--step", name, code=2)
            self.assertIn("the steps of 'choose' are not known before the run makes them", unknown.text)

    def test_each_instance_of_a_matrix_has_its_own_state_in_all_rounds(self):
        steps = {
            "start": start(),
            "round": {"repeat": {"max": 3}, "command": "echo > ${outputs.go}", "outputs": ["go"]},
            "fit": {"repeat": "round", "matrix": {"by": [1, 10]}, "inputs": {"state": {"first": "start.state", "then": "fit[=].state"}, "go": "round.go"}, "outputs": ["state"],
                    "command": ["python3", "-c", "import json, sys; json.dump({'n': json.load(open(sys.argv[1]))['n'] + int(sys.argv[2])}, open(sys.argv[3], 'w'))",
                                "${inputs.state}", "${params.by}", "${outputs.state}"]},
            "use": {"command": "cat ${inputs.all}/*-fit* > ${outputs.text}", "inputs": {"all": "fit[*].state"}, "outputs": ["text"]},
        }
        self.pipeline(steps)
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertIn("fit.by-10.round-2", result.steps())
        self.assertEqual(self.artifact("use.text"), '{"n": 3}{"n": 30}')
        self.assertEqual({plan["action"] for plan in self.plan().values()}, {"reuse"})

    def test_a_killed_run_continues_in_its_round(self):
        self.pipeline(search("${choose.state.n} >= 42", "sleep 0.1; echo ${params.item} > ${outputs.made}; echo ran >> " + str(self.folder / "ledger")),
                      docker_settings={"volumes": [f"{self.folder}:{self.folder}"]})
        for attempt in range(4):
            process = self.start("run", "pipeline.yaml", "--orchestrator", "local") if attempt == 0 else self.start("resume", "latest")
            wait_until(lambda: process.poll() is not None or f"trial.round-{attempt}." in self.pipe("show", "latest").out, "a further round")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        result = self.pipe("resume", "latest", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(json.loads(self.artifact("use.copy"))["n"], 42)
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.assertLessEqual(len((self.folder / "ledger").read_text().splitlines()), 42 + 4 * (os.cpu_count() or 1))

    def test_the_terminal_has_one_line_for_each_round(self):
        self.pipeline(search())
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("[propose] round 1\n", result.out)
        plan = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("trial[*] (6 of 6)", plan.out)
        graph = self.pipe("graph", "pipeline.yaml").out
        self.assertIn("propose, up to 9 rounds", graph)
        self.assertIn("|next state|", graph)


if __name__ == "__main__":
    unittest.main()
