#!/usr/bin/env python3
"""Where `lacuna run` records to: patterns in -o, names in batch systems, and launchers that meet in one folder, with and without locks."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
SECONDS = 60
HOST = socket.gethostname().split(".")[0]
BATCH = ("SLURM_", "PBS_", "LSB_", "OMPI_", "PMI_", "LACUNA_", "TORCHELASTIC_", "FLUX_", "SGE_", "COBALT_")
RANKS = {"RANK", "WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "MASTER_ADDR"}

# A file system that knows no locks, as Lustre mounted without flock: that of the recordings' folders, not that of temporary files.
NO_LOCKS = r"""
    #include <errno.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    int flock(int file, int operation);
    int flock(int file, int operation)
    {
        struct stat status;
        if (fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
            errno = ENOSYS;
            return -1;
        }
        return (int)syscall(SYS_flock, file, operation);
    }
    int rename(const char *from, const char *to)
    {
        const int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
        usleep(getenv("AFTER_RENAME_US") != NULL ? (useconds_t)atoi(getenv("AFTER_RENAME_US")) : 0);
        return result;
    }
    int mkdir(const char *path, mode_t mode)
    {
        const int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), problem = errno;
        usleep(getenv("AFTER_MKDIR_US") != NULL ? (useconds_t)atoi(getenv("AFTER_MKDIR_US")) : 0);
        errno = problem;
        return result;
    }
"""


class Names(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.work = os.path.join(self.folder, "work")
        self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.work)
        os.mkdir(self.temporary)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(BATCH) and name not in RANKS}
        self.environment["TMPDIR"] = self.temporary

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_node(self, *options, command=("true",), **environment):
        run = subprocess.run([NODE, "run", *options, "--", *command], cwd=self.work, env={**self.environment, **environment}, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        return run

    def recorded(self):
        """Folders that a launcher recorded into, relative to where it ran."""
        return sorted(os.path.relpath(path, self.work) for path, _, names in os.walk(self.folder) if any(name.endswith(".spool") for name in names))

    def test_patterns_are_filled_in(self):
        job = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "WHERE": "a/b"}
        for asked, expected, environment in (
                ("o-%h", f"o-{HOST}", {}),
                ("o-%j-%t", "o-77-3", job),
                ("o-%j", "o-70_4", {"SLURM_JOB_ID": "77", "SLURM_ARRAY_JOB_ID": "70", "SLURM_ARRAY_TASK_ID": "4"}),
                ("o-%j", "o-12-pbs", {"PBS_JOBID": "12/pbs"}),
                ("%q{WHERE}/%t/100%%", "a/b/0/100%", {"WHERE": "a/b"}),
                ("o-%j", "o-77/task-3", job),
                ("o-%t/", "o-5", {"RANK": "5", "WORLD_SIZE": "8"}),
                ("plain", "plain/rank-5", {"RANK": "5", "WORLD_SIZE": "8"})):
            run = self.run_node("-o", asked, **environment)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.recorded(), [expected], (asked, run.stderr))
            shutil.rmtree(self.work)
            os.mkdir(self.work)
        run = self.run_node("-o", "o-%p")
        self.assertRegex(self.recorded()[0], r"^o-[1-9]\d*$")

    def test_what_has_no_value_is_said(self):
        run = self.run_node("-o", "o-%j-%q{NOTHING_OF_THE_KIND}")
        self.assertEqual(self.recorded(), ["o-none-none"])
        self.assertIn('%j has no value here and becomes "none"', run.stderr)
        self.assertIn('%q{NOTHING_OF_THE_KIND} has no value here', run.stderr)

    def test_an_unknown_pattern_is_wrong_usage(self):
        for asked in ("o-%", "o-%x", "o-%q", "o-%q{}", "o-%q{A", "%H", "%q{" + "A" * 300 + "}"):
            run = self.run_node("-o", asked, command=("touch", "ran"))
            self.assertEqual(run.returncode, 2, asked)
            self.assertIn("unknown pattern %", run.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.work, "ran")))

    def test_a_name_that_is_too_long_leaves_the_job_alone(self):
        run = self.run_node("-o", "%q{LONG}", LONG="x" * 5000)
        self.assertEqual(run.returncode, 0)
        self.assertIn("the job runs unrecorded", run.stderr)

    def test_arrays_restarts_and_hosts_are_in_the_default_name(self):
        array = {"SLURM_JOB_ID": "78", "SLURM_ARRAY_JOB_ID": "70"}
        for expected, environment in (
                ("true-slurm-78.lacuna", {"SLURM_JOB_ID": "78"}),
                ("true-slurm-78.lacuna", {"SLURM_JOB_ID": "78", "SLURM_RESTART_COUNT": "0"}),
                ("true-slurm-78-restart2.0.lacuna", {"SLURM_JOB_ID": "78", "SLURM_RESTART_COUNT": "2", "SLURM_STEP_ID": "0"}),
                ("true-slurm-70_1.lacuna", {**array, "SLURM_ARRAY_TASK_ID": "1"}),
                ("true-slurm-70_2.0.lacuna/task-1", {**array, "SLURM_ARRAY_TASK_ID": "2", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}),
                ("true-lsf-9_3.lacuna", {"LSB_JOBID": "9", "LSB_JOBINDEX": "3"}),
                ("true-lsf-9.lacuna", {"LSB_JOBID": "9", "LSB_JOBINDEX": "0"}),
                ("true-torchrun-x.lacuna", {"TORCHELASTIC_RUN_ID": "x"})):
            self.run_node(**environment)
            self.assertEqual(self.recorded(), [expected], environment)
            shutil.rmtree(self.work)
            os.mkdir(self.work)
        for environment in ({"MASTER_ADDR": "node1"}, {"GROUP_RANK": "0"}):
            self.run_node(**environment)
            self.assertRegex(self.recorded()[0], r"^true-\d{8}-\d{6}-" + re.escape(HOST) + r"\.lacuna$")
            shutil.rmtree(self.work)
            os.mkdir(self.work)
        self.run_node()
        self.assertRegex(self.recorded()[0], r"^true-\d{8}-\d{6}\.lacuna$")

    # ---- several launchers

    def start(self, **environment):
        return subprocess.Popen([NODE, "run", "-o", "out", "--", "sh", "-c", "echo up; read line"], cwd=self.work, env={**self.environment, **environment},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def meet(self, environments):
        """Launchers that start at once: what each said. Their jobs end when all have begun."""
        jobs = [self.start(**environment) for environment in environments]
        for job in jobs:
            self.assertEqual(job.stdout.readline(), "up\n", "" if job.poll() is None else job.stderr.read())
        said = [job.communicate("\n", timeout=SECONDS)[1] for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [0] * len(jobs), said)
        return said

    def test_launchers_that_start_at_once_never_share_a_folder(self):
        self.meet([{}] * 8)
        self.assertEqual(self.launchers_in(self.recorded()), [1] * 8)

    def launchers_in(self, folders):
        return [sum(name.startswith("node-") for name in os.listdir(os.path.join(self.work, folder))) for folder in folders]

    def without_locks(self):
        source, library = os.path.join(self.folder, "locks.c"), os.path.join(self.folder, "locks.so")
        with open(source, "w") as file:
            file.write(NO_LOCKS)
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True, timeout=SECONDS)
        return {"LD_PRELOAD": library}

    def test_nor_where_the_file_system_knows_no_locks(self):
        none = self.without_locks()
        self.meet([none] * 8)
        self.assertEqual(self.launchers_in(self.recorded()), [1] * 8)
        self.meet([none] * 8)  # into a folder that is there already: one of them moves it away
        recorded = self.recorded()
        self.assertEqual(len(recorded), 16)
        self.assertEqual(self.launchers_in(recorded), [1] * 16)

    def test_ranks_without_locks_share_the_folder_and_not_what_was_in_it(self):
        none = self.without_locks()
        self.assertEqual(self.run_node("-o", "out", **none).returncode, 0)
        self.meet([{**none, "RANK": str(rank), "WORLD_SIZE": "6"} for rank in range(6)])
        self.assertEqual(self.recorded(), ["out.old"] + [f"out/rank-{rank}" for rank in range(6)])

    def test_launchers_go_on_where_another_has_just_moved_the_folder_away(self):
        none = self.without_locks()
        for rank, expected in (({"RANK": "0", "WORLD_SIZE": "2"}, ["out.old", "out/rank-0", "out/rank-1"]), ({}, None)):
            self.assertEqual(self.run_node("-o", "out").returncode, 0)
            # the first finds the folder; while it looks away the second moves that away, and there is none for a second
            said = self.meet([{**none, **rank, "AFTER_MKDIR_US": "500000"}, {**none, **rank, **({"RANK": "1"} if rank else {}), "AFTER_RENAME_US": "1000000"}])
            self.assertNotIn("cannot make", "".join(said))
            recorded = self.recorded()
            self.assertEqual(len(recorded), 3, said)
            self.assertIn(expected, (None, recorded))
            shutil.rmtree(self.work)
            os.mkdir(self.work)

    def test_a_recording_that_ranks_still_make_is_not_moved_away(self):
        rank = self.start(RANK="0", WORLD_SIZE="2")
        self.assertEqual(rank.stdout.readline(), "up\n")
        self.assertEqual(self.run_node("-o", "out").returncode, 0)
        rank.communicate("\n", timeout=SECONDS)
        self.assertEqual(self.recorded(), ["out-2", "out/rank-0"])

    def test_what_a_killed_launcher_left_is_said_where_its_recording_was(self):
        job = self.start()
        self.assertEqual(job.stdout.readline(), "up\n")
        end = time.monotonic() + SECONDS
        while not self.recorded():
            self.assertLess(time.monotonic(), end)
        job.send_signal(signal.SIGKILL)
        job.communicate(timeout=SECONDS)
        with open(os.path.join(self.work, "out", ".lacuna-launcher")) as file:
            spools = re.search(r"^spools (.*)$", file.read(), re.M).group(1)
        end = time.monotonic() + SECONDS
        while True:  # its lock ends with the last process that holds it
            run = self.run_node("-o", "out")
            if "is now in" in run.stderr:
                break
            self.assertLess(time.monotonic(), end, run.stderr)
            shutil.rmtree(os.path.join(self.work, "out-2"))
        self.assertRegex(run.stderr, r"the recording that was in out is now in out.old\n")
        self.assertIn("out", self.recorded())
        if os.path.exists(spools):  # nothing was recorded there, so the next launcher may have swept it
            self.assertIn("to keep the rest of it: lacuna gather out.old\n", run.stderr)

    def test_a_folder_that_a_launcher_elsewhere_holds_is_left_alone(self):
        os.mkdir(os.path.join(self.work, "out"))
        with open(os.path.join(self.work, "out", ".lacuna-launcher"), "w") as file:
            file.write("lacuna-launcher 1\nhost somewhere-else\npid 7\nstart 1\nboot x\npid_space pid:[1]\nspools /tmp/x\n")
        run = self.run_node("-o", "out")
        self.assertEqual(self.recorded(), ["out-2"])
        self.assertIn("a launcher on somewhere-else (process 7) records into out", run.stderr)

    def test_a_note_that_says_nothing_belongs_to_nobody(self):
        os.mkdir(os.path.join(self.work, "out"))
        for content in (b"", b"\0" * 100, b"lacuna-launcher 1\npid x\n"):
            with open(os.path.join(self.work, "out", ".lacuna-launcher"), "wb") as file:
                file.write(content)
            self.assertEqual(self.run_node("-o", "out").returncode, 0)
            self.assertEqual(self.recorded(), ["out"])
            shutil.rmtree(os.path.join(self.work, "out"))
            os.mkdir(os.path.join(self.work, "out"))


if __name__ == "__main__":
    unittest.main()
