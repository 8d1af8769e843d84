"""A DataLoader: worker processes that make batches in order, two each in advance, or none of them. The trace shows only who waits."""

PREFETCH = 2


class DataLoader:
    def __init__(self, machine, workers, fetch_ns, jitter=0.01):
        self.m, self.workers, self.fetch_ns, self.jitter = machine, workers, fetch_ns, jitter
        self.ahead = workers * PREFETCH
        self.ready_ns, self.taken_ns = [], []

    def _fetch(self, batch):
        return self.m.about(self.fetch_ns, self.jitter, f"fetch {batch}")

    def _ready(self, batch):
        """When a worker has it: each begins when it was asked and has done the one before."""
        while len(self.ready_ns) <= batch:
            b = len(self.ready_ns)
            asked_ns = self.fetch_ns * b // self.workers if b < self.workers else 0
            if b >= self.ahead:
                asked_ns = self.taken_ns[b - self.ahead]
            free_ns = self.ready_ns[b - self.workers] if b >= self.workers else 0
            self.ready_ns.append(max(asked_ns, free_ns) + self._fetch(b))
        return self.ready_ns[batch]

    def take(self, batch, in_process=None):
        """__next__, with its row."""
        m = self.m
        m.seen.add("loader")
        kind = "_MultiProcessingDataLoaderIter" if self.workers else "_SingleProcessDataLoaderIter"
        with m.frame("torch/utils/data/dataloader.py(732): __next__"), m.range(f"enumerate(DataLoader)#{kind}.__next__"):
            if self.workers:
                m.go(20_000, "data_wait")
                m.go_to(self._ready(batch) + 40_000, "data_wait")
                self.taken_ns.append(m.now)
                m.go(60_000, "data_wait")
            elif in_process:
                in_process(self._fetch(batch))
            else:
                m.go(self._fetch(batch), "data_wait")

    def take_end(self):
        """The last __next__ finds nothing, and joins the workers."""
        m = self.m
        kind = "_MultiProcessingDataLoaderIter" if self.workers else "_SingleProcessDataLoaderIter"
        with m.range(f"enumerate(DataLoader)#{kind}.__next__"):
            m.go(90_000, "data_wait")
