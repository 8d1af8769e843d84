"""Hosts that ask again and again whether the device is done."""
import causes
from causes import Change
from training import Runner
from truth import Kind


class SpinRunner(Runner):
    """A result is polled for at the end of a step, until it is there; or looked for once, and taken a step later."""

    def read(self, step):
        m, kind = self.m, self.loop.kind
        with m.frame("train.py(57): poll"):
            m.call("cudaEventRecord", m.now + 1_500, "host")
            if kind["spins"]:
                m.spin(kind["call"], kind["pause_ns"])
                m.seen.add("sync")
                m.go(m.about(kind["python_ns"], 0.03, "poll"), "sync")
            else:
                m.call(kind["call"], m.now + 2_000, "host")
                m.call("cudaEventSynchronize", max(m.now + 2_500, self.loss_ns + 5_000), "sync")  # the host is a step ahead, no more
                m.go(8_000)
        self.loss_ns = m.streams[7].free_ns


class Spinning(Kind):
    name = "spinning"
    about = "the host asks an event or a stream in a loop whether the step is done, no call of which lasts; or asks once and goes on"
    runner = SpinRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names=dice.choice(["profiler", "optimizer"]), reads="none")
        share = dice.uniform(0.08, 0.4)
        return loop.but(kind={"spins": dice.random() < 0.75, "call": dice.choice(["cudaEventQuery", "cudaStreamQuery"]),
                              "pause_ns": dice.randint(60, 900) * 1000, "python_ns": int(loop.compute_ns * share)})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["spins"]:
            found["spins"] = Change(("sync-stall", "sync-per-layer"), ("sync", "host"), loop.but(kind={"spins": False}), "lines")
        return found


KINDS = (Spinning(),)
