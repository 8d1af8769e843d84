#!/usr/bin/env python3
"""Recordings as earlier versions sent them: they stay readable for ever. Both are of the example workload without a GPU,
four steps and one loader worker; the files are the bodies of the uploads."""
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
RECORDINGS = os.path.join(ROOT, "tests/golden/recordings")

KEPT = {
    # `lacuna push`: zstd over ustar, a spool a member
    "push.tar.zst": {"event_count": 808, "duration_ns": 1297091481, "t0_ns": "1795344019027396239", "wait_ns": 320951462, "fetch_mean_ns": 259232393},
    # `lacuna run --server`: a zstd frame a piece, over a bundle in the order in which its parts became final
    "run_server.bundle.zst": {"event_count": 800, "duration_ns": 1332937411, "t0_ns": "1795344017512467158", "wait_ns": 365434682, "fetch_mean_ns": 240780275},
}


class KeptFormats(unittest.TestCase):
    def test_each_says_what_it_said_when_it_was_sent(self):
        for name, expected in KEPT.items():
            with self.subTest(name=name):
                done = subprocess.run([LACUNA, "analyze", "--json", os.path.join(RECORDINGS, name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                analysis = json.loads(done.stdout)
                found = {**analysis["trace"], **analysis["dataloader"]}
                self.assertEqual({key: found[key] for key in expected}, expected)
                self.assertEqual([found[key] for key in ("format", "host", "slice_count", "dropped_count", "repaired_count", "batch_count", "num_workers")],
                                 ["lacuna", "node1", 345, 0, 0, 4, 1])
                self.assertEqual(analysis["steps"]["count"], 4)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
