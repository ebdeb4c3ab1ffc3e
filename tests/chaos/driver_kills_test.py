"""The driver of local processes is killed."""

import unittest

from driver_kills import DriverKills
from support_chaos import NOWHERE


class DriverKillsLocally(DriverKills):
    name = "driver_kills"
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


del DriverKills

if __name__ == "__main__":
    unittest.main()
