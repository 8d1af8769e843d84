#!/usr/bin/env python3
"""Two servers, one catalog in PostgreSQL, one object storage: one holds the catalog, the other answers reads, passes the rest on, and takes over."""
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import postgres_harness
import server_harness as harness
import swift_harness

TAKE_OVER_S = 180  # 10 s of silence, and a machine that is busy
HELD = "held by the server"


def setUpModule():
    global postgres
    postgres = postgres_harness.Postgres()


def tearDownModule():
    postgres.close()


def is_stopped(pid):
    """Stop a process. @return False: it has ended"""
    try:
        os.kill(pid, signal.SIGSTOP)
        while True:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            if state in "TZX":
                return state == "T"
            time.sleep(0.001)
    except (OSError, IndexError):
        return False


class Waiting(harness.Server):
    """One that stands by. `took_over()` waits until it holds the catalog."""

    def node_is(self):
        try:
            return self.request("GET", "/healthz", key=False).json()["node"]
        except (OSError, http.client.HTTPException):
            return None  # between the two

    def took_over(self):
        harness.wait_for(lambda: self.node_is() == "main" or self.process.poll() is not None, TAKE_OVER_S)
        assert self.process.poll() is None, self.log_text()
        return self

    def waits(self):
        harness.wait_for(lambda: HELD in self.log_text() or self.process.poll() is not None)
        assert self.process.poll() is None and self.node_is() == "standby", self.log_text()
        return self


class Relay:
    """What stands before the servers: hands connections on to the one that listens."""

    def __init__(self):
        self.target = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=60)
            except (OSError, TypeError):
                client.close()
                continue
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Standby:
    """Whatever the storage is."""
    count = 0

    def setUp(self):
        Standby.count += 1
        self.database = f"standby{Standby.count}"
        self.url = postgres.database(self.database).replace("team@", f"team:{postgres_harness.IN_ADDRESS}@")
        self.home = tempfile.mkdtemp(prefix="lacuna-standby-")
        self.servers, self.launches = [], 0
        self.open_storage()

    def tearDown(self):
        try:
            for server in self.servers:
                server.close()
        finally:
            self.close_storage()
            shutil.rmtree(self.home, ignore_errors=True)

    def node(self, name, kind=Waiting, *flags):
        data = os.path.join(self.home, name)
        os.makedirs(data, exist_ok=True)
        self.launches += 1
        server = kind("--catalog", self.url, "--objects", self.objects, "--import-workers", "1", *flags, data=data,
                      log=os.path.join(self.home, f"{name}-{self.launches}.log"), environment=self.environment)
        self.servers.append(server)
        return server

    def waiting(self, name):
        return self.node(name, Waiting, "--standby").waits()

    def sql(self, text):
        return postgres.sql(text, self.database)

    def objects_of(self, kind):
        return [name for name in self.storage_names() if f"{kind}/" in name]

    def hold_an_import(self, server, trace):
        """Stop the process of an import: those behind it wait. @return the id of its trace"""
        for _ in range(100):
            id = server.upload(trace, "held")
            found = harness.wait_for(lambda: harness.importers(server.process.pid) or server.api("/traces/" + id)["state"] == "ready")
            if found is not True and is_stopped(found[0]):
                return id
            server.wait_ready(id)  # it was done before it could be stopped
            server.request("DELETE", "/api/v1/traces/" + id)
        raise AssertionError("no import could be stopped")

    def test_what_was_acknowledged_is_there_when_its_server_is_not(self):
        first, second = self.node("a", harness.Server), self.waiting("b")
        kept, gone = first.upload(harness.make_trace(), "kept"), first.upload(harness.make_trace(steps=5), "gone")
        for id in (kept, gone):
            self.assertEqual(first.wait_ready(id)["state"], "ready")
        harness.wait_for(lambda: not self.objects_of("uploads"))
        analysis = first.get(f"/api/v1/traces/{kept}/analysis").body
        trace = harness.make_trace(steps=200)
        held = self.hold_an_import(first, trace)
        queued = [first.upload(harness.make_trace(steps=6 + n), f"queued{n}") for n in range(3)]
        harness.wait_for(lambda: len(self.objects_of("uploads")) == 4)
        first.kill()
        shutil.rmtree(first.data)  # its disk, too
        second.took_over()
        for id in (held, *queued):
            row = second.wait_ready(id, 180)
            self.assertEqual(row["state"], "ready", row)
        self.assertEqual(second.get(f"/api/v1/traces/{kept}/analysis").body, analysis)
        self.assertEqual({row["id"] for row in second.api("/traces")["traces"]}, {kept, gone, held, *queued})
        self.assertEqual(self.sql(f"SELECT encode(sha256, 'hex') FROM traces WHERE id = '{held}'"), hashlib.sha256(trace).hexdigest())
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LACUNA_", "AWS_"))}
        done = subprocess.run([harness.PROGRAM, "admin", "verify", "--data", second.data], capture_output=True, text=True, timeout=120, env={**clean, **self.environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12 objects", done.stdout)
        harness.wait_for(lambda: not self.objects_of("uploads"))
        self.assertIn("has taken it over, with 4 uploads", second.log_text())


class InAFolder(Standby, unittest.TestCase):
    environment = {}

    def open_storage(self):
        self.objects = os.path.join(self.home, "bucket")

    def close_storage(self):
        pass

    def storage_names(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.objects) for name in names]

    def test_what_a_start_makes_good_is_in_the_storage_before_its_disk_is_lost(self):
        """One is killed between the bytes of an upload and their row, and between the files of a trace and theirs; it starts again, and is killed with its disk."""
        first, second = self.node("a", harness.Server), self.waiting("b")
        published = self.hold_an_import(first, harness.make_trace(steps=200))
        harness.wait_for(lambda: self.objects_of("uploads"))
        (bytes_of_it,) = self.objects_of("uploads")
        staging, kept = os.path.join(first.data, "staging", published), os.path.join(self.home, "kept")
        shutil.copytree(staging, kept)
        shutil.copy(bytes_of_it, kept + ".object")
        self.sql(f"CREATE TABLE waited AS SELECT * FROM objects WHERE id = '{published}'")
        os.kill(harness.importers(first.process.pid)[0], signal.SIGCONT)
        self.assertEqual(first.wait_ready(published)["state"], "ready")
        harness.wait_for(lambda: not self.objects_of("uploads"))
        held = self.hold_an_import(first, harness.make_trace(steps=201))
        unanswered = first.upload(harness.make_trace(steps=150), "unanswered")
        first.kill()
        shutil.copytree(kept, staging, dirs_exist_ok=True)
        shutil.copy(kept + ".object", bytes_of_it)
        self.sql(f"DELETE FROM objects WHERE id IN ('{published}', '{unanswered}'); DELETE FROM findings WHERE trace = '{published}'; INSERT INTO objects SELECT * FROM waited;"
                 f"UPDATE traces SET state = 1 WHERE id = '{published}'; UPDATE traces SET state = 0 WHERE id = '{unanswered}'")
        again = self.node("a", harness.Server)
        stored = self.sql("SELECT string_agg((SELECT count(*) FROM objects WHERE objects.id = traces.id AND (kind = 0 OR state = 1)) || ' of state ' || state, ', ') FROM traces")
        again.kill()
        shutil.rmtree(again.data)
        self.assertNotIn("0 of state", stored)
        second.took_over()
        for id in (published, held, unanswered):
            row = second.wait_ready(id, 180)
            self.assertEqual(row["state"], "ready", row)

    def add_user(self, node, name, expected, environment=None):
        password = os.path.join(self.home, "password")
        with open(password, "w") as file:
            file.write("correct horse battery\n")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        done = subprocess.run([harness.PROGRAM, "admin", "user", "add", name, "--password-file", password, "--data", os.path.join(self.home, node)],
                              capture_output=True, text=True, timeout=120, env={**clean, **self.environment, **(environment or {})})
        self.assertEqual(done.returncode, expected, done.stderr)

    def test_one_serves_and_another_waits(self):
        os.makedirs(os.path.join(self.home, "a"))
        self.add_user("a", "ann", 0, {"LACUNA_CATALOG": self.url})  # before the first server
        first = self.node("a", harness.Server)
        with self.assertRaisesRegex(RuntimeError, HELD):
            self.node("b", harness.Server)
        second = self.waiting("b")
        self.assertEqual(second.terminate(), 0)
        # a command beside one that waits changes nothing, beside the one that serves it does
        self.add_user("b", "eve", 1)
        self.add_user("a", "eve", 0)
        self.assertEqual(self.sql("SELECT count(*) FROM users WHERE name IN ('ann', 'eve')"), "2")
        # one that ends hands over
        third = self.waiting("b")
        self.assertEqual(first.terminate(), 0)
        third.took_over()
        self.assertEqual(third.api("/traces")["traces"], [])

    def test_a_server_that_comes_back_has_nothing_to_say_of_before(self):
        first = self.node("a", harness.Server)
        stays, goes, held = first.upload(harness.make_trace(), "stays"), first.upload(harness.make_trace(steps=5), "goes"), None
        for id in (stays, goes):
            first.wait_ready(id)
        held = self.hold_an_import(first, harness.make_trace(steps=200))
        begun = first.request("POST", "/api/v1/uploads", headers={"Tus-Resumable": "1.0.0", "Upload-Length": "1000"})
        self.assertEqual(begun.status, 201)
        path = re.sub(r"^https?://[^/]+", "", begun.headers["Location"])
        second = self.waiting("b")
        first.kill()
        second.took_over()
        self.assertEqual(second.request("HEAD", path, headers={"Tus-Resumable": "1.0.0"}).status, 404)
        self.assertEqual(second.wait_ready(held, 180)["state"], "ready")
        for id in (goes, held):
            self.assertIn(second.request("DELETE", f"/api/v1/traces/{id}").status, (200, 204))
        self.assertTrue(os.path.exists(os.path.join(first.data, "traces", goes + ".db")))
        # it was killed while it deleted another, and nobody was told that it had
        os.makedirs(os.path.join(first.data, "trash"), exist_ok=True)
        os.rename(os.path.join(first.data, "traces", stays + ".db"), os.path.join(first.data, "trash", stays + ".db"))
        back = self.waiting("a")
        second.kill()
        back.took_over()
        self.assertEqual([row["id"] for row in back.api("/traces")["traces"]], [stays])
        self.assertEqual(back.api(f"/traces/{stays}")["state"], "ready")
        self.assertGreater(len(back.api(f"/traces/{stays}/tracks")["tracks"]), 0)
        self.assertFalse(os.path.exists(os.path.join(back.data, "traces", goes + ".db")))
        self.assertEqual(os.listdir(os.path.join(back.data, "staging")), [])
        self.assertEqual(os.listdir(os.path.join(back.data, "uploads")), [])
        self.assertEqual(os.listdir(os.path.join(back.data, "trash")), [])

    def test_a_push_goes_on_at_the_other_server(self):
        first, second, relay = self.node("a", harness.Server), self.waiting("b"), Relay()
        self.addCleanup(relay.listener.close)
        relay.target = first.port
        made = first.request("POST", "/api/v1/tokens", body='{"name": "nodes", "scope": "upload"}', headers={"Content-Type": "application/json"})
        self.assertEqual(made.status, 201)
        token = os.path.join(self.home, "token")
        with open(token, "w") as file:
            file.write(made.json()["token"])
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        pushes = []
        for n in range(3):
            path = os.path.join(self.home, f"trace{n}.json")
            with open(path, "wb") as file:
                file.write(harness.make_trace(steps=100 + n))
            pushes.append(subprocess.Popen([harness.PROGRAM, "push", path, "--server", f"http://127.0.0.1:{relay.port}", "--token-file", token], stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True, env={**clean, "XDG_STATE_HOME": os.path.join(self.home, f"state{n}")}))
        # one that never reached a server soon gives up: each has noted where its upload is, or is done
        for n, push in enumerate(pushes):
            harness.wait_for(lambda: push.poll() is not None or any(names for _, _, names in os.walk(os.path.join(self.home, f"state{n}"))))
        first.kill()
        relay.target = second.took_over().port
        for push in pushes:
            told, _ = push.communicate(timeout=240)
            self.assertEqual(push.returncode, 0, told)
        rows = second.api("/traces")["traces"]
        self.assertEqual([second.wait_ready(row["id"], 180)["state"] for row in rows], ["ready"] * len(rows))
        self.assertEqual(sorted(row["name"] for row in rows), ["trace0", "trace1", "trace2"])

    def test_a_server_that_was_asleep_changes_nothing(self):
        first = self.node("a", harness.Server)
        id = first.upload(harness.make_trace(), "before")
        first.wait_ready(id)
        second = self.waiting("b")
        first.process.send_signal(signal.SIGSTOP)
        second.took_over()
        self.assertEqual(second.request("PATCH", f"/api/v1/traces/{id}", body='{"name":"after"}', headers={"Content-Type": "application/json"}).status, 200)
        first.process.send_signal(signal.SIGCONT)
        try:
            answer = first.request("PATCH", f"/api/v1/traces/{id}", body='{"name":"late"}', headers={"Content-Type": "application/json"}).status
        except (OSError, http.client.HTTPException):
            answer = 503  # it has ended already
        self.assertGreaterEqual(answer, 500)
        self.assertEqual(first.process.wait(120), 75)
        self.assertIn("taken the catalog over", first.log_text())
        self.assertEqual(second.api(f"/traces/{id}")["name"], "after")


@unittest.skipIf(swift_harness.why_not(), swift_harness.why_not())
class InSwift(Standby, unittest.TestCase):
    def open_storage(self):
        self.swift = swift_harness.Swift()
        self.swift.request("PUT", swift_harness.BUCKET)
        self.objects, self.environment = f"s3://{swift_harness.BUCKET}/team", self.swift.environment

    def close_storage(self):
        self.swift.close()

    def storage_names(self):
        return self.swift.names()


if __name__ == "__main__":
    why_not = postgres_harness.why_not()
    if why_not:
        print("skip: " + why_not)
        print("0 passed, 0 failed")
    else:
        harness.main()
