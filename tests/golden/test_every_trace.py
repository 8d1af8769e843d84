#!/usr/bin/env python3
"""Every real trace beside the repository, one row each: it opens with what is in it, or fails with the sentence that says what to give instead.

What the figures must equal is in test_truth.py (Chrome traces) and test_import_nsys_real.c (databases); here is what each file is, that none is
left out, and the folded stacks that FlameGraph's own script made of its samples.

LACUNA names the program (default build/lacuna), LACUNA_TABLE=1 prints the table.
"""
import fnmatch
import glob
import json
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from real_traces import NONE, real_traces  # noqa: E402

TRACES = real_traces()
BESIDE = ("README.md", "truth.py")  # no traces

# pattern: format, whether it has times, whether a GPU works in it
OPENS = (
    ("flamegraph/results__*", "folded", False, False),
    ("flamegraph/perf-vertx-*", "perf", False, False),
    ("flamegraph/*", "perf", True, False),
    ("hta/cupti_profiler__*", "kineto", True, False),
    ("hta/rank_non_gpu__*", "kineto", True, False),
    ("hta/*", "kineto", True, True),
    ("nsys/nevakrien_report1.sqlite", "nsys", True, False),
    ("nsys/*", "nsys", True, True),
    ("pyspy/*", "speedscope", False, False),
    ("smi/*", "gpu log", True, False),
    ("speedscope/*.linux-perf.txt", "perf", True, False),
    ("speedscope/*", "speedscope", False, False),
    ("tf/xprof_*", "chrome", True, False),
    ("tf/*", "tensorflow", True, True),
    ("*", "kineto", True, True),
)
FAILS = {"nvprof/patwie_database.sql": "an nvprof database in which nothing was recorded: profile with nvprof -o FILE"}
FOLDED = (
    ("flamegraph/perf-vertx-stacks-01.txt", "flamegraph/results__perf-vertx-stacks-01-collapsed-all.txt"),
    ("flamegraph/perf-iperf-stacks-pidtid-01.txt", "flamegraph/results__perf-iperf-stacks-pidtid-01-collapsed-all.txt"),
)


def files():
    found = (os.path.relpath(path, TRACES) for path in glob.glob(os.path.join(TRACES, "**"), recursive=True) if os.path.isfile(path))
    return sorted(name for name in found if not name.startswith(("truth/", "tests/")) and name not in BESIDE)


def expected(name):
    return next(row[1:] for row in OPENS if fnmatch.fnmatch(name, row[0]))


@unittest.skipUnless(os.path.isdir(TRACES), NONE)
class EveryTrace(unittest.TestCase):
    def test_each_opens_or_says_what_to_give(self):
        names = files()
        self.assertGreater(len(names), 40)
        for name in names:
            with self.subTest(name=name):
                done = kept.ask("analyze", "--json", os.path.join(TRACES, name))
                if name in FAILS:
                    self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
                    self.assertIn(FAILS[name], done.stderr)
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                document = json.loads(done.stdout)
                analyses = [rank["analysis"] for rank in document["ranks"]] if document["schema"] == "lacuna.run/1" else [document]
                for analysis in analyses:
                    trace = analysis["trace"]
                    if os.environ.get("LACUNA_TABLE"):
                        print(f"{name[:60]:60} {trace['format']:10} {trace['event_count']:8} events {len(analysis['devices'])} GPUs  {analysis['verdict']['text'][:60]}")
                    self.assertEqual((trace["format"], trace["timeline"], len(analysis["devices"]) > 0), expected(name))
                    self.assertGreater(trace["event_count"], 0)
                    self.assertNotEqual(analysis["verdict"]["text"], "")

    def test_each_truth_is_of_a_trace_that_is_here(self):
        names = [name.replace("/", "__") for name in files()]
        truths = os.listdir(os.path.join(TRACES, "truth")) if os.path.isdir(os.path.join(TRACES, "truth")) else []
        for truth in truths:
            stem = truth.removesuffix(".json").removesuffix(".nsys")
            self.assertTrue(any(name.startswith(stem) or (name.endswith(".tar.gz") and stem.startswith(name.removesuffix(".tar.gz"))) for name in names),
                            truth)

    def test_folded_stacks_equal_those_of_flamegraph(self):
        def lines(text):
            return sorted(line for line in text.splitlines() if line)
        for samples, folded in FOLDED:
            if not os.path.exists(os.path.join(TRACES, folded)):
                self.skipTest(f"no {folded}")
            with open(os.path.join(TRACES, folded), encoding="utf-8") as file:
                wanted = lines(file.read())
            for source in (samples, folded):
                done = kept.ask("export", os.path.join(TRACES, source), "--to", "folded")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(lines(done.stdout), wanted, source)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
