#!/usr/bin/env python3
"""Traces and originals in object storage: in a folder, and in OpenStack Swift through its S3 interface."""
import glob
import http.client
import http.server
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

import server_harness as harness
import swift_harness


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1:]


class Folder:
    """Objects in a folder, looked at behind the program's back."""

    def __init__(self, home):
        self.path = os.path.join(home, "objects")
        self.url = self.path
        self.environment = {}

    def names(self):
        found = glob.glob(os.path.join(self.path, "**"), recursive=True)
        return sorted(os.path.relpath(name, self.path) for name in found if os.path.isfile(name))

    def read(self, name):
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read()

    def write(self, name, content):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(content)

    def close(self):
        pass


class Bucket:
    """Objects in Swift, looked at with requests that are signed another way."""

    def __init__(self, home):
        self.swift = swift_harness.Swift()
        self.url = f"s3://{swift_harness.BUCKET}/team/one"
        self.environment = self.swift.environment
        status, body = self.swift.request("PUT", swift_harness.BUCKET)
        if status != 200:
            raise RuntimeError(f"cannot make the bucket: {status} {body[:300]}")

    def names(self):
        return [name.removeprefix("team/one/") for name in self.swift.names()]

    def read(self, name):
        status, body = self.swift.request("GET", f"{swift_harness.BUCKET}/team/one/{name}")
        if status != 200:
            raise RuntimeError(f"{name}: {status}")
        return body

    def write(self, name, content):
        status, body = self.swift.request("PUT", f"{swift_harness.BUCKET}/team/one/{name}", content)
        if status != 200:
            raise RuntimeError(f"{name}: {status} {body[:300]}")

    def close(self):
        self.swift.close()


class Stumbling:
    """Passes requests on to Swift, and says of the next `stumbles` PUTs what Swift says while its own servers are slow: there is no such bucket."""

    def __init__(self, port):
        self.stumbles = 0
        stumbling = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.command == "PUT" and stumbling.stumbles > 0:
                    stumbling.stumbles -= 1
                    status, headers, content = 404, [], b"<?xml version='1.0'?><Error><Code>NoSuchBucket</Code></Error>"
                else:
                    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        if name.lower() not in ("expect", "connection"):
                            link.putheader(name, value)
                    link.endheaders(body)
                    reply = link.getresponse()
                    status, headers, content = reply.status, reply.getheaders(), reply.read()
                    link.close()
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", dict(headers).get("Content-Length", "0") if self.command == "HEAD" else str(len(content)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Objects:
    storage_kind = None

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="lacuna-objects-")
        try:
            cls.storage = cls.storage_kind(cls.home)
        except BaseException:
            shutil.rmtree(cls.home)
            raise
        cls.trace = harness.make_trace()

    @classmethod
    def tearDownClass(cls):
        cls.storage.close()
        shutil.rmtree(cls.home)

    def lacuna(self, *words, environment=None):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LACUNA_", "AWS_"))}
        return subprocess.run([harness.PROGRAM, *words, "--data", self.data], capture_output=True, text=True, timeout=300,
                              env={**kept, **(self.storage.environment if environment is None else environment)})

    def local(self):
        return sorted(os.path.basename(name) for kind in ("traces", "originals") for name in glob.glob(os.path.join(self.data, kind, "*")))

    def kinds(self, below="life/"):
        return [name.removeprefix(below).split("/")[0] for name in self.storage.names() if name.startswith(below)]

    def serve(self, *flags):
        return harness.Server(*flags, data=self.data, environment=self.storage.environment)

    def upload(self, server, name):
        id = server.upload(self.trace, name)
        server.wait_ready(id)
        return id

    def test_the_life_of_a_trace(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        server = self.serve("--objects", self.storage.url + "/life")
        try:
            first = self.upload(server, "one")
            self.upload(server, "two")
            analysis = server.get(f"/api/v1/traces/{first}/analysis").body
            self.assertEqual(self.kinds(), ["lacuna-owner", "originals", "originals", "traces", "traces"])
        finally:
            server.terminate()
        verified = self.lacuna("admin", "verify")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertIn("2 traces, 2 originals, 4 objects", verified.stdout)
        # another data folder does not get hold of them
        with tempfile.TemporaryDirectory(dir=self.home) as other:
            with self.assertRaisesRegex(RuntimeError, "belongs to another data folder"):
                harness.Server("--objects", self.storage.url + "/life", data=other, environment=self.storage.environment)
        # what is in the folder are copies: without them all is as it was, and the start knows where to look
        for kind in ("traces", "originals"):
            for name in glob.glob(os.path.join(self.data, kind, "*")):
                os.unlink(name)
        verified = self.lacuna("admin", "verify")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        server = self.serve()
        try:
            self.assertEqual(server.get("/api/v1/traces").json()["traces"][0]["state"], "ready")
            self.assertEqual(self.local(), [])
            self.assertEqual(server.get(f"/api/v1/traces/{first}/analysis").body, analysis)
            self.assertEqual(self.local(), [first + ".db"])
            # who deletes a trace deletes its objects
            self.assertIn(server.request("DELETE", f"/api/v1/traces/{first}").status, (200, 204))
            self.assertEqual(self.kinds(), ["lacuna-owner", "originals", "traces"])
        finally:
            server.terminate()
        # an import without a server puts its objects too
        path = os.path.join(self.home, "beside.json")
        with open(path, "wb") as file:
            file.write(harness.make_trace(steps=5))
        done = self.lacuna("import", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.kinds(), ["lacuna-owner", "originals", "originals", "traces", "traces"])
        if self.storage.environment:
            done = self.lacuna("import", path, environment={})
            self.assertEqual(done.returncode, 1)
            self.assertIn("AWS_ACCESS_KEY_ID", done.stderr)

    def test_move_and_back_and_damage(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        path = os.path.join(self.home, "moved.json")
        with open(path, "wb") as file:
            file.write(self.trace)
        for name in ("a", "b"):
            done = self.lacuna("import", path, "--name", name, environment={})
            self.assertEqual(done.returncode, 0, done.stderr)
        before = self.local()
        contents = {}
        for kind in ("traces", "originals"):
            for name in os.listdir(os.path.join(self.data, kind)):
                with open(os.path.join(self.data, kind, name), "rb") as file:
                    contents[name] = file.read()
        target = self.storage.url + "/moved"
        done = self.lacuna("admin", "move", "--to", target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 objects", done.stdout)
        self.assertEqual(self.local(), [])
        moved = [name for name in self.storage.names() if name.startswith("moved/traces/")]
        self.assertEqual(len(moved), 2)
        # a flipped bit is found, and nobody is shown damaged data
        whole = self.storage.read(moved[0])
        self.storage.write(moved[0], flip(whole, len(whole) // 2))
        verified = self.lacuna("admin", "verify")
        self.assertEqual(verified.returncode, 1)
        self.assertIn(moved[0].removeprefix("moved/") + " is damaged", verified.stdout)
        done = self.lacuna("admin", "move", "--back")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not what was put there", done.stderr)
        self.storage.write(moved[0], whole)
        done = self.lacuna("admin", "move", "--back")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.local(), before)
        for name, content in contents.items():
            with open(os.path.join(self.data, "traces" if name.endswith(".db") else "originals", name), "rb") as file:
                self.assertEqual(file.read(), content, name)
        self.assertEqual([name for name in self.storage.names() if name.startswith("moved/")], [])
        self.assertEqual(self.lacuna("admin", "verify", environment={}).returncode, 0)

    def test_too_many_copies(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        path = os.path.join(self.home, "copies.json")
        with open(path, "wb") as file:
            file.write(self.trace)
        for name in ("a", "b"):
            self.assertEqual(self.lacuna("import", path, "--name", name, environment={}).returncode, 0)
        for kind in ("traces", "originals"):  # used a minute ago
            for name in glob.glob(os.path.join(self.data, kind, "*")):
                os.utime(name, (1, 1))
        server = self.serve("--objects", self.storage.url + "/copies", "--object-copies", "1")
        try:
            harness.wait_for(lambda: self.local() == [], 60)
            ids = [row["id"] for row in server.get("/api/v1/traces").json()["traces"]]
            for id in ids:
                self.assertEqual(server.get(f"/api/v1/traces/{id}/analysis").status, 200)
        finally:
            server.terminate()


class InAFolder(Objects, unittest.TestCase):
    storage_kind = Folder


@unittest.skipIf(swift_harness.why_not(), swift_harness.why_not())
class InSwift(Objects, unittest.TestCase):
    storage_kind = Bucket

    def test_storage_that_is_away(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        server = self.serve("--objects", self.storage.url + "/away")
        try:
            kept = self.upload(server, "before")
            self.storage.swift.stop()
            try:
                self.assertEqual(server.get(f"/api/v1/traces/{kept}/analysis").status, 200)  # of the copy
                late = server.upload(self.trace, "meanwhile")
            finally:
                self.storage.swift.start()
            server.wait_ready(late)
            self.assertEqual(len([name for name in self.storage.names() if name.startswith("away/traces/")]), 2)
        finally:
            server.terminate()

    def test_a_bucket_that_is_gone_for_a_moment_is_waited_for(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        between = Stumbling(self.storage.swift.port)
        server = None
        try:
            server = harness.Server("--objects", self.storage.url + "/moment", data=self.data, environment={**self.storage.environment, "AWS_ENDPOINT_URL": between.url})
            self.upload(server, "before")
            between.stumbles = 3
            row = server.wait_ready(server.upload(self.trace, "meanwhile"))
            self.assertEqual((row["state"], between.stumbles), ("ready", 0), row)
            self.assertEqual(len([name for name in self.storage.names() if name.startswith("moment/traces/")]), 2)
        finally:
            if server is not None:
                server.terminate()
            between.close()

    def test_wrong_key(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        with self.assertRaisesRegex(RuntimeError, "403 SignatureDoesNotMatch"):
            harness.Server("--objects", self.storage.url + "/refused", data=self.data,
                           environment={**self.storage.environment, "AWS_SECRET_ACCESS_KEY": "wrong"})


if __name__ == "__main__":
    unittest.main()
