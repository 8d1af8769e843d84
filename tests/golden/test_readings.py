#!/usr/bin/env python3
"""What a person reads in the shipped traces, as a table: a row each, against `lacuna analyze --json`.

A row says what kind of work was recorded, the pace of the device in milliseconds a step (the distance on it between the
k-th operation launched in one step and the k-th of the next, read from the events; 3 % is allowed), and what must not
be said of it. MISSES holds the checks that are known to fail, with what is seen there instead: one that starts to hold
fails the test until it is taken off, so that the list stays true.

LACUNA names the program (default build/lacuna).
"""
import collections
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from real_traces import NONE, real_traces  # noqa: E402

TRACES = real_traces()
NEAR = 0.03
NO_STEP = 0.0  # the pace of a trace that shows no whole step: none may be said

# kind: the subject; pace_ms: None where nobody read one. never: words that must stand nowhere in what is said. without:
# findings that must not come. first: the first finding. advises: some finding says what to change. spread: at most this
# many percent of uncertainty, where the events show that the steps are alike. says: words that must stand somewhere.
Row = collections.namedtuple("Row", "path kind pace_ms never without first advises spread says",
                             defaults=[None, (), (), None, False, None, ()])

ROWS = [
    Row("kineto/resnet50_num_workers_0.worker0.1623143089861.pt.trace.json.gz", "training", 175.5,
        ("inference", "31 % of the kernels"), (), "input-starvation", True, None,
        ("resnet50_profiler_api.py:42", "2 leave a reserve", "foreach=True)  # from pytorch 1.12")),
    Row("kineto/resnet50_num_workers_4.worker0.1623212756351.pt.trace.json.gz", "training", 132.9, ("inference",), (),
        "slow-optimizer", True, None, ("set_to_none=True", "SGD launches 483 kernels per step", "19 MB per step")),
    # the last host mark is 85 ms late (the workers are joined), the first waits for work from before the recording
    Row("kineto/resnet50_num_workers_4.worker0.1623213129365.pt.trace.json.gz", "training", 121.3, ("inference",), (),
        "slow-optimizer", True, 2.1, ("pin_memory=True", "block the kernels for 2.9 ms and stop the host", "foreach=True)  # from pytorch 1.12", "torch.cuda.amp.gradscaler()",
                                            "torch.compile(model)  # from pytorch 2.0")),
    Row("kineto/gpu_metrics_input.json", "few_steps", None),
    Row("hta/trace_diff__control__control.json.gz", "training", 77.2,
        ("inference", "bucket_cap_mb", "register_buffer", "TrainPipelineSparseDist"), (), None, True,
        None, ("aten::item stop the host 6", "all-to-all", "TorchRec's wait_sparse_data_dist", "alltoall_fwd_single 7 ms",
         "peak for its mix of fp32 and tf32 (4.45 of 120 TFLOP/s)")),
    # 4597 of 4645 copies are a compiled function's: inputs of its graph
    Row("hta/trace_diff__test__test.json.gz", "training", 117.5,
        ("inference", "TrainPipelineSparseDist"), (), "compile-health", True, 2.5,
        ("mark_static_address",)),
    # three steps that agree to 0.7 %: no advice at all is wrong
    # and a host of which a view takes 23 us, in the same program elsewhere 0.4
    Row("hta/nccl_parser_config__nccl_data.json.gz", "training", 222.0, ("too few",), (), "host-slow", True, None, ("debugger",)),
    Row("hta/ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "training", 95.6, ("too few", "97 %"), (),
        "tensor-cores-unused", True, 0.3),
    Row("hta/df_index_resolver__df_index_resolver.json.gz", "training", 349.4,
        ("inference", "torch.compile(model", "between nothing", "the same 80 ms"), (), None, True, None,
        ("set_to_none=True", "aot_eager", "collectives per step, one per tensor", "bucket")),
    # the holes lie inside graph replays, with work pending: no launch was late
    Row("hta/negative_queue_length_values_check__rank0.json.gz", "training", 216.1,
        ("for launches", "register_buffer", "align8"), ("launch-bound",), None, False, 0.2),
    Row("hta/trace_filter__sampled_rank-0.json.gz", "training", 621.1, ("inference",)),
    Row("hta/trace_filter__sampled_rank-1.json.gz", "training", 621.5, ("inference",)),
    Row("hta/with_gpu_user_annotation__step_based_trace_2543932.json.gz", "training", 1.5, ("inference",)),
    Row("hta/critical_path__cuda_event_sync_multi_stream__event_sync_trace.json.gz", "inference", NO_STEP,
        ("optimizer=", "GradScaler", "bucket")),
    Row("hta/critical_path__simple_add__benchmark_result_493459_1694039959_trace.json.gz", "cold_start", NO_STEP),
    Row("hta/cupti_profiler__benchmark_result_924719_1679055439_trace.json.gz", "no_gpu", NO_STEP, ("used no GPU",)),
    Row("hta/amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz", "cold_start", None),
    Row("hta/rank_non_gpu__rank_non_gpu.json.gz", "no_gpu", None),
    Row("param/linear_kineto.json.gz", "training", 25.4, ("inference",), (), "launch-bound", True, None,
        ("set_to_none=True", "the same 3.9 ms as \"fewer launches\" takes away")),
    # eight free batches from the cold start (4 workers x 2), then waits of period 4: 1684, 1621, 1680, 1680 ms
    # a batch costs a worker 1.67 s: 13 of them for the 157 ms that everything else takes
    Row("param/resnet_kineto.json.gz", "training", 416.0, ("inference", "record the workers"), (), "input-starvation", True, 3.5,
        ("num_workers=13", "4 workers", "(61-62 %", "cores were not recorded: it needs 13")),
    Row("tracelens/mi300__resnet_act_checkpoint.json.gz", "training", 19.0, ("inference", "62 steps/s", "too few"),
        (), "collective-efficiency", True, None, ("3.5 gb/s",)),
    # the caching allocator is off: 14 times as fast with it, said by three steps as well as by ten
    Row("tracelens/no_pool__mi300_ddp_train_resnet18.json.gz", "training", 1053.0,
        ("inference", "too few", "expandable_segments"), (), "allocator-thrash", True, None,
        ("unset PYTORCH_NO_CUDA_MEMORY_CACHING",)),
    Row("tracelens/h100__google_owlv2-large-patch14-ensemble__1016001.json.gz", "inference", 242.0,
        ("optimizer=", "GradScaler", "bucket", "num_workers=2", "attn_implementation=", "pad it to", "optimizer state"), (),
        "input-starvation", True, None,
        ("pipeline(..., num_workers=1)", "in owlv2/modeling_owlv2.py:410 (forward)", "zoom (scipy)", "image_processing_owlv2.py:301",
         "106 ms of every 241 ms")),
    Row("tracelens/h100__facebook_timesformer-base-finetuned-k400__1016002.json.gz", "inference", 382.5,
        ("optimizer=", "GradScaler", "bucket", "attn_implementation=", "pad it to"), (), "python-frame", True, None,
        ("in timesformer/modeling_timesformer.py:200 (forward)", "normalize (transformers/image_transforms.py:390)",
         "image_processing_videomae.py:178")),
    Row("tracelens/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "inference", 49.4,
        ("optimizer=", "GradScaler", "bucket"), (), "unfused-elementwise", True, None,
        ("torch.compile(model)", "copies, casts and fills 22 %", "of 990 TFLOP/s")),  # one mark: it ends with its last kernel
    # 87 ms an iteration for 12 ms of GPU: 888 tokens of a prompt, none generated; 768 launch calls of 5.84 ms in 83
    Row("tracelens/b200__eager_trace.json.gz", "inference", 87.4, ("optimizer=", "GradScaler", "bucket", "cuda_graph_config"), (),
        "iteration-gap", True, None, ("prefill of 888 tokens", "enforce-eager", "5.8 ms in the calls")),
    Row("nsys/nsysai_mfu_2gpu_before.sqlite", "no_steps", NO_STEP, ("inference",), (),
        None, True, None, ("aten::to stops the host",)),  # 17 blocks of one pass
    Row("nsys/pipit_perlmutter-cloverleaf-cuda.sqlite", "no_steps", NO_STEP, ("record ten steps", "optimizer=", "dataloader", "record_shapes", "padding", "copies not overlapped"),
        (), "sync-per-layer", True, None,
        ("idle for 39 ms of 342 ms (11 %), the largest part of it waiting for the host (15 ms)",)),
    Row("nsys/nsysai_mock.sqlite", "cold_start", NO_STEP),
    Row("nsys/nevakrien_report1.sqlite", "no_gpu", NO_STEP, ("cuda activities",), (), None, False, None,
        ("nsys profile --trace=cuda",)),
    Row("smi/plato_gpu_log.csv", "no_gpu", None, ("cuda activities",)),
    Row("flamegraph/perf-iperf-stacks-pidtid-01.txt", "no_gpu", None, ("cuda activities",)),
    Row("sidnb13/transformer_a.pt.trace.json", "inference", None, ("optimizer=", "GradScaler", "bucket")),
    Row("harryjmoss/profiler_trace_single_sample.json", "cold_start", NO_STEP),
    Row("tf/ikhlestov_gpu_timeline_02_step_0.json", "cold_start", NO_STEP),
    Row("tf/ikhlestov_gpu_timeline_03_merged_5_runs.json", "training", None),
    Row("tf/xprof_trace_viewer_sample.json", "no_gpu", NO_STEP),
]

# start of the path: what a reader would change, the finding that says it, and the step in milliseconds that he expects of it
# (None: no number is known, and none may be said). The finding's band, and 3 % of the step around it, has to hold that.
GAINS = {
    "kineto/resnet50_num_workers_0.worker0.1623143089861": (("input-starvation", 122.5),),
    "kineto/resnet50_num_workers_4.worker0.1623212756351": (("slow-optimizer", 108.0),),  # pinned first: else the copy eats it
    "kineto/resnet50_num_workers_4.worker0.1623213129365": (("slow-optimizer", 104.0), ("launch-bound", 106.0)),
    "hta/ns_resolution_trace": (("tensor-cores-unused", 51.5), ("gpu-bound", None)),
    "hta/nccl_parser_config": (("host-slow", 55.0), ("layout-conversion", None)),
    "hta/df_index_resolver": (("collective-efficiency", 302.0),),
    "param/linear_kineto": (("launch-bound", 10.0), ("zero-grad-fills", 21.6)),
    "param/resnet_kineto": (("input-starvation", 157.0),),
    "tracelens/no_pool": (("allocator-thrash", 75.0),),
    "tracelens/h100__google_owlv2": (("input-starvation", 155.0),),
    "tracelens/h100__facebook_timesformer": (("unfused-attention", 250.0),),
    "tracelens/h100__Qwen": (("unfused-elementwise", 30.6),),
    "nsys/nsysai_mfu_2gpu_before": (("sync-per-layer", 16.0),),
    "nsys/pipit_perlmutter-cloverleaf": (("sync-per-layer", 29.8),),
}

# (start of the path, check): what is seen instead
MISSES = {
    # one worker, all that a pipeline in chunks takes, hands over what takes 124 ms while the GPU works for 113
    ("tracelens/h100__google_owlv2-large-patch14-ensemble__1016001.json.gz", "gain of input-starvation"): "123 to 136 ms",
}


def analyze(path):
    done = kept.ask("analyze", "--json", os.path.join(TRACES, path))
    if done.returncode != 0:
        raise SystemExit(f"FAIL {path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def said(analysis):
    """Everything that is said of a trace, as one text."""
    texts = [analysis["verdict"]["text"], analysis["verdict"].get("detail") or "", *analysis.get("caveats", ())]
    texts += [row["text"] if isinstance(row, dict) else row for row in analysis["not_recorded"]] + [analysis["efficiency"]["text"]]
    for finding in analysis["findings"]:
        texts += [finding.get(key) or "" for key in ("title", "why", "change", "brief", "expect", "costs", "check", "where")]
    return "\n".join(texts).lower()


def pace_ms(analysis):
    """Milliseconds a step; NO_STEP where what repeats is not said to be a step."""
    steps = analysis["steps"]
    if steps["mean_ns"] is None or steps["confidence"] < 0.8:
        return NO_STEP
    return steps["mean_ns"] / 1e6


def checks(row, analysis):
    """(check, holds, what is seen) for each thing that the row says."""
    have = pace_ms(analysis)
    text = said(analysis)
    findings = [finding["id"] for finding in analysis["findings"]]
    yield "kind", analysis["trace"]["subject"] == row.kind, analysis["trace"]["subject"]
    if row.pace_ms is not None:
        yield "pace", abs(have - row.pace_ms) <= NEAR * row.pace_ms, f"{have:.4g} ms"
    for word in row.never:
        yield f"never {word!r}", word.lower() not in text, "said"
    for word in row.says:
        yield f"says {word!r}", word.lower() in text, "not said"
    for finding in row.without:
        yield f"without {finding}", finding not in findings, "found"
    if row.first:
        yield "first", findings[:1] == [row.first], findings[0] if findings else "no finding"
    if row.advises:
        yield "advises", any(finding["change"] for finding in analysis["findings"]), "no change is proposed"
    if row.spread:
        spread = analysis["steps"]["uncertain_pct"]
        yield "spread", spread is not None and spread <= row.spread, f"{spread} %"


def check_gains(row, analysis):
    """(check, holds, what is seen) for each change that a reader expects a step of."""
    near_ms = NEAR * (analysis["steps"]["mean_ns"] or 0) / 1e6
    for start, gains in GAINS.items():
        for finding_id, step_ms in gains if row.path.startswith(start) else ():
            said_of_it = [finding for finding in analysis["findings"] if finding["id"] == finding_id]
            step_ns = said_of_it[0]["step_ns"] if said_of_it else None
            if not said_of_it:
                holds, seen = False, "not found"
            elif step_ms is None:
                holds, seen = step_ns["mid"] is None, f"{step_ns}"
            elif step_ns["mid"] is None:
                holds, seen = False, "no step is promised"
            else:
                low, high = step_ns["low"] / 1e6, step_ns["high"] / 1e6
                holds, seen = low - near_ms <= step_ms <= high + near_ms, f"{low:.4g} to {high:.4g} ms"
            yield f"gain of {finding_id}", holds, seen


def check_costs(analysis):
    """What is said to be waited for launches is no other wait."""
    for finding in analysis["findings"]:
        if finding["id"] == "launch-bound" and finding["parts_ns"]:
            launches_ms = (finding["parts_ns"].get("launch", 0) + finding["parts_ns"].get("host", 0)) / 1e6
            said = re.search(r"waits ([\d.]+) ms of every", finding["title"])
            yield "cost of launch-bound", said and abs(float(said[1]) - launches_ms) <= 0.51, finding["title"]


def check_terminal(row, analysis):
    """The report names each change that gains, whatever there is to mind, and no number in more than three digits."""
    done = kept.ask("analyze", os.path.join(TRACES, row.path))
    text = " ".join(done.stdout.split())
    planned = [step["brief"] for step in analysis["plan"]]
    for finding in analysis["findings"]:
        is_worth_it = finding["brief"] and finding["change"] and (finding["gain_pct"]["mid"] or 0.0) >= 1.0
        if is_worth_it and not any(finding["brief"] in brief for brief in planned):
            yield f"terminal names {finding['id']}", finding["brief"] in text, "not there"
    for brief in planned:
        yield f"terminal has the step {brief}", all(word in text for word in brief.split()), "not there"
    for caveat in analysis["caveats"]:
        yield "terminal has the caveat", caveat in text, caveat
    long = re.search(r"\d \d{3} ms|\d{4,} TFLOP|\d{3}\.\d TFLOP|\d \d\d[1-9] s\b", done.stdout)
    yield "digits", long is None, long and long.group()
    yield "terminal fits", len(done.stdout.splitlines()) <= 32, f"{len(done.stdout.splitlines())} lines"


def check_names():
    """Two files whose names begin alike differ in what a comparison calls them."""
    paths = [os.path.join(TRACES, row.path) for row in ROWS if "num_workers_4" in row.path]
    done = kept.ask("compare", *paths)
    names = [line.split()[1] for line in done.stdout.splitlines()[:2]]
    return len(set(names)) == 2 and all("worker" in name for name in names), names


def check_plan(analysis):
    """What the plan promises first is what the finding that proposes it does, nothing later takes longer, and each row has a
    finding that says how or is what one writes."""
    briefs = {finding["brief"]: finding["step_ns"]["mid"] for finding in reversed(analysis["findings"]) if finding["change"]}
    steps = [step["step_ns"] for step in analysis["plan"]]
    holds = all(after <= before for before, after in zip(steps, steps[1:]))
    if steps:
        first = briefs.get(analysis["plan"][0]["brief"])
        holds = holds and (first is None or abs(first - steps[0]) <= 1)
    yield "plan", holds, f"{steps}"
    written = ("num_workers=", "channels-last", "pin_memory=True", "copy one batch ahead")
    said_how = [step["brief"] in briefs or step["brief"].startswith(written) for step in analysis["plan"]]
    yield "plan has findings", all(said_how), f"{[step['brief'] for step in analysis['plan']]}"


def main():
    if not os.path.isdir(TRACES):
        print(f"skip: {NONE}")
        print("0 passed, 0 failed")
        return 0
    passed = failed = right = 0
    known = set()
    for row in ROWS:
        is_right = True
        analysis = analyze(row.path)
        for check, holds, seen in (*checks(row, analysis), *check_gains(row, analysis), *check_plan(analysis),
                                   *check_costs(analysis), *check_terminal(row, analysis)):
            misses = [key for key in MISSES if row.path.startswith(key[0]) and check == key[1]]
            known.update(misses)
            is_right = is_right and holds
            if holds == (not misses):
                passed += 1
            elif holds:
                failed += 1
                print(f"FAIL {row.path} {check}: it holds now, take it off MISSES")
            else:
                failed += 1
                print(f"FAIL {row.path} {check}: {seen}")
        right += is_right
    holds, names = check_names()
    passed += holds
    failed += not holds
    if not holds:
        print(f"FAIL compare: {names}")
    for key in sorted(set(MISSES) - known):
        failed += 1
        print(f"FAIL MISSES {key}: no row has this check")
    print(f"{right} of {len(ROWS)} rows are right")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
