#!/usr/bin/env python3
"""The job first: every kind of job in job_kinds.py alone and under `lacuna run`. Exit status, output, files and what children see are equal.

The table in collector/README.md says what this holds. `make test` runs the short kinds, several at a time; LACUNA_SOAK=1 all of them.
"""
import concurrent.futures
import errno
import hashlib
import importlib.util
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import job_kinds
from torch_python import TORCH_PYTHON as TORCH, has_torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.environ.get("LACUNA_TEST_NODE", os.path.join(ROOT, "build/release/lacuna-node"))  # another launcher, to see what fails with it
SOAK = os.environ.get("LACUNA_SOAK") == "1"
SECONDS = 300
AT_ONCE = 4

STATIC = "#include <stdio.h>\nint main(void) { puts(\"static\"); return 4; }\n"
SETUID = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d %d\\n\", getuid(), geteuid()); return 2; }\n"
# after the loader of libraries is done, files and sockets are forbidden
SECCOMP = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "kernels/ranges.h"
int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    range_open_library();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("%d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    for (int i = 0; i < 1000; i++) {
        range_push("under seccomp");
        range_pop();
    }
    printf("%d %d\n", open("/etc/passwd", O_RDONLY), socket(AF_UNIX, SOCK_STREAM, 0));
    return 5;
}
"""


def as_told(status):
    """How the launcher tells that a signal ended the job: as shells do, but dies of an interrupt itself."""
    return status if status >= 0 or status in (-signal.SIGINT, -signal.SIGQUIT) else 128 - status


def errors_of(text):
    """What the job itself said, without our own lines and without numbers of processes, times and addresses."""
    return re.sub(rb"0x[0-9a-f]+|\d+", b"N", b"".join(line for line in text.splitlines(True) if not line.startswith(b"lacuna: ")))


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        os.chmod(cls.folder, 0o755)
        cls.programs = os.path.join(cls.folder, "programs")
        os.mkdir(cls.programs)
        cls.has_torch = has_torch()
        cls.may_mount = job_kinds.ROOT and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0
        ranges = os.path.join(ROOT, "kernels/ranges.c")
        cls.build("strange_jobs", os.path.join(ROOT, "tests/attack/strange_jobs.c"), ranges, "-D_GNU_SOURCE", "-lpthread", "-ldl")
        cls.build("seccomp", cls.source("seccomp", SECCOMP), ranges, "-ldl")
        cls.build("static", cls.source("static", STATIC), "-static")
        os.chmod(cls.build("setuid", cls.source("setuid", SETUID)), 0o4755)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def source(cls, name, text):
        path = os.path.join(cls.programs, name + ".c")
        with open(path, "w") as file:
            file.write(text)
        return path

    @classmethod
    def build(cls, name, *arguments):
        program = os.path.join(cls.programs, name)
        subprocess.run(["gcc", "-O1", "-iquote", ROOT, "-o", program, *arguments], check=True, timeout=SECONDS)
        return program

    def streams(self, kind):
        """What Popen gets, what is to close afterwards, and our end of a terminal."""
        if kind.streams.get("all") == "terminal":
            ours, theirs = pty.openpty()
            return {"stdin": theirs, "stdout": theirs, "stderr": theirs}, [theirs], ours
        full = os.open("/dev/full", os.O_WRONLY) if "full" in kind.streams.values() else None
        streams = {name: full if kind.streams.get(name) == "full" else subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        return streams, [full] if full is not None else [], None

    def run_once(self, kind, folder, is_recorded):
        """(status, stdout, stderr, files) of one run, in an empty folder of the same name both times."""
        here = os.path.join(folder, "here")
        shutil.rmtree(here, ignore_errors=True)
        os.mkdir(here)
        words = {"{job}": self.programs, "{python}": sys.executable, "{torch}": TORCH}
        command = []
        for word in kind.command:
            for name, value in words.items():
                word = word.replace(name, value)
            command.append(word)
        if is_recorded:
            command = [NODE, "run", "--quiet", "-o", os.path.join(folder, "out"), "--", *command]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
        environment.update({"TMPDIR": folder, "PWD": here})
        for name, value in kind.environment.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        closed = [number for number, name in enumerate(("stdin", "stdout", "stderr")) if kind.streams.get(name) == "closed"]

        def prepare():
            for number in closed:
                os.close(number)
            if kind.prepare is not None:
                kind.prepare()

        streams, to_close, terminal = self.streams(kind)
        try:
            job = subprocess.Popen(command, cwd=here, env=environment, preexec_fn=prepare, **streams)
        except OSError as error:  # what a shell says of a program that it cannot run
            return 127 if error.errno == errno.ENOENT else 126, b"", b"", {}
        finally:
            for descriptor in to_close:
                os.close(descriptor)
        out, err = self.talk(kind, job, terminal)
        return job.returncode, out, err, self.files(here, kind)

    @staticmethod
    def talk(kind, job, terminal):
        first = b""
        if kind.send is not None:
            first = job.stdout.readline()
            job.send_signal(kind.send)
        if terminal is None:
            out, err = job.communicate(kind.stdin.encode(), timeout=SECONDS)
            return first + (out or b""), err or b""
        seen = b""
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
        os.close(terminal)
        job.wait(timeout=SECONDS)
        return seen, b""

    @staticmethod
    def files(here, kind):
        found = {}
        for folder, _, names in os.walk(here):
            for name in names:
                path = os.path.join(folder, name)
                if name.startswith(kind.ignore) and kind.ignore:
                    found[name.split(".")[0]] = "there"  # with or without the process in its name
                    continue
                with open(path, "rb") as file:
                    found[os.path.relpath(path, here)] = (os.stat(path).st_mode & 0o7777, hashlib.sha256(file.read()).hexdigest())
        return found

    def why_not(self, kind):
        lacks = {"torch": not self.has_torch, "IPython": importlib.util.find_spec("IPython") is None, "root": not self.may_mount}
        return "not in make test" if kind.soak and not SOAK else "no " + kind.needs if lacks.get(kind.needs) else ""

    def compare(self, kind):
        folder = tempfile.mkdtemp(dir=self.folder)
        os.chmod(folder, 0o755)
        alone, recorded = (self.run_once(kind, folder, is_recorded) for is_recorded in (False, True))
        problems = []
        if as_told(alone[0]) != recorded[0]:
            problems.append(f"status {alone[0]} alone, {recorded[0]} recorded: {recorded[2][-300:]!r}")
        if alone[1] != recorded[1]:
            problems.append(f"output {alone[1][-300:]!r} alone, {recorded[1][-300:]!r} recorded")
        if errors_of(alone[2]) != errors_of(recorded[2]):
            problems.append(f"errors {alone[2][-300:]!r} alone, {recorded[2][-300:]!r} recorded")
        if alone[3] != recorded[3]:
            problems.append(f"files {alone[3]} alone, {recorded[3]} recorded")
        if "out" in os.listdir(folder) and not os.listdir(os.path.join(folder, "out")):
            problems.append("an empty folder of a recording is left")
        left = [name for name in os.listdir(folder) if name.startswith("lacuna-")]
        if left:
            problems.append(f"left behind: {left}")
        shutil.rmtree(folder, ignore_errors=True)
        return problems

    def test_each_kind_is_the_same_alone_and_recorded(self):
        self.assertGreaterEqual(len(job_kinds.KINDS), 40)
        kinds = [kind for kind in job_kinds.KINDS if not self.why_not(kind)]
        skipped = {kind.needs for kind in job_kinds.KINDS if self.why_not(kind).startswith("no ")}
        if skipped:
            print(f"skip: kinds of jobs that need {' and '.join(sorted(skipped))} are not tried")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for kind, problems in zip(kinds, pool.map(self.compare, kinds)):
                with self.subTest(kind.name):
                    self.assertEqual(problems, [])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - min(result.testsRun, bad) - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
