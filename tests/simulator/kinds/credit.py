"""Free batches: what workers made while the first step took seconds."""
import causes
from training import MS, Runner
from truth import Kind


class CreditRunner(Runner):
    """The first step takes seconds: modules are loaded and algorithms tried while the workers fill their queues."""

    def take_batch(self, step):
        super().take_batch(step)
        if step == 0 and self.record:
            cold_ns = self.loop.kind["cold_ns"]
            for i in range(12):
                self.m.load_module(cold_ns // 30)
                self.m.go(cold_ns // 20)


class Credit(Kind):
    name = "prefetch-credit"
    about = "batches that workers made in a long cold start are free, then the waits come in the workers' period"
    runner = CreditRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, warm=0, layers=2, names="loader", reads=dice.choice(["last", "none"]), read_python_ns=20_000)
        workers = dice.randint(2, 5)
        fetch_ns = int(loop.compute_ns * workers * dice.uniform(1.8, 3.5))
        return loop.but(workers=workers, fetch_ns=fetch_ns, steps=2 * workers + 2 + workers * dice.randint(2, 4),
                        kind={"cold_ns": fetch_ns * 3 + dice.randint(500, 3000) * MS})


KINDS = (Credit(),)
