#!/usr/bin/env python3
"""Writes a made-up text of `perf script`: stacks of native and Python frames of four threads, sampled 99 times a second.

usage: make_perf.py OUT MEGABYTES
"""
import json
import os
import random
import sys

SEED = 20
THREADS = ("python", "pt_autograd_0", "pt_data_worker", "cuda-EvtHandlr")
LIBRARIES = ("/usr/lib/libtorch_cpu.so", "/usr/lib/libtorch_cuda.so", "/usr/lib/libc.so.6", "/usr/bin/python3.11", "[kernel.kallsyms]")
FUNCTIONS, DEPTH_MIN, DEPTH_MAX, TURN_MAX = 400, 8, 40, 5
SAMPLE_US = 10101


def make_frames(chooser):
    """Lines of functions, as long as those of C++ and Python are."""
    frames = []
    for i in range(FUNCTIONS):
        space = chooser.choice(("at::native::", "torch::autograd::generated::", "c10::impl::wrap_kernel_functor_unboxed_<", "_Py", ""))
        tail = chooser.choice(("", "(at::Tensor const&, at::Tensor const&, c10::Scalar const&)", "<float, int>::operator()(int) const"))
        frames.append(f"\t{chooser.randrange(1 << 47):16x} {space}function_{i}{tail}+0x{chooser.randrange(4096):x} ({LIBRARIES[i % len(LIBRARIES)]})\n")
    return frames


def step(chooser, stack, frames):
    """Between two samples a thread leaves a few functions and enters others, as programs do; its outermost ones stay."""
    del stack[max(DEPTH_MIN, len(stack) - chooser.randrange(TURN_MAX)):]
    stack += chooser.choices(frames, k=min(chooser.randrange(TURN_MAX), DEPTH_MAX - len(stack)))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, wanted = sys.argv[1], int(sys.argv[2]) * 1_000_000
    chooser = random.Random(SEED)
    frames = make_frames(chooser)
    stacks = [chooser.choices(frames, k=DEPTH_MIN) for _ in THREADS]
    samples, size = 0, 0
    with open(path, "w", encoding="utf-8") as out:
        while size < wanted:
            at_us = samples * SAMPLE_US // len(THREADS)
            thread = samples % len(THREADS)
            step(chooser, stacks[thread], frames)
            size += out.write(f"{THREADS[thread]} 4711/{4711 + thread} [{chooser.randrange(8):03}] {at_us // 1_000_000}.{at_us % 1_000_000:06}:   10101010 cycles:u: \n"
                              + "".join(reversed(stacks[thread])) + "\n")
            samples += 1
    print(json.dumps({"samples": samples, "bytes": os.path.getsize(path)}))


if __name__ == "__main__":
    main()
