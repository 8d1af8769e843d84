#!/usr/bin/env python3
"""What a job sees under `lacuna run` beside what it sees alone: each row of the table in collector/launch/README.md.

Every small program runs twice, with and without the launcher, and says itself when it is ready; nothing here waits for a time.
"""
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.environ.get("LACUNA_TEST_NODE", os.path.join(ROOT, "build/release/lacuna-node"))  # another launcher, to see what fails with it
LACUNA = os.path.join(ROOT, "build/release/lacuna")
OURS = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "LACUNA_LIBRARY", "LACUNA_SPOOL", "LACUNA_PYTHON_STACKS", "PYTHONPATH"}  # variables that a recorded job gets
SECONDS = 120  # more than any of this takes on a machine that is busy
MAY_MOUNT = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0

# Blocks every signal and says which came, and how, until SIGTERM comes.
LISTENER = """
    import signal
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, every)
    print("ready", flush=True)
    number = 0
    while number != signal.SIGTERM:
        info = signal.sigwaitinfo(every)
        number = info.si_signo
        print(number, info.si_code, flush=True)
"""

# What a process is told of itself.
PROBE = """
    import json, os, sys
    print(json.dumps({
        "session": os.getsid(0), "group is its own": os.getpgid(0) == os.getpid(), "niceness": os.nice(0), "cwd": os.getcwd(),
        "descriptors": {name: os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)},
        "environment": dict(os.environ), "modules": sorted(name for name in sys.modules if "lacuna" in name and not name.startswith("_lacuna")),
    }))
"""


class Beside(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
        self.environment["TMPDIR"] = self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.temporary)
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def script(self, text, name="job.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def under(self, *command, options=()):
        return [NODE, "run", "--quiet", *options, "-o", os.path.join(self.folder, "out"), "--", *command]

    def start(self, command, environment=None, **kwargs):
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment or self.environment, **kwargs)
        self.started.append(process)
        return process

    def both(self, *command, options=(), **kwargs):
        """(status, output) alone and under the launcher."""
        ended = []
        for whole in (list(command), self.under(*command, options=options)):
            process = self.start(whole, **kwargs)
            out, self.said = process.communicate(timeout=SECONDS)
            ended.append((process.returncode, out))
        return ended

    def same(self, *command, **kwargs):
        alone, recorded = self.both(*command, **kwargs)
        self.assertEqual(recorded, alone, self.said)
        return alone

    def wait_until(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it never came")
            time.sleep(0.01)

    def left(self):
        return [name for name in os.listdir(self.temporary) if name.startswith("lacuna-")]

    # ---- how it ends

    def test_exit_status(self):
        for status in (0, 1, 7, 255):
            self.same("sh", "-c", f"exit {status}")

    def test_a_signal_that_ends_it_is_told_as_shells_tell_it(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1):
            alone, recorded = self.both("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
            self.assertEqual((alone[0], recorded[0]), (-number, 128 + number))

    def test_an_interrupt_that_ends_it_ends_a_shells_loop_too(self):
        for number in (signal.SIGINT, signal.SIGQUIT):
            self.same("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")

    def test_a_program_that_cannot_be_run(self):
        for command in ("./no-such-program", "/etc/passwd", "/etc"):
            shell = subprocess.run(["sh", "-c", command], stderr=subprocess.DEVNULL).returncode
            self.assertEqual(self.start(self.under(command)).wait(timeout=SECONDS), shell, command)

    def test_a_program_that_is_not_there_leaves_the_old_recording_and_no_folder(self):
        out = os.path.join(self.folder, "out")
        for command in ("./no-such-program", "no-such-program", "/etc/passwd"):
            self.assertIn(self.start(self.under(command)).wait(timeout=SECONDS), (126, 127))
            self.assertEqual((os.path.exists(out), self.left()), (False, []), command)
        os.mkdir(out)
        with open(os.path.join(out, "1-1-0.spool"), "w"):
            pass
        self.assertEqual(self.start(self.under("./no-such-program")).wait(timeout=SECONDS), 127)
        self.assertEqual(os.listdir(out), ["1-1-0.spool"])
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("out")], ["out"])

    # ---- what it finds

    def changed(self):
        """Unusual, all of it, and before either program starts."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD, signal.SIGTSTP,
                       signal.SIGSEGV, signal.SIGRTMIN + 3):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR2, signal.SIGALRM, signal.SIGSEGV, signal.SIGWINCH, signal.SIGRTMIN + 1})
        resource.setrlimit(resource.RLIMIT_NOFILE, (700, 900))
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 5 << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (1000, 2000))
        os.umask(0o137)
        os.nice(3)

    def test_signals_limits_and_rights_are_as_they_were(self):
        own = ("Pid", "Tgid", "PPid", "NStgid", "NSpid", "NSpgid", "NSsid", "SigQ", "FDSize", "nonvoluntary", "voluntary", "Vm", "Rss", "Hugetlb")
        alone, recorded = [[line for line in out.splitlines() if not line.startswith(own)]
                           for _, out in self.both("cat", "/proc/self/status", "/proc/self/limits", preexec_fn=self.changed)]
        self.assertEqual(recorded, alone)
        for line in ("Umask:\t0137", "SigBlk:\t0000000408002c00"):
            self.assertIn(line.split()[0], " ".join(recorded))

    def test_folder_streams_descriptors_session_niceness_and_variables(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        probe = self.script(PROBE)
        streams = {"stdin": read, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "pass_fds": (read, write), "cwd": "/", "env": self.environment,
                   "timeout": SECONDS, "preexec_fn": lambda: os.nice(3)}
        command = [sys.executable, probe]
        alone = json.loads(subprocess.run(command, **streams).stdout)
        recorded = json.loads(subprocess.run(self.under(*command), **streams).stdout)
        for what in ("session", "niceness", "cwd"):
            self.assertEqual(recorded[what], alone[what], what)
        for probed in (alone, recorded):
            probed["descriptors"].pop("1")  # a pipe of the test's own
        self.assertEqual(recorded["descriptors"], alone["descriptors"])
        self.assertTrue(recorded["group is its own"])
        self.assertEqual(recorded["modules"], [])
        self.assertEqual(set(recorded["environment"]) - set(alone["environment"]), OURS - set(alone["environment"]))
        for name in set(alone["environment"]) - OURS:
            self.assertEqual(recorded["environment"][name], alone["environment"][name])

    def test_who_reads_or_writes_hears_of_it_when_the_job_closes_a_stream(self):
        """The launcher has the same streams and descriptors, and must not keep them open; stderr it needs itself."""
        for close, before in (("0<&-", ""), ("1>&-", ""), ("9>&-", "exec 9>&1 >/dev/null; ")):
            with self.subTest(close=close):
                done = os.path.join(self.folder, "done" + close[0])
                job = f"exec {close}; i=0; while [ ! -e {done} ] && [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done; test -e {done}"
                process = self.start(["sh", "-c", before + 'exec "$@"', "sh", *self.under("sh", "-c", job)])
                if close[0] == "0":
                    with self.assertRaises(BrokenPipeError):
                        while process.poll() is None:
                            os.write(process.stdin.fileno(), b"x")
                            time.sleep(0.02)
                else:
                    self.assertEqual(process.stdout.read(), "")
                open(done, "w").close()
                self.assertEqual(process.wait(SECONDS), 0)

    def test_tokens_stay_with_the_launcher(self):
        for extra, options in (({}, ()), ({"LACUNA_DISABLE": "1"}, ()), ({}, ("-o", "/proc/nowhere"))):
            environment = {**self.environment, "LACUNA_TOKEN": "secret", "LACUNA_PROGRAM": "/nowhere", **extra}
            job = self.start([*self.under("env")[:-2], *options, "--", "env"], environment)
            variables = dict(line.split("=", 1) for line in job.communicate(timeout=SECONDS)[0].splitlines() if "=" in line)
            self.assertNotIn("LACUNA_TOKEN", variables)
            self.assertNotIn("LACUNA_PROGRAM", variables)
            if extra or options:  # not recorded: nothing is added either
                self.assertEqual({**variables, "PWD": ""}, {**self.environment, **extra, "PWD": ""})

    def test_another_tools_cuda_injection_is_told_and_passed_on(self):
        show = "echo $CUDA_INJECTION64_PATH $LACUNA_CUDA_INJECTION"
        ours = os.path.join(os.path.dirname(NODE), "liblacuna.so")
        for before, passed_on in (("/opt/tool/libinject.so", "/opt/tool/libinject.so"), ("none", ""), (ours, ""), ("", "")):
            job = self.start(self.under("sh", "-c", show), {**self.environment, "CUDA_INJECTION64_PATH": before})
            out, said = job.communicate(timeout=SECONDS)
            self.assertEqual(out.split(), [ours, passed_on] if passed_on else [ours])
            self.assertEqual(said.count(f"CUDA_INJECTION64_PATH names {passed_on}: it is loaded first"), 1 if passed_on else 0)
            printed = subprocess.run([NODE, "env", "--spool", self.folder], env={**self.environment, "CUDA_INJECTION64_PATH": before},
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            self.assertEqual(f"export LACUNA_CUDA_INJECTION='{passed_on}'" in printed, bool(passed_on))

    def test_a_package_named_lacuna_is_the_jobs(self):
        site = os.path.join(self.folder, "site")
        os.makedirs(os.path.join(site, "lacuna"))
        environment = {**self.environment, "PYTHONPATH": site}
        ask = "import lacuna; print(hasattr(lacuna, 'annotate'), getattr(lacuna, 'mine', 0))"
        recorded = self.start(self.under(sys.executable, "-c", ask), environment)
        self.assertEqual(recorded.communicate(timeout=SECONDS)[0], "True 0\n")  # a mere folder is none
        with open(os.path.join(site, "lacuna", "__init__.py"), "w") as file:
            file.write("mine = 5\n")
        self.assertEqual(self.same(sys.executable, "-c", ask, environment=environment), (0, "False 5\n"))

    ORPHAN = """
        import os, sys
        read, write = os.pipe()
        if os.fork() == 0:
            parent = os.getpid()
            if os.fork() == 0:
                while os.getppid() == parent:
                    pass
                os.write(write, b"parent %d" % os.getppid())
            os._exit(0)
        print(os.read(read, 100).decode())
    """

    def test_orphans_get_the_parent_that_they_would_have(self):
        self.same(sys.executable, self.script(self.ORPHAN))

    def test_what_it_leaves_behind_goes_on(self):
        job = self.start(self.under("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; exit 3"))
        pid = int(job.communicate(timeout=SECONDS)[0])
        os.kill(pid, signal.SIGTERM)  # it is there
        self.assertEqual(job.returncode, 3)

    def test_children_that_others_started_are_not_waited_for(self):
        whole = " ".join(self.under("sh", "-c", "exit")) + " 4"
        shell = self.start(["sh", "-c", f"sleep 600 >/dev/null 2>&1 </dev/null & echo $!; exec {whole.replace('exit 4', repr('exit 4'))}"])
        os.kill(int(shell.communicate(timeout=SECONDS)[0]), signal.SIGTERM)
        self.assertEqual(shell.returncode, 4)

    # ---- signals

    def test_ignored_children_do_not_hang_it(self):
        self.same("sh", "-c", "true; exit 3", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))

    def test_a_hangup_that_is_ignored(self):
        ended = []
        job = "trap 'echo heard' USR1; echo ready; until read line; do :; done; echo finished"
        for command in (["sh", "-c", job], self.under("sh", "-c", job)):
            process = self.start(command, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGUSR1)  # comes behind it
            self.assertEqual(process.stdout.readline(), "heard\n")
            out, _ = process.communicate("go on\n", timeout=SECONDS)
            ended.append((process.returncode, out))
        self.assertEqual(ended[1], ended[0])

    def test_interrupts_that_are_ignored_in_the_background_of_a_script(self):
        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGQUIT, signal.SIG_IGN)

        for command in (["sh", "-c", "kill -INT $$ $PPID; exit 3"], ["sh", "-c", "trap 'exit 5' TERM; kill -INT $$; kill -TERM $$"]):
            job = self.start(self.under(*command), preexec_fn=ignore)
            self.assertEqual(job.wait(timeout=SECONDS), int(command[2].split("exit ")[1][0]))

    def heard(self, command, send, **kwargs):
        """What the listener tells of signals that `send(process)` sends."""
        process = self.start(command, **kwargs)
        self.assertEqual(process.stdout.readline(), "ready\n")
        send(process)
        out, said = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, said)
        return [tuple(int(word) for word in line.split()) for line in out.splitlines()]

    def test_signals_sent_together_all_come(self):
        def send(process):
            process.send_signal(signal.SIGSTOP)
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
                process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # and now all at once

        listener = [sys.executable, self.script(LISTENER)]
        for command in (listener, self.under(*listener)):
            heard = [number for number, _ in self.heard(command, send) if number != signal.SIGCONT]
            self.assertEqual(heard, [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM])

    def test_every_signal_comes_once_and_ends_nothing(self):
        numbers = sorted(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTERM})
        self.assertGreater(len(numbers), 50)

        def send(process):
            for number in numbers:
                process.send_signal(number)
                self.assertEqual(process.stdout.readline(), f"{int(number)} 0\n")
            process.send_signal(signal.SIGTERM)

        self.assertEqual(self.heard(self.under(sys.executable, self.script(LISTENER)), send), [(signal.SIGTERM, 0)])

    def test_queued_signals_are_counted(self):
        queue, number = ctypes.CDLL(None, use_errno=True).sigqueue, int(signal.SIGRTMIN) + 2

        def send(process):
            for _ in range(5):
                self.assertEqual(queue(process.pid, number, ctypes.c_void_p(7)), 0)
            for _ in range(5):
                self.assertEqual(process.stdout.readline(), f"{number} -1\n")
            process.send_signal(signal.SIGTERM)

        self.assertEqual(self.heard(self.under(sys.executable, self.script(LISTENER)), send), [(signal.SIGTERM, 0)])

    def test_a_signal_that_waited_before_the_start_comes(self):
        def wait():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
            os.kill(os.getpid(), signal.SIGUSR2)

        listener = self.script("import signal\nprint(signal.sigtimedwait({signal.SIGUSR2}, 100).si_signo)\n")
        self.assertEqual(self.same(sys.executable, listener, preexec_fn=wait), (0, f"{int(signal.SIGUSR2)}\n"))

    def test_a_signal_to_the_launcher_goes_to_the_command_and_not_to_its_children(self):
        job = self.script("""
            import os, re, signal, sys
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            child = os.fork()
            if child == 0:
                signal.pause()
            print("ready", flush=True)
            signal.sigwait({signal.SIGTERM})
            with open(f"/proc/{child}/status") as file:
                print(re.findall("(?:Sig|Shd)Pnd:.*", file.read()))
            os.kill(child, signal.SIGKILL)
            sys.exit(5)
        """)
        for command in ([sys.executable, job], self.under(sys.executable, job)):
            process = self.start(command)
            process.stdout.readline()
            process.terminate()
            self.assertEqual((process.communicate(timeout=SECONDS)[0].count("0" * 16), process.returncode), (2, 5))

    def test_a_launcher_that_breaks_ends_with_the_jobs_status(self):
        job = self.script("""
            import os, signal, subprocess, sys
            subprocess.run([sys.executable, "-c", "import lacuna\\nwith lacuna.annotate('a'): pass"])
            for name in os.listdir(os.environ["LACUNA_SPOOL"]):
                if name.endswith(".spool"):
                    os.truncate(os.path.join(os.environ["LACUNA_SPOOL"], name), 0)
            print("ready", flush=True)
            print("got", signal.sigwait({signal.SIGUSR1}), flush=True)
            sys.exit(6)
        """)
        process = self.start(self.under(sys.executable, job), preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}))
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        self.assertIn("got", process.communicate(timeout=SECONDS)[0])
        self.assertEqual(process.returncode, 6)

    # ---- what fails in us

    RANGES = """
        import lacuna, sys, time
        for k in range(120):  # slowly, so that its space is emptied and used again and again
            for n in range(1000):
                with lacuna.annotate("a"):
                    pass
            time.sleep(0.01)
        print("done")
        sys.exit(5)
    """

    def test_a_limit_of_file_sizes_loses_records_and_nothing_else(self):
        job = self.start(self.under(sys.executable, self.script(self.RANGES), options=("--all",)),
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        out, said = job.communicate(timeout=SECONDS)
        self.assertEqual((job.returncode, out), (5, "done\n"), said)
        self.assertRegex(said, "not recorded|some of it is lost")

    def test_few_files_or_little_memory_do_not_keep_the_job_from_running(self):
        for which, much in ((resource.RLIMIT_NOFILE, 6), (resource.RLIMIT_NOFILE, 12), (resource.RLIMIT_AS, 14 << 20)):
            self.same("sh", "-c", "echo ran; exit 3", preexec_fn=lambda which=which, much=much: resource.setrlimit(which, (much, much)))

    def install(self):
        """A copy that everybody may use."""
        os.chmod(self.folder, 0o777)
        os.chmod(self.temporary, 0o777)
        place = os.path.join(self.folder, "installed")
        os.mkdir(place)
        for name in ("lacuna-node", "liblacuna.so"):
            shutil.copy(os.path.join(os.path.dirname(NODE), name), place)
        return os.path.join(place, "lacuna-node")

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_no_more_processes_do_not_keep_the_job_from_running(self):
        def one():
            os.setgroups([])
            os.setgid(61234)
            os.setuid(61234)
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

        job = self.start([self.install(), *self.under("sh", "-c", "echo ran; exit 3")[1:]], preexec_fn=one)
        out, said = job.communicate(timeout=SECONDS)
        self.assertEqual((job.returncode, out), (3, "ran\n"), said)
        self.assertEqual((said.count("\n"), "the job runs unrecorded" in said), (1, True), said)
        self.assertEqual((self.left(), os.path.exists(os.path.join(self.folder, "out"))), ([], False))

    def test_an_output_that_cannot_be_made(self):
        for where in ("/proc/nowhere", os.path.join(self.folder, "job.py", "below")):
            self.script("")
            job = self.start([NODE, "run", "-o", where, "--", "sh", "-c", "echo ran; exit 3"])
            out, said = job.communicate(timeout=SECONDS)
            self.assertEqual((job.returncode, out), (3, "ran\n"), said)
            self.assertRegex(said, rf"\Alacuna: cannot make {where}: .*; the job runs unrecorded\n\Z")
            strict = self.start([NODE, "run", "--strict", "-o", where, "--", "sh", "-c", "echo ran; exit 3"])
            out, said = strict.communicate(timeout=SECONDS)
            self.assertEqual((strict.returncode, out, said.count("\n")), (1, "", 1), said)
            self.assertEqual(self.left(), [])

    @unittest.skipUnless(MAY_MOUNT, "no right to make a mount namespace")
    def test_no_room_for_temporary_files(self):
        node = self.install()
        for options, expected in (((), (3, "ran\n")), (("--strict",), (1, ""))):
            command = " ".join([node, "run", *options, "-o", self.folder + "/out", "--", "sh -c 'echo ran; exit 3'"])
            hide = f"mount --bind {self.folder} /mnt && mount -t tmpfs -o size=4m none /tmp && cd /mnt && exec {command.replace(self.folder, '/mnt')}"
            job = self.start(["unshare", "-m", "sh", "-c", hide], {**self.environment, "TMPDIR": "/tmp"})
            out, said = job.communicate(timeout=SECONDS)
            self.assertEqual(((job.returncode, out), said.count("\n")), (expected, 1), said)
            self.assertIn("less than 16 MB are free", said)

    @unittest.skipUnless(MAY_MOUNT, "no right to make a mount namespace")
    def test_a_program_that_nothing_may_be_unpacked_for(self):
        alone = os.path.join(self.folder, "alone")
        os.mkdir(alone)
        shutil.copy(LACUNA, alone)
        environment = {**self.environment, "HOME": "/proc", "XDG_CACHE_HOME": "/proc/none", "TMPDIR": "/tmp"}
        runs = (3, "ran\n")
        for options, expected in ((("--quiet", "-o", "/nowhere"), runs), (("--on-demand",), runs), (("--no-hang", "-o", "/nowhere"), runs),
                                  (("--profiler-api",), runs), (("--python-stacks=on",), runs), (("--strict",), (1, "")), (("--limit",), (1, ""))):
            command = " ".join(["/mnt/lacuna", "run", *options, "--", "sh -c 'echo ran; exit 3'"])
            hide = f"mount --bind {alone} /mnt && mount -t tmpfs -o noexec none /tmp && cd /mnt && exec {command}"
            job = self.start(["unshare", "-m", "sh", "-c", hide], environment)
            out, said = job.communicate(timeout=SECONDS)
            self.assertEqual(((job.returncode, out), said.count("\n")), (expected, 1), said)
            self.assertIn("cannot unpack the collector", said)

    def test_without_a_home_the_collector_is_unpacked_beside_temporary_files(self):
        alone, temporary, output = (os.path.join(self.folder, name) for name in ("alone", "spare", "recorded"))
        os.mkdir(alone)
        os.mkdir(temporary)
        shutil.copy(LACUNA, alone)
        environment = {**self.environment, "HOME": "/proc", "TMPDIR": temporary}
        environment.pop("XDG_CACHE_HOME", None)
        job = self.start([os.path.join(alone, "lacuna"), "run", "-o", output, "--", sys.executable, "-c", "print('ran')"], environment)
        out, said = job.communicate(timeout=SECONDS)
        self.assertEqual((job.returncode, out), (0, "ran\n"), said)
        self.assertNotIn("unrecorded", said)
        self.assertTrue(os.path.isdir(output), said)
        cache = os.path.join(temporary, f"lacuna-cache-{os.getuid()}")
        self.assertEqual(os.stat(cache).st_mode & 0o777, 0o700)

    # ---- a launcher that is killed

    def killed(self, *command):
        """The pid that the job printed, after its launcher was killed."""
        process = self.start(self.under(*command))
        pid = int(process.stdout.readline())
        process.kill()
        process.wait()
        return pid

    def run_another(self, *options):
        job = self.start([NODE, "run", *options, "-o", os.path.join(self.folder, "other"), "--", "true"])
        return job.communicate(timeout=SECONDS)[1]

    @staticmethod
    def is_gone(pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            return True

    def test_the_command_is_killed_with_its_launcher(self):
        pid = self.killed("sh", "-c", "echo $$; exec sleep 600")
        self.wait_until(lambda: self.is_gone(pid))
        self.assertEqual(len(self.left()), 1)
        self.assertNotIn("was killed", self.run_another())
        self.assertEqual(self.left(), [])  # nothing was in it

    def test_what_a_killed_launcher_left_is_found_and_can_be_kept(self):
        pid = self.killed(sys.executable, "-u", self.script("import lacuna, os, time\nwith lacuna.annotate('a'): print(os.getpid())\ntime.sleep(600)\n"))
        self.wait_until(lambda: self.is_gone(pid))
        said = self.run_another()
        path = os.path.join(self.temporary, self.left()[0])
        self.assertIn(f"to keep them: lacuna gather {os.path.join(self.folder, 'out')}; to remove them: rm -r {path}", said)
        self.assertNotIn("was killed", self.run_another("--quiet"))
        gathered = os.path.join(self.folder, "gathered")
        self.assertEqual(subprocess.run([NODE, "gather", path, "-o", gathered], stdout=subprocess.DEVNULL, timeout=SECONDS).returncode, 0)
        self.assertTrue(any(name.endswith(".spool") for name in os.listdir(gathered)))

    def test_a_folder_that_somebody_uses_stays(self):
        pid = self.killed("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; wait")  # the child of the job goes on
        self.run_another()
        self.assertEqual(len(self.left()), 1)
        os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: self.is_gone(pid))
        self.run_another()
        self.assertEqual(self.left(), [])
        running = self.start(self.under("sh", "-c", "echo ready; unset LACUNA_SPOOL; exec cat"))  # nor does its job name it
        running.stdout.readline()
        by_hand = os.path.join(self.temporary, f"lacuna-{os.getuid()}-aaaaaa")  # as `lacuna env` makes it
        os.mkdir(by_hand)
        self.run_another()
        self.assertEqual(len(self.left()), 2)
        running.communicate(timeout=SECONDS)
        self.assertEqual(self.left(), [os.path.basename(by_hand)])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    if result.skipped:
        print(f"skip: {len(result.skipped)} checks of a job beside its launcher need root and mount namespaces")
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
