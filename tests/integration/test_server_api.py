#!/usr/bin/env python3
"""Every route of the API on a trace whose content is known, and the description of the API against the route table."""
import gzip
import json
import marshal
import os
import re
import struct
import sys
import unittest

from server_harness import MARKUP, ROOT, Server, main, make_trace

STEPS, KERNELS = 4, 40
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from real_traces import NONE, real_traces  # noqa: E402

GPU = os.path.join(real_traces(), "kineto/gpu_metrics_input.json")


def expand(reply):
    return gzip.decompress(reply.body) if reply.headers["Content-Encoding"] == "gzip" else reply.body


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn")
        cls.body = make_trace(STEPS, KERNELS)
        cls.id = cls.server.upload(cls.body, "my%20" + "%3Cimg%20src=x%3E")
        cls.row = cls.server.wait_ready(cls.id)
        cls.base = "/traces/" + cls.id

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def get(self, path):
        return self.server.api(self.base + path)

    def refused(self, path, status, code=None):
        reply = self.server.get("/api/v1" + path)
        self.assertEqual(reply.status, status, (path, reply.body[:200]))
        error = reply.json()["error"]
        self.assertTrue(error["message"])
        if code:
            self.assertEqual(error["code"], code)
        return error

    # -- traces

    def test_a_trace_says_what_it_is(self):
        row = self.row
        self.assertEqual(row["state"], "ready", row)
        self.assertEqual(row["name"], "my <img src=x>")
        self.assertRegex(row["id"], r"^[a-z2-7]{26}$")
        self.assertRegex(row["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(row["size_bytes"], len(self.body))
        import hashlib
        self.assertEqual(row["sha256"], hashlib.sha256(self.body).hexdigest())
        document = json.loads(self.body)
        self.assertEqual(row["event_count"], len(document["traceEvents"]))
        self.assertEqual(row["slice_count"], sum(e["ph"] == "X" for e in document["traceEvents"]))
        self.assertEqual((row["format"], row["generation"], row["device_count"]), ("kineto", 1, 1))
        self.assertEqual(row["device_names"], ["Test GPU"])
        self.assertIsNone(row["error"])
        self.assertIsNone(row["progress"])
        self.assertEqual(int(row["t0_ns"]), 1000000)
        self.assertEqual(row["import_report"]["dropped_count"], 0)
        for name in ("cause", "letter", "text", "step_mean_ns", "throughput_per_s", "not_computing_pct", "next_change", "gain_mid_pct", "finding_id"):
            self.assertIn(name, row["summary"])

    def test_a_trace_says_what_it_trains(self):
        self.assertIsNone(self.row["summary"]["model"])
        document = json.loads(self.body)
        document["lacuna"] = {"settings": {"model": "ResNet-50"}}
        trace = self.server.upload(json.dumps(document).encode(), "trains")
        self.assertEqual(self.server.wait_ready(trace)["summary"]["model"], "ResNet-50")
        listed = {row["id"]: row["summary"]["model"] for row in self.server.api("/traces")["traces"] if row["summary"]}
        self.assertEqual((listed[trace], listed[self.id]), ("ResNet-50", None))
        self.server.request("DELETE", "/api/v1/traces/" + trace)

    def test_lists_go_page_by_page_newest_first(self):
        ids = [self.server.upload(make_trace(2, 3), f"page{i}") for i in range(5)]
        for trace in ids:
            self.server.wait_ready(trace)
        seen, after = [], ""
        while True:
            page = self.server.api("/traces?limit=2&q=PAGE" + after)
            self.assertLessEqual(len(page["traces"]), 2)
            seen += [row["id"] for row in page["traces"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        self.assertEqual(seen, ids[::-1])
        for trace in ids:
            self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + trace).status, 204)
            self.refused("/traces/" + trace, 404, "not_found")
        self.refused("/traces?limit=0", 400)
        self.refused("/traces?limit=x", 400)
        self.refused("/traces?after=%21%21", 400)

    def test_unknown_traces_are_404_everywhere(self):
        for trace in ("a" * 26, "nonsense", "a" * 27, "A" * 26, "..%2f", "a'--"):
            for rest in ("", "/analysis", "/tracks", "/names", "/search?q=x", "/kernels", "/gaps", "/flame", "/slices/1", "/slices?track=0"):
                reply = self.server.get(f"/api/v1/traces/{trace}{rest}")
                self.assertIn(reply.status, (400, 404), (trace, rest))
                self.assertIn("error", reply.json())

    def test_an_upload_that_is_no_trace_fails_with_a_reason(self):
        for body in (b"this is no trace", b"{}", b"\x00" * 1000, b"{" * 100000, b'{"traceEvents": 5}'):
            trace = self.server.upload(body)
            row = self.server.wait_ready(trace)
            if row["state"] == "ready":
                self.assertEqual(row["slice_count"], 0, row)
            else:
                self.assertTrue(row["error"]["code"] and row["error"]["message"], row)
                self.refused(f"/traces/{trace}/analysis", 409, "import_failed")
            self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + trace).status, 204)

    def test_a_reason_is_told_to_its_end(self):
        """As on the command line: it was cut after 96 bytes, before what to do."""
        row = self.server.wait_ready(self.server.upload(b"no trace at all, of no format that is known", "long"))
        self.assertRegex(row["error"]["message"], r"^unknown format; what is read: .*, and more: lacuna import --help$")

    def test_compressed_and_chunked_uploads_are_the_same_trace(self):
        packed = gzip.compress(self.body)
        trace = self.server.upload(packed, "packed")
        row = self.server.wait_ready(trace)
        self.assertEqual((row["slice_count"], row["size_bytes"]), (self.row["slice_count"], len(packed)))
        import http.client
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        connection.request("POST", "/api/v1/traces?name=chunked", body=iter([self.body[i:i + 7000] for i in range(0, len(self.body), 7000)]),
                           headers={"Authorization": "Bearer " + self.server.key}, encode_chunked=True)
        response = connection.getresponse()
        self.assertEqual(response.status, 201)
        chunked = json.loads(response.read())["id"]
        self.assertEqual(response.headers["Location"], "/api/v1/traces/" + chunked)
        connection.close()
        self.assertEqual(self.server.wait_ready(chunked)["sha256"], self.row["sha256"])
        for one in (trace, chunked):
            self.server.request("DELETE", "/api/v1/traces/" + one)

    def test_reuse_answers_with_the_trace_that_is_there(self):
        first = self.server.upload(self.body, "again")
        self.server.wait_ready(first)
        reply = self.server.request("POST", "/api/v1/traces?name=again&reuse=1", body=self.body)
        self.assertEqual((reply.status, reply.json()["id"]), (200, first))
        self.server.request("DELETE", "/api/v1/traces/" + first)

    def test_the_analysis_is_the_fixed_document(self):
        analysis = self.get("/analysis")
        self.assertEqual(analysis["schema"], "lacuna.analysis/1")
        self.assertEqual(analysis["kernels"]["count"], STEPS * KERNELS)
        self.assertEqual(analysis["steps"]["count"], STEPS)
        device = analysis["devices"][0]
        self.assertEqual(sum(device["idle_by_cause_ns"].values()), device["idle_ns"])
        self.assertEqual(sum(device["partition_ns"].values()), device["span_ns"])
        area = self.get("/area?t0=0&t1=%d" % (2**53 - 1))["devices"][0]
        self.assertEqual(area["computing_ns"], device["partition_ns"]["compute"])

    # -- timeline

    def test_tracks_processes_devices_and_steps(self):
        tracks = self.get("/tracks")
        self.assertEqual((tracks["generation"], tracks["cells_per_tile"]), (1, 512))
        kinds = [track["kind"] for track in tracks["tracks"]]
        for kind in ("thread", "stream", "counter", "steps", "gaps"):
            self.assertIn(kind, kinds)
        self.assertEqual([track["index"] for track in tracks["tracks"]], list(range(len(kinds))))
        self.assertIn("python " + MARKUP, [process["name"] for process in tracks["processes"]])
        self.assertEqual(tracks["devices"][0]["compute_capability"], "8.0")
        self.assertEqual(tracks["devices"][0]["sm_count"], 108)
        self.assertEqual(len(tracks["steps"]["start_ns"]), STEPS)
        self.assertEqual(tracks["steps"]["dur_ns"][:-1], [20000000] * (STEPS - 1))  # from kernel to kernel
        self.assertEqual(tracks["steps"]["host_dur_ns"], [19990000] * STEPS)
        stream = next(track for track in tracks["tracks"] if track["kind"] == "stream")
        self.assertEqual(stream["count"], STEPS * (KERNELS + 1))
        self.assertEqual(stream["device"], 0)

    def test_tracks_come_in_pages(self):
        whole = self.get("/tracks")
        self.assertIsNone(whole["next"])
        size = max(len(whole["tracks"]), len(whole["processes"]), len(whole["steps"]["name"]))
        for limit in (1, 2, 3, size - 1, size):
            joined, after, count = {key: [] for key in ("processes", "tracks", "devices")}, "", 0
            steps = {key: [] for key in whole["steps"]}
            while after is not None:
                page = self.get(f"/tracks?limit={limit}" + (f"&after={after}" if count else ""))
                self.assertLessEqual(max(len(page["tracks"]), len(page["processes"]), len(page["steps"]["name"])), limit)
                for key in joined:
                    joined[key] += page[key]
                for key in steps:
                    steps[key] += page["steps"][key]
                after, count = page["next"], count + 1
            self.assertEqual(count, -(-size // limit))
            self.assertEqual({**joined, "steps": steps}, {key: whole[key] for key in (*joined, "steps")}, limit)
        beyond = self.get("/tracks?after=4000000000")
        self.assertEqual((beyond["tracks"], beyond["devices"], beyond["next"]), ([], [], None))
        for query in ("limit=0", "limit=65537", "limit=x", "after=-1", "after=x"):
            self.refused(self.base + "/tracks?" + query, 400, "bad_request")

    def track(self, kind):
        return next(track["index"] for track in self.get("/tracks")["tracks"] if track["kind"] == kind)

    def tiles(self, level, first, last, tracks, **kwargs):
        return self.server.get(f"/api/v1{self.base}/g1/tiles/{level}/{first}-{last}?tracks={tracks}", **kwargs)

    def test_tiles_hold_every_slice_once(self):
        stream, tracks = self.track("stream"), self.get("/tracks")
        slices = {}
        for level in range(tracks["level_max"] + 1):
            last = min(int(tracks["duration_ns"] // (512 * 8 ** level)), 10 ** 9)
            if last > 4000:
                continue  # finer than anything here: 150 us kernels are native to level 5
            for first in range(0, last + 1, 64):
                reply = self.tiles(level, first, min(first + 63, last), stream)
                self.assertEqual(reply.status, 200, reply.body[:200])
                magic, version, at_level, count, zero = struct.unpack_from("<4sHHII", reply.body)
                self.assertEqual((magic, version, at_level, zero), (b"LTB1", 1, level, 0))
                at = 16
                for _ in range(count):
                    size, track, index, natives, cells, lev = struct.unpack_from("<IIIIIB", reply.body, at)
                    self.assertEqual((track, lev, size % 8), (stream, level, 0))
                    self.assertTrue(first <= index <= min(first + 63, last))
                    column = at + 32
                    starts = struct.unpack_from(f"<{natives}d", reply.body, column)
                    durations = struct.unpack_from(f"<{natives}d", reply.body, column + natives * 8)
                    ids = struct.unpack_from(f"<{natives}I", reply.body, column + natives * 16)
                    for one in zip(ids, starts, durations):
                        slices[one[0]] = one[1:]
                    at += size
                self.assertEqual(at, len(reply.body))
        document = json.loads(self.body)
        recorded = sorted((e["ts"] * 1000 - 1000000, e["dur"] * 1000) for e in document["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy"))
        self.assertEqual(sorted(slices.values()), [(float(a), float(b)) for a, b in recorded])

    def test_tiles_outside_the_limits_are_refused(self):
        for path, status in (("/g1/tiles/0/0-64?tracks=0", 413), ("/g1/tiles/0/0-1?tracks=0-5000", 413), ("/g1/tiles/18/0-1?tracks=0", 404), ("/g2/tiles/0/0-1?tracks=0", 404),
                             ("/g1/tiles/0/5-1?tracks=0", 400), ("/g1/tiles/0/0-1", 400), ("/g1/tiles/0/0-1?tracks=x", 400), ("/g1/tiles/x/0-1?tracks=0", 404),
                             ("/g1/tiles/0/0-99999999999?tracks=0", 404), ("/g1/tiles/-1/0-1?tracks=0", 404)):
            self.refused(self.base + path, status)
        self.assertEqual(self.tiles(3, 0, 0, "900").body[:4], b"LTB1")

    def test_unchanged_replies_are_304_and_compressed_ones_the_same(self):
        for path in ("/tracks", "/g1/tiles/5/0-0?tracks=0-9", "/kernels", "/analysis", "/names", "/flame", "/search?q=conv"):
            full = self.server.get("/api/v1" + self.base + path)
            self.assertEqual(full.status, 200, path)
            tag = full.headers["ETag"]
            self.assertRegex(tag, r'^"[0-9a-f]{32}"$')
            again = self.server.get("/api/v1" + self.base + path, headers={"If-None-Match": tag})
            self.assertEqual((again.status, again.body), (304, b""))
            packed = self.server.get("/api/v1" + self.base + path, headers={"Accept-Encoding": "gzip"})
            self.assertEqual(expand(packed), full.body)
            self.assertEqual(packed.headers["Vary"], "Accept-Encoding")
            again = self.server.get("/api/v1" + self.base + path, headers={"If-None-Match": packed.headers["ETag"], "Accept-Encoding": "gzip"})
            self.assertEqual(again.status, 304)

    def test_counters_are_thinned_and_whole(self):
        counter = self.track("counter")
        points = self.get(f"/counters/{counter}")
        self.assertEqual(points["last"], [0, 10.5, 21, 31.5])
        self.assertEqual(points["ts_ns"], [0, 20000000, 40000000, 60000000])
        few = self.get(f"/counters/{counter}?points=1")
        self.assertEqual((few["min"], few["max"], few["last"]), ([0], [31.5], [31.5]))
        self.refused(self.base + f"/counters/{self.track('stream')}", 404)
        self.refused(self.base + "/counters/9999", 404)
        self.refused(self.base + f"/counters/{counter}?points=0", 400)

    def test_names_by_id_and_all(self):
        everything, start = [], 0
        while start is not None:
            page = self.get(f"/names?{'after' if start else 'from'}={start}&limit=7")
            self.assertLessEqual(len(page["names"]), 7)
            everything += page["names"]
            start = page["next"]
        self.assertEqual([name[0] for name in everything], list(range(len(everything))))
        self.assertEqual(everything[0], [0, ""])
        self.assertIn(MARKUP, [name[1] for name in everything])
        self.assertEqual(self.get("/names?ids=0-2,5")["names"], [everything[i] for i in (0, 1, 2, 5)])
        self.assertEqual(self.get("/names?ids=4000000000")["names"], [])
        self.refused(self.base + "/names?ids=0-99999", 413)
        self.refused(self.base + "/names?ids=a", 400)

    # -- slices

    def kernel(self, nth=0):
        return self.get("/search?q=%3CIMG&kind=kernel&limit=1000")["hits"][nth]["slice"]

    def test_a_kernel_has_its_details_and_its_launch(self):
        kernel = self.get(f"/slices/{self.kernel(1)}")
        self.assertEqual((kernel["kind"], kernel["name"]), ("kernel", MARKUP))
        self.assertEqual(kernel["kernel"]["block"], [128, 1, 1])
        self.assertEqual(kernel["kernel"]["grid"], [5, 1, 1])
        self.assertEqual((kernel["kernel"]["registers"], kernel["kernel"]["shared_memory_bytes"]), (32, 1024))
        self.assertEqual(kernel["same_name"]["count"], STEPS * KERNELS // 4)
        self.assertEqual(kernel["same_name"]["per_step"], KERNELS / 4)
        self.assertEqual(kernel["step"], 0)
        launch = self.get(f"/slices/{kernel['link']}")
        self.assertEqual((launch["kind"], launch["name"], launch["link"]), ("api", "cudaLaunchKernel", kernel["id"]))
        self.assertEqual(launch["corr"], kernel["corr"])
        operator = self.get(f"/slices/{launch['parent']}")
        self.assertEqual(operator["name"], "aten::conv2d")
        self.assertEqual(operator["args"]["x"], MARKUP)
        self.assertEqual(operator["args"]["Input Dims"], [[1, 3]])
        self.assertEqual(operator["children"], 1)
        self.assertEqual(self.get(f"/slices/{kernel['next']}")["prev"], kernel["id"])
        self.refused(self.base + "/slices/4000000000", 404)
        self.refused(self.base + "/slices/x", 404)

    def test_a_copy_has_its_ends_and_its_rate(self):
        hit = self.get("/search?q=Memcpy%20HtoD&kind=copy")["hits"][0]
        copy = self.get(f"/slices/{hit['slice']}")["copy"]
        self.assertEqual((copy["kind"], copy["src"], copy["dst"], copy["bytes"]), ("HtoD", "pageable", "device", 1048576))
        self.assertAlmostEqual(copy["gb_per_s"], 10.48576)

    def test_a_window_of_slices_goes_page_by_page(self):
        stream = self.track("stream")
        seen, after = [], ""
        while True:
            page = self.get(f"/slices?track={stream}&t0=8000000&t1=40000000&limit=11{after}")
            seen += page["slices"]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        starts = [one["start_ns"] for one in seen]
        self.assertEqual(starts, sorted(starts))
        self.assertEqual(len(starts), 2 * (KERNELS + 1))
        self.assertNotIn("args", seen[0])
        self.refused(self.base + "/slices", 400)
        self.refused(self.base + "/slices?track=9999", 404)
        self.refused(self.base + "/slices?track=0&limit=100000", 400)

    def test_search_finds_by_part_id_and_correlation(self):
        hits = self.get("/search?q=CONV2D&limit=9")
        self.assertEqual((hits["total"], len(hits["hits"])), (STEPS * KERNELS, 9))
        seen, after = [], ""
        while True:
            page = self.get(f"/search?q=conv2d&limit=50{after}")
            seen += [hit["start_ns"] for hit in page["hits"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        self.assertEqual((len(seen), seen), (STEPS * KERNELS, sorted(seen)))
        kernel = self.kernel()
        self.assertEqual([hit["slice"] for hit in self.get(f"/search?q=id:{kernel}")["hits"]], [kernel])
        corr = self.get(f"/slices/{kernel}")["corr"]
        self.assertEqual(sorted(hit["kind"] for hit in self.get(f"/search?q=corr:{corr}")["hits"]), ["api", "kernel"])
        self.assertEqual(self.get("/search?q=no-such-name")["total"], 0)

    def test_search_has_the_longest_of_all_hits_first(self):
        all_hits, after = [], ""
        while after is not None:
            page = self.get(f"/search?q=o&limit=300&after={after}")
            all_hits, after = all_hits + page["hits"], page["next"]
        expected = sorted(all_hits, key=lambda hit: (-hit["dur_ns"], hit["start_ns"], hit["slice"]))
        seen, after = [], ""
        while after is not None:
            page = self.get(f"/search?q=o&sort=dur&limit=300&after={after}")
            seen, after = seen + page["hits"], page["next"]
        self.assertGreater(len(seen), 300)
        self.assertEqual(seen, expected)
        self.refused(self.base + "/search?q=o&sort=name", 400)
        self.refused(self.base + "/search?q=o&sort=dur&after=1.2", 400)

    def test_search_counts_all_hits_over_time(self):
        page = self.get("/search?q=conv2d&limit=3&bins=50")
        self.assertEqual(len(page["hits"]), 3)
        self.assertEqual(len(page["bins"]), 50)
        self.assertEqual(sum(page["bins"]), page["total"])
        self.assertGreater(page["total"], 3)
        self.assertGreater(sum(count > 0 for count in page["bins"]), 1)  # not where the first three are alone
        self.assertEqual(self.get("/search?q=conv2d&limit=3")["bins"], [])
        self.refused(self.base + "/search", 400)
        self.refused(self.base + "/search?q=x&kind=nonsense", 400)
        self.refused(self.base + "/search?q=%00", 400)

    def test_search_follows_a_batch_and_the_queue_is_a_counter(self):
        def loader(tid, name, ts, dur, batch, worker):
            return {"ph": "X", "cat": "loader", "name": name, "pid": 10 + tid, "tid": tid, "ts": ts, "dur": dur, "args": {"batch": batch, "worker": worker}}
        events = []
        for batch in range(6):
            events.append(loader(1 + batch % 2, "loader.fetch", 100 * batch, 190, batch, batch % 2))
            events.append(loader(1 + batch % 2, "loader.read", 100 * batch + 10, 20, batch, batch % 2))
            events.append(loader(0, "loader.wait", 100 * batch + 150, 60, batch, -1))
        trace = self.server.upload(json.dumps({"traceEvents": events}).encode(), "batches")
        self.assertEqual(self.server.wait_ready(trace)["state"], "ready")
        base = "/traces/" + trace
        hits = self.server.api(base + "/search?q=batch:4")
        self.assertEqual((hits["total"], sorted(hit["name"] for hit in hits["hits"])), (3, ["loader.fetch", "loader.read", "loader.wait"]))
        for hit in hits["hits"]:
            self.assertEqual(self.server.api(base + f"/slices/{hit['slice']}")["loader"]["batch"], 4)
        self.assertEqual(self.server.api(base + "/search?q=batch:6")["total"], 0)
        self.assertEqual(self.server.api(base + "/search?q=batch:4&kind=kernel")["total"], 0)
        self.assertEqual(self.get("/search?q=batch:0")["total"], 0)
        ready = [track for track in self.server.api(base + "/tracks")["tracks"] if track["name"] == "batches ready"]
        self.assertEqual([track["kind"] for track in ready], ["counter"])
        points = self.server.api(base + f"/counters/{ready[0]['index']}?t0=0&t1=800000&points=2000")
        self.assertEqual(points["last"][0], 0)
        self.assertEqual((max(points["last"]), points["last"][-1]), (1, 0))
        self.assertEqual(len(points["ts_ns"]), 1 + 2 * 6)

    # -- tables

    def test_kernels_sort_filter_and_page(self):
        table = self.get("/kernels")
        names = {row["name"]: row for row in table["kernels"]}
        self.assertEqual(table["total"], len(names))
        totals = [row["total_ns"] for row in table["kernels"]]
        self.assertEqual(totals, sorted(totals, reverse=True))
        self.assertAlmostEqual(sum(row["pct_of_kernel_time"] for row in table["kernels"]), 100, places=3)
        self.assertEqual(names[MARKUP]["count"], STEPS * KERNELS // 4)
        self.assertEqual(names[MARKUP]["mean_ns"], names[MARKUP]["total_ns"] // names[MARKUP]["count"])
        self.assertEqual(names["nchwToNhwcKernel"]["layout_class"], "L")
        for sort in ("count", "mean", "min", "max"):
            values = [row[sort if sort == "count" else sort + "_ns"] for row in self.get(f"/kernels?sort={sort}&order=asc")["kernels"]]
            self.assertEqual(values, sorted(values))
        by_name = [row["name"] for row in self.get("/kernels?sort=name")["kernels"]]
        self.assertEqual(by_name, sorted(by_name))
        self.assertEqual([row["name"] for row in self.get("/kernels?q=NHWC")["kernels"]], ["nchwToNhwcKernel"])
        seen, after = [], ""
        while True:
            page = self.get("/kernels?limit=3" + after)
            seen += [row["name"] for row in page["kernels"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        self.assertEqual(seen, [row["name"] for row in table["kernels"]])
        self.refused(self.base + "/kernels?sort=nonsense", 400)
        self.refused(self.base + "/kernels?order=up", 400)

    def test_lists_that_are_made_whole_have_pages(self):
        for name in ("one", 'two "[{,', "three"):
            self.assertEqual(self.server.request("POST", "/api/v1/projects", json.dumps({"name": name}).encode()).status, 201)
        for path, list_name in (("/projects", "projects"), ("/findings", "findings"), ("/schemas", "schemas")):
            whole = self.server.api(path)
            self.assertIsNone(whole["next"])
            for limit in (1, 2, 1000):
                seen, page, requests = [], {"next": 0}, 0
                while page["next"] is not None:
                    page = self.server.api(f"{path}?limit={limit}&after={page['next']}")
                    self.assertLessEqual(len(page[list_name]), limit)
                    seen += page[list_name]
                    requests += 1
                self.assertEqual(seen, whole[list_name], (path, limit))
                self.assertEqual(requests, -(-len(seen) // limit))
            self.assertEqual(self.server.api(path + "?after=100000"), {**whole, list_name: []})
            self.refused(path + "?limit=0", 400)
            self.refused(path + "?after=x", 400)
        for path in ("/users", "/tokens", "/hangs", "/quotas", "/shares"):
            self.assertIsNone(self.server.api(path + "?limit=1")["next"], path)
        csv = self.server.get("/api/v1/projects?limit=1&format=csv")
        self.assertEqual((len(csv.body.splitlines()), csv.headers["Lacuna-Next"]), (2, "1"))

    def test_a_project_that_no_address_can_name_takes_no_trace(self):
        trace = make_trace()
        for name in ("..", ".", "-", "a%2Fb", "a%0Ab", "x" * 256):
            self.assertEqual(self.server.request("POST", f"/api/v1/traces?project={name}", body=trace).status, 400, name)

    def test_gaps_sum_to_their_causes(self):
        gaps = self.get("/gaps?min_ns=0&limit=10000")
        device = self.get("/analysis")["devices"][0]
        self.assertEqual(sum(gap["dur_ns"] for gap in gaps["gaps"]), device["idle_ns"])
        for gap in gaps["gaps"]:
            self.assertEqual(sum(gap["cause_ns"].values()), gap["dur_ns"], gap)
            self.assertEqual(max(gap["cause_ns"], key=lambda c: gap["cause_ns"][c]) and gap["cause_ns"][gap["cause"]], max(gap["cause_ns"].values()))
        long = self.get("/gaps")
        self.assertEqual(long["total"], device["gaps"]["count_10us"])
        lengths = [gap["dur_ns"] for gap in long["gaps"]]
        self.assertEqual(lengths, sorted(lengths, reverse=True))
        self.assertEqual(lengths[0], device["gaps"]["longest_ns"])
        for gap in long["gaps"]:
            self.assertIn(gap["root_kind"], ("none", "sync", "late_batch", "launch"), gap)
            self.assertEqual(gap["root_kind"] == "none", gap["root_slice"] is None, gap)
            self.assertEqual(gap["root_kind"] == "late_batch", gap["wait_slice"] is not None, gap)
        waits = [gap for gap in long["gaps"] if gap["cause"] == "data_wait"]
        self.assertGreater(len(waits), 0)
        for gap in waits[:3]:
            wait = self.get(f"/slices/{gap['wait_slice']}")
            self.assertIn("DataLoader", wait["name"])
            self.assertLess(wait["start_ns"], gap["start_ns"] + gap["dur_ns"])
            self.assertGreater(wait["start_ns"] + wait["dur_ns"], gap["start_ns"])
        self.assertEqual(self.get("/gaps?device=7")["total"], 0)
        starts = [gap["start_ns"] for gap in self.get("/gaps?sort=start")["gaps"]]
        self.assertEqual(starts, sorted(starts))
        self.refused(self.base + "/gaps?min_ns=-1", 400)

    def test_the_first_flame_graphs_of_a_large_trace_come_with_it(self):
        plain = make_trace(steps=2200, kernels=40)
        document = json.loads(plain)
        document["traceEvents"] += [{"ph": "X", "cat": "python_function", "name": "train.py(12): step", "pid": 10, "tid": 11, "ts": 1000 + step * 20000 + 8050,
                                     "dur": 11000, "args": {"Python id": step + 1, "Python thread": 0}} for step in range(2200)]
        with_it = Server("--log-level", "warn", "--model-cache", "1")
        try:
            for name, trace in (("plain", plain), ("python", json.dumps(document).encode())):
                identity = with_it.upload(trace, name)
                self.assertGreater(with_it.wait_ready(identity)["slice_count"], 1 << 18)
                base = f"/traces/{identity}/flame"
                stored = {(metric, by): with_it.api(f"{base}?metric={metric}&by={by}") for metric in ("gpu", "waiting", "cpu") for by in ("op", "python")}
                self.assertEqual(with_it.api(base), stored["gpu", "op"])
                made = with_it.get(f"/api/v1{base}?by=kernel")
                self.assertEqual((made.status, made.json()["error"]["code"]), (413, "limit"), "no room for the model: so nothing was made")
                with_it.terminate()
                with_it.flags = ("--log-level", "warn")
                with_it.start()
                for (metric, by), whole in stored.items():
                    again = with_it.api(f"{base}?metric={metric}&by={by}&t1={whole['t1_ns'] + 1}")
                    self.assertEqual(again["t1_ns"], whole["t1_ns"] + 1)
                    self.assertGreater(whole["total_ns"], 0)
                    self.assertEqual({**again, "t1_ns": whole["t1_ns"]}, whole)
                    self.assertEqual("train.py(12): step" in whole["nodes"]["name"], name == "python" and by == "python", (metric, by))
                with_it.terminate()
                with_it.flags = ("--log-level", "warn", "--model-cache", "1")
                with_it.start()
        finally:
            with_it.close()

    def test_flame_graphs_are_trees_in_preorder(self):
        analysis = self.get("/analysis")
        for metric, total in (("gpu", None), ("waiting", analysis["devices"][0]["idle_ns"]), ("cpu", None)):
            for by in ("op", "range", "kernel", "python"):
                flame = self.get(f"/flame?metric={metric}&by={by}")
                nodes = flame["nodes"]
                count = len(nodes["name"])
                self.assertTrue(all(len(column) == count for column in nodes.values()))
                self.assertEqual(nodes["parent"][0], -1)
                children = [0] * count
                for i in range(1, count):
                    parent = nodes["parent"][i]
                    self.assertTrue(0 <= parent < i)
                    self.assertEqual(nodes["depth"][i], nodes["depth"][parent] + 1)
                    children[parent] += nodes["value_ns"][i]
                for i in range(count):
                    self.assertEqual(nodes["self_ns"][i], nodes["value_ns"][i] - children[i])
                    self.assertGreaterEqual(nodes["self_ns"][i], 0)
                self.assertEqual(flame["total_ns"], nodes["value_ns"][0])
                if total is not None:
                    self.assertEqual(flame["total_ns"], total)
        whole = self.get("/flame")
        self.assertEqual((whole["metric"], whole["by"], whole["steps"]), ("gpu", "op", STEPS))
        part = self.get("/flame?t0=0&t1=19000000")
        self.assertEqual(part["steps"], 1)
        self.assertLess(part["total_ns"], whole["total_ns"])
        for path in ("/area", "/tables/kernels", "/flame"):
            self.assertEqual(self.get(path)["t1_ns"], self.get("/tracks")["duration_ns"], path)
        self.refused(self.base + "/flame?metric=x", 400)
        self.refused(self.base + "/flame?t0=5&t1=5", 400)

    # -- the rest

    def test_health_metrics_and_page(self):
        self.assertEqual(self.server.get("/healthz", key=False).json()["status"], "ok")
        metrics = self.server.get("/metrics").body.decode()
        for name in ("lacuna_http_requests_total", "lacuna_http_request_seconds_bucket", "lacuna_http_sent_bytes_total", "lacuna_http_connections ",
                     "lacuna_imports_total", 'lacuna_imports{state="queued"}', "lacuna_traces", "process_resident_memory_bytes"):
            self.assertIn(name, metrics)
        for line in metrics.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) .*|[a-z_]+(\{[^}]*(\{[^}]*\}[^}]*)*\})? [0-9.e+-]+)$")
        page = self.server.get("/", key=False)
        self.assertEqual(page.status, 200)
        self.assertIn("text/html", page.headers["Content-Type"])
        self.assertEqual(self.server.get("/t/" + self.id, key=False).body, page.body)
        self.assertEqual(self.server.get("/missing.js", key=False).status, 404)
        for file in re.findall(r'(?:src|href)="(/[^"]+)"', page.body.decode()):
            reply = self.server.get(file, key=False)
            self.assertEqual(reply.status, 200, file)
            again = self.server.get(file, key=False, headers={"If-None-Match": reply.headers["ETag"]})
            self.assertEqual(again.status, 304)
            packed = self.server.get(file, key=False, headers={"Accept-Encoding": "gzip"})
            self.assertEqual(expand(packed), reply.body)
        self.assertEqual(self.server.request("HEAD", "/", key=False).body, b"")

    def test_openapi_describes_exactly_the_route_table(self):
        source = open(os.path.join(ROOT, "server/api/routes.c")).read()
        table = {(m.lower(), p): a for m, p, a in re.findall(r'LAC_ROUTE\(\s*(\w+),\s*"([^"]+)",\s*(\w+)', source)}
        document = self.server.get("/openapi.json", key=False).json()
        self.assertTrue(document["openapi"].startswith("3.1"))
        described = {(method, path): operation["x-access"].upper() for path, item in document["paths"].items() for method, operation in item.items()}
        self.assertEqual(described, table)
        for path, item in document["paths"].items():
            for operation in item.values():
                self.assertEqual(operation["security"] == [], operation["x-access"] == "open", path)
        for path, item in document["paths"].items():
            for operation in item.values():
                named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
                self.assertEqual(named, set(re.findall(r"\{(\w+)\}", path)), path)

        def references(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    if key == "$ref":
                        yield inner
                    else:
                        yield from references(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from references(inner)

        for reference in references(document):
            self.assertIn(reference.rsplit("/", 1)[1], document["components"]["schemas"])

    def test_every_finding_has_its_document(self):
        rows = self.server.api("/findings")["findings"]
        self.assertGreater(len(rows), 40)
        for row in rows:
            document = self.server.api("/findings/" + row["id"])
            self.assertEqual({key: document[key] for key in row}, row)
            self.assertTrue(document["markdown"].startswith(f"# {row['id']}: {row['title']}\n"))
        self.assertEqual(self.server.request("GET", "/api/v1/findings/no-such-thing", key=False).status, 404)

    def test_the_vocabulary_names_whatever_documents_name(self):
        reply = self.server.request("GET", "/api/v1/vocabulary", key=False)
        self.assertEqual(reply.status, 200)
        words = reply.json()
        ids = {group: [word["id"] for word in words[group]] for group in words if group != "schema"}
        schemas = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]
        self.assertEqual(sorted(words), sorted(schemas["Vocabulary"]["properties"]))
        for group in ids:
            self.assertEqual(len(ids[group]), len(set(ids[group])), group)
            for word in words[group]:
                self.assertEqual(sorted(word), sorted(schemas["Word"]["properties"]), group)
        self.assertEqual(ids["findings"], [row["id"] for row in self.server.api("/findings")["findings"]])
        analysis = self.get("/analysis")
        self.assertEqual(ids["causes"], list(analysis["devices"][0]["idle_by_cause_ns"]))
        self.assertEqual(ids["parts"], list(analysis["devices"][0]["partition_ns"]))
        self.assertEqual(sorted(ids["needs"]), sorted(set(analysis["needs_ns"]) - {"alone"}))
        self.assertIn(analysis["steps"]["method"], ids["step_methods"])
        self.assertLessEqual({phase["name"] for phase in analysis["phases"]}, set(ids["phases"]))
        self.assertLessEqual({kind["kind"] for kind in analysis["steps"]["kinds"]}, set(ids["step_kinds"]))
        self.assertLessEqual({finding["effort"] for finding in analysis["findings"]} - {None}, set(ids["efforts"]))
        self.assertLessEqual({row["family"] for row in self.get("/kernels")["kernels"]}, set(ids["kernel_families"]))
        self.assertLessEqual({row["kind"] for row in self.get("/report?format=contents")["contains"]}, set(ids["redactions"]))
        # asked for again, it costs a line
        again = self.server.request("GET", "/api/v1/vocabulary", key=False, headers={"If-None-Match": reply.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))

    def test_the_page_and_the_readme_have_the_words_of_the_vocabulary(self):
        words = self.server.request("GET", "/api/v1/vocabulary", key=False).json()
        with open(os.path.join(ROOT, "web/src/base/causes.ts"), encoding="utf-8") as file:
            causes = re.findall(r"^  '(\w+)',$", file.read(), re.MULTILINE)
        self.assertEqual(causes, [word["id"] for word in words["causes"]])
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            glossary = file.read().partition("## Glossary\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (.+?) \| (.+?) \|$", glossary, re.MULTILINE)
        self.assertEqual(rows, [("term", "meaning"), *((word["label"], word["definition"]) for word in words["terms"])])

    def test_replies_have_every_member_that_openapi_names(self):
        schemas = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]
        kernel = self.get(f"/slices/{self.kernel()}")
        for schema, value in (("Trace", self.server.api(self.base)), ("Tracks", self.get("/tracks")), ("Slice", kernel), ("Kernel", self.get("/kernels")["kernels"][0]),
                              ("Gap", self.get("/gaps?min_ns=0")["gaps"][0]), ("Flame", self.get("/flame"))):
            always = [name for name, member in schemas[schema]["properties"].items() if "left out" not in member.get("description", "")]
            self.assertEqual(sorted(value), sorted(always), schema)

    def test_files_without_times_answer_every_question(self):
        schemas = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]
        summary = (b"==42== Profiling result:\n"
                   b"            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
                   b" GPU activities:   60.00%  6.0000us         3  2.0000us  1.0000us  3.0000us  gemm<int>(long, double*)\n"
                   b"                   40.00%  4.0000us         2  2.0000us  1.9000us  2.1000us  [CUDA memcpy HtoD]\n")
        speedscope = json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}, {"name": "load"}]},
                                 "profiles": [{"type": "sampled", "name": "one", "unit": "seconds", "startValue": 0, "endValue": 3, "samples": [[0, 1], [0]], "weights": [2, 1]}]})
        cprofile = marshal.dumps({("m.py", 1, "main"): (1, 1, 1.0, 3.0, {}), ("m.py", 9, "load"): (1, 1, 2.0, 2.0, {("m.py", 1, "main"): (1, 1, 2.0, 2.0)})})
        for text, has_unit, kernels in ((b"main;load 7\nmain;train 3\n", True, 0), (summary, False, 3), (speedscope.encode(), False, 0), (cprofile, False, 0)):
            trace = self.server.upload(text, "untimed")
            row = self.server.wait_ready(trace)
            self.assertEqual(row["state"], "ready", row)
            base = f"/traces/{trace}"
            analysis = self.server.api(base + "/analysis")
            self.assertFalse(analysis["trace"]["timeline"])
            self.assertEqual(analysis["kernels"]["count"], kernels)
            loader = {name: value for name, value in analysis["dataloader"].items() if not name.endswith("_count")}
            self.assertEqual(set(loader.values()), {None})
            flame = self.server.api(base + "/flame?metric=" + ("gpu" if kernels else "cpu"))
            self.assertEqual("unit" in flame, has_unit)
            if has_unit:
                self.assertEqual(sorted(flame), sorted(schemas["Flame"]["properties"]))
            for question in ("/tracks", "/names", "/kernels", "/gaps", "/search?q=a", "/area?t0_ns=0&t1_ns=1000", "/tables/kernels", "/tables/operators", "/tables/steps", "/tables/gaps", "/tables/batches", "/slices?track=0&limit=5", "/slices/0", "/steps"):
                self.server.api(base + question)
            for form in ("html", "markdown"):
                self.assertEqual(self.server.get(f"/api/v1{base}/report?form={form}").status, 200)
            self.server.api(f"/compare?a={trace}&b={trace}")
            self.assertEqual(self.server.request("DELETE", "/api/v1" + base).status, 204)

    def see_tables(self, base):
        """Every table answers as the description says; pages of one make up the whole."""
        described = self.server.api("/openapi.json")["paths"]["/api/v1/traces/{id}/tables/{name}"]["get"]
        names = next(p for p in described["parameters"] if p["name"] == "name")["schema"]["enum"]
        schema = described["responses"]["200"]["content"]["application/json"]["schema"]
        for name in names:
            table = self.server.api(f"{base}/tables/{name}")
            self.assertEqual(sorted(table), sorted(schema["properties"]))
            for row in table["rows"]:
                self.assertEqual(len(row["cells"]), len(table["columns"]))
        whole = self.server.api(f"{base}/tables/kernels?sort=p95_ns")
        ids = [column["id"] for column in whole["columns"]]
        kernels = {row["name"]: row for row in self.server.api(base + "/kernels")["kernels"]}
        self.assertEqual(whole["total"], len(kernels))
        self.assertEqual(whole["all"]["cells"][ids.index("count")], 30)
        for row in whole["rows"]:
            cells = dict(zip(ids, row["cells"]))
            self.assertEqual(cells["total_ns"], kernels[cells["name"]]["total_ns"])
            self.assertTrue(cells["min_ns"] <= cells["p50_ns"] <= cells["p95_ns"] <= cells["max_ns"])
        paged, after = [], "0"
        while after is not None:
            page = self.server.api(f"{base}/tables/kernels?sort=p95_ns&limit=2&after={after}")
            paged, after = paged + page["rows"], page["next"]
        self.assertEqual(paged, whole["rows"])
        for wrong, says in (("kernels?by=size", "operator"), ("steps?by=name", "list"), ("kernels?sort=nothing", "columns"), ("kernels?t0=5&t1=5", "larger"), ("kernels?by=name,,x", "family")):
            refused = self.server.get(f"/api/v1{base}/tables/{wrong}")
            self.assertEqual(refused.status, 400)
            self.assertIn(says, json.loads(refused.body)["error"]["message"])
        self.assertEqual(self.server.get(f"/api/v1{base}/tables/passwords").status, 404)
        launched = self.server.api(f"{base}/slices/{whole['rows'][0]['slice']}/launched")
        self.assertIn("launch", launched["chain"][0]["name"].lower())
        calls = self.server.api(f"{base}/slices/{launched['chain'][0]['slice']}/launched")
        self.assertEqual([row["slice"] for row in calls["launched"]], [whole["rows"][0]["slice"]])
        self.assertEqual([row["lane"] for row in calls["launched"]], [self.server.api(f"{base}/slices/{whole['rows'][0]['slice']}")["lane"]])
        self.assertEqual(self.server.get(f"/api/v1{base}/slices/4000000000/launched").status, 404)

    @unittest.skipUnless(os.path.exists(GPU), f"{NONE}: the API is not tried on a real trace")
    def test_a_real_trace_goes_all_the_way(self):
        trace = self.server.upload(open(GPU, "rb").read(), "real")
        row = self.server.wait_ready(trace)
        self.assertEqual(row["state"], "ready", row)
        truth = json.load(open(os.path.join(real_traces(), "truth/kineto__gpu_metrics_input.json")))
        self.assertGreater(len(truth), 0)
        analysis = self.server.api(f"/traces/{trace}/analysis")
        self.assertEqual(analysis["kernels"]["count"], 30)
        self.assertEqual(sum(row["count"] for row in self.server.api(f"/traces/{trace}/kernels")["kernels"]), 30)
        self.see_tables(f"/traces/{trace}")
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + trace).status, 204)


if __name__ == "__main__":
    main()
