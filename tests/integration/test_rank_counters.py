#!/usr/bin/env python3
"""Several launchers on one host: each records the counters of the GPUs that its own job uses, beside a stand-in for the driver's library."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
NVML = os.path.join(ROOT, "build/release/stand_in/nvml")
SECONDS = 90
JOB = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"
OTHERS = ("LACUNA_", "SLURM_", "OMPI_", "MPI_", "MV2_", "LOCAL_", "CUDA_", "NVML_")


class RankCounters(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(os.path.join(NVML, "libnvidia-ml.so.1")):
            self.skipTest("the stand-in for NVML is not built")
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
        # their names differ, so their indices are CUDA's only in the order of the bus
        self.environment.update(TMPDIR=self.folder, LD_LIBRARY_PATH=NVML, NVML_STAND_IN_GPUS="3", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def place(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, **environment):
        process = subprocess.Popen([NODE, "run", "--quiet", "-o", self.place(name), "--", sys.executable, "-S", "-c", JOB, self.place("end")],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment})
        self.started.append(process)
        return process

    def spool(self, name):
        """What the launcher wrote so far."""
        folder = self.place(name)
        names = [each for each in os.listdir(folder) if each.startswith("node-")] if os.path.isdir(folder) else []
        if not names:
            return b""
        with open(os.path.join(folder, names[0]), "rb") as file:
            return file.read()

    def wait_for(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it never came")
            time.sleep(0.02)

    def finish(self):
        open(self.place("end"), "w").close()
        for process in self.started:
            said = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, 0, said)

    def counters(self, name):
        """{GPU: {what: the values}} as imported."""
        done = subprocess.run([LACUNA, "export", self.place(name), "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                              env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for event in json.loads(done.stdout)["traceEvents"]:
            gpu = re.match(r"GPU (\d+): (.*)", event.get("name", ""))
            if event.get("ph") == "C" and gpu:
                found.setdefault(int(gpu.group(1)), {}).setdefault(gpu.group(2), set()).update(event["args"].values())
        return found

    def check(self, name, gpus):
        counters = self.counters(name)
        self.assertEqual(set(counters), set(gpus), name)
        for gpu in gpus:
            for what, value in (("SM clock (MHz)", 1755 + gpu), ("memory used (MB)", 30000 + gpu), ("power (W)", 612.5 + gpu), ("SMs active (%)", 38.5 + gpu)):
                self.assertEqual(counters[gpu][what], {value}, (name, gpu, what))

    def both(self, *environments):
        """Launchers at the same time, until each has a reading of its GPU's own counters."""
        for rank, environment in enumerate(environments):
            self.start(f"rank-{rank}", **environment)
        self.wait_for(lambda: all(re.search(rb"GPU \d: SMs active", self.spool(f"rank-{rank}")) for rank in range(len(environments))))
        self.finish()

    def test_each_has_its_own_device_and_not_the_others(self):
        self.both({"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"})
        self.check("rank-0", [0])
        self.check("rank-1", [1])

    def test_devices_by_uuid_and_parts_of_devices(self):
        self.both({"CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-0000-0000-000000000002,0"},
                  {"CUDA_VISIBLE_DEVICES": "MIG-00000000-0000-0000-0000-000000000001"},
                  {"CUDA_VISIBLE_DEVICES": "MIG-GPU-00000000-0000-0000-0000-000000000000/3/0"})
        self.check("rank-0", [0, 2])
        self.check("rank-1", [1])
        self.check("rank-2", [0])

    def test_a_task_of_a_step_beside_the_first_launcher(self):
        self.start("first")
        self.wait_for(lambda: b"host.sampled_here=" in self.spool("first"))
        for attempt in range(SECONDS):  # what was first may have been another's, and have ended
            name = f"second-{attempt}"
            self.start(name, SLURM_LOCALID="2", SLURM_STEP_TASKS_PER_NODE="3")
            self.wait_for(lambda: re.search(rb"GPU \d: SMs active", self.spool(name)))
            if b"host.sampled_here=False" in self.spool(name):
                break
        self.finish()
        self.check(name, [2])
        self.assertIn(b"host.gpus_chosen_by=SLURM_LOCALID", self.spool(name))
        self.check("first", [0, 1, 2])

    def test_a_job_that_is_shown_no_device(self):
        self.start("first")
        self.wait_for(lambda: b"host.sampled_here=" in self.spool("first"))
        for attempt in range(SECONDS):
            name = f"second-{attempt}"
            self.start(name, CUDA_VISIBLE_DEVICES="-1")
            self.wait_for(lambda: b"host.gpu_monitor=" in self.spool(name))
            if b"host.sampled_here=False" in self.spool(name):
                break
        self.finish()
        self.assertEqual(self.counters(name), {})
        self.assertIn(b"host.gpu_monitor=CUDA_VISIBLE_DEVICES names none of its GPUs", self.spool(name))


if __name__ == "__main__":
    unittest.main()
