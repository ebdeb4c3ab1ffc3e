"""A matrix makes many steps of one; other steps take all of their outputs, one, or that of the same instance. In containers and as processes."""

import json
import unittest

from support import PipeTest

TRAIN = "import sys\nopen(sys.argv[2], 'w').write(f'model of {sys.argv[1]}')\n"
CHOOSE = """import json, os, sys
folder = sys.argv[1]
index = json.load(open(os.path.join(folder, 'index.json')))
with open(sys.argv[2], 'w') as out:
    for entry in index:
        out.write(f"{entry['parameters']['c']} {open(os.path.join(folder, entry['file'])).read()}\\n")
print('files', len(os.listdir(folder)))
"""


def steps(values) -> dict:
    """Returns the steps of a pipeline: `train` has an instance for each value, `choose` takes all outputs, `one` takes the first, and each instance of `score`
    takes that of the same instance."""
    return {
        "train": {"matrix": {"c": values, "kernel": ["rbf"]}, "command": ["python3", "train.py", "${params.c} ${params.kernel}", "${outputs.model}"],
                  "outputs": {"model": "model.txt"}},
        "choose": {"command": ["python3", "choose.py", "${inputs.models}", "${outputs.list}"], "inputs": {"models": "train[*].model"}, "outputs": ["list"]},
        "one": {"command": "cat ${inputs.model} > ${outputs.copy}", "inputs": {"model": f"train[c={values[0]},kernel=rbf].model"}, "outputs": ["copy"]},
        "score": {"matrix": "train", "command": "cat ${inputs.model} > ${outputs.score}; echo score ${params.c}", "inputs": {"model": "train[=].model"},
                  "outputs": ["score"]},
    }


class OnDocker(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("train.py", TRAIN)
        self.write("choose.py", CHOOSE)

    def test_outputs_are_gathered_in_order_and_can_be_taken_singly(self):
        self.pipeline(steps([0.1, 1, 10]))
        first = self.run_pipe()
        self.assertEqual(set(first.steps().values()), {"succeeded"}, first)
        self.assertEqual(self.artifact("choose.list"), "0.1 model of 0.1 rbf\n1 model of 1 rbf\n10 model of 10 rbf\n")
        self.assertEqual(self.artifact("one.copy"), "model of 0.1 rbf")
        self.assertEqual(self.artifact("score[c=10].score"), "model of 10 rbf")
        self.assertIn("files 4", self.pipe("logs", "latest", "choose").out)
        self.assertEqual(self.pipe("logs", "latest", "score[c=1]").out, "score 1\n")
        self.assertEqual(self.pipe("logs", "latest", "score[2]").out, "score 10\n")
        several = self.pipe("logs", "latest", "score")
        self.assertEqual(several.code, 2)
        self.assertIn("score.c-0.1.kernel-rbf", several.err)
        self.assert_nothing_left()

    def test_one_changed_value_reruns_its_instances_and_the_step_that_gathers(self):
        self.pipeline(steps([0.1, 1, 10]))
        self.run_pipe()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.pipeline(steps([0.1, 1, 11]))
        plan = self.plan()
        self.assertEqual(plan["train.c-1.kernel-rbf"]["action"], "reuse")
        self.assertEqual(plan["train.c-11.kernel-rbf"]["action"], "run")
        ran = {step for step, status in self.run_pipe().steps().items() if status == "succeeded"}
        self.assertEqual(ran, {"train.c-11.kernel-rbf", "choose", "score.c-11.kernel-rbf"})
        self.assertEqual(self.artifact("choose.list"), "0.1 model of 0.1 rbf\n1 model of 1 rbf\n11 model of 11 rbf\n")

    def test_a_failed_instance_skips_only_the_steps_that_take_its_output(self):
        self.write("train.py", "import sys\nif sys.argv[1].startswith('1 '): sys.exit('no such thing')\n" + TRAIN)
        self.pipeline(steps([0.1, 1, 10]))
        ended = self.run_pipe(code=1).steps()
        self.assertEqual(ended["train.c-1.kernel-rbf"], "failed")
        self.assertEqual((ended["choose"], ended["score.c-1.kernel-rbf"]), ("skipped", "skipped"))
        self.assertEqual((ended["one"], ended["score.c-10.kernel-rbf"]), ("succeeded", "succeeded"))

    def test_one_instance_is_run_alone(self):
        self.pipeline(steps([0.1, 1, 10]))
        self.assertEqual(set(self.run_pipe("--step", "score[c=1]").steps()), {"train.c-1.kernel-rbf", "score.c-1.kernel-rbf"})


class AsProcesses(OnDocker):
    orchestrator = "local"

    def test_instances_that_fail_alike_are_reported_once_with_their_number(self):
        command = "test ${params.n} = 9 && echo other && exit 4; echo No module named x in $PWD >&2; exit 3"
        for values, lines in ((["a", "b", "c", 9], 2), ([*range(40)], 0)):
            self.pipeline({"fit": {"matrix": {"n": values}, "command": command}})
            result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
            self.assertEqual(result.code, 1, result)
            alike = len(values) - 1
            self.assertIn(f"({alike} instances) failed: ended with exit code 3", result.out)
            self.assertIn("fit.n-9 failed: ended with exit code 4", result.out)
            self.assertEqual(result.out.count("ended with exit code 3"), 2, result)  # once as it happened, once at the end
            self.assertEqual(result.out.count(": the same failure as that of fit.n-"), lines, result)
            self.assertEqual(result.out.count("| No module named x"), 1, result)

    def test_a_plan_does_not_promise_what_a_step_that_never_ran_gives(self):
        pipeline = {"fit": {"matrix": {"n": "${params.values[*]}"}, "command": "echo ${params.n} > ${outputs.x}", "outputs": ["x"]},
                    "plot": {"command": "cat ${inputs.all}/* > ${outputs.x} && rm -f x", "inputs": {"all": "fit[*].x"}, "outputs": ["x"]}}
        self.pipeline(pipeline, parameters={"values": ["a", "b"]})
        self.run_pipe()
        pipeline["fit"]["command"] += " # the same"
        self.pipeline(pipeline, parameters={"values": ["a", "b"]})
        self.assertEqual(self.plan()["plot"]["changes"], ["reused if 'fit.n-b' and 1 other step give the same as before"])
        pipeline["fit"]["command"] = pipeline["fit"]["command"].removesuffix(" # the same")
        self.pipeline(pipeline, parameters={"values": ["a", "b", "c"]})
        self.assertEqual(self.plan()["plot"]["changes"], ["takes what 'fit.n-c' makes, which has no result yet: never run before"])

    def test_many_instances_are_shown_as_one(self):
        values = list(range(60))
        self.pipeline({"sweep": {"matrix": {"n": values}, "command": "echo line of ${params.n}; test ${params.n} != 7"},
                       "last": {"command": ["true"]}})
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(result.code, 1, result)
        self.assertIn("[sweep] 60/60, 1 failed", result.out)
        self.assertIn("[sweep.n-7] failed", result.out)
        self.assertNotIn("line of 8", result.out)
        self.assertLess(len(result.out.splitlines()), 60, result)
        self.assertEqual(len([line for line in result.out.splitlines() if line.startswith("sweep[*]")]), 1, result)
        shown = self.pipe("show", "latest")
        self.assertIn("59 of 60", shown.out)
        again = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("sweep[...] (59 of 60)", again.out)
        self.assertIn("sweep.n-7 ", again.out)
        events = self.run_pipe(code=1).events("run_started")
        self.assertEqual(events[0]["instances"], {"sweep": 60})

    def test_ten_thousand_instances_are_planned(self):
        self.pipeline({"sweep": {"matrix": {"a": list(range(100)), "b": list(range(100))}, "command": ["true"], "outputs": ["o"]},
                       "all": {"command": ["true"], "inputs": {"all": "sweep[*].o"}}})
        self.assertIn("10001 steps", self.pipe("validate", "pipeline.yaml").out)
        plan = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("sweep[*] (10000 of 10000)  run", plan.out)
        self.assertLess(len(plan.out.splitlines()), 15, plan)
        described = json.loads(self.pipe("schema").out)["$defs"]["step"]["properties"]
        self.assertIn("matrix", described)


if __name__ == "__main__":
    unittest.main()
