#!/usr/bin/env python3
"""lacuna compare on the simulated series pair by pair, on real traces, and on what cannot be compared.

Conditions of --fail-if are asked together, and that the same bytes come again is asked of a simulated loop.

LACUNA names the program (default build/lacuna).
"""
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from real_traces import real_traces  # noqa: E402

TRACES = real_traces()

passed = failed = 0


def expect(what, holds, detail=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}: {detail}")


def run(*args):
    return kept.ask("compare", *args)


def compare(a, b):
    done = run(a, b, "--json")
    expect(f"status of {os.path.basename(a)} {os.path.basename(b)}", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def check_sums(what, document):
    """The parts sum to the mean step, the causes to its idle part, on both sides."""
    where = document["where"]
    if where is None:
        return
    for side in "ab":
        parts = {row["name"]: row[f"{side}_ns"] for row in where["partition"]}
        mean = document["step"][f"{side}_ns"]
        expect(f"{what} parts of {side}", abs(sum(parts.values()) - mean) <= 1000, f"{parts} {mean}")
        causes = sum(row[f"{side}_ns"] for row in where["idle_by_cause"])
        expect(f"{what} causes of {side}", causes == parts["idle"], f"{causes} {parts}")
    for rows in where.values():
        for row in rows:
            expect(f"{what} difference", row["delta_ns"] == row["b_ns"] - row["a_ns"], row)


def check_text(what, *asked):
    done = run(*asked)
    lines = done.stdout.splitlines()
    expect(f"{what} text", done.returncode == 0 and 0 < len(lines) <= 32, done.stdout + done.stderr)
    expect(f"{what} columns", all(len(line) <= 80 for line in lines), done.stdout)
    return done


def change(document, part, name):
    return next((row["delta_ns"] for row in document["where"][part] if row["name"] == name), 0) / 1e6


def check_plans(stages):
    """Several changes at once are the plan of A, or more than any of its predictions is of."""
    for a, b, changes in ((0, 2, "num_workers=5, channels-last"), (0, 3, "channels-last, num_workers=7"), (2, 4, "num_workers=7, pin_memory=True"),
                          (2, 5, "num_workers=7, pin_memory=True, copy one batch ahead")):
        document = compare(stages[a], stages[b])
        predicted = document["predicted"]
        expect(f"{a + 1}->{b + 1} its plan", predicted["change"] == changes and predicted["is_the_change"], predicted)
        expect(f"{a + 1}->{b + 1} came true", predicted["within_band"] and "came true" in predicted["text"], predicted)
        expect(f"{a + 1}->{b + 1} are several", not document["changed"]["one_change"], document["changed"])
    document = compare(stages[1], stages[5])  # its plan has a change between that was not made
    expect("2->6 not the plan", not document["predicted"]["is_the_change"], document["predicted"])
    expect("2->6 of one change", document["predicted"]["change"] == "channels-last", document["predicted"])
    expect("2->6 says so", re.search(r"for this change alone, achieved 230 ms with \d changes$", document["predicted"]["text"]), document["predicted"])


def check_series(stages):
    truths = [json.load(open(path[:-5] + ".truth.json", encoding="utf-8")) for path in stages]
    documents = []
    for i in range(len(stages) - 1):
        what = f"{i + 1}->{i + 2}"
        document = compare(stages[i], stages[i + 1])
        documents.append(document)
        expect(f"{what} faster", document["verdict"] == "faster", document["text"])
        for side, truth in (("a", truths[i]), ("b", truths[i + 1])):
            have, want = document["step"][f"{side}_ns"], truth["steps"]["mean_ns"]
            expect(f"{what} step of {side}", abs(have - want) <= 0.001 * want, f"{have} {want}")
        expect(f"{what} one change", document["changed"]["one_change"], document["changed"])
        predicted = document["predicted"]
        expect(f"{what} finding", predicted["finding_id"] == truths[i]["expected"]["first_finding"], predicted)
        expect(f"{what} its change", predicted["is_the_change"], predicted)
        expect(f"{what} within the band", predicted["within_band"], predicted)
        expect(f"{what} achieved", predicted["achieved_ns"] == document["step"]["b_ns"], predicted)
        check_sums(what, document)
        check_text(what, stages[i], stages[i + 1])
    where = documents[1]["where"]["operator"]
    expect("2->3 convolutions are what got faster", {row["name"] for row in where[:2]} == {"aten::conv2d", "autograd::engine::evaluate_function: ConvolutionBackward0"}, where[:3])
    expect("2->3 the largest change first", all(abs(x["delta_ns"]) >= abs(y["delta_ns"]) for x, y in zip(where, where[1:])), where)
    expect("2->3 kinds", [row["kind"] for row in documents[1]["kinds"]] == ["train"], documents[1]["kinds"])
    expect("2->3 no result", documents[1]["result"]["same"] is None and "no loss or accuracy counter" in documents[1]["result"]["text"], documents[1]["result"])
    expect("1->2 gone", [f["id"] for f in documents[0]["findings"]["gone"]] == ["input-starvation"], documents[0]["findings"])
    expect("1->2 data", -382 < change(documents[0], "idle_by_cause", "data_wait") < -376, documents[0]["where"])
    expect("1->2 kernels", abs(change(documents[0], "partition", "compute")) < 0.1, documents[0]["where"])
    expect("2->3 layout kernels", change(documents[1], "kernel_family", "layout") < -119, documents[1]["where"])
    expect("2->3 data comes", change(documents[1], "idle_by_cause", "data_wait") > 25, documents[1]["where"])
    expect("4->5 copies", -25 < change(documents[3], "partition", "exposed_copy") < -23, documents[3]["where"])

    check_plans(stages)
    back = compare(stages[2], stages[0])
    expect("back is slower", back["verdict"] == "slower" and back["step"]["change_pct"] > 140, back["step"])
    expect("back has several changes", not back["changed"]["one_change"] and back["changed"]["count"] == 2, back["changed"])
    same = compare(stages[0], stages[0])
    expect("itself", same["verdict"] == "same" and same["step"]["delta_ns"] == 0 and same["predicted"] is None, same["text"])
    expect("nothing changed", same["changed"]["count"] == 0, same["changed"])
    check_text("itself", stages[0], stages[0])
    check_conditions(stages)


def check_conditions(stages):
    cases = [((0, 1), [], ["step_time>+3%", "step_time>0.4s", "idle>+2%", "step_time>1s"]),
             ((0, 1), ["step_time<-50%", "throughput>500", "step_time>300ms", "idle<20"], ["step_time>1s"]),
             ((1, 0), ["step_time>+3%", "throughput<-5%", "idle>+2%", "data_wait>=40"], ["idle<1"]),
             ((0, 0), [], ["step_time>+0%"])]
    # several in one, which tells of each: none of them holds, or the first ones do
    for (a, b), holding, others in cases:
        asked = holding + others
        done = run(stages[a], stages[b], "--json", "--fail-if", ",".join(asked))
        expect(f"{asked} {a}{b}", done.returncode == (3 if holding else 0), f"{done.returncode} {done.stderr}")
        expect(f"{asked} {a}{b} said", ("holds" in done.stderr) == bool(holding), done.stderr)
        answers = [condition["holds"] for condition in json.loads(done.stdout)["conditions"]]
        expect(f"{asked} {a}{b} each", answers == ["yes" if text in holding else "no" for text in asked], answers)
    done = run(stages[1], stages[0], "--fail-if", "step_time>+3%")
    expect("a condition of the report", done.returncode == 3 and "holds" in done.stderr, done.stderr)
    for text in ("", "step_time", "step_time>3", "speed>3%", "idle>abc", "step_time>+3%x", "step_time>3%,", ">3%", "idle>nan", "step_time>" + "9" * 80):
        done = run(stages[0], stages[1], "--fail-if", text)
        expect(f"usage '{text[:20]}'", done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, f"{done.returncode} {done.stderr}")
    check_one_trace(stages[0])
    for args in ((), (stages[0],), (stages[0], stages[1], stages[2])):
        expect(f"{len(args)} paths", run(*args).returncode == 2)


def check_one_trace(path):
    """The same conditions of one trace."""
    def analyze(*args):
        return kept.ask("analyze", path, *args)

    plain = analyze()
    for text, want in (("data_wait>=40", 3), ("data_wait>90,throughput<1", 0), ("idle>99,step_time>300ms", 3),
                       ("step_time>+3%", 2), ("idle>+2%", 2), ("speed>3", 2)):
        done = analyze("--fail-if", text)
        expect(f"analyze {text}", done.returncode == want, f"{done.returncode} {done.stderr}")
        expect(f"analyze {text} said", (want == 0) == (done.stderr == ""), done.stderr)
        expect(f"analyze {text} report", done.stdout == ("" if want == 2 else plain.stdout), done.stdout)


def check_real():
    def find(pattern):
        return next(iter(sorted(glob.glob(os.path.join(TRACES, pattern)))), None)

    none, four = find("kineto/resnet50_num_workers_0*"), find("kineto/resnet50_num_workers_4*")
    if not none or not four:
        print("skip: real traces are not beside the repository")
        return
    document = compare(none, four)
    expect("workers 0 -> 4", document["verdict"] == "faster", document["text"])
    expect("its finding is gone", "input-starvation" in [f["id"] for f in document["findings"]["gone"]], document["findings"])
    expect("the wait is gone", change(document, "idle_by_cause", "data_wait") < -40, document["where"])
    expect("the band holds the difference", document["step"]["low_pct"] < document["step"]["change_pct"] < document["step"]["high_pct"])
    expect("six steps leave a wide band", document["step"]["noise_floor_pct"] > 2 and document["step"]["steps_for_2_pct"] > 6, document["step"])
    # how many workers is not recorded, but any number of them makes the same step: the prediction is of all
    predicted = document["predicted"]
    expect("the prediction came true", predicted and predicted["is_the_change"] and predicted["within_band"], predicted)
    expect("it says so", predicted and "came true" in predicted["text"], predicted)
    expect("not one change when a side is not recorded", not document["changed"]["one_change"] and "not recorded" in document["changed"]["text"], document["changed"])
    expect("a fifth and more", -35 < document["step"]["change_pct"] < -20, document["step"])
    expect("one order of steps", document["step"]["rank_test_p"] < 0.02, document["step"])
    expect("one program", document["refusal"] is None and document["relation"] == "runs" and document["common"]["kernels_pct"] > 80, document["common"])
    check_sums("workers 0 -> 4", document)
    same = compare(four, four)
    expect("four against itself", same["verdict"] == "same", same["text"])
    expect("what it could show", same["step"]["steps_for_2_pct"] is not None and "would resolve 2 %" in same["text"], same["text"])
    expect("no regression", check_text("workers 0 -> 4", none, four, "--fail-if", "step_time>+3%").returncode == 0)

    check_unlike(find, none)

    no_gpu, no_steps = find("hta/rank_non_gpu*"), find("tf/*02_step_0*")
    document = compare(none, no_gpu)
    expect("without a GPU", document["where"] is None and "no GPU" in document["why_not"], document["why_not"])
    expect("one step is too few", document["verdict"] in ("too_few", "unknown") and document["predicted"] is None, document["text"])
    document = compare(none, no_steps)
    expect("without steps", document["verdict"] == "unknown" and document["step"]["change_pct"] is None, document["text"])
    done = run(none, no_steps, "--fail-if", "step_time>+3%")
    expect("a condition that cannot be told", done.returncode == 1 and "is unknown" in done.stderr, done.stderr)
    for a, b in ((none, no_gpu), (no_steps, none), (no_steps, no_steps)):
        check_text("what is left", a, b)
    ranks = find("param/dlrm_kineto.tar.gz")
    document = compare(ranks, ranks)
    expect("runs are compared", document["ranks"]["a"]["late_rank"] == 7 and document["ranks"]["b"]["count"] == 8, document["ranks"])
    expect("rank by rank", [row["rank"] for row in document["ranks"]["shared"]] == list(range(8)), document["ranks"])
    expect("their lowest rank", document["a"]["name"].startswith("worker0"), document["a"])
    check_text("runs", ranks, ranks)
    expect("a run and a trace", compare(ranks, no_steps)["ranks"] is None)
    expect("no such file", run(no_steps, "/nonexistent/x.json").returncode == 1)


def check_unlike(find, none):
    """Other programs, other work, ranks and GPUs are said as such, and never as one change."""
    refused = (("tracelens/h100__google*", "tracelens/b200*", "different_programs"),
               ("param/linear*", "hta/ns_resolution*", "different_programs"),
               ("hta/amd_trace*", "hta/amd_trace*", "cold_start"),
               ("nsys/nsysai_mfu*", "nsys/nsysai_mfu*", "part_of_step"))
    for left, right, code in refused:
        a, b = find(left), find(right)
        if not a or not b:
            print(f"skip: {left} or {right} is not there")
            continue
        document = compare(a, b)
        what = f"{os.path.basename(a)[:20]} {os.path.basename(b)[:20]}"
        expect(f"{what} refused", document["refusal"] == code and document["verdict"] == "unknown", document["refusal"])
        expect(f"{what} without numbers", document["step"]["change_pct"] is None and document["step"]["delta_ns"] is None and document["predicted"] is None, document["step"])
        expect(f"{what} no one change", not document["changed"]["one_change"], document["changed"])
        expect(f"{what} says why", document["why_not"] in document["text"] and document["why_not"], document["text"])
        check_text(what, a, b)
    document = compare(find("tracelens/h100__google*"), find("tracelens/b200*"))
    expect("how little they share", "% of the kernel time in common" in document["text"], document["text"])

    related = (("hta/trace_filter__sampled_rank-0*", "hta/trace_filter__sampled_rank-1*", "ranks", "two ranks of one run"),
               ("hta/trace_diff__control*", "hta/trace_diff__test*", "hardware", "hardware against hardware"))
    for left, right, relation, words in related:
        document = compare(find(left), find(right))
        expect(f"{relation} as such", document["relation"] == relation and words in document["changed"]["text"], document["changed"])
        expect(f"{relation} are no change", not document["changed"]["one_change"] and document["predicted"] is None, document["changed"])
    document = compare(find("hta/trace_diff__control*"), find("hta/trace_diff__test*"))
    shown = {row["key"]: (row["a"], row["b"]) for row in document["changed"]["differences"]}
    expect("precision by kernels", shown.get("precision of products") == ("tf32", "fp32"), shown)
    expect("graphs by launches", shown.get("CUDA graphs") == ("no", "yes"), shown)


def check_simulated():
    """Loops that never were: each is the same as itself, and two ranks of one are said as such."""
    for seed in kept.LOOP_SEEDS[:3]:
        with kept.loop(seed) as ((path,), _):
            same = compare(path, path)
            if seed == kept.LOOP_SEEDS[0]:
                expect("same bytes", kept.ask_anew("compare", path, path, "--json").stdout == run(path, path, "--json").stdout)
        expect("a loop is itself", same["verdict"] in ("same", "too_few") and same["predicted"] is None and same["refusal"] is None, same["text"])
        expect("and the order says so", same["step"]["rank_test_p"] in (1, None), same["step"])
    for seed in (40001, 40002):  # of those of test_random.py
        with kept.loop(seed, "--causes", "one", "--ranks") as (ranks, _):
            pair = compare(*ranks[:2])
        expect("ranks of one run", pair["relation"] == "ranks" and not pair["changed"]["one_change"] and pair["predicted"] is None, pair["changed"])
        expect("of one program", pair["refusal"] != "different_programs" and pair["common"]["kernels_pct"] > 50, pair["common"])


def main():
    check_series(kept.demo())
    check_simulated()
    check_real()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
