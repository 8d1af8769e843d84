#!/usr/bin/env python3
"""A server that stands by answers what only reads, passes the rest on to the one that holds the catalog, and goes on when that one is lost."""
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

import postgres_harness
import server_harness as harness
import swift_harness
from test_server_tls import make_certificate
from test_standby import TAKE_OVER_S, Waiting

JSON = {"Content-Type": "application/json"}
TUS = {"Tus-Resumable": "1.0.0"}
PASSWORD = "correct horse battery"


def setUpModule():
    global postgres
    postgres = postgres_harness.Postgres()


def tearDownModule():
    postgres.close()


class Pair(unittest.TestCase):
    """One that holds the catalog, one that stands by; all tests of a class share them."""
    flags = ()
    environment = {}

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="lacuna-pair-")
        cls.launches, cls.servers = 0, []
        cls.open_storage()
        cls.database = "pair" + os.urandom(4).hex()
        cls.url = postgres.database(cls.database).replace("team@", f"team:{postgres_harness.IN_ADDRESS}@")
        cls.main = cls.node("a", harness.Server)
        cls.other = cls.node("b", Waiting, "--standby").waits()

    @classmethod
    def tearDownClass(cls):
        try:
            for server in cls.servers:
                server.close()
        finally:
            cls.close_storage()
            shutil.rmtree(cls.home, ignore_errors=True)

    @classmethod
    def open_storage(cls):
        cls.objects = os.path.join(cls.home, "bucket")

    @classmethod
    def close_storage(cls):
        pass

    @classmethod
    def node(cls, name, kind, *flags):
        data = os.path.join(cls.home, name)
        os.makedirs(data, exist_ok=True)
        cls.launches += 1
        server = kind("--catalog", cls.url, "--objects", cls.objects, "--import-workers", "1", *cls.flags, *flags, data=data,
                      log=os.path.join(cls.home, f"{name}-{cls.launches}.log"), environment=cls.environment)
        cls.servers.append(server)
        return server

    def both_say(self, path, **kwargs):
        """The standby's answer, which is the holder's."""
        here, there = self.other.get(path, **kwargs), self.main.get(path, **kwargs)
        self.assertEqual((here.status, here.body), (there.status, there.body), path)
        self.assertEqual(here.headers["Content-Type"], there.headers["Content-Type"], path)
        return here

    def wait_until_made(self, path):
        """Until neither has figures of the project's runs to make: a request makes a portion of them."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if not any(node.api(path)["pending"] for node in (self.main, self.other)):
                return
        raise AssertionError(f"{path}: figures are still missing after 60 s")

    def token(self, scope="admin", server=None, **more):
        made = (server or self.other).request("POST", "/api/v1/tokens", body=json.dumps({"name": "t", "scope": scope, **more}), headers=JSON)
        self.assertEqual(made.status, 201, made.body)
        return made.json()

    def as_token(self, token):
        return {"Authorization": "Bearer " + token}


class Reads(Pair):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one = cls.main.upload(harness.make_trace(steps=30), "one")
        cls.two = cls.main.upload(harness.make_trace(steps=20), "two")
        for id in (cls.one, cls.two):
            assert cls.main.wait_ready(id)["state"] == "ready"

    def test_what_reads_is_the_same_on_both(self):
        trace = f"/api/v1/traces/{self.one}"
        report = self.other.request("POST", "/api/v1/reports", body=json.dumps({"project": "", "title": "Two", "markdown": "# Two\n\ntext"}), headers=JSON)
        self.assertEqual(report.status, 201, report.body)
        self.assertIn("/api/v1/reports/", report.headers.get("Location", "/api/v1/reports/"))
        written = report.json()["id"]
        paths = [trace + rest for rest in ("", "/analysis", "/tracks", "/steps", "/g1/tiles/5/0-0?tracks=0-9", "/g1/tiles/0/0-3?tracks=0-9", "/names", "/slices?track=1", "/slices/3",
                                           "/search?q=conv", "/kernels", "/gaps", "/strip", "/area?t0=0&t1=1000000", "/tables/kernels", "/flame", "/window.svg", "/report", "/share",
                                           "/bookmarks")]
        paths += ["/api/v1/traces", "/api/v1/traces?q=one&limit=1", "/api/v1/runs", "/api/v1/projects", f"/api/v1/compare?a={self.two}&b={self.one}", "/api/v1/reports",
                  f"/api/v1/reports/{written}", f"/api/v1/reports/{written}/document?format=html", f"/api/v1/reports/{written}/versions", "/api/v1/users", "/api/v1/audit",
                  "/api/v1/projects/-/journal", "/api/v1/projects/-/trends", "/api/v1/projects/-/series?x=workers", "/api/v1/openapi.json", "/", "/index.html",
                  "/api/v1/nothing", trace + "/tables/nothing", "/api/v1/traces/aaaaaaaaaaaaaaaaaaaaaaaaaa"]
        self.wait_until_made("/projects/-/journal")
        kinds = [self.both_say(path).status for path in paths]
        self.assertGreater(kinds.count(200), 25, dict(zip(paths, kinds)))
        question = json.dumps({"query": "SELECT count(*) FROM slices"})
        asked = [node.request("POST", trace + "/sql", body=question, headers=JSON) for node in (self.other, self.main)]
        self.assertEqual([reply.status for reply in asked], [200, 200])
        self.assertEqual(asked[0].json()["rows"], asked[1].json()["rows"])
        # nothing of that was asked of the other: it has the files itself
        self.assertTrue(os.path.exists(os.path.join(self.other.data, "standby", "traces", self.one + ".db")))
        # no key, a wrong key, another site's page
        self.assertEqual(self.other.get(trace, key=False).status, 401)
        self.assertEqual(self.other.get(trace, headers=self.as_token("x" * 52)).status, 401)
        self.assertEqual(self.other.get(trace, headers={"Host": "evil.example"}).status, 403)
        self.assertEqual(self.other.get("/metrics").status, 200)
        self.assertIn(b'lacuna_traces{state="ready"}', self.other.get("/metrics").body)

    def test_what_changes_is_passed_on(self):
        id = self.other.upload(harness.make_trace(steps=6), "pushed")
        self.assertEqual(self.other.wait_ready(id)["state"], "ready")
        self.assertEqual(self.both_say(f"/api/v1/traces/{id}/analysis").status, 200)
        self.assertFalse(os.path.exists(os.path.join(self.other.data, "traces", id + ".db")))
        for name in ("a name", "naïve ☃"):
            self.assertEqual(self.other.request("PATCH", f"/api/v1/traces/{id}", body=json.dumps({"name": name}), headers=JSON).status, 200)
            self.assertEqual(self.other.api(f"/traces/{id}")["name"], name)  # at once: it is written before it is answered
        audit = self.main.api("/audit")
        self.assertIn("local", {line["actor"] for line in audit["audit"] if id in line["object"]})
        # an answer that is a refusal comes as it is
        wrong = [node.request("PATCH", f"/api/v1/traces/{id}", body="{", headers=JSON) for node in (self.other, self.main)]
        self.assertEqual((wrong[0].status, wrong[0].body), (wrong[1].status, wrong[1].body))
        large = self.other.request("PATCH", f"/api/v1/traces/{id}", body=b"x" * 1000000, headers=JSON)
        self.assertEqual(large.status, 413)
        self.assertEqual(self.other.request("DELETE", f"/api/v1/traces/{id}").status, 204)
        for path in ("", "/analysis", "/tracks"):
            self.assertEqual(self.other.get(f"/api/v1/traces/{id}{path}").status, 404, path)
        harness.wait_for(lambda: not os.path.exists(os.path.join(self.other.data, "standby", "traces", id + ".db")))

    def test_uploads_of_every_kind_go_through_it(self):
        trace = harness.make_trace(steps=300)
        # resumable, in parts, one of which breaks off
        begun = self.other.request("POST", "/api/v1/uploads", headers={**TUS, "Upload-Length": str(len(trace)), "Upload-Metadata": "name cGFydHM="})
        self.assertEqual(begun.status, 201, begun.body)
        path = re.sub(r"^https?://[^/]+", "", begun.headers["Location"])
        half = len(trace) // 2
        with self.other.connect() as link:
            link.sendall((f"PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.other.key}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
                          f"Content-Type: application/offset+octet-stream\r\nContent-Length: {len(trace)}\r\n\r\n").encode() + trace[:half])
            time.sleep(0.2)
        at = harness.wait_for(lambda: (reply := self.other.request("HEAD", path, headers=TUS)).status == 200 and reply, 60)
        offset = int(at.headers["Upload-Offset"])
        end = time.monotonic() + 60
        while True:  # the server that took the first part may still be at it
            reply = self.other.request("PATCH", path, body=trace[offset:], headers={**TUS, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"})
            if reply.status == 204 or time.monotonic() > end:
                break
            time.sleep(0.1)
            offset = int(self.other.request("HEAD", path, headers=TUS).headers["Upload-Offset"])
        self.assertEqual(reply.status, 204, reply.body)
        rows = harness.wait_for(lambda: self.other.api("/traces?q=parts")["traces"])
        row = self.other.wait_ready(rows[0]["id"])
        self.assertEqual((row["state"], row["sha256"]), ("ready", hashlib.sha256(trace).hexdigest()))
        # in chunks, of no known length
        link = http.client.HTTPConnection("127.0.0.1", self.other.port, timeout=60)
        link.request("POST", "/api/v1/traces?name=chunked", body=iter([trace[:1000], trace[1000:]]), headers=self.as_token(self.other.key), encode_chunked=True)
        reply = link.getresponse()
        body = reply.read()
        link.close()
        self.assertEqual(reply.status, 201, body)
        row = self.other.wait_ready(json.loads(body)["id"])
        self.assertEqual(row["sha256"], hashlib.sha256(trace).hexdigest())
        # by lacuna push, with a token made at the standby a moment ago
        file = os.path.join(self.home, "trace.json")
        with open(file, "wb") as out:
            out.write(harness.make_trace(steps=31))
        with open(file + ".token", "w") as out:
            out.write(self.token("upload")["token"])
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        done = subprocess.run([harness.PROGRAM, "push", file, "--server", f"http://127.0.0.1:{self.other.port}", "--token-file", file + ".token"],
                              capture_output=True, text=True, timeout=120, env={**clean, "XDG_STATE_HOME": os.path.join(self.home, "state")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_keys_sessions_and_tokens(self):
        password = os.path.join(self.home, "password")
        with open(password, "w") as file:
            file.write(PASSWORD + "\n")
        done = subprocess.run([harness.PROGRAM, "admin", "user", "add", "ann", "--password-file", password, "--data", self.main.data], capture_output=True, text=True, timeout=120,
                              env={**{k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}, **self.environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        origin = {"Origin": f"http://127.0.0.1:{self.other.port}", "Host": f"127.0.0.1:{self.other.port}", "Sec-Fetch-Site": "same-origin"}
        signed = harness.wait_for(lambda: (reply := self.other.request("POST", "/api/v1/session", body=json.dumps({"name": "ann", "password": PASSWORD}), headers={**JSON, **origin},
                                                                       key=False)).status in (200, 201, 204) and reply)
        cookie = signed.headers["Set-Cookie"]
        self.assertRegex(cookie, "HttpOnly")
        cookie = cookie.split(";")[0]
        # with the cookie just given, at both, and before anything was heard of it
        for node in (self.other, self.main, self.other):
            self.assertEqual(node.get("/api/v1/session", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}, key=False).json()["name"], "ann")
        # a change with a cookie from another page, or from nowhere
        for headers in ({"Cookie": cookie}, {"Cookie": cookie, "Origin": "http://evil.example"}, {"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(self.other.request("POST", "/api/v1/tokens", body='{"name": "x", "scope": "read"}', headers={**JSON, **headers}, key=False).status, 403)
        self.assertEqual(self.other.request("DELETE", "/api/v1/session", headers={"Cookie": cookie, **origin}, key=False).status, 204)
        harness.wait_for(lambda: self.other.get("/api/v1/session", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}, key=False).status == 401)
        # rights are the holder's to give: a token that only reads writes nothing here either
        reads = self.token("read")
        self.assertEqual(self.other.get(f"/api/v1/traces/{self.one}", headers=self.as_token(reads["token"])).status, 200)
        self.assertEqual(self.other.request("DELETE", f"/api/v1/traces/{self.one}", headers=self.as_token(reads["token"])).status, 403)
        self.assertEqual(self.other.request("DELETE", f"/api/v1/traces/{self.one}", key=False).status, 401)
        harness.wait_for(lambda: [t["last_used_at"] for t in self.main.api("/tokens")["tokens"] if t["id"] == reads["id"]] != [None])
        self.assertEqual(self.other.request("DELETE", "/api/v1/tokens/" + reads["id"]).status, 204)
        harness.wait_for(lambda: self.other.get(f"/api/v1/traces/{self.one}", headers=self.as_token(reads["token"])).status == 401)

    def test_nobody_else_is_taken_for_a_server(self):
        secret = postgres.sql("SELECT secret FROM catalog_holder", self.database)
        self.assertRegex(secret, "^[a-z2-7]{26}$")
        for guess in ("", "x", secret[:-1], secret + "a", secret.upper()):
            for node in (self.main, self.other):
                for how in ("bearer", "cookie"):
                    self.assertEqual(node.get("/api/v1/audit", headers={"Lacuna-Node": guess, "Lacuna-As": how}, key=False).status, 401)
                    self.assertEqual(node.request("DELETE", f"/api/v1/traces/{self.one}", headers={"Lacuna-Node": guess, "Lacuna-As": how}, key=False).status, 401)
        # what a client says of itself does not pass through the standby, whatever it knows
        self.assertEqual(self.other.request("DELETE", f"/api/v1/traces/{self.one}", headers={"Lacuna-Node": secret, "Lacuna-As": "bearer"}, key=False).status, 401)
        self.assertEqual(self.other.request("DELETE", f"/api/v1/traces/{self.one}", headers={"Lacuna-As": "bearer"}, key=False).status, 401)
        self.assertNotIn(secret, self.main.log_text() + self.other.log_text())

    def test_hostile_requests_end_there(self):
        for request in (b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                        b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
                        b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                        b"DELETE /api/v1/traces/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                        b"DELETE /api/v1/traces/../x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                        b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\nLacuna-As: bearer\r\nContent-Length: 0\r\n\r\n"):
            reply = self.other.raw(request, timeout=1)
            self.assertEqual(harness.status_of(reply), 400, request)
        # what follows a request that is passed on belongs to the next one
        two = self.other.raw(f"PATCH /api/v1/traces/{self.one} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.other.key}\r\nContent-Type: application/json\r\n"
                             "Content-Length: 14\r\n\r\n{\"notes\": \"n\"}GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(), timeout=2)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", two), [b"200", b"200"], two)
        self.assertIn(b'"standby"', two)

    def test_events_are_told_there_too(self):
        with self.other.connect(60) as link:
            link.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.other.key}\r\n\r\n".encode())
            harness.hear(link, 60, rb": ready")
            id = self.main.upload(harness.make_trace(steps=50), "heard")
            heard = harness.hear(link, 60, rb'event: trace\r?\n.*"id":"' + id.encode() + rb'"[^\n]*"state":"ready"')
            self.assertIn(b'"state":"ready"', heard)
            self.assertEqual(self.main.request("DELETE", f"/api/v1/traces/{id}").status, 204)
            self.assertIn(b"event: deleted", harness.hear(link, 60, rb"event: deleted\r?\n[^\n]*" + id.encode()))

    def test_postgresql_restarts_under_it(self):
        postgres.stop()
        postgres.start()
        harness.wait_for(lambda: self.other.get(f"/api/v1/traces/{self.one}").status == 200)
        with self.other.connect(120) as link:
            link.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.other.key}\r\n\r\n".encode())
            harness.hear(link, 60, rb": ready")
            name = "after " + os.urandom(4).hex()

            def is_told():
                self.main.request("PATCH", f"/api/v1/traces/{self.two}", body=json.dumps({"name": name}), headers=JSON)
                return re.search(name.encode(), harness.hear(link, 2, name.encode()))

            harness.wait_for(is_told, 120)
        self.assertEqual(self.other.node_is(), "standby")
        self.assertEqual(self.other.api(f"/traces/{self.two}")["name"], name)


class Bounded(Pair):
    flags = ("--object-copies", "1")

    def test_copies_are_bounded_and_fetched_again(self):
        ids = [self.main.upload(harness.make_trace(steps=3 + n), f"t{n}") for n in range(4)]
        for id in ids:
            self.main.wait_ready(id)
        sizes = []
        for id in ids * 2:
            self.assertEqual(self.other.get(f"/api/v1/traces/{id}/tracks").status, 200)
            folder = os.path.join(self.other.data, "standby", "traces")
            sizes.append(len(os.listdir(folder)))
        self.assertEqual(self.other.terminate(), 0)
        self.assertLessEqual(max(sizes), 4)
        # what was left of another life goes
        stale = os.path.join(self.other.data, "standby", "traces", ids[0] + ".db")
        os.makedirs(os.path.dirname(stale), exist_ok=True)
        with open(stale, "w") as file:
            file.write("not a trace")
        again = self.node("b", Waiting, "--standby").waits()
        self.assertEqual(again.get(f"/api/v1/traces/{ids[0]}/tracks").status, 200)
        # and a second server on the same folder is refused
        with self.assertRaisesRegex(RuntimeError, "another server runs on the data folder"):
            self.node("b", harness.Server, "--standby")


def noisy_trace(count=250000, seed=3):
    """A trace whose numbers do not compress: some megabytes when it is stored."""
    chooser = random.Random(seed)
    at, events = 1000, [{"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    for n in range(count):
        at += chooser.randrange(5, 500)
        events.append({"ph": "X", "cat": "kernel", "name": f"conv{n % 7}", "pid": 0, "tid": 7, "ts": at, "dur": chooser.randrange(1, 4),
                       "args": {"device": 0, "stream": 7, "correlation": chooser.randrange(1 << 30), "grid": [chooser.randrange(1, 60000), 1, 1], "block": [128, 1, 1]}})
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


class InPieces(Pair):
    """Large traces are read from storage as they are asked for. Here everything is large."""
    flags = ("--object-whole", "64K")

    def test_a_tile_does_not_wait_for_the_whole_trace(self):
        id = self.main.upload(noisy_trace(), "large")
        self.assertEqual(self.main.wait_ready(id, 180)["state"], "ready")
        trace, copy = f"/api/v1/traces/{id}", os.path.join(self.other.data, "standby", "traces", id + ".db")

        def held():
            info = os.stat(copy)
            return info.st_blocks * 512 / info.st_size

        self.assertEqual(self.both_say(trace + "/tracks").status, 200)
        opened = held()
        self.assertLess(opened, 0.4)
        self.assertEqual(self.both_say(trace + "/g1/tiles/0/70000-70003?tracks=0-3").status, 200)
        self.assertLess(held(), 0.5)
        # with the storage away what is here is answered, what is not says why, and later it is had
        os.rename(self.objects, self.objects + ".away")
        self.assertEqual(self.other.get(trace + "/g1/tiles/0/70000-70003?tracks=0-3").status, 200)
        away = self.other.get(trace + "/slices/200000")
        self.assertEqual(away.status, 500, away.body)
        self.assertRegex(away.json()["error"]["message"], "traces/[0-9a-f]{2}/")
        question = json.dumps({"query": "SELECT count(*), sum(dur_ns) FROM slices"})
        self.assertEqual(self.other.request("POST", trace + "/sql", body=question, headers=JSON).status, 500)
        os.rename(self.objects + ".away", self.objects)
        for path in ("/analysis", "/names", "/kernels", "/gaps", "/search?q=conv", "/flame", "/area?t0=0&t1=90000000", "/tables/kernels", "/strip", "/slices/12345"):
            self.assertEqual(self.both_say(trace + path).status, 200, path)
        # another process reads it by its path
        asked = [node.request("POST", trace + "/sql", body=question, headers=JSON) for node in (self.other, self.main)]
        self.assertEqual((asked[0].status, asked[0].json()["rows"]), (200, asked[1].json()["rows"]))
        self.assertGreater(held(), 0.99)
        self.assertEqual(self.main.request("DELETE", trace).status, 204)
        harness.wait_for(lambda: not os.path.exists(copy))
        self.assertEqual(self.other.get(trace + "/tracks").status, 404)

    def test_a_flipped_bit_in_storage_is_found_in_the_piece(self):
        id = self.main.upload(noisy_trace(seed=4), "flipped")
        self.main.wait_ready(id, 180)
        [name] = [os.path.join(folder, name) for folder, _, names in os.walk(self.objects) for name in names if name.endswith(id) and "/traces/" in folder + "/"]
        size = os.path.getsize(name)
        with open(name, "r+b") as file:
            for at in range(size // 3, size - 70000, 65536):  # behind the tables
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 4]))
        answers = [self.other.get(f"/api/v1/traces/{id}{path}") for path in ("/flame", "/search?q=conv", "/tables/kernels")]
        self.assertIn(500, [reply.status for reply in answers])
        for reply in answers:
            if reply.status != 200:
                self.assertEqual((reply.status, reply.json()["error"]["code"]), (500, "corrupt"), reply.body)


class Lost(Pair):
    def test_it_goes_on_when_the_holder_is_lost(self):
        id = self.main.upload(harness.make_trace(steps=8), "kept")
        self.main.wait_ready(id)
        port = self.other.port
        self.assertEqual(self.other.get(f"/api/v1/traces/{id}/analysis").status, 200)
        # asleep: reads go on, what was passed on is cut when it is known, and nothing hangs
        self.main.process.send_signal(signal.SIGSTOP)
        answers = []
        late = threading.Thread(target=lambda: answers.append(self.other.request("PATCH", f"/api/v1/traces/{id}", body='{"name": "late"}', headers=JSON, timeout=240)))
        late.start()
        while late.is_alive():
            try:
                self.assertEqual(self.other.get(f"/api/v1/traces/{id}/analysis").status, 200)
            except (ConnectionError, http.client.HTTPException):
                break  # it is taking over
            time.sleep(0.05)
        late.join(240)
        [reply] = answers
        self.other.took_over()
        if reply.status == 200:  # on a busy machine it may arrive when the other node has taken over: then it is done
            self.assertEqual(self.other.api(f"/traces/{id}")["name"], "late")
        else:
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (503, "node_lost"))
        self.assertEqual(self.other.port, port)
        self.assertEqual(self.other.request("PATCH", f"/api/v1/traces/{id}", body='{"name": "here"}', headers=JSON).status, 200)
        self.main.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.main.process.wait(120), 75)
        self.assertEqual(self.other.api(f"/traces/{id}")["name"], "here")
        self.assertFalse(os.path.exists(os.path.join(self.other.data, "standby")))
        # the first one comes back to stand by, and its folder is as it was
        back = self.node("a", Waiting, "--standby").waits()
        self.assertEqual(back.get(f"/api/v1/traces/{id}/analysis").body, self.other.get(f"/api/v1/traces/{id}/analysis").body)
        pushed = back.upload(harness.make_trace(steps=9), "through")
        self.assertEqual(back.wait_ready(pushed)["state"], "ready")
        # it hands over when it ends: who connects meanwhile waits, and is not refused
        self.assertEqual(self.other.terminate(), 0)
        end = time.monotonic() + TAKE_OVER_S
        while back.node_is() != "main":
            socket.create_connection(("127.0.0.1", back.port), timeout=60).close()
            self.assertLess(time.monotonic(), end)
        self.assertEqual(back.api(f"/traces/{pushed}")["state"], "ready")
        self.assertEqual(back.request("DELETE", f"/api/v1/traces/{pushed}").status, 204)


class Encrypted(Waiting):
    """A server that speaks TLS, from whose certificate a client expects nothing but that it is there."""

    def http_connection(self, timeout):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=context)

    def certificate(self):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as plain, context.wrap_socket(plain) as tls:
            return hashlib.sha256(tls.getpeercert(True)).hexdigest()


@unittest.skipUnless(shutil.which("openssl"), "skip: no openssl: no certificate to serve with")
class WithTls(Pair):
    """Both speak TLS, to clients and to each other, each with a certificate that nobody signed."""

    @classmethod
    def setUpClass(cls):
        with unittest.mock.patch.object(harness, "Server", Encrypted), unittest.mock.patch.dict(globals(), {"Waiting": Encrypted}):
            super().setUpClass()

    @classmethod
    def node(cls, name, kind, *flags):
        folder = os.path.join(cls.home, "certificate-" + name)
        if not os.path.exists(folder):
            os.makedirs(folder)
            make_certificate(folder, name)
        return super().node(name, kind, "--tls-cert", os.path.join(folder, "cert.pem"), "--tls-key", os.path.join(folder, "key.pem"), *flags)

    def address(self):
        return postgres.sql("SELECT address FROM catalog_holder", self.database)

    def change(self, id, name):
        return self.other.request("PATCH", f"/api/v1/traces/{id}", body=json.dumps({"name": name}), headers=JSON)

    def test_it_reads_passes_on_and_takes_over(self):
        self.assertRegex(self.address(), r"^tls:[0-9a-f]{64}@127\.0\.0\.1:\d+$")
        self.assertIn(self.main.certificate(), self.address())
        self.assertNotEqual(self.main.certificate(), self.other.certificate())
        trace = harness.make_trace(steps=200)
        id = self.other.upload(trace, "twice")
        self.assertEqual(self.other.wait_ready(id)["sha256"], hashlib.sha256(trace).hexdigest())
        for path in ("", "/analysis", "/tracks", "/g1/tiles/5/0-0?tracks=0-9"):
            self.assertEqual(self.both_say(f"/api/v1/traces/{id}{path}").status, 200)
        self.both_say("/api/v1/projects/-/journal")
        self.assertTrue(os.path.exists(os.path.join(self.other.data, "standby", "traces", id + ".db")))
        large = self.other.get("/api/v1/quotas")
        self.assertEqual(large.status, 200, large.body)
        # a new certificate: the other is told, and nothing has to be started again
        folder = os.path.join(self.home, "certificate-a")
        before = self.main.certificate()
        make_certificate(folder, "a renewed")
        self.main.process.send_signal(signal.SIGHUP)
        harness.wait_for(lambda: self.main.certificate() != before and self.main.certificate() in self.address())
        harness.wait_for(lambda: self.change(id, "renewed").status == 200)
        # also where it stands by
        before = self.other.certificate()
        make_certificate(os.path.join(self.home, "certificate-b"), "b renewed")
        self.other.process.send_signal(signal.SIGHUP)
        harness.wait_for(lambda: self.other.certificate() != before)
        # one that sits at the holder's place without its certificate gets nothing: no key, no trace
        told = self.address()
        postgres.sql(f"UPDATE catalog_holder SET address = '{'tls:' + '0' * 64 + told[68:]}'", self.database)
        refused = harness.wait_for(lambda: (reply := self.change(id, "nobody's")).status == 503 and reply)
        self.assertIn("another certificate", refused.json()["error"]["message"])
        postgres.sql(f"UPDATE catalog_holder SET address = '{told}'", self.database)
        harness.wait_for(lambda: self.change(id, "again").status == 200)
        port = self.other.port
        whole = self.other.api("/projects/-/journal")
        self.assertEqual((whole["pending"], len(whole["runs"])), (0, 1))
        self.main.kill()
        # until it has taken over: what is kept is answered here, what only the lost one knew is not, and says so
        heard = {}
        while self.other.node_is() == "standby":
            for path in ("/journal", "/trends", "/series?setting=num_workers", "/quota"):
                try:
                    reply = self.other.get("/api/v1/projects/-" + path)
                except (OSError, http.client.HTTPException):
                    break
                heard.setdefault(path, []).append((reply.status, reply.json()))
        self.other.took_over()
        for path in ("/journal", "/trends", "/series?setting=num_workers"):
            answers = [body for status, body in heard[path] if status == 200]
            self.assertGreater(len(answers), 0, heard[path][:3])
            self.assertTrue(all("does not answer: try again in a moment" in body["error"]["message"] for status, body in heard[path] if status != 200), heard[path][:3])
        self.assertIn([run["trace"] for run in whole["runs"]], [[run["trace"] for run in body["runs"]] for status, body in heard["/journal"] if status == 200])
        self.assertIn(503, [status for status, _ in heard["/quota"]])
        self.assertEqual(self.other.port, port)
        self.assertIn(self.other.certificate(), self.address())
        self.assertEqual(self.change(id, "here").status, 200)
        self.assertEqual(self.other.get(f"/api/v1/traces/{id}/analysis").status, 200)


@unittest.skipIf(swift_harness.why_not(), swift_harness.why_not())
class InSwift(Pair):
    @classmethod
    def open_storage(cls):
        cls.swift = swift_harness.Swift()
        cls.swift.request("PUT", swift_harness.BUCKET)
        cls.objects, cls.environment = f"s3://{swift_harness.BUCKET}/team", cls.swift.environment

    @classmethod
    def close_storage(cls):
        cls.swift.close()

    def test_reads_and_a_storage_that_is_away(self):
        ids = [self.other.upload(harness.make_trace(steps=10 + n), f"t{n}") for n in range(2)]
        for id in ids:
            self.assertEqual(self.other.wait_ready(id)["state"], "ready")
        harness.wait_for(lambda: self.other.get(f"/api/v1/traces/{ids[0]}/tracks").status == 200)
        self.assertEqual(self.both_say(f"/api/v1/traces/{ids[0]}/analysis").status, 200)
        self.swift.stop()
        self.assertEqual(self.other.get(f"/api/v1/traces/{ids[0]}/analysis").status, 200)  # has a copy
        away = self.other.get(f"/api/v1/traces/{ids[1]}/analysis")
        self.assertGreaterEqual(away.status, 500)
        self.assertIn("error", away.json())
        self.swift.start()
        harness.wait_for(lambda: self.other.get(f"/api/v1/traces/{ids[1]}/analysis").status == 200, 120)


if __name__ == "__main__":
    why_not = postgres_harness.why_not()
    if why_not:
        print("skip: " + why_not)
        print("0 passed, 0 failed")
    else:
        harness.main()
