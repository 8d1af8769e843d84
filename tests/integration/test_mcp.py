#!/usr/bin/env python3
"""`lacuna mcp`: both generations of the protocol, every tool, pages, and what a client may not read."""
import base64
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import png

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402

PROGRAM = os.path.join(ROOT, "build/release/lacuna")
META = "io.modelcontextprotocol/"


class Client:
    def __init__(self, *paths):
        self.process = subprocess.Popen([PROGRAM, "mcp", *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.last = 0

    def send(self, line):
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.flush()

    def reply(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.last += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}) + "\n")
        answer = self.reply()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.last, answer
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def text(self, tool, **arguments):
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def close(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        status = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return status, rest


class Mcp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.traces = os.path.join(cls.folder, "traces")
        os.mkdir(cls.traces)
        cls.series = kept.demo()[:2]
        for path in cls.series:
            shutil.copy(path, cls.traces)
        cls.first, cls.second = (f"traces/{os.path.basename(path)}" for path in cls.series)
        cls.small = "traces/small.json"
        with kept.loop(kept.LOOP_SEEDS[2]) as ((path,), _):
            shutil.copy(path, os.path.join(cls.folder, cls.small))
        with open(os.path.join(cls.folder, "secret.json"), "w", encoding="utf-8") as secret:
            secret.write('{"traceEvents": []}')
        os.symlink(os.path.join(cls.folder, "secret.json"), os.path.join(cls.traces, "link.json"))
        os.symlink(cls.folder, os.path.join(cls.traces, "up"))
        with open(os.path.join(cls.traces, ".hidden.json"), "w", encoding="utf-8") as hidden:
            hidden.write("{}")
        with open(os.path.join(cls.traces, "broken.json"), "w", encoding="utf-8") as broken:
            broken.write('{"traceEvents": [{"ph": "X", "ts": 1')
        os.mkdir(os.path.join(cls.traces, "runs"))
        os.mkfifo(os.path.join(cls.traces, "runs", "pipe"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.client = Client(self.traces)

    def tearDown(self):
        if not self.client.process.stdin.closed:
            self.assertEqual(self.client.close(), (0, b""))

    def test_a_handshake_agrees_on_a_version(self):
        for asked, given in [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")]:
            result = self.client.ask("initialize", protocolVersion=asked, capabilities={},
                                     clientInfo={"name": "test", "version": "1"})["result"]
            self.assertEqual(result["protocolVersion"], given)
            self.assertEqual(result["capabilities"], {"tools": {}})
            self.assertEqual(result["serverInfo"]["name"], "lacuna")
            self.assertNotIn("resultType", result)
        self.client.send('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.assertEqual(self.client.ask("ping")["result"], {})

    def test_requests_that_say_their_version_need_no_handshake(self):
        meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
        found = self.client.ask("server/discover", _meta=meta)["result"]
        self.assertEqual(found["supportedVersions"][0], "2026-07-28")
        self.assertEqual((found["resultType"], found["capabilities"]), ("complete", {"tools": {}}))
        tools = self.client.ask("tools/list", _meta=meta)["result"]
        self.assertEqual((tools["resultType"], tools["cacheScope"]), ("complete", "public"))
        self.assertGreater(tools["ttlMs"], 0)
        called = self.client.ask("tools/call", _meta=meta, name="explain", arguments={"id": "sync-stall"})["result"]
        self.assertEqual(called["_meta"][META + "serverInfo"]["name"], "lacuna")
        refused = self.client.ask("tools/list", _meta={META + "protocolVersion": "2031-01-01"})["error"]
        self.assertEqual((refused["code"], refused["data"]["requested"]), (-32022, "2031-01-01"))
        self.assertIn("2026-07-28", refused["data"]["supported"])

    def test_every_tool_has_a_schema_and_refuses_what_is_not_in_it(self):
        tools = self.client.ask("tools/list")["result"]["tools"]
        self.assertGreaterEqual({tool["name"] for tool in tools},
                                {"list_traces", "analyze", "findings", "explain", "what_if", "compare", "timeline", "picture", "sql",
                                 "sql_tables", "sql_examples"})
        for tool in tools:
            schema = tool["inputSchema"]
            self.assertEqual((schema["type"], schema["additionalProperties"]), ("object", False))
            self.assertTrue(set(schema["required"]) <= set(schema["properties"]))
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            wrong = self.client.ask("tools/call", name=tool["name"], arguments={"nonsense": "x"})
            self.assertEqual(wrong["error"]["code"], -32602)
            for name in schema["required"]:
                wrong = self.client.ask("tools/call", name=tool["name"], arguments={name: 7})
                self.assertEqual(wrong["error"]["code"], -32602)
                wrong = self.client.ask("tools/call", name=tool["name"], arguments={})
                self.assertIn("missing", wrong["error"]["message"])

    def test_the_answers_are_those_of_the_commands(self):
        listed = json.loads(self.client.text("list_traces"))["traces"]
        self.assertIn(self.first, [row["trace"] for row in listed])
        path = self.series[0]
        printed = kept.ask("analyze", path)
        self.assertEqual(self.client.text("analyze", trace=self.first), printed.stdout)
        whole = json.loads(kept.ask("analyze", path, "--json", "--what-if", "workers=5").stdout)
        found = json.loads(self.client.text("findings", trace=self.first))
        self.assertEqual([row["id"] for row in found["findings"]], [row["id"] for row in whole["findings"]])
        self.assertEqual(found["verdict"], whole["verdict"])
        self.assertNotIn("evidence", found["findings"][0])
        one = json.loads(self.client.text("findings", trace=self.first, id=whole["findings"][0]["id"]))
        self.assertEqual(one["findings"], whole["findings"][:1])
        asked = json.loads(self.client.text("what_if", trace=self.first, changes="workers=5"))
        self.assertEqual(asked["what_if"], whole["what_if"])
        self.assertEqual(asked["now"]["mean_ns"], whole["steps"]["mean_ns"])
        self.assertIn("more than noise", self.client.text("compare", before=self.first, after=self.second))

    def test_pictures_are_svg(self):
        for arguments, word in (({}, "why idle"), ({"from_ms": "100", "to_ms": "200.5"}, "101 ms of the trace, from 100 ms on"), ({"view": "flame"}, "GPU time")):
            text = self.client.text("picture", trace=self.small, **arguments)
            self.assertTrue(text.startswith("<svg "), text[:80])
            self.assertIn(word, text)
        for arguments in ({"from_ms": "soon"}, {"view": "pie"}, {"from_ms": "5", "to_ms": "5"}, {"view": "--output=/tmp/x"}):
            self.assertTrue(self.client.call("picture", trace=self.small, **arguments)["isError"], arguments)

    def test_pictures_are_images_where_asked(self):
        for arguments in ({}, {"view": "flame"}):
            content = self.client.call("picture", trace=self.small, form="png", **arguments)["content"]
            self.assertEqual([(item["type"], item["mimeType"]) for item in content], [("image", "image/png")])
            width, height, pixels = png.read(base64.b64decode(content[0]["data"], validate=True))
            self.assertEqual((width, len(pixels)), (1688, height))
        self.assertTrue(self.client.call("picture", trace=self.small, form="html")["isError"])

    def test_sql_and_the_timeline_answer_from_the_trace(self):
        answer = json.loads(self.client.text("sql", trace=self.first, query="SELECT count(*) AS n FROM kernels"))
        whole = kept.ask("analyze", "--json", self.series[0])
        self.assertEqual(answer["rows"], [[json.loads(whole.stdout)["kernels"]["count"]]])
        self.assertIn("start_ns", self.client.text("sql_tables", table="slices"))
        self.assertIn("SELECT", self.client.text("sql_examples"))
        rows = list(csv.DictReader(self.client.text("timeline", trace=self.first, from_ms="1000", to_ms="1500.5").splitlines()))
        self.assertIn("kernel", {row["kind"] for row in rows})
        for row in rows:
            start, length = float(row["start_ms"]), float(row["dur_ms"])
            self.assertTrue(start < 1500.5 and start + length > 1000 and length >= 1, row)
        for query in ("DELETE FROM slices", "ATTACH '/etc/passwd' AS x", "SELECT load_extension('x')", "nonsense"):
            self.assertTrue(self.client.call("sql", trace=self.small, query=query)["isError"], query)
        for window in (("5", "5"), ("9", "1"), ("-1", "1"), ("0", "1e99"), ("0; DROP", "1"), ("nan", "1"), ("", "1")):
            self.assertTrue(self.client.call("timeline", trace=self.small, from_ms=window[0], to_ms=window[1])["isError"])

    def test_a_long_answer_comes_in_pages_that_join_to_the_whole(self):
        whole = subprocess.run([PROGRAM, "explain", "input-starvation"], capture_output=True, text=True, check=True)
        text = self.client.text("explain", id="input-starvation", offset=3000)
        self.assertEqual(text, whole.stdout.encode()[3000:].decode())
        for n in range(600):
            with open(os.path.join(self.traces, "runs", f"{n:04}-\u00e9\u00e9.json"), "w", encoding="utf-8") as file:
                file.write("{}")
        pages, offset = [], 0
        while offset is not None:
            content = self.client.call("list_traces", offset=offset)["content"]
            self.assertLessEqual(len(content[0]["text"].encode()), 24 * 1024)
            pages.append(content[0]["text"])
            place = content[1]["text"] if len(content) > 1 else "]"
            offset = int(place.split()[-1].rstrip("]")) if "call again" in place else None
        self.assertGreater(len(pages), 2)
        self.assertGreaterEqual(len(json.loads("".join(pages))["traces"]), 600)
        shutil.rmtree(os.path.join(self.traces, "runs"))
        os.mkdir(os.path.join(self.traces, "runs"))

    def test_nothing_else_can_be_read(self):
        secret = os.path.join(self.folder, "secret.json")
        for name in [secret, "../secret.json", "traces/../secret.json", "traces/link.json", "traces/up/secret.json",
                     "traces/.hidden.json", "traces/runs/pipe", "traces//etc/passwd", "--help", "", "/proc/self/environ"]:
            for tool, argument in [("analyze", "trace"), ("findings", "trace"), ("compare", "before")]:
                arguments = {argument: name} | ({"after": name} if tool == "compare" else {})
                result = self.client.call(tool, **arguments)
                self.assertTrue(result["isError"], name)
                self.assertIn("list_traces", result["content"][0]["text"])
        for bad in ["--help", "-x", "../sync-stall"]:
            self.assertTrue(self.client.call("explain", id=bad)["isError"])
        for changes in ["--data=/etc", "workers=4 --json", "x=1"]:
            self.assertTrue(self.client.call("what_if", trace=self.first, changes=changes)["isError"])

    def test_a_broken_trace_is_a_sentence_and_the_conversation_goes_on(self):
        result = self.client.call("analyze", trace="traces/broken.json")
        self.assertTrue(result["isError"])
        self.assertIn("broken.json", result["content"][0]["text"])
        self.assertIn("The GPU waits", self.client.text("analyze", trace=self.first))

    def test_hostile_lines_get_an_error_or_nothing(self):
        for line, code in [("nonsense\n", -32700), ("[]\n", -32700), ('{"a":\n', -32700), ("{}\n", -32600),
                           ('{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600),
                           ('{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600),
                           ('{"jsonrpc":"2.0","id":1,"method":"x"}\n', -32601),
                           ('{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n', -32602),
                           ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}\n', -32602),
                           ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"explain",'
                            '"arguments":[]}}\n', -32602),
                           ('{"a":' * 40 + "1" + "}" * 40 + "\n", -32700), (b"\xff\xfe\n", -32700),
                           ("x" * (3 << 20) + "\n", -32700)]:
            self.client.send(line)
            self.assertEqual(self.client.reply()["error"]["code"], code, line[:80])
        for offset in ["-1", "1.5", '"7"', "99999999999999999999", "null"]:
            self.client.send('{"jsonrpc":"2.0","id":"a\\"b","method":"tools/call","params":{"name":"explain",'
                             f'"arguments":{{"offset":{offset}}}}}}}\n')
            reply = self.client.reply()
            self.assertEqual((reply["id"], reply["error"]["code"]), ('a"b', -32602))
        self.client.send('\n\r\n{"jsonrpc":"2.0","method":"nothing"}\n{"jsonrpc":"2.0","id":9,"result":{}}\n')
        self.assertEqual(self.client.ask("ping")["result"], {})
        beyond = self.client.call("explain", id="sync-stall", offset=10**9)
        self.assertEqual(beyond["content"][0]["text"], "")

    def test_what_was_asked_before_the_input_ended_is_answered(self):
        asked = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call",
                             "params": {"name": "explain", "arguments": {}}}) for n in range(3)]
        done = subprocess.run([PROGRAM, "mcp", self.traces], input="\n".join(asked) + "\n", capture_output=True,
                              text=True, check=True)
        self.assertEqual([json.loads(line)["id"] for line in done.stdout.splitlines()], [0, 1, 2])

    def test_a_client_that_leaves_ends_the_command(self):
        client = Client(self.traces)
        for _ in range(200):
            client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                                    "params": {"name": "analyze", "arguments": {"trace": self.small}}}) + "\n")
        client.reply()
        client.process.stdout.close()
        self.assertIn(client.process.wait(120), (0, 1))
        client.process.stdin.close()
        client.process.stderr.close()

    def test_wrong_use_is_said(self):
        for arguments, status in [([], 2), ([os.path.join(self.folder, "none")], 1), (["--data", "x"], 2)]:
            done = subprocess.run([PROGRAM, "mcp", *arguments], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (status, ""), arguments)
            self.assertEqual(done.stderr.count("\n"), 1)


class Skill(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def skill(self, *arguments):
        return subprocess.run([PROGRAM, "skill", *arguments], capture_output=True, text=True, check=False, cwd=self.folder)

    def test_it_names_commands_that_exist(self):
        text = self.skill().stdout
        self.assertRegex(text, r"\A---\nname: lacuna\ndescription: [^\n]{1,1024}\n")
        listed = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
        commands = set(re.findall(r"^ *lacuna ([a-z]+)", text, re.M))
        self.assertGreaterEqual(len(commands), 4)
        for command in commands:
            self.assertRegex(listed, rf"(?m)^  {command} ")
            usage = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout
            for line in re.findall(rf"lacuna {command} ([^\n`#]*)", text):
                for flag in re.findall(r"--[a-z-]+", line.split(" -- ")[0]):
                    self.assertIn(flag, usage, command)
        keys = re.search(r"`--what-if` takes `([^`]+)`", text).group(1)
        self.assertIn(keys.split()[0], subprocess.run([PROGRAM, "analyze", "--help"], capture_output=True, text=True,
                                                      check=True).stdout)

    def test_it_is_installed_and_renewed_but_replaces_nothing_else(self):
        path = os.path.join(self.folder, ".agents/skills/lacuna/SKILL.md")
        for _ in range(2):
            done = self.skill("install")
            self.assertEqual((done.returncode, done.stdout), (0, ".agents/skills/lacuna/SKILL.md\n"))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), self.skill().stdout)
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        done = self.skill("install")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertEqual(os.listdir(os.path.dirname(path)), ["SKILL.md"])
        self.assertEqual(self.skill("install", "there").returncode, 0)
        self.assertEqual(self.skill("install", "a", "b").returncode, 2)
        self.assertEqual(self.skill("install", ".agents/skills/lacuna/SKILL.md").returncode, 1)


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        sys.exit("build first: make")
    unittest.main()
