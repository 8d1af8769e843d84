"""Signing in at an OpenID Connect provider: a small one of our own, with PKCE checked as a provider does, and tokens that are wrong in each
way; what another browser, a second time or a foreign site would gain."""
import base64
import hashlib
import http.server
import json
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from server_harness import PROGRAM, Server, wait_for

CLIENT, SECRET = "lacuna at work", "a client's secret &=+"


def encoded(claims):
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return part({"alg": "RS256"}) + "." + part(claims) + "." + part({"signature": "of the provider"})


class Provider(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}/realms/team"
        self.codes, self.forms = {}, []
        self.change = lambda claims: claims
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def visit(self, address, **claims):
        """What the person does there. @return the query of the way back"""
        url = urllib.parse.urlsplit(address)
        asked = dict(urllib.parse.parse_qsl(url.query))
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256" and "openid" in asked["scope"].split(), asked
        code = hashlib.sha256(json.dumps(asked).encode()).hexdigest() + "/+="
        self.codes[code] = (asked, {"email": "ann@example.org", "email_verified": True, **claims})
        return urllib.parse.urlencode({"state": asked["state"], "code": code})


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def say(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        base = f"http://127.0.0.1:{self.server.server_port}"
        if self.path == "/realms/team/.well-known/openid-configuration":
            self.say(200, {"issuer": self.server.issuer, "authorization_endpoint": base + "/authorize?realm=team", "token_endpoint": base + "/token"})
        else:
            self.say(404, {})

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.server.forms.append(form)
        asked, person = self.server.codes.pop(form.get("code"), (None, None))  # a code is for once
        if asked is None or form["client_secret"] != SECRET or form["client_id"] != CLIENT or form["redirect_uri"] != asked["redirect_uri"]:
            return self.say(400, {"error": "invalid_grant"})
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if challenge != asked["code_challenge"]:
            return self.say(400, {"error": "invalid_grant"})
        claims = {"iss": self.server.issuer, "aud": CLIENT, "exp": int(time.time()) + 300, "nonce": asked["nonce"], "sub": "1", **person}
        return self.say(200, {"access_token": "x", "token_type": "Bearer", "id_token": encoded(self.server.change(claims))})


class Oidc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.provider = Provider()
        cls.secret = tempfile.NamedTemporaryFile("w", suffix=".secret")
        cls.secret.write(SECRET + "\n")
        cls.secret.flush()
        cls.public = "https://traces.example.org/x"
        cls.server = Server("--behind-proxy", "--base-path", "/x", "--allow-host", "traces.example.org", "--public-url", cls.public, "--oidc-issuer", cls.provider.issuer,
                            "--oidc-client", CLIENT, "--oidc-secret-file", cls.secret.name, "--log-level", "debug")
        for name in ("ann@example.org", "bob"):
            added = subprocess.run([PROGRAM, "admin", "user", "add", name, "--data", cls.server.data], capture_output=True, text=True, timeout=60)
            assert added.returncode == 0, added.stderr
        wait_for(lambda: len(cls.server.api("/users")["users"]) == 2)

    @classmethod
    def tearDownClass(cls):
        log = cls.server.log_text()
        assert SECRET not in log and not any(form["code"] in log for form in cls.provider.forms)
        assert cls.server.terminate() == 0
        cls.server.close()
        cls.provider.shutdown()
        cls.provider.server_close()

    def setUp(self):
        self.provider.change = lambda claims: claims
        if self.ask("/session/oidc").status == 502 and "libcurl" in self.ask("/session/oidc").body.decode():
            self.skipTest("no libcurl: nobody signs in at a provider")

    def ask(self, path, **headers):
        return self.server.get("/x/api/v1" + path, key=False, headers={"Host": "traces.example.org", **headers})

    def begin(self):
        reply = self.ask("/session/oidc")
        self.assertEqual(reply.status, 302, reply.body)
        cookie = reply.headers["Set-Cookie"]
        for part in ("HttpOnly", "SameSite=Lax", "; Secure", "Path=/x/api/v1/session/oidc;"):
            self.assertIn(part, cookie)
        return reply.headers["Location"], cookie.split(";")[0]

    def finish(self, query, cookie):
        headers = {"Sec-Fetch-Site": "cross-site", **({"Cookie": cookie} if cookie else {})}
        return self.ask("/session/oidc/callback?" + query, **headers)

    def test_there_and_back(self):
        address, cookie = self.begin()
        self.assertIn(urllib.parse.quote(self.public + "/api/v1/session/oidc/callback", safe=""), address)
        self.assertNotIn(cookie.split("=")[1], address)
        query = self.provider.visit(address)
        reply = self.finish(query, "other=1; " + cookie)
        self.assertEqual(reply.status, 302, reply.body)
        self.assertEqual(reply.headers["Location"], "/x/")
        cookies = reply.headers.get_all("Set-Cookie")
        self.assertTrue(any(re.match("lacuna_oidc=;.*Max-Age=0", each) for each in cookies), cookies)
        session = next(each for each in cookies if each.startswith("lacuna_session="))
        self.assertIn("SameSite=Strict", session)
        self.assertEqual(self.ask("/session", Cookie=session.split(";")[0]).json()["name"], "ann@example.org")
        # again, with the cookie kept: the code is spent
        self.assertEqual(self.finish(query, cookie).status, 502)
        # the same address in another browser, with another attempt or none
        query = self.provider.visit(address)
        for other in (None, self.begin()[1], "lacuna_oidc=" + "0" * 64, "lacuna_oidc="):
            self.assertEqual(self.finish(query, other).status, 403, other)
        self.assertNotIn(query, [form.get("code") for form in self.provider.forms])

    def test_tokens_that_are_wrong(self):
        without = lambda name: lambda claims: {k: v for k, v in claims.items() if k != name}
        changed = lambda **more: lambda claims: {**claims, **more}
        wrong = [changed(iss="https://evil.example"), changed(aud="another service"), changed(aud=[CLIENT, "another"]), changed(aud=[CLIENT], azp="another"),
                 changed(exp=int(time.time()) - 3600), changed(exp="soon"), changed(nonce="0" * 64), changed(email_verified=False), changed(email="nobody@example.org"),
                 changed(email="ann@example.org\n"), changed(email=["ann@example.org"])] + [without(name) for name in ("iss", "aud", "exp", "nonce", "email", "email_verified")]
        for number, change in enumerate(wrong):
            self.provider.change = change
            address, cookie = self.begin()
            reply = self.finish(self.provider.visit(address), cookie)
            self.assertEqual(reply.status, 403, (number, reply.body))
            self.assertFalse(any("lacuna_session" in each for each in reply.headers.get_all("Set-Cookie")), number)
        self.provider.change = changed(aud=[CLIENT, "another"], azp=CLIENT)
        address, cookie = self.begin()
        self.assertEqual(self.finish(self.provider.visit(address), cookie).status, 302)

    def test_no_way_to_another_site(self):
        for path in ("/session/oidc?next=https://evil.example", "/session/oidc?redirect_uri=https://evil.example"):
            self.assertNotIn("evil", self.ask(path).headers.get("Location", ""))
        address, cookie = self.begin()
        reply = self.finish(self.provider.visit(address) + "&next=//evil.example", cookie)
        self.assertEqual(reply.headers["Location"], "/x/")
        self.assertEqual(self.finish("error=access_denied&state=1", cookie).status, 403)


class Settings(unittest.TestCase):
    def test_what_is_missing(self):
        with tempfile.TemporaryDirectory() as data:
            for flags in (("--oidc-issuer", "https://id.example"), ("--oidc-client", "x"), ("--oidc-issuer", "http://id.example", "--oidc-client", "x", "--public-url", "https://a.example")):
                said = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0", *flags], capture_output=True, text=True, timeout=60)
                self.assertEqual(said.returncode, 1, said.stderr)
                self.assertIn("--public-url", said.stderr)
        server = Server()
        self.assertEqual(server.get("/api/v1/session/oidc", key=False).status, 204)
        self.assertEqual(server.get("/api/v1/session/oidc/callback?state=a&code=b", key=False).status, 404)
        self.assertEqual(server.terminate(), 0)
        server.close()


if __name__ == "__main__":
    unittest.main()
