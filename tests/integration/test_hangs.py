#!/usr/bin/env python3
"""Jobs that hang are told, with the right rank and line; jobs that only look like it are not (hang_jobs.py).

Needs /usr/bin/python3 with torch (gloo); skips in one line without. Floors are scaled down, so that a case takes seconds; with
LACUNA_SOAK=1 every case runs, at full scale.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
JOBS = os.path.join(ROOT, "tests/integration/hang_jobs.py")
TORCH_PYTHON = "/usr/bin/python3"
HAVE_TORCH = os.path.exists(TORCH_PYTHON) and subprocess.run([TORCH_PYTHON, "-c", "import torch"], stdout=subprocess.DEVNULL,
                                                             stderr=subprocess.DEVNULL).returncode == 0
SOAK = os.environ.get("LACUNA_SOAK", "0") == "1"
LIMIT_S = 240


def line_of(case):
    with open(JOBS) as file:
        return next((number for number, line in enumerate(file, 1) if line.rstrip().endswith("# HANGS " + case)), None)


@unittest.skipUnless(HAVE_TORCH, "no torch")
class Hangs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")

    def tearDown(self):
        for process in os.listdir("/proc"):  # a worker that is stuck outlives the job, as it does without a recorder
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    if process.isdigit() and self.folder.encode() in file.read():
                        os.kill(int(process), signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_job(self, case, scale, until=None, prefix=(), **variables):
        """What the launcher said, after the job has ended or `until` was said."""
        log = os.path.join(self.folder, "log")
        environment = dict(os.environ, LACUNA_HANG_SCALE=str(1 if SOAK else scale), **variables)
        with open(log, "wb") as file:
            node = subprocess.Popen([*prefix, NODE, "run", "-o", self.out, "--", TORCH_PYTHON, JOBS, case, self.folder], env=environment,
                                    stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        end = time.monotonic() + LIMIT_S
        said = ""
        while time.monotonic() < end and node.poll() is None:
            with open(log, errors="replace") as file:
                said = file.read()
            if until is not None and re.search(until, said):
                break
            time.sleep(0.1)
        if node.poll() is None:
            node.send_signal(signal.SIGTERM)
        status = node.wait(60)
        with open(log, errors="replace") as file:
            return status, file.read()

    def check_hang(self, case, rank, *words, scale=0.25, **options):
        _, said = self.run_job(case, scale, "lacuna: no progress for .*\n", **options)
        told = re.search("lacuna: no progress for ([0-9]+) s: (.*)", said)
        self.assertIsNotNone(told, said)
        culprit, _, others = told.group(2).partition("; ")
        self.assertTrue(culprit.startswith(f"rank {rank} "), told.group(0))
        line = line_of(case)
        if line is not None and case != "stopped":
            self.assertIn(f"hang_jobs.py:{line} ", culprit)
        for word in words:
            self.assertIn(word, told.group(0))
        if SOAK:
            self.assertLessEqual(int(told.group(1)), 15)
        return culprit, others

    def test_a_diverged_branch_names_the_rank_its_line_and_the_collective_of_the_other(self):
        _, others = self.check_hang("diverged", 1, "waits in barrier")
        self.assertIn("rank 0 waits in all_reduce at hang_jobs.py:", others)

    def test_a_stuck_read_in_a_worker(self):
        self.check_hang("read", 0, "waits for a batch of its workers", "while it makes a batch")

    def test_two_locks(self):
        self.check_hang("lock", 0, "waits for a lock")
        said = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=120, check=True).stdout)
        first = said["findings"][0]
        self.assertEqual((first["id"], first["severity"], first["where"]), ("hang", "critical", f"hang_jobs.py:{line_of('lock')}"))
        self.assertIn("rank 0 waits for a lock", said["verdict"]["text"])
        stacks = " ".join(value for key, value in said["settings"].items() if key.startswith("hang.stack."))
        self.assertIn("run_lock", stacks)
        self.assertRegex(stacks, r"other \([^ ]*hang_jobs.py:[0-9]+\)")  # what the other thread does

    def test_a_slow_checkpoint_is_no_hang(self):
        self.check_calm("checkpoint")

    def check_calm(self, case):
        status, said = self.run_job(case, 0.5, HANG_LONG="60" if SOAK else "6")
        self.assertNotIn("no progress", said)
        self.assertEqual(status, 0, said)

    # ---- all others, for the long run

    @unittest.skipUnless(SOAK, "make soak")
    def test_every_hang(self):
        for case, rank, words in (("decode", 0, ("computes while it makes a batch",)), ("import", 0, ("another thread's import",)),
                                  ("stopped", 1, ("is stopped",)), ("dead", 1, ("has ended", "rank 0 waits in all_reduce")),
                                  ("uneven", 1, ("waits in barrier", "rank 0 waits in backward")),
                                  ("swallowed", 1, ("waits in barrier", "rank 0 waits in backward"))):
            with self.subTest(case):
                self.check_hang(case, rank, *words)
                self.tearDown()
                self.setUp()

    @unittest.skipUnless(SOAK, "make soak")
    def test_a_full_shm(self):
        mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m lacuna /dev/shm && exec "$@"', "sh"]
        if subprocess.run([*mount, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no file system may be mounted here")
        self.check_hang("shm", 0, "/dev/shm is full", prefix=mount)

    @unittest.skipUnless(SOAK, "make soak")
    def test_every_calm(self):
        for case in ("gc", "compile", "evaluation"):
            with self.subTest(case):
                self.check_calm(case)
                self.tearDown()
                self.setUp()

    def test_it_can_be_switched_off(self):
        script = "import os, _lacuna_hang; _lacuna_hang.listen(); print(len(os.listdir('/proc/self/task')))"
        for value, threads in (("1", "2"), ("0", "1")):
            result = subprocess.run([NODE, "run", "-o", self.out + value, "--quiet", "--", TORCH_PYTHON, "-c", script],
                                    env=dict(os.environ, LACUNA_HANG=value), stdout=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(result.stdout.strip(), threads)


if __name__ == "__main__":
    unittest.main()
