#!/usr/bin/env python3
"""Python's stacks in windows: the busy line is found by its name and number, nothing is sampled outside of a window, and where another
tool has stacks none are. Jobs work until they have used so much CPU time: how fast the machine is does not matter."""
import ctypes
import mmap
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
from test_python_versions import PYTHONS
from torch_python import TORCH_PYTHON as PYTHON, has_torch

SECONDS = 120

FRAME, SAMPLE = 28, 29
ASK_COUNT_AT = 172  # in the header of a spool
SYS_FUTEX = 202 if platform.machine() == "x86_64" else 98
FUTEX_WAKE = 1

# Steps in which busy() works nearly all of the time, until so much CPU time was used or a file says that it is enough.
JOB = textwrap.dedent("""
    import os, sys, time
    import torch

    def busy(n):
        x = 0
        for i in range(n):
            x += i * i
        return x

    def step():
        optimizer.zero_grad()
        busy(1200000)
        optimizer.step()

    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    exec(os.environ.get("BEFORE", ""))
    step()
    open(sys.argv[1] + ".runs", "w").close()
    exec(os.environ.get("AFTER", ""))
    begun = time.process_time()
    while not os.path.exists(sys.argv[1]) and time.process_time() - begun < float(sys.argv[2]):
        step()
    exec(os.environ.get("END", ""))
""")
# What costs no second to load; the hook patches it as it does the real one.
STAND_IN = os.path.join(ROOT, "tests/stand_in/python")


def records(folder):
    """(samples: [(tid, [(line, name), from the innermost], periods)], settings) of all spools."""
    samples, settings = [], []
    for name in os.listdir(folder):
        if not name.endswith(".spool") or name.startswith("node-"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        (segment_bytes,) = struct.unpack_from("<I", data, 20)
        texts, events = {}, []
        for at in range(65536, len(data) - 63, segment_bytes):
            magic, kind = struct.unpack_from("<IH", data, at)
            place, end = at + 64, min(at + segment_bytes, len(data))
            while magic == 0x4745534C and kind == 2 and place + 8 <= end:
                number, length = struct.unpack_from("<II", data, place)
                if length == 0:
                    break
                texts[number] = data[place + 8:place + 8 + length].decode("utf-8", "replace")
                place += 8 + (length + 7) // 8 * 8
            while magic == 0x4745534C and kind == 1 and place + 16 <= end:
                events.append(struct.unpack_from("<QIHBB", data, place))
                if events.pop()[4] == 0:
                    break
                events.append(struct.unpack_from("<QIHBB", data, place))
                place += 16
        frames = {event[2]: (event[0] >> 32, event[0] & 0xFFFFFFFF, texts.get(event[1])) for event in events if event[4] == FRAME}
        for ts, tid, frame, periods, kind in events:
            if kind == SAMPLE:
                stack = []
                while frame:
                    caller, line, text = frames[frame]
                    stack.append((line, text))
                    frame = caller
                samples.append((tid, stack, periods))
        settings += [texts[event[1]] for event in events if event[4] == 17]
    return samples, settings


class PythonStacks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.script = os.path.join(self.folder, "train.py")
        self.out = os.path.join(self.folder, "out")
        self.end = os.path.join(self.folder, "end")
        self.lines = JOB.split("\n")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def start(self, *options, python=sys.executable, is_real=False, seconds=0.4, **environment):
        job = JOB
        if not is_real:  # which has no layers
            environment["PYTHONPATH"] = STAND_IN
            job = job.replace("torch.nn.Linear(4, 4)", "None").replace("model.parameters(), lr=0.1", "").replace("optimizer.zero_grad()", "pass")
        with open(self.script, "w") as file:
            file.write(job)
        return subprocess.Popen([NODE, "run", "--quiet", "-o", self.out, *options, "--", python, self.script, self.end, str(seconds)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment}, cwd=self.folder)

    def record(self, *options, **how):
        shutil.rmtree(self.out, ignore_errors=True)
        job = self.start(*options, **how)
        said = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, said)
        return records(self.out)

    def line_of(self, text):
        return next(i + 1 for i, line in enumerate(self.lines) if text in line)

    def record_looks(self, *options, **how):
        """Looks take 1 % of the time at most: a short run under load holds few or none, and of three one must hold busy()."""
        seconds = how.pop("seconds", 0.4)
        for longer in (1, 5, 20):
            samples, settings = self.record(*options, seconds=seconds * longer, **how)
            if any(text.endswith("): busy") for _, stack, _ in samples for _, text in stack):
                break
        return samples, settings

    def check_busy_in(self, seconds=0.4, **how):
        """Of three runs, each longer, one must show it: under load the first look comes late, and a run holds few."""
        for longer in (1, 5, 20):
            try:
                return self.check_busy(*self.record(seconds=seconds * longer, **how))
            except AssertionError:
                if longer == 20:
                    raise

    def check_busy(self, samples, settings):
        self.assertIn("python_stacks=50 Hz", settings)
        main = [(stack, periods) for tid, stack, periods in samples if stack and stack[-1][1].endswith("<module>")]
        total = sum(periods for _, periods in main)
        self.assertGreater(len(main), 5)
        busy = {self.line_of("for i in range(n)"), self.line_of("x += i * i")}
        inside = [(stack, periods) for stack, periods in main if stack[0][0] in busy and stack[0][1].endswith("): busy")]
        self.assertGreater(sum(periods for _, periods in inside), 0.8 * total, [stack[:2] for stack, _ in main])
        for stack, _ in inside:
            self.assertEqual(stack[0][1], f"{self.script}({self.line_of('def busy')}): busy")
            self.assertEqual(stack[1][0], self.line_of("busy(1200000)"))
        # of our own code there is nothing
        self.assertFalse([stack for _, stack, _ in samples if any("_lacuna" in text for _, text in stack)])

    @unittest.skipUnless(has_torch(), "no PyTorch here")
    def test_the_busy_line_is_found(self):
        self.check_busy_in(python=PYTHON, is_real=True, seconds=1.2)

    def test_in_every_python(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                # from 3.12 on no thread is started in a process that has none
                self.check_busy_in(python=python, BEFORE="import threading; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")

    def ask(self):
        """Ask every process of the recording for its stacks, as a launcher does."""
        libc = ctypes.CDLL(None, use_errno=True)
        for name in os.listdir(self.out):
            if name.endswith(".spool") and not name.startswith("node-"):
                with open(os.path.join(self.out, name), "r+b") as file, mmap.mmap(file.fileno(), 4096) as header:
                    (count,) = struct.unpack_from("<I", header, ASK_COUNT_AT)
                    struct.pack_into("<I", header, ASK_COUNT_AT, count + 1)
                    libc.syscall(SYS_FUTEX, ctypes.byref(ctypes.c_char.from_buffer(header, ASK_COUNT_AT)), FUTEX_WAKE, 1000, None, None, 0)

    def test_after_the_end_nothing_touches_python(self):
        """The process lives on for two seconds after its interpreter is gone, as with a library that takes long to unload."""
        for version, python in PYTHONS.items():
            with self.subTest(version):
                # on_exit() calls sleep(status) after the interpreter's end
                job = self.start("--python-stacks", "on", python=python, seconds=0.2, BEFORE="import threading; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
                                 AFTER="import atexit, ctypes; libc = ctypes.CDLL(None); atexit.register(lambda: libc.on_exit(libc.sleep, None))",
                                 END="open(sys.argv[1] + '.ends', 'w').close(); sys.exit(2)")
                while job.poll() is None and not os.path.exists(self.end + ".ends"):
                    time.sleep(0.01)
                time.sleep(0.5)  # of the two seconds; asked too early it only answers
                if job.poll() is None:
                    self.ask()
                said = job.communicate(timeout=SECONDS)
                self.assertEqual(job.returncode, 2, said)
                self.assertIn("python_stacks=50 Hz", records(self.out)[1])
                shutil.rmtree(self.out)
                os.remove(self.end + ".ends")

    def test_threads_have_their_numbers(self):
        samples, _ = self.record_looks(python=PYTHON, seconds=0.8, BEFORE=textwrap.dedent("""
            import threading
            def waits():
                print(threading.get_native_id(), flush=True)
                time.sleep(1000)
            threading.Thread(target=waits, daemon=True).start()"""))
        waiting = {tid for tid, stack, _ in samples if any(text.endswith("): waits") for _, text in stack)}
        main = {tid for tid, stack, _ in samples if any(text.endswith("): busy") for _, text in stack)}
        self.assertEqual((len(waiting), len(main), len(waiting & main)), (1, 1, 0))
        self.assertNotIn(0, waiting | main)

    def test_nothing_outside_of_the_window(self):
        job = self.start("--on-demand")
        self.assertEqual(job.communicate(timeout=SECONDS)[0], "")
        self.assertEqual(records(self.out)[0], [])

    def test_in_a_window(self):
        job = self.start("--on-demand", seconds=1000)
        end = time.monotonic() + SECONDS
        while not os.path.exists(self.end + ".runs") and job.poll() is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        subprocess.run([NODE, "window", self.out, "--steps", "40", "--wait"], check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)
        open(self.end, "w").close()
        said = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0, said)
        self.assertTrue(records(self.out)[0])

    def test_inside_of_a_range_only(self):
        samples, _ = self.record_looks("--range", "look here",
                                 AFTER="import lacuna\nwith lacuna.annotate('look here'):\n    for i in range(15): busy(1200000)")
        functions = {text.rsplit(" ", 1)[1] for _, stack, _ in samples for _, text in stack if "train.py" in text}
        self.assertIn("busy", functions)
        self.assertNotIn("step", functions)

    def test_left_to_a_tool_that_has_stacks(self):
        for tool, before in {"sys.setprofile": "sys.setprofile(lambda *given: None)", "sys.settrace": "sys.settrace(lambda *given: None)",
                             "threading.setprofile": "import threading; threading.setprofile(lambda *given: None)"}.items():
            samples, settings = self.record(BEFORE=before)
            self.assertEqual(samples, [], tool)
            self.assertIn(f"python_stacks=left to {tool}", settings)
        samples, _ = self.record_looks("--python-stacks=on", BEFORE="sys.setprofile(lambda *given: None)")
        self.assertTrue(samples)

    def test_left_to_a_program_that_looks_from_outside(self):
        spy = os.path.join(self.folder, "py-spy")
        os.symlink(shutil.which("sleep"), spy)
        samples, settings = self.record(BEFORE=textwrap.dedent(f"""
            import atexit, subprocess
            spy = subprocess.Popen([{spy!r}, "1000", str(os.getpid())])
            atexit.register(spy.kill)"""))
        self.assertEqual(samples, [])
        self.assertIn("python_stacks=left to py-spy", settings)

    def test_switched_off(self):
        self.assertEqual(self.record("--all")[0], [])
        self.assertEqual(self.record(LACUNA_PYTHON_STACKS="off")[0], [])
        wrong = subprocess.run([NODE, "run", "--python-stacks=often", "--", "true"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("often", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
