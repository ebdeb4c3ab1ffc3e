"""Ranks, agents, nodes and drivers of a step with nodes are killed: each run ends with the weights of an undisturbed one, bit for bit, and nothing is left."""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from support_chaos import REPEAT, ChaosTest, docker, figure, rounds, wait_until  # puts tests/e2e on the path, for the next line
from gpu_local_test import UUIDS, GpuTest

# Trains one number. In each epoch rank 0 adds up the parts of all ranks in their order, and keeps the state. A rank that loses its connection ends.
TRAIN = """
import json, os, socket, struct, time
rank, world, kept = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["PIPE_CHECKPOINT"] + "/state.json"
main = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

def read(peer, count):
    got = b""
    while len(got) < count:
        more = peer.recv(count - len(got))
        if not more:
            raise SystemExit(f"rank {rank} lost its peer")
        got += more
    return got

if rank == 0:
    server = socket.create_server(main)
    found = dict((struct.unpack("i", read(peer, 4))[0], peer) for peer in (server.accept()[0] for _ in range(world - 1)))
    peers = [found[each] for each in sorted(found)]
else:
    for _ in range(400):
        try:
            peer = socket.create_connection(main)
            break
        except OSError:
            time.sleep(0.02)
    peer.sendall(struct.pack("i", rank))

state = {"epoch": 0, "weights": 0.5}
if rank == 0 and os.path.exists(kept):
    state = json.load(open(kept))
if rank == 0:
    for one in peers:
        one.sendall(struct.pack("id", state["epoch"], state["weights"]))
else:
    state["epoch"], state["weights"] = struct.unpack("id", read(peer, struct.calcsize("id")))
print("begins", state["epoch"], flush=True)
for epoch in range(state["epoch"], 40):
    mine = state["weights"] / (rank + 3.7) + epoch * 0.013
    if rank == 0:
        parts = [mine] + [struct.unpack("d", read(one, 8))[0] for one in peers]
        total = 0.0
        for part in parts:
            total += part
        for one in peers:
            one.sendall(struct.pack("d", total))
    else:
        peer.sendall(struct.pack("d", mine))
        total, = struct.unpack("d", read(peer, 8))
    state = {"epoch": epoch + 1, "weights": total / world}
    if rank == 0:
        with open(kept + ".new", "w") as file:
            json.dump(state, file)
        os.replace(kept + ".new", kept)
    time.sleep(0.03)
if rank == 0:
    open(os.environ["PIPE_OUTPUT_MODEL"], "w").write(state["weights"].hex())
"""


class GangKills(ChaosTest):
    """Each round kills a rank, a node, an agent (it starts a node's ranks) or the driver at a random time; the driver also before the ranks begin."""

    kinds = ("rank", "node", "agent", "driver")
    resources: dict = {}

    def write_pipeline(self):
        self.write("train.py", TRAIN)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "processes": 2, "restarts": 1}, "checkpoint": True, "outputs": ["model"],
                                 "retry": {"max_retries": 3, "max_infrastructure_retries": 3, "delay": "0s"}, "timeout": "2m", **self.resources}})

    def ranks(self, *variables: str) -> list[int]:
        """Returns the process ids on this machine of the ranks that have these variables, also of those in containers."""
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words, known = (pathlib.Path(f"/proc/{number}/{name}").read_bytes().split(b"\0") for name in ("cmdline", "environ"))
                if words[:2] == [b"python3", b"train.py"] and {f"PIPE_PIPELINE={self.mark}".encode(), *map(str.encode, variables)} <= set(known):
                    found.append(int(number))
        return found

    def pipeline(self, steps, *words, **top):
        return super().pipeline(steps, *words, name=self.mark, **top)

    def kill(self, kind: str, run: subprocess.Popen, chance: random.Random) -> bool:
        """Kills a random victim of a kind. Returns false if there was none."""
        if kind == "driver":
            run.kill()
            return run.wait() == -signal.SIGKILL
        found = self.victims(kind, run)
        if not found:
            return False
        try:
            self.end(kind, chance.choice(found))
        except (ProcessLookupError, subprocess.CalledProcessError):
            return False  # The victim has ended by itself.
        return True

    def end(self, kind: str, victim):
        for process in victim if isinstance(victim, list) else [victim]:
            os.kill(process, signal.SIGKILL)

    def finish_run(self, run: subprocess.Popen):
        """Waits for the run, and continues it as often as its driver was killed."""
        out, err = run.communicate(timeout=300)
        while run.returncode == -signal.SIGKILL:
            # A driver that was killed before it had recorded its run has nothing to resume.
            again = ("resume",) if self.has_run() else self.words
            run = self.start(*again, "--output", "json")
            out, err = run.communicate(timeout=300)
        self.assertEqual(run.returncode, 0, f"{REPEAT}\n{out}{err}")

    def has_run(self) -> bool:
        """Returns whether the latest run has not ended."""
        runs = json.loads(self.pipe("runs", "--output", "json").out)["runs"]
        return bool(runs) and runs[0]["status"] not in ("succeeded", "failed")

    def assert_all_is_gone(self, at: str):
        self.assertEqual(self.ranks(), [], f"{at}: a process is left")
        self.assert_no_work_left()

    def test_each_run_ends_with_the_weights_of_an_undisturbed_one(self):
        self.write_pipeline()
        self.words = ("run", "pipeline.yaml", "-o", self.orchestrator, "--no-cache")
        self.assertEqual(self.pipe(*self.words).code, 0)
        whole = self.artifact("train.model")
        killed = dict.fromkeys(self.kinds, 0)
        for number, chance in rounds(104, at_least=len(self.kinds)):  # More than 100, because some kills come too late.
            kind = self.kinds[number % len(self.kinds)]
            run = self.start(*self.words, "--output", "json")
            if kind != "driver":
                wait_until(lambda: run.poll() is not None or self.ranks(), "the ranks")
            time.sleep(chance.uniform(0, 1.2 if kind != "driver" else 2.4))
            killed[kind] += self.kill(kind, run, chance)
            at = f"round {number}, {kind}: {REPEAT} CHAOS_ONLY={number}"
            self.finish_run(run)
            self.assertEqual(self.artifact("train.model"), whole, at)
            self.assert_all_is_gone(at)
        figure(f"gang kills, {self.orchestrator}", f"{sum(killed.values())} kills ({', '.join(f'{count} of a {kind}' for kind, count in killed.items())}): "
                                                   "the weights of an undisturbed run each time, and nothing is left")


class GangKillsLocally(GangKills, GpuTest):
    """The agent of this orchestrator is the process that is the parent of all ranks. Each node has two GPUs of a stand-in, whose locks are real."""

    orchestrator = "local"
    resources = {"settings": {"resources": {"gpu_count": 2}}}

    def victims(self, kind: str, run: subprocess.Popen) -> list:
        if kind == "rank":
            return self.ranks()
        if kind == "node":
            return [found for node in range(2) if (found := self.ranks(f"NODE_RANK={node}"))]
        return [int(child) for child in pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "pipe-reaper\n"]

    def assert_all_is_gone(self, at: str):
        super().assert_all_is_gone(at)
        for uuid in UUIDS:
            with contextlib.suppress(FileNotFoundError), open(self.locks / uuid) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Raises an error if a process holds the lock.


class GangKillsInContainers(GangKills):
    orchestrator = "docker"

    def victims(self, kind: str, run: subprocess.Popen) -> list:
        if kind == "rank":
            return self.ranks()
        containers = docker("ps", "-q", "--filter", f"label=pipe.pipeline={self.mark}").split()
        if kind == "node":
            return containers
        return [int(line.split()[1]) for each in containers for line in docker("top", each).splitlines()[1:] if " ranks --node " in line and " init " not in line]

    def end(self, kind: str, victim):
        if kind == "node":
            docker("kill", victim)
        else:
            super().end(kind, victim)

    def assert_all_is_gone(self, at: str):
        super().assert_all_is_gone(at)
        self.assertEqual(self.containers(), [], at)
        self.assertEqual(docker("network", "ls", "-q", "--filter", f"label=e2e={self.mark}"), "", at)


del GangKills, GpuTest

if __name__ == "__main__":
    unittest.main()
