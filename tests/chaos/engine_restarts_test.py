"""The engine is restarted during runs: a step is joined or tried once more, and no step that was ended counts as a success."""

import collections
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

from driver_kills import DriverKills
from support_chaos import Watched, docker, figure, rounds

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/testbed/second-engine"
NAME = {"SECOND_ENGINE": "chaos 5"}
SOCKET = "/run/pipe-chaos-engine/docker.sock"


def second_engine(*words: str) -> int:
    return subprocess.run([SCRIPT, *words], env={**os.environ, **NAME}, stdout=subprocess.DEVNULL, check=False).returncode


class EngineRestarts(DriverKills):
    orchestrator = "docker"
    test_kill = None
    pause = 0.4

    @classmethod
    def setUpClass(cls):
        if second_engine("start", "debian:bookworm-slim") != 0:
            raise unittest.SkipTest("no second engine to be had")
        cls.addClassCleanup(second_engine, "stop")
        os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
        cls.addClassCleanup(os.environ.pop, "DOCKER_HOST")

    def setUp(self):
        super().setUp()
        self.shared = pathlib.Path(tempfile.mkdtemp(prefix="pipe-chaos-", dir="/var/lib"))  # This engine does not see /tmp.
        self.addCleanup(shutil.rmtree, self.shared)

    def ledger_folder(self):
        return "/ledger"

    def settings(self):
        return {"parent_image": "debian:bookworm-slim", "skip_build": True, "volumes": [f"{self.shared}:/ledger"]}

    def write_pipeline(self):
        super().write_pipeline()
        text = (self.folder / "pipeline.yaml").read_text()  # A step that is asked to stop ends with exit code 0, as if it had succeeded.
        self.write("pipeline.yaml", text.replace("sh step.sh", "trap 'exit 0' TERM; sh step.sh"))

    def entries(self):
        ledger = self.shared / "ledger"
        return ledger.read_text().splitlines() if ledger.exists() else []

    def test_a_run_completes_though_its_engine_is_restarted(self):
        self.write_pipeline()
        retried, joined, attempts = 0, 0, collections.Counter()
        for number, random in rounds(50):
            with self.subTest(round=number):
                (self.shared / "ledger").unlink(missing_ok=True)
                run = Watched(self, "run", "pipeline.yaml", "-o", "docker", "--output", "json", "-p", f"a.n={number}")
                codes = []
                restart = threading.Timer(random.uniform(0.2, 3.5), lambda: codes.append(second_engine("restart")))
                restart.start()
                result = run.end()
                restart.join()
                self.assertEqual(codes, [0])
                entries = self.entries()
                self.assertEqual(result.code, 0, f"{result}\n{entries}")
                self.assertEqual([entry for entry in entries if entry.startswith("twice")], [], result)
                for event in run.events:
                    if event["event"] == "step_finished":
                        self.assertIn(f"end {event['step']}", entries, f"a success that was none:\n{result}")
                        self.assertLessEqual(event["attempts"], 2, result)
                        attempts[event["attempts"]] += 1
                path = next(each["path"] for each in run.events[-1]["results"] if each["output"] == "d.x")
                self.assertEqual((self.folder / path).read_text(), self.expected(number))
                again = any(event["event"] == "step_finished" and event["attempts"] > 1 for event in run.events)
                retried, joined = retried + again, joined + (not again)
                self.assertEqual(self.pipe("clean", "--containers").code, 0)
                self.assertEqual(self.containers(), [], docker("ps", "-a"))
        figure("engine_restarts", f"{retried + joined} restarts: in {retried} runs steps were tried once more ({attempts[2]} steps), {joined} runs went on without; "
               "no false success")


del DriverKills

if __name__ == "__main__":
    unittest.main()
