#!/usr/bin/env python3
"""The Makefile: what is installed runs, what depends on a header is rebuilt, what a machine lacks is left out."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make(*arguments, **options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300, stdin=subprocess.DEVNULL, env=environment, **options)


def compiled(output):
    """The sources that `make -n` would compile."""
    return set(re.findall(r" -c (\S+\.c)\b", output))


class Build(unittest.TestCase):
    def test_help_lists_what_people_call(self):
        listed = set(re.findall(r"^([a-z-]+)", make("help").stdout, re.M))
        self.assertLessEqual({"all", "run", "test", "soak", "bench", "fuzz", "format", "lint", "install", "help", "clean", "deps"}, listed)

    def test_every_listed_target_exists(self):
        # by make's own list of its rules: a dry run of all of them runs a make for each that calls one
        rules = set(re.findall(r"^([a-z-]+):", make("-qp", "help").stdout, re.M))
        self.assertLessEqual(set(re.findall(r"^([a-z-]+)", make("help").stdout, re.M)), rules)
        run = make("-n", "test")
        self.assertNotIn("No rule", run.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_make_alone_installs_what_is_missing_first(self):
        self.assertIn(".ci/deps", make("-n").stdout.splitlines()[0])

    def test_a_header_rebuilds_what_includes_it_and_no_more(self):
        before = compiled(make("-n", "all").stdout)
        after = compiled(make("-n", "-W", "analysis/flame/flame.h", "all").stdout) - before
        with_it = {path for path in self.sources() if self.includes(path, "analysis/flame/flame.h")} - before
        self.assertLessEqual(with_it, after)
        self.assertNotIn("analysis/model/strings.c", after)
        self.assertLess(len(after), len(self.sources()) / 2)

    def test_a_page_source_rebuilds_the_page_and_little_c(self):
        before = compiled(make("-n", "all").stdout)
        run = make("-n", "-W", "web/src/main.tsx", "all").stdout
        self.assertIn("npm run", run)
        self.assertLessEqual({path for path in compiled(run) - before if "/gen/" not in path}, set())

    def test_another_language_builds_the_page_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            language = os.path.join(folder, "language")

            def builds(name):
                return "npm run" in make("-n", "web", f"LACUNA_LANG={name}", f"WEB_LANG={language}").stdout

            builds("en")
            os.utime(language, (0, 0))
            self.assertFalse(builds("en"))
            self.assertTrue(builds("en-XA"))

    def sources(self):
        found = []
        for top in ("analysis", "server"):
            for folder, _, names in os.walk(os.path.join(ROOT, top)):
                found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".c")]
        return [path for path in found if "/embed/" not in path]

    def includes(self, path, header):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            return f'#include "{header}"' in file.read()

    def test_without_nvcc_only_the_gpu_workload_is_left_out(self):
        self.assertEqual(make("-n", "-B", "NVCC=", "kernels", "test-programs", "all").stdout.count("device_cuda"), 0)
        self.assertIn("device_cuda", make("-n", "-B", "NVCC=/x/nvcc", "kernels").stdout)

    def test_without_clang_the_fuzzers_are_left_out_in_one_line(self):
        run = make("CLANG=/nonexistent/clang", "fuzzers")
        self.assertEqual(run.returncode, 0)
        self.assertEqual([line for line in run.stdout.splitlines() if line.startswith("skip:")], run.stdout.splitlines())
        self.assertEqual(len(run.stdout.splitlines()), 1)

    def test_what_is_installed_runs_elsewhere_and_finds_its_collector(self):
        folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        install = make("install", f"DESTDIR={folder}/root", "prefix=/usr")
        self.assertEqual(install.returncode, 0, install.stderr)
        program = os.path.join(folder, "root/usr/bin/lacuna")
        self.assertTrue(os.path.isfile(os.path.join(folder, "root/usr/share/doc/lacuna/LICENSE")))
        # moved away from the tree, so that nothing beside it can be found by luck
        alone = os.path.join(folder, "lacuna")
        shutil.move(program, alone)
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder}
        run = subprocess.run([alone, "run", "--quiet", "-o", "job", "--", "/bin/sh", "-c", "exit 7"], cwd=folder, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assertTrue([name for name in os.listdir(os.path.join(folder, "job")) if name.endswith(".spool")])
        demo = subprocess.run([alone, "demo", "series"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        self.assertEqual(demo.returncode, 0, demo.stderr)
        self.assertGreaterEqual(len(os.listdir(os.path.join(folder, "series"))), 6)

    def test_the_program_is_one_file_without_the_libraries_that_have_archives(self):
        needed = subprocess.run(["objdump", "-p", os.path.join(ROOT, "build/release/lacuna")], stdout=subprocess.PIPE, text=True).stdout
        libraries = re.findall(r"NEEDED +(\S+)", needed)
        self.assertTrue(libraries)
        for name in ("libsqlite3", "libzstd", "libjson-c"):
            archive = subprocess.run(["gcc", f"-print-file-name={name}.a"], stdout=subprocess.PIPE, text=True).stdout.strip()
            if archive.startswith("/"):
                self.assertFalse([library for library in libraries if library.startswith(name)], libraries)


class Demonstration(unittest.TestCase):
    """What `make run` does once everything is built."""

    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="lacuna-data-")
        self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)

    def start(self):
        """Runs it on a terminal of its own: only there the key is printed."""
        terminal, ours = os.openpty()
        script = subprocess.Popen(["sh", "tests/tidy/run_demo.sh", "build/release", self.data, "127.0.0.1:0"], cwd=ROOT, text=True,
                                  stdout=ours, stderr=subprocess.PIPE, start_new_session=True)
        os.close(ours)
        said = b""
        try:
            while b"\n  stop" not in said:
                said += os.read(terminal, 4096)
        except OSError:  # the script ended
            pass
        self.addCleanup(os.close, terminal)
        said = said.decode().replace("\r\n", "\n")
        address = re.search(r"^  open +(http://[^/\s]+)/(t/(\w+))?#key=(\w+)$", said, re.M)
        self.assertTrue(address, (said, script.poll() is not None and script.stderr.read()))
        return script, said, address

    def stop(self, script):
        os.killpg(script.pid, signal.SIGINT)  # as Ctrl-C does
        _, errors = script.communicate(timeout=60)
        self.assertEqual(script.returncode, 0, errors)
        return errors

    def ask(self, address, path):
        request = urllib.request.Request(address.group(1) + "/api/v1" + path, headers={"Authorization": "Bearer " + address.group(4)})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def test_a_job_was_recorded_and_pushed_and_without_a_gpu_the_list_opens_with_the_series_on_top(self):
        script, said, address = self.start()
        try:
            self.assertIn("recording an example job", said)
            with open(os.path.join(self.data, "example-recorded"), encoding="ascii") as file:
                example = file.read().strip()
            has_gpu = subprocess.run(["build/release/workload", "--check"], cwd=ROOT, capture_output=True).returncode == 0 \
                if os.path.exists(os.path.join(ROOT, "build/release/workload")) else False
            self.assertEqual(address.group(3), example if has_gpu else None)
            trace = self.ask(address, "/traces/" + example)
            self.assertEqual((trace["project"], trace["format"] if trace["state"] == "ready" else "lacuna"), ("example", "lacuna"))
            self.assertIsNotNone(trace["clock"])  # only what was pushed knows how the clocks stand
            listed = self.ask(address, "/traces?limit=100")["traces"]
            self.assertEqual([row["project"] for row in listed], ["series"] * 6 + ["example"])
        finally:
            errors = self.stop(script)
        self.assertIn("The training process waits", errors)  # the verdict of the job
        script, said, again = self.start()
        self.stop(script)
        self.assertNotIn("recording", said)
        self.assertEqual(again.group(3), address.group(3))


class Tree(unittest.TestCase):
    def test_nothing_names_a_place_outside_the_repository_but_the_traces(self):
        # where this checkout lies and whose home this is: neither may stand in a file
        places = [place + "/" for place in (ROOT, os.path.dirname(ROOT), os.path.expanduser("~"))
                  if len(place) > 1 and place != tempfile.gettempdir()]  # which many a test names
        patterns = [argument for place in places for argument in ("-e", place)]
        run = subprocess.run(["git", "grep", "-nIF", *patterns, "--", "."], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
