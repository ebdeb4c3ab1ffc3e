"""`pipe clean --remote` empties a bucket again and again while drivers of other machines use it: it removes nothing that one of them needs. A machine is
simulated by a state folder, and a day by DAY seconds: what is as old in the bucket gets the time of a week ago."""

import collections
import json
import os
import threading
import time
import unittest

from support_chaos import NOWHERE, ChaosTest, figure, scaled, wait_until

from support import files_below
from support_s3 import S3Bucket, needs_s3  # beside support.py

DAY, WEEK = 15, 7 * 24 * 3600


@needs_s3
class CleanBesideDrivers(S3Bucket, ChaosTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def make_days_pass(self, seconds: float = DAY):
        """Makes a week old what is older than these seconds in the bucket. The leases of drivers, which they renew, keep their times."""
        now = time.time()
        for file in files_below(self.data):
            if file.name.startswith(".rclone_temp_") or "leases" in file.parts:
                continue
            try:
                if seconds < now - file.stat().st_mtime < WEEK:
                    os.utime(file, (now - WEEK - 1,) * 2)
            except FileNotFoundError:
                pass  # A cleaning has removed it.

    def test_nothing_that_a_driver_needs_is_removed(self):
        self.pipeline({
            "make": {"command": "echo ${params.n} > ${outputs.file}; mkdir ${outputs.folder}; echo 1 > ${outputs.folder}/1", "outputs": ["file", "folder"]},
            "wait": {"command": f"sleep $(({DAY} + ${{params.wait}})); cat ${{inputs.file}} > ${{outputs.file}}", "inputs": {"file": "make.file"}, "outputs": ["file"],
                     "parameters": {"wait": 0}, "cache": False},
            "end": {"command": "cat ${inputs.file} ${inputs.folder}/1 > ${outputs.text}", "inputs": {"file": "wait.file", "folder": "make.folder"}, "outputs": ["text"]},
        }, parameters={"n": 0})
        count = scaled(50, at_least=4)
        stop, cleanings, removed, kept, wrong = threading.Event(), 0, collections.Counter(), [], []

        def clean_again_and_again():
            nonlocal cleanings
            while not stop.is_set():
                self.make_days_pass()
                result = self.pipe("clean", "--profile", "lab", "--remote", "--keep-storage", "0B", "--output", "json", PIPE_HOME=str(self.folder / "cleaner"))
                if result.code != 0:
                    wrong.append(repr(result))
                    return
                cleanings += 1
                answer = json.loads(result.out)
                kept.extend(line for line in answer["kept"] if "that a run needs" in line)
                for item in answer["removed"]:
                    removed[item["kind"]] += int(item["name"].split()[0])

        def started(i: int) -> tuple:
            """Returns the number of a machine, its state folder and its run. Every third machine has the same work."""
            home = str(self.folder / f"machine{i}")
            words = ("-p", f"n={i // 3}", "-p", f"wait.wait={i % 10}")
            return i, home, self.start("run", "pipeline.yaml", "-o", self.orchestrator, "--output", "json", *words, PIPE_HOME=home)

        # The bucket has old results of `make`: the first half of the machines reuses them, the cleaning removes them under those, and the others come meanwhile.
        for n in range((count + 2) // 3):
            self.run_pipe("-p", f"n={n}", "-p", f"wait.wait=-{DAY}")
        self.make_days_pass(0)
        runs = [started(i) for i in range(count // 2)]
        wait_until(lambda: len([name for name in self.objects() if "/leases/" in name]) == count // 2, "the leases of the first half")
        cleaner = threading.Thread(target=clean_again_and_again)
        cleaner.start()
        try:
            for i in range(count // 2, count):
                runs.append(started(i))
                time.sleep(0.3)
            statuses = collections.Counter()
            for i, home, run in runs:
                result = self.finish(run)
                self.assertEqual(result.code, 0, result)
                statuses.update(result.steps().values())
                self.assertEqual([event["text"] for event in result.events("notice") if self.bucket in event["text"]], [])
                text = self.pipe("artifacts", "latest", "end.text", "--copy", f"copy{i}", PIPE_HOME=home)
                self.assertEqual(text.code, 0, text)
                self.assertEqual((self.folder / f"copy{i}").read_text(), f"{i // 3}\n1\n")
        finally:
            stop.set()
            cleaner.join()
        self.assertEqual(wrong, [])
        self.assertGreater(sum(removed.values()), 0, "the cleanings have removed something")
        self.assertTrue(kept, "a cleaning has found artifacts that a run needs")
        self.assertEqual([name for name in self.objects() if "/leases/" in name], [])
        figure("clean_beside_drivers", f"{cleanings} cleanings beside {count} drivers removed {dict(removed)}, and found that {kept[0]}; each run was right ({dict(statuses)})")


if __name__ == "__main__":
    unittest.main()
