#!/usr/bin/env python3
"""`lacuna run --metric` and `lacuna.metric`: results that a job prints or tells, in its trace and in its run."""
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

import server_harness as harness

PYTHON_PARTS = os.path.join(harness.ROOT, "collector/python")

TRAIN = '''
import logging, os, sys, threading
logging.basicConfig(level=logging.INFO)
for step in range(100):
    loss = 2.0 / (1 + step * 0.1)
    print(f"step {step} loss: {loss:.4f} val_loss={loss * 1.1:.3e}")
    logging.info("accuracy %.3f%%", 100 - 10 * loss)
    sys.stderr.write(f"\\rstep {step}, {1000 + step:,} images/s")
sys.stdout.flush()  # else the other process prints it, too
if os.fork() == 0:  # what was begun, and what another process says
    print("loss: 1e9", flush=True)
    os._exit(0)
os.wait()
print("loss: none")
print("loss: " + "9" * 2000)
sys.stdout.write("loss:"); sys.stdout.write(" 0.01")
'''


def load(patterns, told):
    """The module as a job has it, with a recorder that notes in `told`."""
    recorder = types.ModuleType("_lacuna")
    recorder.metric = lambda name, value: told.append((name, value))
    sys.modules["_lacuna"] = recorder
    module = types.ModuleType("_lacuna_metric")
    with open(os.path.join(PYTHON_PARTS, "_lacuna_metric.py")) as file:
        exec(compile(file.read(), "_lacuna_metric.py", "exec"), module.__dict__)
    for pattern in patterns:
        module._patterns.append(module._compile(pattern))
    return module


class Expressions(unittest.TestCase):
    def look(self, pattern, line):
        told = []
        load([pattern], told)._look(line)
        return told

    def test_what_is_found_in_a_line(self):
        for pattern, line, expected in (
                ("loss", "step 3 loss: 1.83", [("loss", 1.83)]),
                ("loss", "step 3 loss 1.83e-2,", [("loss", 0.0183)]),
                ("loss", "val_loss=2", []),
                ("loss", "loss: nan", []),
                ("loss", "a loss of 3", []),
                ("val loss", "val loss = -.5", [("val loss", -0.5)]),
                ("(?i)LOSS", "loss=1", [("LOSS", 1)]),
                ("loss|error", "error: 7", [("loss error", 7)]),
                (r"loss[:=] *([-\d.]+)", "loss=0.5 x", [("loss", 0.5)]),
                (r"Epoch \d+ acc=(\S+)", "Epoch 3 acc=0.91", [("acc", 0.91)]),
                (r"([\d,.]+) images/s", "12,345.6 images/s", [("metric", 12345.6)]),
                (r"(?P<top1>\d+)/(?P<top5>\d+)", "top 71/90", [("top1", 71), ("top5", 90)]),
                (r"loss (?P<loss>\S+)", "loss high", []),
                (r"a=(?P<a>\d+)|b=(?P<b>\d+)", "b=4", [("b", 4)])):
            with self.subTest(pattern=pattern, line=line):
                self.assertEqual(sorted(self.look(pattern, line)), sorted(expected))

    def test_what_could_take_forever_or_means_nothing_is_refused(self):
        for pattern in ("(a+)+b", r"(\s*\d+)*x", "(?:x{1,99}y?){2,}", "((a|b)*c?)*"):
            with self.subTest(pattern), self.assertRaisesRegex(ValueError, "repeats within repeats"):
                load([pattern], [])
        for pattern in ("x(", "*", "(?P<1>a)"):
            with self.subTest(pattern), self.assertRaises(re.error):
                load([pattern], [])
        load([r"(\w+)=(\d+)", "a{2}(b{3})+", "(?:ab)+c*"], [])

    def test_lines_come_in_pieces(self):
        told, out = [], io.StringIO()
        module = load(["loss"], told)
        write = module._Write(out.write)
        for piece in ("lo", "ss: 1", "\nloss: 2\rloss: 3\r\n", "x" * 5000, "loss: 4\n", "loss: 5"):
            self.assertEqual(write(piece), len(piece))
        self.assertEqual([value for _, value in told], [1, 2, 3])
        write.end()
        write.end()
        self.assertEqual([value for _, value in told], [1, 2, 3, 5])
        self.assertEqual(len(out.getvalue()), 6 + 6 + 21 - 4 + 5000 + 8 + 7 - 4)
        with self.assertRaises(TypeError):
            write(b"bytes")

    def test_no_more_than_so_many(self):
        told = []
        module = load([r"(?P<x>\d+)"], told)
        module._VALUES_MAX = 3
        for n in range(10):
            module._look(str(n))
        self.assertEqual(len(told), 3)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-metric-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.out = os.path.join(self.folder, "out")

    def script(self, text):
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def run_job(self, text, *options, environment=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        return subprocess.run([harness.PROGRAM, "run", "--quiet", "-o", self.out, *options, "--", sys.executable, self.script(text)], capture_output=True, text=True,
                              timeout=240, cwd=self.folder, env={**clean, **(environment or {})})

    def counters(self):
        """{name: values in the order of time}"""
        done = subprocess.run([harness.PROGRAM, "sql", self.out, "SELECT name, value FROM counters WHERE name NOT LIKE '%(%' ORDER BY time_ns", "--json"],
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        document = json.loads(done.stdout)
        for name, value in document["rows"]:
            found.setdefault(name, []).append(value)
        return found

    def test_what_a_job_prints_is_in_its_trace_and_in_its_run(self):
        done = self.run_job(TRAIN, "--metric", "loss", "--metric", r"val_loss=(\S+)", "--metric", r"accuracy (?P<top1>[\d.]+)", "--metric", r"(?P<pace>[\d,]+) images/s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("loss: "), 104)
        found = self.counters()
        self.assertEqual({name: len(values) for name, values in found.items()}, {"loss": 101, "val_loss": 100, "top1": 100, "pace": 100})
        self.assertEqual([found["loss"][i] for i in (0, 1, -1)], [2, 1.8182, 0.01])
        self.assertEqual(found["pace"][-1], 1099)
        data = os.path.join(self.folder, "data")
        done = subprocess.run([harness.PROGRAM, "import", self.out, "--data", data], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        server = harness.Server(data=data)
        try:
            harness.wait_for(lambda: server.api("/projects/-/journal")["pending"] == 0, 120)
            run = server.api("/projects/-/journal")["runs"][0]
            told = {metric["name"]: metric for metric in run["facts"]["metrics"]}
        finally:
            server.close()
        self.assertEqual(sorted(told), ["loss", "pace", "top1", "val_loss"])
        self.assertEqual(told["loss"], {"name": "loss", "last": 0.01, "best": 0.01, "count": 101})
        self.assertEqual(told["pace"]["best"], 1099)
        self.assertEqual(told["top1"]["best"], max(found["top1"]))
        self.assertEqual(told["val_loss"]["best"], min(found["val_loss"]))

    def test_its_streams_are_what_they_were(self):
        look = '''
            import io, sys
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                with open("streams.txt", "a") as file:
                    print(name, type(stream), stream is getattr(sys, "__" + name + "__"), stream.fileno(), stream.isatty(), stream.encoding, stream.errors,
                          stream.line_buffering, stream.write_through, stream.mode, stream.name, stream.newlines, stream.writable(), stream.write("x"), file=file)
                try:
                    stream.write(1)
                except TypeError as error:
                    print(error)
            sys.stdout.close()
        '''
        alone = subprocess.run([sys.executable, self.script(look)], capture_output=True, text=True, cwd=self.folder, timeout=120)
        with open(os.path.join(self.folder, "streams.txt")) as file:
            before = file.read()
        os.unlink(os.path.join(self.folder, "streams.txt"))
        done = self.run_job(look, "--metric", "loss")
        with open(os.path.join(self.folder, "streams.txt")) as file:
            self.assertEqual(file.read(), before)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, alone.stderr))

    def test_an_expression_that_is_none_is_said_once_and_the_job_runs(self):
        text = '''
            import subprocess, sys
            print("loss: 3")
            subprocess.run([sys.executable, "-c", "print('loss: 4')"])
            sys.exit(7)
        '''
        done = self.run_job(text, "--metric", "x(", "--metric", "loss")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stderr.count("--metric 'x('"), 1, done.stderr)
        self.assertEqual(self.counters(), {"loss": [3, 4]})
        for wrong in ("", "a\nb", "x" * 5000):
            done = self.run_job(text, "--metric", wrong)
            self.assertEqual(done.returncode, 2, wrong[:10])
            self.assertIn("not a valid value", done.stderr)

    def test_a_script_tells_its_results(self):
        text = '''
            import lacuna
            for n in range(5):
                lacuna.metric("F1 score", n / 10)
            lacuna.metric("diverged", float("nan"))
        '''
        done = self.run_job(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.counters(), {"F1 score": [0, 0.1, 0.2, 0.3, 0.4]})
        alone = subprocess.run([sys.executable, self.script(text)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}, timeout=120)
        self.assertIn("ModuleNotFoundError", alone.stderr)  # where it is to run alone, it carries the file
        shutil.copy(os.path.join(PYTHON_PARTS, "_lacuna_annotate.py"), os.path.join(self.folder, "lacuna.py"))
        alone = subprocess.run([sys.executable, self.script(text)], capture_output=True, text=True, timeout=120)
        self.assertEqual(alone.returncode, 0, alone.stderr)


if __name__ == "__main__":
    harness.main()
