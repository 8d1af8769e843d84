#!/usr/bin/env python3
"""Floating-point operations of real traces, against what the models' definitions say by hand.

  test_efficiency.py

ResNet-50 and ResNet-18 are counted from their layers, a decoder from its widths; nothing is shared with the program.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from kept import LACUNA  # noqa: E402
from real_traces import NONE, real_traces  # noqa: E402

TRACES = real_traces()


def resnet(blocks, is_bottleneck, batch):
    """Operations of the forward pass, and of the first convolution: torchvision's ResNet at 224 x 224."""
    first = 2 * batch * 64 * 112 * 112 * 3 * 7 * 7
    flops, inside, size = first, 64, 56
    for stage, count in enumerate(blocks):
        width = 64 << stage
        out = width * 4 if is_bottleneck else width
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            after = size // stride
            if is_bottleneck:
                flops += 2 * batch * (size * size * inside * width + after * after * width * width * 9
                                      + after * after * width * out)
            else:
                flops += 2 * batch * after * after * (inside * width * 9 + width * width * 9)
            if stride > 1 or inside != out:
                flops += 2 * batch * after * after * inside * out
            inside, size = out, after
    return flops + 2 * batch * inside * 1000, first


def trained(blocks, is_bottleneck, batch):
    """A step of training: three times forward, but nobody wants the gradient of the images."""
    forward, first = resnet(blocks, is_bottleneck, batch)
    return 3 * forward - first


def decoder(layers, width, hidden, heads, batch, positions):
    """A forward pass of a gated decoder without its head; attention with a causal mask."""
    tokens = batch * positions
    products = 2 * tokens * (4 * width * width + 3 * width * hidden)
    attention = 4 * batch * heads * (positions * (positions + 1) // 2) * (width // heads)
    return layers * (products + attention)


RESNET50 = trained((3, 4, 6, 3), True, 32)
# path, operations of the model in a step, share of the peak: lowest, highest, precision; None: not known
ROWS = (
    ("kineto/resnet50_num_workers_0.worker0.1623143089861.pt.trace.json.gz", RESNET50, 26.0, 31.0, "fp32"),
    ("kineto/resnet50_num_workers_4.worker0.1623212756351.pt.trace.json.gz", RESNET50, 34.0, 42.0, "fp32"),
    ("kineto/resnet50_num_workers_4.worker0.1623213129365.pt.trace.json.gz", RESNET50, 36.0, 42.0, "fp32"),
    ("tracelens/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", decoder(24, 1024, 2816, 16, 16, 559), 10.0, 15.0,
     "bf16"),
    # activations are computed again: that is not the model's
    ("tracelens/mi300__resnet_act_checkpoint.json.gz", trained((2, 2, 2, 2), False, 10), 0.3, 0.7, "bf16"),
    ("hta/trace_diff__test__test.json.gz", None, None, None, "fp32"),  # most of it inside CompiledFunction
    ("param/resnet_kineto.json.gz", None, None, None, None),  # no shapes
)


def check(path, flops, low, high, precision):
    got = json.loads(kept.ask("analyze", "--json", os.path.join(TRACES, path)).stdout)["efficiency"]
    wrong = []
    if got["peak_precision"] != precision:
        wrong.append(f"precision {got['peak_precision']}, not {precision}")
    if low is None:
        if got["mfu_pct"] is not None or not got["why_not"]:
            wrong.append(f"a share of the peak ({got['mfu_pct']}) that cannot be known")
        return wrong
    if got["model_flops_per_step"] is None or abs(got["model_flops_per_step"] / flops - 1) > 0.01:
        wrong.append(f"{got['model_flops_per_step']} operations, by hand {flops}")
    if got["mfu_pct"] is None or not low <= got["mfu_pct"] <= high:
        wrong.append(f"share of the peak {got['mfu_pct']}, not {low} to {high}")
    if got["hfu_pct"] is not None and got["hfu_pct"] < got["mfu_pct"]:
        wrong.append("less executed than the model needs")
    return wrong


def check_names():
    """Names that a site adds: fewer kernels are unknown, and what is wrong in the file is said with its line."""
    path = os.path.join(TRACES, "tracelens/b200__eager_trace.json.gz")
    if not os.path.exists(path):
        print("skip: the trace with unknown kernels is not there")
        return []
    row = 'LAC_NAME_ROW(FAMILY, LAC_FAMILY_MOE, "moe::dev::finalize", "void moe::dev::finalize::finalizeKernelVecLoad<x>(y)")'
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "lacuna"))
        names = os.path.join(folder, "lacuna", "names")

        def unknown(**environment):
            out = subprocess.run([LACUNA, "analyze", "--json", path], check=True, capture_output=True,
                                 env={**os.environ, "XDG_CONFIG_HOME": "/var/empty", **environment})
            return json.loads(out.stdout)["kernels"]["unknown_pct"]

        before = unknown()
        with open(names, "w", encoding="utf-8") as file:
            file.write(f"/* ours */\n{row}\n")
        for how in ({"LACUNA_NAMES": names}, {"XDG_CONFIG_HOME": folder}):
            after = unknown(**how)
            if not 0 <= after < before - 1:
                wrong.append(f"{list(how)}: {after} % unknown, {before} % before")
        with open(names, "w", encoding="utf-8") as file:
            file.write(f"{row}\nLAC_NAME_ROW(FAMILY, 7)\n")
        done = subprocess.run([LACUNA, "analyze", "--names", names, path], capture_output=True, text=True)
        if done.returncode == 0 or "line 2" not in done.stderr or done.stderr.count("\n") != 1:
            wrong.append(f"a wrong file: {done.returncode} {done.stderr}")
    return wrong


def main():
    if not os.path.isdir(TRACES):
        print(f"skip: {NONE}")
        return 0
    failed = 0
    for path, *expected in ROWS:
        if not os.path.exists(os.path.join(TRACES, path)):
            print(f"skip: {path} is not there")
            continue
        for text in check(path, *expected):
            failed += 1
            print(f"FAIL {path}: {text}")
    for text in check_names():
        failed += 1
        print(f"FAIL names: {text}")
    print(f"efficiency: {len(ROWS)} traces, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
