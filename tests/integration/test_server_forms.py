#!/usr/bin/env python3
"""Answers in another form: rows as CSV on every route that openapi.json says has them."""
import csv
import io
import json
import re
import sys
import unittest

from server_harness import Server, make_trace

FORMULA = '=HYPERLINK("http://example.org/","press, me")'


def flat(row, before=""):
    """The cells of a row as the description says, by path."""
    cells = {}
    for key, value in row.items():
        path = before + key
        if isinstance(value, dict) and path.count(".") < 4:
            cells.update(flat(value, path + "."))
        elif isinstance(value, list) and not any(isinstance(each, (dict, list)) for each in value):
            cells[path] = "; ".join(text_of(each) for each in value)
        elif isinstance(value, (dict, list)):
            cells[path] = value  # a cell of JSON
        else:
            cells[path] = text_of(value)
    return cells


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def guarded(text):
    return "'" + text if text[:1] in tuple("=+-@\t\r") else text


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.trace = cls.server.upload(make_trace(name=FORMULA), "named")
        cls.server.wait_ready(cls.trace)
        other = cls.server.request("POST", "/api/v1/traces?name=other&project=vision", body=make_trace(steps=5)).json()["id"]
        cls.server.wait_ready(other)
        cls.described = cls.server.get("/openapi.json", key=False).json()["paths"]
        for method, path, body in (("PUT", "/users/bob", {"password": "a long password"}), ("PUT", "/projects/vision/members/bob", {"role": "write"}),
                                   ("POST", "/tokens", {"name": "nodes", "scope": "upload", "project": "vision"}), ("POST", f"/traces/{cls.trace}/share", {"redact": []}),
                                   ("POST", f"/traces/{cls.trace}/bookmarks", {"start_ns": 5, "note": "=1+1"})):
            reply = cls.server.request(method, "/api/v1" + path, body=json.dumps(body))
            assert reply.status in (200, 201, 204), (path, reply.status, reply.body)
        cls.report = cls.server.request("POST", "/api/v1/reports", body=json.dumps({"project": "vision", "title": "-1+1", "markdown": "text"})).json()["id"]
        for path, body in (("comments", {"body": "@bob, see", "thread": None, "part": None}),):
            cls.server.request("POST", f"/api/v1/reports/{cls.report}/{path}", body=json.dumps(body))

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def address(self, path):
        """A path of the description with something in its braces."""
        counter = next(t["index"] for t in self.server.api(f"/traces/{self.trace}/tracks")["tracks"] if t["kind"] == "counter")
        first = self.server.api(f"/traces/{self.trace}/kernels")["kernels"][0]["longest_slice"]
        path = path.replace("/projects/{name}", "/projects/vision").replace("/reports/{id}", "/reports/" + self.report).replace("{track}", str(counter)).replace("{n}", str(first))
        path = path.replace("/traces/{id}", "/traces/" + self.trace).replace("/tables/{name}", "/tables/kernels")
        query = {"search": "q=gemm", "area": "t0_ns=0&t1_ns=40000000", "slices": "track=0&limit=50", "series": "setting=num_workers", "gaps": "min_ns=0"}.get(path.rsplit("/", 1)[1], "")
        return path, query

    def rows_of(self, path, query="", want=200):
        reply = self.server.get(f"{path}?{query}{'&' if query else ''}format=csv")
        self.assertEqual(reply.status, want, (path, reply.body[:300]))
        self.assertEqual(reply.headers["Content-Type"], "text/csv; charset=utf-8", path)
        text = reply.body.decode()
        self.assertTrue(text.endswith("\r\n"), path)
        return reply, list(csv.reader(io.StringIO(text, newline="")))

    def test_every_list_has_a_csv_form_that_says_what_json_says(self):
        compared = 0
        for path, item in self.described.items():
            form = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).get("text/csv", {})
            if "x-rows" not in form or "/runs/{id}" in path:
                continue
            at, query = self.address(path)
            reply = self.server.get(at + ("?" + query if query else ""))
            self.assertEqual(reply.status, 200, (path, reply.body[:300]))
            said = reply.json()
            answer, table = self.rows_of(at, query)
            head, rows = table[0], table[1:]
            self.assertEqual(len(head), len(set(head)), (path, head))
            self.assertTrue(all(head), path)
            self.assertEqual(answer.headers.get("Lacuna-Next"), said.get("next"), path)
            if isinstance(form["x-rows"], list):
                self.assertEqual(head, form["x-rows"])
                want = [[text_of(cell) for cell in row] for row in zip(*(said[name] for name in head))]
                self.assertEqual([[float(cell) for cell in row] for row in rows], [[float(cell) for cell in row] for row in want], path)
                compared += len(rows)
                continue
            for given, row in zip(said[form["x-rows"]], rows, strict=True):
                cells = dict(zip(head, row, strict=True))
                if isinstance(given, list):
                    want = dict(zip(form["x-columns"], map(text_of, given), strict=True))
                elif "cells" in given:
                    want = dict(zip((c["id"] for c in said["columns"]), map(text_of, given["cells"]), strict=True))
                else:
                    want = flat(given)
                for name, value in want.items():
                    if not isinstance(value, str):
                        self.assertEqual(json.loads(cells[name]), value, (path, name))
                    elif value == "":
                        self.assertEqual(cells.get(name, ""), "", (path, name))
                    elif re.fullmatch(r"-?\d+\.?\d*(e[-+]?\d+)?", value):
                        self.assertAlmostEqual(float(cells[name].lstrip("'")), float(value), msg=(path, name))
                    else:
                        self.assertEqual(cells[name], guarded(value), (path, name))
                self.assertEqual({name for name, cell in cells.items() if cell} - set(want), set(), path)
                compared += 1
        self.assertGreater(compared, 100)

    def test_no_cell_is_a_formula(self):
        _, table = self.rows_of(f"/api/v1/traces/{self.trace}/kernels")
        names = [row[table[0].index("name")] for row in table[1:]]
        self.assertIn("'" + FORMULA, names)
        _, table = self.rows_of("/api/v1/reports")
        self.assertIn("'-1+1", table[1])
        reply = self.server.request("POST", f"/api/v1/traces/{self.trace}/sql?format=csv", body=json.dumps({"query": "SELECT '=1+1' AS a, -5 AS b, '@x' AS c"}))
        self.assertEqual(reply.body, b"a,b,c\r\n'=1+1,-5,'@x\r\n", reply.body)

    def test_an_empty_list_has_the_names_of_its_columns(self):
        _, table = self.rows_of(f"/api/v1/traces/{self.trace}/kernels", "q=nothing-has-this-name")
        _, full = self.rows_of(f"/api/v1/traces/{self.trace}/kernels")
        self.assertEqual(table, full[:1])

    def test_pages_go_on_by_the_header(self):
        base, after, names = f"/api/v1/traces/{self.trace}/tables/kernels", "0", []
        while after is not None:
            reply, table = self.rows_of(base, f"limit=3&after={after}")
            names += [row[0] for row in table[1:]]
            after = reply.headers.get("Lacuna-Next")
        whole = self.server.api(f"/traces/{self.trace}/tables/kernels")["rows"]
        self.assertEqual(names, [guarded(row["cells"][0]) for row in whole])

    def test_what_has_no_rows_and_what_is_no_form(self):
        self.assertEqual(self.server.get("/api/v1/traces?format=xml").status, 400)
        self.assertEqual(self.server.get(f"/api/v1/traces/{self.trace}?format=csv").json()["id"], self.trace)
        missing = self.server.get("/api/v1/traces/" + "a" * 26 + "/kernels?format=csv")
        self.assertEqual((missing.status, missing.json()["error"]["code"]), (404, "not_found"))
        self.assertEqual(self.server.get("/api/v1/traces?format=csv", key=False).status, 401)
        first, _ = self.rows_of(f"/api/v1/traces/{self.trace}/kernels")
        again = self.server.get(f"/api/v1/traces/{self.trace}/kernels?format=csv", headers={"If-None-Match": first.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        as_json = self.server.get(f"/api/v1/traces/{self.trace}/kernels", headers={"If-None-Match": first.headers["ETag"]})
        self.assertEqual(as_json.status, 200)


if __name__ == "__main__":
    sys.exit(unittest.main())
