#!/usr/bin/env python3
"""What the hook records of every batch, in the Pythons that are there."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_python_versions import LACUNA, NODE, PYTHONS  # noqa: E402


class Loader(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def in_each(self, text, expected):
        """Run it in each Python; the ranges by name, each as (batch, worker, CPU us, us), of the last."""
        script = os.path.join(self.folder, "script.py")
        with open(script, "w") as file:
            file.write(textwrap.dedent(self.BEGIN) + textwrap.dedent(text))
        for version, python in PYTHONS.items():
            with self.subTest(version):
                shutil.rmtree(self.out, ignore_errors=True)
                done = subprocess.run([NODE, "run", "--all", "--quiet", "-o", self.out, "--", python, script],
                                      cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
        chrome = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        ranges = collections.defaultdict(list)
        for event in json.loads(chrome.stdout)["traceEvents"]:
            if event.get("ph") == "X":
                args = event.get("args", {})
                ranges[event["name"]].append((args.get("batch", -1), args.get("worker", -1), args.get("cpu_ns", -1) / 1e3, event["dur"]))
        return ranges

    BEGIN = """
        import _lacuna, _lacuna_loader, signal, sys, threading, time, weakref
        from _lacuna_loader import here
        class Iterator:
            _rcvd_idx = 7
        class Mine(Exception): pass
        def fails(*args, **kwargs):
            calls.append(args)
            raise Mine("once")
        def computes(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end: pass
        calls = []
    """

    def test_the_cpu_time_of_a_range_is_right_to_10_us_or_3_percent(self):
        ranges = self.in_each("""
            kinds = {"waits": (0, 0.004), "computes": (0.004, 0), "both": (0.003, 0.003), "short": (0, 0)}
            for _ in range(40):
                for name, (cpu, wait) in kinds.items():
                    _lacuna.push_loader("loader." + name, 1, 2)
                    _lacuna.push_loader("loader.inner", 1, 2)
                    computes(cpu)
                    _lacuna.pop()
                    time.sleep(wait)
                    _lacuna.pop()
            print("done")
        """, "done\n")
        for name, low_us, high_us in (("waits", 0, 250), ("computes", 4000 - 135, 4600), ("both", 3000 - 200, 3600), ("short", 0, 100)):
            cpu_us = sorted(each[2] for each in ranges["loader." + name])
            self.assertEqual(len(cpu_us), 40)
            self.assertTrue(all(each[2] <= each[3] + 10.1 for each in ranges["loader." + name]))  # no more than it took
            self.assertTrue(low_us <= cpu_us[0] and cpu_us[20] <= high_us, (name, cpu_us))


if __name__ == "__main__":
    unittest.main()
