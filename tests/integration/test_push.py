#!/usr/bin/env python3
"""`lacuna-node push` and `run --server` against the real server: through connections that break, servers that restart,
hosts without libcurl; and archives of spools, which are one trace."""
import gzip
import hashlib
import http.server
import io
import json
import os
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import unittest

from server_harness import ROOT, Server, main, make_trace

LACUNA = os.environ.get("LACUNA", os.path.join(ROOT, "build/lacuna"))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
WORKLOAD = os.path.join(ROOT, "build/release/workload-cpu")
HAVE_CURL = shutil.which("curl") is not None


class Proxy:
    """Passes bytes on, slowly when asked, and cuts connections after a while."""

    def __init__(self, port):
        self.target = port
        self.cut_bytes = None  # () -> bytes until a connection is cut, None never
        self.pause_s = 0.0
        self.passed = 0
        self.cuts = 0
        self.connections = set()  # those that are not over
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.connections.add(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            client.close()
            self.connections.discard(client)
            return
        left = [self.cut_bytes() if self.cut_bytes else 1 << 60]
        threads = [threading.Thread(target=self.carry, args=(a, b, left, counted), daemon=True)
                   for a, b, counted in ((client, server, True), (server, client, False))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        server.close()
        self.connections.discard(client)

    def carry(self, source, sink, left, counted):
        try:
            while True:
                data = source.recv(32768)
                if not data:
                    break
                if self.pause_s and counted:
                    time.sleep(self.pause_s)
                if counted:
                    left[0] -= len(data)
                    if left[0] <= 0:
                        self.cuts += 1
                        break
                    self.passed += len(data)
                sink.sendall(data)
        except OSError:
            pass
        for connection in (source, sink):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.open = False
        self.listener.close()


def end_group(leader):
    """End a process that began a session, and all that it started."""
    if leader.poll() is None:
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()


def wait_until(what, timeout=120.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


def bulky_trace(size_bytes, seed=1):
    """A trace whose content hardly compresses."""
    noise = random.Random(seed)
    document = json.loads(make_trace(steps=3))
    document["noise"] = [noise.randbytes(500).hex() for _ in range(size_bytes // 1000)]
    return json.dumps(document).encode()


def bundle_of(path):
    """What a recording looks like on its way (collector/FORMAT.md)."""
    parts = [b"LACPART1"]
    for name in sorted(name for name in os.listdir(path) if name[0] != "."):
        with open(os.path.join(path, name), "rb") as file:
            content = file.read()
        for offset in range(0, len(content), 1 << 20):
            piece = content[offset : offset + (1 << 20)]
            data = piece.rstrip(b"\0")
            parts.append(struct.pack("<4sIIIQ", b"LPRT", len(name), len(piece), len(data), offset) + name.encode() + data)
    return b"".join(parts)


class Push(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--upload-max", "64M")
        cls.folder = tempfile.mkdtemp(prefix="lacuna-push-")
        cls.temporary = tempfile.mkdtemp(dir=cls.folder)
        cls.recording = os.path.join(cls.folder, "job.lacuna")
        subprocess.run([NODE, "run", "--quiet", "-o", cls.recording, "--", WORKLOAD, "--cpu", "--steps", "6", "--workers", "2"], check=True,
                       stdout=subprocess.DEVNULL, timeout=120, env=cls.environment())

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)
        cls.server.close()

    @classmethod
    def environment(cls, **more):
        return {**{k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}, "TMPDIR": cls.temporary, **more}

    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="case-", dir=self.folder)
        self.state = os.path.join(self.place, "state")  # not there yet: push makes it
        os.environ["XDG_STATE_HOME"] = self.state

    def copy_recording(self, name="job.lacuna"):
        return shutil.copytree(self.recording, os.path.join(self.place, name), ignore=shutil.ignore_patterns(".*"))

    def file(self, name, content):
        path = os.path.join(self.place, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def command(self, *arguments, port=None, token=True):
        token_file = os.path.join(self.server.data, "local.token")
        return [NODE, "push", *arguments, "--server", f"http://127.0.0.1:{port or self.server.port}", *(["--token-file", token_file] if token else [])]

    def push(self, *arguments, port=None, token=True, timeout=90, **variables):
        return subprocess.run(self.command(*arguments, port=port, token=token), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, env=self.environment(**variables))

    def pushed(self, *arguments, **kwargs):
        run = self.push(*arguments, **kwargs)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.server.wait_ready(run.stdout.strip().rsplit("/", 1)[1])

    @staticmethod
    def note_of(path):
        with open(path) as file:
            return dict(line.split(" ", 1) for line in file.read().splitlines())

    def note(self, path):
        return self.note_of(os.path.join(path, ".lacuna-push") if os.path.isdir(path) else self.states()[0])

    def states(self):
        """What is remembered of files that are on their way."""
        folder = os.path.join(self.state, "lacuna", "push")
        return [os.path.join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []

    def break_off(self, path, after_bytes):
        """A push that ends when so much of a file has passed. @return the proxy, still open"""
        proxy = Proxy(self.server.port)
        proxy.pause_s = 0.002
        client = subprocess.Popen(self.command(path, port=proxy.port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment())
        try:
            wait_until(lambda: proxy.passed >= after_bytes or client.poll() is not None, timeout=120)
            self.assertIsNone(client.poll())
        finally:
            client.kill()
            client.wait()
            proxy.pause_s = 0
        wait_until(lambda: not proxy.connections)  # what was on its way has passed
        return proxy

    # -- what arrives -------------------------------------------------------------------------------

    def test_a_recording_is_one_trace_with_its_clock(self):
        path = self.copy_recording()
        row = self.pushed(path + "/", "--project", "vision", "--run", "nightly")
        self.assertEqual((row["state"], row["name"], row["project"], row["format"]), ("ready", "job", "vision", "lacuna"), row)
        self.assertTrue(row["run"])
        self.assertGreater(row["slice_count"], 10)
        self.assertLessEqual(abs(row["clock"]["offset_ns"]), row["clock"]["error_ns"] + 1000000)
        self.assertGreater(row["clock"]["error_ns"], 0)
        again = self.push(path, "--project", "vision", "--run", "nightly")
        self.assertEqual(again.stdout.strip().rsplit("/", 1)[1], row["id"])

    def test_the_same_recording_from_elsewhere_is_not_stored_twice(self):
        first = self.pushed(self.copy_recording("same"))
        os.unlink(os.path.join(self.place, "same", ".lacuna-push"))
        self.assertEqual(self.pushed(os.path.join(self.place, "same"))["id"], first["id"])

    def test_without_libzstd_it_goes_as_it_is(self):
        path = self.copy_recording("plain")
        row = self.pushed(path, LACUNA_LIBZSTD="/nonexistent")
        bundle = bundle_of(path)
        self.assertEqual((row["state"], row["size_bytes"], row["sha256"]), ("ready", len(bundle), hashlib.sha256(bundle).hexdigest()))

    def test_what_arrives_says_what_the_folder_says(self):
        path = self.copy_recording("alike")
        spools = sorted(name for name in os.listdir(path) if name.endswith(".spool"))
        os.truncate(os.path.join(path, spools[1]), os.path.getsize(os.path.join(path, spools[1])) - 5000)  # as after a full disk
        row = self.pushed(path)
        self.assertEqual((row["state"], row["name"], row["format"]), ("ready", "alike", "lacuna"), row)
        here = subprocess.run([LACUNA, "analyze", "--json", path], stdout=subprocess.PIPE, check=True, timeout=60).stdout
        self.assertEqual(self.server.api(f"/traces/{row['id']}/analysis"), json.loads(here))

    def test_a_recording_with_other_files_arrives_with_them(self):
        path = self.copy_recording("beside")
        long_name = "worker-7." * 12 + "pt.trace.json"
        for name, content in (("kineto.json", make_trace()), (long_name, make_trace(steps=2)), ("notes.txt", b"hello")):
            with open(os.path.join(path, name), "wb") as file:
                file.write(content)
        row = self.pushed(path)
        self.assertEqual((row["state"], row["run"] is not None), ("ready", True), row)
        names = sorted(trace["name"] for trace in self.server.api("/traces?limit=500")["traces"] if trace["run"] == row["run"])
        self.assertEqual(len(names), 3, names)
        self.assertEqual(names[:2], ["beside", "kineto"])

    def test_files_of_other_programs(self):
        trace = make_trace()
        self.assertEqual(self.pushed(self.file("kineto.json", trace))["name"], "kineto")
        packed = gzip.compress(trace)
        row = self.pushed(self.file("packed.json.gz", packed), "--name", "given")
        self.assertEqual((row["name"], row["sha256"]), ("given", hashlib.sha256(packed).hexdigest()))
        self.assertIsNone(row["clock"])

    def test_several_paths(self):
        run = self.push(self.file("a.json", make_trace(steps=2)), self.file("b.json", make_trace(steps=5)), "/nonexistent/c")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(len(run.stdout.split()), 2)
        self.assertIn("/nonexistent/c: No such file", run.stderr)

    def test_names_of_any_kind(self):
        name = "it's a \"name\" \u00fc & <b>"
        row = self.pushed(shutil.copytree(self.recording, os.path.join(self.place, name), ignore=shutil.ignore_patterns(".*")))
        self.assertEqual(row["name"], name)

    def test_a_recording_that_is_nearly_all_zeros(self):
        """It compresses more than what a receiver takes for an attack."""
        path = self.copy_recording("zeros")
        spool = os.path.join(path, sorted(n for n in os.listdir(path) if n.endswith(".spool"))[0])
        os.truncate(spool, 60 << 20)
        row = self.pushed(path)
        self.assertEqual(row["state"], "ready", row)
        self.assertLess(row["size_bytes"], 2 << 20)

    def test_an_archive_of_spools_is_one_trace_beside_other_members(self):
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w:gz") as archive:
            for name in sorted(os.listdir(self.recording)):
                if name[0] != ".":
                    archive.add(os.path.join(self.recording, name), "deep/folder/" + name)
            info = tarfile.TarInfo("notes.txt")
            info.size = 5
            archive.addfile(info, io.BytesIO(b"hello"))
        row = self.server.wait_ready(self.server.upload(text.getvalue(), "archive"))
        self.assertEqual((row["state"], row["format"], row["name"]), ("ready", "lacuna", "archive"), row)
        self.assertEqual([line["code"] for line in row["import_report"]["lines"] if line["code"] == "member_skipped"], ["member_skipped"])
        whole = self.pushed(self.copy_recording("whole"))
        self.assertEqual(row["slice_count"], whole["slice_count"])
        cut = self.server.wait_ready(self.server.upload(gzip.compress(gzip.decompress(text.getvalue())[:200000]), "cut"))
        self.assertEqual(cut["state"], "ready")

    # -- what breaks --------------------------------------------------------------------------------

    def test_through_a_proxy_that_cuts(self):
        content = bulky_trace(5 << 20)
        path = self.file("cut.json", content)
        proxy = Proxy(self.server.port)
        noise = random.Random(7)
        proxy.cut_bytes = lambda: noise.randrange(100000, 1200000)
        try:
            row = self.pushed(path, port=proxy.port)
        finally:
            proxy.close()
        self.assertEqual(row["state"], "ready", row)
        self.assertGreater(proxy.cuts, 2)

    def test_a_server_that_is_killed_and_comes_back(self):
        server = Server()
        proxy = Proxy(server.port)
        proxy.pause_s = 0.02
        path = self.file("back.json", bulky_trace(6 << 20, seed=2))
        command = [NODE, "push", path, "--server", f"http://127.0.0.1:{proxy.port}", "--token-file", os.path.join(server.data, "local.token")]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment())
        try:
            for _ in range(2):
                begin = proxy.passed
                while proxy.passed < begin + (1 << 20) and client.poll() is None:
                    time.sleep(0.01)
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                time.sleep(0.4)
                server.start()
                proxy.target = server.port
            out, err = client.communicate(timeout=90)
            self.assertEqual(client.returncode, 0, err)
            self.assertEqual(server.wait_ready(out.strip().rsplit("/", 1)[1])["state"], "ready")
            self.assertEqual(len(server.api("/traces")["traces"]), 1)
        finally:
            client.kill()
            proxy.close()
            server.close()

    def test_a_later_push_goes_on(self):
        path = self.file("later.json", bulky_trace(40 << 20, seed=3))
        before = set(os.listdir(self.place))
        proxy = self.break_off(path, 18 << 20)
        try:
            self.check_goes_on(path, proxy)
        finally:
            proxy.close()
        self.assertEqual(set(os.listdir(self.place)) - before, {"state"})  # nothing beside the file
        self.assertEqual(self.states(), [])  # and nothing of what is done

    def check_goes_on(self, path, proxy):
        (state,) = self.states()
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o600)
        for folder in (os.path.dirname(state), os.path.dirname(os.path.dirname(state))):
            self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        offset = self.offset_at_rest(self.note(path)["upload"])
        self.assertEqual(offset, 16 << 20)
        before = proxy.passed
        row = self.pushed(path, port=proxy.port)
        self.assertEqual(row["state"], "ready")
        self.assertLess(proxy.passed - before, row["size_bytes"] - offset + 100000)

    def offset_at_rest(self, upload):
        """What the server has of an upload, once a request that broke off is over there as well."""
        return wait_until(lambda: self.server.get("/api/v1/uploads/" + upload).json().get("offset_bytes"))

    def test_a_note_that_an_older_program_left_beside_the_file_is_used_once(self):
        path = self.file("older.json", bulky_trace(40 << 20, seed=4))
        proxy = self.break_off(path, 18 << 20)
        try:
            (state,) = self.states()
            os.rename(state, path + ".lacuna-push")
            offset = self.offset_at_rest(self.note_of(path + ".lacuna-push")["upload"])
            before = proxy.passed
            row = self.pushed(path, port=proxy.port)
            self.assertLess(proxy.passed - before, row["size_bytes"] - offset + 100000)
        finally:
            proxy.close()
        self.assertFalse(os.path.exists(path + ".lacuna-push"))
        self.assertEqual(self.states(), [])
        other = self.file("older.json.lacuna-push", b"somebody else's file\n")
        self.pushed(path)
        self.assertTrue(os.path.exists(other))

    def test_without_a_place_for_it_nothing_is_remembered(self):
        """A push that broke off begins anew then, and nothing else is different."""
        path = self.file("nowhere.json", make_trace(steps=9))
        shared = os.path.join(self.place, "shared")
        os.makedirs(os.path.join(shared, "lacuna", "push"))
        os.chmod(os.path.join(shared, "lacuna", "push"), 0o777)  # where anybody may write nothing is believed
        before = set(os.listdir(self.place))
        for state in ("/proc/nowhere", "relative", "/dev/null", shared):
            self.assertEqual(self.pushed(path, XDG_STATE_HOME=state, HOME="/proc/nowhere")["state"], "ready")
        self.assertEqual(set(os.listdir(self.place)), before)
        self.assertEqual(os.listdir(os.path.join(shared, "lacuna", "push")), [])

    def test_what_nobody_went_on_with_is_forgotten(self):
        folder = os.path.join(self.state, "lacuna", "push")
        os.makedirs(folder, mode=0o700)
        for name, age_days in (("0" * 64, 31), ("1" * 64, 29)):
            with open(os.path.join(folder, name), "w"):
                pass
            os.utime(os.path.join(folder, name), (time.time() - age_days * 86400,) * 2)
        self.pushed(self.file("new.json", make_trace(steps=4)))
        self.assertEqual(os.listdir(folder), ["1" * 64])

    def test_a_note_of_other_bytes_does_not_count(self):
        content = bulky_trace(12 << 20, seed=5)
        path = self.file("changed.json", content)
        proxy = self.break_off(path, 4 << 20)
        self.addCleanup(proxy.close)
        (state,) = self.states()
        with open(state, "rb") as file:
            note = file.read()
        other = bulky_trace(12 << 20, seed=6)  # the same file, of the same size
        self.file("changed.json", other + b" " * (len(content) - len(other)) if len(other) < len(content) else other[:len(content)])
        damaged = (b"", b"lacuna push 1\nserver x\n", b"\0" * 500, b"lacuna push 1\n" + b"x" * 9000)
        for damage in (note, *damaged):
            with open(state, "wb") as file:
                file.write(damage)
            self.assertEqual(self.pushed(path, port=proxy.port)["state"], "ready")
            self.assertEqual(self.states(), [])

    def test_a_trace_that_was_deleted_is_sent_again(self):
        path = self.file("deleted.json", make_trace(steps=6))
        first = self.pushed(path)
        self.assertEqual(self.server.request("DELETE", "/api/v1/traces/" + first["id"]).status, 204)
        second = self.pushed(path)
        self.assertEqual(second["state"], "ready")
        self.assertNotEqual(second["id"], first["id"])

    # -- what is wrong ------------------------------------------------------------------------------

    def test_wrong_token(self):
        run = self.push(self.file("t.json", make_trace()), token=False, LACUNA_TOKEN="wrong")
        self.assertEqual(run.returncode, 1)
        self.assertIn("(401): sign in, or show a key or a token", run.stderr)
        self.assertNotIn("Bearer wrong", run.stderr)

    def test_token_from_the_environment(self):
        self.assertEqual(self.pushed(self.file("e.json", make_trace(steps=3)), token=False, LACUNA_TOKEN=self.server.key)["state"], "ready")

    def test_wrong_address(self):
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        begin = time.monotonic()
        run = self.push(self.file("u.json", make_trace()), port=port)
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot be reached", run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1)
        self.assertLess(time.monotonic() - begin, 20)

    def test_some_other_server(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"hello \x1b[31m")

            def log_message(self, *arguments):
                pass
        other = http.server.HTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            run = self.push(self.file("o.json", make_trace()), port=other.server_port)
            self.assertEqual(run.returncode, 1)
            self.assertIn("is there a Lacuna server at this address?", run.stderr)
            self.assertNotIn("\x1b", run.stderr)
        finally:
            other.shutdown()
            other.server_close()

    @unittest.skipUnless(shutil.which("openssl"), "no openssl: a certificate that nobody vouches for is not tried")
    def test_a_certificate_that_nobody_vouches_for(self):
        key, certificate = os.path.join(self.place, "key.pem"), os.path.join(self.place, "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=127.0.0.1"],
                       check=True, stderr=subprocess.DEVNULL, timeout=60)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        seen = []

        class Other(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append(self.headers)

        other = http.server.HTTPServer(("127.0.0.1", 0), Other)
        other.socket = context.wrap_socket(other.socket, server_side=True)
        other.handle_error = lambda *arguments: None
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            run = subprocess.run([NODE, "push", self.file("s.json", make_trace()), "--server", f"https://127.0.0.1:{other.server_port}"],
                                 stderr=subprocess.PIPE, text=True, timeout=60, env=self.environment(LACUNA_TOKEN="secret"))
            self.assertEqual(run.returncode, 1)
            self.assertIn("certificate", run.stderr)
            self.assertEqual(seen, [])
        finally:
            other.shutdown()
            other.server_close()

    def test_too_large(self):
        server = Server("--upload-max", "1K")
        try:
            run = subprocess.run([NODE, "push", self.file("l.json", bulky_trace(1 << 20)), "--server", f"http://127.0.0.1:{server.port}", "--token-file",
                                  os.path.join(server.data, "local.token")], stderr=subprocess.PIPE, text=True, timeout=60, env=self.environment())
            self.assertEqual(run.returncode, 1)
            self.assertIn("(413)", run.stderr)
        finally:
            server.close()

    def test_usage(self):
        path = self.file("x.json", make_trace())
        for arguments in ([], [path], ["--server", "http://127.0.0.1:1"], [path, "--server", "127.0.0.1:7070", "--token-file", path],
                          [path, "--server", "http://h/#key=abc", "--token-file", path], [path, "--server", "http://h", "--token-file", "/nonexistent"],
                          [path, "--unknown", "x"], [path, "--server"], [path, path, "--name", "x", "--server", "http://h", "--token-file", path]):
            run = subprocess.run([NODE, "push", *arguments], stderr=subprocess.PIPE, text=True, env=self.environment())
            self.assertEqual(run.returncode, 2, (arguments, run.stderr))
            self.assertEqual(len(run.stderr.splitlines()), 1)
        run = subprocess.run([NODE, "push", "--help"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 0)
        self.assertIn("--token-file", run.stdout)

    @unittest.skipUnless(HAVE_CURL, "no curl")
    def test_without_libcurl_the_line_that_it_prints_works(self):
        for name, path in (("no curl's", self.copy_recording("no curl's")), ("alone.json", self.file("alone.json", make_trace(steps=3)))):
            run = self.push(path, "--project", "a b", LACUNA_LIBCURL="/nonexistent")
            self.assertEqual(run.returncode, 1)
            self.assertIn("libcurl", run.stderr)
            line = [line for line in run.stderr.splitlines() if line.startswith("lacuna: to send it with curl: ")]
            self.assertEqual(len(line), 1, run.stderr)
            sent = subprocess.run(["sh", "-c", line[0].split(": ", 2)[2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            row = self.server.wait_ready(json.loads(sent.stdout)["id"])
            self.assertEqual((row["state"], row["name"], row["project"]), ("ready", name, "a b"))

    # -- full disks ---------------------------------------------------------------------------------

    def mount(self, size):
        point = os.path.join(self.place, "disk")
        os.mkdir(point)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", point], stderr=subprocess.DEVNULL)
        if made.returncode != 0:
            self.skipTest("no right to mount: full disks are not tried")
        self.addCleanup(subprocess.run, ["umount", "-l", point])
        return point

    def test_a_server_without_space_says_so(self):
        server = Server(data=os.path.join(self.mount("64m"), "data"), log=os.path.join(self.place, "log"))
        try:
            run = subprocess.run([NODE, "push", self.file("f.json", bulky_trace(1 << 20)), "--server", f"http://127.0.0.1:{server.port}", "--token-file",
                                  os.path.join(server.data, "local.token")], stderr=subprocess.PIPE, text=True, timeout=120, env=self.environment())
            self.assertEqual(run.returncode, 1)
            self.assertIn("(507): the disk of the data folder is nearly full", run.stderr)
        finally:
            server.close()

    def test_a_client_without_space_still_sends(self):
        point = self.mount("16m")
        path = shutil.copytree(self.recording, os.path.join(point, "job"), ignore=shutil.ignore_patterns(".*"))
        with open(os.path.join(point, "full"), "wb") as file:
            try:
                while True:
                    file.write(b"x" * 65536)
                    file.flush()
            except OSError:
                pass
        self.assertEqual(self.pushed(path)["state"], "ready")

    # -- run --server -------------------------------------------------------------------------------

    def run_job(self, *command, flags=(), **variables):
        out = os.path.join(self.place, "run.lacuna")
        return subprocess.run([NODE, "run", "-o", out, *flags, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              env=self.environment(**variables))

    def flags(self, port=None):
        return ("--server", f"http://127.0.0.1:{port or self.server.port}", "--token-file", os.path.join(self.server.data, "local.token"), "--project", "runs")

    def test_run_sends_when_the_job_has_ended(self):
        run = self.run_job("sh", "-c", f"{WORKLOAD} --cpu --steps 4 --workers 1 >&2; exit 7", flags=self.flags())
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assertEqual(run.stdout, "")
        last = run.stderr.splitlines()[-1]
        self.assertTrue(last.startswith(f"lacuna: http://127.0.0.1:{self.server.port}/t/"), run.stderr)
        row = self.server.wait_ready(last.rsplit("/", 1)[1])
        self.assertEqual((row["state"], row["name"], row["project"]), ("ready", "run", "runs"))
        self.assertLessEqual(abs(row["clock"]["offset_ns"]), row["clock"]["error_ns"] + 1000000)

    def test_the_job_never_sees_the_token(self):
        run = self.run_job("sh", "-c", f'{WORKLOAD} --cpu --steps 2 --workers 1 >/dev/null; echo "token=$LACUNA_TOKEN"',
                           LACUNA_SERVER=f"http://127.0.0.1:{self.server.port}", LACUNA_TOKEN=self.server.key)
        self.assertEqual(run.stdout, "token=\n")
        self.assertIn("/t/", run.stderr.splitlines()[-1])

    def test_no_server_keeps_the_recording(self):
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        run = self.run_job("sh", "-c", f"{WORKLOAD} --cpu --steps 2 --workers 1 >/dev/null; exit 3", flags=self.flags(port))
        self.assertEqual(run.returncode, 3)
        self.assertIn("the recording stays in", run.stderr)
        # the line that it prints, once there is a server
        said = next(line.partition("to continue: lacuna ")[2] for line in run.stderr.splitlines() if "to continue: " in line)
        self.assertIn("--project runs", said)
        again = subprocess.run([NODE, *said.replace(f":{port}", f":{self.server.port}").split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, timeout=60, env=self.environment())
        self.assertEqual(again.returncode, 0, again.stderr)
        row = self.server.wait_ready(again.stdout.strip().rsplit("/", 1)[1])
        self.assertEqual((row["state"], row["project"]), ("ready", "runs"))

    def tasks(self, *flags, out, job):
        """Three tasks of a Slurm job, as srun starts them."""
        started = [subprocess.Popen([NODE, "run", "--quiet", "-o", out, *flags, "--", WORKLOAD, "--cpu", "--steps", "6", "--workers", "1"],
                                    stdout=subprocess.DEVNULL, env=self.environment(SLURM_JOB_ID=job, SLURM_STEP_ID="0", SLURM_PROCID=str(task), SLURM_NTASKS="3"))
                   for task in range(3)]
        self.assertEqual([task.wait(timeout=60) for task in started], [0, 0, 0])

    def ranks_of_run(self, name):
        """Ranks of the traces of the newest run of that name, once they are there."""
        run = wait_until(lambda: [run for run in self.server.api("/runs")["runs"] if run["name"] == name and run["ready_count"] == 3])[0]
        traces = self.server.api(f"/traces?run={run['id']}")["traces"]
        return sorted(trace["rank"] for trace in traces)

    def test_tasks_that_send_by_themselves_are_one_run(self):
        self.tasks(*self.flags(), out=os.path.join(self.place, "job"), job="4711")
        self.assertEqual(self.ranks_of_run("slurm-4711.0"), [0, 1, 2])

    def test_a_folder_of_tasks_is_sent_as_one_run(self):
        out = os.path.join(self.place, "train.lacuna")
        self.tasks(out=out, job="4712")
        run = self.push(out)
        self.assertEqual((run.returncode, len(run.stdout.split())), (0, 3), run.stderr)
        self.assertEqual(self.ranks_of_run("train"), [0, 1, 2])

    def test_no_libcurl_keeps_the_recording(self):
        run = self.run_job(WORKLOAD, "--cpu", "--steps", "2", "--workers", "1", flags=self.flags(), LACUNA_LIBCURL="/nonexistent")
        self.assertEqual(run.returncode, 0)
        self.assertIn("libcurl", run.stderr)
        self.assertIn("| curl -X POST -T - ", run.stderr)

    # -- while the job runs -------------------------------------------------------------------------

    NOISY = """
        import os, sys, time, lacuna
        end = time.time() + 40
        count = 0
        while time.time() < end and os.path.exists(sys.argv[1]):
            for _ in range(20000):
                with lacuna.annotate("range"):
                    pass
            count += 20000
            open(sys.argv[1] + ".begun", "w").close()
            time.sleep(0.05)
        print(count)
    """

    def start_noisy(self, flags):
        """A job that records some MB a second until it is told to end. It has begun: the launcher alone sends bytes, too."""
        script = self.file("noisy.py", textwrap.dedent(self.NOISY).encode())
        self.out = os.path.join(self.place, "noisy.lacuna")
        node = subprocess.Popen([NODE, "run", "--all", "-o", self.out, *flags, "--", sys.executable, script, self.file("go", b"")], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment())
        wait_until(lambda: os.path.exists(os.path.join(self.place, "go.begun")))
        return node

    def end_noisy(self, node):
        os.unlink(os.path.join(self.place, "go"))
        return node.communicate(timeout=60)

    def grown_bytes(self, server=None):
        """What has come of uploads that are not complete."""
        folder = os.path.join((server or self.server).data, "uploads")
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".part"))

    def range_count(self, server, trace):
        """Slices of the trace; beside those of the script there is a collection or two."""
        return server.api(f"/traces/{trace}/analysis")["trace"]["slice_count"]

    def check_noisy(self, server, run, out, err):
        self.assertEqual(run, 0, err)
        trace = err.splitlines()[-1].rsplit("/", 1)[1]
        row = server.wait_ready(trace)
        self.assertEqual((row["state"], row["name"]), ("ready", "noisy"), err)
        self.assertIn(self.range_count(server, trace) - int(out), range(10))
        self.assertEqual(server.api(f"/traces/{trace}/analysis")["trace"]["dropped_count"], 0)
        return trace

    def test_a_recording_is_sent_while_the_job_runs(self):
        node = self.start_noisy(self.flags())
        wait_until(lambda: self.grown_bytes() > 0)
        self.assertIsNone(node.poll())  # bytes came, and the job goes on
        out, err = self.end_noisy(node)
        trace = self.check_noisy(self.server, node.returncode, out, err)
        again = subprocess.run([NODE, "push", self.out, *self.flags()], stdout=subprocess.PIPE, text=True, timeout=60, env=self.environment())
        self.assertEqual(again.stdout.strip().rsplit("/", 1)[1], trace)  # it is known to be there
        self.assertEqual(self.grown_bytes(), 0)

    def test_a_server_that_is_killed_in_the_middle_gets_all_of_it(self):
        log = os.path.join(self.place, "log")
        server = Server(data=os.path.join(self.place, "data"), log=log)
        try:
            port = server.port
            flags = ("--server", f"http://127.0.0.1:{port}", "--token-file", os.path.join(server.data, "local.token"))
            node = self.start_noisy(flags)
            wait_until(lambda: self.grown_bytes(server) > 0)
            server.kill()
            time.sleep(1.0)
            before = self.grown_bytes(server)
            server.start("127.0.0.1:%d" % port)
            wait_until(lambda: self.grown_bytes(server) > before)
            self.assertIsNone(node.poll())
            out, err = self.end_noisy(node)
            self.check_noisy(server, node.returncode, out, err)
        finally:
            server.close()

    def test_a_server_that_lost_everything_gets_all_of_it_again(self):
        log = os.path.join(self.place, "log")
        server = Server(data=os.path.join(self.place, "data"), log=log)
        try:
            node = self.start_noisy(("--server", f"http://127.0.0.1:{server.port}", "--token-file", os.path.join(server.data, "local.token")))
            wait_until(lambda: self.grown_bytes(server) > 0)
            server.kill()
            shutil.rmtree(os.path.join(server.data, "uploads"))
            server.start(f"127.0.0.1:{server.port}")
            out, err = self.end_noisy(node)
            self.check_noisy(server, node.returncode, out, err)
        finally:
            server.close()

    def test_connections_that_break_while_the_job_runs(self):
        proxy = Proxy(self.server.port)
        proxy.cut_bytes = lambda: 300_000
        try:
            node = self.start_noisy(self.flags(proxy.port))
            wait_until(lambda: proxy.cuts >= 2)
            out, err = self.end_noisy(node)
            self.check_noisy(self.server, node.returncode, out, err)
        finally:
            proxy.close()

    def unfinished_piece(self):
        """A connection that has sent half of a piece for the upload that is under way."""
        folder = os.path.join(self.server.data, "uploads")
        part = next(name for name in os.listdir(folder) if name.endswith(".part"))
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        connection.sendall((f"PATCH /api/v1/uploads/{part.removesuffix('.part')} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nTus-Resumable: 1.0.0\r\n"
                            f"Authorization: Bearer {self.server.key}\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 100000\r\n"
                            f"Upload-Offset: {os.path.getsize(os.path.join(folder, part))}\r\n\r\nhalf of it").encode())
        return connection

    def test_a_launcher_that_is_killed_leaves_what_a_later_push_completes(self):
        node = self.start_noisy(self.flags())
        wait_until(lambda: self.grown_bytes() > 0)
        node.kill()
        self.end_noisy(node)
        with self.unfinished_piece() as connection:  # the server takes a while to see that nobody sends any more
            threading.Timer(0.6, lambda: connection.shutdown(socket.SHUT_RDWR)).start()
            pushed = subprocess.run([NODE, "push", self.out, *self.flags()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                                    env=self.environment())
        self.assertEqual(pushed.returncode, 0, pushed.stderr)
        self.assertEqual(self.server.wait_ready(pushed.stdout.strip().rsplit("/", 1)[1])["state"], "ready")
        self.assertEqual(self.grown_bytes(), 0)  # the half of it that had come was taken back

    def test_what_came_of_a_job_that_vanished_becomes_a_trace(self):
        server = Server("--upload-lifetime", "8")  # longer than a slow job takes from part to part
        try:  # a slow job: its segments are never full, and yet come
            flags = ("--server", f"http://127.0.0.1:{server.port}", "--token-file", os.path.join(server.data, "local.token"))
            node = subprocess.Popen([NODE, "run", "--quiet", "-o", os.path.join(self.place, "slow.lacuna"), *flags, "--", WORKLOAD, "--cpu", "--batch", "1",
                                     "--steps", "3000", "--workers", "1", "--fetch-ms", "40"], stdout=subprocess.DEVNULL, env=self.environment(),
                                    start_new_session=True)
            self.addCleanup(end_group, node)
            first = wait_until(lambda: self.grown_bytes(server))  # may be what was there before the first step
            wait_until(lambda: self.grown_bytes(server) > first)
            end_group(node)
            rows = wait_until(lambda: server.api("/traces")["traces"])
            row = server.wait_ready(rows[0]["id"])
            self.assertEqual((row["state"], row["name"]), ("ready", "slow"))
            self.assertGreater(self.range_count(server, row["id"]), 100)
        finally:
            server.close()

    def test_a_server_that_knows_no_growing_uploads_gets_the_whole_at_the_end(self):
        seen = []

        class Old(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_error(404)

            def do_POST(self):
                seen.append((self.headers.get("Upload-Defer-Length"), self.headers.get("Upload-Length")))
                self.send_error(400 if self.headers.get("Upload-Defer-Length") else 413)

            def log_message(self, *arguments):
                pass

        other = http.server.HTTPServer(("127.0.0.1", 0), Old)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            run = self.run_job(WORKLOAD, "--cpu", "--steps", "2", "--workers", "1", flags=self.flags(other.server_port))
            self.assertIn("the recording stays in", run.stderr)
            self.assertEqual(seen[0], ("1", None))
            self.assertEqual((seen[1][0], int(seen[1][1]) > 0), (None, True))
        finally:
            other.shutdown()
            other.server_close()

    def test_a_missing_token_is_told_before_the_job(self):
        run = self.run_job("touch", os.path.join(self.place, "ran"), flags=("--server", "http://127.0.0.1:1"))
        self.assertEqual(run.returncode, 2)
        self.assertFalse(os.path.exists(os.path.join(self.place, "ran")))


if __name__ == "__main__":
    main()
