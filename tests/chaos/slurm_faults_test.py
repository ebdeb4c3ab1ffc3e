"""Faults of a Slurm cluster: drivers, controllers and nodes are killed, file systems are full. No result is false, no step succeeds twice, nothing is left.

SLURM_BED selects the cluster that the tests damage, see scripts/testbed/slurm; the test of slurmdbd needs a cluster with `accounts`.
"""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import time
import unittest

from support_chaos import NOWHERE, SCALE, ChaosTest, Watched, figure, in_words, rounds, wait_until
from support_slurm import BED, CONF, FOLDER, OnSlurm, resume_drained_nodes, slurm

PARTS = 6


class SlurmFaults(OnSlurm, ChaosTest):
    def setUp(self):
        super().setUp()
        self.attempts_killed = 0  # Slurm has killed these attempts; their temporary folders stay

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def bed(self, *words: str):
        subprocess.run([BED, *words], check=True)

    def controller_up(self):
        self.bed("controller", "up")
        wait_until(lambda: subprocess.run(["scontrol", "ping"], env=self.environment({}), stdout=subprocess.DEVNULL).returncode == 0, "the controller's start")

    def wait_for_node(self, node: str, states: str):
        wait_until(lambda: slurm("sinfo", "-h", "-n", node, "-t", states, "-o", "%D"), f"{node} being {states}", 300)

    def write_pipeline(self, pause: float = 0.3):
        """Writes a pipeline of a step, an array whose instances read the step's output, and a step that reads the outputs of all instances.

        Each attempt that reaches its end appends a line with its job's name to `effects`, and its temporary folder to `temporary`.
        """
        end = f"sleep {pause}; echo $TMPDIR >> {self.folder}/temporary; echo $SLURM_JOB_NAME >> {self.folder}/effects"
        parts = {"matrix": {"i": list(range(PARTS))}, "inputs": {"x": "a.x"}, "outputs": ["y"], "settings": {"resources": {"memory": "50MiB"}}}
        self.pipeline({
            "a": {"command": f"echo ${{params.n}} > ${{outputs.x}}; {end}", "parameters": {"n": 0}, "outputs": ["x"]},
            "part": {"command": f"echo ${{params.i}} of $(cat ${{inputs.x}}) > ${{outputs.y}}; {end}", **parts},
            "all": {"command": f"cat ${{inputs.parts}}/* > ${{outputs.z}}; {end}", "inputs": {"parts": "part[*].y"}, "outputs": ["z"]}})

    def start_round(self, number: int) -> Watched:
        (self.folder / "effects").unlink(missing_ok=True)
        return self.start_run(number)

    def start_run(self, number: int) -> Watched:
        return Watched(self, "run", "pipeline.yaml", "-o", "slurm", "--output", "json", "-p", f"a.n={number}")

    def can_resume(self) -> bool:
        shown = self.pipe("show", "latest", "--output", "json")
        return shown.code == 0 and json.loads(shown.out)["status"] != "succeeded"

    def resume(self) -> Watched:
        return Watched(self, "resume", "latest", "--output", "json")

    def assert_one_effect_each(self, number: int, result):
        """Checks the result, and that each step has one effect; at most one more for each attempt that Slurm has killed, since a kill may follow the effect."""
        self.assertEqual(result.code, 0, result)
        effects = collections.Counter(line.rsplit("-", 1)[0] for line in (self.folder / "effects").read_text().splitlines())
        killed = sum(event["failure"]["kind"] == "infrastructure" for event in result.events("step_retried"))
        self.attempts_killed += killed
        self.assertEqual(len(effects), PARTS + 2, (effects, result))
        self.assertLessEqual(effects.total(), PARTS + 2 + killed, (effects, result))
        expected = "".join(f"{i} of {number}\n" for i in range(PARTS))
        self.assertEqual(self.artifact("all.z")[:len(expected)], expected)  # Then comes the folder's index.json.

    def assert_none_left(self):
        self.assert_nothing_left()
        temporary = set((self.folder / "temporary").read_text().splitlines())
        wait_until(lambda: sum(map(os.path.exists, temporary)) <= self.attempts_killed, f"the removal of the steps' temporary folders {temporary}")

    def continue_run(self, number: int, is_recorded: bool) -> Watched:
        """Resumes the round's run; starts it anew if its driver was killed before it recorded the run, or after the run had ended."""
        return self.resume() if is_recorded and self.can_resume() else self.start_run(number)

    def kill_and_continue(self, number: int, random, span: float):
        """Kills a round's driver at a random time, and continues the run until a driver ends by itself. Each further driver is killed with a chance of 0.4.

        Returns the result of the last driver, the number of kills, and the seconds from the start of the last driver to the first end of a step, None if the
        first driver was not killed.
        """
        run = self.start_round(number)
        run.kill_after(random.uniform(0, span))
        result = run.end()
        kills, resumed_after = 0, None
        is_recorded = bool(run.events)
        while result.code < 0:
            kills += 1
            run = self.continue_run(number, is_recorded)
            if random.random() < 0.4:
                run.kill_after(random.uniform(0, span))
            result = run.end()
            is_recorded = is_recorded or bool(run.events)
            resumed_after = run.first("step_finished") or 0
        return result, kills, resumed_after

    def test_a_driver_is_killed_beside_arrays(self):
        self.write_pipeline()
        span = None  # Seconds that a run takes which nobody kills: the first round's.
        all_kills, resumed_after = 0, []
        for number, random in rounds(200, at_least=3):
            with self.subTest(round=number):
                if span is None:
                    run = self.start_round(number)
                    result = run.end()
                    span = run.events[-1]["after"]
                else:
                    result, kills, seconds = self.kill_and_continue(number, random, span)
                    all_kills += kills
                    if seconds is not None and result.code == 0:
                        resumed_after.append(seconds)
                self.assert_one_effect_each(number, result)
                self.assert_none_left()
        self.assertEqual(self.pipe("verify").code, 0)
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assert_none_left()
        figure("slurm_faults", f"{all_kills} kills of the driver beside arrays of {PARTS}; the first step after a resume ended after {in_words(resumed_after)}")

    def test_a_controller_is_killed_for_a_while(self):
        self.write_pipeline(pause=1)
        times = []
        for number, random in rounds(20):
            with self.subTest(round=number):
                run = self.start_round(number)
                time.sleep(random.uniform(0, 6))
                down = random.choice((1, 5, 30)) if SCALE >= 1 else 5
                self.bed("controller", "down")
                try:
                    time.sleep(down)
                finally:
                    restarted = time.monotonic()
                    self.controller_up()
                result = run.end()
                times.append(time.monotonic() - restarted)
                self.assert_one_effect_each(number, result)
                self.assert_none_left()
                resume_drained_nodes()
        figure("slurm_faults", f"a controller killed {len(times)} times during a run, for 1 to 30 s: the run ended {in_words(times)} after its restart")

    def jobs_of_this_test(self, *options: str) -> list[str]:
        return [line.split()[0] for line in slurm("squeue", "-h", "-o", "%i %Z", *options).splitlines() if str(self.folder) in line]

    def test_a_controller_is_killed_for_ever(self):
        """Runs only at full scale: it takes the ten minutes after which `pipe` gives up a controller that does not answer."""
        for _ in rounds(1, at_least=0):
            self.addCleanup(self.controller_up)
            self.pipeline({"runs": {"command": f"echo x >> {self.folder}/effects; until [ -e {self.folder}/go ]; do sleep 0.1; done; echo y > ${{outputs.o}}", "outputs": ["o"],
                                    "settings": {"resources": {"cpu_count": 8}}},
                           "waits": {"command": f"echo waits >> {self.folder}/effects", "settings": {"resources": {"cpu_count": 8}, "slurm": {"extra_args": ["--begin=now+3600"]}}, "retry": {"max_infrastructure_retries": 0}},
                           "next": {"command": "cat ${inputs.o}", "inputs": {"o": "runs.o"}, "retry": {"max_infrastructure_retries": 0}}})
            process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
            self.wait_for_effect()
            wait_until(lambda: self.jobs("PENDING"), "the job that waits")
            self.bed("controller", "down")
            began = time.monotonic()
            wait_until(lambda: "Slurm does not answer" in self.pipe("logs", "latest", "waits").text, "the reason in the log")
            self.write("go", "")
            result = self.finish(process, 1800)
            took = time.monotonic() - began
            self.assertEqual(result.code, 1, result)
            self.assertEqual(result.steps()["runs"], "succeeded", result)
            self.assertIn("[slurm] not submitted yet: ", self.pipe("logs", "latest", "next").text)
            for step in ("waits", "next"):
                self.assertEqual(result.failure(step)["kind"], "infrastructure", result)
                self.assertIn("scontrol ping", str(result.failure(step)))
            self.controller_up()
            # The run has given up the pending jobs, but could not cancel them while the controller was down.
            for job in self.jobs_of_this_test("--states=PENDING"):
                slurm("scontrol", "update", f"jobid={job}", "starttime=now")
            wait_until(lambda: not self.jobs_of_this_test(), "an end of all jobs", 300)
            self.assertNotIn("waits", (self.folder / "effects").read_text())
            figure("slurm_faults", f"with a controller that was killed for ever, the run ended after {took:.0f} s")

    def begun(self) -> list[list[str]]:
        """Returns the node and the process id of each attempt that has begun."""
        file = self.folder / "begun"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def test_a_node_is_killed_beneath_its_job(self):
        """Kills only the node's daemon; the step goes on. When Slurm gives the node up, another attempt starts, and the first ends without an effect."""
        for number, _ in rounds(5):
            with self.subTest(round=number):
                (self.folder / "effects").unlink(missing_ok=True)
                (self.folder / "go").unlink(missing_ok=True)
                self.pipeline({"slow": {"command": f"echo $SLURMD_NODENAME $$ >> {self.folder}/begun; until [ -e {self.folder}/go ]; do sleep 0.1; done; "
                                                   f"echo {number} >> {self.folder}/effects; echo {number} > ${{outputs.o}}", "outputs": ["o"]}})
                (self.folder / "begun").unlink(missing_ok=True)
                process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
                wait_until(self.begun, "the step's beginning")
                node, first = self.begun()[0]
                self.addCleanup(self.bed, "node", "up", node)
                self.bed("node", "down", node)
                wait_until(lambda: len(self.begun()) >= 2, "the second attempt", 300)
                self.assertNotEqual(self.begun()[1][0], node)
                wait_until(lambda: not os.path.exists(f"/proc/{first}"), "the end of the first attempt, whose node is given up")
                self.write("go", "")
                result = self.finish(process)
                self.assertEqual(result.code, 0, result)
                self.assertEqual(self.effects(), 1)
                self.assertEqual(self.artifact("slow.o"), f"{number}\n")
                self.bed("node", "up", node)
                self.wait_for_node(node, "idle,mixed,allocated")  # other tests may use the cluster
                self.assert_nothing_left()

    def test_the_shared_file_system_is_full(self):
        """A step that fills the file system of the state folder is not recorded as succeeded; the next run, which finds space, runs the step again."""
        for number, _ in rounds(3):
            with self.subTest(round=number):
                state = self.folder / "small"
                state.mkdir(exist_ok=True)
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", state], check=True)
                self.addCleanup(subprocess.run, ["umount", "-l", state])
                self.state = state / "state"
                self.pipeline({"fills": {"command": f"echo x >> {self.folder}/effects; [ -e {self.folder}/go ] || cat /dev/zero > {state}/zeros; echo y > ${{outputs.o}}; exit 0",
                                         "outputs": ["o"], "retry": {"max_infrastructure_retries": 1}}})
                result = self.run_pipe(code=None)
                self.assertEqual(result.code, 3, result)
                self.assertIn("No space left on device", result.text)
                (state / "zeros").unlink()
                self.write("go", "")
                result = self.run_pipe()
                self.assertEqual(result.steps(), {"fills": "succeeded"})
                self.assertEqual(self.artifact("fills.o"), "y\n")
                self.assert_nothing_left()

    def test_the_spool_of_a_node_is_full(self):
        """Slurm cancels a job that a node cannot start. The attempt fails as infrastructure, although neither the user nor `pipe` has cancelled the job."""
        for number, _ in rounds(3):
            with self.subTest(round=number):
                spool = FOLDER / "spool.node1"
                # After a test that kills the controller, a job may hold the node's memory for two minutes: the controller does not know that the job has ended.
                self.wait_for_node("node1", "idle")
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", spool], check=True)
                unmount = ["umount", "-l", spool]
                self.addCleanup(subprocess.run, unmount, stderr=subprocess.DEVNULL)
                with open(spool / "zeros", "wb", buffering=0) as zeros, contextlib.suppress(OSError):
                    while zeros.write(bytes(4096)):
                        pass
                self.pipeline({"step": {"command": f"echo x >> {self.folder}/effects; echo {number} > ${{outputs.o}}", "outputs": ["o"],
                                        "settings": {"slurm": {"extra_args": ["--nodelist=node1"]}}, "retry": {"max_infrastructure_retries": 0}}})
                result = self.run_pipe(code=1)
                self.assertEqual(result.failure("step")["kind"], "infrastructure", result)
                self.assertIn("before its script began on node1", result.failure("step")["message"], result)
                self.assert_nothing_left()
                subprocess.run(unmount, check=True)
                self.wait_for_node("node1", "drain")
                resume_drained_nodes()
                before = self.effects()
                self.assertEqual(self.run_pipe().steps(), {"step": "succeeded"})
                self.assertEqual(self.effects(), before + 1)
                self.assert_nothing_left()

    @unittest.skipUnless(os.path.exists(CONF) and "accounting_storage/slurmdbd" in pathlib.Path(CONF).read_text(), "this bed has no slurmdbd: SLURM_BED=accounts scripts/testbed/slurm up 1 accounts")
    def test_the_accounts_are_killed_during_a_run(self):
        """Neither jobs that run nor jobs that are submitted while slurmdbd is down need it."""
        self.write_pipeline()
        for number, random in rounds(20):
            with self.subTest(round=number):
                self.addCleanup(self.bed, "accounts", "up")
                run = self.start_round(number)
                time.sleep(random.uniform(0, 3))
                self.bed("accounts", "down")
                self.assert_one_effect_each(number, run.end())
                self.assert_one_effect_each(number + 1000, self.start_round(number + 1000).end())
                self.bed("accounts", "up")
                self.assert_none_left()


if __name__ == "__main__":
    unittest.main()
