#!/usr/bin/env python3
"""`lacuna sql`: what its tables say equals what a script counts in the trace itself, and queries that must not run do not."""
import csv
import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))

WIDTH = 40
LIMIT_S = 240


def ns(us):
    return round(us * 1000)


def make_events():
    """A Kineto trace whose figures are easy to count: five steps on one thread, with kernels, copies and sets on two streams."""
    events = [{"ph": "M", "pid": 1, "tid": 0, "ts": 0, "name": "process_name", "args": {"name": "python"}}]
    correlation = 0
    for step in range(5):
        at = step * 100000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": 90000})
        for k in range(WIDTH):
            correlation += 1
            start = at + 1000 + k * 2000
            kernel = ("volta_sgemm_128x64_nn", "vectorized_elementwise_kernel<add>", "ncclKernel_AllReduce_RING_LL_Sum_float")[k % 3]
            events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{k % 5}", "pid": 1, "tid": 1, "ts": start - 20, "dur": 300,
                           "args": {"External id": correlation}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start, "dur": 5 + k % 4,
                           "args": {"correlation": correlation, "cbid": 211}})
            events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7 + k % 2, "ts": start + 50 + k, "dur": 3 + 11 * (k % 7) + step + (2500 if k % 3 == 2 else 0),
                           "args": {"correlation": correlation, "device": 0, "stream": 7 + k % 2, "grid": [k + 1, 2, 1],
                                    "block": [64, 1, 1], "registers per thread": 32, "shared memory": 1024 * k}})
        for c, size in enumerate((512, 65536, 4 << 20)):
            correlation += 1
            start = at + 85000 + 500 * c
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": start, "dur": 20,
                           "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": start + 30,
                           "dur": 10 + size // 1000, "args": {"correlation": correlation, "device": 0, "stream": 7, "bytes": size}})
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": at + 92000, "dur": 700})
    return events


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-sql-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.trace = os.path.join(cls.folder, "made.json")
        cls.events = [e for e in make_events() if e["ph"] == "X"]
        with open(cls.trace, "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": make_events()}, out)
        cls.data = os.path.join(cls.folder, "data")
        done = subprocess.run([PROGRAM, "import", "--data", cls.data, cls.trace], capture_output=True, text=True, check=True)
        cls.trace_id = done.stdout.split()[0]
        cls.file = os.path.join(cls.data, "traces", cls.trace_id + ".db")

    def ask(self, *arguments, status=0, stdin=None):
        done = subprocess.run([PROGRAM, "sql", *arguments], capture_output=True, text=True, check=False, input=stdin, timeout=240)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr}")
        return done

    def rows(self, query, path=None):
        return json.loads(self.ask(path or self.file, query, "--json").stdout)["rows"]

    def of(self, category):
        return [e for e in self.events if e["cat"] == category]

    # -- what is there

    def test_slices_of_each_kind_are_those_of_the_trace(self):
        kinds = {"kernel": "kernel", "copy": "gpu_memcpy", "api": "cuda_runtime", "op": "cpu_op", "range": "user_annotation"}
        counted = {kind: (len(self.of(cat)), sum(ns(e["dur"]) for e in self.of(cat))) for kind, cat in kinds.items()}
        got = {kind: (count, total) for kind, count, total in self.rows("SELECT kind, count(*), sum(dur_ns) FROM slices GROUP BY kind")
               if kind in kinds}
        self.assertEqual(got, counted)
        for table, kind in (("kernels", "kernel"), ("copies", "copy"), ("api_calls", "api"), ("operators", "op"), ("ranges", "range")):
            self.assertEqual(self.rows(f"SELECT count(*), sum(dur_ns) FROM {table}"), [list(counted[kind])], table)

    def test_the_file_its_id_and_a_foreign_file_give_the_same(self):
        query = "SELECT id, track, name, start_ns, dur_ns, args FROM slices ORDER BY id"
        stored = self.rows(query)
        self.assertEqual(self.rows(query, self.trace), stored)
        by_id = self.ask(self.trace_id, query, "--json", "--data", self.data)
        self.assertEqual(json.loads(by_id.stdout)["rows"], stored)

    def test_a_kernel_carries_its_launch_and_configuration(self):
        calls = {e["args"]["correlation"]: e for e in self.of("cuda_runtime") if "correlation" in e.get("args", {})}
        first = min(e["ts"] for e in self.events)
        expected = sorted([ns(e["ts"] - first), ns(e["dur"]), e["args"]["stream"], *e["args"]["grid"], e["args"]["block"][0],
                           e["args"]["shared memory"], ns(calls[e["args"]["correlation"]]["ts"] - first),
                           ns(e["ts"]) - ns(calls[e["args"]["correlation"]]["ts"]) - ns(calls[e["args"]["correlation"]]["dur"])]
                          for e in self.of("kernel"))
        got = self.rows("SELECT start_ns, dur_ns, stream, grid_x, grid_y, grid_z, block_x, shared_memory_bytes, launch_start_ns,"
                        " launch_delay_ns FROM kernels ORDER BY 1, 2, 3")
        self.assertEqual(got, expected)

    def test_conditions_choose_the_same_rows_whether_pushed_down_or_not(self):
        """A plus before a column keeps SQLite from pushing the condition down."""
        conditions = ["{id} = 17", "{id} BETWEEN 100 AND 130", "{id} > 1e2 AND {id} <= 120.5", "{track} = 1", "{track} IN (0, 2, 99, -1)",
                      "{start_ns} >= 200000000", "{start_ns} < 3.5e6", "{start_ns} BETWEEN 101000000 AND 104000000", "{end_ns} <= 2000000",
                      "{end_ns} > 480000000 AND {start_ns} < 490000000", "{name} = 'aten::op3'", "{name} = 'no such'", "{name} = ''",
                      "{name} LIKE '%SGEMM%'", "{name} GLOB 'aten::op[12]'", "{name} LIKE 'aten%' AND {name} LIKE '%3'",
                      "{kind} = 'kernel' AND {device} = 0", "{kind} = 'KERNEL' COLLATE NOCASE", "{device} IS NULL", "{kind} IN ('copy', 'api')",
                      "{name} = 'ATEN::OP3' COLLATE NOCASE", "{start_ns} > NULL", "{id} = -5", "{id} = 9e99", "{track} = 1.5",
                      "{id} > 9223372036854775807", "{start_ns} = 101000000", "{name} LIKE '%op%' AND {track} = 0 AND {start_ns} > 2e8",
                      # SQLite does not look again at what a constant of the column's own type says
                      "{start_ns} > 101000000", "{start_ns} >= 101000000", "{start_ns} < 101000000", "{start_ns} <= 101000000", "{start_ns} > 101000000 AND {start_ns} < 103000000",
                      "{start_ns} < 101000000.0", "{start_ns} > 101000000 - 1", "{start_ns} > -9223372036854775808", "{start_ns} < -9223372036854775807",
                      "{start_ns} < 9223372036854775807", "{id} > 100 AND {id} < 103", "{id} < 0", "{id} >= -3 AND {id} < 2", "{id} > 3 AND {id} < 4", "{track} = 1 AND {track} = 2",
                      "{track} = 1 AND {track} = 1 AND {start_ns} > 101000000", "{device} = 0 AND {device} = 1", "{device} = -1", "{device} = 0 AND {start_ns} > 101050000",
                      "{kind} = 'kernel' AND {kind} = 'copy'", "{kind} = 'kernel' AND {start_ns} > 101050000 AND {start_ns} < 150000000", "{kind} = 'no such'", "{kind} = 5",
                      "{name} = 'aten::op3' AND {start_ns} > 101980000", "{name} = 'aten::op3' AND {name} = 'aten::op2'", "{name} = 5", "{name} = 'aten::op3' OR {start_ns} < 101000000",
                      "{end_ns} > 101000000 AND {start_ns} < 101000000", "NOT {start_ns} > 101000000", "({start_ns} > 101000000) = 0"]
        names = ("id", "track", "start_ns", "end_ns", "name", "kind", "device")
        shown = "(SELECT group_concat(id || ' ' || dur_ns) FROM slices WHERE {})"  # of the rows as they come
        for some in (conditions[at:at + 12] for at in range(0, len(conditions), 12)):  # a start of the program costs more than a query
            pushed, plain = (self.rows("SELECT " + ", ".join(shown.format(condition.format(**{n: plus + n for n in names})) for condition in some))[0] for plus in ("", "+"))
            for condition, one, other in zip(some, pushed, plain):
                if " OR " in condition:
                    one, other = sorted(one.split(",")), sorted(other.split(","))
                self.assertEqual(one, other, condition)

    def test_order_by_is_kept(self):
        for order in ("id", "id DESC", "start_ns", "start_ns DESC", "dur_ns, id"):
            got = self.rows(f"SELECT id, start_ns, dur_ns FROM slices WHERE track = 1 ORDER BY {order}")
            keys = {"id": lambda r: r[0], "start_ns": lambda r: r[1], "dur_ns": lambda r: (r[2], r[0])}
            key = keys[order.split()[0].strip(",")]
            values = [key(r) for r in got]
            self.assertEqual(values, sorted(values, reverse="DESC" in order), order)

    def test_the_critical_path_fills_each_step(self):
        """Against the plainest way: at every edge of anything, who bounds the device from there on."""
        work = self.rows("SELECT s.id, s.start_ns, s.end_ns, s.kind, s.name FROM slices s WHERE s.kind IN ('kernel', 'copy', 'memset') AND s.dur_ns > 0")
        gaps = self.rows("SELECT id, start_ns, end_ns, kind, name FROM slices WHERE kind = 'gap' AND dur_ns > 0")
        for step, begin, end in self.rows("SELECT step, start_ns, end_ns FROM steps"):
            rank = {"kernel": 0, "copy": 2, "memset": 3, "gap": 4}
            pieces = [(1 if "nccl" in name else rank[kind], -to, number, at, to, kind) for number, at, to, kind, name in work + gaps if at < end and to > begin]
            edges = sorted({begin, end, *(t for p in pieces for t in (p[3], p[4]) if begin < t < end)})
            expected = []
            for at, to in zip(edges, edges[1:]):
                best = min((p for p in pieces if p[3] <= at < p[4]), default=None)
                if best is not None and expected and expected[-1][0] == best[2] and expected[-1][2] == at:
                    expected[-1][2] = to
                elif best is not None:
                    expected.append([best[2], at, to, best[5]])
            got = self.rows(f"SELECT slice, start_ns, end_ns, kind FROM critical_path({step}) ORDER BY position")
            self.assertEqual(got, expected, step)
            self.assertGreater(len(got), 20)
        self.assertEqual(self.rows("SELECT count(*), min(step), max(step) FROM critical_path")[0][1:], [0, 4])
        for none in ("-1", "99", "'x'"):
            self.assertEqual(self.rows(f"SELECT count(*) FROM critical_path({none})"), [[len(self.rows("SELECT 1 FROM critical_path(0)"))] if none == "'x'" else [0]])
        self.assertTrue(all(root is None or cause for cause, root in self.rows("SELECT cause, root FROM critical_path")))

    def test_several_traces_at_once(self):
        query = "SELECT trace, count(*), sum(dur_ns) FROM kernels GROUP BY trace ORDER BY trace"
        one = self.rows("SELECT count(*), sum(dur_ns) FROM kernels")[0]
        got = json.loads(self.ask(self.file, self.trace, query, "--json").stdout)["rows"]
        self.assertEqual([row[1:] for row in got], [one, one])
        self.assertEqual(len({row[0] for row in got}), 2)
        self.assertEqual(len(self.ask(self.file, self.file, "--question", "time-by-kind", "--csv").stdout.splitlines()), len(self.ask(self.file, "--question", "time-by-kind", "--csv").stdout.splitlines()))
        self.assertIn("No such file", self.ask(self.file, "/no/such", "SELECT 1", status=1).stderr)

    def export(self, *arguments, status=0):
        done = subprocess.run([PROGRAM, "export", *arguments], capture_output=True, text=True, check=False, timeout=240)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr}")
        return done

    def test_every_table_leaves_as_csv(self):
        reference = json.loads(self.ask("--tables", "--json").stdout)["tables"]
        for table in reference:
            shown = [column["name"] for column in table["columns"] if not column["is_argument"]]
            exported = self.export(self.file, "--to", "csv", "--table", table["name"]).stdout
            asked = self.ask(self.file, f"SELECT {', '.join(shown)} FROM {table['name']}", "--csv").stdout
            self.assertEqual(exported, asked, table["name"])
            self.assertEqual(next(csv.reader(io.StringIO(exported))), shown)
        names = self.export(self.file, "--to", "csv", "--table", "ranges", "--redact", "names").stdout
        self.assertEqual(names.count("ProfilerStep"), 5)  # PyTorch's own word, no person's
        self.assertIn("csv needs --table", self.export(self.file, "--to", "csv", status=2).stderr)
        self.assertIn("no such table", self.export(self.file, "--to", "csv", "--table", "sqlite_schema", status=2).stderr)
        self.assertIn("--table goes with --to csv", self.export(self.file, "--to", "html", "--table", "steps", status=2).stderr)

    def test_pictures_as_svg(self):
        picture = self.export(self.trace, "--to", "svg", "--from", "100ms", "--until", "0.2s").stdout
        self.assertIn("100 ms of the trace, from 100 ms on", picture)
        self.assertIn("stream 8", picture)
        self.assertEqual(picture, self.export(self.trace, "--to", "svg", "--from", "100000000", "--until", "200000us").stdout)
        self.assertIn("all-reduce", self.export(self.trace, "--to", "svg", "--view", "flame").stdout)
        for wrong in (["--from", "soon"], ["--from", "-1s"], ["--view", "pie"], ["--until", "9e99s"]):
            self.assertIn("lacuna export: --", self.export(self.trace, "--to", "svg", *wrong, status=2).stderr)
        self.assertIn("--from goes with --to svg", self.export(self.trace, "--to", "html", "--from", "1s", status=2).stderr)
        self.assertIn("nothing lies from there to there", self.export(self.trace, "--to", "svg", "--from", "90s", status=1).stderr)

    def test_by_name_adds_up_in_all_and_in_an_interval(self):
        first = min(e["ts"] for e in self.events)
        for low, high in ((0, 1 << 50), (101000000, 155000000)):
            expected = {}
            for e in self.events:
                start, end = ns(e["ts"] - first), ns(e["ts"] - first) + ns(e["dur"])
                if start < high and end > low:
                    count, total = expected.get(e["name"], (0, 0))
                    expected[e["name"]] = (count + 1, total + min(end, high) - max(start, low))
            got = {name: (count, total) for name, count, total in self.rows(f"SELECT name, count, total_ns FROM by_name({low}, {high})")}
            self.assertEqual(got, expected)

    def test_ancestors_go_from_a_kernel_to_its_operator(self):
        got = self.rows("SELECT k.id, (SELECT group_concat(kind) FROM (SELECT kind FROM ancestors(k.id) ORDER BY level)) FROM kernels k LIMIT 50")
        self.assertEqual({chain for _, chain in got}, {"kernel,api,op,range"})

    def test_overlap_equals_a_count_of_every_microsecond(self):
        first = min(e["ts"] for e in self.events)
        for low, high in ((0, 1 << 40), (85000000, 210000000)):
            busy = {"compute": set(), "communication": set(), "copy": set()}
            for e in self.of("kernel") + self.of("gpu_memcpy"):
                kind = "copy" if e["cat"] == "gpu_memcpy" else "communication" if "nccl" in e["name"] else "compute"
                start = e["ts"] - first
                busy[kind].update(range(max(start, low // 1000), min(start + e["dur"], high // 1000)))
            expected = [[a, b, len(busy[a]) * 1000, len(busy[b]) * 1000, len(busy[a] & busy[b]) * 1000, len(busy[b] - busy[a]) * 1000]
                        for a, b in (("compute", "communication"), ("compute", "copy"), ("communication", "copy"))]
            got = self.rows(f"SELECT first, second, first_ns, second_ns, both_ns, second_alone_ns FROM overlap({low}, {high}) WHERE device = 0")
            self.assertEqual(got, expected)
            self.assertGreater(got[0][4], 0)

    def test_the_flame_graph_holds_all_of_the_gpus_time(self):
        total = sum(ns(e["dur"]) for e in self.of("kernel") + self.of("gpu_memcpy"))
        self.assertEqual(self.rows("SELECT sum(self_ns) FROM flame"), [[total]])
        self.assertEqual(self.rows("SELECT value_ns FROM flame WHERE parent IS NULL"), [[total]])
        self.assertEqual(self.rows("SELECT count(*) FROM flame(5, 5)"), [[0]])
        copied = self.rows("SELECT sum(dur_ns) FROM copies")[0][0]
        self.assertEqual(self.rows("SELECT value_ns FROM flame(0, NULL, 'copies') WHERE parent IS NULL"), [[copied]])
        self.assertEqual(self.rows("SELECT count(*) FROM flame(0, NULL, 'memory')"), [[1]], "nothing was allocated: the root alone")
        self.assertIn("metric is gpu, waiting, cpu, copies, memory or profile", self.ask(self.file, "SELECT * FROM flame(0, 1, 'heat')", status=1).stderr)

    def test_aggregates_equal_those_of_a_script(self):
        durations = [ns(e["dur"]) for e in self.of("kernel")]
        median, deviation, high = self.rows("SELECT median(dur_ns), stddev(dur_ns), percentile(dur_ns, 90) FROM kernels")[0]
        self.assertEqual(median, statistics.median(durations))
        self.assertAlmostEqual(deviation, statistics.stdev(durations), places=4)
        self.assertAlmostEqual(high, statistics.quantiles(durations, n=10, method="inclusive")[-1], places=6)

    def test_every_table_can_be_read_whole(self):
        reference = json.loads(self.ask("--tables", "--json").stdout)
        self.assertGreater(len(reference["tables"]), 20)
        for table in reference["tables"]:
            shown = [c["name"] for c in table["columns"] if not c["is_argument"]]
            done = json.loads(self.ask(self.file, f"SELECT * FROM {table['name']} LIMIT 100", "--json").stdout)
            self.assertEqual(done["columns"], shown, table["name"])
            for column in table["columns"]:
                self.assertRegex(column["name"], r"^[a-z][a-z0-9_]*$")
                self.assertTrue(column["doc"], f"{table['name']}.{column['name']}")

    # -- forms

    def test_csv_and_table_say_what_json_says(self):
        query = "SELECT id, name, NULL AS none, 0.1 + 0.2 AS real, 'a,\"b' AS quoted FROM slices ORDER BY id LIMIT 7"
        expected = self.rows(query)
        text = self.ask(self.file, query, "--csv").stdout
        parsed = list(csv.reader(io.StringIO(text)))
        self.assertEqual(parsed[0], ["id", "name", "none", "real", "quoted"])
        self.assertEqual(parsed[1:], [["" if v is None else str(v) for v in row] for row in expected])
        lines = self.ask(self.file, query).stdout.splitlines()
        self.assertEqual(len(lines), 8)
        self.assertEqual(len({line.index("a,\"b") for line in lines[1:]}), 1, "columns are aligned")

    def test_a_limit_that_cuts_is_said(self):
        done = self.ask(self.file, "SELECT id FROM slices", "--limit", "3")
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertIn("the first 3 rows", done.stderr)
        answer = json.loads(self.ask(self.file, "SELECT id FROM slices", "--limit", "3", "--json").stdout)
        self.assertEqual((len(answer["rows"]), answer["cut"]), (3, "rows"))

    def test_a_query_comes_from_standard_input(self):
        self.assertEqual(self.ask(self.file, "-", "--csv", stdin="SELECT 1 AS one -- a remark\n;\n").stdout, "one\n1\n")

    def test_text_of_a_trace_steers_no_terminal(self):
        path = os.path.join(self.folder, "markup.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump([{"ph": "X", "name": "a\u001b[2Jb\u009bc\r\nd", "pid": 1, "tid": 1, "ts": 1, "dur": 1}], out)
        text = self.ask(path, "SELECT name FROM slices").stdout
        for code in ("\x1b", "\x9b", "\r"):
            self.assertNotIn(code, text)
        self.assertEqual(len(text.splitlines()), 2)

    # -- what must not be

    def test_only_queries_that_read_run(self):
        outside = os.path.join(self.folder, "outside.db")
        for query in (f"ATTACH '{outside}' AS x", "CREATE TABLE t(a)", "CREATE TEMP TABLE t(a)", "INSERT INTO slices(id) VALUES(1)", "DELETE FROM slices",
                      "UPDATE slices SET name = ''", "PRAGMA journal_mode=WAL", "PRAGMA database_list", f"VACUUM INTO '{outside}'",
                      "SELECT load_extension('x')", "BEGIN", "CREATE VIRTUAL TABLE x USING slices", "DROP TABLE slices", "SELECT 1; SELECT 2",
                      "SELECT * FROM pragma_database_list", "SELECT writefile('x', 'y')", "REINDEX", "ANALYZE", "", "  -- nothing", "SELEC 1",
                      "SELECT nothing FROM slices", "SELECT 1 FROM nowhere", "CREATE VIEW v AS SELECT 1", "SAVEPOINT a", "DETACH main"):
            done = self.ask(self.file, query, status=1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("lacuna sql: "), done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(outside))

    def test_a_query_that_loops_is_stopped(self):
        for query in ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                      "SELECT count(*) FROM slices a, slices b, slices c, slices d, slices e"):
            done = self.ask(self.file, query, "--timeout", "1", status=1)
            self.assertEqual(done.stderr, "lacuna sql: the query took longer than 1 s (--timeout)\n")

    def test_conditions_on_gaps_that_are_pushed_down_leave_the_same_rows(self):
        columns = "device, start_ns, dur_ns, end_ns, cause, root_cause, ended_by, root, signature, per_step, launch_ns, unattributed_ns"
        every = self.rows(f"SELECT {columns} FROM gaps")
        self.assertGreater(len(every), 100)
        self.assertGreater(len({row[4] for row in every}), 1)
        middle, later = every[len(every) // 3][1], every[len(every) // 2][1]
        length, cause = sorted(row[2] for row in every)[len(every) // 2], every[0][4]
        for condition, is_wanted in (("device = 0", lambda r: r[0] == 0), ("device = 7", lambda r: r[0] == 7), ("device = 0.5", lambda r: False), ("device = -1", lambda r: False),
                                     (f"start_ns BETWEEN {middle} AND {later}", lambda r: middle <= r[1] <= later), (f"start_ns > {middle}", lambda r: r[1] > middle),
                                     (f"start_ns = {middle}", lambda r: r[1] == middle), (f"end_ns < {later}.5", lambda r: r[3] < later + .5),
                                     (f"dur_ns >= {length}", lambda r: r[2] >= length), (f"dur_ns < {length}", lambda r: r[2] < length),
                                     (f"cause = '{cause}'", lambda r: r[4] == cause), (f"cause = '{cause.upper()}' COLLATE NOCASE", lambda r: r[4] == cause),
                                     ("cause = 'nothing'", lambda r: False), ("cause IS NULL", lambda r: False), (f"cause = '{cause}' AND cause = 'host_'", lambda r: False),
                                     (f"of_device = 0 AND min_ns = {length} AND device = 0", lambda r: r[0] == 0 and r[2] >= length), ("of_device = -7", lambda r: False),
                                     ("of_device = 0 AND device = 1", lambda r: False), (f"start_ns > {middle} OR dur_ns < {length}", lambda r: r[1] > middle or r[2] < length)):
            with self.subTest(condition):
                self.assertEqual(sorted(self.rows(f"SELECT {columns} FROM gaps WHERE {condition}"), key=lambda r: r[:2]), [r for r in every if is_wanted(r)])
        for order in ("ASC", "DESC"):
            self.assertEqual([r[0] for r in self.rows(f"SELECT cause FROM gaps ORDER BY cause {order}")], sorted((r[4] for r in every), reverse=order == "DESC"))
            by_cause = self.rows(f"SELECT cause, count(*), sum(dur_ns) FROM gaps WHERE start_ns > {middle} GROUP BY cause ORDER BY cause {order}")
            late = [r for r in every if r[1] > middle]
            self.assertEqual(by_cause, [[c, sum(r[4] == c for r in late), sum(r[2] for r in late if r[4] == c)] for c in sorted({r[4] for r in late}, reverse=order == "DESC")])
        self.assertEqual(self.rows("SELECT of_device, min_ns FROM gaps(0, 5) LIMIT 1"), [[0, 5]])
        self.assertEqual(self.rows("SELECT count(*) FROM devices JOIN gaps ON gaps.device = devices.id"), [[len(every)]])

    def test_a_query_that_eats_memory_is_stopped(self):
        for query in ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT median(i) FROM n",
                      "WITH RECURSIVE n(i, t) AS (SELECT 1, hex(randomblob(20000)) UNION ALL SELECT i + 1, hex(randomblob(20000)) FROM n LIMIT 20000)"
                      " SELECT t FROM n ORDER BY t"):
            done = self.ask(self.file, query, "--memory", "32M", status=1)
            self.assertEqual(done.stderr, "lacuna sql: the query needs more than 32 MiB of memory (--memory)\n")

    def test_wrong_usage(self):
        for arguments in ((self.file,), (self.file, "SELECT 1", "--json", "--csv"),
                          (self.file, "--question", "nothing"), (self.file, "SELECT 1", "--limit", "x"), ("--tables", "nothing")):
            self.ask(*arguments, status=2)
        self.assertIn("is no file, and no trace", self.ask("a" * 26, "SELECT 1", "--data", self.data, status=1).stderr)
        self.ask(os.path.join(self.folder, "absent.json"), "SELECT 1", status=1)

    def test_nothing_is_left_in_the_temporary_folder(self):
        place = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([PROGRAM, "sql", self.trace, "SELECT count(*) FROM slices"], capture_output=True, check=True,
                              env={**os.environ, "TMPDIR": place})
        self.assertTrue(done.stdout)
        self.assertEqual(os.listdir(place), [])

    def test_ended_as_soon_as_its_folder_is_there_nothing_is_left(self):
        place, tools = tempfile.mkdtemp(dir=self.folder), tempfile.mkdtemp(dir=self.folder)
        go_on = os.path.join(tools, "go")
        source, library = os.path.join(tools, "slow.c"), os.path.join(tools, "slow.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
                       "char *mkdtemp(char *name)\n{\n    char *(*real)(char *) = (char *(*)(char *))dlsym(RTLD_NEXT, \"mkdtemp\");\n"
                       "    char *made = real(name);\n    while (access(getenv(\"GO_ON\"), F_OK) != 0)\n        usleep(1000);\n    return made;\n}\n")
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True, timeout=LIMIT_S)
        with subprocess.Popen([PROGRAM, "sql", self.trace, "SELECT count(*) FROM slices"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": place, "LD_PRELOAD": library, "GO_ON": go_on}) as query:
            end = time.monotonic() + LIMIT_S
            while not os.listdir(place) and query.poll() is None and time.monotonic() < end:
                time.sleep(0.001)
            query.send_signal(signal.SIGTERM)
            with open(go_on, "w", encoding="utf-8"):
                pass
            self.assertEqual(query.wait(LIMIT_S), -signal.SIGTERM)
        self.assertEqual(os.listdir(place), [])

    def test_a_damaged_trace_file_is_an_error(self):
        damaged = os.path.join(self.folder, "damaged.db")
        with open(self.file, "rb") as given:
            content = bytearray(given.read())
        for place in range(len(content) // 3, len(content), 4096):
            content[place] ^= 0x55
        with open(damaged, "wb") as out:
            out.write(content)
        done = self.ask(damaged, "SELECT count(name), count(args) FROM slices", status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
