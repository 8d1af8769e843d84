#!/usr/bin/env python3
"""Collects what the program says into one list to read: every sentence once, numbers as N.

  collect_texts.py [TRACE or FOLDER]... [--random 200] [--seed 1000] [-o build/texts.txt]

Analyzes (JSON and text), compares and exports (Markdown) all given traces, the simulated series (lacuna demo) and
--random simulated loops. Each line: how often a text was met, where it stands (title, why, change, ...), the text. Read it
after a change to the wording: a text that reads badly shows here once, not in a thousand reports.

LACUNA names the program (default build/lacuna); the loops need build/release/simulator.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import kept  # noqa: E402

SAYS = {"title", "why", "change", "expect", "costs", "wrong_if", "check", "brief", "text", "detail", "checked_fine", "not_recorded",
        "caveats", "headline", "changed", "why_not", "note", "method", "assumption"}
NUMBER = re.compile(r"(?<![A-Za-z_])-?\d[\d ]*(?<! )(?:\.\d+)?(?:e[+-]?\d+)?")


def normalized(text):
    return NUMBER.sub("N", " ".join(text.split()))


def walk(value, key, texts):
    if isinstance(value, dict):
        for name, member in value.items():
            walk(member, name, texts)
    elif isinstance(value, list):
        for member in value:
            walk(member, key, texts)
    elif isinstance(value, str) and key in SAYS and value:
        texts[(key, normalized(value))] += 1


def run(*args):
    done = kept.ask(*args)
    if done.returncode < 0:
        raise SystemExit(f"lacuna {' '.join(args)}: ended by signal {-done.returncode}")
    return done


def lines(kind, text, texts):
    for line in text.splitlines():
        if line.strip():
            texts[(kind, normalized(line))] += 1


def of_trace(path):
    texts = collections.Counter()
    done = run("analyze", "--json", path)
    lines("error", done.stderr.replace(path, "PATH"), texts)
    if done.returncode == 0:
        walk(json.loads(done.stdout), "", texts)
        lines("terminal", run("analyze", path).stdout, texts)
        lines("markdown", run("export", path, "--to", "markdown").stdout, texts)
    return texts


def of_pair(a, b):
    texts = collections.Counter()
    done = run("compare", a, b, "--json")
    if done.returncode == 0:
        walk(json.loads(done.stdout), "", texts)
        lines("comparison", run("compare", a, b).stdout, texts)
    return texts


def traces_in(paths):
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from (os.path.join(folder, name) for name in sorted(names) if not name.endswith((".py", ".md", ".txt")))
        else:
            yield path


def collect(traces, loops):
    """Texts by (where they stand, text), each with how often it was met; `loops` are seeds of simulated ones."""
    texts = collections.Counter()
    series, made = kept.demo(), []
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for seed in loops:
            made += stack.enter_context(kept.loop(seed))[0]
        pairs = [*zip(series, series[1:]), *zip(made, made[1:20])]
        found = [pool.submit(of_trace, path) for path in [*traces_in(traces), *series, *made]]
        found += [pool.submit(of_pair, a, b) for a, b in pairs]
        for job in found:
            texts.update(job.result())
    return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("-o", "--output", default=os.path.join(ROOT, "build", "texts.txt"))
    options = parser.parse_args()
    texts = collect(options.traces, range(options.seed, options.seed + options.random))
    with open(options.output, "w", encoding="utf-8") as out:
        for (kind, text), count in sorted(texts.items()):
            out.write(f"{count:6} {kind:12} {text}\n")
    print(f"{len(texts)} texts: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
