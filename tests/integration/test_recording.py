#!/usr/bin/env python3
"""From a recorded job to the data folder: run, analyze, import, and once more."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.path.join(ROOT, "build/release/lacuna")
WORKLOAD = os.path.join(ROOT, "build/release/workload-cpu")


def lacuna(*arguments):
    return subprocess.run([LACUNA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        cls.recording = os.path.join(cls.folder, "job")
        cls.run_result = lacuna("run", "--quiet", "-o", cls.recording, "--", WORKLOAD, "--cpu", "--batch", "1", "--steps", "12",
                                "--workers", "2", "--fetch-ms", "10")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def test_the_job_runs_and_leaves_a_recording_of_each_process(self):
        self.assertEqual(self.run_result.returncode, 0, self.run_result.stderr)
        spools = [name for name in os.listdir(self.recording) if name.endswith(".spool") and not name.startswith("samples")]
        self.assertGreaterEqual(len(spools), 3)

    def test_analyze_reads_the_folder(self):
        analysis = json.loads(lacuna("analyze", "--json", self.recording).stdout)
        self.assertEqual(analysis["trace"]["format"], "lacuna")
        self.assertEqual(analysis["trace"]["dropped_count"], 0)
        self.assertEqual(analysis["steps"]["count"], 12)
        self.assertEqual(analysis["dataloader"]["num_workers"], 2)
        self.assertEqual(analysis["devices"], [])

    def test_the_folder_is_imported_once_as_one_trace_and_kept(self):
        data = os.path.join(self.folder, "data")
        first = lacuna("import", "--data", data, self.recording)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(len(os.listdir(os.path.join(data, "traces"))), 1)
        self.assertEqual(len(os.listdir(os.path.join(data, "originals"))), 1)
        again = lacuna("import", "--data", data, self.recording)
        self.assertIn("is already imported", again.stdout)
        self.assertEqual(len(os.listdir(os.path.join(data, "traces"))), 1)

    def test_the_rank_that_waits_for_its_loader_is_shown(self):
        out = os.path.join(self.folder, "ranks")
        script = ("for r in 0 1; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none "
                  f"{WORKLOAD} --cpu --batch 1 --steps 12 --workers 1 --fetch-ms $((r * 120 + 1)) & done; wait")
        self.assertEqual(lacuna("run", "--quiet", "-o", out, "--", "sh", "-c", script).returncode, 0)
        text = lacuna("analyze", out).stdout
        self.assertIn("Rank 1 alone, which waits the most for data:", text)
        self.assertNotIn("The lowest rank alone", text)

    def test_a_folder_without_a_recording_is_refused_with_a_reason(self):
        empty = os.path.join(self.folder, "empty")
        os.makedirs(empty, exist_ok=True)
        for path, words in ((empty, "no recording"), (os.path.join(self.folder, "missing"), "No such file")):
            result = lacuna("import", "--data", os.path.join(self.folder, "data2"), path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
