#!/usr/bin/env python3
"""Imports of every kind of file, shut in as they are, and under limits of the host below ours: as root and as nobody the same as in one process.

Under those limits, and as root, six kinds of file; with LACUNA_SOAK=1 all of them.
"""
import io
import os
import pwd
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import server_harness
from server_harness import PROGRAM, ROOT, SOAK, Server, main

sys.path.append(os.path.join(ROOT, "tests", "golden"))
import test_random_formats  # noqa: E402

SPOOL_MAGIC = b"LACSPOOL"
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus/import")
# by what their import does: reads as it is, inflates twice, unpacks an archive, opens SQLite, lays out a recording
SOME = ("kineto.json", "kineto.json.gz", "kineto.json.zst", "ranks.tar.gz", "export.sqlite", "recording.tar")
USERS = ("root", "nobody") if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name,)


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Files of all kinds: text, packed, archives, SQLite, a recording, its parts; and what their import gives without a sandbox."""
        cls.folder = tempfile.mkdtemp(prefix="lacuna-limits-")
        os.chmod(cls.folder, 0o755)
        cls.files = [os.path.join(CORPUS, name) for name in sorted(os.listdir(CORPUS))]
        path = os.path.join(cls.folder, "export.sqlite")
        test_random_formats.write_export(random.Random(5), path)
        cls.files.append(path)
        recording = os.path.join(cls.folder, "recording")
        subprocess.run([PROGRAM, "run", "-o", recording, "--", "/bin/sh", "-c", "true; /bin/true"], check=True, capture_output=True, env=environment())
        path = os.path.join(cls.folder, "recording.tar")
        with tarfile.open(path, "w") as tar:
            tar.add(recording, "recording")
        cls.files.append(path)
        # nobody must be able to run it
        cls.program = os.path.join(cls.folder, "lacuna")
        shutil.copy(PROGRAM, cls.program)
        os.chmod(cls.program, 0o755)
        cls.expected = {}
        for file in cls.files:
            done = subprocess.run([PROGRAM, "import", "--data", os.path.join(cls.folder, "data"), "--name", "x", file], capture_output=True, text=True,
                                  env=environment())
            events = [line.split(" event")[0].rsplit(" ", 1)[1] for line in done.stdout.splitlines()]
            cls.expected[file] = sorted(events) if done.returncode == 0 else "failed"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def serve(self, user, limits, *flags):
        """A server of that user, under hard limits."""
        data = tempfile.mkdtemp(prefix="lacuna-data-")
        entry = pwd.getpwnam(user)
        os.chown(data, entry.pw_uid, entry.pw_gid)

        def begin():
            for what, value in limits:
                resource.setrlimit(what, (value, value))
            if entry.pw_uid != os.geteuid():
                os.setgroups([])
                os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
                os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)

        server_harness.PROGRAM, before = self.program, server_harness.PROGRAM
        try:
            server = Server(*flags, data=data, preexec=begin)
        finally:
            server_harness.PROGRAM = before
        self.addCleanup(shutil.rmtree, data)
        self.addCleanup(server.close)
        return server

    def check(self, server, some):
        files = [file for file in self.files if some is None or SOAK or os.path.basename(file) in some]
        self.assertGreaterEqual(len(files), len(some or ()))
        sent = {}
        for file in files:
            with open(file, "rb") as body:
                sent[file] = server.upload(body.read(), "x")
        for file, trace in sent.items():
            row = server.wait_ready(trace)
            if self.expected[file] == "failed":
                self.assertEqual((row["state"], row["error"]["fault"]), ("failed", "file"), (file, row["error"]))
                continue
            self.assertEqual(row["state"], "ready", (file, row["error"]))
            rows = server.api(f"/traces?run={row['run']}")["traces"] if row["run"] else [row]
            self.assertEqual(sorted(str(one["event_count"]) for one in rows), self.expected[file], file)

    def test_every_kind_of_file(self):
        self.assertGreater(sum(value != "failed" for value in self.expected.values()), 8, self.expected)
        for user, some in zip(reversed(USERS), (None, SOME)):
            with self.subTest(user=user):
                self.check(self.serve(user, ()), some)

    def test_hard_limits_below_ours(self):
        limits = ((resource.RLIMIT_CPU, 1800), (resource.RLIMIT_FSIZE, 1_000_000_000), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 256))
        for user in USERS:
            with self.subTest(user=user):
                self.check(self.serve(user, limits), SOME)

    def test_a_limit_that_is_too_low_is_named(self):
        server = self.serve(USERS[-1], ((resource.RLIMIT_FSIZE, 1_000_000),))
        # a spool in an archive is laid out as a file
        spool = SPOOL_MAGIC + random.Random(1).randbytes(300_000) + bytes(2_000_000)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo("recording/large.spool")
            member.size = len(spool)
            tar.addfile(member, io.BytesIO(spool))
        row = server.wait_ready(server.upload(packed.getvalue()))
        self.assertEqual((row["state"], row["error"]["fault"], row["error"]["can_retry"]), ("failed", "host", True), row)
        self.assertIn("ulimit -f", row["error"]["message"])


if __name__ == "__main__":
    main()
