#!/usr/bin/env python3
"""An unchanged DataLoader script that is slow on purpose: `analyze` names the number of workers, and
with that number the step takes what was predicted."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.path.join(ROOT, "build/release/lacuna")
PYTHON = "/usr/bin/python3"

# Loading sleeps: that it takes long costs no core, so two cores are enough for any number of workers.
SCRIPT = """
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 8 * 100

    def __getitem__(self, index):
        time.sleep(0.010)
        return torch.full((4,), float(index)), index % 2


def main(workers):
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for data, label in DataLoader(Slow(), batch_size=8, num_workers=workers):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), label)
        loss.backward()
        time.sleep(0.040)
        optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]))
"""

EVALUATION = """
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.010)
        return torch.full((4,), float(index))


with torch.no_grad():
    model = torch.nn.Linear(4, 2)
    for data in DataLoader(Slow(), batch_size=2, num_workers=1):
        model(data)
"""


def has_torch():
    if not os.access(PYTHON, os.X_OK):
        return False
    return subprocess.run([PYTHON, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(has_torch(), "no torch for /usr/bin/python3 (Debian: python3-torch)")
class WorkersAdvice(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def record(self, name, text, *arguments):
        script = os.path.join(self.folder, name + ".py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        recording = os.path.join(self.folder, name)
        done = subprocess.run([LACUNA, "run", "--quiet", "-o", recording, "--", PYTHON, script, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return recording

    def analyze(self, recording, *arguments):
        done = subprocess.run([LACUNA, "analyze", "--json", recording, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def advice_holds(self, workers):
        before = self.analyze(self.record(f"before{workers}", SCRIPT, str(workers)))
        first = before["findings"][0]
        self.assertEqual(first["id"], "input-starvation")
        self.assertEqual(before["verdict"]["cause"], "data_wait")
        self.assertIn("training process waits", before["verdict"]["text"])
        wanted = before["dataloader"]["recommended_num_workers"]
        self.assertGreater(wanted, workers)
        self.assertLess(wanted, 8)
        self.assertIn(f"num_workers={wanted}", first["change"])
        for part in ("why", "expect", "costs", "wrong_if", "check", "evidence"):
            self.assertTrue(first[part], part)
        predicted = first["step_ns"]["mid"]
        measured = None
        for attempt in range(2):  # other work on the machine only ever makes it longer: the quieter of two runs
            after = self.analyze(self.record(f"after{workers}-{attempt}", SCRIPT, str(wanted)))
            mean_ns = after["steps"]["mean_ns"]
            measured = mean_ns if measured is None else min(measured, mean_ns)
            if measured <= 1.15 * predicted:
                break
        print(f"{workers} workers: {before['steps']['mean_ns'] / 1e6:.1f} ms a step; {wanted} workers: predicted "
              f"{predicted / 1e6:.1f}, measured {measured / 1e6:.1f}")
        self.assertLessEqual(abs(measured - predicted), 0.15 * predicted)

    def test_the_number_for_one_worker_holds(self):
        self.advice_holds(1)

    def test_the_number_for_loading_in_the_training_process_holds(self):
        self.advice_holds(0)

    def test_an_evaluation_gets_no_training_advice(self):
        analysis = self.analyze(self.record("evaluation", EVALUATION))
        self.assertEqual(analysis["findings"], [])
        self.assertEqual(analysis["verdict"]["cause"], "unknown")


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    if skipped:
        print(f"SKIPPED: {result.skipped[0][1]}")
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed")
    sys.exit(1 if bad else 0)
