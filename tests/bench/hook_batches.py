"""What the Python hook costs a batch, within one process: epochs with and without its patches in turn, as one line of JSON.

usage: hook_batches.py WORKERS BATCHES EPOCHS     (with a Python that has torch, under `lacuna run`)

The cost is the difference of the CPU time (training process and workers) of an epoch with the patches and of the one beside it
without; the middle one of all pairs counts, and the quartiles say how sure that is. Wall time says little on a machine that others
use, too. What an epoch pays once, for workers that begin to record, is told apart from what each batch pays.
"""
import contextlib
import glob
import json
import multiprocessing
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset, _utils, dataloader

BATCH_SIZE = 16
WARM_UP = 20  # batches of an epoch until its workers are under way
FEATURES = 4096
PATCHED = ((dataloader._BaseDataLoaderIter, "__next__"), (dataloader._BaseDataLoaderIter, "__init__"), (dataloader.DataLoader, "__init__"), (_utils.worker, "_worker_loop"),
           (_utils.fetch._MapDatasetFetcher, "fetch"), (_utils.fetch._MapDatasetFetcher, "__init__"))


class Samples(Dataset):
    """Items that take some tens of microseconds, as decoded ones from memory do."""

    def __init__(self, count):
        self.count = count
        self.source = torch.rand(64, FEATURES)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = self.source[index % 64]
        return (row - row.mean()) / row.std(), index % 10


@contextlib.contextmanager
def without_patches():
    """The functions as PyTorch made them."""
    patches = [(holder, name, getattr(holder, name)) for holder, name in PATCHED]
    for holder, name, patch in patches:
        setattr(holder, name, patch.__wrapped__)
    try:
        yield
    finally:
        for holder, name, patch in patches:
            setattr(holder, name, patch)


def cpu_us():
    """What this process and its workers, which live, have computed so far."""
    used_ns = 0
    for pid in [os.getpid(), *(worker.pid for worker in multiprocessing.active_children())]:
        for task in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            with contextlib.suppress(OSError), open(task, encoding="ascii") as file:
                used_ns += int(file.read().split()[0])
    return used_ns / 1e3


def epoch_us(workers, batches):
    """CPU time of a batch once the workers are under way, and what everything up to there took."""
    kind = type("Samples", (Samples,), {"__getitem__": Samples.__getitem__})  # the hook patches the class that it meets
    loader = DataLoader(kind(BATCH_SIZE * (WARM_UP + batches)), batch_size=BATCH_SIZE, num_workers=workers)
    begin = cpu_us()
    iterator = iter(loader)
    for _ in range(WARM_UP):
        next(iterator)
    started = cpu_us()
    for _ in range(batches - 2 * workers):  # the last ones, made ahead, are left in the queue: nobody ends meanwhile
        next(iterator)
    each = (cpu_us() - started) / (batches - 2 * workers)
    for _ in iterator:
        pass
    return each, started - begin - WARM_UP * each


def middle(values):
    return sorted(values)[len(values) // 2]


def main():
    workers, batches, epochs = (int(argument) for argument in sys.argv[1:4])
    torch.set_num_threads(1)
    plain, cost, start = [], [], []
    for epoch in range(epochs + 1):
        if epoch % 2:
            patched = epoch_us(workers, batches)
            with without_patches():
                bare = epoch_us(workers, batches)
        else:
            with without_patches():
                bare = epoch_us(workers, batches)
            patched = epoch_us(workers, batches)
        if epoch > 0:  # the first one warms up
            plain.append(bare[0])
            cost.append(patched[0] - bare[0])
            start.append(patched[1] - bare[1])
    cost.sort()
    print(json.dumps({"batch_us": middle(plain), "hook_us": middle(cost), "low_us": cost[len(cost) // 4], "high_us": cost[-1 - len(cost) // 4],
                      "start_us": middle(start)}))


if __name__ == "__main__":
    main()
