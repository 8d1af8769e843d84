"""Short epochs whose loader workers are new processes each time, as `lacuna run` records them: a fork server makes them, or each is spawned."""
import causes
import kineto_file
import measure
from causes import Change
from data_loader import PREFETCH
from machine import MAIN_PID
from training import MS, Runner, long_run
from truth import Kind

# processes that serve multiprocessing and load nothing
TRACKER_PID, SERVER_PID, WORKER_PID = 4301, 4302, 4310
OPTIMIZER = "Optimizer.step#AdamW.step"
ARGUMENTS = {"forkserver": "python3 -c from multiprocessing.forkserver import main; main(8, 9, ['__main__'])",
             "spawn": "python3 -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=8, pipe_handle=10) --multiprocessing-fork"}


class EpochLoader:
    """Batches in order from workers, two each in advance, which begin anew with every epoch."""

    def __init__(self, machine, loop):
        self.m, self.loop = machine, loop
        self.free_ns, self.pids = [0] * loop.workers, []
        self.asked_ns, self.ready_ns = [], []
        # they import at the same time: more of them than cores take turns
        self.start_ns = loop.kind["start_ns"] * max(1.0, loop.workers / loop.kind["cores"])

    def _begin_epoch(self, epoch):
        m, loop = self.m, self.loop
        if epoch == 0 or not loop.kind["persistent"]:
            m.seen.add("loader")
            m.go(2 * MS * loop.workers, "data_wait")
            self.pids = [WORKER_PID + epoch * loop.workers + number for number in range(loop.workers)]
            self.free_ns = [m.now + m.about(self.start_ns, 0.05, f"start {number}") for number in range(loop.workers)]
            if not loop.kind["persistent"]:
                m.seen.add("anew")
        self.ready_ns = []
        self.asked_ns = [m.now] * min(loop.workers * PREFETCH, loop.kind["epoch"])

    def _fetch(self, batch):
        """The next one is made by its worker. Its row is that of a process of its own."""
        m, number = self.m, batch % self.loop.workers
        start = max(self.asked_ns[batch], self.free_ns[number])
        end = start + m.about(self.loop.fetch_ns, self.loop.fetch_jitter, f"fetch {batch}")
        m.row("user_annotation", "loader.fetch", start, end, {"batch": batch, "worker": number, "cpu_ns": (end - start) * 3 // 4},
              self.pids[number], self.pids[number])
        self.free_ns[number] = end
        self.ready_ns.append(end)

    def _wait(self, begin, batch):
        self.m.row("user_annotation", "loader.wait", begin, self.m.now, {"batch": batch, "cpu_ns": 150_000})

    def take(self, step):
        m, length = self.m, self.loop.kind["epoch"]
        epoch, batch = divmod(step, length)
        if step > 0 and batch == 0:  # the last __next__ of the epoch finds nothing, and joins the workers that end
            begin = m.now
            m.go(90_000 if self.loop.kind["persistent"] else 12 * MS, "data_wait")
            self._wait(begin, length)
            m.go(self.loop.python_ns)
        begin = m.now
        if batch == 0:
            self._begin_epoch(epoch)
        while len(self.ready_ns) < len(self.asked_ns):
            self._fetch(len(self.ready_ns))
        m.go_to(max(self.ready_ns[batch] + 40_000, m.now + 60_000), "data_wait")
        if len(self.asked_ns) < length:
            self.asked_ns.append(m.now)
        self._wait(begin, batch)


class EpochRunner(Runner):
    def make_loader(self):
        return EpochLoader(self.m, self.loop)

    def take_batch(self, step):
        self.loader.take(step)
        self.copy_batch()

    def forward(self):
        begin = self.m.now
        super().forward()
        self.m.mark("forward", begin)

    def backward(self):
        begin = self.m.now
        super().backward()
        self.m.mark("backward", begin)


def _is_recorded(row):
    """The recorder sees CUDA, its own ranges and the optimizer's, and no operator."""
    return row.cat not in ("cpu_op", "gpu_user_annotation") and (row.cat != "user_annotation" or row.pid != MAIN_PID or
                                                                 row.name in ("loader.wait", "forward", "backward", OPTIMIZER))


class WorkerStart(Kind):
    name = "worker-start"
    about = "short epochs with a fork server's or spawned workers, new ones for each or the same: recorded with the processes that serve them"
    runner = EpochRunner
    format = "lacuna"

    def draw(self, dice, seed):
        put_in = dice.choice(["anew", "anew", "stays", "workers"])
        length = dice.randint(12, 16)
        loop = causes.healthy(dice, seed, layers=dice.randint(1, 2), names="none", compute_ns=dice.randint(25, 80) * MS)
        loop = loop.but(workers=dice.randint(2, 4), warm=length + length // 2, steps=4 * length)
        loop = loop.but(fetch_ns=int(loop.compute_ns * loop.workers * dice.uniform(0.2, 0.6)))
        if put_in == "workers":
            loop = loop.but(fetch_ns=int(loop.compute_ns * loop.workers * dice.uniform(1.3, 2.0)))
        return loop.but(kind={"epoch": length, "persistent": put_in != "anew", "method": dice.choice(["forkserver", "forkserver", "spawn"]),
                              "cores": dice.choice([4, 8, 16]), "start_ns": int(loop.compute_ns * length * dice.uniform(0.25, 1.2))})

    def changes(self, loop, pace_ns):
        found = super().changes(loop, pace_ns)
        if not loop.kind["persistent"]:
            found["persistent"] = Change(("worker-respawn",), ("data_wait",), loop.but(kind={"persistent": True}), "setting")
        return found

    def pace_ns(self, loop):
        """Of whole epochs, without the first, which no change of these shortens."""
        length = loop.kind["epoch"]
        return measure.pace(long_run(self.runner, loop, 5 * length), length, 5 * length)

    def keep(self, rows, _loop, _dice):
        return [row for row in rows if _is_recorded(row)]

    def more(self, loop, _machines):
        return {"loader": {"num_workers": loop.workers}}

    def document(self, name, loop, machine, rows, ranks):
        """As the recorder's own export: no profiler's rows, settings of the job, and all processes of it."""
        document = kineto_file.trace_of(name, machine, rows, self.device, ranks)
        events = [event for event in document["traceEvents"] if event["pid"] not in ("Spans", "Traces", "")]
        beside = [TRACKER_PID] + ([SERVER_PID] if loop.kind["method"] == "forkserver" else [])
        workers = sorted({row.pid for row in rows} - {MAIN_PID, machine.device})
        for pid in (*beside, *workers):
            events.append({"name": "process_name", "ph": "M", "ts": 0.0, "pid": pid, "tid": 0, "args": {"name": "python3"}})
        for pid in workers:
            events.append({"name": "process_labels", "ph": "M", "ts": 0.0, "pid": pid, "tid": 0, "args": {"labels": ARGUMENTS[loop.kind["method"]]}})
        for at_ns in range(machine.window[0], machine.window[1], 100 * MS):
            events += [{"name": f"python3 {pid}: on a core (%)", "ph": "C", "ts": at_ns / 1000, "pid": pid, "tid": f"python3 {pid}: on a core (%)",
                        "args": {"value": 1 + at_ns // (100 * MS) % 3}} for pid in beside]
        cores = loop.kind["cores"]
        settings = {"num_workers": loop.workers, "persistent_workers": loop.kind["persistent"], "prefetch_factor": PREFETCH, "pin_memory": True,
                    "start_method": loop.kind["method"], "batch_size": 32, "loader_at": "train.py:17", "optimizer": "AdamW", "framework": "PyTorch",
                    "cpu_count": cores, "cpu_affinity": cores}
        return {**document, "traceEvents": events,
                "lacuna": {"version": 1, "simulated": True, "settings": settings, "host": {"cores_online": cores, "cores_allowed": f"0-{cores - 1}"}}}


KINDS = (WorkerStart(),)
