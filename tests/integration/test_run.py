#!/usr/bin/env python3
"""`lacuna-node run` on real jobs: exit status, signals, an unchanged DataLoader script under every start method.

Needs nothing but what the tests build; the PyTorch parts want /usr/bin/python3 with torch and skip in one line without.
"""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from torch_python import TORCH_PYTHON, has_torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from soak import SOAK  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
WORKLOAD = os.path.join(ROOT, "build/release/workload-cpu")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
BENCH = os.path.join(ROOT, "build/release/bench/bench_ranges")
HAVE_TORCH = has_torch()

TRAIN = textwrap.dedent('''
    import sys, time, torch
    from torch.utils.data import DataLoader, Dataset
    class Slow(Dataset):
        def __len__(self): return 64
        def __getitem__(self, index):
            time.sleep(0.002)
            return torch.ones(8), index % 2
    if __name__ == "__main__":
        workers, method = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
        model = torch.nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in DataLoader(Slow(), batch_size=8, num_workers=workers, multiprocessing_context=method):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
''')


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_node(self, *command, **kwargs):
        return subprocess.run([NODE, "run", "-o", self.out, "--", *command], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, **kwargs)

    def script(self, text):
        path = os.path.join(self.folder, "train.py")
        with open(path, "w") as file:
            file.write(text)
        return path

    def spools(self):
        """Those of recorded processes; the launcher's own one, with samples, is node-*."""
        return sorted(name for name in os.listdir(self.out) if name.endswith(".spool") and not name.startswith("node-"))

    def names(self):
        """All bytes of all spools: names stand in them as text."""
        recorded = b""
        for name in self.spools():
            with open(os.path.join(self.out, name), "rb") as file:
                recorded += file.read()
        return recorded

    def test_the_exit_status_is_the_commands(self):
        self.assertEqual(self.run_node("sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_node("sh", "-c", "kill -9 $$").returncode, 128 + 9)
        self.assertEqual(self.run_node("/nonexistent/program").returncode, 127)
        self.assertEqual(self.run_node("/etc/passwd").returncode, 126)

    def test_usage_errors_end_with_2(self):
        for arguments in ([], ["--"], ["--unknown", "x"], ["-o"]):
            self.assertEqual(subprocess.run([NODE, "run", *arguments], stderr=subprocess.DEVNULL).returncode, 2, arguments)

    def test_output_of_the_job_is_untouched(self):
        run = self.run_node("sh", "-c", "echo out; echo err >&2")
        self.assertEqual(run.stdout, "out\n")
        self.assertTrue(run.stderr.startswith("err\n"))

    def test_nothing_recorded_says_why(self):
        run = self.run_node("true")
        self.assertIn("nothing was recorded", run.stderr)

    def test_nothing_is_left_in_the_temporary_folder(self):
        environment = {**os.environ, "TMPDIR": self.folder}
        self.run_node("true", env=environment)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("lacuna-")], [])

    def show(self, folder=None):
        return subprocess.run([NODE, "show", folder or self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def counted(self, what, folder=None):
        """Over all processes: how many records `show` names so."""
        return sum(int(line.split()[0]) for line in self.show(folder).splitlines() if line.strip().endswith(" " + what))

    def test_disable_runs_the_command_and_records_nothing(self):
        run = self.run_node("sh", "-c", "echo $LACUNA_SPOOL; exit 5", env={**os.environ, "LACUNA_DISABLE": "1"})
        self.assertEqual((run.returncode, run.stdout, run.stderr), (5, "\n", ""))
        self.assertFalse(os.path.exists(self.out))

    def test_options_without_sense_are_usage_errors(self):
        for options in (["--steps", "5:2"], ["--steps", "x"], ["--duration", "-1"], ["--duration", "soon"], ["--limit", "0"],
                        ["--limit", "4x"], ["--delay"], ["-o", ""]):
            run = subprocess.run([NODE, "run", *options, "--", "true"], stderr=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode, 2, (options, run.stderr))
            self.assertIn("--help", run.stderr)

    def test_env_gather_and_show_without_a_launcher(self):
        spool = os.path.join(self.folder, "a b")
        os.mkdir(spool)
        printed = subprocess.run([NODE, "env", "--spool", spool], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(printed.returncode, 0)
        subprocess.run(["sh", "-c", printed.stdout + "\n" + WORKLOAD + " --cpu --steps 6 --workers 2"], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        gathered = subprocess.run([NODE, "gather", spool, "-o", self.out], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(gathered.returncode, 0)
        self.assertIn("3 processes", gathered.stdout)
        self.assertEqual(self.counted("ranges opened"), self.counted("ranges opened", spool))
        self.assertEqual(self.counted("ranges opened"), self.counted("ranges closed"))
        self.assertGreater(self.counted("ranges opened"), 30)
        shown = self.show()
        for text in ("loader.fetch", "argv=", "This is everything."):
            self.assertIn(text, shown)
        self.assertEqual(subprocess.run([NODE, "gather", spool, "-o", spool], stderr=subprocess.DEVNULL).returncode, 2)
        empty = subprocess.run([NODE, "gather", self.folder, "-o", self.out], stderr=subprocess.PIPE, text=True)
        self.assertEqual(empty.returncode, 1)
        self.assertIn("no spool in", empty.stderr)

    def test_a_limit_ends_the_recording_and_not_the_job(self):
        run = subprocess.run([NODE, "run", "-o", self.out, "--limit", "1m", "--", BENCH, "1"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("size limit", run.stderr)
        self.assertRegex(run.stderr, r"[1-9]\d* events were not recorded")
        self.assertLessEqual(self.size(), 1 << 20)  # without a limit it is hundreds of MB

    def size(self):
        return sum(os.path.getsize(os.path.join(self.out, name)) for name in os.listdir(self.out))

    def test_a_limit_holds_for_many_processes_and_names(self):
        script = self.script(textwrap.dedent("""
            import os, lacuna
            for child in range(12):
                if os.fork() == 0:
                    for k in range(30000):
                        with lacuna.annotate(f"name {child} {k}"):
                            pass
                    os._exit(0)
            for child in range(12):
                os.wait()
        """))
        for limit, most in (("8m", 8 << 20), ("40m", 40 << 20)):
            shutil.rmtree(self.out, ignore_errors=True)
            run = subprocess.run([NODE, "run", "-o", self.out, "--all", "--limit", limit, "--", sys.executable, script], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertLessEqual(self.size(), most)
        self.assertEqual(self.counted("ranges opened"), 12 * 30000)  # the second limit is wide enough
        self.assertNotIn("not recorded", run.stderr)

    def on_terminal(self, *arguments, seconds=60):
        """What a person at a terminal sees."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execv(NODE, [NODE, "run", "-o", self.out, *arguments])
        seen = b""
        end = time.time() + seconds
        while time.time() < end:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0, seen)
        return seen.decode(errors="replace")

    def test_a_terminal_shows_what_will_be_recorded_and_what_goes_on(self):
        seen = self.on_terminal("--limit", "50m", "--", WORKLOAD, "--cpu", "--batch", "1", "--steps", "60", "--workers", "1", "--fetch-ms", "40")
        self.assertRegex(seen, r"lacuna: recording 60 steps and at least a minute in full, .*, at most 52 MB, to ")
        self.assertRegex(seen, r"recording - 2 processes - \d+\.\d MB - recording costs: not measured, and \d+\.\d % of a core")

    COUNTED = """
        import time, torch
        w = torch.ones(1, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(1400):
            time.sleep(0.01)
            (w * w).sum().backward()
            optimizer.step()
    """

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_what_recording_costs_is_measured_and_its_pauses_are_no_long_steps(self):
        seen = self.on_terminal("--all", "--cost", "--", TORCH_PYTHON, self.script(textwrap.dedent(self.COUNTED)))
        said = re.search(r"lacuna: recording costs (-?\d+\.\d) % of a step \(\+-(\d+\.\d)\)", seen)
        self.assertTrue(said, seen)
        self.assertLess(abs(float(said.group(1))), 20 + float(said.group(2)))
        self.assertRegex(seen, r"step \d+ - \d+ ms - measuring")
        analysis = json.loads(subprocess.run([LACUNA, "analyze", "--json", self.out], stdout=subprocess.PIPE, timeout=60).stdout)
        self.assertIn(f"{said.group(1)} % of a step", analysis["settings"]["recorder_cost"])
        steps = analysis["steps"]
        self.assertLess(steps["count"], 1400 - 60)  # those without recording are not seen
        self.assertIn("truncated", [entry["why"] for entry in steps["left_out"]])
        self.assertLess(steps["mean_ns"], 2 * steps["median_ns"])  # a pause lasts half a second
        self.assertLess(steps["p95_ns"], 100e6)

    def test_a_delay_and_a_duration_leave_out_what_is_before_and_behind(self):
        script = self.script(textwrap.dedent('''
            import time, torch
            w = torch.ones(1, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=0.1)
            end = time.time() + 2.4
            steps = 0
            while time.time() < end:
                (w * w).sum().backward()
                optimizer.step()
                time.sleep(0.01)
                steps += 1
            print(steps)
        ''')) if HAVE_TORCH else self.skipTest("no torch")
        run = subprocess.run([NODE, "run", "-o", self.out, "--duration", "1", "--", TORCH_PYTHON, script], timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 0)
        self.assertIn("as planned", run.stderr)
        self.assertGreater(self.counted("ranges opened"), 0)
        self.assertLess(self.counted("ranges opened"), 2 * int(run.stdout) * 0.7)  # backward and step of each

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_steps_asked_for_are_those_recorded(self):
        script = self.script(textwrap.dedent('''
            import time, torch
            w = torch.ones(1, requires_grad=True)
            optimizer, other = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([w])
            for step in range(14):
                time.sleep(0.06)
                (w * w).sum().backward()
                optimizer.step()
                other.step()
        '''))
        run = subprocess.run([NODE, "run", "-o", self.out, "--steps", "4:8", "--", TORCH_PYTHON, script], timeout=60,
                             stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("14 steps", self.show())
        self.assertIn("optimizer=SGD", self.show())  # settings are kept also while recording waits
        opened = self.counted("ranges opened")  # three a step; the launcher looks every 5 ms
        self.assertGreaterEqual(opened, 3 * 4)
        self.assertLessEqual(opened, 3 * 6)

    def test_steps_that_never_come_are_missed_aloud(self):
        run = subprocess.run([NODE, "run", "--quiet", "-o", self.out, "--steps", "4:8", "--", WORKLOAD, "--cpu", "--steps", "4", "--workers", "1"],
                             timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn("no training step was seen", run.stderr)

    def recorded(self, *options, steps=8, **environment):
        environment = {**os.environ, **environment}
        return subprocess.Popen([NODE, "run", "--quiet", *options, "--", WORKLOAD, "--cpu", "--steps", str(steps), "--workers", "1"], cwd=self.folder,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)

    def test_a_folder_holds_one_recording(self):
        first = self.recorded("-o", "r")
        self.assertEqual((first.communicate()[1], first.returncode), ("", 0))
        before = sorted(os.listdir(os.path.join(self.folder, "r")))
        again = self.recorded("-o", "r/")
        self.assertIn("r.old", again.communicate()[1])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "r.old"))), before)
        self.assertNotEqual(sorted(os.listdir(os.path.join(self.folder, "r"))), before)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "r"))), len(before))

    def test_two_at_once_do_not_share_a_folder(self):
        both = [self.recorded("-o", "r") for _ in range(2)]
        for node in both:
            node.communicate(timeout=60)
        self.assertEqual(sorted(os.listdir(self.folder)), ["r", "r-2"])
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "r"))), len(os.listdir(os.path.join(self.folder, "r-2"))))

    def test_a_file_is_no_folder(self):
        with open(os.path.join(self.folder, "r"), "w"):
            pass
        node = self.recorded("-o", "r")
        self.assertRegex(node.communicate()[1], "cannot make r: Not a directory; the job runs unrecorded")
        self.assertEqual(node.returncode, 0)
        strict = self.recorded("-o", "r", "--strict")
        self.assertIn("cannot make r: Not a directory", strict.communicate()[1])
        self.assertEqual(strict.returncode, 1)

    def test_tasks_of_a_batch_system_are_ranks_of_one_run(self):
        for job in ("77", "78"):
            for options in ((), ("-o", "r")):
                tasks = [self.recorded(*options, steps=2, SLURM_JOB_ID=job, SLURM_STEP_ID="0", SLURM_PROCID=str(task), SLURM_NTASKS="2") for task in range(2)]
                for node in tasks:
                    node.communicate(timeout=60)
        self.assertEqual(sorted(os.listdir(self.folder)), ["r", "r.old", "workload-cpu-slurm-77.0.lacuna", "workload-cpu-slurm-78.0.lacuna"])
        for name in os.listdir(self.folder):
            self.assertEqual(sorted(os.listdir(os.path.join(self.folder, name))), ["task-0", "task-1"])
        self.assertEqual(self.ranks_of(os.path.join(self.folder, "r")), [0, 1])

    def ranks_of(self, path):
        printed = subprocess.run([LACUNA, "analyze", path, "--json"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        return [rank["rank"] for rank in json.loads(printed)["ranks"]]

    def test_ranks_under_one_launcher_are_ranks_of_one_run(self):
        script = ("for r in 0 1; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none "
                  f"{WORKLOAD} --cpu --steps 8 --workers 1 & done; {WORKLOAD} --cpu --steps 1 --workers 1; wait")
        self.assertEqual(self.run_node("sh", "-c", script).returncode, 0)
        self.assertEqual(self.ranks_of(self.out), [0, 1])
        text = subprocess.run([LACUNA, "analyze", self.out], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        self.assertIn("2 ranks", text)
        # no rank stands out, or one by chance: what there is to say is in each
        self.assertRegex(text, r"The lowest rank alone|Rank \d alone, which waits the most for data")
        packed = os.path.join(self.folder, "out.tar.gz")
        subprocess.run(["tar", "czf", packed, "-C", self.folder, "out"], check=True)
        self.assertEqual(self.ranks_of(packed), [0, 1])
        imported = subprocess.run([LACUNA, "import", self.out, "--data", os.path.join(self.folder, "data")], stdout=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("out rank 0", imported.stdout)
        self.assertIn("out rank 1", imported.stdout)

    def test_a_signal_reaches_the_job(self):
        node = subprocess.Popen([NODE, "run", "-o", self.out, "--", "sleep", "60"], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        node.send_signal(signal.SIGTERM)
        self.assertEqual(node.wait(timeout=20), 128 + signal.SIGTERM)

    def test_nobody_reads_what_is_said_and_the_job_goes_on(self):
        read, write = os.pipe()
        node = subprocess.Popen([NODE, "run", "-o", self.out, "--duration", "0.3", "--", "sh", "-c", f"sleep 1; touch {self.folder}/there"], stderr=write)
        os.close(read)
        os.close(write)
        self.assertEqual(node.wait(timeout=20), 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "there")))

    def on_a_terminal(self, *command):
        """(pid, terminal) of the launcher as a shell's foreground job."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(NODE, [NODE, "run", "-o", self.out, "--", *command])
        self.addCleanup(os.close, terminal)
        return pid, terminal

    @staticmethod
    def read_until(terminal, text):
        seen, deadline = b"", time.monotonic() + 60
        while text not in seen and time.monotonic() < deadline:
            try:
                seen += os.read(terminal, 4096)
            except OSError:  # the other side was closed
                break
        return seen

    def test_a_job_may_read_the_terminal(self):
        pid, terminal = self.on_a_terminal("sh", "-c", "read line; read second; echo got $line $second")
        time.sleep(0.5)
        os.write(terminal, b"one\ntwo\n")
        said = self.read_until(terminal, b"got one two")
        self.assertIn(b"got one two", said)
        self.assertIn(b"Ctrl-C goes to it", said)
        self.read_until(terminal, b"nothing was recorded")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_ctrl_z_stops_the_job_and_its_launcher_until_the_shell_goes_on(self):
        ticks, go_on = os.path.join(self.folder, "ticks"), os.path.join(self.folder, "go-on")
        os.mkfifo(go_on)
        # no `sh`: it waits in vfork(), where it does not stop, if what it starts is stopped before it runs
        with open(os.path.join(self.folder, "tick.py"), "w") as file:
            file.write("import sys, time\nwhile True:\n    open(sys.argv[1], 'a').write('.')\n    time.sleep(0.05)\n")
        shell = (f"{NODE} run -o {self.out} -- {sys.executable} -S {file.name} {ticks}; echo stopped $?; "
                 f"read line <{go_on}; fg >/dev/null; echo not stopped")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp("sh", ["sh", "-m", "-c", shell])
        self.addCleanup(os.close, terminal)
        self.wait_until(lambda: os.path.exists(ticks))
        os.write(terminal, b"\x1a")
        self.assertIn(b"stopped 148", self.read_until(terminal, b"stopped 148"))
        stopped_at = os.path.getsize(ticks)
        time.sleep(0.5)
        self.assertEqual(os.path.getsize(ticks), stopped_at)
        with open(go_on, "w") as file:
            file.write("\n")
        self.wait_until(lambda: os.path.getsize(ticks) > stopped_at)
        os.write(terminal, b"\x03")
        self.assertIn(b"the job goes on", self.read_until(terminal, b"ends the job"))
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"nothing was recorded")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGINT)  # the shell stops, as it does without us

    @staticmethod
    def wait_until(condition):
        deadline = time.monotonic() + 60
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)

    def test_the_second_ctrl_c_ends_the_job(self):
        pid, terminal = self.on_a_terminal("sh", "-c", "echo ready; exec sleep 60")
        self.read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        self.assertIn(b"Ctrl-C again ends the job", self.read_until(terminal, b"ends the job"))
        self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0))
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"nothing was recorded")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGINT)  # as a shell's loop wants to see it

    def test_a_job_that_hears_no_ctrl_c_is_told_more_plainly(self):
        script = "trap 'echo heard INT' INT; trap 'echo heard TERM' TERM; echo ready; while :; do sleep 0.1; done"
        pid, terminal = self.on_a_terminal("sh", "-c", script)
        for sent, heard in ((b"", b"ready"), (b"\x03", b"ends the job"), (b"\x03", b"heard INT"), (b"\x03", b"heard TERM")):
            os.write(terminal, sent)
            self.assertIn(heard, self.read_until(terminal, heard))
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"nothing was recorded")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGKILL)

    def test_a_plain_python_process_starts_and_keeps_its_own_sitecustomize(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "sitecustomize.py"), "w") as file:
            file.write("import builtins\nbuiltins.from_other = 5\n")
        run = self.run_node(sys.executable, "-c", "print(from_other)", env={**os.environ, "PYTHONPATH": other})
        self.assertEqual(run.stdout, "5\n", run.stderr)
        self.assertEqual(run.returncode, 0)

    def test_isolated_python_is_not_disturbed(self):
        run = self.run_node(sys.executable, "-I", "-c", "print(6)")
        self.assertEqual((run.stdout, run.returncode), ("6\n", 0))

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_an_unchanged_loader_is_recorded_under_every_start_method(self):
        path = self.script(TRAIN)
        for method, workers in (("fork", 2), ("forkserver", 1), ("spawn", 1))[:3 if SOAK else 2]:  # all but a forked one import torch anew
            shutil.rmtree(self.out, ignore_errors=True)
            run = self.run_node(TORCH_PYTHON, path, str(workers), method)
            self.assertEqual(run.returncode, 0, run.stderr)
            # the workers of each of two epochs, and the training process
            self.assertEqual(len(self.spools()), 1 + 2 * workers, method)
            recorded = self.names()
            for name in (b"loader.wait", b"loader.fetch", b"loader.item", b"loader.collate", b"backward",
                         b"Optimizer.step#SGD.step", f"num_workers={workers}".encode(), f"start_method={method}".encode()):
                self.assertIn(name, recorded, (method, name))

    @unittest.skipUnless(HAVE_TORCH, "no torch")
    def test_a_loader_without_workers_is_recorded_in_the_training_process(self):
        run = self.run_node(TORCH_PYTHON, self.script(TRAIN), "0")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(self.spools()), 1)
        self.assertIn(b"loader.fetch", self.names())


if __name__ == "__main__":
    if not HAVE_TORCH:
        print("skip: no /usr/bin/python3 with torch: the DataLoader is not recorded for real")
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
