#!/usr/bin/env python3
"""The schemas of documents: each stands alone, command and service publish the same, and whatever is written is as they say.

The command is asked for every schema of a document it prints, and for ten others; with LACUNA_SOAK=1 for all.
"""
import functools
import glob
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from json_schema import problems
from server_harness import PROGRAM, ROOT, SOAK, Server, make_trace

sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
import sharded_run  # noqa: E402
from real_traces import real_traces  # noqa: E402

RECORDINGS = sorted(glob.glob(os.path.join(ROOT, "tests/golden/recordings/*")))
TRACES = sorted(glob.glob(os.path.join(real_traces(), "kineto/*.gz")))[:6]


def lacuna(*arguments, status=(0,)):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    if done.returncode not in status:
        raise AssertionError(f"{arguments}: {done.returncode} {done.stderr[-500:]}")
    return done.stdout


@functools.cache
def schema_of(name):
    return json.loads(lacuna("schema", name))


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.demo = kept.demo()

    def see(self, name, document, what):
        schema = schema_of(name)
        found = problems(document, schema, schema)
        self.assertEqual(found[:8], [], what)

    def test_each_schema_stands_alone_and_is_the_same_from_both(self):
        server = Server()
        self.addCleanup(server.close)
        listed = json.loads(lacuna("schema"))
        self.assertEqual(server.get("/api/v1/schemas", key=False).json(), listed)
        self.see("SchemaList", listed, "the list")
        names = [row["name"] for row in listed["schemas"]]
        self.assertLessEqual({"Analysis", "RunAnalysis", "Comparison", "Journal", "Doctor", "Event", "Trace", "SqlResult", "Error"}, set(names))
        alone = [row["name"] for row in listed["schemas"] if row["document"] is None]
        for row in listed["schemas"]:
            schema = server.get("/api/v1/schemas/" + row["name"], key=False).json()
            if SOAK or row["name"] not in alone[10:]:
                self.assertEqual(schema_of(row["name"]), schema)
            text = json.dumps(schema)
            self.assertNotIn("#/components", text)
            for reference in re.findall(r'"\$ref": "#/\$defs/(\w+)"', text):
                self.assertIn(reference, schema["$defs"], row["name"])
            if row["document"] is not None:
                self.assertEqual(json.loads(lacuna("schema", row["document"])), schema)
        missing = server.get("/api/v1/schemas/nothing", key=False)
        self.assertEqual(missing.status, 404)
        self.assertIn("schemas", missing.json()["error"]["message"])
        self.assertEqual(lacuna("schema", "nothing", status=(2,)), "")

    def test_a_wrong_document_is_seen(self):
        document = json.loads(kept.ask("analyze", "--json", self.demo[0]).stdout)
        schema = schema_of("Analysis")
        self.assertEqual(problems(document, schema, schema), [])
        for change in (lambda d: d.pop("verdict"), lambda d: d.update(more=1), lambda d: d["steps"].update(mean_ns="750"), lambda d: d["devices"][0].pop("busy_ns"),
                       lambda d: d["findings"][0].update(severity="bad"), lambda d: d.update(schema="lacuna.analysis/2"), lambda d: d["steps"].update(count=True)):
            broken = json.loads(json.dumps(document))
            change(broken)
            self.assertEqual(len(problems(broken, schema, schema)), 1, problems(broken, schema, schema))

    def test_what_the_commands_print(self):
        for path in self.demo + RECORDINGS + TRACES:
            document = json.loads(kept.ask("analyze", "--json", path).stdout)
            self.see(document["schema"], document, path)
        self.see("Analysis", json.loads(lacuna("analyze", "--json", "--what-if", "workers=4,pinned=1,layout=nhwc,comm=0.5", self.demo[0])), "what-if")
        ranks = json.loads(lacuna("analyze", "--json", "--what-if", "workers=4", *self.demo[:2]))
        self.assertEqual(ranks["schema"], "lacuna.run/1")
        self.see("RunAnalysis", ranks, "ranks")
        for a, b in zip(self.demo, self.demo[1:]):
            self.see("Comparison", json.loads(kept.ask("compare", a, b, "--json").stdout), (a, b))
        with kept.loop(kept.LOOP_SEEDS[0]) as ((path,), _):
            self.see("Comparison", json.loads(lacuna("compare", path, path, "--json", "--fail-if", "step_time>+3%,idle>0", status=(3,))), "with itself")
        self.see("Doctor", json.loads(lacuna("doctor", "--json", status=(0, 1))), "doctor")
        self.see("SqlResult", json.loads(lacuna("sql", self.demo[0], "SELECT id, name, 1.5 AS r, NULL AS n FROM slices LIMIT 3", "--json")), "sql")
        with tempfile.TemporaryDirectory(prefix="lacuna-schemas-") as data:
            lacuna("import", self.demo[0], "--data", data)
            self.see("Verify", json.loads(lacuna("admin", "verify", "--json", "--data", data)), "verify")
            stored = glob.glob(data + "/traces/*.db")[0]
            with open(stored, "r+b") as file:
                file.truncate(os.path.getsize(stored) - 5000)
            damaged = json.loads(lacuna("admin", "verify", "--json", "--data", data, status=(1,)))
            self.assertGreater(len(damaged["problems"]), 0)
            self.see("Verify", damaged, "damaged")

    def test_what_the_service_answers(self):
        """Every GET of the description that answers JSON, on a service with something of everything."""
        server = Server()
        self.addCleanup(server.close)
        post = lambda path, body: server.request("POST", "/api/v1" + path, body=json.dumps(body))
        traces = []
        for i, path in enumerate(self.demo[:2]):
            with open(path, "rb") as file:
                traces.append(server.request("POST", f"/api/v1/traces?name=demo{i}&project=vision", body=file.read()).json()["id"])
        traces.append(server.request("POST", "/api/v1/traces?name=small&project=vision", body=make_trace(steps=5, kernels=30)).json()["id"])
        with tempfile.TemporaryDirectory() as folder:
            ranks = io.BytesIO()
            with tarfile.open(fileobj=ranks, mode="w:gz") as tar:
                for path in sharded_run.write(folder, 2, late=1, steps=3):
                    tar.add(path, os.path.basename(path))
        first = server.upload(ranks.getvalue(), "ranks.tar.gz")
        run = server.wait_ready(first)["run"]
        traces += [trace["id"] for trace in server.api("/traces?run=" + run)["traces"]]
        failed = server.upload(b"no trace at all", "failed")
        for trace in [*traces, failed]:
            server.wait_ready(trace)
        for trace in (traces[0], traces[2]):
            server.request("PATCH", f"/api/v1/traces/{trace}", body=json.dumps({"notes": "a note", "tags": ["a"]}))
        server.request("PUT", "/api/v1/users/bob", body=json.dumps({"password": "a long password"}))
        server.request("PUT", "/api/v1/projects/vision/members/bob", body=json.dumps({"role": "write"}))
        token = post("/tokens", {"name": "nodes", "scope": "upload", "project": "vision"}).json()["id"]
        post(f"/traces/{traces[0]}/share", {"redact": ["hosts"]})
        post(f"/traces/{traces[0]}/bookmarks", {"start_ns": 5, "note": "here"})
        report = post("/reports", {"project": "vision", "title": "one", "from": [traces[0], traces[1]]}).json()["id"]
        post(f"/reports/{report}/comments", {"body": "@bob, see", "thread": None, "part": None})
        post(f"/reports/{report}/share", {"redact": []})
        tracks = server.api(f"/traces/{traces[2]}/tracks")["tracks"]
        kernel = server.api(f"/traces/{traces[2]}/kernels")["kernels"][0]["longest_slice"]
        counter = next(track["index"] for track in tracks if track["kind"] == "counter")
        root = server.get("/openapi.json", key=False).json()
        questions = {"/search": "q=a", "/area": "t0_ns=0&t1_ns=40000000", "/slices": "track=0&limit=50", "/series": "setting=num_workers", "/gaps": "min_ns=0",
                     "/compare": f"a={traces[0]}&b={traces[1]}", "/report": "format=contents", "/document": "format=contents"}
        seen, wrong = set(), []
        for path, item in root["paths"].items():
            content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {}).get("application/json")
            if content is None or path.endswith("openapi.json") or path in ("/api/v1/uploads/{id}", "/api/v1/schemas/{name}"):
                continue
            for trace in traces[0], traces[2], failed:
                at = path.replace("/projects/{name}", "/projects/vision").replace("/reports/{id}", "/reports/" + report).replace("/runs/{id}", "/runs/" + run)
                at = at.replace("/traces/{id}", "/traces/" + trace).replace("{track}", str(counter)).replace("/versions/{n}", "/versions/1").replace("{n}", str(kernel))
                at = at.replace("/tables/{name}", "/tables/kernels").replace("/findings/{id}", "/findings/input-starvation").replace("/tokens/{id}", "/tokens/" + token)
                query = next((query for end, query in questions.items() if at.endswith(end)), "")
                reply = server.get(at + ("?" + query if query else ""))
                schema = content["schema"] if reply.status == 200 else {"$ref": "#/components/schemas/Error"}
                wrong += [f"{at} ({reply.status}): {line}" for line in problems(reply.json(), schema, root)]
                if reply.status == 200:
                    seen.add(path)
        self.assertEqual(sorted({re.sub(r"\[\d+\]", "[]", line) for line in wrong}), [])
        unseen = {path for path, item in root["paths"].items() if "application/json" in item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})} - seen
        self.assertLessEqual(unseen, {"/openapi.json", "/api/v1/openapi.json", "/api/v1/uploads/{id}", "/api/v1/schemas/{name}"})
        for query in ("SELECT * FROM slices LIMIT 2", "SELECT x'00' AS b"):
            reply = post(f"/traces/{traces[0]}/sql", {"query": query})
            self.see("SqlResult", reply.json(), query)


if __name__ == "__main__":
    sys.exit(unittest.main())
