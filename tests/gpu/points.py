"""What only a GPU can answer about the recorder, in ten points: each in a bounded time, each with a result of its own (results.json, `points`)."""
import glob
import json
import os
import statistics
import sys
import time

import raw
import spools
from bench import BUILD, NODE

HERE = os.path.dirname(os.path.abspath(__file__))
STAND_IN = os.path.join(BUILD, "stand_in/libcupti_stand_in.so")
PAUSED_PERCENT_MAX = 1.0   # of a step
STAND_IN_UUID = "GPU-00000000-0000-0000-0000-0000000000a0"
SOME_MB = 200


class Ran:
    """One run of job.py: what it said, and what was recorded of it."""

    def __init__(self, bench, mode, options=("--all",), env=None, is_recorded=True, cores=None):
        folder = os.path.join(bench.scratch, f"point-{mode}-{time.monotonic_ns()}")
        command = [bench.args.python, os.path.join(HERE, "job.py"), mode, *(["--stand-in", STAND_IN] if bench.args.rehearse else [])]
        given = {**bench.environment_of_c, **({"LACUNA_CUPTI": STAND_IN} if bench.args.rehearse else {}), **(env or {})}
        began = time.monotonic()
        bound = ["taskset", "-c", ",".join(map(str, cores))] if cores else []
        printed = bench.run(f"point {mode}", [*bound, *([NODE, "run", "--quiet", *options, "-o", folder, "--", *command] if is_recorded else command)], env=given, seconds=60)
        self.wall_s = time.monotonic() - began
        lines = [line for line in (printed or bench.logs[-1][1]).splitlines() if line.startswith("{")]
        self.told = bench.logs[-1][1]
        self.said = [json.loads(line) for line in lines]
        self.spools = spools.read(folder) if is_recorded and os.path.isdir(folder) else []
        self.host = spools.host_facts(folder) if is_recorded else {}
        self.kernels = [kernel for spool in self.spools for kernel in spool.kernels]
        self.dropped = sum(spool.dropped for spool in self.spools)
        self.settings = {key: value for spool in self.spools for key, value in spool.settings.items()}

    def get(self, name):
        return next((line[name] for line in self.said if name in line), None)

    def span_s(self):
        return (max(kernel.end_ns for kernel in self.kernels) - min(kernel.start_ns for kernel in self.kernels)) / 1e9 if self.kernels else 0

    def zero_stamps(self):
        return sum(kernel.start_ns == 0 or kernel.end_ns < kernel.start_ns for kernel in self.kernels)

    def figures(self):
        return {"launched": self.get("launched"), "kernels": len(self.kernels), "dropped": self.dropped, "span_s": round(self.span_s(), 3),
                "wall_s": round(self.wall_s, 3), **{key: value for key, value in self.settings.items() if key.startswith(("gpu_recording", "graph_recording"))}}


def exit_in_flight(bench):
    """1: exit with work in flight, SIGKILL at a full queue, os._exit: what is kept; no stamp of 0, no span beyond the wall time."""
    if needs_gpu(bench):
        return
    for mode, kept_min in (("work_in_flight", 100), ("killed", 1), ("left_at_once", 1)):
        ran = Ran(bench, mode)
        bench.note(f"point_1_{mode}", ran.figures())
        bench.check(f"{mode}: kernels are kept", len(ran.kernels) >= kept_min, f"{len(ran.kernels)} of {ran.get('launched')}, {ran.dropped} counted as lost")
        lost = ran.get("launched") - len(ran.kernels) if ran.get("launched") else 0
        bench.check(f"{mode}: what is lost is told", lost <= 0 or " lost with" in ran.told or "not recorded (GPU" in ran.told, f"{lost} lost")
        bench.check(f"{mode}: times can be", ran.zero_stamps() == 0 and ran.span_s() <= ran.wall_s + 1, f"{ran.zero_stamps()} of 0, {ran.span_s():.2f} s in {ran.wall_s:.2f} s")


def four_states(bench):
    """2: never injected, injected and let go, paused, recording: the step's time and CPU time, in turns."""
    if needs_gpu(bench):
        return
    states = {"none": None, "ended": ("--duration", "1"), "paused": ("--delay", "3600"), "recording": ("--all",)}
    times = {name: [] for name in states}
    for turn in range(1 if bench.args.rehearse else 3):
        for name in list(states)[::-1 if turn % 2 else 1]:
            if bench.out_of_time(f"state {name}, turn {turn + 1}", 12):
                break
            ran = Ran(bench, "steps", states[name] or (), is_recorded=states[name] is not None)
            if ran.get("step_us_and_cpu_us"):
                times[name].append(ran.get("step_us_and_cpu_us"))
    for kind in next((rows[0] for rows in times.values() if rows), {}):
        middle = {name: [statistics.median(column) for column in zip(*(row[kind] for row in rows))] for name, rows in times.items() if rows}
        bench.note(f"point_2_{kind}_step_us_and_cpu_us", middle)
        if "none" in middle and len(middle) == len(states):
            percent = {name: round((values[0] / middle["none"][0] - 1) * 100, 2) for name, values in middle.items()}
            bench.note(f"point_2_{kind}_percent", percent)
            bench.say(f"a step of {middle['none'][0]:.0f} us, {kind}: " + ", ".join(f"{name} {value:+.2f} %" for name, value in percent.items()))
            for name in ("ended", "paused"):
                if not bench.args.rehearse:
                    bench.check(f"{name}: costs {PAUSED_PERCENT_MAX} % of a step or less, {kind}", percent[name] <= PAUSED_PERCENT_MAX, f"{percent[name]} %")
    ran_states = sorted(name for name, rows in times.items() if rows)
    bench.check("all four states ran", len(ran_states) == len(states), str(ran_states))


def needs_gpu(bench):
    """Every point's program launches through PyTorch, or through the stand-in."""
    if not bench.args.rehearse and not bench.have_torch:
        bench.missing("this point", f"{bench.args.python} has no PyTorch that sees a GPU")
        return True
    return False


def needs_torch(bench):
    if bench.args.rehearse or not bench.have_torch:
        bench.missing("this point", "it needs PyTorch and a GPU")
        return True
    return False


def profiler_cycles(bench):
    """3: torch.profiler with a schedule of three cycles: ours before, between and after; their kernels, and times that fit."""
    if needs_torch(bench):
        return
    ran = Ran(bench, "profiler_cycles")
    theirs = ran.get("theirs") or []
    bench.note("point_3", {**ran.figures(), "theirs": theirs})
    bench.check("three cycles: torch.profiler has its kernels", len(theirs) == 3 and min(theirs) >= 200, str(theirs))
    ordered = sorted(kernel.start_ns for kernel in ran.kernels)
    bench.check("three cycles: ours are there before and after", len(ordered) >= 800, f"{len(ordered)} kernels")
    inside = [[cycle, sum(began <= start <= ended for start in ordered)] for cycle, began, ended in ran.get("between") or []]
    bench.note("point_3_between", inside)
    bench.check("three cycles: ours are there between, at their times", len(inside) == 6 and all(any(count > 0 for of, count in inside if of == cycle) for cycle in range(3)), str(inside))
    bench.check("three cycles: times can be", ran.zero_stamps() == 0 and ran.span_s() <= ran.wall_s + 1, f"{ran.span_s():.2f} s in {ran.wall_s:.2f} s")


def other_profilers(bench):
    """4: the first use of CUDA inside torch.profiler; profile(enabled=False) in each step; Kineto's daemon."""
    if needs_torch(bench):
        return
    first = Ran(bench, "profiler_first")
    bench.note("point_4_first", {**first.figures(), "theirs": first.get("theirs")})
    bench.check("first use inside torch.profiler: it has its kernels", (first.get("theirs") or 0) >= 100, str(first.get("theirs")))
    off = Ran(bench, "profiler_off")
    bench.note("point_4_off", off.figures())
    bench.check("a profiler that is switched off costs no record", len(off.kernels) >= 1000, f"{len(off.kernels)} kernels")
    daemon = Ran(bench, "one", env={"KINETO_USE_DAEMON": "1"})
    bench.note("point_4_daemon", daemon.figures())
    bench.check("beside Kineto's daemon: kernels, or a reason", len(daemon.kernels) >= 400 or "gpu_recording_reason" in daemon.settings, str(daemon.figures()))


def device_memory(bench):
    """5: device memory taken for recording, by what the driver says in the job: without us, with CUPTI's pool limited as we do, and with CUPTI's own limit."""
    limits = {"16": {}, "250": {"LACUNA_DEVICE_BUFFERS": "250"}}
    if bench.args.rehearse:
        for limit, env in limits.items():
            told = Ran(bench, "one", env=env).settings.get("gpu_recording_device_buffers_max")
            bench.check(f"the pool is limited to {limit}", told == limit, str(told))
        return
    if needs_torch(bench):
        return
    without = (Ran(bench, "graphs", is_recorded=False).get("memory_bytes") or [0, 0])[1]
    for limit, env in limits.items():
        ran = Ran(bench, "graphs", env=env)
        took = (ran.get("memory_bytes") or [0, 0])[1]
        megabytes = (took - without) / 1e6
        told = ran.settings.get("gpu_recording_device_buffers_max")
        bench.note(f"point_5_limit_{limit}", {**ran.figures(), "without_bytes": without, "recorded_bytes": took, "ours_mb": round(megabytes, 1)})
        bench.say(f"device memory, pool limit {limit}: {megabytes:.0f} MB more with recording, after 2,200 replays of 200 kernels; {ran.dropped} records lost")
        bench.check(f"the pool is limited to {limit}", told == limit, str(told))
        if limit == "16":
            bench.check(f"recording takes less than {SOME_MB} MB of device memory", 0 < without and megabytes < SOME_MB, f"{megabytes:.0f} MB")


def graph_switches(bench):
    """6: recording of whole graphs switched on and off 100 times under load: no hang, nothing lost, the first launches after it."""
    if bench.args.rehearse:
        ran = Ran(bench, "one", env={"LACUNA_GRAPHS": "launches"})
        bench.check("whole graphs are asked for", ran.settings.get("graph_recording") == "launches", str(ran.figures()))
        return
    if needs_torch(bench):
        return
    ran = Ran(bench, "graphs")
    launches = sum(spool.graphs for spool in ran.spools)
    bench.note("point_6", {**ran.figures(), "launches": launches, **{key: ran.get(key) for key in ("toggled", "before_us", "first_after_us", "longest_switch_ms")}})
    bench.check("100 switches under load do not hang", ran.get("toggled") == 100, bench.last_words() if not ran.said else f"the longest took {ran.get('longest_switch_ms'):.1f} ms")
    bench.check("each replay is kernels or a launch", launches * 200 + len(ran.kernels) + ran.dropped >= 2200 * 200, f"{launches} launches, {len(ran.kernels)} kernels, {ran.dropped} lost")


def several_processes(bench):
    """7: two processes on one GPU; CUDA_VISIBLE_DEVICES by number, permuted where there are several, and by UUID; cores near the GPU and bound ones."""
    if needs_gpu(bench):
        return
    ran = Ran(bench, "two_processes")
    bench.note("point_7_two", {**ran.figures(), "processes": len(ran.spools)})
    bench.check("two processes: both are recorded", sum(len(spool.kernels) >= (0 if bench.args.rehearse else 400) for spool in ran.spools) >= 2,
                f"{[len(spool.kernels) for spool in ran.spools]} kernels")
    uuids = [STAND_IN_UUID] if bench.args.rehearse else [line.strip() for line in (bench.run(
        "uuids", ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], seconds=30) or "").splitlines() if line.strip()]
    if not bench.args.rehearse and not any("MIG" in line for line in (bench.run("devices", ["nvidia-smi", "-L"], seconds=30) or "").splitlines()):
        bench.missing("MIG", "no device of this machine is divided")
    for visible in [",".join(map(str, reversed(range(len(uuids))))), uuids[0]] if uuids else []:
        ran = Ran(bench, "one", env={"CUDA_VISIBLE_DEVICES": visible})
        devices = {key: value for key, value in ran.settings.items() if key.startswith("gpu_device.")}
        told = {value.split("|")[0] for value in devices.values()}
        bench.note(f"point_7_{visible[:12]}", {**ran.figures(), **devices})
        bench.check(f"CUDA_VISIBLE_DEVICES={visible[:12]}: kernels, and the device by its UUID", len(ran.kernels) >= 400 and bool(told.intersection(uuids)), f"{devices}, nvidia-smi {uuids}")
    bindings(bench)


def cores_of(text):
    """The numbers of a list as the kernel writes it: "0-3,8"."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {core for end in ends for core in range(int(end[0]), int(end[-1]) + 1)}


def gpus_local_cores(bench):
    """What the kernel says of each GPU's cores, by the addresses that nvidia-smi gives."""
    printed = bench.run("addresses", ["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"], seconds=30) or ""
    found = set()
    for line in printed.splitlines():
        try:
            with open(f"/sys/bus/pci/devices/{line.strip().lower()[-12:]}/local_cpulist") as file:
                found.add(file.read().strip())
        except OSError:  # a container without the host's /sys
            pass
    return found


def bindings(bench):
    """A part of 7: a job bound to some cores: what is recorded of it, and of the cores that are near the GPUs."""
    allowed = sorted(os.sched_getaffinity(0))
    near = set() if bench.args.rehearse else gpus_local_cores(bench)
    cores = cores_of(next(iter(near))) if len(near) == 1 else set()
    chosen = {"all": allowed, "one": allowed[:1], "near": sorted(cores.intersection(allowed)), "far": sorted(set(allowed) - cores) if cores else []}
    for name, bound in chosen.items():
        if not bound:
            bench.missing(f"a job bound to cores {name} the GPU", "the kernel does not tell them apart here")
            continue
        ran = Ran(bench, "one", cores=bound)
        bench.note(f"point_7_bound_{name}", {**ran.figures(), **{key: ran.host.get(key) for key in ("cores_allowed", "memory_nodes_allowed", "gpu_local_cores", "numa_nodes")}})
        bench.check(f"bound to cores, {name}: the recording says which", cores_of(ran.host.get("cores_allowed", "")) == set(bound), f"{ran.host.get('cores_allowed')}, bound to {bound}")
        bench.check(f"bound to cores, {name}: kernels", len(ran.kernels) >= 400, f"{len(ran.kernels)} kernels")
        if len(near) == 1:
            bench.check(f"bound to cores, {name}: the recording says which are near the GPU", ran.host.get("gpu_local_cores") in near, f"{ran.host.get('gpu_local_cores')}, the kernel {near}")


def forked_children(bench):
    """8: children and loaders' workers made after the first use of CUDA: they end as they would, and the parent goes on being recorded."""
    if needs_gpu(bench):
        return
    plain, ran = Ran(bench, "forked", is_recorded=False), Ran(bench, "forked")
    bench.note("point_8", {**ran.figures(), "ended": ran.get("ended"), "ended_alone": plain.get("ended")})
    bench.check("forked children end as without us", ran.get("ended") == plain.get("ended") and ran.get("ended"), f"{ran.get('ended')}, alone {plain.get('ended')}")
    bench.check("their parent's kernels are there", len(ran.kernels) >= 200, f"{len(ran.kernels)} kernels")


def libraries(bench):
    """9: each libcupti that there is with this driver, and one that is not there."""
    if needs_gpu(bench):
        return
    found = [STAND_IN] if bench.args.rehearse else sorted({os.path.realpath(path) for folder in ("/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/lib64",
                                                                                               os.path.join(BUILD, "cupti"), *(sys_path + "/nvidia/c*/lib" for sys_path in sys.path if sys_path))
                                                           for path in glob.glob(os.path.join(folder, "libcupti.so*"))})[:4]
    for path in found:
        ran = Ran(bench, "one", env={"LACUNA_CUPTI": path})
        bench.note(f"point_9_{path[-40:]}", ran.figures())
        bench.check(f"{os.path.basename(path)}: kernels, or a reason", len(ran.kernels) > 0 or "gpu_recording_reason" in ran.settings, str(ran.figures()))
    ran = Ran(bench, "one", env={"LACUNA_CUPTI": "/nonexistent/libcupti.so"})
    bench.check("a libcupti that is not there: the job runs, and the recording says why", ran.get("launched") == 400 and
                (len(ran.kernels) > 0 or "gpu_recording_reason" in ran.settings), str(ran.figures()))


def raw_dumps(bench):
    """10: CUPTI's buffers as they came, of all kinds, against our reading of them; they are kept for the tests."""
    if bench.args.rehearse:
        raw.stand_in_buffers(bench)
    else:
        raw.raw_buffers(bench)


# what each may take at most: together less than five minutes
POINTS = ((exit_in_flight, 60), (four_states, 110), (profiler_cycles, 30), (other_profilers, 45), (device_memory, 60), (graph_switches, 40),
          (several_processes, 70), (forked_children, 30), (libraries, 60), (raw_dumps, 30))


def as_part(number, point):
    """A part of run_gpu that keeps what came of the point as a result of its own."""
    def part(bench):
        checks, notes, missing, began = len(bench.checks), set(bench.results), len(bench.results.get("not_run", [])), time.monotonic()
        try:
            point(bench)
        except Exception as error:  # noqa: BLE001: said as a failed check
            bench.check(point.__name__, False, f"{type(error).__name__}: {error}")
        made = bench.checks[checks:]
        bench.results.setdefault("points", {})[str(number)] = {
            "point": point.__doc__.split(": ", 1)[1], "ok": all(check["ok"] for check in made) if made else None, "seconds": round(time.monotonic() - began, 1),
            "checks": made, "figures": {key: bench.results[key] for key in bench.results if key not in notes and key not in ("points", "not_run")},
            "not_run": bench.results.get("not_run", [])[missing:]}
    part.__name__ = point.__name__
    return part


PARTS = [(as_part(number, point), seconds) for number, (point, seconds) in enumerate(POINTS, 1)]
