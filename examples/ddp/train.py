#!/usr/bin/env python3
"""Distributed digit classifier that survives the loss of a node.

One process is one rank. Rank, world size and rendezvous address are read from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which
Berth sets for each task (and torchrun for its workers); where they are missing they are made from SLURM_* as on stock Slurm.
Each epoch ends with a checkpoint, written beside and renamed, so that a killed run resumes from the newest whole one.

Data: optical recognition of handwritten digits, E. Alpaydin and C. Kaynak, UCI (CC BY 4.0): 1,797 images of 8 x 8 pixels.
"""
import argparse
import gzip
import os
import subprocess
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.dirname(os.path.abspath(__file__))


def rendezvous():
    """Fill the variables torch.distributed reads, where nobody has set them."""
    env = os.environ
    env.setdefault("RANK", env.get("SLURM_PROCID", "0"))
    env.setdefault("WORLD_SIZE", env.get("SLURM_NTASKS", "1"))
    if "MASTER_ADDR" not in env:
        names = subprocess.check_output(["scontrol", "show", "hostnames", env.get("SLURM_JOB_NODELIST", "localhost")], text=True)
        env["MASTER_ADDR"] = names.split()[0]
    env.setdefault("MASTER_PORT", str(20000 + int(env.get("SLURM_JOB_ID", "0")) % 20000))


def load(rank, world):
    with gzip.open(os.path.join(HERE, "digits.csv.gz"), "rt") as f:
        rows = np.loadtxt(f, delimiter=",", dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(rows))
    x = torch.from_numpy(rows[order, :64] / 16.0)
    y = torch.from_numpy(rows[order, 64].astype(np.int64))
    train = slice(rank, 1500, world)
    return x[train], y[train], x[1500:], y[1500:]


def save(path, model, optimizer, epoch):
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".new")
    os.replace(path + ".new", path)


def accuracy_of(model, x, y):
    with torch.no_grad():
        return (model.module(x).argmax(1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--epoch-seconds", type=float, default=0.0, help="stretch each epoch to this, to have time to watch")
    args = parser.parse_args()

    rendezvous()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y, x_test, y_test = load(rank, world)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    start = 0
    if os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    if rank == 0:
        print(f"{'resuming at' if start else 'starting at'} epoch {start}: {world} ranks, restart {os.environ.get('SLURM_RESTART_COUNT', '0')}, "
              f"nodes {os.environ.get('SLURM_JOB_NODELIST', '?')}, GPUs here {os.environ.get('CUDA_VISIBLE_DEVICES', 'none')}", flush=True)

    for epoch in range(start, args.epochs):
        began = time.time()
        for batch in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
        time.sleep(max(0.0, args.epoch_seconds - (time.time() - began)))
        if rank == 0:
            accuracy = accuracy_of(model, x_test, y_test)
            save(args.checkpoint, model, optimizer, epoch)
            print(f"epoch {epoch:2d}  loss {loss.item():.3f}  accuracy {accuracy:.1%}  (checkpoint saved)", flush=True)
        dist.barrier()
    if rank == 0:
        print(f"done: accuracy {accuracy_of(model, x_test, y_test):.1%}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
