#!/usr/bin/env python3
"""Runs over time: the journal of the simulated series, trends, series, baselines, and that no page of it opens trace files."""
import json
import os
import sqlite3
import subprocess
import tempfile
import time
import unittest

from server_harness import CATALOG_IS_FILE, MARKUP, PROGRAM, Server, main, make_trace, slowed


def demo(folder):
    """The six traces of the published story, in order."""
    subprocess.run([PROGRAM, "demo", folder], check=True, capture_output=True)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".json") and not name.endswith(".truth.json")]


def products_trace():
    """A step is 40 products of bfloat16 matrices with recorded shapes, on an H100."""
    document = json.loads(make_trace(steps=8))
    document["deviceProperties"][0].update(name="NVIDIA H100 80GB HBM3", computeMajor=9, numSms=132)
    for event in document["traceEvents"]:
        if event.get("cat") == "cpu_op":
            event.update(name="aten::mm", args={"Input Dims": [[2048, 2048]] * 2, "Input type": ["c10::BFloat16"] * 2})
        elif event.get("cat") == "kernel":
            event["name"] = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
    return json.dumps(document).encode()


def settled(server, path):
    """The reply once nothing is pending: a request measures for a short time, and tells what is left."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        reply = server.api(path)
        if reply["pending"] == 0:
            return reply
    raise AssertionError(f"{path}: still {reply['pending']} pending")


class Journal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="lacuna-journal-")
        cls.addClassCleanup(cls.folder.cleanup)
        data = os.path.join(cls.folder.name, "data")
        for path in demo(os.path.join(cls.folder.name, "demo")):
            subprocess.run([PROGRAM, "import", path, "--data", data], check=True, capture_output=True)
        cls.server = Server(data=data)
        cls.addClassCleanup(cls.server.close)
        settled(cls.server, "/projects/-/journal")

    def patch(self, trace, body):
        return self.server.request("PATCH", "/api/v1/traces/" + trace, json.dumps(body).encode())

    def members(self, schema, value):
        schemas = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]
        self.assertEqual(sorted(value), sorted(schemas[schema]["properties"]), schema)

    def test_the_ladder_of_the_demo_has_predicted_and_achieved_within_the_bands(self):
        journal = self.server.api("/projects/-/journal")
        self.members("Journal", journal)
        self.assertEqual((journal["job"], journal["run_count"], journal["pending"], journal["next"]), ("ResNet-50", 6, 0, None))
        runs = journal["runs"][::-1]
        self.assertEqual([run["name"][0] for run in runs], list("123456"))
        self.assertIsNone(runs[0]["from_previous"])
        self.assertTrue(runs[0]["is_first"])
        steps = [run["step_mean_ns"] / 1e6 for run in runs]
        for step, told in zip(steps, (750, 371, 300, 269, 245, 230)):
            self.assertAlmostEqual(step, told, delta=1)
        for run in runs[1:]:
            self.members("JournalRun", run)
            change = run["from_previous"]
            self.assertTrue(change["is_one_change"], change["changed"])
            self.assertEqual(change["verdict"], "faster")
            self.assertTrue(change["prediction"]["is_within"], change["prediction"]["text"])
            self.assertAlmostEqual(change["prediction"]["achieved_pct"], -change["step"]["pct"], places=3)
        self.assertEqual([run["from_previous"]["changes"][0]["key"] for run in runs[1:]],
                         ["num_workers", "memory_format", "num_workers", "pin_memory", "non_blocking"])
        self.assertEqual(journal["calibration"]["count"], 5)
        self.assertIn("on this team's 5 tries, predictions were 1.0", journal["calibration"]["text"])
        # the GPU is the limit, and yet a compiler would shorten what it does: the change of the trace's own plan
        self.assertEqual((journal["stop"]["verdict"], journal["next_change"]["finding"]), ("go_on", "unfused-elementwise"))
        self.assertAlmostEqual(journal["saved_pct"], 100 * (1 - 230 / 750), delta=0.1)
        for run in runs:  # the definition, from the parts
            self.assertAlmostEqual(run["gpu_hours_wasted"], run["gpu_hours"] * (1 - run["parts_pct"]["compute"] / 100), delta=1e-6 * run["gpu_hours"] + 1e-12)
            self.assertAlmostEqual(sum(run["parts_pct"].values()), 100, delta=0.01)

    def test_pages_follow_each_other(self):
        whole = [run["trace"] for run in self.server.api("/projects/-/journal")["runs"]]
        first = self.server.api("/projects/-/journal?limit=4")
        second = self.server.api("/projects/-/journal?limit=4&after=" + first["next"])
        self.assertEqual([run["trace"] for run in first["runs"] + second["runs"]], whole)
        self.assertIsNone(second["next"])
        self.assertEqual(self.server.get("/api/v1/projects/-/journal?after=" + "a" * 26).status, 400)
        for query in ("limit=0", "limit=201", "limit=x"):
            self.assertEqual(self.server.get("/api/v1/projects/-/journal?" + query).status, 400, query)
        for route in ("journal", "trends", "series"):
            self.assertEqual(self.server.get("/api/v1/projects/-/" + route, key=False).status, 401)
            empty = self.server.api("/projects/%3Cimg%20src=x%3E/" + route)
            self.assertEqual(empty["project"], "<img src=x>")
            self.assertEqual(empty.get("runs", empty.get("weeks", empty.get("values"))), [])

    def test_a_series_has_its_ideal_line_and_the_part_that_grew(self):
        series = self.server.api("/projects/-/series?setting=num_workers")
        self.members("Series", series)
        self.assertEqual([(value["value"], value["run_count"]) for value in series["values"]], [("2", 1), ("5", 2), ("7", 3)])
        self.assertEqual(series["unit"], "samples")
        self.assertTrue(series["others_vary"])
        first, last = series["values"][0], series["values"][2]
        self.assertAlmostEqual(last["ideal_per_s"], first["throughput_per_s"] * 7 / 2, places=6)
        self.assertEqual(last["grew"]["part"], "exposed_copy")
        self.assertIn("num_workers", [row["setting"] for row in series["varied"]])
        words = self.server.api("/projects/-/series?setting=memory_format")
        self.assertEqual([value["ideal_per_s"] for value in words["values"]], [None, None])
        self.assertEqual(self.server.api("/projects/-/series?setting=nothing'%20OR%201=1")["values"], [])

    def test_weeks_add_up(self):
        trends = self.server.api("/projects/-/trends")
        self.members("Trends", trends)
        journal = self.server.api("/projects/-/journal")
        wasted = sum(run["gpu_hours_wasted"] for run in journal["runs"])
        self.assertAlmostEqual(sum(week["gpu_hours_wasted"] for week in trends["weeks"]), wasted, places=12)
        for week in trends["weeks"]:
            self.assertAlmostEqual(sum(week["parts_gpu_hours"].values()), week["gpu_hours"], places=12)
            for names in (week["people"], week["jobs"]):
                self.assertAlmostEqual(sum(name["gpu_hours"] for name in names), week["gpu_hours"], places=12)
            self.assertEqual(week["jobs"][0]["name"], "ResNet-50")
        self.assertEqual(len(self.server.api("/projects/-/trends?weeks=1")["weeks"]), 1)

    def test_model_flops_used_are_told_of_runs_and_weeks(self):
        for factor in (1, 2):
            trace = self.server.upload(slowed(products_trace(), factor), name=f"products{factor}")
            self.server.wait_ready(trace)
            self.assertEqual(self.patch(trace, {"project": "products"}).status, 200)
        runs = settled(self.server, "/projects/products/journal")["runs"]
        for run in runs:
            told = self.server.api(f"/traces/{run['trace']}/analysis")["efficiency"]["mfu_pct"]
            self.assertAlmostEqual(run["mfu_pct"], told, places=2)
        # 40 products of 2 x 2048^3 operations in 20 ms, of the 989 TFLOP/s of an H100 in bfloat16; half of it in twice the time
        shares = sorted(run["mfu_pct"] for run in runs)
        self.assertAlmostEqual(shares[1], 3.47, delta=0.1)
        self.assertAlmostEqual(shares[0], shares[1] / 2, delta=0.05)
        weeks = self.server.api("/projects/products/trends")["weeks"]
        for sums in (weeks[0], weeks[0]["people"][0], weeks[0]["jobs"][0]):
            # by time: the slower run has twice the hours
            self.assertAlmostEqual(sums["mfu_pct"], shares[1] * 2 / 3, delta=0.05)
            self.assertAlmostEqual(sums["mfu_gpu_hours"], sums["gpu_hours"])
        # the demo records no shapes
        self.assertEqual({run["mfu_pct"] for run in self.server.api("/projects/-/journal")["runs"]}, {None})
        week = self.server.api("/projects/-/trends")["weeks"][0]
        self.assertEqual((week["mfu_pct"], week["mfu_gpu_hours"]), (None, 0))

    def test_a_baseline_flags_what_is_slower(self):
        traces = [run["trace"] for run in self.server.api("/projects/-/journal")["runs"]][::-1]
        self.assertEqual(self.patch(traces[4], {"baseline": True, "pinned": True, "notes": "pinned copies"}).status, 200)
        journal = self.server.api("/projects/-/journal")
        runs = {run["trace"]: run for run in journal["runs"]}
        self.assertEqual(journal["baseline"], traces[4])
        self.assertEqual([runs[traces[4]][key] for key in ("baseline", "pinned", "notes", "regression")], [True, True, "pinned copies", None])
        self.assertIsNone(runs[traces[0]]["regression"])
        self.assertEqual(runs[traces[5]]["regression"]["verdict"], "faster")
        self.assertFalse(runs[traces[5]]["regression"]["same_settings"])
        self.assertGreater(runs[traces[5]]["regression"]["confidence"], 0.975)
        self.assertEqual(self.patch(traces[4], {"baseline": False, "pinned": False}).status, 200)
        journal = self.server.api("/projects/-/journal")
        self.assertIsNone(journal["baseline"])
        self.assertFalse(any(run["pinned"] or run["regression"] for run in journal["runs"]))
        for bad in ({"baseline": 1}, {"pinned": "yes"}, {"pinned": None}):
            self.assertEqual(self.patch(traces[4], bad).status, 400, bad)


class Projects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)

    def test_text_of_traces_stays_text_and_what_goes_is_forgotten(self):
        traces = []
        for steps in (6, 7, 8):
            traces.append(self.server.upload(make_trace(steps=steps), name=f"t{steps}"))
            self.server.wait_ready(traces[-1])
            reply = self.server.request("PATCH", "/api/v1/traces/" + traces[-1], json.dumps({"project": "vision", "notes": MARKUP}).encode())
            self.assertEqual(reply.status, 200)
        settled(self.server, "/projects/vision/journal")
        raw = self.server.get("/api/v1/projects/vision/journal")
        self.assertNotIn(b"<img", raw.body)
        journal = raw.json()
        self.assertEqual([run["trace"] for run in journal["runs"]], traces[::-1])
        self.assertEqual(journal["runs"][0]["notes"], MARKUP)
        self.assertEqual(self.server.api("/projects/-/journal")["runs"], [])
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + traces[1]).status, 204)
        after = settled(self.server, "/projects/vision/journal")
        self.assertEqual([run["trace"] for run in after["runs"]], [traces[2], traces[0]])
        self.assertEqual(after["runs"][0]["from_previous"]["trace"], traces[0])
        if not CATALOG_IS_FILE:
            return
        with sqlite3.connect(os.path.join(self.server.data, "catalog.db")) as catalog:
            for table, column in (("figures", "trace"), ("figure_settings", "trace"), ("neighbors", "a"), ("neighbors", "b")):
                left = catalog.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", (traces[1],)).fetchone()
                self.assertEqual(left, (0,), table)

    def test_a_regression_is_what_stays_and_ends_with_the_run_that_is_as_fast_as_before(self):
        traces = []
        for number, factor in enumerate((1, 1, 1, 1, 1.04, 1.04, 1.04, 1)):
            traces.append(self.server.upload(slowed(make_trace(steps=10, filler=number), factor), name=f"night{number}"))
            self.server.wait_ready(traces[-1])
            self.assertEqual(self.server.request("PATCH", "/api/v1/traces/" + traces[-1], b'{"project": "nightly"}').status, 200)
        self.assertEqual(self.server.request("PATCH", "/api/v1/traces/" + traces[2], b'{"baseline": true}').status, 200)
        runs = {run["trace"]: run["regression"] for run in settled(self.server, "/projects/nightly/journal")["runs"]}
        self.assertEqual([runs[trace] for trace in traces[:3]], [None] * 3)
        self.assertEqual([runs[trace]["verdict"] for trace in traces[3:]], ["none", "slower", "slower", "slower", "none"])
        lasting = [runs[trace]["lasting"] for trace in traces[3:]]
        self.assertEqual([it and it["run_count"] for it in lasting], [None, None, 2, 3, None])  # of one run alone: not yet
        self.assertEqual(runs[traces[3]]["baseline_count"], 3)  # two runs before the baseline are like it
        for it in lasting[2:4]:
            self.assertAlmostEqual(it["change_pct"], 4, delta=0.01)
            self.assertGreater(it["confidence"], 0.999)

    def test_what_is_old_goes_its_upload_first_and_what_is_pinned_stays(self):
        traces = []
        for kernels in (3, 4, 5):
            traces.append(self.server.upload(make_trace(steps=4, kernels=kernels), name=f"old{kernels}"))
            self.server.wait_ready(traces[-1])
        self.server.request("PATCH", "/api/v1/traces/" + traces[0], b'{"pinned": true}')
        self.server.request("PATCH", "/api/v1/traces/" + traces[1], b'{"project": "kept", "baseline": true}')
        expire = lambda *flags: subprocess.run([PROGRAM, "admin", "expire", "--data", self.server.data, *flags], capture_output=True, text=True)
        kept = lambda kind: {name.split(".")[0] for name in os.listdir(os.path.join(self.server.data, kind))}
        self.assertTrue(kept("originals") >= set(traces))
        self.assertEqual([expire().returncode, expire("--traces", "x").returncode, expire("--traces", "-1").returncode], [2, 2, 2])
        self.assertIn("0 originals and 0 traces", expire("--traces", "1", "--originals", "1").stdout)
        told = expire("--originals", "0", "--traces", "0", "--dry-run")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("trace " + traces[2], told.stdout)
        self.assertNotIn(traces[0], told.stdout)
        self.assertNotIn(traces[1], told.stdout)
        self.assertTrue(kept("originals") >= set(traces) and kept("traces") >= set(traces))
        self.assertEqual(expire("--originals", "0").returncode, 0)
        self.assertEqual(kept("originals") & set(traces), {traces[0], traces[1]})
        self.assertEqual(self.server.api("/traces/" + traces[2])["state"], "ready")
        self.assertEqual(len(self.server.api(f"/traces/{traces[2]}/kernels")["kernels"]) > 0, True)
        self.server.terminate()  # a start that compares rows and files finds nothing to say
        self.assertEqual(subprocess.run([PROGRAM, "admin", "verify", "--data", self.server.data], capture_output=True).returncode, 0)
        repaired = subprocess.run([PROGRAM, "admin", "repair", "--data", self.server.data], capture_output=True, text=True)
        self.assertEqual((repaired.returncode, repaired.stdout), (0, "nothing to repair\n"))
        self.server.start()
        self.assertEqual(expire("--traces", "0").returncode, 0)
        said = [row["object"] for row in self.server.api("/audit?limit=1000")["audit"] if (row["actor"], row["action"]) == ("local", "expire")]
        self.assertTrue(said and all(line.split()[0] in ("trace", "original") for line in said), said)
        self.assertEqual(self.server.get("/api/v1/traces/" + traces[2]).status, 404)
        self.assertEqual({self.server.api("/traces/" + trace)["state"] for trace in traces[:2]}, {"ready"})


if __name__ == "__main__":
    main()
