"""Lineage of outputs: `why` says how an artifact was made, and `used` which steps used it, also in a matrix. The records are removed with the runs."""

import json
import os
import sqlite3
import subprocess
import unittest

import growing_test
from support import PipeTest


class Lineage(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.write("gather.py", growing_test.GATHER)
        self.write("split.py", growing_test.SPLIT)

    def used(self, artifact: str) -> list[dict]:
        """Returns the steps that used an artifact, STEP.OUTPUT, as `pipe used` has them in JSON."""
        done = self.pipe("used", artifact, "--output", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)["used"]

    def why(self, artifact: str) -> dict:
        """Returns how an artifact, STEP.OUTPUT, was made, as `pipe why` has it in JSON."""
        return json.loads(self.pipe("why", artifact, "--output", "json").out)

    def kept(self) -> int:
        """Returns how many records the store has of what gathered inputs and a matrix's inputs consist of."""
        database = sqlite3.connect(self.state / "pipe.db")
        (count,), = database.execute("SELECT count(*) FROM blobs WHERE kind IN ('gathered', 'taken values')")
        database.close()
        return count

    def test_of_equal_artifacts_of_two_steps_the_earlier_one_was_used(self):
        """`choose` copies the model, so that both have the same digest; the trained model was evaluated, not its later copy."""
        self.pipeline({"train": {"command": "echo model > ${outputs.model}", "outputs": ["model"]},
                       "evaluate": {"command": "echo good > ${outputs.score}", "inputs": {"model": "train.model"}, "outputs": ["score"]},
                       "choose": {"command": "cp ${inputs.model} ${outputs.best}", "inputs": {"model": "train.model", "score": "evaluate.score"}, "outputs": ["best"]},
                       "publish": {"command": "cat ${inputs.best}", "inputs": {"best": "choose.best"}}})
        self.run_pipe()
        best = self.why("choose.best")
        self.assertEqual((best["step"], best["inputs"]["model"]["step"], best["inputs"]["score"]["inputs"]["model"]["step"]), ("choose", "train", "train"))
        evaluated, chosen, published = self.used("train.model")
        self.assertEqual([use["step"] for use in (evaluated, chosen, published)], ["evaluate", "choose", "publish"])
        (copied,) = evaluated["outputs"][0]["used"]
        self.assertEqual([use["step"] for use in copied["outputs"][0]["used"]], ["publish"])

    def test_an_output_that_is_named_is_that_of_its_step_and_run(self):
        """Two steps write the same text: each is the maker of its own output, of the last round too."""
        self.pipeline({"first": {"command": "echo ok > ${outputs.mark}", "outputs": ["mark"]},
                       "second": {"command": "echo ok > ${outputs.mark} # later", "outputs": ["mark"], "after": ["first"]},
                       "fit": {"repeat": {"max": 2}, "command": "echo ${params.round} > ${outputs.state}", "outputs": ["state"]},
                       "try": {"matrix": {"c": [1, 2]}, "command": "echo ok > ${outputs.mark}", "outputs": ["mark"], "after": ["second"]}})
        made = self.run_pipe().events("run_started")[0]["run"]
        self.run_pipe("--no-cache")
        for words, step in (("first.mark", "first"), ("fit.state", "fit.round-1"), ("fit[round=0].state", "fit.round-0"), ("try[c=1].mark", "try.c-1")):
            self.assertEqual(self.why(words)["step"], step)
        self.assertTrue(self.why("first.mark")["run"] != made)
        provenance = json.loads(self.pipe("export", made, "first.mark", "--format", "slsa").out)["predicate"]
        self.assertEqual(provenance["buildDefinition"]["externalParameters"]["step"], "first")
        self.assertTrue(provenance["runDetails"]["metadata"]["invocationId"].startswith(made + "/first"))
        several = self.pipe("why", "try[*].mark")
        self.assertEqual(several.code, 2)
        self.assertIn("name one of them: try.c-1.mark, try.c-2.mark", several.text)

    def test_an_input_is_that_of_the_step_which_the_pipeline_names(self):
        """All outputs are equal: the filter changes nothing, and so does each instance of `train`. All of these steps had ended before the step that took one
        of the outputs, so that times do not tell them apart."""
        self.pipeline({"load": {"command": "echo rows > ${outputs.rows}", "outputs": ["rows"]},
                       "filter": {"command": "cp ${inputs.rows} ${outputs.rows}", "inputs": {"rows": "load.rows"}, "outputs": ["rows"]},
                       "train": {"matrix": {"rate": [1, 2, 3]}, "command": "cp ${inputs.rows} ${outputs.model}", "inputs": {"rows": "load.rows"}, "outputs": ["model"],
                                 "after": ["filter"]},
                       "score": {"matrix": {"rate": [1, 2, 3]}, "command": "echo ${params.rate} > ${outputs.score}", "inputs": {"model": "train[=].model"}, "outputs": ["score"],
                                 "after": ["train"]}})
        self.run_pipe()
        for rate in (1, 2, 3):
            score = self.why(f"score.rate-{rate}.score")
            model = score["inputs"]["model"]
            self.assertEqual((score["step"], model["step"]), (f"score.rate-{rate}", f"train.rate-{rate}"))
            self.assertEqual(model["inputs"]["rows"]["step"], "load")
        steps = json.loads(self.pipe("report", "latest", "--output", "json").out)["steps"]
        links = {link for step in steps for _, link in step.get("f", [])}
        self.assertEqual(links, {"load.rows", *(f"train.rate-{rate}.model" for rate in (1, 2, 3))})

    def test_equal_outputs_of_instances_are_gathered_under_their_own_names(self):
        """All scores are equal: the lineage names the two steps whose scores were gathered, not twice the step that ran last."""
        self.pipeline({"train": {"matrix": {"a": [1, 2], "b": [1, 2]}, "command": "echo 1 > ${outputs.score}", "outputs": ["score"]},
                       "choose": {"command": "cat ${inputs.scores}/* > ${outputs.best}", "inputs": {"scores": "train[a=*,b=1].score"}, "outputs": ["best"]}})
        names = ["train.a-1.b-1", "train.a-2.b-1"]
        for last in ("train[a=1,b=2]", "train[a=2,b=2]"):
            self.run_pipe("--force", last)
            self.assertEqual([score["step"] for score in self.why("choose.best")["inputs"]["scores"]], names)
        outputs = [name + ".score" for name in names]
        self.assertEqual(json.loads(self.pipe("report", "latest", "--output", "json").out)["gathers"], [outputs])
        provenance = json.loads(self.pipe("export", "latest", "choose.best", "--format", "slsa").out)
        self.assertEqual([each["uri"].split("/")[-1] for each in provenance["predicate"]["buildDefinition"]["resolvedDependencies"] if each["name"].startswith("input")], outputs)

    def test_a_long_chain_is_followed_in_bounded_memory(self):
        """An earlier version copied each step's inputs for every later step, and used 700 MB."""
        count = 800
        steps = {"s0": {"command": "echo 0 > ${outputs.o}", "outputs": ["o"]}}
        for i in range(1, count):
            steps[f"s{i}"] = {"command": f"echo {i} > ${{outputs.o}}", "inputs": {"i": f"s{i - 1}.o"}, "outputs": ["o"]}
        self.pipeline(steps)
        self.run_pipe()
        asked = subprocess.Popen([self.command, "why", f"s{count - 1}.o"], cwd=self.folder, env=self.environment({}), stdout=subprocess.PIPE, text=True)
        with asked.stdout as output:
            text = output.read()
        _, status, usage = os.wait4(asked.pid, 0)
        asked.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(asked.returncode, 0)
        self.assertEqual(text.count("made by:"), count)
        self.assertLess(usage.ru_maxrss, 500_000, "KiB")
        (use,) = self.used(f"s{count - 3}.o")
        self.assertEqual([made["step"] for made in use["outputs"][0]["used"]], [f"s{count - 1}"])

    def test_why_and_used_follow_the_entries_of_a_folder_that_a_matrix_took(self):
        self.pipeline(growing_test.over_folder({"a.csv": "aa", "b.csv": "bb"}))
        self.run_pipe()
        taken = self.used("split.files")
        self.assertEqual({use["step"]: use["inputs"] for use in taken},
                         {f"{step}.file-{file}.csv": ["file"] for step in ("work", "after") for file in "ab"}, "`after` has the same matrix")
        (work,) = [use for use in taken if use["step"] == "work.file-a.csv"]
        (after,) = work["outputs"][0]["used"]
        self.assertEqual(after["step"], "after.file-a.csv")
        made = self.why("work.file-b.csv.made")
        self.assertEqual((made["inputs"]["file"]["step"], made["inputs"]["file"]["output"]), ("split", "files"))
        self.assertIn("input file: split.files", self.pipe("why", "work.file-b.csv.made").out)
        self.assertEqual(self.why("all.text")["inputs"]["parts"][0]["inputs"]["made"]["inputs"]["file"]["step"], "split")
        steps = {step["n"]: step for step in json.loads(self.pipe("report", "latest", "--output", "json").out)["steps"]}
        self.assertEqual(steps["work.file-a.csv"]["f"], [["file", "split.files"]])
        crate = self.folder / "crate"
        self.assertEqual(self.pipe("export", "latest", "--format", "ro-crate", "-o", crate).code, 0)
        entities = {entity["@id"]: entity for entity in json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]}
        (taker,) = [entity for entity in entities.values() if entity.get("@type") == "CreateAction" and "work.file-a.csv" in entity["name"]]
        self.assertIn("split", json.dumps(taker["object"]), taker)

    def test_why_and_used_follow_the_items_of_a_list_that_a_matrix_took(self):
        self.pipeline(growing_test.over_list(["x", "y"]))
        self.run_pipe()
        self.assertEqual({use["step"]: use["inputs"] for use in self.used("split.list")}, {"work.item-x": ["item"], "work.item-y": ["item"]})
        self.assertEqual(self.why("work.item-x.made")["inputs"]["item"]["step"], "split")

    def test_records_are_removed_with_the_runs_that_made_them(self):
        self.pipeline(growing_test.over_folder({"a.csv": "aa", "b.csv": "bb"}))
        self.run_pipe()
        self.assertEqual(self.kept(), 5, "a record for each of two steps and two files, and one for the gathered folder")
        self.pipeline(growing_test.over_folder({"c.csv": "cc"}))
        self.run_pipe()
        self.assertEqual(self.kept(), 8)
        self.assertEqual(self.pipe("clean", "--keep", "1").code, 0)
        self.assertEqual(self.kept(), 3)
        self.assertEqual([use["step"] for use in self.used("split.files")], ["work.file-c.csv", "after.file-c.csv"])
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assertEqual(self.kept(), 0)


if __name__ == "__main__":
    unittest.main()
