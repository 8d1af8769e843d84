#!/usr/bin/env python3
"""Two servers, one catalog, one storage: uploads through either while servers are killed at random moments. Nothing acknowledged is lost or there twice."""
import base64
import glob
import hashlib
import http.client
import os
import random
import re
import shutil
import tempfile
import threading
import time
import unittest
import urllib.parse

import postgres_harness
import server_harness as harness
import swift_harness
from test_standby import Waiting

UPLOADERS = 32 if harness.SOAK else 4
KILLS = 10 if harness.SOAK else 3
EVENTS = 5000 if harness.SOAK else 60
BYTES = 100 << 20 if harness.SOAK else 0  # each trace is at least so large
PIECE_BYTES = 16 << 20
MEMORY_KB_MAX = 500 << 10
TUS = {"Tus-Resumable": "1.0.0"}
DEADLINE_S = 3000 if harness.SOAK else 500


def setUpModule():
    global postgres
    postgres = postgres_harness.Postgres()


def tearDownModule():
    postgres.close()


class Uploader(threading.Thread):
    """Uploads one trace after another through any server, as a resumable client does; keeps what was acknowledged."""

    def __init__(self, test, number, seed):
        super().__init__(daemon=True)
        self.test, self.number, self.random = test, number, random.Random(seed)
        self.acknowledged = {}  # name -> sha256
        self.is_over, self.problem = False, None

    def ask(self, method, path, **kwargs):
        """Any server, until one answers with something that is not "later"."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            server = self.random.choice(self.test.alive())
            try:
                reply = server.request(method, path, headers={**self.test.token, **TUS, **kwargs.get("headers", {})}, body=kwargs.get("body"), timeout=120)
            except (OSError, http.client.HTTPException) as error:
                last = repr(error)
            else:
                if reply.status < 500 and reply.status not in (401, 423, 429):
                    return reply
                last = f"{reply.status} {reply.body[:200]}"
            time.sleep(0.1)
        raise AssertionError(f"{method} {path}: nobody answers: {last}")

    def upload(self, name, body):
        metadata = "name " + base64.b64encode(name.encode()).decode() + ",reuse MQ=="
        while True:
            begun = self.ask("POST", "/api/v1/uploads", headers={"Upload-Length": str(len(body)), "Upload-Metadata": metadata})
            assert begun.status == 201, (begun.status, begun.body)
            path, offset = urllib.parse.urlparse(begun.headers["Location"]).path, 0
            while offset < len(body):
                piece = body[offset:offset + min(max(1000, len(body) // self.random.randrange(1, 5)), PIECE_BYTES)]
                reply = self.ask("PATCH", path, body=piece, headers={"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"})
                if reply.status == 204:
                    offset = int(reply.headers["Upload-Offset"])
                    continue
                if reply.status == 409:  # the answer to the last one was lost
                    looked = self.ask("HEAD", path)
                    if looked.status == 200:
                        offset = int(looked.headers["Upload-Offset"])
                        continue
                    reply = looked
                assert reply.status in (404, 410), (reply.status, reply.body)
                break  # its server was lost with it: begin again
            else:
                return

    def run(self):
        try:
            count = 0
            while not self.is_over:
                name = f"u{self.number}-{count}"
                body = harness.make_trace(steps=2 + count % 3, kernels=EVENTS, name=name).ljust(BYTES)
                self.upload(name, body)
                self.acknowledged[name] = hashlib.sha256(body).hexdigest()
                count += 1
        except AssertionError as error:
            self.problem = error


class Crash:
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="lacuna-crash-")
        self.environment, self.launches, self.servers, self.pair, self.largest_kb = {}, 0, [], [], 0
        self.lock = threading.Lock()
        self.open_storage()
        self.database = "crash" + os.urandom(4).hex()
        self.url = postgres.database(self.database).replace("team@", f"team:{postgres_harness.IN_ADDRESS}@")

    def tearDown(self):
        try:
            for server in self.servers:
                server.close()
        finally:
            self.close_storage()
            shutil.rmtree(self.home, ignore_errors=True)

    def node(self, name):
        data = os.path.join(self.home, name)
        os.makedirs(data, exist_ok=True)
        self.launches += 1
        server = Waiting("--catalog", self.url, "--objects", self.objects, "--import-workers", "1", "--standby", data=data,
                         log=os.path.join(self.home, f"{name}-{self.launches}.log"), environment=self.environment)
        self.servers.append(server)
        return server

    def look_at_memory(self, server):
        with open(f"/proc/{server.process.pid}/status") as file:
            self.largest_kb = max(self.largest_kb, int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)))

    def logged(self):
        text = ""
        for path in sorted(glob.glob(os.path.join(self.home, "*.log")), key=os.path.getmtime):
            with open(path, errors="replace") as file:
                text += f"-- {os.path.basename(path)}\n" + "".join(line for line in file if " msg=request " not in line)
        return text

    def alive(self):
        with self.lock:
            return list(self.pair)

    def test_servers_are_killed_while_nodes_upload(self):
        seed = int(os.environ.get("LACUNA_TEST_SEED", random.randrange(1 << 30)))
        print(f"  seed {seed}", flush=True)
        chooser = random.Random(seed)
        self.pair = [self.node("a")]
        self.pair[0].took_over()
        self.pair.append(self.node("b").waits())
        made = self.pair[0].request("POST", "/api/v1/tokens", body='{"name": "nodes", "scope": "upload"}', headers={"Content-Type": "application/json"})
        self.token = {"Authorization": "Bearer " + made.json()["token"]}
        uploaders = [Uploader(self, n, seed + n) for n in range(UPLOADERS)]
        for uploader in uploaders:
            uploader.start()
        for kill in range(KILLS):
            before = sum(len(u.acknowledged) for u in uploaders)
            harness.wait_for(lambda: sum(len(u.acknowledged) for u in uploaders) > before + 2 or any(u.problem for u in uploaders), DEADLINE_S)
            time.sleep(chooser.random() * 2)
            victim = chooser.choice(self.alive()) if kill > 0 else next(s for s in self.alive() if s.node_is() == "main")
            with self.lock:
                self.pair.remove(victim)
            self.look_at_memory(victim)
            victim.kill()
            if chooser.random() < 0.5:
                shutil.rmtree(victim.data)  # with its disk
            fresh = self.node(os.path.basename(victim.data))
            harness.wait_for(lambda: any(s.node_is() == "main" for s in (*self.alive(), fresh)), DEADLINE_S)
            with self.lock:
                self.pair.append(fresh)
        for uploader in uploaders:
            uploader.is_over = True
        for uploader in uploaders:
            uploader.join(DEADLINE_S)
            self.assertIsNone(uploader.problem)
            self.assertFalse(uploader.is_alive())
        expected = {name: sha256 for u in uploaders for name, sha256 in u.acknowledged.items()}
        self.assertGreater(len(expected), KILLS * 2)
        for server in self.alive():
            rows, after = [], ""
            while after is not None:
                page = server.api("/traces?limit=500" + (f"&after={after}" if after else ""))
                rows, after = rows + page["traces"], page["next"]
            self.assertEqual(sorted(name for name in (row["name"] for row in rows) if name in expected), sorted(expected))  # each once
            for row in rows:
                ready = server.wait_ready(row["id"], DEADLINE_S)
                self.assertEqual((ready["state"], ready["sha256"]), ("ready", expected[row["name"]]), f"{ready}\n{self.logged()}")
                self.assertGreater(len(server.api(f"/traces/{row['id']}/tracks")["tracks"]), 0)
        for server in self.alive():
            self.look_at_memory(server)
        print(f"  {KILLS} kills, {len(expected)} traces, each there once; {self.largest_kb >> 10} MB at most in a server", flush=True)
        self.assertLessEqual(self.largest_kb, MEMORY_KB_MAX)


@unittest.skipUnless(harness.SOAK or swift_harness.why_not(), "in make soak: Swift alone")
class InAFolder(Crash, unittest.TestCase):
    def open_storage(self):
        self.objects = os.path.join(self.home, "bucket")

    def close_storage(self):
        pass


@unittest.skipIf(swift_harness.why_not(), swift_harness.why_not())
class InSwift(Crash, unittest.TestCase):
    def open_storage(self):
        self.swift = swift_harness.Swift()
        self.swift.request("PUT", swift_harness.BUCKET)
        self.objects, self.environment = f"s3://{swift_harness.BUCKET}/team", self.swift.environment

    def close_storage(self):
        self.swift.close()


if __name__ == "__main__":
    why_not = postgres_harness.why_not()
    if why_not:
        print("skip: " + why_not)
        print("0 passed, 0 failed")
    else:
        harness.main()
