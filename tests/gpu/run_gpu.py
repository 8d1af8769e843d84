#!/usr/bin/env python3
"""The checks that need a GPU, in one call of less than ten minutes, without a network.

usage: run_gpu.py [--out DIR] [--seconds N] [--rehearse]

Uses what build/release holds (liblacuna.so, lacuna-node, python, workload; lacuna if it runs here) and builds what is missing with
gcc and nvcc. Writes results.json and two archives of 16 MiB or less into DIR ($OUT, else build/gpu): golden.tar.gz, a short spool of
each stage, and logs.tar.gz. --rehearse goes through everything on the processor, to see that the script works; it proves nothing else.
"""
import argparse
import collections
import glob
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import spools  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
NODE, LACUNA = os.path.join(BUILD, "lacuna-node"), os.path.join(BUILD, "lacuna")
TRAIN = os.path.join(ROOT, "kernels/train_resnet.py")
ARCHIVE_BYTES_MAX = 16 << 20
WARM_UP = 8

# Each stage changes one thing; the recording of a stage predicts the next one's step time, by the change named last.
LADDER = [("one worker", ["--workers", "1"], "workers=12"),
          ("workers", ["--workers", "12"], "layout=nhwc"),
          ("channels last", ["--workers", "12", "--channels-last"], "pinned=1"),
          ("pinned", ["--workers", "12", "--channels-last", "--pinned"], "async=1"),
          ("asynchronous", ["--workers", "12", "--channels-last", "--pinned", "--async"], None)]


def out_of_time(deadline, wanted_s):
    return time.monotonic() + wanted_s > deadline


class Bench:
    def __init__(self, args):
        self.args, self.deadline = args, time.monotonic() + args.seconds
        self.results, self.checks, self.logs = collections.OrderedDict(), [], []
        self.scratch = tempfile.mkdtemp(prefix="lacuna-gpu-")
        self.python = args.python

    def check(self, name, ok, detail):
        self.checks.append({"check": name, "ok": bool(ok), "detail": detail})
        print(("ok    " if ok else "FAIL  ") + f"{name}: {detail}", flush=True)

    def note(self, key, value):
        self.results[key] = value
        print(f"      {key}: {value}", flush=True)

    def run(self, name, command, env=None, seconds=150):
        """Standard output; None when it fails or takes too long. Both streams go to the log."""
        left = max(5, min(seconds, self.deadline - time.monotonic()))
        start = time.monotonic()
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=left, cwd=ROOT,
                                  env={**os.environ, **(env or {})})
        except (subprocess.TimeoutExpired, OSError) as error:
            self.logs.append((name, f"{command}\n{error}\n"))
            return None
        self.logs.append((name, f"{command}\nexit {done.returncode} after {time.monotonic() - start:.1f} s\n{done.stdout}\n{done.stderr}\n"))
        return done.stdout if done.returncode == 0 else None

    def recorded(self, folder, command, *options, gpu=True):
        return [NODE, "run", "--quiet", "--all" if "--steps" not in options else "--limit", *([] if "--steps" not in options else ["4g"]),
                *options, "-o", folder, "--", *([] if gpu else ["env", "-u", "CUDA_INJECTION64_PATH"]), *command]

    def train(self, *arguments):
        return [self.python, TRAIN, *(["--cpu"] if self.args.rehearse else []), *arguments]

    # ---- the machine

    def machine(self):
        said = self.run("nvidia-smi", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm", "--format=csv,noheader"])
        self.note("gpu", (said or "none").strip())
        said = self.run("versions", [self.python, "-c", "import torch, sys; print(torch.__version__, torch.version.cuda, sys.version.split()[0])"])
        self.note("torch_cuda_python", (said or "no torch").strip())
        self.note("cores", len(os.sched_getaffinity(0)))
        self.have_torch = said is not None

    # ---- the layout kernels

    def kernels(self):
        printed = self.run("workload --check", [self.workload, *self.workload_options, "--check"])
        self.note("layout_kernels", (printed or "").strip().splitlines())
        self.check("layout kernels are right in both directions", printed is not None and "layout kernels are right" in printed,
                   "against the processor")

    # ---- what recording costs

    def steps_of(self, name, command, path):
        if self.run(name, [*command, "--step-times", path]) is None:
            return []
        with open(path) as file:
            return [float(line) for line in file][WARM_UP:]

    def costs(self):
        """Steps without us, with ranges only, in full, and under torch.profiler; in turns, so that a drift meets all alike."""
        steps = "12" if self.args.rehearse else "48"
        job = ["--workers", "2" if self.args.rehearse else "12", "--pinned", "--async", "--channels-last", "--steps", steps]
        times = collections.defaultdict(list)
        for turn in range(1 if self.args.rehearse else 3):
            for kind in ("off", "ranges", "full", "torch.profiler"):
                if out_of_time(self.deadline, 60):
                    break
                folder = os.path.join(self.scratch, "cost")
                command = self.train(*job)
                if kind == "torch.profiler":
                    command += ["--torch-profiler", os.path.join(self.scratch, "cost.json")]
                elif kind != "off":
                    command = self.recorded(folder, command, gpu=kind == "full")
                times[kind] += self.steps_of(f"cost {kind} {turn}", command, os.path.join(self.scratch, "times"))
                shutil.rmtree(folder, ignore_errors=True)
        medians = {kind: statistics.median(values) for kind, values in times.items() if values}
        self.note("step_ms", {kind: round(value, 3) for kind, value in medians.items()})
        for kind in ("ranges", "full", "torch.profiler"):
            if kind in medians and "off" in medians:
                percent = (medians[kind] / medians["off"] - 1) * 100
                self.note(f"cost_percent_{kind}", round(percent, 2))
                if kind != "torch.profiler" and not self.args.rehearse:
                    self.check(f"cost of recording ({kind}) is 2 % or less", percent <= 2.0, f"{percent:.2f} %")

    # ---- the same kernels as another recorder

    def per_step(self, record):
        """Kernels of one step, {name: (count, ns)}: a long and a short run, subtracted, so that start-up does not count."""
        few, many = (record(steps) for steps in (12, 32))
        if few is None or many is None:
            return None
        return {name: ((count - few.get(name, (0, 0))[0]) / 20, (ns - few.get(name, (0, 0))[1]) / 20)
                for name, (count, ns) in many.items() if count != few.get(name, (0, 0))[0]}

    def ours(self, steps):
        folder = os.path.join(self.scratch, f"ours-{steps}")
        if self.run(f"kernels ours {steps}", self.recorded(folder, self.train("--workers", "8", "--steps", str(steps)))) is None:
            return None
        recorded = spools.read(folder)
        self.check(f"nothing was lost ({steps} steps)", sum(spool.dropped for spool in recorded) == 0, f"{len(recorded)} processes")
        return spools.kernel_totals(recorded)

    def theirs(self, steps):
        path = os.path.join(self.scratch, f"theirs-{steps}.json")
        if self.run(f"kernels torch.profiler {steps}", self.train("--workers", "8", "--steps", str(steps), "--torch-profiler", path)) is None:
            return None
        with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
            events = json.load(file)["traceEvents"]
        totals = collections.defaultdict(lambda: [0, 0])
        for event in events:
            if event.get("cat") == "kernel":
                totals[event["name"]][0] += 1
                totals[event["name"]][1] += event["dur"] * 1e3
        return dict(totals)

    def same_kernels(self):
        ours, theirs = self.per_step(self.ours), self.per_step(self.theirs)
        if not ours or not theirs:
            self.check("kernels as torch.profiler counts them", False, "one of the two could not be recorded")
            return
        counts = [sum(count for count, _ in kernels.values()) for kernels in (ours, theirs)]
        times = [sum(ns for _, ns in kernels.values()) for kernels in (ours, theirs)]
        self.note("kernels_per_step", {"ours": counts[0], "torch.profiler": counts[1]})
        self.note("kernel_ms_per_step", {"ours": round(times[0] / 1e6, 4), "torch.profiler": round(times[1] / 1e6, 4)})
        self.check("kernel count as torch.profiler's within 0.1 %", abs(counts[0] / counts[1] - 1) <= 0.001, f"{counts[0]} and {counts[1]} a step")
        difference = abs(times[0] / times[1] - 1) * 100
        # two runs: clocks differ by more than the recorders do, so this says what it is and no more
        self.note("kernel_time_difference_percent", round(difference, 3))
        self.check("kernel time as torch.profiler's, two runs of one job", difference <= 2.0, f"{difference:.3f} % (goal 0.1 %)")

    # ---- the ladder

    def analyze(self, folder, *options):
        if not os.access(LACUNA, os.X_OK):
            return None
        printed = self.run("analyze", [LACUNA, "analyze", folder, "--json", *options])
        try:
            return json.loads(printed) if printed else None
        except ValueError:
            return None

    def ladder(self):
        os.makedirs(os.path.join(self.scratch, "golden"))
        rows = []
        for name, options, change in LADDER:
            if out_of_time(self.deadline, 40):
                self.note("ladder_left_out", name)
                continue
            if self.args.rehearse:
                options = ["2" if option == "12" else option for option in options]
            plain = self.steps_of(f"ladder {name}", self.train(*options, "--steps", "12" if self.args.rehearse else "40"),
                                  os.path.join(self.scratch, "times"))
            folder = os.path.join(self.scratch, "golden", name.replace(" ", "-"))
            self.run(f"record {name}", self.recorded(folder, self.train(*options, "--steps", "14" if self.args.rehearse else "30"), "--steps", "6:20"))
            # the program with the engine does not run everywhere: then the archive is analysed at home
            analysis = self.analyze(folder, *(["--what-if", change] if change else [])) or {}
            predicted = (analysis.get("what_if") or {}).get("step_mean_ns")
            rows.append({"stage": name, "step_ms": round(statistics.mean(plain), 3) if plain else None, "analyzed": bool(analysis),
                         "recorded_step_ms": round((analysis["steps"]["mean_ns"] or 0) / 1e6, 3) if analysis else None,
                         "next": change, "next_predicted_ms": round(predicted / 1e6, 3) if predicted else None,
                         "findings": [[finding["id"], finding["gain_pct"]["mid"]] for finding in analysis.get("findings", [])][:5]})
            print(f"      {rows[-1]}", flush=True)
        self.note("ladder", rows)
        for row, after in zip(rows, rows[1:]):
            if row["next_predicted_ms"] and after["step_ms"]:
                print(f"      {row['next']}: predicted {row['next_predicted_ms']} ms, achieved {after['step_ms']} ms")
        measured = [row["step_ms"] for row in rows if row["step_ms"] is not None]
        self.check("the ladder ran", len(measured) >= 2, f"{len(measured)} stages, ms a step: {measured}")
        if not self.args.rehearse and len(measured) >= 2:
            self.check("the last stage is quicker than the first", measured[-1] < measured[0], f"{measured[0]} -> {measured[-1]} ms")

    def workload_stages(self):
        """The C workload, in full: every kernel has its call, copies say whether their memory is pinned."""
        for name, options in (("pageable", []), ("pinned", ["--pinned", "--async"]), ("sync", ["--sync-every-op"]), ("small", ["--small-kernels"])):
            if out_of_time(self.deadline, 30):
                return
            folder = os.path.join(self.scratch, "golden", "workload-" + name)
            if self.run(f"workload {name}", self.recorded(folder, [self.workload, *self.workload_options, *options, "--steps", "12"])) is None:
                self.check(f"workload {name}", False, "it failed under the recorder; see the log")
                continue
            recorded = spools.read(folder)
            kernels, pushes = sum(len(spool.kernels) for spool in recorded), sum((spool.pushes for spool in recorded), collections.Counter())
            self.check(f"workload {name}", pushes["loader.fetch"] > 0 and (kernels > 0 or self.args.rehearse),
                       f"{kernels} kernels, {sum(spool.copies for spool in recorded)} copies, {pushes['loader.fetch']} batches")

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
        parts = sorted(glob.glob(os.path.join(folder, "*")), key=lambda path: -sum(
            os.path.getsize(os.path.join(place, file)) for place, _, files in os.walk(path) for file in files) if os.path.isdir(path) else -os.path.getsize(path))
        path = os.path.join(self.args.out, name + ".tar.gz")
        while parts:
            with tarfile.open(path, "w:gz") as tar:
                for part in parts:
                    tar.add(part, arcname=os.path.join(name, os.path.basename(part)))
            if os.path.getsize(path) <= ARCHIVE_BYTES_MAX:
                return
            self.results.setdefault("left_out", []).append(os.path.basename(parts.pop(0)))


def have_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.startswith(b"GPU ")
    except OSError:
        return False


def build(rehearse):
    wanted = ["liblacuna.so", "lacuna-node", "python/.stamp", "workload-cpu" if rehearse else "workload"]
    missing = [name for name in wanted if not os.path.exists(os.path.join(BUILD, name)) and
               not (name == "python/.stamp" and os.path.exists(os.path.join(BUILD, "python/_lacuna.abi3.so")))]
    if missing and subprocess.run(["make", "-j4", *("build/release/" + name for name in missing)], cwd=ROOT).returncode != 0:
        sys.exit(f"cannot build {missing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/gpu"))
    parser.add_argument("--seconds", type=int, default=540)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rehearse", action="store_true")
    args = parser.parse_args()
    if not have_gpu() and not args.rehearse:
        print("skip: no GPU here (nvidia-smi lists none): nothing of `make test-gpu` was run")
        print("0 passed, 0 failed")
        return 0
    build(args.rehearse)
    bench = Bench(args)
    bench.workload = os.path.join(BUILD, "workload-cpu" if args.rehearse else "workload")
    bench.workload_options = ["--cpu"] if args.rehearse else []
    try:
        bench.machine()
        bench.kernels()
        if bench.have_torch:
            bench.ladder()
            if not args.rehearse:
                bench.same_kernels()
            bench.costs()
        else:
            os.makedirs(os.path.join(bench.scratch, "golden"))
            bench.check("PyTorch is there", False, f"{args.python} has no torch: ladder, costs and comparison were not run")
        bench.workload_stages()
    finally:
        bench.pack()
        shutil.rmtree(bench.scratch, ignore_errors=True)
    failed = [check for check in bench.checks if not check["ok"]]
    print(f"{len(bench.checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
