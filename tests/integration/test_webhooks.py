#!/usr/bin/env python3
"""Webhooks: news of a project arrive signed, are sent again after a failure, also over a restart, and lead nowhere that is not allowed."""
import ctypes.util
import hashlib
import hmac
import http.server
import json
import subprocess
import threading
import time
import unittest

from json_schema import problems
from server_harness import MARKUP, PROGRAM, Server, main, make_trace, slowed

EVENTS = ["trace.ready", "trace.failed", "report.published", "report.comment", "report.mention", "run.regression", "run.hang", "run.resumed"]
REFUSED = ["http://127.0.0.1/x", "http://localhost:80/", "http://[::1]/", "http://0.0.0.0/", "http://2130706433/", "http://0x7f.1/", "http://10.1.2.3/", "http://172.16.0.1/",
           "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://[::ffff:169.254.169.254]/", "http://100.100.100.200/",
           "http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::1]/", "http://224.0.0.1/", "http://[::7f00:1]/"]
MALFORMED = ["", "ftp://example.org/", "http://", "http:///x", "http://a b/", "http://user:pass@example.org/", "http://example.org@127.0.0.1/", "http://example.org\\@127.0.0.1/", "http://example.org:99999/",
             "http://exa\nmple.org/", "javascript:alert(1)", "http://[::1/", "file:///etc/passwd", "http://example.org/#x", "http://é.org/"]


class Receiver:
    """Takes every POST and answers with the next of `answers`, then 200."""

    def __init__(self, answers=()):
        self.taken, self.answers, self.lock = [], list(answers), threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.taken.append((dict(self.headers), body))
                    status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def do_GET(self):
                with receiver.lock:
                    receiver.taken.append(("GET", b""))
                self.send_error(500)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=b"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count, want=lambda item: True):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with self.lock:
                found = [item for item in self.taken if want(item)]
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"{len(found)} of {count} came: {self.taken}")


def of(event):
    return lambda item: item[0]["Lacuna-Event"] == event


@unittest.skipUnless(ctypes.util.find_library("curl") or ctypes.util.find_library("curl-gnutls"), "skip: libcurl is not installed")
class Delivery(unittest.TestCase):
    def start(self, *flags, answers=()):
        receiver = Receiver(answers)
        self.addCleanup(receiver.close)
        server = Server("--webhook-allow", "127.0.0.1", "--webhook-retry", "50", *flags)
        self.addCleanup(server.close)
        return receiver, server

    def add(self, server, project, **members):
        reply = server.request("POST", f"/api/v1/projects/{project}/webhooks", json.dumps(members).encode())
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json()

    def check_signed(self, hook, item):
        headers, body = item
        stamp, sign = (part.split("=")[1] for part in headers["Lacuna-Signature"].split(","))
        self.assertEqual(sign, hmac.new(hook["secret"].encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest())
        self.assertLess(abs(time.time() - int(stamp)), 600)
        self.assertEqual(headers["Content-Type"], "application/json")

    def test_news_arrive_once_signed_and_only_those_that_are_wanted(self):
        receiver, server = self.start("--public-url", "https://lacuna.example/x")
        everything = self.add(server, "-", url=receiver.url)
        self.assertEqual(everything["events"], EVENTS)
        slack = Receiver()
        self.addCleanup(slack.close)
        only = self.add(server, "-", url=slack.url, form="slack", events="report.mention")
        elsewhere = Receiver()
        self.addCleanup(elsewhere.close)
        self.add(server, "other", url=elsewhere.url)
        trace = server.upload(make_trace(), name="run%20%3C1%3E%20%26%20more")
        server.wait_ready(trace)
        ready = receiver.wait(1, of("trace.ready"))[0]
        self.check_signed(everything, ready)
        event = json.loads(ready[1])
        self.assertEqual((event["schema"], event["event"], event["id"], event["path"], event["url"], event["project"]),
                         ("lacuna.event/1", "trace.ready", trace, "/t/" + trace, "https://lacuna.example/x/t/" + trace, None))
        self.assertIn("run <1> & more is ready", event["text"])
        schema = server.get("/api/v1/schemas/Event", key=False).json()
        self.assertEqual(problems(event, schema, schema), [])
        server.request("PATCH", "/api/v1/traces/" + trace, b'{"notes": "changed"}')  # told again to pages, not to webhooks
        report = server.request("POST", "/api/v1/reports", json.dumps({"title": "What <we> found", "markdown": "x"}).encode()).json()["id"]
        server.request("POST", f"/api/v1/reports/{report}/comments", json.dumps({"body": f"@ann look at {MARKUP}"}).encode())
        self.assertIn('"What <we> found"', json.loads(receiver.wait(1, of("report.published"))[0][1])["text"])
        receiver.wait(1, of("report.comment"))
        receiver.wait(1, of("report.mention"))
        said = slack.wait(1)[0]
        self.check_signed(only, said)
        text = json.loads(said[1])
        self.assertEqual(list(text), ["text"])
        self.assertIn("@ann look at &lt;img", text["text"])
        self.assertNotIn("<", text["text"])
        self.assertEqual(server.request("POST", f"/api/v1/projects/-/webhooks/{everything['id']}/test", b"").status, 202)
        receiver.wait(1, of("test"))
        events = [item[0]["Lacuna-Event"] for item in receiver.taken]
        self.assertEqual(sorted(events), ["report.comment", "report.mention", "report.published", "test", "trace.ready"])
        self.assertEqual((len(slack.taken), elsewhere.taken), (1, []))
        broken = server.upload(b"no trace at all", name="broken")
        self.assertIn("broken could not be read", json.loads(receiver.wait(1, of("trace.failed"))[0][1])["text"])
        self.assertEqual(json.loads(receiver.wait(1, of("trace.failed"))[0][1])["id"], broken)

    def test_a_failed_delivery_is_made_again_also_after_a_restart(self):
        receiver, server = self.start(answers=[500, 302, 503])
        hook = self.add(server, "-", url=receiver.url, events="trace.failed")
        self.assertEqual(server.request("POST", f"/api/v1/projects/-/webhooks/{hook['id']}/test", b"").status, 202)
        four = receiver.wait(4)
        self.assertEqual(len({item[0]["Lacuna-Delivery"] for item in four}), 1)
        self.assertEqual(len({item[1] for item in four}), 1)
        for item in four:  # a redirect is a failure: nothing is asked elsewhere
            self.check_signed(hook, item)
        receiver.answers = [500] * 100
        server.request("POST", f"/api/v1/projects/-/webhooks/{hook['id']}/test", b"")
        receiver.wait(5)
        server.terminate()
        receiver.answers = []
        server.start()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            row = server.api("/projects/-/webhooks")["webhooks"][0]
            if row["delivered_count"] == 2:
                break
            time.sleep(0.05)
        schemas = server.get("/openapi.json", key=False).json()["components"]["schemas"]
        self.assertEqual(sorted(row), sorted(schemas["Webhook"]["properties"]))
        self.assertEqual((row["delivered_count"], row["waiting_count"], row["failed_count"], row["last_status"], row["problem"]), (2, 0, 0, 200, None))
        self.assertNotIn("secret", row)

    def test_a_regression_is_told(self):
        receiver, server = self.start()
        traces = [server.upload(make_trace(steps=12), name="base")]
        server.wait_ready(traces[0])
        server.request("PATCH", "/api/v1/traces/" + traces[0], b'{"baseline": true}')
        self.add(server, "-", url=receiver.url, events="run.regression trace.ready")
        traces.append(server.upload(make_trace(steps=12, filler=1), name="the%20same%20again"))
        server.wait_ready(traces[1])
        traces.append(server.upload(slowed(make_trace(steps=12), 1.5), name="slower"))
        server.wait_ready(traces[2])
        told = receiver.wait(1, of("run.regression"))
        receiver.wait(2, of("trace.ready"))
        self.assertEqual([json.loads(item[1])["id"] for item in told], [traces[2]])
        self.assertIn("longer than in the baseline", json.loads(told[0][1])["text"])


class Addresses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--webhook-retry", "20")
        cls.addClassCleanup(cls.server.close)

    def post(self, body):
        return self.server.request("POST", "/api/v1/projects/-/webhooks", json.dumps(body).encode())

    def test_what_is_not_public_or_no_address_is_refused(self):
        for url in REFUSED:
            reply = self.post({"url": url})
            self.assertEqual(reply.status, 400, url)
            self.assertIn("private, loopback or link-local", reply.json()["error"]["message"], url)
        for url in MALFORMED:
            self.assertEqual(self.post({"url": url}).status, 400, url)
        for body in ({"url": "http://example.org/", "form": "xml"}, {"url": "http://example.org/", "events": "trace.ready nothing"}, {"url": 1}, []):
            self.assertEqual(self.post(body).status, 400, body)
        self.assertEqual(self.server.api("/projects/-/webhooks")["webhooks"], [])
        self.assertEqual(self.server.get("/api/v1/projects/-/webhooks", key=False).status, 401)

    @unittest.skipUnless(ctypes.util.find_library("curl") or ctypes.util.find_library("curl-gnutls"), "skip: libcurl is not installed")
    def test_a_name_that_leads_inside_is_refused_when_the_socket_is_made(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        url = f"http://localhost.:{receiver.server.server_port}/"  # a name: where it leads shows when it is asked
        reply = self.post({"url": url})
        self.assertEqual(reply.status, 201, reply.body)
        hook = reply.json()["id"]
        self.assertEqual(self.server.request("POST", f"/api/v1/projects/-/webhooks/{hook}/test", b"").status, 202)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            row = self.server.api("/projects/-/webhooks")["webhooks"][0]
            if row["last_at"]:
                break
            time.sleep(0.05)
        self.assertEqual((row["last_status"], row["delivered_count"], receiver.taken), (0, 0, []))
        self.assertTrue("not allowed" in row["problem"] or "resolve" in row["problem"], row)
        self.assertEqual(self.server.request("DELETE", f"/api/v1/projects/-/webhooks/{hook}").status, 204)
        self.assertEqual(self.server.request("DELETE", f"/api/v1/projects/-/webhooks/{hook}").status, 404)
        self.assertEqual(self.server.request("POST", f"/api/v1/projects/-/webhooks/{hook}/test", b"").status, 404)

    def test_the_command_line_does_the_same(self):
        admin = lambda *words: subprocess.run([PROGRAM, "admin", "webhook", *words, "--data", self.server.data], capture_output=True, text=True)
        made = admin("add", "https://example.org/x", "--project", "shell", "--slack", "--events", "trace.failed run.regression")
        self.assertEqual(made.returncode, 0, made.stderr)
        row = self.server.api("/projects/shell/webhooks")["webhooks"][0]
        self.assertEqual((made.stdout.split()[1], row["form"], row["events"]), (row["id"], "slack", ["trace.failed", "run.regression"]))
        self.assertIn(row["id"], admin("list", "--project", "shell").stdout)
        self.assertEqual(admin("list").stdout, "")
        for words in (("add", "http://169.254.169.254/"), ("add", "https://example.org/", "--events", "x"), ("add",), ("remove",), ("paint", "x"), ("list", "x")):
            self.assertEqual(admin(*words).returncode, 2, words)
        self.assertEqual(admin("add", "http://10.0.0.1/", "--webhook-allow", "10.0.0.0/8", "--project", "shell").returncode, 0)
        self.assertEqual((admin("remove", row["id"]).returncode, admin("remove", row["id"], "--project", "shell").returncode), (1, 0))

    def test_a_project_has_a_limit(self):
        for number in range(20):
            self.assertEqual(self.server.request("POST", "/api/v1/projects/full/webhooks", json.dumps({"url": f"https://example.org/{number}"}).encode()).status, 201)
        self.assertEqual(self.server.request("POST", "/api/v1/projects/full/webhooks", b'{"url": "https://example.org/x"}').status, 409)


if __name__ == "__main__":
    main()
