#!/usr/bin/env python3
"""Files of other tools through the server: joined to a trace, and each format's analysis, flame graphs and rows."""
import json
import os
import pickle
import subprocess
import tempfile
import unittest

import tfevents
from server_harness import PROGRAM, Server, main, make_trace, wait_for

DMON = b"# gpu   pwr gtemp\n# Idx     W     C\n    0    70    41\n    0    71    42\n"
PROFILE = b"main;train;step 100\nmain;load 30\n"
ADD, GEMM = "void add<float>(float*, int)", "sm80_xmma_gemm_f32"
KERNELS = ((ADD, 7, 0), (GEMM, 9, 100), (ADD, 9, 200), (GEMM, 7, 300), (ADD, 7, 400), ("scale", 7, 500))  # name, stream, start
MEASURES = (  # name, floating-point operations, bytes, us: as launched
    (ADD, 1000, 5000, 10), (GEMM, 80_000_000, 4_000_000, 40), ("softmax", 7, 7, 7), (ADD, 3000, 6000, 20), (GEMM, 90_000_000, 2_000_000, 20))
GRAPH = 9 << 32  # ids of its nodes are above
FLAMES = ("gpu", "waiting", "cpu", "profile")


def launches(measures):
    """What `ncu --csv --page raw` prints: headings, units, a row a launch."""
    names = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
             "dram__bytes.sum", "gpu__time_duration.sum", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum")
    rows = [names, ("",) * 11 + ("byte", "usecond", "inst")]
    for at, (name, flop, moved, us) in enumerate(measures):
        rows.append((at, 1, "python", "h", name, 1, 7, "(32, 1, 1)", "(4, 1, 1)", 0, "8.0", f"{moved:,}", us, f"{flop:,}"))
    return "".join(",".join(f'"{field}"' for field in row) + "\n" for row in rows).encode()


def kernels_trace():
    """A Kineto trace of KERNELS; each kernel's correlation is its place in the list, from 1."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1000, "dur": 900}]
    for at, (name, stream, start) in enumerate(KERNELS):
        launch = {"ph": "X", "pid": 1, "tid": 1, "ts": 1000 + start, "dur": 5, "args": {"correlation": at + 1}}
        kernel = {"ph": "X", "pid": 0, "tid": stream, "ts": 1020 + start, "dur": 50,
                  "args": {"correlation": at + 1, "device": 0, "stream": stream, "grid": [4, 1, 1], "block": [32, 1, 1]}}
        events += [{**launch, "cat": "cuda_runtime", "name": "cudaLaunchKernel"}, {**kernel, "cat": "kernel", "name": name}]
    return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": events}).encode()


def graph_trace():
    """Two launches of graph 9, three kernels each, of which the first has node 1, and a copy, node 4."""
    events = []
    for launch in range(2):
        at = 1000 + 300 * launch
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": at, "dur": 5, "args": {"correlation": launch + 1}})
        for node, name in enumerate(("attention_kernel", "mlp_kernel", "other_kernel"), start=1):
            args = {"correlation": launch + 1, "device": 0, "stream": 7, "graph id": 9, "graph node id": GRAPH + node, "grid": [4, 1, 1], "block": [32, 1, 1]}
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 20 * node, "dur": 15, "args": args})
        args = {"correlation": launch + 1, "device": 0, "stream": 7, "bytes": 64, "graph node id": GRAPH + 4}
        events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7, "ts": at + 100, "dur": 4, "args": args})
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


def rates(flop, moved, us):
    """The members that a launch's measures become, in operations and bytes per second."""
    return {"FLOP per second": flop * 1_000_000 // us, "memory bytes per second": moved * 1_000_000 // us}


class Join(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn")
        cls.trace = cls.server.upload(make_trace(2, 4), "alone")
        cls.server.wait_ready(cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def join(self, body, name, more="", trace=None):
        reply = self.server.request("POST", f"/api/v1/traces?name={name}&join={trace or self.trace}{more}", body)
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()["id"]

    def state(self, trace):
        return self.server.wait_ready(trace)

    def ready(self, trace):
        row = self.state(trace)
        self.assertEqual(row["state"], "ready", row)
        return row

    def refused(self, query, status, said, body=DMON, headers=None):
        reply = self.server.request("POST", "/api/v1/traces?" + query, body, headers)
        self.assertEqual(reply.status, status, reply.body)
        self.assertIn(said, reply.json()["error"]["message"])

    def answers(self, trace):
        analysis = self.server.api(f"/traces/{trace}/analysis")
        flames = {m: self.server.api(f"/traces/{trace}/flame?metric={m}") for m in FLAMES}
        tracks = self.server.api(f"/traces/{trace}/tracks")["tracks"]
        return analysis, flames, tracks

    def test_counters_stand_beside_the_gpu(self):
        row = self.ready(self.join(DMON, "dmon", "&offset_s=0"))
        self.assertTrue(any(line["text"].startswith("Joined dmon (gpu log)") for line in row["import_report"]["lines"]),
                        row["import_report"])
        analysis, _, tracks = self.answers(row["id"])
        self.assertIn("GPU 0: power (W)", [t["name"] for t in tracks if t["kind"] == "counter"])
        alone = self.server.api(f"/traces/{self.trace}/analysis")
        self.assertEqual(analysis["devices"], alone["devices"])
        self.assertEqual(analysis["steps"], alone["steps"])

    def test_scalars_of_tensorboard_are_results_of_the_run(self):
        row = self.ready(self.join(tfevents.training(1795408040.0, 20, step_s=0.002), "events", "&offset_s=0"))
        self.assertTrue(any(line["text"] == "Joined events (tensorboard): counters." for line in row["import_report"]["lines"]), row["import_report"])
        analysis, _, tracks = self.answers(row["id"])
        self.assertEqual(analysis["steps"], self.server.api(f"/traces/{self.trace}/analysis")["steps"])
        loss = next(t for t in tracks if t["name"] == "train/loss")
        counter = self.server.api(f"/traces/{row['id']}/counters/{loss['index']}?t0=0&t1=40000000&points=100")
        self.assertEqual((counter["last"][0], len(counter["last"])), (2.0, 20))
        wait_for(lambda: self.server.api("/projects/-/journal")["pending"] == 0, 120)
        run = next(run for run in self.server.api("/projects/-/journal")["runs"] if run["trace"] == row["id"])
        told = {metric["name"]: metric for metric in run["facts"]["metrics"]}
        self.assertEqual((told["train/loss"]["last"], told["train/loss"]["best"], told["train/loss"]["count"]), (0.100000001, 0.100000001, 20))
        self.assertAlmostEqual(told["val/accuracy"]["best"], 1 - 0.5 / 19)

    def test_logs_of_a_resumed_training_are_one_result(self):
        logs = tfevents.training(1795408040.0, 20, step_s=0.001), tfevents.training(1795408040.03, 10, step_s=0.0005)
        for first, second in (logs, logs[::-1]):
            row = self.ready(self.join(first, "one", "&offset_s=0"))
            row = self.ready(self.join(second, "two", "&offset_s=0", row["id"]))
            wait_for(lambda: self.server.api("/projects/-/journal")["pending"] == 0, 120)
            run = next(run for run in self.server.api("/projects/-/journal")["runs"] if run["trace"] == row["id"])
            loss = next(metric for metric in run["facts"]["metrics"] if metric["name"] == "train/loss")
            self.assertEqual((loss["last"], loss["best"], loss["count"]), (0.200000003, 0.100000001, 30))

    def test_a_profile_is_a_flame_graph(self):
        row = self.ready(self.join(PROFILE, "stacks"))
        analysis, flames, _ = self.answers(row["id"])
        self.assertEqual(analysis["trace"]["profiles"], 1)
        self.assertEqual(flames["profile"]["total_ns"], 130 * flames["profile"]["unit_ns"])
        alone = self.server.api(f"/traces/{self.trace}/flame?metric=cpu")
        self.assertEqual(flames["cpu"]["total_ns"], alone["total_ns"])
        again = self.ready(self.join(DMON, "dmon", "&offset_s=0.01", row["id"]))  # a join can be joined to
        analysis, flames, tracks = self.answers(again["id"])
        self.assertEqual((analysis["trace"]["profiles"], flames["profile"]["unit"]), (1, "samples"))
        self.assertIn("counter", {t["kind"] for t in tracks})

    def measured(self, trace):
        """Of the trace's kernels in order: name, what was measured, the other arguments."""
        query = ("SELECT name, args FROM slices WHERE kind = 'kernel' AND track IN (SELECT id FROM tracks WHERE kind = 'stream')"
                 " ORDER BY start_ns")
        done = subprocess.run([PROGRAM, "sql", trace, query, "--json", "--data", self.server.data], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = []
        for name, text in json.loads(done.stdout)["rows"]:
            args = json.loads(text or "{}")
            told.append((name, {key: args.pop(key) for key in list(args) if "per second" in key}, args))
        return told

    def test_kernels_carry_what_nsight_compute_measured(self):
        alone = self.server.upload(kernels_trace(), "kernels")
        self.server.wait_ready(alone)
        row = self.ready(self.join(launches(MEASURES), "ncu.csv", trace=alone))
        lines = {line["code"]: line for line in row["import_report"]["lines"]}
        self.assertEqual((lines["joined_measures"]["count"], lines["measures_without_kernel"]["count"]), (4, 1), lines)
        of = {name: iter([rates(*measure) for other, *measure in MEASURES if other == name]) for name, _, _ in KERNELS}
        before, after = self.measured(alone), self.measured(row["id"])
        self.assertEqual([(name, rate) for name, rate, _ in after], [(name, next(of[name], {})) for name, _, _ in KERNELS])
        self.assertEqual([(name, {}, args) for name, _, args in after], before)
        self.assertEqual(self.answers(row["id"])[0]["devices"], self.answers(alone)[0]["devices"])

    def test_measures_of_other_kernels_are_said_to_fit_none(self):
        alone = self.server.upload(kernels_trace(), "kernels")
        self.server.wait_ready(alone)
        row = self.ready(self.join(launches((("softmax", 7, 7, 7), ("relu", 8, 8, 8))), "other.csv", trace=alone))
        lines = {line["code"]: line for line in row["import_report"]["lines"]}
        self.assertEqual(lines["measures_without_kernel"]["count"], 2)
        self.assertIn("no kernel of their name", lines["measures_without_kernel"]["text"])
        self.assertNotIn("joined_measures", lines)
        self.assertEqual(self.measured(row["id"]), self.measured(alone))

    def test_annotations_of_graphs_name_the_modules_of_kernels(self):
        """As JSON and as a pickle; in the details, as a row, in SQL, and in a Chrome export that is imported again."""
        base = self.server.wait_ready(self.server.upload(graph_trace(), "graphs"))["id"]
        notes = {GRAPH + 1: [{"module_fqn": "layers.0.attention", "heads": 8}], GRAPH + 2: ["layers.0.mlp"], GRAPH + 4: [{"module": "cache", "page": 3}], GRAPH + 99: [{"name": "not run"}]}
        for body in (json.dumps({str(node): value for node, value in notes.items()}).encode(), pickle.dumps(notes)):
            row = self.server.wait_ready(self.join(body, "annotations", trace=base))
            self.assertEqual(row["state"], "ready", row)
            self.assertIn("joined_annotations", json.dumps(row["import_report"]))
            tracks = self.server.api(f"/traces/{row['id']}/tracks")["tracks"]
            self.assertIn("graph modules stream 7", [track.get("name") for track in tracks])
            self.check_modules(row["id"])
        stored = os.path.join(self.server.data, "traces", row["id"] + ".db")
        exported = subprocess.run([PROGRAM, "export", stored, "--to", "chrome", "-o", "-"], capture_output=True, check=True, timeout=120).stdout
        self.check_modules(self.server.wait_ready(self.server.upload(exported, "again"))["id"])

    def ask(self, trace, sql):
        reply = self.server.request("POST", f"/api/v1/traces/{trace}/sql", json.dumps({"query": sql}).encode())
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["rows"]

    def check_modules(self, trace):
        sql = "SELECT name, module, graph_node, json_extract(args, '$.heads') AS heads, id FROM kernels ORDER BY start_ns"
        rows = self.ask(trace, sql)
        self.assertEqual([row[:4] for row in rows], [["attention_kernel", "layers.0.attention", GRAPH + 1, 8], ["mlp_kernel", "layers.0.mlp", GRAPH + 2, None],
                                                     ["other_kernel", None, GRAPH + 3, None]] * 2)
        kernel = self.server.api(f"/traces/{trace}/slices/{rows[0][4]}")["kernel"]
        self.assertEqual((kernel["module"], kernel["graph_node"], kernel["graph_node_id"]), ("layers.0.attention", GRAPH + 1, str(GRAPH + 1)))
        sql = "SELECT name, count(*) FROM gpu_ranges GROUP BY name ORDER BY name"
        rows = self.ask(trace, sql)
        self.assertEqual(rows, [["cache", 2], ["layers.0.attention", 2], ["layers.0.mlp", 2]])
        rows = self.ask(trace, "SELECT module, graph_node, json_extract(args, '$.page') AS page, id FROM copies ORDER BY start_ns")
        self.assertEqual([row[:3] for row in rows], [["cache", GRAPH + 4, 3]] * 2)
        copy = self.server.api(f"/traces/{trace}/slices/{rows[0][3]}")["copy"]
        self.assertEqual((copy["module"], copy["graph_node_id"], copy["bytes"]), ("cache", str(GRAPH + 4), 64))
        flame = self.server.api(f"/traces/{trace}/flame?metric=gpu&by=module")["nodes"]
        self.assertLessEqual({"cache", "layers.0.attention", "layers.0.mlp"}, set(flame["name"]))

    def test_what_cannot_be_joined(self):
        self.refused(f"join={'a' * 26}", 404, "no trace has this id")
        self.refused("join=../../x", 404, "no such trace")
        self.refused(f"join={self.trace}&offset_s=soon", 400, "offset_s must be seconds")
        self.refused("offset_s=1", 400, "offset_s goes with join")
        for body, name, said in ((DMON, "dmon", "--offset SECONDS when dmon begins"), (b"no trace at all", "x", "x: unknown format"),
                                 (make_trace(1, 2), "other", "both hold work of a GPU")):
            row = self.state(self.join(body, name))
            self.assertEqual(row["state"], "failed")
            self.assertIn(said, row["error"]["message"])

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, body in (("t.json", make_trace(2, 4)), ("d.txt", DMON), ("p.folded", PROFILE)):
                paths.append(os.path.join(folder, name))
                with open(paths[-1], "wb") as out:
                    out.write(body)
            data = os.path.join(folder, "data")
            run = [PROGRAM, "import", *paths, "--join", "--data", data]
            first = subprocess.run([*run, "--offset", "0"], capture_output=True, text=True)
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            again = subprocess.run([*run, "--offset", "0"], capture_output=True, text=True)
            self.assertIn("already imported", again.stdout)
            self.assertEqual(sorted(os.listdir(os.path.join(data, "staging"))), [])
            bad = subprocess.run(run, capture_output=True, text=True)
            self.assertEqual((bad.returncode, bad.stderr.count("\n")), (1, 1))
            self.assertIn("--offset SECONDS when d.txt begins", bad.stderr)
            for flags in (["--offset", "1"], ["--join"], ["--join", "--offset", "x", paths[1]]):
                self.assertEqual(subprocess.run([PROGRAM, "import", paths[0], *flags, "--data", data],
                                                capture_output=True).returncode, 2)


if __name__ == "__main__":
    main()
