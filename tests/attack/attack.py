#!/usr/bin/env python3
"""Attacks the program on purpose and prints what held, a row an attack.

Each area is a file beside this one with a function `attack(area)` that calls `area.row()` once for each kind of
attack. Everything happens on 127.0.0.1 and in a temporary folder, is drawn from one seed, and ends by itself.
What fails leaves its evidence in build/attack/.

usage: tests/attack/attack.py [--minutes N] [--seed N] [AREA ...]
"""
import argparse
import importlib
import os
import random
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]


class Area:
    """One area's share of the time, its random numbers, its folder, and the rows it has told."""

    def __init__(self, name, seed, seconds, folder):
        self.name = name
        self.random = random.Random(f"{seed}:{name}")
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.folder = folder
        self.release = os.path.join(ROOT, "build", "release")
        self.sanitized = os.path.join(ROOT, "build", "san-1")
        self.passed = self.failed = 0

    def time_left(self, share=1.0):
        """Seconds until this area should end, or that share of them."""
        return max(0.0, self.deadline - time.monotonic()) * share

    def row(self, what, tried, problems):
        """One kind of attack: how often it was tried, and a sentence for each time that something broke."""
        problems = list(problems)
        ok = tried > 0 and not problems
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        print(f"{'held' if ok else 'FAIL'}  {self.name:10} {what:58} {tried:8,} tried", flush=True)
        if tried <= 0:
            print("      nothing was tried", flush=True)
        for problem in problems[:12]:
            print(f"      {problem}", flush=True)
        if len(problems) > 12:
            print(f"      and {len(problems) - 12} more", flush=True)

    def skip(self, what, why):
        """An attack that this machine does not allow."""
        print(f"skip: {self.name}: {what}: {why}", flush=True)

    def keep(self, name, data):
        """Keeps bytes that broke something; returns where they lie."""
        folder = os.path.join(ROOT, "build", "attack")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{self.name}-{name}")
        with open(path, "wb") as file:
            file.write(data)
        return path


def areas():
    return sorted(name[5:-3] for name in os.listdir(HERE) if name.startswith("area_") and name.endswith(".py"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=60, help="for all areas together (60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(areas()))
    args = parser.parse_args()
    wanted = args.areas or areas()
    unknown = [name for name in wanted if name not in areas()]
    if unknown:
        parser.error(f"no area '{unknown[0]}'; there are: {', '.join(areas())}")
    passed = failed = 0
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix=f"lacuna-attack-{name}-") as folder:
            area = Area(name, args.seed, args.minutes * 60 / len(wanted), folder)
            try:
                importlib.import_module("area_" + name).attack(area)
            except Exception:  # an area that breaks is a failure, and the others still run
                area.row("the attack itself", 1, [traceback.format_exc()])
            passed, failed = passed + area.passed, failed + area.failed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
