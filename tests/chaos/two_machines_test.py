"""Two machines with one state folder, a clock that is a day off, a laptop that sleeps: nobody's run is touched, and durations are right."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from support_chaos import LIBRARIES, NOWHERE, PIPE, ChaosTest, Watched, figure, rounds, wait_until

OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"
DAY = 86_400


class TwoMachines(ChaosTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.go = self.folder / "go"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, "GO": str(self.go), **env})

    def write_pipeline(self):
        self.pipeline({"wait": {"command": "echo begun; while [ ! -e \"$GO\" ]; do sleep 0.02; done; echo done > ${outputs.out}", "environment": ["GO"],
                                "outputs": ["out"], "cache": False, "timeout": "1h"},
                       "next": {"command": "cat ${inputs.out}", "inputs": {"out": "wait.out"}}})
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "echo x > ${outputs.x}", "outputs": ["x"], "cache": False}}}))

    def elsewhere(self) -> list[str]:
        """What runs a command with process identifiers and a boot identifier of its own: on another machine, as far as it can see."""
        boot = self.write("boot_id", OTHER_BOOT + "\n")
        words = ["unshare", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                 f"hostname elsewhere && mount --bind {boot} /proc/sys/kernel/random/boot_id && exec \"$@\"", "sh"]
        if subprocess.run([*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no PID and mount namespaces to be had")
        return words

    def there(self, prefix: list[str], *words) -> tuple[int, str]:
        done = subprocess.run([*prefix, PIPE, *words], cwd=self.folder, env=self.environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.returncode, done.stdout

    def begin(self, prefix: list[str], **env) -> subprocess.Popen:
        process = subprocess.Popen([*prefix, PIPE, "run", "pipeline.yaml", "-o", "local", "--output", "json"], cwd=self.folder, env=self.environment(env),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def wait_for_step(self, process: subprocess.Popen) -> str:
        text = ""
        for line in process.stdout:
            text += line
            if '"step_log"' in line:
                return json.loads(text.splitlines()[0])["run"]
        raise AssertionError(text)

    def test_a_run_is_left_alone_whoever_works_beside_it(self):
        """One of the two drives; it may sleep meanwhile. The other does what it can."""
        self.write_pipeline()
        other = self.elsewhere()
        asleep = 0
        count = 0
        for number, random in rounds(60, at_least=2):
            with self.subTest(round=number):
                self.go.unlink(missing_ok=True)
                driver_is_here = random.random() < 0.5
                process = self.begin([] if driver_is_here else other)
                run = self.wait_for_step(process)
                sleeps = random.random() < 0.5
                asleep += sleeps
                if sleeps:
                    os.killpg(process.pid, signal.SIGSTOP)
                beside = other if driver_is_here else []
                refused = [["cancel", run], ["cancel", run, "--force"], ["resume", run]]
                others = [["run", "quick.yaml", "-o", "local"], ["clean", "--runs"], ["runs"], ["show", run], ["verify"]]
                for words in random.sample(refused + others, random.randint(2, 6)):
                    code, said = self.there(beside, *words)
                    self.assertEqual(code, 2 if words in refused else 0, f"{words}: {said}")
                self.assertTrue((self.state / "work" / run).is_dir())
                if sleeps:
                    os.killpg(process.pid, signal.SIGCONT)
                self.go.touch()
                out = process.stdout.read()
                self.assertEqual(process.wait(60), 0, out)
                statuses = [json.loads(line)["status"] for line in out.splitlines() if '"step_finished"' in line]
                self.assertEqual(statuses[:1], ["succeeded"], out)
                self.assertIn(statuses[1:], (["succeeded"], ["cached"]), out)
                self.assertEqual(json.loads(self.pipe("show", run, "--output", "json").out)["status"], "succeeded")
                count += 1
        self.assert_nothing_left()
        self.assert_database_whole()
        figure("two_machines", f"{count} runs with another machine's commands beside them, {asleep} of their drivers asleep meanwhile: none was touched")

    def test_a_driver_that_was_killed_on_one_is_continued_on_the_other(self):
        self.write_pipeline()
        other = self.elsewhere()
        count = 0
        for number, random in rounds(60, at_least=2):
            with self.subTest(round=number):
                self.go.unlink(missing_ok=True)
                here = random.random() < 0.5
                process = self.begin([] if here else other)
                run = self.wait_for_step(process)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                beside = other if here else []
                self.go.touch()
                wait_until(lambda: "running" not in self.there(beside, "show", run)[1].splitlines()[0], "a dead driver", 30)
                code, said = self.there(beside, "resume", run)
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
        with open(self.clock, "r+b" if self.clock.exists() else "w+b", buffering=0) as file:
            file.write(struct.pack("q", seconds))

    def test_it_jumps_by_a_day_while_a_run_goes_on(self):
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
                time.sleep(random.uniform(0.02, 0.4))  # any moment is as good as another
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
        self.assertEqual(self.pipe("clean", "--runs").code, 0)
        figure("clock", f"{count} runs whose clock jumped by a day and more while they went on: all durations right, {longest:.1f} s at most")


if __name__ == "__main__":
    unittest.main()
