#!/usr/bin/env python3
"""`lacuna window`: a window opened now in a job that runs, with a launcher, with several, and without any launcher.

Nothing waits for a time: jobs go on until they are told to end, and what is looked for is waited for.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAND_IN = os.path.join(ROOT, "build/release/stand_in/libcupti_stand_in.so")
NODE = os.path.join(ROOT, "build/release/lacuna-node")
SECONDS = 60  # more than any of this takes on a machine that is busy

# Training steps of 10 ms with a range each, until a file says that it is enough.
JOB = textwrap.dedent("""
    import os, sys, time, lacuna, _lacuna
    number = 0
    while not os.path.exists(sys.argv[1]):
        with lacuna.annotate("work"):
            time.sleep(0.01)
        number += 1
        _lacuna.step()
        if number == 3:
            open(sys.argv[1] + ".runs", "w").close()
    print(number)
""")


class Windows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")
        self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.temporary)
        self.script = os.path.join(self.folder, "train.py")
        with open(self.script, "w") as file:
            file.write(JOB)
        self.started = []
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "SLURM_"))}
        self.environment["TMPDIR"] = self.temporary

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_for(self, what, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def start(self, *options, end="end", environment=None):
        """A job that runs: the process and the file that ends it."""
        end = os.path.join(self.folder, end)
        process = subprocess.Popen([NODE, "run", "-o", self.out, *options, "--", sys.executable, self.script, end], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**self.environment, **(environment or {})}, cwd=self.folder)
        self.started.append(process)
        self.wait_for("the job runs", lambda: os.path.exists(end + ".runs") or process.poll() is not None)
        return process, end

    def finish(self, process, end):
        open(end, "w").close()
        said = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, said)
        return said

    def window(self, folder, *options, timeout="30"):
        return subprocess.run([NODE, "window", folder, "--timeout", timeout, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, env=self.environment, cwd=self.folder)

    def ranges(self, folder):
        shown = subprocess.run([NODE, "show", folder], stdout=subprocess.PIPE, text=True, timeout=SECONDS).stdout
        return sum(int(line.split()[0]) for line in shown.splitlines() if line.strip().endswith(" ranges opened"))

    def test_a_window_is_opened_in_a_job_that_records_nothing_else(self):
        process, end = self.start("--on-demand")
        by_steps = self.window(self.out, "--steps", "7", "--wait")
        self.assertEqual(by_steps.returncode, 0, by_steps.stderr)
        self.assertIn(f"{self.out}: records 7 steps now (", by_steps.stdout)
        self.assertRegex(by_steps.stdout, r"the window has ended: \d+\.\d s, \d+ steps")
        by_time = self.window(self.out, "--duration", "0.3", "--wait")
        self.assertIn("records 0.3 s now", by_time.stdout)
        self.assertIn("the window has ended: ", by_time.stdout)
        by_default = self.window(self.out, "--wait")
        self.assertIn("records 20 steps now", by_default.stdout)
        out, err = self.finish(process, end)
        self.assertIn("lacuna: records 7 steps now, as lacuna window asked", err)
        self.assertGreaterEqual(self.ranges(self.out), 7 + 20)
        self.assertLess(self.ranges(self.out), int(out))  # and not what lies between
        self.assertEqual([name for name in os.listdir(self.out) if name.startswith(".")], [])  # the recording is complete

    def test_after_its_plan_the_recording_has_let_go_and_says_so(self):
        process, end = self.start("--duration", "0.1")
        self.wait_for("the plan is over", lambda: "as planned" in self.line(process))
        window = self.window(self.out, "--steps", "5", "--wait")
        self.assertEqual(window.returncode, 1, window.stdout)
        self.assertIn("has ended as planned and has let go of the job", window.stderr)
        self.finish(process, end)

    def line(self, process):
        return process.stderr.readline()

    def test_each_rank_of_a_folder_opens_one(self):
        jobs = [self.start("--on-demand", end=f"end{rank}", environment={"RANK": str(rank), "WORLD_SIZE": "2"}) for rank in range(2)]
        window = self.window(self.out, "--steps", "5", "--wait")
        self.assertEqual(window.returncode, 0, window.stderr)
        for rank in range(2):
            self.assertIn(f"rank-{rank}: records 5 steps now", window.stdout)
            self.assertIn(f"rank-{rank}: the window has ended", window.stdout)
        for rank, (process, end) in enumerate(jobs):
            self.finish(process, end)
            # five steps end in the window; the first of them may have begun before it
            self.assertGreaterEqual(self.ranges(os.path.join(self.out, f"rank-{rank}")), 4)

    def test_where_no_job_runs_that_is_said(self):
        process, end = self.start()
        self.finish(process, end)
        over = self.window(self.out)
        self.assertEqual(over.returncode, 1)
        self.assertIn("no process of this host records into", over.stderr)
        self.assertEqual(self.window(os.path.join(self.folder, "nowhere")).returncode, 1)
        for options in (["--steps", "0"], ["--steps", "x"], ["--duration", "-1"], ["--duration", "nan"], ["--steps", "2", "--duration", "2"], ["--soon"]):
            self.assertEqual(self.window(self.out, *options).returncode, 2, options)

    def test_a_launcher_that_was_killed_is_named_and_one_that_is_stopped(self):
        process, end = self.start()
        process.send_signal(signal.SIGSTOP)
        stopped = self.window(self.out, timeout="0.5")
        self.assertEqual(stopped.returncode, 1)
        self.assertIn(f"process {process.pid}): it has ended, was killed or is stopped", stopped.stderr)
        self.assertNotIn(".lacuna-window", os.listdir(self.out))  # nobody takes it up much later
        process.kill()
        process.wait()
        killed = self.window(self.out)
        self.assertEqual(killed.returncode, 1)
        self.assertIn("was killed", killed.stderr)

    def test_what_is_no_request_is_not_taken_for_one(self):
        process, end = self.start("--on-demand")
        request = os.path.join(self.out, ".lacuna-window")
        head = b"lacuna-window 1\n"
        hostile = (b"", b"\0" * 5000, head + b"id 0a\nduration_ms 1000\nsteps 0\n", head + b"id 0a\nduration_ms -1\nsteps 0\nend\n",
                   head + b"id ../x\nduration_ms 1\nsteps 0\nend\n", head + b"id 0a\nduration_ms 99999999999999999999\nsteps 0\nend\n", head + b"x" * 2000 + b"end\n")
        for content in hostile:
            with open(request + ".new", "wb") as file:
                file.write(content)
            os.rename(request + ".new", request)
            time.sleep(0.6)  # the launcher looks twice a second
        os.path.lexists(request) and os.unlink(request)
        os.mkfifo(request)
        time.sleep(0.6)
        os.unlink(request)
        os.symlink("/etc/passwd", request)
        time.sleep(0.6)
        self.assertFalse(os.path.exists(os.path.join(self.out, ".lacuna-answer")))
        os.unlink(request)
        self.assertEqual(self.window(self.out, "--steps", "5", "--wait").returncode, 0)  # and it still listens
        self.finish(process, end)

    def test_a_job_without_a_launcher_is_told_by_its_spools(self):
        spools = os.path.join(self.folder, "spools")
        os.mkdir(spools)
        variables = subprocess.run([NODE, "env", "--on-demand", "--spool", spools], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        end = os.path.join(self.folder, "end")
        job = subprocess.Popen(["sh", "-c", variables.stdout + '\nexec "$0" "$@"', sys.executable, self.script, end], stdout=subprocess.PIPE, text=True,
                               env=self.environment)
        self.started.append(job)
        self.wait_for("the job runs", lambda: os.path.exists(end + ".runs"))
        window = self.window(spools, "--steps", "8")
        self.assertEqual(window.returncode, 0, window.stderr)
        self.assertIn("1 processes record now", window.stdout)
        self.assertRegex(window.stdout, r"the window has ended: \d+\.\d s, \d+ steps; lacuna gather ")
        time.sleep(0.1)
        open(end, "w").close()
        steps = int(job.communicate(timeout=SECONDS)[0])
        subprocess.run([NODE, "gather", spools, "-o", self.out], check=True, stdout=subprocess.DEVNULL)
        self.assertGreaterEqual(self.ranges(self.out), 7)
        self.assertLess(self.ranges(self.out), steps)
        self.assertEqual(self.window(spools).returncode, 1)  # it has ended

    def test_a_job_that_records_all_the_time_needs_no_window(self):
        spools = os.path.join(self.folder, "spools")
        os.mkdir(spools)
        variables = subprocess.run([NODE, "env", "--spool", spools], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        end = os.path.join(self.folder, "end")
        job = subprocess.Popen(["sh", "-c", variables.stdout + '\nexec "$0" "$@"', sys.executable, self.script, end], stdout=subprocess.PIPE, text=True,
                               env=self.environment)
        self.started.append(job)
        self.wait_for("the job runs", lambda: os.path.exists(end + ".runs"))
        window = self.window(spools)
        self.assertEqual(window.returncode, 1)
        self.assertIn("all the time already", window.stderr)
        open(end, "w").close()
        job.communicate(timeout=SECONDS)

    # ---- ranges that the job marks itself

    def record(self, script, *options, **environment):
        """A job that runs to its end: what the launcher said."""
        with open(self.script, "w") as file:
            file.write(textwrap.dedent(script))
        run = subprocess.run([NODE, "run", "-o", self.out, *options, "--", sys.executable, self.script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env={**self.environment, **environment}, cwd=self.folder, timeout=SECONDS)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def test_only_ranges_of_a_name_are_recorded_and_what_is_inside(self):
        said = self.record("""
            import lacuna
            def inner(count):
                for k in range(count):
                    with lacuna.annotate("inside" if capturing else "outside"):
                        pass
            capturing = False
            with lacuna.annotate("epoch"):  # around all of them, and not recorded itself
                inner(5)
                for k in range(3):
                    capturing = True
                    with lacuna.annotate("capture me"):
                        with lacuna.annotate("capture me"):  # once more: still the outer one counts
                            inner(2)
                        inner(2)
                    capturing = False
                    inner(5)
        """, "--range", "capture me")
        self.assertEqual(self.ranges(self.out), 3 * (2 + 4), said)
        self.assertNotIn("recorded none", said)

    def test_a_range_that_never_came_is_said(self):
        said = self.record("""
            import lacuna
            with lacuna.annotate("another"):
                pass
        """, "--range", "capture me")
        self.assertIn('no range named "capture me" was opened, so --range recorded none', said)
        self.assertEqual(self.ranges(self.out), 0)

    PROFILED = """
        import ctypes, os, time, lacuna
        library = ctypes.CDLL(os.environ["LACUNA_LIBRARY"])
        library.InitializeInjection()
        cupti = ctypes.CDLL(os.environ["LACUNA_CUPTI"])
        def work(count):
            for k in range(count):
                with lacuna.annotate("work"):
                    pass
                cupti.stand_in_deliver(1, 0, 0)
        work(3)
        for window in range(2):
            cupti.stand_in_profiler(1)
            cupti.stand_in_profiler(1)  # the header says: no effect
            work(4)
            cupti.stand_in_profiler(0)
            work(3)
    """

    def test_cuda_profiler_start_and_stop_mark_what_is_recorded(self):
        said = self.record(self.PROFILED, "--profiler-api", LACUNA_CUPTI=STAND_IN)
        self.assertEqual(self.ranges(self.out), 8, said)
        self.assertNotIn("recorded none", said)

    def test_calls_that_cupti_does_not_tell_of_are_said(self):
        said = self.record(self.PROFILED, "--profiler-api", LACUNA_CUPTI=STAND_IN, STAND_IN_REFUSE="callbacks")
        self.assertIn("no call of cudaProfilerStart was seen", said)
        self.assertEqual(self.ranges(self.out), 0)

    def test_other_processes_record_while_a_range_is_open_and_a_window_needs_none(self):
        """A worker beside the process that marks: it has no range of its own."""
        with open(self.script, "w") as file:
            file.write(textwrap.dedent("""
                import os, sys, time, lacuna
                end, go = sys.argv[1], sys.argv[1] + ".go"
                if os.fork() == 0:
                    while not os.path.exists(end):
                        with lacuna.annotate("worker"):
                            time.sleep(0.002)
                    os._exit(0)
                open(end + ".runs", "w").close()
                while not os.path.exists(go):
                    time.sleep(0.01)
                with lacuna.annotate("capture me"):
                    time.sleep(0.3)
                open(end + ".captured", "w").close()
                os.wait()
            """))
        process, end = self.start("--range", "capture me")
        window = self.window(self.out, "--duration", "0.3", "--wait")
        self.assertEqual(window.returncode, 0, window.stderr)
        before = self.ranges(self.out)
        open(end + ".go", "w").close()
        self.wait_for("the range is over", lambda: os.path.exists(end + ".captured"))
        self.finish(process, end)
        workers = self.ranges(self.out)
        self.assertGreater(workers, 20)  # of the window and of the range: 0.6 s of 2 ms each
        self.assertGreaterEqual(workers, before)

    def test_ranges_and_other_plans_are_combined_or_refused(self):
        for options in (["--range", ""], ["--range", "x" * 300], ["--range", "x", "--cost"], ["--profiler-api", "--on-demand"]):
            run = subprocess.run([NODE, "run", *options, "--", "true"], stderr=subprocess.PIPE, text=True, timeout=SECONDS)
            self.assertEqual(run.returncode, 2, (options, run.stderr))
        said = self.record("""
            import time, lacuna
            for k in range(60):
                with lacuna.annotate("capture me"):
                    time.sleep(0.01)
        """, "--range", "capture me", "--delay", "3600")
        self.assertEqual(self.ranges(self.out), 0, said)  # both must allow it


if __name__ == "__main__":
    unittest.main()
