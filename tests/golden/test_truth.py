#!/usr/bin/env python3
"""`lacuna analyze --json` on every real trace against what the traces truly contain.

Truth times are microseconds with three decimals, ours nanoseconds: compared as integers. Where a
whole kind is absent our null stands for the truth's 0.

LACUNA names the program (default build/lacuna).
"""
import glob
import json
import os
import sys
from decimal import Decimal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from real_traces import NONE, real_traces  # noqa: E402

TRACES = real_traces()

passed = failed = 0


def check(what, have, want):
    global passed, failed
    if have == want:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}: have {have!r}, want {want!r}")


def expect(what, holds, detail=""):
    check(f"{what} {detail}", bool(holds), True)


def ns(us):
    return int(Decimal(str(us)) * 1000)


def analyze(path, *args):
    done = kept.ask("analyze", "--json", path, *args)
    if done.returncode != 0:
        check(f"{os.path.basename(path)} exit status", done.stderr.strip(), "")
        return None
    return json.loads(done.stdout)


def trace_of(truth_path, truth):
    """The trace a truth file is about, or None for formats that are not read yet."""
    name = os.path.basename(truth_path)[: -len(".json")]
    folder, rest = name.split("__", 1)
    for candidate in sorted(glob.glob(os.path.join(TRACES, folder, "*"))):
        base = os.path.basename(candidate)
        if base in (rest + ".json", rest + ".json.gz"):
            return candidate, None
        if base.endswith(".tar.gz") and rest.startswith(base[: -len(".tar.gz")] + "__"):
            return candidate, truth.get("distributed", {}).get("rank")
    return None, None


def check_devices(name, analysis, truth):
    ours = {str(device["id"]): device for device in analysis["devices"]}
    check(f"{name} devices", sorted(ours), sorted(truth["devices"]))
    for key, want in truth["devices"].items():
        have = ours.get(key)
        if have is None:
            continue
        where = f"{name} device {key}"
        check(f"{where} span", have["span_ns"], ns(want["span_us"]))
        check(f"{where} busy", have["busy_ns"], ns(want["busy_us"]))
        check(f"{where} idle", have["idle_ns"], ns(want["idle_us"]))
        check(f"{where} busy_pct", have["busy_pct"], want["busy_pct"])
        check(f"{where} gaps", have["gaps"]["count_10us"], want["idle_gaps_ge_10us"])
        check(f"{where} gaps total", have["gaps"]["total_10us_ns"], ns(want["idle_gaps_ge_10us_total_us"]))
        check(f"{where} longest gap", have["gaps"]["longest_ns"], ns(want["longest_gap_us"]))
        check(f"{where} partition", sum(have["partition_ns"].values()), have["span_ns"])
        check(f"{where} causes", sum(have["idle_by_cause_ns"].values()), have["idle_ns"])
        expect(f"{where} no negative part", min(have["partition_ns"].values()) >= 0)
        expect(f"{where} no negative cause", min(have["idle_by_cause_ns"].values()) >= 0)
        if want["longest_gap_at_us"] and analysis["trace"]["format"] != "tensorflow":
            at = ns(want["longest_gap_at_us"][0]) - ns(want["first_start_us"])
            # the truth's times are floats of microseconds since 1970: good to a quarter of one
            off = abs(have["gaps"]["longest_at_ns"] - have["first_ns"] - at)
            expect(f"{where} longest gap at", off < 1000, str(off))


def check_kernels(name, analysis, truth):
    kernels, layout = analysis["kernels"], analysis["layout"]
    check(f"{name} kernels", kernels["count"], truth["kernels"])
    check(f"{name} kernel time", kernels["total_ns"] or 0, ns(truth["kernel_time_us"]))
    check(f"{name} kernel time is null without kernels", kernels["total_ns"] is None, truth["kernels"] == 0)
    check(f"{name} top ten", [(k["name"], k["count"], k["total_ns"]) for k in kernels["top"]],
          [(k["name"], k["count"], ns(k["total_us"])) for k in truth["top10_kernels"]])
    strict = truth["layout_kernels_strict"]
    check(f"{name} layout kernels", layout["kernel_count"], strict["count"])
    check(f"{name} layout time", layout["total_ns"] or 0, ns(strict["total_us"]))
    check(f"{name} layout share", layout["pct_of_kernel_time"] or 0, strict["share_pct_of_kernel_time"] or 0)


def check_steps(name, analysis, truth):
    want = truth["profiler_steps"]["count"]
    loader = truth["dataloader"]
    ours = analysis["dataloader"]
    # one marked step around a loop without training: a step is a batch, and the last asking got none
    is_loop = want == 1 and loader["count"] > 3 and analysis["trace"]["subject"] == "inference"
    if is_loop:
        check(f"{name} steps", analysis["steps"]["count"], loader["count"] - 1)
    elif want:
        check(f"{name} steps", analysis["steps"]["count"], want)
    if not loader["count"]:
        check(f"{name} no loader", ours["wait_ns"], None)
        return
    check(f"{name} batches", ours["batch_count"], loader["count"] - is_loop)
    inside = ns(loader["inside_steps_us"]) if want else ns(loader["union_us"])
    check(f"{name} loader wait", ours["wait_ns"], inside)
    if want and not is_loop:
        check(f"{name} loader share", ours["wait_pct_of_steps"], loader["share_pct_of_steps"])
    outside = ns(loader["union_us"]) - inside
    for device in truth["devices"].values():
        idle_inside = ns(device["idle_inside_dataloader_us"])
        expect(f"{name} starved", idle_inside - outside <= ours["starved_ns"] <= idle_inside,
               f"{ours['starved_ns']} of {idle_inside}")


def check_truth():
    for truth_path in sorted(glob.glob(os.path.join(TRACES, "truth", "*.json"))):
        truth = json.load(open(truth_path))
        if truth["kind"] != "chrome":
            continue
        name = os.path.basename(truth_path)[:-5][:40]
        path, rank = trace_of(truth_path, truth)
        if path is None:
            check(f"{name}: its trace", None, "a file")
            continue
        analysis = analyze(path)
        if analysis is None:
            continue
        if analysis["schema"] == "lacuna.run/1":
            analysis = next(r["analysis"] for r in analysis["ranks"] if r["rank"] == rank)
        check(f"{name} events", analysis["trace"]["event_count"], truth["events_all_phases"])
        check_devices(name, analysis, truth)
        check_kernels(name, analysis, truth)
        check_steps(name, analysis, truth)


def finding(analysis, name):
    return next((f for f in analysis["findings"] if f["id"] == name), None)


def check_named():
    """What is known of single traces."""
    def at(pattern, *args):
        return analyze(sorted(glob.glob(os.path.join(TRACES, pattern)))[0], *args)

    zero = at("kineto/resnet50_num_workers_0*")
    first = zero["findings"][0]
    check("workers 0: first finding", first["id"], "input-starvation")
    check("workers 0: wait", round(zero["dataloader"]["wait_pct_of_steps"], 1), 39.6)
    more = at("kineto/resnet50_num_workers_0*", "--what-if", "workers=4")["what_if"]
    low, mid, high = more["step_low_ns"], more["step_mean_ns"], more["step_high_ns"]
    expect("workers 0: the band holds the run with 4", low <= 126_270_000 <= high and low <= 131_300_000 <= high, f"{low} {high}")
    expect("workers 0: the band is at most 30 % wide", high - low <= 0.3 * mid, f"{low} {mid} {high}")
    expect("workers 0: the assumption is written out", "run 10 % slower" in more["assumption"], more["assumption"])
    check("workers 0: starved", round(zero["dataloader"]["starved_ns"] / 1e6, 1), 286.9)
    check("workers 0: idle", round(zero["devices"][0]["idle_ns"] / 1e6, 1), 392.9)
    check("workers 0: data_wait", zero["devices"][0]["idle_by_cause_ns"]["data_wait"], 286877000)
    check("workers 0: num_workers", zero["dataloader"]["num_workers"], 0)
    expect("workers 0: says where it loads", "training process" in first["why"].lower(), first["why"])
    check("workers 0: verdict", zero["verdict"]["cause"], "data_wait")

    # the steps, played again without a change, take as long as they took
    for pattern in ("kineto/resnet50_num_workers_0*", "kineto/resnet50_num_workers_4*", "hta/trace_diff*", "hta/nccl_parser*",
                    "hta/ns_resolution*", "hta/with_gpu_user*", "param/linear*", "nsys/nsysai_mfu*", "nsys/pipit*"):
        replay = at(pattern)["replay"]
        expect(f"{pattern} played again", replay["method"] == "graph" and abs(replay["error_pct"]) <= 1.5, str(replay))
    # its host is ahead of its device by more than the three steps: they are played at the device's pace
    ahead = at("tracelens/mi300*")["replay"]
    expect("mi300 played again", ahead["method"] == "graph" and abs(ahead["error_pct"]) <= 1.5, str(ahead))

    four = at("kineto/resnet50_num_workers_4*")
    starving = finding(four, "input-starvation")
    expect("workers 4: no starvation above info", starving is None or starving["severity"] == "info")
    check("workers 4: num_workers", four["dataloader"]["num_workers"], None)
    # the prediction of the first trace, against what four workers really took
    predicted, taken = first["step_ns"], four["steps"]["mean_ns"]
    expect("workers 0: prediction", predicted["low"] <= taken <= predicted["high"], f"{predicted} {taken}")

    config = finding(at("hta/nccl_parser_config*"), "layout-conversion")
    expect("nccl_parser_config: layout finding", config)
    if config:
        check("nccl_parser_config: severity", config["severity"], "info")
        expect("nccl_parser_config: gain", config["gain_pct"]["high"] is None and not config["change"], str(config["gain_pct"]))
        expect("nccl_parser_config: figures", "633" in config["why"] and "9 % of the kernel time" in config["why"], config["why"])

    resolution = at("hta/ns_resolution*")
    expect("ns_resolution: gpu-bound", finding(resolution, "gpu-bound"))
    check("ns_resolution: verdict", resolution["verdict"]["cause"], "gpu")
    mi300 = at("tracelens/mi300__resnet_act*")
    expect("mi300: not gpu-bound", finding(mi300, "gpu-bound") is None)
    check("mi300: verdict", mi300["verdict"]["cause"], "comm")
    exposed = mi300["devices"][0]["partition_ns"]["exposed_comm"] / mi300["devices"][0]["span_ns"]
    check("mi300: exposed communication", round(100 * exposed), 64)


def main():
    if not os.path.isdir(TRACES):
        print(f"skip: {NONE}: real traces are not checked")
        print("1 passed, 0 failed")
        return 0
    check_truth()
    check_named()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
