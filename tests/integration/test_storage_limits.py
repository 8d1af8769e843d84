#!/usr/bin/env python3
"""What may be stored: below the disk's low-water mark uploads are refused with 507, and nothing is lost."""
import base64
import hashlib
import os
import re
import shutil
import tempfile
import unittest

import server_harness as harness
from server_harness import make_trace

TUS = {"Tus-Resumable": "1.0.0"}


def pairs(**values):
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in values.items())


class Storage(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="lacuna-storage-")
        os.mkdir(os.path.join(self.home, "data"))
        self.server = None

    def tearDown(self):
        if self.server is not None:
            self.server.close()
        shutil.rmtree(self.home)

    def start(self, *flags):
        """A server on the same folder, with other limits."""
        if self.server is not None:
            self.assertEqual(self.server.terminate(), 0)
            self.server.close()
        self.server = harness.Server(*flags, data=os.path.join(self.home, "data"))
        return self.server

    def upload(self, body, who=None, **values):
        query = "&".join(f"{key}={value}" for key, value in values.items())
        return self.server.request("POST", "/api/v1/traces?" + query, body=body, headers=who, key=who is None)

    def begin(self, length, who=None, **values):
        fields = {**TUS, **(who or {}), "Upload-Length": str(length), "Upload-Metadata": pairs(name="resumed", **values)}
        return self.server.request("POST", "/api/v1/uploads", headers=fields, key=who is None)

    def append(self, place, offset, piece, who=None):
        fields = {**TUS, **(who or {}), "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
        return self.server.request("PATCH", place, body=piece, headers=fields, key=who is None)

    def offset(self, place):
        return int(self.server.request("HEAD", place, headers=TUS).headers["Upload-Offset"])

    def metric(self, name):
        return int(re.search(rf"^{re.escape(name)} (\d+)$", self.server.get("/metrics").body.decode(), re.M).group(1))

    def refused(self, reply, *words):
        self.assertEqual(reply.status, 507, reply.body)
        self.assertEqual(reply.json()["error"]["code"], "insufficient_storage")
        for word in words:
            self.assertIn(word, reply.json()["error"]["message"])


class Disk(Storage):
    def test_below_the_mark_uploads_wait_and_nothing_is_lost(self):
        self.start()
        body = make_trace(2, 4, filler=300 << 10)
        first = self.upload(make_trace(1, 2), name="first").json()["id"]
        self.assertEqual(self.server.wait_ready(first)["state"], "ready")
        place = self.begin(len(body)).headers["Location"]
        self.assertEqual(self.append(place, 0, body[:100000]).status, 204)
        self.assertEqual(self.metric("lacuna_disk_low_water_bytes"), 256 << 20)

        disk = os.statvfs(self.home)
        self.start("--disk-free", str(disk.f_blocks * disk.f_frsize + (1 << 40)))  # more than there is, whoever makes room
        why = ("nearly full", "--disk-free")
        self.refused(self.upload(make_trace(1, 3), name="second"), *why)
        self.refused(self.begin(len(body)), *why)
        self.refused(self.append(place, 100000, body[100000:]), *why)
        self.assertEqual(self.metric('lacuna_uploads_refused_total{reason="disk"}'), 3)
        self.assertEqual(self.offset(place), 100000)
        self.assertEqual([row["id"] for row in self.server.api("/traces")["traces"]], [first])
        self.assertTrue(self.server.api(f"/traces/{first}/kernels")["kernels"])
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + first).status, 204)  # which makes room

        self.start()
        done = self.append(place, self.offset(place), body[100000:])
        self.assertEqual(self.server.wait_ready(done.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(body).hexdigest())
        self.assertEqual(self.upload(make_trace(1, 3)).status, 201)

    def test_uploads_begun_count_as_what_they_will_be(self):
        disk = os.statvfs(self.home)
        room = disk.f_bavail * disk.f_frsize
        self.start("--upload-max", "16T", "--uploads-bytes", "64T", "--disk-free", str(room // 4))
        begun = self.begin(room // 2)  # each of them would fit
        self.assertEqual(begun.status, 201, begun.body)
        self.refused(self.begin(room // 2), "nearly full")
        self.assertEqual(self.server.request("DELETE", begun.headers["Location"], headers=TUS).status, 204)
        self.assertEqual(self.begin(room // 2).status, 201)


if __name__ == "__main__":
    harness.main()
