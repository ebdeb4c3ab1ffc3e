"""The driver of containers is killed."""

import unittest

from driver_kills import DriverKills


class DriverKillsWithContainers(DriverKills):
    name = "driver_kills_docker"
    orchestrator = "docker"
    rounds_in_full = 300

    def ledger_folder(self):
        return "/ledger"

    def settings(self):
        self.folder.chmod(0o777)
        return {"parent_image": "debian:bookworm-slim", "skip_build": True, "volumes": [f"{self.folder}:/ledger"]}

    def leftovers(self):
        return self.processes() + self.containers()


del DriverKills

if __name__ == "__main__":
    unittest.main()
