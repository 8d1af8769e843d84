"""What the Python hook costs a batch, within one process: epochs with and without its patches in turn, as one line of JSON.

usage: hook_batches.py WORKERS BATCHES EPOCHS     (with a Python that has torch, under `lacuna run`)

The cost is the difference of the CPU time (training process and workers) of an epoch with the patches and of the one beside it
without; the middle one of all pairs counts, and the quartiles say how sure that is. Wall time says little on a machine that others
use, too.
"""
import contextlib
import json
import resource
import sys

import torch
from torch.utils.data import DataLoader, Dataset, _utils, dataloader

BATCH_SIZE = 16
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
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) * 1e6


def epoch_us(workers, batches):
    """CPU time of an epoch, without what starting and ending its workers takes: that is the same in all of them."""
    kind = type("Samples", (Samples,), {"__getitem__": Samples.__getitem__})  # the hook patches the class that it meets
    loader = DataLoader(kind(BATCH_SIZE * batches), batch_size=BATCH_SIZE, num_workers=workers)
    before = cpu_us()
    for _ in loader:
        pass
    return (cpu_us() - before) / batches


def main():
    workers, batches, epochs = (int(argument) for argument in sys.argv[1:4])
    torch.set_num_threads(1)
    plain, cost = [], []
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
            plain.append(bare)
            cost.append(patched - bare)
    plain.sort()
    cost.sort()
    middle = len(cost) // 2
    print(json.dumps({"batch_us": plain[middle], "hook_us": cost[middle], "low_us": cost[len(cost) // 4], "high_us": cost[-1 - len(cost) // 4]}))


if __name__ == "__main__":
    main()
