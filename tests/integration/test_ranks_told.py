#!/usr/bin/env python3
"""Ranks that no variable names: mp.spawn under one launcher becomes a trace a rank, workers with theirs.

Wants /usr/bin/python3 with torch; skips in one line without.
"""
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

from torch_python import TORCH_PYTHON, has_torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.path.join(ROOT, "build/release/lacuna")
HAVE_TORCH = has_torch()

SPAWN = textwrap.dedent(r'''
    import os, sys, time
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.utils.data import DataLoader, Dataset

    class Data(Dataset):
        def __len__(self): return 48
        def __getitem__(self, index):
            time.sleep(0.0005)
            return torch.full((8,), float(index))

    def train(rank, meeting, how):
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for batch in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=how):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        os.write(1, f"{rank} {os.getpid()}\n".encode())
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(train, args=tuple(sys.argv[1:3]), nprocs=2)
''')


RAY = textwrap.dedent(r'''
    import os
    import torch
    import torch.distributed as dist
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer
    from torch.utils.data import DataLoader

    def train(config):
        torch.set_num_threads(1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
        for batch in DataLoader(torch.ones(48, 8), batch_size=4):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        os.write(1, f"{dist.get_rank()} {os.getpid()}\n".encode())
        dist.destroy_process_group()

    if __name__ == "__main__":
        TorchTrainer(train, train_loop_config={"lr": 0.01}, scaling_config=ScalingConfig(num_workers=2)).fit()
''')


VLLM = textwrap.dedent(r'''
    import os, sys
    from vllm.config import vllm_config
    from vllm.v1.executor.multiproc_executor import MultiprocExecutor

    executor = MultiprocExecutor(vllm_config(2), "file://" + sys.argv[1])
    for number in range(5):
        executor.collective_rpc("execute_model", number)
    for rank, (process, _) in enumerate(executor.workers):
        os.write(1, f"{rank} {process.pid}\n".encode())
    executor.shutdown()
''')


@unittest.skipUnless(HAVE_TORCH, f"no torch for {TORCH_PYTHON}")
class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "job")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def lacuna(self, *arguments):
        return subprocess.run([LACUNA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def record(self, how, text=SPAWN):
        script = os.path.join(self.folder, "train.py")
        with open(script, "w") as file:
            file.write(text)
        plain = {name: given for name, given in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS")}
        os.mkdir(os.path.join(self.folder, "packages"))
        for name in ("ray", "vllm"):
            os.symlink(os.path.join(ROOT, "tests/stand_in/frameworks", name), os.path.join(self.folder, "packages", name))
        plain.update(PYTHONPATH=os.path.join(self.folder, "packages"), PYTHONDONTWRITEBYTECODE="1")
        run = subprocess.run([LACUNA, "run", "--all", "--quiet", "-o", self.out, "--", TORCH_PYTHON, script, os.path.join(self.folder, "meet"), how],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180, env=plain)
        self.assertEqual(run.returncode, 0, run.stderr)
        return dict(line.split() for line in run.stdout.splitlines() if line[:1].isdigit())

    def check(self, how):
        pids = self.record(how)
        self.assertEqual(sorted(pids), ["0", "1"])
        printed = self.lacuna("analyze", "--json", self.out)
        run = json.loads(printed.stdout)
        self.assertEqual(run["schema"], "lacuna.run/1")
        self.assertEqual([rank["rank"] for rank in run["ranks"]], [0, 1])
        for number, rank in enumerate(run["ranks"]):
            analysis = rank["analysis"]
            self.assertEqual(analysis["trace"]["name"], f"job rank {number}")
            self.assertEqual(analysis["steps"]["count"], 12)
            self.assertEqual(analysis["dataloader"]["num_workers"], 2)
            given = analysis["settings"]
            self.assertEqual((given["rank"], given["world_size"], given["dist_backend"]), (number, 2, "gloo"))
        self.check_processes(pids)

    def check_processes(self, pids):
        """Of each trace: its rank, two workers, and the process that started the ranks."""
        data = os.path.join(self.folder, "data")
        imported = self.lacuna("import", self.out, "--data", data)
        self.assertEqual(imported.returncode, 0, imported.stderr)
        found = {}
        for name in os.listdir(os.path.join(data, "traces")):
            with contextlib.closing(sqlite3.connect(os.path.join(data, "traces", name))) as trace:
                rank = trace.execute("SELECT value FROM meta WHERE key = 'rank'").fetchone()[0]
                # those with a command line were recorded; the others were seen by the monitor of the host
                found[int(rank)] = {row[0] for row in trace.execute("SELECT pid FROM process WHERE labels != 0")}
        self.assertEqual(sorted(found), [0, 1])
        for number, processes in found.items():
            self.assertIn(int(pids[str(number)]), processes)
            self.assertEqual(len(processes), 4)
        self.assertEqual(len(found[0] & found[1]), 1)  # which started both

    def test_workers_of_ray_train(self):
        """A stand-in for Ray (tests/stand_in/frameworks): they join their group before they have RANK."""
        self.assertEqual(sorted(self.record("", RAY)), ["0", "1"])
        run = json.loads(self.lacuna("analyze", "--json", self.out).stdout)
        self.assertEqual([rank["rank"] for rank in run["ranks"]], [0, 1])
        for number, rank in enumerate(run["ranks"]):
            given = rank["analysis"]["settings"]
            self.assertEqual((given["rank"], given["world_size"], given["started_by"]), (number, 2, "Ray Train"))
            self.assertEqual(rank["analysis"]["steps"]["count"], 12)

    def test_workers_of_vllm(self):
        """A stand-in for vLLM: they are ranks of the group they join, and each was given its local rank."""
        self.assertEqual(sorted(self.record("", VLLM)), ["0", "1"])
        run = json.loads(self.lacuna("analyze", "--json", self.out).stdout)
        self.assertEqual([rank["rank"] for rank in run["ranks"]], [0, 1])
        for number, rank in enumerate(run["ranks"]):
            given = rank["analysis"]["settings"]
            self.assertEqual((given["rank"], given["local_rank"], given["world_size"], given["dist_backend"], given["started_by"]), (number, number, 2, "gloo", "vLLM"))

    def test_spawned_ranks_are_a_trace_each_with_the_workers_of_a_fork_server(self):
        self.check("forkserver")
        named = self.lacuna("show", self.out).stdout
        self.assertIn("rank 0 of 2", named)
        self.assertIn("rank 1 of 2", named)


if __name__ == "__main__":
    if not HAVE_TORCH:
        print(f"skip: no torch for {TORCH_PYTHON}")
        sys.exit(0)
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
