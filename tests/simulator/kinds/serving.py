"""Decode iterations of a server."""
import causes
import vocabulary
from causes import Change
from training import MS, Runner, plan
from truth import Kind


class DecodeRunner(Runner):
    """An iteration of a server: schedule, copy what the requests need, run the model, sample, fetch the tokens, hand them out."""

    def step(self, step):
        m, kind = self.m, self.loop.kind
        m.seen.add("serving")
        m.go(m.about(kind["schedule_ns"], 0.05, "schedule"))
        with m.range(f"execute_context_0(0)_generation_{kind['requests']}({kind['requests']})"):
            for _ in range(4):
                with m.op("aten::copy_"):
                    self.op_time(0.4)
                    m.copy("HtoD", kind["requests"] * 32, 1_600)
            if kind["graph"]:
                forward, _ = plan("transformer", self.loop.layers, self.loop.compute_ns, True)
                m.graph([(k, m.about(ns, 0.004, "kernel")) for _ in range(self.loop.layers) for _, k, ns in forward], kind["inside"], 1)
            else:
                self.forward()
            with m.op("aten::argmax"):
                self.op_time()
                m.kernel(vocabulary.ARGMAX, 12_000)
        if kind["ahead"]:  # while this one runs, the tokens of the iteration before
            before_ns = self.loss_ns
            with m.op("aten::copy_"):
                self.loss_ns = m.copy("DtoH", kind["requests"] * 8, 1_600)
            m.call("cudaEventSynchronize", max(m.now + 2_500, before_ns + 5_000), "sync")
        else:
            with m.op("aten::to"), m.op("aten::copy_"):
                m.copy("DtoH", kind["requests"] * 8, 1_600, memory="Pageable", blocks=True)
                m.seen.add("sync")
        m.go(m.about(kind["hand_out_ns"], 0.05, "hand out"))

    def mark(self, step, begin):
        pass


class Decode(Kind):
    name = "serving"
    about = "decode iterations of a server: graphs or eager, the host works between them or beside them"
    workload = "serving"
    unit = "iteration"
    runner = DecodeRunner
    device = "H100"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, family="transformer", forward_only=True, layers=dice.randint(8, 14), fetch_ns=0, copy_ns=0,
                              steps=dice.randint(8, 24), names="none", python_ns=20_000, op_ns=dice.randint(9, 16) * 1000)
        graph = dice.random() < 0.6
        host_ns = loop.layers * 8 * (loop.op_ns + 5_300)
        compute_ns = dice.randint(5, 14) * MS if graph else int(host_ns * dice.choice([0.3, 0.5, 2.0]))
        ahead = dice.random() < 0.35
        gap_ns = int(compute_ns * (dice.uniform(0.1, 0.3) if ahead else dice.uniform(0.1, 1.0)))
        return loop.but(compute_ns=compute_ns, kind={"graph": graph, "inside": dice.choice(["nodes", "partly", "none"]),
                                                     "requests": dice.choice([8, 32, 128]), "ahead": ahead, "schedule_ns": gap_ns // 2, "hand_out_ns": gap_ns // 2})

    def hides(self, loop):
        return loop.kind["graph"] and loop.kind["inside"] in ("partly", "none")

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if loop.kind["graph"]:
            found.pop("launch", None)
        else:  # a setting of the server, and no rewrite
            found["launch"] = Change(("launch-bound", "iteration-gap"), ("launch", "host"), loop.but(kind={"graph": True}), "setting")
        if not loop.kind["ahead"]:
            found["gap"] = Change(("iteration-gap", "sync-stall"), ("host", "sync"), loop.but(kind={"ahead": True}), "setting")
        return found


KINDS = (Decode(),)
