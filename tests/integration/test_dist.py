#!/usr/bin/env python3
"""What is distributed: the program starts on old systems, the wheel is the whole program, and the same inputs give the same bytes.

Here the link and the wheel; with LACUNA_SOAK=1 all of `make dist`, twice, and lintian where it is.
"""
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOAK = os.environ.get("LACUNA_SOAK") == "1"
LIMIT_S = 300
FIRST_MINUTE_CPU_S = 10  # of `python -m lacuna demo`, until the page is there
WHEEL_BYTES_MAX = 10 << 20
# what every system has that manylinux2014 names, of what we use
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
# they were in libraries that the program does not ask for, before glibc 2.34 took them in
ELSEWHERE = re.compile(r"^(shm_|mq_|timer_|aio_|lio_|openpty|forkpty|login_tty|getaddrinfo_a|pthread_\w+np_)")


def make(*arguments, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "SOURCE_DATE"))}
    run = subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, timeout=LIMIT_S * 2, stdin=subprocess.DEVNULL, env={**environment, **settings})
    if run.returncode != 0:
        raise AssertionError(run.stdout)
    return run.stdout


def missing():
    """What the distributed program is made of and this machine lacks; "" when it can be made."""
    run = subprocess.run(["make", "--no-print-directory", "-n", "dist-missing"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return re.sub(r"^echo ?", "", run.stdout.strip())


def tool(*arguments):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True, timeout=LIMIT_S).stdout


def children_cpu_s():
    return sum(os.times()[2:4])


class Dist(unittest.TestCase):
    """One set of files for all: they are made once."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.out = os.path.join(cls.folder, "out")
        cls.made = os.path.join(cls.folder, "made")
        make("dist", f"DIST={cls.made}", f"DIST_OUT={cls.out}", f"DIST_ONLY={'' if SOAK else 'wheel'}", SOURCE_DATE_EPOCH="1700000000")
        cls.program = os.path.join(cls.made, "beside/lacuna")
        (cls.wheel,) = (os.path.join(cls.out, name) for name in os.listdir(cls.out) if name.endswith(".whl"))

    # ---- the program

    def test_the_program_needs_nothing_newer_than_glibc_2_17_and_one_library_that_it_brings(self):
        tool("sh", os.path.join(ROOT, "tests/tidy/check_symbols.sh"), self.program)
        dynamic = tool("readelf", "-dW", self.program)
        self.assertEqual(set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)) - SYSTEM, {"libisal.so.2"})
        self.assertEqual(re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", dynamic), ["$ORIGIN"])
        table = tool("objdump", "-T", self.program)
        asked = re.findall(r"\*UND\*.*\(?(GLIBC_[0-9.]+)\)? +(\S+)$", table, re.M)
        self.assertGreater(len(asked), 200)
        self.assertEqual([name for _, name in asked if ELSEWHERE.match(name)], [])
        self.assertEqual(re.findall(r"\*UND\*\s+\S+\s+(?!\(?GLIBC)(?!isal_|crc|adler)(\w\S*)$", table, re.M), [], "a name without a version is found nowhere")

    def test_its_constructors_run_where_the_c_library_does_not_do_it(self):
        # an old __libc_start_main runs what it is given and nothing else: a new one does the same when it is given something
        program = os.path.join(self.folder, "constructed")
        source = os.path.join(self.folder, "constructed.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent("""
                #include <stdio.h>
                #include <stdlib.h>
                #include <sys/random.h>
                #include <sys/stat.h>
                #include <unistd.h>
                extern char **environ;
                static int made;
                __attribute__((constructor)) static void make(int argc, char **argv, char **environment)
                { made += argc * 10 + (argv[1][0] == 'a') + (environment == environ); }
                static void say(void) { printf("at exit\\n"); }
                int main(int argc, char **argv)
                {
                    struct stat status;
                    struct stat64 status64;
                    unsigned char random[64] = {0};
                    int sum = 0;
                    atexit(say);
                    if (stat(argv[0], &status) != 0 || stat64(argv[0], &status64) != 0 || status.st_size != status64.st_size || fstat(1, &status) != 0 ||
                        getrandom(random, sizeof(random), 0) != sizeof(random)) { return 1; }
                    for (int i = 0; i < 64; i++) { sum += random[i]; }
                    setenv("A_NAME", "B", 1);
                    printf("%d %d %ld %d %s\\n", argc, made, (long)status64.st_size, sum > 0, getenv("A_NAME"));
                    return 0;
                }
            """))
        stubs = [os.path.join(self.made, "stubs", name) for name in ("libc.so.6", "libm.so.6")]
        tool("gcc", "-D_GNU_SOURCE", "-iquote", ROOT, "-fPIE", "-pie", "-nostdlib", "-DLAC_RUN_CONSTRUCTORS", source, os.path.join(ROOT, "server/dist/old_libc.c"),
             os.path.join(ROOT, "collector/launch/start.S"), *stubs, tool("gcc", "-print-file-name=libc_nonshared.a").strip(), "-o", program)
        tool("sh", os.path.join(ROOT, "tests/tidy/check_symbols.sh"), program)
        self.assertEqual(tool(program, "a"), f"2 22 {os.path.getsize(program)} 1 B\nat exit\n")

    # ---- the wheel

    def test_the_wheel_is_small_and_says_truly_what_is_in_it(self):
        self.assertLessEqual(os.path.getsize(self.wheel), WHEEL_BYTES_MAX)
        self.assertRegex(os.path.basename(self.wheel), r"^lacuna-[0-9.]+-py3-none-manylinux2014_x86_64\.whl$")
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertIsNone(archive.testzip())
            names = archive.namelist()
            (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
            rows = list(csv.reader(archive.read(f"{info}/RECORD").decode().splitlines()))
            self.assertEqual([row[0] for row in rows], names)
            for name, checksum, size in rows[:-1]:
                content = archive.read(name)
                self.assertEqual(int(size), len(content))
                self.assertEqual(checksum, "sha256=" + __import__("base64").urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode())
            self.assertEqual(rows[-1], [f"{info}/RECORD", "", ""])
            for name in ("lacuna/bin/lacuna", "lacuna/bin/libisal.so.2"):
                self.assertEqual(stat.S_IMODE(archive.getinfo(name).external_attr >> 16), 0o755, name)
            self.assertIn("Tag: py3-none-manylinux2014_x86_64", archive.read(f"{info}/WHEEL").decode())
            bill = json.loads(archive.read(f"{info}/sboms/lacuna.spdx.json"))
            third_party = archive.read(f"{info}/licenses/THIRD-PARTY").decode()
        parts = {row["name"]: row for row in bill["packages"]}
        for name in ("lacuna", "sqlite3", "libzstd", "libmicrohttpd", "json-c", "libsodium", "cmark-gfm", "preact", "@preact/signals", "@preact/signals-core"):
            self.assertIn(name, parts)
        self.assertEqual(len({row["SPDXID"] for row in bill["packages"]}), len(bill["packages"]))
        known = {row["SPDXID"] for row in bill["packages"]} | {"SPDXRef-DOCUMENT"}
        self.assertTrue(all({row["spdxElementId"], row["relatedSpdxElement"]} <= known for row in bill["relationships"]))
        self.assertIn("Lesser General Public License".upper(), third_party.upper())

    def installed(self):
        """(python, environment) with the wheel installed: by pip into a virtual environment, else unpacked."""
        place = os.path.join(self.folder, "venv")
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.folder, "TMPDIR": self.folder, "LANG": "C.UTF-8"}
        python = shutil.which("python3", path="/usr/bin") or sys.executable
        if os.path.isdir(place):
            return os.path.join(place, "bin/python"), environment
        if subprocess.run([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL).returncode == 0:
            tool(python, "-m", "venv", place)
            tool(os.path.join(place, "bin/pip"), "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", self.wheel)
            self.assertTrue(os.access(os.path.join(place, "bin/lacuna"), os.X_OK), "the script lacuna")
            return os.path.join(place, "bin/python"), environment
        tool(python, "-m", "zipfile", "-e", self.wheel, place)  # which drops modes
        return python, {**environment, "PYTHONPATH": place}

    def test_installed_it_is_the_program_and_the_first_minute_is_seconds(self):
        python, environment = self.installed()
        said_version = subprocess.run([python, "-m", "lacuna", "version"], env=environment, stdout=subprocess.PIPE, check=True, text=True, timeout=LIMIT_S).stdout
        self.assertRegex(said_version, r"^lacuna [0-9.]+")
        refused = subprocess.run([python, "-m", "lacuna", "no-such"], env=environment, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        self.assertEqual(refused.returncode, 2)
        out = os.path.join(self.folder, "said")
        cpu_s, begin = children_cpu_s(), time.monotonic()
        with open(out, "wb") as file:
            demo = subprocess.Popen([python, "-m", "lacuna", "demo"], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        said, verdict_s = "", None
        while "\n  open " not in said and demo.poll() is None and time.monotonic() - begin < LIMIT_S:
            time.sleep(0.02)
            with open(out, encoding="utf-8") as file:
                said = file.read()
            if verdict_s is None and "The GPU waits" in said:
                verdict_s = time.monotonic() - begin
        page_s = time.monotonic() - begin
        self.assertIsNone(demo.poll(), said)
        demo.send_signal(signal.SIGINT)
        self.assertEqual(demo.wait(LIMIT_S), 0, said)
        cpu_s = children_cpu_s() - cpu_s
        self.assertRegex(said, r"The GPU waits 380 ms of every 750 ms step for data")
        self.assertRegex(said, r"\n  open +http://127\.0\.0\.1:\d+/t/\w+#key=")
        print(f"first minute: verdict after {verdict_s:.1f} s, page after {page_s:.1f} s, {cpu_s:.1f} s of CPU")
        self.assertLess(cpu_s, FIRST_MINUTE_CPU_S)

    @unittest.skipUnless(shutil.which("pipx"), "no pipx")
    def test_pipx_runs_it_without_an_index(self):
        place = os.path.join(self.folder, "pipx")
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.folder, "TMPDIR": self.folder, "LANG": "C.UTF-8", "PIP_NO_INDEX": "1",
                       "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIPX_HOME": place, "PIPX_BIN_DIR": os.path.join(place, "bin")}
        pipx = shutil.which("pipx")
        run = subprocess.run([pipx, "run", "--spec", self.wheel, "lacuna", "version"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"(?m)^lacuna [0-9.]+")

    def test_installed_it_records_a_python_job_with_the_collector_inside_it(self):
        python, environment = self.installed()
        job = os.path.join(self.folder, "job")
        script = textwrap.dedent("""
            import ctypes, os, sys
            print(open("/proc/self/status").read().split("SigIgn:")[1].split()[0])
            library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
            print(library.InitializeInjection() == 1, any("lacuna" in path for path in sys.path))
            sys.exit(7)
        """)
        run = subprocess.run([python, "-m", "lacuna", "run", "--quiet", "-o", job, "--", python, "-c", script], env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        self.assertEqual(run.returncode, 7, run.stderr)
        ignored, told = run.stdout.splitlines()
        self.assertEqual(told, "True True", run.stderr)
        alone = subprocess.run([python, "-c", script.splitlines()[1] + "\n" + script.splitlines()[2]], env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True, timeout=LIMIT_S).stdout.strip()
        self.assertEqual(ignored, alone, "signals that the job ignores")
        self.assertTrue([name for name in os.listdir(job) if name.endswith(".spool")])
        report = subprocess.run([python, "-m", "lacuna", "analyze", job], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
        self.assertEqual(report.returncode, 0, report.stdout)

    # ---- all of it

    @unittest.skipUnless(SOAK, "in make soak")
    def test_the_same_inputs_give_the_same_bytes(self):
        again = os.path.join(self.folder, "again")
        made = os.path.join(self.folder, "made-again")
        os.umask(os.umask(0o027))
        make("dist", f"DIST={made}", f"DIST_OUT={again}", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C")
        for name in sorted(os.listdir(self.out)):
            with open(os.path.join(self.out, name), "rb") as first, open(os.path.join(again, name), "rb") as second:
                self.assertEqual(hashlib.sha256(first.read()).hexdigest(), hashlib.sha256(second.read()).hexdigest(), name)
        self.assertEqual(sorted(os.listdir(self.out)), sorted(os.listdir(again)))
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.out, check=True, timeout=LIMIT_S)

    @unittest.skipUnless(SOAK, "in make soak")
    def test_tarballs_of_the_node_side_record_where_they_are_unpacked(self):
        for machine in ("x86_64", "aarch64"):
            found = [name for name in os.listdir(self.out) if name.startswith("lacuna-node-") and name.endswith(f"linux-{machine}.tar.gz")]
            if machine == "aarch64" and not found:
                print("skip: no aarch64-linux-gnu-gcc, there is no tarball for aarch64")
                continue
            with tarfile.open(os.path.join(self.out, found[0])) as archive:
                archive.extractall(self.folder)
            top = os.path.join(self.folder, found[0][:-len(".tar.gz")])
            node = os.path.join(top, "lacuna-node")
            self.assertTrue(os.access(node, os.X_OK))
            self.assertTrue(os.path.exists(os.path.join(top, "python/sitecustomize.py")))
            if machine == "x86_64":
                workload = os.path.join(ROOT, "build/release/workload-cpu")
                subprocess.run([node, "run", "--quiet", "-o", os.path.join(self.folder, "node-job"), "--", workload, "--cpu", "--steps", "3", "--workers", "1"],
                               check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
                self.assertIn("loader.fetch", tool(node, "show", os.path.join(self.folder, "node-job")))
            else:
                self.assertIn("AArch64", tool("readelf", "-h", node))

    @unittest.skipUnless(SOAK, "in make soak")
    def test_the_debian_package_is_in_order(self):
        (package,) = (os.path.join(self.out, name) for name in os.listdir(self.out) if name.endswith(".deb"))
        fields = tool("dpkg-deb", "-f", package)
        self.assertIn("Depends: libc6 (>= 2.17), libisal2\n", fields)
        root = os.path.join(self.folder, "root")
        tool("dpkg-deb", "-x", package, root)
        self.assertRegex(tool(os.path.join(root, "usr/bin/lacuna"), "version"), r"^lacuna ")
        if not shutil.which("lintian"):
            print("skip: no lintian, the package is not checked by it")
            return
        said = subprocess.run(["lintian", "--fail-on", "error,warning", package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=LIMIT_S)
        self.assertEqual((said.returncode, said.stdout), (0, ""))


if __name__ == "__main__":
    lacks = missing()
    if lacks:
        print(f"skip: what is distributed cannot be made here without {lacks}")
        print("0 passed, 0 failed")
        sys.exit(0)
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(bad > 0)
