#!/usr/bin/env python3
"""lacuna admin: verify sees what is wrong, repair mends it, a server that starts on a damaged folder says what it did."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import server_harness as harness


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 16]))


class Admin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="lacuna-admin-")
        cls.trace = os.path.join(cls.home, "trace.json")
        with open(cls.trace, "wb") as file:
            file.write(harness.make_trace())

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="data-", dir=self.home)
        done = self.lacuna("import", self.trace, "--name", "a trace", "--project", "vision")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.id = done.stdout.split()[0]
        self.file = os.path.join(self.data, "traces", self.id + ".db")

    def lacuna(self, *words):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        return subprocess.run([harness.PROGRAM, *words, "--data", self.data], capture_output=True, text=True, env=environment, timeout=120)

    def verify(self, status):
        done = self.lacuna("admin", "verify")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_whole_folder_is_whole(self):
        self.assertIn("1 traces, 1 originals", self.verify(0))
        done = self.lacuna("admin", "repair")
        self.assertEqual((done.returncode, done.stdout), (0, "nothing to repair\n"), done.stderr)
        told = json.loads(self.lacuna("admin", "verify", "--json").stdout)
        self.assertEqual((told["schema"], told["problems"], told["trace_count"]), ("lacuna.verify/1", [], 1))

    def test_wrong_usage_and_no_folder(self):
        self.assertEqual(self.lacuna("admin").returncode, 2)
        self.assertEqual(self.lacuna("admin", "mend").returncode, 2)
        self.assertEqual(self.lacuna("admin", "repair", "--json").returncode, 2)
        self.data = os.path.join(self.home, "nowhere")
        for verb in ("verify", "repair"):
            done = self.lacuna("admin", verb)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(os.path.exists(self.data))

    def test_a_damaged_trace_is_an_error_then_imported_again(self):
        server = harness.Server(data=self.data)
        try:
            before = server.api(f"/traces/{self.id}/kernels")
            done = self.lacuna("admin", "repair")
            self.assertEqual((done.returncode, done.stdout), (0, "nothing to repair\n"), done.stderr)
            self.assertIn("all intact", self.verify(0))
        finally:
            server.terminate()
        flip(self.file, 20000)
        self.assertIn(f"traces/{self.id}.db is damaged (1 pages, the first at byte 19456)", self.verify(1))
        server = harness.Server(data=self.data)
        try:
            replies = [server.get(f"/api/v1/traces/{self.id}{question}") for question in
                       ("/analysis", "/tracks", "/kernels", "/gaps", "/names", "/search?q=gemm", "/slices/3", "/flame", "/slices?track=0")]
        finally:
            server.terminate()
        damaged = [reply for reply in replies if reply.status != 200]
        self.assertTrue(damaged)
        for reply in damaged:
            self.assertEqual((reply.status, reply.json()["error"]["code"]), (500, "corrupt"), reply.body)
            self.assertIn(f"traces/{self.id}.db is damaged", reply.json()["error"]["message"])
            self.assertNotIn(self.home, reply.body.decode())
        done = self.lacuna("admin", "repair")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("imported again at the next start", done.stdout)
        server = harness.Server(data=self.data)
        try:
            row = server.wait_ready(self.id)
            self.assertEqual((row["state"], row["name"], row["project"]), ("ready", "a trace", "vision"))
            self.assertEqual(server.api(f"/traces/{self.id}/kernels"), before)
        finally:
            server.terminate()
        self.assertIn("all intact", self.verify(0))
        self.assertEqual(len(glob.glob(os.path.join(self.data, "lost", self.id + ".db"))), 1)

    def test_a_running_server_goes_on_while_its_folder_is_repaired(self):
        done = self.lacuna("import", self.trace, "--name", "another", "--project", "vision")
        other = done.stdout.split()[0]
        server = harness.Server(data=self.data)
        try:
            paths = [f"/traces/{trace}/{part}" for trace in (self.id, other) for part in ("kernels", "analysis", "gaps", "tracks")]
            before = {path: server.api(path) for path in paths}  # the files are open now
            flip(self.file, 20000)
            original = os.path.join(self.data, "originals", other + ".zst")
            flip(original, os.path.getsize(original) // 2)
            done = self.lacuna("admin", "repair")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"traces/{self.id}.db is damaged; the server imports its original again", done.stdout)
            self.assertIn("moved to lost/" + other + ".zst", done.stdout)
            harness.wait_for(lambda: server.api(f"/traces/{self.id}")["state"] == "ready")
            row = server.api(f"/traces/{self.id}")
            self.assertEqual((row["name"], row["project"]), ("a trace", "vision"))
            self.assertEqual({path: server.api(path) for path in paths}, before)
            reply = server.request("POST", "/api/v1/traces?name=later", body=harness.make_trace(1, 2))
            self.assertEqual(server.wait_ready(reply.json()["id"])["state"], "ready")
            self.assertIn("all intact", self.verify(0))
            again = self.lacuna("admin", "repair")
            self.assertEqual((again.returncode, again.stdout), (0, "nothing to repair\n"), again.stderr)
            self.assertEqual(len(server.api("/traces")["traces"]), 3)
        finally:
            server.terminate()
        self.assertEqual(os.listdir(os.path.join(self.data, "staging")), [])
        self.assertEqual(len(glob.glob(os.path.join(self.data, "lost", self.id + ".db"))), 1)

    def test_a_damaged_original_and_a_damaged_end_of_a_trace_file(self):
        original = os.path.join(self.data, "originals", self.id + ".zst")
        flip(original, os.path.getsize(original) // 2)
        flip(self.file, os.path.getsize(self.file) - 100)
        told = self.verify(1)
        self.assertIn(f"originals/{self.id}.zst is ", told)
        self.assertIn(f"traces/{self.id}.db is damaged (its facts)", told)
        done = self.lacuna("admin", "repair")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("moved to lost/" + self.id + ".zst", done.stdout)
        self.assertIn("all intact", self.verify(0))

    def test_a_server_on_a_damaged_catalog_says_what_it_did(self):
        flip(os.path.join(self.data, "catalog.db"), 9000)
        self.assertIn("catalog.db is damaged (wrong checksum at byte 8192)", self.verify(1))
        server = harness.Server(data=self.data)
        try:
            self.assertEqual([row["id"] for row in server.api("/traces")["traces"]], [self.id])
            log = server.log_text()
        finally:
            server.terminate()
        self.assertIn("it is kept as lost/catalog-", log)
        self.assertIn("all intact", self.verify(0))


if __name__ == "__main__":
    harness.main()
