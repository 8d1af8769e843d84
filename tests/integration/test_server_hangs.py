#!/usr/bin/env python3
"""A hang is at the server while it lasts: told by the launcher with its upload, seen by who may read the project, sent to webhooks, gone when it is over."""
import base64
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import textwrap
import threading
import unittest

import server_harness as harness
from torch_python import TORCH_PYTHON, has_torch

NODE = os.path.join(harness.ROOT, "build/release/lacuna-node")
JSON = {"Content-Type": "application/json"}
TUS = {"Tus-Resumable": "1.0.0"}
HANG = {"after_s": 8, "steps": 80, "rank": 1, "doing": "rank 1 on nid002 waits in barrier at train.py:31 (save)", "where": "/home/a/train.py:31",
        "source": "dist.barrier()", "others": "rank 0 waits in all_reduce at train.py:40 (main)"}
# Steps, then a lock that nobody gives until the file is there that is named.
JOB = textwrap.dedent("""
    import os, sys, threading, time
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = threading.Lock()

    def give():
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.1)
        given.release()

    for step in range(120):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        time.sleep(0.02)
        if step == 80:
            given.acquire()
            threading.Thread(target=give, daemon=True).start()
            given.acquire()  # HANGS
""")


class Receiver:
    """Keeps what webhooks send."""

    def __init__(self):
        self.events = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def of(self, event):
        return [each for each in list(self.events) if each["event"] == event]


class Hangs(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server("--webhook-allow", "127.0.0.1", "--webhook-retry", "50")
        self.addCleanup(self.server.close)

    def begin(self, project="", run="", name="job", token=None):
        pairs = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in (("name", name), ("run", run), ("project", project)) if value)
        reply = self.ask("POST", "/uploads", None, token, {**TUS, "Upload-Defer-Length": "1", "Upload-Metadata": pairs})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()["id"]

    def ask(self, method, path, body=None, token=None, headers=None):
        headers = dict(headers or JSON)
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        return self.server.request(method, "/api/v1" + path, body=json.dumps(body) if isinstance(body, dict) else body, headers=headers, key=token is None)

    def put(self, upload, body=None, token=None):
        return self.ask("PUT", f"/uploads/{upload}/hang", HANG if body is None else body, token)

    def hangs(self, token=None):
        reply = self.ask("GET", "/hangs", token=token)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["hangs"]

    def token(self, scope, project):
        reply = self.ask("POST", "/tokens", {"name": scope + project, "scope": scope, "project": project})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()["token"]

    def test_it_is_there_while_it_lasts(self):
        upload = self.begin("vision", "nightly")
        self.assertEqual(self.hangs(), [])
        self.assertEqual(self.put(upload).status, 204)
        found = self.hangs()
        self.assertEqual([(each["upload"], each["project"], each["run"], each["name"]) for each in found], [(upload, "vision", "nightly", "job")])
        self.assertEqual({key: found[0][key] for key in HANG}, HANG)
        self.assertEqual(self.put(upload, {**HANG, "rank": None, "others": None}).status, 204)  # again: the same one
        again = self.hangs()
        self.assertEqual((len(again), again[0]["rank"], again[0]["others"], again[0]["since"]), (1, None, None, found[0]["since"]))
        self.assertEqual(self.ask("DELETE", f"/uploads/{upload}/hang").status, 204)
        self.assertEqual(self.hangs(), [])
        self.assertEqual(self.ask("DELETE", f"/uploads/{upload}/hang").status, 204)

    def test_it_ends_with_the_upload_that_is_complete_or_ended(self):
        upload, ended = self.begin(), self.begin()
        for each in (upload, ended):
            self.assertEqual(self.put(each).status, 204)
        self.assertEqual(self.ask("DELETE", f"/uploads/{ended}", headers=TUS).status, 204)
        self.assertEqual([each["upload"] for each in self.hangs()], [upload])
        self.assertEqual(self.put(ended).status, 410)
        body = harness.make_trace()
        reply = self.ask("PATCH", f"/uploads/{upload}", body, None, {**TUS, "Upload-Offset": "0", "Upload-Length": str(len(body)), "Content-Type": "application/offset+octet-stream"})
        self.assertEqual(reply.status, 204, reply.body)
        self.assertEqual(self.hangs(), [])
        self.assertEqual(self.put(upload).status, 409)

    def test_who_may_tell_and_who_may_see(self):
        for project in ("vision", "speech"):
            self.assertEqual(self.ask("POST", "/projects", {"name": project}).status, 201)
        writes, other, reads, elsewhere = self.token("upload", "vision"), self.token("upload", "vision"), self.token("read", "vision"), self.token("read", "speech")
        upload = self.begin("vision", token=writes)
        self.assertEqual(self.put(upload, token=other).status, 404)  # of another token
        self.assertEqual(self.put(upload, token=reads).status, 403)
        self.assertEqual(self.server.request("PUT", f"/api/v1/uploads/{upload}/hang", body=json.dumps(HANG), headers=JSON, key=False).status, 401)
        self.assertEqual(self.server.request("GET", "/api/v1/hangs", key=False).status, 401)
        self.assertEqual(self.put(upload, token=writes).status, 204)
        self.assertEqual([len(self.hangs(token)) for token in (reads, elsewhere, None)], [1, 0, 1])
        self.assertEqual(self.ask("DELETE", f"/uploads/{upload}/hang", token=other).status, 404)
        self.assertEqual(len(self.hangs()), 1)
        self.assertEqual(self.ask("DELETE", f"/uploads/{upload}/hang", token=writes).status, 204)

    def test_bodies_that_are_anything(self):
        upload = self.begin()
        for body, status in (("", 400), ("[]", 400), ("{", 400), (b"\xff", 400), ({}, 400), ({"doing": ""}, 400), ({"doing": 7}, 400), ({"doing": "x" * 512}, 400),
                             ({**HANG, "rank": -2}, 400), ({**HANG, "rank": 1 << 60}, 400), ({**HANG, "steps": "many"}, 400), ({**HANG, "source": "x" * 256}, 400),
                             ('{"doing":"a\\u0000b"}', 400), ("x" * 9000, 413), ('{"doing":' + "[" * 50 + "]" * 50 + "}", 400)):
            reply = self.put(upload, body)
            self.assertEqual(reply.status, status, (body, reply.body))
        self.assertEqual(self.hangs(), [])
        self.assertEqual(self.put("a" * 26).status, 404)
        self.assertEqual(self.put("..%2fx").status, 400)
        self.assertEqual(self.put(upload, {**HANG, "doing": "a\nb\x1b[2J\x7f<b>", "unknown": [1]}).status, 204)
        self.assertEqual(self.hangs()[0]["doing"], "a b [2J <b>")

    def test_webhooks_hear_of_a_run_once(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        self.assertEqual(self.ask("POST", "/projects/vision/webhooks", {"url": receiver.url}).status, 201)
        uploads = [self.begin("vision", "slurm-77") for _ in range(3)]
        for _ in range(2):
            for upload in uploads:
                self.assertEqual(self.put(upload).status, 204)
        for upload in uploads:
            self.assertEqual(receiver.of("run.resumed"), [])
            self.assertEqual(self.ask("DELETE", f"/uploads/{upload}/hang").status, 204)
        harness.wait_for(lambda: receiver.of("run.resumed"))
        told = receiver.of("run.hang")
        self.assertEqual([each["id"] for each in told], [uploads[0]])
        self.assertEqual(told[0]["text"], f"job: no progress for 8 s: {HANG['doing']}; {HANG['others']}")
        self.assertEqual((told[0]["project"], told[0]["path"]), ("vision", "/"))
        self.assertEqual([each["text"] for each in receiver.of("run.resumed")], ["job goes on"])

    @unittest.skipUnless(has_torch(), "no torch")
    def test_a_launcher_tells_its_server(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        self.assertEqual(self.ask("POST", "/projects/vision/webhooks", {"url": receiver.url}).status, 201)
        folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        script, goes_on = os.path.join(folder, "job.py"), os.path.join(folder, "goes-on")
        with open(script, "w") as file:
            file.write(JOB)
        with open(os.path.join(folder, "log"), "w+") as log:
            job = subprocess.Popen([NODE, "run", "-o", os.path.join(folder, "out"), "--project", "vision", "--server", f"http://127.0.0.1:{self.server.port}",
                                    "--token-file", os.path.join(self.server.data, "local.token"), "--", TORCH_PYTHON, script, goes_on],
                                   env=dict(os.environ, LACUNA_HANG_SCALE="0.5", LACUNA_SPOOL_DIR=folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.addCleanup(job.wait)
            self.addCleanup(job.kill)
            harness.wait_for(self.hangs, 60)
            found = self.hangs()[0]
            line = next(number for number, text in enumerate(JOB.splitlines(), 1) if "# HANGS" in text)
            self.assertIn("waits for a lock or another thread at job.py:%d " % line, found["doing"])
            self.assertEqual((found["where"], found["project"], found["name"]), (f"{script}:{line}", "vision", "out"))
            self.assertIn("# HANGS", found["source"])
            self.assertIsNone(job.poll())  # while it lasts
            open(goes_on, "w").close()
            harness.wait_for(lambda: not self.hangs(), 30)
            self.assertEqual(job.wait(60), 0)
            harness.wait_for(lambda: receiver.of("trace.ready"), 60)
        self.assertEqual([len(receiver.of(event)) for event in ("run.hang", "run.resumed")], [1, 1])
        self.assertTrue(receiver.of("run.hang")[0]["text"].startswith("out: no progress for "))


if __name__ == "__main__":
    harness.main()
