#!/usr/bin/env python3
"""Cost and gain of a finding in one: no change is promised to save more than its finding says to cost.

For every shipped trace, the demonstration's series and simulated jobs (random loops and jobs of each kind):
- the best case saves at most the cost, in percent and in nanoseconds; low <= mid <= high;
- cost and gain are percent of one number, the mean step;
- of the GPU's own work no case takes more than the cost claims of it;
- what the cost holds beside the number in the title is said in the title, a percent of the step or more;
- what proposes no change has no gain and no effort; the plan does not save what no finding may take.

LACUNA names the program (default build/lacuna). LACUNA_TABLE=1 lists each finding's cost and gain. 14 loops,
12 of which test_random.py scores, and a job of each kind; with LACUNA_SOAK=1 212 loops and 20 jobs.
"""
import concurrent.futures
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import kept  # noqa: E402
from kinds import KINDS  # noqa: E402  (kept knows where the simulator is)
from real_traces import NONE, real_traces  # noqa: E402
from soak import SOAK  # noqa: E402

TRACES = real_traces()
TABLE = os.environ.get("LACUNA_TABLE") == "1"
WORK = ("compute", "exposed_comm", "exposed_copy", "exposed_memset")
SLACK_PCT, SLACK_NS = 2e-4, 1.0  # printed to four decimals, rounded to a nanosecond
BESIDE_MIN_PCT = 1.0
BESIDE = re.compile(r"; the change can also remove ([\d.]+) (ns|us|ms|s) of other idle time$")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def is_near(have, want, slack):
    return have is not None and abs(have - want) <= slack


def wrong_bases(finding, mean_ns):
    """What is not a percent of the mean step."""
    cost_ns = finding["cost_ns_per_step"]
    if cost_ns is not None and (cost_ns > mean_ns or not is_near(finding["cost_pct"], 100 * cost_ns / mean_ns, SLACK_PCT)):
        yield f"{cost_ns} ns are not {finding['cost_pct']} % of {mean_ns} ns"
    for gain, step in (("low", "high"), ("mid", "mid"), ("high", "low")):
        step_ns = finding["step_ns"][step]
        slack = SLACK_PCT + 100 * SLACK_NS / mean_ns
        if step_ns is not None and not is_near(finding["gain_pct"][gain], 100 * (mean_ns - step_ns) / mean_ns, slack):
            yield f"a step of {step_ns} ns is no gain of {finding['gain_pct'][gain]} % of {mean_ns} ns"


def wrong_claims(finding, analysis, mean_ns):
    """A step below the work that the cost leaves, or a cost that the title does not say."""
    partition, claims = analysis.get("partition"), finding["parts_ns"]
    if not partition or partition["per"] == "recording" or not claims:
        return
    left_ns = sum(partition["parts_ns"][part] - claims.get(part, 0) for part in WORK)
    if finding["step_ns"]["low"] is not None and finding["step_ns"]["low"] < left_ns - SLACK_NS:
        yield f"a step of {finding['step_ns']['low']} ns, and the GPU works for {left_ns} ns of it"
    beside = BESIDE.search(finding["title"])
    if beside and float(beside[1]) * UNITS[beside[2]] < 0.95 * BESIDE_MIN_PCT / 100 * mean_ns:
        yield f"not worth saying: {finding['title']}"


def wrong_findings(analysis):
    """What is wrong with cost and gain of the findings of one analysis."""
    mean_ns = (analysis.get("steps") or {}).get("mean_ns")
    for finding in analysis["findings"]:
        gain, cost_pct, name = finding["gain_pct"], finding["cost_pct"], finding["id"]
        is_known = gain["mid"] is not None
        wrongs = list(wrong_bases(finding, mean_ns)) + list(wrong_claims(finding, analysis, mean_ns)) if mean_ns else []
        if is_known != (gain["low"] is not None) or is_known != (gain["high"] is not None):
            wrongs.append("half a band")
        elif is_known and not 0 <= gain["low"] <= gain["mid"] <= gain["high"]:
            wrongs.append("a band that is none")
        if is_known and cost_pct is None:
            wrongs.append("a gain, and no cost")
        elif is_known and gain["high"] > cost_pct + SLACK_PCT:
            wrongs.append(f"costs {cost_pct} %")
        if not finding["change"] and (is_known or finding["effort"] is not None):
            wrongs.append("a gain or an effort of no change")
        if finding["change"] and is_known and finding["severity"] != "info" and gain["mid"] < 1.0:
            wrongs.append("a change that gains nothing")
        yield from (f"{name} gains {gain['low']} to {gain['high']} %: {wrong}" for wrong in wrongs)


def wrong_plan(analysis):
    """A plan, each step of which a finding proposes, that takes more than all findings claim."""
    partition, plan = analysis.get("partition"), analysis.get("plan") or []
    gaining = [finding for finding in analysis["findings"] if finding["gain_pct"]["mid"] is not None]
    is_of_findings = {step["brief"] for step in plan} <= {finding["brief"] for finding in gaining}
    if not plan or not is_of_findings or not partition or partition["per"] == "recording":
        return
    can_ns = sum(min(ns, sum(finding["parts_ns"].get(part, 0) for finding in gaining))
                 for part, ns in partition["parts_ns"].items())
    if (analysis.get("replay") or {}).get("method") == "graph":
        # changes that are played together move what is the limit: each takes more than it claims of the recorded step
        can_ns = partition["total_ns"]
    if partition["total_ns"] - plan[-1]["step_ns"] > can_ns + SLACK_NS:
        yield f"the plan ends at {plan[-1]['step_ns']} ns, of which no finding takes {partition['total_ns'] - can_ns}"


def table(where, analysis):
    for finding in analysis["findings"]:
        gain = finding["gain_pct"]
        if TABLE and finding["cost_pct"] is not None:
            band = "no gain" if gain["mid"] is None else "{low:.2f} {mid:.2f} {high:.2f} %".format(**gain)
            print(f"{where[:48]:48} {finding['id']:24} {finding['cost_pct']:7.2f} % {finding['cost_ns_per_step'] / 1e6:9.3f} ms  {band}")


def examine(name, paths):
    some = kept.analyses(paths)
    for where, analysis in some:
        table(name + where, analysis)
    return [f"{name}{where}: {wrong}" for where, analysis in some
            for wrong in (*wrong_findings(analysis), *wrong_plan(analysis))], sum(len(a["findings"]) for _, a in some)


def examine_kind(job):
    kind, seed = job
    with kept.job(kind, seed) as (paths, _):
        return examine(f"{kind} seed {seed}", paths)


def examine_loop(loop):
    with kept.loop(*loop) as (paths, _):
        return examine(" ".join(["loop", *map(str, loop)]), paths)


def examine_file(path):
    return examine(os.path.basename(path), [path])


def real_paths():
    found = glob.glob(os.path.join(TRACES, "**"), recursive=True)
    return sorted(path for path in found if os.path.isfile(path) and os.sep + "truth" not in path)


def main():
    failures, count = [], 0
    if not os.path.isdir(TRACES):
        print(f"skip: {NONE}")
    series = kept.demo()
    loops = [(seed,) for seed in kept.LOOP_SEEDS]
    loops += [(seed, "--causes", causes) for causes in ("one", "several") for seed in range(500, 600 if SOAK else 501)]
    jobs = [(kind, seed) for kind in KINDS for seed in (range(2600, 2620) if SOAK else kept.JOB_SEEDS)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for some, seen in (*pool.map(examine_file, real_paths() + series), *pool.map(examine_loop, loops), *pool.map(examine_kind, jobs)):
            failures += some
            count += seen
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
