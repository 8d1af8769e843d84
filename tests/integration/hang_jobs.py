"""Jobs that hang, and jobs that only look like it: `hang_jobs.py CASE FOLDER` runs one, with torch's gloo where it has ranks.

    hang_jobs.py CASE FOLDER            starts the ranks of the case and waits for them
    hang_jobs.py CASE FOLDER RANK       is one of them
A line that hangs carries the mark HANGS and the name of its case, which the test looks for; when it came there stands in FOLDER/at.
HANG_RANKS is the number of ranks, HANG_CULPRIT the one that does what the case says; with HANG_FORK=1 the ranks are forked from a process
that has imported torch, as by mp.spawn's start method "fork".
"""
import gc
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time

STEPS = int(os.environ.get("HANG_STEPS", "80"))  # before the hang, or in all
PACE_S = float(os.environ.get("HANG_PACE", "0.02"))
LONG_S = float(os.environ.get("HANG_LONG", "6"))  # of what only looks like a hang
NODES = int(os.environ.get("HANG_NODES", "300000"))  # of the heap that is collected
MANY = int(os.environ.get("HANG_RANKS", "2"))
RANKS = dict.fromkeys(("diverged", "dead", "stopped", "uneven", "swallowed", "compile", "evaluation", "checkpoint", "streamed", "worker", "killed",
                       "exited"), MANY) | {"nccl": 2}
WORKERS = int(os.environ.get("HANG_WORKERS", "2"))  # of each rank's loader
CULPRIT = int(os.environ.get("HANG_CULPRIT", "1"))


def fork(case, folder, environment):
    """The ranks, forked from a process that has imported what they need."""
    for module in ("torch.distributed", "torch.utils.data"):
        importlib.import_module(module)
    os.environ.update(environment)
    ranks = []
    for rank in range(RANKS.get(case, 1)):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            status = 1
            try:
                os.environ["RANK"] = str(rank)
                getattr(Job(case, folder, rank), "run_" + case)()
                status = 0
            finally:
                os._exit(status)

    def end(*unused):
        for rank in ranks:
            os.kill(rank, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    statuses = [os.waitpid(rank, 0)[1] for rank in ranks]
    sys.exit(1 if any(statuses) else 0)


def start(case, folder):
    count = RANKS.get(case, 1)
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", WORLD_SIZE=str(count), OMP_NUM_THREADS="1")
    if os.environ.get("HANG_FORK") == "1":
        fork(case, folder, environment)
    ranks = [subprocess.Popen([sys.executable, __file__, case, folder, str(rank)], env=dict(environment, RANK=str(rank)))
             for rank in range(count)]

    def end(*unused):
        for rank in ranks:
            rank.kill()

    signal.signal(signal.SIGTERM, end)
    statuses = [rank.wait() for rank in ranks]
    sys.exit(max(statuses, key=abs))


def mark(folder):
    """When the line that hangs was reached."""
    with open(os.path.join(folder, "at.new"), "w") as file:
        file.write(str(time.monotonic()))
    os.rename(file.name, os.path.join(folder, "at"))


class Items:
    """A data set of which one item does what the case says; on one rank, where there are several."""

    def __init__(self, case, folder, has_fault=True):
        self.case, self.folder, self.has_fault = case, folder, has_fault

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        import torch
        if index == 2 * STEPS and self.has_fault:
            mark(self.folder)
            if self.case == "read":
                open(os.path.join(self.folder, "fifo"), "rb").read()  # HANGS read
            elif self.case == "worker":
                open(os.path.join(self.folder, "fifo"), "rb").read()  # HANGS worker
            elif self.case == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.case == "exited":
                os._exit(STEPS % 2)  # also with 0, which PyTorch takes for no failure
            elif self.case == "decode":
                sum(iter(lambda: 1, 0))  # HANGS decode
        time.sleep(PACE_S / 8)
        return torch.full((4,), float(index))


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


class Job:
    def __init__(self, case, folder, rank):
        import torch
        import torch.distributed as dist
        self.case, self.folder, self.rank, self.torch, self.dist = case, folder, rank, torch, dist
        torch.set_num_threads(1)
        self.count = RANKS.get(case, 1)
        model = torch.nn.Linear(4, 4)
        if self.count > 1:
            dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=self.count)
            if case not in ("diverged", "dead", "stopped", "nccl"):
                model = torch.nn.parallel.DistributedDataParallel(model)
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.step = 0

    def is_there(self):
        """Whether this is the rank and the step at which the case happens."""
        if self.step == STEPS and (self.count == 1 or self.rank == CULPRIT):
            mark(self.folder)
            return True
        return False

    def reduce(self):
        for parameter in self.model.parameters():
            self.dist.all_reduce(parameter.grad)

    def train(self, x):
        self.optimizer.zero_grad()
        self.model(x).sum().backward()
        if self.count > 1 and self.case in ("diverged", "dead", "stopped"):
            if self.case == "diverged" and self.is_there():
                self.dist.barrier()  # HANGS diverged
            self.reduce()
        self.optimizer.step()
        self.step += 1
        time.sleep(PACE_S)

    def batches(self, count):
        for _ in range(count):
            yield self.torch.ones(2, 4)

    # ---- what hangs

    def run_diverged(self):
        for x in self.batches(3 * STEPS):
            self.train(x)

    def run_dead(self):
        for x in self.batches(3 * STEPS):
            if self.is_there():
                helper = os.fork()  # keeps the connections open, as an orphaned worker does
                if helper == 0:
                    time.sleep(600)
                os._exit(9)
            self.train(x)

    def run_stopped(self):
        for x in self.batches(3 * STEPS):
            if self.is_there():
                os.kill(os.getpid(), signal.SIGSTOP)  # HANGS stopped
            self.train(x)

    def run_uneven(self):
        for x in self.batches(STEPS + (20 if self.rank != CULPRIT else 0)):
            self.train(x)
        self.is_there()
        self.dist.barrier()  # HANGS uneven

    def run_swallowed(self):
        for x in self.batches(2 * STEPS):
            try:
                if self.step == STEPS and self.rank == CULPRIT:
                    self.step += 1
                    raise ValueError("a bad sample")
                self.train(x)
            except ValueError:
                pass
        if self.rank == CULPRIT:
            mark(self.folder)
        self.dist.barrier()  # HANGS swallowed

    def run_lock(self):
        first, second, ready = threading.Lock(), threading.Lock(), threading.Event()

        def other():
            with second:
                ready.set()
                time.sleep(0.2)
                with first:
                    pass

        for x in self.batches(3 * STEPS):
            if self.is_there():
                with first:
                    threading.Thread(target=other, daemon=True).start()
                    ready.wait()
                    with second:  # HANGS lock
                        pass
            self.train(x)

    def run_import(self):
        sys.path.insert(0, self.folder)
        with open(os.path.join(self.folder, "slow_module.py"), "w") as file:
            file.write("import time\ntime.sleep(600)\n")
        for x in self.batches(3 * STEPS):
            if self.is_there():
                threading.Thread(target=lambda: __import__("slow_module"), daemon=True).start()
                time.sleep(0.3)
                __import__("slow_module")  # HANGS import
            self.train(x)

    def run_shm(self):
        import queue
        waiting = queue.Queue()

        def fill():
            with open("/dev/shm/full", "wb") as file:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:
                    return  # and nobody hears of it

        for x in self.batches(3 * STEPS):
            if self.is_there():
                threading.Thread(target=fill, daemon=True).start()
                waiting.get()  # HANGS shm
            self.train(x)

    def _load(self, workers):
        from torch.utils.data import DataLoader
        items = Items(self.case, self.folder, self.count == 1 or self.rank == CULPRIT)
        for x in DataLoader(items, batch_size=2, num_workers=workers):
            self.train(x)

    def run_read(self):
        os.mkfifo(os.path.join(self.folder, "fifo"))
        self._load(1)

    def run_decode(self):
        self._load(1)

    def run_worker(self):
        if self.rank == CULPRIT:
            os.mkfifo(os.path.join(self.folder, "fifo"))
        self._load(WORKERS)

    # ---- what PyTorch ends itself

    def run_killed(self):
        self._load(WORKERS)

    def run_exited(self):
        self._load(WORKERS)

    def record_flight(self):
        """As PyTorch's flight recorder: a dump into a file for what comes through a pipe, which it looks into now and then."""
        stem = os.environ.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
        if stem is None:
            return
        path = f"{stem}{self.rank}.pipe"
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        while not select.select([pipe], [], [], 0.2)[0] or not os.read(pipe, 128):
            time.sleep(0.2)
        calls = [(60, "completed"), (61, "started")] if self.rank == 0 else [(60, "completed")]
        with open(os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] + str(self.rank), "wb") as file:
            pickle.dump({"version": "2.10", "entries": [{"collective_seq_id": number, "profiling_name": "nccl:all_reduce", "state": state, "is_p2p": False,
                                                         "process_group": ("0", "default_pg"), "input_sizes": [[4, 4]], "input_dtypes": ["Float"]}
                                                        for number, state in calls]}, file, 2)

    def run_nccl(self):
        """As with NCCL: rank 0 has launched its operation and spins until its GPU is done; rank 1 never comes to it."""
        with open(os.path.join(self.folder, f"pid-{self.rank}.new"), "w") as file:
            file.write(str(os.getpid()))
        os.rename(file.name, os.path.join(self.folder, f"pid-{self.rank}"))
        threading.Thread(target=self.record_flight, daemon=True).start()
        lock = threading.Lock()
        for x in self.batches(3 * STEPS):
            if self.step == STEPS and self.rank == 0:
                while True:
                    pass
            elif self.step == STEPS:
                lock.acquire()
                lock.acquire()  # HANGS nccl
            self.train(x)

    # ---- what does not

    def run_gc(self):
        for x in self.batches(2 * STEPS):
            if self.is_there():
                nodes = []
                for _ in range(NODES):
                    node = [nodes]
                    nodes.append(node)
                end = time.monotonic() + LONG_S
                while time.monotonic() < end:
                    gc.collect()
            self.train(x)

    def run_compile(self):
        for x in self.batches(2 * STEPS):
            if self.is_there():
                spin(LONG_S)
            self.train(x)

    def run_checkpoint(self):
        for x in self.batches(2 * STEPS):
            if self.step == STEPS:
                if self.is_there():
                    end = time.monotonic() + LONG_S
                    with open(os.path.join(self.folder, "checkpoint"), "wb") as file:
                        while time.monotonic() < end:
                            file.write(bytes(1 << 20))
                            file.flush()
                            os.fsync(file.fileno())
                            time.sleep(0.3)
                self.dist.barrier()
            self.train(x)

    def run_streamed(self):
        """A checkpoint to a slow receiver: nearly all of the time inside of one call of write."""
        def receive(reader):
            while os.read(reader, 1 << 16):
                time.sleep(0.2)

        for x in self.batches(2 * STEPS):
            if self.step == STEPS:
                if self.is_there():
                    reader, writer = os.pipe()
                    receiver = threading.Thread(target=receive, args=(reader,))
                    receiver.start()
                    end = time.monotonic() + LONG_S
                    while time.monotonic() < end:
                        os.write(writer, bytes(1 << 18))
                    os.close(writer)
                    receiver.join()
                self.dist.barrier()
            self.train(x)

    def run_evaluation(self):
        for x in self.batches(2 * STEPS):
            if self.step == STEPS:
                if self.is_there():
                    end = time.monotonic() + LONG_S
                    with self.torch.no_grad():
                        while time.monotonic() < end:
                            self.model.module(x)
                            time.sleep(PACE_S)
                self.dist.barrier()
            self.train(x)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        start(sys.argv[1], sys.argv[2])
    else:
        getattr(Job(sys.argv[1], sys.argv[2], int(sys.argv[3])), "run_" + sys.argv[1])()
