#!/usr/bin/env python3
"""Jobs that hang are told, with the right rank and line; jobs that only look like it are not (hang_jobs.py).

Needs /usr/bin/python3 with torch (gloo); skips in one line without. Floors are scaled down, so that a case takes seconds; with
LACUNA_SOAK=1 every case runs with five seeds at full scale (hang_seeds.py; `make hangs`: with a hundred).
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/integration"), os.path.join(ROOT, "tests/support")]
import hang_seeds  # noqa: E402
from hang_seeds import HAVE_TORCH, NODE, TORCH_PYTHON, line_of  # noqa: E402
from soak import in_soak  # noqa: E402

LACUNA = os.path.join(ROOT, "build/release/lacuna")
SOAK_SEEDS = 5
NVML = os.path.join(ROOT, "build/release/stand_in/nvml")


@unittest.skipUnless(HAVE_TORCH, "no torch")
class Hangs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")

    def tearDown(self):
        hang_seeds.end_leftovers(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_job(self, case, scale, until=None, **variables):
        """What the launcher said, after the job has ended or `until` was said."""
        status, said, _ = hang_seeds.run_job(case, self.folder, scale, until, **variables)
        return status, said

    def check_hang(self, case, rank, *words, scale=0.25, until=hang_seeds.TOLD, **options):
        _, said = self.run_job(case, scale, until, **options)
        told = re.search("lacuna: no progress for ([0-9]+) s: (.*)", said)
        self.assertIsNotNone(told, said)
        culprit, _, others = told.group(2).partition("; ")
        self.assertTrue(culprit.startswith(f"rank {rank} "), told.group(0))
        line = line_of(case)
        if line is not None and case != "stopped":
            self.assertIn(f"hang_jobs.py:{line} ", culprit)
        for word in words:
            self.assertIn(word, told.group(0))
        return culprit, others

    @in_soak
    def test_a_diverged_branch_names_the_rank_its_line_and_the_collective_of_the_other(self):
        _, others = self.check_hang("diverged", 1, "waits in barrier")
        self.assertIn("rank 0 waits in all_reduce at hang_jobs.py:", others)

    def test_of_three_forked_ranks_the_one_that_swallowed_an_exception(self):
        _, others = self.check_hang("swallowed", 2, "waits in barrier", HANG_RANKS="3", HANG_CULPRIT="2", HANG_FORK="1")
        for rank in (0, 1):
            self.assertIn(f"rank {rank} waits in backward", others)

    @in_soak
    def test_a_stuck_read_in_a_worker(self):
        self.check_hang("read", 0, "waits for a batch of its workers", "while it makes a batch")

    def test_of_three_ranks_the_one_whose_worker_is_stuck(self):
        _, others = self.check_hang("worker", 1, "waits for a batch of its workers, of which process", "while it makes a batch", HANG_RANKS="3", HANG_FORK="1")
        for rank in (0, 2):
            self.assertIn(f"rank {rank} waits in backward", others)

    def test_a_worker_that_dies_ends_the_job_by_itself(self):
        """PyTorch says so, with the process; nothing hangs, and nothing is told."""
        for case, words in (("killed", "is killed by signal: Killed"), ("exited", "exited unexpectedly")):
            with self.subTest(case=case):
                os.makedirs(os.path.join(self.folder, case))
                status, said, _ = hang_seeds.run_job(case, os.path.join(self.folder, case), HANG_RANKS="2", HANG_STEPS="41")
                self.assertRegex(said, r"RuntimeError: DataLoader worker \(pid(\(s\))? [0-9]+\) " + words)
                self.assertNotIn("no progress", said)
                self.assertEqual(status, 1, said)

    def test_two_locks(self):
        self.check_hang("lock", 0, "waits for a lock")
        said = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=120, check=True).stdout)
        first = said["findings"][0]
        self.assertEqual((first["id"], first["severity"], first["where"]), ("hang", "critical", f"hang_jobs.py:{line_of('lock')}"))
        self.assertIn("rank 0 waits for a lock", said["verdict"]["text"])
        stacks = " ".join(value for key, value in said["settings"].items() if key.startswith("hang.stack."))
        self.assertIn("run_lock", stacks)
        self.assertRegex(stacks, r"other \([^ ]*hang_jobs.py:[0-9]+\)")  # what the other thread does

    def test_nccl_s_own_count_tells_a_rank_that_spins_for_its_gpu_from_one_that_computes(self):
        """A stand-in speaks as NCCL's RAS service; the ranks have no hook for what they launch."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        asked = []

        def ranks():
            for rank, count in ((0, 61), (1, 60)):
                path = os.path.join(self.folder, f"pid-{rank}")
                if not os.path.exists(path):  # it is asked for while the job starts, too
                    continue
                with open(path) as file:
                    yield {"rank": rank, "host": "127.0.0.1", "pid": int(file.read()), "status": {"init_state": 0, "async_error": 0},
                           "collective_counts": {"Broadcast": 3, "AllReduce": count}}

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, connection.makefile("rw", newline="\n") as lines:
                    for line in lines:
                        asked.append(line)
                        lines.write("SERVER PROTOCOL 2\n" if line.startswith("CLIENT") else "OK\n" if line != "VERBOSE STATUS\n" else json.dumps(
                            {"nccl_version": "2.28.3", "communicators": [{"hash": "0xab", "size": 2, "ranks": list(ranks()), "missing_ranks": []}]}))
                        lines.flush()
                        if line == "VERBOSE STATUS\n":
                            break

        threading.Thread(target=serve, daemon=True).start()
        prefix = os.path.join(self.folder, "flight-")
        _, others = self.check_hang("nccl", 1, "waits for a lock", until="lacuna: flight recorder: .*\n",
                                    NCCL_RAS_ADDR="127.0.0.1:%d" % listening.getsockname()[1], LD_LIBRARY_PATH=NVML, NVML_STAND_IN_GPUS="2",
                                    TORCH_NCCL_DEBUG_INFO_PIPE_FILE=prefix, TORCH_NCCL_DEBUG_INFO_TEMP_FILE=prefix)
        self.assertIn("rank 0 waits in AllReduce", others)
        self.assertIn("NCCL: AllReduce: rank 1 has launched 60, rank 0 61", others)
        self.assertEqual(asked[:4], ["CLIENT PROTOCOL 2\n", "TIMEOUT 2\n", "SET FORMAT json\n", "VERBOSE STATUS\n"])
        said = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=120, check=True).stdout)
        said = said["ranks"][0]["analysis"]
        self.assertEqual(said["settings"]["hang.nccl.0"], "0xab, 2 ranks: Broadcast 3; AllReduce: rank 1 has launched 60, rank 0 61")
        self.assertEqual(said["settings"]["hang.flight.0"], "rank 0 waits in nccl:all_reduce, number 61 of default_pg, [4, 4] Float, started")
        self.assertEqual(said["settings"]["hang.flight.1"], "rank 1 called last nccl:all_reduce, number 60 of default_pg, [4, 4] Float, completed")
        why = said["findings"][0]["why"]
        self.assertIn("AllReduce: rank 1 has launched 60, rank 0 61", why)
        self.assertIn("rank 1 has not called number 61 of default_pg (nccl:all_reduce), in which rank 0 waits", why)
        if os.path.exists(os.path.join(NVML, "libnvidia-ml.so.1")):
            self.assertEqual(said["settings"]["hang.gpu.1"], "98 % busy, memory 42 %, 1756 MHz, 614 W, 30.0 of 80.0 GB used, clocks held down (0x4)")
            self.assertIn("all GPUs are busy", why)

    def test_a_slow_checkpoint_is_no_hang(self):
        self.check_calm("checkpoint")

    def check_calm(self, case):
        status, said = self.run_job(case, 0.5, HANG_LONG="6")
        self.assertNotIn("no progress", said)
        self.assertEqual(status, 0, said)

    def test_it_can_be_switched_off(self):
        script = "import os, _lacuna_hang; _lacuna_hang.listen(); print(len(os.listdir('/proc/self/task')))"
        for value, threads in (("1", "2"), ("0", "1")):
            result = subprocess.run([NODE, "run", "-o", self.out + value, "--quiet", "--", TORCH_PYTHON, "-c", script],
                                    env=dict(os.environ, LACUNA_HANG=value), stdout=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(result.stdout.strip(), threads)


@in_soak
@unittest.skipUnless(HAVE_TORCH, "no torch")
class Soak(unittest.TestCase):
    def test_every_hang_is_found_within_15_s_and_no_other_job_is_said_to_hang(self):
        wanted = [(case, seed) for seed in range(SOAK_SEEDS) for case in hang_seeds.cases_here()]
        runs = hang_seeds.run_seeds(wanted, 2, lambda run: print(*run, file=sys.stderr, flush=True))
        self.assertEqual([run for run in runs if run.fault], [])
        print("\n".join(hang_seeds.table(runs)), file=sys.stderr)
        self.assertLessEqual(hang_seeds.share(sorted(run.seconds for run in runs if run.case in hang_seeds.HANGS), 90), 15)


if __name__ == "__main__":
    unittest.main()
