"""An ordinary loading loop, to be run with and without the recorder: microseconds a batch, as one line of JSON.

usage: hook_batches.py WORKERS BATCHES        (with a Python that has torch)
"""
import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH_SIZE = 16
FEATURES = 4096


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


def main():
    workers, batches = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    loader = DataLoader(Samples(BATCH_SIZE * batches), batch_size=BATCH_SIZE, num_workers=workers)
    each, before = [], time.perf_counter()
    for _ in loader:
        now = time.perf_counter()
        each.append((now - before) * 1e6)
        before = now
    each = sorted(each[len(each) // 10:])
    print(json.dumps({"batch_us": sum(each) / len(each), "batch_median_us": each[len(each) // 2]}))


if __name__ == "__main__":
    main()
