#!/usr/bin/env python3
"""A job of 16 ranks in one trace, through the normal import: no slice is lost at any level, file and memory stay small.

A million events; 100 million under `make soak`, which takes 30 GB of disk, 12 GB of memory and some ten minutes.
"""
import glob
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, SOAK, Server, main

MILLIONS = 100 if SOAK else 1
RANKS = 16
DISK_BYTES = 320 * MILLIONS * 1_000_000
SERVER_MB_MAX = 300
LEVELS = 3


def anonymous_mb(process):
    """Memory beside the page cache."""
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) / 1024


class Scale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-scale-")
        free = shutil.disk_usage(cls.folder).free
        if free < DISK_BYTES:
            shutil.rmtree(cls.folder)
            raise unittest.SkipTest(f"{MILLIONS} M events need {DISK_BYTES / 1e9:.0f} GB of disk, {free / 1e9:.0f} are free")
        path, cls.data = os.path.join(cls.folder, "job.json"), os.path.join(cls.folder, "data")
        made = subprocess.run([os.path.join(ROOT, "build/release/bench/bench_training"), path, str(MILLIONS), str(RANKS)], stdout=subprocess.PIPE, check=True)
        cls.made = json.loads(made.stdout)
        subprocess.run([PROGRAM, "import", "--data", cls.data, path], stdout=subprocess.DEVNULL, check=True)
        os.unlink(path)
        cls.file = glob.glob(os.path.join(cls.data, "traces/*.db"))[0]
        cls.server = Server(data=cls.data)
        cls.base = "/api/v1/traces/" + os.path.splitext(os.path.basename(cls.file))[0]
        cls.tracks = cls.get("/tracks")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        shutil.rmtree(cls.folder)

    @classmethod
    def get(cls, path):
        reply = cls.server.get(cls.base + path)
        assert reply.status == 200, (path, reply.status, reply.body[:200])
        return reply.json()

    def wide(self):
        """Rows of recorded slices; the totals by name and of an area are about these and no derived ones."""
        return [track for track in self.tracks["tracks"] if track["kind"] in ("thread", "stream")]

    def test_all_slices_are_there(self):
        trace = self.get("/analysis")["trace"]
        self.assertEqual(trace["slice_count"], self.made["events"])
        self.assertEqual(trace["dropped_count"], 0)
        self.assertEqual(trace["repaired_count"], 0)
        self.assertEqual(sum(track["count"] for track in self.wide()), self.made["events"])
        self.assertEqual(len(self.tracks["devices"]), RANKS)

    def test_tables_of_names_and_of_the_whole_add_up(self):
        whole = f"/area?t0=0&t1={self.tracks['duration_ns'] + 1}&tracks=" + ",".join(str(track["index"]) for track in self.wide())
        area = self.get(whole)
        self.assertEqual(area["slice_count"], self.made["events"])
        self.assertEqual(sum(track["count"] for track in area["tracks"]), self.made["events"])
        counted, after = 0, ""
        while after is not None:
            page = self.get(whole + "&limit=1000" + (f"&after={after}" if after else ""))
            counted += sum(name["count"] for name in page["names"])
            after = page["next"]
        self.assertEqual(counted, self.made["events"])

    def test_every_level_counts_every_slice(self):
        """A slice is drawn as itself at one level, and is part of a cell at those above it."""
        for track in self.wide():
            above = 0
            for level in range(self.tracks["level_max"], self.tracks["level_max"] - LEVELS, -1):
                natives, cells = self.count(track["index"], level)
                self.assertEqual(natives + cells + above, track["count"], (track["index"], level))
                above += natives

    def count(self, track, level):
        """Slices of a row that a level draws as themselves, and those in its cells."""
        natives = cells = 0
        last = self.tracks["duration_ns"] // (512 * 8 ** level)
        for first in range(0, last + 1, 64):
            reply = self.server.get(f"{self.base}/g{self.tracks['generation']}/tiles/{level}/{first}-{min(first + 63, last)}?tracks={track}")
            self.assertEqual(reply.status, 200, reply.body[:200])
            at = 16
            for _ in range(struct.unpack_from("<I", reply.body, 8)[0]):
                size, _, _, n, m = struct.unpack_from("<IIIII", reply.body, at)
                natives += n
                column = at + 32 + 2 * padded(8 * n) + 2 * padded(4 * n) + padded(2 * n) + padded(n) + padded(4 * m)
                cells += sum(struct.unpack_from(f"<{m}I", reply.body, column))
                at += size
        return natives, cells

    def test_the_file_is_small(self):
        self.assertLessEqual(os.path.getsize(self.file) / self.made["events"], 7.0)

    def test_the_server_stays_small(self):
        """Also after all that a page asks for: areas, tables, flame graphs of the whole and of a part."""
        duration = self.tracks["duration_ns"]
        for path in ("/kernels?limit=1000", f"/area?t0={duration // 4}&t1={duration // 2}", "/flame?metric=gpu", "/flame?metric=waiting", "/flame?metric=cpu",
                     f"/flame?metric=gpu&t0={duration // 2}&t1={duration // 2 + duration // 100}", "/search?q=gemm", "/analysis"):
            self.get(path)
        self.assertLessEqual(anonymous_mb(self.server.process.pid), SERVER_MB_MAX)


def padded(size):
    return -(-size // 8) * 8


if __name__ == "__main__":
    main()
