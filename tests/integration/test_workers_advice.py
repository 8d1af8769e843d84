#!/usr/bin/env python3
"""An unchanged DataLoader script that is slow on purpose: `analyze` names the number of workers, and
with that number the step takes what was predicted."""
from advice_harness import AdviceTest, main

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


class WorkersAdvice(AdviceTest):
    def advice_holds(self, workers):
        before = self.analyze_run("train.py", SCRIPT, str(workers))
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
        measured = self.quieter_of_two(lambda: self.analyze_run("train.py", SCRIPT, str(wanted)), 1.15 * predicted)
        print(f"{workers} workers: {before['steps']['mean_ns'] / 1e6:.1f} ms a step; {wanted} workers: predicted "
              f"{predicted / 1e6:.1f}, measured {measured / 1e6:.1f}")
        self.assertLessEqual(abs(measured - predicted), 0.15 * predicted)

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
