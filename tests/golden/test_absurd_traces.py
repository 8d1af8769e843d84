#!/usr/bin/env python3
"""Traces with absurd numbers: what is said of them can be true of some trace, and JSON carries it exactly."""
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "attack"))
import area_traces as made  # noqa: E402

PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))


class Absurd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.document = made.kineto(random.Random(1))

    def tearDown(self):
        self.folder.cleanup()

    def events(self, category):
        return [event for event in self.document["traceEvents"] if event.get("cat") == category]

    def analysis(self):
        path = os.path.join(self.folder.name, "trace.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.document, file)
        done = subprocess.run([PROGRAM, "analyze", "--json", path], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertIsNone(made.impossible(document))
        return document

    def test_a_plain_trace_is_possible(self):
        self.assertEqual(self.analysis()["steps"]["count"], 12)

    def test_kernels_of_months_do_not_sum_beyond_what_json_carries(self):
        for i, event in enumerate(self.events("kernel")):
            event["dur"] = 8e12 if i % 3 == 0 else event["dur"]
        self.assertEqual(self.analysis()["kernels"]["total_ns"], 2**53 - 1)

    def test_bytes_of_copies_saturate(self):
        for event in self.events("gpu_memcpy"):
            event["args"]["bytes"] = 2**53 - 7
        self.assertEqual(self.analysis()["copies"][0]["bytes"], 2**53 - 1)

    def test_what_repeats_within_a_microsecond_is_no_step(self):
        for event in self.document["traceEvents"]:
            for key in ("ts", "dur"):
                if key in event:
                    event[key] *= 1e-6
        document = self.analysis()
        self.assertNotIn("ns step", document["verdict"]["text"])
        self.assertIsNone(document["throughput"]["per_s"])
        self.assertEqual(document["findings"], [finding for finding in document["findings"] if finding["cost_pct"] is None])

    def test_a_device_that_no_driver_counts_is_the_one_of_its_row(self):
        for event in self.events("kernel")[:5]:
            event["args"]["device"] = 2**60
        self.assertEqual([device["id"] for device in self.analysis()["devices"]], [0])

    def test_a_host_that_runs_ahead_in_a_part_of_the_steps(self):
        """The device's step is at most as long as the recording, though only some rows of steps have kernels."""
        damage = dict(made.mutations())
        for seed in (39, 78, 121):
            with self.subTest(seed=seed):
                drawn = random.Random(seed)
                self.document = made.kineto(drawn)
                for kind in ("dur", "no args"):
                    damage[kind](drawn, self.document, self.document["traceEvents"])
                self.analysis()

    def test_one_step_is_no_distance_on_the_device(self):
        """Of a single step the end of what it launched is known, not when the next one would begin there."""
        self.document = made.kineto(random.Random(1), steps=1)
        mark = [event for event in self.events("user_annotation") if event["name"] == "ProfilerStep#0"][0]
        mark["dur"] = max(event["ts"] + event["dur"] for event in self.events("kernel")) - mark["ts"] - 25
        one = self.analysis()["steps"]
        self.assertEqual(one["count"], 1)
        self.assertGreater(one["mean_ns"], one["host_mean_ns"])
        self.assertIsNone(one["device_mean_ns"])

    def test_copies_over_all_kernels_cost_no_more_than_short_ones(self):
        """In CPU time: looking through all kernels for each copy takes twenty times that of the short ones."""
        seconds = []
        for length in (1, 600000):
            self.document = {"schemaVersion": 1, "traceEvents": [
                made.kernel(i // 2, 10 * (i // 2)) if i % 2 else
                made.kernel(0, i // 2, length, cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)",
                            args={"device": 0, "stream": 8, "bytes": 1}) for i in range(120000)]}
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.analysis()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime - before.ru_utime)
        self.assertLess(seconds[1], 0.7 + 5 * seconds[0])

    def test_damage_of_any_kind(self):
        for seed in (2, 5, 24, 302, 512, 544, 583, 751):
            with self.subTest(seed=seed):
                drawn = random.Random(seed)
                self.document = made.kineto(drawn)
                for _, change in drawn.sample(made.mutations(), drawn.choice((1, 2, 3))):
                    change(drawn, self.document, self.document["traceEvents"])
                self.analysis()


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
