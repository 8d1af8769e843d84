#!/usr/bin/env python3
"""Every question of the cookbook, and every report, against a count of the trace file itself that shares nothing with the program."""
import collections
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from real_traces import real_traces  # noqa: E402

NSYS = os.path.join(real_traces() or "", "nsys/nsysai_mfu_2gpu_before.sqlite")
CLOVERLEAF = os.path.join(real_traces() or "", "nsys/pipit_perlmutter-cloverleaf-cuda.sqlite")

# As `nsys stats` has them: calls without "_v7000"; PyTorch's ranges without the numbers behind their names.
CALL_NAME = "CASE substr(s.value, -6, 2) WHEN '_v' THEN substr(s.value, 1, length(s.value) - 6) ELSE s.value END"
RANGE_NAME = ("CASE WHEN instr(n.text, ', seq = ') > 0 THEN substr(n.text, 1, instr(n.text, ', seq = ') - 1) "
              "WHEN instr(n.text, ', op_id = ') > 0 THEN substr(n.text, 1, instr(n.text, ', op_id = ') - 1) ELSE coalesce(n.text, s.value) END")


def ns(us):
    return round(us * 1000)


class Cookbook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-cookbook-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([PROGRAM, "demo", cls.folder], capture_output=True, check=True)
        trace = os.path.join(cls.folder, "1-two-workers.json")
        with open(trace, encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
        cls.events = collections.defaultdict(list)
        for event in events:
            cls.events[event.get("cat", "")].append(event)
        cls.kernels = cls.events["kernel"]
        cls.calls = cls.events["cuda_runtime"] + cls.events["cuda_driver"]
        cls.launches = {e["args"]["correlation"]: e for e in cls.calls if "correlation" in e.get("args", {})}
        cls.copies = cls.events["gpu_memcpy"] + cls.events["gpu_memset"]
        data = os.path.join(cls.folder, "data")
        done = subprocess.run([PROGRAM, "import", "--data", data, trace], capture_output=True, text=True, check=True)
        cls.file = os.path.join(data, "traces", done.stdout.split()[0] + ".db")
        done = subprocess.run([PROGRAM, "analyze", trace, "--json"], capture_output=True, text=True, check=True)
        cls.analysis = json.loads(done.stdout)
        cls.answered = set()

    def ask(self, question):
        done = subprocess.run([PROGRAM, "sql", self.file, "--question", question, "--json"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        return [dict(zip(answer["columns"], row)) for row in answer["rows"]]

    def query(self, text):
        return json.loads(subprocess.run([PROGRAM, "sql", self.file, text, "--json"], capture_output=True, text=True, check=True).stdout)["rows"]

    def totals(self, events, key):
        found = collections.defaultdict(list)
        for event in events:
            found[key(event)].append(ns(event["dur"]))
        return found

    def test_kernels(self):
        longest = sorted((ns(e["dur"]) for e in self.kernels), reverse=True)[:20]
        self.assertEqual([row["dur_ns"] for row in self.ask("longest-kernels")], longest)
        by_name = self.totals(self.kernels, lambda e: e["name"])
        expected = sorted(((name, len(d), sum(d), min(d), max(d)) for name, d in by_name.items()), key=lambda r: (-r[2], r[0]))[:20]
        self.assertEqual([(r["name"], r["count"], r["total_ns"], r["min_ns"], r["max_ns"]) for r in self.ask("time-by-kernel")], expected)
        self.assertEqual(sum(r["total_ns"] for r in self.ask("time-by-family")), sum(map(sum, by_name.values())))
        self.assertEqual(sum(r["count"] for r in self.ask("time-by-family")), len(self.kernels))
        lengths = collections.Counter("below 10 us" if ns(e["dur"]) < 10000 else "10 to 100 us" if ns(e["dur"]) < 100000 else "100 us and more"
                                      for e in self.kernels)
        self.assertEqual({r["length"]: r["count"] for r in self.ask("short-kernels")}, dict(lengths))
        matrix = {"gemm", "conv", "attention"}
        told = {r["family"]: r for r in self.ask("time-by-family")}
        cores = collections.Counter()
        for row in self.ask("tensor-cores"):
            cores[row["family"]] += row["total_ns"]
        self.assertEqual(dict(cores), {family: told[family]["total_ns"] for family in matrix & set(told)})

    def test_launches(self):
        delays, short = collections.defaultdict(list), 0
        for kernel in self.kernels:
            call = self.launches.get(kernel["args"]["correlation"])
            if call is None:
                continue  # launched before the recording began
            delays["all"].append(ns(kernel["ts"]) - ns(call["ts"]) - ns(call["dur"]))
            short += ns(kernel["dur"]) < ns(call["dur"])
        self.assertEqual(self.query("SELECT median(launch_delay_ns), max(launch_delay_ns) FROM kernels WHERE launch IS NOT NULL"),
                         [[statistics.median(delays["all"]), max(delays["all"])]])
        rows = self.ask("launch-delay")
        self.assertEqual([r["median_ns"] for r in rows], sorted((r["median_ns"] for r in rows), reverse=True))
        self.assertEqual(max(r["max_ns"] for r in rows), max(delays["all"]))
        self.assertEqual(sum(r["count"] for r in self.ask("launches-longer-than-kernels")), short)

    def test_time_by_kind_and_operators(self):
        rows = {r["kind"]: (r["count"], r["total_ns"]) for r in self.ask("time-by-kind")}
        self.assertEqual(rows["kernel"], (len(self.kernels), sum(ns(e["dur"]) for e in self.kernels)))
        self.assertEqual(rows["api"], (len(self.calls), sum(ns(e["dur"]) for e in self.calls)))
        by_name = self.totals(self.events["cpu_op"], lambda e: e["name"])
        for row in self.ask("operators-by-self-time"):
            self.assertEqual((row["count"], row["total_ns"]), (len(by_name[row["name"]]), sum(by_name[row["name"]])))
            self.assertLessEqual(row["self_ns"], row["total_ns"])

    def test_copies(self):
        expected = {kind: sum(ns(e["dur"]) for e in self.events[cat]) for kind, cat in (("copy", "gpu_memcpy"), ("memset", "gpu_memset")) if self.events[cat]}
        found, size = collections.Counter(), 0
        for row in self.ask("copies-by-direction"):
            found[row["kind"]] += row["total_ns"]
            size += row["bytes"] or 0
        self.assertEqual(dict(found), expected)
        self.assertEqual(size, sum(e["args"].get("bytes", 0) for e in self.copies))
        sizes = collections.Counter("below 4 KiB" if e["args"]["bytes"] < 4096 else "4 KiB to 1 MiB" if e["args"]["bytes"] < 1 << 20 else "1 MiB and more"
                                    for e in self.events["gpu_memcpy"])
        self.assertEqual({r["size"]: r["count"] for r in self.ask("copies-by-size")}, dict(sizes))

    def test_calls(self):
        by_name = self.totals(self.calls, lambda e: e["name"])
        expected = sorted(((name, len(d), sum(d)) for name, d in by_name.items()), key=lambda r: (-r[2], r[0]))[:20]
        self.assertEqual([(r["name"], r["count"], r["total_ns"]) for r in self.ask("calls-by-time")], expected)
        waits = sorted((ns(e["dur"]) for e in self.calls if "synchronize" in e["name"].lower()), reverse=True)[:20]
        self.assertEqual([r["dur_ns"] for r in self.ask("blocking-calls")], waits)

    def test_gaps(self):
        devices = {d["id"]: d for d in self.analysis["devices"]}
        idle = collections.Counter()
        for row in self.ask("idle-by-cause"):
            idle[row["device"]] += row["idle_ns"]
        self.assertEqual(dict(idle), {d: facts["idle_ns"] for d, facts in devices.items()})
        ends, busy = 0, []
        for start, end in sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in self.kernels + self.copies):
            if ends and start > ends:
                busy.append((start - ends, ends))
            ends = max(ends, end)
        busy.sort(key=lambda gap: (-gap[0], gap[1]))
        self.assertEqual([r["dur_ns"] for r in self.ask("longest-gaps")], [length for length, _ in busy[:20]])
        top = [(length, at) for length, at in busy if length >= 100000][:100]
        expected = collections.Counter()
        for length, at in top:
            inside = [e for e in self.calls if ns(e["ts"]) <= at < ns(e["ts"]) + ns(e["dur"])]
            expected[max(inside, key=lambda e: ns(e["ts"]))["name"] if inside else "none"] += length
        self.assertEqual(sum(r["idle_ns"] for r in self.ask("gaps-by-call")), sum(expected.values()))
        self.assertEqual({r["call"]: r["idle_ns"] for r in self.ask("gaps-by-call")}, dict(expected))

    def test_steps_batches_and_findings(self):
        steps = self.ask("steps")
        kept = [r for r in steps if r["kind"] == "train"]
        self.assertGreaterEqual(len(kept), self.analysis["steps"]["kept_count"])
        self.assertEqual(len(steps), self.query("SELECT count(*) FROM steps")[0][0])
        fetches = [e for e in self.events["user_annotation"] if e["name"].startswith("loader.fetch") and "batch" in e.get("args", {})]
        self.assertEqual([r["fetch_ns"] for r in self.ask("longest-batches")], sorted((ns(e["dur"]) for e in fetches), reverse=True)[:20])
        self.assertEqual([r["id"] for r in self.ask("what-to-change")], [f["id"] for f in self.analysis["findings"]])

    def test_streams_threads_and_overlap(self):
        streams = collections.Counter()
        for event in self.kernels + self.copies:
            streams[(event["args"]["device"], event["args"]["stream"])] += ns(event["dur"])
        self.assertEqual({(r["device"], r["stream"]): r["total_ns"] for r in self.ask("busy-streams")}, dict(streams))
        counts = [r["slice_count"] for r in self.ask("busy-threads")]
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertEqual(self.ask("communication-overlap"), [])  # one GPU

    def test_what_bounds_a_step(self):
        found = self.ask("critical-path")
        partition = self.analysis["steps"]["partition_ns"]
        count = self.analysis["steps"]["count"]
        waits = {cause: sum(row["total_ns"] for row in found if row["what"] == cause) / count for cause in self.analysis["devices"][0]["idle_by_cause_ns"]}
        work = sum(row["total_ns"] for row in found if row["what"] in ("kernel", "copy", "memset")) / count
        longest = max(waits, key=waits.get)
        self.assertAlmostEqual(waits[longest], partition[longest], delta=0.01 * self.analysis["steps"]["mean_ns"])
        self.assertAlmostEqual(work, sum(partition[part] for part in ("compute", "exposed_comm", "exposed_copy", "exposed_memset")), delta=0.01 * self.analysis["steps"]["mean_ns"])

    def test_all_questions_are_tested_here(self):
        with open(os.path.abspath(__file__), encoding="utf-8") as file:
            source = file.read()
        with open(os.path.join(ROOT, "server/sql/cookbook.def"), encoding="utf-8") as file:
            questions = re.findall(r'^LAC_SQL_QUESTION\("([^"]+)"', file.read(), re.M)
        self.assertGreaterEqual(len(questions), 20)
        self.assertEqual([q for q in questions if f'ask("{q}")' not in source], [])


def report(path, name, form="--json"):
    done = subprocess.run([PROGRAM, "analyze", path, "--report", name, form], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) if form == "--json" else done.stdout


@unittest.skipUnless(os.path.exists(NSYS), "skip: real traces are not beside the repository")
class Reports(unittest.TestCase):
    def compare(self, path, name, query, label):
        """Total, count, min, max and median by name, from the export's own tables."""
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        found = collections.defaultdict(list)
        for key, value in database.execute(query):
            found[key].append(value)
        database.close()
        answer = report(path, name)
        columns = answer["columns"]
        self.assertEqual(columns[-1], label)
        rows = {row[-1]: dict(zip(columns, row)) for row in answer["rows"]}
        self.assertEqual(sorted(rows), sorted(found))
        count = columns[2]
        everything = sum(map(sum, found.values()))
        for key, values in found.items():
            row = rows[key]
            self.assertEqual((row["Total Time (ns)"], row[count], row["Min (ns)"], row["Max (ns)"]), (sum(values), len(values), min(values), max(values)), key)
            self.assertAlmostEqual(row["Med (ns)"], statistics.median(values), delta=0.051)
            self.assertAlmostEqual(row["Avg (ns)"], statistics.mean(values), delta=0.051)
            self.assertAlmostEqual(row["StdDev (ns)"], statistics.stdev(values) if len(values) > 1 else 0, delta=0.051)
            self.assertAlmostEqual(row["Time (%)"], 100 * sum(values) / everything, delta=0.051)
        totals = [row[1] for row in answer["rows"]]
        self.assertEqual(totals, sorted(totals, reverse=True))

    def test_kernels_equal_the_exports_own_tables(self):
        for path in (NSYS, CLOVERLEAF):
            self.compare(path, "cuda_gpu_kern_sum",
                         "SELECT s.value, k.end - k.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName", "Name")
        with open(os.path.join(real_traces(), "truth/nsys__nsysai_mfu_2gpu_before.nsys.json"), encoding="utf-8") as file:
            truth = json.load(file)
        rows = report(NSYS, "cuda_gpu_kern_sum")["rows"]
        self.assertEqual(sum(row[2] for row in rows), truth["kernels"])
        self.assertAlmostEqual(sum(row[1] for row in rows) / 1000, truth["kernel_time_us"], delta=1)

    def test_calls_equal_the_exports_own_tables(self):
        for path in (NSYS, CLOVERLEAF):
            self.compare(path, "cuda_api_sum", f"SELECT {CALL_NAME}, r.end - r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId", "Name")
        self.compare(CLOVERLEAF, "osrt_sum", "SELECT s.value, o.end - o.start FROM OSRT_API o JOIN StringIds s ON s.id = o.nameId", "Name")

    def test_copies_equal_the_exports_own_tables(self):
        kinds = "CASE copyKind WHEN 1 THEN '[CUDA memcpy Host-to-Device]' WHEN 2 THEN '[CUDA memcpy Device-to-Host]' WHEN 8 THEN '[CUDA memcpy Device-to-Device]' END"
        sets = " UNION ALL SELECT '[CUDA memset]', {} FROM CUPTI_ACTIVITY_KIND_MEMSET"
        self.compare(NSYS, "cuda_gpu_mem_time_sum", f"SELECT {kinds}, end - start FROM CUPTI_ACTIVITY_KIND_MEMCPY" + sets.format("end - start"), "Operation")
        database = sqlite3.connect(f"file:{NSYS}?mode=ro&immutable=1", uri=True)
        found = collections.defaultdict(list)
        for key, value in database.execute(f"SELECT {kinds}, bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY" + sets.format("bytes")):
            found[key].append(value)
        database.close()
        rows = {row[-1]: row for row in report(NSYS, "cuda_gpu_mem_size_sum")["rows"]}
        self.assertEqual(sorted(rows), sorted(found))
        for key, values in found.items():
            self.assertEqual(rows[key][1], len(values))
            self.assertAlmostEqual(rows[key][0], sum(values) / 1e6, delta=0.0006)
            self.assertAlmostEqual(rows[key][3], statistics.median(values) / 1e6, delta=0.0006)

    def test_ranges_equal_the_exports_own_table(self):
        name = f"SELECT {RANGE_NAME}, n.end - n.start FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL"
        self.compare(NSYS, "nvtx_sum", name, "Range")
        answer = report(NSYS, "nvtx_sum")
        self.assertEqual({dict(zip(answer["columns"], row))["Style"] for row in answer["rows"]}, {"PushPop"})

    def test_projections_equal_the_exports_own_tables(self):
        """Of each range with GPU work launched inside it: from the first start to the last end, what lies around it and directly inside."""
        database = sqlite3.connect(f"file:{NSYS}?mode=ro&immutable=1", uri=True)
        marks = collections.defaultdict(list)  # of a thread: ranges (outer before inner) and calls, by start
        ranges = database.execute(f"SELECT {RANGE_NAME}, n.start, n.end, n.globalTid FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
                                  "WHERE n.end IS NOT NULL").fetchall()
        for number, (_, start, end, thread) in enumerate(ranges):
            marks[thread].append((start, -end, 0, number))
        work = collections.defaultdict(list)
        for table in ("KERNEL", "MEMCPY", "MEMSET"):
            for start, end, process, correlation in database.execute(f"SELECT start, end, globalPid, correlationId FROM CUPTI_ACTIVITY_KIND_{table}"):
                work[process, correlation].append((start, end))
        for start, end, thread, correlation in database.execute("SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"):
            call = (thread & ~0xffffff, correlation)  # each process counts its own
            if call in work:
                marks[thread].append((start, -end, 1, call))
        database.close()
        inside, around = collections.defaultdict(list), {}
        for of_thread in marks.values():
            stack = []
            for start, negative_end, is_call, number in sorted(of_thread):
                while stack and ranges[stack[-1]][2] < -negative_end:
                    stack.pop()
                if is_call:
                    for each in stack:
                        inside[each] += work[number]
                else:
                    around[number] = list(stack)
                    stack.append(number)
        children = collections.Counter(around[number][-1] for number in inside if around[number])
        found = collections.defaultdict(list)
        for number, operations in inside.items():
            name, start, end, _ = ranges[number]
            projected = max(op[1] for op in operations) - min(op[0] for op in operations)
            found[name].append((projected, end - start, len(operations), len(around[number]), children[number]))
        answer = report(NSYS, "nvtx_gpu_proj_sum")
        self.assertEqual(answer["columns"][:3] + answer["columns"][-2:], ["Range", "Style", "Total Proj Time (ns)", "Avg Range Lvl", "Avg Num Child"])
        self.assertEqual(sorted(row[0] for row in answer["rows"]), sorted(found))
        for row in answer["rows"]:
            projected, lengths, operations, levels, within = zip(*found[row[0]])
            self.assertEqual((row[2], row[3], row[4], row[7], row[8], row[10]),
                             (sum(projected), sum(lengths), len(projected), min(projected), max(projected), sum(operations)), row[0])
            self.assertAlmostEqual(row[6], statistics.median(projected), delta=0.051)
            self.assertAlmostEqual(row[12], statistics.mean(levels), delta=0.051, msg=row[0])
            self.assertAlmostEqual(row[13], statistics.mean(within), delta=0.051, msg=row[0])

    def test_forms(self):
        answer = report(NSYS, "cuda_api_sum")
        parsed = list(csv.reader(io.StringIO(report(NSYS, "cuda_api_sum", "--csv"))))
        self.assertEqual(parsed[0], answer["columns"])
        self.assertEqual(len(parsed) - 1, len(answer["rows"]))
        done = subprocess.run([PROGRAM, "analyze", NSYS, "--report", "nothing"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("cuda_gpu_kern_sum", done.stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
