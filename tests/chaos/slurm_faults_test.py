"""What goes wrong on a Slurm cluster: drivers, controllers and nodes that are killed, folders that are full. No result is false, no success has two effects, nothing is left.

SLURM_BED names a bed of its own, which `scripts/testbed/slurm up` has made; the faults of accounting are those of a bed with `accounts`.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import unittest

from support_chaos import NOWHERE, SCALE, ChaosTest, Watched, figure, in_words, rounds, wait_until
from support_slurm import BED, CONF, OnSlurm, slurm

PARTS = 6


class SlurmFaults(OnSlurm, ChaosTest):
    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def bed(self, *words: str):
        subprocess.run([BED, *words], check=True)

    def controller_up(self):
        self.bed("controller", "up")
        wait_until(lambda: subprocess.run(["scontrol", "ping"], env=self.environment({}), stdout=subprocess.DEVNULL).returncode == 0, "the controller's start")

    def write_pipeline(self, pause: float = 0.3):
        """A step, an array that reads what it has made, and a step that reads all of the array. Each success is one line."""
        end = f"sleep {pause}; echo $TMPDIR >> {self.folder}/temporary; echo $SLURM_JOB_NAME >> {self.folder}/effects"
        parts = {"matrix": {"i": list(range(PARTS))}, "inputs": {"x": "a.x"}, "outputs": ["y"], "settings": {"resources": {"memory": "50MiB"}}}
        self.pipeline({
            "a": {"command": f"echo ${{params.n}} > ${{outputs.x}}; {end}", "parameters": {"n": 0}, "outputs": ["x"]},
            "part": {"command": f"echo ${{params.i}} of $(cat ${{inputs.x}}) > ${{outputs.y}}; {end}", **parts},
            "all": {"command": f"cat ${{inputs.parts}}/* > ${{outputs.z}}; {end}", "inputs": {"parts": "part[*].y"}, "outputs": ["z"]}})

    def begin(self, number: int) -> Watched:
        (self.folder / "effects").unlink(missing_ok=True)
        return Watched(self, "run", "pipeline.yaml", "-o", "slurm", "--output", "json", "-p", f"a.n={number}")

    def resume(self) -> Watched:
        return Watched(self, "resume", "latest", "--output", "json")

    def assert_one_effect_each(self, number: int, result):
        """The result is right, and each step has had its effect once."""
        self.assertEqual(result.code, 0, result)
        effects = collections.Counter(line.rsplit("-", 1)[0] for line in (self.folder / "effects").read_text().splitlines())
        self.assertEqual((len(effects), set(effects.values())), (PARTS + 2, {1}), (effects, result))
        expected = "".join(f"{i} of {number}\n" for i in range(PARTS))
        self.assertEqual(self.artifact("all.z")[:len(expected)], expected)

    def assert_none_left(self):
        self.assert_nothing_left()
        temporary = {line for line in (self.folder / "temporary").read_text().splitlines()}
        wait_until(lambda: not [folder for folder in temporary if os.path.exists(folder)], f"the removal of the steps' temporary folders {temporary}")

    def test_a_driver_is_killed_beside_arrays(self):
        self.write_pipeline()
        span = None
        kills, went_on = 0, []
        for number, random in rounds(200, at_least=3):
            with self.subTest(round=number):
                run = self.begin(number)
                if span is None:
                    result = run.end()
                    span = run.events[-1]["after"]
                else:
                    run.kill_after(random.uniform(0, span))
                    result = run.end()
                known = bool(run.events)
                while result.code < 0:
                    kills += 1
                    run = self.resume() if known else self.begin(number)
                    if random.random() < 0.4:
                        run.kill_after(random.uniform(0, span))
                    result = run.end()
                    known = known or bool(run.events)
                    went_on += [run.first("step_finished") or 0] * (result.code == 0)
                self.assert_one_effect_each(number, result)
                self.assert_none_left()
        self.assertEqual(self.pipe("verify").code, 0)
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assert_none_left()
        figure("slurm_faults", f"{kills} kills of the driver beside arrays of {PARTS}; the first end after a resume came after {in_words(went_on)}")


if __name__ == "__main__":
    unittest.main()
