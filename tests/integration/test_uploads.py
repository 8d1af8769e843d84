#!/usr/bin/env python3
"""Resumable uploads (tus 1.0.0) against the real server: what breaks off goes on, what is wrong is refused by name."""
import base64
import hashlib
import io
import json
import os
import shutil
import signal
import tarfile
import tempfile
import threading
import time
import unittest

from server_harness import Server, main, make_trace, status_of

TUS = {"Tus-Resumable": "1.0.0"}
BODY_TYPE = {"Content-Type": "application/offset+octet-stream"}


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def metadata(**pairs):
    return ",".join(f"{key} {b64(value)}" for key, value in pairs.items())


class Client:
    """The requests of the protocol, one method each."""

    def __init__(self, server):
        self.server = server

    def create(self, length, body=None, headers=None, **pairs):
        fields = {**TUS, "Upload-Length": str(length), **(headers or {})}
        if pairs:
            fields["Upload-Metadata"] = metadata(**pairs)
        if body is not None:
            fields.update(BODY_TYPE)
        return self.server.request("POST", "/api/v1/uploads", body=body, headers=fields)

    def start(self, length, **pairs):
        reply = self.create(length, **pairs)
        assert reply.status == 201, (reply.status, reply.body)
        return reply.headers["Location"]

    def head(self, place):
        return self.server.request("HEAD", place, headers=TUS)

    def offset(self, place):
        return int(self.head(place).headers["Upload-Offset"])

    def come_bytes(self, place):
        """What of an upload is in its file, of requests under way too."""
        return os.path.getsize(os.path.join(self.server.data, "uploads", place.rsplit("/", 1)[1] + ".part"))

    def patch(self, place, offset, body, headers=None):
        return self.server.request("PATCH", place, body=body, headers={**TUS, **BODY_TYPE, "Upload-Offset": str(offset), **(headers or {})})

    def raw_patch(self, place, offset, length, extra=""):
        """The header of a PATCH on a connection of its own."""
        connection = self.server.connect()
        connection.sendall((f"PATCH {place} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nAuthorization: Bearer {self.server.key}\r\n"
                            f"Tus-Resumable: 1.0.0\r\nUpload-Offset: {offset}\r\nContent-Type: application/offset+octet-stream\r\n"
                            f"Content-Length: {length}\r\n{extra}\r\n").encode())
        return connection


def wait_for(what, timeout=60.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


class Uploads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--uploads-open", "60", "--upload-max", "64M")
        cls.client = Client(cls.server)
        cls.trace = make_trace()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def finish(self, place, offset, body):
        # a request that broke off may still be put away: then the answer is 423
        reply = wait_for(lambda: (lambda r: r if r.status != 423 else None)(self.client.patch(place, offset, body)))
        self.assertEqual(reply.status, 204, reply.body)
        trace = reply.headers["Lacuna-Trace-Id"]
        self.assertEqual(self.client.head(place).headers["Lacuna-Trace-Id"], trace)
        self.assertEqual(self.server.get(place).json()["trace"], trace)
        return self.server.wait_ready(trace)

    def test_options_say_what_is_spoken(self):
        reply = self.server.request("OPTIONS", "/api/v1/uploads")
        self.assertEqual(reply.status, 204)
        self.assertEqual(reply.headers["Tus-Version"], "1.0.0")
        self.assertEqual(reply.headers["Tus-Max-Size"], str(64 << 20))
        self.assertEqual(set(reply.headers["Tus-Extension"].split(",")), {"creation", "creation-with-upload", "creation-defer-length", "checksum", "expiration", "termination"})
        self.assertEqual(reply.headers["Tus-Checksum-Algorithm"], "sha1,sha256")

    def test_pieces_become_the_trace(self):
        pairs = {"filename": "dir/resnet.json", "project": "vision", "run": "nightly"}
        place = self.client.start(len(self.trace), **pairs)
        third = len(self.trace) // 3
        for k in range(2):
            reply = self.client.patch(place, k * third, self.trace[k * third:(k + 1) * third])
            self.assertEqual((reply.status, reply.headers["Upload-Offset"]), (204, str((k + 1) * third)), reply.body)
            self.assertNotIn("Lacuna-Trace-Id", reply.headers)
        head = self.client.head(place)
        self.assertEqual((head.headers["Upload-Offset"], head.headers["Upload-Length"]), (str(2 * third), str(len(self.trace))))
        self.assertEqual(head.headers["Upload-Metadata"], metadata(**pairs))
        self.assertEqual(head.headers["Cache-Control"], "no-store")
        self.assertIn("GMT", head.headers["Upload-Expires"])
        row = self.finish(place, 2 * third, self.trace[2 * third:])
        self.assertEqual((row["state"], row["name"], row["project"]), ("ready", "resnet", "vision"))
        self.assertEqual(row["sha256"], hashlib.sha256(self.trace).hexdigest())
        self.assertIsNone(row["clock"])
        # a second trace of that run joins it
        other = self.client.create(len(self.trace), body=self.trace, name="rank 1", project="vision", run="nightly")
        self.assertEqual(other.status, 201)
        again = self.server.wait_ready(other.headers["Lacuna-Trace-Id"])
        self.assertEqual(again["name"], "rank 1")
        self.assertTrue(row["run"])
        self.assertEqual(again["run"], row["run"])
        listed = self.server.api("/traces?run=" + row["run"])["traces"]
        self.assertEqual({t["id"] for t in listed}, {row["id"], again["id"]})

    def test_all_ranks_of_an_archive_join_the_run_that_is_named(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for rank in range(3):
                body = make_trace(steps=3 + rank)
                entry = tarfile.TarInfo(f"rank{rank}.json")
                entry.size = len(body)
                tar.addfile(entry, io.BytesIO(body))
        reply = self.client.create(len(out.getvalue()), body=out.getvalue(), name="ranks", project="vision", run="weekly")
        row = self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])
        self.assertEqual(self.server.api("/runs/" + row["run"])["name"], "weekly")
        self.assertEqual(len(self.server.api("/traces?run=" + row["run"])["traces"]), 3)

    def test_the_clock_of_the_host_is_kept(self):
        reply = self.client.create(len(self.trace), body=self.trace, name="clock", clock_offset_ns="-1234567", clock_error_ns="89000")
        row = self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])
        self.assertEqual(row["clock"], {"offset_ns": -1234567, "error_ns": 89000})

    def test_the_clock_answers_with_two_times(self):
        before = time.time_ns()
        clock = self.server.api("/clock")
        after = time.time_ns()
        self.assertLessEqual(before, int(clock["receive_ns"]))
        self.assertLessEqual(int(clock["receive_ns"]), int(clock["send_ns"]))
        self.assertLessEqual(int(clock["send_ns"]), after)

    def test_the_same_content_again_is_the_same_trace_when_wished(self):
        body = make_trace(steps=3)
        first = self.client.create(len(body), body=body, name="twice", reuse="1").headers["Lacuna-Trace-Id"]
        self.server.wait_ready(first)
        second = self.client.create(len(body), body=body, name="twice", reuse="1").headers["Lacuna-Trace-Id"]
        third = self.client.create(len(body), body=body, name="twice").headers["Lacuna-Trace-Id"]
        self.assertEqual(first, second)
        self.assertNotEqual(first, third)

    def test_a_broken_connection_loses_nothing_that_came(self):
        place = self.client.start(len(self.trace))
        with self.client.raw_patch(place, 0, len(self.trace)) as connection:
            connection.sendall(self.trace[:5000])
            wait_for(lambda: self.client.come_bytes(place) >= 5000)
        wait_for(lambda: self.client.offset(place) == 5000)
        self.assertEqual(self.finish(place, 5000, self.trace[5000:])["state"], "ready")

    def test_a_broken_connection_with_a_checksum_keeps_nothing_of_that_request(self):
        place = self.client.start(len(self.trace))
        with self.client.raw_patch(place, 0, len(self.trace), f"Upload-Checksum: sha256 {b64(hashlib.sha256(self.trace).digest())}\r\n") as connection:
            connection.sendall(self.trace[:5000])
            wait_for(lambda: self.client.come_bytes(place) >= 5000)

        def patch():
            reply = self.client.patch(place, 0, self.trace)
            return reply if reply.status != 423 else None
        self.assertEqual(self.client.offset(place), 0)
        reply = wait_for(patch)
        self.assertEqual(reply.status, 204)
        self.assertEqual(self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(self.trace).hexdigest())

    def test_checksums(self):
        place = self.client.start(len(self.trace))
        half = self.trace[:len(self.trace) // 2]
        wrong = {"Upload-Checksum": "sha256 " + b64(hashlib.sha256(b"other").digest())}
        reply = self.client.patch(place, 0, half, wrong)
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (460, "checksum_mismatch"))
        self.assertEqual(self.client.offset(place), 0)
        for bad in ("md5 " + b64(b"x" * 16), "sha256", "sha256 !!!!", "sha256 " + b64(b"short"), "sha1 " + b64(hashlib.sha256(half).digest())):
            self.assertEqual(self.client.patch(place, 0, half, {"Upload-Checksum": bad}).status, 400, bad)
        self.assertEqual(self.client.patch(place, 0, half, {"Upload-Checksum": "sha1 " + b64(hashlib.sha1(b"x").digest())}).status, 460)
        self.assertEqual(self.client.patch(place, 0, half, {"Upload-Checksum": "sha1 " + b64(hashlib.sha1(half).digest())}).status, 204)
        rest = self.trace[len(half):]
        reply = self.client.patch(place, len(half), rest, {"Upload-Checksum": "sha256 " + b64(hashlib.sha256(rest).digest())})
        self.assertEqual(reply.status, 204)
        self.assertEqual(self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])["state"], "ready")

    def test_a_wrong_checksum_at_creation_leaves_an_empty_upload(self):
        reply = self.client.create(4, body=b"abcd", headers={"Upload-Checksum": "sha1 " + b64(b"x" * 20)})
        self.assertEqual(reply.status, 460)

    def test_offsets_that_do_not_fit(self):
        place = self.client.start(100)
        self.assertEqual(self.client.patch(place, 0, b"x" * 40).status, 204)
        for offset in (0, 39, 41, 100):
            reply = self.client.patch(place, offset, b"y" * 10)
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (409, "upload_offset"), offset)
            self.assertEqual(reply.headers["Tus-Resumable"], "1.0.0")
        self.assertEqual(self.client.patch(place, 40, b"y" * 61).status, 413)
        self.assertEqual(self.client.offset(place), 40)
        for offset in ("", "-1", "x", "1e3", "99999999999999999999999"):
            self.assertEqual(self.client.patch(place, offset, b"y").status, 400, offset)

    def test_a_chunked_body_longer_than_the_upload(self):
        place = self.client.start(10)
        head = (f"PATCH {place} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nAuthorization: Bearer {self.server.key}\r\nTus-Resumable: 1.0.0\r\n"
                "Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
        self.assertEqual(status_of(self.server.raw(head + b"14\r\n" + b"x" * 20 + b"\r\n0\r\n\r\n")), 413)
        wait_for(lambda: self.client.patch(place, 0, b"x").status == 204)

    def test_one_writer_at_a_time(self):
        place = self.client.start(len(self.trace))
        statuses = []
        with self.client.raw_patch(place, 0, len(self.trace)) as connection:
            connection.sendall(self.trace[:100])
            wait_for(lambda: self.client.come_bytes(place) >= 100)
            threads = [threading.Thread(target=lambda: statuses.append(self.client.patch(place, 0, self.trace).status)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(statuses, [423] * 8)
            self.assertEqual(self.server.request("DELETE", place, headers=TUS).status, 423)
            connection.sendall(self.trace[100:])
            self.assertEqual(status_of(hear_reply(connection)), 204)

    def test_parallel_writers_of_one_offset(self):
        """Exactly one wins whatever the order; the others are told."""
        for _ in range(10):
            place = self.client.start(len(self.trace))
            statuses = []
            threads = [threading.Thread(target=lambda: statuses.append(self.client.patch(place, 0, self.trace).status)) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(statuses.count(204), 1, statuses)
            self.assertLessEqual(set(statuses), {204, 423, 409})

    def test_removed_is_gone(self):
        place = self.client.start(10)
        self.assertEqual(self.server.request("DELETE", place, headers=TUS).status, 204)
        for method in ("HEAD", "GET", "DELETE"):
            self.assertEqual(self.server.request(method, place, headers=TUS).status, 410, method)
        self.assertEqual(self.client.patch(place, 0, b"x").status, 410)
        unknown = "/api/v1/uploads/" + "a" * 26
        for method in ("HEAD", "DELETE"):
            self.assertEqual(self.server.request(method, unknown, headers=TUS).status, 404)
        self.assertEqual(self.client.patch(unknown, 0, b"x").status, 404)
        for name in ("x", "..%2f..%2fcatalog.db", "a" * 400):
            self.assertIn(self.server.request("HEAD", "/api/v1/uploads/" + name, headers=TUS).status, (400, 404))
        self.assertEqual([n for n in os.listdir(os.path.join(self.server.data, "uploads")) if n.startswith(place.rsplit("/", 1)[1])], [])

    def test_a_post_may_say_that_it_means_another_method(self):
        """tus 1.0.0, X-HTTP-Method-Override: for clients that know neither PATCH nor DELETE."""
        def post(place, method, body=None, **headers):
            fields = {**TUS, **(BODY_TYPE if body else {}), "X-HTTP-Method-Override": method, **headers}
            return self.server.request("POST", place, body=body, headers=fields)

        place = self.client.start(len(self.trace))
        reply = post(place, "PATCH", self.trace[:10], **{"Upload-Offset": "0"})
        self.assertEqual((reply.status, reply.headers["Upload-Offset"]), (204, "10"), reply.body)
        self.assertEqual(post(place, "PATCH", self.trace[:10], **{"Upload-Offset": "0"}).status, 409)
        for method in ("PUT", "GET", "OPTIONS", "", "patch"):
            self.assertEqual(post(place, method, b"x", **{"Upload-Offset": "10"}).status, 405, method)
        self.assertEqual(self.client.offset(place), 10)
        self.assertEqual(post(place, "DELETE").status, 204)
        self.assertEqual(self.client.head(place).status, 410)
        # nowhere else, and not where a POST means something
        trace = self.server.wait_ready(self.client.create(len(self.trace), body=self.trace).headers["Lacuna-Trace-Id"])["id"]
        self.assertEqual(post("/api/v1/traces/" + trace, "DELETE").status, 405)
        self.assertEqual(post("/api/v1/uploads", "DELETE", **{"Upload-Length": "5"}).status, 201)
        self.assertEqual(self.server.get("/api/v1/traces/" + trace).status, 200)

    def test_other_versions_and_types(self):
        place = self.client.start(10)
        for value in ("0.2.2", "2.0.0"):
            reply = self.server.request("HEAD", place, headers={"Tus-Resumable": value})
            self.assertEqual((reply.status, reply.headers["Tus-Version"]), (412, "1.0.0"))
        self.assertEqual(self.server.request("POST", "/api/v1/uploads", headers={"Upload-Length": "5"}).status, 412)
        self.assertEqual(self.server.request("PATCH", place, body=b"x", headers={**TUS, "Upload-Offset": "0"}).status, 415)
        self.assertEqual(self.client.patch(place, 0, b"x", {"Content-Type": "text/plain"}).status, 415)
        self.assertEqual(self.server.request("PUT", place, body=b"x", headers=TUS).status, 405)

    def test_sizes(self):
        self.assertEqual(self.client.create((64 << 20) + 1).status, 413)
        self.assertEqual(self.client.create(0).status, 400)
        for length in ("", "x", "-5", "18446744073709551616"):
            self.assertEqual(self.client.create(length).status, 400, length)
        self.assertEqual(self.client.create(5, body=b"123456").status, 413)
        self.assertEqual(self.server.request("POST", "/api/v1/uploads", headers={**TUS, "Upload-Defer-Length": "2"}).status, 400)
        self.assertEqual(self.client.create(5, headers={"Upload-Defer-Length": "1"}).status, 400)
        self.assertEqual(self.client.create(5, headers={"Upload-Concat": "partial"}).status, 400)

    def grow(self, client=None):
        reply = (client or self.client).server.request("POST", "/api/v1/uploads", headers={**TUS, "Upload-Defer-Length": "1",
                                                                                           "Upload-Metadata": metadata(name="grown")})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.headers["Location"]

    def test_an_upload_that_grows_says_its_length_at_the_end(self):
        half = len(self.trace) // 2
        for last in (b"", self.trace[half:]):  # the length with the last bytes, or alone
            place = self.grow()
            self.assertEqual(self.client.patch(place, 0, self.trace[:half]).status, 204)
            head = self.client.head(place)
            self.assertEqual((head.headers["Upload-Offset"], head.headers["Upload-Length"], head.headers["Upload-Defer-Length"]), (str(half), None, "1"))
            self.assertEqual(self.server.get(place).json()["length_bytes"], None)
            at = half
            if not last:
                self.assertEqual(self.client.patch(place, half, self.trace[half:]).status, 204)
                at = len(self.trace)
            reply = self.client.patch(place, at, last, {"Upload-Length": str(len(self.trace))})
            self.assertEqual(reply.status, 204, reply.body)
            row = self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])
            self.assertEqual((row["state"], row["name"], row["sha256"]), ("ready", "grown", hashlib.sha256(self.trace).hexdigest()))
            self.assertEqual(self.client.head(place).headers["Upload-Length"], str(len(self.trace)))

    def test_a_length_that_is_said_late_must_fit(self):
        place = self.grow()
        self.assertEqual(self.client.patch(place, 0, b"12345").status, 204)
        self.assertEqual(self.client.patch(place, 5, b"678", {"Upload-Length": "6"}).status, 413)
        self.assertEqual(self.client.patch(place, 5, b"", {"Upload-Length": "4"}).status, 413)
        self.assertEqual(self.client.patch(place, 5, b"", {"Upload-Length": str(1 << 40)}).status, 413)
        self.assertEqual(self.client.patch(place, 5, b"6", {"Upload-Length": "x"}).status, 400)
        self.assertEqual(self.client.offset(place), 5)
        self.assertEqual(self.client.patch(place, 5, b"6", {"Upload-Length": "10"}).status, 204)
        self.assertEqual(self.client.patch(place, 6, b"7", {"Upload-Length": "11"}).status, 409)
        self.assertEqual(self.client.patch(place, 6, b"78901").status, 413)
        self.assertEqual(self.server.request("DELETE", place, headers=TUS).status, 204)

    def test_an_upload_that_grows_beyond_the_limit_is_refused(self):
        place = self.grow()
        megabyte = b"x" * (16 << 20)
        for k in range(4):
            self.assertEqual(self.client.patch(place, k * len(megabyte), megabyte).status, 204)
        self.assertEqual(self.client.patch(place, 4 * len(megabyte), b"x").status, 413)
        self.assertEqual(self.server.request("DELETE", place, headers=TUS).status, 204)

    def test_an_upload_that_grows_outlives_its_server(self):
        server = Server()
        try:
            client = Client(server)
            place = self.grow(client)
            self.assertEqual(client.patch(place, 0, self.trace[:1000]).status, 204)
            server.kill()
            server.start()
            self.assertEqual(client.head(place).headers["Upload-Defer-Length"], "1")
            reply = client.patch(place, client.offset(place), self.trace[1000:], {"Upload-Length": str(len(self.trace))})
            self.assertEqual(server.wait_ready(reply.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(self.trace).hexdigest())
        finally:
            server.close()

    def test_who_may(self):
        place = self.client.start(10)
        for method, path in (("POST", "/api/v1/uploads"), ("OPTIONS", "/api/v1/uploads"), ("HEAD", place), ("PATCH", place), ("DELETE", place)):
            self.assertEqual(self.server.request(method, path, headers=TUS, key=False).status, 401, method)
            self.assertEqual(self.server.request(method, path, headers={**TUS, "Authorization": "Bearer wrong"}).status, 401, method)
            reply = self.server.request(method, path, headers={**TUS, "Origin": "http://evil.example"})
            self.assertEqual(reply.status, 403, method)
            reply = self.server.request(method, path, headers={**TUS, "Host": "evil.example"})
            self.assertEqual(reply.status, 403, method)
        self.assertEqual(self.client.offset(place), 0)

    def test_hostile_metadata(self):
        bad = ["name !!!", "name abc", "name " + b64("x" * 513), f"name {b64('a')},name {b64('b')}", " ,", ",,", "näme " + b64("x"), "name  " + b64("x"),
               "name " + b64(b"\xff\xfe"), "name " + b64("a\nb"), "name " + b64("a\0b"), "name " + b64(b"\xed\xa0\x80"), "name " + b64(b"\xc0\xaf"),
               "k" * 65 + " " + b64("x"), ",".join(f"k{i} {b64('x')}" for i in range(40)), "clock_offset_ns " + b64("12x"), "name " + "A" * 5000, "name YWJ=", "name YWI", "project " + b64(".."), "project " + b64("a/b")]
        for text in bad:
            reply = self.client.create(10, headers={"Upload-Metadata": text.encode("utf-8").decode("latin-1")})
            self.assertEqual(reply.status, 400, (text[:80], reply.body))
        place = self.client.start(len(self.trace), name="<img src=x onerror=alert(1)> \u00fc\U0001f600 ../../etc", project="'; DROP TABLE traces; --")
        row = self.finish(place, 0, self.trace)
        self.assertEqual((row["name"], row["project"]), ("<img src=x onerror=alert(1)> \u00fc\U0001f600 ../../etc", "'; DROP TABLE traces; --"))
        reply = self.client.create(10, headers={"Upload-Metadata": "is_confidential,note " + b64("kept")})
        self.assertEqual(reply.status, 201)
        self.assertEqual(self.client.head(reply.headers["Location"]).headers["Upload-Metadata"], "is_confidential,note " + b64("kept"))

    def test_metrics_count_uploads(self):
        def count(name):
            return int(float(next(line.split()[-1] for line in self.server.get("/metrics").body.decode().splitlines() if line.startswith(name))))
        open_before, created = count("lacuna_resumable_uploads_open "), count('lacuna_resumable_uploads_total{result="created"}')
        place = self.client.start(10)
        self.assertEqual(count("lacuna_resumable_uploads_open "), open_before + 1)
        self.assertEqual(count('lacuna_resumable_uploads_total{result="created"}'), created + 1)
        self.assertEqual(self.server.request("DELETE", place, headers=TUS).status, 204)
        self.assertEqual(count("lacuna_resumable_uploads_open "), open_before)

    def test_a_field_given_twice(self):
        place = self.client.start(10)
        reply = self.server.raw((f"PATCH {place} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nAuthorization: Bearer {self.server.key}\r\nTus-Resumable: 1.0.0\r\n"
                                 "Upload-Offset: 0\r\nUpload-Offset: 5\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx").encode())
        self.assertEqual(status_of(reply), 400)

    def test_what_is_no_trace_fails_by_name(self):
        body = b"this is no trace" * 50
        reply = self.client.create(len(body), body=body)
        row = self.server.wait_ready(reply.headers["Lacuna-Trace-Id"])
        self.assertEqual((row["state"], row["error"]["code"]), ("failed", "corrupt"))


def hear_reply(connection):
    connection.settimeout(20)
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


class Limits(unittest.TestCase):
    def test_how_many_and_how_much(self):
        server = Server("--uploads-open", "3", "--uploads-bytes", "1000", "--upload-max", "900")
        try:
            client = Client(server)
            first = client.start(900)
            reply = client.create(101)
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (429, "too_many_uploads"))
            client.start(50)
            client.start(50)
            self.assertEqual(client.create(1).status, 429)
            self.assertEqual(server.request("DELETE", first, headers=TUS).status, 204)
            self.assertEqual(client.create(900).status, 201)
        finally:
            server.close()

    def test_expired_uploads_are_swept(self):
        server = Server("--upload-lifetime", "1")
        try:
            client = Client(server)
            place = client.start(10)
            folder = os.path.join(server.data, "uploads")
            self.assertEqual(len([n for n in os.listdir(folder) if n.endswith(".info")]), 1)
            wait_for(lambda: os.listdir(folder) == [])
            self.assertEqual(client.head(place).status, 410)
            self.assertEqual(client.patch(place, 0, b"x").status, 410)
        finally:
            server.close()


class Restarts(unittest.TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="lacuna-uploads-")

    def tearDown(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def test_killed_in_the_middle_of_a_patch(self):
        trace = make_trace(filler=3 << 20)
        server = Server(data=self.data)
        client = Client(server)
        place = client.start(len(trace), name="killed")
        self.assertEqual(client.patch(place, 0, trace[:1 << 20]).status, 204)
        connection = client.raw_patch(place, 1 << 20, len(trace) - (1 << 20))
        connection.sendall(trace[1 << 20:2 << 20])
        wait_for(lambda: client.come_bytes(place) > 1 << 20)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        connection.close()
        server.start()
        try:
            offset = client.offset(place)
            self.assertEqual(offset, 1 << 20)
            reply = client.patch(place, offset, trace[offset:])
            self.assertEqual(reply.status, 204, reply.body)
            row = server.wait_ready(reply.headers["Lacuna-Trace-Id"])
            self.assertEqual((row["state"], row["name"], row["sha256"]), ("ready", "killed", hashlib.sha256(trace).hexdigest()))
            # the trace is remembered beyond another restart, and so is its removal
            server.terminate()
            server.start()
            self.assertEqual(client.head(place).headers["Lacuna-Trace-Id"], row["id"])
            self.assertEqual(server.request("DELETE", "/api/v1/traces/" + row["id"]).status, 204)
            server.terminate()
            server.start()
            self.assertEqual(client.offset(place), len(trace))
        finally:
            server.close()

    def test_a_shorter_file_than_was_committed(self):
        """What a disk lost behind our back: the smaller of the two counts."""
        trace = make_trace()
        server = Server(data=self.data)
        client = Client(server)
        place = client.start(len(trace))
        self.assertEqual(client.patch(place, 0, trace[:4000]).status, 204)
        server.kill()
        part = os.path.join(self.data, "uploads", place.rsplit("/", 1)[1] + ".part")
        os.truncate(part, 1000)
        server.start()
        try:
            self.assertEqual(client.offset(place), 1000)
            reply = client.patch(place, 1000, trace[1000:])
            self.assertEqual(server.wait_ready(reply.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(trace).hexdigest())
        finally:
            server.close()

    def test_complete_but_not_yet_a_trace(self):
        """The server died between the last offset and the trace: the next one makes it."""
        trace = make_trace()
        server = Server(data=self.data)
        client = Client(server)
        place = client.start(len(trace), name="late")
        self.assertEqual(client.patch(place, 0, trace[:-1]).status, 204)
        server.kill()
        name = os.path.join(self.data, "uploads", place.rsplit("/", 1)[1])
        with open(name + ".part", "ab") as file:
            file.write(trace[-1:])
        with open(name + ".info") as file:
            text = file.read()
        with open(name + ".info", "w") as file:
            file.write(text.replace(f"offset {len(trace) - 1}", f"offset {len(trace)}"))
        server.start()
        try:
            found = wait_for(lambda: client.head(place).headers.get("Lacuna-Trace-Id"))
            self.assertEqual(server.wait_ready(found)["name"], "late")
            self.assertEqual(len(server.api("/traces")["traces"]), 1)
        finally:
            server.close()

    def test_an_upload_keeps_its_owner_beyond_a_restart(self):
        server = Server(data=self.data)
        try:
            tokens = [{"Authorization": "Bearer " + server.request("POST", "/api/v1/tokens", body=json.dumps({"name": "n", "scope": "upload"})).json()["token"]} for _ in range(2)]
            begun = server.request("POST", "/api/v1/uploads", headers={**TUS, **tokens[0], "Upload-Length": "10"}, key=False)
            self.assertEqual(begun.status, 201, begun.body)
            place = begun.headers["Location"]
            look = lambda who: server.request("HEAD", place, headers={**TUS, **who}, key=False).status
            self.assertEqual([look(token) for token in tokens], [200, 404])
            server.kill()
            server.start()
            self.assertEqual([look(token) for token in tokens], [200, 404])
            server.kill()
            info = os.path.join(self.data, "uploads", place.rsplit("/", 1)[1] + ".info")
            with open(info) as file:
                lines = file.read().splitlines(True)
            with open(info, "w") as file:  # as a server wrote it that did not keep owners
                file.writelines(line for line in lines if not line.startswith("owner "))
            server.start()
            self.assertEqual([look(token) for token in tokens], [200, 200])
        finally:
            server.close()

    def test_damaged_notes_are_thrown_away(self):
        server = Server(data=self.data)
        client = Client(server)
        place = client.start(10)
        server.kill()
        folder = os.path.join(self.data, "uploads")
        name = os.path.join(folder, place.rsplit("/", 1)[1])
        for damage in (b"", b"lacuna upload 1\n", b"\0" * 100, b"lacuna upload 1\nlength 10\noffset 99\nexpires 1\ntrace -\nmetadata \nend\n", b"x" * 40000):
            with open(name + ".info", "wb") as file:
                file.write(damage)
            with open(os.path.join(folder, "b" * 26 + ".part"), "wb") as file:
                file.write(b"orphan")
            server.start()
            self.assertEqual(client.head(place).status, 404, damage[:30])
            self.assertEqual(os.listdir(folder), [])
            server.kill()
        server.start()
        server.close()


if __name__ == "__main__":
    main()
