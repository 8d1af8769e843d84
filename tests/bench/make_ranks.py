#!/usr/bin/env python3
"""Makes the traces of a data-parallel run in Kineto's form: RANKS files of about EVENTS events each, in which one rank is late.

usage: make_ranks.py FOLDER [RANKS] [EVENTS] [LATE_RANK]

Each rank has a clock of its own. A step is operators with a call and a kernel each, and an all-reduce after every eighth that ends on all ranks
at once; the late rank's kernels take a tenth longer. Ranks are alike but for that, so that one text with marks in it serves all of them.
"""
import json
import os
import sys

OPERATORS = 400
STEP_US = 20000
BUCKETS = 8


def step_events(step, is_late, corr):
    """Text of one step's events; `corr` is its first correlation id."""
    begin = step * STEP_US
    lines = [f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","pid":100,"tid":100,"ts":{begin},"dur":{STEP_US - 50}}}']
    each = 36.3 if is_late else 33
    at = begin + 30.0
    for bucket in range(BUCKETS):
        for i in range(OPERATORS // BUCKETS):
            corr += 1
            host = begin + (corr % 100000 % OPERATORS) * 12
            lines.append(f'{{"ph":"X","cat":"cpu_op","name":"aten::op{i % 7}","pid":100,"tid":100,"ts":{host},"dur":10,"args":{{"External id":{corr},"Ev Idx":{corr}}}}}')
            lines.append(f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":{host + 2},"dur":5,"args":{{"cbid":211,"correlation":{corr}}}}}')
            lines.append(f'{{"ph":"X","cat":"kernel","name":"void op{i % 7}_kernel<float>(float*, int)","pid":0,"tid":7,"ts":{at:.1f},"dur":{each},'
                         f'"args":{{"device":0,"stream":7,"correlation":{corr},"grid":[100,1,1],"block":[128,1,1]}}}}')
            at += each
        end = begin + (bucket + 1) * 2300 + step % 5
        corr += 1
        lines.append(f'{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)","pid":0,"tid":7,"ts":{at:.1f},"dur":{end - at:.1f},'
                     f'"args":{{"device":0,"stream":7,"correlation":{corr}}}}}')
        at = end + 0.5
    lines.append(f'{{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":100,"tid":100,"ts":{begin + STEP_US - 200},"dur":100}}')
    return ",\n".join(lines), corr


def write_rank(path, rank, ranks, events, is_late):
    steps = max(3, round(events / (3 * OPERATORS + BUCKETS + 2)))
    with open(path, "w", encoding="utf-8") as out:
        head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}, "baseTimeNanoseconds": 1_700_000_000_000_000_000 + rank * 12345,
                "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0, "numSms": 132}]}
        out.write(json.dumps(head)[:-1] + ',\n"traceEvents":[\n')
        corr = 0
        for step in range(steps):
            text, corr = step_events(step, is_late, corr)
            out.write(text + (",\n" if step + 1 < steps else "\n"))
        out.write("]}\n")


def main():
    folder, ranks, events, late = sys.argv[1], *(int(value) for value in (sys.argv[2:] + ["64", "1000000", "17"][len(sys.argv) - 2:])[:3])
    os.makedirs(folder, exist_ok=True)
    usual = os.path.join(folder, "rank0.json")
    for rank in range(ranks):
        path = os.path.join(folder, f"rank{rank}.json")
        if rank > 0 and rank != late:
            # the same text with another rank in its head
            with open(usual, "r", encoding="utf-8") as source, open(path, "w", encoding="utf-8") as out:
                head = json.loads(source.readline()[:-2] + "}")
                head["distributedInfo"]["rank"] = rank
                head["baseTimeNanoseconds"] += rank * 12345
                out.write(json.dumps(head)[:-1] + ",\n")
                while chunk := source.read(1 << 22):
                    out.write(chunk)
        else:
            write_rank(path, rank, ranks, events, rank == late)


if __name__ == "__main__":
    main()
