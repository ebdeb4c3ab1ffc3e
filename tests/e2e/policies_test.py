"""What a step may do without, how often and beside whom it runs, what it takes per instance, and where its results go. As processes and in containers."""

import json
import os
import signal
import time
import unittest

from support import PipeTest


def fails_for(n: str, then: str = "exit 1") -> str:
    return f"if [ ${{params.n}} = {n} ]; then {then}; fi; echo model ${{params.n}} > ${{outputs.model}}"


class Locally(PipeTest):
    orchestrator = "local"

    def attempts(self, step: str) -> int:
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        return next(len(each["attempts"]) for each in shown["steps"] if each["step"] == step)

    def test_failures_are_retried_by_their_kind(self):
        def flaky(ends: str) -> dict:
            return {"command": f"[ $PIPE_ATTEMPT = 3 ] && exit 0; {ends}", "retry": {"on": ["exit 75", "signal 9", "CUDA error", "timeout"], "max_retries": 2}}

        self.pipeline({
            "exit": flaky("exit 75"),
            "killed": flaky("kill -9 $$"),
            "text": flaky("echo RuntimeError: CUDA error: unknown; exit 1"),
            "late": flaky("sleep 60") | {"timeout": "1s"},
            "other": flaky("exit 2"),
            "never": {"command": "exit 2", "retry": {"never": ["exit 2"], "max_retries": 5}},
        })
        steps = self.run_pipe(code=1).steps()
        self.assertEqual(steps, {"exit": "succeeded", "killed": "succeeded", "text": "succeeded", "late": "succeeded", "other": "failed", "never": "failed"})
        self.assertEqual({step: self.attempts(step) for step in steps}, {"exit": 3, "killed": 3, "text": 3, "late": 3, "other": 1, "never": 1})

    def test_what_succeeded_is_gathered(self):
        train = {"matrix": {"n": [1, 2, 3]}, "command": fails_for("2"), "outputs": ["model"], "allow_failure": True}
        best = {"command": "cat ${inputs.models}/*.json ${inputs.models}/?-* > ${outputs.list}", "outputs": ["list"],
                "inputs": {"models": {"from": "train[*].model", "missing": "allow"}}}
        self.pipeline({"train": train, "best": best})
        self.assertEqual(self.run_pipe().steps()["best"], "succeeded")
        made = self.artifact("best.list")
        index = json.loads(made[:made.index("]") + 1])
        self.assertEqual([(entry["parameters"]["n"], entry["file"] is None) for entry in index], [(1, False), (2, True), (3, False)])
        self.assertTrue(made.endswith("model 1\nmodel 3\n"), made)
        plan = self.plan()
        self.assertEqual((plan["train.n-2"]["action"], plan["best"]["action"]), ("run", "depends"), plan)
        again = self.run_pipe().steps()
        self.assertEqual((again["train.n-1"], again["train.n-2"], again["best"]), ("cached", "failed", "cached"), "what is missing is tried again")
        self.pipeline({"train": train | {"command": fails_for("0")}, "best": best | {"inputs": {"models": {"from": "train[*].model", "at_least": 3}}}})
        self.assertEqual(self.run_pipe().steps()["best"], "succeeded")

    def test_too_few_to_gather_fail_the_step(self):
        self.pipeline({
            "train": {"matrix": {"n": [1, 2, 3]}, "command": fails_for("2"), "outputs": ["model"], "allow_failure": True},
            "best": {"command": "true", "inputs": {"models": {"from": "train[*].model", "at_least": 3}}},
        })
        result = self.run_pipe(code=1)
        self.assertIn("only 2 of the 3 outputs of the input 'models' are there", result.failure("best")["message"])

    def test_instances_that_the_run_makes_may_fail_too(self):
        self.pipeline({
            "split": {"command": "echo '[1, 2, 3]' > ${outputs.list}", "outputs": {"list": "list.json"}},
            "train": {"matrix": {"n": "${split.list[*]}"}, "command": fails_for("2"), "outputs": ["model"], "allow_failure": True},
            "best": {"command": "ls ${inputs.models} > ${outputs.list}", "inputs": {"models": {"from": "train[*].model", "at_least": 2}}, "outputs": ["list"]},
            "after": {"command": "true", "after": ["train"]},
        })
        steps = self.run_pipe().steps()
        self.assertEqual((steps["best"], steps["after"]), ("succeeded", "succeeded"), steps)
        self.assertEqual(self.artifact("best.list"), "0-train.n-1\n2-train.n-3\nindex.json\n")

    def test_a_resumed_run_gathers_what_succeeded(self):
        gate = self.folder / "gate"
        self.pipeline({
            "train": {"matrix": {"n": [1, 2]}, "command": fails_for("2"), "outputs": ["model"], "allow_failure": True},
            "slow": {"command": "echo waits; while [ ! -e $GATE ]; do sleep 0.1; done", "environment": {"GATE": str(gate)}, "after": ["train"],
                     "settings": {"docker": {"volumes": [f"{self.folder}:{self.folder}"]}}},
            "best": {"command": "ls ${inputs.models} > ${outputs.list}", "inputs": {"models": {"from": "train[*].model", "missing": "allow"}}, "outputs": ["list"],
                     "after": ["slow"]},
        })
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        for line in process.stdout:
            if "waits" in line:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        gate.touch()
        resumed = self.pipe("resume", "latest", "--output", "json")
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.artifact("best.list"), "0-train.n-1\nindex.json\n")

    def test_a_result_is_reused_until_its_time_is_up(self):
        self.pipeline({"data": {"command": "date +%s%N > ${outputs.now}", "outputs": ["now"], "cache": {"max_age": "2s"}},
                       "daily": {"command": "true", "cache": {"until": "${params.day}"}}}, parameters={"day": "monday"})
        self.run_pipe()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        time.sleep(2)
        plan = self.plan("-p", "day=tuesday")
        self.assertEqual((plan["data"]["action"], plan["daily"]["action"]), ("run", "run"), plan)
        self.assertEqual(plan["data"]["changes"], ["its earlier result is older than `max_age: 2.0s`"])
        self.assertEqual(plan["daily"]["changes"], ["cache until: monday -> tuesday"])
        self.assertEqual(self.run_pipe().steps(), {"data": "succeeded", "daily": "cached"})

    def test_instances_and_runs_wait_for_one_another(self):
        count = "n=$(ls $ROOM | wc -l); mine=$ROOM/$PIPE_RUN_ID-$PIPE_STEP_NAME; touch $mine; sleep 0.3; rm $mine; [ $n -lt 2 ]"
        room = self.folder / "room"
        room.mkdir()
        settings = {"docker": {"volumes": [f"{room}:{room}"]}}
        self.write("profiles.yaml", json.dumps({"lab": {"limits": {"license": 2}}}))
        self.pipeline({"few": {"matrix": {"n": list(range(5))}, "command": f"echo ${{params.n}}; {count}", "max_parallel": 2,
                               "environment": {"ROOM": str(room)}, "settings": settings}})
        self.run_pipe("--jobs", "8")
        self.pipeline({"licensed": {"matrix": {"n": list(range(4))}, "command": f"echo ${{params.n}}; {count}", "uses": {"license": 1}, "cache": False,
                                    "environment": {"ROOM": str(room)}, "settings": settings}})
        runs = [self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--profile", "lab", "--jobs", "4", PIPE_GPU_LOCKS=str(self.folder / "locks"))
                for _ in range(2)]
        for process in runs:
            self.assertEqual(self.finish(process).code, 0)
        self.pipeline({"greedy": {"command": "true", "uses": {"license": 3}}})
        refused = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--profile", "lab")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("step 'greedy' uses 3 of the limit 'license', which is 2", refused.err)
        self.assertIn("no profile sets the limit 'license'", self.run_pipe().out)

    def test_a_profile_called_default_applies_where_none_is_named(self):
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "local"}}))
        self.pipeline({"one": {"command": "true"}})
        self.assertEqual(self.pipe("run", "pipeline.yaml").code, 0)
        runs = json.loads(self.pipe("runs", "--output", "json").out)["runs"]
        self.assertEqual(runs[0]["orchestrator"], "local", runs)
        without = self.pipe("run", "pipeline.yaml", "--profile", "", "--step", "one", "--no-cache", DOCKER_HOST="unix:///nowhere.sock")
        self.assertEqual(without.code, 3, without)

    def test_each_instance_reads_and_has_its_own(self):
        for sample in "ab":
            self.write(f"data/{sample}.txt", f"reads of {sample}\n")
        self.write("samples.csv", "sample,lane,memory\na,01,256MB\n\"b\",2,512MB\n")
        self.pipeline({"align": {"matrix": {"include": "samples.csv"}, "command": "cat ${inputs.reads} > ${outputs.bam}; echo lane ${params.lane} >> ${outputs.bam}",
                                 "inputs": {"reads": "./data/${params.sample}.txt"}, "outputs": {"bam": "x.bam"},
                                 "publish_to": "./results/${params.sample}", "settings": {"resources": {"memory": "${params.memory}"}}}})
        first = self.run_pipe().steps()
        self.assertEqual(set(first.values()), {"succeeded"})
        self.assertEqual((self.folder / "results/a/x.bam").read_text(), "reads of a\nlane 01\n")
        self.write("data/b.txt", "other reads\n")
        second = {name: status for name, status in self.run_pipe().steps().items()}
        self.assertEqual(sorted(second.values()), ["cached", "succeeded"], "the change of one sample reruns that sample")
        self.assertEqual((self.folder / "results/b/x.bam").read_text(), "other reads\nlane 2\n")
        (self.folder / "results/a/x.bam").unlink()
        self.run_pipe()
        self.assertEqual((self.folder / "results/a/x.bam").read_text(), "reads of a\nlane 01\n")
        self.write("samples.csv", "sample,lane,memory\na,01,256MB\nb,2,512MB\nc,3,1GB\n")
        refused = self.run_pipe(code=2)
        self.assertIn("the data './data/c.txt' does not exist", refused.err)


class InContainers(Locally):
    orchestrator = "docker"


if __name__ == "__main__":
    unittest.main()
