#!/usr/bin/env python3
"""Who may ask the server, and what it does with requests that are meant to confuse it."""
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
import unittest

from server_harness import PROGRAM, ROOT, Server, main, make_trace, status_of, wait_for

HOST = b"Host: 127.0.0.1\r\n"
ROUTES = re.findall(r'LAC_ROUTE\(\s*(\w+),\s*"([^"]+)",\s*(\w+),\s*(\w+),', open(os.path.join(ROOT, "server/api/routes.c")).read())


def fill(pattern):
    return re.sub(r"\{id\}", "a" * 26, re.sub(r"\{[a-z]+\}", "1", pattern.replace("{id}", "a" * 26)))


class Guard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        cls.trace = cls.server.upload(make_trace())
        cls.server.wait_ready(cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def ask(self, text, timeout=3.0):
        return self.server.raw(text, timeout)

    def test_every_key_route_refuses_without_the_key(self):
        self.assertGreater(len(ROUTES), 15)
        for method, pattern, access, _ in ROUTES:
            reply = self.server.request(method, fill(pattern), key=False)
            if access != "OPEN":
                self.assertEqual(reply.status, 401, (method, pattern, reply.body))
                self.assertEqual(reply.json()["error"]["code"], "no_key")
                for wrong in ("Bearer x", "Bearer ", "Basic " + self.server.key, "Bearer " + self.server.key[:-1], "Bearer " + self.server.key + "a"):
                    reply = self.server.request(method, fill(pattern), headers={"Authorization": wrong})
                    self.assertEqual(reply.status, 401, (method, pattern, wrong))
            else:
                self.assertNotEqual(reply.status, 401, (method, pattern))

    def test_a_foreign_host_is_refused_everywhere(self):
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil", "evil@127.0.0.1", "127.0.0.1,evil", "", "0.0.0.0", "127.0.0.2"):
            for path in ("/", "/healthz", "/api/v1/traces"):
                reply = self.server.get(path, headers={"Host": host})
                self.assertEqual(reply.status, 403, (host, path))
                self.assertEqual(reply.json()["error"]["code"], "host_not_allowed")
        for host in ("localhost", "localhost:9999", "127.0.0.1:1", "[::1]:7070"):
            self.assertEqual(self.server.get("/healthz", headers={"Host": host}).status, 200, host)

    def test_a_foreign_origin_is_refused_even_with_the_key(self):
        own = f"127.0.0.1:{self.server.port}"
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{self.server.port + 1}", "http://" + own + ".evil", "file://", f"https://localhost:{self.server.port}"):
            for method, path in (("GET", "/api/v1/traces"), ("POST", "/api/v1/traces"), ("DELETE", "/api/v1/traces/" + "a" * 26), ("POST", "/api/v1/session")):
                reply = self.server.request(method, path, headers={"Origin": origin})
                self.assertEqual(reply.status, 403, (origin, path, reply.body))
                self.assertEqual(reply.json()["error"]["code"], "origin_not_allowed")
        self.assertEqual(self.server.get("/api/v1/traces", headers={"Origin": "http://" + own}).status, 200)

    def cookie(self):
        reply = self.server.request("POST", "/api/v1/session", body=f'{{"key":"{self.server.key}"}}', key=False)
        self.assertEqual(reply.status, 204, reply.body)
        return reply.headers["Set-Cookie"]

    def test_the_key_becomes_a_strict_cookie(self):
        cookie = self.cookie()
        for part in ("lacuna_key=", "HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, cookie)
        self.assertNotIn(self.server.key, cookie)
        value = {"Cookie": cookie.split(";")[0]}
        self.assertEqual(self.server.get("/api/v1/traces", headers=value, key=False).status, 200)
        for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
            self.assertEqual(self.server.get("/api/v1/traces", headers={**value, "Sec-Fetch-Site": site}, key=False).status, status)
        # a change by cookie needs our own Origin
        reply = self.server.request("DELETE", "/api/v1/traces/" + "a" * 26, headers=value, key=False)
        self.assertEqual(reply.status, 403)
        own = {**value, "Origin": f"http://127.0.0.1:{self.server.port}"}
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + "a" * 26, headers=own, key=False).status, 404)

    def test_a_wrong_key_gives_no_session(self):
        for body, status in (('{"key":"wrong"}', 403), ('{"key":7}', 400), ("[]", 400), ("{", 400), ("", 400), ('{"key":{"key":{"key":{"key":{"key":1}}}}}', 400),
                             ('{"key":"%s\\u0000"}' % self.server.key, 400), ('{"key":"%s"} {}' % self.server.key, 400),
                             ("{'key':'%s'}" % self.server.key, 400), ('{"key":"%s",}' % self.server.key, 400), ('{"key":"' + "x" * 3000 + '"}', 400), ('{"key":"' + "x" * 5000 + '"}', 413)):
            reply = self.server.request("POST", "/api/v1/session", body=body, key=False)
            self.assertEqual(reply.status, status, (body[:40], reply.body))
            self.assertNotIn("Set-Cookie", reply.headers)

    def test_every_reply_has_the_strict_headers(self):
        for path in ("/", "/healthz", "/none.js", "/api/v1/traces", "/api/v1/none", "/api/v1/traces/" + self.trace):
            headers = self.server.get(path).headers
            policy = headers["Content-Security-Policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'", "connect-src 'self'"):
                self.assertIn(rule, policy, path)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
            self.assertFalse([name for name in headers if name.lower().startswith("access-control")])

    def test_only_the_entrance_hears_other_pages_and_only_on_request_fetches_from_them(self):
        self.assertNotIn("Cross-Origin-Opener-Policy", self.server.get("/").headers)
        for path in ("/t/" + self.trace, "/t/" + self.trace + "?url=x", "/app.js", "/api/v1/traces?url=x"):
            headers = self.server.get(path).headers
            self.assertEqual(headers["Cross-Origin-Opener-Policy"], "same-origin-allow-popups", path)
            self.assertIn("connect-src 'self';", headers["Content-Security-Policy"], path)
        self.assertIn("connect-src 'self';", self.server.get("/").headers["Content-Security-Policy"])
        policy = self.server.get("/?url=x").headers["Content-Security-Policy"]
        self.assertIn("connect-src 'self' https:", policy)
        for rule in ("default-src 'none'", "script-src 'self';", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'none'"):
            self.assertIn(rule, policy)

    def test_a_preflight_gets_nothing(self):
        reply = self.server.request("OPTIONS", "/api/v1/traces", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}, key=False)
        self.assertEqual(reply.status, 403)

    def test_ambiguous_framing_is_refused_and_nothing_smuggled(self):
        key = b"Authorization: Bearer " + self.server.key.encode() + b"\r\n"
        smuggled = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
        cases = [
            b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5\r\nContent-Length: 50\r\n",
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: +5\r\n", b"Content-Length: -5\r\n",
            b"Content-Length: 0x5\r\n", b"Content-Length: 5,5\r\n", b"Content-Length: 18446744073709551621\r\n", b"Content-Length : 5\r\n",
        ]
        for path in (b"/api/v1/session", b"/api/v1/traces"):
            for case in cases:
                reply = self.ask(b"POST " + path + b" HTTP/1.1\r\n" + HOST + key + case + b"\r\n" + b"0\r\n\r\n" + smuggled)
                self.assertIn(status_of(reply), (400, 413), (path, case, reply[:200]))
                self.assertNotIn(b'"status":"ok"', reply, (path, case))

    def test_leniencies_of_other_readers_are_refused(self):
        get, post, after = b"GET /healthz HTTP/1.1\r\n", b"POST /api/v1/session HTTP/1.1\r\n" + HOST, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
        chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
        for text in (post + b"Content-Length\t: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", get + b" X: y\r\n" + HOST + b"\r\n", get + HOST + b"X: y\r\n z\r\n\r\n",
                     get + HOST + b"X: a\rb\r\n\r\n", get + HOST + b"X: a\r\r\n\r\n", get + HOST + b": a\r\n\r\n", get + HOST + b"X y\r\n\r\n",
                     chunked + b"5\nhello\r\n0\r\n\r\n", chunked + b"5;\nhello\r\n0\r\n\r\n", chunked + b"5\r\nhello\n0\r\n\r\n", chunked + b"5 \r\nhello\r\n0\r\n\r\n",
                     chunked + b"0\r\nT: x\n\r\n", b"\r\n\r\n" + after):
            reply = self.ask(text + after)
            self.assertEqual(status_of(reply), 400, (text, reply[:200]))
            self.assertIn(b'"code":"bad_request"', reply, text)
            self.assertNotIn(b'"status":"ok"', reply, text)
        # what came before it on the connection is answered first, what comes behind it not at all
        reply = self.ask(after + after + get + HOST + b"X : y\r\n\r\n" + after)
        self.assertEqual([int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", reply)], [200, 200, 400])
        # and what is allowed stays allowed
        for text, status in ((b"\r\n" + after, 200), (get + HOST + b"X:\r\nY: \t a\tb \r\n\r\n", 200), (get + HOST + b"X: " + b"y" * 19000 + b"\r\n\r\n", 200),
                             (chunked + b"00c;a=b\r\n" + b'{"key":"no"}' + b"\r\n0\r\nT: x\r\n\r\n", 403)):
            self.assertEqual(status_of(self.ask(text + after, 1.0)), status, text)

    def test_requests_of_one_connection_are_answered_in_order(self):
        one = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
        listing = b"GET /api/v1/traces HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + self.server.key.encode() + b"\r\n\r\n"
        reply = self.ask((one + listing) * 150 + b"GET /api/v1/none HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 20.0)
        self.assertEqual(re.findall(rb'"status":"ok"|"traces":\[|"not_found"', reply), [b'"status":"ok"', b'"traces":['] * 150 + [b'"not_found"'])
        # a client that asks to continue and has no body gets its replies
        for path in (b"/healthz", b"/api/v1/traces", b"/"):
            reply = self.ask(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + self.server.key.encode() + b"\r\nExpect: 100-continue\r\n\r\n" +
                             b"GET /api/v1/none HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 10.0)
            self.assertEqual([status for status in re.findall(rb"HTTP/1\.1 (\d+)", reply) if status != b"100"], [b"200", b"404"], (path, reply[:300]))

    def test_who_goes_on_sending_after_a_refusal_is_ended(self):
        server = Server("--log-level", "warn")
        self.addCleanup(server.close)
        begin = time.monotonic()
        with server.connect(60) as connection:
            connection.sendall(b"POST /api/v1/traces HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() +
                               b"\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello")
            with self.assertRaises(ConnectionError):
                while time.monotonic() - begin < 120:
                    connection.sendall(b"x" * 1_000_000)
        self.assertLess(time.monotonic() - begin, 100)
        wait_for(lambda: b"\nlacuna_http_connections 1\n" in server.get("/metrics").body)

    def test_head_of_the_events_has_no_body(self):
        reply = self.ask(b"HEAD /api/v1/events HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + self.server.key.encode() + b"\r\n\r\n", 5.0)
        self.assertEqual(status_of(reply), 200)
        self.assertIn(b"Content-Type: text/event-stream\r\n", reply)
        self.assertIn(b"Connection: close\r\n", reply)
        self.assertTrue(reply.endswith(b"\r\n\r\n"), reply)
        self.assertEqual(reply.count(b"\r\n\r\n"), 1, reply)
        self.assertNotIn(b"0\r\n\r\n", reply)

    def test_odd_bytes_in_the_target_are_refused(self):
        for target in (b"/%00", b"/api/v1/traces/%00", b"/healthz%00", b"/healthz?x=%00", b"/heal\x00thz", b"/../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd",
                       b"/a%2fb", b"//etc/passwd", b"/%ff", b"/%c0%ae", b"/%", b"/%zz", b"/\x7f", b"/a\x01b", b"http://evil/", b"/?a=1&a=2"):
            reply = self.ask(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            self.assertEqual(status_of(reply), 400, (target, reply[:200]))

    def test_broken_headers_are_refused(self):
        for text, statuses in ((b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", (400,)), (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n\r\n", (400,)),
                               (b"GET /healthz HTTP/1.1\r\n\r\n", (400,)), (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n", (400, 403)),
                               (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n", (400,)), (b"GET /healthz HTTP/3.0\r\n" + HOST + b"\r\n", (400, 505)),
                               (b"\x16\x03\x01\x02\x00\x01\x00", (0, 400)), (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", (414,)),
                               (b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 200000 + b"\r\n\r\n", (413, 431, 400, 0)),
                               (b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 20000 + b"\r\n", (413, 431, 400, 500, 0))):
            reply = self.ask(text, 1.5)
            self.assertIn(status_of(reply), statuses, (text[:60], reply[:200]))
            self.assertNotIn(b'"status":"ok"', reply)
        self.assertEqual(self.server.get("/healthz").status, 200)

    def test_a_body_longer_than_announced_is_not_part_of_the_trace(self):
        body = make_trace()
        key = b"Authorization: Bearer " + self.server.key.encode() + b"\r\n"
        reply = self.ask(b"POST /api/v1/traces?name=long HTTP/1.1\r\n" + HOST + key + b"Content-Length: %d\r\n\r\n" % len(body) + body + b"garbage that is no request\r\n\r\n")
        self.assertEqual(status_of(reply), 201, reply[:300])
        trace = re.search(rb'"id":"([a-z2-7]{26})"', reply).group(1).decode()
        row = self.server.wait_ready(trace)
        self.assertEqual((row["state"], row["size_bytes"]), ("ready", len(body)))

    def test_a_body_shorter_than_announced_leaves_nothing(self):
        body = make_trace()
        key = b"Authorization: Bearer " + self.server.key.encode() + b"\r\n"
        with self.server.connect() as connection:
            connection.sendall(b"POST /api/v1/traces?name=short HTTP/1.1\r\n" + HOST + key + b"Content-Length: %d\r\n\r\n" % (len(body) + 100) + body)
        staging = os.path.join(self.server.data, "staging")
        wait_for(lambda: "short" not in [t["name"] for t in self.server.api("/traces?limit=1000")["traces"]] and not os.listdir(staging))

    def test_methods_and_bodies_that_do_not_fit_are_named(self):
        reply = self.server.request("PUT", "/api/v1/traces")
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (405, "method_not_allowed"))
        self.assertEqual(sorted(reply.headers["Allow"].split(", ")), ["GET", "POST"])
        self.assertEqual(self.server.request("BREW", "/healthz").status, 405)
        self.assertEqual(self.server.request("GET", "/api/v1/traces", body="x" * 10).status, 413)
        self.assertEqual(self.server.request("POST", "/api/v1/traces", body=b"").status, 400)
        self.assertEqual(self.server.get("/api/v1/nothing").status, 404)
        reply = self.server.raw(b"POST /api/v1/traces HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + self.server.key.encode() +
                                b"\r\nContent-Length: 99999999999999\r\n\r\n", 2)
        self.assertEqual(status_of(reply), 413)
        self.assertIn(b"body_too_large", reply)

    def test_the_key_file_is_ours_alone_and_never_logged(self):
        mode = os.stat(os.path.join(self.server.data, "local.token")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.cookie()
        self.server.get("/api/v1/traces?q=topsecretquery")
        log = self.server.log_text()
        self.assertIn("msg=request", log)
        self.assertNotIn(self.server.key, log)
        self.assertNotIn("topsecretquery", log)

    def test_a_request_cannot_forge_a_log_line(self):
        self.server.raw(b"GET /x%22%20level=error HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 2)
        self.server.raw(b"EVIL\"x=1 / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 2)
        for line in self.server.log_text().splitlines():
            self.assertRegex(line, r"^ts=\d{4}-\d\d-\d\dT[\d:.]+Z level=(info|warn|error|debug) msg=")


class Start(unittest.TestCase):
    def run_serve(self, *flags):
        return subprocess.run([PROGRAM, "serve", "--data", self.folder, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-data-")

    def tearDown(self):
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def test_an_address_that_is_none_is_wrong_usage(self):
        done = self.run_serve("--listen", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "lacuna serve: --listen nonsense: must be ADDRESS:PORT, [ADDRESS]:PORT or PORT\n")

    def test_it_does_not_listen_to_others_unless_told(self):
        done = self.run_serve("--listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--allow-remote", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)

    def test_wrong_usage_is_status_2_and_one_line(self):
        for flags in (("--log-level", "loud"), ("--nonsense",), ("file.json",), ("--header-timeout", "soon")):
            done = self.run_serve(*flags)
            self.assertEqual(done.returncode, 2, flags)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_a_port_that_is_taken_is_one_clear_line(self):
        server = Server()
        try:
            done = self.run_serve("--listen", f"127.0.0.1:{server.port}")
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot listen on", done.stderr)
        finally:
            server.close()

    def test_a_key_that_others_can_read_is_refused(self):
        server = Server(data=self.folder)
        server.terminate()
        server.close()
        os.chmod(os.path.join(self.folder, "local.token"), 0o644)
        done = self.run_serve("--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("others can read the key", done.stderr)

    def test_a_base_path_is_part_of_every_address(self):
        server = Server("--base-path", "/user/x", data=self.folder)
        try:
            self.assertEqual(server.get("/user/x/healthz").status, 200)
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertEqual(server.get("/user/x").status, 200)
            self.assertEqual(server.get("/user/xyz.js").status, 404)
            page = server.get("/user/x/").body.decode()
            self.assertIn('src="/user/x/', page)
            server.process.terminate()
            text = server.process.stdout.read().decode()
            self.assertIn(f"http://127.0.0.1:{server.port}/user/x/#key=...", text)
            self.assertIn(f"ssh -L {server.port}:127.0.0.1:{server.port}", text)
        finally:
            server.close()

    def test_the_key_is_printed_on_a_terminal_only(self):
        server = Server(data=self.folder)
        server.process.terminate()
        text = server.process.stdout.read().decode()
        server.close()
        self.assertNotIn(server.key, text)
        self.assertIn(f"/#key=...   with the key in {self.folder}/local.token\n", text)
        terminal, ours = os.openpty()
        process = subprocess.Popen([PROGRAM, "serve", "--data", self.folder, "--listen", "127.0.0.1:0", "--log-level", "error"], stdout=ours, stderr=subprocess.PIPE)
        os.close(ours)
        try:
            said = b""
            while b"  stop " not in said:
                said += os.read(terminal, 4096)
            self.assertRegex(said.decode(), r"  open     http://127\.0\.0\.1:\d+/#key=" + server.key + r"\r\n")
        finally:
            process.terminate()
            self.assertEqual(process.wait(30), 0)
            process.stderr.close()
            os.close(terminal)

    def test_the_header_file_shows_the_key_without_arguments(self):
        server = Server(data=self.folder)
        try:
            path = os.path.join(self.folder, "local.header")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            with open(path) as file:
                self.assertEqual(file.read(), f"Authorization: Bearer {server.key}\n")
            command = ["curl", "-sS", "-H", "@" + path, f"http://127.0.0.1:{server.port}/api/v1/traces"]
            if shutil.which("curl"):
                self.assertIn('"traces":[]', subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30).stdout)
            server.process.terminate()
            text = server.process.stdout.read().decode()
            self.assertIn(f'curl -H "@{path}" ', text)
        finally:
            server.close()
        for place in ("README.md", "server/api/README.md", "server/cli/serve/serve_options.c", "collector/push/push_command.c"):
            with open(os.path.join(ROOT, place)) as file:
                self.assertNotRegex(file.read(), r"Bearer \$", place)

    def test_allowed_hosts_are_answered(self):
        server = Server("--allow-host", "gpu.example,hub.example:8000", data=self.folder)
        try:
            self.assertEqual(server.get("/healthz", headers={"Host": "gpu.example"}).status, 200)
            self.assertEqual(server.get("/healthz", headers={"Host": "hub.example:8000"}).status, 200)
            self.assertEqual(server.get("/healthz", headers={"Host": "hub.example:8001"}).status, 403)
            self.assertEqual(server.get("/healthz", headers={"Origin": "https://gpu.example"}).status, 200)
        finally:
            server.close()


class Table(unittest.TestCase):
    """The route table is what it says, and cannot be what it must not."""

    def compile(self, row):
        source = ('#include "server/http/request.h"\n'
                  "static void h(void *a, const struct lac_request *q, struct lac_response *r) { (void)a; (void)q; (void)r; }\n"
                  "extern const struct lac_route table[];\nconst struct lac_route table[] = {" + row + "};\n")
        return subprocess.run([os.environ.get("CC", "gcc"), "-std=c17", "-D_GNU_SOURCE", "-iquote", ".", "-fsyntax-only", "-x", "c", "-"], cwd=ROOT, input=source,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).returncode

    def test_a_route_without_an_access_rule_does_not_compile(self):
        self.assertEqual(self.compile('LAC_ROUTE(GET, "/x", OPEN, LOOP, 0, h, 0)'), 0)
        self.assertEqual(self.compile('LAC_ROUTE(GET, "/x", KEY, LOOP, 0, h, 0)'), 0)
        self.assertNotEqual(self.compile('LAC_ROUTE(GET, "/x", , LOOP, 0, h, 0)'), 0)
        self.assertNotEqual(self.compile('LAC_ROUTE(GET, "/x", LOOP, 0, h, 0)'), 0)
        self.assertNotEqual(self.compile('LAC_ROUTE(GET, "/x", NONE, LOOP, 0, h, 0)'), 0)


if __name__ == "__main__":
    main()
