#!/usr/bin/env python3
"""Runs: traces that came as one archive, and traces that say that they belong together."""
import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, main, make_trace

SIMULATOR = os.path.join(ROOT, "build/release/simulator")
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import sharded_run  # noqa: E402
from real_traces import NONE, real_traces  # noqa: E402

DLRM = os.path.join(real_traces(), "param/dlrm_kineto.tar.gz")


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, body in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def simulated_ranks(seed):
    """The rank files of one random run, and its truth."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([SIMULATOR, folder, "--seed", str(seed), "--ranks"], check=True)
        read = {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))}
    return [(name, body) for name, body in read.items() if "truth" not in name]


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn")
        cls.ranks = simulated_ranks(40)
        first = cls.server.upload(archive(cls.ranks), "two%20ranks.tar.gz")
        cls.run_id = cls.server.wait_ready(first)["run"]
        cls.single = cls.server.upload(make_trace(2, 3), "alone")
        cls.server.wait_ready(cls.single)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def refused(self, path, status, code):
        reply = self.server.get("/api/v1" + path)
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (status, code), path)

    def test_an_archive_of_ranks_is_one_run(self):
        run = self.server.api("/runs/" + self.run_id)
        self.assertEqual((run["name"], run["trace_count"], run["ready_count"], run["failed_count"]), ("two ranks.tar.gz", len(self.ranks), len(self.ranks), 0))
        listed = self.server.api("/runs")["runs"]
        self.assertIn(run, listed)
        traces = self.server.api("/traces?run=" + self.run_id)["traces"]
        self.assertEqual({trace["run"] for trace in traces}, {self.run_id})
        self.assertEqual(len(traces), len(self.ranks))
        self.assertIsNone(self.server.api("/traces/" + self.single)["run"])

    def test_the_import_keeps_what_the_comparison_needs(self):
        for trace in self.server.api("/traces?run=" + self.run_id)["traces"]:
            with contextlib.closing(sqlite3.connect(f"file:{self.server.data}/traces/{trace['id']}.db?mode=ro&immutable=1", uri=True)) as file:
                kept = {name for (name,) in file.execute("SELECT name FROM document")}
            self.assertIn("rank-table", kept)

    def test_the_comparison_is_that_of_the_command_line(self):
        served = self.server.api(f"/runs/{self.run_id}/analysis")
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, body in self.ranks:
                paths.append(os.path.join(folder, name))
                open(paths[-1], "wb").write(body)
            told = json.loads(subprocess.run([PROGRAM, "analyze", "--json", *paths], check=True, stdout=subprocess.PIPE).stdout)
        self.assertEqual(served["schema"], "lacuna.run/1")
        for key in ("collectives_matched", "late_rank", "findings", "note"):
            self.assertEqual(served[key], told[key], key)
        traces = {trace["id"] for trace in self.server.api("/traces?run=" + self.run_id)["traces"]}
        for mine, theirs in zip(served["ranks"], told["ranks"], strict=True):
            self.assertIn(mine.pop("trace"), traces)
            self.assertEqual(mine, theirs)

    def test_brief_leaves_the_analyses_out_and_nothing_else(self):
        full = self.server.api(f"/runs/{self.run_id}/analysis")
        brief = self.server.api(f"/runs/{self.run_id}/analysis?detail=brief")
        for rank in full["ranks"]:
            del rank["analysis"]
        self.assertEqual(brief, full)
        self.refused(f"/runs/{self.run_id}/analysis?detail=some", 400, "bad_request")

    def test_what_was_told_is_told_by_its_tag(self):
        reply = self.server.get(f"/api/v1/runs/{self.run_id}/analysis?detail=brief")
        again = self.server.get(f"/api/v1/runs/{self.run_id}/analysis?detail=brief", headers={"If-None-Match": reply.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        full = self.server.get(f"/api/v1/runs/{self.run_id}/analysis")
        self.assertNotEqual(full.headers["ETag"], reply.headers["ETag"])

    def test_runs_that_are_not_there(self):
        self.refused("/runs/" + "a" * 26, 404, "not_found")
        self.refused("/runs/short", 404, "not_found")
        self.refused("/runs/" + "a" * 26 + "/analysis", 404, "not_found")
        self.refused("/runs?after=nonsense", 400, "bad_request")
        self.refused("/runs?limit=0", 400, "bad_request")

    def test_a_run_changes_with_its_traces_and_goes_with_the_last(self):
        first = self.server.upload(archive(self.ranks + [("broken.json", b'{"traceEvents": [')]), "shrinking.tar")
        row = self.server.wait_ready(first)
        run = row["run"]
        before = self.server.get(f"/api/v1/runs/{run}/analysis?detail=brief")
        traces = [trace["id"] for trace in self.server.api("/traces?run=" + run)["traces"] if trace["state"] == "ready"]
        self.assertEqual(len(before.json()["ranks"]), len(traces))
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + traces[0]).status, 204)
        after = self.server.get(f"/api/v1/runs/{run}/analysis?detail=brief", headers={"If-None-Match": before.headers["ETag"]})
        self.assertEqual(after.status, 200)
        self.assertEqual(len(after.json()["ranks"]), len(traces) - 1)
        for trace in traces[1:]:
            self.server.request("DELETE", "/api/v1/traces/" + trace)
        self.refused("/runs/" + run, 404, "not_found")
        self.assertNotIn(run, [other["id"] for other in self.server.api("/runs")["runs"]])

    def join(self, server, **body):
        return server.request("POST", "/api/v1/runs", body=json.dumps(body))

    def test_traces_that_came_one_by_one_are_put_into_a_run_and_taken_out_again(self):
        with tempfile.TemporaryDirectory() as data:
            server = Server("--log-level", "warn", data=data)
            traces = [server.upload(body, name) for name, body in self.ranks]
            for trace in traces:
                self.assertIsNone(server.wait_ready(trace)["run"])
            reply = self.join(server, name="both", traces=traces)
            self.assertEqual(reply.status, 201, reply.body[:300])
            run = reply.json()
            self.assertEqual((run["name"], run["trace_count"], run["ready_count"]), ("both", len(traces), len(traces)))
            self.assertEqual(reply.headers["Location"], "/api/v1/runs/" + run["id"])
            analysis = server.api(f"/runs/{run['id']}/analysis")
            archived = self.server.api(f"/runs/{self.run_id}/analysis")
            self.assertEqual([finding["id"] for finding in analysis["findings"]], [finding["id"] for finding in archived["findings"]])
            self.assertEqual(analysis["collectives_matched"], archived["collectives_matched"])
            # a run of others leaves the first one, which goes with its last trace
            self.assertEqual(self.join(server, name="again", traces=traces).status, 201)
            self.assertEqual([other["name"] for other in server.api("/runs")["runs"]], ["again"])
            run = server.api("/runs")["runs"][0]
            self.assertEqual(sorted(trace["id"] for trace in server.api("/traces?run=" + run["id"])["traces"]), sorted(traces))
            server.close()
            server = Server("--log-level", "error", data=data) # no file contradicts it
            self.assertEqual([(other["id"], other["name"], other["trace_count"]) for other in server.api("/runs")["runs"]], [(run["id"], "again", len(traces))])
            self.assertEqual(server.request("DELETE", "/api/v1/runs/" + run["id"]).status, 204)
            self.assertEqual(server.api("/runs")["runs"], [])
            self.assertEqual([trace["run"] for trace in server.api("/traces")["traces"]], [None] * len(traces))
            self.assertEqual(server.request("DELETE", "/api/v1/runs/" + run["id"]).status, 404)
            server.close()

    def test_what_cannot_be_a_run_is_refused(self):
        other = self.server.upload(make_trace(2, 3), "elsewhere&project=other")
        self.server.wait_ready(other)
        for body, status in (({"name": "x", "traces": [self.single]}, 400), ({"name": "x", "traces": [self.single, self.single]}, 400),
                             ({"name": "", "traces": [self.single, other]}, 400), ({"name": "a\nb", "traces": [self.single, other]}, 400),
                             ({"traces": [self.single, other]}, 400), ({"name": "x", "traces": "all"}, 400), ({"name": "x", "traces": [self.single, "<id>"]}, 400),
                             ({"name": "x", "traces": [self.single, "a" * 26]}, 404), ({"name": "x", "traces": [self.single, other]}, 409)):
            reply = self.join(self.server, **body)
            self.assertEqual(reply.status, status, (body, reply.body[:200]))
            self.assertTrue(reply.json()["error"]["message"])
        self.assertIsNone(self.server.api("/traces/" + self.single)["run"])
        self.assertEqual(self.server.request("POST", "/api/v1/runs", body=json.dumps({"name": "x", "traces": [self.single, other]}), key=False).status, 401)
        self.server.request("DELETE", "/api/v1/traces/" + other)

    def test_lists_go_page_by_page(self):
        for i in range(3):
            self.server.wait_ready(self.server.upload(archive([(f"r{k}.json", make_trace(2, 3)) for k in range(2)]), f"page{i}"))
        everything = [run["id"] for run in self.server.api("/runs")["runs"]]
        seen, after = [], ""
        while True:
            page = self.server.api("/runs?limit=2" + after)
            seen += [run["id"] for run in page["runs"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        self.assertEqual(seen, everything)
        self.assertGreaterEqual(len(seen), 4)

    def test_many_ranks_in_one_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [(os.path.basename(path), open(path, "rb").read()) for path in sharded_run.write(folder, 4, late=2, steps=3)]
        run = self.server.wait_ready(self.server.upload(archive(files), "sharded.tar.gz"))["run"]
        traces = sorted(self.server.api("/traces?run=" + run)["traces"], key=lambda trace: trace["rank"])
        for trace in traces:
            self.server.wait_ready(trace["id"])
        strips = self.server.api(f"/runs/{run}/strips?points=50")
        self.assertEqual([rank["trace"] for rank in strips["ranks"]], [trace["id"] for trace in traces])
        for rank, trace in zip(strips["ranks"], traces, strict=True):
            self.assertEqual(rank["clock"], "collectives")
            device = self.server.api(f"/traces/{trace['id']}/analysis")["devices"][0]
            for part, told in rank["work"].items():
                self.assertAlmostEqual(told["total_ns"], device["partition_ns"][part], delta=device["span_ns"] / 50, msg=part)
                self.assertEqual(len(told["parts"]), 50)
            for i in range(50):
                self.assertLessEqual(sum(told["parts"][i] for told in [*rank["work"].values(), *rank["waiting"].values()]), 1004)
        # half of the picture beside the other half is the whole
        middle = strips["duration_ns"] // 2
        halves = [self.server.api(f"/runs/{run}/strips?t0={a}&t1={b}&points=100") for a, b in ((0, middle), (middle, strips["duration_ns"]))]
        for whole, left, right in zip(strips["ranks"], *(half["ranks"] for half in halves), strict=True):
            both = left["work"]["compute"]["total_ns"] + right["work"]["compute"]["total_ns"]
            self.assertAlmostEqual(both, whole["work"]["compute"]["total_ns"], delta=whole["duration_ns"] / 100)
        # a rank alone says the same, on its own clock
        rank = strips["ranks"][2]
        alone = self.server.api(f"/traces/{rank['trace']}/strip?points=50&t0={-rank['offset_ns']}&t1={strips['duration_ns'] - rank['offset_ns']}")
        self.assertEqual({key: alone[key] for key in ("device", "work", "waiting")}, {key: rank[key] for key in ("device", "work", "waiting")})
        met = self.server.api(f"/runs/{run}/collectives")
        self.assertEqual(met["total"], len(met["collectives"]))
        latest = max(met["collectives"], key=lambda collective: collective["late_ns"])
        self.assertEqual((latest["last"], latest["ranks"]), (2, [0, 1, 2, 3]))
        for collective in met["collectives"]:
            for start, dur in zip(collective["start_ns"], collective["dur_ns"], strict=True):
                self.assertAlmostEqual(start + dur, collective["end_ns"], delta=1000)
        one = self.server.api(f"/runs/{run}/collectives?limit=1")
        self.assertEqual((one["total"], one["collectives"]), (met["total"], [latest]))
        reply = self.server.get(f"/api/v1/runs/{run}/strips?points=50")
        self.assertEqual(self.server.get(f"/api/v1/runs/{run}/strips?points=50", headers={"If-None-Match": reply.headers["ETag"]}).status, 304)
        for query in ("strips?t0=5&t1=5", "strips?points=0", "strips?points=2001", "strips?t0=-1", "collectives?limit=-1", "collectives?t0=9&t1=3"):
            self.refused(f"/runs/{run}/{query}", 400, "bad_request")
        self.refused(f"/traces/{rank['trace']}/strip?t0=5&t1=5", 400, "bad_request")
        self.assertIsNone(self.server.api(f"/traces/{rank['trace']}/strip?device=99")["work"])
        self.assertIsNone(self.server.api(f"/traces/{rank['trace']}/strip?device=99")["kinds"])
        kinds = self.server.api(f"/traces/{rank['trace']}/strip?points=40")
        self.assertGreater(len(kinds["kinds"]), 1)
        self.assertEqual(sum(kind["total_ns"] for kind in kinds["kinds"].values()), kinds["work"]["compute"]["total_ns"])
        for part in range(40):
            self.assertAlmostEqual(sum(kind["parts"][part] for kind in kinds["kinds"].values()), kinds["work"]["compute"]["parts"][part], delta=3)
        self.refused("/runs/" + "a" * 26 + "/strips", 404, "not_found")
        self.refused("/runs/short/collectives", 404, "not_found")

    @unittest.skipUnless(os.path.exists(DLRM), f"{NONE}: runs are not tried on the archive of eight ranks")
    def test_eight_ranks_of_an_archive(self):
        first = self.server.upload(open(DLRM, "rb").read(), "dlrm_kineto.tar.gz")
        run = self.server.wait_ready(first)["run"]
        analysis = self.server.api(f"/runs/{run}/analysis?detail=brief")
        self.assertEqual([rank["rank"] for rank in analysis["ranks"]], list(range(8)))
        self.assertEqual(analysis["collectives_matched"], 8)
        least = min(analysis["ranks"], key=lambda rank: rank["collective_wait_ns"])
        self.assertEqual(analysis["late_rank"], least["rank"])
        self.assertEqual([finding["id"] for finding in analysis["findings"]], ["straggler-rank"])


if __name__ == "__main__":
    main()
