"""Memory that is asked of the driver each time."""
import causes
from causes import Change
from training import MS, Runner
from truth import Kind


class UncachedRunner(Runner):
    """Every result is allocated by the driver; what the backward pass has used is released."""

    def launch_in(self, name, kernel, ns):
        m, kind = self.m, self.loop.kind
        if kind["uncached"]:
            with m.op("aten::empty_strided"):
                m.go(2_000)
                m.malloc(ns // 10 * 100 + 512, m.about(kind["malloc_ns"], 0.2, "malloc"))
        super().launch_in(name, kernel, ns)

    def backward_layer(self, layer):
        super().backward_layer(layer)
        for _ in range(self.loop.kind["frees"] if self.loop.kind["uncached"] else 0):
            self.m.free(self.m.about(self.loop.kind["free_ns"], 0.2, "free"))


class Uncached(Kind):
    name = "no-cache"
    about = "the caching allocator is off: a cudaMalloc for each tensor, and a cudaFree that waits for the device"
    runner = UncachedRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, steps=dice.randint(3, 7), layers=dice.randint(3, 5), names=dice.choice(["profiler", "none"]),
                              compute_ns=dice.randint(8, 40) * MS, reads="none")
        return loop.but(fetch_ns=loop.workers * MS, copy_ns=80_000,
                        kind={"uncached": True, "malloc_ns": dice.randint(60, 400) * 1000, "free_ns": dice.randint(40, 300) * 1000,
                              "frees": dice.randint(8, 20)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        found["cache"] = Change(("allocator-thrash",), ("allocator",), loop.but(kind={"uncached": False}), "setting")
        return found


KINDS = (Uncached(),)
