"""Layout kernels; raw buffers of CUPTI against our reading of them; CUDA graphs; the example workload, a recording of each of its findings."""
import collections
import ctypes
import os
import re
import shutil
import statistics

import spools
from bench import BUILD


def kinds():
    return os.path.join(BUILD, "kinds")


def layout_kernels(bench):
    printed = bench.run("workload --check", bench.workload("--check"))
    bench.note("layout_kernels", (printed or bench.last_words()).strip().splitlines())
    bench.say("layout kernels: " + "; ".join((printed or bench.last_words()).strip().splitlines()))
    bench.check("layout kernels are right in both directions", printed is not None and "layout kernels are right" in printed, "against the processor")


def raw_buffers(bench):
    """Every kind of activity, with the buffers as CUPTI returned them; ours must have read them as a plain reader does."""
    if not os.path.exists(kinds()):
        return bench.missing("raw buffers", "kinds is not there (make kernels, with nvcc)")
    folder, dump = os.path.join(bench.golden, "kinds"), os.path.join(bench.golden, "cupti")
    os.makedirs(dump, exist_ok=True)
    if bench.run("kinds", bench.recorded(folder, [kinds()]), env={**bench.environment_of_c, "LACUNA_CUPTI_DUMP": dump}) is None:
        return bench.check("every kind of activity is recorded", False, bench.last_words())
    return same_as_dumped(bench, spools.read(folder), spools.dumped_kernels(dump))


def same_as_dumped(bench, recorded, dumped):
    kernels = sorted((kernel.start_ns, kernel.end_ns) for spool in recorded for kernel in spool.kernels)
    settings = {key: value for spool in recorded for key, value in spool.settings.items()}
    bench.note("gpu_recording", [settings.get("gpu_recording", "not said"), settings.get("gpu_recording_reason", "")])
    bench.say(f"the recorder: GPU recording {' '.join(bench.results['gpu_recording'])}; {len(kernels)} kernels in spools, {len(dumped)} in CUPTI's buffers")
    bench.check("kernels in the spool are those in CUPTI's buffers", kernels == dumped and kernels, f"{len(kernels)} and {len(dumped)}")
    return None


def stand_in_buffers(bench):
    """The same path without a GPU: the stand-in for libcupti, driven from here, in a process of its own."""
    folder, dump = os.path.join(bench.golden, "stand-in"), os.path.join(bench.golden, "cupti")
    library, stand_in = (os.path.join(BUILD, name) for name in ("liblacuna.so", "stand_in/libcupti_stand_in.so"))
    if not os.path.exists(stand_in):
        return bench.missing("the stand-in's buffers", "stand_in is not there (make test-programs)")
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
    if not os.path.exists(kinds()):
        return bench.missing("graphs", "kinds is not there (make kernels, with nvcc)")
    rows = {}
    for name, environment in (("off", None), ("nodes", {"LACUNA_GRAPHS": "nodes"}), ("launches", {"LACUNA_GRAPHS": "launches"}), ("measured", {"LACUNA_GRAPHS": "measured"})):
        if bench.out_of_time("graphs " + name, 10):
            break
        folder = os.path.join(bench.golden if name == "measured" else bench.scratch, "graph-" + name)
        command = [kinds(), "26" if name == "measured" else "3"]
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
    bench.say("graph of 200 kernels, us a launch: " + "; ".join(f"{name} {row['us_a_launch']}" for name, row in rows.items()))
    measured = rows.get("measured", {"LACUNA_GRAPHS": "measured"})
    bench.check("the recorder says how it records graphs", bool(measured.get("said")), str(measured.get("said")))
    if rows.get("off", {}).get("us_a_launch") and measured.get("us_a_launch"):
        percent = (measured["us_a_launch"][-1] / statistics.median(rows["off"]["us_a_launch"]) - 1) * 100
        bench.check("what it decided costs a graph 5 % or less", percent <= 5, f"{percent:.2f} %")
    return None


def workload_stages(bench):
    """The C workload, in full: every kernel has its call, copies say whether their memory is pinned."""
    for name, options in (("pageable", []), ("pinned", ["--pinned", "--async"]), ("sync", ["--sync-every-op"]), ("small", ["--small-kernels"])):
        if bench.out_of_time("workload " + name, 8):
            return
        folder = os.path.join(bench.golden, "workload-" + name)
        if bench.run(f"workload {name}", bench.recorded(folder, bench.workload(*options, "--steps", "12")), env=bench.environment_of_c) is None:
            bench.check(f"workload {name}", False, bench.last_words())
            continue
        recorded = spools.read(folder)
        kernels, pushes = sum(len(spool.kernels) for spool in recorded), sum((spool.pushes for spool in recorded), collections.Counter())
        bench.check(f"workload {name}", pushes["loader.fetch"] > 0 and (kernels > 0 or bench.args.rehearse or bench.cupti is None),
                    f"{kernels} kernels, {sum(spool.copies for spool in recorded)} copies, {pushes['loader.fetch']} batches")
