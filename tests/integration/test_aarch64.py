#!/usr/bin/env python3
"""The collector for aarch64, cross-built: what its files ask of the machine that loads them, and the collector at work under qemu-user."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/aarch64")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
LIBRARY, NODE, EXTENSION = (os.path.join(BUILD, name) for name in ("liblacuna.so", "lacuna-node", "python/_lacuna.abi3.so"))
PREFIX = "/usr/aarch64-linux-gnu"
QEMU = shutil.which("qemu-aarch64")
COMPILER = shutil.which("aarch64-linux-gnu-gcc")
CUDA = "/usr/local/cuda/include"
PAGE_BYTES = 65536  # the largest that an aarch64 kernel uses

# sizes and places that a record of each kind has in NVIDIA's headers, as numbers in a section of their own
LAYOUTS = textwrap.dedent("""
    #include <cupti.h>
    #include <stddef.h>
    #define OF(type, member) sizeof(type), offsetof(type, member)
    __attribute__((section("layouts"), used)) static const size_t places[] = {
        OF(CUpti_ActivityKernel4, correlationId), OF(CUpti_ActivityKernel5, graphNodeId), OF(CUpti_ActivityKernel9, graphId),
        OF(CUpti_ActivityMemcpy4, graphNodeId), OF(CUpti_ActivityMemcpy5, graphId), OF(CUpti_ActivityMemset4, graphId),
        OF(CUpti_ActivityMemory3, bytes), OF(CUpti_ActivitySynchronization, correlationId), OF(CUpti_ActivityOverhead2, end),
        OF(CUpti_ActivityAPI, correlationId), OF(CUpti_ActivityGraphTrace, graphId), OF(CUpti_ActivityGraphTrace2, streamId),
        OF(CUpti_ActivityExternalCorrelation, correlationId), OF(CUpti_ActivityDevice5, name), OF(CUpti_ActivityStream, streamId)};
""")


def tool(*arguments):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True, timeout=60).stdout


class Files(unittest.TestCase):
    """Neither needs the machine: they are read."""

    def setUp(self):
        if not os.path.exists(NODE):
            self.skipTest("build/aarch64 is not built")

    def test_are_for_aarch64_and_need_nothing_newer_than_glibc_2_17(self):
        for path in (LIBRARY, NODE, EXTENSION):
            with self.subTest(path):
                self.assertIn("AArch64", tool("readelf", "-h", path))
                versions = re.findall(r"GLIBC_([0-9.]+)", tool("readelf", "-VW", path))
                self.assertTrue(versions)
                self.assertEqual(set(versions), {"2.17"}, "the first glibc that ran on aarch64")
                needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", tool("readelf", "-dW", path)))
                self.assertIn("libdl.so.2", needed)  # where dlopen() was before glibc 2.34
                self.assertLessEqual(needed, {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"})

    def test_are_mapped_by_kernels_with_pages_of_64_kib(self):
        for path in (LIBRARY, NODE, EXTENSION):
            with self.subTest(path):
                segments = [line.split() for line in tool("readelf", "-lW", path).splitlines() if line.strip().startswith("LOAD")]
                self.assertGreaterEqual(len(segments), 2)
                for segment in segments:
                    offset, address = int(segment[1], 16), int(segment[2], 16)
                    self.assertGreaterEqual(int(segment[-1], 16), PAGE_BYTES)
                    self.assertEqual(offset % PAGE_BYTES, address % PAGE_BYTES)

    def test_records_of_cupti_lie_where_they_lie_on_x86_64(self):
        if not os.path.exists(os.path.join(CUDA, "cupti.h")):
            self.skipTest("no cupti.h on this machine: layouts of records are not compared")
        layouts = {}
        with tempfile.TemporaryDirectory(prefix="lacuna-test-") as folder:
            source, made, bytes_of = (os.path.join(folder, name) for name in ("layouts.c", "layouts.o", "layouts"))
            with open(source, "w", encoding="utf-8") as file:
                file.write(LAYOUTS)
            for prefix in ("", "aarch64-linux-gnu-"):
                tool(prefix + "gcc", "-isystem", CUDA, "-c", source, "-o", made)
                tool(prefix + "objcopy", "-O", "binary", "--only-section=layouts", made, bytes_of)
                with open(bytes_of, "rb") as file:
                    layouts[prefix] = file.read()
        self.assertEqual(len(layouts[""]), 30 * 8)
        self.assertEqual(layouts[""], layouts["aarch64-linux-gnu-"])


@unittest.skipUnless(QEMU, "no qemu-aarch64")
class AtWork(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(NODE):
            self.skipTest("build/aarch64 is not built")
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")},
                            "QEMU_LD_PREFIX": PREFIX, "TMPDIR": self.folder, "HOME": self.folder}

    def node(self, *arguments, status=0, **settings):
        run = subprocess.run([QEMU, NODE, *arguments], cwd=self.folder, env={**self.environment, **settings}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def slices(self, job):
        """How many slices each name has, as this machine's program reads the recording."""
        out = os.path.join(self.folder, "out.json")
        tool(LACUNA, "export", os.path.join(self.folder, job), "--to", "chrome", "-o", out)
        counts = {}
        with open(out, encoding="utf-8") as file:
            for event in json.load(file)["traceEvents"]:
                if event.get("ph") == "X":
                    counts[event["name"]] = counts.get(event["name"], 0) + 1
        return counts

    def test_run_records_a_job_and_its_forked_workers_as_on_this_machine(self):
        job = ["--cpu", "--steps", "12", "--workers", "2", "--fetch-ms", "2", "--batch", "2"]
        self.node("run", "-o", "theirs", "--", QEMU, os.path.join(BUILD, "workload-cpu"), *job)
        subprocess.run([LACUNA, "run", "-o", "ours", "--", os.path.join(ROOT, "build/release/workload-cpu"), *job], cwd=self.folder,
                       env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=120)
        theirs, ours = self.slices("theirs"), self.slices("ours")
        self.assertEqual(theirs.get("loader.fetch"), ours.get("loader.fetch"))
        self.assertGreaterEqual(theirs.get("loader.fetch", 0), 12)
        self.assertEqual(theirs, ours)
        processes = [name for name in os.listdir(os.path.join(self.folder, "theirs")) if re.fullmatch(r"\d+-\d+-\d\.spool", name)]
        self.assertEqual(len(processes), 3, "the training process and two workers")

    def test_run_passes_the_exit_status_on(self):
        self.node("run", "-o", "job", "--", "/bin/sh", "-c", "exit 7", status=7)

    def test_env_and_gather_record_without_the_launcher_as_parent(self):
        os.mkdir(os.path.join(self.folder, "spools"))
        printed = self.node("env", "--spool", os.path.join(self.folder, "spools")).stdout
        settings = dict(re.findall(r"^export (\w+)='?([^'\n]*?)'?$", printed, re.M))
        self.assertEqual(settings.get("NVTX_INJECTION64_PATH"), LIBRARY)
        # the shell of this machine cannot load a library of another one: only the job gets the variables
        job = [QEMU]
        for name in ("NVTX_INJECTION64_PATH", "LACUNA_SPOOL", "LACUNA_LIBRARY"):
            job += ["-E", f"{name}={settings[name]}"]
        subprocess.run([*job, os.path.join(BUILD, "workload-cpu"), "--cpu", "--steps", "5", "--workers", "1", "--fetch-ms", "2"], cwd=self.folder,
                       env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=120)
        self.node("gather", "spools", "-o", "gathered")
        self.assertEqual(self.slices("gathered").get("loader.fetch"), 5)
        shown = self.node("show", "gathered").stdout
        self.assertIn("clock monotonic", shown)
        self.assertIn("loader.fetch", shown)

    def test_the_hooks_extension_records_through_the_library(self):
        self.node("run", "-o", "job", "--", QEMU, os.path.join(BUILD, "aarch64_job"), "extension", EXTENSION)
        counts = self.slices("job")
        self.assertEqual((counts.get("loader.fetch"), counts.get("read")), (100, 100))
        self.assertIn("machine=aarch64", self.node("show", "job").stdout)

    def test_gpu_records_come_through_cupti(self):
        stand_in = os.path.join(BUILD, "stand_in/libcupti_stand_in.so")
        self.node("run", "-o", "job", "--", QEMU, os.path.join(BUILD, "aarch64_job"), "cupti", stand_in, "3000")
        said = json.loads(tool(LACUNA, "analyze", "--json", os.path.join(self.folder, "job")))
        self.assertEqual(said["kernels"]["count"], 3000)

    def test_push_runs_and_says_what_it_lacks(self):
        self.node("run", "--quiet", "-o", "job", "--", "/bin/true")
        run = self.node("push", "job", "--server", "http://127.0.0.1:9", LACUNA_LIBCURL="/nonexistent", LACUNA_TOKEN="x", status=1)
        self.assertIn("cannot be loaded, nothing was sent", run.stderr)
        self.assertIn("'http://127.0.0.1:9/api/v1/traces?name=job'", run.stderr)


if __name__ == "__main__":
    if not COMPILER:
        print("skip: no aarch64-linux-gnu-gcc, the collector for aarch64 is neither built nor tried")
        print("0 passed, 0 failed")
        sys.exit(0)
    if not QEMU:
        print("skip: no qemu-aarch64, the collector for aarch64 is built and not run")
    result = unittest.main(exit=False, verbosity=0).result
    for _, reason in result.skipped:
        if QEMU:
            print(f"skip: {reason}")
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(bad > 0)
