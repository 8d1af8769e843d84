#!/usr/bin/env python3
"""A sharded (FSDP) run of many ranks, a file each, on clocks that are apart: for pictures of many ranks at once.

  sharded_run.py DIR RANKS [--late N]     DIR/rankR.json; rank N computes a quarter longer than the others
"""
import argparse
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../simulator/kinds"))
import kineto_file  # noqa: E402
from fabric import run_ranks  # noqa: E402
from kinds import KINDS  # noqa: E402

CLOCKS_APART_US = 137.25


def write(folder, ranks, late=None, steps=5):
    """Paths of the files, by rank."""
    kind = KINDS["sharded"]
    loop = kind.draw(random.Random(f"sharded/{ranks}"), ranks)
    loop = loop.but(steps=steps, kind={**loop.kind, "ranks": ranks, "ahead": False})
    slower = loop.but(compute_ns=loop.compute_ns * 5 // 4)
    machines = run_ranks(ranks, lambda rank, fabric: kind.runner(slower if rank == late else loop, rank=rank, fabric=fabric).run())
    paths = []
    for rank, machine in enumerate(machines):
        document = kind.document(f"sharded, {ranks} ranks", loop, machine, kineto_file.recorded(machine), ranks)
        for event in document["traceEvents"]:
            if event["ph"] != "M":
                event["ts"] = round(event["ts"] + rank * CLOCKS_APART_US, 3)
        paths.append(os.path.join(folder, f"rank{rank}.json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(json.dumps(document, separators=(",", ":")))
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("ranks", type=int)
    parser.add_argument("--late", type=int)
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    write(args.dir, args.ranks, args.late)


if __name__ == "__main__":
    main()
