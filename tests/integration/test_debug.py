#!/usr/bin/env python3
"""LACUNA_DEBUG through the real launcher, on one job that has everything: NVTX, the hook's interface with a loader worker,
a fork, CUPTI (the stand-in). Each level shows its lines and those below, 0 shows nothing, and the job stays as it is."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from server_harness import ROOT, main

BUILD = os.path.join(ROOT, "build/release")
NODE = os.path.join(BUILD, "lacuna-node")
STAND_IN = os.path.join(BUILD, "stand_in/libcupti_stand_in.so")
LINE = re.compile(r"lacuna: \d\d:\d\d:\d\d\.\d{6} \[\d+\] ([a-z]+): \S.*")

JOB = textwrap.dedent('''
    import ctypes, os, sys
    class Api(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32),
                    ("push", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int32)),
                    ("pop", ctypes.CFUNCTYPE(None, ctypes.c_int64)),
                    ("setting", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t))]
    library = ctypes.CDLL(os.environ["LACUNA_LIBRARY"])
    library.lacuna_get_api.restype = ctypes.POINTER(Api)
    api = library.lacuna_get_api().contents
    def record(name, worker):
        api.push(name, len(name), 5, worker)
        api.pop(-1)
    api.setting(b"num_workers=1", 13)
    record(b"a\\nname", -1)
    cupti = ctypes.CDLL(os.environ["LACUNA_CUPTI"])
    library.InitializeInjection()
    cupti.stand_in_deliver(3, 1, 7)  # three launches; CUPTI says that it dropped 7 records
    child = os.fork()
    if child == 0:
        record(b"loader.fetch", 3)
        os._exit(0)
    os.waitpid(child, 0)
    print("the job's own output")
    sys.exit(5)
''')

# level at which a line first appears, and what it looks like
LINES = [
    (1, r"launch: from \S+ into \S+"),
    (1, r"launch: \S+ runs as \d+"),
    (1, r"launch: the job has ended with status 5"),
    (1, r"process: loaded by \S+, child of \d+; records into /"),
    (1, r"spool: /\S+\.spool, segments of 256 KiB"),
    (1, r"hook: worker 3 of the data loader"),
    (1, r"cupti: \S+libcupti_stand_in\.so, API version 26"),
    (1, r"cupti: \S+libcupti_stand_in\.so: no function cuptiActivityEnableRuntimeApi"),
    (1, r"cupti: gpu_recording=full"),
    (1, r"cupti: CUPTI dropped 7 records"),
    (1, r"gather: \S+\.spool of process \d+ goes into"),
    (1, r"gather: 2 processes, \d+ segments, 7 events lost"),
    (1, r"sample: host\.cores_online=\d+"),
    (2, r"process: forked by \d+, fork 1 since exec"),
    (2, r"spool: segment 0 is new"),
    (2, r"names: room for \d+ names"),
    (2, r"hook: num_workers=1"),
    (2, r"cupti: kind 10: result 0"),
    (2, r"cupti: a buffer is handed out; there are 1"),
    (2, r"cupti: a buffer came back: \d+ bytes, \d+ records"),
    (2, r"gather: \S+\.spool: segment 0 is drained"),
    (3, r"process: thread \d+ records"),
    (3, r"names: new: a\\x0aname"),
    (3, r"hook: loader\.fetch, batch 5"),
    (3, r"spool: 7 lost"),
]


class Debug(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.job = os.path.join(self.folder, "job.py")
        with open(self.job, "w") as file:
            file.write(JOB)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_job(self, wish, *command, **kwargs):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LACUNA_")}
        environment["LACUNA_CUPTI"] = STAND_IN
        environment["LACUNA_PROGRAM"] = ""  # without a verdict behind it
        if wish is not None:
            environment["LACUNA_DEBUG"] = wish
        kwargs.setdefault("stderr", subprocess.PIPE)
        run = subprocess.run([NODE, "run", "-o", os.path.join(self.folder, "out"), "--", *(command or (sys.executable, "-S", self.job))],
                             stdout=subprocess.PIPE, text=True, timeout=300, cwd=self.folder, env=environment, **kwargs)
        shutil.rmtree(os.path.join(self.folder, "out"), ignore_errors=True)
        return run

    def shown(self, run):
        """The lines of LACUNA_DEBUG, without time and process."""
        return [line.split("] ", 1)[1] for line in run.stderr.splitlines() if LINE.fullmatch(line)]

    def test_each_level_shows_its_lines_and_those_below(self):
        for level in range(4):
            run = self.run_job(str(level))
            shown = self.shown(run)
            self.assertEqual((run.returncode, run.stdout), (5, "the job's own output\n"))
            for first, pattern in LINES:
                found = [line for line in shown if re.match(pattern, line)]
                self.assertEqual(bool(found), first <= level, f"level {level}: {pattern} in:\n" + "\n".join(shown))
            if level == 0:
                self.assertEqual(shown, [])

    def test_without_it_all_is_as_with_level_0(self):
        said = [re.sub(r"\d+", "N", self.run_job(wish).stderr) for wish in (None, "", "0", "spool:0,cupti:0")]
        self.assertEqual(said, [said[0]] * 4)

    def test_areas_are_shown_alone(self):
        areas = {line.split(":")[0] for line in self.shown(self.run_job("spool:2,launch:1"))}
        self.assertEqual(areas, {"spool", "launch"})

    def test_a_wrong_value_is_told_once_for_the_whole_job(self):
        for wish in ("9", "spool:1,gpu:2"):
            run = self.run_job(wish)
            self.assertEqual(run.returncode, 5)
            self.assertEqual(run.stderr.count("LACUNA_DEBUG"), 1, run.stderr)
            self.assertEqual(self.shown(run), [])

    def test_why_cupti_is_not_attached(self):
        missing = os.path.join(self.folder, "libcupti.so")
        job = f"import os; os.environ['LACUNA_CUPTI'] = {missing!r}; import ctypes; " \
              "ctypes.CDLL(os.environ['LACUNA_LIBRARY']).InitializeInjection()"
        shown = self.shown(self.run_job("cupti:1", sys.executable, "-S", "-c", job))
        self.assertTrue(any("no libcupti can be used" in line and missing in line for line in shown), shown)

    def test_a_limit_that_is_reached_is_told(self):
        job = "import ctypes, os; os.environ['LACUNA_SPOOL_LIMIT'] = '1k'\n" + JOB.split("api.setting")[0] + "record(b'x', -1)\n"
        shown = self.shown(self.run_job("spool:2", sys.executable, "-S", "-c", job))
        self.assertIn("spool: no segment 0: the limit is reached", shown)

    def test_a_full_table_of_names_is_told_once(self):
        job = JOB.split("api.setting")[0] + "setting = api.setting\nfor i in range((1 << 20) + 9): setting(b'%08d' % i, 8)\n"
        shown = self.shown(self.run_job("names:1", sys.executable, "-S", "-c", job))
        self.assertRegex("\n".join(shown), r"\Anames: the table is full with 1048576 names; the first without a place: 01048576\Z")

    def test_stderr_may_be_closed_or_nobody_reads_it(self):
        run = self.run_job("3", "sh", "-c", f"exec 2>&-; exec {sys.executable} -S {self.job}")
        self.assertEqual((run.returncode, run.stdout), (5, "the job's own output\n"))
        closed = self.run_job("3", stderr=None, preexec_fn=lambda: os.close(2))
        self.assertEqual((closed.returncode, closed.stdout), (5, "the job's own output\n"))
        ends = os.pipe()
        os.close(ends[0])
        try:
            unread = self.run_job("3", stderr=ends[1])
        finally:
            os.close(ends[1])
        self.assertEqual((unread.returncode, unread.stdout), (5, "the job's own output\n"))

    def test_files_of_the_job_stay_its_own(self):
        """A job that closes all it does not know, standard error too, and opens files in their place."""
        job = JOB.replace("record(b\"a", "os.closerange(2, 2048)\nfiles = [os.open('file', os.O_RDWR | os.O_CREAT) for i in range(1100)]\nrecord(b\"a")
        run = self.run_job("3", sys.executable, "-S", "-c", "import resource; limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; "
                           "resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 4096), limit))\n" + job)
        self.assertEqual(run.returncode, 5, run.stderr)
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "file")), 0)

    def test_tries_of_an_upload_are_told(self):
        path = os.path.join(self.folder, "trace.json")
        with open(path, "w") as file:
            file.write("[]")
        push = subprocess.Popen([NODE, "push", path, "--server", "http://127.0.0.1:1"], stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "LACUNA_DEBUG": "push:2", "LACUNA_TOKEN": "secret-token"})
        with push:
            shown = [line.split("] ", 1)[1] for line in push.stderr if LINE.fullmatch(line.rstrip("\n"))]
        text = "".join(shown)
        if "is loaded" not in text:
            self.skipTest("no libcurl")
        self.assertRegex(text, r"push: POST http://127\.0\.0\.1:1/api/v1/uploads, 0 bytes: 0 ")
        self.assertIn("push: try 1 failed; again in 250 ms\n", shown)
        self.assertIn("push: try 2 failed; again in 500 ms\n", shown)
        self.assertNotIn("secret-token", text)


if __name__ == "__main__":
    main()
