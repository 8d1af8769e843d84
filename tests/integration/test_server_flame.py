#!/usr/bin/env python3
"""Flame graphs of steps, rows and modules, and in the order of time, against a plain computation over the trace's events."""
import collections
import json
import os
import subprocess
import tempfile
import unittest

from server_harness import ROOT, Server, main

SIMULATOR = os.path.join(ROOT, "build/release/simulator")
STEPS = 5
STREAMS = (7, 20)
MODULES = ("nn.Module: Net_0", "nn.Module: Conv_0", "nn.Module: Linear_0")


class Loop:
    """Steps of 20 ms: two modules in a network, each launches on both streams; `tail_kernel` stands in no module."""

    def __init__(self):
        self.events = [{"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "ts": 0, "args": {"name": "main"}}]
        self.operations = []  # (start us, length us, stream, stack of modules, name)
        for step in range(STEPS):
            at = 1000 + step * 20000
            self.span("user_annotation", f"ProfilerStep#{step}", at, 19990)
            self.span("python_function", "train.py(7): train", at + 1, 19980)
            self.span("python_function", MODULES[0], at + 100, 8000 + step * 100)
            for k, (module, start) in enumerate(((MODULES[1], 200), (MODULES[2], 4200))):
                self.span("python_function", module, at + start, 3500)
                self.span("cpu_op", "aten::op", at + start + 10, 3000)
                for n in range(4):
                    length = 500 + 37 * n + 11 * step
                    self.launch(at + start + 20 + 600 * n, length, STREAMS[n % 2], MODULES[:1] + (module,), f"kernel{k}{n % 3}")
            self.launch(at + 12000, 3000 + 50 * step, STREAMS[1], (), "tail_kernel")

    def span(self, category, name, ts, dur):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 10, "tid": 11, "ts": ts, "dur": dur})

    def launch(self, ts, length, stream, stack, name):
        number = len(self.operations) + 1
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11, "ts": ts, "dur": 5, "args": {"correlation": number}})
        self.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts + 30, "dur": length,
                            "args": {"device": 0, "stream": stream, "correlation": number}})
        self.operations.append((ts + 30, length, stream, stack, name))

    def body(self):
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": self.events}).encode()


def stacks(reply):
    """self time by stack, of the columns of a graph."""
    nodes, paths, sums = reply["nodes"], [()], collections.Counter()
    for i in range(1, len(nodes["name"])):
        paths.append(paths[nodes["parent"][i]] + (nodes["name"][i],))
        if nodes["self_ns"][i]:
            sums[paths[i]] += nodes["self_ns"][i]
    return dict(sums)


class Flames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.loop = Loop()
        cls.server = Server("--log-level", "warn")
        cls.addClassCleanup(cls.server.close)
        cls.id = cls.server.upload(cls.loop.body(), "loop")
        cls.row = cls.server.wait_ready(cls.id)
        cls.t0_ns = int(cls.row["t0_ns"])
        cls.tracks = cls.server.api(f"/traces/{cls.id}/tracks")

    def flame(self, **query):
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return self.server.api(f"/traces/{self.id}/flame?{text}")

    def streams(self):
        """Row of each stream."""
        return {int(track["id"].split()[-1]): track["index"] for track in self.tracks["tracks"] if track["kind"] == "stream"}

    def expected(self, spans, streams=STREAMS, modules=True):
        sums = collections.Counter()
        for ts, length, stream, stack, name in self.loop.operations:
            start = ts * 1000 - self.t0_ns
            for first, end in spans:
                inside = min(start + length * 1000, end) - max(start, first)
                if inside > 0 and stream in streams:
                    sums[(stack if modules else ()) + (name,)] += inside
        return dict(sums)

    def spans(self, steps, host=False):
        prefix = "host_" if host else ""
        columns = self.tracks["steps"]
        return [(columns[prefix + "start_ns"][s], columns[prefix + "start_ns"][s] + columns[prefix + "dur_ns"][s]) for s in steps]

    def test_steps_add_up(self):
        count = len(self.tracks["steps"]["start_ns"])
        self.assertGreaterEqual(count, 4)
        for chosen in ((0,), (1, 3), (0, 1, 2), range(count)):
            for by, modules in (("kernel", False), ("module", True)):
                got = self.flame(metric="gpu", by=by, steps=",".join(map(str, chosen)), detail="full")
                self.assertEqual(stacks(got), self.expected(self.spans(chosen), modules=modules), (chosen, by))
                self.assertEqual(got["steps"], len(chosen))
        each = [self.flame(metric="waiting", steps=s)["total_ns"] for s in range(count)]
        self.assertGreater(min(each), 0)
        self.assertEqual(self.flame(metric="waiting", steps=f"0-{count - 1}")["total_ns"], sum(each))
        spans = self.spans((1, 2), host=True)
        for (first, end), step in zip(spans, (1, 2)):
            self.assertEqual(self.flame(metric="cpu", by="python", steps=step)["total_ns"],
                             self.flame(metric="cpu", by="python", t0=first, t1=end)["total_ns"])

    def test_measured_steps_are_those_of_the_verdict(self):
        """What a step waits is the same in the graph and in the verdict, which leaves steps out."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([SIMULATOR, folder, "--seed", "7", "--ranks"], check=True, capture_output=True)
            with open(os.path.join(folder, "random-000007-rank1.json"), "rb") as file:
                rank = self.server.upload(file.read(), "rank_1")
        self.server.wait_ready(rank)

        def flame(**query):
            return self.server.api(f"/traces/{rank}/flame?" + "&".join(f"{key}={value}" for key, value in query.items()))

        measured = self.server.api(f"/traces/{rank}/analysis")["steps"]
        left_out = {row["index"] for row in measured["left_out"]}
        kept = [s for s in range(measured["count"]) if s not in left_out]
        self.assertTrue(0 < len(kept) < measured["count"], measured)
        for metric in ("gpu", "waiting", "cpu"):
            got = flame(metric=metric, steps="measured")
            self.assertEqual(got, flame(metric=metric, steps=",".join(map(str, kept))))
            self.assertEqual(got["steps"], measured["kept_count"])
        parts = measured["partition_ns"]
        idle = sum(parts.values()) - sum(parts[name] for name in ("compute", "exposed_comm", "exposed_copy", "exposed_memset"))
        per_step = {steps: flame(metric="waiting", **asked) for steps, asked in (("measured", {"steps": "measured"}), ("whole", {}))}
        per_step = {steps: reply["total_ns"] / reply["steps"] for steps, reply in per_step.items()}
        self.assertAlmostEqual(per_step["measured"], idle, delta=idle / 100)
        self.assertNotAlmostEqual(per_step["whole"], idle, delta=idle / 10)

    def table(self, name, rest="", trace=None):
        """Cells of each row by its name, by column; the row of all under "all"; how many steps are counted."""
        reply = self.server.api(f"/traces/{trace or self.id}/tables/{name}{rest}")
        ids = [column["id"] for column in reply["columns"]]
        cells = {row["cells"][ids.index("name")]: dict(zip(ids, row["cells"])) for row in reply["rows"]}
        return {**cells, "all": dict(zip(ids, reply["all"]["cells"]))}, reply["steps"]

    def test_tables_count_chosen_steps(self):
        for chosen in ((0,), (1, 3), (0, 1, 2)):
            got, steps = self.table("kernels", "?steps=" + ",".join(map(str, chosen)))
            self.assertEqual(steps, len(chosen))
            expected = {name: ns for (name,), ns in self.expected(self.spans(chosen), modules=False).items()}
            self.assertEqual({name: row["total_ns"] for name, row in got.items() if name != "all"}, expected)
            self.assertEqual(got["all"]["total_ns"], sum(expected.values()))
            for name, ns in expected.items():
                self.assertEqual(got[name]["per_step_ns"], ns // len(chosen))
        spans = self.spans((1, 3), host=True)
        got, _ = self.table("operators", "?steps=1,3")
        parts = [self.table("operators", f"?t0={first}&t1={end}")[0] for first, end in spans]
        for column in ("count", "total_ns", "self_ns"):
            self.assertEqual(got["aten::op"][column], sum(part["aten::op"][column] for part in parts), column)
        self.assertIsNone(parts[0]["aten::op"]["per_step_ns"], "a stretch is of no number of steps")
        for wrong, says in (("steps=99", "the trace has"), ("steps=x", "steps:"), ("steps=1&t0=5", "steps, or t0 and t1")):
            refused = self.server.get(f"/api/v1/traces/{self.id}/tables/kernels?{wrong}")
            self.assertEqual(refused.status, 400, wrong)
            self.assertIn(says, json.loads(refused.body)["error"]["message"])

    def test_tables_and_pictures_of_the_measured_steps(self):
        """A table, the graph and the command line take one step to be the verdict's."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([SIMULATOR, folder, "--seed", "7", "--ranks"], check=True, capture_output=True)
            path = os.path.join(folder, "random-000007-rank1.json")
            with open(path, "rb") as file:
                rank = self.server.upload(file.read(), "rank_1_again")
            self.server.wait_ready(rank)
            kept = self.server.api(f"/traces/{rank}/analysis")["steps"]["kept_count"]
            whole, all_steps = self.table("kernels", "", rank)
            measured, steps = self.table("kernels", "?steps=measured", rank)
            self.assertEqual(steps, kept)
            self.assertGreater(all_steps, kept)
            self.assertLess(measured["all"]["total_ns"], whole["all"]["total_ns"])
            self.assertEqual(measured["all"]["per_step_ns"], measured["all"]["total_ns"] // kept)
            for name in ("steps", "gaps", "batches"):
                rows = {rest: self.server.api(f"/traces/{rank}/tables/{name}{rest}")["total"] for rest in ("", "?steps=measured")}
                self.assertLessEqual(rows["?steps=measured"], rows[""])
            for counted in ("all", "measured"):
                done = subprocess.run([os.path.join(ROOT, "build/lacuna"), "export", path, "--to", "svg", "--view", "flame", "--metric", "gpu", "--steps", counted],
                                      check=True, capture_output=True)
                asked = "" if counted == "all" else "&steps=measured"
                self.assertEqual(done.stdout, self.server.get(f"/api/v1/traces/{rank}/flame.svg?metric=gpu{asked}").body, counted)
            total = self.server.api(f"/traces/{rank}/flame?metric=gpu&by=python&steps=measured&detail=full")["total_ns"]
            done = subprocess.run([os.path.join(ROOT, "build/lacuna"), "export", path, "--to", "folded", "--metric", "gpu", "--steps", "measured"],
                                  check=True, capture_output=True, text=True)
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()), total)
            done = subprocess.run([os.path.join(ROOT, "build/lacuna"), "export", path, "--to", "speedscope", "--steps", "measured"],
                                  check=True, capture_output=True, text=True)
            self.assertEqual(sum(json.loads(done.stdout)["profiles"][0]["weights"]), total)
            self.assertEqual(subprocess.run([os.path.join(ROOT, "build/lacuna"), "export", path, "--to", "chrome", "--steps", "measured"],
                                            capture_output=True).returncode, 2)
            for wrong in (["--steps", "measured"], ["--view", "flame", "--steps", "measured", "--from", "1ms"], ["--view", "flame", "--steps", "some"]):
                self.assertEqual(subprocess.run([os.path.join(ROOT, "build/lacuna"), "export", path, "--to", "svg", *wrong], capture_output=True).returncode, 2, wrong)

    def test_memory_and_copies(self):
        """Bytes stand under what allocated them; copies are the graph of the GPU without kernels."""
        loop, modules = Loop(), (MODULES[0], MODULES[1], "aten::op")
        for step in range(STEPS):
            at = 1000 + step * 20000
            for ts, size in ((at + 300, 4096 + step), (at + 400, -4096), (at + 11000, 1 << 20)):
                loop.events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 10, "tid": 11, "ts": ts, "s": "t",
                                    "args": {"Bytes": size, "Total Allocated": 1 << 21, "Device Type": 1, "Device Id": 0, "Addr": ts}})
            loop.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 10, "tid": 11, "ts": at + 12500, "dur": 5, "args": {"correlation": 1000 + step}})
            loop.events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 20, "ts": at + 16000, "dur": 70 + step,
                                "args": {"device": 0, "stream": 20, "correlation": 1000 + step, "bytes": 10}})
        trace = self.server.upload(loop.body(), "memory")
        self.server.wait_ready(trace)

        def flame(**asked):
            return self.server.api(f"/traces/{trace}/flame?" + "&".join(f"{key}={value}" for key, value in asked.items()))
        whole = flame(metric="memory", by="module")
        self.assertEqual(stacks(whole), {modules[:2]: STEPS * 4096 + sum(range(STEPS))})
        self.assertEqual(whole["nodes"]["self_ns"][0], STEPS << 20, "in no module")
        self.assertEqual((whole["unit"], whole["unit_ns"], whole["nodes"]["count"][0]), ("MB", 1000000, 2 * STEPS))
        self.assertEqual(stacks(flame(metric="memory", by="op", steps="1,3")), {("aten::op",): 2 * 4096 + 4})
        self.assertEqual(flame(metric="memory", t0=0, t1=1000)["total_ns"], 0)
        thread = next(t["index"] for t in self.server.api(f"/traces/{trace}/tracks")["tracks"] if t["kind"] == "thread")
        self.assertEqual(flame(metric="memory", tracks=thread)["total_ns"], whole["total_ns"])
        copies = flame(metric="copies")
        self.assertEqual(copies["total_ns"], sum(70 + step for step in range(STEPS)) * 1000)
        self.assertEqual(copies["nodes"]["count"][0], STEPS)
        self.assertEqual(flame(metric="copies", t0=0, t1=25000000)["total_ns"], 70 * 1000)
        folded = self.server.get(f"/api/v1/traces/{trace}/flame?metric=memory&format=folded").body.decode()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()), whole["total_ns"])
        self.assertIn(f"[no frame] {STEPS << 20}\n", folded)
        self.assertIn("allocated GPU memory", self.server.get(f"/api/v1/traces/{trace}/flame.svg?metric=memory").body.decode())

    def test_without_measured_steps_it_is_the_whole_trace(self):
        stacks_alone = self.server.upload(b"main;work 3\nmain;rest 1\n", "folded")
        self.server.wait_ready(stacks_alone)
        whole, measured = (self.server.api(f"/traces/{stacks_alone}/flame?metric=cpu{rest}") for rest in ("", "&steps=measured"))
        self.assertEqual(measured, whole)
        self.assertGreater(whole["total_ns"], 0)

    def test_a_stream_is_its_own_operations(self):
        whole = [(0, 1 << 50)]
        rows = self.streams()
        self.assertEqual(set(rows), set(STREAMS))
        for stream, row in rows.items():
            self.assertEqual(stacks(self.flame(by="module", tracks=row, detail="full")), self.expected(whole, (stream,)))
        self.assertEqual(stacks(self.flame(by="module", tracks=f"{rows[7]},{rows[20]}", detail="full")), self.expected(whole))
        self.assertEqual(stacks(self.flame(by="module", tracks=rows[7], steps=2, detail="full")), self.expected(self.spans((2,)), (7,)))
        idle = self.flame(metric="waiting")["total_ns"]
        self.assertEqual(self.flame(metric="waiting", tracks=rows[7])["total_ns"], idle, "idle time is the device's")
        thread = next(t["index"] for t in self.tracks["tracks"] if t["kind"] == "thread")
        self.assertEqual(self.flame(metric="waiting", tracks=thread)["total_ns"], 0)
        self.assertEqual(self.flame(metric="cpu", tracks=thread)["total_ns"], self.flame(metric="cpu")["total_ns"])

    def test_modules_hold_their_time_on_the_host(self):
        got = collections.Counter()
        for path, ns in stacks(self.flame(metric="cpu", by="module", detail="full")).items():
            got[path] += ns
        names = {name for path in got for name in path}
        self.assertEqual(names, set(MODULES))
        self.assertEqual(sum(got.values()), sum(8000 + step * 100 for step in range(STEPS)) * 1000)
        self.assertEqual(got[MODULES[:2]], STEPS * 3500 * 1000)

    def test_time_order_keeps_what_follows(self):
        got = self.flame(by="kernel", order="time", detail="full")
        self.assertEqual(got["order"], "time")
        runs = []
        for _, length, _, _, name in sorted(self.loop.operations, key=lambda each: each[0]):
            if runs and runs[-1][0] == name:
                runs[-1][1] += length * 1000
            else:
                runs.append([name, length * 1000])
        nodes = got["nodes"]
        self.assertEqual([[name, ns] for name, ns in zip(nodes["name"][1:], nodes["value_ns"][1:])], runs)
        self.assertEqual(got["total_ns"], self.flame(by="kernel")["total_ns"])

    def test_folded_stacks_are_the_same(self):
        reply = self.server.get(f"/api/v1/traces/{self.id}/flame?by=module&steps=1-2&format=folded")
        self.assertEqual(reply.headers["Content-Type"], "text/plain; charset=utf-8")
        got = {}
        for line in reply.body.decode().splitlines():
            path, ns = line.rsplit(" ", 1)
            got[tuple(path.split(";"))] = int(ns)
        self.assertEqual(got, self.expected(self.spans((1, 2))))

    def test_pictures_take_the_same_choice(self):
        rows = self.streams()
        whole = self.server.get(f"/api/v1/traces/{self.id}/flame.svg").body
        self.assertIn(b"tail_kernel", whole)
        self.assertNotIn(b"tail_kernel", self.server.get(f"/api/v1/traces/{self.id}/flame.svg?tracks={rows[7]}").body)
        self.assertIn(b"Conv_0", self.server.get(f"/api/v1/traces/{self.id}/flame.svg?by=module&steps=0-1").body)

    def test_rows_of_counters_are_no_threads(self):
        log = "".join(f"2026/04/25 16:06:{second:02}.000, 0, {second} %\n" for second in range(1, 9))
        trace = self.server.upload(f"timestamp, index, utilization.gpu [%]\n{log}".encode(), "gpu.csv")
        self.server.wait_ready(trace)
        for metric in ("gpu", "waiting", "cpu"):
            for more in ("", "&order=time", "&tracks=0", "&t0=0&t1=1000000000"):
                self.assertEqual(self.server.api(f"/traces/{trace}/flame?metric={metric}{more}")["total_ns"], 0)

    def test_what_is_wrong_is_said(self):
        for query, word in (("steps=99", "the first is 0"), ("steps=a", "steps"), ("steps=", "steps"), ("steps=1&t0=5", "steps, or t0"), ("tracks=x", "tracks"),
                            ("order=x", "order"), ("by=x", "by"), ("format=x", "format"), ("steps=0-4294967294", "the first is 0")):
            for path in ("flame", "flame.svg"):
                if path == "flame.svg" and query.startswith("format"):
                    continue
                reply = self.server.get(f"/api/v1/traces/{self.id}/{path}?{query}")
                self.assertEqual(reply.status, 400, query)
                self.assertIn(word, reply.json()["error"]["message"], query)


if __name__ == "__main__":
    main()
