"""TLS of the server's own: requests, uploads, event streams and `lacuna push` through it, a new certificate while connections are open, and
clients that speak something else."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, make_trace, wait_for

NODE = os.path.join(ROOT, "build/release/lacuna-node")
PASSWORD = "correct horse battery"


def make_certificate(folder, name):
    """A self-signed one for 127.0.0.1, valid for a day."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key + ".new", "-out", cert + ".new",
                    "-days", "1", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    os.rename(key + ".new", key)
    os.rename(cert + ".new", cert)
    return cert, key


@unittest.skipUnless(shutil.which("openssl"), "no openssl: no certificate to serve with")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lacuna-tls-")
        cls.cert, cls.key = make_certificate(cls.folder, "first")
        cls.server = Server("--tls-cert", cls.cert, "--tls-key", cls.key, "--header-timeout", "1500", "--log-level", "debug")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.terminate() == 0
        cls.server.close()
        shutil.rmtree(cls.folder)

    def trusting(self):
        return ssl.create_default_context(cafile=self.cert)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=60, context=self.trusting())

    def ask(self, connection, method, path, body=None, **headers):
        connection.request(method, "/api/v1" + path, body=body, headers={"Authorization": "Bearer " + self.server.key, **headers})
        reply = connection.getresponse()
        return reply, reply.read()

    def subject(self):
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as plain, self.trusting().wrap_socket(plain, server_hostname="127.0.0.1") as tls:
                return dict(pair[0] for pair in tls.getpeercert()["subject"])["commonName"]
        except ssl.SSLCertVerificationError:
            return "another"  # than the one in the file

    def test_requests_and_uploads(self):
        connection = self.connect()
        for _ in range(3):  # one connection
            reply, body = self.ask(connection, "GET", "/session")
            self.assertEqual((reply.status, json.loads(body)["kind"]), (200, "key"))
        self.assertIn(connection.sock.version(), ("TLSv1.2", "TLSv1.3"))
        sent = make_trace(4, 40, filler=6 << 20)
        reply, body = self.ask(connection, "POST", "/traces?name=big", body=sent)
        self.assertEqual(reply.status, 201, body)
        trace = json.loads(body)["id"]
        wait_for(lambda: json.loads(self.ask(connection, "GET", "/traces/" + trace)[1])["state"] == "ready")
        page = connection
        page.request("GET", "/app.js")
        reply = page.getresponse()
        self.assertEqual(reply.status, 200)
        self.assertEqual(len(reply.read()), int(reply.headers["Content-Length"]))

    def test_cookies_are_secure_and_the_key_signs_in(self):
        connection = self.connect()
        reply, _ = self.ask(connection, "POST", "/session", body=json.dumps({"key": self.server.key}), Origin=f"https://127.0.0.1:{self.server.port}")
        self.assertEqual(reply.status, 204)
        self.assertIn("; Secure", reply.headers["Set-Cookie"])
        reply, _ = self.ask(connection, "POST", "/session", body=json.dumps({"key": self.server.key}), Origin="https://evil.example")
        self.assertEqual(reply.status, 403)

    def test_without_a_certificate_a_reload_ends_nothing(self):
        server = Server("--log-level", "warn", preexec=os.setsid)  # as a service has it: without a terminal
        self.addCleanup(server.close)
        stream = server.http_connection(60)
        stream.request("GET", "/api/v1/events", headers={"Authorization": "Bearer " + server.key})
        self.assertEqual(stream.getresponse().status, 200)
        for _ in range(2):
            server.process.send_signal(signal.SIGHUP)
            self.assertEqual(server.get("/healthz").status, 200)
        stream.close()
        self.assertEqual(server.terminate(), 0)

    def test_event_stream_and_a_new_certificate_under_it(self):
        stream = self.connect()
        stream.request("GET", "/api/v1/events", headers={"Authorization": "Bearer " + self.server.key})
        events = stream.getresponse()
        kept = self.connect()
        self.assertEqual(self.ask(kept, "GET", "/session")[0].status, 200)
        before = kept.sock
        make_certificate(self.folder, "second")
        self.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.subject() == "second")
        with open(self.key, "w") as file:
            file.write("not a key\n")
        self.server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the certificate stays as it was" in self.server.log_text())
        self.assertEqual(self.subject(), "second")
        self.assertEqual(self.ask(kept, "GET", "/session")[0].status, 200)
        self.assertIs(kept.sock, before)
        made, body = self.ask(kept, "POST", "/traces?name=heard", body=make_trace(2, 3))
        self.assertEqual(made.status, 201)
        heard = b""
        while json.loads(body)["id"].encode() not in heard:  # the harness's limit ends it
            line = events.readline()
            self.assertNotEqual(line, b"", "the stream ended")
            heard += line
        stream.close()

    def test_push(self):
        path = os.path.join(self.folder, "pushed.json")
        with open(path, "wb") as file:
            file.write(make_trace(3, 20))
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}, "LACUNA_TOKEN": self.server.key, "XDG_STATE_HOME": self.folder}
        words = [NODE, "push", path, "--server", f"https://127.0.0.1:{self.server.port}"]
        run = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
        self.assertNotEqual(run.returncode, 0)  # nobody vouches for it
        run = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**environment, "LACUNA_CA_FILE": self.cert})
        if "libcurl" in run.stderr and run.returncode != 0:
            self.skipTest("no libcurl")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout + run.stderr, r"https://127\.0\.0\.1:\d+/t/[a-z2-7]{26}")

    def test_what_is_no_tls_gets_nothing_and_harms_nobody(self):
        for said in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x40\x00" + b"\x00" * 64, os.urandom(4000), b""):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as plain:
                try:
                    plain.sendall(said)
                    got = b"".join(iter(lambda: plain.recv(4096), b""))  # ends by itself: the handshake has a limit
                except (ConnectionResetError, BrokenPipeError):
                    got = b""
                self.assertNotIn(b"HTTP/1.1 200", got)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as plain, self.assertRaises(OSError):
            old.wrap_socket(plain)
        # one that goes away in the middle of a body
        for _ in range(20):
            connection = self.connect()
            connection.putrequest("POST", "/api/v1/traces?name=cut")
            connection.putheader("Authorization", "Bearer " + self.server.key)
            connection.putheader("Content-Length", "1000000")
            connection.endheaders(b"x" * 5000)
            connection.sock.close() if _ % 2 else connection.close()
        self.assertEqual(self.ask(self.connect(), "GET", "/session")[0].status, 200)


@unittest.skipUnless(shutil.which("openssl"), "no openssl: no certificate to serve with")
class Refusals(unittest.TestCase):
    def serve(self, data, *flags):
        return subprocess.run([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0", *flags], capture_output=True, text=True, timeout=60)

    def test_files_that_do_not_fit(self):
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b, tempfile.TemporaryDirectory() as data:
            cert, key = make_certificate(a, "a")
            _, other = make_certificate(b, "b")
            for flags, status, words in ((("--tls-cert", cert), 2, "belong together"), (("--tls-cert", cert, "--tls-key", other), 1, "not a certificate and its key"),
                                         (("--tls-cert", a + "/none", "--tls-key", key), 1, "No such file")):
                said = self.serve(data, *flags)
                self.assertEqual(said.returncode, status, said.stderr)
                self.assertIn(words, said.stderr)

    def test_beyond_this_machine_without_a_proxy(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
            cert, key = make_certificate(folder, "here")
            with open(folder + "/password", "w") as file:
                file.write(PASSWORD + "\n")
            added = subprocess.run([PROGRAM, "admin", "user", "add", "root", "--admin", "--password-file", folder + "/password", "--data", data], capture_output=True, text=True, timeout=60)
            self.assertEqual(added.returncode, 0, added.stderr)
            flags = ("--listen", "0.0.0.0:0", "--allow-remote")
            said = self.serve(data, *flags)
            self.assertEqual(said.returncode, 1)
            self.assertIn("--tls-cert", said.stderr)
            server = Server("--allow-remote", "--tls-cert", cert, "--tls-key", key, data=data)
            server.terminate()
            server.start(listen="0.0.0.0:0")
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=ssl.create_default_context(cafile=cert))
            connection.request("POST", "/api/v1/session", body=json.dumps({"name": "root", "password": PASSWORD}))
            reply = connection.getresponse()
            self.assertEqual((reply.status, "; Secure" in reply.headers["Set-Cookie"]), (204, True), reply.read())
            connection.close()
            self.assertEqual(server.terminate(), 0)
            server.close()


if __name__ == "__main__":
    unittest.main()
