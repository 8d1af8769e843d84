#!/usr/bin/env python3
"""What .ci/deps does on machines that lack something: simulated with a PATH of stand-ins."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# what the script itself calls, and what it looks for; each is there unless a test takes it away
REAL = ("sh", "env", "find", "head", "cat", "grep")
FOUND = ("make", "pkg-config", "python3", "node", "npm", "chromium", "clang", "ld.lld", "clang-format", "clang-tidy-19", "shellcheck",
         "pyflakes3", "wrk", "aarch64-linux-gnu-gcc", "qemu-aarch64", "slurmctld", "slurmd", "munged", "srun", "nginx", "caddy", "openssl")


class Machine:
    """A machine with everything but the headers and programs named; apt-get only writes down what it was asked."""

    def __init__(self, lacks=(), user=1000, apt=True, apt_refuses=()):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.log = os.path.join(self.folder, "apt.log")
        self.path = os.path.join(self.folder, "bin")
        os.mkdir(self.path)
        for name in REAL:
            os.symlink(shutil.which(name), os.path.join(self.path, name))
        for name in FOUND:
            if name not in lacks:
                self.program(name, "exit 0")
        absent = "|".join(name for name in lacks if name.endswith(".h")) or "nothing is absent"
        self.program("gcc", f"! grep -qE '<({absent})>'")
        self.program("id", f"echo {user}")
        self.program("sudo", '[ "$1" = -n ] && shift; echo "sudo $*" >>"%s"; exec "$@"' % self.log)
        if apt:
            refuses = "|".join(apt_refuses) or "nothing"
            self.program("apt-get", f'echo "apt-get $*" >>"{self.log}"; for p in "$@"; do case $p in {refuses}) exit 100 ;; esac; done')

    def program(self, name, body):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{shutil.which('sh')}\n{body}\n")
        os.chmod(path, stat.S_IRWXU)

    def deps(self, *arguments, ci=False):
        environment = {"PATH": self.path, **({"CI": "true"} if ci else {})}
        return subprocess.run([shutil.which("sh"), os.path.join(ROOT, ".ci/deps"), *arguments], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL)

    def asked(self):
        try:
            with open(self.log, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Deps(unittest.TestCase):
    def machine(self, **how):
        machine = Machine(**how)
        self.addCleanup(machine.close)
        return machine

    def test_a_machine_with_everything_hears_nothing(self):
        for ci in (False, True):
            machine = self.machine()
            run = machine.deps("test", "lint", ci=ci)
            self.assertEqual((run.returncode, run.stdout, run.stderr, machine.asked()), (0, "", "", ""))

    def test_a_user_gets_the_one_line_to_run_and_a_failure(self):
        machine = self.machine(lacks=("sqlite3.h", "zstd.h"))
        run = machine.deps()
        self.assertNotEqual(run.returncode, 0)
        lines = [line for line in run.stderr.splitlines() if "apt-get" in line]
        self.assertEqual(lines, ["  sudo apt-get install --no-install-recommends libsqlite3-dev libzstd-dev"])
        self.assertEqual(machine.asked(), "", "nothing may be installed behind a user's back")

    def test_root_installs_what_is_missing_and_nothing_else(self):
        machine = self.machine(lacks=("sodium.h",), user=0)
        self.assertEqual(machine.deps().returncode, 0)
        self.assertRegex(machine.asked(), r"apt-get install .*--no-install-recommends libsodium-dev\n$")
        self.assertNotIn("sudo", machine.asked())

    def test_ci_installs_by_sudo_without_asking(self):
        machine = self.machine(lacks=("node",))
        self.assertEqual(machine.deps(ci=True).returncode, 0)
        self.assertRegex(machine.asked(), r"sudo apt-get install .* nodejs\n")

    def test_without_apt_the_packages_are_named(self):
        machine = self.machine(lacks=("microhttpd.h",), apt=False)
        run = machine.deps(ci=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("libmicrohttpd-dev", run.stderr)
        self.assertIn("libmicrohttpd-devel", run.stderr)

    def test_a_machine_without_a_compiler_is_told_of_everything(self):
        machine = self.machine()
        os.unlink(os.path.join(machine.path, "gcc"))
        run = machine.deps()
        self.assertEqual(run.returncode, 1)
        for package in (" gcc ", "libmicrohttpd-dev", "libc6-dev"):
            self.assertIn(package, run.stderr)

    def test_only_tests_need_the_test_tools(self):
        machine = self.machine(lacks=("check.h",))
        self.assertEqual(machine.deps().returncode, 0)
        self.assertIn(" check", machine.deps("test").stderr)

    def test_a_browser_and_clang_are_wishes(self):
        machine = self.machine(lacks=("clang", "chromium"))
        run = machine.deps("soak")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        machine = self.machine(lacks=("clang", "chromium"), user=0, apt_refuses=("chromium",))
        run = machine.deps("soak")
        self.assertEqual(run.returncode, 0)
        self.assertIn("skip: apt could not install chromium", run.stdout)
        self.assertIn("clang", machine.asked())

    def test_the_browser_without_windows_comes_before_the_whole_one(self):
        for lacks, known, wished in ((("chromium",), True, "chromium-headless-shell"), ((), True, "chromium-headless-shell"), (("chromium",), False, "chromium")):
            machine = self.machine(lacks=lacks, user=0)
            machine.program("apt-cache", f'[ "$*" = "show chromium-headless-shell" ] && exit {0 if known else 100}')
            self.assertEqual(machine.deps("test").returncode, 0)
            self.assertRegex(machine.asked(), rf"apt-get install .* {wished}\n$")
        machine = self.machine(lacks=("chromium",), user=0)
        machine.program("chromium-headless-shell", "exit 0")
        machine.program("apt-cache", "exit 0")
        self.assertEqual((machine.deps("test").returncode, machine.asked()), (0, ""))

    def test_only_fuzzing_needs_clang(self):
        machine = self.machine(lacks=("clang",), user=0)
        self.assertEqual(machine.deps("test").returncode, 0)
        self.assertNotIn("clang", machine.asked())
        self.assertEqual(self.machine(lacks=("clang",)).deps("fuzz").returncode, 1)

    def test_a_package_that_apt_does_not_have_is_a_failure_that_names_it(self):
        machine = self.machine(lacks=("isa-l.h",), user=0, apt_refuses=("libisal-dev",))
        run = machine.deps()
        self.assertEqual(run.returncode, 1)
        self.assertIn("libisal-dev", run.stderr)

    def test_make_stops_before_it_builds(self):
        machine = self.machine(lacks=("json-c/json.h",))
        environment = {"PATH": machine.path + ":" + os.environ["PATH"], "HOME": machine.folder}
        for target in ("run", "test"):
            run = subprocess.run([shutil.which("make"), "--no-print-directory", "-C", ROOT, target], env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, stdin=subprocess.DEVNULL)
            self.assertNotEqual(run.returncode, 0)
            self.assertEqual(run.stdout, "")
            self.assertIn("sudo apt-get install --no-install-recommends libjson-c-dev", run.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
