#!/usr/bin/env python3
"""Writes simulated jobs of the kinds of this folder, each with what is true of it.

  simulate.py DIR [--kind NAME] [--seed S] [--count N]      DIR/NAME-SEED.json (-rankR of several), DIR/NAME-SEED.truth.json
  simulate.py --list
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kineto_file  # noqa: E402
import truth  # noqa: E402
from kinds import KINDS  # noqa: E402


def write(folder, kind, seed):
    """The files of one job. Returns (paths of its traces, truth)."""
    documents, true = truth.build(KINDS[kind], seed)
    stem = os.path.join(folder, f"{kind}-{seed:06d}")
    paths = []
    for rank, document in enumerate(documents):
        paths.append(f"{stem}.json" if len(documents) == 1 else f"{stem}-rank{rank}.json")
        kineto_file.write(paths[-1], document)
    with open(f"{stem}.truth.json", "w", encoding="utf-8") as file:
        json.dump(true, file, indent=1)
    return paths, true


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", nargs="?")
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name the kinds")
    args = parser.parse_args()
    if args.list or not args.dir:
        print("\n".join(f"{kind.name:<16} {kind.about}" for kind in KINDS.values()))
        return 0 if args.list else 2
    os.makedirs(args.dir, exist_ok=True)
    for kind in [args.kind] if args.kind else KINDS:
        for seed in range(args.seed, args.seed + args.count):
            write(args.dir, kind, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
