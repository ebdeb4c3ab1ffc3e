"""A training that keeps its progress in ${checkpoint}, and a test that kills it in several ways and compares its weights with those of an undisturbed one."""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import time

from support_cluster import kubectl, wait_until

ROUNDS = 60
SCALE = float(os.environ.get("CHAOS_SCALE") or "0.06")  # The share of 50 kills.

# Each round needs the state of the one before. The state is replaced by a rename, so a kill leaves the old or the new one.
TRAIN = """
import hashlib, json, os, sys, time
folder, rounds = os.environ["PIPE_CHECKPOINT"], int(sys.argv[2])
file = os.path.join(folder, "state")
state, done, lives = b"weights", 0, []
if os.path.exists(file):
    kept = json.load(open(file))
    state, done, lives = bytes.fromhex(kept["state"]), kept["done"], kept["lives"]
lives.append(done)
for i in range(done, rounds):
    for _ in range(200):
        state = hashlib.sha256(state + bytes([i])).digest()
    with open(file + ".new", "w") as out:
        json.dump({"state": state.hex(), "done": i + 1, "lives": lives}, out)
    os.rename(file + ".new", file)
    time.sleep(0.1)
open(sys.argv[1], "wb").write(state)
print("lives", json.dumps(lives), flush=True)
"""


def undisturbed() -> bytes:
    """Returns the weights that TRAIN has at its end if nothing interrupts it."""
    state = b"weights"
    for i in range(ROUNDS):
        for _ in range(200):
            state = hashlib.sha256(state + bytes([i])).digest()
    return state


class KilledTraining:
    """A mixin before ClusterTest. A class that uses it has checkpoints(), which returns the checkpoints that exist."""

    def training(self, **step):
        """Writes a pipeline that executes TRAIN. `step` has further keys of the step."""
        self.write("train.py", TRAIN)
        self.pipeline({"train": {"command": f"python3 train.py ${{outputs.model}} {ROUNDS}", "checkpoint": True, "outputs": ["model"],
                                 "environment": {"MARK": self.mark}, "retry": {"max_retries": 3, "delay": "0s"}, **step}},
                      {"parent_image": "python:3.11-slim-bookworm", "skip_build": True})

    def processes(self) -> list[int]:
        """Returns the ids of the training's processes. The test bed's pods are processes of this machine."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"MARK={self.mark}".encode() in (entry / "environ").read_bytes() and (entry / "cmdline").read_bytes().startswith(b"python3\0train.py"):
                    found.append(int(entry.name))
        return found

    def pods(self) -> list[str]:
        """Returns the running pods of this test's pipeline, as pod/NAME."""
        return kubectl("get", "pods", "-l", f"pipe.pipeline={self.mark}", "--field-selector", "status.phase=Running", "-o", "name").split()

    def kill(self, what: str, driver: subprocess.Popen):
        """Kills the `driver` (`pipe run`), the `step`, or the `pod`: gracefully, or with `pod at once` without a grace period."""
        if what == "driver":
            os.killpg(driver.pid, signal.SIGKILL)
        elif what == "step":
            for process in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        else:
            at_once = ["--grace-period=0", "--force"] if what == "pod at once" else []
            for pod in self.pods():
                kubectl("delete", pod, "--wait=false", *at_once, check=False)

    def model(self) -> bytes:
        """Returns the weights that the latest run has made."""
        target = self.folder / "model"
        target.unlink(missing_ok=True)
        copied = self.pipe("artifacts", "latest", "train.model", "--copy", target)
        self.assertEqual(copied.code, 0, copied)
        return target.read_bytes()

    def lives(self) -> list[int]:
        """Returns, for each start of the training that has succeeded, the round from which it continued."""
        shown = self.pipe("logs", "latest", "train").out
        return json.loads(shown.split("lives", 1)[1].splitlines()[0])

    def check_killed_training(self):
        """Kills step, driver or pod at random, one at a time, so that the next attempt continues from the checkpoint. Goes on until one has continued."""
        in_full = kills_wanted = max(3, round(50 * SCALE))
        chance = random.Random(int(os.environ.get("CHAOS_SEED", "16")))
        kills = {what: 0 for what in ("step", "driver", "pod", "pod at once")}
        continued, trainings, began = 0, 0, time.monotonic()
        self.training()
        while True:
            seen = set(self.processes())
            run = self.start("run", "pipeline.yaml", "--orchestrator", "kubernetes", "--no-cache", "--output", "json")
            while run.poll() is None and sum(kills.values()) < kills_wanted:
                if not (fresh := set(self.processes()) - seen):
                    time.sleep(0.1)
                    continue
                seen |= fresh
                with contextlib.suppress(subprocess.TimeoutExpired):
                    run.wait(chance.uniform(0, 4))
                what = chance.choice(list(kills))
                if run.poll() is None and self.processes():
                    self.kill(what, run)
                    kills[what] += 1
            result = self.finish(run, timeout=600)
            if result.code == 0:
                trainings += 1
                self.assertEqual(self.model(), undisturbed())
                continued += sum(done > 0 for done in self.lives())
                self.assertEqual(self.checkpoints(), [], "a step that has succeeded keeps nothing")
                if sum(kills.values()) >= kills_wanted:
                    if continued or kills_wanted == 2 * in_full:
                        break
                    kills_wanted += 1  # On a busy machine, all kills may have come before the training had written a checkpoint.
        self.assertGreater(continued, 0, "some start has continued from a checkpoint")
        print(f"killed {kills} in {time.monotonic() - began:.0f} s; {trainings} trainings came to the same weights, {continued} lives went on")
        wait_until(lambda: not self.jobs(), "the end of the Jobs")
