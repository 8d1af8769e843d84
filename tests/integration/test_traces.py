#!/usr/bin/env python3
"""`make traces` (tests/traces/fetch.py) against a server of this test: what it takes, and what it refuses."""
import hashlib
import http.server
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

from server_harness import ROOT, main

FETCH = os.path.join(ROOT, "tests/traces/fetch.py")
LIST = os.path.join(ROOT, "tests/traces/list.tsv")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "hta/rank_non_gpu__rank_non_gpu.json.gz"  # truth.json knows it


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


class Traces(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.to = os.path.join(self.folder.name, "traces")
        self.files = {}
        self.asked = []
        test = self

        class Files(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = urllib.parse.unquote(self.path)
                test.asked.append(path)
                body, length = test.files.get(path, (None, 0))
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.base = f"http://127.0.0.1:{server.server_port}"

    def put(self, path, body, length=None):
        self.files[f"/owner/repo/{COMMIT}/{path}"] = (body, len(body) if length is None else length)

    def fetch(self, *rows, base=None):
        names = os.path.join(self.folder.name, "list.tsv")
        with open(names, "w", encoding="utf-8") as file:
            file.write("# a remark\n" + "".join("\t".join(row) + "\n" for row in rows))
        return subprocess.run([sys.executable, FETCH, "--to", self.to, "--from", base or self.base, "--list", names], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "no_proxy": "*"})

    def row(self, name, body, path):
        return (name, "owner/repo", COMMIT, path, hashlib.sha256(body).hexdigest())

    def laid(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.to) for folder, _, names in os.walk(self.to) for name in names)

    def test_what_is_fetched_is_there_with_its_truth_and_not_fetched_again(self):
        first, second = b"one" * 50000, b"two"
        self.put("tests/a trace.json.gz", first)
        self.put("b.json", second)
        rows = (self.row(NAME, first, "tests/a trace.json.gz"), self.row("tf/b.json", second, "b.json"))
        run = self.fetch(*rows)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("2 fetched, 0 there already, 0 not to be had", run.stdout)
        self.assertEqual(self.laid(), [NAME, "tf/b.json", "truth/hta__rank_non_gpu__rank_non_gpu.json"])
        with open(os.path.join(self.to, NAME), "rb") as file:
            self.assertEqual(file.read(), first)
        self.asked.clear()
        self.assertIn("0 fetched, 2 there already", self.fetch(*rows).stdout)
        self.assertEqual(self.asked, [])
        with open(os.path.join(self.to, "tf/b.json"), "wb") as file:
            file.write(b"damaged")
        self.assertIn("1 fetched, 1 there already", self.fetch(*rows).stdout)
        self.assertEqual(len(self.asked), 1)

    def test_another_file_is_refused_and_the_others_come(self):
        good = b"good"
        self.put("good.json", good)
        self.put("other.json", b"not what the list says")
        self.put("short.json", b"half", length=100)
        run = self.fetch(self.row("a/other.json", b"what it says", "other.json"), self.row("a/gone.json", b"x", "gone.json"),
                         self.row("a/short.json", b"half and half", "short.json"), self.row("a/good.json", good, "good.json"))
        self.assertEqual(run.returncode, 1)
        problems = run.stderr.splitlines()
        self.assertEqual(len(problems), 3, run.stderr)
        self.assertIn("not the file of the list", problems[0])
        self.assertIn("404", problems[1])
        self.assertIn("not the file of the list", problems[2])
        self.assertEqual(self.laid(), ["a/good.json"])

    def test_without_a_network_it_says_so_once(self):
        run = self.fetch(self.row("a/x.json", b"x", "x.json"), self.row("a/y.json", b"y", "y.json"), base="http://127.0.0.1:1")
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (1, 1), run.stderr)
        self.assertIn("refused", run.stderr)

    def test_the_list_names_each_file_once_by_commit_and_checksum(self):
        rows = lines(LIST)
        self.assertGreater(len(rows), 30)
        self.assertEqual(len({row[0] for row in rows}), len(rows))
        for name, repository, commit, path, sha256 in rows:
            self.assertRegex(name, r"^[a-z0-9]+/[\w.-]+$")
            self.assertRegex(repository, r"^[\w.-]+/[\w.-]+$")
            self.assertRegex(commit, r"^[0-9a-f]{7,40}$")
            self.assertRegex(sha256, r"^[0-9a-f]{64}$")
            self.assertFalse(path.startswith("/") or ".." in path.split("/"), path)

    def test_the_list_is_of_the_files_beside_the_repository(self):
        beside = os.path.join(ROOT, "../shared/traces")
        if not os.path.isdir(beside):
            self.skipTest("no ../shared/traces: the checksums of the list are not compared")
        for name, _, _, _, sha256 in lines(LIST):
            with open(os.path.join(beside, name), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), sha256, name)

    def test_tests_look_where_they_are_told(self):
        def looked(environment):
            script = "import sys; sys.path.insert(0, 'tests/support'); from real_traces import real_traces; print(real_traces())"
            return subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        plain = {name: text for name, text in os.environ.items() if name != "LACUNA_TRACES"}
        self.assertEqual(looked({**plain, "LACUNA_TRACES": "/some/where"}), "/some/where")
        self.assertTrue(re.search(r"(shared|build)/traces$", looked(plain)))


if __name__ == "__main__":
    main()
