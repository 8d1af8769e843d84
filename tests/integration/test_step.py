#!/usr/bin/env python3
"""`lacuna run --step NAME`: what a step is in a job whose steps nothing shows. What the job prints and its status stay as they are;
the steps are counted in all processes, and the analysis takes these and no others."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from test_python_versions import PYTHONS, STAND_IN, is_whole
from torch_python import TORCH_PYTHON, has_torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")

# Before Python 3.12 the function is looked for every 10 ms: jobs wait until it is found, so that each call counts on a slow machine as well.
# Steps of 5 ms, in four disguises; a range that looks like a step, and is none, in each.
TRAIN = """
    import sys, time
    import lacuna, helper
    from helper import imported

    class Base:
        def turn(self, x):
            with lacuna.annotate("train_step"):
                time.sleep(0.002)
            return x + 1

    class Turner(Base):
        '''Whose turns call their base's.'''
        def turn(self, x):
            time.sleep(0.003)
            return super().turn(x)

        @staticmethod
        def still(x):
            return x + 1

        @classmethod
        def all(cls, x):
            return x + 1

    def turn(x):
        with lacuna.annotate("train_step"):
            time.sleep(0.005)
        return x + 1

    def again(x):
        '''Calls itself, and fails now and then.'''
        if x % 3 == 2:
            raise ValueError(x)
        return again(x + 10) if x < 10 else x

    def main():
        step = sys.modules.get("_lacuna_step")
        while step is not None and step.is_searching():
            time.sleep(0.005)
        x = 0
        for k in range(12):
            x = turn(x) + Turner().turn(x) + Turner.still(x) + Turner.all(x) + helper.other(x) + imported(x) & 1023
            try:
                again(k)
            except ValueError as error:
                x += 1
            with lacuna.annotate("a range"):
                time.sleep(0.001)
        print(x, turn.__name__, Turner.turn.__qualname__, type(Turner.__dict__["still"]).__name__, imported.__module__)
"""
HELPER = """
    def imported(x):
        return x
    def other(x):
        return x
"""


class Step(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        self.write("helper.py", HELPER)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(textwrap.dedent(text))

    def record(self, python, step, *options, text=TRAIN + "\n    if __name__ == '__main__':\n        main()\n", status=0, **environment):
        """The job alone and recorded: the same words. What the launcher said."""
        self.write("train.py", text)
        shutil.rmtree(self.out, ignore_errors=True)
        named = ["--step", step] if step else []
        done = [subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                               env={**self.environment, **environment})
                for command in ([python, "train.py"], [NODE, "run", *(options or ("--all",)), *named, "-o", self.out, "--", python, "train.py"])]
        self.assertEqual([each.returncode for each in done], [status, status], done[1].stderr)
        self.assertEqual(done[1].stdout, done[0].stdout, done[1].stderr)
        return done[1].stderr

    def counted(self):
        """The steps of each process, as the launcher counts them to open its windows."""
        shown = subprocess.run([NODE, "show", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        return sorted(count for count in map(int, re.findall(r"(\d+) steps;", shown)) if count)

    def analysis(self):
        return json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout)

    def test_a_function_by_every_name_in_every_python(self):
        """`lacuna` is there for the job alone, too: its own copy."""
        shutil.copyfile(os.path.join(ROOT, "collector/python/_lacuna_annotate.py"), os.path.join(self.folder, "lacuna.py"))
        for version, python in PYTHONS.items():
            names = ("turn", "Turner.turn", "helper:other", "a range")
            more = ("train:turn", "__main__:Turner.turn", "Turner.still", "Turner.all", "helper:imported", "imported")
            for name in names + more if is_whole(python) or python == sys.executable else names:
                with self.subTest(version=version, name=name):
                    said = self.record(python, name)
                    self.assertEqual(self.counted(), [12], said)
                    self.assertNotIn("no step was counted", said)
                    if name in ("turn", "Turner.turn", "a range"):  # and not the ranges named train_step
                        analysis = self.analysis()
                        self.assertEqual(analysis["settings"]["step_named"], name)
                        self.assertEqual((analysis["steps"]["method"], analysis["steps"]["count"]), ("nvtx", 12))
                        self.assertEqual([key for key in analysis["settings"] if key.startswith("hook.missing")], [])

    def test_a_function_that_calls_itself_and_fails(self):
        shutil.copyfile(os.path.join(ROOT, "collector/python/_lacuna_annotate.py"), os.path.join(self.folder, "lacuna.py"))
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "again")
                self.assertEqual(self.counted(), [12])  # 4 of 12 fail

    def test_a_step_ends_where_an_exception_leaves_it(self):
        shutil.copyfile(os.path.join(ROOT, "collector/python/_lacuna_annotate.py"), os.path.join(self.folder, "lacuna.py"))
        text = """
            import sys, time
            import lacuna
            class Stop(Exception):
                pass
            def look(k):
                if k == 5:
                    raise Stop
            def turn(k):
                time.sleep(0.005)
                try:
                    look(5)
                except Stop:
                    look(k)
                time.sleep(0.005)
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            try:
                for k in range(9):
                    turn(k)
            except Stop:
                print("stopped at", k)
            with lacuna.annotate("evaluation"):
                time.sleep(0.1)
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "turn", text=text)
                self.assertEqual(self.counted(), [6])
                chrome = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
                ranges = [event for event in json.loads(chrome.stdout)["traceEvents"] if event.get("ph") == "X"]
                ends = [event["ts"] + event["dur"] for event in ranges if event["name"] == "turn"]
                self.assertEqual(len(ends), 6, ranges)
                self.assertLessEqual(max(ends), next(event["ts"] for event in ranges if event["name"] == "evaluation"))

    def test_a_function_whose_name_libraries_have_too(self):
        """A plain name is one of the job's own code; those of libraries have their module."""
        text = """
            import asyncio, subprocess, sys, time
            time.sleep(0.05)  # libraries are there first
            def run(x):
                time.sleep(0.002)
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            for k in range(6):
                run(k)
            for k in range(3):
                subprocess.run([sys.executable, "-S", "-c", "pass"])
        """
        for version, python in PYTHONS.items():
            for name, count in (("run", 6), ("subprocess:run", 3), ("CompletedProcess.__init__", 3)):
                with self.subTest(version=version, name=name):
                    self.record(python, name, text=text)
                    self.assertEqual(self.counted(), [count])

    def test_a_function_stays_the_object_that_it_is(self):
        """Under names that it was given before, for pickle and for who looks at it; arguments, errors and depth as ever. 24 steps here, 4 in a child."""
        text = """
            import inspect, multiprocessing, pickle, sys, time, traceback
            def turn(x, y=2, *more, ours=1, **named):
                "Turns."
                if x < 0:
                    raise ValueError(x)
                return (turn(x - 1) if x > 1000 else 0) + x * ours + y + len(more) + len(named)
            def work(count):
                wait()
                for k in range(count):
                    turn(k)
            def wait():
                step = sys.modules.get("_lacuna_step")
                while step is not None and step.is_searching():
                    time.sleep(0.005)
            def launch(function, again):
                before = pickle.dumps(function), inspect.getsource(function), str(inspect.signature(function)), inspect.getfullargspec(function)
                wait()
                after = pickle.dumps(function), inspect.getsource(function), str(inspect.signature(function)), inspect.getfullargspec(function)
                print(before == after, after[2], function.__name__, function.__qualname__, function.__doc__, function.__dict__, function.__closure__)
                print(function is turn, pickle.loads(before[0]) is function, again is work)
                for k in range(20):
                    print(function(k), function(k + 1, 3, 4, ours=5, z=6) if k < 2 else 0)
                print(function(1900))  # 900 calls inside one another: the limit is 1,000
                for bad in (lambda: function(), lambda: function(-1)):
                    try:
                        bad()
                    except (TypeError, ValueError) as error:
                        print(error, traceback.extract_tb(error.__traceback__)[-1][1:3])
                context = multiprocessing.get_context("spawn")
                rank = context.Process(target=again, args=(4,))
                rank.start()
                rank.join()
                held = context.Process(target=function, args=(3,))
                held.start()
                held.join()
                print(rank.exitcode, held.exitcode)
            if __name__ == "__main__":
                launch(turn, work)
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "turn", text=text)
                # the child that calls it at once may be faster than the search
                self.assertIn(self.counted(), ([4, 24], [1, 4, 24]))

    def test_functions_of_every_make(self):
        text = """
            import functools, sys, time
            def deco(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs)
                return wrapper
            def make(start):
                total, seen = start, []
                def turn(x):
                    nonlocal total
                    total += x
                    seen.append(lambda: (x, total))
                    return total, len(seen), sorted(locals())
                turn.__qualname__ = "turn"
                return turn
            class Base:
                def turn(self, x, __hidden=1):
                    return x + __hidden
            class Job(Base):
                @deco
                def turn(self, x, *, ours=1):
                    return super().turn(x) + ours, __class__.__name__
                short = lambda self, x=2, *, ours=3: (x, ours, __class__.__name__)
            turn = make(3)
            decorated = deco(make(4))
            import copy
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            for k in range(5):
                print(turn(k), Job().turn(k), Job().short(k), Job().short(), decorated(k), copy.deepcopy(turn) is turn)
        """
        for version, python in PYTHONS.items():
            is_searched = int(version.split(".")[1]) < 12
            for name in ("turn", "Job.turn", "Job.short")[:None if is_searched else 2]:  # Python tells of a lambda by another name
                with self.subTest(version=version, name=name):
                    self.record(python, name, text=text)
                    if is_searched:  # for the one that the module has: Python tells of each that was made
                        self.assertEqual(self.counted(), [10 if name == "Job.short" else 5])

    def test_nothing_of_ours_reaches_the_job(self):
        """A thread of C, a module whose __file__ is none, and steps while the interpreter ends."""
        self.write("odd.py", """
            class Odd:
                def __str__(self):
                    raise ValueError("odd")
            __file__ = Odd()
            def turn(x):
                return x * 2
        """)
        text = """
            import ctypes, functools, sys, time
            import odd
            def turn(x):
                return x + 1
            class Last:
                def __init__(self):
                    self.turn, self.out = turn, sys.__stdout__
                def __del__(self):
                    self.out.write("last %d\\n" % self.turn(4))
                    self.out.flush()
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            print([odd.turn(k) for k in range(3)])
            results = []
            kind = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)
            libc = ctypes.CDLL(None)
            for function in (turn, turn):
                thread, result = ctypes.c_size_t(), ctypes.c_size_t()
                called = kind(function)
                libc.pthread_create(ctypes.byref(thread), None, called, ctypes.c_void_p(41))
                libc.pthread_join(thread, ctypes.byref(result))
                print(result.value)
            class Range:
                name = "turn"
                def __enter__(self):
                    return self
                def __exit__(self, *arguments):
                    return arguments[-1] + 1
            if step is not None:
                step.record_function(type("profiler", (), {"record_function": Range}))
            called = kind(functools.partial(Range().__enter__().__exit__, None, None))
            libc.pthread_create(ctypes.byref(thread), None, called, ctypes.c_void_p(41))
            libc.pthread_join(thread, ctypes.byref(result))
            print(result.value)
            sys.last = Last()
            keep = [Last()]
            keep.append(keep)
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                said = self.record(python, "turn", text=text)
                self.assertNotIn("Exception ignored", said)
                self.assertIn(self.counted()[0], range(2, 5))

    def test_what_loads_when_it_is_used_is_not_loaded(self):
        """By the search: a lazy module, a module and a class that are made when something is asked of them."""
        self.write("lazy.py", "print('lazy is loaded')\n")
        self.write("late.py", """
            class Turner:
                def turn(self, x):
                    return x
        """)
        text = """
            import importlib.util, sys, time
            spec = importlib.util.find_spec("lazy")
            spec.loader = importlib.util.LazyLoader(spec.loader)
            sys.modules["lazy"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules["lazy"])
            class Asked:
                def __getattribute__(self, name):
                    print("asked for", name)
                    raise RuntimeError(name)
            sys.modules["asked"] = Turner = Asked()
            time.sleep(0.3)
            import late
            step = sys.modules.get("_lacuna_step")
            end = time.monotonic() + 20
            while step is not None and step.is_searching() and time.monotonic() < end:
                time.sleep(0.005)
            print([late.Turner().turn(k) for k in range(5)], flush=True)
            import os
            os._exit(0)
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "Turner.turn", text=text)
                self.assertEqual(self.counted(), [5])

    def test_a_compiler_takes_the_function_as_it_is(self):
        """It passes over the code that counts, or finds the function's own where it may pass over nothing."""
        text = """
            import sys, time
            import torch
            import torch._dynamo.eval_frame as dynamo
            skipped = []
            dynamo.skip_code = skipped.append
            def turn(x):
                return x + 1
            own = turn.__code__
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            torch.compile(turn)
            print(turn.__code__ is own or skipped[-1] is turn.__code__, [turn(k) for k in range(5)])
            torch.compile(turn, fullgraph=True)
            print(turn.__code__ is own, [turn(k) for k in range(5)])
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "turn", text=text, PYTHONPATH=STAND_IN)
                self.assertEqual(self.counted(), [5] if int(version.split(".")[1]) < 12 else [10])

    def test_a_name_that_never_comes_is_told_in_one_sentence(self):
        for version, python in PYTHONS.items():
            ours = "try:\n    import _lacuna\nexcept ImportError:\n    pass\nelse:\n    _lacuna.push('x'); _lacuna.pop(); _lacuna.step()\n"
            for text, name in (("print(1)", "turn"), ("print(1)", "not a \x1b name"), ("def turn():\n    yield 1\nprint(list(turn()))", "turn"), (ours, "turn")):
                with self.subTest(version=version, name=name, text=text):
                    said = self.record(python, name, text=text)
                    self.assertEqual(len([line for line in said.splitlines() if "so no step was counted (see --step" in line]), 1, said)
                    self.assertNotIn("\x1b", said)
        said = self.record(sys.executable, "turn", "--steps", "2:3", text="import time\ntime.sleep(0.1)")
        self.assertIn("so no step was counted and --steps recorded none", said)
        self.assertNotIn("optimizers", said)
        self.assertEqual(json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE).stdout)["settings"]["step_unseen"], "turn")

    def test_steps_of_children_that_are_forked_and_spawned(self):
        text = """
            import multiprocessing, sys, time
            def turn(x):
                time.sleep(0.005)
            def work(count):
                step = sys.modules.get("_lacuna_step")
                while step is not None and step.is_searching():
                    time.sleep(0.005)
                for k in range(count):
                    turn(k)
            if __name__ == "__main__":
                for method in ("fork", "spawn", "forkserver"):
                    context = multiprocessing.get_context(method)
                    ranks = [context.Process(target=work, args=(count,)) for count in (4, 7)]
                    for rank in ranks:
                        rank.start()
                    for rank in ranks:
                        rank.join()
                    print(method, [rank.exitcode for rank in ranks])
        """
        for version, python in PYTHONS.items():
            with self.subTest(version=version):
                self.record(python, "turn", text=text)
                self.assertEqual(self.counted(), [4, 4, 4, 7, 7, 7])

    def test_the_variable_and_steps_that_are_chosen(self):
        text = """
            import sys, time
            def turn(x):
                time.sleep(0.02)
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            for k in range(40):
                turn(k)
        """
        self.record(sys.executable, None, "--steps", "5:9", text=text, LACUNA_STEP="turn")
        shown = subprocess.run([NODE, "show", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        ranges = sum(int(line.split()[0]) for line in shown.splitlines() if line.strip().endswith(" ranges opened"))
        self.assertIn(ranges, range(3, 15), shown)
        printed = subprocess.run([NODE, "env", "--docker", "--step", "a:b"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.assertIn("-e LACUNA_STEP=a:b ", printed.stdout)
        printed = subprocess.run([NODE, "env", "--k8s", "--step", "a:b"], stdout=subprocess.PIPE, text=True, env=self.environment)
        self.assertIn('"--step", "a:b", "--"]', printed.stdout)
        for name in ("", "x" * 256):
            run = subprocess.run([NODE, "run", "--step", name, "--", "true"], stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(run.returncode, 2, run.stderr)

    def test_record_function_and_functions_beside_optimizers(self):
        if not has_torch():
            self.skipTest("no Python with PyTorch")
        text = """
            import torch
            from torch.autograd.profiler import record_function
            model = torch.nn.Linear(4, 4)
            first, second = torch.optim.SGD(model.parameters(), 0.1), torch.optim.SGD(model.parameters(), 0.1)
            def turn():
                for optimizer in (first, second):
                    for half in range(2):
                        model(torch.ones(2, 4)).sum().backward()
                        optimizer.step()
            import sys, time
            step = sys.modules.get("_lacuna_step")
            while step is not None and step.is_searching():
                time.sleep(0.005)
            for k in range(6):
                with record_function("my part"):
                    turn()
            print("done")
        """
        for name, count in (("my part", 6), ("turn", 6), (None, 12)):
            with self.subTest(name=name):
                self.record(TORCH_PYTHON, name, text=text)
                self.assertEqual(self.counted(), [count])


if __name__ == "__main__":
    unittest.main()
