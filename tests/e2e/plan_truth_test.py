"""What `pipe plan` says is what `pipe run` does, and why."""

import unittest

from support import PARENT, PipeTest


class OfProcesses(PipeTest):
    orchestrator = "local"

    def test_changes_are_those_since_the_most_similar_result(self):
        self.write("train.py", "print(1)\n")
        steps = {"train": {"command": "python3 train.py ${params.c} > ${outputs.x}", "code": ["train.py"], "outputs": ["x"]}}
        self.pipeline(steps, parameters={"c": 1})
        self.run_pipe()
        self.run_pipe("-p", "c=2")
        self.write("train.py", "print(2)\n")
        self.assertEqual(self.plan()["train"]["changes"], ["code train.py changed"], "the parameter has not changed since the run that the plan compares with")

    def test_a_removed_lock_file_does_not_mean_that_everything_runs(self):
        self.pipeline({"a": {"command": "python -c 'import tomli; print(1)' > ${outputs.x}", "outputs": ["x"]},
                       "b": {"command": "cat ${inputs.x} > ${outputs.y}", "inputs": {"x": "a.x"}, "outputs": ["y"]}}, {"requirements": ["tomli==2.0.1"]})
        self.run_pipe()
        (self.folder / "pipeline.lock").unlink()
        planned = self.plan()
        self.assertNotIn("run", [step["action"] for step in planned.values()], planned)
        self.assertEqual(self.run_pipe().steps(), {"a": "cached", "b": "cached"})

    def test_requirements_that_are_not_locked_yet_run_the_step(self):
        steps = {"a": {"command": "python -c 'import tomli; print(1)' > ${outputs.x}", "outputs": ["x"]}}
        self.pipeline(steps, {"requirements": ["tomli==2.0.1"]})
        self.run_pipe()
        self.pipeline(steps, {"requirements": ["tomli==2.0.1", "idna==3.7"]})
        planned = self.plan()["a"]
        self.assertEqual((planned["action"], planned["changes"]), ("run", ["image changed: requirements changed (added idna==3.7)"]))
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})


class InContainers(PipeTest):
    def test_steps_are_reused_when_a_changed_parent_is_changed_back(self):
        steps = {"a": {"command": "echo 1 > ${outputs.x}", "outputs": ["x"]}, "b": {"command": "cat ${inputs.x}", "inputs": {"x": "a.x"}}}
        self.pipeline(steps)
        self.run_pipe()
        self.pipeline(steps, {"parent_image": "debian:bookworm-slim"})
        change, = self.plan()["a"]["changes"]
        self.assertRegex(change, f"^image.*{PARENT.split(':')[0]}.*debian|^image changed: .*parent")
        self.run_pipe()
        self.pipeline(steps)
        self.assertEqual({step["action"] for step in self.plan().values()}, {"reuse"})
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})


if __name__ == "__main__":
    unittest.main()
