"""Records real DataLoader scripts on this machine's CPU and has them analyzed; used by test_*_advice.py."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from torch_python import TORCH_PYTHON, has_torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))  # soak.py

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.path.join(ROOT, "build/release/lacuna")
PYTHON = TORCH_PYTHON


@unittest.skipUnless(has_torch(), "no torch for /usr/bin/python3 (Debian: python3-torch)")
class AdviceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def lacuna(self, *arguments):
        """What it prints; it must succeed."""
        done = subprocess.run([LACUNA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def analyze_run(self, script, text, *arguments):
        """The analysis of a run of the script with this text, recorded anew each time."""
        path = os.path.join(self.folder, script)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        recording = os.path.join(self.folder, "recording")
        shutil.rmtree(recording, ignore_errors=True)
        self.lacuna("run", "--quiet", "-o", recording, "--", PYTHON, path, *arguments)
        return json.loads(self.lacuna("analyze", "--json", recording))

    def is_crowded(self, analysis):
        """Others keep the cores busy: the job waits for those, too."""
        return (analysis["loading"]["waiting_for_core_pct"] or 0.0) >= 20.0 or os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0))

    def skip_when_crowded(self, analysis):
        """What a job costs is a share of its step: others' load stretches the step, not the cost."""
        if self.is_crowded(analysis):
            self.skipTest("others keep the cores busy: the job waits for those")

    def check_grammar(self, finding, *more):
        for part in ("why", "expect", "costs", "wrong_if", "check", "evidence", *more):
            self.assertTrue(finding[part], part)

    def quieter_of_two(self, analyze, enough_ns):
        """Mean step of the quieter of two runs, or of the first when that is enough: other work on the machine only ever
        makes it longer."""
        measured = analyze()["steps"]["mean_ns"]
        return measured if measured <= enough_ns else min(measured, analyze()["steps"]["mean_ns"])


def main():
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    for _, reason in result.skipped:
        print("skip: " + reason)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
