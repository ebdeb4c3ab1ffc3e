"""Graphs that grow: a matrix over a list or a folder that a step makes."""

import json
import os
import signal
import unittest

from support import PipeTest, wait_until

# Writes a file into a folder for each entry of a map.
SPLIT = "import json, os, sys\nfor name, text in json.loads(sys.argv[1]).items():\n    os.makedirs(sys.argv[2], exist_ok=True)\n    open(os.path.join(sys.argv[2], name), 'w').write(text)\n"
# Writes a line for each gathered file: the values of its instance and its content.
GATHER = """import json, os, sys
folder = sys.argv[1]
with open(sys.argv[2], 'w') as out:
    for entry in json.load(open(os.path.join(folder, 'index.json'))):
        out.write(f"{list(entry['parameters'].values())} {open(os.path.join(folder, entry['file'])).read()}\\n")
"""


def over_list(items, **more) -> dict:
    """Returns steps: `split` makes a list, `work` has an instance for each item, and `all` gathers their outputs. `more` has further keys of `work`."""
    return {
        "split": {"command": ["python3", "-c", "import sys; open(sys.argv[2], 'w').write(sys.argv[1])", json.dumps(items), "${outputs.list}"], "outputs": {"list": "list.json"}},
        "work": {"matrix": {"item": "${split.list[*]}"}, "command": ["python3", "-c", "import sys; open(sys.argv[2], 'w').write('made of ' + sys.argv[1])",
                                                                      "${params.item}", "${outputs.made}"], "outputs": {"made": "made.txt"}, **more},
        "all": {"command": ["python3", "gather.py", "${inputs.parts}", "${outputs.text}"], "inputs": {"parts": "work[*].made"}, "outputs": ["text"]},
    }


def over_folder(files) -> dict:
    """Returns steps: `split` makes a folder with these files, `work` and `after` have an instance for each file, and `all` gathers the outputs of `after`."""
    return {
        "split": {"command": ["python3", "split.py", json.dumps(files), "${outputs.files}"], "outputs": ["files"]},
        "work": {"matrix": {"file": "${split.files[*]}"}, "command": "cat ${inputs.file} > ${outputs.made}; echo of ${params.file} >> ${outputs.made}", "outputs": ["made"]},
        "after": {"matrix": "work", "command": "tr a-z A-Z < ${inputs.made} > ${outputs.made}", "inputs": {"made": "work[=].made"}, "outputs": ["made"]},
        "all": {"command": ["python3", "gather.py", "${inputs.parts}", "${outputs.text}"], "inputs": {"parts": "after[*].made"}, "outputs": ["text"]},
    }


class OnDocker(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("gather.py", GATHER)
        self.write("split.py", SPLIT)

    def test_a_list_makes_a_step_of_each_item(self):
        self.pipeline(over_list(["a", "b c", 3]))
        self.assertIn("s0 -->|each of list| s1", self.pipe("graph", "pipeline.yaml").out.replace('"', ""))
        before = self.plan()
        self.assertEqual({step: plan["action"] for step, plan in before.items()}, {"split": "run", "work": "unknown", "all": "run"})
        self.assertIn("a step for each item of split.list", before["work"]["changes"])
        first = self.run_pipe()
        steps = first.steps()
        self.assertEqual(set(steps.values()), {"succeeded"}, first)
        self.assertEqual(len(steps), 5, steps)
        self.assertEqual([(event["step"], event["instances"], event["steps"]) for event in first.events("step_expanded")], [("work", 3, 5)])
        results = [result["output"] for result in first.events("summary")[0]["results"]]
        self.assertEqual((len(results), results[0], results[1], results[-1]), (5, "split.list", "work.item-a.made", "all.text"), results)
        self.assertEqual(self.artifact("all.text"), "['a'] made of a\n['b c'] made of b c\n[3] made of 3\n")
        self.assertEqual(self.artifact("work[item=3].made"), "made of 3")
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        plan = self.plan()
        self.assertEqual((len(plan), {step["action"] for step in plan.values()}), (5, {"reuse"}))
        shown = self.pipe("show", "latest")
        self.assertEqual(shown.code, 0, shown)
        self.assertIn("work.item-a", shown.out)
        self.assert_nothing_left()

    def test_one_changed_item_runs_one_instance(self):
        self.pipeline(over_list(["a", "b", "c"]))
        self.run_pipe()
        self.pipeline(over_list(["new", "a", "c"]))
        ran = {step for step, status in self.run_pipe().steps().items() if status == "succeeded"}
        self.assertEqual(ran, {"split", "work.item-new", "all"})
        self.assertEqual(self.artifact("all.text"), "['new'] made of new\n['a'] made of a\n['c'] made of c\n")

    def test_a_folder_makes_a_step_of_each_entry_by_its_content(self):
        self.pipeline(over_folder({"a.txt": "one", "b.txt": "two"}))
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        self.assertEqual(self.artifact("all.text"), "['a.txt'] ONEOF A.TXT\n\n['b.txt'] TWOOF B.TXT\n\n")
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.pipeline(over_folder({"a.txt": "one", "b.txt": "changed"}))
        result = self.run_pipe()
        ran = {step for step, status in result.steps().items() if status == "succeeded"}
        self.assertEqual(ran, {"split", "work.file-b.txt", "after.file-b.txt", "all"}, result)
        self.assertEqual(self.artifact("all.text"), "['a.txt'] ONEOF A.TXT\n\n['b.txt'] CHANGEDOF B.TXT\n\n")

    def test_hostile_items_are_data(self):
        items = ["$(touch /tmp/pwned)", "; exit 1", "--help", "../../x", "'\"`", "ü"]
        self.pipeline(over_list(items, command="printf '%s' ${params.item} > ${outputs.made}"))
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        self.assertEqual(self.artifact("all.text"), "".join(f"{[item]} {item}\n" for item in items))
        self.assert_nothing_left()


class AsProcesses(OnDocker):
    orchestrator = "local"

    def test_an_empty_list_gathers_nothing(self):
        self.pipeline(over_list([]))
        self.assertEqual(self.run_pipe().steps(), {"split": "succeeded", "all": "succeeded"})
        self.assertEqual(self.artifact("all.text"), "")
        self.assertEqual(self.run_pipe().steps(), {"split": "cached", "all": "cached"})

    def test_fewer_items_than_a_gather_needs_fail_it(self):
        for items, least, code in ((["a", "b"], 3, 1), ([], 1, 1), (["a", "b"], 2, 0)):
            with self.subTest(items=items, least=least):
                steps = over_list(items)
                steps["all"]["inputs"] = {"parts": {"from": "work[*].made", "at_least": least}}
                self.pipeline(steps)
                self.assertNotIn("at_least", json.dumps(self.plan()["all"]))
                ended = self.run_pipe(code=code)
                self.assertEqual(ended.steps()["all"], "failed" if code else "succeeded", ended)
                if code:
                    self.assertIn(f"`at_least` is {least}", ended.failure("all")["message"])

    def test_the_list_of_a_matrix_is_taken_and_no_result_of_a_large_run(self):
        self.pipeline(over_list(list(range(13))))
        results = self.run_pipe().events("summary")[0]["results"]
        self.assertEqual([result["output"] for result in results], ["all.text"])

    def test_wrong_items_fail_the_step_and_say_why(self):
        for items, said in (({"a": 1}, "split.list is not a list, but {\"a\":1}"), (["a", "b", "a"], "item 2 of split.list is \"a\", as item 0 is"),
                            ([None], "item 0 of split.list is null"), (["a\nb\x1b"], "item 0 of split.list has control characters"),
                            (list(range(100_001)), "split.list has 100001 items, and a matrix makes at most 100000")):
            steps = over_list([])
            steps["split"]["command"] = ["python3", "split_list.py", "${outputs.list}"]
            self.write("split_list.py", f"import json, sys\nopen(sys.argv[1], 'w').write({json.dumps(json.dumps(items))})\n")
            self.pipeline(steps)
            result = self.run_pipe(code=1)
            self.assertEqual(result.steps(), {"split": "succeeded", "work": "failed", "all": "skipped"}, result)
            self.assertIn(said, result.failure("work")["message"])

    def test_a_failing_instance_leaves_the_others_and_skips_the_gathering(self):
        self.pipeline(over_list(["a", "b", "c"], command="test ${params.item} != b && echo x > ${outputs.made}"))
        ended = self.run_pipe(code=1)
        self.assertEqual(ended.steps(), {"split": "succeeded", "work.item-a": "succeeded", "work.item-b": "failed", "work.item-c": "succeeded", "all": "skipped"})
        self.assertIn("needs 'work.item-b', which failed", ended.events("step_finished")[-1]["reason"])

    def test_a_condition_can_name_the_item(self):
        self.pipeline({**over_list([1, 2, 3], when="${params.item} > 1"), "all": {"command": "echo done", "run_on": "always", "after": ["work"]}})
        self.assertEqual(self.run_pipe().steps(), {"split": "succeeded", "work.item-1": "skipped", "work.item-2": "succeeded", "work.item-3": "succeeded", "all": "succeeded"})

    def test_matrices_in_a_row_grow_in_turn(self):
        steps = over_list(["a", "b"])
        steps["second"] = {"command": "cat ${inputs.text}; echo '[1, 2]' > ${outputs.list}", "inputs": {"text": "all.text"}, "outputs": ["list"]}
        steps["again"] = {"matrix": {"n": "${second.list[*]}", "k": ["x", "y"]}, "command": "echo ${params.n}${params.k} > ${outputs.o}", "outputs": ["o"]}
        steps["end"] = {"command": "cat ${inputs.os}/*-again* > ${outputs.all}", "inputs": {"os": "again[*].o"}, "outputs": ["all"]}
        self.pipeline(steps)
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        self.assertEqual(self.artifact("end.all"), "1x\n1y\n2x\n2y\n")
        self.assertEqual({plan["action"] for plan in self.plan().values()}, {"reuse"})
        self.assertEqual(set(self.run_pipe("--force", "again").steps().values()), {"cached", "succeeded"})

    def test_a_run_that_is_killed_in_the_expansion_is_continued(self):
        self.pipeline(over_list(list(range(40)), command="sleep 0.2; printf %s ${params.item} > ${outputs.made}"))
        for words in (("run", "pipeline.yaml", "--orchestrator", "local"), ("resume", "latest"), ("resume", "latest")):
            process = self.start(*words)
            wait_until(lambda: process.poll() is not None or "succeeded" in self.pipe("show", "latest").out, "a first success")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        result = self.pipe("resume", "latest", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(len(self.artifact("all.text").splitlines()), 40)
        again = self.run_pipe()
        self.assertEqual((len(again.steps()), set(again.steps().values())), (42, {"cached"}))

    def test_many_items_are_shown_as_one_line(self):
        self.pipeline(over_list(list(range(60)), command="echo ${params.item} > ${outputs.made}"))
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("[work] is 60 steps now", result.out)
        self.assertIn("[work] 60/60", result.out)
        self.assertLess(len(result.out.splitlines()), 40, result)
        plan = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local")
        self.assertIn("work[*] (60 of 60)", plan.out)


if __name__ == "__main__":
    unittest.main()
