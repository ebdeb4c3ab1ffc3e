"""Gangs, which are the ranks of a step with nodes: two gangs that want the same GPUs do not deadlock, a stopped rank is named in time, and a gang that works in
silence is not ended."""

import itertools
import json
import os
import random
import signal
import time
import unittest

from support_chaos import REPEAT, ChaosTest, Watched, figure, in_words, rounds, wait_until
from gpu_local_test import UUIDS, GpuTest

# Waits for the other ranks in each turn, and prints a line then. A rank that is stopped holds up all.
TURNS = """
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
main = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(main)
    peers = [server.accept()[0] for _ in range(world - 1)]
else:
    for _ in range(600):
        try:
            peer = socket.create_connection(main)
            break
        except OSError:
            time.sleep(0.02)
print("pid", os.getpid(), flush=True)
for turn in range(40):
    for one in peers if rank == 0 else [peer]:
        one.sendall(b"x")
        if not one.recv(1):
            sys.exit("a peer is gone")
    print("turn", turn, flush=True)
    if os.environ["PIPE_ATTEMPT"] == "1":
        time.sleep(0.1)
"""


class TwoGangs(ChaosTest, GpuTest):
    """Two drivers, each with a step of three nodes with a GPU each, on four GPUs of a stand-in whose locks are real."""

    def test_two_gangs_of_three_on_four_gpus_never_wait_for_each_other(self):
        hold = {"command": ["bash", "step.sh", "0.3"], "code": ["step.sh"], "environment": {"PROBES": str(self.probes), "RECORD": str(self.record)},
                "nodes": 3, "settings": {"resources": {"gpu_count": 1}}}
        self.pipeline({"train": hold})
        done = 0
        for number, chance in rounds(20):
            self.record.write_text("")
            runs = []
            for _ in range(2):
                runs.append(self.start("run", "pipeline.yaml", "-o", "local", "--no-cache", "--output", "json"))
                time.sleep(chance.uniform(0, 0.4))
            for run in runs:
                self.assertEqual(self.finish(run).steps(), {"train": "succeeded"}, f"round {number}: {REPEAT}")
            lines = [line.split() for line in self.record.read_text().splitlines()]
            self.assertNotIn("twice", {line[0] for line in lines})
            spans: dict[str, list[float]] = {}
            for _, moment, who, _ in lines:
                spans.setdefault(who, []).append(float(moment))
            self.assertEqual([len(moments) for moments in spans.values()], [6, 6], "three began and three ended, of each")
            for one, other in itertools.permutations(spans.values(), 2):
                self.assertTrue(max(one) <= min(other) or max(other) <= min(one), f"round {number}: both had some of the four at once: {lines}")
            done += 1
        figure("gang schedules", f"{done} schedules of two gangs of three on {len(UUIDS)} GPUs: each had its three at once, and both ended")


class Stalls(ChaosTest):
    orchestrator = "local"
    after = 2.0  # stalled_after in seconds

    def watched(self) -> Watched:
        return Watched(self, "run", "pipeline.yaml", "-o", "local", "--no-cache", "--output", "json")

    def test_a_stopped_rank_is_named_in_time_and_all_begin_again(self):
        self.write("train.py", TURNS)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3, "stalled_after": f"{self.after:g}s", "retry": {"max_retries": 1, "stalled": True, "delay": "0s"}}})
        late = []
        for number, chance in rounds(10):
            at = f"round {number}: {REPEAT} CHAOS_ONLY={number}"
            self.fresh_state()  # pids() then reads the log of this round's run.
            run = self.watched()
            pids = wait_until(self.pids, "three ranks")
            time.sleep(chance.uniform(0, 2))
            rank = chance.randrange(3)
            os.kill(pids[rank], signal.SIGSTOP)
            stopped = time.monotonic() - run.began
            result = run.end()
            self.assertEqual(result.steps(), {"train": "succeeded"}, f"{at}\n{result}")
            named = next(event for event in run.events if event["event"] == "step_retried" or "is stopped" in json.dumps(event))
            self.assertIn(f"rank {rank} is stopped", json.dumps(named), at)
            late.append(named["after"] - stopped - self.after)
        figure("stopped ranks", f"{len(late)} ranks were stopped by SIGSTOP and named, `stalled_after` and {in_words(late)} later; the attempt after it succeeded each time")

    def test_a_gang_that_works_in_silence_is_left_alone(self):
        """One rank computes, one writes, and one does both by turns. None prints anything for three times `stalled_after`."""
        self.write("train.py", """
import os, time
rank, end = int(os.environ["RANK"]), time.monotonic() + 3 * float(os.environ["AFTER"])
with open(os.environ["PIPE_SCRATCH"] + f"/written-{rank}", "wb", buffering=0) as file:
    while time.monotonic() < end:
        if rank != 1:
            sum(range(20_000))
        if rank != 0:
            file.seek(0)
            file.write(bytes(1 << 20))
            time.sleep(0.1)
""")
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3, "stalled_after": f"{self.after:g}s", "environment": {"AFTER": f"{self.after:g}"},
                                 "retry": {"max_retries": 0, "stalled": True}}})
        done = 0
        for number, _ in rounds(20):
            result = self.watched().end()
            self.assertEqual(result.steps(), {"train": "succeeded"}, f"round {number}: {REPEAT}\n{result}")
            self.assertNotIn("stalled", result.text)
            done += 1
        figure("silent gangs", f"{done} gangs of three worked in silence for three times `stalled_after`: none was ended, or named")

    def pids(self) -> list[int]:
        """Returns the process ids by rank, once all three have printed theirs; before, nothing."""
        lines = [line.split() for line in self.pipe("logs", "latest", "train").out.splitlines() if " pid " in line]
        return [pid for _, pid in sorted((line[0], int(line[2])) for line in lines)] if len(lines) == 3 else []


del GpuTest

if __name__ == "__main__":
    unittest.main()
