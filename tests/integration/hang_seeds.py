#!/usr/bin/env python3
"""How soon hangs are told, and whether anything else is: every case of hang_jobs.py with many seeds, at full scale.

usage: hang_seeds.py [--seeds N] [--first N] [--jobs N] [--kinds a,b] [--out FILE]     adds a row a run to FILE (build/hangs.tsv); what stands there is not run again
       hang_seeds.py --table [FILE]                                                   what FILE holds, a row a kind

A seed draws pace, steps, ranks (2 to 4), the one at fault, whether ranks are forked or started, and how long what is no hang takes. The time is the
job's own: from the line that hangs (the job writes down when it comes there) until the launcher has said it.
`make hangs` runs it. Needs /usr/bin/python3 with torch (gloo).
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from torch_python import TORCH_PYTHON, has_torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
JOBS = os.path.join(ROOT, "tests/integration/hang_jobs.py")
HAVE_TORCH = has_torch()
TOLD = "lacuna: no progress for ([0-9]+) s: (.*)\n"
LIMIT_S = 240  # a job that is not done by then is ended
SHM = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m lacuna /dev/shm && exec "$@"', "sh")

Hang = collections.namedtuple("Hang", "text words others", defaults=((), ""))
# What hangs: what is said of the rank at fault, and what every other rank waits in.
HANGS = {
    "diverged": Hang("a branch that one rank takes", ("waits in barrier",), "waits in all_reduce"),
    "dead": Hang("a rank that died, its connections open", ("has ended",), "waits in all_reduce"),
    "lock": Hang("two locks in the wrong order", ("waits for a lock",)),
    "stopped": Hang("SIGSTOP of a rank", ("is stopped",), "waits in all_reduce"),
    "shm": Hang("/dev/shm is full", ("/dev/shm is full",)),
    "read": Hang("a worker's read that never returns", ("waits for a batch", "while it makes a batch")),
    "worker": Hang("a worker of one rank that reads for ever", ("waits for a batch of its workers", "while it makes a batch"), "waits in backward"),
    "decode": Hang("a worker's decoding that never ends", ("computes while it makes a batch",)),
    "uneven": Hang("a rank with less data", ("waits in barrier",), "waits in backward"),
    "swallowed": Hang("an exception that one rank swallows", ("waits in barrier",), "waits in backward"),
    "import": Hang("two threads that import each other", ("another thread's import",)),
}
# What does not, although nothing moves: the shortest and the longest time that it takes.
Calm = collections.namedtuple("Calm", "text shortest_s longest_s")
CALM = {
    "gc": Calm("garbage collections", 2, 12),
    "compile": Calm("one rank compiles", 5, 30),
    "checkpoint": Calm("a slow checkpoint on one rank", 8, 45),
    "evaluation": Calm("one rank evaluates", 8, 45),
}
# What PyTorch ends itself, with an error: its loader hears of a worker that has died (SIGCHLD, and a look every 5 s), and the other ranks of the
# connections that close. Where a loader does not hear of it the job hangs as with a worker that reads for ever.
ENDS = {"killed": "a worker killed with SIGKILL", "exited": "a worker that leaves by os._exit, with 0 or 1"}
ENDS_WITHIN_S = 60  # on a machine that is busy
WITH_RANKS = (*ENDS, "worker", "diverged", "dead", "stopped", "uneven", "swallowed", "compile", "checkpoint", "evaluation")
Run = collections.namedtuple("Run", "case seed seconds quiet_s length_s load fault")


def line_of(case):
    with open(JOBS) as file:
        return next((number for number, line in enumerate(file, 1) if line.rstrip().endswith("# HANGS " + case)), None)


def end_leftovers(folder):
    """A worker that is stuck outlives its job, as it does without a recorder."""
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                if process.isdigit() and folder.encode() in file.read():
                    os.kill(int(process), signal.SIGKILL)
        except OSError:
            pass


def run_job(case, folder, scale=1, until=None, prefix=(), limit_s=LIMIT_S, **variables):
    """What the launcher said, after the job has ended or `until` was said. @return exit status, text, when `until` was there or None"""
    log = os.path.join(folder, "log")
    environment = dict(os.environ, LACUNA_HANG_SCALE=str(scale), **variables)
    with open(log, "wb") as file:
        node = subprocess.Popen([*prefix, NODE, "run", "-o", os.path.join(folder, "out"), "--", TORCH_PYTHON, JOBS, case, folder],
                                env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    end = time.monotonic() + limit_s
    seen = None
    while time.monotonic() < end and node.poll() is None and seen is None:
        with open(log, errors="replace") as file:
            if until is not None and re.search(until, file.read()):
                seen = time.monotonic()
        if seen is None:
            time.sleep(0.1)
    if node.poll() is None:
        node.send_signal(signal.SIGTERM)
    status = node.wait(60)
    with open(log, errors="replace") as file:
        return status, file.read(), seen


def fault_of(case, said, ranks, culprit):
    """What is wrong with what was said of a hang ("" nothing)."""
    told = re.search(TOLD, said)
    if told is None:
        return "not found: " + said
    mine, _, others = told.group(2).partition("; ")
    words = list(HANGS[case].words)
    line = line_of(case)
    if line is not None and case != "stopped":
        words.append(f"hang_jobs.py:{line} ")
    missing = [word for word in words if word not in told.group(2)]
    if HANGS[case].others:
        missing += [word for word in (f"rank {rank} {HANGS[case].others}" for rank in range(ranks) if rank != culprit) if word not in others]
    if not mine.startswith(f"rank {culprit} "):
        missing.append(f"rank {culprit}")
    return f"not said: {missing}: {told.group(0)}" if missing else ""


def draw(case, seed):
    """@return number of ranks, rank at fault, seconds that a calm one takes, the job's variables"""
    chosen = random.Random(f"{case} {seed}")
    pace, steps = chosen.uniform(0.005, 0.1), chosen.randrange(40, 160)
    ranks = chosen.choice((2, 2, 2, 3, 4)) if case in WITH_RANKS else 1
    culprit = chosen.randrange(ranks)
    is_forked = ranks > 2 or chosen.random() < 0.7  # each rank that is started imports torch, which is most of what a run costs
    workers = 1 + seed % 3
    calm = CALM.get(case)
    length_s = calm.shortest_s * (calm.longest_s / calm.shortest_s) ** chosen.random() if calm is not None else 0
    return ranks, culprit, length_s, {"HANG_PACE": f"{pace:.3f}", "HANG_STEPS": str(steps), "HANG_RANKS": str(max(ranks, 2)), "HANG_CULPRIT": str(culprit), "HANG_WORKERS": str(workers),
                                      "HANG_FORK": str(int(is_forked)), "HANG_LONG": f"{length_s:.1f}", "HANG_NODES": str(chosen.randrange(100_000, 1_000_000))}


def run_seed(case, seed):
    """One job at full scale. @return a Run"""
    ranks, culprit, length_s, variables = draw(case, seed)
    folder = tempfile.mkdtemp(prefix="lacuna-test-")
    load = os.getloadavg()[0]
    try:
        status, said, seen = run_job(case, folder, until=TOLD, prefix=SHM if case == "shm" else (), **variables)
        ended = time.monotonic()
        at = os.path.join(folder, "at")
        began = float(open(at).read()) if os.path.exists(at) else None
    finally:
        end_leftovers(folder)
        shutil.rmtree(folder, ignore_errors=True)
    told = re.search(TOLD, said)
    quiet_s = int(told.group(1)) if told else None
    seconds = round(seen - began, 2) if seen is not None and began is not None else None
    if case in HANGS:
        fault = fault_of(case, said, ranks, culprit) or ("" if seconds is not None and seconds > 0 else "told before it hung: " + said)
    elif case in ENDS:
        seconds = round(ended - began, 2) if began is not None else None
        is_good = told is None and status != 0 and seconds is not None and seconds < ENDS_WITHIN_S
        fault = "" if is_good else f"not ended by PyTorch, or told: status {status}, {seconds} s: {said}"
    else:
        fault = "a false alarm: " + told.group(0) if told else "" if status == 0 and began is not None else f"status {status}: {said}"
    return Run(case, seed, seconds, quiet_s, round(length_s, 1), round(load, 1), " ".join(fault.split()))


def cases_here():
    return [case for case in (*HANGS, *ENDS, *CALM) if case != "shm" or subprocess.run([*SHM, "true"], stderr=subprocess.DEVNULL).returncode == 0]


def run_seeds(wanted, jobs, note=lambda run: None):
    """Every (case, seed) of `wanted`, so many jobs at a time. @return the Runs"""
    runs = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run_seed, *each) for each in wanted]):
            runs.append(future.result())
            note(runs[-1])
    return runs


def share(sorted_values, part):
    """The value that a part of all do not exceed."""
    return sorted_values[max(0, -(-len(sorted_values) * part // 100) - 1)]


def table(runs):
    """@return lines of a table, a row a kind; seconds"""
    lines = ["| it hangs | told, with rank, line and what the others do | p50 | p90 | longest |", "|---|---|---|---|---|"]
    every = []
    for case, hang in HANGS.items():
        mine = [run for run in runs if run.case == case]
        taken = sorted(run.seconds for run in mine if run.seconds is not None and not run.fault)
        every += taken
        if taken:
            lines.append(f"| {hang.text} | {len(taken)} of {len(mine)} | {share(taken, 50):.1f} s | {share(taken, 90):.1f} s | {taken[-1]:.1f} s |")
    every.sort()
    if every:
        count = sum(run.case in HANGS for run in runs)
        lines.append(f"| all | {len(every)} of {count} | {share(every, 50):.1f} s | {share(every, 90):.1f} s | {every[-1]:.1f} s |")
    lines += ["", "| PyTorch ends it | without an alarm | p50 | p90 |", "|---|---|---|---|"]
    for case, text in ENDS.items():
        mine = [run for run in runs if run.case == case]
        taken = sorted(run.seconds for run in mine if not run.fault)
        if taken:
            lines.append(f"| {text} | {len(taken)} of {len(mine)} | {share(taken, 50):.1f} s | {share(taken, 90):.1f} s |")
    lines += ["", "| it does not | false alarms | nothing moves for |", "|---|---|---|"]
    for case, calm in CALM.items():
        mine = [run for run in runs if run.case == case]
        if mine:
            lengths = [run.length_s for run in mine]
            lines.append(f"| {calm.text} | {sum(bool(run.fault) for run in mine)} of {len(mine)} | {min(lengths):.0f} to {max(lengths):.0f} s |")
    return lines


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Run(case, int(seed), *(float(value) if value != "-" else None for value in numbers), fault) for case, seed, *numbers, fault in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/hangs.tsv"))
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        if not HAVE_TORCH:
            print("skip: no torch in " + TORCH_PYTHON)
            return 0
        done = {(run.case, run.seed) for run in read(args.out)}
        cases = args.kinds.split(",") if args.kinds else cases_here()
        wanted = [(case, seed) for seed in range(args.first, args.seeds) for case in cases if (case, seed) not in done]
        began = time.monotonic()

        def note(run):
            with open(args.out, "a") as file:
                print(*("-" if value is None else value for value in run), sep="\t", file=file)
            if run.fault:
                print(run.case, run.seed, run.fault[:2000], flush=True)

        run_seeds(wanted, args.jobs, note)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{len(wanted)} jobs in {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time, {args.jobs} at a time")
    runs = read(args.out)
    print("\n".join(table(runs)))
    loads = sorted(run.load for run in runs)
    print(f"\nload {share(loads, 50)} ({loads[0]} to {loads[-1]})" if loads else "")
    late = share(sorted(run.seconds for run in runs if run.case in HANGS and run.seconds is not None) or [0], 90) > 15
    return 1 if late or any(run.fault for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
