#!/usr/bin/env python3
"""Who started a job and of which commit: recorded by `lacuna run`, in the journal, and out of what is shared where that is asked for."""
import os
import subprocess
import sys
import tempfile
import unittest

from server_harness import PROGRAM, Server

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Origin(unittest.TestCase):
    def test_a_run_knows_its_person_and_commit(self):
        scratch = tempfile.TemporaryDirectory(prefix="lacuna-origin-")
        self.addCleanup(scratch.cleanup)
        folder = scratch.name
        os.makedirs(os.path.join(folder, "code/.git/refs/heads"))
        os.makedirs(os.path.join(folder, "code/train"))
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("refs/heads/main", COMMIT + "\n")):
            with open(os.path.join(folder, "code/.git", name), "w") as file:
                file.write(text)
        recorded, data = os.path.join(folder, "run"), os.path.join(folder, "data")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("LACUNA_", "SLURM_", "GIT")) and name not in ("CI_COMMIT_SHA", "LOGNAME")}
        ran = subprocess.run([PROGRAM, "run", "--quiet", "-o", recorded, "--", sys.executable, "-c", "import time; time.sleep(0.3)"],
                             cwd=os.path.join(folder, "code/train"), env={**environment, "USER": "kimberley"}, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        subprocess.run([PROGRAM, "import", recorded, "--data", data], check=True, capture_output=True)
        server = Server(data=data)
        self.addCleanup(server.close)
        run = server.api("/projects/-/journal")["runs"][0]
        self.assertEqual((run["person"], run["facts"]["commit"]), ("kimberley", COMMIT))
        weeks = server.api("/projects/-/trends")["weeks"]
        self.assertEqual([person["name"] for person in weeks[0]["people"]], ["kimberley"])
        # neither is a setting of the job: a comparison has no change to tell of them
        settings = server.api(f"/traces/{run['trace']}/analysis")["settings"]
        self.assertNotIn("kimberley", str(settings))
        for form in ("chrome", "html", "markdown", "sqlite"):
            target = os.path.join(folder, "out." + form)
            told = subprocess.run([PROGRAM, "export", recorded, "--to", form, "-o", target, "--redact", "users"], check=True, capture_output=True, text=True)
            with open(target, "rb") as file:
                self.assertNotIn(b"kimberley", file.read(), form)
            self.assertNotIn("in the file: user names", told.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
