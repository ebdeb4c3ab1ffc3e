"""Trains a small network by DistributedDataParallel: each process has its share of the data, and all end with the same weights."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--shards", required=True)
parser.add_argument("--checkpoint", required=True)
arguments = parser.parse_args()

on_gpu = torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
dist.init_process_group("nccl" if on_gpu else "gloo")  # MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are set
rank, world = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
torch.set_num_threads(1)
points = torch.rand(4096, 2)
labels = (points.prod(dim=1, keepdim=True) > 0.2).float()
points, labels = points[rank::world].to(device), labels[rank::world].to(device)

model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
kept = os.path.join(arguments.checkpoint, "state.pt")
first = 0
if os.path.exists(kept):
    state = torch.load(kept)
    model.module.load_state_dict(state["model"])
    first = state["epoch"] + 1
    print("continues at epoch", first, flush=True)

for epoch in range(first, arguments.epochs):
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(points), labels)
    loss.backward()  # adds up the gradients of all processes
    optimizer.step()
    if rank == 0 and epoch % 50 == 49:
        print(f'@pipe {{"metric": "loss", "value": {loss.item()}, "step": {epoch + 1}}}', flush=True)
        torch.save({"model": model.module.state_dict(), "epoch": epoch}, kept + ".new")
        os.replace(kept + ".new", kept)

weights = torch.cat([parameter.detach().flatten().cpu() for parameter in model.parameters()])
print(f"rank {rank} of {world}: weights add up to {weights.sum().item():.6f}", flush=True)
os.makedirs(arguments.shards, exist_ok=True)
torch.save(weights, os.path.join(arguments.shards, f"{rank}.pt"))
if rank == 0:
    torch.save(model.module.state_dict(), arguments.model)
dist.destroy_process_group()
