"""What several tests need and the first of them makes: the demonstration's series, simulated loops and jobs, and what the program says of them.

Lies in build/kept, by what made it: another build of the program (or of the simulator) has a folder of its own, one that nobody used for twenty minutes goes.
With LACUNA_SOAK=1, or a LACUNA that is no program but a script around one, nothing is kept: all is made where it is asked for.
"""
import atexit
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from real_traces import ROOT, real_traces
from soak import SOAK

sys.path.insert(0, os.path.join(ROOT, "tests", "simulator", "kinds"))

LACUNA = os.environ.get("LACUNA") or os.environ.get("LACUNA_PROGRAM") or os.path.join(ROOT, "build", "lacuna")
SIMULATOR = os.path.join(ROOT, "build", "release", "simulator")  # make build/release/simulator
KEPT = os.path.join(ROOT, "build", "kept")
# the loops and jobs that test_random.py and test_kinds.py score in `make test`, which are those that others look at there
LOOP_SEEDS, JOB_SEEDS = range(1, 13), (2000,)
UNUSED_S = 1200
SUCCEEDED = (0, 3)  # 3: a condition of --fail-if holds. What failed is asked again: it may have been the machine


class Failed(Exception):
    """A question without an answer to keep."""


def _is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


KEEPS = not SOAK and os.path.exists(LACUNA) and _is_program(LACUNA)


def _stamp(path):
    """Another file, or another content of it, has another one."""
    real = os.path.realpath(path)
    status = os.stat(real)
    return f"{real} {status.st_mtime_ns} {status.st_size} {status.st_ino}"


@functools.cache
def _folder_of(*stamps):
    """Where what these made is kept; folders of what is no longer there go."""
    folder = os.path.join(KEPT, hashlib.sha256("\n".join(stamps).encode()).hexdigest()[:24])
    os.makedirs(folder, exist_ok=True)
    os.utime(folder)
    for other in glob.glob(os.path.join(KEPT, "*")):
        with contextlib.suppress(OSError):
            if time.time() - os.stat(other).st_mtime > UNUSED_S:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def _kept(path, make):
    """`path`, made by make(another path) unless it is there. One at a time makes it, and whoever sees it sees it whole."""
    if not os.path.exists(path):
        with open(path + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(path):
                with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as part:
                    make(os.path.join(part, "made"))
                    os.rename(os.path.join(part, "made"), path)
    return path


def ask_anew(*arguments):
    """What `lacuna` says, with returncode, stdout and stderr."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
    return subprocess.run([LACUNA, *arguments], capture_output=True, text=True, timeout=300, env={**environment, "LC_ALL": "C.UTF-8"})


def _stays(path):
    return os.path.abspath(path).startswith((os.path.abspath(real_traces()) + os.sep, KEPT + os.sep))


def ask(*arguments):
    """The same, kept where it is said of real traces and of what is kept, else asked anew.

    It must be a question that changes nothing, and whose answer depends on the files alone.
    """
    paths = [word for word in arguments if os.sep in word and os.path.exists(word)]
    if not KEEPS or not paths or not all(_stays(path) for path in paths):
        return ask_anew(*arguments)
    key = hashlib.sha256("\n".join([*arguments, *map(_stamp, paths)]).encode()).hexdigest()[:32]
    path = os.path.join(_folder_of(_stamp(LACUNA)), key)

    def make(part):
        done = ask_anew(*arguments)
        if done.returncode not in SUCCEEDED:
            raise Failed(done)
        with open(part, "w", encoding="utf-8", newline="") as file:
            file.write(json.dumps([done.returncode, done.stderr]) + "\n" + done.stdout)

    try:
        _kept(path, make)
    except Failed as failed:
        return failed.args[0]
    with open(path, encoding="utf-8", newline="") as file:
        returncode, stderr = json.loads(file.readline())
        return subprocess.CompletedProcess(arguments, returncode, file.read(), stderr)


def analyses(paths):
    """(where, analysis) of one trace, or of each rank and then of all; none of what is no trace."""
    done = ask("analyze", "--json", *paths)
    if done.returncode != 0:
        return []
    answer = json.loads(done.stdout)
    if "ranks" not in answer:
        return [("", answer)]
    return [*((f" rank {rank['rank']}", rank["analysis"]) for rank in answer["ranks"]), (" all ranks", answer)]


@contextlib.contextmanager
def _made(name, makers, make):
    """A folder that make(folder) fills; kept, or gone behind the with."""
    if KEEPS:
        yield _kept(os.path.join(_folder_of(*makers), name), make)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "made")
        make(folder)
        yield folder


_open = contextlib.ExitStack()
atexit.register(_open.close)


@functools.cache
def demo(seed=1):
    """The traces of the simulated series, in order; beside them in-phase/ has those with workers in phase."""
    def make(folder):
        subprocess.run([LACUNA, "demo", folder, "--in-phase", "--seed", str(seed)], check=True, capture_output=True, timeout=300)

    folder = _open.enter_context(_made(f"demo {seed}", [_stamp(LACUNA)], make))
    return sorted(path for path in glob.glob(os.path.join(folder, "*.json")) if not path.endswith(".truth.json"))


@contextlib.contextmanager
def loop(seed, *options):
    """(traces, truth) of a loop of the simulator: one trace, or with --ranks one of each rank."""
    if not os.path.exists(SIMULATOR):
        raise SystemExit(f"{SIMULATOR} is not built: make build/release/simulator")

    def make(folder):
        os.mkdir(folder)
        subprocess.run([SIMULATOR, folder, "--seed", str(seed), *options], check=True, timeout=300)

    with _made(" ".join(["loop", str(seed), *options]), [_stamp(SIMULATOR)], make) as folder:
        names = sorted(os.listdir(folder))
        with open(os.path.join(folder, next(name for name in names if name.endswith(".truth.json"))), encoding="utf-8") as file:
            truth = json.load(file)
        yield [os.path.join(folder, name) for name in names if not name.endswith(".truth.json")], truth


@functools.cache
def _kinds():
    """What makes jobs: the content of the files, which checking out again does not change."""
    parts = [sys.version]
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "simulator", "kinds", "*.py"))):
        with open(path, encoding="utf-8") as file:
            parts.append(file.read())
    return "\n".join(parts)


@contextlib.contextmanager
def job(kind, seed):
    """(traces, truth) of a job as recordings show it (tests/simulator/kinds): one trace, or one of each rank."""
    import simulate  # it takes a while to load, and what is kept does without

    def make(folder):
        os.mkdir(folder)
        simulate.write(folder, kind, seed)

    with _made(f"{kind} {seed}", [_kinds()], make) as folder:
        names = sorted(os.listdir(folder))
        with open(os.path.join(folder, next(name for name in names if name.endswith(".truth.json"))), encoding="utf-8") as file:
            truth = json.load(file)
        yield [os.path.join(folder, name) for name in names if not name.endswith(".truth.json")], truth
