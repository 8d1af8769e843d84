#!/usr/bin/env python3
"""The Python hook in real interpreters: what it costs to start, that results stay the same, what it names.

The PyTorch parts want /usr/bin/python3 with torch and skip in one line without.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from torch_python import TORCH_PYTHON, has_torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from soak import SOAK  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
HOOK = os.path.join(ROOT, "build/release/python")
LIBRARY = os.path.join(ROOT, "build/release/liblacuna.so")
STAND_IN = {"PYTHONPATH": os.path.join(ROOT, "tests/stand_in/python")}  # in PyTorch's place, where what is tested is not its: starting that takes 3 s
HAVE_TORCH = has_torch()

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

    def test_an_interpreter_that_trains_nothing_leaves_no_spool(self):
        environment = {**os.environ, "LACUNA_SPOOL": self.folder, "LACUNA_LIBRARY": LIBRARY, "PYTHONPATH": HOOK}
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True, timeout=60)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".spool")], [])

    # Items by a clock of their own, in us: the first of a window, and each of the others.
    FIRST_IS_SLOW = '''
        import sys, types
        import _lacuna_loader as loader
        now_ns = 0
        def makes(us):
            global now_ns
            now_ns += us * 1000
        loader.time = types.SimpleNamespace(perf_counter_ns=lambda: now_ns)
        loader._core_wait_ns = lambda: 0
        loader.here.batch = 0
        for first, other in (argument.split(",") for argument in sys.argv[1:]):
            loader._Rate.on = True
            for number in range(loader.ITEMS_WEIGHED):
                loader._item(makes, int(other if number else first))
            print(loader._Rate.on)
    '''

    def test_a_slow_first_item_makes_quick_ones_no_slower(self):
        windows = {"50000,10": "False", "10,10": "False", "0,80": "True", "50000,80": "True", "10,70": "False"}
        self.assertEqual(self.record(sys.executable, self.FIRST_IS_SLOW, *windows).split(), list(windows.values()))

    # Seven others want the same core: the items take eight times as long, of which they compute and sleep no more. A machine whose host
    # takes cores away without a word may make some windows of items slow: quick ones are told sooner or later, slow ones never are.
    WEIGHED = '''
        import os, subprocess, sys, time
        import _lacuna_loader as loader
        def computes():
            end = time.thread_time_ns() + 10_000
            while time.thread_time_ns() < end:
                pass
        makes, windows = {"computes": (computes, 40), "sleeps": (lambda: time.sleep(0.0003), 2)}[sys.argv[1]]
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        others = [subprocess.Popen([sys.executable, "-S", "-c", "print(flush=True)\\nwhile True: pass"], stdout=subprocess.PIPE) for _ in range(7)]
        try:
            for other in others:
                other.stdout.readline()
            loader.here.batch = 0
            for _ in range(windows * loader.ITEMS_WEIGHED):
                if loader._Rate.on:
                    loader._item(makes)
        finally:
            for other in others:
                other.kill()
        print(loader._Rate.on)
    '''

    def test_items_are_quick_on_a_busy_machine_too(self):
        self.assertEqual(self.record(sys.executable, self.WEIGHED, "computes").split()[-1], "False")
        self.assertEqual(self.record(sys.executable, self.WEIGHED, "sleeps").split()[-1], "True")

    # Four items a batch, of 200 us or more, on a machine where a range costs so many ns.
    COSTLY = '''
        import sys, time
        import _lacuna
        import _lacuna_loader as loader
        assert 2_250 < loader.RANGE_NS == 2_250 + _lacuna.cpu_clock_ns(), loader.RANGE_NS
        loader.RANGE_NS = int(sys.argv[1])
        loader.here.batch = 0
        for _ in range(loader.FETCHES_WEIGHED):
            start = time.perf_counter_ns()
            for _ in range(4):
                loader._item(time.sleep, 0.0002)
            loader._weigh_fetches(time.perf_counter_ns() - start)
        print(loader._Rate.on)
    '''

    def test_items_whose_recording_costs_too_much_are_left_out(self):
        self.assertEqual(self.record(sys.executable, self.COSTLY, "1").split()[-1], "True")
        self.assertEqual(self.record(sys.executable, self.COSTLY, "1000000000").split()[-1], "False")

    CPU_CLOCK = '''
        import os, time
        import _lacuna
        def computes(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass
        outside = 0
        for number in range(2000):
            computes(number % 20 * 1e-6)
            before = time.thread_time_ns()
            between = _lacuna.cpu_ns()
            outside += not before - 10_000 <= between <= time.thread_time_ns() + 10_000
        assert outside < 100, outside  # a machine that others use may stop a thread between two instructions
        began = _lacuna.cpu_ns()
        time.sleep(0.3)
        assert _lacuna.cpu_ns() - began < 200_000_000
        computes(0.3)
        assert _lacuna.cpu_ns() - began >= 300_000_000
        computes(1.0)
        _lacuna.cpu_ns()
        if os.fork() == 0:
            os._exit(_lacuna.cpu_ns() >= 1_000_000_000)  # the child's thread is new
        print(os.wait()[1])
    '''

    def test_the_cpu_time_of_ranges_is_that_of_the_thread(self):
        self.assertEqual(self.record(sys.executable, self.CPU_CLOCK).split()[-1], "0")

    # Counts of masks that take CPU time or wait, one in 50 ms: how many of 40 are made, and of those that
    # go on of as many as it takes, up to eight: on a machine that is busy there is less time for them.
    COUNTING = '''
        import sys, time, types
        class Mask:
            dtype, shape, size = "int64", (2, 4), 8
            def __init__(self, number): self.number = number
            def __ne__(self, other):
                counted.append(self.number)
                computes, waits = {"first": (0.01 * (self.number == 0), 0.0), "all": (0.01, 0.0), "waits": (0.0, 0.002)}[sys.argv[1]]
                time.sleep(waits)
                end = time.thread_time() + computes
                while time.thread_time() < end:
                    pass
                return types.SimpleNamespace(sum=lambda: 6)
        counted = []
        sys.modules["numpy"] = types.SimpleNamespace(ndarray=Mask)
        import _lacuna_padding as padding
        for number in range(40 if sys.argv[1] == "all" else 1000):
            if len(counted) == 8:
                break
            padding.look({"attention_mask": Mask(number)}, number, 0)
            time.sleep(0.05)
        print(len(counted))
    '''

    def test_a_first_count_of_padding_that_is_slow_does_not_end_counting(self):
        counted = {how: int(self.record(sys.executable, self.COUNTING, how).split()[-1]) for how in ("first", "all", "waits")}
        self.assertEqual((counted["first"], counted["waits"]), (8, 8))
        self.assertIn(counted["all"], range(2, 8))  # each takes the share of 5 s, the whole 2 s on a quiet machine

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
        shutil.copy(os.path.join(HOOK, "_lacuna_annotate.py"), os.path.join(self.folder, "lacuna.py"))
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
        for text in ("forward", "backward", "Optimizer.step#Adam.step", "optimizer=Adam", "framework=PyTorch", "detect_anomaly=False", "autocast=False",
                     "matmul_allow_tf32=False", "cudnn_benchmark=False", "deterministic_algorithms=False"):
            self.assertRegex(shown, rf"(?m)^    {re.escape(text)}$")
        self.assertNotIn("hook.missing", shown)
        # five steps of forward, backward and step, and a few calls behind them: none for the layers inside
        self.assertGreaterEqual(self.counted("ranges opened"), 15)
        self.assertLessEqual(self.counted("ranges opened"), 15 + 10)
        self.assertEqual(self.counted("ranges opened"), self.counted("ranges closed"))

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_what_holds_inside_a_step_only_is_a_setting(self):
        text = """
            import contextlib, sys, torch
            torch.cuda.is_available = lambda: True  # or else autocast leaves itself off
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.no_grad():
                model(torch.ones(1, 4))
            for _ in range(2):
                with torch.cuda.amp.autocast() if sys.argv[1] == "amp" else contextlib.nullcontext():
                    with torch.autograd.set_detect_anomaly(sys.argv[1] == "amp"):
                        model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
        """
        for mode, said in (("amp", "True"), ("plain", "False")) if SOAK else (("amp", "True"),):
            self.record(TORCH_PYTHON, text, mode)
            shown = self.shown()
            self.assertRegex(shown, rf"(?m)^    detect_anomaly={said}$")
            self.assertRegex(shown, rf"(?m)^    autocast={said}$")
            shutil.rmtree(self.out)

    ZOO = """
        import sys, time, warnings
        import torch
        from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, SequentialSampler, TensorDataset, random_split
        warnings.simplefilter("ignore")
        class Data(Dataset):
            def __init__(self, fails=None): self.fails = fails
            def __len__(self): return 12
            def __getitem__(self, index):
                if index == self.fails: raise KeyError("mine")
                return torch.full((2,), float(index)), {"label": index, "name": str(index)}
        class Child(Data):
            pass
        class Stream(IterableDataset):
            def __init__(self, kind): self.kind = kind
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                numbers = range(info.id if info else 0, 11, info.num_workers if info else 1)
                return {"generator": (n for n in numbers), "range": iter(numbers), "map": map(float, numbers)}[self.kind]
        class Nested(Dataset):
            def __len__(self): return 4
            def __getitem__(self, index): return torch.stack([b.sum() for b in DataLoader(torch.arange(6.0), batch_size=3)])
        class Slow(Dataset):
            def __len__(self): return 2
            def __getitem__(self, index): time.sleep(2.5)
        class Stops(Dataset):
            def __len__(self): return 4
            def __getitem__(self, index): raise KeyboardInterrupt
        def flat(x): return x.tolist() if isinstance(x, torch.Tensor) else x
        def run(name, loader):
            try:
                shown = [[flat(part) for part in batch] if isinstance(batch, (list, tuple)) else flat(batch) for batch in loader]
                print(name, sorted(map(str, shown)))
            except (KeyboardInterrupt, Exception) as error:
                print(name, type(error).__name__)
        def main():
            method = sys.argv[1]
            for workers in (0, 1) if method == "fork" else (1,):
                more = {"num_workers": workers, "multiprocessing_context": method} if workers else {}
                run("map", DataLoader(Data(), batch_size=5, **more))
                if method != "fork" and workers:  # each worker imports torch anew
                    continue
                if not workers or sys.argv[2:]:  # what the data is made of is the same to a worker
                    run("child", DataLoader(Child(), batch_size=5, drop_last=True, **more))
                    run("split", DataLoader(random_split(Data(), [6, 6], torch.Generator().manual_seed(1))[0], batch_size=4, **more))
                    run("joined", DataLoader(ConcatDataset([Data(), Child()]), batch_size=7, **more))
                    run("tensors", DataLoader(TensorDataset(torch.arange(5), torch.arange(5.0)), batch_size=2, **more))
                    run("tensor", DataLoader(torch.arange(7), batch_size=3, **more))
                    run("list", DataLoader([1, 2, 3], batch_size=2, **more))
                    run("sampler", DataLoader(Data(), batch_sampler=BatchSampler(SequentialSampler(range(12)), 4, False), **more))
                run("none", DataLoader(Data(), batch_size=None, **more))
                run("fails", DataLoader(Data(fails=7), batch_size=3, **more))
                run("nested", DataLoader(Nested(), batch_size=2, **more))
                if workers:
                    more["num_workers"] = 2
                for kind in ("generator", "range", "map"):
                    run(kind, DataLoader(Stream(kind), batch_size=2, **more))
                    run(kind + " single", DataLoader(Stream(kind), batch_size=None, **more))
            if method == "fork":
                run("timeout", DataLoader(Slow(), num_workers=1, timeout=1))
                run("stops", DataLoader(Stops(), num_workers=0))
                persistent = DataLoader(Data(), batch_size=5, num_workers=2, persistent_workers=True, prefetch_factor=4)
                for epoch in range(3):
                    run("persistent", persistent)
        if __name__ == "__main__":
            main()
    """

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_unusual_loaders_give_what_they_gave(self):
        for method in ("fork", "forkserver") if SOAK else ("fork",):
            arguments = [method, *(["all"] if SOAK else [])]
            self.assertEqual(self.record(TORCH_PYTHON, self.ZOO, *arguments), self.plain(TORCH_PYTHON, self.ZOO, *arguments))
            shown = self.shown()
            self.assertNotIn("hook.missing", shown)
            # the worker that is too late is ended inside its batch
            self.assertLessEqual(self.counted("ranges opened"), self.counted("ranges closed") + 2)
            shutil.rmtree(self.out)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_compiler_finds_modules_as_pytorch_made_them(self):
        printed = self.record(TORCH_PYTHON, '''
            import torch
            before = torch.nn.Module.__call__
            sys_module = __import__("sys").modules["_lacuna_hook"]
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

    # A loader that nobody told the hook about, of the kind that the argument names.
    STRANGE = '''
        import sys, time, torch
        kind = sys.argv[1]
        if hasattr(torch, "ones"):
            batch, model = torch.ones(4, 8), torch.nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        else:  # the stand-in
            class Model(torch.nn.Module):
                def forward(self, x): return torch.Tensor()
            torch.Tensor.sum = lambda loss: loss
            batch, model, optimizer = None, Model(), torch.optim.SGD()
        def batches(count):
            for k in range(count):
                time.sleep(0.005)
                yield batch
        class Batches:
            def __init__(self, count): self.left = count
            def __iter__(self): return self
            def __next__(self):
                if not self.left: raise StopIteration
                self.left -= 1
                time.sleep(0.005)
                return batch
        def nested(count):
            yield from batches(count)
        def busy(count):
            for k in range(count):
                for call in range(20000): (lambda: None)()
                yield batch
        def raising(count):
            yield from batches(count - 2)
            raise RuntimeError("mine")
        loader = {"generator": batches, "class": Batches, "enumerate": lambda n: (x for _, x in enumerate(batches(n))), "nested": nested,
                  "busy": busy, "raising": raising, "list": lambda n: [batch] * n, "profiled": batches}[kind](40)
        events = []
        if kind == "profiled":
            sys.setprofile(lambda frame, event, argument: events.append(event))
        count = 0
        try:
            for x in loader:
                if kind == "list": time.sleep(0.001)
                model(x).sum().backward()
                optimizer.step()
                count += 1
        except RuntimeError as error:
            print(error)
        print(count, sys.getprofile() is not None, bool(events))
    '''

    def strange(self, kind, env=STAND_IN):
        printed = self.record(TORCH_PYTHON, self.STRANGE, kind, env=env)
        analysis = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=60).stdout)
        shutil.rmtree(self.out)
        return printed, analysis["dataloader"], analysis["settings"]

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_the_wait_for_a_loader_that_is_not_known_is_found_by_position(self):
        for kind, name in (("generator", "batches"), ("class", "Batches"), ("enumerate", "<genexpr>"), ("nested", "nested")):
            printed, loader, settings = self.strange(kind, {} if kind == "generator" else STAND_IN)
            self.assertEqual(printed, "40 False False\n", kind)
            self.assertEqual((settings["loader"], settings["loader_found"]), (name, "by position"))
            self.assertRegex(settings["loader_at"], r"script.py:\d+$")
            # the first steps are those in which it was looked for
            self.assertTrue(33 <= loader["batch_count"] <= 38, loader)
            self.assertGreater(loader["wait_ns"], 33 * 5e6)
            self.assertLess(loader["wait_ns"], 38 * 30e6)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_an_error_in_a_loader_found_by_position_reaches_the_job(self):
        printed, loader, _ = self.strange("raising")
        self.assertEqual(printed, "mine\n38 False False\n")
        self.assertGreater(loader["batch_count"], 30)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_what_cannot_be_watched_cheaply_or_is_no_loader_is_left_alone(self):
        printed, loader, settings = self.strange("busy")
        self.assertEqual(printed, "40 False False\n")
        self.assertEqual((loader["batch_count"], loader["wait_ns"]), (0, None))
        self.assertEqual(settings["hook.loader_wait"], "off (the loader makes too many calls)")
        printed, loader, settings = self.strange("list")
        self.assertEqual((printed, loader["wait_ns"]), ("40 False False\n", None))
        self.assertNotIn("loader", settings)
        printed, loader, settings = self.strange("profiled")  # another profile function is there: it stays
        self.assertEqual((printed, loader["wait_ns"]), ("40 True True\n", None))

    # Of the stand-in for PyTorch: a model and its optimizer.
    MODEL = '''
            import torch
            class Model(torch.nn.Module):
                def forward(self, x): return torch.Tensor()
            torch.Tensor.sum = lambda loss: loss
            model, optimizer = Model(), torch.optim.SGD()
    '''

    def both(self, text, *arguments, env=STAND_IN):
        """What a job prints and how it ends, alone and recorded."""
        command = [TORCH_PYTHON, self.write("script.py", text), *arguments]
        options = {"cwd": self.folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 120, "env": {**os.environ, **env}}
        runs = [subprocess.run(each, **options) for each in (command, [NODE, "run", "--all", "--quiet", "-o", self.out, "--", *command])]
        return [(run.returncode, run.stdout, run.stderr) for run in runs]

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_job_whose_last_step_is_watched_ends_as_it_would(self):
        """PyTorch itself has objects that go after the modules of the hook."""
        alone, recorded = self.both('''
            import torch
            model = torch.nn.Linear(8, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in (torch.ones(4, 8) for k in range(3)):
                model(x).sum().backward()
                optimizer.step()
            print("end")
        ''', env={})
        self.assertEqual(alone, (0, "end\n", ""))
        self.assertEqual(recorded, alone)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_head_without_an_end_is_watched_for_seconds_at_most(self):
        alone, recorded = self.both(self.MODEL + '''
            import sys, time
            for x in (k for k in range(3)):
                model(x).sum().backward()
                optimizer.step()
            if "_lacuna_position" in sys.modules:
                assert sys.getprofile() is not None
                sys.modules["_lacuna_position"]._look.until = time.perf_counter()
            (lambda: None)()
            print(sys.getprofile())
        ''')
        self.assertEqual(alone, (0, "None\n", ""))
        self.assertEqual(recorded, alone)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_what_cannot_be_patched_is_left_alone(self):
        alone, recorded = self.both(self.MODEL + '''
            import sys, time
            class Closed(type):
                def __setattr__(self, name, value): raise AttributeError("closed: " + name)
            class Batches(metaclass=Closed):
                def __init__(self): self.left = 30
                def __iter__(self): return self
                def __next__(self):
                    self.left -= 1
                    if self.left < 0: raise StopIteration
                    time.sleep(0.002)
                    return self.left
            for x in Batches():
                model(x).sum().backward()
                optimizer.step()
            print("done", sys.getprofile())
        ''')
        self.assertEqual(alone, (0, "done None\n", ""))
        self.assertEqual(recorded, alone)
        self.assertIn("its class cannot be changed", self.shown())

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_signals_that_a_job_blocks_later_are_not_delivered_to_a_thread_of_ours(self):
        alone, recorded = self.both(self.MODEL + '''
            import os, signal, sys, time
            for x in range(6):
                model(x).sum().backward()
                optimizer.step()
            ours = {signal.SIGTERM, signal.SIGUSR1}
            signal.pthread_sigmask(signal.SIG_BLOCK, ours)
            for number in ours: os.kill(os.getpid(), number)
            time.sleep(0.3)
            print("checkpoint", sorted(signal.sigpending()), flush=True)
            print(sorted(signal.sigwait(ours) for _ in ours))
            threads = sorted(os.listdir("/proc/self/task"))
            for thread in threads:
                if int(thread) != os.getpid():
                    blocked = next(line.split()[1] for line in open(f"/proc/self/task/{thread}/status") if line.startswith("SigBlk"))
                    assert int(blocked, 16) & 1 << signal.SIGHUP - 1 and int(blocked, 16) & 1 << signal.SIGINT - 1, blocked
        ''', env={**STAND_IN, "LACUNA_PYTHON_STACKS": "on"})
        self.assertEqual(alone[0], 0, alone)
        self.assertEqual(recorded, alone)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_loaders_of_others_are_known_by_name(self):
        for package, text, loader in (
                ("nvidia/dali/plugin/pytorch", "class _Base:\n    pass\nclass DALIGenericIterator(_Base):\n    def __init__(self, n): self.n = n\n    def __iter__(self): return self\n"
                 "    def __next__(self):\n        import time\n        time.sleep(0.005)\n        self.n -= 1\n        if self.n < 0: raise StopIteration\n        return 1\n"
                 "class DALIClassificationIterator(DALIGenericIterator):\n    pass\n", "DALI"),
                ("ffcv/loader/epoch_iterator", "class EpochIterator:\n    def __init__(self, n): self.n = n\n    def __iter__(self): return self\n"
                 "    def __next__(self):\n        import time\n        time.sleep(0.005)\n        self.n -= 1\n        if self.n < 0: raise StopIteration\n        return 1\n", "FFCV")):
            parts = package.split("/")
            for depth in range(1, len(parts)):
                self.write("/".join(parts[:depth]) + "/__init__.py", "")
            self.write(package + ".py", text)
            self.record(TORCH_PYTHON, f"""
                import torch
                from {".".join(parts)} import {"DALIClassificationIterator" if loader == "DALI" else "EpochIterator"} as Loader
                optimizer = torch.optim.SGD()
                for _ in Loader(12):
                    torch.Tensor().backward()
                    optimizer.step()
            """, env=STAND_IN)
            analysis = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=60).stdout)
            self.assertEqual(analysis["settings"]["loader"], loader)
            self.assertGreaterEqual(analysis["dataloader"]["batch_count"], 12)
            self.assertNotIn("loader_found", analysis["settings"])
            shutil.rmtree(self.out)

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

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_only_a_profiler_that_looks_at_the_gpu_gets_cupti(self):
        text = '''
            import _lacuna, torch
            from torch.autograd.profiler import profile as old
            from torch.profiler import ProfilerActivity, profile
            yields = []
            _lacuna.gpu_yield = lambda *arguments: yields.append(arguments)
            for _ in range(100):
                with old(enabled=False):  # the usual off switch
                    pass
            with old():
                pass
            with profile(activities=[ProfilerActivity.CPU]):
                pass
            print(yields)
            both = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            both.start()
            print(yields)
            both.stop()
            print(yields)
        '''
        self.assertEqual(self.record(TORCH_PYTHON, text).splitlines(), ["[]", "[(1, 'torch.profiler')]", "[(1, 'torch.profiler'), (0, 'torch.profiler')]"])

    PROFILED = '''
        import gzip, json, os, sys, threading, time, torch
        from torch.profiler import ProfilerActivity, profile
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        stamps = []
        model.register_forward_hook(lambda *unused: stamps.append(time.time_ns()))
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for _ in range(6):
                model(torch.ones(8, 64)).sum().backward()
                optimizer.step()
        profiler.export_chrome_trace(sys.argv[1])
        # this machine has no GPU, and this PyTorch no Kineto: what both would write takes the place of what was written
        base, events = stamps[0] - 1000000, []
        for number, stamp in enumerate(stamps):
            at = (stamp - base) / 1000
            here = {"ph": "X", "pid": os.getpid(), "tid": threading.get_native_id(), "ts": at}
            events += [{**here, "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "dur": 30}, {**here, "cat": "cpu_op", "name": "aten::addmm", "dur": 20},
                       {**here, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1, "args": {"correlation": number + 1}},
                       {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 1, "dur": 3,
                        "args": {"device": 0, "stream": 7, "correlation": number + 1, "grid": [1, 1, 1], "block": [32, 1, 1]}}]
        with (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "wt") as file:
            json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "baseTimeNanoseconds": base, "traceEvents": events}, file)
        print(len(stamps))
    '''

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_what_an_explicit_profiler_exported_joins_the_recording(self):
        for name in ("trace.json", "trace.json.gz") if SOAK else ("trace.json.gz",):
            count = int(self.record(TORCH_PYTHON, self.PROFILED, name))
            self.assertEqual(count, 6)
            copies = [entry for entry in os.listdir(self.out) if entry.startswith("torch-profiler-")]
            self.assertEqual([entry.partition(".")[2] for entry in copies], [name.partition(".")[2]])
            archive = os.path.join(self.folder, "recording.tar")
            subprocess.run(["tar", "-C", self.out, "-cf", archive, "--sort=name", "."], check=True)
            for path in (self.out, archive):
                run = subprocess.run([LACUNA, "analyze", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
                analysis = json.loads(run.stdout)
                self.assertEqual(analysis["trace"]["format"], "lacuna")
                self.assertEqual([row["name"] for row in analysis["kernels"]["top"]], ["gemm"])
                self.assertEqual((analysis["kernels"]["count"], analysis["kernels"]["total_ns"]), (6, 18000))
                self.assertEqual(len(analysis["devices"]), 1)
                self.assertEqual(analysis["steps"]["count"], 5)  # between six ends of an optimizer
            # the kernels lie inside the forward ranges that we recorded: one clock
            chrome = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout
            events = json.loads(chrome)["traceEvents"]
            forwards = [(event["ts"], event["ts"] + event["dur"]) for event in events if event.get("name") == "forward"]
            kernels = [event["ts"] for event in events if event.get("name") == "gemm"]
            self.assertEqual(len(forwards), 6)  # theirs are not doubled
            inside = sum(any(start - 2000 <= at <= end + 2000 for start, end in forwards) for at in kernels)
            self.assertEqual(inside, 6, (kernels, forwards))
            self.assertNotIn("aten::addmm", {event.get("name") for event in events})
            shutil.rmtree(self.out)

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_an_export_without_the_time_of_day_is_left_out(self):
        self.record(TORCH_PYTHON, self.PROFILED.split("# this machine")[0], "trace.json")  # as PyTorch 1.13 without Kineto writes it
        analysis = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=60).stdout)
        self.assertEqual((analysis["devices"], analysis["steps"]["count"], analysis["trace"]["dropped_count"]), ([], 5, 0))

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_an_export_that_is_gone_is_told(self):
        run = subprocess.run([NODE, "run", "--all", "-o", self.out, "--", TORCH_PYTHON, self.write("script.py", self.PROFILED + """
        import os
        os.unlink(sys.argv[1])
        """), "gone.json"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"the trace of torch.profiler, \S+/gone.json, is not in the recording: No such file")


if __name__ == "__main__":
    if not HAVE_TORCH:
        print("skip: no /usr/bin/python3 with torch: the hook is tested without it alone")
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
