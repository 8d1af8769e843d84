#!/usr/bin/env python3
"""What keeps a loader back, one real job for each reason: `analyze` has to name it, whatever else it could be taken for."""
import json
import os
import time
import unittest

from advice_harness import AdviceTest, main
from soak import in_soak

JOB = """
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Data(Dataset):
    def __init__(self, how, size):
        self.how, self.size = how, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.how == "pinned":
            compute(0.003)
        elif self.how == "tail":
            time.sleep(0.250 if index % 160 == 7 else 0.002)
        elif self.how == "objects":
            time.sleep(0.001)
            return [float(index + k) for k in range(20000)]
        elif self.how == "files":
            for k in range(48):
                with open(f"{sys.argv[4]}/{(48 * index + k) % 600}.bin", "rb") as file:
                    file.read()
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        elif self.how == "text":
            time.sleep(0.001)
            return torch.arange(10 + index % 4 * 10)
        return torch.full((4,), float(index))


def padded(items):
    longest = max(len(item) for item in items)
    ids = torch.stack([torch.nn.functional.pad(item + 1, (0, longest - len(item))) for item in items])
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}


def batches_of(count):
    for _ in range(count):
        time.sleep(0.012)
        yield torch.ones(8, 4)


def main(how, workers, batches):
    torch.set_num_threads(1)
    if how == "pinned":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Data(how, 8 * batches), batch_size=8, num_workers=workers,
                        collate_fn={"objects": list, "text": padded}.get(how))
    for _ in batches_of(batches) if how == "generator" else loader:
        optimizer.zero_grad()
        model(torch.ones(8, 4)).sum().backward()
        time.sleep(0.010)
        optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
"""


class LoadingVerdicts(AdviceTest):
    def first(self, name, *arguments, may_add=False):
        """The first finding, of three runs if others disturb the first two; `may_add`: it may propose workers, too."""
        for _ in range(3):
            analysis = self.analyze_run("train.py", JOB, *arguments)
            first = next(iter(analysis["findings"]), None)
            if first is not None and (first["id"], analysis["loading"]["verdict"]) == (name, name):
                break
        else:
            if name != "affinity":
                self.skip_when_crowded(analysis)
            self.fail(f"{name}: {analysis['verdict']}, {analysis['loading']['verdict']}, {first and first['why']}")
        if not may_add:
            self.assertIsNone(analysis["dataloader"]["recommended_num_workers"])
        self.check_grammar(first, "change")
        return first, analysis

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "one core")
    @in_soak
    def test_a_generator_that_was_recorded_is_not_to_be_recorded(self):
        analysis = self.analyze_run("train.py", JOB, "generator", "0", "60")
        if ((analysis.get("loading") or {}).get("waiting_for_core_pct") or 0.0) >= 20.0:
            self.skipTest("others keep the cores busy: the job waits for those")
        first = analysis["findings"][0]
        self.assertEqual((first["id"], first["brief"]), ("input-starvation", "load ahead of the step"))
        self.assertRegex(first["where"], r"\.py:\d+$")
        self.assertIn("waits in batches_of, ", first["change"])
        self.assertNotIn("lacuna run", first["change"] + first["check"])
        self.assertLessEqual(first["gain_pct"]["low"], first["gain_pct"]["high"])
        self.check_grammar(first)

    @in_soak
    def test_workers_on_one_core(self):
        first, analysis = self.first("affinity", "pinned", "4", "40")
        self.assertIn("pinned to 1 core; it was started with", first["why"])
        self.assertEqual(analysis["loading"]["allowed_cores"], 1)
        self.assertGreater(analysis["loading"]["waiting_for_core_pct"], 20.0)

    def test_a_slow_sample_among_quick_ones(self):
        first, _ = self.first("slow-samples", "tail", "3", "90")
        self.assertIn("delivered in order", first["why"])

    def test_many_small_files_that_are_not_in_memory(self):
        for number in range(600):
            with open(os.path.join(self.folder, f"{number}.bin"), "wb") as file:
                file.write(os.urandom(20000))
                file.flush()
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        wall = cpu = 0.0
        for number in range(100):
            wall, cpu = wall - time.perf_counter(), cpu - time.thread_time()
            with open(os.path.join(self.folder, f"{number}.bin"), "rb") as file:
                file.read()
                wall, cpu = wall + time.perf_counter(), cpu + time.thread_time()
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if cpu > 0.45 * wall or wall < 100 * 50e-6:
            self.skipTest(f"a file is read in {wall * 1e4:.0f} us here, {cpu * 1e4:.0f} of them computing: no storage that makes wait")
        first, analysis = self.first("small-files", "files", "1", "40", self.folder, may_add=True)
        self.assertRegex(first["why"], r"384 files of 20(\.0)? KB")
        self.assertEqual({part["name"]: part["count"] for part in analysis["loading"]["parts"]}["loader.item"], 8 * analysis["loading"]["batch_count"])
        self.assertGreaterEqual(analysis["loading"]["batch_count"], 16)  # then a worker may find that recording its parts costs too much

    def test_batches_of_python_objects(self):
        first, analysis = self.first("worker-hand-over", "objects", "2", "60")
        self.assertIn("A worker packs a batch in", first["why"])
        self.assertIn("Unpacking it takes", first["why"])
        self.assertIn("torch.stack", first["change"])
        parts = {part["name"]: part for part in analysis["loading"]["parts"]}
        self.assertEqual((parts["loader.put"]["count"], parts["loader.put"]["stage"]), (60, "hand_over"))
        self.assertEqual(parts["loader.unpack"]["count"], 60)

    def test_padding_is_counted_in_the_workers(self):
        # eight items of 10, 20, 30 and 40 tokens in turn: 25 of 40 on average
        analysis = self.analyze_run("train.py", JOB, "text", "2", "60")
        self.assertIsNotNone(analysis["throughput"]["padding_pct"], json.dumps({key: analysis[key] for key in ("steps", "dataloader", "loading")})[:4000])
        self.assertAlmostEqual(analysis["throughput"]["padding_pct"], 37.5, delta=0.01)
        self.assertEqual((analysis["throughput"]["unit"], analysis["throughput"]["batch_size"]), ("tokens", 8))
        self.assertAlmostEqual(analysis["throughput"]["per_s"], 8 * 25 / (analysis["steps"]["mean_ns"] / 1e9), delta=0.5)
        found = [each for each in analysis["findings"] if each["id"] == "padding-waste"]
        if not found:  # its cost is a share of the step, which a crowded machine stretches
            self.skip_when_crowded(analysis)
        finding = found[0]
        self.assertIn("120 of 320 positions", finding["why"])

    @in_soak
    def test_no_mask_no_share_of_padding(self):
        analysis = self.analyze_run("train.py", JOB, "plain", "1", "30")
        self.assertEqual((analysis["throughput"]["padding_pct"], analysis["throughput"]["unit"]), (None, "samples"))


if __name__ == "__main__":
    main()
