#!/usr/bin/env python3
"""`srun lacuna run` in a real Slurm of one node: a controller, a node and munge of this test's own, on loopback and in a temporary folder.

Needs Debian's slurmctld, slurmd, slurm-client and munge; skips in one line where they are absent or may not be started.
"""
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
LACUNA = os.path.join(ROOT, "build/release/lacuna")
SOAK = os.environ.get("LACUNA_SOAK") == "1"
SECONDS = 120
BATCH = ("SLURM_", "SBATCH_", "LACUNA_", "PBS_", "LSB_", "OMPI_", "PMI_", "TORCHELASTIC_")
NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "scancel", "squeue", "sinfo")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
HOST = socket.gethostname().split(".")[0]
PYTHON = sys.executable  # `srun --export=NONE` has no PATH of ours

CONFIGURATION = """
    ClusterName=lacuna
    SlurmctldHost=localhost(127.0.0.1)
    SlurmUser={user}
    SlurmdUser={user}
    SlurmctldPort={controller}
    SlurmdPort={node}
    AuthType=auth/munge
    AuthInfo=socket={folder}/run/munge.sock
    StateSaveLocation={folder}/state
    SlurmdSpoolDir={folder}/spool
    SlurmctldPidFile={folder}/run/slurmctld.pid
    SlurmdPidFile={folder}/run/slurmd.pid
    SlurmctldLogFile={folder}/slurmctld.log
    SlurmdLogFile={folder}/slurmd.log
    ProctrackType=proctrack/linuxproc
    TaskPlugin=task/none
    SelectType=select/cons_tres
    SelectTypeParameters=CR_Core
    SlurmdParameters=config_overrides
    SchedulerType=sched/builtin
    SchedulerParameters=sched_interval=1,batch_sched_delay=0
    JobAcctGatherType=jobacct_gather/none
    AccountingStorageType=accounting_storage/none
    MpiDefault=none
    SwitchType=switch/none
    ReturnToService=2
    KillWait=60
    InactiveLimit=0
    NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
    PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# Steps, at least 20 and until the file is there that is named. "stubborn" goes on when it is told to end, once it has said so.
JOB = textwrap.dedent("""
    import lacuna, os, signal, sys, time
    if "stubborn" in sys.argv:
        # os.write: print() cannot be interrupted by another one
        signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"told to end: %s\\n" % os.environb[b"SLURM_PROCID"]))
        os.write(1, b"stubborn\\n")
    steps = 0
    while steps < 20 or (len(sys.argv) > 1 and not os.path.exists(sys.argv[1])):
        with lacuna.annotate("train_step"):
            time.sleep(0.005)
        steps += 1
    print("rank", os.environ["SLURM_PROCID"], "ended", flush=True)
""")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def skip(reason):
    print("skip:", reason, flush=True)
    raise unittest.SkipTest(reason)


def last_line(path):
    try:
        with open(path, errors="replace") as file:
            lines = [line for line in file.read().splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"
    except OSError as error:
        return str(error)


class Cluster:
    """One node that is its own controller. Its daemons run in the foreground, as children of this test."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-slurm-")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(BATCH)}
        self.environment.update(PATH=PATH, SLURM_CONF=os.path.join(self.folder, "slurm.conf"))
        self.daemons = []

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self):
        for name in ("run", "state", "spool"):
            os.mkdir(self.path(name))
        os.chmod(self.folder, 0o755)  # munge wants its socket to be reached by all
        controller, node = free_ports(2)
        with open(self.path("slurm.conf"), "w") as file:
            file.write(textwrap.dedent(CONFIGURATION).format(user=getpass.getuser(), folder=self.folder, controller=controller, node=node))
        with open(os.open(self.path("run", "key"), os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
            file.write(os.urandom(1024))
        self.daemon("munged", "-F", "-f", "-S", self.path("run", "munge.sock"), "--key-file", self.path("run", "key"), "--pid-file", self.path("run", "munge.pid"),
                    "--seed-file", self.path("run", "seed"), "--log-file", self.path("munged.log"))
        self.wait(lambda: os.path.exists(self.path("run", "munge.sock")))
        self.daemon("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        self.daemon("slurmd", "-D", "-N", "localhost", "-f", self.environment["SLURM_CONF"])
        self.wait(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def daemon(self, name, *options):
        with open(self.path(name + ".out"), "wb") as out:
            self.daemons.append((name, subprocess.Popen([shutil.which(name, path=PATH), *options], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                        env=self.environment, cwd=self.folder)))

    def wait(self, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            for name, process in self.daemons:
                if process.poll() is not None:
                    skip(f"{name} cannot run here: {last_line(self.path(name + '.out'))}")
            if time.monotonic() > end:
                skip(f"Slurm does not come up here: {last_line(self.path('slurmd.log'))}")
            time.sleep(0.1)

    def ask(self, *command, cwd=None):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment, cwd=cwd, timeout=SECONDS).stdout

    def logs(self):
        """The ends of what the daemons wrote."""
        said = ""
        for name in ("slurmctld.log", "slurmd.log"):
            with open(self.path(name), errors="replace") as file:
                said += f"\n{name}:\n" + "".join(file.readlines()[-15:])
        return said

    def stop(self):
        self.ask("scancel", "--signal=KILL", "--user", getpass.getuser())
        for _, process in reversed(self.daemons):
            process.terminate()
        for _, process in self.daemons:
            try:
                process.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        absent = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
        if absent:
            skip(f"no Slurm here: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)")
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.temporary = os.path.join(self.folder, "temporary")
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.temporary)
        os.mkdir(self.work)
        self.environment = {**self.cluster.environment, "TMPDIR": self.temporary}
        self.job = os.path.join(self.folder, "job.py")
        self.go = os.path.join(self.folder, "go")
        with open(self.job, "w") as file:
            file.write(JOB)

    def tearDown(self):
        open(self.go, "w").close()
        self.command("scancel", "--signal=KILL", "--user", getpass.getuser())
        self.wait(lambda: self.jobs() == "")
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self, condition, seconds=SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                self.fail(f"jobs: {self.jobs()}; recorded: {os.listdir(self.work)}; said: {self.log()}{self.cluster.logs()}")
            time.sleep(0.1)

    def command(self, *command, **environment):
        return subprocess.run(command, cwd=self.work, env={**self.environment, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS)

    def jobs(self):
        return self.command("squeue", "-h", "-o", "%i %T %r").stdout

    def state(self, job):
        return self.command("squeue", "-h", "-j", job, "-o", "%T").stdout.strip()

    def log(self):
        said = ""
        for name in sorted(os.listdir(self.work)):
            if name.startswith("slurm-"):
                with open(os.path.join(self.work, name)) as file:
                    said += file.read()
        return said

    def batch(self, line, *options):
        run = self.command("sbatch", "--parsable", *options, "--wrap", line)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.strip()

    def run_line(self, *options, arguments=""):
        return f"{NODE} run {' '.join(options)} -- {PYTHON} {self.job} {arguments}"

    def spools(self, *names):
        """Of recorded processes: the launcher's own one is node-*."""
        try:
            return sorted(name for name in os.listdir(os.path.join(self.work, *names)) if name.endswith(".spool") and not name.startswith("node-"))
        except OSError:
            return []

    def has_steps(self, *names):
        """Whether the recording there, which may still be written, shows the job."""
        show = self.command(NODE, "show", os.path.join(self.work, *names)) if self.spools(*names) else None
        return show is not None and "train_step" in show.stdout

    def analysis(self, *names):
        run = self.command(LACUNA, "analyze", *[os.path.join(self.work, name) for name in names], "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_the_tasks_of_a_step_are_ranks_of_one_run(self):
        run = self.command("srun", "-n4", NODE, "run", "-o", "out", "--", PYTHON, self.job)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [f"rank {i} ended" for i in range(4)])
        self.assertEqual(sorted(os.listdir(os.path.join(self.work, "out"))), [f"task-{i}" for i in range(4)])
        for rank in range(4):
            self.assertEqual(len(self.spools("out", f"task-{rank}")), 1)
        joined = self.analysis("out")
        self.assertEqual(joined["schema"], "lacuna.run/1")
        self.assertEqual([(one["rank"], one["host"]) for one in joined["ranks"]], [(rank, socket.gethostname()) for rank in range(4)])
        self.assertEqual(os.listdir(self.temporary), [])

    def test_one_rank_speaks_for_all(self):
        run = self.command("srun", "-n3", NODE, "run", "-o", "out", "--", PYTHON, self.job)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(re.findall(r"^task-\d+ ", run.stderr, re.M), ["task-0 "], run.stderr)
        self.assertIn("lacuna: that was task-0; all of them: lacuna analyze out", run.stderr)

    def test_patterns_and_names_of_its_own_keep_tasks_apart(self):
        line = f"srun -n2 {self.run_line('--quiet', '-o', 'p-%j-%p-%h-%t')}; srun -n2 {self.run_line('--quiet')}"
        job = self.batch(line, "--wait", "-n2")
        self.assertEqual(self.log().count("ended"), 4)
        names = [name for name in os.listdir(self.work) if not name.startswith("slurm-")]
        patterns = sorted((name for name in names if name.startswith("p-")), key=lambda name: name[-1])
        self.assertEqual([re.sub(r"^(p-\d+)-\d+-", r"\1-PID-", name) for name in patterns], [f"p-{job}-PID-{HOST}-{task}" for task in (0, 1)])
        own = [name for name in names if not name.startswith("p-")]
        self.assertEqual(own, [f"{os.path.basename(PYTHON)}-slurm-{job}.1.lacuna"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.work, own[0]))), ["task-0", "task-1"])

    def test_the_jobs_of_an_array_do_not_meet(self):
        job = self.batch(self.run_line("--quiet"), "--wait", "--array=1-3")
        name = os.path.basename(PYTHON)
        self.assertEqual(sorted(one for one in os.listdir(self.work) if one.endswith(".lacuna")), [f"{name}-slurm-{job}_{task}.lacuna" for task in (1, 2, 3)])
        for task in (1, 2, 3):
            self.assertEqual(len(self.spools(f"{name}-slurm-{job}_{task}.lacuna")), 1)
        # one folder for all of them: who comes later gets the next name, and nothing is written over
        self.batch(self.run_line("--quiet", "-o", "same"), "--wait", "--array=1-3")
        folders = sorted(one for one in os.listdir(self.work) if one.startswith("same"))
        self.assertEqual(len(folders), 3, folders)
        self.assertEqual([len(self.spools(one)) for one in folders], [1, 1, 1])

    def test_a_requeued_job_keeps_what_it_recorded_before(self):
        for _ in range(4):
            job = self.batch(self.run_line("--quiet", arguments=self.go), "--requeue")
            first = f"{os.path.basename(PYTHON)}-slurm-{job}.lacuna"
            second = f"{os.path.basename(PYTHON)}-slurm-{job}-restart1.lacuna"
            self.wait(lambda: self.state(job) == "RUNNING" and self.spools(first))
            self.assertEqual(self.command("scontrol", "requeue", job).returncode, 0)
            self.wait(lambda: self.state(job) == "PENDING" and self.command("sinfo", "-h", "-o", "%T").stdout.strip() == "idle")
            time.sleep(3)  # a node refuses a start of the second in which it was told to end the job
            self.wait(lambda: self.is_started_again(job, second) or self.is_gone(job))
            if self.spools(second):
                break  # else Slurm did not start it again, and dropped it: that says nothing of us
            print(f"Slurm dropped the requeued job {job}: {self.cluster.logs()}", flush=True)
        before = self.spools(first)
        open(self.go, "w").close()
        self.wait(lambda: self.jobs() == "")
        self.assertEqual(self.spools(first), before)
        self.assertTrue(self.has_steps(first))
        self.assertTrue(self.has_steps(second))
        self.assertEqual(os.listdir(self.temporary), [])  # SIGTERM came first, so both are complete

    def is_gone(self, job):
        run = self.command("squeue", "-h", "-j", job, "-o", "%T")
        return run.stdout.strip() == "" and (run.returncode == 0 or "Invalid job id" in run.stderr)

    def stop_launchers(self):
        """So that none of them can end its recording in the moment between the death of its job and its own."""
        self.wait(lambda: all(f"told to end: {rank}" in self.log() for rank in (0, 1)))
        for task in ("task-0", "task-1"):
            with open(os.path.join(self.work, "cut", task, ".lacuna-launcher")) as file:
                os.kill(int(re.search(r"^pid (\d+)$", file.read(), re.M).group(1)), signal.SIGSTOP)

    def is_started_again(self, job, folder):
        """A requeued job waits for two minutes, if nobody says otherwise."""
        if not self.spools(folder) and self.state(job) == "PENDING":
            self.command("scontrol", "release", job)  # one that could not be started is held
            self.command("scontrol", "update", f"JobId={job}", "StartTime=now")
            time.sleep(2)
        return self.spools(folder)

    def check_cut_off(self):
        """Of a job that was killed with its launchers: what they moved is there, the rest is found, and together they are whole."""
        note = os.path.join(self.work, "cut", "task-0", ".lacuna-launcher")
        self.assertTrue(os.path.exists(note))
        with open(note) as file:
            spools = re.search(r"^spools (.*)$", file.read(), re.M).group(1)
        self.assertEqual(os.path.dirname(spools), self.temporary)
        self.assertIn(f"{spools}  1 spools", self.command(NODE, "gather").stdout)
        said = self.command(NODE, "run", "--quiet", "-o", "next", "--", "true")
        self.assertEqual(said.returncode, 0)
        said = self.command(NODE, "run", "-o", "next", "--", "true").stderr
        self.assertIn("a launcher that was killed left the last records", said)
        self.assertTrue(self.spools("cut", "task-0"))
        self.assertTrue(any(line.startswith("the end of the job: ") for one in self.analysis("cut")["ranks"] for line in one["analysis"]["not_recorded"]))
        for task in ("task-0", "task-1"):
            gathered = self.command(NODE, "gather", os.path.join("cut", task))
            self.assertEqual(gathered.returncode, 0, gathered.stderr)
            self.assertIn("is whole now", gathered.stdout)
        self.assertTrue(self.has_steps("cut", "task-0"))
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_canceled_job_that_does_not_end_is_killed_and_found(self):
        job = self.batch("srun -n2 " + self.run_line("--quiet", "-o", "cut", arguments=f"{self.go} stubborn"), "-n2")
        self.wait(lambda: self.log().count("stubborn") == 2 and self.spools("cut", "task-0") and self.spools("cut", "task-1"))
        self.assertEqual(self.command("scancel", job).returncode, 0)
        self.stop_launchers()
        self.command("scancel", "--signal=KILL", job)  # what Slurm itself does after KillWait
        self.wait(lambda: self.jobs() == "")
        self.check_cut_off()

    @unittest.skipUnless(SOAK, "the shortest time limit of Slurm is a minute: make soak")
    def test_a_job_beyond_its_time_limit_is_killed_and_found(self):
        self.batch("srun -n2 " + self.run_line("--quiet", "-o", "cut", arguments=f"{self.go} stubborn"), "-n2", "--time=1")
        self.wait(lambda: "DUE TO TIME LIMIT" in self.log(), 600)
        self.stop_launchers()
        self.wait(lambda: self.jobs() == "", 600)
        self.assertTrue(self.has_steps("cut", "task-0"))  # moved while it ran, every five seconds
        self.check_cut_off()

    def test_a_canceled_job_that_ends_when_told_is_complete(self):
        job = self.batch("exec " + self.run_line("-o", "out", arguments=self.go))
        self.wait(lambda: self.spools("out"))
        self.assertEqual(self.command("scancel", "--batch", "--signal=TERM", job).returncode, 0)
        self.wait(lambda: self.jobs() == "")
        self.assertIn("train_step", self.command(NODE, "show", os.path.join(self.work, "out")).stdout)
        self.assertFalse(os.path.exists(os.path.join(self.work, "out", ".lacuna-launcher")))
        self.assertEqual(os.listdir(self.temporary), [])

    def test_an_environment_that_is_not_passed_on(self):
        inside = self.command("srun", "-n2", "--export=NONE", NODE, "run", "--quiet", "-o", "inside", "--", PYTHON, self.job)
        self.assertEqual(inside.returncode, 0, inside.stderr)
        self.assertEqual([len(self.spools("inside", f"task-{rank}")) for rank in (0, 1)], [1, 1])
        outside = self.command(NODE, "run", "-o", "outside", "--", "srun", "-n2", "--export=NONE", PYTHON, "-c", "pass")
        self.assertEqual(outside.returncode, 0, outside.stderr)
        self.assertIn("nothing was recorded: the job starts its work through srun", outside.stderr)
        self.assertIn("srun lacuna run -- CMD", outside.stderr)

    def test_variables_given_to_srun_record_its_tasks_without_a_launcher(self):
        with open(self.job, "a") as file:
            file.write("print(os.environ.get('PYTHONPATH', '').split(':')[1:], os.environ['MINE'])\n")
        for number, path in enumerate(([], ["/of/the/user"])):  # srun itself keeps a variable that is set
            self.assert_recorded_with_variables(f"out-{number}", path)

    def assert_recorded_with_variables(self, out, path):
        spool = os.path.join(self.folder, "spools-" + out)
        os.mkdir(spool)
        step = f"srun -n2 $({NODE} env --slurm --spool {spool}) {PYTHON} {self.job}"
        run = self.command("sh", "-c", step, MINE="a, b", **({"PYTHONPATH": path[0]} if path else {}))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [f"{path} a, b"] * 2 + ["rank 0 ended", "rank 1 ended"])
        gathered = self.command(NODE, "gather", spool, "-o", out)
        self.assertIn("2 processes", gathered.stdout, gathered.stderr)
        self.assertEqual(sorted(one["rank"] for one in self.analysis(out)["ranks"]), [0, 1])
        self.assertTrue(self.has_steps(out))

    def test_one_launcher_around_srun_has_all_tasks_of_its_node(self):
        run = self.command(NODE, "run", "--quiet", "-o", "out", "--", "srun", "-n2", PYTHON, self.job)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(self.spools("out")), 2)
        self.assertEqual([one["rank"] for one in self.analysis("out")["ranks"]], [0, 1])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the daemons end with the test
    result = unittest.main(exit=False, verbosity=1).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(1 if bad else 0)
