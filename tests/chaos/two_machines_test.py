"""Two machines with one state folder, a clock that jumps by a day, a laptop that sleeps: no run is disturbed, and durations are right."""

import json
import os
import signal
import struct
import time
import unittest

from support_chaos import LIBRARIES, NOWHERE, ChaosTest, Watched, figure, rounds, wait_until
from support_machines import WAITS, MachinesTest

DAY = 86_400


class TwoMachines(MachinesTest, ChaosTest):
    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def write_pipeline(self):
        self.pipeline({"wait": {**WAITS, "cache": False, "timeout": "1h"}, "next": {"command": "cat ${inputs.out}", "inputs": {"out": "wait.out"}}})
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "echo x > ${outputs.x}", "outputs": ["x"], "cache": False}}}))

    def test_commands_of_another_machine_leave_a_run_alone(self):
        """One machine executes the run, and may sleep meanwhile; the other executes commands."""
        self.write_pipeline()
        other = self.elsewhere()
        asleep = 0
        count = 0
        for number, random in rounds(60, at_least=2):
            with self.subTest(round=number):
                self.go.unlink(missing_ok=True)
                driver_is_here = random.random() < 0.5
                process, run = self.begin([] if driver_is_here else other)
                sleeps = random.random() < 0.5
                asleep += sleeps
                if sleeps:
                    os.killpg(process.pid, signal.SIGSTOP)
                beside = other if driver_is_here else []
                refused = [["cancel", run], ["cancel", run, "--force"], ["resume", run]]
                others = [["run", "quick.yaml", "-o", "local"], ["clean", "--runs", "--keep", "0"], ["runs"], ["show", run], ["verify"]]
                for words in random.sample(refused + others, random.randint(2, 6)):
                    code, said = self.pipe_on(beside, *words)
                    self.assertEqual(code, 2 if words in refused else 0, f"{words}: {said}")
                self.assertTrue((self.state / "work" / run).is_dir())
                if sleeps:
                    os.killpg(process.pid, signal.SIGCONT)
                self.go.touch()
                out = process.stdout.read()
                self.assertEqual(process.wait(300), 0, out + process.stderr.read())
                statuses = [json.loads(line)["status"] for line in out.splitlines() if '"step_finished"' in line]
                self.assertEqual(statuses[:1], ["succeeded"], out)
                self.assertIn(statuses[1:], (["succeeded"], ["cached"]), out)
                self.assertEqual(json.loads(self.pipe("show", run, "--output", "json").out)["status"], "succeeded")
                count += 1
        self.assert_nothing_left()
        self.assert_database_whole()
        figure("two_machines", f"{count} runs with another machine's commands beside them, {asleep} of their drivers asleep meanwhile: none was touched")

    def test_a_run_whose_driver_was_killed_on_one_machine_is_resumed_on_the_other(self):
        self.write_pipeline()
        other = self.elsewhere()
        count = 0
        for number, random in rounds(60, at_least=2):
            with self.subTest(round=number):
                self.go.unlink(missing_ok=True)
                here = random.random() < 0.5
                process, run = self.begin([] if here else other)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                beside = other if here else []
                self.go.touch()
                wait_until(lambda: "running" not in self.pipe_on(beside, "show", run)[1].splitlines()[0], "a dead driver")
                code, said = self.pipe_on(beside, "resume", run)
                self.assertEqual(code, 0, said)
                count += 1
        self.assert_nothing_left()
        figure("two_machines", f"{count} runs whose driver was killed on one machine went on on the other")


class Clock(ChaosTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.clock = self.folder / "clock"
        self.turn(0)

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, "LD_PRELOAD": str(LIBRARIES / "shifted_clock.so"), "CHAOS_CLOCK": str(self.clock), **env})

    def turn(self, seconds: int):
        """Sets the clock of all commands to this many seconds after the real time."""
        with open(self.clock, "r+b" if self.clock.exists() else "w+b", buffering=0) as file:
            file.write(struct.pack("q", seconds))

    def test_durations_are_right_though_the_clock_jumps_during_a_run(self):
        step = "for i in 1 2 3; do echo line $i; sleep 0.05; done; echo $PIPE_ATTEMPT > ${outputs.x}; test $PIPE_ATTEMPT = 2"
        self.pipeline({"a": {"command": step, "outputs": ["x"], "retry": {"max_retries": 1, "delay": "100ms"}, "timeout": "5m", "parameters": {"n": 0}},
                       "b": {"command": "cat ${inputs.x}", "inputs": {"x": "a.x"}, "timeout": "5m"}})
        longest = 0.0
        count = 0
        for number, random in rounds(100, at_least=4):
            with self.subTest(round=number):
                before, after = random.sample([-DAY, 0, DAY, -400 * DAY, 3600], 2)
                self.turn(before)
                began = time.monotonic()
                run = Watched(self, "run", "pipeline.yaml", "-o", "local", "--output", "json", "-p", f"a.n={number}")
                time.sleep(random.uniform(0.02, 0.4))  # The clock jumps at any moment of the run.
                self.turn(after)
                result = run.end()
                took = time.monotonic() - began
                self.assertEqual(result.code, 0, result)
                shown = json.loads(self.pipe("show", run.events[0]["run"], "--output", "json").out)
                durations = [event["took_ms"] for event in run.events if "took_ms" in event] + [value for step in shown["steps"] for key, value in step.items()
                                                                                              if key == "took_ms"]
                self.assertTrue(durations, result)
                for duration in durations:
                    self.assertGreaterEqual(duration, 0, result)
                    self.assertLessEqual(duration, 1000 * took + 1000, result)
                longest = max(longest, max(durations) / 1000)
                self.assertEqual(json.loads(self.pipe("show", "latest", "--output", "json").out)["id"], run.events[0]["run"], "the latest is the last that began")
                self.turn(0)
                again = self.run_pipe("-p", f"a.n={number}")
                self.assertEqual(again.steps(), {"a": "cached", "b": "cached"})
                count += 1
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        figure("clock", f"{count} runs whose clock jumped by a day and more while they went on: all durations right, {longest:.1f} s at most")


if __name__ == "__main__":
    unittest.main()
