"""The program `lacuna`: where it is, and one run of it."""
import json
import os
import shutil
import subprocess


class Error(Exception):
    """What the program complained of, in its own sentence."""

    def __init__(self, sentence, status=1):
        super().__init__(sentence)
        self.status = status  # the exit status of the program


def find():
    """LACUNA_PROGRAM, else the program in this package, else the one on PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lacuna")
    path = os.environ.get("LACUNA_PROGRAM") or (own if os.path.isfile(own) else shutil.which("lacuna"))
    if not path:
        raise Error("the program `lacuna` is neither in this package nor on PATH; LACUNA_PROGRAM may name it")
    if path == own and not os.access(own, os.X_OK):  # an installer that drops modes
        os.chmod(own, os.stat(own).st_mode | 0o111)
    return path


def run(*arguments):
    """The bytes that the program prints. A failure is an Error with the last line it wrote to stderr."""
    # a notebook kernel that is itself recorded: the program that reads traces is not part of the job
    environment = {name: value for name, value in os.environ.items() if name not in ("LACUNA_SPOOL", "LD_PRELOAD")}
    try:
        done = subprocess.run([find()] + list(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    except OSError as problem:
        raise Error("cannot run the program `lacuna`: {}".format(problem))
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Error(said[-1] if said else "lacuna {} ended with status {}".format(arguments[0], done.returncode), done.returncode)
    return done.stdout


def run_json(*arguments):
    """The document that the program prints with --json."""
    return json.loads(run(*(arguments + ("--json",))).decode("utf-8"))
