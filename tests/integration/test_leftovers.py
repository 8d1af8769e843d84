#!/usr/bin/env python3
"""What a launcher that was killed leaves, and jobs without one: found, said, gathered, and removed after some days."""
import json
import mmap
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
SECONDS = 60
DAY = 24 * 3600

JOB = textwrap.dedent("""
    import lacuna, sys, time
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        with lacuna.annotate("work"):
            pass
    print("up", flush=True)
    sys.stdin.read()
""")

KILLS = 40 if os.environ.get("LACUNA_SOAK") == "1" else 3
# ends by itself where nobody kills it; counts what it has recorded where a killed process leaves it
COUNTING_JOB = textwrap.dedent("""
    import lacuna, mmap, struct, sys
    with open(sys.argv[1], "r+b") as file:
        done = mmap.mmap(file.fileno(), 8)
    for number in range(1, 3_000_000):
        with lacuna.annotate("work"):
            pass
        done[:] = struct.pack("<Q", number)
        if number == 1:
            print("up", flush=True)
""")


class LeftOver(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.temporary = os.path.join(self.folder, "temporary")
        os.mkdir(self.temporary)
        self.out = os.path.join(self.folder, "out")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "SLURM_", "JOBSCRATCH"))}
        self.environment["TMPDIR"] = self.temporary

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill_one(self, ranges=1, until=lambda: True, **environment):
        """A launcher killed while its job records: the folder of the spools, which holds the rest."""
        launcher = subprocess.Popen([NODE, "run", "--quiet", "-o", self.out, "--", sys.executable, "-c", JOB, str(ranges)], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment})
        self.assertEqual(launcher.stdout.readline(), "up\n")
        end = time.monotonic() + SECONDS
        while not until():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        launcher.send_signal(signal.SIGKILL)
        launcher.communicate(timeout=SECONDS)
        with open(os.path.join(self.out, ".lacuna-launcher")) as file:
            spools = re.search(r"^spools (.*)$", file.read(), re.M).group(1)
        self.assertEqual(os.path.dirname(spools), self.temporary)
        self.wait_until_unused(spools)
        return spools

    def wait_until_unused(self, spools):
        end = time.monotonic() + SECONDS
        while any(self.names(process, spools) for process in os.listdir("/proc") if process.isdigit()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def names(self, process, spools):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                return b"LACUNA_SPOOL=" + spools.encode() in file.read()
        except OSError:
            return False

    def node(self, *arguments, **environment):
        run = subprocess.run([NODE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment},
                             cwd=self.folder, timeout=SECONDS)
        return run

    def make_old(self, spools, days):
        when = time.time() - days * DAY - 3600
        for name in os.listdir(spools):
            os.utime(os.path.join(spools, name), (when, when))
        os.utime(spools, (when, when))

    def run_another(self, **environment):
        run = self.node("run", "-o", os.path.join(self.folder, "another"), "--", "true", **environment)
        self.assertEqual(run.returncode, 0)
        return run.stderr

    def test_the_rest_of_a_killed_launchers_recording_is_found_from_it(self):
        spools = self.kill_one()
        gathered = self.node("gather", self.out + "/")
        self.assertEqual(gathered.returncode, 0, gathered.stderr)
        self.assertIn("out: 1 processes", gathered.stdout)
        self.assertIn("out is whole now", gathered.stdout)
        self.assertIn("work", self.node("show", self.out).stdout)
        self.assertFalse(os.path.exists(spools))
        self.assertFalse(os.path.exists(os.path.join(self.out, ".lacuna-launcher")))
        self.assertNotIn("killed", self.run_another())

    def test_the_rest_is_listed_until_somebody_gathers_it(self):
        spools = self.kill_one()
        end = time.monotonic() + SECONDS
        listed = self.node("gather")
        while f"{spools}  1 spools" in listed.stdout and "still recorded to" in listed.stdout.split(spools)[1].split("\n")[0] and time.monotonic() < end:
            time.sleep(0.05)  # what the launcher started ends a moment after it
            listed = self.node("gather")
        self.assertEqual(listed.returncode, 0)
        self.assertRegex(listed.stdout, re.escape(spools) + r"  1 spools, \d+\.\d MB, its launcher was killed: the end of " + re.escape(self.out))
        self.assertIn(f"  lacuna gather {self.out}\n", listed.stdout)
        self.assertIn(f"to keep them: lacuna gather {self.out}; to remove them: rm -r {spools}", self.run_another())
        self.assertTrue(os.path.exists(spools))
        # another recording may be in that folder by now: then the rest goes beside it
        os.rename(self.out, self.out + "-moved")
        self.assertIn(f"lacuna gather {spools} -o {self.out}-rest\n", self.node("gather").stdout)
        self.assertIn("out-moved is whole now", self.node("gather", self.out + "-moved").stdout)

    def recorded_bytes(self, folder=None):
        folder = folder or self.out
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".spool") and not name.startswith("node-"))

    def count(self, folder):
        run = subprocess.run([LACUNA, "export", folder, "--to", "chrome", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS,
                             env=self.environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        events = json.loads(run.stdout)
        return sum(event.get("name") == "work" for event in (events["traceEvents"] if isinstance(events, dict) else events))

    @unittest.skipUnless(os.path.exists(LACUNA), "lacuna is not built")
    def test_a_recording_without_its_end_says_so(self):
        def missing():
            run = subprocess.run([LACUNA, "analyze", self.out, "--json"], stdout=subprocess.PIPE, text=True, env=self.environment, timeout=SECONDS, check=True)
            return [line for line in json.loads(run.stdout)["not_recorded"] if line.startswith("the end of the job: ")]
        self.kill_one(until=lambda: self.recorded_bytes() > 0)
        self.assertEqual(len(missing()), 1)
        self.assertIn("its launcher was killed, or it still records: `lacuna gather` with this folder adds", missing()[0])
        said = subprocess.run([LACUNA, "analyze", self.out], stdout=subprocess.PIPE, text=True, env=self.environment, timeout=SECONDS, check=True).stdout
        self.assertIn("its launcher was killed, or it still records", " ".join(said.split()))
        page = self.out + ".html"
        subprocess.run([LACUNA, "export", self.out, "--to", "html", "-o", page], stdout=subprocess.DEVNULL, env=self.environment, timeout=SECONDS, check=True)
        with open(page, encoding="utf-8") as file:
            self.assertIn("its launcher was killed, or it still records", file.read())
        self.assertEqual(self.node("gather", self.out).returncode, 0)
        self.assertEqual(missing(), [])
        # of one whose launcher ended it nothing is said, also not by the launcher itself
        self.out += "-whole"
        run = subprocess.run([LACUNA, "run", "-o", self.out, "--", sys.executable, "-c", JOB], input="", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env=self.environment, timeout=SECONDS, check=True)
        self.assertIn("out-whole", run.stderr)
        self.assertNotIn("the end of the job", run.stderr)
        self.assertEqual(missing(), [])

    @unittest.skipUnless(os.path.exists(LACUNA), "lacuna is not built")
    def test_what_the_launcher_moved_and_what_it_left_become_one(self):
        few, all_of_them = 1 << 20, 40000  # 32 bytes each: some of 64 KiB are moved while it runs
        spools = self.kill_one(all_of_them, lambda: self.recorded_bytes() > few, LACUNA_SPOOL_SEGMENT="64k")
        before = self.count(self.out)
        self.assertGreater(before, 0)
        self.assertLessEqual(before, all_of_them)
        # elsewhere, twice, then into a folder that holds what was moved: nothing is lost, nothing is there twice
        copy = shutil.copytree(self.out, self.out + "-copy")
        os.unlink(os.path.join(copy, ".lacuna-launcher"))
        for _ in range(2):
            self.assertEqual(self.node("gather", spools, "-o", copy).returncode, 0)
            self.assertEqual(self.count(copy), all_of_them)
        self.assertTrue(os.path.exists(spools))
        beside = self.out + "-rest"
        self.assertEqual(self.node("gather", spools, "-o", beside).returncode, 0)
        self.assertLessEqual(self.count(beside), all_of_them)  # segments that were moved and not used again are still there
        # a rest that was gathered beside it can still be added
        self.assertEqual(self.node("gather", beside, "-o", self.out).returncode, 0)
        self.assertEqual(self.count(self.out), all_of_them)
        self.assertIn("out is whole now", self.node("gather", self.out).stdout)
        self.assertEqual(self.count(self.out), all_of_them)

    def test_a_note_cannot_have_folders_removed(self):
        spools = self.kill_one()
        mine = os.path.join(self.folder, "mine")
        shutil.copytree(spools, mine)
        os.unlink(os.path.join(mine, "launcher"))
        note = os.path.join(self.out, ".lacuna-launcher")
        with open(note) as file:
            text = file.read().replace(spools, mine)
        with open(note, "w") as file:
            file.write(text)
        self.node("gather", self.out)
        self.assertTrue(any(name.endswith(".spool") for name in os.listdir(mine)))

    def slices_of(self, folder):
        report = subprocess.run([LACUNA, "analyze", "--json", folder], stdout=subprocess.PIPE, text=True, env=self.environment, timeout=SECONDS)
        return json.loads(report.stdout)["trace"]["slice_count"]

    @unittest.skipUnless(os.path.exists(LACUNA), "lacuna is not built")
    def test_a_launcher_killed_at_any_moment_loses_no_range(self):
        for number in range(KILLS):
            counter, self.out = (os.path.join(self.folder, f"{name}-{number}") for name in ("counter", "out"))
            with open(counter, "wb") as file:
                file.write(bytes(8))
            launcher = subprocess.Popen([NODE, "run", "--all", "--quiet", "-o", self.out, "--", sys.executable, "-c", COUNTING_JOB, counter],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**self.environment, "LACUNA_SPOOL_SEGMENT": "64k"})
            self.assertEqual(launcher.stdout.readline(), "up\n")
            time.sleep(random.Random(f"launcher/{number}").random() / 2)
            launcher.send_signal(signal.SIGKILL)
            launcher.communicate(timeout=SECONDS)
            with open(os.path.join(self.out, ".lacuna-launcher")) as file:
                self.wait_until_unused(re.search(r"^spools (.*)$", file.read(), re.M).group(1))
            with open(counter, "rb") as file, mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ) as done:
                recorded = int.from_bytes(done[:8], "little")
            gathered = self.node("gather", self.out + "/")
            self.assertEqual(gathered.returncode, 0, gathered.stderr)
            self.assertGreaterEqual(self.slices_of(self.out), recorded - 1, f"kill {number}")

    @unittest.skipUnless(os.path.exists(LACUNA), "lacuna is not built")
    def test_the_doctor_says_it(self):
        def lines():
            report = subprocess.run([LACUNA, "doctor", "--json", "--data", self.folder], stdout=subprocess.PIPE, text=True, env=self.environment, timeout=SECONDS)
            return [line for line in json.loads(report.stdout)["checks"] if line["id"] == "left-over"]
        self.assertEqual(lines(), [])
        self.kill_one()
        found = lines()
        self.assertEqual(len(found), 1)
        self.assertIn("1 recording in " + self.temporary, found[0]["text"])
        self.assertIn("lacuna gather", found[0]["fix"])

    def test_nothing_left_is_said_too(self):
        if any(name.startswith(f"lacuna-{os.getuid()}-") for name in os.listdir("/tmp")):
            self.skipTest("something of another job is left in /tmp")
        self.assertIn("nothing was left on this host", self.node("gather").stdout)

    def test_recordings_that_still_run_are_not_gathered_by_half(self):
        launcher = subprocess.Popen([NODE, "run", "--quiet", "-o", self.out, "--", sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=self.environment)
        self.assertEqual(launcher.stdout.readline(), "up\n")
        gathered = self.node("gather", self.out)
        self.assertEqual(gathered.returncode, 1)
        self.assertIn("it is still being recorded", gathered.stderr)
        launcher.communicate("", timeout=SECONDS)

    def test_a_rest_on_another_host_is_named(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, ".lacuna-launcher"), "w") as file:
            file.write("lacuna-launcher 1\nhost somewhere-else\npid 7\nstart 1\nboot x\npid_space pid:[1]\nspools /tmp/not/here\n")
        gathered = self.node("gather", self.out)
        self.assertEqual(gathered.returncode, 1)
        self.assertIn("gone, or on another host (launcher on somewhere-else, process 7, spools in /tmp/not/here)", gathered.stderr)

    def test_what_nobody_gathers_goes_after_some_days(self):
        spools = self.kill_one()
        self.make_old(spools, 9)
        self.run_another()
        self.assertTrue(os.path.exists(spools))
        self.make_old(spools, 11)
        self.run_another(LACUNA_KEEP_DAYS="0")
        self.assertTrue(os.path.exists(spools))
        self.run_another(LACUNA_KEEP_DAYS="30")
        self.assertTrue(os.path.exists(spools))
        said = self.run_another()
        self.assertFalse(os.path.exists(spools))
        self.assertRegex(said, f"lacuna: removed {re.escape(spools)}, 1 spools .* in 11 days")

    def test_so_do_spools_of_jobs_without_a_launcher_once_none_uses_them(self):
        printed = self.node("env")
        spools = re.search(r"LACUNA_SPOOL='([^']+)'", printed.stdout).group(1)
        start = ["sh", "-c", printed.stdout + '\nexec "$0" -c "$1"', sys.executable, JOB]
        job = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.assertEqual(job.stdout.readline(), "up\n")
        self.make_old(spools, 20)
        self.run_another()
        self.assertTrue(os.path.exists(spools))  # its job runs
        job.communicate("", timeout=SECONDS)
        self.wait_until_unused(spools)
        self.assertIn("recorded with the variables of lacuna env", self.node("gather").stdout)
        self.make_old(spools, 20)
        said = self.run_another()
        self.assertFalse(os.path.exists(spools), said)

    # ---- recordings that were moved away

    def record(self, **environment):
        run = self.node("run", "-o", "out", "--", "true", **environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr

    def old(self):
        return sorted(name for name in os.listdir(self.folder) if name.startswith("out"))

    def test_old_recordings_are_kept_up_to_a_number(self):
        for _ in range(4):
            said = self.record(LACUNA_OLD_MAX="3")
        self.assertEqual(self.old(), ["out", "out.old", "out.old2", "out.old3"])
        self.assertNotIn("removed", said)
        said = self.record(LACUNA_OLD_MAX="3")
        self.assertRegex(said, r"lacuna: removed the old recording out.old \(\d+\.\d MB\): more are there than LACUNA_OLD_MAX")
        self.assertEqual(self.old(), ["out", "out.old2", "out.old3", "out.old4"])
        self.record(LACUNA_OLD_MAX="0")
        self.assertEqual(len(self.old()), 5)

    def test_and_up_to_a_size(self):
        for _ in range(3):
            self.record()
        with open(os.path.join(self.folder, "out.old", "1-2-0.spool"), "wb") as file:
            file.truncate(5 << 20)
        when = time.time() - 100
        os.utime(os.path.join(self.folder, "out.old"), (when, when))
        said = self.record(LACUNA_OLD_BYTES="4m")
        self.assertIn("removed the old recording out.old (5.", said)
        self.assertIn("they take more than LACUNA_OLD_BYTES", said)
        said = self.record(LACUNA_OLD_BYTES="1")
        self.assertEqual(len(self.old()), 2)  # the newest always stays

    def test_a_folder_with_anything_else_in_it_stays(self):
        for _ in range(3):
            self.record()
        with open(os.path.join(self.folder, "out.old", "notes.txt"), "w") as file:
            file.write("mine")
        os.mkdir(os.path.join(self.folder, "out.old2", "figures"))
        os.mkdir(os.path.join(self.folder, "out.older"))
        for _ in range(3):
            self.record(LACUNA_OLD_MAX="1")
        self.assertEqual(self.old()[:1] + self.old()[1:3], ["out", "out.old", "out.old2"])
        self.assertTrue(os.path.exists(os.path.join(self.folder, "out.old", "notes.txt")))
        self.assertTrue(any(name.endswith(".spool") for name in os.listdir(os.path.join(self.folder, "out.old"))))
        self.assertIn("out.older", self.old())

    def test_old_recordings_of_ranks_go_as_a_whole(self):
        for _ in range(3):
            for rank in ("0", "1"):
                self.record(RANK=rank, WORLD_SIZE="2", LACUNA_OLD_MAX="1")
        self.assertEqual(len(self.old()), 2, self.old())
        for folder in self.old():
            self.assertEqual(sorted(os.listdir(os.path.join(self.folder, folder))), ["rank-0", "rank-1"])

    def test_files_of_others_and_other_names_stay(self):
        mine = os.path.join(self.temporary, f"lacuna-{os.getuid()}-XXXXXX")
        other = os.path.join(self.temporary, "lacuna-notes")
        link = os.path.join(self.temporary, f"lacuna-{os.getuid()}-link")
        os.mkdir(mine)
        os.mkdir(other)
        os.symlink(other, link)
        for folder in (mine, other):
            open(os.path.join(folder, "1-2-0.spool"), "w").close()
            self.make_old(folder, 100)
        self.run_another()
        self.assertEqual((os.path.exists(mine), os.path.exists(other), os.path.islink(link)), (False, True, True))
        self.assertEqual(os.listdir(other), ["1-2-0.spool"])


if __name__ == "__main__":
    unittest.main()
