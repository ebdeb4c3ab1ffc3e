"""The driver, a stager, a pod or the bucket's server is killed at any moment while large and small outputs go from pod to pod through a bucket.

Nothing is lost, nothing wrong is used, no object of a run is left, and `pipe clean --remote` removes the artifacts when no run needs them any more.
"""

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

from support_chaos import SCALE, ChaosTest, Watched, figure, rounds

from support import files_below
from support_s3 import S3, S3Bucket, needs_s3  # beside support.py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from support_cluster import ROOT, ClusterTest, kubectl, needs_cluster, needs_test_bed  # noqa: E402

LARGE = 70_000_000  # bytes; outputs of 64 MiB and more are offered to the driver by their digest before they are sent


@needs_cluster
@needs_test_bed
@needs_s3
class DataKills(S3Bucket, ClusterTest, ChaosTest):
    def profile(self, **store):
        super().profile(endpoint=S3["PLAIN"], **store)

    def write_pipeline(self):
        self.pipeline({
            f"{self.mark}make": {"command": f"{{ echo ${{params.n}}; head -c {LARGE} /dev/zero; }} > ${{outputs.large}}; mkdir -p ${{outputs.many}}/deep;"
                                            " for i in 1 2 3; do echo ${params.n} $i > ${outputs.many}/deep/$i; done",
                                 "outputs": ["large", "many"], "parameters": {"n": 0}},
            f"{self.mark}use": {"command": "{ sha256sum < ${inputs.large}; cat ${inputs.many}/deep/*; } > ${outputs.sum}",
                                "inputs": {"large": f"{self.mark}make.large", "many": f"{self.mark}make.many"}, "outputs": ["sum"]}})

    def expected(self, number: int) -> str:
        digest = hashlib.sha256(f"{number}\n".encode() + bytes(LARGE)).hexdigest()
        return f"{digest}  -\n" + "".join(f"{number} {i}\n" for i in (1, 2, 3))

    def pods(self) -> list[dict]:
        return json.loads(kubectl("get", "pods", "-l", f"pipe.pipeline={self.mark}", "-o", "json"))["items"]

    def stagers(self) -> list[int]:
        """Returns the numbers of the stagers' processes in this test's pods; containers of the test bed are processes of this machine."""
        statuses = [one for pod in self.pods() for one in pod["status"].get("containerStatuses", [])]
        containers, found = [one["containerID"].split("//")[1] for one in statuses if one.get("containerID")], []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_stager = (process / "cmdline").read_bytes().split(b"\0")[0].endswith(b"/stager")
                if is_stager and any(each in (process / "cgroup").read_text() for each in containers):
                    found.append(int(process.name))
        return found

    def kill(self, victim: str, run: Watched, chance) -> bool:
        """Returns whether there was a victim before the run's end."""
        if victim == "driver":
            run.process.kill()
            return True
        if victim == "server":
            subprocess.run([ROOT / "scripts/testbed/s3", "down", str(chance.choice((1, 5)))], check=True, stdout=subprocess.DEVNULL)
            return True
        while run.process.poll() is None:
            if victim == "pod":
                running = [pod["metadata"]["name"] for pod in self.pods() if pod["status"]["phase"] in ("Pending", "Running")]
                if running and kubectl("delete", "pod", running[0], "--force", "--grace-period=0", "--ignore-not-found"):
                    return True
            elif processes := self.stagers():
                time.sleep(chance.uniform(0, 0.3))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(processes[0], signal.SIGKILL)
                    return True
            time.sleep(0.02)
        return False

    def begin(self, number: int) -> Watched:
        return Watched(self, "run", "pipeline.yaml", "--output", "json", "-p", f"{self.mark}make.n={number}")

    @unittest.skipIf(SCALE < 0.1, "takes minutes, and kills the bucket's server: only with CHAOS_SCALE of 0.1 and more")
    def test_kill(self):
        self.write_pipeline()
        rehearsal = self.begin(0)
        self.assertEqual((result := rehearsal.end()).code, 0, result)
        span = rehearsal.events[-1]["after"]
        victims = ["driver", "stager", "pod", "server"]
        kills, repeated = collections.Counter(), 0
        for number, chance in rounds(100):
            victim = victims[number % len(victims)]
            with self.subTest(round=number, victim=victim):
                run, killed = self.begin(number + 1), []
                wait = chance.uniform(0, span * (0.5 if victim == "stager" else 1))
                killer = threading.Thread(target=lambda: (time.sleep(wait), killed.append(self.kill(victim, run, chance))))  # noqa: B023
                killer.start()
                result = run.end()
                killer.join()
                kills[victim] += killed[0]
                if victim == "driver" and result.code == -signal.SIGKILL:
                    shown = self.pipe("show", "latest", "--output", "json")
                    goes_on = shown.code == 0 and json.loads(shown.out)["status"] in ("running", "died", "unknown", "interrupted")
                    run = Watched(self, "resume", "--output", "json") if goes_on else self.begin(number + 1)
                    result = run.end()
                self.assertEqual(result.code, 0, result)
                repeated += any(event.get("attempts", 1) > 1 for event in run.events if event["event"] == "step_finished")
                self.assertEqual(self.artifact(f"{self.mark}use.sum"), self.expected(number + 1))
                self.assertEqual(self.jobs(), [])
                # A pod that is deleted by force goes on for a moment, and the server may carry out the last request of a killed stager after the run's end.
                if victim in ("driver", "server"):
                    self.assertEqual([name for name in self.objects() if "/runs/" in name], [])
                for file in (self.data / "team/pipe/artifacts").glob("*/*"):
                    if not file.suffix and not file.name.startswith("."):
                        self.assertEqual(hashlib.sha256(file.read_bytes()).hexdigest(), file.parent.name + file.name, "an artifact is not its digest")
                self.assert_no_work_left()
                self.assert_database_whole()
                self.clean()
                self.assertEqual([name for name in self.objects() if "/runs/" in name], [], "the clean-up leaves nothing")
        figure("data_kills_cluster", f"{sum(kills.values())} kills ({dict(kills)}), {repeated} runs repeated an attempt; each result was right, nothing was left")

    def clean(self):
        """No run needs the files of the last one: the next clean-up removes them here and in the bucket."""
        days_ago = time.time() - 8 * 86400  # Objects younger than a day, or files of pods younger than a week, may be in use.
        for file in files_below(self.data):
            os.utime(file, (days_ago, days_ago))
        for words in ("--runs", "--keep", "0"), ("--profile", "lab", "--remote", "--keep-storage", "0B"):
            self.assertEqual((result := self.pipe("clean", *words)).code, 0, result)
        left = [name for name in self.objects() if "/artifacts/" in name or "/runs/" in name]
        self.assertEqual(left, [], "`pipe clean` leaves what nobody needs")


del ClusterTest

if __name__ == "__main__":
    unittest.main()
