"""Gradients that are filled with zeros."""
import causes
from truth import Kind


class ZeroGrad(Kind):
    name = "zero-grad"
    about = "gradients are filled with zeros and added to, one parameter at a time"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, layers=dice.randint(5, 9), op_ns=dice.randint(14, 26) * 1000, reads="none", python_ns=50_000,
                              copy_ns=60_000, family="transformer")
        host_ns = loop.layers * 20 * (loop.op_ns + 5_300)
        return loop.but(zeroed=dice.random() < 0.8, compute_ns=host_ns, fetch_ns=host_ns * loop.workers // 2)


KINDS = (ZeroGrad(),)
