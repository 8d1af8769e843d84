#!/usr/bin/env python3
"""The ranks of a run on the command line: a made-up run in which one rank is late, in every way to name it, damaged, and a real one.

LACUNA names the program (default build/lacuna).
"""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from real_traces import real_traces  # noqa: E402

TRACES = real_traces()
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
RANKS, LATE = 5, 3

passed = failed = 0


def expect(what, holds, detail=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}: {str(detail)[:800]}")


def run(*args):
    return subprocess.run([LACUNA, "analyze", *args], capture_output=True, text=True, timeout=300, env={**os.environ, "LC_ALL": "C.UTF-8"})


def analyze(*args):
    done = run("--json", *args)
    expect(f"status of {args}", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def check_text(what, *args):
    done = run(*args)
    lines = done.stdout.splitlines()
    expect(f"{what} text", done.returncode == 0 and 0 < len(lines) <= 32 and all(len(line) <= 80 for line in lines), done.stdout + done.stderr)
    return " ".join(done.stdout.split())


def check_made_up(folder):
    ranks = os.path.join(folder, "ranks")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "bench", "make_ranks.py"), ranks, str(RANKS), "15000", str(LATE)], check=True, timeout=100)
    paths = [os.path.join(ranks, f"rank{rank}.json") for rank in range(RANKS)]
    document = analyze(*paths)
    expect("schema", document["schema"] == "lacuna.run/1", document["schema"])
    expect("in order", [rank["rank"] for rank in document["ranks"]] == list(range(RANKS)), [rank["rank"] for rank in document["ranks"]])
    expect("late", document["late_rank"] == LATE, document["note"])
    finding = document["findings"][0]
    expect("id", finding["id"] == "straggler-rank", finding)
    # 50 kernels a bucket, each 3.3 us longer: 165 us a bucket, eight buckets a step
    expect("how late", abs(finding["cost_ns_per_step"] - 1_320_000) < 40_000, finding["cost_ns_per_step"])
    expect("why", "1.10 times as long" in finding["why"], finding["why"])
    # a step of 20 ms is then 1.32 ms shorter
    expect("gain", abs(finding["gain_pct"]["mid"] - 6.6) < 0.4, finding["gain_pct"])
    for rank in document["ranks"]:
        expect(f"rank {rank['rank']} alone", analyze(paths[rank["rank"]]) == rank["analysis"])
        expect(f"rank {rank['rank']} last", (rank["collectives_entered_last"] > 0) == (rank["rank"] == LATE), rank["collectives_entered_last"])
    text = run("--json", *paths).stdout
    archive = os.path.join(folder, "ranks.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(ranks, "ranks")
    for what, args in (("backwards", reversed(paths)), ("folder", [ranks]), ("archive", [archive]), ("again", paths)):
        expect(f"{what}: the same bytes", run("--json", *args).stdout == text)
    expect("said", f"wait for rank {LATE}: 1.3 ms of every step" in check_text("made up", ranks))
    check_incomplete(folder, paths)
    check_names(folder, paths)
    # whatever memory holds before it is written
    done = subprocess.run([LACUNA, "analyze", "--json", *paths], capture_output=True, text=True, timeout=300, env={**os.environ, "LC_ALL": "C.UTF-8", "MALLOC_PERTURB_": "165"})
    expect("other memory: the same bytes", done.stdout == text)


def check_incomplete(folder, paths):
    document = analyze(*paths[1:])
    expect("a missing rank is said", document["late_rank"] == LATE and f"{RANKS - 1} of {RANKS} ranks are present" in document["note"], document["note"])
    document = analyze(*paths, paths[1])
    expect("a doubled rank is said", document["late_rank"] == LATE and "Rank 1 appears twice" in document["note"], document["note"])
    check_text("doubled", *paths, paths[1])
    mixed = os.path.join(folder, "mixed")
    os.mkdir(mixed)
    for path in paths[:2]:
        shutil.copy(path, mixed)
    with open(os.path.join(mixed, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("not a trace")
    done = run("--json", mixed)
    expect("what is no trace in a folder is skipped and said", done.returncode == 0 and "notes.txt: skipped" in done.stderr and len(json.loads(done.stdout)["ranks"]) == 2, done.stderr)
    done = run(paths[0], os.path.join(mixed, "notes.txt"))
    expect("what is no trace by name is a failure", done.returncode == 1 and done.stdout == "" and "notes.txt" in done.stderr, done.stderr)
    done = run(paths[0], os.path.join(folder, "none.json"))
    expect("no such file", done.returncode == 1 and "none.json" in done.stderr, done.stderr)
    cut = os.path.join(folder, "cut.json")
    with open(paths[0], encoding="utf-8") as source, open(cut, "w", encoding="utf-8") as out:
        out.write(source.read(os.path.getsize(paths[0]) // 2).replace('"rank": 0', '"rank": 4'))
    document = analyze(*paths[1:4], cut)
    expect("a trace that ends early is matched as far as it goes", document["late_rank"] == LATE and document["ranks"][3]["collective_wait_ns"] is not None, document["note"])


def check_names(folder, paths):
    """Older PyTorch does not say a trace's rank: its file's name may, where each of several has a number of its own."""
    for names, ranks in ((("rank7", "run_rank-5.Apr_03", "rank.12"), [5, 7, 12]), (("rank7", "x_rank7", "rank.12"), [0, 1, 2]),
                         (("rank7", "lowrank8", "rank9"), [0, 1, 2]), (("rank7", "b", "rank9"), [0, 1, 2])):
        into = os.path.join(folder, "named")
        os.mkdir(into)
        for name, path in zip(names, paths):
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            document.pop("distributedInfo", None)
            with open(os.path.join(into, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(document, file)
        found = [rank["rank"] for rank in analyze(into)["ranks"]]
        expect(f"ranks of {names}", found == ranks, found)
        shutil.rmtree(into)


def check_runs(folder):
    """Traces that say no rank and were recorded one after another are several runs: said, as far as the time of day is known."""
    for name, starts_us, told in (("after", (1.6e15, 1.6e15 + 9e6), True), ("together", (1.6e15, 1.6e15 + 9e3), False), ("boot", (1e6, 9e6), False)):
        runs = os.path.join(folder, "runs", name)
        os.makedirs(runs)
        for number, start_us in enumerate(starts_us):
            events = [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start_us + i * 1000, "dur": 900} for i in range(20)]
            with open(os.path.join(runs, f"{number}.json"), "w", encoding="utf-8") as file:
                json.dump({"traceEvents": events}, file)
        done = run("--json", runs)
        expect(f"runs, {name}", done.returncode == 0 and ("are runs, not ranks of one run" in done.stderr) == told, done.stderr)
        text = run(runs).stdout
        # runs have no number: their names stand in its place, and none is called a rank
        expect(f"runs, {name}, in a terminal", ("   2 runs" in text) == told and ("   2 traces" in text) != told and "rank  " not in text and "0  " in text, text)


def check_real():
    archive = os.path.join(TRACES, "param", "dlrm_kineto.tar.gz")
    if not os.path.exists(archive):
        print("skip: real traces are not beside the repository")
        return
    document = analyze(archive)
    finding = document["findings"][0]
    expect("dlrm: all eight collectives of eight ranks", document["collectives_matched"] == 8 and len(document["ranks"]) == 8, document["collectives_matched"])
    expect("dlrm: the late rank", document["late_rank"] == 7, document["late_rank"])
    # the first collective: 4.7 ms of waiting for the median rank, of which the recording of rank 7 shows almost nothing
    expect("dlrm: how late", 5_000_000 < finding["cost_ns_per_step"] < 7_000_000, finding["cost_ns_per_step"])
    expect("dlrm: it cannot be told why", "only started later" in finding["why"] and "before the recording" in finding["why"], finding["why"])
    expect("dlrm: no more than the next rank allows", finding["gain_pct"]["high"] < 15, finding["gain_pct"])
    check_text("dlrm", archive)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_made_up(folder)
        check_runs(folder)
    check_real()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
