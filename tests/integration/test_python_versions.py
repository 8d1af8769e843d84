#!/usr/bin/env python3
"""The Python hook in the Pythons that are there, on a stand-in for a newer PyTorch than the one that is (tests/stand_in/python),
and in jobs of unusual kinds. What a job prints must be what it prints without us, and nothing may be lost."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from soak import SOAK  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
STAND_IN = os.path.join(ROOT, "tests/stand_in/python")


def pythons():
    """One of each minor version from 3.7 on: the oldest, this one and the two newest."""
    found = {}
    names = [sys.executable, "/usr/bin/python3", *(f"python3.{minor}" for minor in range(7, 16))]
    versions = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
    if os.path.isdir(versions):
        names += [os.path.join(versions, name, "bin/python3") for name in sorted(os.listdir(versions))]
    for name in names:
        path = shutil.which(name)
        told = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) if path else None
        if told and told.returncode == 0 and tuple(map(int, told.stdout.split())) >= (3, 7):
            found.setdefault(tuple(map(int, told.stdout.split())), path)
    tried = {min(found), sys.version_info[:2], *sorted(found)[-2:]}
    return {"{}.{}".format(*version): found[version] for version in sorted(tried)}


PYTHONS = pythons()


def is_whole(python):
    """Whether every way to start a process is tried with it: with the newest, and in make soak with all; else fork alone."""
    return SOAK or python == list(PYTHONS.values())[-1]


class Versions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def run_both(self, python, text, *arguments, before=(), status=0, path=STAND_IN):
        """Without and with us: the same words and the same status."""
        script = os.path.join(self.folder, "script.py")
        with open(script, "w") as file:
            file.write(textwrap.dedent(text))
        shutil.rmtree(self.out, ignore_errors=True)
        command = [python, *before, script, *arguments]
        env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = [subprocess.run(each, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env=env)
                for each in (command, [NODE, "run", "--all", "--quiet", "-o", self.out, "--", *command])]
        self.assertEqual(done[1].stdout, done[0].stdout, done[1].stderr)
        self.assertEqual([each.returncode for each in done], [status, status], done[1].stderr)
        return done[1].stdout

    def exported(self):
        chrome = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        return json.loads(chrome.stdout)["traceEvents"]

    def events(self):
        """(name, batch, worker) of each range, and how many there are of each."""
        return collections.Counter((event["name"], event.get("args", {}).get("batch", -1), event.get("args", {}).get("worker", -1))
                                   for event in self.exported() if event.get("ph") == "X")

    def settings(self):
        told = subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=60)
        return json.loads(told.stdout)["settings"]

    LOADERS = """
        import sys, threading, time
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __init__(self, length): self.length = length
            def __len__(self): return self.length
            def __getitem__(self, index):
                time.sleep(0.0005)
                return index * 2
        class Part(Dataset):
            # asks the other one for its items past itself, as subsets of newer versions do
            def __init__(self, dataset): self.dataset = dataset
            def __len__(self): return len(self.dataset)
            def __getitem__(self, index): return self.dataset[index]
            def __getitems__(self, indices): return [self.dataset[index] for index in indices]
        def run(**options):
            print(sorted(item for batch in DataLoader(Part(Data(12)), batch_size=3, **options) for item in batch))
        if __name__ == "__main__":
            for options in OPTIONS:
                run(**options)
    """

    def check_loader(self, python, options, wait_batches):
        self.run_both(python, self.LOADERS.replace("OPTIONS", repr([options])))
        events = self.events()
        workers = options.get("num_workers", 0)
        for batch in range(4):
            worker = batch % workers if workers else -1
            self.assertEqual(events["loader.fetch", batch, worker], 1, events)
            self.assertEqual(events["loader.item", batch, worker], 3, events)
            self.assertEqual(events["loader.collate", batch, worker], 1, events)
            self.assertEqual(events["loader.wait", batch if wait_batches else -1, -1], 1 if wait_batches else 5, events)
        self.assertEqual(sum(count for (name, _, _), count in events.items() if name == "loader.fetch"), 4)
        return events

    def test_loaders_without_workers(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                self.check_loader(python, {"pin_memory": True}, True)
                self.assertEqual(self.events()["loader.pin", 1, -1], 1)  # once a batch, not once an element
                settings = self.settings()
                self.assertEqual((settings["batch_size"], settings["num_workers"], settings["pin_memory"]), (3, 0, True))
                self.assertRegex(settings["loader_at"], r"script.py:\d+$")

    def test_workers_that_are_processes(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                for method in ("fork", "spawn", "forkserver") if is_whole(python) else ("fork",):
                    events = self.check_loader(python, {"num_workers": 2, "multiprocessing_context": method}, True)
                    self.assertEqual(sum(count for (name, _, _), count in events.items() if name == "loader.put"), 4, method)
                    self.assertEqual(sum(count for (name, _, _), count in events.items() if name == "loader.unpack"), 4, method)

    def test_workers_that_are_threads(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                events = self.check_loader(python, {"num_workers": 2, "worker_method": "thread"}, True)
                self.assertEqual(events["loader.put", 0, 0], 0)
                self.assertEqual(self.settings()["worker_method"], "thread")

    def test_batches_that_come_in_any_order_are_not_numbered_by_the_wait(self):
        self.check_loader(sys.executable, {"num_workers": 2, "in_order": False}, False)

    def test_a_batch_keeps_its_number_where_it_is_pinned(self):
        events = self.check_loader(sys.executable, {"num_workers": 2, "pin_memory": True}, True)
        self.assertEqual([events["loader.pin", batch, -1] for batch in range(4)], [1, 1, 1, 1])

    def test_a_loader_inside_a_data_set_is_part_of_the_batch(self):
        self.run_both(sys.executable, """
            from torch.utils.data import DataLoader, Dataset
            class Inner(Dataset):
                def __len__(self): return 4
                def __getitem__(self, index): return index
            class Outer(Dataset):
                def __len__(self): return 4
                def __getitem__(self, index): return [batch for batch in DataLoader(Inner(), batch_size=2)]  # its items are this one's
            for workers in (0, 2):
                print([batch for batch in DataLoader(Outer(), batch_size=2, num_workers=workers)])
        """)
        events = self.events()
        of_each = collections.Counter()
        for (name, _, _), count in events.items():
            of_each[name] += count
        self.assertEqual([of_each[name] for name in ("loader.fetch", "loader.collate", "loader.item", "loader.wait")], [4, 4, 8, 6])

    STEPS = """
        import torch
        sgd, warm, late = torch.optim.SGD(defaults={"foreach": None}), torch.optim.Warm(), []
        def gradients():
            torch.Tensor().backward()
            return 0.5
        def compiled_step():
            torch.compiler.is_tracing = True
            sgd.step()
            torch.compiler.is_tracing = False
        print(sgd.step(), sgd.step(gradients), sgd.step(closure=gradients), warm.step())
        model = torch.compile(torch.nn.Module())
        from torch._dynamo import eval_frame
        print([call is torch.nn.Module._wrapped_call_impl for call in eval_frame.saw_call])
        print(sgd.step(), warm.step(), torch.optim.SGD().step(gradients), compiled_step())
        class Own(torch.optim.Optimizer):
            def step(self, model): return model
        print(Own().step(model) is model)
    """

    def test_the_settings_are_those_of_the_loader_that_the_steps_use(self):
        self.run_both(sys.executable, """
            import torch
            from torch.utils.data import DataLoader
            check = DataLoader(range(8), batch_size=1)
            train = DataLoader(range(8), batch_size=2)
            print(next(iter(check)))
            optimizer = torch.optim.SGD()
            print(len(list(check)))
            for _ in range(2):
                for batch in train:
                    optimizer.step()
        """)
        self.assertEqual((self.settings()["batch_size"], self.settings()["loader_at"].rpartition(":")[2]), (2, "5"))

    def test_steps_are_recorded_before_and_after_compiling(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                self.assertIn("[True]", self.run_both(python, self.STEPS))
                events = self.events()
                self.assertEqual(events["Optimizer.step#SGD.step", -1, -1], 5)
                self.assertEqual(events["Optimizer.step#Warm.step", -1, -1], 2)
                self.assertEqual(events["Optimizer.step#Own.step", -1, -1], 1)
                self.assertEqual(events["backward", -1, -1], 3)
                self.assertIn("optimizer_foreach", self.settings())
                self.assertEqual(self.settings()["torch_version"], "2.99.0")
                self.assertEqual([name for name in self.settings() if name.startswith("hook.")], [])

    def test_a_closure_is_not_the_optimizers_work(self):
        self.run_both(sys.executable, """
            import time, torch
            sgd = torch.optim.SGD()
            for _ in range(5):
                sgd.step(lambda: time.sleep(0.2))
        """)
        took = [event["dur"] for event in self.exported() if event.get("name") == "Optimizer.step#SGD.step"]
        self.assertEqual(len(took), 5)
        self.assertLess(sorted(took)[2], 100_000)

    GENERATOR = """
        import time, torch
        model = type("Model", (torch.nn.Module,), {"forward": lambda self, x: torch.Tensor()})()
        optimizer = torch.optim.SGD()
        def batches(count, fails):
            for k in range(count):
                time.sleep(0.003)
                yield k
            if fails:
                raise RuntimeError("mine")
        seen = 0
        for fails in (False, True, False):
            try:
                for x in batches(12, fails):
                    model(x).backward()
                    optimizer.step()
                    seen += 1
            except RuntimeError as error:
                print(error)
        print(seen)
    """

    def test_a_generator_that_gives_batches_is_found_by_its_position(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                self.run_both(python, self.GENERATOR)
                settings = self.settings()
                self.assertEqual((settings["loader"], settings["loader_found"]), ("batches", "by position"))
                waits = self.events()["loader.wait", -1, -1]
                if "hook.loader_wait" in settings:  # before Python 3.9 a frame does not tell its code
                    self.assertEqual((version in ("3.7", "3.8"), waits), (True, 0))
                else:
                    self.assertTrue(28 <= waits <= 40, waits)

    # -- jobs of unusual kinds

    def test_interpreters_that_leave_us_out_run_as_before(self):
        for flags in (["-I"], ["-E"], ["-S"], ["-S", "-E"]):
            self.run_both(sys.executable, "import sys; print([name for name in sys.modules if 'sitecustomize' in name and sys.flags.no_site])", before=flags)

    def test_code_from_the_command_line(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                done = subprocess.run([NODE, "run", "--all", "--quiet", "-o", self.out, "--", python, "-c", "import lacuna\nwith lacuna.annotate('mine'): print(1)"],
                                      stdout=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (0, "1\n"))
                self.assertEqual(self.events()["mine", -1, -1], 1)
                shutil.rmtree(self.out)

    def test_a_script_beside_a_file_of_torchs_name(self):
        with open(os.path.join(self.folder, "torch.py"), "w") as file:
            file.write("def compile(text):\n    return text.upper()\n")
        self.run_both(sys.executable, "import torch\nprint(torch.compile('mine'))", path="")

    def test_pools_and_subinterpreters(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                methods = ("fork", "spawn", "forkserver") if is_whole(python) else ("fork",)
                self.run_both(python, f"""
                    import multiprocessing, sys
                    def work(x):
                        import lacuna
                        with lacuna.annotate("work"):
                            return x + 1
                    if __name__ == "__main__":
                        for method in {methods}:
                            with multiprocessing.get_context(method).Pool(2) as pool:
                                pool.map(abs, range(8))
                        try:
                            import _xxsubinterpreters as interpreters
                        except ImportError:
                            interpreters = None
                        for isolated in (False, True) if interpreters else ():
                            try:
                                number = interpreters.create(isolated=isolated)
                                interpreters.run_string(number, "import torch; torch.optim.SGD().step()")
                            except Exception as error:
                                print(type(error).__name__)
                """)

    def test_async_functions_and_generators_are_left_as_they_are(self):
        for version, python in PYTHONS.items():
            with self.subTest(python=version):
                self.run_both(python, """
                    import asyncio
                    try:
                        import lacuna
                        annotate = lacuna.annotate
                    except ImportError:
                        annotate = lambda function: function
                    @annotate
                    async def collate(x):
                        await asyncio.sleep(0)
                        return x
                    @annotate
                    def items():
                        yield 1
                    @annotate
                    class Kind:
                        pass
                    async def main():
                        return await asyncio.gather(*(collate(x) for x in range(3)))
                    print(asyncio.new_event_loop().run_until_complete(main()), list(items()), isinstance(Kind, type), asyncio.iscoroutinefunction(collate))
                """)
                self.assertEqual(self.events()["collate", -1, -1], 0)


if __name__ == "__main__":
    print("with Python " + ", ".join(PYTHONS))
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
