#!/usr/bin/env python3
"""What the hook calls for every batch (collector/python/batches.c), in the Pythons that are there: the job's own function is called
exactly once, its result or exception comes back, nothing is held for longer, and what is recorded has its batch, worker and CPU time."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_python_versions import LACUNA, NODE, PYTHONS  # noqa: E402


class Loader(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def in_each(self, text, expected):
        """Run it in each Python; the ranges by name, each as (batch, worker, CPU us, us), of the last."""
        script = os.path.join(self.folder, "script.py")
        with open(script, "w") as file:
            file.write(textwrap.dedent(self.BEGIN) + textwrap.dedent(text))
        for version, python in PYTHONS.items():
            with self.subTest(version):
                shutil.rmtree(self.out, ignore_errors=True)
                done = subprocess.run([NODE, "run", "--all", "--quiet", "-o", self.out, "--", python, script],
                                      cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
        chrome = subprocess.run([LACUNA, "export", self.out, "--to", "chrome"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        ranges = collections.defaultdict(list)
        for event in json.loads(chrome.stdout)["traceEvents"]:
            if event.get("ph") == "X":
                args = event.get("args", {})
                ranges[event["name"]].append((args.get("batch", -1), args.get("worker", -1), args.get("cpu_ns", -1) / 1e3, event["dur"]))
        return ranges

    BEGIN = """
        import _lacuna, _lacuna_loader, signal, sys, threading, time, weakref
        from _lacuna_loader import here
        class Iterator:
            _rcvd_idx = 7
        class Mine(Exception): pass
        def fails(*args, **kwargs):
            calls.append(args)
            raise Mine("once")
        def computes(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end: pass
        calls = []
    """

    def test_an_exception_of_the_job_comes_back_after_one_call(self):
        ranges = self.in_each("""
            iterator, fetcher = Iterator(), object()
            seen = []
            def interrupts(*args): raise KeyboardInterrupt
            def fails_too(*args): raise ValueError
            for ours in (None, seen.append, fails_too):
                for what in ("known", "taken", "fetched", "collated"):
                    _lacuna.loader_calls(what, ours and (lambda *args: ours(args)))
                collate_fn = _lacuna.collating(fails, id(fetcher))
                def makes(fetcher, index, **more): return collate_fn(index)
                for function, args in ((_lacuna.wait, (fails, iterator)), (_lacuna.fetch, (fails, fetcher, (3,), {})), (_lacuna.fetch, (fails, fetcher, (3, 4), {"five": 5})),
                                       (collate_fn, (1,)), (_lacuna.fetch, (makes, fetcher, (3,), {})), (_lacuna.unpacking(type("P", (), {"loads": fails})), (b"",)),
                                       (_lacuna.packing(type("P", (), {"dumps": fails}), lambda: True, 1), ((2, b""),)),
                                       (_lacuna.packing(type("P", (), {"dumps": fails}), fails_too, 1), ((2, b""),)), (_lacuna.getting(type("Q", (), {"get": fails})), (1,))):
                    del calls[:]
                    try:
                        function(*args)
                        print("no exception")
                    except Mine as error:
                        assert str(error) == "once" and error.__context__ is None and len(calls) == 1, (function, calls)
                    assert (here.batch, here.waiting, here.takes, here.in_fetch, here.worker) == (-1, -1, False, False, -1)
            assert seen[-1][0] > 0 and sum(args == (iterator,) for args in seen) == 1, seen
            # an exception from a handler for a signal, while a function of ours runs, is the job's
            for what, function, args in (("known", _lacuna.wait, (fails, Iterator())), ("taken", _lacuna.wait, (fails, Iterator())), ("taken", _lacuna.wait, (len, Iterator())),
                                         ("fetched", _lacuna.fetch, (fails, fetcher, (1,), {}))):
                for each in ("known", "taken", "fetched"):
                    _lacuna.loader_calls(each, interrupts if each == what else None)
                try:
                    function(*args)
                    print("no exception")
                except KeyboardInterrupt:
                    pass
            print(here.in_fetch, here.waiting)
        """, "False -1\n")
        self.assertEqual(len(ranges["loader.fetch"]), 3 * 3 + 1)
        self.assertEqual(len(ranges["loader.collate"]), 3)

    def test_batches_are_numbered_and_arguments_arrive(self):
        ranges = self.in_each("""
            class Stops(Iterator):
                _rcvd_idx = 8
                def stop(self): raise StopIteration
            class Unordered(Iterator):
                _in_order = False
            class Single:
                _num_yielded = 9
            class Broken:
                _rcvd_idx = property(lambda self: {}["no"])
            class Huge:
                _rcvd_idx = 1 << 70
            class Undecided(Iterator):
                class _in_order:
                    def __bool__(self): raise ValueError
                _in_order = _in_order()
            for iterator in (Iterator(), Unordered(), Single(), object(), Broken(), Huge(), Undecided()):
                assert _lacuna.wait(lambda it: (it is iterator, here.waiting, here.takes)[0], iterator) is True
            try:
                _lacuna.wait(Stops.stop, Stops())
            except StopIteration:
                print("stopped")
            # inside of a batch another loader is part of it
            fetcher = object()
            def makes(self, *index, **named):
                assert self is fetcher and here.in_fetch
                assert _lacuna.wait(lambda it: here.waiting, Iterator()) == here.waiting < 5
                assert _lacuna.fetch(lambda *args, **named: (args, named), 1, (2, 3), {"four": 4}) == ((1, 2, 3), {"four": 4})
                made = _lacuna.collating(lambda *args, **named: (args, named), id(fetcher))(*index, **named)
                assert _lacuna.collating(lambda *args: args, id(made))(5) == (5,)
                return here.batch, made
            assert _lacuna.fetch(makes, fetcher, (1,), {}) == (0, ((1,), {}))
            assert _lacuna.fetch(makes, fetcher, (1, 2), {"three": 3}) == (0, ((1, 2), {"three": 3}))
            here.waiting = 4
            assert _lacuna.fetch(makes, fetcher, (), {"three": 3}) == (4, ((), {"three": 3}))
            here.waiting = -1
            # queues: of messages only (number, what) is a batch
            class Queue:
                def get(self, item, *, timeout=None): return item
            get, get_next = _lacuna.getting(Queue()), _lacuna.getting_next(Queue())
            for item in ((5, "x"), (True, 1), [6, 1], (7,), None, (8, 1, 2), ("9", 1), (1 << 70, 1), "ab"):
                assert get(item, timeout=1) is item
            assert (here.batch, here.waiting) == (1, -1)
            get_next((11, None))
            assert (here.batch, here.waiting) == (1, 11)
            here.batch = here.waiting = -1
            # a worker that is a thread has a state of its own
            class Pickler:
                dumps, loads = staticmethod(lambda *args, **named: (args, named)), staticmethod(lambda *args, **named: (args, named))
            feeder = []
            def feeds():
                feeder.append(threading.get_ident())
                return len(feeder) == 2
            packing, unpacking = _lacuna.packing(Pickler, feeds, 3), _lacuna.unpacking(Pickler)
            def thread():
                _lacuna.worker_begins(2, True)
                get((21, None))
                assert (here.batch, here.worker) == (21, 2)
                _lacuna.fetch(lambda self, index: None, fetcher, (1,), {})
                assert packing((22, None), protocol=2) == (((22, None),), {"protocol": 2})
                assert packing("other") == (("other",), {})
                packing((23, None))
                here.takes, here.waiting = True, 24
                assert unpacking(b"1", x=2) == ((b"1",), {"x": 2})
            packing((20, None))
            other = threading.Thread(target=thread)
            other.start()
            other.join()
            packing((20, None))
            unpacking(b"1")
            assert len(set(feeder)) == len(feeder) == 2  # asked once in each thread
            print(here.batch, here.waiting, here.takes, here.worker)
        """, "stopped\n-1 -1 False -1\n")
        found = {name: [each[:2] for each in them] for name, them in ranges.items()}
        self.assertEqual(sorted(batch for batch, _ in found["loader.wait"]), [-1, -1, -1, -1, -1, 7, 8, 9])
        self.assertEqual(sorted(found["loader.fetch"]), [(0, -1), (0, -1), (4, -1), (21, 2)])
        self.assertEqual(sorted(found["loader.collate"]), [(0, -1), (0, -1), (4, -1)])
        self.assertEqual((sorted(found["loader.put"]), found["loader.unpack"]), ([(22, 3), (23, 3)], [(24, -1)]))

    def test_threads_of_a_workers_process_share_its_batch(self):
        self.in_each("""
            import os
            here.batch, here.in_module = 3, True
            reads, writes = os.pipe()
            if os.fork() == 0:
                _lacuna.worker_begins(1, False)
                seen = [here.batch, here.worker, here.in_module]
                _lacuna.getting(type("Q", (), {"get": staticmethod(lambda: (12, None))}))()
                other = threading.Thread(target=lambda: seen.extend((here.batch, here.worker)))
                other.start()
                other.join()
                _lacuna.fetch(lambda self, index: seen.append(here.batch), object(), (1,), {})
                os.write(writes, repr(seen + [here.batch]).encode())
                os._exit(0)
            os.wait()
            print(os.read(reads, 100).decode(), here.batch, here.worker, here.in_module)
        """, "[-1, 1, False, 12, 1, 12, 12] 3 -1 True\n")

    def test_nothing_is_held_for_longer(self):
        self.in_each("""
            class Thing: pass
            def rounds(count):
                for number in range(count):
                    fetcher, iterator, batch = Thing(), Iterator(), Thing()
                    iterator._rcvd_idx = number * 1000
                    collate_fn = _lacuna.collating(lambda *args, **named: batch, id(fetcher))
                    _lacuna.fetch(lambda self, index, **named: collate_fn(index, **named), fetcher, (batch,), {"n": 1} if number % 2 else {})
                    _lacuna.wait(lambda it: batch, iterator)
                    for function in (lambda: _lacuna.wait(fails, iterator), lambda: _lacuna.fetch(fails, fetcher, (batch,), {})):
                        try: function()
                        except Mine: pass
                    del calls[:]
                    thing = Thing()  # no class each time: that changes what Python's cache of attributes holds
                    thing.dumps = thing.loads = lambda *args: batch
                    thing.get = lambda: (number * 1000, batch)
                    _lacuna.packing(thing, lambda: True, 1)((number * 1000, batch))
                    _lacuna.unpacking(thing)(batch)
                    _lacuna.getting_next(thing)()
                    here.waiting = -1
                    seen.append([weakref.ref(each) for each in (fetcher, iterator, batch, thing)])
            import gc
            from _lacuna_loader import _known, _taken
            for ours in (lambda *args: None, None):
                for what in ("known", "taken", "fetched", "collated"):
                    _lacuna.loader_calls(what, ours)
                seen = []
                rounds(50)
                gc.collect()
                alive = [ref() for refs in seen[:-1] for ref in refs]
                assert not any(alive), alive
                seen = []
                gc.collect()
                before = len(gc.get_objects()), sys.getrefcount(None), sys.getrefcount(getattr), sys.getrefcount("_rcvd_idx"), sys.getrefcount(fails)
                rounds(300)
                seen = []
                gc.collect()
                after = len(gc.get_objects()), sys.getrefcount(None), sys.getrefcount(getattr), sys.getrefcount("_rcvd_idx"), sys.getrefcount(fails)
                assert all(abs(now - then) < 100 for now, then in zip(after, before)), (before, after)
            # a ring of a collate function and what holds it is collected
            class Fetcher: pass
            fetcher = Fetcher()
            fetcher.collate_fn = _lacuna.collating(lambda batch, fetcher=fetcher: batch, id(fetcher))
            fetcher = weakref.ref(fetcher)
            gc.collect()
            print(fetcher())
        """, "None\n")

    def test_the_cpu_time_of_a_range_is_right_to_10_us_or_3_percent(self):
        ranges = self.in_each("""
            kinds = {"waits": (0, 0.004), "computes": (0.004, 0), "both": (0.003, 0.003), "short": (0, 0)}
            for _ in range(40):
                for name, (cpu, wait) in kinds.items():
                    _lacuna.push_loader("loader." + name, 1, 2)
                    _lacuna.push_loader("loader.inner", 1, 2)
                    computes(cpu)
                    _lacuna.pop()
                    time.sleep(wait)
                    _lacuna.pop()
            print("done")
        """, "done\n")
        for name, low_us, high_us in (("waits", 0, 250), ("computes", 4000 - 135, 4600), ("both", 3000 - 200, 3600), ("short", 0, 100)):
            cpu_us = sorted(each[2] for each in ranges["loader." + name])
            self.assertEqual(len(cpu_us), 40)
            self.assertTrue(all(each[2] <= each[3] + 0.002 for each in ranges["loader." + name]))  # no more than it took
            self.assertTrue(low_us <= cpu_us[0] and cpu_us[20] <= high_us, (name, cpu_us))


if __name__ == "__main__":
    unittest.main()
