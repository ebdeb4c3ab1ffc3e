"""Three of ten calls of the engine are answered 429, 500 or 503, cut, lost or never answered: the run completes, and nothing happens twice."""

import collections
import os
import socket
import unittest

from driver_kills import DriverKills
from faulty_proxy import FaultyProxy, chosen
from support_chaos import Watched, figure, rounds

ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")


@unittest.skipUnless(ENGINE.startswith("unix://"), "the engine is elsewhere")
class FaultyEngine(DriverKills):
    orchestrator = "docker"
    test_kill = None

    def ledger_folder(self):
        return "/ledger"

    def settings(self):
        return {"parent_image": "debian:bookworm-slim", "skip_build": True, "volumes": [f"{self.folder}:/ledger"]}

    def begin_proxy(self, random) -> FaultyProxy:
        path = self.folder / f"engine-{random.randrange(1 << 32)}.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(64)

        def connect():
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(ENGINE.removeprefix("unix://"))
            return engine

        usual = chosen(random)
        seen = set()  # The first answers have no fault, because an engine that has never answered is reported at once.

        def fault(method: str, target: str):
            place = target.split("?")[0]
            if place.endswith(("/_ping", "/version", "/info")) or (place not in seen and "/images/" in place):
                seen.add(place)
                return None
            return usual(method, target)

        proxy = FaultyProxy(listener, connect, fault)
        proxy.url = f"unix://{path}"
        self.addCleanup(proxy.end)
        return proxy

    def test_a_run_completes_though_three_of_ten_calls_fail(self):
        self.write_pipeline()
        calls, faults, attempts, count = 0, collections.Counter(), 0, 0
        took = []
        for number, random in rounds(40):
            with self.subTest(round=number):
                (self.folder / "ledger").unlink(missing_ok=True)
                proxy = self.begin_proxy(random)
                run = Watched(self, "run", "pipeline.yaml", "-o", "docker", "--output", "json", "-p", f"a.n={number}", DOCKER_HOST=proxy.url, PIPE_ENGINE_TIMEOUT="3s")
                result = run.end()
                proxy.end()
                calls += len(proxy.asked)
                faults.update(proxy.faults)
                entries = self.entries()
                self.assertEqual(result.code, 0, f"{result}\n{entries}")
                self.assertEqual([entry for entry in entries if entry.startswith("twice")], [], result)
                path = next(each["path"] for each in run.events[-1]["results"] if each["output"] == "d.x")
                self.assertEqual((self.folder / path).read_text(), self.expected(number))
                for event in run.events:
                    if event["event"] == "step_finished":
                        attempts += event["attempts"]
                        begins = entries.count(f"begin {event['step']}")
                        self.assertLessEqual(begins, event["attempts"], f"{result}\n{entries}")
                took.append(run.events[-1]["after"])
                self.pipe("clean", "--containers")
                self.assertEqual(self.containers(), [], result)
                count += 1
        self.assertGreater(sum(faults.values()), 0)
        figure("faulty_engine", f"{count} runs completed, {sum(faults.values())} of {calls} calls failed ({dict(faults)}), {attempts} attempts of {4 * count} steps, "
               f"{max(took):.0f} s at most")


del DriverKills

if __name__ == "__main__":
    unittest.main()
