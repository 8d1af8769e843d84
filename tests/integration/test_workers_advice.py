#!/usr/bin/env python3
"""An unchanged DataLoader script that is slow on purpose: `analyze` names the number of workers, and
with that number the step takes what was predicted."""
import os

from advice_harness import AdviceTest, main
from soak import in_soak

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


def delay_ns():
    # for how long this thread was ready to run and had no core
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1])


def main(workers):
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    before_ns = delay_ns()
    for data, label in DataLoader(Slow(), batch_size=8, num_workers=workers):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data), label)
        loss.backward()
        time.sleep(0.040)
        optimizer.step()
    with open(__file__ + ".delay", "w", encoding="ascii") as file:
        file.write(str((delay_ns() - before_ns) // 100))


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


class WorkersAdvice(AdviceTest):
    def run_with(self, workers):
        """The analysis, and what other work on the machine added to a step."""
        analysis = self.analyze_run("train.py", SCRIPT, str(workers))
        with open(os.path.join(self.folder, "train.py.delay"), encoding="ascii") as file:
            return analysis, int(file.read())

    def advice_holds(self, workers):
        before, before_delay_ns = self.run_with(workers)
        first = before["findings"][0]
        self.assertEqual(first["id"], "input-starvation")
        self.assertEqual(before["verdict"]["cause"], "data_wait")
        self.assertIn("training process waits", before["verdict"]["text"])
        wanted = before["dataloader"]["recommended_num_workers"]
        self.assertGreater(wanted, workers)
        self.assertLess(wanted, 8)
        self.assertIn(f"num_workers={wanted}", first["change"])
        self.check_grammar(first)
        predicted = first["step_ns"]["mid"]
        for _ in range(3):
            after, delay_ns = self.run_with(wanted)
            measured = after["steps"]["mean_ns"]
            if measured - delay_ns <= 1.15 * predicted:
                break
        print(f"{workers} workers: {before['steps']['mean_ns'] / 1e6:.1f} ms a step; {wanted} workers: predicted "
              f"{predicted / 1e6:.1f}, measured {measured / 1e6:.1f}, of it without a core {delay_ns / 1e6:.1f}")
        self.assertLessEqual(measured - delay_ns, 1.15 * predicted)
        self.assertGreaterEqual(measured, 0.85 * (predicted - before_delay_ns))

    @in_soak
    def test_the_number_for_one_worker_holds(self):
        self.advice_holds(1)

    def test_the_number_for_loading_in_the_training_process_holds(self):
        self.advice_holds(0)

    def test_an_evaluation_gets_no_training_advice(self):
        analysis = self.analyze_run("evaluation.py", EVALUATION)
        self.assertEqual(analysis["findings"], [])
        self.assertEqual(analysis["verdict"]["cause"], "unknown")


if __name__ == "__main__":
    main()
