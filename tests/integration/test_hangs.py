#!/usr/bin/env python3
"""Jobs that hang are told, with the right rank and line; jobs that only look like it are not (hang_jobs.py).

Needs /usr/bin/python3 with torch (gloo); skips in one line without. Floors are scaled down, so that a case takes seconds; with
LACUNA_SOAK=1 every case runs LACUNA_HANG_SEEDS times (5) at full scale, two at a time, each with a pace and a number of steps of its own.
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
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
NVML = os.path.join(ROOT, "build/release/stand_in/nvml")
LIMIT_S = 240
SEEDS = int(os.environ.get("LACUNA_HANG_SEEDS", "5"))
SHM = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m lacuna /dev/shm && exec "$@"', "sh")
# what hangs: the rank that is to be named, and words that are to be said
HANGS = {"diverged": (1, "waits in barrier", "rank 0 waits in all_reduce"), "read": (0, "waits for a batch", "while it makes a batch"),
         "lock": (0, "waits for a lock"), "decode": (0, "computes while it makes a batch"), "import": (0, "another thread's import"),
         "stopped": (1, "is stopped"), "dead": (1, "has ended", "rank 0 waits in all_reduce"), "shm": (0, "/dev/shm is full"),
         "uneven": (1, "waits in barrier", "rank 0 waits in backward"), "swallowed": (1, "waits in barrier", "rank 0 waits in backward")}
CALM = ("gc", "compile", "evaluation", "checkpoint")


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
        environment = dict(os.environ, LACUNA_HANG_SCALE=str(scale), **variables)
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

    def check_hang(self, case, rank, *words, scale=0.25, until="lacuna: no progress for .*\n", **options):
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


def soak(case, seed):
    """One job at full scale. @return what was wrong with what was said ("" nothing), and after how many seconds (None: nothing was said)"""
    chosen = random.Random(f"{case} {seed}")
    hangs = Hangs()
    hangs.setUp()
    try:
        _, said = hangs.run_job(case, 1, "lacuna: no progress for .*\n" if case in HANGS else None, SHM if case == "shm" else (),
                                HANG_PACE=f"{chosen.uniform(0.005, 0.1):.3f}", HANG_STEPS=str(chosen.randrange(40, 160)), HANG_LONG="60")
    finally:
        hangs.tearDown()
    told = re.search("lacuna: no progress for ([0-9]+) s: (.*)", said)
    seconds = int(told.group(1)) if told else None
    if case in CALM:
        return ("a false alarm: " + told.group(0) if told else ""), seconds
    if told is None:
        return "not found: " + said, seconds
    rank, *words = HANGS[case]
    line = line_of(case)
    if line is not None and case != "stopped":
        words.append(f"hang_jobs.py:{line} ")
    missing = [word for word in words if word not in told.group(2)]
    is_named = told.group(2).startswith(f"rank {rank} ")
    return ("" if is_named and not missing else f"not said: {missing}: {told.group(0)}"), seconds


@unittest.skipUnless(SOAK and HAVE_TORCH, "make soak")
class Soak(unittest.TestCase):
    def test_every_hang_is_found_within_15_s_and_no_other_job_is_said_to_hang(self):
        cases = [case for case in (*HANGS, *CALM)
                 if case != "shm" or subprocess.run([*SHM, "true"], stderr=subprocess.DEVNULL).returncode == 0]
        wrong, taken = [], []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = {pool.submit(soak, case, seed): (case, seed) for seed in range(SEEDS) for case in cases}
            for run in concurrent.futures.as_completed(runs):
                fault, seconds = run.result()
                print(*runs[run], seconds, fault, file=sys.stderr, flush=True)
                wrong += [(*runs[run], fault)] if fault else []
                taken += [seconds] if seconds is not None and runs[run][0] in HANGS else []
        self.assertEqual(wrong, [])
        ninth = sorted(taken)[len(taken) * 9 // 10]
        print(f"{len(taken)} hangs: p90 {ninth} s, the longest {max(taken)} s; {SEEDS * len(CALM)} other jobs: no alarm", file=sys.stderr)
        self.assertLessEqual(ninth, 15)


if __name__ == "__main__":
    unittest.main()
