"""What tests on the test bed's Slurm cluster share. SLURM_BED names another test bed, see scripts/testbed/slurm."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from support import PipeTest, wait_until

BED = pathlib.Path(__file__).resolve().parents[2] / "scripts/testbed/slurm"
FOLDER = pathlib.Path("-".join(["/var/lib/pipe-slurm", *filter(None, [os.environ.get("SLURM_BED")])]))
CONF = str(FOLDER / "slurm.conf")
NO_ANSWER = ("Unable to contact slurm controller", "timed out")  # messages of Slurm's commands


def slurm(*words: str) -> str:
    """Returns the output of a command of Slurm. While the controller does not answer, as on a busy machine, the command is repeated for up to three minutes."""
    end = time.monotonic() + 180
    while True:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "SLURM_CONF": CONF})
        if done.returncode == 0:
            return done.stdout.strip()
        if not any(sign in done.stdout for sign in NO_ANSWER) or time.monotonic() > end:
            raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}")
        time.sleep(1)


def resume_drained_nodes():
    """Returns drained nodes to service, which Slurm leaves to an administrator. A controller that was killed may start a job a second time; it then drains
    the node that refuses the job ("Duplicate jobid"), for ever."""
    for node in sorted(set(slurm("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").split())):
        with contextlib.suppress(AssertionError):  # The node may have been resumed meanwhile.
            slurm("scontrol", "update", f"nodename={node}", "state=resume")


@unittest.skipUnless(os.path.exists(CONF), "scripts/testbed/slurm up")
class OnSlurm(PipeTest):
    orchestrator = "slurm"

    def setUp(self):
        super().setUp()
        resume_drained_nodes()

    def environment(self, env: dict) -> dict:
        return super().environment({"SLURM_CONF": CONF, **env})

    def pipeline(self, steps: dict, **top) -> pathlib.Path:
        return super().pipeline(steps, **{"settings": {}, **top})

    def jobs(self, *states: str) -> list[str]:
        """Returns the numbers of this test's jobs in these states; by default of those that have not ended. A job's comment ends in its run's identifier."""
        lines = slurm("squeue", "-h", "-o", "%i|%j|%k", *[f"--states={','.join(states)}"] * bool(states)).splitlines()
        runs = {path.name for path in (self.state / "slurm").iterdir()} if (self.state / "slurm").is_dir() else set()
        return [line.split("|")[0] for line in lines if line.rsplit(":", 1)[-1] in runs]

    def remove_everything(self):
        for job in self.jobs():
            slurm("scancel", "--full", "--signal=KILL", job)
        super().remove_everything()

    def assert_nothing_left(self):
        super().assert_nothing_left()
        wait_until(lambda: not self.jobs(), "the end of all jobs")
        self.assertEqual([str(path) for path in (self.state / "slurm").glob("*/*/*")], [])

    def effects(self) -> int:
        """Returns how many lines the steps have written to the file `effects`, each when it began."""
        file = self.folder / "effects"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def wait_for_effect(self, count: int = 1):
        wait_until(lambda: self.effects() >= count, "the steps' beginning")

    def counted(self, program: str) -> dict:
        """Returns variables with which each call of a command of Slurm writes its arguments to a file of the command's name; see calls()."""
        return self.replaced(program, f"echo \"$@\" >> {self.folder}/{program}\nexec /usr/bin/{program} \"$@\"")

    def replaced(self, program: str, script: str) -> dict:
        """Returns variables with which a script stands in for a command of Slurm. The script is outside the test's folder, because commands such as
        `pipe plan` do not run programs from the project's folder."""
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        (folder / program).write_text(f"#!/bin/sh\n{script}\n")
        (folder / program).chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def calls(self, program: str) -> list[str]:
        """Returns the arguments of each call of a program for which counted() made variables."""
        file = self.folder / program
        return file.read_text().splitlines() if file.exists() else []
