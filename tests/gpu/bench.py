"""What every check on a GPU needs: running programs against a deadline, results, checks, archives."""
import collections
import glob
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
NODE, LACUNA = os.path.join(BUILD, "lacuna-node"), os.path.join(BUILD, "lacuna")
ARCHIVE_BYTES_MAX = 16 << 20


class Bench:
    def __init__(self, args):
        self.args, self.deadline = args, time.monotonic() + args.seconds
        self.results, self.checks, self.logs = collections.OrderedDict(), [], []
        self.scratch = tempfile.mkdtemp(prefix="lacuna-gpu-")
        self.golden = os.path.join(self.scratch, "golden")
        os.makedirs(self.golden)
        self.environment = {}

    def check(self, name, ok, detail):
        self.checks.append({"check": name, "ok": bool(ok), "detail": detail})
        print(("ok    " if ok else "FAIL  ") + f"{name}: {detail}", flush=True)

    def note(self, key, value):
        self.results[key] = value
        print(f"      {key}: {value}", flush=True)

    def missing(self, what, why):
        """A check that cannot be made here, and why."""
        self.results.setdefault("not_run", []).append(f"{what}: {why}")
        print(f"skip: {what}: {why}", flush=True)

    def out_of_time(self, what, wanted_s):
        if time.monotonic() + wanted_s <= self.deadline:
            return False
        self.missing(what, "no time left")
        return True

    def run(self, name, command, env=None, seconds=150):
        """Standard output; None when it fails or takes too long. Both streams go to the log."""
        left = max(5, min(seconds, self.deadline - time.monotonic()))
        start = time.monotonic()
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=left, cwd=ROOT,
                                  env={**os.environ, **self.environment, **(env or {})})
        except (subprocess.TimeoutExpired, OSError) as error:
            self.logs.append((name, f"{command}\n{error}\n"))
            return None
        self.logs.append((name, f"{command}\nexit {done.returncode} after {time.monotonic() - start:.1f} s\n{done.stdout}\n{done.stderr}\n"))
        return done.stdout if done.returncode == 0 else None

    def last_words(self):
        """The last line that the last program wrote: why it failed, if it did."""
        lines = [line for line in self.logs[-1][1].splitlines() if line.strip()] if self.logs else []
        return lines[-1].strip()[:300] if lines else "nothing was said"

    def recorded(self, folder, command, *options, gpu=True):
        """`command` under the recorder: whole, or the steps that `options` name."""
        return [NODE, "run", "--quiet", *(["--limit", "4g"] if "--steps" in options else ["--all"]), *options, "-o", folder, "--",
                *([] if gpu else ["env", "-u", "CUDA_INJECTION64_PATH"]), *command]

    def analyze(self, folder, *options):
        printed = self.run("analyze", [LACUNA, "analyze", folder, "--json", *options]) if os.access(LACUNA, os.X_OK) else None
        try:
            return json.loads(printed) if printed else None
        except ValueError:
            return None

    # ---- what goes home

    def pack(self):
        os.makedirs(self.args.out, exist_ok=True)
        folder = os.path.join(self.scratch, "logs")
        os.makedirs(folder, exist_ok=True)
        for number, (name, text) in enumerate(self.logs):
            with open(os.path.join(folder, f"{number:02d}-{name.replace(' ', '-').replace('/', '-')}.txt"), "w") as file:
                file.write(text)
        self.results["checks"] = self.checks
        for name in ("golden", "logs"):
            self.archive(name, os.path.join(self.scratch, name))
        with open(os.path.join(self.args.out, "results.json"), "w") as file:
            json.dump(self.results, file, indent=1)
            file.write("\n")
        print(f"results: {self.args.out}")

    def archive(self, name, folder):
        """Parts are left out, the largest first, until the archive is small enough; what is left out is said."""
        def size(path):
            if not os.path.isdir(path):
                return os.path.getsize(path)
            return sum(os.path.getsize(os.path.join(place, file)) for place, _, files in os.walk(path) for file in files)

        parts = sorted(glob.glob(os.path.join(folder, "*")), key=size, reverse=True)
        path = os.path.join(self.args.out, name + ".tar.gz")
        while parts:
            with tarfile.open(path, "w:gz") as tar:
                for part in parts:
                    tar.add(part, arcname=os.path.join(name, os.path.basename(part)))
            if os.path.getsize(path) <= ARCHIVE_BYTES_MAX:
                return
            self.results.setdefault("left_out", []).append(os.path.basename(parts.pop(0)))

    def done(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
