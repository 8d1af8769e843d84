"""What the Python hook costs a batch, within one process: epochs with and without its patches in turn, as one line of JSON.

usage: hook_batches.py WORKERS BATCHES EPOCHS     (with a Python that has torch, under `lacuna run`)

A batch costs the CPU time of the training process while it waits for it, and that of the worker from its first item to the first item
of its next batch, with all their threads. Of each epoch the middle batch counts, as a machine that others use adds to some of them; the
cost is the difference to the epoch beside it without the patches, the middle one of all pairs, and the quartiles say how sure that is.
What an epoch pays once, for workers that begin to record, is told apart from what each batch pays.
"""
import contextlib
import glob
import json
import multiprocessing
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, _utils, dataloader

BATCH_SIZE = 16
WARM_UP = 80  # batches of an epoch until its workers are under way and know, by two times 256 items each, that these are too quick to be recorded
FEATURES = 4096
PATCHED = ((dataloader._BaseDataLoaderIter, "__next__"), (dataloader._BaseDataLoaderIter, "__init__"), (dataloader.DataLoader, "__init__"), (_utils.worker, "_worker_loop"),
           (_utils.fetch._MapDatasetFetcher, "fetch"), (_utils.fetch._MapDatasetFetcher, "__init__"))


class Samples(Dataset):
    """Items that take some tens of microseconds, as decoded ones from memory do."""

    def __init__(self, count):
        self.count = count
        self.source = torch.rand(64, FEATURES)
        self.begun_ns = multiprocessing.RawArray("q", count // BATCH_SIZE)  # CPU time of who makes it, by batch

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index % BATCH_SIZE == 0:
            self.begun_ns[index // BATCH_SIZE] = time.process_time_ns()
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


def middle(values):
    return sorted(values)[len(values) // 2]


def epoch_us(workers, batches):
    """CPU time of the middle batch once the workers are under way, and what everything up to there took."""
    kind = type("Samples", (Samples,), {"__getitem__": Samples.__getitem__})  # the hook patches the class that it meets
    data = kind(BATCH_SIZE * (WARM_UP + batches))
    loader = DataLoader(data, batch_size=BATCH_SIZE, num_workers=workers)
    begin = cpu_us()
    iterator = iter(loader)
    for _ in range(WARM_UP):
        next(iterator)
    started = cpu_us()
    waited = []
    for _ in range(batches - 2 * workers):  # the last ones, made ahead, are left in the queue: nobody ends meanwhile
        before = time.process_time_ns()
        next(iterator)
        waited.append(time.process_time_ns() - before)
    each = middle(waited) / 1e3
    for _ in iterator:
        pass
    if workers:
        made = data.begun_ns[WARM_UP:]
        each += middle([after - before for before, after in zip(made, made[workers:])]) / 1e3
    return each, started - begin - WARM_UP * each


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
