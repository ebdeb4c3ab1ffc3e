"""Writes pi, the area below 4 / (1 + x^2) from 0 to 1, each process adding up its share of the strips: pi.py FILE."""

import os
import sys

from mpi4py import MPI

world, strips = MPI.COMM_WORLD, 1_000_000
part = sum(4 / (1 + ((i + 0.5) / strips) ** 2) for i in range(world.rank, strips, world.size)) / strips
print(f"rank {world.rank} of {world.size}, on node {os.environ['PIPE_NODE_RANK']}: {part}\n", end="", flush=True)
pi = world.reduce(part)
if world.rank == 0:
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f"{pi:.10f}\n")
