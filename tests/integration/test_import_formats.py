#!/usr/bin/env python3
"""Files of GPU profilers from end to end: `lacuna import` into a data folder, then analysis, flame graphs and rows of a server on it."""
import contextlib
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, main, make_trace

FLAMES = ("gpu", "waiting", "cpu", "profile")
ROCPD = """
CREATE TABLE rocpd_string_1(id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
INSERT INTO rocpd_string_1 VALUES(1,'g','hipLaunchKernel'),(2,'g','HIP_RUNTIME_API_EXT');
CREATE TABLE rocpd_info_process_1(id INTEGER PRIMARY KEY, nid, pid, name, command TEXT);
INSERT INTO rocpd_info_process_1 VALUES(1,1,4711,NULL,'python train.py');
CREATE TABLE rocpd_info_thread_1(id INTEGER PRIMARY KEY, nid, pid, tid, name);
INSERT INTO rocpd_info_thread_1 VALUES(1,1,1,4712,NULL);
CREATE TABLE rocpd_info_agent_1(id INTEGER PRIMARY KEY, type, logical_index, type_index, name, product_name);
INSERT INTO rocpd_info_agent_1 VALUES(2,'GPU',1,0,'gfx942','AMD Instinct MI300X');
CREATE TABLE rocpd_info_kernel_symbol_1(id INTEGER PRIMARY KEY, kernel_name, display_name, arch_vgpr_count INTEGER);
INSERT INTO rocpd_info_kernel_symbol_1 VALUES(9,'_Z4gemm.kd','gemm(float*)',64);
CREATE TABLE rocpd_event_1(id INTEGER PRIMARY KEY, category_id, stack_id INTEGER);
INSERT INTO rocpd_event_1 VALUES(1,2,70),(2,NULL,70);
CREATE TABLE rocpd_kernel_dispatch_1(id, nid, pid, tid, agent_id, kernel_id, queue_id, stream_id, start, end, group_segment_size, workgroup_size_x,
  workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, event_id);
INSERT INTO rocpd_kernel_dispatch_1 VALUES(1,1,1,1,2,9,1,3,2000,5000,1024,256,1,1,1000,1,1,2);
CREATE TABLE rocpd_region_1(id, nid, pid, tid, start, end, name_id, event_id);
INSERT INTO rocpd_region_1 VALUES(1,1,1,1,900,1100,1,1);
"""
RPD = """
CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT);
INSERT INTO rocpd_string VALUES(1,'hipLaunchKernel'),(2,'gemm'),(3,'KernelExecution'),(7,'');
CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
INSERT INTO rocpd_api VALUES(50,4711,4712,900,1100,1,7);
CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, start, end, description_id, opType_id);
INSERT INTO rocpd_op VALUES(8,0,3,1,2000,5000,2,3);
CREATE TABLE rocpd_api_ops(id INTEGER PRIMARY KEY, api_id, op_id);
INSERT INTO rocpd_api_ops VALUES(1,50,8);
"""
# as VizTracer's documentation describes its report: functions (cat FEE), a mark and a counter, then its own members
VIZTRACER = {
    "traceEvents": [
        {"ph": "M", "pid": 7, "tid": 7, "name": "process_name", "args": {"name": "MainProcess"}},
        {"ph": "M", "pid": 7, "tid": 7, "name": "thread_name", "args": {"name": "MainThread"}},
        {"pid": 7, "tid": 7, "ts": 1010.5, "dur": 20.25, "name": "decode (/app/train.py:9)", "ph": "X", "cat": "FEE", "caller_lineno": 21},
        {"pid": 7, "tid": 7, "ts": 1040.0, "dur": 5.0, "name": "builtins.len", "ph": "X", "cat": "FEE"},
        {"pid": 7, "tid": 7, "ts": 1000.0, "dur": 100.0, "name": "main (/app/train.py:20)", "ph": "X", "cat": "FEE"},
        {"ph": "i", "pid": 7, "tid": 7, "ts": 1050.0, "s": "g", "name": "epoch", "cat": "INSTANT", "args": {}},
        {"ph": "C", "pid": 7, "tid": 7, "ts": 1060.0, "name": "loss", "args": {"value": 0.5}},
    ],
    "viztracer_metadata": {"version": "0.16.3", "overflow": False},
    "file_info": {"files": {"/app/train.py": ["def main():\n", 1]}, "functions": {"main (/app/train.py:20)": ["/app/train.py", 20]}},
}
CLOSED = (  # bytes, name, what the error says
    (b"NVR\0" + bytes(64), "k.ncu-rep", "ncu --import k.ncu-rep --csv --page raw"),
    (b"\x89HDF\r\n\x1a\n" + bytes(64), "r.h5", "nsys export --type sqlite"),
    (b"PAR1" + bytes(64), "r.parquet", "nsys export --type sqlite"),
    (b"ARROW1\0\0" + bytes(64), "r.arrow", "nsys export --type sqlite"),
    (b"<?xml version='1.0'?><com.nvidia.viper/>", "w.nvvp", "nvprof -o w.nvvp"),
    (b"\x01\0\x02QuadDCommon" + bytes(64), "r.nsys-rep", "nsys export --type sqlite r.nsys-rep"),
    (b"<!doctype html><title>Sign in</title>", "trace.json", "a web page (HTML)"),
    (b"nothing that we know\n", "x.bin", "unknown format; what is read: "),
)


class Formats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.data = folder.name, os.path.join(folder.name, "data")

    def put(self, name, body):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(body)
        return path

    def database(self, name, script):
        path = os.path.join(self.folder, name)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(script)
        return path

    def run_it(self, *args):
        return subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300, check=False)

    def perfetto(self):
        path = os.path.join(self.folder, "t.pftrace")
        done = self.run_it("export", self.put("t.json", make_trace(2, 4)), "--to", "perfetto", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_each_is_imported_and_answered_for(self):
        files = {"rocprof": [self.database("results.db", ROCPD), self.database("trace.rpd", RPD)], "perfetto": [self.perfetto()]}
        with open(os.path.join(ROOT, "tests/fuzz/corpus/import/rocprofv3"), "rb") as file:
            files["rocprof"].append(self.put("results.json", file.read()))
        paths = [path for group in files.values() for path in group]
        done = self.run_it("import", *paths, "--data", self.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        server = Server("--log-level", "warn", data=self.data)
        self.addCleanup(server.close)
        traces = server.api("/traces")["traces"]
        self.assertEqual(sorted(t["format"] for t in traces), sorted(name for name, group in files.items() for _ in group))
        for trace in traces:
            with self.subTest(format=trace["format"], name=trace["name"]):
                self.assertEqual(trace["state"], "ready")
                base = f"/traces/{trace['id']}"
                analysis = server.api(base + "/analysis")
                self.assertEqual(len(analysis["devices"]), 1)
                self.assertGreater(analysis["kernels"]["count"], 0)
                self.assertNotEqual(analysis["verdict"]["text"], "")
                for metric in FLAMES:
                    server.api(f"{base}/flame?metric={metric}")
                tracks = server.api(base + "/tracks")["tracks"]
                self.assertIn("stream", [track["kind"] for track in tracks])

    def test_a_report_of_viztracer_is_a_timeline_and_a_flame_graph(self):
        path = self.put("result.json", json.dumps(VIZTRACER).encode())
        folded = self.run_it("export", path, "--to", "folded", "--metric", "cpu")
        self.assertEqual(folded.returncode, 0, folded.stderr)
        stacks = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in folded.stdout.splitlines()}
        main_name, decode = "main (/app/train.py:20)", "decode (/app/train.py:9)"
        self.assertEqual({stack: ns for stack, ns in stacks.items() if main_name in stack},
                         {main_name: 74750, f"{main_name};{decode}": 20250, f"{main_name};builtins.len": 5000})
        rows = self.run_it("sql", path, "SELECT name, dur_ns FROM slices ORDER BY dur_ns DESC", "--json")
        self.assertEqual(rows.returncode, 0, rows.stderr)
        self.assertIn(main_name, rows.stdout)

    def test_what_is_not_read_says_what_to_give(self):
        for body, name, said in CLOSED:
            done = self.run_it("import", self.put(name, body), "--data", self.data)
            self.assertEqual((name, done.returncode, done.stderr.count("\n")), (name, 1, 1))
            self.assertIn(said, done.stderr)
        for word in ("Chrome JSON", "nsys", "nvprof", "rocpd", "lacuna import --help"):
            self.assertIn(word, done.stderr)
        told = self.run_it("import", "--help").stdout
        for word in ("perf script", "folded", "speedscope", "rocprofv3 JSON", "Perfetto", "Chrome JSON"):
            self.assertIn(word, " ".join(told.split()))


if __name__ == "__main__":
    main()
