#!/usr/bin/env python3
"""One sum: where the time of the mean step goes, the same in all that is said of it.

For every shipped trace, jobs of each kind (tests/simulator/kinds) and the demonstration's series: the parts of the
partition are none below zero and sum to the mean step to the nanosecond; without steps to the device's span, by the
same numbers as the device has. The headline's number is a part of it, or a sum of parts that it names; no finding
claims more of a part than there is, all that it claims is its cost, and no share is of anything else. What is
expected of a change lies below the symptom gone. A job of each kind and the series; with LACUNA_SOAK=1 39 jobs of each.
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
from real_traces import real_traces  # noqa: E402
from soak import SOAK  # noqa: E402

TRACES = real_traces()
WORK = ["compute", "exposed_comm", "exposed_copy", "exposed_memset"]
IDLE = ["data_wait", "sync", "launch", "copy_wait", "allocator", "module_load", "comm", "dependency", "host", "profiler",
        "unattributed"]


# findings that take a smaller part of the symptom away as expected than at best; where both end at the same next
# limit (the loader, the host, the GPU's own work), the gains are the same
ENDS_ELSEWHERE = {"input-starvation", "layout-conversion", "unfused-elementwise", "unfused-attention", "tensor-cores-unused",
                  "collective-efficiency", "launch-bound"}

# what a person reads in the events: the start of the file's name, causes that the headline may name, words in it
READ = (
    ("resnet50_num_workers_0.worker0.1623143089861", ("data_wait",), "57 ms of every 176 ms step for data"),
    ("resnet50_num_workers_4.worker0.1623212756351", ("host", "launch"), "for the host"),
    ("nccl_parser_config", ("host", "launch"), "for the host"),
    ("df_index_resolver", ("host", "launch", "comm"), ""),
    ("negative_queue_length", ("comm", "unknown"), "not all that CUDA graphs run was recorded"),
    ("with_gpu_user_annotation", ("host", "launch"), "for the host"),
    ("linear_kineto", ("host", "launch"), "for the host"),
    ("mi300__resnet", ("comm",), ""),
    ("h100__google_owlv2", ("data_wait",), "of every 241 ms batch for data"),
    ("b200__eager", ("host",), "iteration for the host"),
    ("nsysai_mfu_2gpu", ("host", "launch"), "GPU 1 was idle for 31 ms of 299 ms"),
)


def wrong_readings(path, analysis):
    verdict = analysis["verdict"]
    text = f"{verdict['text']} {verdict['detail']}"
    return [f"the headline is of {verdict['cause']}: {text}" for start, causes, words in READ
            if os.path.basename(path).startswith(start) and (verdict["cause"] not in causes or words not in text)]


def analyses(paths):
    """Of one trace, or of each rank; none where the file cannot be read as a trace."""
    return [analysis for _, analysis in kept.analyses(paths) if "ranks" not in analysis]


def wrongs(analysis):
    """What does not add up."""
    partition, steps, devices = analysis["partition"], analysis["steps"], analysis["devices"]
    if partition is None:
        return ["no partition"] if devices else []
    parts = partition["parts_ns"]
    found = []
    if list(parts) != WORK + IDLE:
        found.append(f"parts {list(parts)}")
    if min(parts.values()) < 0:
        found.append("a part below zero")
    if sum(parts.values()) != partition["total_ns"]:
        found.append(f"parts sum to {sum(parts.values())} of {partition['total_ns']}")
    device = next((d for d in devices if d["id"] == partition["device"]), None)
    if device is None:
        return [*found, "of no device"]
    if partition["per"] == "recording":
        whole = {**device["partition_ns"], **device["idle_by_cause_ns"]}
        whole.pop("idle")
        if partition["total_ns"] != device["span_ns"] or whole != parts or steps["partition_ns"] is not None:
            found.append("not of the span")
    elif partition["total_ns"] != steps["mean_ns"] or steps["partition_ns"] != parts:
        found.append("not of the step")
    return found + wrong_words(analysis)


def scaled(text):
    """Nanoseconds of "48 ms"; None of no time. And how far rounding may have moved it."""
    match = re.fullmatch(r"([\d.]+) (ns|us|ms|s)", text)
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[match[2]]
    digits = len(match[1].split(".")[1]) if "." in match[1] else 0
    return float(match[1]) * unit, 0.51 * unit / 10 ** digits


def is_near(text, ns):
    value, off = scaled(text)
    return abs(value - ns) <= off


def sum_is_near(texts, ns):
    values, offs = zip(*(scaled(text) for text in texts))
    return abs(sum(values) - ns) <= sum(offs)


# what the best case takes beside the cost that is measured
BESIDE = re.compile(r"; the change can also remove ([\d.]+ (?:ns|us|ms|s)) of other idle time$")
STEP_SHARE = re.compile(r"([\d.]+ (?:ns|us|ms|s)) (?:per step )?of (?:every|the) ([\d.]+ (?:ns|us|ms|s)) (step|batch|iteration)")


def wrong_words(analysis):
    """Numbers in the headline and in the titles of findings that are not of the partition."""
    partition, verdict = analysis["partition"], analysis["verdict"]
    found = []
    parts = partition["parts_ns"]
    if verdict["parts"] and verdict["part_ns"] != sum(parts[name] for name in verdict["parts"]):
        found.append(f"the headline says {verdict['part_ns']} of {verdict['parts']}")
    said = STEP_SHARE.findall(verdict["text"])
    if len(said) > 1:
        found.append(f"two shares in one headline: {verdict['text']}")
    for ns, whole, unit in said:
        if not verdict["parts"] or not is_near(ns, verdict["part_ns"]) or not is_near(whole, partition["total_ns"]):
            found.append(f"the headline's number is no part: {verdict['text']}")
        if unit != partition["per"]:
            found.append(f"the headline is of a {unit}, the partition of a {partition['per']}")
    if STEP_SHARE.search(verdict["detail"]):
        found.append(f"a second share beside the headline: {verdict['detail']}")
    for finding in analysis["findings"]:
        claims, cost = finding["parts_ns"], finding["cost_ns_per_step"]
        if any(ns > parts[name] for name, ns in claims.items()) or (claims and sum(claims.values()) != cost):
            found.append(f"{finding['id']} claims {claims} for {cost}")
        beside = BESIDE.search(finding["title"])
        if finding["id"] == "launch-bound" and not beside and not set(claims) <= {"launch", "host"}:
            found.append(f"launch-bound claims other waits: {claims}")
        gain = finding["gain_pct"]
        is_below = gain["mid"] is None or gain["mid"] < gain["high"] or finding["id"] in ENDS_ELSEWHERE
        if not is_below or (gain["mid"] is not None and not gain["low"] <= gain["mid"] <= gain["high"]):
            found.append(f"{finding['id']} gains {gain['low']} to {gain['high']}, {gain['mid']} expected")
        for ns, _, _ in STEP_SHARE.findall(finding["title"]):
            if cost is not None and not sum_is_near([ns, beside[1]] if beside else [ns], cost):
                found.append(f"{finding['id']} costs {cost}, says {finding['title']}")
    return found


def examine_trace(path):
    return [f"{os.path.basename(path)}: {wrong}" for analysis in analyses([path])
            for wrong in wrongs(analysis) + wrong_readings(path, analysis)], 1


def examine_job(job):
    kind, seed = job
    with kept.job(kind, seed) as (paths, _):
        some = analyses(paths)
    return [f"{kind} seed {seed}: {wrong}" for analysis in some for wrong in wrongs(analysis)], len(some)


def real_paths():
    if not os.path.isdir(TRACES):
        return []
    kinds = ("*.json", "*.json.gz", "*.sqlite", "*.tar.gz")
    return sorted(path for folder in ("kineto", "hta", "param", "tracelens", "nsys", "sidnb13", "harryjmoss", "tf")
                  for kind in kinds for path in glob.glob(os.path.join(TRACES, folder, kind)))


def main():
    failures, count = [], 0
    series = kept.demo()
    jobs = [(kind, seed) for kind in KINDS for seed in (range(2600, 2639) if SOAK else kept.JOB_SEEDS)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for some, seen in (*pool.map(examine_trace, real_paths() + series), *pool.map(examine_job, jobs)):
            failures += some
            count += seen
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{count - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
