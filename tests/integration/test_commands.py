#!/usr/bin/env python3
"""The program's commands as such: --help of each, and what is said of one that is none."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build/lacuna"))


def lacuna(*arguments):
    return subprocess.run([LACUNA, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


class Commands(unittest.TestCase):
    def test_each_has_help(self):
        listed = re.findall(r"(?m)^  ([a-z]+)  +\S", lacuna("help").stdout)
        self.assertIn("analyze", listed)
        self.assertGreater(len(listed), 15)
        for name in listed:
            done = lacuna(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn(f"lacuna {name}", done.stdout)

    def test_each_says_that_it_cannot_write(self):
        listed = re.findall(r"(?m)^  ([a-z]+)  +\S", lacuna("help").stdout)
        with tempfile.TemporaryDirectory() as folder, open("/dev/full", "w") as full:
            trace = os.path.join(folder, "trace.json")
            with open(trace, "w") as file:
                json.dump({"traceEvents": [{"ph": "X", "name": "k", "cat": "kernel", "ts": 0, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}]}, file)
            asked = [*((name, "--help") for name in listed), ("--help",), ("help", "run"), ("help", "analyze"), ("--version",), ("explain",), ("explain", "gpu-bound"), ("skill",),
                     ("doctor",), ("doctor", "--json"), ("schema",), ("schema", "Analysis"), ("analyze", trace), ("analyze", trace, "--json"), ("compare", trace, trace),
                     ("export", trace, "--to", "chrome"), ("export", trace, "--to", "csv", "--table", "kernels"), ("sql", trace, "SELECT 1"), ("sql", "--tables"),
                     ("import", trace, "--data", os.path.join(folder, "data")), ("admin", "verify", "--data", os.path.join(folder, "data"))]
            for arguments in asked:
                with self.subTest(arguments):
                    done = subprocess.run([LACUNA, *arguments], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, r"\Alacuna [a-z]+: stdout: writing failed\n\Z")

    def test_a_folder_of_ranks_is_imported_as_one_run(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks, data = os.path.join(folder, "ranks"), os.path.join(folder, "data")
            os.mkdir(ranks)
            for rank in range(3):
                with open(os.path.join(ranks, f"rank{rank}.json"), "w") as file:
                    json.dump({"traceEvents": [{"ph": "X", "name": f"k{rank}", "cat": "kernel", "ts": 0, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}]}, file)
            done = lacuna("import", ranks, "--data", data)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 3), done)
            with contextlib.closing(sqlite3.connect(os.path.join(data, "catalog.db"))) as catalog:
                self.assertEqual(catalog.execute("SELECT r.name, count(*) FROM runs r JOIN traces t ON t.run = r.id").fetchall(), [("ranks", 3)])
            self.assertIn("is already imported", lacuna("import", ranks, "--data", data).stdout)
            os.mkdir(os.path.join(folder, "empty"))
            self.assertIn("holds no recording", lacuna("import", os.path.join(folder, "empty"), "--data", data).stderr)

    def test_none_and_one_that_is_none_are_wrong_usage(self):
        for arguments, said in (((), "lacuna: no command given\n"), (("frobnicate",), "lacuna: no command 'frobnicate' (see lacuna help)\n"),
                                (("x" * 5000,), f"lacuna: no command '{'x' * 5000}' (see lacuna help)\n"), (("",), "lacuna: no command '' (see lacuna help)\n")):
            done = lacuna(*arguments)
            self.assertEqual((done.returncode, done.stderr), (2, said))

    def test_a_slip_of_the_keyboard_gets_the_command_that_was_meant(self):
        for typed, meant in (("anlyze", "analyze"), ("analyse", "analyze"), ("explian", "explain"), ("ru", "run"), ("improt", "import"), ("imports", "import")):
            self.assertEqual(lacuna(typed).stderr, f"lacuna: no command '{typed}' (did you mean: lacuna {meant})\n")
        for typed in ("r", "cat", "import-worke", "sq", "xyz"):  # too far, or of one that is not listed
            self.assertNotIn("worker", lacuna(typed).stderr)
        self.assertIn("see lacuna help", lacuna("xyz").stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
