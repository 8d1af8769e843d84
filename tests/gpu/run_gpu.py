#!/usr/bin/env python3
"""The checks that need a GPU, in one call of less than ten minutes, without a network.

usage: run_gpu.py [--out DIR] [--seconds N] [--rehearse]     all checks that can be made here
       run_gpu.py --analyze DIR                              predictions from what an earlier call brought home

Uses what build/release holds (liblacuna.so, lacuna-node, python, workload, kinds; lacuna if it runs here; cupti/libcupti.so.* if the machine has
none) and builds what is missing with gcc and nvcc. Writes results.json and two archives of 16 MiB or less into DIR ($OUT, else build/gpu):
golden.tar.gz, a short spool of each stage and buffers of CUPTI, and logs.tar.gz. --rehearse goes through everything on the processor, to see
that the script works; it proves nothing else.
"""
import argparse
import collections
import ctypes
import glob
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import spools  # noqa: E402
from bench import BUILD, LACUNA, ROOT, Bench  # noqa: E402

TRAIN = os.path.join(ROOT, "kernels/train_resnet.py")
WARM_UP = 8

# Each stage changes one thing; the recording of a stage predicts the next one's step time, by the change named last.
TORCH_LADDER = [("one worker", ["--workers", "1"], "workers=12"),
                ("workers", ["--workers", "12"], "layout=nhwc"),
                ("channels last", ["--workers", "12", "--channels-last"], "pinned=1"),
                ("pinned", ["--workers", "12", "--channels-last", "--pinned"], "async=1"),
                ("asynchronous", ["--workers", "12", "--channels-last", "--pinned", "--async"], None)]
C_LADDER = [("one worker", ["--workers", "1", "--layout", "nchw"], "workers=12"),
            ("workers", ["--workers", "12", "--layout", "nchw"], "layout=nhwc"),
            ("channels last", ["--workers", "12", "--layout", "nhwc"], "pinned=1"),
            ("pinned", ["--workers", "12", "--layout", "nhwc", "--pinned"], "async=1"),
            ("asynchronous", ["--workers", "12", "--layout", "nhwc", "--pinned", "--async"], None)]
# Batches large enough that a layout kernel, a copy and a batch's making all count on a data-centre GPU.
C_SIZE = ["--batch", "512", "--work", "400", "--fetch-ms", "150"]


# ---- the machine

def machine(bench):
    said = bench.run("nvidia-smi", ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm", "--format=csv,noheader"])
    bench.note("gpu", (said or "none").strip())
    said = bench.run("versions", [bench.args.python, "-c", "import torch, sys; print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), "
                                                           "sys.version.split()[0])"])
    bench.note("torch_cuda_python", (said or "no torch").strip())
    bench.have_torch = said is not None and (" True " in said or bench.args.rehearse)
    bench.note("cores", len(os.sched_getaffinity(0)))
    bench.have_engine = bench.run("lacuna --version", [LACUNA, "--version"]) is not None
    bench.note("engine_runs_here", bench.have_engine)
    bench.cupti = find_cupti(bench)
    bench.note("cupti", bench.cupti or "none")


def find_cupti(bench):
    """Ours finds a toolkit's and PyTorch's own; a program without either is given what was carried here, or PyTorch's."""
    for folder in ("/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"):
        found = sorted(glob.glob(os.path.join(folder, "libcupti.so.*")))
        if found:
            return found[-1]
    said = bench.run("cupti of PyTorch", [bench.args.python, "-c", "import nvidia.cuda_cupti as c, glob; print(*glob.glob(c.__path__[0] + '/lib/libcupti.so.*'))"])
    found = (said or "").split() or sorted(glob.glob(os.path.join(BUILD, "cupti", "libcupti.so.*")))
    if not found:
        return None
    bench.environment_of_c = {"LACUNA_CUPTI": found[-1]}
    return found[-1]


def c_workload(bench, *options):
    return [bench.workload, *bench.workload_options, *options]


def train(bench, *arguments):
    return [bench.args.python, TRAIN, *(["--cpu"] if bench.args.rehearse else []), *arguments]


# ---- the layout kernels

def layout_kernels(bench):
    printed = bench.run("workload --check", c_workload(bench, "--check"))
    bench.note("layout_kernels", (printed or bench.last_words()).strip().splitlines())
    bench.check("layout kernels are right in both directions", printed is not None and "layout kernels are right" in printed, "against the processor")


# ---- raw buffers, and graphs

def raw_buffers(bench):
    """Every kind of activity, with the buffers as CUPTI returned them; ours must have read them as a plain reader does."""
    if not os.path.exists(bench.kinds):
        return bench.missing("raw buffers", "build/release/kinds is not there (make kernels, with nvcc)")
    folder, dump = os.path.join(bench.golden, "kinds"), os.path.join(bench.golden, "cupti")
    os.makedirs(dump, exist_ok=True)
    if bench.run("kinds", bench.recorded(folder, [bench.kinds]), env={**bench.environment_of_c, "LACUNA_CUPTI_DUMP": dump}) is None:
        return bench.check("every kind of activity is recorded", False, bench.last_words())
    return same_as_dumped(bench, spools.read(folder), spools.dumped_kernels(dump))


def same_as_dumped(bench, recorded, dumped):
    kernels = sorted((kernel.start_ns, kernel.end_ns) for spool in recorded for kernel in spool.kernels)
    settings = {key: value for spool in recorded for key, value in spool.settings.items()}
    bench.note("gpu_recording", [settings.get("gpu_recording", "not said"), settings.get("gpu_recording_reason", "")])
    bench.check("kernels in the spool are those in CUPTI's buffers", kernels == dumped and kernels, f"{len(kernels)} and {len(dumped)}")
    return None


def stand_in_buffers(bench):
    """The same path without a GPU: the stand-in for libcupti, driven from here, in a process of its own."""
    folder, dump = os.path.join(bench.golden, "stand-in"), os.path.join(bench.golden, "cupti")
    library, stand_in = (os.path.join(BUILD, name) for name in ("liblacuna.so", "stand_in/libcupti_stand_in.so"))
    if not os.path.exists(stand_in):
        return bench.missing("the stand-in's buffers", "build/release/stand_in is not there (make test-programs)")
    os.makedirs(dump, exist_ok=True)
    os.makedirs(folder, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        os.environ.update({"LACUNA_SPOOL": folder, "LACUNA_CUPTI": stand_in, "LACUNA_CUPTI_DUMP": dump})
        ctypes.CDLL(library).InitializeInjection()
        ctypes.CDLL(stand_in).stand_in_deliver(500, os.getpid(), 0)
        os._exit(0)
    os.waitpid(pid, 0)
    return same_as_dumped(bench, spools.read(folder), spools.dumped_kernels(dump))


def graphs(bench):
    """A graph of many small kernels: what recording them costs, and whether the recorder notices."""
    if not os.path.exists(bench.kinds):
        return bench.missing("graphs", "build/release/kinds is not there")
    rows = {}
    for name, environment in (("off", None), ("nodes", {"LACUNA_GRAPHS": "nodes"}), ("launches", {"LACUNA_GRAPHS": "launches"}), ("measured", {})):
        if bench.out_of_time("graphs " + name, 30):
            break
        folder = os.path.join(bench.golden if name == "measured" else bench.scratch, "graph-" + name)
        command = [bench.kinds, "7" if name == "measured" else "3"]
        printed = bench.run("graph " + name, command if environment is None else bench.recorded(folder, command),
                            env={**bench.environment_of_c, **(environment or {})})
        times = [float(time) for time in re.findall(r"graph: ([0-9.]+) us", printed or "")]
        rows[name] = {"us_a_launch": times}
        if environment is not None and times:
            recorded = spools.read(folder)
            rows[name].update({"kernels": sum(len(spool.kernels) for spool in recorded), "launches": sum(spool.graphs for spool in recorded),
                               "said": [value for spool in recorded for key, value in spool.settings.items() if key.startswith("graph_recording")]})
        if name != "measured":
            shutil.rmtree(folder, ignore_errors=True)
    bench.note("graphs", rows)
    measured = rows.get("measured", {})
    bench.check("the recorder says how it records graphs", bool(measured.get("said")), str(measured.get("said")))
    if rows.get("off", {}).get("us_a_launch") and measured.get("us_a_launch"):
        percent = (measured["us_a_launch"][-1] / statistics.median(rows["off"]["us_a_launch"]) - 1) * 100
        bench.check("what it decided costs a graph 5 % or less", percent <= 5, f"{percent:.2f} %")
    return None


# ---- what recording costs

def report_costs(bench, name, times):
    medians = {kind: statistics.median(values) for kind, values in times.items() if values}
    bench.note(f"{name}_step_ms", {kind: round(value, 3) for kind, value in medians.items()})
    for kind in medians:
        if kind != "off" and "off" in medians:
            percent = (medians[kind] / medians["off"] - 1) * 100
            bench.note(f"{name}_cost_percent_{kind}", round(percent, 2))
            if kind != "torch.profiler" and not bench.args.rehearse:
                bench.check(f"{name}: cost of recording ({kind}) is 2 % or less", percent <= 2.0, f"{percent:.2f} %")


def costs(bench, name, kinds, measure, wanted_s):
    """Steps without us, with ranges only, in full, and under another; in turns, so that a drift meets all alike."""
    times = collections.defaultdict(list)
    for turn in range(1 if bench.args.rehearse else 3):
        for kind in kinds:
            if bench.out_of_time(f"{name}: cost of {kind}, turn {turn + 1}", wanted_s):
                break
            folder = os.path.join(bench.scratch, "cost")
            times[kind] += measure(kind, folder)
            shutil.rmtree(folder, ignore_errors=True)
    report_costs(bench, name, times)


def torch_costs(bench):
    steps = "12" if bench.args.rehearse else "48"
    job = ["--workers", "2" if bench.args.rehearse else "12", "--pinned", "--async", "--channels-last", "--steps", steps]

    def measure(kind, folder):
        command = train(bench, *job)
        if kind == "torch.profiler":
            command += ["--torch-profiler", os.path.join(bench.scratch, "cost.json")]
        elif kind != "off":
            command = bench.recorded(folder, command, gpu=kind == "full")
        return torch_steps(bench, f"cost {kind}", command)

    costs(bench, "torch", ("off", "ranges", "full", "torch.profiler"), measure, 40)


def c_costs(bench):
    job = ["--workers", "2" if bench.args.rehearse else "12", "--pinned", "--async", "--layout", "nhwc", "--small-kernels",
           *([] if bench.args.rehearse else C_SIZE), "--steps", "20" if bench.args.rehearse else "80"]

    def measure(kind, folder):
        command = c_workload(bench, *job)
        return c_steps(bench, f"workload cost {kind}", command if kind == "off" else bench.recorded(folder, command, gpu=kind == "full"))

    costs(bench, "workload", ("off", "ranges", "full"), measure, 20)


# ---- the same kernels as another recorder

def per_step(bench, record):
    """Kernels of one step, {name: (count, ns)}: a long and a short run, subtracted, so that start-up does not count."""
    few, many = (record(bench, steps) for steps in (12, 32))
    if few is None or many is None:
        return None
    return {name: (count - few.get(name, (0, 0))[0]) / 20 for name, (count, _) in many.items() if count != few.get(name, (0, 0))[0]}


def ours(bench, steps):
    folder = os.path.join(bench.scratch, f"ours-{steps}")
    if bench.run(f"kernels ours {steps}", bench.recorded(folder, train(bench, "--workers", "8", "--steps", str(steps)))) is None:
        return None
    recorded = spools.read(folder)
    bench.check(f"nothing was lost ({steps} steps)", sum(spool.dropped for spool in recorded) == 0, f"{len(recorded)} processes")
    return spools.kernel_totals(recorded)


def profiled_kernels(path):
    """{name: [ns, ...]} of a file that torch.profiler wrote."""
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        events = json.load(file)["traceEvents"]
    durations = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "kernel":
            durations[event["name"]].append(event["dur"] * 1e3)
    return durations


def theirs(bench, steps):
    path = os.path.join(bench.scratch, f"theirs-{steps}.json")
    if bench.run(f"kernels torch.profiler {steps}", train(bench, "--workers", "8", "--steps", str(steps), "--torch-profiler", path)) is None:
        return None
    return {name: (len(values), sum(values)) for name, values in profiled_kernels(path).items()}


def same_counts(bench):
    mine, other = per_step(bench, ours), per_step(bench, theirs)
    if not mine or not other:
        return bench.check("kernels as torch.profiler counts them", False, "one of the two could not be recorded: " + bench.last_words())
    counts = [sum(kernels.values()) for kernels in (mine, other)]
    bench.note("kernels_per_step", {"ours": counts[0], "torch.profiler": counts[1]})
    return bench.check("kernel count as torch.profiler's within 0.1 %", abs(counts[0] / counts[1] - 1) <= 0.001, f"{counts[0]} and {counts[1]} a step")


def trimmed_mean(values):
    ordered = sorted(values)
    cut = len(ordered) // 20
    return statistics.fmean(ordered[cut:len(ordered) - cut])


def same_times(bench):
    """One process, one GPU clock: our recorder gives way to torch.profiler for the steps in the middle and comes back."""
    folder, path = os.path.join(bench.scratch, "both"), os.path.join(bench.scratch, "both.json")
    command = train(bench, "--workers", "8", "--steps", "90", "--torch-profiler", path, "--torch-profiler-steps", "30:60")
    if bench.run("both recorders", bench.recorded(folder, command)) is None or not os.path.exists(path):
        return bench.check("kernel times as torch.profiler's", False, bench.last_words())
    recorded = spools.read(folder)
    settings = {key: value for spool in recorded for key, value in spool.settings.items() if key.startswith("gpu_recording")}
    bench.note("beside_torch_profiler", settings)
    mine, other = collections.defaultdict(list), profiled_kernels(path)
    for spool in recorded:
        for kernel in spool.kernels:
            mine[kernel.name].append(kernel.end_ns - kernel.start_ns)
    common = [name for name in other if len(mine.get(name, ())) >= 20 and len(other[name]) >= 20]
    if not common:
        return bench.check("kernel times as torch.profiler's", False, f"{len(mine)} and {len(other)} kernels, none in both")
    shares = [sum(len(other[name]) * mean(values[name]) for name in common) for values in (mine, other) for mean in (trimmed_mean, statistics.fmean)]
    trimmed, plain = (abs(shares[at] / shares[at + 2] - 1) * 100 for at in (0, 1))
    covered = sum(sum(other[name]) for name in common) / sum(sum(values) for values in other.values()) * 100
    bench.note("kernel_time_difference_percent", {"trimmed": round(trimmed, 4), "plain": round(plain, 4), "of_their_time_percent": round(covered, 2)})
    return bench.check("kernel time as torch.profiler's within 0.1 %", trimmed <= 0.1, f"{trimmed:.3f} % over {covered:.1f} % of their kernel time")


# ---- the ladder

def torch_steps(bench, name, command):
    """Each step's ms, the first ones left out."""
    path = os.path.join(bench.scratch, "times")
    if bench.run(name, [*command, "--step-times", path]) is None:
        return []
    with open(path) as file:
        return [float(line) for line in file][WARM_UP:]


def c_steps(bench, name, command):
    found = re.search(r"([0-9.]+) ms a step", bench.run(name, command, env=bench.environment_of_c) or "")
    return [float(found.group(1))] if found else []


def ladder(bench, name, stages, measure, record):
    rows = []
    for stage, options, change in stages:
        if bench.out_of_time(f"{name} ladder from '{stage}' on", 35):
            break
        options = ["2" if bench.args.rehearse and option == "12" else option for option in options]
        plain = measure(stage, options)
        folder = os.path.join(bench.golden, f"{name}-{stage.replace(' ', '-')}")
        record(stage, options, folder)
        rows.append({"stage": stage, "step_ms": round(statistics.mean(plain), 3) if plain else None, "next": change, "folder": os.path.basename(folder)})
        if not plain:
            bench.missing(f"{name} ladder, '{stage}'", bench.last_words())
    # the program with the engine does not run everywhere: then the archive is analysed at home (--analyze)
    for row in rows if bench.have_engine else []:
        predict(bench, row, os.path.join(bench.golden, row["folder"]))
    bench.note(name + "_ladder", rows)
    judge_ladder(bench, name, rows)


def predict(bench, row, folder):
    analysis = bench.analyze(folder, *(["--what-if", row["next"]] if row["next"] else [])) or {}
    predicted = analysis.get("what_if") or {}
    row["recorded_step_ms"] = round((analysis["steps"]["mean_ns"] or 0) / 1e6, 3) if analysis else None
    row["next_predicted_ms"] = [round(predicted[key] / 1e6, 3) for key in ("step_low_ns", "step_mean_ns", "step_high_ns")] if predicted.get("step_mean_ns") else None
    row["findings"] = [[finding["id"], finding["gain_pct"]["mid"]] for finding in analysis.get("findings", [])][:5]


def judge_ladder(bench, name, rows):
    for row, after in zip(rows, rows[1:]):
        if row.get("next_predicted_ms") and after["step_ms"]:
            low, mean, high = row["next_predicted_ms"]
            print(f"      {name} {row['next']}: predicted {mean} ms ({low} to {high}), achieved {after['step_ms']} ms ({(mean / after['step_ms'] - 1) * 100:+.1f} %)")
    measured = [row["step_ms"] for row in rows if row["step_ms"] is not None]
    bench.check(f"the {name} ladder ran", len(measured) >= 2, f"{len(measured)} stages, ms a step: {measured}")
    if not bench.args.rehearse and len(measured) >= 2:
        bench.check(f"the last {name} stage is quicker than the first", measured[-1] < measured[0], f"{measured[0]} -> {measured[-1]} ms")


def torch_ladder(bench):
    steps, recorded_steps = ("12", "14") if bench.args.rehearse else ("40", "30")
    ladder(bench, "torch", TORCH_LADDER,
           lambda stage, options: torch_steps(bench, f"torch {stage}", train(bench, *options, "--steps", steps)),
           lambda stage, options, folder: bench.run(f"record torch {stage}", bench.recorded(
               folder, train(bench, *options, "--steps", recorded_steps), "--steps", "6:20")))


def c_ladder(bench):
    size = [] if bench.args.rehearse else C_SIZE
    ladder(bench, "workload", C_LADDER,
           lambda stage, options: c_steps(bench, f"workload {stage}", c_workload(bench, *options, *size, "--steps", "40")),
           lambda stage, options, folder: bench.run(f"record workload {stage}", bench.recorded(
               folder, c_workload(bench, *options, *size, "--steps", "24")), env=bench.environment_of_c))


def workload_stages(bench):
    """The C workload, in full: every kernel has its call, copies say whether their memory is pinned."""
    for name, options in (("pageable", []), ("pinned", ["--pinned", "--async"]), ("sync", ["--sync-every-op"]), ("small", ["--small-kernels"])):
        if bench.out_of_time("workload " + name, 20):
            return
        folder = os.path.join(bench.golden, "workload-" + name)
        if bench.run(f"workload {name}", bench.recorded(folder, c_workload(bench, *options, "--steps", "12")), env=bench.environment_of_c) is None:
            bench.check(f"workload {name}", False, bench.last_words())
            continue
        recorded = spools.read(folder)
        kernels, pushes = sum(len(spool.kernels) for spool in recorded), sum((spool.pushes for spool in recorded), collections.Counter())
        bench.check(f"workload {name}", pushes["loader.fetch"] > 0 and (kernels > 0 or bench.args.rehearse or bench.cupti is None),
                    f"{kernels} kernels, {sum(spool.copies for spool in recorded)} copies, {pushes['loader.fetch']} batches")


# ---- at home

def analyze_at_home(bench, folder):
    with open(os.path.join(folder, "results.json")) as file:
        results = json.load(file)
    with tarfile.open(os.path.join(folder, "golden.tar.gz")) as tar:
        for member in tar:
            if member.isfile() and not member.name.startswith(("/", "..")) and "/../" not in member.name:
                tar.extract(member, bench.scratch)
    for name in ("torch", "workload"):
        rows = results.get(name + "_ladder", [])
        for row in rows:
            predict(bench, row, os.path.join(bench.golden, row["folder"]))
        if rows:
            print(json.dumps(rows, indent=1))
            judge_ladder(bench, name, rows)
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")


# ---- all

def have_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.startswith(b"GPU ")
    except OSError:
        return False


def build(rehearse):
    wanted = ["liblacuna.so", "lacuna-node", "python/.stamp", *(["workload-cpu"] if rehearse else ["workload", "kinds"])]
    missing = [name for name in wanted if not os.path.exists(os.path.join(BUILD, name)) and
               not (name == "python/.stamp" and os.path.exists(os.path.join(BUILD, "python/_lacuna.abi3.so")))]
    if missing and shutil.which("make") is None:
        sys.exit(f"{missing} are not in {BUILD} and there is no make: carry them there (README.md)")
    if missing and subprocess.run(["make", "-k", "-j4", *("build/release/" + name for name in missing)], cwd=ROOT).returncode != 0:
        if not os.path.exists(os.path.join(BUILD, "lacuna-node")) or not os.path.exists(os.path.join(BUILD, "liblacuna.so")):
            sys.exit(f"cannot build {missing}")
        print(f"skip: not all of {missing} could be built; what needs them is left out")


def run_all(bench):
    """Every part on its own: what one of them meets must not keep the others from running."""
    parts = [machine, layout_kernels, stand_in_buffers if bench.args.rehearse else raw_buffers]
    parts += [] if bench.args.rehearse else [graphs]
    parts += [workload_stages, c_ladder, c_costs]
    for part in parts:
        guarded(bench, part)
    if bench.have_torch:
        for part in ([] if bench.args.rehearse else [same_times, same_counts]) + [torch_ladder, torch_costs]:
            guarded(bench, part)
    else:
        bench.missing("PyTorch's ladder, costs and comparison", f"{bench.args.python} has no PyTorch that sees a GPU")


def guarded(bench, part):
    try:
        part(bench)
    except Exception as error:  # noqa: BLE001: said as a failed check
        bench.check(part.__name__, False, f"{type(error).__name__}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(ROOT, "build/gpu"))
    parser.add_argument("--seconds", type=int, default=540)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--analyze", metavar="DIR", help="predictions from what an earlier call brought home")
    args = parser.parse_args()
    if not args.analyze and not have_gpu() and not args.rehearse:
        print("skip: no GPU here (nvidia-smi lists none): nothing of `make test-gpu` was run")
        print("0 passed, 0 failed")
        return 0
    bench = Bench(args)
    bench.workload = os.path.join(BUILD, "workload-cpu" if args.rehearse else "workload")
    bench.workload_options = ["--cpu"] if args.rehearse else []
    bench.kinds = os.path.join(BUILD, "kinds")
    bench.have_torch, bench.have_engine, bench.cupti, bench.environment_of_c = False, False, None, {}
    try:
        if args.analyze:
            analyze_at_home(bench, args.analyze)
        else:
            build(args.rehearse)
            run_all(bench)
            bench.pack()
    finally:
        bench.done()
    failed = [check for check in bench.checks if not check["ok"]]
    print(f"{len(bench.checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
