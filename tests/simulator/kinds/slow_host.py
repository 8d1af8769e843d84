"""A host that takes many times as long as it should."""
import causes
from truth import Kind


class SlowHost(Kind):
    name = "slow-host"
    about = "every operator takes the host ten to thirty times as long as it should: a debugger, a debug build, a starved core"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, steps=dice.randint(3, 7), layers=3, op_ns=dice.randint(7, 14) * 1000, python_ns=60_000,
                              slow_host=dice.uniform(10, 30), reads=dice.choice(["late", "none", "last"]))
        kernels = loop.layers * (20 if loop.family == "transformer" else 14)
        host_ns = kernels * loop.op_ns * loop.slow_host
        return loop.but(compute_ns=int(host_ns * dice.uniform(0.1, 0.6)), fetch_ns=int(host_ns * 0.1 * loop.workers), copy_ns=60_000)


KINDS = (SlowHost(),)
