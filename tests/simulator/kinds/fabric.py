"""Where ranks meet. Each rank is simulated by a thread of its own; one that joins a collective waits for the others, so that
times are those of the slowest whatever thread runs first.
"""
import threading

PATIENCE_S = 120


class Fabric:
    def __init__(self, ranks):
        self.ranks = ranks
        self.condition = threading.Condition()
        self.joined = {}
        self.failed = None

    def meet(self, rank, number, at_ns):
        """When the last of all ranks joined the n-th collective."""
        with self.condition:
            times = self.joined.setdefault(number, {})
            times[rank] = at_ns
            self.condition.notify_all()
            self._until(lambda: len(times) == self.ranks)
            return max(times.values())

    def post(self, key, at_ns):
        """What another rank waits for is there from then on."""
        with self.condition:
            self.joined[key] = at_ns
            self.condition.notify_all()

    def receive(self, key):
        with self.condition:
            self._until(lambda: key in self.joined)
            return self.joined[key]

    def _until(self, holds):
        if not self.condition.wait_for(lambda: self.failed or holds(), PATIENCE_S):
            self.failed = RuntimeError("a rank waits for one that never comes")
        if self.failed:
            raise self.failed


def run_ranks(ranks, simulate):
    """`simulate(rank, fabric)` for each, side by side; their results in order."""
    if ranks == 1:
        return [simulate(0, None)]
    fabric = Fabric(ranks)
    results = [None] * ranks

    def run(rank):
        try:
            results[rank] = simulate(rank, fabric)
        except Exception as problem:  # the others must not wait for this one
            with fabric.condition:
                fabric.failed = fabric.failed or problem
                fabric.condition.notify_all()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if fabric.failed:
        raise fabric.failed
    return results
