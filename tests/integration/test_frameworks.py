#!/usr/bin/env python3
"""Frameworks by name, on stand-ins with the entry points of the real ones (tests/stand_in/frameworks): what a job prints stays as it
is, its steps are those of the framework, and its settings, phases and loader are told."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
STAND_INS = [os.path.join(ROOT, "tests/stand_in", name) for name in ("frameworks", "python")]


class Frameworks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def record(self, text, *options, read=True):
        script = os.path.join(self.folder, "script.py")
        with open(script, "w") as file:
            file.write(textwrap.dedent(text))
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(STAND_INS), "PYTHONDONTWRITEBYTECODE": "1"}
        done = [subprocess.run(each, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env=env)
                for each in ([sys.executable, script],
                             [NODE, "run", *(options or ("--all",)), "--quiet", "-o", self.out, "--", sys.executable, script])]
        self.assertEqual([each.returncode for each in done], [0, 0], [each.stderr for each in done])
        self.assertEqual(done[1].stdout, done[0].stdout)
        if not read:
            return
        printed = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        self.ranges = collections.Counter(event["name"] for event in json.loads(printed.stdout)["traceEvents"] if event.get("ph") == "X")
        analysis = subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, text=True, timeout=60)
        self.analysis = json.loads(analysis.stdout)
        self.settings = self.analysis["settings"]

    def steps_counted(self):
        """As the launcher counts them to open its windows."""
        shown = subprocess.run([NODE, "show", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        return max(int(found) for found in re.findall(r"(\d+) steps;", shown))

    def expect(self, **settings):
        self.assertEqual({name: self.settings.get(name) for name in settings}, settings)
        self.assertEqual([name for name in self.settings if name.startswith("hook.missing")], [])

    def test_lightning(self):
        self.record("""
            import torch
            from torch.utils.data import DataLoader
            from lightning.pytorch import Trainer
            class Model:
                def configure_optimizers(self): return torch.optim.SGD()
                def training_step(self, batch, batch_idx): print("train", batch, batch_idx)
                def validation_step(self, batch, batch_idx): print("validate", batch)
            Trainer(precision="bf16-mixed", accumulate_grad_batches=2).fit(Model(), DataLoader(list(range(16)), batch_size=2), DataLoader(list(range(4))))
        """)
        self.expect(framework="Lightning", precision="bf16-mixed", gradient_accumulation_steps=2, strategy="SingleDeviceStrategy", num_nodes=1,
                    batch_size=2)
        self.assertEqual(self.steps_counted(), 4)
        self.assertEqual((self.ranges["validation"], self.ranges["checkpoint"], self.ranges["Optimizer.step#SGD.step"]), (1, 1, 4))

    def test_the_hf_trainer_and_not_the_accelerate_inside_it(self):
        self.record("""
            import torch
            from torch.utils.data import DataLoader
            from transformers import Trainer, TrainingArguments
            class Model(torch.nn.Module):
                def forward(self, x): print(x)
            args = TrainingArguments(per_device_train_batch_size=3, gradient_accumulation_steps=4, bf16=True)
            Trainer(Model(), args, None, (torch.optim.SGD(), None), lambda: DataLoader(list(range(24)), batch_size=3)).train()
        """)
        self.expect(framework="HF Trainer", precision="bf16", gradient_accumulation_steps=4, strategy="MULTI_GPU", per_device_train_batch_size=3)
        self.assertEqual(self.steps_counted(), 2)
        self.assertEqual((self.ranges["evaluation"], self.ranges["checkpoint"]), (1, 1))

    def test_accelerate_by_itself(self):
        self.record("""
            import torch
            from accelerate import Accelerator
            accelerator, optimizer = Accelerator(gradient_accumulation_steps=2), torch.optim.SGD()
            for step in range(3): optimizer.step()
            print(accelerator.save_state("there"))
        """)
        self.expect(framework="Accelerate", gradient_accumulation_steps=2, strategy="MULTI_GPU")
        self.assertEqual((self.steps_counted(), self.ranges["checkpoint"]), (3, 1))

    def test_an_update_of_deepspeed_is_one_step_for_all_its_groups(self):
        self.record("""
            from deepspeed.runtime.engine import DeepSpeedEngine
            engine = DeepSpeedEngine(gradient_accumulation_steps=2)
            for step in range(8): engine.step()
            print(engine.save_checkpoint("there"))
        """)
        self.expect(framework="DeepSpeed", zero_stage=3, precision="bf16", gradient_accumulation_steps=2)
        self.assertEqual(self.steps_counted(), 4)
        self.assertEqual(self.ranges["Optimizer.step#DeepSpeedEngine.step"], 4)
        self.assertEqual(self.ranges["Optimizer.step#FusedAdam.step"], 0)

    def test_a_step_of_megatron_is_one_for_all_its_optimizers(self):
        self.record("""
            import time
            from megatron.training import pretrain
            def forward_step(data_iterator, model): time.sleep(0.003)
            pretrain(None, forward_step, train_iters=12, eval_interval=6)
        """)
        self.expect(framework="Megatron", precision="bf16", tensor_model_parallel_size=2, pipeline_model_parallel_size=4, micro_batch_size=1)
        self.assertEqual(self.steps_counted(), 12)
        self.assertEqual((self.ranges["train_step"], self.ranges["evaluation"], self.ranges["checkpoint"]), (12, 2, 2))
        self.assertEqual(self.ranges["Optimizer.step#FusedAdam.step"], 24)
        self.assertIn(self.analysis["steps"]["count"], (11, 12))  # the last one may have no end

    def test_an_iteration_of_vllm_counts_while_nobody_trains(self):
        job = """
            import torch
            from vllm.config import vllm_config
            from vllm.v1.worker.gpu_worker import Worker
            worker, optimizer = Worker(vllm_config(2), 0, 0, "tcp://127.0.0.1:1"), torch.optim.SGD()
            for step in range(TRAINED): optimizer.step()
            print([worker.execute_model(number) for number in range(5)])
        """
        self.record(job.replace("TRAINED", "0"))
        self.expect(framework="vLLM", tensor_parallel_size=2, pipeline_parallel_size=1, dtype="torch.bfloat16", max_num_seqs=256)
        self.assertEqual((self.steps_counted(), self.ranges["execute_model"]), (5, 5))
        shutil.rmtree(self.out)
        self.record(job.replace("TRAINED", "2"))
        self.assertEqual((self.steps_counted(), self.ranges["execute_model"]), (2, 5))

    def test_workers_of_vllm_are_ranks(self):
        """Its executor gives each its ranks as arguments; here they join no process group."""
        self.record("""
            from vllm.config import vllm_config
            from vllm.v1.executor.multiproc_executor import MultiprocExecutor
            executor = MultiprocExecutor(vllm_config(2), "tcp://127.0.0.1:1")
            print([executor.collective_rpc("execute_model", number) for number in range(5)])
            executor.shutdown()
        """, read=False)
        analysis = subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, text=True, timeout=60)
        run = json.loads(analysis.stdout)
        self.assertEqual([rank["rank"] for rank in run["ranks"]], [0, 1])
        for number, rank in enumerate(run["ranks"]):
            self.settings = rank["analysis"]["settings"]
            self.expect(framework="vLLM", rank=number, local_rank=number, world_size=2, started_by="vLLM", tensor_parallel_size=2)

    def test_steps_of_jax_are_counted_and_recorded_by_number(self):
        job = """
            import time, jax
            from jax._src.distributed import global_state
            global_state.initialize("10.0.0.1:1234", 4, 1)
            for step in range(STEPS):
                with jax.profiler.StepTraceAnnotation("train", step_num=step): time.sleep(0.02)
                if step % 5 == 4:
                    with jax.profiler.StepTraceAnnotation("eval", step_num=step): pass
            print(step)
        """
        self.record(job.replace("STEPS", "10"))
        self.expect(framework="JAX", jax_version="0.99.0", rank=1, world_size=4, dist_backend="jax")
        self.assertEqual((self.steps_counted(), self.ranges["step"], self.ranges["evaluation"]), (10, 10, 2))
        self.assertIn(self.analysis["steps"]["count"], (9, 10))
        self.assertEqual(self.analysis["steps"]["method"], "nvtx")
        shutil.rmtree(self.out)
        self.record(job.replace("STEPS", "60"), "--steps", "20:30")
        self.assertTrue(0 < self.ranges["step"] < 45, self.ranges)
        self.assertGreater(self.steps_counted(), 29)

    def test_batches_of_keras(self):
        self.record("""
            from keras import CallbackList
            callbacks = CallbackList()
            for batch in range(4):
                callbacks.on_train_batch_begin(batch)
                if batch != 2:  # one that failed
                    callbacks.on_train_batch_end(batch)
            callbacks.on_test_begin()
            callbacks.on_test_end()
            print(batch)
        """)
        self.expect(framework="Keras")
        self.assertEqual((self.steps_counted(), self.ranges["train_step"], self.ranges["validation"]), (3, 4, 1))

    TRAINED = """
        import sys, time, torch
        from torch.utils.data import DataLoader
        optimizer = torch.optim.SGD()
        def train(batches):
            for batch in batches:
                print(batch)
                optimizer.step()
    """

    def test_webdataset(self):
        pipeline = self.TRAINED + """
        from webdataset import DataPipeline
        def slow(source):
            for item in source:
                time.sleep(0.002)
                yield item
        """
        self.record(pipeline + """
        train(DataPipeline(DataPipeline(range(6), slow), slow))  # one inside another waits once
        """)
        self.expect(loader="WebDataset")
        self.assertEqual(self.ranges["loader.wait"], 7)
        self.assertNotIn("loader_found", self.settings)
        shutil.rmtree(self.out)
        self.record(pipeline + """
        train(DataPipeline(DataLoader(list(range(6)), batch_size=2), slow))
        """)
        self.assertEqual(self.ranges["loader.wait"], 4)  # PyTorch's

    def test_hf_datasets(self):
        self.record(self.TRAINED + """
        from datasets import Dataset
        train(DataLoader(Dataset([{"a": number} for number in range(8)]), batch_size=2))
        """)
        self.expect(dataset_library="HF datasets", batch_size=2)
        self.assertEqual((self.ranges["loader.fetch"], self.ranges["loader.read"], self.ranges["loader.decode"]), (4, 8, 8))

    def test_tf_data_and_what_is_only_imported(self):
        self.record(self.TRAINED + """
        from tensorflow import OwnedIterator
        train(OwnedIterator([1, 2, 3, 4, 5]))
        """)
        self.expect(loader="tf.data", framework="PyTorch")
        self.assertEqual(self.ranges["loader.wait"], 6)
        shutil.rmtree(self.out)
        self.record(self.TRAINED + """
        import lightning.pytorch, tensorflow, webdataset, deepspeed.runtime.engine
        class Own:
            def __iter__(self): return self
            def __init__(self): self.left = 8
            def __next__(self):
                time.sleep(0.002)
                self.left -= 1
                if not self.left: raise StopIteration
                return self.left
        train(Own())
        """)
        self.expect(loader="Own", loader_found="by position")
        self.assertEqual(self.steps_counted(), 7)

    def test_each_patch_has_a_finder(self):
        told = subprocess.run([sys.executable, "-c", textwrap.dedent("""
            import sys, types
            sys.modules["_lacuna"] = types.ModuleType("_lacuna")
            sys.modules["_lacuna"].__getattr__ = lambda name: (lambda *args: False)
            import _lacuna_hook, sitecustomize
            print(sorted(set(_lacuna_hook._PATCHES) ^ sitecustomize._Finder.PATCHED))
            for later in [each for patches in _lacuna_hook._PATCHES.values() for each in patches]:
                if later.__closure__ and later.__name__ != "patch_later":
                    names = [cell.cell_contents for cell in later.__closure__ if isinstance(cell.cell_contents, str)]
                    assert all(hasattr(__import__(name), later.__name__) for name in names if name.startswith("_lacuna")), later
        """)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "build/release/python")}, timeout=60)
        self.assertEqual((told.returncode, told.stdout), (0, "[]\n"))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
