"""Reports that people write: text, versions, parts with evidence, comments, links; and what hostile text becomes."""
import json
import re
import threading
import unittest

from server_harness import CATALOG_IS_FILE, MARKUP, Server, make_trace

HOSTILE = """<script>alert(1)</script>

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,<script>alert(1)</script>) [d](vbscript:x) [e](https://pytorch.org/docs/stable/data.html)

![x](https://example.org/pixel.png) <img src=x onerror=alert(1)> <svg onload=alert(1)><a xlink:href="javascript:alert(1)">x</a></svg>

<iframe src="//example.org"></iframe>

| a | b |
| --- | --- |
| <b onclick=alert(1)>x</b> | `<script>` |

[ref]: javascript:alert(1)
[f][ref] <javascript:alert(1)> \u202ertl\u0007

```lacuna
window trace=<script> from=0 to=1
```
"""


def active(html):
    """What of the HTML could run or fetch something."""
    found = []
    for tag in re.findall(r"<[^>]*>", html):
        name = re.match(r"</?([a-zA-Z0-9!]+)", tag)
        if name is None or name.group(1).lower() in ("script", "iframe", "img", "object", "embed", "form", "base", "input"):
            found.append(tag)
        if re.search(r"""\son[a-z]+\s*=|javascript:|vbscript:|data:text|xlink|src=""", re.sub(r'content="[^"]*"', "", tag), re.I):
            found.append(tag)
    return found


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.trace = cls.server.upload(make_trace(name="sm80_xmma_gemm"), "before")
        cls.other = cls.server.upload(make_trace(steps=6, name="sm80_xmma_gemm"), "after")
        for one in (cls.trace, cls.other):
            assert cls.server.wait_ready(one)["state"] == "ready"

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0
        cls.server.close()

    def call(self, method, path, body=None, status=200, **kwargs):
        reply = self.server.request(method, path if path.startswith("/s/") else "/api/v1" + path,
                                    body=None if body is None else json.dumps(body), **kwargs)
        self.assertEqual(reply.status, status, reply.body[:400])
        return reply

    def make(self, markdown="", title="A report", **more):
        return self.call("POST", "/reports", {"project": "vision", "title": title, "markdown": markdown, **more}, 201).json()

    def document(self, report, form, redact=""):
        return self.call("GET", f"/reports/{report['id']}/document?format={form}&redact={redact}").body.decode()

    def parts(self):
        return "\n".join(["```lacuna", f"window trace={self.trace} from=0 to=40000000", f"flame trace={self.trace}", f"table trace={self.trace} of=kernels",
                          f"table trace={self.trace} of=idle", f"table trace={self.trace} of=settings", f"table trace={self.trace} of=plan",
                          f"compare a={self.trace} b={self.other}", f"series traces={self.trace},{self.other} of=step", "```"])

    def test_versions_and_conflict(self):
        report = self.make("one")
        self.assertEqual((report["version"], report["project"], report["author"], report["parts"]), (1, "vision", "local", []))
        path = "/reports/" + report["id"]
        second = self.call("PATCH", path, {"version": 1, "markdown": "two"}).json()
        self.assertEqual((second["version"], second["title"], second["markdown"]), (2, "A report", "two"))
        clash = self.call("PATCH", path, {"version": 1, "markdown": "mine", "title": "My title"}, 409).json()
        self.assertEqual(clash["error"]["code"], "version_conflict")
        self.assertEqual([clash[side]["markdown"] for side in ("base", "yours", "current")], ["one", "mine", "two"])
        self.assertEqual(self.call("GET", path).json()["markdown"], "two")
        self.assertEqual([row["version"] for row in self.call("GET", path + "/versions").json()["versions"]], [2, 1])
        self.assertEqual(self.call("GET", path + "/versions/1").json()["markdown"], "one")
        self.call("GET", path + "/versions/7", status=404)
        self.call("PATCH", path, {"markdown": "no version"}, 400)
        self.call("PATCH", path, {"version": 2, "title": ""}, 400)
        self.call("DELETE", path, status=204)
        for gone in (path, path + "/versions", path + "/comments", path + "/share", path + "/document"):
            self.call("GET", gone, status=404)

    def test_of_ten_at_once_one_wins_and_nothing_is_lost(self):
        report = self.make("base")
        results = []

        def save(number):
            reply = self.server.request("PATCH", "/api/v1/reports/" + report["id"], body=json.dumps({"version": 1, "markdown": f"text {number}"}))
            results.append((reply.status, reply.json(), number))

        threads = [threading.Thread(target=save, args=(n,)) for n in range(10)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(sorted(status for status, _, _ in results), [200] + [409] * 9)
        for status, body, number in results:
            kept = body["markdown"] if status == 200 else body["yours"]["markdown"]
            self.assertEqual(kept, f"text {number}")

    def test_list_is_paged_and_filtered(self):
        made = [self.make(title=f"Paged {n}")["id"] for n in range(5)]
        seen, after = [], ""
        while True:
            page = self.call("GET", f"/reports?q=paged&limit=2{'&after=' + after if after else ''}").json()
            seen += [row["id"] for row in page["reports"]]
            after = page["next"]
            if after is None:
                break
        self.assertEqual(sorted(seen), sorted(made))
        self.assertEqual(self.call("GET", "/reports?project=nobody").json()["reports"], [])
        self.call("GET", "/reports?after=x", status=400)
        self.call("GET", "/reports?limit=0", status=400)

    def test_bad_bodies(self):
        for body in ('', '[]', '{"title":3}', '{"markdown":"x"}', '{"title":"a\\nb","markdown":""}', '{"title":"x","from":["no"]}', '{"title":"x","markdown":"\\u0000"}'):
            reply = self.server.request("POST", "/api/v1/reports", body=body)
            self.assertIn(reply.status, (400, 404), body)
        reply = self.server.request("POST", "/api/v1/reports", body=json.dumps({"title": "x", "markdown": "y" * 200000}))
        self.assertIn(reply.status, (400, 413))
        self.assertEqual(self.server.get("/api/v1/reports", key=False).status, 401)

    def test_every_part_shows_its_evidence_and_outlives_its_trace(self):
        doomed = self.server.upload(make_trace(steps=5, name="sm80_xmma_gemm_doomed"), "doomed")
        self.assertEqual(self.server.wait_ready(doomed)["state"], "ready")
        report = self.make(self.parts().replace(self.trace, doomed))
        self.assertEqual([part["kept"] for part in report["parts"]], [True] * 8, report["parts"])
        self.assertTrue(all(part["size_bytes"] < 300000 for part in report["parts"]))
        before = self.document(report, "html")
        for word in ("doomed", "nchw-&gt;nhwc", "<svg", "class=\"step\"", "stream 7", "Kernel", "idle", "before", "Mean step", "<th>"):
            self.assertIn(word, before)
        self.assertEqual(active(before), [])
        self.call("DELETE", "/traces/" + doomed, status=204)
        self.assertEqual(self.document(report, "html"), before)
        for word in ("doomed", "nchw\\-\\>nhwc", "| Kernel | Kind |"):
            self.assertIn(word, self.document(report, "markdown"))
        # the next version, which shows the same parts, has it too
        again = self.call("PATCH", "/reports/" + report["id"], {"version": 1, "markdown": "More.\n\n" + report["markdown"]}).json()
        self.assertTrue(all(part["kept"] for part in again["parts"]))
        # and a part of a trace that is not there says so
        late = self.make(f"```lacuna\nflame trace={doomed}\n```")
        self.assertEqual([part["kept"] for part in late["parts"]], [False])
        self.assertIn("not here", self.document(late, "frame"))

    def test_a_draft_of_one_two_and_three_traces(self):
        one = self.call("POST", "/reports", {"from": [self.trace]}, 201).json()
        self.assertEqual(one["title"], "before")
        self.assertTrue(one["parts"] and all(part["kept"] for part in one["parts"]), one)
        self.assertIn("window", [part["kind"] for part in one["parts"]])
        two = self.call("POST", "/reports", {"from": [self.trace, self.other], "title": "Mine"}, 201).json()
        self.assertEqual((two["title"], two["parts"][0]["kind"]), ("Mine", "compare"))
        three = self.call("POST", "/reports", {"from": [self.trace, self.other, self.trace]}, 201).json()
        self.assertEqual([part["kind"] for part in three["parts"]], ["series", "series", "compare", "compare"])
        self.call("POST", "/reports", {"from": ["a" * 26]}, 404)

    def test_hostile_text_stays_text(self):
        report = self.make(HOSTILE, title=MARKUP)
        share = self.call("POST", f"/reports/{report['id']}/share", {"redact": []}, 201).json()
        for html in (self.document(report, "frame"), self.document(report, "html"), self.server.get(share["url"], key=False).body.decode(),
                     self.call("POST", "/reports/preview", {"title": MARKUP, "markdown": HOSTILE}).body.decode()):
            self.assertEqual(active(html), [])
            self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", html)
            self.assertIn('href="https://pytorch.org/docs/stable/data.html"', html)
            self.assertNotIn("\u202e", html)
            self.assertNotIn("\x07", html)
            self.assertEqual(re.findall(r'href="(?!https://pytorch|[^"]*report\.css)[^"]*"', html), [])
        for body in (MARKUP, "@kim " + MARKUP):
            comment = self.call("POST", f"/reports/{report['id']}/comments", {"body": body}, 201)
            self.assertNotIn(b"<img", comment.body)

    def test_markup_that_is_slow_or_deep_ends(self):
        for text in ("[" * 60000, "![[]()" * 4000, "> " * 15000, "*" * 100000, "| a " * 12000 + "|\n" + "| - " * 12000 + "|\n", "`" * 100000 + "x", "- " * 40000):
            reply = self.server.request("POST", "/api/v1/reports/preview", body=json.dumps({"title": "x", "markdown": text}))
            self.assertIn(reply.status, (200, 413), text[:10])
        self.assertEqual(self.server.get("/healthz").status, 200)

    def test_comments_threads_and_mentions(self):
        report = self.make("text", title="Talked about")
        path = f"/reports/{report['id']}/comments"
        first = self.call("POST", path, {"body": "Look, @kim and @ana.b: here. mail@example", "part": "flame"}, 201).json()
        self.assertEqual((first["thread"], first["mentions"], first["part"]), (first["id"], ["kim", "ana.b"], "flame"))
        answer = self.call("POST", path, {"body": "Yes", "thread": first["id"]}, 201).json()
        self.assertEqual((answer["thread"], answer["part"]), (first["id"], "flame"))
        self.assertEqual([row["id"] for row in self.call("GET", "/reports?mention=kim").json()["reports"]], [report["id"]])
        self.assertEqual(self.call("GET", "/reports?mention=ki").json()["reports"], [])
        self.assertEqual(self.call("GET", "/reports/" + report["id"]).json()["open_threads"], 1)
        done = self.call("PATCH", f"{path}/{first['id']}", {"resolved": True}).json()
        self.assertEqual((done["resolved"], done["resolved_by"]), (True, "local"))
        self.assertEqual(self.call("GET", "/reports?mention=kim").json()["reports"], [])
        self.assertFalse(self.call("PATCH", f"{path}/{first['id']}", {"resolved": False}).json()["resolved"])
        self.call("PATCH", f"{path}/{answer['id']}", {"resolved": True}, 404)
        edited = self.call("PATCH", f"{path}/{answer['id']}", {"body": "No"}).json()
        self.assertEqual((edited["body"], edited["edited_at"] is None), ("No", False))
        self.call("POST", path, {"body": "  "}, 400)
        self.call("POST", path, {"body": "x", "thread": "a" * 26}, 404)
        self.call("DELETE", f"{path}/{first['id']}", status=204)
        self.assertEqual(self.call("GET", path).json()["comments"], [])

    def test_state_of_findings(self):
        report = self.make("text")
        path = f"/reports/{report['id']}/findings"
        part = f"finding trace={self.trace} id=input-starvation"
        rows = self.call("PUT", path, {"part": part, "state": "fixed", "note": "run 14"}).json()["findings"]
        self.assertEqual([(row["part"], row["state"], row["note"]) for row in rows], [(part, "fixed", "run 14")])
        self.call("PUT", path, {"part": part, "state": "wont_fix"}, 400)
        self.call("PUT", path, {"part": part, "state": "later"}, 400)
        self.call("PUT", path, {"part": "flame trace=" + self.trace, "state": "open"}, 400)
        rows = self.call("PUT", path, {"part": part, "state": "wont_fix", "note": "next quarter"}).json()["findings"]
        self.assertEqual([(row["state"], row["note"]) for row in rows], [("wont_fix", "next quarter")])

    def test_links(self):
        text = "Called as `$ torchrun secret.py --lr 3` there. Ran on /home/kim/project/train.py by @kim at 10.1.2.3\n\n```\n$ python train.py --token=abc\n```\n\n" + self.parts()
        report = self.make(text)
        path = f"/reports/{report['id']}/share"
        told = {row["kind"]: row["count"] for row in json.loads(self.document(report, "contents"))["contains"]}
        self.assertTrue(told["hosts"] and told["users"] and told["paths"] and told["argv"], told)
        usual = self.call("POST", path, {}, 201).json()
        whole = self.call("POST", path, {"redact": [], "expires_at": "2099-01-01T00:00:00Z"}, 201).json()
        self.assertRegex(usual["url"], r"^/s/[a-z2-7]{32}$")
        page = self.server.get(usual["url"], key=False)
        self.assertEqual((page.status, page.headers["X-Robots-Tag"].split(",")[0], page.headers["Referrer-Policy"]), (200, "noindex", "no-referrer"))
        self.assertIn("sandbox", page.headers["Content-Security-Policy"])
        self.assertEqual(page.headers["Cache-Control"], "no-store")
        for secret in (b"/home/kim", b"kim", b"10.1.2.3", b"abc", b"--lr"):
            self.assertNotIn(secret, page.body)
        for shown in (b"train.py", b"torchrun", b" there. Ran", b"<svg"):
            self.assertIn(shown, page.body)
        self.assertIn(b"/home/kim/project/train.py", self.server.get(whole["url"], key=False).body)
        # it gives no other right
        token = usual["url"].rsplit("/", 1)[1]
        for other in ("/api/v1/reports", "/api/v1/reports/" + report["id"], "/api/v1/traces/" + self.trace):
            self.assertEqual(self.server.request("GET", other, headers={"Authorization": "Bearer " + token}, key=False).status, 401)
        self.assertEqual(self.server.request("POST", usual["url"], key=False).status, 405)
        rows = self.call("GET", path).json()["shares"]
        self.assertEqual(sorted((row["id"], row["used_count"]) for row in rows), sorted([(usual["id"], 1), (whole["id"], 1)]))
        self.call("DELETE", "/shares/" + usual["id"], status=204)
        self.assertEqual(self.server.get(usual["url"], key=False).status, 404)
        self.assertEqual(self.server.get(whole["url"], key=False).status, 200)
        self.assertEqual(self.server.get("/s/" + "a" * 32, key=False).status, 404)
        self.call("DELETE", "/shares/" + usual["id"], status=404)
        self.call("POST", path, {"expires_at": "2001-01-01T00:00:00Z"}, 400)
        self.call("POST", path, {"expires_at": "soon"}, 400)
        self.call("POST", path, {"redact": ["everything"]}, 400)
        self.call("DELETE", "/reports/" + report["id"], status=204)
        self.assertEqual(self.server.get(whole["url"], key=False).status, 404)
        # the token is told once: neither in the log nor in the catalog
        for path in (self.server.log_path, self.server.data + "/catalog.db")[:2 if CATALOG_IS_FILE else 1]:
            with open(path, "rb") as file:
                self.assertNotIn(whole["url"].rsplit("/", 1)[1].encode(), file.read())

    def test_links_of_a_trace_and_of_a_view(self):
        trace = self.server.upload(make_trace(steps=7, name="sm80_xmma_gemm_shared"), "shared")
        self.assertEqual(self.server.wait_ready(trace)["state"], "ready")
        path = f"/traces/{trace}/share"
        whole = self.call("POST", path, {}, 201).json()
        view = self.call("POST", path, {"view": f"window trace={trace} from=0 to=30000000"}, 201).json()
        for one in (whole, view):
            page = self.server.get(one["url"], key=False)
            self.assertEqual(page.status, 200)
            self.assertEqual(active(page.body.decode()), [])
            self.assertIn(b"<svg", page.body)
        self.call("POST", path, {"view": "window trace=nothing from=0 to=1"}, 400)
        self.call("POST", path, {"view": f"flame trace={self.other}"}, 400)
        self.assertEqual(len(self.call("GET", path).json()["shares"]), 2)
        self.assertEqual(len(self.call("GET", "/shares").json()["shares"]) >= 2, True)
        self.call("DELETE", "/traces/" + trace, status=204)
        self.assertEqual(self.server.get(whole["url"], key=False).status, 404)
        self.assertEqual(self.server.get(view["url"], key=False).status, 200)  # a view is kept as it was


if __name__ == "__main__":
    unittest.main()
