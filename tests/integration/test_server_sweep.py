#!/usr/bin/env python3
"""A start on a full disk puts off what it has no room for; when there is room, the server does it and open pages hear of it."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from server_harness import Server, main, make_trace

HOST = b"Host: 127.0.0.1\r\n"


class Listener:
    """A page that has /events open."""

    def __init__(self, server):
        self.connection = server.connect(0.2)
        self.connection.sendall(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n")
        self.text = ""
        self.wait_for(lambda told: ": ready" in self.text)

    def wait_for(self, is_enough):
        """Reads until `is_enough` of the pairs (event, id); says what was told."""
        end = time.monotonic() + 60
        while True:
            found = re.findall(r'event: (\w+)\s+data: (\{.*?"id":"([a-z2-7]{26})".*)', self.text)
            told = {(event, trace): json.loads(data) for event, data, trace in found}
            if is_enough(told) or time.monotonic() > end:
                return told
            try:
                self.text += self.connection.recv(65536).decode(errors="replace")
            except TimeoutError:
                pass


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lacuna-test-")
        self.addCleanup(self.folder.cleanup)
        self.disk = os.path.join(self.folder.name, "disk")
        os.mkdir(self.disk)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", self.disk], stderr=subprocess.DEVNULL)
        if made.returncode != 0:
            self.skipTest("no right to mount: a full disk is not tried")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])

    def made(self, *names):
        """A data folder with these traces; the catalog knows the last ones not yet. One was being deleted, of one the file is gone."""
        data = os.path.join(self.folder.name, "data")
        server = Server(data=data, log=os.path.join(self.folder.name, "log"))
        ids = {}
        for number, name in enumerate(names):
            if name == "unlisted":
                self.assertEqual(server.terminate(), 0)
                shutil.copy(os.path.join(data, "catalog.db"), os.path.join(self.folder.name, "before.db"))
                server.start()
            ids[name] = server.upload(make_trace(steps=5 + number), name)
            server.wait_ready(ids[name])
        self.assertEqual(server.terminate(), 0)
        for path in glob.glob(os.path.join(data, "catalog.db-*")):
            os.unlink(path)
        shutil.copy(os.path.join(self.folder.name, "before.db"), os.path.join(data, "catalog.db"))
        os.makedirs(os.path.join(data, "trash"), exist_ok=True)
        os.rename(os.path.join(data, f"traces/{ids['deleted']}.db"), os.path.join(data, f"trash/{ids['deleted']}.db"))
        os.unlink(os.path.join(data, f"traces/{ids['lost']}.db"))
        return shutil.copytree(data, os.path.join(self.disk, "data")), ids

    def fill(self):
        path = os.path.join(self.disk, "filler")
        with open(path, "wb", buffering=0) as file:
            for size in (65536, 4096, 512):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        return path

    def test_a_page_hears_what_a_sweep_lists_deletes_and_finds_lost(self):
        data, ids = self.made("kept", "lost", "deleted", "unlisted")
        filler = self.fill()
        server = Server(data=data, log=os.path.join(self.folder.name, "log"))
        self.addCleanup(server.close)
        page = Listener(server)
        states = {row["name"]: row["state"] for row in server.api("/traces")["traces"]}
        self.assertNotIn("unlisted", states)
        self.assertIn("deleted", states)
        os.unlink(filler)
        self.assertEqual(server.request("DELETE", f"/api/v1/traces/{ids['kept']}").status, 204)  # it made room: the rest of the start is done
        wanted = [("trace", ids["unlisted"]), ("deleted", ids["deleted"]), ("deleted", ids["kept"])]
        told = page.wait_for(lambda told: all(pair in told for pair in wanted))
        for pair in wanted:
            self.assertIn(pair, told)
        self.assertEqual(told["trace", ids["unlisted"]]["state"], "ready")
        self.assertEqual({row["name"]: row["state"] for row in server.api("/traces")["traces"]}, {"lost": "failed", "unlisted": "ready"})
        if states["lost"] == "ready":  # the row was not told at the start
            self.assertEqual(told["trace", ids["lost"]]["state"], "failed")


if __name__ == "__main__":
    main()
