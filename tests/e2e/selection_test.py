"""Which steps run (--force, --from, --until), parameters from files, `pipe graph`, and names of runs such as digits@latest."""

import json
import unittest

from support import PipeTest, wait_until


class Selection(PipeTest):
    orchestrator = "local"

    def chain(self, **top):
        """Writes a pipeline in which `train` takes the output of `load`, and `report` that of `train`; `other` stands alone. All outputs are always equal."""
        count = "echo ran >> %s; echo same > ${outputs.x}"
        self.pipeline({
            "load": {"command": count % (self.folder / "load.log"), "outputs": ["x"]},
            "train": {"command": count % (self.folder / "train.log"), "inputs": {"x": "load.x"}, "outputs": ["x"]},
            "report": {"command": count % (self.folder / "report.log"), "inputs": {"x": "train.x"}, "outputs": ["x"]},
            "other": {"command": count % (self.folder / "other.log"), "outputs": ["x"]},
        }, **top)

    def test_force_runs_one_step_and_from_also_all_steps_behind_it(self):
        self.chain()
        self.run_pipe()
        forced = self.run_pipe("--force", "train").steps()
        self.assertEqual(forced, {"load": "cached", "train": "succeeded", "report": "cached", "other": "cached"}, "the output of 'train' is as before")
        behind = self.run_pipe("--from", "train").steps()
        self.assertEqual(behind, {"load": "cached", "train": "succeeded", "report": "succeeded", "other": "cached"})
        both = self.run_pipe("--force", "train", "--from", "load", "--force", "other").steps()
        self.assertEqual(set(both.values()), {"succeeded"})
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        plan = self.plan("--force", "train")
        self.assertEqual((plan["train"]["action"], plan["train"]["changes"], plan["other"]["action"]), ("run", ["--force"], "reuse"))
        self.assertEqual(plan["report"]["action"], "depends")

    def test_until_runs_what_a_step_needs_and_can_be_combined_with_from(self):
        self.chain()
        self.assertEqual(self.run_pipe("--until", "train").steps(), {"load": "succeeded", "train": "succeeded"})
        self.assertEqual(self.run_pipe("--until", "report", "--from", "train").steps(), {"load": "cached", "train": "succeeded", "report": "succeeded"})
        self.assertEqual(self.run_pipe("--until", "train", "--from", "load").steps(), {"load": "succeeded", "train": "succeeded"})
        self.assertEqual({name: step["action"] for name, step in self.plan("--until", "train", "--force", "train").items()}, {"load": "reuse", "train": "run"})

    def test_instances_and_steps_that_gather_can_be_selected(self):
        write = "echo ${params.c} > ${outputs.x}"
        self.pipeline({
            "data": {"command": "echo 1 > ${outputs.x}", "outputs": ["x"]},
            "train": {"command": write, "matrix": {"c": [1, 2, 3]}, "inputs": {"x": "data.x"}, "outputs": ["x"]},
            "test": {"command": write, "matrix": "train", "inputs": {"x": "train[=].x"}, "outputs": ["x"]},
            "best": {"command": "cat ${inputs.all}/[0-9]* > ${outputs.x}", "inputs": {"all": "test[*].x"}, "outputs": ["x"]},
            "last": {"command": "true", "inputs": {"x": "best.x"}},
        })
        names = lambda result, status: sorted(name for name, ended in result.steps().items() if ended == status)
        self.assertEqual(names(self.run_pipe("--until", "test[c=2]"), "succeeded"), ["data", "test.c-2", "train.c-2"])
        all_tests = self.run_pipe("--until", "test")
        self.assertEqual(names(all_tests, "succeeded"), ["test.c-1", "test.c-3", "train.c-1", "train.c-3"])
        self.assertEqual(len(all_tests.steps()), 7)
        self.assertEqual(names(self.run_pipe("--until", "best"), "succeeded"), ["best"])
        self.assertEqual(self.artifact("best.x"), "1\n2\n3\n")
        behind = self.run_pipe("--from", "train[c=3]", "--until", "best")
        self.assertEqual(names(behind, "succeeded"), ["best", "test.c-3", "train.c-3"])
        self.assertNotIn("last", behind.steps())
        self.assertEqual(names(self.run_pipe("--force", "test", "--until", "best"), "succeeded"), ["test.c-1", "test.c-2", "test.c-3"])

    def test_an_unknown_step_is_an_error(self):
        self.chain()
        for option in ("--force", "--from", "--until"):
            refused = self.run_pipe(option, "trian", code=2)
            self.assertIn("did you mean 'train'?", refused.err)

    def test_a_forced_step_that_is_not_selected_is_an_error(self):
        self.chain()
        for command in ("run", "plan"):
            for option in ("--force", "--from"):
                refused = self.pipe(command, "pipeline.yaml", "-o", "local", option, "report", "--until", "train")
                self.assertEqual(refused.code, 2, refused)
                self.assertIn(f"{option} report: --step train leaves out this step", refused.err)

    def test_force_of_a_resumed_run_keeps_what_it_has_done(self):
        self.pipeline({"train": {"command": f"echo ran >> {self.folder / 'train.log'}"},
                       "slow": {"command": f"if [ ! -e {self.folder / 'mark'} ]; then touch {self.folder / 'mark'}; sleep 600; fi", "after": ["train"]}})
        self.write("mark", "")
        self.run_pipe()
        (self.folder / "mark").unlink()
        process = self.start("run", "pipeline.yaml", "-o", "local", "--from", "train")
        wait_until(lambda: (self.folder / "mark").exists(), "the slow step")
        process.kill()
        self.finish(process)
        self.assertEqual(self.pipe("resume").code, 0)
        self.assertEqual((self.folder / "train.log").read_text(), "ran\nran\n")

    def test_a_file_of_parameters_is_read_and_checked(self):
        self.pipeline({"a": {"command": "echo ${params.lr} ${params.seed} ${params.epochs} > ${outputs.x}", "outputs": ["x"], "parameters": {"epochs": 1}}},
                      parameters={"lr": 0.5, "seed": 1})
        self.write("few.yaml", "lr: 0.25\na: {epochs: 9}\n")
        self.run_pipe("-p", "seed=3", "--params", "few.yaml")
        self.assertEqual(self.artifact("a.x"), "0.25 3 9\n")
        self.write("few.json", json.dumps({"lr": 0.125, "seed": 4}))
        self.run_pipe("-p", "seed=5", "--params", "few.json")
        self.assertEqual(self.artifact("a.x"), "0.125 5 1\n", "--param takes precedence")
        for text, said in (("lr: [1, 2]\n", "'lr' is a number, such as 0.5"), ("lr: [\"\\x01\"]\n", "wrong.yaml:1:6: error: parameter 'lr' has a control character"), ("lt: 1\n", "wrong.yaml:1:1: lt: there is no such parameter"),
                           ("- 1\n", "must be a map of names to values"), ("lr: abc\n", "'lr' is a number")):
            self.write("wrong.yaml", text)
            self.assertIn(said, self.run_pipe("--params", "wrong.yaml", code=2).err)
        self.assertIn("there is no file", self.run_pipe("--params", "nowhere.yaml", code=2).err)

    def test_lists_and_maps_are_json_in_commands_and_variables(self):
        show = "import json, os, sys; json.dump([json.loads(sys.argv[2]), json.loads(os.environ['PIPE_PARAM_OPT']), sys.argv[3]], open(sys.argv[1], 'w'))"
        self.write("show.py", show)
        self.pipeline({"a": {"command": "python3 show.py ${outputs.x} ${params.names} ${params.opt.lr}", "outputs": ["x"], "parameters": ["opt"]},
                       "b": {"command": "echo ${params.name} > ${outputs.x}", "outputs": ["x"], "matrix": {"name": "${params.names[*]}"}}},
                      parameters={"names": ["it's", 'a "b" $HOME'], "opt": {"lr": 0.5, "deep": [None]}})
        self.run_pipe()
        self.assertEqual(json.loads(self.artifact("a.x")), [["it's", 'a "b" $HOME'], {"lr": 0.5, "deep": [None]}, "0.5"])
        again = self.run_pipe("-p", "names=[\"it's\", new]")
        self.assertEqual(again.steps()["a"], "succeeded", "the list is in its key")
        self.assertEqual([name for name, status in again.steps().items() if name.startswith("b.") and status != "cached"], ["b.name-new"],
                         "another item leaves the other instances alone")
        self.assertNotIn("unused-parameter", self.pipe("validate", "pipeline.yaml", "--output", "json").out)

    def test_graph_has_steps_instances_and_labelled_edges(self):
        self.pipeline({
            "load": {"command": "true", "outputs": ["data"]},
            "train": {"command": "true", "matrix": {"c": [1, 2, 3]}, "inputs": {"data": "load.data"}, "outputs": ["metrics"]},
            "deploy": {"command": "true", "when": "${train[c=1].metrics.good}"},
            "end": {"command": "true", "run_on": "always", "after": ["deploy"]},
        })
        self.assertEqual(self.pipe("graph").out, """flowchart TB
  s0["load"]
  s1["train (3 instances)"]
  s2{{"deploy"}}
  s3["end, run_on: always"]
  s0 -->|data| s1
  s1 -.->|when| s2
  s2 -.-> s3
""")
        dot = self.pipe("graph", "--format", "dot").out
        self.assertIn('"load" -> "train" [label="data"];', dot)
        self.assertIn('"deploy" [label="deploy", shape=hexagon];', dot)
        edges = json.loads(self.pipe("graph", "--output", "json").out)["edges"]
        self.assertEqual(edges[1], {"from": "train", "to": "deploy", "label": "when", "data": False})

    def test_latest_can_be_asked_of_one_pipeline_and_of_successes(self):
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe()
        first = json.loads(self.pipe("show", "--output", "json").out)["id"]
        self.pipeline({"a": {"command": "false"}})
        self.run_pipe(code=1)
        self.write("other.yaml", json.dumps({"name": "other", "steps": {"b": {"command": "true"}}}))
        self.assertEqual(self.pipe("run", "other.yaml", "-o", "local").code, 0)
        ids = {which: json.loads(self.pipe("show", which, "--output", "json").out)["id"]
               for which in ("latest", "latest-success", "e2e@latest", "e2e@latest-success", "other@latest")}
        self.assertEqual(ids["e2e@latest-success"], first)
        self.assertEqual(ids["other@latest"], ids["latest"])
        self.assertEqual(ids["latest"], ids["latest-success"])
        self.assertNotIn(ids["e2e@latest"], (first, ids["latest"]))
        self.assertIn("there is no run 'digits@latest'", self.pipe("show", "digits@latest").err)


if __name__ == "__main__":
    unittest.main()
