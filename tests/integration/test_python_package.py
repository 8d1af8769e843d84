#!/usr/bin/env python3
"""The Python package: ranges and windows in a job, and in a notebook a trace in SQL, as typed objects and as pictures."""
import ast
import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
PACKAGE = os.path.join(ROOT, "server/python")
os.environ["LACUNA_PROGRAM"] = PROGRAM
sys.dont_write_bytecode = True  # the source stays as it is
sys.path.insert(0, PACKAGE)
import lacuna  # noqa: E402

HOSTILE = "<script>alert(1)</script>"


SYSTEM_PYTHON = "/usr/bin/python3"


def has_notebooks():
    """Whether the distribution's Python has Jupyter's client and a kernel."""
    return os.access(SYSTEM_PYTHON, os.X_OK) and subprocess.run(
        [SYSTEM_PYTHON, "-c", "import ipykernel, nbclient, nbformat"], capture_output=True, check=False).returncode == 0


def make_trace(path):
    """Three steps of a loop that waits for data, with a kernel and a range whose names are markup."""
    events = [{"ph": "M", "pid": 1, "tid": 1, "ts": 0, "name": "thread_name", "args": {"name": "main"}}]
    for step in range(6):
        at = step * 100000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 99000})
        events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "pid": 1, "tid": 1, "ts": at + 10, "dur": 60000})
        events.append({"ph": "X", "cat": "user_annotation", "name": HOSTILE, "pid": 1, "tid": 1, "ts": at + 61000, "dur": 1000})
        for k in range(4):
            number = step * 4 + k + 1
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 62000 + k * 9000, "dur": 8, "args": {"correlation": number}})
            events.append({"ph": "X", "cat": "kernel", "name": "gemm" if k else HOSTILE, "pid": 0, "tid": 7, "ts": at + 62020 + k * 9000, "dur": 8900,
                           "args": {"correlation": number, "device": 0, "stream": 7}})
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": events}, out)


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-package-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "made.json")
        make_trace(cls.path)
        cls.trace = lacuna.open(cls.path)
        cls.addClassCleanup(cls.trace.close)

    def test_rows_are_those_of_the_program(self):
        query = "SELECT name, count(*) AS n, sum(dur_ns) FROM kernels GROUP BY name ORDER BY n"
        rows = self.trace.sql(query)
        self.assertEqual(rows.columns, ["name", "n", "sum(dur_ns)"])
        self.assertEqual(rows.rows, [(HOSTILE, 6, 6 * 8900000), ("gemm", 18, 18 * 8900000)])
        self.assertEqual((len(rows), rows[1], rows["n"], list(rows)), (2, ("gemm", 18, 18 * 8900000), [6, 18], rows.rows))
        self.assertEqual(rows.dicts()[1]["n"], 18)
        self.assertEqual(rows.named()[0].n, 6)
        with self.assertRaisesRegex(KeyError, "no column 'm': there are name, n"):
            rows["m"]

    def test_it_is_read_once(self):
        first = self.trace._store()
        self.trace.sql("SELECT 1")
        self.assertEqual(self.trace._store(), first)
        with lacuna.open(self.path) as trace:
            kept = trace._store()
            self.assertTrue(os.path.exists(kept))
        self.assertFalse(os.path.exists(kept))

    def test_tables(self):
        self.assertIn("kernels", dir(self.trace.tables))
        self.assertEqual(len(self.trace.tables.kernels), 24)
        self.assertEqual(self.trace.tables["steps"].columns, self.trace.sql("SELECT * FROM steps").columns)
        with self.assertRaisesRegex(AttributeError, "no table 'nothing': there are slices, "):
            self.trace.tables.nothing

    def test_a_mistake_is_the_programs_own_sentence(self):
        with self.assertRaisesRegex(lacuna.Error, "no such column: nme"):
            self.trace.sql("SELECT nme FROM kernels")
        with self.assertRaises(FileNotFoundError):
            lacuna.open(os.path.join(self.folder, "none.json"))
        bad = os.path.join(self.folder, "bad.json")
        with open(bad, "w", encoding="ascii") as file:
            file.write("{}")
        with self.assertRaisesRegex(lacuna.Error, "bad.json"):
            lacuna.open(bad).sql("SELECT 1")
        with self.assertRaisesRegex(lacuna.Error, "bad.json"):
            lacuna.open(bad).analyze()

    def test_the_analysis_is_the_document_in_objects(self):
        document = json.loads(subprocess.run([PROGRAM, "analyze", self.path, "--json"], stdout=subprocess.PIPE, check=True).stdout.decode())
        found = self.trace.analyze()
        self.assertIsInstance(found, lacuna.Analysis)
        self.assertIs(self.trace.analyze(), found)
        self.same(found, document)
        self.assertEqual(found.findings[0].id, document["findings"][0]["id"])
        self.assertEqual(found.finding(found.findings[0].id), found.findings[0])
        self.assertIsNone(found.finding("nothing"))
        self.assertIn("#", found.findings[0].explain())
        with self.assertRaises(AttributeError):
            found.verdict = "other"
        self.assertIn("cause=", repr(found.verdict))
        guess = self.trace.analyze(what_if={"kernels": 0.5})
        self.assertEqual(guess.what_if.changes, guess.json["what_if"]["changes"])
        self.assertTrue(guess.what_if.step_mean_ns or guess.what_if.why_not)

    def same(self, one, document, where="analysis"):
        """Each attribute that is annotated equals the member of that name."""
        for name, _ in one._fields():
            value, member = getattr(one, name), document.get(name)
            if hasattr(value, "_fields"):
                self.same(value, member or {}, f"{where}.{name}")
            elif isinstance(value, list) and value and hasattr(value[0], "_fields"):
                self.assertEqual(len(value), len(member), f"{where}.{name}")
                for a, b in zip(value, member):
                    self.same(a, b, f"{where}.{name}[]")
            else:
                self.assertEqual(value, [] if member is None and value == [] else member, f"{where}.{name}")
                if where != "analysis" or name != "what_if":
                    self.assertIn(name, document, f"{where}.{name} is in no document")

    def test_what_a_notebook_shows_is_text(self):
        rows = self.trace.sql("SELECT name FROM kernels")._repr_html_()
        self.assertIn("&lt;script&gt;", rows)
        shown = self.trace._repr_html_()
        self.assertIn(self.trace.analyze().verdict.text, shown)
        self.assertEqual(shown.count('src="data:image/svg+xml;base64,'), 2)
        for one in (rows, shown, *(base64.b64decode(code).decode() for code in re.findall(r"base64,([^\"]+)", shown))):
            self.assertNotIn("<script", one)
            xml.etree.ElementTree.fromstring(f"<div>{one}</div>")

    def test_pictures(self):
        timeline = self.trace.timeline(0, 200000000).svg
        self.assertIn("why idle", timeline)
        self.assertIn("step 2", timeline)
        self.assertNotIn("step 3", timeline)
        self.assertIn("200 ms of the trace, from 0", timeline)
        flame = self.trace.flame()
        self.assertIn("gemm", flame.svg)
        self.assertIn("&lt;script&gt;", flame.svg)
        self.assertIn("waiting", self.trace.flame("waiting").svg)
        path = os.path.join(self.folder, "flame.svg")
        flame.save(path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), flame.svg)
        with self.assertRaisesRegex(lacuna.Error, "nothing lies from there to there: the trace is "):
            self.trace.timeline(10 ** 12)
        self.assertRaises(lacuna.Error, self.trace.flame, "heat")

    @unittest.skipUnless(has_notebooks(), f"{SYSTEM_PYTHON} runs no notebooks (Debian: python3-ipykernel python3-nbclient)")
    def test_a_notebook_shows_verdict_timeline_and_flame_graph(self):
        run = f"""
import nbclient, nbformat
cells = ["import lacuna; trace = lacuna.open({self.path!r}); trace", "trace.flame()"]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(notebook, kernel_name="python3", timeout=100).execute()
print(nbformat.writes(notebook))
"""
        done = subprocess.run([SYSTEM_PYTHON, "-c", run], capture_output=True, text=True, timeout=150, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "HOME": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        opened, flame = (cell["outputs"][0]["data"] for cell in json.loads(done.stdout)["cells"])
        html = "".join(opened["text/html"])
        self.assertIn("for data", html)
        self.assertEqual(html.count("data:image/svg"), 2)
        self.assertNotIn(HOSTILE, html)
        self.assertTrue({"image/svg+xml", "text/html"} & set(flame))

    def test_a_profile_without_times_has_a_flame_graph_alone(self):
        path = os.path.join(self.folder, "stacks.folded")
        with open(path, "w", encoding="ascii") as file:
            file.write("main;work;inner 70\nmain;rest 30\n")
        trace = lacuna.open(path)
        shown = trace._repr_html_()
        self.assertEqual(shown.count("data:image/svg"), 1)
        self.assertIn("no timeline: ", shown)
        self.assertIn("inner", trace.flame().svg)

    def test_other_libraries_get_the_same_rows(self):
        query = "SELECT id, CASE WHEN id % 2 THEN id END AS odd, name, dur_ns / 2.0 AS half, 1 AS id FROM kernels ORDER BY id"
        rows = self.trace.sql(query)
        names = ["id", "odd", "name", "half", "id_2"]
        empty = self.trace.sql("SELECT id, name FROM kernels WHERE id < 0")
        for library in ("pandas", "polars", "pyarrow"):
            if importlib.util.find_spec(library) is None:
                print(f"skip: no {library}, rows are not compared in it")
                continue
            table = getattr(rows, library.replace("py", "", 1) if library == "pyarrow" else library)()
            got = {"pandas": lambda: table.astype(object).where(table.notna(), None).values.tolist(), "polars": lambda: [list(row) for row in table.rows()],
                   "pyarrow": lambda: [list(row.values()) for row in table.to_pylist()]}[library]()
            self.assertEqual(list(table.columns if library != "pyarrow" else table.column_names), names)
            self.assertEqual(got, [list(row) for row in rows], library)
            self.assertEqual(len(getattr(empty, "arrow" if library == "pyarrow" else library)()), 0)

    def test_compare(self):
        other = os.path.join(self.folder, "other.json")
        shutil.copy(self.path, other)
        self.assertEqual(lacuna.compare(self.trace, other)["schema"], "lacuna.compare/1")


class Package(unittest.TestCase):
    def test_every_file_reads_as_python_3_6(self):
        names = [name for name in os.listdir(os.path.join(PACKAGE, "lacuna")) if name.endswith(".py")]
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            with open(os.path.join(PACKAGE, "lacuna", name), encoding="utf-8") as file:
                ast.parse(file.read(), name, feature_version=(3, 6))

    def test_a_job_loads_nothing_but_ranges(self):
        ask = "import sys; before = set(sys.modules); import lacuna; print(sorted(set(sys.modules) - before)); lacuna.annotate('a').__enter__(); lacuna.capture().__enter__()"
        done = subprocess.run([sys.executable, "-S", "-c", "import functools, os\n" + ask], stdout=subprocess.PIPE, text=True, check=True, env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}, timeout=60)
        self.assertEqual(ast.literal_eval(done.stdout), ["lacuna", "lacuna._annotate"])


class Capture(unittest.TestCase):
    """In a recorded job the package records through the collector, with the package installed and without."""

    JOB = textwrap.dedent("""
        import lacuna
        @lacuna.capture
        def decorated():
            with lacuna.annotate("inside"):
                pass
        with lacuna.annotate("outside"):
            with lacuna.capture():
                with lacuna.annotate("inside"):
                    pass
            decorated()
            with lacuna.annotate("outside"):
                pass
        print(lacuna.__file__, lacuna.is_recording())
    """)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-package-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def record(self, *options, job=None, **settings):
        out = os.path.join(self.folder, "out")
        script = os.path.join(self.folder, "job.py")
        with open(script, "w", encoding="ascii") as file:
            file.write(job or self.JOB)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "PYTHONPATH"))}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        run = subprocess.run([NODE, "run", "--quiet", "-o", out, *options, "--", sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**environment, **settings}, cwd=self.folder, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        shown = subprocess.run([NODE, "show", out], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
        return run.stdout, sum(int(line.split()[0]) for line in shown.splitlines() if line.strip().endswith(" ranges opened"))

    def test_only_what_is_captured_is_recorded(self):
        for settings in ({}, {"PYTHONPATH": PACKAGE}):
            said, ranges = self.record("--range", "my window", **settings)
            self.assertEqual(ranges, 4, said)
            self.assertIn("True", said)
            self.assertEqual(PACKAGE in said, bool(settings), said)

    def test_without_a_range_it_is_a_range(self):
        self.assertEqual(self.record("--all")[1], 6)

    def test_with_the_profiler_api_it_starts_and_stops_it(self):
        job = textwrap.dedent("""
            import sys, types
            calls = []
            cudart = types.SimpleNamespace(cudaProfilerStart=lambda: calls.append(1), cudaProfilerStop=lambda: calls.append(0))
            sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(cudart=lambda: cudart, is_initialized=lambda: True))
            import lacuna
            with lacuna.capture("a"):
                calls.append("a")
            del sys.modules["torch"]
            with lacuna.capture("b"):
                calls.append("b")
            sys.modules["torch"] = None
            with lacuna.capture("c"):
                pass
            print(calls)
        """)
        self.assertEqual(self.record("--profiler-api", job=job)[0].strip(), "[1, 'a', 0, 'b']")


if __name__ == "__main__":
    unittest.main()
