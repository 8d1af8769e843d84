#!/usr/bin/env python3
"""Recordings of a real GPU (tests/gpu/golden): what the program says of each against the small second reader of spools."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
GOLDEN = os.environ.get("LACUNA_GPU_GOLDEN", os.path.join(ROOT, "tests/gpu/golden"))
sys.path.insert(0, os.path.join(ROOT, "tests/gpu"))
import home  # noqa: E402
import spools  # noqa: E402

RECORDINGS = sorted(glob.glob(os.path.join(GOLDEN, "*.tar.gz")))


def analysis_of(path):
    done = subprocess.run([LACUNA, "analyze", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


class Recordings(unittest.TestCase):
    @unittest.skipUnless(RECORDINGS, "no recordings of a GPU")
    def test_kernels_and_copies_are_those_of_the_second_reader(self):
        for path in RECORDINGS:
            with self.subTest(recording=os.path.basename(path)), tempfile.TemporaryDirectory() as folder:
                with open(path, "rb") as file:
                    home.unpack(file.read(), folder)
                recorded = spools.read(folder)
                analysis = analysis_of(path)
                totals = spools.kernel_totals(recorded)
                self.assertEqual(analysis["kernels"]["count"], sum(count for count, _ in totals.values()))
                if totals:
                    self.assertEqual(analysis["kernels"]["total_ns"], sum(ns for _, ns in totals.values()))
                    self.assertEqual({row["name"]: [row["count"], row["total_ns"]] for row in analysis["kernels"]["top"]},
                                     {row["name"]: totals.get(row["name"]) for row in analysis["kernels"]["top"]})
                self.assertEqual(sum(copy["count"] for copy in analysis["copies"]), sum(spool.copies for spool in recorded))

    @unittest.skipUnless(RECORDINGS, "no recordings of a GPU")
    def test_a_folder_and_its_archive_are_analyzed_alike(self):
        path = RECORDINGS[0]
        with tempfile.TemporaryDirectory() as folder:
            with open(path, "rb") as file:
                home.unpack(file.read(), folder)
            whole, packed = analysis_of(folder), analysis_of(path)
        for key in ("devices", "kernels", "steps", "findings", "verdict"):
            self.assertEqual(whole[key], packed[key], key)


if __name__ == "__main__":
    if not RECORDINGS:
        print("skip: no recordings of a GPU in tests/gpu/golden (make test-gpu, tests/gpu/README.md)")
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
