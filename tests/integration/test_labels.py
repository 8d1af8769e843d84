#!/usr/bin/env python3
"""What people say of a trace: its name, project, notes and tags; and the points of the charts over its steps."""
import json
import unittest

from server_harness import Server, main, make_trace


class Labels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.trace = cls.server.upload(make_trace(steps=8), name="as-uploaded")
        cls.server.wait_ready(cls.trace)

    def patch(self, body, trace=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.server.request("PATCH", "/api/v1/traces/" + (trace or self.trace), data)

    def test_labels_are_told_stay_and_can_be_taken_back(self):
        told = self.patch({"name": "baseline", "notes": "two\nlines", "tags": ["a100", "bf16"], "project": "vision"})
        self.assertEqual(told.status, 200, told.body)
        self.server.terminate()
        self.server.start()
        for row in (self.server.api("/traces/" + self.trace), self.server.api("/traces?q=BASE")["traces"][0], self.server.api("/traces?project=vision")["traces"][0]):
            self.assertEqual((row["name"], row["file_name"], row["notes"], row["tags"], row["project"]), ("baseline", "as-uploaded", "two\nlines", ["a100", "bf16"], "vision"))
        self.assertEqual(self.server.api("/traces?q=uploaded")["traces"], [])
        row = self.patch({"name": "", "tags": []}).json()
        self.assertEqual((row["name"], row["file_name"], row["notes"], row["tags"]), ("as-uploaded", None, "two\nlines", []))

    def test_what_is_no_label_is_refused_and_changes_nothing(self):
        self.assertEqual(self.patch({"notes": "kept"}).status, 200)
        bad = ({"name": "x" * 256}, {"name": 7}, {"name": "a\nb"}, {"notes": "x" * 8192}, {"tags": "a"}, {"tags": [""]}, {"tags": ["a\nb"]}, {"tags": ["x" * 600] * 2},
               {"project": "a\x00b"}, b"[]", b"", b'{"name":')
        for body in bad:
            self.assertEqual(self.patch(body).status, 400, body)
        self.assertEqual(self.patch(b"{" + b" " * 20000 + b"}").status, 413)
        self.assertEqual(self.patch({"name": "x"}, "a" * 26).status, 404)
        self.assertEqual(self.patch({"name": "x"}, "nonsense").status, 404)
        self.assertEqual(self.server.request("PATCH", "/api/v1/traces/" + self.trace, b"{}", key=False).status, 401)
        self.assertEqual(self.server.api("/traces/" + self.trace)["notes"], "kept")

    def test_labels_go_with_their_trace(self):
        body = make_trace(steps=5, name="another")
        first = self.server.upload(body)
        self.server.wait_ready(first)
        self.assertEqual(self.patch({"name": "mine"}, first).status, 200)
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + first).status, 204)
        second = self.server.upload(body)
        self.server.wait_ready(second)
        self.assertNotEqual(self.server.api("/traces/" + second)["name"], "mine")

    def test_points_add_up_to_the_steps_and_gaps_that_they_stand_for(self):
        tracks = self.server.api(f"/traces/{self.trace}/tracks")
        durations = tracks["steps"]["dur_ns"]
        gaps = self.server.api(f"/traces/{self.trace}/gaps?min_ns=10000&device={tracks['devices'][0]['id']}&limit=10000")["gaps"]
        self.assertGreater(len(durations), 3)
        for points in (1, 3, 400):
            reply = self.server.api(f"/traces/{self.trace}/steps?points={points}&waiting=yes")
            per = reply["per"]
            groups = [durations[i:i + per] for i in range(0, len(durations), per)]
            self.assertLessEqual(len(groups), points)
            self.assertEqual(reply["max_ns"], [max(group) for group in groups])
            self.assertEqual(reply["mean_ns"], [sum(group) // len(group) for group in groups])
            for cause in {cause for gap in gaps for cause in gap["cause_ns"]}:
                whole = sum(gap["cause_ns"].get(cause, 0) for gap in gaps)
                told = sum(reply["waiting"]["bins"].get(cause, []))
                self.assertLessEqual(abs(whole - told), points + len(gaps), (cause, points))
        self.assertIsNone(self.server.api(f"/traces/{self.trace}/steps")["waiting"])
        self.assertEqual(self.server.get(f"/api/v1/traces/{self.trace}/steps?points=0").status, 400)


if __name__ == "__main__":
    main()
