"""What kinds of several ranks share."""
import causes
from training import MS
from truth import Kind


def draw_ranks_loop(dice, seed, **given):
    loop = causes.healthy(dice, seed, family="transformer", names="profiler", steps=dice.randint(4, 7), layers=dice.randint(3, 5))
    return loop.but(reads=dice.choice(["none", "late", "late"]), compute_ns=max(loop.compute_ns, 40 * MS), op_ns=9_000,
                    fetch_ns=loop.workers * 2 * MS).but(**given)


class RanksKind(Kind):
    long_steps = 8

    def ranks(self, loop):
        return loop.kind["ranks"]
