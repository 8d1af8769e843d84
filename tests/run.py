#!/usr/bin/env python3
"""Runs every test and ends in the line `N passed, N failed`.

A test is a program; what it prints decides how many checks it counts for:
  libcheck    "100%: Checks: 12, Failures: 0, Errors: 0"
  ours        a last line "12 passed, 0 failed"
  node:test   "# pass 12" and "# fail 0"
  otherwise   one, passed when the exit status is 0
A line that starts with "skip:" is repeated at the end, so that nothing is skipped silently.

One more than there are cores run at a time, and others beside them while a core is idle, for many wait; long ones first. What loads a server for
minutes runs alone at the end. With --build, the programs with sanitizers are built meanwhile, and their tests begin when they are there.

usage: tests/run.py [--filter TEXT] [--list] [--jobs N] [--build]
"""
import argparse
import collections
import glob
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOAK = os.environ.get("LACUNA_SOAK") == "1"
# A page fault costs ten microseconds in some virtual machines, where they were a third of this run. clear_shadow_mmap_threshold: the shadow of a
# stack or a large block is cleared where it is, and not mapped anew; the next two: freed memory is used again after 16 MB, and kept
SAN_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:clear_shadow_mmap_threshold=4194304"
                    ":quarantine_size_mb=16:allocator_release_to_os_interval_ms=-1:use_madv_dontdump=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
FUZZ_ENV = {**SAN_ENV, "ASAN_OPTIONS": SAN_ENV["ASAN_OPTIONS"] + ":hard_rss_limit_mb=4096"}
# libcheck's limits are seconds on the wall, which a busy machine stretches; TIMEOUT_S is what ends a hung test
# hugetlb=1: glibc's heap asks for huge pages, for a page fault's sake as above
CHECK_ENV = {"CK_TIMEOUT_MULTIPLIER": "10", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
THREAD_ENV = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
# programs with threads of their own, which `make soak` also runs under the thread sanitizer
THREADED = ("test_http_server", "test_store_trace", "test_store_catalog", "test_ingest", "test_crew", "test_convert_crew")
TIMEOUT_S = 7200 if SOAK else 600
BUILD_TIMEOUT_S = 7200
# these load a server as far as the machine goes, for minutes
ALONE = re.compile(r"^attack$|^test_server_load$" if SOAK else r"^attack$")
TIMES_FILE = "build/test-times.json"
# another test begins beside the others when so much of a core was idle for so long
IDLE_CORES = 0.5
IDLE_LOOK_S = 2.0

# make's targets for the tests that do not need them to be built before the first test starts
BUILT_MEANWHILE = (("san:", "sanitized"), ("fuzz_", "fuzzers" if SOAK else "sanitized"))
# what took longest in a run on 2 cores, in this order: a first run begins with it
LONG_TESTS = ("test_python_hook", "test_run", "test_push", "test_makefile", "test_try", "test_catalog", "test_export", "test_slurm",
              "test_python_stacks", "test_job_kinds", "test_standby", "test_loading_verdicts", "test_python_versions", "browser:test_pages",
              "test_hangs", "test_workers_advice", "test_standby_reads", "test_loading_advice", "web", "browser:test_recovery",
              "test_server_compare", "browser:test_access", "test_ranks_told", "test_random", "test_gpu_reasons", "test_server_people")

Result = collections.namedtuple("Result", "name passed failed output seconds cpu_seconds")


def discover():
    """Yields (name, command, extra environment), cheapest first."""
    yield "layers", ["sh", "tests/tidy/check_layers.sh"], {}
    yield "house", ["sh", "tests/tidy/check_house.sh"], {}
    yield "dialect", ["python3", "tests/tidy/check_dialect.py"], {}
    yield "scripts", ["sh", "tests/tidy/check_scripts.sh"], {}
    loaded = [f"build/release/{name}" for name in ("liblacuna.so", "lacuna-node", "python/_lacuna.abi3.so")]
    yield "symbols", ["sh", "tests/tidy/check_symbols.sh", *loaded], {}
    if SOAK:
        for name in THREADED:
            yield "thread:" + name, [f"build/san-thread/tests/{name}"], THREAD_ENV
        minutes = os.environ.get("LACUNA_ATTACK_MINUTES", "60")
        yield "attack", ["python3", "tests/attack/attack.py", "--minutes", minutes], SAN_ENV
    for source in sorted(glob.glob("tests/unit/test_*.c") + glob.glob("tests/oom/oom_*.c")):
        name = os.path.splitext(os.path.basename(source))[0]
        # `make soak` runs all of them without sanitizers as well, `make test` those that leave something out with them
        if SOAK or names_sanitizer(source):
            yield name, [f"build/release/tests/{name}"], {}
        yield "san:" + name, [f"build/san-1/tests/{name}"], SAN_ENV
    for source in sorted(glob.glob("tests/fuzz/fuzz_*.c")):
        name = os.path.splitext(os.path.basename(source))[0]
        corpus = "tests/fuzz/corpus/" + name[len("fuzz_"):]
        # the corpus is replayed whole, then new inputs are made from a fixed seed
        if SOAK:
            yield name, ["sh", "tests/fuzz/replay.sh", f"build/fuzz/{name}", corpus, "60"], SAN_ENV
        else:
            yield name, [f"build/san-1/tests/{name}", corpus, "1"], FUZZ_ENV
    yield "web", ["sh", "-c", "cd web && npm run --silent typecheck && npm run --silent test"], {}
    for script in sorted(glob.glob("tests/golden/test_*.py") + glob.glob("tests/integration/test_*.py")):
        yield os.path.splitext(os.path.basename(script))[0], ["python3", script], {}
    for script in sorted(glob.glob("tests/browser/test_*.mjs")):
        yield "browser:" + os.path.splitext(os.path.basename(script))[0], ["node", script], {}


def names_sanitizer(source):
    with open(source, encoding="utf-8") as file:
        return "__SANITIZE_ADDRESS__" in file.read()


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


def skipped(output):
    """What a test says that it left out; unittest by itself says only how much."""
    said = [line[5:].strip() for line in output.splitlines() if line.startswith("skip:")]
    counts = re.findall(r"\(.*\bskipped=(\d+)\b.*\)$", output, re.M)
    return said or [f"{count} of its tests, it says why with -v" for count in counts]


# what says why, in the output of Check, unittest, node:test, the sanitizers and a browser test
TELLING = re.compile(r":[FE]:|^(FAIL|ERROR|not ok)\b|Error\b|rror:|Expired\b|SUMMARY:|^timed out|^ended by signal")


def telling_lines(output, limit=12):
    """The lines of a failure by which its cause is found; the last ones where none is known. They stand at the end, which is all that some CI keeps."""
    lines = [line[:400] for line in output.splitlines() if line.strip()]
    return [line for line in lines if TELLING.search(line.strip())][:limit] or lines[-limit:]


def run_one(name, command, environment, running, limit_s=TIMEOUT_S):
    """Runs one test with a time limit for it and all it started; its output is kept together."""
    start = time.monotonic()
    expired = threading.Event()
    with tempfile.TemporaryFile() as log:
        try:
            child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env={**os.environ, **CHECK_ENV, **environment}, start_new_session=True)
        except OSError as problem:
            return Result(name, 0, 1, str(problem), 0.0, 0.0)
        running.add(child.pid)

        def stop():
            expired.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(limit_s, stop)
        timer.start()
        _, wait_status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        running.discard(child.pid)
        # set here, so that Popen does not wait again
        child.returncode = -os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else os.WEXITSTATUS(wait_status)
        log.seek(0)
        output = log.read().decode(errors="replace")
    if expired.is_set():
        output += f"\ntimed out after {limit_s} s"
    elif child.returncode < 0:
        output += f"\nended by signal {-child.returncode}"
    passed, failed = count(output, child.returncode)
    return Result(name, passed, failed, output, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


def run_test(name, command, environment, running):
    """Once; again where the leak checker crashed in a thread that was just ending, which says nothing of the test."""
    result = run_one(name, command, environment, running)
    if result.failed and "LeakSanitizer has encountered a fatal error" in result.output:
        again = run_one(name, command, environment, running)
        result = again._replace(output=again.output + "\nskip: the first run, in which LeakSanitizer itself crashed",
                                seconds=result.seconds + again.seconds, cpu_seconds=result.cpu_seconds + again.cpu_seconds)
    return result


def target_of(name):
    """What has to be built for a test with --build; None for what is there."""
    return next((target for prefix, target in BUILT_MEANWHILE if name.startswith(prefix)), None)


class Waiting:
    """The tests that have not begun, in order; those whose programs are still being built are passed over."""

    def __init__(self, tests, targets):
        self._tests, self._targets = list(tests), set(targets)
        self._changed = threading.Condition()

    def take(self):
        """The next test, when there is one that can begin; None after the last."""
        with self._changed:
            while self._tests:
                for at, test in enumerate(self._tests):
                    if target_of(test[0]) not in self._targets:
                        return self._tests.pop(at)
                self._changed.wait()
            return None

    def is_any_ready(self):
        with self._changed:
            return any(target_of(test[0]) not in self._targets for test in self._tests)

    def built(self, failed):
        """Opens the way for the tests that waited; those are returned instead when the build failed."""
        with self._changed:
            lost = [test for test in self._tests if failed and target_of(test[0]) in self._targets]
            self._tests = [test for test in self._tests if test not in lost]
            self._targets.clear()
            self._changed.notify_all()
            return lost


def run_all(tests, jobs, running, targets):
    """Yields a Result for each test as it ends: `jobs` at a time, then those that run alone. `targets` are built meanwhile."""
    done = queue.SimpleQueue()
    beside = [test for test in tests if not ALONE.search(test[0])]
    waiting = Waiting(beside, targets)

    def build():
        result = run_one("build", ["make", "--no-print-directory", f"-j{max(jobs - 1, 1)}", *targets], {}, running, BUILD_TIMEOUT_S)
        done.put(result._replace(passed=0))
        for name, *_ in waiting.built(result.failed > 0):
            done.put(Result(name, 0, 1, "not run: its program was not built", 0.0, 0.0))

    def worker(is_extra):
        while (test := waiting.take()) is not None:
            done.put(run_test(*test, running))
            if is_extra:
                return

    def use_idle_cores():
        before = idle_seconds()
        while True:
            time.sleep(IDLE_LOOK_S)
            now = idle_seconds()
            if now - before > IDLE_CORES * IDLE_LOOK_S and len(running) < 2 * jobs and waiting.is_any_ready():
                threading.Thread(target=worker, args=(True,), daemon=True).start()
            before = now

    if targets:
        threading.Thread(target=build, daemon=True).start()
    for _ in range(jobs):
        threading.Thread(target=worker, args=(False,), daemon=True).start()
    threading.Thread(target=use_idle_cores, daemon=True).start()
    for _ in range(len(beside) + bool(targets)):
        yield done.get()
    for test in tests:
        if ALONE.search(test[0]):
            yield run_test(*test, running)


def idle_seconds():
    """Of the cores that this may use, together, since the system's start."""
    mine = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    with open("/proc/stat", encoding="ascii") as file:
        ticks = sum(int(line.split()[4]) for line in file if line.split(" ", 1)[0] in mine)
    return ticks / os.sysconf("SC_CLK_TCK")


def guess_seconds(name, command):
    """Of a test that never ran here: what starts jobs and servers waits for them, and goes first."""
    if name in LONG_TESTS:
        return 100 - LONG_TESTS.index(name)
    if command[0] not in ("python3", "node"):
        return 20 if name.startswith("san:") else 5
    return 30


def past_times():
    """Seconds each test took when last run here; {} on a fresh clone."""
    try:
        with open(TIMES_FILE, encoding="utf-8") as file:
            return {str(name): float(seconds) for name, seconds in json.load(file).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def keep_times(times):
    """For the next run's order; a tree that cannot be written is no failure."""
    try:
        os.makedirs(os.path.dirname(TIMES_FILE), exist_ok=True)
        with open(TIMES_FILE, "w", encoding="utf-8") as file:
            json.dump(times, file, indent=0, sort_keys=True)
    except OSError:
        pass


def show(result):
    print(f"{'FAIL' if result.failed else 'ok  '} {result.name:36} {result.passed:5} passed {result.failed:3} failed"
          f" {result.seconds:7.1f} s {result.cpu_seconds:7.1f} s cpu", flush=True)
    if result.failed:
        print("\n".join("    " + line for line in result.output.splitlines()[-60:]), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--build", action="store_true", help="build what the selected tests need beside `make all test-programs`, while others run")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    args = parser.parse_args()
    os.chdir(ROOT)
    # a shell that starts this in the background ignores Ctrl-C, and a job keeps what is ignored: tests start from the default
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    times = past_times()
    tests = [test for test in discover() if args.filter in " ".join([test[0], *test[1]])]  # a name, or a folder
    if args.list:
        print("\n".join(test[0] for test in tests))
        return 0
    tests.sort(key=lambda test: -times.get(test[0], guess_seconds(*test[:2])))
    targets = sorted({target_of(test[0]) for test in tests} - {None}) if args.build else []
    total_passed = total_failed = 0
    cpu_seconds, start = 0.0, time.monotonic()
    skips, failures, running = [], [], set()
    try:
        for result in run_all(tests, max(args.jobs, 1), running, targets):
            show(result)
            total_passed, total_failed = total_passed + result.passed, total_failed + result.failed
            cpu_seconds += result.cpu_seconds
            if result.passed or result.failed:  # not the build
                times[result.name] = round(result.seconds, 1)
            skips += [f"{result.name}: {reason}" for reason in skipped(result.output)]
            if result.failed:
                failures.append(result)
    except KeyboardInterrupt:
        for pid in list(running):
            os.killpg(pid, signal.SIGKILL)
        print("interrupted")
        return 130
    keep_times(times)
    for line, times_said in sorted(collections.Counter(skips).items()):
        print("skipped", line + (f" ({times_said} times)" if times_said > 1 else ""))
    for failure in failures:
        print("\n".join([f"failed: {failure.name}", *("    " + line for line in telling_lines(failure.output))]))
    if not tests:
        print(f"no test matches '{args.filter}'")
        total_failed = 1
    print(f"{time.monotonic() - start:.0f} s, {cpu_seconds:.0f} s of CPU time")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed else 0


if __name__ == "__main__":
    sys.exit(main())
