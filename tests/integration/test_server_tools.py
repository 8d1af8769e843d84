#!/usr/bin/env python3
"""Profiles and logs of other tools through the whole program: imported into a store, then asked for by every route."""
import os
import shutil
import subprocess
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, main

SEEDS = os.path.join(ROOT, "tests/fuzz/corpus/import")
# what each sample is called, and whether it has a timeline
SAMPLES = {
    "callgrind": ("callgrind", False),
    "cprofile_text": ("cProfile", False),
    "line_profiler": ("line_profiler", False),
    "line_profiler_text": ("line_profiler", False),
    "nccl_trace_rank_3": ("flight recorder", True),
    "perf_stat_csv": ("perf stat", True),
    "perf_stat_interval": ("perf stat", True),
    "perf_stat_json": ("perf stat", True),
    "perf_stat_text": ("perf stat", True),
    "py_spy_dump": ("py-spy dump", False),
    "scalene": ("scalene", False),
    "tensorboard": ("tensorboard", True),
    "torch_memory": ("torch memory", True),
}
ROUTES = ("/analysis", "/tracks", "/names", "/flame", "/flame?metric=profile", "/kernels", "/gaps", "/search?q=a", "/steps")


class Tools(unittest.TestCase):
    def test_each_sample_is_imported_and_answers_every_route(self):
        data = tempfile.mkdtemp(prefix="lacuna-tools-")
        self.addCleanup(shutil.rmtree, data, ignore_errors=True)
        paths = [os.path.join(SEEDS, name) for name in sorted(SAMPLES)]
        done = subprocess.run([PROGRAM, "import", *paths, "--data", data], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        server = Server(data=data)
        self.addCleanup(server.close)
        rows = {row["name"]: row for row in server.api("/traces")["traces"]}
        self.assertEqual(sorted(rows), sorted(SAMPLES))
        for name, (form, has_timeline) in SAMPLES.items():
            with self.subTest(name):
                self.assertEqual(rows[name]["state"], "ready")
                base = "/traces/" + rows[name]["id"]
                for route in ROUTES:
                    reply = server.get("/api/v1" + base + route)
                    self.assertIn(reply.status, (200, 400, 404), (route, reply.body[:300]))
                trace = server.api(base + "/analysis")["trace"]
                self.assertEqual((trace["format"], trace["timeline"]), (form, has_timeline))
                tracks = server.api(base + "/tracks")["tracks"]
                flame = server.api(base + "/flame" + ("" if not has_timeline else "?metric=profile"))
                self.assertTrue(tracks)
                self.assertTrue(flame["nodes"] or any(track["kind"] in ("counter", "thread") for track in tracks))

    def test_a_sample_cut_anywhere_ends_with_a_sentence_or_a_trace(self):
        folder = tempfile.mkdtemp(prefix="lacuna-tools-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name in sorted(SAMPLES):
            with open(os.path.join(SEEDS, name), "rb") as file:
                whole = file.read()
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(whole[:len(whole) * 2 // 3])
            done = subprocess.run([PROGRAM, "analyze", path], capture_output=True, text=True, timeout=120, check=False)
            self.assertIn(done.returncode, (0, 1), (name, done.stderr))
            self.assertTrue(done.stdout if done.returncode == 0 else done.stderr.count("\n") == 1, name)


if __name__ == "__main__":
    main()
