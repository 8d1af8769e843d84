#!/usr/bin/env python3
"""POST /api/v1/traces/{id}/sql: rows as `lacuna sql` gives them, and queries that would harm a server do not harm this one."""
import glob
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

import png
from server_harness import PROGRAM, Server, children, main, make_trace, wait_for

FOREVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def workers(pid):
    """Children that answer queries."""
    found = []
    for child in children(pid):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                if file.read().split(b"\0")[1:2] == [b"sql-worker"]:
                    found.append(child)
        except OSError:
            pass
    return found


def worked_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")


def stop(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class ServerSql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.trace = cls.server.upload(make_trace())
        assert cls.server.wait_ready(cls.trace)["state"] == "ready"

    def post(self, query, parameters="", trace=None, **kwargs):
        return self.server.request("POST", f"/api/v1/traces/{trace or self.trace}/sql{parameters}", body=json.dumps({"query": query}), **kwargs)

    def refused(self, query, code, parameters=""):
        reply = self.post(query, parameters)
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (400, code), f"{query}: {reply.body[:300]!r}")
        return reply.json()["error"]["message"]

    def test_the_rows_are_those_of_the_command(self):
        path = os.path.join(self.server.data, "traces", self.trace + ".db")
        for query in ("SELECT id, kind, name, start_ns, args FROM slices ORDER BY id", "SELECT * FROM by_name ORDER BY total_ns, name",
                      "SELECT 9007199254740993, 1.5, x'00ff', NULL, 'a<b'", "SELECT * FROM gaps", "SELECT * FROM steps", "SELECT * FROM findings"):
            reply = self.post(query, "?limit=100000")
            self.assertEqual(reply.status, 200, reply.body[:300])
            done = subprocess.run([PROGRAM, "sql", path, query, "--json"], capture_output=True, check=True)
            self.assertEqual(reply.json(), json.loads(done.stdout), query)
        facts = dict(self.post("SELECT key, value FROM trace").json()["rows"])
        row = self.server.api("/traces/" + self.trace)
        self.assertEqual([int(facts[key]) for key in ("slice_count", "event_count", "t0_ns")],
                         [row["slice_count"], row["event_count"], int(row["t0_ns"])])

    def test_a_page_of_rows_says_that_it_is_cut(self):
        answer = self.post("SELECT id FROM slices", "?limit=3").json()
        self.assertEqual((answer["rows"], answer["row_count"], answer["cut"]), ([[0], [1], [2]], 3, "rows"))
        answer = self.post("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100) SELECT i, hex(zeroblob(500000)) FROM n").json()
        self.assertEqual(answer["cut"], "bytes")
        self.assertLess(answer["row_count"], 100)

    def test_the_reference_names_what_can_be_asked(self):
        reference = self.server.api("/sql", key=False)
        schemas = self.server.get("/openapi.json", key=False).json()["components"]["schemas"]
        self.assertEqual(sorted(reference), sorted(schemas["SqlReference"]["properties"]))
        self.assertEqual(sorted(self.post("SELECT 1").json()), sorted(schemas["SqlResult"]["properties"]))
        for question in reference["questions"]:
            self.assertEqual(self.post(question["sql"]).status, 200, question["id"])

    def test_wrong_requests_are_refused(self):
        for body in (b"", b"SELECT 1", b"[]", b"{}", b'{"query": 1}', b'{"query": "SELECT 1\\u0000"}', b'{"query": "' + b"x" * 70000 + b'"}'):
            reply = self.server.request("POST", f"/api/v1/traces/{self.trace}/sql", body=body)
            self.assertEqual(reply.status, 400, body[:40])
        self.assertEqual(self.server.request("POST", f"/api/v1/traces/{self.trace}/sql", body=b"x" * 500000).status, 413)
        self.assertEqual(self.post("SELECT 1", key=False).status, 401)
        self.assertEqual(self.post("SELECT 1", trace="a" * 26).status, 404)
        for parameters in ("?limit=0", "?limit=100001", "?timeout=0", "?timeout=21", "?limit=x"):
            self.assertEqual(self.post("SELECT 1", parameters).status, 400, parameters)

    def many(self, query, parameters="", **body):
        return self.server.request("POST", f"/api/v1/sql{parameters}", body=json.dumps({"query": query, **body}))

    def test_several_traces_are_one_table_each(self):
        other = self.server.upload(make_trace(), "another")
        self.assertEqual(self.server.wait_ready(other)["state"], "ready")
        both = [self.trace, other]
        names = [name for name, in self.many("SELECT DISTINCT trace FROM slices", traces=both).json()["rows"]]
        self.assertEqual(len(names), 2)
        one = self.post("SELECT kind, count(*), sum(dur_ns), min(id) FROM slices GROUP BY kind ORDER BY kind").json()["rows"]
        for name in names:
            got = self.many(f"SELECT kind, count(*), sum(dur_ns), min(id) FROM slices WHERE trace = '{name}' GROUP BY kind ORDER BY kind", traces=both).json()
            self.assertEqual(got["rows"], one)
        every = self.many("SELECT a.id FROM slices a JOIN slices b ON b.trace = a.trace AND b.id = a.id WHERE a.id IN (1, 2) OR a.kind = 'kernel'", "?limit=100000", traces=both).json()
        alone = self.post("SELECT id FROM slices WHERE id IN (1, 2) OR kind = 'kernel'", "?limit=100000").json()
        self.assertEqual(every["row_count"], 2 * alone["row_count"])
        self.assertEqual(self.many("SELECT count(*) FROM by_name(0, 1000) WHERE trace = 'none'", traces=both).json()["rows"], [[0]])
        # a run's id stands for its traces; one trace is a list of one
        run = self.server.api(f"/traces/{self.trace}").get("run")
        self.assertEqual(self.many("SELECT count(DISTINCT trace) FROM steps", traces=[self.trace]).json()["rows"], [[1]])
        if run:
            self.assertEqual(self.many("SELECT count(DISTINCT trace) FROM slices", runs=[run]).status, 200)

    def test_wrong_lists_of_traces_are_refused(self):
        for body, status in (({}, 400), ({"traces": []}, 400), ({"traces": "x"}, 400), ({"traces": [1]}, 400), ({"traces": ["a" * 26]}, 404), ({"traces": ["../x"]}, 404),
                             ({"runs": ["a" * 26]}, 404), ({"traces": [self.trace] * 129}, 413)):
            self.assertIn(self.many("SELECT 1", **body).status, (status, 400), body)
        self.assertEqual(self.server.request("POST", "/api/v1/sql", body=json.dumps({"query": "SELECT 1", "traces": [self.trace]}), key=False).status, 401)
        self.assertEqual(self.many("DELETE FROM slices", traces=[self.trace]).status, 400)
        self.assertEqual(self.many(FOREVER, "?timeout=1", traces=[self.trace, self.trace]).json()["error"]["code"], "query_limit")

    def test_rows_as_csv(self):
        reply = self.post("SELECT id, 'a,\"b' AS text FROM slices ORDER BY id LIMIT 2", "?format=csv")
        self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "text/csv; charset=utf-8"))
        self.assertEqual(reply.body.decode(), 'id,text\r\n0,"a,""b"\r\n1,"a,""b"\r\n')
        self.assertEqual(self.many("SELECT count(*) AS n FROM devices", "?format=csv", traces=[self.trace]).body.decode().split()[0], "n")
        self.assertEqual(self.post("SELECT 1", "?format=xml").status, 400)

    def test_pictures(self):
        base = f"/api/v1/traces/{self.trace}"
        for path, text in (("/window.svg", "why idle"), ("/window.svg?t0=0&t1=1000000", "1 ms of the trace, from 0"), ("/flame.svg", "flame graph"), ("/flame.svg?metric=waiting", "GPU waiting")):
            reply = self.server.get(base + path)
            self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "image/svg+xml"), path)
            self.assertIn(text, reply.body.decode(), path)
            xml.etree.ElementTree.fromstring(reply.body)
            self.assertEqual(self.server.get(base + path, headers={"If-None-Match": reply.headers["ETag"]}).status, 304)
        for path, status in (("/window.svg?t0=5&t1=5", 400), ("/window.svg?t0=-1", 400), ("/flame.svg?metric=x", 400), ("/window.svg?redact=x", 400)):
            self.assertEqual(self.server.get(base + path).status, status, path)
        self.assertEqual(self.server.get(base + "/window.svg", key=False).status, 401)

    def test_pictures_of_pixels(self):
        base = f"/api/v1/traces/{self.trace}"
        for path in ("/window", "/flame", "/window?t0=0&t1=40000000", "/flame?metric=waiting"):
            path, _, query = path.partition("?")
            svg = self.server.get(f"{base}{path}.svg?{query}").body.decode()
            size = re.match(r'<svg [^>]* width="(\d+)" height="(\d+)"', svg)
            light = re.search(r":root\{(.*?)\}", svg).group(1)
            dark = re.search(r"dark\)\{:root\{(.*?)\}", svg).group(1)
            for theme, colors in (("light", light), ("dark", dark)):
                reply = self.server.get(f"{base}{path}.png?theme={theme}&{query}")
                self.assertEqual((reply.status, reply.headers["Content-Type"], reply.headers.get("Content-Encoding")), (200, "image/png", None), path)
                width, height, rows = png.read(reply.body)
                self.assertEqual((width, height), (2 * int(size.group(1)), 2 * int(size.group(2))))
                color = {name: tuple(bytes.fromhex(value if len(value) == 6 else "".join(2 * digit for digit in value)))
                         for name, value in re.findall(r"--([\w-]+):#(\w+)", light + ";" + colors)}
                self.assertEqual(rows[0][0], color["ground"])
                # the middle of what nothing lies on has its color: boxes, and the row of causes
                seen = 0
                for x, y, wide, high, kind in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="(\d+)" class="([\w-]+)"/>', svg):
                    if float(wide) < 8:
                        continue
                    fill = re.search(r"(?:^|[},])\." + kind + r"(?:,[^{]*)?\{fill:var\(--([\w-]+)\)", svg[svg.index("<style>"):]) or re.search(r"\.\w+,\." + kind + r"\{fill:var\(--([\w-]+)\)", svg)
                    at = rows[int(2 * (12 + float(y) + float(high) - 1.5))][int(2 * (12 + float(x) + float(wide)) - 4)]
                    self.assertEqual(at, color[fill.group(1)], (path, theme, kind, x, y))
                    seen += 1
                self.assertGreater(seen, 1)
                # letters are there: pixels of the ink beside the labels
                ink = color["ink"] if path == "/window" else color["muted"]
                self.assertGreater(sum(row.count(ink) for row in rows), 20, path)
            again = self.server.get(f"{base}{path}.png?theme=dark&{query}").body
            if again != reply.body:  # what differs says where: a pixel, the packing, or the way here
                differ = [(i, one, other) for i, (one, other) in enumerate(zip(reply.body, again)) if one != other]
                try:
                    pixels = "equal pixels" if png.read(again)[2] == rows else "other pixels"
                except Exception as error:  # noqa: BLE001
                    pixels = f"no PNG: {error}"
                self.fail(f"{path}: {len(reply.body)} and {len(again)} bytes, {len(differ)} differ: {differ[:8]}; {pixels}")
            self.assertEqual(self.server.get(f"{base}{path}.png?theme=dark&{query}", headers={"If-None-Match": reply.headers["ETag"]}).status, 304)
        for path, status in (("/window.png?t0=5&t1=5", 400), ("/window.png?theme=x", 400), ("/flame.png?metric=x", 400), ("/flame.png?redact=x", 400)):
            self.assertEqual(self.server.get(base + path).status, status, path)
        self.assertEqual(self.server.get(base + "/flame.png", key=False).status, 401)

    def test_only_reading_is_allowed(self):
        before = sorted(os.listdir(self.server.data))
        for query in ("ATTACH 'x.db' AS x", "CREATE TABLE t(a)", "PRAGMA writable_schema=1", "VACUUM INTO 'x.db'", "SELECT load_extension('/tmp/x.so')",
                      "INSERT INTO slices(id) VALUES(1)", "SELECT 1; DROP TABLE slices", "SELECT * FROM sqlite_dbpage", "SELECT readfile('/etc/passwd')"):
            self.refused(query, "query_error")
        self.assertEqual(sorted(os.listdir(self.server.data)), before)

    def test_what_loops_or_eats_memory_is_stopped_and_the_server_goes_on(self):
        self.assertIn("longer than 1 s", self.refused(FOREVER, "query_limit", "?timeout=1"))
        self.assertIn("memory", self.refused("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000)"
                                             " SELECT b FROM (SELECT zeroblob(1000000 + i) AS b FROM n) ORDER BY b", "query_limit"))
        # one call of a function that no progress handler interrupts
        self.refused("SELECT instr(hex(zeroblob(7000000)), hex(zeroblob(3000000)) || '1')", "query_limit", "?timeout=1")
        self.assertEqual(self.post("SELECT 1").json()["rows"], [[1]])
        wait_for(lambda: not workers(self.server.process.pid))

    def test_more_queries_than_run_at_once_are_told_to_wait(self):
        replies = []
        threads = [threading.Thread(target=lambda: replies.append(self.post(FOREVER, "?timeout=3"))) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(workers(self.server.process.pid)) == 2 or replies)
        busy = workers(self.server.process.pid)
        for worker in busy:  # they would work until their time is over
            stop(worker, signal.SIGSTOP)
        if not replies:  # both still run
            reply = self.post("SELECT 1")
            if reply.status != 200:
                self.assertEqual((reply.status, reply.json()["error"]["code"]), (503, "busy"))
                self.assertEqual(reply.headers["Retry-After"], "2")
        time.sleep(2.5)
        for worker in busy:
            stop(worker, signal.SIGCONT)
        for thread in threads:
            thread.join()
        self.assertEqual([reply.status for reply in replies], [400, 400])
        self.assertEqual(self.post("SELECT 1").status, 200)


class Ending(unittest.TestCase):
    def test_a_query_ends_with_its_server(self):
        server = Server()
        self.addCleanup(server.close)
        trace = server.upload(make_trace())
        self.assertEqual(server.wait_ready(trace)["state"], "ready")

        def ask():
            try:
                server.request("POST", f"/api/v1/traces/{trace}/sql", body=json.dumps({"query": FOREVER}))
            except OSError:
                pass  # the server is gone

        thread = threading.Thread(target=ask)
        thread.start()
        # one that works: before, it has not yet asked to end with its server
        found = wait_for(lambda: [pid for pid in workers(server.process.pid) if worked_s(pid) > 0.1])
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        thread.join()

        def is_gone():
            try:
                with open(f"/proc/{found[0]}/stat", encoding="ascii") as file:
                    return file.read().rsplit(")", 1)[1].split()[0] == "Z"
            except OSError:
                return True

        wait_for(is_gone, 15)  # a query that nobody ends works for 20 s

    def test_a_worker_that_starts_after_its_server_ended_does_not_work(self):
        server = Server()
        self.addCleanup(server.close)
        self.assertEqual(server.wait_ready(server.upload(make_trace()))["state"], "ready")
        stored = glob.glob(os.path.join(server.data, "traces", "*.db"))
        nobody_reads, answer = os.pipe()
        os.close(nobody_reads)
        with tempfile.TemporaryFile() as words:
            words.write(f"{stored[0]}\0{FOREVER}".encode())
            words.seek(0)
            limits = [str(number) for number in (256 << 20, 20, 1000, 1 << 20, 1, 0)]
            worker = subprocess.Popen([PROGRAM, "sql-worker", *limits], stdin=words, stdout=answer, stderr=subprocess.DEVNULL)
        os.close(answer)
        _, status, used = os.wait4(worker.pid, 0)
        worker.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(worker.returncode, 1)
        self.assertLess(used.ru_utime + used.ru_stime, 5)  # of the 20 s that it would have


if __name__ == "__main__":
    main()
