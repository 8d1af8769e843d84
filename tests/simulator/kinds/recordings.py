"""Kinds about how a loop was recorded: its edges, marks, rows, length."""
import causes
from training import MS, Runner
from truth import Kind


class Edges(Kind):
    name = "edges"
    about = "the recording begins while the device works on steps before it; the last mark is late, because workers are joined"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, synced=False, joined_ns=dice.randint(20, 120) * MS, names="profiler", steps=dice.randint(4, 7))
        return causes.put_in(dice, loop, dice.choice(["none", "none", "layout", "comm", "pageable", "optimizer", "allocator"]))


class Ahead(Kind):
    name = "ahead"
    about = "the host runs ahead of the device: its marks are shorter than steps, and the device is still at work when the last one ends"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, reads="none", names=dice.choice(["profiler", "profiler", "optimizer"]),
                              steps=dice.randint(4, 8), layers=3, synced=dice.random() < 0.5, warm=dice.randint(1, 4))
        loop = loop.but(op_ns=8_000, compute_ns=max(loop.compute_ns, 60 * MS), copy_ns=100_000, fetch_ns=loop.workers * MS)
        return causes.put_in(dice, loop, dice.choice(causes.DEVICE))


class Few(Kind):
    name = "few-steps"
    about = "one to five steps, which are all alike"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, steps=dice.randint(1, 5), jitter=0.01, names=dice.choice(["profiler", "optimizer"]))
        return causes.put_in(dice, loop, dice.choice(causes.EVERY_STEP))


class Thinned(Kind):
    name = "thinned"
    about = "a share of the operators, of their calls and of the kernels is missing from the file"

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed, names="profiler").but(kind={"rows": dice.uniform(0.05, 0.6), "kernels": dice.uniform(0.0, 0.15)})
        return causes.put_in(dice, loop, dice.choice(["none", "workers", "sync", "pageable", "comm", "layout"]))

    def keep(self, rows, loop, dice):
        lost = {row.args["External id"] for row in rows if row.cat == "cpu_op" and dice.random() < loop.kind["rows"]}
        gone = {row.args["correlation"] for row in rows if row.cat == "kernel" and not row.name.startswith("nccl")
                and dice.random() < loop.kind["kernels"]}
        return [row for row in rows if not (row.cat == "cpu_op" and row.args["External id"] in lost
                                            or row.cat in ("kernel", "cuda_runtime") and row.args["correlation"] in gone)]


class MarksRunner(Runner):
    """Names of steps as careless programs leave them."""

    def before(self):
        self.begins = []

    def mark(self, step, begin):
        how, m = self.loop.kind["marks"], self.m
        if how == "nested":  # pushed, and popped by the end of the program alone
            self.begins.append(begin)
        elif how == "halved" and step % 2 == 0:
            m.mark(f"ProfilerStep#{step}", begin)

    def after(self):
        for begin in self.begins:
            self.m.mark("train_step", begin)


class Marks(Kind):
    name = "marks"
    about = "marks that contain each other (pushed, never popped), every second one missing, or none at all"
    runner = MarksRunner

    def draw(self, dice, seed):
        loop = causes.healthy(dice, seed).but(kind={"marks": dice.choice(["nested", "halved", "none"])})
        loop = causes.put_in(dice, loop, dice.choice(["none", "pageable", "sync", "layout", "allocator", "optimizer", "comm"]))
        return loop.but(names=loop.kind["marks"])

    def keep(self, rows, loop, _dice):
        return [row for row in rows if row.cat != "user_annotation"] if loop.kind["marks"] == "none" else rows


KINDS = (Edges(), Ahead(), Few(), Thinned(), Marks())
