#!/usr/bin/env python3
"""Every route, driven from its description: with what it allows and with what it does not. Each answer is one that the description names."""
import base64
import json
import os
import random
import unittest
import urllib.parse

import json_schema
import server_harness as harness

ROUNDS = 20 if harness.SOAK else 2
JSON = {"Content-Type": "application/json"}
ENDS = ("delete",)  # last, so that what they end was there for the others
NOT_DRIVEN = {"/api/v1/events"}  # stays open: test_server_load.py
STRANGE = ("", "-1", "x", "9" * 30, "1.5", "\u0000", "\n", "%", "'\"<>", "a" * 5000, "\u202e", "null")


class Described(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = harness.Server("--webhook-allow", "127.0.0.0/8")
        cls.document = cls.server.get("/openapi.json", key=False).json()
        cls.seed = int(os.environ.get("LACUNA_TEST_SEED", random.randrange(1 << 30)))
        cls.random = random.Random(cls.seed)
        print(f"  seed {cls.seed}", flush=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def make(self, path, body, member="id"):
        reply = self.server.request("POST", "/api/v1" + path, body=json.dumps(body), headers=JSON)
        self.assertEqual(reply.status, 201, (path, reply.body))
        return reply.json()[member]

    def world(self):
        """Something of each kind that a path names."""
        trace = self.server.upload(harness.make_trace(), "one")
        other = self.server.upload(harness.make_trace(steps=5), "two")
        for id in (trace, other):
            self.server.wait_ready(id)
        pairs = ",".join(f"{key} {base64.b64encode(value).decode()}" for key, value in (("name", b"r"), ("run", b"job"), ("project", b"vision")))
        body = harness.make_trace(steps=3)
        sent = self.server.request("POST", "/api/v1/uploads", body=body, headers={"Tus-Resumable": "1.0.0", "Upload-Length": str(len(body)), "Upload-Metadata": pairs,
                                                                                  "Content-Type": "application/offset+octet-stream"})
        self.assertEqual(sent.status, 201, sent.body)
        harness.wait_for(lambda: self.server.api("/runs")["runs"])
        report = self.make("/reports", {"project": "", "title": "t", "markdown": "text"})
        tracks = {track["kind"]: track["index"] for track in self.server.api(f"/traces/{trace}/tracks")["tracks"]}
        return {
            "traces": {"id": trace, "n": "1", "level": "5", "first": "0", "last": "1", "track": str(tracks["counter"]), "a": trace, "b": other,
                       "bookmark": self.make(f"/traces/{trace}/bookmarks", {"start_ns": 0, "end_ns": 5, "note": "n"})},
            "runs": {"id": self.server.api("/runs")["runs"][0]["id"]},
            "reports": {"id": report, "n": "1", "comment": str(self.make(f"/reports/{report}/comments", {"body": "a word"}))},
            "tokens": {"id": self.make("/tokens", {"name": "t", "scope": "read"})},
            "projects": {"name": "vision", "user": "ann", "id": "1"}, "users": {"name": "ann"}, "findings": {"id": "input-starvation"}, "schemas": {"name": "Analysis"},
            "compare": {"a": trace, "b": other}, "shares": {"id": self.make(f"/reports/{report}/share", {})}, "uploads": {"id": "a" * 26}, "s": {"token": "a" * 52},
        }

    def value_of(self, schema):
        """One that the schema allows."""
        schema = json_schema.target_of(schema["$ref"], self.document) if "$ref" in schema else schema
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in ("integer", "number"):
            low = schema.get("minimum", 0)
            return self.random.randint(low, min(schema.get("maximum", low + 1000), low + 1000))
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "array":
            return [self.value_of(schema["items"])] if "items" in schema else []
        if kind == "object":
            return {name: self.value_of(member) for name, member in schema.get("properties", {}).items() if name in schema.get("required", []) or self.random.random() < 0.5}
        return "text"

    def fill(self, path, named, breaks=""):
        for name, value in named.items():
            path = path.replace("{" + name + "}", urllib.parse.quote(breaks if breaks and name in ("id", "name", "n") else value, safe=""))
        return path

    def query_of(self, operation, named, wrong=None):
        pairs = []
        for parameter in operation.get("parameters", []):
            name, schema = parameter["name"], parameter["schema"]
            if parameter["in"] != "query":
                continue
            if name == wrong:
                pairs.append((name, self.random.choice(STRANGE)))
            elif parameter.get("required") or (self.random.random() < 0.3 and ("enum" in schema or schema.get("type") in ("integer", "boolean"))):
                value = "0" if name in ("tracks", "track") else named.get(name) or self.value_of(schema)
                pairs.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
        return "?" + urllib.parse.urlencode(pairs) if pairs else ""

    def look(self, method, path, operation, reply, what):
        told = f"{operation['operationId']}: {method} {path[:200]} ({what}): {reply.status} {reply.body[:200]!r}"
        if str(reply.status) not in operation["responses"] or reply.status >= 500:
            self.problems.setdefault((method, path.split("?")[0], reply.status), told)
            return
        content = operation["responses"][str(reply.status)].get("content", {})
        if "application/json" in content and reply.headers.get_content_type() == "application/json" and method != "head":
            found = json_schema.problems(reply.json(), content["application/json"]["schema"], self.document, False)
            if found:
                self.problems.setdefault((method, path.split("?")[0], found[0]), told)

    def operations(self):
        rows = [(method, path, operation) for path, item in self.document["paths"].items() if path not in NOT_DRIVEN for method, operation in item.items()]
        return sorted(rows, key=lambda row: row[0] in ENDS)

    def send(self, method, path, operation, body=None, **kwargs):
        headers = dict(JSON) if body is not None else {}
        headers.update({p["name"]: {"Tus-Resumable": "1.0.0", "Upload-Length": "10", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}.get(p["name"], "1.0.0")
                        for p in operation.get("parameters", []) if p["in"] == "header" and p.get("required")})
        return self.server.request(method.upper(), path, body=body, headers=headers, **kwargs)

    def body_of(self, operation):
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            return json.dumps(self.value_of(content["application/json"]["schema"]))
        return b"not a trace" if content else None

    def test_each_route_with_what_it_allows_and_what_not(self):
        world, driven, done, self.problems = self.world(), 0, 0, {}
        for method, path, operation in self.operations():
            words = path.split("/")
            named = world.get(words[3] if path.startswith("/api/v1/") else words[1], {})
            queries = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
            takes = operation.get("requestBody", {}).get("content", {})
            for _ in range(ROUNDS):
                driven += 1
                good = self.fill(path, named) + self.query_of(operation, named)
                if operation["x-access"] != "open":
                    reply = self.send(method, good, operation, self.body_of(operation), key=False)
                    self.assertEqual(reply.status, 401, f"{method} {good}")
                for wrong in queries:
                    bad = self.fill(path, named) + self.query_of(operation, named, wrong)
                    self.look(method, bad, operation, self.send(method, bad, operation, self.body_of(operation)), "a strange parameter")
                if "{" in path:
                    for strange in ("zzzzzzzzzzzzzzzzzzzzzzzzzz", "9" * 25, "x" * 300, "\u202e<b>"):
                        bad = self.fill(path, named, strange) + self.query_of(operation, named)
                        self.look(method, bad, operation, self.send(method, bad, operation, self.body_of(operation)), "nothing of that name")
                if "application/json" in takes:
                    for body in ("", "{", "[]", "7", '{"a":' * 200, json.dumps({name: {"x": [1]} for name in takes["application/json"]["schema"].get("properties", {})}), b'"\xff\xfe"', '"\\ud800"'):
                        self.look(method, good, operation, self.send(method, good, operation, body), "a strange body")
                reply = self.send(method, good, operation, self.body_of(operation))
                self.look(method, good, operation, reply, "what it allows")
                done += reply.status < 300
        self.assertEqual(self.server.get("/healthz").status, 200)
        self.assertFalse(self.problems, "\n".join(self.problems.values()))
        self.assertGreater(driven, 100 * ROUNDS)
        self.assertGreater(done, driven * 0.6)  # most of what is allowed succeeds


if __name__ == "__main__":
    harness.main()
