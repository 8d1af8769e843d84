#!/usr/bin/env python3
"""Why a recording holds nothing, or not all, of the GPU: one sentence, the same on the terminal while the job runs, in `analyze`, in the JSON and in the page.

A row is a job (cuda_job.c against the stand-in for libcupti), and what is said of it; then the same of jobs of which nothing at all was recorded.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
NODE, LACUNA, CUPTI = (os.path.join(BUILD, name) for name in ("lacuna-node", "lacuna", "stand_in/libcupti_stand_in.so"))
NVML = os.path.join(BUILD, "stand_in/nvml")
SECONDS = 120
ALLOW = "the administrator allows it with: options nvidia NVreg_RestrictProfilingToAdminUsers=0"
REFUSED = f"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); {ALLOW}"

NO_CUDA = "no process of the job initialized CUDA"

# name: (arguments of the job, variables, said at once, in the verdict, in what was not recorded)
ROWS = {
    "all of it": (("cuda", "steps=5", "deliver=50"), {}, "", "", ""),
    "no CUDA": (("steps=5",), {"LD_LIBRARY_PATH": ""}, "", "no process of the job initialized CUDA", "GPU operations: no process of the job initialized CUDA"),
    "no CUDA beside a GPU": (("steps=5",), {"LD_LIBRARY_PATH": NVML}, "", f"{NO_CUDA}, although the node has a GPU", f"GPU operations: {NO_CUDA}, although the node has a GPU"),
    "a GPU that the job hides": (("hide",), {"LD_LIBRARY_PATH": NVML}, "", f"{NO_CUDA}, although the node has a GPU: CUDA_VISIBLE_DEVICES of a process names none",
                                 f"GPU operations: {NO_CUDA}, although the node has a GPU: CUDA_VISIBLE_DEVICES of a process names none"),
    # only the first launcher of a user on a host looks at GPUs that its own variables hide, and another test may run one meanwhile
    "a GPU that is hidden from all": (("steps=5",), {"LD_LIBRARY_PATH": NVML, "CUDA_VISIBLE_DEVICES": ""}, "",
                                      re.compile(f"{NO_CUDA}, (although the node has a GPU: CUDA_VISIBLE_DEVICES of a process names none|"
                                                 r"and the node shows it no GPU \(CUDA_VISIBLE_DEVICES names none of its GPUs\))"), "GPU operations: " + NO_CUDA),
    "a driver without a GPU": (("steps=5",), {"LD_LIBRARY_PATH": NVML, "NVML_STAND_IN_GPUS": "0"}, "", f"{NO_CUDA}, and the node shows it no GPU (the driver shows no GPU)",
                               f"GPU operations: {NO_CUDA}, and the node shows it no GPU (the driver shows no GPU)"),
    "no libcupti": (("cuda", "steps=5"), {"LACUNA_CUPTI": "/nowhere/libcupti.so", "LD_LIBRARY_PATH": ""},
                    "the GPU is not recorded: libcupti was not found; LACUNA_CUPTI=/path/to/libcupti.so names it",
                    "no GPU operation was recorded: libcupti was not found", "GPU operations: libcupti was not found; LACUNA_CUPTI="),
    "another profiler": (("cuda", "steps=5"), {"STAND_IN_REFUSE": "busy"}, "the GPU is not recorded: another profiler holds CUPTI: nsys",
                         "another profiler holds CUPTI: nsys", "GPU operations: another profiler holds CUPTI: nsys"),
    "another profiler, of old": (("cuda", "steps=5"), {"STAND_IN_REFUSE": "busy", "STAND_IN_BUSY": "12"},
                                 "the GPU is not recorded: another profiler holds CUPTI: nsys", "another profiler holds CUPTI: nsys",
                                 "GPU operations: another profiler holds CUPTI: nsys"),
    "an error that nobody knows": (("cuda", "steps=5"), {"STAND_IN_REFUSE": "busy", "STAND_IN_BUSY": "999"},
                                   "the GPU is not recorded: CUPTI refused us: CUPTI_ERROR (999)", "CUPTI refused us: CUPTI_ERROR (999)",
                                   "GPU operations: CUPTI refused us: CUPTI_ERROR (999)"),
    "nobody may subscribe": (("cuda", "steps=5"), {"STAND_IN_REFUSE": "subscribe"}, f"the GPU is not recorded: CUPTI refused us: {REFUSED}",
                             f"CUPTI refused us: {REFUSED}", f"GPU operations: CUPTI refused us: {REFUSED}"),
    "nothing may be recorded": (("cuda", "steps=5"), {"STAND_IN_REFUSE": "all"}, f"the GPU is not recorded: no GPU activity can be recorded: {REFUSED}",
                                f"no GPU operation was recorded: {REFUSED}", f"GPU operations: {REFUSED}"),
    "kernels may not be recorded": (("cuda", "steps=5", "copies"), {"STAND_IN_REFUSE": "privileges"}, f"kernels cannot be recorded: {REFUSED}",
                                    f"no kernel was recorded: {REFUSED}", f"kernels: {REFUSED}"),
    "its own profiler until the end": (("yield", "cuda", "steps=5"), {}, "", "the job's own profiler held CUPTI until the end",
                                       "GPU operations: the job's own profiler held CUPTI until the end"),
    "its own profiler from some time on": (("cuda", "steps=5", "deliver=50", "yield", "steps=5"), {}, "", "",
                                           "GPU operations until the end: CUPTI was left to torch.profiler of the job until the end"),
    "its own profiler keeps CUPTI": (("cuda", "steps=5", "deliver=50", "yield", "occupy", "refuse=all", "back", "steps=5"), {},
                                     f"the GPU is not recorded: no GPU activity can be recorded: {REFUSED}", "",
                                     f"GPU operations until the end: torch.profiler of the job did not give CUPTI back: {REFUSED}"),
    "its own profiler keeps CUPTI from the beginning": (("cuda", "yield", "occupy", "refuse=all", "back", "steps=5"), {},
                                                        f"the GPU is not recorded: no GPU activity can be recorded: {REFUSED}",
                                                        f"torch.profiler of the job did not give CUPTI back: {REFUSED}",
                                                        f"GPU operations: torch.profiler of the job did not give CUPTI back: {REFUSED}"),
    "CUPTI refuses after its own profiler": (("cuda", "steps=5", "deliver=50", "yield", "refuse=all", "back", "steps=5"), {},
                                             f"the GPU is not recorded: no GPU activity can be recorded: {REFUSED}", "",
                                             f"GPU operations until the end: CUPTI could not be used again after torch.profiler of the job: {REFUSED}"),
    "a kernel that never ends": (("cuda", "steps=5", "launch=3,60000000"), {}, "", "the recording ended before any of them did",
                                 "GPU operations: the recording ended before any of them did"),
    "some kernels that never end": (("cuda", "steps=5", "launch=20,100", "sleep=50", "launch=3,60000000"), {}, "", "",
                                    "GPU operations in progress: 3 operations had not ended when the recording did"),
    "no operation": (("cuda", "steps=5"), {}, "", "CUDA was initialized, but no operation ended while it was recorded",
                     "GPU operations: CUDA was initialized, but no operation ended"),
}
# The same of jobs that take half a minute of waiting each: they run side by side.
SLOW_ROWS = {
    "no record from the beginning": (("cuda", "mark=1", "steps=5", "sleep=31500", "mark=5", "sleep=3000"), {},
                                     "no GPU record came in the first 30 s of steps: they do not use the GPU, or another tool has taken CUPTI's buffers",
                                     "no GPU record came in the first 30 s of steps", "GPU operations: no GPU record came in the first 30 s of steps"),
    "no record from some time on": (("cuda", "steps=5", "deliver=50", "mark=1", "sleep=33000", "mark=5", "sleep=3000"), {},
                                    "the GPU is no longer recorded: no GPU record came for 30 s although steps went on: another tool may have taken CUPTI's buffers",
                                    "", "GPU operations until the end: no GPU record came for 30 s although steps went on"),
    "no record since its own profiler": (("cuda", "steps=5", "deliver=50", "yield", "occupy", "back", "mark=1", "sleep=33000", "mark=5", "sleep=3000"), {},
                                         "the GPU is no longer recorded: no GPU record came for 30 s although steps went on: another tool may have taken CUPTI's buffers",
                                         "", "GPU operations until the end: no GPU record came for 30 s although steps went on: another tool may have taken CUPTI's buffers; "
                                             "torch.profiler of the job did not give CUPTI back"),
}
# Jobs of which nothing was recorded, and why: name: (command, sentence, what it needs). {mapped NAME}: a process with a file of that name in its memory, the nearest to
# another C library that can be had here; {python} this Python; {as NAME} a program that is called so.
PYTHON_SLEEPS = "import time; time.sleep(1)"
ISOLATED = "Python was started with -I, -E or -S and ignores the environment, so the DataLoader was not recorded: start it without these options"
OWN_PATH = r"python\S* runs with a PYTHONPATH of its own, without the hook: add to the one that is there instead of replacing it"
NO_RANGE = "the recorder was loaded but no range was opened: the job used no DataLoader, no optimizer and no NVTX range"
STARTERS = {"srun": "put `lacuna run` behind it: srun lacuna run -- CMD", "mpirun": "put `lacuna run` behind it: mpirun lacuna run -- CMD",
            "ssh": "put `lacuna run` behind it: ssh HOST lacuna run -- CMD", "sudo": "put `lacuna run` behind it: sudo lacuna run -- CMD",
            "docker": "add what `lacuna env --docker` prints", "podman": "add what `lacuna env --docker` prints",
            "apptainer": "add what `lacuna env --apptainer` prints", "singularity": "add what `lacuna env --apptainer` prints",
            "kubectl": "add what `lacuna env --k8s` prints to the pod", "ray": "set what `lacuna env` prints where Ray starts its workers"}
EMPTY = {
    "no variables": (("env", "-i", "sleep", "1"), r"sleep runs without the variables that load the recorder \(env -i, srun --export=NONE and apptainer --cleanenv remove them\)", ""),
    "nothing to record": (("sleep", "1"), "no process used NVTX or CUDA, and none was Python with a DataLoader: there was nothing to record", ""),
    "too short to be seen": (("true",), "no process used NVTX or CUDA, and none was Python with a DataLoader: there was nothing to record", ""),
    "an early end": (("sh", "-c", "sleep 1; exit 3"), "the job ended with status 3: it may not have reached its first step", ""),
    "Python without a loader": (("{python}", "-c", PYTHON_SLEEPS), NO_RANGE + "$", ""),
    "CUDA, and no activity": (("{python}", "-c", "import mmap, os, sys; m = mmap.mmap(os.open(sys.argv[1], 0), 0, prot=mmap.PROT_READ); " + PYTHON_SLEEPS,
                               "{file libcuda.so.1}"), NO_RANGE + ", and no GPU activity came from CUPTI$", ""),
    "musl": (("{mapped}", "{file ld-musl-x86_64.so.1}"), "a process uses musl instead of glibc, so the recorder cannot be loaded there: use an image with glibc 2.17 or later", ""),
    "an old glibc": (("{mapped}", "{file libc-2.12.so}"), r"a process uses glibc 2\.12: the recorder needs 2\.17 or later, so use a newer image or module", ""),
    "a glibc that is new enough": (("{mapped}", "{file libc-2.31.so}"), "there was nothing to record", ""),
    "a hidden library": (("unshare", "-m", "sh", "-c", "mount -t tmpfs none {build} && exec sleep 1"),
                         r"sleep runs where \S+/liblacuna\.so cannot be seen \(in a container\?\): mount it there, as `lacuna env --docker` or `lacuna env --apptainer` print it", "mounts"),
    "switched off inside": (("env", "LACUNA_DISABLE=1", "sleep", "1"), "sleep runs with LACUNA_DISABLE, which switches the recorder off", ""),
    **{f"through {name}": ((f"{{as {name}}}", "1"), f"the job starts its work through {name}, and the recorder did not get there: {remedy}", "") for name, remedy in STARTERS.items()},
    "a setuid program": (("{setuid}", "1"), r"privileged runs with privileges of its own \(sudo, setuid\), so the recorder is not loaded: start `lacuna run` behind it", "root"),
    **{f"Python {option}": (("{python}", option, "-c", PYTHON_SLEEPS), ISOLATED, "") for option in ("-I", "-E", "-S", "-uI")},
    "a PYTHONPATH of its own": (("env", "PYTHONPATH=/nowhere", "{python}", "-c", PYTHON_SLEEPS), OWN_PATH, ""),
    "no PYTHONPATH": (("env", "-u", "PYTHONPATH", "{python}", "-c", PYTHON_SLEEPS), OWN_PATH, ""),
    "a static program": (("{static}",), "static is statically linked, so the recorder cannot be loaded into it: link it dynamically", ""),
}
LOADED = ("Python without a loader", "CUDA, and no activity")  # of these the recorder is in the process
MAY_MOUNT = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
MAPPED = "#include <fcntl.h>\n#include <sys/mman.h>\n#include <unistd.h>\nint main(int n, char **v) {" \
         "(void)n; mmap(0, 4096, PROT_READ, MAP_PRIVATE, open(v[1], O_RDONLY), 0); usleep(999999); return 0; }\n"
STATIC = "#include <unistd.h>\nint main(void) { usleep(999999); return 0; }\n"
AT_ONCE = 6  # they sleep


class Reasons(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        cls.job = os.path.join(cls.folder, "cuda_job")
        subprocess.run(["gcc", "-O1", "-iquote", ROOT, os.path.join(ROOT, "tests/integration/cuda_job.c"), os.path.join(ROOT, "kernels/ranges.c"),
                        "-o", cls.job, "-ldl"], check=True, timeout=SECONDS)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def record(self, name, *command, **variables):
        out = os.path.join(self.folder, name.replace(" ", "-"))
        environment = {**{key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}, "LACUNA_CUPTI": CUPTI, **variables}
        run = subprocess.run([NODE, "run", "--quiet", "-o", out, "--", *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, timeout=SECONDS)
        return out, run

    def analyze(self, out, *options):
        return subprocess.run([LACUNA, "analyze", out, *options], stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True).stdout

    def is_said_everywhere(self, out, verdict, missing):
        analysis = json.loads(self.analyze(out, "--json"))
        text, page = " ".join(self.analyze(out).split()), out + ".html"
        subprocess.run([LACUNA, "export", out, "--to", "html", "-o", page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=SECONDS)
        with open(page, encoding="utf-8") as file:
            html = file.read().replace("&#39;", "'").replace("\\u0027", "'").replace("&quot;", '"')
        said = analysis["verdict"]["text"] + " " + analysis["verdict"]["detail"]
        if isinstance(verdict, re.Pattern):
            self.assertRegex(said, verdict)
            verdict = verdict.search(said).group()
        self.assertIn(verdict.lower(), said.lower())
        self.assertTrue(not missing or any(line.startswith(missing) for line in analysis["not_recorded"]), analysis["not_recorded"])
        for where in (text, html):
            self.assertIn(verdict.lower(), where.lower())
            self.assertIn(missing.lower(), where.lower())
        if not missing:
            self.assertFalse([line for line in analysis["not_recorded"] if "GPU operations" in line or line.startswith("kernels")])
        return analysis

    def test_a_reason_for_each(self):
        for name, (arguments, variables, at_once, verdict, missing) in ROWS.items():
            with self.subTest(name):
                job = ("env", "CUDA_VISIBLE_DEVICES=", self.job, "steps=5") if arguments == ("hide",) else (self.job, *arguments)
                out, run = self.record(name, *job, **variables)
                self.assertEqual(run.returncode, 0, run.stderr)
                said = [line for line in run.stderr.splitlines() if "events were not recorded (GPU operations that had not ended" not in line]
                self.assertEqual(said, [f"lacuna: {at_once}"] if at_once else [])
                self.is_said_everywhere(out, verdict, missing)

    def test_a_reason_for_each_that_takes_half_a_minute(self):
        jobs = {}
        for name, (arguments, variables, *_) in SLOW_ROWS.items():
            out = os.path.join(self.folder, name.replace(" ", "-"))
            jobs[name] = subprocess.Popen([NODE, "run", "--quiet", "--no-hang", "-o", out, "--", self.job, *arguments], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "LACUNA_CUPTI": CUPTI, **variables})
        silent = subprocess.Popen([NODE, "run", "-o", os.path.join(self.folder, "silent"), "--", "sleep", "600"], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        for name, (_, _, at_once, verdict, missing) in SLOW_ROWS.items():
            with self.subTest(name):
                said = jobs[name].communicate(timeout=SECONDS)[1]
                self.assertEqual(said.splitlines(), [f"lacuna: {at_once}"])
                self.is_said_everywhere(os.path.join(self.folder, name.replace(" ", "-")), verdict, missing)
        # and what is said of one of which nothing has been seen, while it runs
        line = ""
        while not line.startswith("lacuna: nothing is recorded"):
            line = silent.stderr.readline()
            self.assertTrue(line)
        self.assertEqual(line, "lacuna: nothing is recorded after 30 s: no process has used NVTX or CUDA yet, and none is Python with a DataLoader; "
                               "recording begins with the first of these\n")
        silent.terminate()
        self.assertIn("nothing was recorded", silent.communicate(timeout=SECONDS)[1])

    def test_copies_without_kernels_say_nothing_of_how_busy_the_gpu_was(self):
        out, _ = self.record("copies", self.job, "cuda", "steps=30", "copies", STAND_IN_REFUSE="privileges")
        analysis = json.loads(self.analyze(out, "--json"))
        self.assertEqual(analysis["verdict"]["cause"], "unknown")
        self.assertLessEqual({finding["id"] for finding in analysis["findings"]}, {"step-outliers"})

    def program(self, name, text, *flags):
        path = os.path.join(self.folder, name)
        with open(path + ".c", "w") as file:
            file.write(text)
        subprocess.run(["gcc", "-O1", path + ".c", "-o", path, *flags], check=True, timeout=SECONDS)
        return path

    def word(self, word):
        """A word of a row's command, with what stands in braces made."""
        kind, _, name = word.strip("{}").partition(" ")
        path = os.path.join(self.folder, "empty", name)
        if word.startswith("{file"):
            with open(path, "wb") as file:
                file.write(b"x" * 4096)
        elif word.startswith("{as"):
            os.symlink("/bin/sleep", path)
        else:
            return word.replace("{build}", BUILD) if not word.startswith("{") else self.programs[kind]
        return path

    def make_programs(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        self.programs = {"python": sys.executable, "mapped": self.program("mapped", MAPPED), "static": self.program("static", STATIC, "-static")}
        self.programs["setuid"] = os.path.join(self.folder, "privileged")
        shutil.copy("/bin/sleep", self.programs["setuid"])
        os.chmod(self.programs["setuid"], 0o4755)
        self.installed = os.path.join(self.folder, "node")  # where anybody may read it
        shutil.copytree(os.path.join(BUILD, "python"), os.path.join(self.installed, "python"))
        for name in ("lacuna-node", "liblacuna.so"):
            shutil.copy(os.path.join(BUILD, name), self.installed)
        os.chmod(self.folder, 0o777)

    def record_nothing(self, name):
        command, _, needs = EMPTY[name]
        out = os.path.join(self.folder, "empty-" + name.replace(" ", "-"))
        launcher = [*AS_NOBODY, os.path.join(self.installed, "lacuna-node")] if needs == "root" else [NODE]
        run = subprocess.run([*launcher, "run", "-o", out, "--", *[self.word(word) for word in command]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=SECONDS, cwd=self.folder)
        return out, run.stderr

    def test_a_reason_where_nothing_was_recorded(self):
        able = {"mounts": MAY_MOUNT, "root": os.geteuid() == 0 and shutil.which("setpriv") is not None}
        names = [name for name, (_, _, needs) in EMPTY.items() if able.get(needs, True)]
        if len(names) < len(EMPTY):
            print(f"skip: no right to mount or to change the user: {', '.join(sorted(set(EMPTY) - set(names)))} is not tried")
        self.make_programs()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for name, (out, said) in zip(names, pool.map(self.record_nothing, names)):
                with self.subTest(name):
                    told = re.search(r"^lacuna: nothing was recorded: (.*)\.$", said, re.M)
                    self.assertTrue(told, said)
                    self.assertRegex(told.group(1), EMPTY[name][1])
                    self.is_said_everywhere(out, "nothing was recorded: " + told.group(1), "GPU operations: " + told.group(1))
                    self.assertEqual(said.count("nothing was recorded"), 1, said)
                    loaded, cuda = "yes" if name in LOADED else "none", "yes" if name == "CUDA, and no activity" else "none"
                    self.assertRegex(said, rf"Processes seen: \d+; with the recorder loaded: {loaded}; with CUDA: {cuda}\.")

    def test_trouble_is_told_while_the_job_runs(self):
        out = os.path.join(self.folder, "at-once")
        job = subprocess.Popen([NODE, "run", "--quiet", "-o", out, "--", self.job, "cuda", "wait"], env={**os.environ, "LACUNA_CUPTI": CUPTI, "STAND_IN_REFUSE": "busy"},
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertEqual(job.stderr.readline(), "lacuna: the GPU is not recorded: another profiler holds CUPTI: nsys\n")
        self.assertIsNone(job.poll())  # it waits for us
        self.assertEqual(job.communicate("", timeout=SECONDS)[1], "")  # once
        self.assertEqual(job.returncode, 0)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
