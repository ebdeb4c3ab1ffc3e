"""GPUs of this machine for steps of the local orchestrator: runs reserve them in a fair order, steps see theirs in variables, and attempts record them. The
GPUs are those of a stand-in for libnvidia-ml; the locks, the processes and the kills are real."""

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
MAX_OVERTAKES = 4  # max_overtakes in src/gpu/queue.hpp

# Takes a lock for each GPU that the step sees. Only one process can have such a lock, and the kernel frees it in any way that the process may end,
# so a step that waits in vain for the lock shares the GPU with another step. flock then ends with 1; another code means that the test has killed the process that was to become flock.
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
    """Returns the ids of all processes below this one. Steps are children of the process that reaps them, which is a child of the driver."""
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
        """Writes a pipeline whose steps do not run the preflight, because the stand-in has no nvidia-smi. The preflight has tests of its own."""
        for step in steps.values():
            if resources := step.get("settings", {}).get("resources"):
                resources["preflight"] = "off"
        return super().pipeline(steps, docker_settings, **top)

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_NVML": STAND_IN, "PIPE_GPU_LOCKS": str(self.locks), **env})

    def step(self, gpus: int | None, seconds: float = 0.05, **more) -> dict:
        """Returns a step that asks for this number of GPUs, and records in self.record when it begins and ends, and with which GPUs."""
        step = {"command": ["bash", "step.sh", str(seconds)], "code": ["step.sh"], "environment": {"PROBES": str(self.probes), "RECORD": str(self.record)}}
        if gpus:
            step["settings"] = {"resources": {"gpu_count": gpus, "preflight": "off"}}
        return {**step, **more}

    def gpus(self) -> dict:
        """Returns what `pipe gpus` lists: the GPUs with their holders, and the queue of steps that wait for GPUs."""
        result = self.pipe("gpus", "--output", "json")
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def hold(self, index: int):
        """Locks a GPU as another driver would. Closing the returned file frees the GPU."""
        self.locks.mkdir(exist_ok=True)
        self.locks.chmod(0o1777)
        file = open(self.locks / UUIDS[index], "a")
        fcntl.flock(file, fcntl.LOCK_EX)
        self.addCleanup(file.close)
        return file

    def lines(self) -> list[list[str]]:
        """Returns the words of each line that the steps have recorded."""
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

    def test_a_run_does_not_see_gpus_that_cuda_would_not_see(self):
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

    def run_nested(self, outer: dict, inner: dict, **env) -> Result:
        """Runs a step whose command is another `pipe run`, with a state of its own."""
        self.write("inner.yaml", json.dumps({"name": "inner", "steps": {"inner": {"command": f"echo $CUDA_VISIBLE_DEVICES >> {self.folder}/inner", "cache": False, **inner}}}))
        command = f"cd {self.folder} && {PIPE} run inner.yaml --orchestrator local --state {self.folder}/inner-state"
        # With a volume of `/`, the step may read all files, which the inner run needs.
        self.pipeline({"outer": {"command": command, "cache": False, **outer}}, {"volumes": ["/:/host"]})
        return self.run_pipe(code=None, **env)

    def test_a_run_within_a_step_has_that_steps_gpus_and_does_not_wait_for_them(self):
        resources = lambda **keys: {"settings": {"resources": {"preflight": "off", **keys}}}  # noqa: E731
        result = self.run_nested(resources(devices=[1, 3]), resources(gpu_count=2))
        self.assertEqual(result.code, 0, result)
        self.assertEqual((self.folder / "inner").read_text(), f"{UUIDS[1]},{UUIDS[3]}\n")
        self.assertEqual({gpu["held_by"] for gpu in self.gpus()["gpus"]}, {None})
        result = self.run_nested(resources(devices=[1, 3]), resources(gpu_count=3))
        self.assertEqual(result.code, 1, result)
        log = self.pipe("logs", "latest", "outer").out
        self.assertIn("asks for 3 GPUs, and this machine has 2", log)
        self.assertIn("this run was started by the step 'outer', and can use only the GPUs of that step", log)

    def test_the_error_of_a_run_within_a_step_without_gpus_names_the_step(self):
        result = self.run_nested({}, {"settings": {"resources": {"gpu_count": 1}}})
        self.assertEqual(result.code, 1, result)
        log = self.pipe("logs", "latest", "outer").out
        self.assertIn("CUDA_VISIBLE_DEVICES is empty, which hides all of this machine's 4 GPUs; this run was started by the step 'outer', and can use only the GPUs of that step", log)

    def test_a_run_initialises_the_drivers_library_once(self):
        self.pipeline({f"s{i}": self.step(2) for i in range(3)})
        self.run_pipe(PIPE_NVML_STAND_IN_LOG=str(self.folder / "inits"))
        self.assertEqual((self.folder / "inits").read_text(), "nvmlInit\n")
        self.pipeline({"cpu": {"command": "true"}})
        self.run_pipe(PIPE_NVML_STAND_IN_LOG=str(self.folder / "none"))
        self.assertFalse((self.folder / "none").exists(), "a run without GPUs has no use of it")

    def task(self, **after) -> pathlib.Path:
        """Writes an ECS task with the containers `serve` and `train`. `after` names the containers that have to end before one starts."""
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
        plan = self.pipe("plan", "task.json", "--orchestrator", "local")
        self.assertIn("warning: the containers 'serve' and 'train' run at the same time and ask for 5 GPUs together, and this machine has 4", plan.err)
        smi = self.write("bin/nvidia-smi", "#!/bin/sh\n" + "".join(f"echo 'GPU {i}: stand-in (UUID: {uuid})'\n" for i, uuid in enumerate(UUIDS)))
        smi.chmod(0o755)
        path = {"PATH": f"{smi.parent}:{os.environ['PATH']}"}
        one = self.pipe("run", self.task(), "--orchestrator", "local", "--step", "train", **path)
        self.assertEqual(one.code, 0, one)
        after = self.pipe("run", self.task(train=["serve"]), "--orchestrator", "local", **path)
        self.assertEqual(after.code, 0, after)
        self.assertTrue((self.folder / "serve").exists())
        self.assertNotIn("together", self.pipe("plan", "task.json", "--orchestrator", "local").err)

    def test_more_gpus_than_the_machine_has_are_an_error_before_anything_runs(self):
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

    def test_without_a_driver_the_run_and_the_list_say_so(self):
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

    def test_pipe_gpus_lists_the_holder_of_each_gpu(self):
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
    """Takes samples of the GPUs and of the queue while runs are going on. `idle` counts the seconds during which free GPUs were not given to waiting steps
    that could have had them, for each such GPU; `passed_over` has the steps at the head of the queue whose GPUs were given to others."""

    def __init__(self, test: GpuTest):
        super().__init__(daemon=True)
        self.test, self.is_sampling = test, True
        self.samples, self.idle, self.seconds, self.max_overtaken, self.passed_over = 0, 0.0, 0.0, 0, []

    def run(self):
        """Takes samples until the test sets is_sampling to False."""
        before = time.monotonic()
        entitled = None  # The first of the queue, if it could have had its GPUs at the last sample.
        while self.is_sampling:
            state = json.loads(subprocess.run([PIPE, "gpus", "--output", "json"], env=self.test.environment({}), stdout=subprocess.PIPE, check=True).stdout)
            now = time.monotonic()
            self.samples += 1
            self.seconds += now - before
            grants = self.possible_grants(state)
            self.idle += (now - before) * sum(grants.values())
            # If the first of the queue could have had its GPUs at the last sample, it has left the queue by now, or its GPUs are still free.
            first = state["queue"][0] if state["queue"] else None
            if first and entitled == self.key_of(first) and not first["waits_for_job_slot"] and entitled not in grants:
                self.passed_over.append((entitled, state["gpus"]))
            entitled = self.key_of(first) if first and self.key_of(first) in grants else None
            self.max_overtaken = max([self.max_overtaken, *(entry["overtaken"] for entry in state["queue"])])
            before = now

    @staticmethod
    def key_of(entry: dict) -> tuple[str, str]:
        """Returns run and step of an entry of the queue."""
        return entry["run"], entry["step"]

    def possible_grants(self, state: dict) -> dict[tuple[str, str], int]:
        """Returns which waiting steps could have free GPUs now, and how many. This is the rule of grants() in src/gpu/queue.cpp, written a second time."""
        free = {gpu["uuid"] for gpu in state["gpus"] if not gpu["held_by"]}
        grants = {}
        for entry in state["queue"]:
            usable = [uuid for uuid in entry["candidates"] if uuid in free]
            if entry["waits_for_job_slot"]:
                continue
            if len(usable) >= entry["count"]:
                grants[self.key_of(entry)] = entry["count"]
                free -= set(usable[: entry["count"]])
            elif entry["overtaken"] >= MAX_OVERTAKES:
                free -= set(usable)
        return grants


class ManyRuns(GpuTest):
    def pipelines(self, **step) -> list[pathlib.Path]:
        """Writes two pipelines. Each has 100 steps that can start at once, and want 1, 2 or 4 GPUs."""
        random.seed(7)
        files = []
        for name in ("one", "two"):
            wants = [1] * 50 + [2] * 32 + [4] * 18
            random.shuffle(wants)
            steps = {f"s{i:03}-{gpus}": self.step(gpus, random.choice((0.02, 0.05, 0.1)), **step) for i, gpus in enumerate(wants)}
            files.append(self.write(f"{name}.yaml", json.dumps({"name": name, "steps": steps})))
        return files

    def begin(self, file: pathlib.Path) -> subprocess.Popen:
        """Starts a run whose output goes to files. If it went to a pipe, a full pipe would make the driver wait for this test."""
        with open(file.with_suffix(".out"), "w") as out, open(file.with_suffix(".err"), "w") as err:
            process = subprocess.Popen([PIPE, "run", file, "--orchestrator", "local", "--output", "json", "--jobs", "16"], cwd=self.folder, stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
                                       env=self.environment({"PIPE_HOME": str(self.folder / file.stem)}))
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def result(self, file: pathlib.Path, process: subprocess.Popen) -> Result:
        """Waits for the end of a run that begin() has started."""
        return Result(process.wait(600), file.with_suffix(".out").read_text(), file.with_suffix(".err").read_text())

    def assert_none_was_held_twice(self):
        """Returns the intervals in which each GPU was held. Fails if two steps held a GPU at the same time."""
        self.assertEqual([line for line in self.lines() if line[0] == "twice"], [])
        # The steps have recorded when they began and ended: the intervals of a GPU must not overlap.
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
        sampler.is_sampling = False
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
        print(f"200 steps on 4 GPUs in {last - first:.1f} s: {busy:.0%} of the GPU time in the steps' own sleep; in {sampler.samples} samples, "
              f"{share:.1%} of it was left idle although a waiting step could have had it; overtaken at most {sampler.max_overtaken} times")
        self.assertGreater(sampler.samples, 20)
        self.assertLessEqual(sampler.max_overtaken, MAX_OVERTAKES)
        self.assertEqual(sampler.passed_over, [], "GPUs of the first step in the queue were given to another")
        self.assertLess(share, 0.5, "GPUs idle although a step waits that could have them")
        # Neither run had to wait until the other had ended.
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
                    with contextlib.suppress(OSError):  # The process has just ended.
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
