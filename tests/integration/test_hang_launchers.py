#!/usr/bin/env python3
"""A hang of a job with a launcher for each rank, as under srun: each names the rank at fault, which another one started.

Two launchers on this machine, their ranks joined by gloo (hang_jobs.py). Needs /usr/bin/python3 with torch; skips in one line without.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
import hang_seeds  # noqa: E402
from hang_seeds import HAVE_TORCH, JOBS, NODE, TOLD, TORCH_PYTHON, line_of  # noqa: E402

SCALE = 0.5
LIMIT_S = 90
HOST = socket.gethostname()


@unittest.skipUnless(HAVE_TORCH, "no torch")
class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.base = os.path.join(self.folder, "out")
        self.launchers = []

    def tearDown(self):
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
                launcher.wait()
        hang_seeds.end_leftovers(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, case, ranks=2, **variables):
        for rank in range(ranks):
            environment = dict(os.environ, LACUNA_HANG_SCALE=str(SCALE), LACUNA_SPOOL_DIR=self.folder, SLURM_JOB_ID="77", SLURM_PROCID=str(rank), SLURM_NTASKS=str(ranks),
                               SLURM_LOCALID=str(rank), MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1", HANG_RANKS=str(ranks), **variables)
            with open(os.path.join(self.folder, f"log-{rank}"), "wb") as log:
                self.launchers.append(subprocess.Popen([NODE, "run", "-o", self.base, "--", TORCH_PYTHON, JOBS, case, self.folder, str(rank)],
                                                       env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def said(self, rank):
        with open(os.path.join(self.folder, f"log-{rank}"), errors="replace") as file:
            return file.read()

    def wait_until(self, what):
        end = time.monotonic() + LIMIT_S
        while not what():
            self.assertLess(time.monotonic(), end, [self.said(rank) for rank in range(len(self.launchers))])
            time.sleep(0.1)

    def told_by_all(self):
        """What each launcher says of the hang, once all have."""
        self.wait_until(lambda: all(re.search(TOLD, self.said(rank)) for rank in range(len(self.launchers))))
        return [re.search(TOLD, self.said(rank)).group(2) for rank in range(len(self.launchers))]

    def end_all(self):
        for launcher in self.launchers:
            launcher.send_signal(signal.SIGTERM)
            launcher.send_signal(signal.SIGCONT)  # a rank that is stopped
        for launcher in self.launchers:
            launcher.wait(60)
        self.assertFalse(os.path.exists(os.path.join(self.base, ".lacuna-hang")))
        self.assertEqual(sorted(os.listdir(self.base)), [f"task-{rank}" for rank in range(len(self.launchers))])

    def test_a_branch_that_another_launcher_s_rank_takes(self):
        self.start("diverged")
        told = self.told_by_all()
        for each in told:
            culprit, _, others = each.partition("; ")
            self.assertTrue(culprit.startswith(f"rank 1 on {HOST} waits in barrier at hang_jobs.py:{line_of('diverged')} "), told)
            self.assertIn("rank 0 waits in all_reduce at hang_jobs.py:", others)
        self.assertEqual(told[0], told[1])
        self.end_all()

    def test_a_rank_that_is_stopped_and_is_all_that_its_launcher_has(self):
        self.start("stopped")
        for each in self.told_by_all():
            culprit, _, others = each.partition("; ")
            self.assertTrue(culprit.startswith(f"rank 1 on {HOST} is stopped"), each)
            self.assertIn("rank 0 waits in all_reduce at hang_jobs.py:", others)
        self.end_all()

    def is_no_hang(self, case):
        self.start(case, HANG_LONG="10")
        for rank, launcher in enumerate(self.launchers):
            self.assertEqual(launcher.wait(LIMIT_S), 0, self.said(rank))
        for rank in range(2):
            self.assertNotIn("no progress", self.said(rank))
        self.assertFalse(os.path.exists(os.path.join(self.base, ".lacuna-hang")))

    def test_a_checkpoint_of_another_launcher_s_rank_is_no_hang(self):
        self.is_no_hang("checkpoint")

    def test_another_launcher_s_rank_that_stands_in_a_write_is_no_hang_while_bytes_go(self):
        self.is_no_hang("streamed")

    def test_a_launcher_that_says_nothing_is_unknown_and_not_at_fault(self):
        self.start("diverged", ranks=3)
        self.wait_until(lambda: os.path.exists(os.path.join(self.folder, "at")))
        silent = self.launchers.pop()
        silent.send_signal(signal.SIGSTOP)
        self.addCleanup(silent.wait)
        self.addCleanup(silent.kill)
        for each in self.told_by_all():
            culprit, _, others = each.partition("; ")
            self.assertTrue(culprit.startswith(f"rank 1 on {HOST} waits in barrier"), each)
            self.assertTrue(others.endswith("nothing is heard of task-2"), each)


if __name__ == "__main__":
    unittest.main()
