#!/usr/bin/env python3
"""The tables in SQLite's own shell: with the extension it answers the cookbook as `lacuna sql` does, and stands what is no trace."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
EXTENSION = os.path.join(ROOT, "build/release/lacuna_sqlite")


def why_not():
    if not os.path.exists(EXTENSION + ".so"):
        return "no build/release/lacuna_sqlite.so: make sqlite-extension"
    return "" if shutil.which("sqlite3") else "no sqlite3 shell"


class Extension(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-extension-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        demo = os.path.join(cls.folder, "demo")
        subprocess.run([PROGRAM, "demo", demo], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        data = os.path.join(cls.folder, "data")
        cls.files = []
        for name in ("1-two-workers", "6-async-copies"):
            done = subprocess.run([PROGRAM, "import", "--data", data, os.path.join(demo, name + ".json")], stdout=subprocess.PIPE, text=True, check=True)
            cls.files.append(os.path.join(data, "traces", done.stdout.split()[0] + ".db"))

    def shell(self, *lines, status=0):
        done = subprocess.run(["sqlite3", "-batch", "-json", ":memory:"], input="\n".join([f".load {EXTENSION}", *lines]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_the_shell_runs_the_cookbook(self):
        questions = json.loads(subprocess.run([PROGRAM, "sql", "--tables", "--json"], stdout=subprocess.PIPE, check=True).stdout)["questions"]
        lines = [f"SELECT lacuna_open('{self.files[0]}');"]
        for question in questions:
            lines += [f".print ==={question['id']}", question["sql"] + ";"]
        answers = self.shell(*lines).stdout.split("===")[1:]
        self.assertEqual(len(answers), len(questions))
        for question, text in zip(questions, answers):
            name, _, rows = text.partition("\n")
            got = [list(row.values()) for row in json.loads(rows or "[]")]
            expected = json.loads(subprocess.run([PROGRAM, "sql", self.files[0], question["sql"], "--json"], stdout=subprocess.PIPE, check=True).stdout)["rows"]
            self.assertEqual(name, question["id"])
            self.assertEqual(len(got), len(expected), name)
            for a, b in zip(got, expected):
                for x, y in zip(a, b):
                    self.assertTrue(x == y or (isinstance(y, float) and abs(x - y) <= 1e-9 * abs(y)), (name, a, b))

    def test_several_traces_join(self):
        done = self.shell(f"SELECT lacuna_open('{self.files[0]}') AS a, lacuna_open('{self.files[1]}') AS b, lacuna_open('{self.files[0]}') AS c;",
                          "SELECT trace, count(*) AS steps, avg(dur_ns) AS mean FROM steps GROUP BY trace ORDER BY trace;",
                          "CREATE TABLE kept AS SELECT trace, max(dur_ns) AS longest FROM kernels GROUP BY trace; SELECT count(*) AS n FROM kept;")
        names, means, kept = (json.loads(line) for line in done.stdout.replace("]\n[", "]\0[").split("\0"))
        self.assertEqual(names, [{"a": "1-two-workers", "b": "6-async-copies", "c": "1-two-workers (2)"}])
        self.assertEqual([(row["trace"], row["mean"]) for row in means], [("1-two-workers", 750e6), ("1-two-workers (2)", 750e6), ("6-async-copies", 230e6)])
        self.assertEqual(kept, [{"n": 3}])

    def test_what_is_no_trace_is_an_error(self):
        bad = os.path.join(self.folder, "bad.db")
        with open(self.files[0], "rb") as file, open(bad, "wb") as out:
            out.write(file.read()[:20000])
        text = os.path.join(self.folder, "text.db")
        with open(text, "w", encoding="ascii") as file:
            file.write("no database")
        for path in (bad, text, self.folder, os.path.join(self.folder, "absent.db"), ""):
            self.assertIn("rror", self.shell(f"SELECT lacuna_open('{path}');", status=1).stderr, path)
        done = self.shell("SELECT count(*) AS n FROM slices;", f"SELECT lacuna_open('{text}');", f"SELECT lacuna_open('{self.files[1]}') AS name;", status=1)
        self.assertIn('[{"n":0}]', done.stdout)
        self.assertIn("6-async-copies", done.stdout)  # and it goes on
        # a file that somebody sends may not open others
        sent = os.path.join(self.folder, "sent.db")
        with sqlite3.connect(sent) as db:
            db.execute(f"CREATE VIEW v AS SELECT lacuna_open('{self.files[0]}')")
        done = subprocess.run(["sqlite3", "-batch", sent, f".load {EXTENSION}", "SELECT * FROM v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("unsafe use of lacuna_open()", done.stderr)

    def test_pythons_sqlite3_loads_it(self):
        db = sqlite3.connect(":memory:")
        if not hasattr(db, "enable_load_extension"):
            self.skipTest("this Python's sqlite3 loads no extensions")
        db.enable_load_extension(True)
        db.load_extension(EXTENSION)
        self.assertEqual(db.execute("SELECT lacuna_open(?)", (self.files[0],)).fetchone(), ("1-two-workers",))
        self.assertEqual(db.execute("SELECT count(*), count(DISTINCT step) FROM critical_path(3)").fetchone()[1], 1)
        cursor = db.execute("SELECT id FROM slices")
        cursor.fetchone()
        db.close()


if __name__ == "__main__":
    if why_not():
        print("skip: " + why_not())
        sys.exit(0)
    unittest.main()
