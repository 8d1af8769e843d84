#!/usr/bin/env python3
"""Phases that the diagnosis finds in simulated jobs (tests/simulator, --phases), against when they were.

  test_phases.py [--count 16] [--seed 3000] [--verbose]       with LACUNA_SOAK=1 --count 40

Of each kind (validation, checkpoint, epoch_end, recompilation): the time that is found and was (recall), and the time
found that was none (noise). What the trace cannot show is not asked for: it is listed in `can_show`. What is said must
be so in every trace. The 16 jobs of `make test` are the first of the 40 of `make soak`.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from soak import SOAK  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
SIMULATOR = os.path.join(ROOT, "build", "release", "simulator")
KINDS = ("validation", "checkpoint", "epoch_end", "recompilation")
RECALL_MIN, NOISE_MAX = 0.9, 0.1


def can_show(kind, shape):
    """Whether the trace holds what tells this kind."""
    by_host = shape["step_names"] != "none"  # else steps are times of the device
    if kind == "recompilation":
        return True
    if kind == "epoch_end":  # without numbers only a long wait tells it, and with no workers none is long
        return by_host and shape["hook"] and shape["workers"] > 0
    if shape["named"]:
        return True
    return by_host and has_waits(shape)


def has_waits(shape):
    return shape["hook"] or shape["step_names"] in ("steps", "loader")


def overlap(a, b):
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b)


def spans(phases, kind):
    return [(p["start_ns"], p["start_ns"] + p["dur_ns"]) for p in phases if p["name"] == kind]


def length(intervals):
    return sum(end - start for start, end in intervals)


def examine(path, truth):
    done = subprocess.run([LACUNA, "analyze", "--json", path], capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(done.stdout)
    problems = []
    phases = said["phases"]
    if sum(p["dur_ns"] for p in phases) != said["trace"]["duration_ns"]:
        problems.append("phases do not sum to the recording")
    if sum(p["step_count"] for p in phases) != said["steps"]["count"]:
        problems.append("steps are not counted once each")
    if sum(k["count"] for k in said["steps"]["kinds"]) != said["steps"]["count"]:
        problems.append("kinds do not sum to the steps")
    for kind in KINDS:
        was, found = spans(truth["phases"], kind), spans(phases, kind)
        both = overlap(was, found)
        # where no wait was recorded nothing parts a checkpoint from what is waited for behind it
        may_be_more = kind == "checkpoint" and not has_waits(truth["shape"])
        if not may_be_more and length(found) - both > NOISE_MAX * max(length(was), length(found)):
            problems.append(f"{kind}: {length(found)} ns found, {both} of them right")
        # The first steps are first use, whatever they load. What was before the first one nobody saw; what names no
        # steps but their ends does not name the last.
        first = {"recompilation": 3, "epoch_end": 1}.get(kind, 0)
        last = truth["steps"]["count"] - (1 if truth["shape"]["step_names"] == "steps" else 2)
        was = spans([p for p in truth["phases"] if first <= p["step"] <= last], kind)
        both = overlap(was, found)
        if was and can_show(kind, truth["shape"]) and both < RECALL_MIN * length(was):
            problems.append(f"{kind}: {both} of {length(was)} ns found")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40 if SOAK else 16)
    parser.add_argument("--seed", type=int, default=3000)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([SIMULATOR, folder, "--count", str(args.count), "--seed", str(args.seed), "--phases"], check=True)
        for name in sorted(n for n in os.listdir(folder) if n.endswith(".truth.json")):
            with open(os.path.join(folder, name)) as file:
                truth = json.load(file)
            problems = examine(os.path.join(folder, name.replace(".truth.json", ".json")), truth)
            failed += bool(problems)
            passed += not problems
            if problems or args.verbose:
                print(f"{'FAIL' if problems else 'ok'} seed {truth['seed']} {truth['shape']}: {'; '.join(problems)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
