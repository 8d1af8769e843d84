#!/usr/bin/env python3
"""kill -9 of `lacuna import` at random moments: the data folder shows whole traces only, and nothing of the others stays.

10 moments; 300 with LACUNA_SOAK=1. LACUNA_SEED repeats a run.
"""
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import tempfile
import time
import unittest

from server_harness import PROGRAM, SOAK, main, make_trace

MOMENTS = 300 if SOAK else 10
SEED = int(os.environ.get("LACUNA_SEED", str(random.SystemRandom().randrange(1 << 30))))


class CrashImport(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-crash-")
        self.data = os.path.join(self.folder, "data")
        self.inputs = []
        for number in range(3):
            path = os.path.join(self.folder, f"trace{number}.json")
            with open(path, "wb") as file:
                file.write(make_trace(steps=10 + 15 * number, kernels=60))
            self.inputs.append(path)
        self.ranks = os.path.join(self.folder, "ranks.tar.gz")
        with tarfile.open(self.ranks, "w:gz") as tar:
            for path in self.inputs:
                tar.add(path, os.path.basename(path))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def environment(self):
        return {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}

    def start(self, *paths):
        return subprocess.Popen([PROGRAM, "import", "--again", "--data", self.data, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment())

    def rows(self):
        with sqlite3.connect(os.path.join(self.data, "catalog.db")) as catalog:
            return catalog.execute("SELECT id, state, run, original, event_count FROM traces").fetchall()

    def check(self):
        """After a sweep by another process every row has its file and every file its row."""
        rows = self.rows()
        traces = {name[:-3] for name in os.listdir(os.path.join(self.data, "traces"))}
        originals = {name[:-4] for name in os.listdir(os.path.join(self.data, "originals"))}
        self.assertEqual({row[0] for row in rows}, traces)
        self.assertEqual({row[3] for row in rows}, originals)
        self.assertEqual(os.listdir(os.path.join(self.data, "staging")), [])
        runs = {}
        for trace, state, run, _, events in rows:
            self.assertEqual(state, 2)
            self.assertGreater(events, 0)
            with sqlite3.connect(f"file:{self.data}/traces/{trace}.db?mode=ro", uri=True) as file:
                self.assertEqual(file.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            if run:
                runs[run] = runs.get(run, 0) + 1
        for run, ranks in runs.items():
            self.assertEqual(ranks, 3, "a run is there in part")
        return len(rows)

    def sweep(self):
        """Any import sweeps first; one that fails at once does nothing else."""
        done = subprocess.run([PROGRAM, "import", "--data", self.data, os.path.join(self.folder, "no such file")], capture_output=True,
                              text=True, env=self.environment(), timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_killed_at_random_moments(self):
        rng = random.Random(SEED)
        begin = time.monotonic()
        whole = self.start(self.ranks, *self.inputs)
        out, err = whole.communicate(timeout=60)
        self.assertEqual(whole.returncode, 0, err)
        self.assertEqual(len(out.decode().splitlines()), 6)
        took = time.monotonic() - begin
        killed = 0
        for _ in range(4 * MOMENTS):
            if killed == MOMENTS:
                break
            begin = time.monotonic()
            process = self.start(self.ranks, *self.inputs)
            time.sleep(rng.random() * took)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
            else:
                took = min(took, time.monotonic() - begin)  # the first run was a slow one
            printed = process.communicate()[0].decode().splitlines()
            known = {row[0] for row in self.rows()}
            for line in printed:
                self.assertIn(line.split()[0], known, "what was printed is there")
            self.sweep()
            self.check()
        self.assertEqual(killed, MOMENTS)
        print(f"  seed {SEED}: {killed} killed, {self.check()} traces whole")

    def test_two_imports_at_a_time(self):
        processes = [self.start(self.ranks, *self.inputs) for _ in range(3)]
        for process in processes:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(self.check(), 18)

    def test_the_same_file_is_imported_once(self):
        for expected in (1, 1):
            done = subprocess.run([PROGRAM, "import", "--data", self.data, self.inputs[0]], capture_output=True, text=True,
                                  env=self.environment(), timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.check(), expected)
        self.assertIn("is already imported", done.stdout)

    def test_wrong_usage(self):
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        for arguments, status in ((["import"], 2), (["import", "--no-such", "x"], 2), (["no-such-command"], 2), (["import", "--help"], 0),
                                  (["import", "--name", "x", "a", "b"], 2), (["import-worker"], 2), (["help"], 0), (["version"], 0),
                                  (["version", "x"], 2), (["import", "/etc/passwd", "--data", self.data], 1),
                                  (["import", empty, "--data", self.data], 1)):
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=self.environment(), timeout=60)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            if status != 0:
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    main()
