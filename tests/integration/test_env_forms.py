#!/usr/bin/env python3
"""`lacuna env`: each form is read as its launcher reads it, and a job that is started with it is recorded.

Stand-ins for docker, apptainer, mpirun and srun take the options as the real ones do and then run the command here; a pod's containers are run
from its specification, with the mounted folders put where they are on this machine.
"""
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
NODE = os.path.join(BUILD, "lacuna-node")
LACUNA = os.path.join(BUILD, "lacuna")
SECONDS = 60
VARIABLES = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "LACUNA_LIBRARY", "LACUNA_SPOOL", "PYTHONPATH"}

# A range, and what the job finds in its environment.
JOB = """
    import os, lacuna
    with lacuna.annotate("work"):
        pass
    print(os.environ["PYTHONPATH"])
"""

# Starts with an environment of its own, as a container does, or with all of ours, sets what the options say and runs the command.
STARTER = """
    import os, sys
    kind, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "/of/the/image"} if kind == "docker" else dict(os.environ)
    mounts = []
    def take(pairs):
        for pair in pairs:
            name, value = pair.split("=", 1)
            environment[name] = value
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option == "run" or option == "exec":
            continue
        if (kind, option) in (("docker", "-e"), ("mpirun", "-x")):
            take([arguments.pop(0)])
        elif (kind, option) == ("apptainer", "--env"):
            take(arguments.pop(0).split(","))
        elif (kind, option) in (("docker", "-v"), ("apptainer", "--bind")):
            mounts.append(arguments.pop(0).split(":"))
        elif kind == "srun" and option.startswith("--export="):
            values = option[len("--export="):].split(",")
            assert values.pop(0) == "ALL"
            take(values)
            environment.update(os.environ)  # which srun passes last
        else:
            sys.exit("unknown option " + option)
    for mount in mounts:
        assert os.path.isdir(mount[0]) and mount[0] == mount[1] and mount[2:] in ([], ["ro"]), mount
    covered = [mount[0] for mount in mounts]
    if kind in ("docker", "apptainer"):
        assert os.path.dirname(environment["LACUNA_LIBRARY"]) in covered and environment["LACUNA_SPOOL"] in covered, covered
    os.execvpe(arguments[0], arguments, environment)
"""


class Forms(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.spool = os.path.join(self.folder, "spool")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.spool)
        os.mkdir(self.bin)
        self.script = os.path.join(self.folder, "train.py")
        with open(self.script, "w") as file:
            file.write(textwrap.dedent(JOB))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "SLURM_"))}
        self.environment.pop("PYTHONPATH", None)
        self.environment["PATH"] = self.bin + ":" + self.environment["PATH"]

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def env(self, *options, spool=None, **environment):
        return subprocess.run([NODE, "env", "--spool", spool or self.spool, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**self.environment, **environment}, timeout=SECONDS)

    def sh(self, text, **environment):
        subprocess.run(["sh", "-n", "-c", text], check=True)
        run = subprocess.run(["sh", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment}, timeout=SECONDS)
        self.assertEqual(run.returncode, 0, text + run.stderr)
        return run.stdout

    def starter(self, name):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write("#!" + sys.executable + "\n" + textwrap.dedent(STARTER))
        os.chmod(path, 0o755)

    def assert_recorded(self, spool=None):
        gathered = subprocess.run([NODE, "gather", spool or self.spool, "-o", os.path.join(self.folder, "out")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        self.assertIn("1 processes", gathered.stdout, gathered.stderr)

    def command(self):
        return f"{shlex.quote(sys.executable)} {shlex.quote(self.script)}"

    def test_a_shell_evaluates_it_and_keeps_its_own_path(self):
        strange = os.path.join(self.folder, "it's $HOME \"a\" `b` \\ spool")
        os.mkdir(strange)
        printed = self.env(spool=strange, PYTHONPATH="/not/this/one").stdout
        said = self.sh(f"PYTHONPATH=/of/the/job; {printed}\n{self.command()}")
        self.assertRegex(said, r"^\S+/python:/of/the/job\n$")
        self.assert_recorded(strange)
        self.assertRegex(self.sh(f"{printed}\necho $PYTHONPATH"), r"^[^:]+/python\n$")  # and nothing behind it where there was none

    def test_docker(self):
        self.starter("docker")
        printed = self.env("--docker", PYTHONPATH="/of/this/machine").stdout
        self.assertNotIn("/of/this/machine", printed)  # which means nothing in the image
        self.sh(f"docker {printed.strip()} {self.command()}")
        self.assert_recorded()
        words = shlex.split(printed)
        self.assertEqual({words[i + 1].split("=")[0] for i, word in enumerate(words) if word == "-e"}, VARIABLES)

    def test_docker_keeps_the_path_of_the_image_with_exec(self):
        self.starter("docker")
        said = self.sh(f"docker -v {BUILD}:{BUILD}:ro -v {self.spool}:{self.spool} -e LACUNA_SPOOL={self.spool} -e LACUNA_LIBRARY={BUILD}/liblacuna.so "
                       f"{NODE} env --exec -- {self.command()}")
        self.assertEqual(said, f"{BUILD}/python:/of/the/image\n")
        self.assert_recorded()

    def test_exec_ends_as_its_command_does(self):
        for command, status in ((["sh", "-c", "exit 7"], 7), (["/nonexistent/program"], 127), (["/etc/passwd"], 126)):
            self.assertEqual(subprocess.run([NODE, "env", "--spool", self.spool, "--exec", "--", *command], stderr=subprocess.DEVNULL).returncode, status)

    def test_apptainer(self):
        self.starter("apptainer")
        self.assertIn(":/of/the/user", self.sh(f"apptainer {self.env('--apptainer', PYTHONPATH='/of/the/user').stdout.strip()} {self.command()}"))
        self.assert_recorded()

    def test_mpirun(self):
        self.starter("mpirun")
        printed = self.env("--mpirun", PYTHONPATH="/with a blank").stdout
        self.assertIn(":/with a blank", self.sh(f"mpirun {printed.strip()} {self.command()}"))
        self.assert_recorded()

    def test_slurm(self):
        self.starter("srun")
        self.sh(f"srun {self.env('--slurm').stdout.strip()} {self.command()}")
        self.assert_recorded()

    def test_slurm_sets_on_the_node_what_srun_would_keep(self):
        self.assertNotIn(" ", self.env("--slurm").stdout)
        self.starter("srun")
        for name, value in (("PYTHONPATH", "/a, b'c"), ("LACUNA_SPOOL", "/of/another"), ("CUDA_INJECTION64_PATH", "none")):
            self.spool = os.path.join(self.folder, name)
            os.mkdir(self.spool)
            printed = self.env("--slurm", **{name: value}).stdout
            self.assertNotIn(name + "=", printed)
            self.assertTrue(printed.endswith(f" {NODE} env --spool {self.spool} --exec --\n"), printed)
            said = self.sh(f"srun {printed.strip()} {self.command()}", **{name: value})
            self.assertEqual(said, BUILD + "/python" + (":" + value if name == "PYTHONPATH" else "") + "\n")
            self.assert_recorded()
            shutil.rmtree(os.path.join(self.folder, "out"))  # each is a recording of its own

    def test_slurm_names_the_step_where_another_is_set(self):
        self.starter("srun")
        end = f" {NODE} env --spool {self.spool}"
        for name in ("turn", "module:Turner.turn", "a,b"):
            printed = self.env("--slurm", "--step", name, LACUNA_STEP="another").stdout
            self.assertNotIn("LACUNA_STEP=", printed)
            self.assertTrue(printed.endswith(f"{end} --step {name} --exec --\n"), printed)
            self.assertEqual(self.sh(f"srun {printed.strip()} sh -c 'echo $LACUNA_STEP'", LACUNA_STEP="another"), name + "\n")
        printed = self.env("--slurm", "--step", "turn", LACUNA_SPOOL="/of/another").stdout  # one that an option can set
        self.assertIn(",LACUNA_STEP=turn ", printed)
        self.assertTrue(printed.endswith(f"{end} --exec --\n"), printed)
        printed = self.env("--slurm", "--on-demand", "--step", "turn", LACUNA_STEP="another", LACUNA_ON_DEMAND="0").stdout
        self.assertTrue(printed.endswith(f"{end} --step turn --on-demand --exec --\n"), printed)
        run = self.env("--slurm", "--step", "a b", LACUNA_STEP="another")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("cannot pass the value of LACUNA_STEP", run.stderr)

    def test_a_step_without_a_name_and_with_a_long_one(self):
        for options in (["--step", "x" * 256], ["--step", ""], ["--step"]):
            run = self.env(*options)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertEqual(run.stderr, "lacuna env: --step wants a NAME of 1 to 255 bytes (lacuna env --help)\n")
        self.assertEqual(self.env("--step", "x" * 255).returncode, 0)

    def test_what_cannot_be_passed_is_refused(self):
        for value in ("/a,b", "/a b", "/a'b"):
            for form, spool, name in (("--slurm", value, "LACUNA_SPOOL"), ("--apptainer", value, "LACUNA_SPOOL"), ("--apptainer", self.spool, "PYTHONPATH")):
                run = self.env(form, spool=spool, PYTHONPATH=value)
                self.assertEqual(run.returncode, 1, run.stdout)
                self.assertIn(f"cannot pass the value of {name}", run.stderr)
                self.assertEqual(run.stdout, "")
        self.assertEqual(self.env("--slurm", spool="/a b", LACUNA_SPOOL="/another").returncode, 1)

    def test_on_demand_is_one_more_variable(self):
        self.assertIn("export LACUNA_ON_DEMAND='1'\n", self.env("--on-demand").stdout)
        self.assertIn("-e LACUNA_ON_DEMAND=1 ", self.env("--on-demand", "--docker").stdout)

    def test_usage(self):
        for options in (["--docker", "--k8s"], ["--exec"], ["--exec", "--"], ["--exec", "--docker", "--", "true"], ["--image", "x"], ["--spool", "relative"], ["--what"]):
            self.assertEqual(subprocess.run([NODE, "env", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode, 2, options)

    def test_an_installed_copy_is_whole(self):
        folder = os.path.join(self.folder, "installed")
        said = subprocess.run([NODE, "env", "--install", folder], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(said, f"{folder}/lacuna-node\n")
        for path, _, names in os.walk(folder):
            for name in names:
                self.assertTrue(os.stat(os.path.join(path, name)).st_mode & stat.S_IROTH, name)  # for whoever the job runs as
        out = os.path.join(self.folder, "out")
        subprocess.run([f"{folder}/lacuna-node", "run", "--quiet", "-o", out, "--", sys.executable, self.script], check=True, env=self.environment,
                       stdout=subprocess.DEVNULL, timeout=SECONDS)
        self.assertEqual(len([name for name in os.listdir(out) if name.endswith(".spool") and not name.startswith("node-")]), 1)
        self.assertEqual(subprocess.run([NODE, "env", "--install", "/proc/nowhere"], stderr=subprocess.DEVNULL).returncode, 1)

    @unittest.skipUnless(yaml, "no yaml: the pod's specification is not parsed")
    def test_a_pod_is_allowed_by_the_restricted_policy_and_records(self):
        printed = self.env("--k8s", "--image", 'registry/"x":1').stdout
        pod = yaml.safe_load(printed)
        init, container = pod["initContainers"][0], pod["containers"][0]
        self.assertEqual(init["image"], 'registry/"x":1')
        for volume in pod["volumes"]:
            self.assertEqual(set(volume), {"name", "emptyDir"})  # no path of the node
        security = init["securityContext"]
        self.assertEqual((security["allowPrivilegeEscalation"], security["runAsNonRoot"], security["capabilities"], security["seccompProfile"]),
                         (False, True, {"drop": ["ALL"]}, {"type": "RuntimeDefault"}))
        self.assertNotEqual(security["runAsUser"], 0)
        for part in (init, container):
            for mount in part["volumeMounts"]:
                self.assertIn(mount["name"], [volume["name"] for volume in pod["volumes"]])
        self.assertNotIn("PYTHONPATH", printed)  # the image keeps its own: the launcher puts the hook in front of it

        tools, out = os.path.join(self.folder, "tools"), os.path.join(self.folder, "lacuna-out")
        os.mkdir(tools)
        os.mkdir(out)

        def here(text):
            return text.replace("/lacuna-out", out) if text.startswith("/lacuna-out") else tools + text[len("/lacuna"):] if text.startswith("/lacuna") else text

        def start(part, command, **more):
            environment = {entry["name"]: here(entry["value"]) for entry in part.get("env", [])}
            return subprocess.run(command, env={"PATH": self.environment["PATH"], **environment, **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=SECONDS, cwd="/")

        program = LACUNA if os.path.exists(LACUNA) else NODE
        brought = start(init, [program] + [here(word) for word in init["command"][1:]])
        self.assertEqual(brought.returncode, 0, brought.stderr)
        trained = start(container, [here(word) for word in container["command"]] + [sys.executable, self.script], PYTHONPATH="/of/the/image")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertEqual(trained.stdout, f"{tools}/python:/of/the/image\n")
        recording = os.path.join(out, os.listdir(out)[0])
        self.assertEqual(len([name for name in os.listdir(recording) if name.endswith(".spool") and not name.startswith("node-")]), 1)


if __name__ == "__main__":
    unittest.main()
