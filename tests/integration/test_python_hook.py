#!/usr/bin/env python3
"""The Python hook in real interpreters: what it costs to start, that results stay the same, what it names.

The PyTorch parts want /usr/bin/python3 with torch and skip in one line without.
"""
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
HOOK = os.path.join(ROOT, "build/release/python")
LIBRARY = os.path.join(ROOT, "build/release/liblacuna.so")
TORCH_PYTHON = "/usr/bin/python3"
HAVE_TORCH = subprocess.run([TORCH_PYTHON, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0 \
    if os.path.exists(TORCH_PYTHON) else False

# A module of the same shape as torchvision's, so that the names the hook looks for are there.
TRANSFORMS = textwrap.dedent('''
    class Compose:
        def __init__(self, transforms): self.transforms = transforms
        def __call__(self, image):
            for transform in self.transforms:
                image = transform(image)
            return image
''')


class Hook(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def record(self, python, text, *arguments, env=None):
        run = subprocess.run([NODE, "run", "--all", "--quiet", "-o", self.out, "--", python, self.write("script.py", text), *arguments],
                             cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                             env={**os.environ, **(env or {})})
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def plain(self, python, text, *arguments):
        run = subprocess.run([python, self.write("script.py", text), *arguments], cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(run.returncode, 0)
        return run.stdout

    def shown(self):
        return subprocess.run([NODE, "show", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def counted(self, what):
        return sum(int(line.split()[0]) for line in self.shown().splitlines() if line.strip().endswith(" " + what))

    def test_an_interpreter_starts_within_five_ms_more(self):
        recorded = {**os.environ, "LACUNA_SPOOL": self.folder, "LACUNA_LIBRARY": LIBRARY, "PYTHONPATH": HOOK}
        plain = {name: text for name, text in os.environ.items() if not name.startswith("LACUNA") and name != "PYTHONPATH"}

        def cpu_ms(env):
            pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], env)
            _, _, usage = os.wait4(pid, 0)
            return (usage.ru_utime + usage.ru_stime) * 1e3

        with_hook, without = [], []
        for _ in range(25):
            with_hook.append(cpu_ms(recorded))
            without.append(cpu_ms(plain))
        cost = sorted(with_hook)[5] - sorted(without)[5]
        print(f"the hook costs an interpreter {cost:.1f} ms of {sorted(without)[5]:.1f} ms")
        self.assertLess(cost, 5.0)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".spool")], [])

    ANNOTATED = '''
        import lacuna

        @lacuna.annotate
        def validate(x):
            """doc"""
            return x + 1

        @lacuna.annotate("named")
        def other():
            raise KeyError("mine")

        with lacuna.annotate("block"):
            print(validate(1), validate.__doc__, lacuna.is_recording())
        try:
            other()
        except KeyError as error:
            print(error)
    '''

    def test_annotate_is_recorded(self):
        self.assertEqual(self.record(sys.executable, self.ANNOTATED), "2 doc True\n'mine'\n")
        shown = self.shown()
        for name in ("validate", "named", "block"):
            self.assertRegex(shown, rf"(?m)^    {name}$")
        self.assertEqual((self.counted("ranges opened"), self.counted("ranges closed")), (3, 3))

    def test_annotate_does_nothing_without_the_recorder(self):
        shutil.copy(os.path.join(HOOK, "lacuna.py"), self.folder)
        self.assertEqual(self.plain(sys.executable, self.ANNOTATED), "2 doc False\n'mine'\n")

    TRAINING = '''
        import torch
        torch.manual_seed(1)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
            def forward(self, x, scale=1):
                return self.body(x) * scale
        model = Net()
        calls = []
        model.register_forward_hook(lambda *unused: calls.append(1))
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(5):
            loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16), scale=2), torch.randint(0, 2, (8,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        traced = torch.jit.trace(model, torch.randn(1, 16))
        print(loss.item().hex(), len(calls), [p.sum().item().hex() for p in model.parameters()], traced(torch.ones(1, 16)).sum().item().hex())
        graph = torch.fx.symbolic_trace(model)
        print([node.op for node in graph.graph.nodes])
        try:
            model(torch.randn(3, 3))
        except RuntimeError:
            print("refused")
        print(model(torch.ones(2, 16)).shape)
    '''

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_training_gives_the_same_numbers_and_forward_is_the_outermost_call(self):
        self.assertEqual(self.record(TORCH_PYTHON, self.TRAINING), self.plain(TORCH_PYTHON, self.TRAINING))
        shown = self.shown()
        for text in ("forward", "backward", "Optimizer.step#Adam.step", "optimizer=Adam", "framework=PyTorch", "detect_anomaly=False"):
            self.assertRegex(shown, rf"(?m)^    {re.escape(text)}$")
        # five steps of forward, backward and step, and a few calls behind them: none for the layers inside
        self.assertGreaterEqual(self.counted("ranges opened"), 15)
        self.assertLessEqual(self.counted("ranges opened"), 15 + 10)
        self.assertEqual(self.counted("ranges opened"), self.counted("ranges closed"))

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_compiler_finds_modules_as_pytorch_made_them(self):
        printed = self.record(TORCH_PYTHON, '''
            import torch
            before = torch.nn.Module.__call__
            sys_module = __import__("sys").modules["lacuna_hook"]
            torch.compile = lambda model: model
            sys_module._compile(torch)
            model = torch.compile(torch.nn.Linear(2, 2))
            print(before is torch.nn.Module.__call__, torch.nn.Module.__call__ is sys_module._module_call, model(torch.ones(1, 2)).shape)
        ''')
        self.assertEqual(printed, "False True torch.Size([1, 2])\n")
        self.assertIn("forward_ranges=off (torch.compile)", self.shown())

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_reads_and_transforms_of_a_batch_are_named(self):
        self.write("torchvision/__init__.py", "")
        self.write("torchvision/transforms/__init__.py", "from .transforms import Compose\n")
        self.write("torchvision/transforms/transforms.py", TRANSFORMS)
        text = '''
            import os, sys, time, torch
            from torch.utils.data import DataLoader, Dataset
            from torchvision.transforms import Compose
            class Flip(torch.nn.Module):
                def forward(self, x): return x.flip(0)
            class Scale:
                def __call__(self, x): return x * 2
            class Files(Dataset):
                def __init__(self): self.alone, self.together = Flip(), Compose([Scale(), Flip()])
                def __len__(self): return 12
                def __getitem__(self, index):
                    time.sleep(0.001)
                    with open(f"{index}.bin", "rb") as file:
                        data = file.read()
                    with open("text.txt") as file:
                        assert file.read() == "text"
                    assert type(open(f"{index}.bin", "rb")).__name__ == "BufferedReader"
                    x = torch.frombuffer(bytearray(data), dtype=torch.uint8).float()
                    return self.together(self.alone(x))
            for index in range(12):
                with open(f"{index}.bin", "wb") as file:
                    file.write(bytes(range(index, index + 100)))
            with open("text.txt", "w") as file:
                file.write("text")
            total = sum(batch.sum().item() for batch in DataLoader(Files(), batch_size=4, num_workers=2))
            print(total)
        '''
        self.assertEqual(self.record(TORCH_PYTHON, text), self.plain(TORCH_PYTHON, text))
        shown = self.shown()
        for name in ("loader.read", "loader.transform Flip", "loader.transform Scale", "loader.item", "loader.collate", "loader.fetch"):
            self.assertRegex(shown, rf"(?m)^    {re.escape(name)}$")
        self.assertNotRegex(shown, r"(?m)^    forward$")
        self.assertGreaterEqual(self.counted("payloads (one number each)"), 12)  # bytes of each file that was read

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_an_explicit_profiler_works_as_before(self):
        text = '''
            import torch
            from torch.profiler import ProfilerActivity, profile, schedule
            model, seen = torch.nn.Linear(4, 4), []
            with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2),
                         on_trace_ready=lambda p: seen.append(any(e.key == "aten::addmm" for e in p.key_averages()))) as profiler:
                for _ in range(8):
                    model(torch.ones(2, 4))
                    profiler.step()
            with torch.autograd.profiler.profile() as other:
                model(torch.ones(2, 4))
            print(seen, len(other.key_averages()) > 0)
        '''
        self.assertEqual(self.record(TORCH_PYTHON, text), self.plain(TORCH_PYTHON, text))


if __name__ == "__main__":
    if not HAVE_TORCH:
        print("skip: no /usr/bin/python3 with torch: the hook is tested without it alone")
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
