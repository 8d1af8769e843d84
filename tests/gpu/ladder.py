"""Two ladders, in PyTorch and in C: each stage changes one thing, and its recording predicts the next one's step time."""
import os
import statistics

# name, options, the change that makes the next stage; N stands for the number of workers
TORCH_LADDER = [("one worker", ["--workers", "1"], "workers=N"),
                ("workers", ["--workers", "N"], "layout=nhwc"),
                ("channels last", ["--workers", "N", "--channels-last"], "pinned=1"),
                ("pinned", ["--workers", "N", "--channels-last", "--pinned"], "async=1"),
                ("asynchronous", ["--workers", "N", "--channels-last", "--pinned", "--async"], None)]
C_LADDER = [("one worker", ["--workers", "1", "--layout", "nchw"], "workers=N"),
            ("workers", ["--workers", "N", "--layout", "nchw"], "layout=nhwc"),
            ("channels last", ["--workers", "N", "--layout", "nhwc"], "pinned=1"),
            ("pinned", ["--workers", "N", "--layout", "nhwc", "--pinned"], "async=1"),
            ("asynchronous", ["--workers", "N", "--layout", "nhwc", "--pinned", "--async"], None)]


def ladder(bench, name, stages, measure, record):
    rows = []
    for stage, options, change in stages:
        if bench.out_of_time(f"{name} ladder from '{stage}' on", 15):
            break
        options = [bench.workers() if option == "N" else option for option in options]
        change = change.replace("N", bench.workers()) if change else None
        plain = measure(stage, options)
        folder = os.path.join(bench.golden, f"{name}-{stage.replace(' ', '-')}")
        if not plain:
            bench.missing(f"{name} ladder, '{stage}'", bench.last_words())
        if record(stage, options, folder) is None:
            bench.missing(f"{name} ladder, recording of '{stage}'", bench.last_words())
        rows.append({"stage": stage, "step_ms": round(statistics.fmean(plain), 3) if plain else None, "next": change, "folder": os.path.basename(folder)})
        # the program with the engine does not run everywhere: then the archive is analyzed at home (--analyze)
        if bench.have_engine:
            predict(bench, rows[-1], folder)
    bench.note(name + "_ladder", rows)
    judge_ladder(bench, name, rows)


def predict(bench, row, folder):
    analysis = bench.analyze(folder, *(["--what-if", row["next"]] if row["next"] else [])) or {}
    predicted = analysis.get("what_if") or {}
    row["recorded_step_ms"] = round((analysis["steps"]["mean_ns"] or 0) / 1e6, 3) if analysis else None
    row["next_predicted_ms"] = [round(predicted[key] / 1e6, 3) for key in ("step_low_ns", "step_mean_ns", "step_high_ns")] if predicted.get("step_mean_ns") else None
    row["findings"] = [[finding["id"], finding["gain_pct"]["mid"]] for finding in analysis.get("findings", [])][:5]
    row["recommended_workers"] = (analysis.get("dataloader") or {}).get("recommended_num_workers")
    row["busy_pct"] = [device["busy_pct"] for device in analysis.get("devices", [])]
    row["verdict"] = (analysis.get("verdict") or {}).get("text")


def judge_ladder(bench, name, rows):
    for row, after in zip(rows, [*rows[1:], None]):
        line = f"{name} ladder, {row['stage']}: {row['step_ms']} ms a step"
        if row.get("next_predicted_ms") and after and after["step_ms"]:
            low, mean, high = row["next_predicted_ms"]
            line += f"; {row['next']}: predicted {mean} ({low} to {high}), achieved {after['step_ms']} ({(mean / after['step_ms'] - 1) * 100:+.1f} %)"
        bench.say(line)
        if row.get("verdict"):
            bench.say(f"    {row['verdict']}  [{', '.join(name for name, _ in row.get('findings', [])[:3])}]")
    measured = [row["step_ms"] for row in rows if row["step_ms"] is not None]
    bench.check(f"the {name} ladder ran", len(measured) >= 2, f"{len(measured)} stages, ms a step: {measured}")
    if not bench.args.rehearse and len(measured) >= 2:
        bench.check(f"the last {name} stage is quicker than the first", measured[-1] < measured[0], f"{measured[0]} -> {measured[-1]} ms")


def torch_ladder(bench):
    def sizes(options):
        """Steps, those left out, those recorded: behind the batches that the workers made while the first step was prepared."""
        if bench.args.rehearse:
            return "16", 4, "6:14"
        return ("30", 8, "10:26") if options[1] == "1" else ("68", 30, "40:60")

    def measure(stage, options):
        steps, warm_up, _ = sizes(options)
        return bench.torch_steps(f"torch {stage}", bench.train(*options, "--steps", steps), warm_up)

    def record(stage, options, folder):
        steps, _, recorded = sizes(options)
        dump = os.path.join(bench.golden, "cupti-torch")   # of the last stage, which predicts nothing that it could disturb
        os.makedirs(dump, exist_ok=True)
        return bench.run(f"record torch {stage}", bench.recorded(folder, bench.train(*options, "--steps", steps), "--steps", recorded),
                         env={"LACUNA_CUPTI_DUMP": dump} if options[-1] == "--async" else None)

    ladder(bench, "torch", TORCH_LADDER, measure, record)


def c_ladder(bench):
    size = [] if bench.args.rehearse else bench.workload_size

    def sizes(options):
        return "20" if bench.args.rehearse else "24" if options[1] == "1" else "72"

    def measure(stage, options):
        return bench.workload_step(f"workload {stage}", bench.workload(*options, *size, "--steps", sizes(options)))

    def record(stage, options, folder):
        return bench.run(f"record workload {stage}", bench.recorded(folder, bench.workload(*options, *size, "--steps", sizes(options))),
                         env=bench.environment_of_c)

    ladder(bench, "workload", C_LADDER, measure, record)
