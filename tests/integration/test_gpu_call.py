#!/usr/bin/env python3
"""tests/gpu has one call of ten minutes on a machine that is seldom there: what keeps one part from spoiling the rest, and that results come back."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPU = os.path.join(ROOT, "tests/gpu")
sys.path.insert(0, GPU)
import bench as bench_module  # noqa: E402
import costs  # noqa: E402
import home  # noqa: E402
import points  # noqa: E402
import run_gpu  # noqa: E402


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Call(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lacuna-test-")
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out")
        self.bench = bench_module.Bench(argparse.Namespace(out=self.out, seconds=60, rehearse=True, python=sys.executable))
        self.addCleanup(self.bench.done)

    def read(self, name):
        with open(os.path.join(self.folder.name, name)) as file:
            return file.read()

    def test_a_program_that_hangs_is_ended_with_all_that_it_started(self):
        pids = os.path.join(self.folder.name, "pids")
        script = textwrap.dedent(f'''
            import os, signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                os.setpgid(0, 0)
                if os.fork() == 0:
                    os.setpgid(0, 0)
            with open({pids!r}, "a") as file:
                file.write(f"{{os.getpid()}}\\n")
            print("so far", flush=True)
            time.sleep(60)
        ''')
        began = time.monotonic()
        self.assertIsNone(self.bench.run("hangs", [sys.executable, "-c", script], seconds=5))
        self.assertLess(time.monotonic() - began, 50)  # not the minute that it asks for
        started = [int(pid) for pid in self.read("pids").split()]
        self.assertEqual(len(started), 3)
        self.assertFalse([pid for pid in started if alive(pid)])
        self.assertIn("so far", self.bench.logs[-1][1])
        self.assertEqual(self.bench.last_words(), "stopped after 5 s")

    def test_a_program_that_fails_says_its_last_words(self):
        self.assertIsNone(self.bench.run("fails", [sys.executable, "-c", "import nothing_of_the_kind"]))
        self.assertIn("nothing_of_the_kind", self.bench.last_words())
        self.assertIsNone(self.bench.run("is not there", ["/nonexistent/program"]))
        self.assertIn("No such file", self.bench.last_words())

    def test_a_part_that_breaks_leaves_the_others_their_turn_and_its_time(self):
        order = []

        def breaks(_bench):
            raise ValueError("broken")

        def waits(bench):
            bench.run("sleeps", ["sleep", "60"])
            order.append("waited")

        def works(bench):
            order.append("worked")
            bench.check("works", True, "")

        for part, seconds in ((breaks, 10), (waits, 6), (works, 10)):
            run_gpu.run_part(self.bench, part, seconds)
        self.assertEqual(order, ["waited", "worked"])
        saved = json.loads(self.read("out/results.json"))   # after each part, before anything is packed
        self.assertEqual([(check["check"], check["ok"]) for check in saved["checks"]], [("breaks", False), ("works", True)])

    def test_each_point_has_a_result_of_its_own_whatever_it_meets(self):
        def breaks(bench):
            """1: breaks."""
            bench.note("figure", 7)
            raise ValueError("broken")

        def works(bench):
            """2: works."""
            bench.check("works", True, "")

        def cannot(bench):
            """3: cannot be tried."""
            bench.missing("this point", "no GPU")

        for number, point in enumerate((breaks, works, cannot), 1):
            run_gpu.run_part(self.bench, points.as_part(number, point), 10)
        self.bench.pack()
        results = json.loads(self.read("out/results.json"))["points"]
        self.assertEqual({number: point["ok"] for number, point in results.items()}, {"1": False, "2": True, "3": None})
        self.assertEqual(results["1"]["figures"], {"figure": 7})
        self.assertEqual(results["3"]["not_run"], ["this point: no GPU"])
        with tarfile.open(os.path.join(self.out, "logs.tar.gz")) as tar:
            self.assertLessEqual({"points/01.json", "points/02.json", "points/03.json"}, set(tar.getnames()))

    def test_the_points_that_need_no_gpu_hold_against_the_stand_in(self):
        self.bench.deadline += 600  # a machine that others use, too
        for number in (1, 5, 7, 8):
            run_gpu.run_part(self.bench, points.PARTS[number - 1][0], 300)
        self.assertEqual({number: point["ok"] for number, point in self.bench.results["points"].items()}, {"1": True, "5": True, "7": True, "8": True}, self.bench.checks)
        figures = self.bench.results["points"]["7"]["figures"]
        self.assertEqual(points.cores_of(figures["point_7_bound_all"]["cores_allowed"]), os.sched_getaffinity(0))
        self.assertEqual(points.cores_of("0-2,5,8-9"), {0, 1, 2, 5, 8, 9})
        self.assertLess(sum(seconds for _, seconds in points.PARTS), 560 - bench_module.END_SECONDS)

    def test_without_pytorch_the_points_say_so_and_none_fails(self):
        self.bench.args.rehearse = False
        for part, _ in points.PARTS[:9]:  # the tenth needs none
            run_gpu.run_part(self.bench, part, 10)
        self.assertEqual({number: point["ok"] for number, point in self.bench.results["points"].items()}, {str(number): None for number in range(1, 10)})
        self.assertEqual(self.bench.checks, [])
        self.assertIn("no PyTorch", self.bench.results["not_run"][0])

    def test_what_is_too_large_is_left_out_and_said(self):
        for name, size in (("small", 1000), ("large", bench_module.ARCHIVE_BYTES_MAX + 1), ("other", 2000)):
            os.mkdir(os.path.join(self.bench.golden, name))
            with open(os.path.join(self.bench.golden, name, "1-2-0.spool"), "wb") as file:
                file.write(os.urandom(size))
        self.bench.pack()
        self.assertEqual([name for name, _ in home.stages(self.out)], ["small.tar.gz", "other.tar.gz"])
        self.assertEqual(json.loads(self.read("out/results.json"))["left_out"], ["large"])
        for name in os.listdir(self.out):
            self.assertLessEqual(os.path.getsize(os.path.join(self.out, name)), bench_module.ARCHIVE_BYTES_MAX)
        self.assertEqual(sorted(os.listdir(self.out)), ["golden.tar", "logs.tar.gz", "results.json"])

    def test_what_came_home_is_kept_for_the_tests(self):
        for name, file in (("torch-workers", "1-2-0.spool"), ("cupti", "9-0000.cupti")):
            os.mkdir(os.path.join(self.bench.golden, name))
            with open(os.path.join(self.bench.golden, name, file), "wb") as out:
                out.write(os.urandom(3000))
        self.bench.note("gpu", "one of these")
        self.bench.pack()
        home.KEPT, before = os.path.join(self.folder.name, "kept"), home.KEPT
        self.addCleanup(setattr, home, "KEPT", before)
        home.keep([self.out])
        with tarfile.open(os.path.join(home.KEPT, "golden/torch-workers.tar.gz")) as tar:
            self.assertEqual(tar.getnames(), ["torch-workers/1-2-0.spool"])
        self.assertEqual(os.path.getsize(os.path.join(home.KEPT, "golden/cupti/9-0000.cupti")), 3000)
        self.assertEqual(json.loads(self.read("kept/results.json"))["gpu"], "one of these")

    def test_of_two_calls_both_are_kept(self):
        folders = []
        for name, number in (("workload-sync", "1"), ("torch-workers", "2")):
            args = argparse.Namespace(out=os.path.join(self.folder.name, name), seconds=60, rehearse=True, python=sys.executable)
            call = bench_module.Bench(args)
            self.addCleanup(call.done)
            os.mkdir(os.path.join(call.golden, name))
            with open(os.path.join(call.golden, name, "1-2-0.spool"), "wb") as file:
                file.write(b"recorded")
            call.results["points"] = {number: {"ok": True}}
            call.check(name, True, "")
            call.pack()
            folders.append(args.out)
        home.KEPT, before = os.path.join(self.folder.name, "kept"), home.KEPT
        self.addCleanup(setattr, home, "KEPT", before)
        home.keep(folders)
        self.assertEqual(sorted(os.listdir(os.path.join(home.KEPT, "golden"))), ["torch-workers.tar.gz", "workload-sync.tar.gz"])
        kept = json.loads(self.read("kept/results.json"))
        self.assertEqual((sorted(kept["points"]), [check["check"] for check in kept["checks"]]), (["1", "2"], ["workload-sync", "torch-workers"]))

    def test_a_drift_of_the_machine_is_no_cost(self):
        turns = [{"off": 100.0, "full": 101.0}, {"full": 121.2, "off": 120.0}, {"off": 150.0}]
        costs.report_costs(self.bench, "job", turns)
        self.assertAlmostEqual(self.bench.results["job_cost_percent_full"], 1.0, places=2)

    def test_a_call_that_is_told_to_end_still_brings_home_what_it_has(self):
        out = os.path.join(self.folder.name, "ended")
        call = subprocess.Popen([sys.executable, os.path.join(GPU, "run_gpu.py"), "--rehearse", "--out", out, "--python", "/bin/false"],
                                stdout=subprocess.PIPE, text=True, start_new_session=True)
        for line in call.stdout:
            if line.startswith("-- workload_stages"):
                break
        call.send_signal(signal.SIGTERM)
        printed, _ = call.communicate(timeout=60)
        self.assertIn("told to end", printed)
        self.assertRegex(printed, r"\d+ passed, \d+ failed\n$")
        self.assertEqual(sorted(os.listdir(out)), ["golden.tar", "logs.tar.gz", "results.json"])
        self.assertIn("stand-in.tar.gz", [name for name, _ in home.stages(out)])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
