"""Policies of steps: allowed failures, retries, limits, ages of results, answers, and published and temporary outputs. As processes and in containers."""

import json
import os
import shutil
import signal
import time
import unittest

from support import PipeTest, wait_until


def fails_for(n: str, then: str = "exit 1") -> str:
    """Returns a command that fails in the instance `n`, or executes `then` there, and writes a model in the others."""
    return f"if [ ${{params.n}} = {n} ]; then {then}; fi; echo model ${{params.n}} > ${{outputs.model}}"


class Locally(PipeTest):
    orchestrator = "local"

    def attempts(self, step: str) -> int:
        """Returns the number of attempts of a step of the latest run."""
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        return next(len(each["attempts"]) for each in shown["steps"] if each["step"] == step)

    def test_failures_are_retried_by_their_kind(self):
        def flaky(ends: str) -> dict:
            return {"command": f"[ $PIPE_ATTEMPT = 3 ] && exit 0; {ends}", "retry": {"on": ["exit 75", "signal 9", "CUDA error", "timeout"], "max_retries": 2}}

        self.pipeline({
            "exit": flaky("exit 75"),
            "killed": flaky("kill -9 $$"),
            "text": flaky("echo RuntimeError: CUDA error: unknown; exit 1"),
            "late": flaky("sleep 600") | {"timeout": "2s"},
            "other": flaky("exit 2"),
            "never": {"command": "exit 2", "retry": {"never": ["exit 2"], "max_retries": 5}},
        })
        steps = self.run_pipe(code=1).steps()
        self.assertEqual(steps, {"exit": "succeeded", "killed": "succeeded", "text": "succeeded", "late": "succeeded", "other": "failed", "never": "failed"})
        self.assertEqual({step: self.attempts(step) for step in steps}, {"exit": 3, "killed": 3, "text": 3, "late": 3, "other": 1, "never": 1})

    def test_outputs_of_instances_that_succeeded_are_gathered_if_others_may_fail(self):
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
        self.assertEqual((again["train.n-1"], again["train.n-2"], again["best"]), ("cached", "failed", "cached"), "a missing output is tried again")
        self.pipeline({"train": train | {"command": fails_for("0")}, "best": best | {"inputs": {"models": {"from": "train[*].model", "at_least": 3}}}})
        self.assertEqual(self.run_pipe().steps()["best"], "succeeded")

    def test_too_few_outputs_to_gather_fail_the_step(self):
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

    def test_a_resumed_run_follows_all_policies_of_its_steps(self):
        gate = self.folder / "gate"
        self.write("profiles.yaml", json.dumps({"lab": {"limits": {"license": 1}}}))
        self.pipeline({
            "train": {"matrix": {"n": [1, 2]}, "command": "seq 9 > ${outputs.raw}; " + fails_for("2", "exit 75"), "outputs": {"model": "model", "raw": {"file": "raw", "temp": True}},
                      "allow_failure": True, "retry": {"on": ["exit 75"], "max_retries": 1}, "cache": {"max_age": "1ms"}, "max_parallel": 1, "uses": {"license": 1},
                      "publish_to": "./results/${params.n}", "settings": {"resources": {"memory": "${params.size}"}}},
            "slow": {"command": "echo waits; while [ ! -e $GATE ]; do sleep 0.1; done", "environment": {"GATE": str(gate)}, "after": ["train"],
                     "settings": {"docker": {"volumes": [f"{self.folder}:{self.folder}"]}}},
            "best": {"command": "wc -l < ${inputs.raw}; ls ${inputs.models} > ${outputs.list}", "outputs": ["list"], "after": ["slow"],
                     "inputs": {"models": {"from": "train[*].model", "missing": "allow"}, "raw": "train[n=1].raw"}},
        }, parameters={"size": "256MB"})
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--profile", "lab", "--output", "json", PIPE_GPU_LOCKS=str(self.folder / "locks"))
        for line in process.stdout:
            if "waits" in line:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        gate.touch()
        (self.folder / "results/1/model").unlink()
        resumed = self.pipe("resume", "latest", "--output", "json", PIPE_GPU_LOCKS=str(self.folder / "locks"))
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.artifact("best.list"), "0-train.n-1\nindex.json\n")
        self.assertEqual((self.attempts("train.n-1"), self.attempts("train.n-2")), (1, 3), "a failed step is tried again; a result of the run itself is not too old for it")
        self.assertEqual((self.folder / "results/1/model").read_text(), "model 1\n")
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)

    def test_a_result_is_reused_until_its_time_is_up(self):
        def write(max_age: str):
            self.pipeline({"data": {"command": "date +%s%N > ${outputs.now}", "outputs": ["now"], "cache": {"max_age": max_age}},
                           "daily": {"command": "true", "cache": {"until": "${params.day}"}}}, parameters={"day": "monday"})

        write("1h")
        self.run_pipe()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        write("2s")
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

    def test_equal_steps_of_two_runs_run_once(self):
        room = self.folder / "room"
        room.mkdir()
        room.chmod(0o777)
        self.pipeline({"slow": {"command": "echo $PIPE_RUN_ID >> $ROOM/begun; while [ ! -e $ROOM/gate ]; do sleep 0.1; done; [ ! -e $ROOM/fail ]; echo made > ${outputs.o}",
                                "outputs": ["o"], "environment": {"ROOM": str(room)}, "settings": {"docker": {"volumes": [f"{room}:{room}"]}}}})

        def two_runs(first_ends: int, second_ends: int) -> dict:
            (room / "begun").unlink(missing_ok=True)
            words = ("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
            first = self.start(*words)
            wait_until((room / "begun").exists, "a first step")
            wait_until(lambda: (room / "begun").read_text().endswith("\n"), "its run's name")
            self.assertEqual(self.plan()["slow"]["changes"], [f"runs in run {(room / 'begun').read_text().strip()}, which is in progress"])
            second = self.start(*words)
            for line in second.stdout:
                if (event := json.loads(line))["event"] == "step_waits":
                    break
            self.assertRegex(event["reason"], "^step 'slow' of run .*, which makes the same result$")
            (room / "gate").touch()
            self.assertEqual(self.finish(first).code, first_ends)
            rest = self.finish(second)
            self.assertEqual(rest.code, second_ends, rest)
            return rest.steps()

        self.assertEqual(two_runs(0, 0), {"slow": "cached"})
        self.assertEqual(len((room / "begun").read_text().splitlines()), 1)
        (room / "gate").unlink()
        (room / "fail").touch()
        self.pipe("clean", "--runs", "--keep", "0")
        self.assertEqual(two_runs(1, 1), {"slow": "failed"}, "after the other step's failure, the waiting step runs itself")
        self.assertEqual(len((room / "begun").read_text().splitlines()), 2)

    def test_a_step_waits_for_a_persons_answer(self):
        self.pipeline({"build": {"command": "true"},
                       "deploy": {"wait": "Deploy ${params.model}?", "command": "echo out > ${outputs.o}", "outputs": ["o"], "after": ["build"]},
                       "beside": {"command": "echo $PIPE_RUN_ID", "after": ["build"]}}, parameters={"model": "m1"})
        plan = self.plan()
        self.assertEqual(plan["deploy"]["notes"], ["waits for an answer: Deploy m1?"])

        def asked(process) -> list[str]:
            ended = []
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "step_finished":
                    ended.append(event["step"])
                if event["event"] == "step_waits":
                    self.assertEqual(event["reason"], "an answer: Deploy m1?")
                    return ended
            return self.fail("it has not asked")

        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--jobs", "1", "--output", "json")
        asked(process)
        self.assertIn("has not asked about a step 'beside'", self.pipe("answer", "latest", "beside", "yes").err)
        questions = json.loads(self.pipe("answer", "latest", "--output", "json").out)["questions"]
        self.assertEqual([(each["step"], each["question"]) for each in questions], [("deploy", "Deploy m1?")])
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start("resume", "latest", "--output", "json")
        asked(resumed)
        self.assertEqual(self.pipe("answer", "latest", "deploy", "yes", "--note", "looks right").code, 0)
        done = self.finish(resumed)
        self.assertEqual((done.code, done.steps().get("deploy")), (0, "succeeded"), done)
        shown = self.pipe("show", "latest", "deploy").out
        self.assertRegex(shown, "answer: +yes by .+@.+ at .+: looks right")
        again = self.pipe("answer", "latest", "deploy", "no")
        self.assertEqual(again.code, 2, again)
        second = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        asked(second)
        self.assertEqual(self.pipe("answer", "latest", "deploy", "no").code, 0)
        rejected = self.finish(second)
        self.assertEqual((rejected.code, rejected.steps()["deploy"]), (1, "failed"), rejected)
        self.assertIn("was rejected by", rejected.failure("deploy")["message"])
        third = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        asked(third)
        os.kill(third.pid, signal.SIGTERM)
        self.assertEqual(self.finish(third).code, 130)
        self.pipeline({"deploy": {"wait": ["Deploy?"], "command": "true"}})
        self.assertEqual(self.pipe("validate", "pipeline.yaml").code, 2)

    def test_an_instance_is_answered_by_its_values(self):
        self.pipeline({"deploy": {"matrix": {"to": ["a", "b c"]}, "wait": "Deploy ${params.to}?", "command": "true"}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        wait_until(lambda: len(json.loads(self.pipe("answer", "latest", "--output", "json").out or "{}").get("questions", [])) == 2, "the questions")
        self.assertIn("'deploy' is 2 steps", self.pipe("answer", "latest", "deploy", "yes").err)
        for name in ("deploy[to=b c]", "deploy[0]"):
            answered = self.pipe("answer", "latest", name, "yes")
            self.assertEqual(answered.code, 0, answered)
        self.assertEqual(self.finish(process).code, 0)

    def test_a_profile_called_default_applies_where_none_is_named(self):
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "local"}}))
        self.pipeline({"one": {"command": "true"}})
        self.assertEqual(self.pipe("run", "pipeline.yaml").code, 0)
        runs = json.loads(self.pipe("runs", "--output", "json").out)["runs"]
        self.assertEqual(runs[0]["orchestrator"], "local", runs)
        without = self.pipe("run", "pipeline.yaml", "--profile", "", "--step", "one", "--no-cache", DOCKER_HOST="unix:///nowhere.sock")
        self.assertEqual(without.code, 3, without)

    def test_each_instance_reads_its_own_input_and_has_its_own_folder_of_results(self):
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
        for table, said in (("sample,sample\na,b\n", "two columns of 'samples.csv' have the name 'sample'"),
                            ("sample;lane\na;1\n", "the table 'samples.csv' has one column, 'sample;lane'")):
            self.write("samples.csv", table)
            self.assertIn(said, self.run_pipe(code=2).err)

    def test_a_run_whose_outputs_could_not_be_copied_says_so_at_its_end(self):
        (self.folder / "results/x").mkdir(parents=True)
        self.pipeline({"make": {"command": "echo 1 > ${outputs.x}", "outputs": ["x"], "publish_to": "./results"}})
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator)
        self.assertEqual(result.code, 3, result)
        self.assertIn("is not a copy of an output", result.text)
        self.assertIn("Not all outputs were copied to their `publish_to`", result.text)

    def test_a_copy_of_a_folder_whose_record_is_lost_is_known_by_its_content(self):
        self.pipeline({"make": {"command": "mkdir ${outputs.x}; echo 1 > ${outputs.x}/file", "outputs": ["x"], "publish_to": "./results"}})
        self.run_pipe()
        shutil.rmtree(self.state)  # A driver that is killed before it records the copy leaves the same.
        self.run_pipe()
        (self.folder / "results/x/file").write_text("2\n")
        shutil.rmtree(self.state)
        refused = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator)
        self.assertEqual(refused.code, 3, refused)
        self.assertEqual((self.folder / "results/x/file").read_text(), "2\n")

    def test_temporary_outputs_are_removed_when_no_step_needs_them(self):
        steps = {
            "align": {"command": "seq 1000 > ${outputs.bam}; echo few > ${outputs.stats}", "outputs": {"bam": {"file": "x.bam", "temp": True}, "stats": "stats.txt"}},
            "sort": {"command": "sort -rn ${inputs.bam} > ${outputs.sorted}", "inputs": {"bam": "align.bam"}, "outputs": ["sorted"]},
            "index": {"command": "wc -l < ${inputs.bam} > ${outputs.lines}", "inputs": {"bam": "align.bam"}, "outputs": ["lines"]},
        }
        self.pipeline(steps)
        self.run_pipe()
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)
        self.assertEqual(self.artifact("align.stats"), "few\n")
        refused = self.pipe("artifacts", "latest", "align.bam", "--copy", "x.bam")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("is temporary: it was removed when no step needed it any more", refused.err)
        self.assertEqual(self.pipe("verify").code, 0)
        self.assertIn("temporary", self.pipe("why", "sort.sorted").out)
        self.assertEqual(set(self.run_pipe("--jobs", "2").steps().values()), {"cached"})
        steps["index"]["command"] = "wc -c < ${inputs.bam} > ${outputs.lines}"
        self.pipeline(steps)
        plan = self.plan()
        self.assertEqual({name: step["action"] for name, step in plan.items()}, {"align": "run", "sort": "reuse", "index": "run"})
        self.assertEqual(plan["align"]["changes"], ["its temporary output 'bam' was removed, and 'index' needs it"])
        steps["index"]["command"] += "; exit 1"
        self.pipeline(steps)
        self.run_pipe(code=1)
        self.assertNotIn("temporary, removed", self.pipe("artifacts", "latest").out)
        steps["index"]["command"] = "wc -c < ${inputs.bam} > ${outputs.lines}"
        self.pipeline(steps)
        self.assertEqual(self.run_pipe().steps(), {"align": "cached", "sort": "cached", "index": "succeeded"})
        self.assertEqual(self.artifact("index.lines"), "3893\n")
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)
        steps["index"]["when"] = "${align.bam} == 1"
        self.pipeline(steps)
        refused = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("the output 'bam' of 'align' is `temp`, and decides about 'index' in later runs, too", refused.err)


class InContainers(Locally):
    orchestrator = "docker"


if __name__ == "__main__":
    unittest.main()
