"""What recording costs a step: without us, with ranges only, in full, behind its end, and under torch.profiler."""
import os
import re
import shutil
import statistics

GOAL_PERCENT = 2.0
ENDED_PERCENT = 0.5  # nothing, within what two runs of the same differ


def report_costs(bench, name, turns):
    """A turn is {kind: mean ms}; each kind against the same turn's `off`, and the median of the turns, so that a drift meets all alike."""
    means = {kind: statistics.median(turn[kind] for turn in turns if kind in turn) for kind in {kind for turn in turns for kind in turn}}
    bench.note(f"{name}_step_ms", {kind: round(value, 3) for kind, value in sorted(means.items())})
    bench.note(f"{name}_step_ms_turns", [{kind: round(value, 3) for kind, value in turn.items()} for turn in turns])
    for kind in means:
        ratios = [(turn[kind] / turn["off"] - 1) * 100 for turn in turns if kind in turn and "off" in turn]
        if kind == "off" or not ratios:
            continue
        percent = statistics.median(ratios)
        bench.note(f"{name}_cost_percent_{kind}", round(percent, 2))
        bench.say(f"{name}: {kind} costs {percent:+.2f} % of a step of {means['off']:.2f} ms (turns: {', '.join(f'{ratio:+.2f}' for ratio in ratios)})")
        if kind == "ended" and not bench.args.rehearse:
            bench.check(f"{name}: a job whose recording has ended runs as without one", percent <= ENDED_PERCENT, f"{percent:.2f} %")
        elif kind != "torch.profiler" and not bench.args.rehearse:
            bench.check(f"{name}: cost of recording ({kind}) is {GOAL_PERCENT:.0f} % or less", percent <= GOAL_PERCENT, f"{percent:.2f} %")


def costs(bench, name, kinds, measure, wanted_s):
    turns = []
    for number in range(1 if bench.args.rehearse else 3):
        turn = {}
        # forwards, backwards: what is first in one turn is last in the next
        for kind in kinds if number % 2 == 0 else kinds[::-1]:
            if bench.out_of_time(f"{name}: cost of {kind}, turn {number + 1}", wanted_s):
                break
            folder = os.path.join(bench.scratch, "cost")
            times = measure(kind, folder)
            if times:
                turn[kind] = statistics.fmean(times)
            else:
                bench.missing(f"{name}: cost of {kind}, turn {number + 1}", bench.last_words())
            shutil.rmtree(folder, ignore_errors=True)
        turns.append(turn)
    report_costs(bench, name, turns)


def torch_costs(bench):
    warm_up, steps = (4, "12") if bench.args.rehearse else (30, "80")
    job = ["--workers", bench.workers(), "--pinned", "--async", "--channels-last"]

    def measure(kind, folder):
        command = bench.train(*job, "--steps", steps)
        if kind == "torch.profiler":
            command += ["--torch-profiler", os.path.join(bench.scratch, "cost.json")]
        elif kind == "ended":  # the steps that count come long after
            command = bench.recorded(folder, command, "--steps", "1:3", gpu=True)
        elif kind != "off":
            command = bench.recorded(folder, command, gpu=kind == "full")
        return bench.torch_steps(f"cost {kind}", command, warm_up)

    switched(bench, job)
    costs(bench, "torch", ("off", "ranges", "full", "ended", "torch.profiler"), measure, 15)


def switched(bench, job):
    """One process, ten steps with and ten without recording in turn: the launcher's own measurement, free of what differs from start to start."""
    folder = os.path.join(bench.scratch, "switched")
    command = bench.recorded(folder, bench.train(*job, "--steps", "40" if bench.args.rehearse else "300"), "--cost")
    command.remove("--quiet")
    bench.run("recording switched on and off", command)
    shutil.rmtree(folder, ignore_errors=True)
    found = re.search(r"recording costs ([-0-9.]+ % of a step \(\+-[0-9.]+\))", bench.logs[-1][1])
    bench.note("torch_cost_switched", found.group(1) if found else None)
    bench.say(f"torch: recording switched on and off in one process costs {found.group(1) if found else 'not known: ' + bench.last_words()}")


def c_costs(bench):
    job = ["--workers", bench.workers(), "--pinned", "--async", "--layout", "nhwc", "--small-kernels",
           *([] if bench.args.rehearse else bench.workload_size), "--steps", "20" if bench.args.rehearse else "80"]

    def measure(kind, folder):
        command = bench.workload(*job)
        return bench.workload_step(f"workload cost {kind}", command if kind == "off" else bench.recorded(folder, command, gpu=kind == "full"))

    costs(bench, "workload", ("off", "ranges", "full"), measure, 6)
