"""People, passwords, tokens and roles: who may do what, cell by cell from the route table, and what must not be possible."""
import glob
import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, make_trace, wait_for

ROUTES = re.findall(r'LAC_ROUTE\(\s*(\w+),\s*"([^"]+)",\s*(\w+),\s*(\w+),', open(os.path.join(ROOT, "server/api/routes.c")).read())
PASSWORD = "correct horse battery"
RIGHTS = {"read": {"read"}, "upload": {"upload"}, "write": {"read", "comment", "upload", "write"}, "admin": {"read", "comment", "upload", "write", "admin"}, "none": set()}
READER = {"read", "comment"}  # the role; the scope "read" changes nothing at all
# what the handler of a SIGNED route asks for besides
PEOPLE_ONLY = {("GET", "/api/v1/tokens"), ("POST", "/api/v1/tokens"), ("DELETE", "/api/v1/tokens/{id}")}


def admin(data, *words, password=None):
    with tempfile.NamedTemporaryFile("w") as file:
        file.write((password or "") + "\n")
        file.flush()
        flags = ["--password-file", file.name] if password is not None else []
        return subprocess.run([PROGRAM, "admin", "user", *words, *flags, "--data", data], capture_output=True, text=True, timeout=60)


def two_ranks():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for rank in range(2):
            body = make_trace(2, 3, name=f"rank{rank}")
            entry = tarfile.TarInfo(f"r{rank}.json")
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


class People(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        cls.secrets, cls.sessions = [PASSWORD], {}
        made = admin(cls.server.data, "add", "root", "--admin", password=PASSWORD)  # beside the running server
        assert made.returncode == 0, made.stderr
        wait_for(lambda: cls.ask(cls, "POST", "/session", {"name": "root", "password": PASSWORD}).status == 204)
        for name, role in (("reader", "read"), ("writer", "write"), ("owner", "admin"), ("outsider", None)):
            reply = cls.ask(cls, "PUT", "/users/" + name, {"password": PASSWORD}, key=True)
            assert reply.status == 201, reply.body
            if role is not None:
                reply = cls.ask(cls, "PUT", "/projects/vision/members/" + name, {"role": role}, key=True)
                assert reply.status == 204, reply.body
        cls.trace = cls.new_trace(cls, "vision")
        cls.other = cls.new_trace(cls, "audio")
        cls.run_id = cls.server.api("/traces/" + cls.new_trace(cls, "vision", two_ranks()))["run"]

    @classmethod
    def tearDownClass(cls):
        log, data = cls.server.log_text(), b"".join(open(path, "rb").read() for path in glob.glob(cls.server.data + "/catalog.db*"))
        assert cls.server.terminate() == 0
        data += b"".join(open(path, "rb").read() for path in glob.glob(cls.server.data + "/catalog.db*"))
        cls.server.close()
        for secret in cls.secrets:
            assert secret not in log and secret.encode() not in data, "a secret is in the log or in the catalog"

    def ask(self, method, path, body=None, key=False, **kwargs):
        return self.server.request(method, path if path.startswith("/s/") else "/api/v1" + path, body=None if body is None else json.dumps(body), key=key, **kwargs)

    def new_trace(self, project, body=None):
        reply = self.server.request("POST", "/api/v1/traces?name=a&project=" + project, body=body or make_trace(2, 4))
        assert reply.status == 201, reply.body
        assert self.server.wait_ready(reply.json()["id"])["state"] == "ready"
        return reply.json()["id"]

    def sign_in(self, name, password=PASSWORD, **kwargs):
        reply = self.ask("POST", "/session", {"name": name, "password": password}, **kwargs)
        self.assertEqual(reply.status, 204, reply.body)
        cookie = reply.headers["Set-Cookie"]
        self.secrets.append(re.match(r"lacuna_session=([a-z2-7]{52});", cookie).group(1))
        return cookie

    def as_user(self, name):
        """Headers of a session of theirs, the same one in all tests: a password costs a fifth of a second of work, and these sessions nobody ends."""
        if name not in self.sessions:
            self.sessions[name] = self.in_new_session(name)
        return self.sessions[name]

    def in_new_session(self, name):
        return {"Cookie": self.sign_in(name).split(";")[0], "Origin": f"http://127.0.0.1:{self.server.port}"}

    def token(self, scope, project=None, headers=None, **more):
        reply = self.ask("POST", "/tokens", {"name": "t", "scope": scope, "project": project, **more}, key=headers is None, headers=headers)
        self.assertEqual(reply.status, 201, reply.body)
        made = reply.json()
        self.secrets.append(made["token"])
        return {"Authorization": "Bearer " + made["token"]}, made["id"]

    # -- the table ------------------------------------------------------------------------------

    def principals(self):
        """Name, headers, kind, rights in the project, whether an administrator of the service."""
        rows = [("nobody", {}, "nobody", set(), False), ("key", {"Authorization": "Bearer " + self.server.key}, "key", RIGHTS["admin"], True),
                ("root", self.as_user("root"), "user", RIGHTS["admin"], True)]
        for name, role in (("reader", "read"), ("writer", "write"), ("owner", "admin"), ("outsider", "none")):
            rows.append((name, self.as_user(name), "user", READER if role == "read" else RIGHTS[role], False))
        for scope in ("read", "upload", "write", "admin"):
            rows.append(("token " + scope, self.token(scope, "vision")[0], "token", RIGHTS[scope], False))
        rows.append(("reader's token", self.token("write", headers=rows[3][1])[0], "token", READER, False))
        rows.append(("token elsewhere", self.token("admin", "audio")[0], "token", set(), False))
        return rows

    def target(self, method, pattern):
        """A path for the pattern whose object is in the project; a new one each time where it will be deleted."""
        def report():
            return self.ask("POST", "/reports", {"project": "vision", "title": "r", "markdown": "x"}, key=True).json()["id"]

        ids = {}
        if pattern.startswith("/api/v1/traces/{id}"):
            ids["id"] = self.new_trace("vision") if (method, pattern) == ("DELETE", "/api/v1/traces/{id}") else self.trace
        elif (method, pattern) == ("DELETE", "/api/v1/runs/{id}"):
            self.apart = getattr(self, "apart", None) or [self.new_trace("vision"), self.new_trace("vision")]
            ids["id"] = self.ask("POST", "/runs", {"name": "one by one", "traces": self.apart}, key=True).json()["id"]
        elif pattern.startswith("/api/v1/runs/"):
            ids["id"] = self.run_id
        elif pattern.startswith("/api/v1/reports/{id}"):
            ids["id"] = report() if (method, pattern) == ("DELETE", "/api/v1/reports/{id}") else self.report
        elif pattern.startswith("/api/v1/shares/"):
            ids["id"] = self.ask("POST", f"/reports/{report()}/share", {}, key=True).json()["id"]
        elif pattern.startswith("/api/v1/users/"):
            ids["name"] = "someone"
        elif pattern.startswith("/api/v1/findings/"):
            ids["id"] = "gpu-bound"
        ids = {"id": "a" * 26, "name": "kernels" if "tables" in pattern else "vision", "user": "outsider", "n": "1", "level": "0", "first": "0", "last": "0", "track": "0", "comment": "a" * 26, "bookmark": "a" * 26, "token": "a" * 32, **ids}
        path = re.sub(r"\{(\w+)\}", lambda m: ids[m.group(1)], pattern)
        query = {"/api/v1/compare": f"?a={self.trace}&b={self.trace}", "/api/v1/traces": "?project=vision" if method == "POST" else ""}.get(pattern, "")
        return path + query

    def expected(self, who, method, pattern, access):
        _, _, kind, rights, is_admin = who
        if access == "OPEN":
            return True
        if kind == "nobody":
            return 401
        if access == "SIGNED":
            if (method, pattern) in PEOPLE_ONLY and kind == "token":
                return 403
            return 403 if pattern.endswith("/session/password") and kind != "user" else True
        if access == "KEY":
            return True if is_admin else 403
        need = {"READ": {"read"}, "STATE": {"read", "upload"}, "COMMENT": {"comment"}, "UPLOAD": {"upload"}, "WRITE": {"write"}, "ADMIN": {"admin"}}[access]
        if need & rights:
            return True
        if access == "UPLOAD" and "{id}" in pattern:  # an upload that was begun: any project
            return True if who[0] == "token elsewhere" else 403
        return 404 if not rights or "read" in need else 403

    def status_line(self, method, path, headers):
        text = "".join(f"{k}: {v}\r\n" for k, v in {"Host": f"127.0.0.1:{self.server.port}", **headers}.items())
        with self.server.connect() as connection:
            connection.sendall(f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode())
            return int(connection.recv(64).split()[1])

    def test_every_role_on_every_route(self):
        self.maxDiff = None
        self.report = self.ask("POST", "/reports", {"project": "vision", "title": "r", "markdown": "x"}, key=True).json()["id"]
        people, wrong, cells = self.principals(), [], 0
        for method, pattern, access, run in ROUTES:
            for who in people:
                if method == "DELETE" and pattern == "/api/v1/session":
                    continue  # would end it: test_sessions
                headers, expect = dict(who[1]), self.expected(who, method, pattern, access)
                path = self.target(method, pattern)
                if run == "EVENTS":
                    status, said = self.status_line(method, path, headers), {}
                else:
                    if pattern == "/api/v1/uploads" and method == "POST":
                        headers.update({"Tus-Resumable": "1.0.0", "Upload-Length": "4", "Upload-Metadata": "project dmlzaW9u"})
                    reply = self.server.request(method, path, body=None if method in ("GET", "DELETE", "OPTIONS") or pattern.endswith("/retry") else b"{", headers=headers, key=False)
                    status = reply.status
                    said = reply.json().get("error", {}) if status >= 400 and reply.body[:1] == b"{" else {}
                cells += 1
                refused = said.get("code") in ("no_key", "forbidden") or bool(re.match(r"no such (trace|run|report|link|project)$", said.get("message", "")))
                if expect is True and refused or expect is not True and (status != expect or not (refused or run == "EVENTS")):
                    wrong.append((who[0], method, pattern, access, "expected", expect, "got", status, said))
        self.assertEqual(wrong, [])
        self.assertGreater(cells, 800)

    # -- lists and what bodies and queries reach ------------------------------------------------

    def test_lists_have_what_one_may_read(self):
        reader, outsider = self.as_user("reader"), self.as_user("outsider")
        self.assertEqual({row["project"] for row in self.ask("GET", "/traces", headers=reader).json()["traces"]}, {"vision"})
        self.assertEqual(self.ask("GET", "/traces", headers=outsider).json()["traces"], [])
        self.assertEqual(self.ask("GET", "/traces?project=audio", headers=reader).json()["traces"], [])
        self.assertEqual({row["project"] for row in self.ask("GET", "/runs", headers=reader).json()["runs"]}, {"vision"})
        self.assertEqual([row["name"] for row in self.ask("GET", "/projects", headers=reader).json()["projects"]], ["vision"])
        self.assertEqual(self.ask("GET", "/reports", headers=outsider).json()["reports"], [])

    def test_readers_comment_and_change_nothing_else(self):
        report = self.ask("POST", "/reports", {"project": "vision", "title": "r", "markdown": "x"}, key=True).json()["id"]
        reader, writer, path = self.as_user("reader"), self.as_user("writer"), f"/reports/{report}/comments"
        theirs = self.ask("POST", path, {"body": "mine"}, headers=reader)
        self.assertEqual((theirs.status, theirs.json()["author"]), (201, "reader"))
        other = self.ask("POST", path, {"body": "another's"}, headers=writer).json()["id"]
        mine = theirs.json()["id"]
        self.assertEqual(self.ask("PATCH", f"{path}/{mine}", {"body": "edited", "resolved": True}, headers=reader).json()["resolved_by"], "reader")
        for method, body in (("PATCH", {"body": "forged"}), ("PATCH", {"resolved": True}), ("DELETE", None)):
            self.assertEqual(self.ask(method, f"{path}/{other}", body, headers=reader).status, 404, (method, body))
        self.assertEqual(self.ask("PATCH", f"{path}/{mine}", {"resolved": False}, headers=writer).status, 200)
        self.assertEqual(self.ask("DELETE", f"{path}/{mine}", headers=reader).status, 204)
        self.assertEqual([row["body"] for row in self.ask("GET", path, headers=reader).json()["comments"]], ["another's"])
        for method, where, body in (("PATCH", f"/reports/{report}", {"title": "t"}), ("PATCH", f"/traces/{self.trace}", {"name": "n"}), ("POST", f"/reports/{report}/share", {})):
            self.assertEqual(self.ask(method, where, body, headers=reader).status, 403, where)
        token, _ = self.token("read", headers=reader)
        self.assertEqual(self.ask("POST", path, {"body": "by a token that reads"}, headers=token).status, 403)

    def test_bookmarks(self):
        reader, writer, path = self.as_user("reader"), self.as_user("writer"), f"/traces/{self.trace}/bookmarks"
        mine = self.ask("POST", path, {"start_ns": 2000, "dur_ns": 500, "note": "slow <b>here</b>"}, headers=reader)
        self.assertEqual(mine.status, 201, mine.body)
        mine = mine.json()
        self.assertEqual({key: mine[key] for key in ("start_ns", "dur_ns", "note", "author", "edited_at")},
                         {"start_ns": 2000, "dur_ns": 500, "note": "slow <b>here</b>", "author": "reader", "edited_at": None})
        other = self.ask("POST", path, {"start_ns": 1000}, headers=writer).json()
        self.assertEqual((other["dur_ns"], other["note"]), (0, ""))
        self.assertEqual(self.ask("GET", path, headers=reader).json(), {"bookmarks": [other, mine], "next": None})
        for method, body in (("PATCH", {"note": "forged"}), ("DELETE", None)):
            self.assertEqual(self.ask(method, f"{path}/{other['id']}", body, headers=reader).status, 404, method)
        self.assertEqual(self.ask("PATCH", f"{path}/{mine['id']}", {"note": "why?"}, headers=reader).json()["note"], "why?")
        changed = self.ask("PATCH", f"{path}/{mine['id']}", {"note": "by who may write"}, headers=writer).json()
        self.assertEqual((changed["note"], changed["author"]), ("by who may write", "reader"))
        self.assertIsNotNone(changed["edited_at"])
        elsewhere = f"/traces/{self.new_trace('vision')}/bookmarks/{mine['id']}"
        self.assertEqual(self.ask("DELETE", elsewhere, headers=writer).status, 404)
        for body in ({}, {"start_ns": -1}, {"start_ns": 1 << 53}, {"start_ns": 0.5}, {"start_ns": 0, "dur_ns": -1}, {"start_ns": 0, "note": 1}, {"start_ns": 0, "note": "n" * 4096}, []):
            self.assertEqual(self.ask("POST", path, body, headers=reader).status, 400, body)
        self.assertEqual(self.ask("POST", f"/traces/{'a' * 26}/bookmarks", {"start_ns": 0}, key=True).status, 404)
        token, _ = self.token("read", headers=reader)
        self.assertEqual(self.ask("POST", path, {"start_ns": 0}, headers=token).status, 403)
        self.assertEqual(self.ask("DELETE", f"{path}/{mine['id']}", headers=writer).status, 204)
        draft = self.ask("POST", "/reports", {"project": "vision", "from": [self.trace]}, headers=writer).json()["markdown"]
        self.assertIn("# Bookmarks", draft)
        self.assertIn(f"window trace={self.trace} from=0 to=", draft)

    def test_bookmarks_have_a_limit_and_go_with_their_trace(self):
        trace = self.new_trace("vision")
        path = f"/traces/{trace}/bookmarks"
        for start in range(500):
            self.assertEqual(self.ask("POST", path, {"start_ns": start}, key=True).status, 201)
        full = self.ask("POST", path, {"start_ns": 1}, key=True)
        self.assertEqual(full.status, 413, full.body)
        self.assertIn("500 bookmarks", full.json()["error"]["message"])
        self.assertEqual(self.ask("DELETE", f"/traces/{trace}", key=True).status, 204)
        self.assertEqual(self.ask("GET", path, key=True).status, 404)

    def test_no_way_around_to_a_foreign_trace(self):
        writer = self.as_user("writer")
        tries = [("GET", f"/traces/{self.other}", None), ("GET", f"/compare?a={self.trace}&b={self.other}", None),
                 ("POST", "/sql", {"query": "select count(*) from slice", "traces": [self.trace, self.other]}),
                 ("POST", "/reports", {"project": "vision", "title": "x", "from": [self.other]}),
                 ("POST", "/reports", {"project": "audio", "title": "x", "markdown": ""}),
                 ("PATCH", f"/traces/{self.trace}", {"project": "audio"})]
        for method, path, body in tries:
            reply = self.ask(method, path, body, headers=writer)
            self.assertIn(reply.status, (400, 404), (method, path, reply.body[:300]))
        part = f"```lacuna\ntable trace={self.other} of=kernels\n```"
        reply = self.ask("POST", "/reports", {"project": "vision", "title": "x", "markdown": part}, headers=writer)
        if reply.status == 201:
            shown = self.ask("GET", f"/reports/{reply.json()['id']}/document?format=html", headers=writer).body
            self.assertNotIn(b"sm80_xmma", shown)
        shown = self.ask("POST", "/reports/preview?format=html", {"project": "vision", "title": "x", "markdown": part}, headers=writer).body
        self.assertNotIn(b"sm80_xmma", shown)
        joined = self.server.request("POST", f"/api/v1/traces?project=vision&join={self.other}", body=make_trace(1, 2), headers=writer, key=False)
        self.assertIn(joined.status, (400, 404), joined.body)

    # -- sessions -------------------------------------------------------------------------------

    def test_sessions(self):
        cookie = self.sign_in("reader", headers={"Cookie": "lacuna_session=" + "a" * 52})
        for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, cookie)
        self.assertNotIn("a" * 52, cookie)  # none that somebody prepared
        self.assertNotEqual(cookie, self.sign_in("reader"))
        mine = {"Cookie": cookie.split(";")[0]}
        who = self.ask("GET", "/session", headers=mine).json()
        self.assertEqual((who["kind"], who["name"], who["is_admin"], who["projects"]), ("user", "reader", False, [{"name": "vision", "role": "read"}]))
        own = {**mine, "Origin": f"http://127.0.0.1:{self.server.port}"}
        # a page elsewhere has the cookie sent at best, never our Origin
        for foreign in ({**mine, "Origin": "http://evil.example"}, {**mine, "Origin": "null"}, mine):
            self.assertEqual(self.ask("DELETE", "/session", headers=foreign).status, 403, foreign)
        self.assertEqual(self.ask("DELETE", "/session", headers=own).status, 204)
        self.assertEqual(self.ask("GET", "/session", headers=mine).status, 401)  # replayed

    def test_a_new_password_ends_sessions(self):
        self.assertEqual(self.ask("PUT", "/users/changer", {"password": PASSWORD}, key=True).status, 201)
        first, second = self.in_new_session("changer"), self.in_new_session("changer")
        self.assertEqual(self.ask("POST", "/session/password", {"old": "wrong wrong", "new": "another one 12"}, headers=first).status, 403)
        self.assertEqual(self.ask("POST", "/session/password", {"old": PASSWORD, "new": "short"}, headers=first).status, 400)
        changed = self.ask("POST", "/session/password", {"old": PASSWORD, "new": "another one 12"}, headers=first)
        self.assertEqual(changed.status, 204)
        for ended in (first, second):
            self.assertEqual(self.ask("GET", "/session", headers=ended).status, 401)
        again = {"Cookie": changed.headers["Set-Cookie"].split(";")[0]}  # whoever changed it goes on, in a new session
        self.assertEqual(self.ask("GET", "/session", headers=again).json()["name"], "changer")
        self.assertEqual(self.ask("POST", "/session", {"name": "changer", "password": PASSWORD}).status, 403)
        self.assertEqual(self.ask("DELETE", "/users/changer", key=True).status, 204)
        self.assertEqual(self.ask("POST", "/session", {"name": "changer", "password": "another one 12"}).status, 403)

    def test_wrong_passwords_wait(self):
        for name in ("root2", "outsider"):  # one that is not there answers the same
            said = [self.ask("POST", "/session", {"name": name, "password": "wrong wrong"}) for _ in range(6)]
            self.assertEqual([reply.status for reply in said], [403] * 5 + [429], name)
            self.assertGreaterEqual(int(said[5].headers["Retry-After"]), 1)
            self.assertEqual(self.ask("POST", "/session", {"name": name, "password": PASSWORD}).status, 429)
        wait_for(lambda: self.ask("POST", "/session", {"name": "outsider", "password": PASSWORD}).status == 204)

    def test_signing_in_leads_nowhere_else(self):
        reply = self.ask("POST", "/session?next=https://evil.example&url=//evil.example", {"name": "reader", "password": PASSWORD})
        self.assertEqual((reply.status, reply.headers["Location"]), (204, None))

    # -- tokens ---------------------------------------------------------------------------------

    def test_tokens_expire_and_end(self):
        headers, ident = self.token("read", "vision")
        self.assertEqual(self.ask("GET", f"/traces/{self.trace}", headers=headers).status, 200)
        listed = self.ask("GET", "/tokens", key=True)
        row = next(row for row in listed.json()["tokens"] if row["id"] == ident)
        self.assertIsNotNone(row["last_used_at"])
        self.assertNotIn(headers["Authorization"].split()[1].encode(), listed.body)
        self.assertEqual(self.ask("GET", "/tokens", headers=self.as_user("reader")).json()["tokens"].count(row), 0)
        self.assertEqual(self.ask("DELETE", "/tokens/" + ident, headers=self.as_user("reader")).status, 404)
        self.assertEqual(self.ask("DELETE", "/tokens/" + ident, key=True).status, 204)
        self.assertEqual(self.ask("GET", f"/traces/{self.trace}", headers=headers).status, 401)
        for body in ({"name": "t", "scope": "all"}, {"scope": "read"}, {"name": "t", "scope": "read", "expires_at": "2020-01-01"}, {"name": "t", "scope": "read", "expires_at": "soon"}):
            self.assertEqual(self.ask("POST", "/tokens", body, key=True).status, 400, body)
        self.assertEqual(self.ask("POST", "/tokens", {"name": "t", "scope": "read", "project": "audio"}, headers=self.as_user("reader")).status, 404)

    def test_a_token_uploads_to_its_project(self):
        headers, _ = self.token("upload", "vision")
        reply = self.server.request("POST", "/api/v1/traces?name=n", body=make_trace(1, 2), headers=headers, key=False)
        self.assertEqual(reply.status, 201, reply.body)
        wait_for(lambda: self.ask("GET", "/traces/" + reply.json()["id"], headers=headers).json()["state"] == "ready")
        self.assertEqual(self.server.api("/traces/" + reply.json()["id"])["project"], "vision")
        elsewhere = self.server.request("POST", "/api/v1/traces?project=audio", body=make_trace(1, 2), headers=headers, key=False)
        self.assertEqual(elsewhere.status, 404)
        with tempfile.TemporaryDirectory() as folder:
            path, secret = os.path.join(folder, "pushed.json"), os.path.join(folder, "token")
            with open(path, "wb") as file:
                file.write(make_trace(2, 3))
            with open(secret, "w", encoding="ascii") as file:
                file.write(headers["Authorization"].split()[1] + "\n")
            os.chmod(secret, 0o600)
            pushed = subprocess.run([PROGRAM, "push", path, "--server", f"http://127.0.0.1:{self.server.port}", "--token-file", secret], capture_output=True, text=True, timeout=60)
            self.assertEqual(pushed.returncode, 0, pushed.stderr)
            row = wait_for(lambda: next((r for r in self.server.api("/traces")["traces"] if r["name"].startswith("pushed") and r["state"] == "ready"), None))
            self.assertEqual(row["project"], "vision")

    def test_an_upload_is_of_who_began_it(self):
        body, tus = make_trace(1, 2), {"Tus-Resumable": "1.0.0"}
        writer, owner = self.as_user("writer"), self.as_user("owner")
        self.assertEqual(self.ask("PUT", "/projects/vision/members/reader", {"role": "write"}, key=True).status, 204)
        self.addCleanup(self.ask, "PUT", "/projects/vision/members/reader", {"role": "read"}, key=True)
        peer = self.as_user("reader")  # may write to the project as well
        token, second = self.token("upload", headers=writer)[0], self.token("upload", headers=writer)[0]
        mine = {"Upload-Length": str(len(body)), "Upload-Metadata": "project dmlzaW9u", **tus}

        def begin(who):
            return self.server.request("POST", "/api/v1/uploads", headers={**mine, **who}, key=False).json()["id"]

        def append(upload, who, offset, piece):
            return self.server.request("PATCH", "/api/v1/uploads/" + upload, body=piece, key=False,
                                       headers={**tus, **who, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}).status

        def look(upload, who):
            return self.server.request("GET", "/api/v1/uploads/" + upload, headers={**tus, **who}, key=False)

        for began, others, friends in ((writer, (peer, token), (owner,)), (token, (peer, second), (writer, owner))):
            upload = begin(began)
            for other in others:
                self.assertEqual(append(upload, other, 0, body), 404)
                self.assertEqual(look(upload, other).status, 404)
                self.assertEqual(self.server.request("DELETE", "/api/v1/uploads/" + upload, headers={**tus, **other}, key=False).status, 404)
            self.assertEqual(append(upload, began, 0, body[:10]), 204)
            for friend in friends:
                self.assertEqual(look(upload, friend).json()["offset_bytes"], 10)
            self.assertEqual(append(upload, friends[0], 10, body[10:20]), 204)
            self.assertEqual(append(upload, began, 20, body[20:]), 204)
            self.assertIsNotNone(look(upload, began).json()["trace"])

    def test_the_audit_tells_who_did_what(self):
        _, ident = self.token("read", "vision")
        self.sign_in("owner")
        rows = self.ask("GET", "/audit?limit=1000", key=True).json()["audit"]
        said = {(row["actor"], row["action"]) for row in rows}
        for line in (("local", "make-token"), ("owner", "sign-in"), ("local", "set-member"), ("local", "add-user")):
            self.assertIn(line, said)
        self.assertTrue(any(ident in row["object"] for row in rows))
        page = self.ask("GET", "/audit?limit=2", key=True).json()
        after = self.ask("GET", "/audit?limit=2&after=" + page["next"], key=True).json()
        self.assertLess(after["audit"][0]["id"], page["audit"][1]["id"])


    def test_a_deleted_question_leaves_the_answers_of_others(self):
        one, other = self.as_user("writer"), self.as_user("owner")
        report = self.ask("POST", "/reports", {"project": "vision", "title": "Talk", "markdown": "x"}, headers=one).json()["id"]
        path = f"/reports/{report}/comments"
        first = self.ask("POST", path, {"body": "Why, @owner?"}, headers=one).json()["id"]
        answer = self.ask("POST", path, {"body": "Because.", "thread": first}, headers=other).json()["id"]
        self.assertEqual(self.ask("DELETE", f"{path}/{first}", headers=one).status, 204)
        rows = self.ask("GET", path, headers=one).json()["comments"]
        self.assertEqual([(row["id"], row["body"], row["author"], row["mentions"]) for row in rows], [(first, "", "", []), (answer, "Because.", "owner", [])])
        self.assertEqual(self.ask("PATCH", f"{path}/{first}", {"body": "again"}, headers=one).status, 404)  # it is nobody's now
        self.assertEqual(self.ask("DELETE", f"{path}/{answer}", headers=other).status, 204)
        self.assertEqual(self.ask("GET", path, headers=one).json()["comments"], [])

    def test_the_audit_tells_who_deleted_named_and_shared(self):
        trace, writer = self.new_trace("vision"), self.as_user("writer")
        report = self.ask("POST", "/reports", {"project": "vision", "title": "A title", "markdown": "x"}, headers=writer).json()["id"]
        comment = self.ask("POST", f"/reports/{report}/comments", {"body": "said"}, headers=writer).json()["id"]
        link = self.ask("POST", f"/traces/{trace}/share", {}, headers=writer).json()["id"]
        upload = self.server.request("POST", "/api/v1/uploads", headers={**writer, "Tus-Resumable": "1.0.0", "Upload-Length": "4", "Upload-Metadata": "project dmlzaW9u"}, key=False)
        self.assertEqual(upload.status, 201, upload.body)
        upload = upload.json()["id"]
        for method, path, body, status in (("PATCH", f"/traces/{trace}", {"name": "renamed", "notes": "a private thought", "pinned": True}, 200), ("DELETE", f"/shares/{link}", None, 204),
                                           ("DELETE", f"/reports/{report}/comments/{comment}", None, 204), ("DELETE", f"/reports/{report}", None, 204), ("DELETE", f"/traces/{trace}", None, 204)):
            self.assertEqual(self.ask(method, path, body, headers=writer).status, status, (method, path))
        self.assertEqual(self.server.request("DELETE", "/api/v1/uploads/" + upload, headers={**writer, "Tus-Resumable": "1.0.0"}, key=False).status, 204)
        self.assertEqual(self.ask("DELETE", f"/traces/{trace}", headers=writer).status, 404)  # nothing was deleted: no line
        rows = [row for row in self.ask("GET", "/audit?limit=1000", key=True).json()["audit"] if any(i in row["object"] for i in (trace, report, link, upload))]
        self.assertEqual({row["actor"] for row in rows}, {"writer"})
        said = {row["action"]: row["object"] for row in rows}
        self.assertEqual(len(said), len(rows), rows)
        self.assertEqual(said, {"share": f"trace {trace} by link {link}", "revoke": f"link {link} of {trace}", "label-trace": f'{trace}, pinned on, notes, name "renamed"', "delete-comment": f"{comment} of report {report}",
                                "delete-report": f"{report} of vision: A title", "delete-trace": f"{trace} of vision: renamed", "end-upload": upload})
        self.assertNotIn("private thought", json.dumps(rows))


class Start(unittest.TestCase):
    def serve(self, data, *flags):
        return subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "0.0.0.0:0", *flags], capture_output=True, text=True, timeout=60)

    def test_other_machines_need_people_and_tls(self):
        with tempfile.TemporaryDirectory() as data:
            refused = self.serve(data, "--allow-remote", "--behind-proxy")
            self.assertEqual(refused.returncode, 1, refused.stderr)
            self.assertIn("no users", refused.stderr)
            self.assertEqual(admin(data, "add", "root", "--admin", password=PASSWORD).returncode, 0)
            refused = self.serve(data, "--allow-remote")
            self.assertEqual(refused.returncode, 1, refused.stderr)
            self.assertIn("--behind-proxy", refused.stderr)
            server = Server("--behind-proxy", data=data)
            reply = server.request("POST", "/api/v1/session", body=json.dumps({"name": "root", "password": PASSWORD}), key=False)
            self.assertIn("; Secure", reply.headers["Set-Cookie"])
            self.assertEqual(server.terminate(), 0)
            server.close()

    def test_admin_user(self):
        with tempfile.TemporaryDirectory() as data:
            self.assertEqual(admin(data, "add", "ann", password=PASSWORD).returncode, 0)
            for words, password, status in ((("add", "ann"), PASSWORD, 1), (("add", "-x"), PASSWORD, 2), (("add", "a/b"), PASSWORD, 1), (("add", "bob"), "short", 1),
                                            (("password", "bob"), PASSWORD, 1), (("remove", "bob"), None, 1), (("add",), PASSWORD, 2)):
                self.assertEqual(admin(data, *words, password=password).returncode, status, words)
            self.assertRegex(admin(data, "list").stdout, r"^ann +user\n$")
            self.assertEqual(admin(data, "password", "ann", password=PASSWORD + "2").returncode, 0)
            self.assertEqual(admin(data, "remove", "ann").returncode, 0)
            self.assertEqual(admin(data, "list").stdout, "")


    def test_a_proxy_that_names_the_user(self):
        for flags in (("--trust-header", "X-User"), ("--behind-proxy", "--trust-from", "127.0.0.1"), ("--behind-proxy", "--trust-header", "X User"),
                      ("--behind-proxy", "--trust-header", "X-User", "--trust-from", "proxy")):
            with tempfile.TemporaryDirectory() as data:
                said = subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0", *flags], capture_output=True, text=True, timeout=60)
                self.assertEqual(said.returncode, 2, (flags, said.stderr))
        server = Server("--behind-proxy", "--trust-header", "X-Forwarded-User")
        self.assertEqual(admin(server.data, "add", "ann").returncode, 0)
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        ask = lambda *words, **fields: server.request(*words, key=False, headers={k.replace("_", "-"): v for k, v in fields.items()})
        self.assertTrue(wait_for(lambda: ask("GET", "/api/v1/session", X_Forwarded_User="ann").status == 200))
        self.assertEqual(ask("GET", "/api/v1/session", X_Forwarded_User="ann", X_Forwarded_For="198.51.100.7").json()["name"], "ann")
        for name in ("", "Ann", "ann,root", "nobody", "ann ann"):
            self.assertEqual(ask("GET", "/api/v1/session", X_Forwarded_User=name).status, 401, name)
        self.assertEqual(ask("GET", "/api/v1/session", X_Forwarded_User="ann", Authorization="Bearer " + "a" * 52).status, 401)
        with server.connect() as twice:  # the client's beside the proxy's
            twice.sendall(f"GET /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Forwarded-User: ann\r\nX-Forwarded-User: ann\r\n\r\n".encode())
            self.assertEqual(twice.recv(64).split()[1], b"401")
        # the name comes with whatever a browser asks: a change must come from our own page
        self.assertEqual(ask("DELETE", "/api/v1/session", X_Forwarded_User="ann").status, 403)
        self.assertEqual(ask("DELETE", "/api/v1/session", X_Forwarded_User="ann", Sec_Fetch_Site="cross-site", **own).status, 403)
        self.assertEqual(ask("DELETE", "/api/v1/session", X_Forwarded_User="ann", Sec_Fetch_Site="same-origin", **own).status, 204)
        self.assertEqual(server.terminate(), 0)
        # spoofed from elsewhere: only the proxy's address is believed, whatever X-Forwarded-For says
        server.flags = ("--behind-proxy", "--trust-header", "X-Forwarded-User", "--trust-from", "192.0.2.1")
        server.start()
        for forwarded in ({}, {"X_Forwarded_For": "192.0.2.1"}):
            self.assertEqual(ask("GET", "/api/v1/session", X_Forwarded_User="ann", **forwarded).status, 401)
        self.assertEqual(server.terminate(), 0)
        server.close()


if __name__ == "__main__":
    unittest.main()
