#!/usr/bin/env python3
"""Very many recorded processes, and ones that harm their own spools: nothing is lost without a word.

tests/attack/area_processes.py does the same with thousands.
"""
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
SOURCES = [os.path.join(ROOT, name) for name in ("tests/integration/short_processes.c", "kernels/ranges.c")]
SEGMENT_BYTES, SEGMENT_COUNT, HEADER_BYTES = 20, 88, 8192  # offsets in a spool's header, and its size

SCRIBBLE = textwrap.dedent("""
    import mmap, os, shutil, struct, sys, time
    spool = os.path.join(os.environ["LACUNA_SPOOL"], "4000000-1-0.spool")
    shutil.copyfile(sys.argv[1], spool + ".new")
    with open(spool + ".new", "r+b") as file:
        file.seek(28)
        file.write(struct.pack("<i", os.getpid()))
    os.rename(spool + ".new", spool)
    deadline = time.monotonic() + 60
    while not os.path.exists(sys.argv[3]) and time.monotonic() < deadline:
        time.sleep(0.01)
    with open(spool, "r+b") as file:
        header = mmap.mmap(file.fileno(), 8192)
        end = time.monotonic() + float(sys.argv[2])
        while time.monotonic() < end:
            header[20:24] = struct.pack("<I", 64 << 20)
            header[88:96] = struct.pack("<Q", 1 << 48)
            header[240:256] = struct.pack("<QQ", 1 << 63, 1 << 62)
            header[20:24] = struct.pack("<I", 65536 * 4)
        if sys.argv[4] == "cut":
            os.truncate(spool, 0)
            time.sleep(0.3)
    sys.exit(5)
""")


class ManyProcesses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tools = tempfile.mkdtemp(prefix="lacuna-test-")
        cls.job = os.path.join(cls.tools, "short_processes")
        subprocess.run(["gcc", "-O1", "-iquote", ROOT, *SOURCES, "-o", cls.job, "-ldl"], check=True, timeout=60)
        made = os.path.join(cls.tools, "made")
        os.mkdir(made)
        printed = subprocess.run([NODE, "env", "--spool", made], stdout=subprocess.PIPE, check=True, text=True, timeout=60).stdout
        subprocess.run(["sh", "-c", f"{printed}\n{cls.job} one 7"], check=True, timeout=60)
        cls.spool = os.path.join(made, os.listdir(made)[0])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tools, ignore_errors=True)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.out = os.path.join(self.folder, "out")
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary, 0o777)
        os.chmod(self.folder, 0o777)
        os.chmod(self.temporary, 0o777)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_node(self, *arguments, files=None, memory=None, user=None):
        def limit():
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, files)
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if user is not None:
                os.setuid(user)

        return subprocess.run([NODE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, preexec_fn=limit,
                              text=True, errors="replace", cwd=self.folder, env={**os.environ, "TMPDIR": self.temporary})

    def recorded(self, folder=None):
        """The numbers that the processes of the recording named their ranges by."""
        shown = self.run_node("show", folder or self.out)
        return sorted(int(number) for number in re.findall(r"^    process (\d+)$", shown.stdout, re.MULTILINE))

    def left_behind(self):
        return [name for name in os.listdir(self.temporary) if name.startswith("lacuna-")]

    def check_all_recorded(self, mode, count):
        run = self.run_node("run", "--quiet", "-o", self.out, "--", self.job, mode, str(count), files=(64, 64))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.recorded(), list(range(count)))
        self.assertEqual(self.left_behind(), [])

    def test_more_processes_in_a_row_than_descriptors_are_all_recorded(self):
        self.check_all_recorded("row", 200)

    def test_more_forked_processes_than_descriptors_are_all_recorded(self):
        self.check_all_recorded("fork", 200)

    def test_more_processes_at_once_than_descriptors_are_all_recorded(self):
        self.check_all_recorded("together", 120)

    def test_the_jobs_limit_of_open_files_stays_as_it_was(self):
        run = self.run_node("run", "--quiet", "-o", self.out, "--", self.job, "limits", files=(100, 200))
        self.assertEqual(run.stdout, "100 200\n")

    def test_more_spools_than_descriptors_are_gathered(self):
        spools = os.path.join(self.folder, "spools")
        os.mkdir(spools)
        for number in range(150):
            shutil.copyfile(self.spool, os.path.join(spools, f"{number}-1-0.spool"))
        run = self.run_node("gather", spools, "-o", self.out, files=(40, 40))
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("150 processes", run.stdout)
        self.assertEqual(self.recorded(), [7] * 150)

    def damaged(self, offset, value):
        spools = os.path.join(self.folder, "spools")
        os.makedirs(spools, exist_ok=True)
        shutil.copyfile(self.spool, os.path.join(spools, "1-1-0.spool"))
        with open(os.path.join(spools, "1-1-0.spool"), "r+b") as file:
            file.seek(offset)
            file.write(value)
        return spools

    def test_a_count_of_segments_that_is_not_true_costs_nothing(self):
        spools = self.damaged(SEGMENT_COUNT, struct.pack("<Q", 1 << 48))
        run = self.run_node("gather", spools, "-o", self.out, memory=256 << 20)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.recorded(), [7])

    def test_what_is_no_spool_is_said(self):
        spools = self.damaged(SEGMENT_BYTES, struct.pack("<I", 64 << 20))
        shutil.copyfile(self.spool, os.path.join(spools, "2-1-0.spool"))
        run = self.run_node("gather", spools, "-o", self.out)
        self.assertEqual(run.returncode, 0)
        self.assertIn("lacuna gather: 1 files named .spool are not spools", run.stderr)

    def test_a_job_that_scribbles_on_its_spool_harms_only_its_recording(self):
        script = os.path.join(self.folder, "scribble.py")
        with open(script, "w") as file:
            file.write(SCRIBBLE)
        output = os.path.join(self.out, "4000000-1-0.spool")
        for end in ("keep", "cut"):  # what of the file is left when the job ends
            shutil.rmtree(self.out, ignore_errors=True)
            run = self.run_node("run", "--quiet", "-o", self.out, "--", sys.executable, script, self.spool, "0.7", output, end,
                                memory=1 << 30)
            self.assertEqual(run.returncode, 5, run.stderr)
            self.assertEqual(self.left_behind(), [])
            self.assertEqual(self.recorded(), [7] if end == "keep" else [])
            with open(output, "rb") as file:
                header = file.read(HEADER_BYTES)
            self.assertEqual(struct.unpack_from("<I", header, SEGMENT_BYTES)[0], 256 << 10)

    @unittest.skipIf(os.getuid() != 0, "only root can make a spool that the launcher cannot open")
    def test_a_spool_that_cannot_be_opened_is_said_and_stays(self):
        with tempfile.TemporaryDirectory(prefix="lacuna-test-", dir="/tmp") as tools:  # where nobody may read
            os.chmod(tools, 0o755)
            node = shutil.copy(NODE, tools)
            shutil.copy(os.path.join(os.path.dirname(NODE), "liblacuna.so"), tools)
            spool = shutil.copy(self.spool, os.path.join(tools, "made.spool"))
            os.chmod(spool, 0o644)

            def nobody():
                os.setuid(65534)
            run = subprocess.run([node, "run", "--quiet", "-o", self.out, "--", "sh", "-c",
                                  f"install -m 000 {spool} $LACUNA_SPOOL/9-9-0.spool; cp {spool} $LACUNA_SPOOL/8-8-0.spool"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, preexec_fn=nobody,
                                 cwd=self.folder, env={**os.environ, "TMPDIR": self.temporary})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("lacuna: 1 recorded processes are not in the recording: their spools could not be opened: Permission denied",
                      run.stderr)
        self.assertIn("lacuna: 1 spools were not moved into the recording and stay in ", run.stderr)
        kept = self.left_behind()
        self.assertEqual([os.listdir(os.path.join(self.temporary, name)) for name in kept], [["9-9-0.spool"]])
        self.assertEqual(self.recorded(), [7])

    def test_a_name_cannot_steer_the_terminal(self):
        spools = self.damaged(512, b"comm=\x1b[2J\xc2\x9b31m\xe2\x80\xaeevil\x00")
        os.rename(os.path.join(spools, "1-1-0.spool"), os.path.join(spools, "\x1b]0;x\x07.spool"))
        with open(os.path.join(spools, "\x9b".encode("latin1").decode("utf-8", "surrogateescape") + ".spool"), "w"):
            pass
        run = self.run_node("show", spools)
        self.assertIn("comm=\\x1b[2J\\x9b31m\\u202eevil", run.stdout)
        self.assertIn("\\x1b]0;x\\x07.spool", run.stdout)
        self.assertIn("\\x9b.spool is not a spool", run.stderr)
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ufffd]", run.stdout + run.stderr))


def main():
    result = unittest.main(argv=[sys.argv[0]], exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
