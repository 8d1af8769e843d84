#!/usr/bin/env python3
"""What may be stored: below the disk's low-water mark and beyond a quota uploads are refused with 507, and nothing is lost."""
import base64
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
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


class Quotas(Storage):
    def quota(self, *words, status=0):
        done = subprocess.run([harness.PROGRAM, "admin", "quota", *words, "--data", os.path.join(self.home, "data")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def token(self, project=None):
        made = self.server.request("POST", "/api/v1/tokens", body=json.dumps({"name": "t", "scope": "upload", "project": project})).json()
        return {"Authorization": "Bearer " + made["token"]}, made["id"]

    def ready(self, reply):
        self.assertEqual(reply.status, 201, reply.body)
        self.assertEqual(self.server.wait_ready(reply.json()["id"])["state"], "ready")
        return reply.json()["id"]

    def test_a_project_holds_what_it_may(self):
        body = make_trace(2, 4, filler=100 << 10)
        self.start("--quota-project", str(len(body) * 5 // 2))
        first = self.ready(self.upload(body, project="vision", name="a"))
        self.ready(self.upload(body, project="vision", name="b"))
        why = ("project vision takes", "delete traces of it")
        self.refused(self.upload(body, project="vision", name="c"), *why)
        self.refused(self.begin(len(body), project="vision"), *why)
        self.ready(self.upload(body, project="audio"))
        self.ready(self.upload(body))  # of no project
        self.assertEqual(self.metric('lacuna_uploads_refused_total{reason="quota"}'), 2)
        self.assertEqual(len(self.server.api("/traces?project=vision")["traces"]), 2)
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + first).status, 204)
        self.ready(self.upload(body, project="vision", name="c"))
        # an administrator gives more, at once
        self.refused(self.upload(body, project="vision", name="d"), *why)
        self.quota("--project", "vision", "--bytes", str(len(body) * 10))
        self.ready(self.upload(body, project="vision", name="d"))
        self.assertEqual(self.quota(), f"project vision {len(body) * 3 / 1e6:.1f} of {len(body) * 10 / 1e6:.1f} MB\n")
        self.quota("--project", "vision", "--bytes", "1K")
        self.refused(self.upload(body, project="vision", name="e"), *why)
        self.quota("--project", "vision", "--bytes", "none")
        self.ready(self.upload(body, project="vision", name="e"))
        self.quota("--project", "vision", "--bytes", "default")
        self.refused(self.upload(body, project="vision", name="f"), *why)
        self.assertEqual(self.quota(), "")
        self.assertIn(("local", "set-quota"), {(row["actor"], row["action"]) for row in self.server.api("/audit")["audit"]})

    def put(self, path, limit, headers=None):
        return self.server.request("PUT", "/api/v1" + path, body=json.dumps({"limit": limit}), headers={"Content-Type": "application/json", **(headers or {})})

    def test_quotas_are_set_and_seen_over_http(self):
        body = make_trace(2, 4, filler=100 << 10)
        self.start("--quota-project", str(len(body) * 3 // 2))
        self.ready(self.upload(body, project="vision", name="a"))
        usual = {"used_bytes": len(body), "limit_bytes": len(body) * 3 // 2, "is_default": True}
        self.assertEqual(self.server.api("/projects/vision/quota"), usual)
        self.refused(self.upload(body, project="vision", name="b"), "project vision takes")
        self.assertEqual(self.put("/projects/vision/quota", str(len(body) * 2)).status, 204)
        self.assertEqual(self.server.api("/projects/vision/quota"), {"used_bytes": len(body), "limit_bytes": len(body) * 2, "is_default": False})
        place = self.begin(len(body), project="vision")
        self.assertEqual(place.status, 201)
        self.assertEqual(self.server.api("/projects/vision/quota")["used_bytes"], 2 * len(body))  # on its way counts
        self.refused(self.upload(body, project="vision", name="b"), "project vision takes")
        self.assertEqual(self.server.request("DELETE", place.headers["Location"], headers=TUS).status, 204)
        self.ready(self.upload(body, project="vision", name="b"))
        headers, token = self.token("vision")
        self.assertEqual(self.server.api(f"/tokens/{token}/quota"), {"used_bytes": 0, "limit_bytes": None, "is_default": True})
        self.assertEqual(self.put(f"/tokens/{token}/quota", "1K").status, 204)
        self.assertEqual(self.put("/projects/-/quota", "none").status, 204)
        self.assertEqual(self.put("/projects/vision/quota", "none").status, 204)
        self.assertEqual(self.server.api("/quotas"), {
            "project_default_bytes": len(body) * 3 // 2, "token_default_bytes": None, "next": None,
            "quotas": [{"kind": "project", "name": "", "used_bytes": 0, "limit_bytes": None}, {"kind": "project", "name": "vision", "used_bytes": 2 * len(body), "limit_bytes": None},
                       {"kind": "token", "name": token, "used_bytes": 0, "limit_bytes": 1024}]})
        self.refused(self.upload(body, headers, project="vision", name="c"), "what this token uploaded")
        self.ready(self.upload(body, project="vision", name="c"))
        self.assertEqual(self.put("/projects/vision/quota", "default").status, 204)
        self.assertEqual(self.server.api("/projects/vision/quota"), {**usual, "used_bytes": 3 * len(body)})
        self.assertIn(("local", "set-quota", "project vision: default"), {(row["actor"], row["action"], row["object"]) for row in self.server.api("/audit")["audit"]})
        # who may not, and what is none
        for path in ("/projects/vision/quota", f"/tokens/{token}/quota"):
            self.assertEqual(self.put(path, "1G", headers).status, 403)
            for limit in ("", "a lot", "-1", "0", "9" * 40, "1" * 5000, None, 5, {"bytes": 1}):
                self.assertEqual(self.put(path, limit).status, 400, limit)
        self.assertEqual(self.server.get("/api/v1/quotas", headers=headers).status, 403)
        self.assertEqual(self.server.get("/api/v1/quotas", key=False).status, 401)
        self.assertEqual(self.put("/tokens/aaaaaaaaaaaaaaaaaaaaaaaaaa/quota", "1G").status, 404)
        self.assertEqual(self.put("/tokens/nothing/quota", "1G").status, 404)

    def test_a_chunked_upload_is_known_only_at_its_end(self):
        body = make_trace(2, 4, filler=100 << 10)
        self.start("--quota-project", str(len(body) - 1))
        reply = self.upload(iter([body[:5000], body[5000:]]), project="vision")
        self.refused(reply, "project vision takes 0.0 of")
        self.assertEqual(self.server.api("/traces")["traces"], [])
        self.ready(self.upload(iter([make_trace(1, 1)]), project="vision"))

    def test_what_was_begun_counts_and_may_end(self):
        body = make_trace(2, 4, filler=100 << 10)
        flags = ("--quota-project", str(len(body) * 3 // 2))
        self.start(*flags)
        place = self.begin(len(body), project="vision").headers["Location"]
        self.refused(self.begin(len(body), project="vision"), "project vision takes")  # both at once do not fit
        self.refused(self.upload(body, project="vision"), "project vision takes")
        self.assertEqual(self.append(place, 0, body[:1000]).status, 204)
        self.quota("--project", "vision", "--bytes", "1K")  # less than it takes now
        self.start(*flags)
        self.refused(self.upload(body, project="vision"), "project vision takes")  # a restart has not forgotten it
        done = self.append(place, 1000, body[1000:])
        self.assertEqual(self.server.wait_ready(done.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(body).hexdigest())
        self.quota("--project", "vision", "--bytes", str(len(body) * 3))
        begun = [self.begin(len(body), project="vision") for _ in range(3)]
        self.assertEqual([reply.status for reply in begun], [201, 201, 507])
        self.assertEqual(self.server.request("DELETE", begun[0].headers["Location"], headers=TUS).status, 204)
        self.ready(self.upload(body, project="vision", name="in-its-place"))

    def test_an_upload_that_grows_stops_at_the_quota_and_keeps_what_came(self):
        body = make_trace(2, 4, filler=100 << 10)
        self.start("--quota-project", str(len(body) // 2))
        fields = {**TUS, "Upload-Defer-Length": "1", "Upload-Metadata": pairs(project="vision")}
        place = self.server.request("POST", "/api/v1/uploads", headers=fields).headers["Location"]
        self.assertEqual(self.append(place, 0, body[:len(body) // 3]).status, 204)
        self.refused(self.append(place, len(body) // 3, body[len(body) // 3:]), "project vision takes")
        self.assertEqual(self.offset(place), len(body) // 3)
        self.quota("--project", "vision", "--bytes", "1G")
        fields = {**TUS, "Upload-Offset": str(len(body) // 3), "Upload-Length": str(len(body)), "Content-Type": "application/offset+octet-stream"}
        done = self.server.request("PATCH", place, body=body[len(body) // 3:], headers=fields)
        self.assertEqual(self.server.wait_ready(done.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(body).hexdigest())

    def test_a_token_brings_what_it_may(self):
        body = make_trace(2, 4, filler=100 << 10)
        self.start("--quota-token", str(len(body) * 3 // 2))
        (who, ident), (other, _) = self.token("vision"), self.token("vision")
        trace = self.ready(self.upload(body, who, name="a"))
        self.refused(self.upload(body, who, name="b"), "what this token uploaded takes", "lacuna admin quota")
        self.refused(self.begin(len(body), who), "what this token uploaded takes")
        self.assertEqual(self.begin(len(body), other).status, 201)
        self.ready(self.upload(body, project="vision", name="by-the-key"))
        self.quota("--token", ident, "--bytes", str(len(body) * 2))
        place = self.begin(len(body), who).headers["Location"]
        done = self.append(place, 0, body, who)
        self.assertEqual(self.server.wait_ready(done.headers["Lacuna-Trace-Id"])["state"], "ready")
        self.assertEqual(self.quota(), f"token {ident} {len(body) * 2 / 1e6:.1f} of {len(body) * 2 / 1e6:.1f} MB\n")
        self.refused(self.upload(body, who, name="c"), "what this token uploaded takes")
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + trace).status, 204)
        self.ready(self.upload(body, who, name="c"))
        self.assertEqual(self.server.request("DELETE", "/api/v1/tokens/" + ident).status, 204)
        self.assertEqual(self.quota(), "")

    def test_many_at_once_do_not_exceed_it(self):
        body = make_trace(1, 2, filler=20 << 10)
        self.start("--quota-project", str(len(body) * 5 // 2))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda n: self.upload(body, project="vision", name=str(n)).status, range(16)))
        self.assertEqual(sorted(set(said)), [201, 507])
        self.assertEqual(said.count(201), 2)

    def test_wrong_usage(self):
        self.start()
        for words in (("--project", "a"), ("--bytes", "1G"), ("--project", "a", "--token", "b", "--bytes", "1G"), ("--project", "a", "--bytes", "much"), ("--project", "a", "--bytes", "0")):
            self.quota(*words, status=2)
        self.assertIn("no such token", self.quota("--token", "a" * 26, "--bytes", "1G", status=1))


if __name__ == "__main__":
    harness.main()
