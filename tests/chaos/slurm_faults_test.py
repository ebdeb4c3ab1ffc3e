"""What goes wrong on a Slurm cluster: drivers, controllers and nodes that are killed, folders that are full. No result is false, no success has two effects, nothing is left.

SLURM_BED names a bed of its own, which `scripts/testbed/slurm up` has made; the faults of accounting are those of a bed with `accounts`.
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
        self.killed = 0  # attempts, by Slurm; their temporary folders stay

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
        """A step, an array that reads what it has made, and a step that reads all of the array. Each success is one line."""
        end = f"sleep {pause}; echo $TMPDIR >> {self.folder}/temporary; echo $SLURM_JOB_NAME >> {self.folder}/effects"
        parts = {"matrix": {"i": list(range(PARTS))}, "inputs": {"x": "a.x"}, "outputs": ["y"], "settings": {"resources": {"memory": "50MiB"}}}
        self.pipeline({
            "a": {"command": f"echo ${{params.n}} > ${{outputs.x}}; {end}", "parameters": {"n": 0}, "outputs": ["x"]},
            "part": {"command": f"echo ${{params.i}} of $(cat ${{inputs.x}}) > ${{outputs.y}}; {end}", **parts},
            "all": {"command": f"cat ${{inputs.parts}}/* > ${{outputs.z}}; {end}", "inputs": {"parts": "part[*].y"}, "outputs": ["z"]}})

    def begin(self, number: int) -> Watched:
        (self.folder / "effects").unlink(missing_ok=True)
        return self.go_on(number)

    def go_on(self, number: int) -> Watched:
        """Of a run that was not recorded, or has ended before its driver did."""
        return Watched(self, "run", "pipeline.yaml", "-o", "slurm", "--output", "json", "-p", f"a.n={number}")

    def can_resume(self) -> bool:
        shown = self.pipe("show", "latest", "--output", "json")
        return shown.code == 0 and json.loads(shown.out)["status"] != "succeeded"

    def resume(self) -> Watched:
        return Watched(self, "resume", "latest", "--output", "json")

    def assert_one_effect_each(self, number: int, result):
        """The result is right, and each step has had its effect once, or again in the place of an attempt that Slurm has killed between its effect and its end."""
        self.assertEqual(result.code, 0, result)
        effects = collections.Counter(line.rsplit("-", 1)[0] for line in (self.folder / "effects").read_text().splitlines())
        killed = sum(event["failure"]["kind"] == "infrastructure" for event in result.events("step_retried"))
        self.killed += killed
        self.assertEqual(len(effects), PARTS + 2, (effects, result))
        self.assertLessEqual(effects.total(), PARTS + 2 + killed, (effects, result))
        expected = "".join(f"{i} of {number}\n" for i in range(PARTS))
        self.assertEqual(self.artifact("all.z")[:len(expected)], expected)

    def assert_none_left(self):
        self.assert_nothing_left()
        temporary = {line for line in (self.folder / "temporary").read_text().splitlines()}
        wait_until(lambda: sum(map(os.path.exists, temporary)) <= self.killed, f"the removal of the steps' temporary folders {temporary}")

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
                    run = self.resume() if known and self.can_resume() else self.go_on(number)
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


    def test_a_controller_is_killed_for_a_while(self):
        self.write_pipeline(pause=1)
        times = []
        for number, random in rounds(20):
            with self.subTest(round=number):
                run = self.begin(number)
                time.sleep(random.uniform(0, 6))
                down = random.choice((1, 5, 30)) if SCALE >= 1 else 5
                self.bed("controller", "down")
                try:
                    time.sleep(down)
                finally:
                    began = time.monotonic()
                    self.controller_up()
                result = run.end()
                times.append(time.monotonic() - began)
                self.assert_one_effect_each(number, result)
                self.assert_none_left()
                resume_drained_nodes()
        figure("slurm_faults", f"a controller killed {len(times)} times during a run, for 1 to 30 s: the run ended {in_words(times)} after its start")

    def test_a_controller_is_killed_for_ever(self):
        """In full alone: it takes as long as a controller may be silent."""
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
            here = lambda *words: [line.split()[0] for line in slurm("squeue", "-h", "-o", "%i %Z", *words).splitlines() if str(self.folder) in line]  # noqa: E731
            for job in here("--states=PENDING"):  # the run has given it up, and nobody could cancel it
                slurm("scontrol", "update", f"jobid={job}", "starttime=now")
            wait_until(lambda: not here(), "an end of all jobs", 300)
            self.assertNotIn("waits", (self.folder / "effects").read_text())
            figure("slurm_faults", f"with a controller that was killed for ever, the run ended after {took:.0f} s")

    def test_a_node_is_killed_beneath_its_job(self):
        """The node's daemon is gone, and its step goes on: when Slurm gives the node up, another attempt begins, and the first has no effect any more."""
        for number, _ in rounds(5):
            with self.subTest(round=number):
                (self.folder / "effects").unlink(missing_ok=True)
                (self.folder / "go").unlink(missing_ok=True)
                self.pipeline({"slow": {"command": f"echo $SLURMD_NODENAME $$ >> {self.folder}/begun; until [ -e {self.folder}/go ]; do sleep 0.1; done; "
                                                   f"echo {number} >> {self.folder}/effects; echo {number} > ${{outputs.o}}", "outputs": ["o"]}})
                (self.folder / "begun").unlink(missing_ok=True)
                begun = lambda: [line.split() for line in (self.folder / "begun").read_text().splitlines()] if (self.folder / "begun").exists() else []  # noqa: E731
                process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
                wait_until(begun, "the step's beginning")
                node, first = begun()[0]
                self.addCleanup(self.bed, "node", "up", node)
                self.bed("node", "down", node)
                wait_until(lambda: len(begun()) >= 2, "the second attempt", 300)
                self.assertNotEqual(begun()[1][0], node)
                wait_until(lambda: not os.path.exists(f"/proc/{first}"), "the end of the first attempt, whose node is given up")
                self.write("go", "")
                result = self.finish(process)
                self.assertEqual(result.code, 0, result)
                self.assertEqual(self.effects(), 1)
                self.assertEqual(self.artifact("slow.o"), f"{number}\n")
                self.bed("node", "up", node)
                self.wait_for_node(node, "idle,mixed,allocated")  # others may use the bed
                self.assert_nothing_left()

    def test_the_shared_file_system_is_full(self):
        """When a step has filled it, nothing says that the step has succeeded; once there is room, the next run does it again."""
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
        """Slurm cancels the job that the node cannot start; nobody else has."""
        for number, _ in rounds(3):
            with self.subTest(round=number):
                spool = FOLDER / "spool.node1"
                # A job whose end a killed controller has not heard of has a node's memory for two minutes.
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

    @unittest.skipUnless(os.path.exists(CONF) and "accounting_storage/slurmdbd" in pathlib.Path(CONF).read_text(), "a bed with `accounts`")
    def test_the_accounts_are_killed_during_a_run(self):
        """slurmdbd is not needed for what runs, nor for what is submitted while it is away."""
        self.write_pipeline()
        for number, random in rounds(20):
            with self.subTest(round=number):
                self.addCleanup(self.bed, "accounts", "up")
                run = self.begin(number)
                time.sleep(random.uniform(0, 3))
                self.bed("accounts", "down")
                self.assert_one_effect_each(number, run.end())
                self.assert_one_effect_each(number + 1000, self.begin(number + 1000).end())
                self.bed("accounts", "up")
                self.assert_none_left()


if __name__ == "__main__":
    unittest.main()
