"""Ends with an error unless all processes have the same weights."""

import pathlib
import sys

import torch

shards = sorted(pathlib.Path(sys.argv[1]).glob("*/*.pt"))
first = torch.load(shards[0])
for shard in shards[1:]:
    if not torch.equal(torch.load(shard), first):
        sys.exit(f"{shard} differs from {shards[0]}")
print(len(shards), "processes have the same weights")
