#!/usr/bin/env python3
"""GET /traces/{id}/export: every form as `lacuna export` writes it, the original byte for byte, what is left out, and what is refused."""
import json
import os
import sqlite3
import stat
import subprocess
import threading
import unittest

from server_harness import PROGRAM, Server, main, make_trace

FORMS = ("chrome", "perfetto", "folded", "speedscope", "sqlite")


def plain(trace):
    """Slices of a Chrome trace, times relative to the first, without the order of the file."""
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    first = min(event["ts"] for event in events)
    return sorted((round(event["ts"] - first, 3), round(event["dur"], 3), event["name"]) for event in events)


class Downloads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn")
        cls.addClassCleanup(cls.server.close)
        cls.body = make_trace()
        cls.id = cls.server.upload(cls.body, "loop")
        cls.server.wait_ready(cls.id)

    def fetch(self, query, status=200, **kwargs):
        reply = self.server.get(f"/api/v1/traces/{self.id}/export{query}", **kwargs)
        self.assertEqual(reply.status, status, reply.body[:300])
        return reply

    def scratch(self):
        folder = os.path.join(self.server.data, "scratch")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def by_command(self, form):
        path = os.path.join(self.server.data, f"by-command.{form}")
        self.addCleanup(os.unlink, path)
        subprocess.run([PROGRAM, "export", self.id, "--data", self.server.data, "--to", form, "-o", path], check=True, stderr=subprocess.DEVNULL)
        with open(path, "rb") as file:
            return file.read()

    def test_every_form_is_what_the_command_writes(self):
        for form in FORMS:
            reply = self.fetch(f"?to={form}")
            self.assertEqual(reply.headers["Content-Disposition"], "attachment")
            self.assertEqual(int(reply.headers["Content-Length"]), len(reply.body))
            if form != "sqlite":
                self.assertTrue(reply.body == self.by_command(form), form)
        self.assertTrue(self.fetch("").body == self.fetch("?to=chrome").body)
        self.assertEqual(plain(json.loads(self.fetch("").body)), plain(json.loads(self.body)))
        self.assertEqual(self.scratch(), [])

    def test_sqlite_is_a_database_with_the_tables_of_lacuna_sql(self):
        path = os.path.join(self.server.data, "fetched.db")
        self.addCleanup(os.unlink, path)
        with open(path, "wb") as file:
            file.write(self.fetch("?to=sqlite").body)
        with sqlite3.connect(path) as fetched:
            (kernels,) = fetched.execute("SELECT count(*) FROM kernels").fetchone()
            self.assertEqual(fetched.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual(kernels, sum(event.get("cat") == "kernel" for event in json.loads(self.body)["traceEvents"]))

    def test_the_original_is_what_was_uploaded(self):
        self.assertTrue(self.fetch("?to=original").body == self.body)
        self.assertEqual(self.scratch(), [])
        head = self.server.request("HEAD", f"/api/v1/traces/{self.id}/export?to=original")
        self.assertEqual((head.status, head.headers["Content-Length"], head.body), (200, str(len(self.body)), b""))

    def test_a_form_leaves_out_what_it_is_told_to_the_original_cannot(self):
        def is_named(query):
            return json.loads(self.fetch(query).body)["traceName"] == "loop"
        self.assertEqual((is_named("?to=chrome"), is_named("?to=chrome&redact=names")), (True, False))
        for query in ("?to=original&redact=names", "?to=chrome&redact=names,wages", "?to=pdf", "?to=folded&metric=luck"):
            self.assertEqual(self.fetch(query, 400).json()["error"]["code"], "bad_request")

    def test_nobody_gets_it_without_a_key(self):
        self.fetch("?to=original", 401, key=False)
        missing = self.server.get(f"/api/v1/traces/{'a' * 26}/export")
        self.assertEqual(missing.status, 404)

    def test_several_at_once_are_each_whole_or_told_to_come_again(self):
        want, seen = self.fetch("?to=perfetto").body, []

        def ask():
            reply = self.server.get(f"/api/v1/traces/{self.id}/export?to=perfetto")
            seen.append((reply.status, reply.body == want or reply.headers.get("Retry-After") == "2"))

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({right for _, right in seen}, {True}, seen)
        self.assertLessEqual({status for status, _ in seen}, {200, 503})
        self.assertIn(200, {status for status, _ in seen})

    def test_what_a_killed_program_left_goes_and_what_is_being_written_stays(self):
        self.fetch("?to=folded")
        folder = os.path.join(self.server.data, "scratch")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        left, held = os.path.join(folder, "left"), os.path.join(folder, "held")
        for path in (left, held):
            with open(path, "w", encoding="ascii"):
                pass
        with subprocess.Popen(["flock", held, "cat"], stdin=subprocess.PIPE) as holder:
            while subprocess.run(["flock", "--nonblock", held, "true"], check=False).returncode == 0:
                pass
            self.fetch("?to=folded")
            self.assertEqual(self.scratch(), ["held"])
            holder.stdin.close()
        self.fetch("?to=folded")
        self.assertEqual(self.scratch(), [])

    def test_an_original_that_was_not_kept_is_not_found(self):
        for name in os.listdir(os.path.join(self.server.data, "originals")):
            path = os.path.join(self.server.data, "originals", name)
            with open(path, "rb") as file:
                kept = file.read()
            os.unlink(path)

            def put_back(path=path, kept=kept):
                with open(path, "wb") as file:
                    file.write(kept)
            self.addCleanup(put_back)
        self.assertEqual(self.fetch("?to=original", 404).json()["error"]["code"], "not_found")
        self.fetch("?to=chrome")


if __name__ == "__main__":
    main()
