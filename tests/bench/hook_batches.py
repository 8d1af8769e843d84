"""What the Python hook costs a batch: two loaders in one process, one with its patches and one without, take turns, as one line of JSON.

usage: hook_batches.py WORKERS PAIRS ROUNDS     (with a Python that has torch, under `lacuna run`)

A block of 8 batches costs the CPU time of the training process while it takes them, and that of the loader's workers, with all their
threads, until these sleep again behind full queues. Beside each block stands one of the other loader, a moment before or after, in turn:
hook_us is the middle of all such differences, a batch, sure_from_us to sure_to_us its 95 % interval; half of the differences lie between
low_us and high_us. In each round the loaders are made
anew; what they pay once, for workers that begin to record, is told apart from what each batch pays.
"""
import contextlib
import glob
import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, _utils, dataloader, default_collate

BATCH_SIZE = 16
BLOCK = 8  # batches: what a process is woken for, and when, evens out
WARM_UP = 80  # batches of a loader until its workers are under way and know, by two times 256 items each, that these are too quick to be recorded
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


def collate(items):
    """A batch that is handed over by value: tensors, which go by sockets, take 3 to 5 ms a batch here, with more noise than the hook costs."""
    rows, labels = default_collate(items)
    return rows.mean(0)[:64].tolist(), labels.tolist()


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


def middle(values):
    return sorted(values)[len(values) // 2]


def tasks_of(pids, name):
    """This file of each thread of the processes, whose last fields no name of a program can shift."""
    texts = []
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/{name}"):
            with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
                texts.append(file.read().rpartition(")")[2])
    return texts


class Side:
    """A loader under way, with the patches or without."""

    def __init__(self, workers, batches, is_patched):
        self.is_patched = is_patched
        kind = type("Samples", (Samples,), {"__getitem__": Samples.__getitem__})  # the hook patches the class that it meets
        self.blocks_us = []
        began_ns = time.process_time_ns()
        with self.patches():
            self.batches = iter(DataLoader(kind(BATCH_SIZE * batches), batch_size=BATCH_SIZE, num_workers=workers, collate_fn=collate))
        self.workers = [worker.pid for worker in getattr(self.batches, "_workers", ())]
        self.made_us = (time.process_time_ns() - began_ns) / 1e3
        self.warm_up_us = self.take(WARM_UP) + self.made_us + (self.workers_us if workers else 0.0)

    def patches(self):
        return contextlib.nullcontext() if self.is_patched else without_patches()

    def workers_cpu_us(self):
        """What the workers have computed so far, once they all sleep: one that waits for a core does not."""
        while True:
            idle = sum(all(text.split()[0] == "S" for text in tasks_of(self.workers, "stat")) and time.sleep(0.0005) is None for _ in range(3))
            if idle == 3:
                return sum(int(text.split()[0]) for text in tasks_of(self.workers, "schedstat")) / 1e3

    def take(self, count):
        """CPU time of so many batches: of this process, and of the workers since they slept last."""
        with self.patches():
            began_ns = time.process_time_ns()
            for _ in range(count):
                next(self.batches)
            used_us = (time.process_time_ns() - began_ns) / 1e3
        if not self.workers:
            return used_us
        before_us, self.workers_us = getattr(self, "workers_us", None), self.workers_cpu_us()
        return used_us + (self.workers_us - before_us if before_us is not None else 0.0)

    def block(self):
        self.blocks_us.append(self.take(BLOCK) / BLOCK)

    def start_us(self):
        """What it took before its blocks, beyond what so many batches take."""
        return self.warm_up_us - (WARM_UP + 2 * len(self.workers)) * middle(self.blocks_us)


def main():
    workers, pairs, rounds = (int(argument) for argument in sys.argv[1:4])
    torch.set_num_threads(1)
    plain, cost, start = [], [], []
    for number in range(rounds + 1):
        sides = [Side(workers, WARM_UP + (pairs + 1) * BLOCK, bool(turn)) for turn in range(2)]  # the bare one before a patch has run in this round
        for pair in range(pairs if number > 0 else 2):  # the first round warms up
            for side in sides[::-1 if pair % 2 else 1]:
                side.block()
        if number > 0:
            bare, patched = sides
            plain += bare.blocks_us
            cost += [with_hook - without for with_hook, without in zip(patched.blocks_us, bare.blocks_us)]
            start.append(patched.start_us() - bare.start_us())
        del sides
    cost.sort()
    beside = min(round(0.98 * len(cost) ** 0.5), (len(cost) - 1) // 2)  # of the ranks beside the middle one: 19 of 20 middles lie between
    print(json.dumps({"batch_us": middle(plain), "hook_us": middle(cost), "sure_from_us": cost[len(cost) // 2 - beside], "sure_to_us": cost[len(cost) // 2 + beside],
                      "low_us": cost[len(cost) // 4], "high_us": cost[-1 - len(cost) // 4], "start_us": middle(start)}))


if __name__ == "__main__":
    main()
