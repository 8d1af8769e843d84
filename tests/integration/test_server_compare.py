#!/usr/bin/env python3
"""Comparisons and reports over HTTP: what they say, who may ask, under which policy a report comes.

Two pairs of the simulated series are compared; with LACUNA_SOAK=1 two more.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server_harness import PROGRAM, ROOT, SOAK, Server, main, make_trace
from test_server_runs import archive

sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402

RANK_SEEDS = (40001, 40002)  # of two ranks each


def simulated_ranks(seed):
    """(name, content) of the file of each rank."""
    with kept.loop(seed, "--causes", "one", "--ranks") as (paths, _):
        return [(os.path.basename(path), Path(path).read_bytes()) for path in paths]


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn")
        cls.folder = tempfile.TemporaryDirectory()
        cls.series = [Path(path) for path in kept.demo()]
        cls.files = cls.series[:2]
        cls.ids = [cls.server.upload(path.read_bytes(), path.stem) for path in cls.files]
        for trace in cls.ids:
            cls.server.wait_ready(trace)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def test_a_comparison_says_what_the_command_says(self):
        a, b = self.ids
        document = self.server.api(f"/compare?a={a}&b={b}")
        done = kept.ask("compare", *map(str, self.files), "--json")
        printed = json.loads(done.stdout)
        self.assertEqual([document["a"]["id"], document["b"]["id"]], [a, b])
        for side in "ab":
            document[side]["id"] = None
        self.assertEqual(document, printed)
        schema = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]["Comparison"]
        self.assertEqual(sorted(document), sorted(name for name, member in schema["properties"].items() if "left out" not in member.get("description", "")))

    def test_every_step_of_a_series_compares_as_the_command_compares_it(self):
        # another number of workers than was advised: its prediction is not the one of the advice
        other = Path(self.folder.name) / "four-workers.json"
        other.write_text(self.files[1].read_text().replace('"num_workers":5', '"num_workers":4', 1))
        files = [*(self.series[2:5:2] if SOAK else ()), self.series[5], self.files[0], other]
        ids = [self.ids[0] if path == self.files[0] else self.server.upload(path.read_bytes(), path.stem) for path in files]
        for trace in ids:
            self.server.wait_ready(trace)
        for i in range(len(files) - 1):
            document = self.server.api(f"/compare?a={ids[i]}&b={ids[i + 1]}")
            done = kept.ask("compare", str(files[i]), str(files[i + 1]), "--json")
            for side in "ab":
                document[side]["id"] = None
            self.assertEqual(document, json.loads(done.stdout), files[i])
        self.assertEqual(document["predicted"]["change"], "num_workers=4")

    def test_what_the_import_kept_is_enough(self):
        """Models do not fit into memory: what is compared and reported is read, not made again."""
        server = Server("--model-cache", "20000")
        try:
            ids = [server.upload(path.read_bytes(), path.stem) for path in self.files]
            for trace in ids:
                server.wait_ready(trace)
            self.assertEqual(server.get(f"/api/v1/traces/{ids[0]}/flame?by=kernel").status, 413)
            document = server.api(f"/compare?a={ids[0]}&b={ids[1]}")
            expected = self.server.api(f"/compare?a={self.ids[0]}&b={self.ids[1]}")
            for side in "ab":
                document[side]["id"] = expected[side]["id"] = None
            self.assertEqual(document, expected)
            report = server.get(f"/api/v1/traces/{ids[0]}/report?format=markdown", headers={"Accept-Encoding": "identity"})
            self.assertEqual(report.body, self.server.get(f"/api/v1/traces/{self.ids[0]}/report?format=markdown", headers={"Accept-Encoding": "identity"}).body)
        finally:
            server.close()

    def test_traces_of_an_older_program_compare_and_report(self):
        """Version 2 kept nothing for that: it is made of the trace."""
        old = "m63dmhrv6t6p4igzu2hbfofbqy"
        with tempfile.TemporaryDirectory() as data:
            (Path(data) / "traces").mkdir()
            shutil.copy(Path(__file__).parents[1] / "unit" / "data" / "trace_v2.db", Path(data) / "traces" / (old + ".db"))
            server = Server(data=data)
            try:
                new = server.upload(self.files[0].read_bytes(), "new")
                server.wait_ready(new)
                for _ in range(2):
                    document = server.api(f"/compare?a={old}&b={new}")
                self.assertEqual((document["a"]["steps"], document["a"]["kept_steps"], document["a"]["batch_size"]), (12, 10, 64))
                self.assertEqual(document["refusal"], "different_programs")
                self.assertEqual(server.api(f"/traces/{old}/analysis")["settings"]["optimizer"]["betas"], [0.9, 0.999])
                self.assertEqual(server.api(f"/compare?a={old}&b={old}")["verdict"], "same")
                report = server.get(f"/api/v1/traces/{old}/report", headers={"Accept-Encoding": "identity"}).body.decode()
                self.assertIn("<svg role=\"img\" aria-label=\"timeline\"", report)
                self.assertIn("optimizer.name", report)
                done = subprocess.run([PROGRAM, "admin", "verify", "--data", data], capture_output=True, timeout=120)
                self.assertNotIn(b"traces/", done.stdout + done.stderr)  # its original was not copied
            finally:
                server.close()

    def test_wrong_questions_are_refused(self):
        a = self.ids[0]
        for query, status in (("", 400), (f"?a={a}", 400), (f"?a={a}&b=x", 404), (f"?a={'a' * 26}&b={a}", 404)):
            self.assertEqual(self.server.get("/api/v1/compare" + query).status, status, query)
        for query in ("?format=pdf", "?redact=faces", "?redact=hosts,,x"):
            self.assertEqual(self.server.get(f"/api/v1/traces/{a}/report{query}").status, 400, query)
        self.assertEqual(self.server.get(f"/api/v1/compare?a={a}&b={a}", key=False).status, 401)
        self.assertEqual(self.server.get(f"/api/v1/traces/{a}/report", key=False).status, 401)

    def test_an_unchanged_comparison_is_not_sent_again(self):
        a, b = self.ids
        path = f"/api/v1/compare?a={a}&b={b}"
        reply = self.server.get(path)
        self.assertEqual(self.server.get(path, headers={"If-None-Match": reply.headers["ETag"]}).status, 304)

    def test_a_report_is_what_the_command_writes_under_a_policy_of_its_own(self):
        reply = self.server.get(f"/api/v1/traces/{self.ids[0]}/report?format=html", headers={"Accept-Encoding": "identity"})
        self.assertEqual(reply.body.decode(), kept.ask("export", str(self.files[0]), "--to", "html").stdout)
        policies = [value for name, value in reply.headers.items() if name.lower() == "content-security-policy"]
        self.assertEqual(len(policies), 1)
        self.assertTrue(policies[0].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:"), policies)
        self.assertNotIn("script", policies[0])
        self.assertIn("attachment", reply.headers["Content-Disposition"])
        self.assertEqual(reply.headers["Content-Type"], "text/html; charset=utf-8")
        markdown = self.server.get(f"/api/v1/traces/{self.ids[0]}/report?format=markdown", headers={"Accept-Encoding": "identity"})
        self.assertIn(b"num_workers=5", markdown.body)

    def test_what_a_report_tells_can_be_asked_and_left_out(self):
        contains = {row["kind"]: row for row in self.server.api(f"/traces/{self.ids[0]}/report?format=contents")["contains"]}
        self.assertEqual(sorted(contains), ["argv", "hosts", "names", "paths", "users"])
        self.assertEqual(contains["argv"]["items"], ["python train.py"])
        self.assertIn("1-two-workers", contains["names"]["items"])
        body = self.server.get(f"/api/v1/traces/{self.ids[0]}/report?redact=argv,names", headers={"Accept-Encoding": "identity"}).body
        self.assertNotIn(b"train.py</dd>", body)
        self.assertNotIn(b"two-workers", body)

    def test_a_trace_under_way_has_neither(self):
        broken = self.server.upload(b"not a trace at all", "broken")
        for _ in range(200):
            if self.server.api("/traces/" + broken)["state"] == "failed":
                break
        for path in (f"/compare?a={broken}&b={self.ids[0]}", f"/traces/{broken}/report"):
            self.assertEqual(self.server.get("/api/v1" + path).status, 409, path)

    def run_of(self, seed, ranks):
        first = self.server.upload(archive(ranks), f"ranks{seed}.tar")
        return self.server.wait_ready(first)["run"]

    def test_runs_compare_as_the_command_compares_their_folders(self):
        both = [simulated_ranks(seed) for seed in RANK_SEEDS]
        ids = [self.run_of(seed, ranks) for seed, ranks in zip(RANK_SEEDS, both)]
        path = f"/compare?a={ids[0]}&b={ids[1]}"
        document = self.server.api(path)
        with tempfile.TemporaryDirectory() as scratch:
            folders = [Path(scratch) / "a", Path(scratch) / "b"]
            for folder, ranks in zip(folders, both):
                folder.mkdir()
                for name, body in ranks:
                    (folder / name).write_bytes(body)
            done = subprocess.run([PROGRAM, "compare", *map(str, folders), "--json"], capture_output=True, check=True, timeout=120)
        for side, run in zip("ab", ids):
            lowest = min(self.server.api("/traces?run=" + run)["traces"], key=lambda trace: trace["rank"])
            self.assertEqual(document[side]["id"], lowest["id"])
            self.assertEqual(document["ranks"][side]["late_rank"], self.server.api(f"/runs/{run}/analysis?detail=brief")["late_rank"])
            document[side]["id"] = None
        self.assertEqual(document, json.loads(done.stdout))
        self.assertGreaterEqual(len(document["ranks"]["shared"]), 2)
        reply = self.server.get("/api/v1" + path)
        self.assertEqual(self.server.get("/api/v1" + path, headers={"If-None-Match": reply.headers["ETag"]}).status, 304)
        again = self.server.get("/api/v1" + path)
        self.assertEqual((again.body, again.headers["ETag"]), (reply.body, reply.headers["ETag"]))
        for query in (f"?a={ids[0]}&b={self.ids[0]}", f"?a={self.ids[0]}&b={ids[0]}"):
            mixed = self.server.get("/api/v1/compare" + query)
            self.assertEqual(mixed.status, 400, query)
            self.assertIn("one of these is a run", mixed.json()["error"]["message"])

    def cpu_ns(self):
        """What the server's threads have worked so far."""
        pid = self.server.process.pid
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        return total

    def test_a_comparison_is_made_once_until_a_trace_goes(self):
        runs = [self.run_of(seed, simulated_ranks(seed)) for seed in reversed(RANK_SEEDS)]
        path = f"/compare?a={runs[0]}&b={runs[1]}"
        before = self.cpu_ns()
        first = self.server.api(path)
        first_ns = self.cpu_ns() - before
        for _ in range(3):
            self.assertEqual(self.server.api(path), first)
        # work, not time: three replies from what is kept are less than making it once
        self.assertLess(self.cpu_ns() - before - first_ns, first_ns)
        ranks = self.server.api("/traces?run=" + runs[0])["traces"]
        gone = max(ranks, key=lambda trace: trace["rank"])["id"]
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + gone).status, 204)
        less = self.server.api(path)
        self.assertNotEqual(less["ranks"], first["ranks"])

    def test_short_traces_compare_without_a_claim(self):
        short = self.server.upload(make_trace(2, 3), "short")
        self.server.wait_ready(short)
        document = self.server.api(f"/compare?a={short}&b={self.ids[0]}")
        self.assertIn(document["verdict"], ("unknown", "too_few"))
        self.assertIsNone(document["predicted"])


if __name__ == "__main__":
    main()
