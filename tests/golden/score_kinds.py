#!/usr/bin/env python3
"""Examines the diagnosis on jobs as recordings show them (tests/simulator/kinds) against what is true of them.

  score_kinds.py [--count 40] [--seed 1000] [--kind NAME] [--jobs 2] [--misses] [--markdown] [--json FILE]

Scored for each job:
  first     the first finding that is not info proposes one of the best changes, where one gains 3 %
  step      the mean step is within 3 % of the device's pace; where nothing is a step, none is named: none found, or with a
            confidence below 0.8 and not in the verdict
  after     where the first finding proposes a change that was simulated: the step it promises is within 10 % of what the
            simulation takes with it, or its gain within 5 points; how much of the communication can be hidden, and
            of the launches saved, is open (in the simulation all of it): there its band has to hold it
  quiet     where no change gains 3 %, nothing is said but gpu-bound or info
  workload  training, inference, evaluation, serving or neither
  headline  the verdict names the cause that the best change removes; gpu where nothing gains 3 %. Of several ranks the
            report opens with the finding of the run, where there is one
  workers   the loader has as many workers as it has, where the recording shows processes
and, by finding, how many of 100 jobs were told of what is not in the job, or gains below 1 %, as more than info.

LACUNA names the program (default build/lacuna).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import kept  # noqa: E402
from kinds import KINDS  # noqa: E402  (kept knows where the simulator is)

SCORES = ("first", "step", "after", "quiet", "workload", "headline", "workers")
# a validation and a server without gradients may be called what they are in general
CALLED = {"training": ("training",), "inference": ("inference",), "evaluation": ("evaluation", "inference"),
          "serving": ("serving", "inference"), "other": ("other", "no_steps")}
OPEN = ("exposed-communication", "launch-bound")
ONE_STEP = ("training", "few_steps")  # what few_steps says: training, of which one step was recorded whole
STEP_PART, AFTER_PART, GAIN_POINTS, SURE = 0.03, 0.10, 5.0, 0.8


def analyze(paths):
    done = kept.ask("analyze", "--json", *paths)
    if done.returncode != 0:
        raise SystemExit(f"lacuna analyze {' '.join(paths)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def loud(answer):
    """What is said louder than info: of several ranks what is said of the run, then of the first rank."""
    findings = answer["findings"]
    if "ranks" in answer:
        findings = findings + answer["ranks"][0]["analysis"]["findings"]
    return [finding for finding in findings if finding["severity"] != "info"]


def headline(answer, analysis):
    """The cause that the report opens with."""
    of_run = [finding for finding in answer["findings"] if "ranks" in answer and finding["severity"] != "info"]
    return of_run[0]["cause"] if of_run else analysis["verdict"]["cause"]


def names_a_step(analysis):
    steps, verdict = analysis["steps"], analysis["verdict"]
    is_in_text = re.search(r"\d (ms|us|s) step|steps/s", f"{verdict['text']} {verdict['detail']}") is not None
    return bool(steps["mean_ns"]) and (steps["confidence"] >= SURE or is_in_text)


def is_step_right(truth, analysis):
    have, want = analysis["steps"]["mean_ns"], truth["step"]["pace_ns"]
    if want is None:
        return not names_a_step(analysis)
    if truth["step"]["is_optional"] and not names_a_step(analysis):
        return True
    return have is not None and abs(have - want) <= STEP_PART * want


def is_called_right(truth, analysis):
    is_one = truth["workload"] == "training" and truth["step"]["count"] <= 2
    return analysis["trace"]["subject"] in (ONE_STEP if is_one else CALLED[truth["workload"]])


def is_after_right(truth, finding):
    """None where no change that it proposes was simulated, or nothing is promised."""
    changes = [change for change in truth["changes"].values() if finding["id"] in change["findings"]]
    promised, gain = finding.get("step_ns") or {}, finding.get("gain_pct") or {}
    if not changes or promised.get("mid") is None:
        return None
    if finding["id"] in OPEN and any(
            promised["low"] * (1 - AFTER_PART) <= c["step_ns"] <= promised["high"] * (1 + AFTER_PART) for c in changes):
        return True
    return any(abs(promised["mid"] - c["step_ns"]) <= AFTER_PART * c["step_ns"] or abs(gain["mid"] - c["gain_pct"]) <= GAIN_POINTS
               for c in changes)


def judge(truth, answer):
    """({score: True or False, absent where it does not apply}, false alarms, a line of facts)."""
    analysis = answer["ranks"][0]["analysis"] if "ranks" in answer else answer
    said = loud(answer)
    best = max((change["gain_pct"] for change in truth["changes"].values()), default=0.0)
    scores = {"step": is_step_right(truth, analysis), "workload": is_called_right(truth, analysis),
              "headline": headline(answer, analysis) in truth["headline"]}
    if "loader" in truth:
        scores["workers"] = analysis["dataloader"]["num_workers"] == truth["loader"]["num_workers"]
    if truth["first"]:
        scores["first"] = bool(said) and said[0]["id"] in truth["first"]["findings"]
        after = is_after_right(truth, said[0]) if said and truth["step"]["pace_ns"] else None
        if after is not None:
            scores["after"] = after
    elif best < 3.0:
        scores["quiet"] = not [finding for finding in said if finding["id"] != "gpu-bound"]
    alarms = sorted({finding["id"] for finding in said} & set(truth["must_not_say"]))
    want = truth["step"]["pace_ns"]
    wanted = f"{truth['first']['change']} {truth['first']['gain_pct']} %" if truth["first"] else "nothing"
    facts = (f"{analysis['trace']['subject']}, step {(analysis['steps']['mean_ns'] or 0) / 1e6:.2f} of {(want or 0) / 1e6:.2f} ms by "
             f"{analysis['steps']['method']}, verdict {analysis['verdict']['cause']}, wanted {wanted}, said "
             + (" ".join(f"{f['id']} {(f.get('gain_pct') or {}).get('mid')}" for f in said) or "-"))
    return scores, alarms, facts


def examine_one(job):
    kind, seed = job
    with kept.job(kind, seed) as (paths, truth):
        answer = analyze(paths)
        for trace in [rank["analysis"]["trace"] for rank in answer.get("ranks", [])] or [answer["trace"]]:
            if trace["format"] != truth["format"] or trace["dropped_count"] or trace["repaired_count"]:
                raise SystemExit(f"{kind} seed {seed}: not read as it was written: {trace}")
        scores, alarms, facts = judge(truth, answer)
    return {"kind": kind, "seed": seed, "scores": scores, "alarms": alarms, "facts": facts}


def examine(kinds, seeds, jobs=2):
    """A row for each job, in order."""
    wanted = [(kind, seed) for kind in kinds for seed in seeds]
    if jobs == 1:
        return [examine_one(job) for job in wanted]
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(examine_one, wanted, chunksize=4))


def share(rows, score):
    """Percent of the rows to which a score applies; None where it applies to none."""
    values = [row["scores"][score] for row in rows if score in row["scores"]]
    return 100.0 * sum(values) / len(values) if values else None


def totals(rows):
    return {score: share(rows, score) for score in SCORES}


def table(rows):
    """Lines of cells: a head, a kind each, all."""
    def cells(title, some):
        alarms = 100.0 * sum(len(row["alarms"]) for row in some) / len(some)  # in 100 jobs
        return [title, str(len(some)), *("-" if v is None else f"{v:.0f} %" for v in totals(some).values()), f"{alarms:.0f}"]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    return [["kind", "jobs", *SCORES, "alarms"], *(cells(kind, [r for r in rows if r["kind"] == kind]) for kind in kinds),
            cells("all", rows)]


def alarm_table(rows):
    counts = collections.Counter(finding for row in rows for finding in row["alarms"])
    kinds = {finding: " ".join(sorted({row["kind"] for row in rows if finding in row["alarms"]})) for finding in counts}
    return [["finding", "in 100 jobs", "kinds"], *([f, f"{100.0 * n / len(rows):.1f}", kinds[f]] for f, n in counts.most_common())]


def show(lines, markdown=False):
    if markdown:
        lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
        print("\n".join("| " + " | ".join(line) + " |" for line in lines))
    else:
        print("\n".join(f"{line[0]:<20}" + "".join(f" {cell:>9}" for cell in line[1:]) for line in lines))


def show_misses(rows):
    for score in SCORES:
        missed = [row for row in rows if row["scores"].get(score) is False]
        print(f"\nmissed: {score}" if missed else f"\nno miss: {score}")
        for row in missed:
            print(f"  {row['kind']} seed {row['seed']}: {row['facts']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--misses", action="store_true", help="list every miss with its seed")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", help="write all rows to this file")
    args = parser.parse_args()
    rows = examine([args.kind] if args.kind else list(KINDS), range(args.seed, args.seed + args.count), args.jobs)
    show(table(rows), args.markdown)
    print()
    show(alarm_table(rows), args.markdown)
    if args.misses:
        show_misses(rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
