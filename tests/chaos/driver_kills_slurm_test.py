"""The driver of a Slurm cluster's jobs is killed: a resumed run joins them, the next run cancels them, and none is left."""

import os
import subprocess
import unittest

from driver_kills import DriverKills
from support_chaos import NOWHERE
from support_slurm import CONF


@unittest.skipUnless(os.path.exists(CONF), "scripts/testbed/slurm up")
class DriverKillsOnSlurm(DriverKills):
    name = "driver_kills_slurm"
    orchestrator = "slurm"
    rounds_in_full = 60
    pause = 0.2

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, "SLURM_CONF": CONF, **env})

    def jobs(self) -> list[str]:
        """Returns the jobs whose working directory is in this test's folder."""
        lines = subprocess.run(["squeue", "-h", "-o", "%i %T %j %Z"], check=True, stdout=subprocess.PIPE, text=True, env=self.environment({})).stdout.splitlines()
        return [line for line in lines if str(self.folder) in line]

    def leftovers(self):
        return self.processes() + self.jobs()

    def remove_everything(self):
        for job in self.jobs():
            subprocess.run(["scancel", "--full", "--signal=KILL", job.split()[0]], env=self.environment({}))
        super().remove_everything()


del DriverKills

if __name__ == "__main__":
    unittest.main()
