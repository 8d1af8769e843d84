#!/usr/bin/env python3
"""lacuna admin backup: a copy of a running service, under load, that goes on as the same service."""
import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import unittest

import server_harness as harness
from server_harness import make_trace, wait_for

TUS = {"Tus-Resumable": "1.0.0"}


def backup(data, to, check=True):
    done = subprocess.run([harness.PROGRAM, "admin", "backup", to, "--data", data], capture_output=True, text=True, timeout=300)
    if check:
        assert done.returncode == 0, done.stderr
    return done


class Backup(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="lacuna-backup-")
        self.data, self.copy = os.path.join(self.home, "data"), os.path.join(self.home, "copy")
        os.mkdir(self.data)
        self.server = harness.Server(data=self.data)

    def tearDown(self):
        self.server.close()
        shutil.rmtree(self.home)

    def add(self, name, server=None, **kwargs):
        reply = (server or self.server).request("POST", f"/api/v1/traces?name={name}&project=vision", body=make_trace(2, 4, filler=64 << 10, **kwargs))
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()["id"]

    def begin(self, body):
        fields = {"Upload-Length": str(len(body)), "Upload-Metadata": "name " + base64.b64encode(b"resumed").decode(), **TUS}
        return self.server.request("POST", "/api/v1/uploads", headers=fields).headers["Location"]

    def append(self, server, place, offset, piece):
        return server.request("PATCH", place, body=piece, headers={**TUS, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"})

    def verify(self, data):
        done = subprocess.run([harness.PROGRAM, "admin", "verify", "--data", data], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def told(self, server, traces, report):
        """What the service says of everything that is in it."""
        said = {}
        for trace in traces:
            for part in ("", "/analysis", "/kernels", "/gaps", "/tracks", "/bookmarks"):
                said[trace + part] = server.api(f"/traces/{trace}{part}")
        for path in ("/traces", "/projects", "/users", "/tokens", f"/reports/{report}", f"/reports/{report}/comments", "/projects/vision/members"):
            said[path] = server.api(path)
        return said

    def test_a_copy_is_the_same_service(self):
        traces = [self.add("a"), self.add("b")]
        for trace in traces:
            self.assertEqual(self.server.wait_ready(trace)["state"], "ready")
        call = lambda method, path, body=None: self.server.request(method, "/api/v1" + path, body=None if body is None else json.dumps(body))
        self.assertEqual(call("PUT", "/users/ann", {"password": "correct horse battery"}).status, 201)
        self.assertEqual(call("PUT", "/projects/vision/members/ann", {"role": "write"}).status, 204)
        self.assertEqual(call("PATCH", f"/traces/{traces[0]}", {"name": "named", "notes": "noted"}).status, 200)
        self.assertEqual(call("POST", f"/traces/{traces[0]}/bookmarks", {"start_ns": 7, "note": "here"}).status, 201)
        token = call("POST", "/tokens", {"name": "t", "scope": "read"}).json()["token"]
        report = call("POST", "/reports", {"project": "vision", "title": "r", "markdown": f"```lacuna\ntable trace={traces[0]} of=kernels\n```"}).json()["id"]
        self.assertEqual(call("POST", f"/reports/{report}/comments", {"body": "c"}).status, 201)
        body = make_trace(2, 3, filler=200 << 10)
        place = self.begin(body)
        self.assertEqual(self.append(self.server, place, 0, body[:100000]).status, 204)

        said = backup(self.data, self.copy).stdout
        self.assertRegex(said, r"copy: 2 traces, \d+ files, [\d.]+ MB\n")
        self.assertFalse(os.path.exists(os.path.join(self.data, "backup")))
        self.assertEqual(stat.S_IMODE(os.stat(self.copy).st_mode), 0o700)
        self.verify(self.copy)
        before = self.told(self.server, traces, report)
        self.assertEqual(self.append(self.server, place, 100000, body[100000:]).status, 204)  # what comes later is not in it
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + traces[1]).status, 204)
        copy = harness.Server(data=self.copy)
        try:
            self.assertEqual(copy.key, self.server.key)
            self.maxDiff = None
            self.assertEqual(self.told(copy, traces, report), before)
            mine = copy.request("GET", "/api/v1/traces", headers={"Authorization": "Bearer " + token}, key=False)
            self.assertEqual(mine.status, 200)
            self.assertEqual(copy.request("POST", "/api/v1/session", body=json.dumps({"name": "ann", "password": "correct horse battery"}), key=False).status, 204)
            self.assertEqual(copy.request("HEAD", place, headers=TUS).headers["Upload-Offset"], "100000")
            done = self.append(copy, place, 100000, body[100000:])
            self.assertEqual(copy.wait_ready(done.headers["Lacuna-Trace-Id"])["sha256"], hashlib.sha256(body).hexdigest())
        finally:
            copy.close()

    def test_under_load(self):
        """People upload, resume and delete all the while: whatever was acknowledged before a backup began and not deleted is in it, whole, and nothing twice."""
        lock, sent, acknowledged, deleting, stop, failures = threading.Lock(), {}, {}, set(), threading.Event(), []

        def load(worker):
            count = 0
            try:
                while not stop.is_set():
                    name, body = f"w{worker}-{count}", make_trace(1, 2, name=f"{worker}-{count}", filler=32 << 10)
                    count += 1
                    digest = hashlib.sha256(body).hexdigest()
                    with lock:
                        sent[digest] = name
                    if worker % 2 == 0:
                        reply = self.server.request("POST", f"/api/v1/traces?name={name}", body=body)
                        trace = reply.json()["id"] if reply.status == 201 else None
                    else:
                        place = self.begin(body)
                        self.append(self.server, place, 0, body[:20000])
                        reply = self.append(self.server, place, 20000, body[20000:])
                        trace = reply.headers.get("Lacuna-Trace-Id")
                    if trace is None:
                        if reply.status != 503:  # the queue of imports may be full
                            failures.append((reply.status, reply.body))
                        continue
                    with lock:
                        acknowledged[trace] = digest
                    if count % 3 == 0:
                        with lock:
                            deleting.add(trace)
                        reply = self.server.request("DELETE", "/api/v1/traces/" + trace)
                        if reply.status not in (204, 409):
                            failures.append((reply.status, reply.body))
            except Exception as error:  # noqa: BLE001: a thread tells of it
                failures.append(error)

        threads = [threading.Thread(target=load, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        copies = []
        try:
            for number in range(3):
                wait_for(lambda: failures or len(acknowledged) >= 8 * (number + 1))
                with lock:
                    before = dict(acknowledged)
                path = f"{self.copy}{number}"
                backup(self.data, path)
                with lock:
                    copies.append((path, before, set(deleting)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])
        for path, before, deleted in copies:
            copy = harness.Server(data=path)
            try:
                def rows():
                    found = copy.api("/traces?limit=1000")["traces"]
                    return found if all(row["state"] in ("ready", "failed") for row in found) else None
                found = wait_for(rows, timeout=120)
                self.assertEqual({row["state"] for row in found}, {"ready"}, [row for row in found if row["state"] != "ready"])
                hashes = [row["sha256"] for row in found]
                self.assertEqual(len(hashes), len(set(hashes)), "a trace is there twice")
                self.assertLessEqual(set(hashes), set(sent))
                there = {row["id"]: row["sha256"] for row in found}
                for trace, digest in before.items():
                    if trace not in deleted:
                        self.assertEqual(there.get(trace), digest, path)
            finally:
                copy.terminate()
                self.verify(path)
                copy.close()

    def test_where_a_copy_may_be(self):
        self.add("a")
        full = os.path.join(self.home, "full")
        os.mkdir(full)
        with open(os.path.join(full, "mine"), "w") as file:
            file.write("kept")
        os.mkdir(self.copy)
        backup(self.data, self.copy + "/")  # an empty folder will do
        for to, why in ((full, "is not empty"), (self.copy, "is not empty"), (os.path.join(self.data, "inner"), "inside of the data folder"),
                        (os.path.join(self.data, "traces", "inner"), "inside of the data folder"), (os.path.join(self.home, "no", "where"), "No such file")):
            done = backup(self.data, to, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertIn(why, done.stderr)
        self.assertEqual(os.listdir(full), ["mine"])
        for words in ((), ("a", "b")):
            done = subprocess.run([harness.PROGRAM, "admin", "backup", *words, "--data", self.data], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
        nowhere = os.path.join(self.home, "nowhere")
        self.assertEqual(backup(nowhere, os.path.join(self.home, "x"), check=False).returncode, 1)
        self.assertFalse(os.path.exists(nowhere))

    def test_what_a_killed_one_left_is_in_nobodys_way(self):
        trace = self.add("a")
        self.server.wait_ready(trace)
        for leftover in (os.path.join(self.data, "backup", "traces"), self.copy + ".part"):
            os.makedirs(leftover)
            os.symlink(os.path.join(self.data, "catalog.db"), os.path.join(leftover, "link"))
        backup(self.data, self.copy)
        self.verify(self.copy)
        self.verify(self.data)
        self.assertFalse(os.path.exists(self.copy + ".part"))
        self.assertEqual(self.server.api("/traces/" + trace)["state"], "ready")


if __name__ == "__main__":
    harness.main()
