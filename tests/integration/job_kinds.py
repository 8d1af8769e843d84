"""Kinds of jobs for test_job_kinds.py: each runs alone and recorded, and everything that anybody sees of it must be equal.

A row is KIND(name, command) with what is special about it. A command is a list, a text for `sh -c`, or `strange(NAME)`: a program of tests/attack/strange_jobs.c. It runs in an
empty folder of its own. `{job}` is the folder with the programs that the test compiles, `{python}` this Python, `{torch}` one with torch.
"""
import os
import resource
import signal

ROOT = os.geteuid() == 0


class Kind:
    def __init__(self, name, command, *, prepare=None, environment=None, streams=None, send=None, stdin="", needs="", soak=False, limits="", ignore=()):
        self.name, self.command = name, command if isinstance(command, list) else ["sh", "-c", command]
        self.prepare = prepare          # in the child, before either program starts
        self.environment = environment or {}  # added; None: taken away
        self.streams = streams or {}    # "stdin", "stdout", "stderr": "closed", "full" (/dev/full) or "terminal" for all
        self.send = send                # a signal, once the job says "ready"
        self.stdin = stdin
        self.needs = needs              # "root", "torch", "IPython", "gcc"
        self.soak = soak                # too long for `make test`
        self.limits = limits            # why something of the two may differ; told in the table
        self.ignore = ignore            # files whose content may differ


def strange(name, **more):
    return Kind("strange: " + name.replace("_", " "), ["{job}/strange_jobs", name, "/dev/null"], **more)


def limit(which, soft, hard=None):
    return lambda: resource.setrlimit(which, (soft, soft if hard is None else hard))


def python(text):
    return ["{python}", "-c", text]


def torch(text, *arguments):
    return ["{torch}", "-c", LOADER + text, *arguments]


def script(program, text):
    """A job in a file: the processes that it starts anew import it."""
    return f"cat >job.py <<'END'\n{text}\nEND\nexport GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1\n{program} job.py"


SEES = "import os, resource, sys; print(sorted(os.listdir('/proc/self/fd'))); print(resource.getrlimit(resource.{0}))"

# A training loop as in torch's tutorials; {...} of what comes behind it.
LOADER = """
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
class Images(Dataset):
    def __len__(self): return 32
    def __getitem__(self, index): return torch.full((8,), float(index)), index % 2
class Stream(IterableDataset):
    def __iter__(self): return iter([(torch.ones(8), 1)] * 16)
def train(loader, epochs=2):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        print(epoch, round(loss.item(), 5), flush=True)
"""

CHECKPOINT = """
import multiprocessing, os, signal, sys, time
def work(queue):
    while True:
        queue.put(1)
        time.sleep(0.01)
queue = multiprocessing.Queue(4)
workers = [multiprocessing.Process(target=work, args=(queue,), daemon=True) for _ in range(2)]
for worker in workers: worker.start()
def save(number, frame):
    queue.get(timeout=100)  # needs its workers
    with open("checkpoint", "w") as file: file.write("saved")
    print("saved", [worker.is_alive() for worker in workers], flush=True)
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
queue.get()
os.write(1, b"ready\\n")  # a signal that comes before print() has returned finds stdout taken
while True: time.sleep(1)
"""

# Two ranks that train with loaders of their own and add up a tensor, each with a file that says how it ended.
RANKS = LOADER + """
import torch.distributed as dist, torch.multiprocessing as mp
def rank(index, how, **where):
    dist.init_process_group("gloo", **where)
    train(DataLoader(Images(), batch_size=8, num_workers=2), 1)
    value = torch.ones(4) * (dist.get_rank() + 1)
    dist.all_reduce(value)
    with open(f"rank-{dist.get_rank()}", "w") as file: file.write(f"{value.tolist()} of {dist.get_world_size()}")
    dist.barrier()
    if how == "fails" and dist.get_rank() == 1: sys.exit(3)
    dist.destroy_process_group()
def spawned(index, how, path): rank(index, how, init_method="file://" + path, rank=index, world_size=2)
"""


def spawn(how):
    return script("{torch}", RANKS + f"if __name__ == '__main__': mp.spawn(spawned, args=('{how}', os.environ['TMPDIR'] + f'/meet-{{os.getpid()}}'), nprocs=2)")


def elastic(how):
    """torch 1.13 under Python 3.11 starts ranks only where their output goes to files first; which rank writes first is chance."""
    launch = "{torch} -m torch.distributed.run --redirects 1 --tee 1 --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint localhost:0"
    return script(launch, RANKS + f"rank(0, '{how}')") + " >out 2>err; status=$?; rm err; sort out; rm out; exit $status"


def started_anew(method, more=""):
    loader = f"DataLoader(Images(), batch_size=8, num_workers=2, multiprocessing_context='{method}'{more})"
    return script("{torch}", LOADER + f"if __name__ == '__main__': train({loader})")


KINDS = [
    # -- how it ends
    Kind("exit status", "exit 7"),
    Kind("a bash wrapper", "sh -c 'exit 4'; exit $?"),
    Kind("killed", "kill -KILL $$"),
    Kind("a fault without a core", "ulimit -c 0; kill -SEGV $$"),
    Kind("a core dump", "ulimit -c unlimited; kill -ABRT $$", ignore=("core",)),
    Kind("an interrupt of its own", "ulimit -c 0; kill -INT $$"),
    Kind("a program that does nothing", ["true"]),
    Kind("an exception", python("raise ValueError('x')")),
    Kind("os._exit", python("import os; print('out', flush=True); os._exit(9)")),
    Kind("sys.exit in a thread pool", python("import concurrent.futures as c, sys\nwith c.ThreadPoolExecutor(4) as p: print(sum(p.map(abs, range(100))))\nsys.exit(6)")),
    Kind("no such program", ["./nowhere"]),
    Kind("no permission", ["/etc/passwd"]),
    Kind("a script without an interpreter", "echo 'echo ran; exit 3' >s; chmod +x s; exec ./s"),
    # -- standard streams
    Kind("stdin closed", "read line || echo none", streams={"stdin": "closed"}),
    Kind("stdout closed", "echo out || echo 'cannot' >&2", streams={"stdout": "closed"}),
    Kind("stderr closed", "echo err >&2; echo out", streams={"stderr": "closed"}),
    Kind("all streams closed", "touch ran; exit 3", streams={"stdin": "closed", "stdout": "closed", "stderr": "closed"}),
    Kind("stdout full", "echo out; echo $?", streams={"stdout": "full"}),
    Kind("a megabyte through it", "cat; echo end", stdin="x" * (1 << 20)),
    Kind("a reader that goes away", "yes | head -n 1"),
    Kind("a terminal", "test -t 0 && test -t 1 && test -t 2 && stty size && echo yes", streams={"all": "terminal"}),
    # -- limits
    Kind("few files", python(SEES.format("RLIMIT_NOFILE")), prepare=limit(resource.RLIMIT_NOFILE, 24)),
    Kind("small files", "ulimit -f; head -c 200000 /dev/zero >big; echo $?; wc -c <big", prepare=limit(resource.RLIMIT_FSIZE, 65536)),
    Kind("little memory", python(SEES.format("RLIMIT_AS")), prepare=limit(resource.RLIMIT_AS, 400 << 20)),
    Kind("little stack", python(SEES.format("RLIMIT_STACK")), prepare=limit(resource.RLIMIT_STACK, 1 << 20)),
    Kind("no locked memory", python(SEES.format("RLIMIT_MEMLOCK")), prepare=limit(resource.RLIMIT_MEMLOCK, 0)),
    Kind("CPU time used up", "ulimit -c 0; while :; do :; done", prepare=limit(resource.RLIMIT_CPU, 1, 3), soak=True),
    Kind("CPU time left", python(SEES.format("RLIMIT_CPU")), prepare=limit(resource.RLIMIT_CPU, 50, 60)),
    Kind("no core", python(SEES.format("RLIMIT_CORE")), prepare=limit(resource.RLIMIT_CORE, 0)),
    Kind("few queued signals", python(SEES.format("RLIMIT_SIGPENDING")), prepare=limit(resource.RLIMIT_SIGPENDING, 0)),
    Kind("nice", "nice", prepare=lambda: os.nice(5)),
    Kind("a umask", "umask; touch file; stat -c %a file", prepare=lambda: os.umask(0o077)),
    # -- signals
    Kind("SIGTERM, no handler", "echo ready; exec sleep 600", send=signal.SIGTERM),
    Kind("SIGTERM, checkpoint with two workers", python(CHECKPOINT), send=signal.SIGTERM),
    Kind("SIGUSR1", "trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.05; done", send=signal.SIGUSR1),
    Kind("SIGHUP under nohup", "trap 'echo no' TERM; echo ready; sleep 0.3; echo end", prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), send=signal.SIGHUP),
    Kind("blocked signals", ["grep", "^Sig[BI]", "/proc/self/status"], prepare=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGCHLD})),
    # -- folders
    Kind("a folder that is removed", "mkdir gone; cd gone; rmdir ../gone; pwd -P 2>/dev/null; echo $?"),
    Kind("a read-only folder", "unshare -m sh -c 'mount -t tmpfs -o ro none . && cd . && cd \"$PWD\" && touch file 2>/dev/null; echo $?'", needs="root"),
    Kind("a full folder", "unshare -m sh -c 'mount -t tmpfs -o size=64k none . && cd \"$PWD\" && head -c 200000 /dev/zero >big 2>/dev/null; echo $?'", needs="root"),
    Kind("temporary files on noexec", "unshare -m sh -c 'mount -t tmpfs -o noexec none /tmp && cp /bin/true /tmp/true && /tmp/true 2>/dev/null; echo $?'", needs="root"),
    Kind("no temporary folder", "echo $TMPDIR; exit 2", environment={"TMPDIR": "/nowhere"}),
    Kind("no HOME", "echo ${HOME-none}", environment={"HOME": None}),
    Kind("a HOME that is read-only", "echo $HOME", environment={"HOME": "/proc"}),
    Kind("an empty PATH", ["/bin/sh", "-c", "echo $PATH; exit 3"], environment={"PATH": ""}),
    # -- environment
    Kind("dropped environment", ["env", "-i", "/bin/sh", "-c", "env | sort; exit 3"]),
    Kind("its own PYTHONPATH", ["env", "PYTHONPATH=/nowhere", "{python}", "-c", "import os; print(os.environ['PYTHONPATH'])"]),
    Kind("isolated Python", ["{python}", "-I", "-c", "print(1)"]),
    Kind("Python from stdin", ["{python}"], stdin="import sys; print(sys.argv, __name__)\n"),
    Kind("Python's prompt", ["{python}", "-i"], stdin="x = 6\nx * 7\n1 / 0\nprint(x)\nexit(3)\n"),
    Kind("a prompt of a program's own", ["{python}", "-m", "code"], stdin="import sys\nlen(sys.argv)\nraise SystemExit(4)\n"),
    Kind("IPython", "IPYTHONDIR=$TMPDIR/ipython exec {python} -m IPython --simple-prompt --no-banner --colors=NoColor", stdin="x = 6\nx * 7\n1 / 0\nexit()\n",
         needs="IPython"),
    Kind("numpy alone", ["{torch}", "-c", "import numpy; print(numpy.linalg.norm(numpy.arange(1000.0).reshape(10, 100) @ numpy.ones((100, 10))))"], needs="torch"),
    Kind("a long environment", "echo ${#LONG}", environment={"LONG": "x" * 100000}),
    Kind("very many arguments", ["sh", "-c", "echo $#", "sh", *(["word"] * 5000)]),
    # -- processes
    Kind("short children", "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done; echo $i"),
    Kind("500 short children", "i=0; while [ $i -lt 500 ]; do {python} -c pass & i=$((i+1)); [ $((i % 10)) = 0 ] && wait; done; wait; echo $i", soak=True),
    Kind("a process pool", python("import multiprocessing as m\nif __name__ == '__main__':\n with m.Pool(2) as p: print(p.map(abs, range(-8, 0)))")),
    Kind("a session of its own", "setsid sh -c 'echo in session; exit 3'"),
    Kind("a static program", ["{job}/static"], needs="gcc"),
    Kind("a setuid program", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "{job}/setuid"], needs="root"),
    Kind("seccomp", ["{job}/seccomp"], needs="gcc"),
    *[strange(name) for name in ("many_threads", "small_stacks", "closed_files", "vforks", "own_group", "long_names", "deleted_spool", "new_programs", "timers", "faults",
                                 "broken_off", "left_open", "little_space", "no_folder", "stops")],
    *[strange(name, soak=True) for name in ("forks", "very_deep")],
    *[strange(name, soak=True, needs="root") for name in ("another_root", "another_user", "another_namespace")],
    # -- data loaders
    Kind("a loader, no workers", torch("train(DataLoader(Images(), batch_size=8))"), needs="torch"),
    Kind("a loader, fork", torch("train(DataLoader(Images(), batch_size=8, num_workers=2))"), needs="torch"),
    Kind("a loader, an iterable dataset", torch("train(DataLoader(Stream(), batch_size=4, num_workers=2, prefetch_factor=4))"), needs="torch", soak=True),
    Kind("a loader, persistent workers", torch("train(DataLoader(Images(), batch_size=8, num_workers=2, persistent_workers=True), 3)"), needs="torch", soak=True),
    Kind("a loader, a worker that fails", torch("class Bad(Images):\n def __getitem__(self, i): raise ValueError('bad')\n"
                                                "try: train(DataLoader(Bad(), num_workers=1))\nexcept ValueError as e: print(type(e).__name__); sys.exit(3)"), needs="torch", soak=True),
    Kind("a loader, os._exit", torch("train(DataLoader(Images(), batch_size=8, num_workers=2)); sys.stdout.flush(); os._exit(7)"), needs="torch", soak=True),
    Kind("a loader, spawn", started_anew("spawn"), needs="torch", soak=True),
    Kind("a loader, spawn, persistent workers", started_anew("spawn", ", persistent_workers=True"), needs="torch", soak=True),
    Kind("a loader, forkserver", started_anew("forkserver"), needs="torch"),
    Kind("a generator", torch("train([(torch.ones(4, 8), torch.zeros(4, dtype=torch.long))] * 8)"), needs="torch", soak=True),
    # -- ranks
    Kind("mp.spawn", spawn("ends"), needs="torch", soak=True),
    Kind("mp.spawn, a rank that fails", spawn("fails"), needs="torch", soak=True),
    Kind("elastic launch", elastic("ends"), needs="torch", soak=True),
    Kind("elastic launch, a rank that fails", elastic("fails"), needs="torch", soak=True),
]
