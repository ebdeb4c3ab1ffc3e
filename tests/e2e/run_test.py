"""A run, a second run that reuses everything, and which steps an edit reruns: in containers and as processes."""

import json
import os
import unittest

from support import NOWHERE, PARENT, PipeTest

LOAD = "import sys\nopen(sys.argv[1], 'w').write('1 2 3')\nprint('loaded')\n"
TRAIN = "import sys\nfrom helper import total\nopen(sys.argv[2], 'w').write(str(total(open(sys.argv[1]).read())))\n"
HELPER = "def total(text):\n    return sum(map(int, text.split()))\n"
STEPS = {
    "load": {"command": ["python3", "load.py", "${outputs.data}"], "outputs": ["data"]},
    "train": {"command": "python3 train.py ${inputs.data} ${outputs.model}", "inputs": {"data": "load.data"}, "outputs": ["model"]},
    "report": {"command": "cat ${inputs.model} > ${outputs.text}; echo of ${params.who} >> ${outputs.text}", "inputs": {"model": "train.model"},
               "outputs": ["text"], "parameters": {"who": "it's me; $(touch /tmp/never)"}},
    "aside": {"command": ["python3", "-c", "print('aside')"]},
}


class OnDocker(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("load.py", LOAD)
        self.write("train.py", TRAIN)
        self.write("helper.py", HELPER)
        self.pipeline(STEPS)

    def test_a_run_makes_its_outputs_and_a_second_one_reuses_all(self):
        first = self.run_pipe()
        self.assertEqual(set(first.steps().values()), {"succeeded"}, first)
        self.assertEqual(self.artifact("report.text"), "6of it's me; $(touch /tmp/never)\n")
        self.assert_nothing_left()

        second = self.run_pipe()
        self.assertEqual(set(second.steps().values()), {"cached"}, second)
        run = first.events("run_started")[0]["run"]
        self.assertEqual({event["reused_from"] for event in second.events("step_finished")}, {run})
        self.assertEqual(second.events("build_started"), [])
        self.assertEqual(self.artifact("report.text"), "6of it's me; $(touch /tmp/never)\n")

    def test_an_edit_reruns_what_depends_on_it_and_plan_had_said_so(self):
        self.run_pipe()
        self.write("train.py", TRAIN.replace("str(", "'sum ' + str("))
        plan = self.plan()
        self.assertEqual((plan["load"]["action"], plan["train"]["action"]), ("reuse", "run"))
        self.assertNotEqual(plan["report"]["action"], "reuse")
        self.assertEqual(plan["aside"]["action"], "reuse")
        self.assertIn("train.py", json.dumps(plan["train"]["changes"]))
        again = self.run_pipe()
        self.assertEqual(again.steps(), {"load": "cached", "train": "succeeded", "report": "succeeded", "aside": "cached"})
        self.assertEqual(again.events("build_started"), [], "an edit of the code builds nothing")
        self.assertEqual(self.artifact("train.model"), "sum 6")

    def test_an_edit_of_an_imported_module_reruns_its_users(self):
        self.run_pipe()
        self.write("helper.py", HELPER.replace("sum(", "10 * sum("))
        self.assertEqual(self.run_pipe().steps(), {"load": "cached", "train": "succeeded", "report": "succeeded", "aside": "cached"})

    def test_steps_behind_a_rerun_step_with_equal_outputs_are_reused(self):
        self.run_pipe()
        self.write("load.py", LOAD + "# a comment\n")
        self.assertEqual(self.plan()["train"]["action"], "depends")
        again = self.run_pipe()
        self.assertEqual(again.steps()["load"], "succeeded")
        self.assertEqual({again.steps()[step] for step in ("train", "report")}, {"cached"}, "the same data came out")

    def test_a_file_that_no_step_uses_changes_nothing(self):
        self.run_pipe()
        self.write("notes.py", "print('not used')\n")
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})

    def test_a_parameter_reruns_its_step_and_no_cache_all(self):
        self.run_pipe()
        self.assertEqual(self.run_pipe("--param", "report.who=you").steps(), {"load": "cached", "train": "cached", "report": "succeeded", "aside": "cached"})
        self.assertEqual(set(self.run_pipe("--no-cache").steps().values()), {"succeeded"})

    def test_one_step_runs_with_what_it_needs(self):
        self.assertEqual(set(self.run_pipe("--step", "train").steps()), {"load", "train"})

    def test_a_step_sees_only_its_code_and_its_failure_names_the_missing_file(self):
        self.write("table.txt", "1")
        self.pipeline({"read": {"command": ["python3", "-c", "import os; print(os.listdir('.')); open('table' + '.txt')"]}})
        result = self.run_pipe(code=1)
        self.assertIn("table.txt", json.dumps(result.failure("read")["hints"]))
        self.assertIn("code:", json.dumps(result.failure("read")["hints"]))

    def test_numbers_keep_their_digits(self):
        self.pipeline({"t": {"matrix": {"python": [3.9], "fold": [1]}, "outputs": ["o"],
                             "command": ["sh", "-c", "echo ${params.python} ${params.fold} ${params.zip} ${params.n.0} ${params.n} $PIPE_PARAM_ZIP > ${outputs.o}"]}},
                      parameters={"zip": "ZIP", "n": ["LIST"]})
        file = self.folder / "pipeline.yaml"
        file.write_text(file.read_text().replace('"ZIP"', "01234").replace('"LIST"', "1.50").replace("3.9\n", "3.10\n").replace(" 1\n", " 1e-3\n"))
        self.run_pipe()
        self.assertEqual(self.artifact("t.python-3.10.fold-1e-3.o"), "3.10 1e-3 01234 1.50 [1.50] 01234\n")
        self.assertEqual(set(self.run_pipe("-p", "n=[1.5]").steps().values()), {"succeeded"}, "another text is another key")

    def test_absolute_links_into_an_output_are_kept(self):
        self.pipeline({"abs": {"command": "mkdir -p ${outputs.m}/v1; echo x > ${outputs.m}/v1/f; ln -s ${outputs.m}/v1 ${outputs.m}/latest", "outputs": ["m"]},
                       "use": {"command": "cat ${inputs.m}/latest/f > ${outputs.o}", "inputs": {"m": "abs.m"}, "outputs": ["o"]}})
        self.run_pipe()
        self.assertEqual(self.artifact("use.o"), "x\n")

    def test_outputs_belong_to_the_caller(self):
        self.run_pipe()
        owners = {path.lstat().st_uid for path in self.state.rglob("*")}
        self.assertEqual(owners, {os.getuid()})

    def test_inputs_are_read_only(self):
        self.pipeline({
            "load": STEPS["load"],
            "spoil": {"command": "echo spoiled > ${inputs.data} || rm -f ${inputs.data} || exit 7", "inputs": {"data": "load.data"}},
        })
        # Nothing prevents a process of root from writing. The step then fails, or the spoilt artifact is noticed when it is used.
        self.run_pipe(code=1 if self.orchestrator == "docker" or os.getuid() != 0 else None)
        if self.orchestrator == "local" and os.getuid() == 0:
            return
        self.assertEqual(self.artifact("load.data"), "1 2 3")


class Locally(OnDocker):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


class Environments(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("show.py", "import six\nprint('six', six.__version__)\n")
        self.steps = {
            "one": {"command": ["python3", "show.py"]},
            "two": {"command": ["python3", "show.py", "again"]},
            "three": {"command": ["python3", "-c", "print(3)"], "settings": {"docker": {"requirements": []}}},
        }
        self.settings = {"requirements": ["six==1.16.0"], "environment": {"E2E": self.mark}}

    def builds(self, result) -> list[dict]:
        """Returns the events of the builds of this test's images."""
        return [event for event in result.events("build_finished") if self.repository in event["image"]]

    def test_equal_settings_build_once_and_an_added_requirement_rebuilds_one_environment(self):
        self.pipeline(self.steps, self.settings)
        first = self.run_pipe()
        built = self.builds(first)
        self.assertLessEqual(len(built), 2, first)
        self.assertEqual(len(self.images()), len(built))

        self.pipeline(self.steps | {"two": self.steps["two"] | {"settings": {"docker": {"requirements": ["six==1.16.0", "idna==3.7"]}}}}, self.settings)
        plan = self.plan()
        # The plan does not know the versions of the new requirements, but they differ from those of the step's last success.
        self.assertEqual([plan[step]["action"] for step in ("one", "two", "three")], ["reuse", "run", "reuse"])
        self.assertTrue(plan["two"]["build"], plan)
        self.assertRegex(json.dumps(plan["two"]["changes"]), "environment|image|requirements")
        before = set(self.images())
        second = self.run_pipe()
        self.assertEqual(second.steps(), {"one": "cached", "two": "succeeded", "three": "cached"})
        self.assertEqual(len(self.builds(second)), 1)
        self.assertEqual(len(set(self.images()) - before), 1)

        third = self.run_pipe("--no-cache")
        self.assertEqual(third.events("build_started"), [], "nothing changed: no build call")

    def test_render_shows_the_dockerfile_and_build_builds_what_the_run_uses(self):
        self.pipeline(self.steps, self.settings)
        rendered = self.pipe("render", "pipeline.yaml")
        self.assertEqual(rendered.code, 0, rendered)
        self.assertIn(f"FROM {PARENT}", rendered.out)
        self.assertRegex(rendered.out, r"requirements\.txt +\d+ B")
        self.assertEqual(self.images(), [], "render builds nothing")
        self.assertEqual(self.pipe("build", "pipeline.yaml").code, 0)
        self.assertTrue(self.images())
        self.assertEqual(self.run_pipe().events("build_started"), [])


if __name__ == "__main__":
    unittest.main()
