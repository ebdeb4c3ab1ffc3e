"""Ranks, agents, nodes and drivers of a step with nodes are killed: each run ends with the weights of an undisturbed one, bit for bit, and nothing is left."""

import os
import random
import signal
import subprocess
import time
import unittest

from support_chaos import REPEAT, PipeTest, docker, figure, rounds, wait_until

# Trains four numbers in each rank; rank 0 adds them up in the order of the ranks, and keeps the state. Whoever loses the others ends.
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


class GangKills(PipeTest):
    kinds = ("rank", "driver")

    def write_pipeline(self):
        self.write("train.py", TRAIN)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "processes": 2, "restarts": 1}, "checkpoint": True, "outputs": ["model"],
                                 "retry": {"max_retries": 3, "max_infrastructure_retries": 3, "delay": "0s"}, "timeout": "2m"}})

    def ranks(self) -> list[int]:
        """The processes of the ranks, as this machine numbers them: in containers too."""
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{number}/environ", "rb") as variables, open(f"/proc/{number}/cmdline", "rb") as words:
                    is_rank = b"python3\0train.py" in words.read() and f"PIPE_PIPELINE={self.mark}".encode() in variables.read()
            except OSError:
                continue
            if is_rank:
                found.append(int(number))
        return found

    def pipeline(self, steps, *words, **top):
        return super().pipeline(steps, *words, name=self.mark, **top)

    def victims(self, kind: str) -> list:
        return self.ranks()

    def kill(self, kind: str, run: subprocess.Popen, chance: random.Random):
        if kind == "driver":
            run.kill()
        elif found := self.victims(kind):
            try:
                self.end(kind, chance.choice(found))
            except (ProcessLookupError, subprocess.CalledProcessError):
                pass  # It has just ended.

    def end(self, kind: str, victim):
        os.kill(victim, signal.SIGKILL)

    def finish_run(self, run: subprocess.Popen):
        out, err = run.communicate(timeout=120)
        while run.returncode == -signal.SIGKILL:
            run = self.start("resume", "--output", "json")
            out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, f"{REPEAT}\n{out}{err}")

    def test_each_run_ends_with_the_weights_of_an_undisturbed_one(self):
        self.write_pipeline()
        words = ("run", "pipeline.yaml", "-o", self.orchestrator, "--output", "json", "--no-cache")
        self.assertEqual(self.pipe(*words).code, 0)
        whole = self.artifact("train.model")
        killed = dict.fromkeys(self.kinds, 0)
        for number, chance in rounds(100, at_least=len(self.kinds)):
            kind = self.kinds[number % len(self.kinds)]
            run = self.start(*words)
            wait_until(lambda: run.poll() is not None or self.ranks(), "the ranks")
            time.sleep(chance.uniform(0, 1.6))
            self.kill(kind, run, chance)
            self.finish_run(run)
            killed[kind] += 1
            self.assertEqual(self.artifact("train.model"), whole, f"round {number}, {kind}: {REPEAT} CHAOS_ONLY={number}")
            self.assertEqual(self.ranks(), [], "no process is left")
        figure(f"gang kills, {self.orchestrator}", ", ".join(f"{count} of a {kind}" for kind, count in killed.items()) + ": the weights of an undisturbed run each time")


class GangKillsLocally(GangKills):
    orchestrator = "local"


class GangKillsInContainers(GangKills):
    orchestrator = "docker"
    kinds = ("rank", "agent", "node", "driver")

    def victims(self, kind: str) -> list:
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
            os.kill(victim, signal.SIGKILL)


del GangKills

if __name__ == "__main__":
    unittest.main()
