#!/usr/bin/env python3
"""Runs every test and ends in the line `N passed, N failed`.

A test is a program; what it prints decides how many checks it counts for:
  libcheck    "100%: Checks: 12, Failures: 0, Errors: 0"
  ours        a last line "12 passed, 0 failed"
  node:test   "# pass 12" and "# fail 0"
  otherwise   one, passed when the exit status is 0
A line that starts with "skip:" is repeated at the end, so that nothing is skipped silently.

usage: tests/run.py [--filter TEXT] [--list]
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOAK = os.environ.get("LACUNA_SOAK") == "1"
SAN_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
TIMEOUT_S = 7200 if SOAK else 420


def discover():
    """Yields (name, command, extra environment), cheapest first."""
    yield "layers", ["sh", "tests/tidy/check_layers.sh"], {}
    yield "house", ["sh", "tests/tidy/check_house.sh"], {}
    for build, prefix in (("build/release", ""), ("build/san-1", "san:")):
        for source in sorted(glob.glob("tests/unit/test_*.c") + glob.glob("tests/oom/oom_*.c")):
            name = os.path.splitext(os.path.basename(source))[0]
            yield prefix + name, [f"{build}/tests/{name}"], SAN_ENV if prefix else {}
    for source in sorted(glob.glob("tests/fuzz/fuzz_*.c")):
        name = os.path.splitext(os.path.basename(source))[0]
        corpus = "tests/fuzz/corpus/" + name[len("fuzz_"):]
        seconds = "60" if SOAK else "3"
        # the corpus is replayed whole, then a few seconds of new inputs from a fixed seed
        yield name, ["sh", "tests/fuzz/replay.sh", f"build/fuzz/{name}", corpus, seconds], SAN_ENV
    yield "web", ["sh", "-c", "cd web && npm run --silent typecheck && npm run --silent test"], {}
    for script in sorted(glob.glob("tests/golden/test_*.py") + glob.glob("tests/integration/test_*.py")):
        yield os.path.splitext(os.path.basename(script))[0], ["python3", script], {}
    for script in sorted(glob.glob("tests/browser/test_*.mjs")):
        yield "browser:" + os.path.splitext(os.path.basename(script))[0], ["node", script], {}


def count(output, status):
    """(passed, failed) from what a test printed."""
    passed = failed = 0
    found = False
    for checks, failures, errors in re.findall(r"Checks: (\d+), Failures: (\d+), Errors: (\d+)", output):
        bad = int(failures) + int(errors)
        passed, failed, found = passed + int(checks) - bad, failed + bad, True
    if not found:
        lines = re.findall(r"^(\d+) passed, (\d+) failed", output, re.M)
        if lines:
            passed, failed, found = int(lines[-1][0]), int(lines[-1][1]), True
    if not found:
        ok, bad = re.findall(r"^# pass (\d+)", output, re.M), re.findall(r"^# fail (\d+)", output, re.M)
        if ok and bad:
            passed, failed, found = sum(map(int, ok)), sum(map(int, bad)), True
    if not found:
        passed, failed = (1, 0) if status == 0 else (0, 1)
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    os.chdir(ROOT)
    total_passed = total_failed = 0
    skips, failures = [], []
    for name, command, environment in discover():
        if args.filter not in name:
            continue
        if args.list:
            print(name)
            continue
        start = time.monotonic()
        try:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 timeout=TIMEOUT_S, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
            output, status = run.stdout, run.returncode
        except subprocess.TimeoutExpired as expired:
            output = (expired.stdout or b"").decode(errors="replace") + f"\ntimed out after {TIMEOUT_S} s"
            status = 124
        except FileNotFoundError as missing:
            output, status = str(missing), 127
        passed, failed = count(output, status)
        total_passed, total_failed = total_passed + passed, total_failed + failed
        skips += [f"{name}: {line[5:].strip()}" for line in output.splitlines() if line.startswith("skip:")]
        print(f"{'ok  ' if not failed else 'FAIL'} {name:36} {passed:5} passed {failed:3} failed {time.monotonic() - start:7.1f} s", flush=True)
        if failed:
            failures.append(name)
            print("\n".join("    " + line for line in output.splitlines()[-60:]), flush=True)
    if args.list:
        return 0
    for line in skips:
        print("skipped", line)
    if failures:
        print("failed:", " ".join(failures))
    if total_passed + total_failed == 0:
        print(f"no test matches '{args.filter}'")
        total_failed = 1
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed else 0


if __name__ == "__main__":
    sys.exit(main())
