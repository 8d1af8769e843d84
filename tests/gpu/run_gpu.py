#!/usr/bin/env python3
"""The checks that need a GPU, in one call of less than ten minutes, without a network.

usage: run_gpu.py [--out DIR] [--seconds N] [--rehearse]     all checks that can be made here
       run_gpu.py --only points|rest                         the ten points of the recorder, or all others: for two calls
       run_gpu.py --analyze DIR                              predictions from what an earlier call brought home
       run_gpu.py --keep DIR...                              ... results and recordings of one call or of two into tests/gpu, for the tests

Uses what build/release holds, else build/carry (`make gpu-carry`), and builds what is missing with gcc and nvcc. Writes results.json and two archives
of 16 MiB or less into DIR ($OUT, else build/gpu): golden.tar, a short recording of each stage and buffers of CUPTI, and logs.tar.gz. --rehearse goes
through everything on the processor, to see that the script works; it proves nothing else.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402
import costs  # noqa: E402
import home  # noqa: E402
import ladder  # noqa: E402
import points  # noqa: E402
import raw  # noqa: E402
from bench import BUILD, ROOT, Bench  # noqa: E402
from machine import clocks, have_gpu, machine  # noqa: E402

# Batches large enough that a layout kernel, a copy and a batch's making all count on a data-center GPU.
WORKLOAD_SIZE = ["--batch", "512", "--work", "400", "--fetch-ms", "150"]
# What each part may take of the time at most, the most wanted ones first: one that hangs must not cost the others theirs.
TORCH_PARTS = [(compare.same_times, 60), (compare.same_counts, 90), (ladder.torch_ladder, 210), (costs.torch_costs, 200)]
FIRST_PARTS = [(machine, 200), (raw.layout_kernels, 30), (raw.workload_stages, 40)]
LAST_PARTS = [(ladder.c_ladder, 90), (raw.graphs, 40), (costs.c_costs, 90)]
REHEARSED_INSTEAD = {raw.graphs: None, compare.same_times: None, compare.same_counts: None}


def build(rehearse):
    wanted = ["liblacuna.so", "lacuna-node", "python/_lacuna.abi3.so", *(["workload-cpu"] if rehearse else ["workload", "kinds"])]
    missing = [name for name in wanted if not os.path.exists(os.path.join(BUILD, name))]
    if not missing:
        return
    if shutil.which("make") is None:
        print(f"skip: {missing} are not in {BUILD} and there is no make: what needs them is left out (make gpu-carry, tests/gpu/README.md)")
        return
    targets = ["build/release/" + name.replace("_lacuna.abi3.so", ".stamp") for name in missing]
    try:
        subprocess.run(["make", "-k", "-j4", *targets], cwd=ROOT, timeout=150, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        pass
    missing = [name for name in wanted if not os.path.exists(os.path.join(BUILD, name))]
    if missing:
        print(f"skip: {missing} could not be built; what needs them is left out")


def run_part(bench, part, seconds):
    """On its own: what one part meets must not keep the others from running."""
    bench.part_deadline = min(bench.deadline, time.monotonic() + seconds)
    began = time.monotonic()
    try:
        if not bench.out_of_time(part.__name__, 5):
            print(f"-- {part.__name__}", flush=True)
            part(bench)
    except Exception as error:  # noqa: BLE001: said as a failed check
        bench.check(part.__name__, False, f"{type(error).__name__}: {error}")
    bench.results.setdefault("seconds", {})[part.__name__] = round(time.monotonic() - began, 1)
    if part not in (machine, raw.layout_kernels):
        clocks(bench, part.__name__)
    bench.save()


def run_all(bench):
    rest = FIRST_PARTS[1:] + TORCH_PARTS + LAST_PARTS
    for part, seconds in FIRST_PARTS[:1] + (points.PARTS if bench.args.only != "rest" else []) + (rest if bench.args.only != "points" else []):
        if bench.args.rehearse:
            part = REHEARSED_INSTEAD.get(part, part)
        if part is not None and (part, seconds) in TORCH_PARTS and not bench.have_torch:
            bench.missing(part.__name__, f"{bench.args.python} has no PyTorch that sees a GPU")
        elif part is not None:
            run_part(bench, part, seconds)


def show(bench):
    """Last, so that it is what one sees of a long output."""
    failed = [check for check in bench.checks if not check["ok"]]
    for number, point in bench.results.get("points", {}).items():
        bench.say(f"point {number}: {'ok' if point['ok'] else 'not tried' if point['ok'] is None else 'FAILED'} in {point['seconds']} s: {point['point'][:90]}")
    print("\n== " + str(bench.results.get("gpu", "")))
    for line in bench.summary:
        print(line[:300])
    for name in ("not_run", "left_out"):
        for line in bench.results.get(name, []):
            print(f"{name.replace('_', ' ')}: {line[:300]}")
    for check in failed:
        print(f"FAIL  {check['check']}: {check['detail'][:300]}")
    print(f"results: {bench.args.out}, after {time.monotonic() - bench.began:.0f} s")
    print(f"{len(bench.checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def stop(_signal, _frame):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/gpu"))
    parser.add_argument("--seconds", type=int, default=560)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", choices=("points", "rest"))
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--analyze", metavar="DIR", help="predictions from what an earlier call brought home")
    parser.add_argument("--keep", metavar="DIR", nargs="+", help="what earlier calls brought home into tests/gpu")
    args = parser.parse_args()
    if args.keep:
        return home.keep(args.keep)
    if not args.analyze and not args.rehearse and not have_gpu():
        print("skip: no GPU here (nvidia-smi lists none): nothing of `make test-gpu` was run")
        print("0 passed, 0 failed")
        return 0
    args.out = args.analyze or args.out
    bench = Bench(args)
    bench.workload_size = WORKLOAD_SIZE
    signal.signal(signal.SIGTERM, stop)
    try:
        if args.analyze:
            home.analyze_at_home(bench, args.analyze)
            return show(bench)
        try:
            build(args.rehearse)
            run_all(bench)
        except KeyboardInterrupt:
            bench.missing("the rest", "this call was told to end")
        bench.pack()
        return show(bench)
    finally:
        bench.done()


if __name__ == "__main__":
    sys.exit(main())
