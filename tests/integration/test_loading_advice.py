#!/usr/bin/env python3
"""Unchanged DataLoader scripts in which more workers would not help: `analyze` says why, and what it says to change does what
it promised."""
from advice_harness import AdviceTest, main
from soak import in_soak

# What is slow sleeps wherever that is possible, so that two cores, shared with other tests, are enough to tell.
LOOP = """
import fcntl
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __init__(self, how, size):
        self.how, self.size, self.opened = how, size, False

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.how == "locked":
            with open(__file__) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(0.010)
        elif self.how == "free":
            time.sleep(0.010)
        elif self.how == "opening" and not self.opened:
            self.opened = True  # a connection, once in each worker
            time.sleep(0.3)
        elif self.how == "threads":
            for _ in range(12):
                torch.ones(500_000).sin()
        return torch.full((4,), float(index)), index % 2


def many_threads(worker):
    torch.set_num_threads(6)


def main(how, workers, batches, epochs, persistent):
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Data(how, 8 * batches), batch_size=8, num_workers=workers, persistent_workers=persistent,
                        worker_init_fn=many_threads if how == "threads" else None)
    for _ in range(epochs):
        for data, label in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(data), label)
            loss.backward()
            time.sleep(0.020)
            optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "stay")
"""


class LoadingAdvice(AdviceTest):
    def analyze(self, *arguments):
        return self.analyze_run("train.py", LOOP, *arguments)

    def first(self, analysis, name):
        self.assertTrue(analysis["findings"], analysis["verdict"])
        first = analysis["findings"][0]
        self.assertEqual(first["id"], name, first["why"])
        self.assertEqual(analysis["loading"]["verdict"], name)
        self.assertEqual(analysis["verdict"]["cause"], "data_wait")
        self.check_grammar(first, "change")
        return first

    def prediction_holds(self, first, *changed, better=0.2):
        """Within a fifth; `better`: what the change saves beyond what could be recorded may be more."""
        predicted = first["step_ns"]["mid"]
        measured = self.quieter_of_two(lambda: self.analyze(*changed), 1.2 * predicted)
        print(f"{first['id']}: predicted {predicted / 1e6:.1f} ms a step, measured {measured / 1e6:.1f}")
        self.assertLessEqual(measured, 1.2 * predicted)
        self.assertGreaterEqual(measured, (1.0 - better) * predicted)

    def test_workers_that_queue_for_a_lock_are_not_given_company(self):
        before = self.analyze("locked", "3", "60", "1", "go")
        if before["findings"][0]["id"] != "workers-serialized" and self.is_crowded(before):
            before = self.analyze("locked", "3", "60", "1", "go")  # turns at the lock are lost among turns at the cores
        first = self.first(before, "workers-serialized")
        self.assertIn("More workers won't help", first["change"])
        self.assertIsNone(before["dataloader"]["recommended_num_workers"])
        self.prediction_holds(first, "free", "3", "60", "1", "go")

    def test_the_same_workers_without_the_lock_are(self):
        first = self.analyze("free", "1", "40", "1", "go")["findings"][0]
        self.assertEqual(first["id"], "input-starvation")
        self.assertIn("num_workers=", first["change"])

    @in_soak
    def test_workers_started_for_every_epoch(self):
        before = self.analyze("opening", "2", "8", "10", "go")
        first = self.first(before, "worker-respawn")
        self.assertIn("persistent_workers=True", first["change"])
        self.assertIn("train.py:", first["where"])
        # starting a process is no waiting for a batch, and the very first connection may be warm-up: neither is promised
        try:
            self.prediction_holds(first, "opening", "2", "8", "10", "stay", better=0.5)
        except AssertionError:
            self.skip_when_crowded(before)  # processes start several times as slowly then
            raise

    @in_soak
    def test_threads_beyond_the_cores(self):
        analysis = self.analyze("threads", "3", "30", "1", "go")
        first = self.first(analysis, "cpu-oversubscription")
        self.assertIn("torch.set_num_threads(1)", first["change"])
        self.assertIsNone(analysis["dataloader"]["recommended_num_workers"])
        self.assertGreater(analysis["loading"]["waiting_for_core_pct"], 0.0)
        self.assertIn("wait for one", first["why"])
        print(f"{first['id']}: {first['why']}")


if __name__ == "__main__":
    main()
