"""GPUs of this machine as steps of the local orchestrator get them: reserved between runs, in a fair order, told and recorded. The GPUs are those of the
stand-in for libnvidia-ml; the locks, the processes and the kills are real."""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import unittest

from support import PIPE, PipeTest, Result, wait_until

STAND_IN = os.environ["NVML_STAND_IN"]
UUIDS = [f"GPU-00000000-0000-4000-8000-00000000000{i}" for i in range(4)]
PATIENCE = 4  # src/gpu/queue.hpp

# Holds a lock of its own for each GPU that it sees: the kernel's word that nobody else has it, however the one before ended.
# flock ends with 1 if it waited in vain; with another code if the test killed the shell that was about to become it.
STEP = """
n=20
for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
  n=$((n + 1)); eval "exec $n>>$PROBES/$gpu"; flock -w 5 $n; [ $? != 1 ] || echo "twice $gpu $PIPE_STEP_NAME" >> $RECORD
done
echo "begins $EPOCHREALTIME $PIPE_RUN_ID.$PIPE_STEP_NAME $CUDA_VISIBLE_DEVICES" >> $RECORD
sleep $1
echo "ends $EPOCHREALTIME $PIPE_RUN_ID.$PIPE_STEP_NAME $CUDA_VISIBLE_DEVICES" >> $RECORD
"""


def descendants(pid) -> list[str]:
    """The processes below this one: steps are children of the process that reaps them, which is the driver's child."""
    found: list[str] = []
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [child, *descendants(child)]
    return found


class GpuTest(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.locks = self.folder / "locks"
        self.probes = self.folder / "probes"
        self.probes.mkdir()
        self.record = self.folder / "record"
        self.write("step.sh", STEP)

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top) -> pathlib.Path:
        """Without the preflight, since the stand-in has no nvidia-smi; that has tests of its own."""
        for step in steps.values():
            if resources := step.get("settings", {}).get("resources"):
                resources["preflight"] = "off"
        return super().pipeline(steps, docker_settings, **top)

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_NVML": STAND_IN, "PIPE_GPU_LOCKS": str(self.locks), **env})

    def step(self, gpus: int | None, seconds: float = 0.05, **more) -> dict:
        step = {"command": ["bash", "step.sh", str(seconds)], "code": ["step.sh"], "environment": {"PROBES": str(self.probes), "RECORD": str(self.record)}}
        if gpus:
            step["settings"] = {"resources": {"gpu_count": gpus, "preflight": "off"}}
        return {**step, **more}

    def gpus(self) -> dict:
        result = self.pipe("gpus", "--output", "json")
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def hold(self, index: int):
        """Holds a GPU as another driver would."""
        self.locks.mkdir(exist_ok=True)
        self.locks.chmod(0o1777)
        file = open(self.locks / UUIDS[index], "a")
        fcntl.flock(file, fcntl.LOCK_EX)
        self.addCleanup(file.close)
        return file

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.record.read_text().splitlines()] if self.record.exists() else []


class OneRun(GpuTest):
    def test_a_step_sees_its_gpus_by_uuid_and_one_without_sees_none(self):
        show = 'echo "[$CUDA_VISIBLE_DEVICES] [$CUDA_DEVICE_ORDER] [$NVIDIA_VISIBLE_DEVICES]" > ${outputs.seen}'
        resources = lambda **keys: {"settings": {"resources": keys}}  # noqa: E731
        self.pipeline({
            "none": {"command": show, "outputs": ["seen"]},
            "two": {"command": show, "outputs": ["seen"], **resources(gpu_count=2)},
            "named": {"command": show, "outputs": ["seen"], **resources(devices=[3, 1])},
            "own": {"command": show, "outputs": ["seen"], "environment": {"CUDA_VISIBLE_DEVICES": "7"}},
            "numbers": {"command": show, "outputs": ["seen"], **resources(devices=[3, 1], gpu_ids="index")},
        })
        result = self.run_pipe("--jobs", "1")
        self.assertEqual(self.artifact("none.seen"), "[] [] [void]\n")
        two = ",".join(UUIDS[:2])
        self.assertEqual(self.artifact("two.seen"), f"[{two}] [PCI_BUS_ID] [{two}]\n")
        named = f"{UUIDS[1]},{UUIDS[3]}"
        self.assertEqual(self.artifact("named.seen"), f"[{named}] [PCI_BUS_ID] [{named}]\n")
        self.assertEqual(self.artifact("own.seen"), "[7] [] [void]\n")
        self.assertEqual(self.artifact("numbers.seen"), f"[1,3] [PCI_BUS_ID] [{named}]\n")
        started = {event["step"]: [gpu["index"] for gpu in event.get("gpus", [])] for event in result.events("step_started")}
        self.assertEqual(started, {"none": [], "two": [0, 1], "named": [1, 3], "own": [], "numbers": [1, 3]})
        shown = json.loads(self.pipe("show", "--output", "json").out)
        attempt = next(step for step in shown["steps"] if step["step"] == "named")["attempts"][0]
        self.assertEqual([gpu["uuid"] for gpu in attempt["gpus"]], [UUIDS[1], UUIDS[3]])
        self.assertIn(UUIDS[3], self.pipe("show").out)
        self.assertEqual({gpu["held_by"] for gpu in self.gpus()["gpus"]}, {None})

    def test_what_cuda_would_not_see_a_run_does_not_see(self):
        show = 'echo "$CUDA_VISIBLE_DEVICES" > ${outputs.seen}'
        resources = lambda **keys: {"command": show, "outputs": ["seen"], "settings": {"resources": keys}}  # noqa: E731
        self.pipeline({"first": resources(devices=1), "all": resources(accelerator="gpu")})
        self.run_pipe(CUDA_VISIBLE_DEVICES=f"3,{UUIDS[1]}")
        self.assertEqual(self.artifact("first.seen"), f"{UUIDS[1]}\n")
        self.assertEqual(self.artifact("all.seen"), f"{UUIDS[1]},{UUIDS[3]}\n")
        listed = self.pipe("gpus", CUDA_VISIBLE_DEVICES="1,3")
        self.assertIn("CUDA_VISIBLE_DEVICES=1,3 hides 2 of this machine's 4 GPUs", listed.out)
        self.assertNotIn(UUIDS[0], listed.out)
        self.pipeline({"hidden": resources(devices=[0])})
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local", CUDA_VISIBLE_DEVICES="1,3")
        self.assertEqual(result.code, 2, result)
        self.assertIn("step 'hidden' asks for GPU 0, which this machine does not have", result.text)
        self.assertIn("CUDA_VISIBLE_DEVICES=1,3 hides 2 of this machine's 4 GPUs", result.text)

    def nested(self, outer: dict, inner: dict, **env) -> Result:
        """A step that starts a run of its own, with a state of its own."""
        self.write("inner.yaml", json.dumps({"name": "inner", "steps": {"inner": {"command": f"echo $CUDA_VISIBLE_DEVICES >> {self.folder}/inner", "cache": False, **inner}}}))
        command = f"cd {self.folder} && {PIPE} run inner.yaml --orchestrator local --state {self.folder}/inner-state"
        self.pipeline({"outer": {"command": command, "cache": False, **outer}}, {"volumes": ["/:/host"]})
        return self.run_pipe(code=None, **env)

    def test_a_run_within_a_step_has_that_steps_gpus_and_waits_for_nobodys(self):
        resources = lambda **keys: {"settings": {"resources": {"preflight": "off", **keys}}}  # noqa: E731
        result = self.nested(resources(devices=[1, 3]), resources(gpu_count=2))
        self.assertEqual(result.code, 0, result)
        self.assertEqual((self.folder / "inner").read_text(), f"{UUIDS[1]},{UUIDS[3]}\n")
        self.assertEqual({gpu["held_by"] for gpu in self.gpus()["gpus"]}, {None})
        result = self.nested(resources(devices=[1, 3]), resources(gpu_count=3))
        self.assertEqual(result.code, 1, result)
        log = self.pipe("logs", "latest", "outer").out
        self.assertIn("asks for 3 GPUs, and this machine has 2", log)
        self.assertIn("this run was started by the step 'outer', and can use only the GPUs of that step", log)

    def test_a_run_within_a_step_without_gpus_is_told_that_it_has_none(self):
        result = self.nested({}, {"settings": {"resources": {"gpu_count": 1}}})
        self.assertEqual(result.code, 1, result)
        log = self.pipe("logs", "latest", "outer").out
        self.assertIn("CUDA_VISIBLE_DEVICES is empty, which hides all of this machine's 4 GPUs; this run was started by the step 'outer', and can use only the GPUs of that step", log)

    def test_the_drivers_library_is_taken_into_use_once_a_run(self):
        self.pipeline({f"s{i}": self.step(2) for i in range(3)})
        self.run_pipe(PIPE_NVML_STAND_IN_LOG=str(self.folder / "inits"))
        self.assertEqual((self.folder / "inits").read_text(), "nvmlInit\n")
        self.pipeline({"cpu": {"command": "true"}})
        self.run_pipe(PIPE_NVML_STAND_IN_LOG=str(self.folder / "none"))
        self.assertFalse((self.folder / "none").exists(), "a run without GPUs has no use of it")

    def task(self, **after) -> pathlib.Path:
        containers = [{"name": name, "image": "i", "entryPoint": ["touch", str(self.folder / name)], "memory": 64,
                       "resourceRequirements": [{"type": "GPU", "value": str(gpus)}],
                       "dependsOn": [{"containerName": other, "condition": "SUCCESS"} for other in after.get(name, [])]}
                      for name, gpus in (("serve", 3), ("train", 2))]
        return self.write("task.json", json.dumps({"family": "two", "containerDefinitions": containers}, indent=1))

    def test_the_containers_of_a_task_have_their_gpus_together_or_the_task_does_not_start(self):
        result = self.pipe("run", self.task(), "--orchestrator", "local")
        self.assertEqual(result.code, 2, result)
        self.assertIn("the containers 'serve' and 'train' run at the same time and ask for 5 GPUs together, and this machine has 4", result.text)
        self.assertRegex(result.text, r"task\.json:\d+:\d+")
        self.assertIn("'serve' asks for 3 GPUs", result.text)
        self.assertIn("`dependsOn` with the condition SUCCESS", result.text)
        self.assertFalse((self.folder / "serve").exists(), "nothing of it has run")
        smi = self.write("bin/nvidia-smi", "#!/bin/sh\n" + "".join(f"echo 'GPU {i}: stand-in (UUID: {uuid})'\n" for i, uuid in enumerate(UUIDS)))
        smi.chmod(0o755)
        path = {"PATH": f"{smi.parent}:{os.environ['PATH']}"}
        one = self.pipe("run", self.task(), "--orchestrator", "local", "--step", "train", **path)
        self.assertEqual(one.code, 0, one)
        after = self.pipe("run", self.task(train=["serve"]), "--orchestrator", "local", **path)
        self.assertEqual(after.code, 0, after)
        self.assertTrue((self.folder / "serve").exists())

    def test_what_the_machine_can_never_give_is_an_error_before_anything_runs(self):
        self.pipeline({
            "first": {"command": "touch " + str(self.folder / "ran")},
            "many": {"command": "true", "settings": {"resources": {"gpu_count": 5}}},
            "class": {"command": "true", "settings": {"resources": {"gpu_count": 1, "gpu_class": "H100"}}},
        })
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(result.code, 2, result)
        self.assertIn("step 'many' asks for 5 GPUs, and this machine has 4", result.text)
        self.assertIn("step 'class' asks for GPUs of class 'H100', and this machine has none", result.text)
        self.assertIn("this machine has GPU 0: Tesla V100-SXM2-16GB", result.text)
        self.assertFalse((self.folder / "ran").exists())

    def test_without_a_driver_it_says_so(self):
        self.pipeline({"train": self.step(1)})
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local", PIPE_NVML="/nowhere/libnvidia-ml.so.1")
        self.assertEqual(result.code, 3, result)
        self.assertIn("step 'train' asks for GPUs, and cannot load", result.text)
        listed = self.pipe("gpus", PIPE_NVML="/nowhere/libnvidia-ml.so.1")
        self.assertEqual(listed.code, 0, listed)
        self.assertIn("no GPU: cannot load", listed.out)

    def test_a_step_that_waits_leaves_its_job_slot_to_others_and_says_what_it_waits_for(self):
        held = self.hold(0)
        self.pipeline({
            "train": {"command": f"touch {self.folder}/trained", "settings": {"resources": {"devices": [0]}}},
            **{f"cpu{i}": {"command": f"touch {self.folder}/cpu{i}"} for i in range(3)},
        })
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json", "--jobs", "1")
        wait_until(lambda: all((self.folder / f"cpu{i}").exists() for i in range(3)), "the other steps")
        self.assertFalse((self.folder / "trained").exists())
        waiting = wait_until(lambda: self.gpus()["queue"], "the step in the queue")
        self.assertEqual([(entry["step"], entry["count"], entry["candidates"]) for entry in waiting], [("train", 1, [UUIDS[0]])])
        self.assertEqual(waiting[0]["pid"], process.pid)
        held.close()
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        self.assertIn("GPU 0 is held by", result.events("step_waits")[0]["reason"])
        self.assertEqual(self.gpus()["queue"], [])

    def test_steps_that_wait_say_behind_which_step_or_how_many(self):
        held = self.hold(0)
        self.pipeline({name: {"command": "true", "settings": {"resources": {"devices": [0]}}} for name in "abc"})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json", "--jobs", "3")
        queue = wait_until(lambda: len(found := self.gpus()["queue"]) == 3 and found, "three steps in the queue")
        first, second, third = (entry["step"] for entry in queue)
        held.close()
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        reasons = {step: event["reason"] for event in reversed(result.events("step_waits")) for step in [event["step"]]}
        self.assertTrue(reasons[first].startswith("1 GPU: GPU 0 is held by"), reasons)
        run = result.events("run_started")[0]["run"]
        self.assertTrue(reasons[second].startswith(f"1 GPU, behind step '{first}' of run {run} (pid {process.pid}"), reasons)
        self.assertEqual(reasons[third], "1 GPU, behind 2 other steps")

    def test_a_step_that_waits_can_be_cancelled(self):
        self.hold(2)
        self.pipeline({"train": self.step(4)})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        wait_until(lambda: self.gpus()["queue"], "the step in the queue")
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assertEqual(result.steps(), {"train": "cancelled"})
        self.assertEqual(self.gpus()["queue"], [])

    def test_auto_selection_waits_for_a_gpu_that_no_process_occupies(self):
        occupied = {"gpus": [{"uuid": uuid, "processes": [{"pid": os.getpid()}]} for uuid in UUIDS[:2]]}
        config = self.write("gpus.json", json.dumps(occupied))
        step = self.step(None)
        step["settings"] = {"resources": {"devices": 1, "auto_select_gpus": True}}
        self.pipeline({"train": step})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json", PIPE_NVML_STAND_IN=str(config))
        wait_until(lambda: self.gpus()["queue"], "the step in the queue")
        occupied["gpus"][1]["processes"] = []
        self.write("gpus.json.new", json.dumps(occupied)).rename(config)
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        self.assertIn(f"occupied by process {os.getpid()}", result.events("step_waits")[0]["reason"])
        self.assertEqual([gpu["index"] for gpu in result.events("step_started")[0]["gpus"]], [1])

    def test_who_holds_a_gpu_is_listed(self):
        self.pipeline({"train": self.step(2, 60)})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local")
        wait_until(lambda: self.gpus()["gpus"][1]["held_by"], "the step to hold its GPUs")
        holders = [gpu["held_by"] for gpu in self.gpus()["gpus"]]
        self.assertEqual([(one["step"], one["pid"], one["driver_died"]) for one in holders[:2]], [("train", process.pid, False)] * 2)
        self.assertEqual(holders[2:], [None, None])
        self.assertIn("train of run", self.pipe("gpus").out)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not any(gpu["held_by"] for gpu in self.gpus()["gpus"]), "the GPUs to be free again")


class Sampler(threading.Thread):
    """Looks again and again at the whole machine, and for how many GPU-seconds a GPU was free that a waiting step could have had."""

    def __init__(self, test: GpuTest):
        super().__init__(daemon=True)
        self.test, self.going_on = test, True
        self.samples, self.idle, self.seconds, self.most_overtaken, self.passed_over = 0, 0.0, 0.0, 0, []

    def run(self):
        before = time.monotonic()
        owed = None
        while self.going_on:
            state = json.loads(subprocess.run([PIPE, "gpus", "--output", "json"], env=self.test.environment({}), stdout=subprocess.PIPE, check=True).stdout)
            now = time.monotonic()
            self.samples += 1
            self.seconds += now - before
            given = self.could_be_given(state)
            self.idle += (now - before) * sum(given.values())
            # What the first in the line could have had a look ago is his now, or still free for him.
            first = state["queue"][0] if state["queue"] else None
            if first and owed == self.party(first) and not first["waits_for_job_slot"] and owed not in given:
                self.passed_over.append((owed, state["gpus"]))
            owed = self.party(first) if first and self.party(first) in given else None
            self.most_overtaken = max([self.most_overtaken, *(entry["overtaken"] for entry in state["queue"])])
            before = now

    @staticmethod
    def party(entry: dict) -> tuple[str, str]:
        return entry["run"], entry["step"]

    def could_be_given(self, state: dict) -> dict[tuple[str, str], int]:
        """The rule in other words: who of those that wait could have free GPUs, and how many."""
        free = {gpu["uuid"] for gpu in state["gpus"] if not gpu["held_by"]}
        given = {}
        for entry in state["queue"]:
            usable = [uuid for uuid in entry["candidates"] if uuid in free]
            if entry["waits_for_job_slot"]:
                continue
            if len(usable) >= entry["count"]:
                given[self.party(entry)] = entry["count"]
                free -= set(usable[: entry["count"]])
            elif entry["overtaken"] >= PATIENCE:
                free -= set(usable)
        return given


class ManyRuns(GpuTest):
    def pipelines(self, **step) -> list[pathlib.Path]:
        """Two of them with 100 steps each that want 1, 2 and 4 GPUs, ready from the beginning."""
        random.seed(7)
        files = []
        for name in ("one", "two"):
            wants = [1] * 50 + [2] * 32 + [4] * 18
            random.shuffle(wants)
            steps = {f"s{i:03}-{gpus}": self.step(gpus, random.choice((0.02, 0.05, 0.1)), **step) for i, gpus in enumerate(wants)}
            files.append(self.write(f"{name}.yaml", json.dumps({"name": name, "steps": steps})))
        return files

    def begin(self, file: pathlib.Path) -> subprocess.Popen:
        """Into files: a full pipe would make the driver wait for this test."""
        with open(file.with_suffix(".out"), "w") as out, open(file.with_suffix(".err"), "w") as err:
            process = subprocess.Popen([PIPE, "run", file, "--orchestrator", "local", "--output", "json", "--jobs", "16"], cwd=self.folder, stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                       env=self.environment({"PIPE_HOME": str(self.folder / file.stem)}))
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def result(self, file: pathlib.Path, process: subprocess.Popen) -> Result:
        return Result(process.wait(600), file.with_suffix(".out").read_text(), file.with_suffix(".err").read_text())

    def assert_none_was_held_twice(self):
        self.assertEqual([line for line in self.lines() if line[0] == "twice"], [])
        # And by the steps' own clocks: of each GPU, one interval after the other.
        begun, intervals = {}, {uuid: [] for uuid in UUIDS}
        for kind, moment, name, uuids in self.lines():
            if kind == "begins":
                begun[name] = float(moment)
            else:
                for uuid in uuids.split(","):
                    intervals[uuid].append((begun[name], float(moment), name))
        for uuid, held in intervals.items():
            held.sort()
            for before, after in zip(held, held[1:]):
                self.assertLessEqual(before[1], after[0], f"{uuid} was held twice: {before} and {after}")
        return intervals

    def test_two_runs_share_the_gpus_fairly(self):
        files = self.pipelines()
        sampler = Sampler(self)
        processes = [self.begin(file) for file in files]
        sampler.start()
        results = [self.result(file, process) for file, process in zip(files, processes)]
        sampler.going_on = False
        sampler.join()
        for result in results:
            self.assertEqual(result.code, 0, result)
            self.assertEqual(set(result.steps().values()), {"succeeded"})
        self.assertEqual(len([line for line in self.lines() if line[0] == "ends"]), 200)
        for kind, moment, name, uuids in self.lines():
            self.assertEqual(len(uuids.split(",")), int(name[-1]), name)
        intervals = self.assert_none_was_held_twice()
        first = min(held[0][0] for held in intervals.values())
        last = max(held[-1][1] for held in intervals.values())
        busy = sum(end - begin for held in intervals.values() for begin, end, _ in held) / 4 / (last - first)
        share = sampler.idle / 4 / sampler.seconds
        print(f"200 steps on 4 GPUs in {last - first:.1f} s: {busy:.0%} of the GPU time in the steps' own sleep; in {sampler.samples} looks, "
              f"{share:.1%} of it could have been somebody's; overtaken at most {sampler.most_overtaken} times")
        self.assertGreater(sampler.samples, 20)
        self.assertLessEqual(sampler.most_overtaken, PATIENCE)
        self.assertEqual(sampler.passed_over, [], "what one could have had was given to another")
        self.assertLess(share, 0.5, "GPUs idle although a step waits that could have them")
        # Fair between the runs: neither had to wait until the other was through.
        ends = {name: max(float(line[1]) for line in self.lines() if line[2].startswith(result.events("run_started")[0]["run"]))
                for name, result in zip(("one", "two"), results)}
        self.assertLess(abs(ends["one"] - ends["two"]), (last - first) / 2, ends)

    def test_killed_drivers_and_steps_leave_no_gpu_taken_and_none_is_held_twice(self):
        files = self.pipelines(retry={"max_retries": 50})
        chance = random.Random(11)
        kills = {"drivers": 0, "steps": 0}
        running = {file: self.begin(file) for file in files}
        rounds = 0
        while running:
            rounds += 1
            self.assertLess(rounds, 2000, "the runs do not come to an end")
            time.sleep(chance.uniform(0.05, 0.3))
            for file, process in list(running.items()):
                if process.poll() is not None:
                    result = self.result(file, process)
                    self.assertEqual(result.code, 0, result)
                    del running[file]
                elif kills["drivers"] < 8 and chance.random() < 0.2:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    kills["drivers"] += 1
                    running[file] = self.begin(file)
                elif kills["steps"] < 20:
                    with contextlib.suppress(OSError):  # it has just ended
                        steps = [pid for pid in descendants(process.pid) if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "bash"]
                        if steps:
                            os.kill(int(chance.choice(steps)), signal.SIGKILL)
                            kills["steps"] += 1
        self.assertGreater(min(kills.values()), 3, kills)
        self.assert_none_was_held_twice()
        state = self.gpus()
        self.assertEqual([gpu["held_by"] for gpu in state["gpus"]], [None] * 4)
        self.assertEqual(state["queue"], [])
        print(f"killed: {kills}")


if __name__ == "__main__":
    unittest.main()
