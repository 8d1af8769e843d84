"""What every check on a GPU needs: running programs against a deadline, results, checks, archives."""
import collections
import glob
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# what was built here, else what `make gpu-carry` put together for a machine that builds nothing
BUILD = next((folder for folder in (os.path.join(ROOT, "build/release"), os.path.join(ROOT, "build/carry"))
              if os.path.exists(os.path.join(folder, "lacuna-node"))), os.path.join(ROOT, "build/release"))
NODE, LACUNA = os.path.join(BUILD, "lacuna-node"), os.path.join(BUILD, "lacuna")
ARCHIVE_BYTES_MAX = 16 << 20
PART_BYTES_MAX = 400 << 20   # a larger one is not even tried: packing takes time, too
LOG_CHARACTERS = 20000       # of one program
END_SECONDS = 20             # kept for the predictions that are still to be made, and for packing


def session_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[3])
    except (OSError, ValueError, IndexError):
        return 0


def end_session(leader):
    """All processes of a session: a launcher puts its job into a process group of its own."""
    for _ in range(50):
        left = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != leader.pid and session_of(pid) == leader.pid]
        if leader.poll() is None:
            left.append(leader.pid)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not left:
            return
        time.sleep(0.1)


def add_file(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.addfile(entry, io.BytesIO(data))


def pack_folder(folder):
    """Bytes of a folder's .tar.gz, the same ones for the same files."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                add_file(tar, os.path.basename(folder) + "/" + name, file.read())
    return out.getvalue()


class Bench:
    def __init__(self, args):
        self.args, self.began = args, time.monotonic()
        self.deadline = self.began + args.seconds - END_SECONDS
        self.part_deadline = self.deadline
        self.results, self.checks, self.logs, self.summary = collections.OrderedDict(), [], [], []
        self.scratch = tempfile.mkdtemp(prefix="lacuna-gpu-")
        self.golden = os.path.join(self.scratch, "golden")
        os.makedirs(self.golden)
        os.makedirs(args.out, exist_ok=True)
        self.environment, self.environment_of_c = {"PYTHONUNBUFFERED": "1"}, {}
        self.have_torch, self.have_engine, self.cupti = False, False, None

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

    def say(self, line):
        """A line for the summary, which comes last."""
        self.summary.append(line)

    def out_of_time(self, what, wanted_s):
        if time.monotonic() + wanted_s <= self.part_deadline:
            return False
        self.missing(what, "no time left")
        return True

    def run(self, name, command, env=None, seconds=100):
        """Standard output; None when it fails or takes too long. Both streams go to the log; nothing that it started is left running."""
        start, reason = time.monotonic(), None
        left = max(5, min(seconds, self.part_deadline - start))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT, start_new_session=True,
                                           env={**os.environ, **self.environment, **(env or {})})
            except OSError as error:
                self.logs.append((name, f"{command}\n{error}\n"))
                return None
            try:
                process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                reason = f"stopped after {left:.0f} s"
                process.terminate()
                try:
                    process.wait(timeout=3)
                except subprocess.TimeoutExpired:
                    pass
            finally:
                end_session(process)
            printed, said = (self._text(stream) for stream in (out, err))
        status = f"exit {process.returncode} after {time.monotonic() - start:.1f} s"
        self.logs.append((name, "\n".join((str(command), status, printed[-LOG_CHARACTERS:], said[-LOG_CHARACTERS:], reason or "")) + "\n"))
        return printed if process.returncode == 0 and reason is None else None

    @staticmethod
    def _text(stream):
        stream.seek(0)
        return stream.read().decode("utf-8", "replace")

    def last_words(self):
        """The last line that the last program wrote: why it failed, if it did."""
        lines = [line for line in self.logs[-1][1].splitlines() if line.strip()] if self.logs else []
        return lines[-1].strip()[:300] if lines else "nothing was said"

    # ---- the jobs

    def train(self, *arguments):
        """ResNet-50 in PyTorch; the pictures are made once."""
        return [self.args.python, os.path.join(ROOT, "kernels/train_resnet.py"), *(["--cpu"] if self.args.rehearse else []),
                "--pictures", os.path.join(self.scratch, "pictures"), *arguments]

    def workload(self, *options):
        return [os.path.join(BUILD, "workload-cpu"), "--cpu", *options] if self.args.rehearse else [os.path.join(BUILD, "workload"), *options]

    def workers(self):
        """As many as a person would give it here: the cores less two, 12 at most."""
        return "2" if self.args.rehearse else str(max(2, min(12, len(os.sched_getaffinity(0)) - 2)))

    def torch_steps(self, name, command, warm_up):
        """Each step's ms, the first ones left out."""
        path = os.path.join(self.scratch, "times")
        if os.path.exists(path):
            os.unlink(path)
        if self.run(name, [*command, "--step-times", path]) is None or not os.path.exists(path):
            return []
        with open(path) as file:
            return [float(line) for line in file][warm_up:]

    def workload_step(self, name, command):
        """Its mean step in ms: a list of one, or of none."""
        found = re.search(r"([0-9.]+) ms a step", self.run(name, command, env=self.environment_of_c) or "")
        return [float(found.group(1))] if found else []

    def recorded(self, folder, command, *options, gpu=True):
        """`command` under the recorder: whole, or the steps that `options` name."""
        return [NODE, "run", "--quiet", *(["--limit", "4g"] if "--steps" in options else ["--all"]), *options, "-o", folder, "--",
                *([] if gpu else ["env", "-u", "CUDA_INJECTION64_PATH"]), *command]

    def engine(self, name, *arguments):
        """The program with the engine; what it is linked with comes along where this machine has none of it."""
        libraries = os.path.join(BUILD, "lib")
        return self.run(name, [LACUNA, *arguments], env={"LD_LIBRARY_PATH": libraries} if os.path.isdir(libraries) else None, seconds=40)

    def analyze(self, folder, *options):
        printed = self.engine("analyze " + os.path.basename(folder), "analyze", folder, "--json", *options) if os.path.exists(LACUNA) else None
        try:
            return json.loads(printed) if printed else None
        except ValueError:
            return None

    # ---- what goes home

    def save(self):
        """After each part: what is known so far is there even if this program is killed."""
        self.results["checks"], self.results["summary"] = self.checks, self.summary
        path = os.path.join(self.args.out, "results.json")
        with open(path + ".new", "w") as file:
            json.dump(self.results, file, indent=1)
            file.write("\n")
        os.replace(path + ".new", path)

    def pack(self):
        self.save()
        with tarfile.open(os.path.join(self.args.out, "logs.tar.gz"), "w:gz") as tar:
            for number, point in self.results.get("points", {}).items():
                add_file(tar, f"points/{int(number):02d}.json", json.dumps(point, indent=1).encode())
            for number, (name, text) in enumerate(self.logs):
                add_file(tar, f"logs/{number:03d}-{name.replace(' ', '-').replace('/', '-')}.txt", text.encode())
        packed = []
        for folder in glob.glob(os.path.join(self.golden, "*")):
            raw = sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder))
            if raw > PART_BYTES_MAX or time.monotonic() > self.began + self.args.seconds:
                self.leave_out(folder)
            elif raw > 0:
                packed.append((pack_folder(folder), folder))
        with tarfile.open(os.path.join(self.args.out, "golden.tar"), "w") as tar:
            total = 0
            for data, folder in sorted(packed, key=lambda part: len(part[0])):   # the smallest first: as many as there is room for
                total += len(data) + 2048
                if total > ARCHIVE_BYTES_MAX - 65536:
                    self.leave_out(folder)
                else:
                    add_file(tar, os.path.basename(folder) + ".tar.gz", data)
        self.save()

    def leave_out(self, folder):
        self.results.setdefault("left_out", []).append(os.path.basename(folder))

    def done(self):
        shutil.rmtree(self.scratch, ignore_errors=True)
