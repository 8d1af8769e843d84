#!/usr/bin/env python3
"""tests/run.py itself: tests wait for the programs that are built meanwhile, and fail when those could not be built."""
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import run  # noqa: E402  tests/run.py

FIRST, SECOND = ("first", ["true"], {}), ("san:second", ["true"], {})


class Runner(unittest.TestCase):
    def setUp(self):
        os.chdir(ROOT)

    def results(self, tests, targets):
        return {result.name: result for result in run.run_all(tests, 2, set(), targets)}

    def test_a_program_is_built_before_its_test_begins(self):
        with tempfile.TemporaryDirectory() as folder:
            built = os.path.join(folder, "built")
            with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
                file.write(f"sanitized:\n\tsleep 1; touch {built}\n")
            os.chdir(folder)
            results = self.results([("san:program", ["test", "-e", built], {}), FIRST], ["sanitized"])
        self.assertEqual({name: (one.passed, one.failed) for name, one in results.items()},
                         {"build": (0, 0), "san:program": (1, 0), "first": (1, 0)})

    def test_a_build_that_fails_fails_its_tests_and_no_others(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
                file.write("sanitized:\n\tfalse\n")
            os.chdir(folder)
            results = self.results([SECOND, FIRST], ["sanitized"])
        self.assertEqual({name: one.failed for name, one in results.items()}, {"build": 1, "san:second": 1, "first": 0})
        self.assertIn("not run", results["san:second"].output)

    def test_nothing_waits_where_nothing_is_built(self):
        self.assertEqual({one.failed for one in self.results([SECOND, FIRST], []).values()}, {0})

    def test_the_long_tests_of_a_first_run_exist(self):
        names = {test[0] for test in run.discover()}
        self.assertEqual([name for name in run.LONG_TESTS if name not in names], [])

    def test_the_end_of_a_run_says_why_a_test_failed(self):
        check = "Running\n50%: Checks: 2, Failures: 1, Errors: 0\ntests/unit/test_x.c:12:F:inject:forks:0: 'a == 9' failed\n" + "noise\n" * 90
        self.assertEqual(run.telling_lines(check), ["tests/unit/test_x.c:12:F:inject:forks:0: 'a == 9' failed"])
        unit = "FAIL: test_items (__main__.Hook)\nTraceback (most recent call last):\n  File x\nAssertionError: 'True' != 'False'\n" + "noise\n" * 90
        self.assertEqual(run.telling_lines(unit), ["FAIL: test_items (__main__.Hook)", "AssertionError: 'True' != 'False'"])
        self.assertEqual(run.telling_lines("nobody\nknows"), ["nobody", "knows"])


if __name__ == "__main__":
    unittest.main()
