#!/usr/bin/env python3
"""What the diagnosis makes of training loops whose causes are known: the first finding, and what the step becomes.

Each loop of training_loop.py is recorded, then run again without its cause; `--what-if` and the finding have to foresee
that run. Loops in which nothing can be gained must be told so. LACUNA names the program (default build/lacuna).
"""
import json
import os
import subprocess
import sys
import tempfile

from training_loop import Loop

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build", "lacuna"))
NEAR = 0.10
HOST_BOUND = {"forward_us": 20, "backward_us": 35, "update_us": 10, "updates": 40, "copy_mb": 1}

# name: (the loop, its verdict's cause, the first finding, --what-if, the change that this stands for)
CAUSES = {
    "loading in the training process": (
        {"workers": 0, "fetch_ms": 60}, "data_wait", "input-starvation", "workers=4", {"workers": 4}),
    "loading takes longer than the step": (
        {"workers": 0, "fetch_ms": 250}, "data_wait", "input-starvation", "workers=4", {"workers": 4}),
    "loading before a graph": (
        {"workers": 0, "fetch_ms": 50, "graph": True}, "data_wait", "input-starvation", "workers=2", {"workers": 2}),
    "too few workers": ({"workers": 3, "fetch_ms": 600}, "data_wait", "input-starvation", "", {"workers": 12}),
    "workers in phase": (
        {"workers": 4, "fetch_ms": 800, "in_phase": True, "steps": 16}, "data_wait", "input-starvation", "",
        {"workers": 16}),
    "layout conversions": ({"layout": 0.2}, "gpu", "layout-conversion", "layout=nhwc", {"layout": 0}),
    "pageable copies": (
        {"pinned": False, "copy_mb": 150}, "copy_wait", "pageable-copy", "pinned=1",
        {"pinned": True, "copies_ahead": False}),
    "pageable copies, ahead afterwards": (
        {"pinned": False, "copy_mb": 150}, "copy_wait", "pageable-copy", "pinned=1,async=1", {"pinned": True}),
    "copies in line": (
        {"copies_ahead": False, "copy_mb": 200}, "copy_wait", "blocking-copy", "async=1", {"copies_ahead": True}),
    "values read in the layers": (
        {"reads_in_layers": 20, "forward_us": 100, "backward_us": 200, "dispatch_us": 150, "layers": 100, "copy_mb": 1},
        None, "sync-per-layer", "sync=0", {"reads_in_layers": 0, "reads_loss": False}),
    "work in Python after a value was read": ({"python_ms": 60}, "host", "sync-stall", "sync=0", {"reads_loss": False}),
    "launches": (HOST_BOUND, "launch", "launch-bound", "", None),
    "collectives that nothing hides": (
        {"buckets": 4, "allreduce_us": 80_000}, "comm", "exposed-communication", "comm=0", {"allreduce_us": 0}),
    "the allocator": ({"allocates_ms": 20}, "allocator", "allocator-thrash", "allocator=0", {"allocates_ms": 0}),
    "float32 on tensor cores' generation": (
        {"half": False, "kernel": "linear"}, "gpu", "tensor-cores-unused", "", None),
}

# loops in which nothing can be gained, or not in the steps that are kept
HEALTHY = {
    "a loss read in every step": {},
    "nothing read": {"reads_loss": False, "synced": True},
    "recorded while the device works on steps before": {"reads_loss": False},
    "the same with copies that take no stream of their own": {"reads_loss": False, "copies_ahead": False, "copy_mb": 0.1},
    "a gradient scaler": {"scaler": True},
    "values logged": {"logs": True},
    "compiled": {"compiled": True},
    "hidden collectives": {"buckets": 20, "allreduce_us": 10_000},
    "loading as long as the step, beside it": {"workers": 0, "fetch_ms": 60, "reads_loss": False, "synced": True},
    "a graph": {"graph": True},
    "accumulated gradients": {"accumulate": 4, "steps": 6, "layers": 20},
    "modules loaded in the first steps": {"loads_modules_ms": 400},
}


class Checks:
    def __init__(self, folder):
        self.folder, self.passed, self.failed = folder, 0, 0

    def check(self, holds, name, what):
        self.passed += bool(holds)
        if not holds:
            self.failed += 1
            print(f"FAIL {name}: {what}")

    def analyze(self, loop, what_if=""):
        path = os.path.join(self.folder, "loop.json")
        loop.write(path)
        command = [LACUNA, "analyze", "--json", path] + (["--what-if", what_if] if what_if else [])
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def near(self, name, what, got_ns, true_ns):
        self.check(got_ns is not None and abs(got_ns - true_ns) <= NEAR * true_ns, name,
                   f"{what} {(got_ns or 0) / 1e6:.1f} ms, truly {true_ns / 1e6:.1f}")

    def cause(self, name, settings, cause, first, what_if, removed):
        loop = Loop(**settings)
        analysis = self.analyze(loop, what_if)
        findings = analysis["findings"]
        self.near(name, "mean step", analysis["steps"]["mean_ns"], loop.mean_ns)
        self.check(cause in (None, analysis["verdict"]["cause"]), name, analysis["verdict"])
        self.check(findings and findings[0]["id"] == first and findings[0]["severity"] != "info", name,
                   [(finding["id"], finding["severity"]) for finding in findings])
        if removed is None or not findings:
            return
        without_ns = Loop(**dict(settings, **removed)).mean_ns
        if what_if:
            self.near(name, f"--what-if {what_if}", analysis["what_if"]["step_mean_ns"], without_ns)
        if first == "exposed-communication":  # how much of it can be hidden is open
            promised = findings[0]["step_ns"]
            self.check(promised["low"] <= without_ns * (1 + NEAR) and without_ns <= promised["high"], name, promised)
        elif "," not in what_if:
            self.near(name, "the first finding", findings[0]["step_ns"]["mid"], without_ns)

    def healthy(self, name, settings):
        loop = Loop(**settings)
        analysis = self.analyze(loop)
        said = [(finding["id"], finding["severity"]) for finding in analysis["findings"]]
        self.check(analysis["verdict"]["cause"] == "gpu", name, analysis["verdict"])
        self.check(all(severity == "info" for _, severity in said), name, said)
        if not settings.get("loads_modules_ms") and not settings.get("synced"):
            self.near(name, "mean step", analysis["steps"]["mean_ns"], loop.mean_ns)

    def others(self):
        """What is no steady training step."""
        inference = self.analyze(Loop(trains=False, layers=120))
        said = [finding["id"] for finding in inference["findings"]]
        self.check(inference["trace"]["subject"] == "inference" and said == ["gpu-bound"] and
                   "of the batch" in inference["findings"][0]["title"], "inference", said)
        one = self.analyze(Loop(steps=1))
        said = [finding["id"] for finding in one["findings"]]
        self.check(one["trace"]["subject"] == "few_steps" and said == ["gpu-bound"], "one step", said)
        # three steps whose marks are a fifth of the time that they take
        ahead = self.analyze(Loop(steps=3, reads_loss=False, synced=True, layers=30, forward_us=1200, backward_us=2000))
        self.near("three steps ahead", "a step of the device", ahead["steps"]["mean_ns"], 98_400_000)
        self.check(ahead["trace"]["subject"] == "training" and ahead["verdict"]["cause"] == "gpu", "three steps ahead",
                   ahead["verdict"])
        # an evaluation that empties the queue: between the marks before it lies only a part of the work
        ahead = self.analyze(Loop(validates_every=8, steps=40, reads_loss=False, synced=True))
        self.near("evaluations, ahead", "a step of the device", ahead["steps"]["mean_ns"], Loop().mean_ns)
        self.check("The host runs ahead" in ahead["verdict"]["detail"], "evaluations, ahead", ahead["verdict"])
        checkpoints = Loop(checkpoint_every=10, checkpoint_ms=600, steps=40, warm_up=20)
        analysis = self.analyze(checkpoints)
        self.near("checkpoints", "a step without", analysis["steps"]["mean_ns"], Loop().mean_ns)
        self.check(analysis["verdict"]["cause"] == "gpu", "checkpoints", analysis["verdict"])
        evaluations = self.analyze(Loop(validates_every=8, steps=32, warm_up=16))
        self.near("evaluations", "a step without", evaluations["steps"]["mean_ns"], Loop().mean_ns)


def main():
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(folder)
        for name, (settings, *expected) in CAUSES.items():
            checks.cause(name, settings, *expected)
        for name, settings in HEALTHY.items():
            checks.healthy(name, settings)
        checks.others()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
