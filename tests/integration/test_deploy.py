"""The examples of deploy/: nginx and Caddy in front of the real server, with requests, uploads and event streams through them, a user whom
the proxy names; and the unit, checked by systemd."""
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

from server_harness import PROGRAM, ROOT, Server, make_trace, wait_for

NODE = os.path.join(ROOT, "build/release/lacuna-node")
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
CADDY = shutil.which("caddy")
USER = "ann"


def example(name):
    with open(os.path.join(ROOT, "deploy", name)) as file:
        return file.read()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@unittest.skipUnless(shutil.which("openssl"), "no openssl: no certificate for a proxy")
class Proxies(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-deploy-")
        self.cert, self.key = self.folder + "/cert.pem", self.folder + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key, "-out", self.cert, "-days", "1",
                        "-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        self.server = Server("--behind-proxy", "--trust-header", "X-Forwarded-User")
        added = subprocess.run([PROGRAM, "admin", "user", "add", USER, "--data", self.server.data], capture_output=True, text=True, timeout=60)
        self.assertEqual(added.returncode, 0, added.stderr)
        self.port = free_port()

    def tearDown(self):
        self.assertEqual(self.server.terminate(), 0)
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=ssl.create_default_context(cafile=self.cert))

    def ask(self, method, path, body=None, key=True, **headers):
        connection = self.connect()
        try:
            bearer = {"Authorization": "Bearer " + self.server.key} if key else {}
            connection.request(method, "/api/v1" + path, body=body, headers={**bearer, **{k.replace("_", "-"): v for k, v in headers.items()}})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def is_up(self, process):
        self.assertIsNone(process.poll(), "the proxy ended")
        try:
            return self.ask("GET", "/session")[0] == 200
        except OSError:
            return False

    def try_all(self, command):
        environment = {**os.environ, "HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}
        with open(self.folder + "/proxy.log", "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            wait_for(lambda: self.is_up(process))
            self.try_requests()
            self.try_events()
            self.try_push()
        except AssertionError as error:
            with open(self.folder + "/proxy.log") as log:
                raise AssertionError(f"{error}\n{log.read()[-2000:]}") from error
        finally:
            process.terminate()
            process.wait(30)

    def try_requests(self):
        own = f"https://127.0.0.1:{self.port}"
        status, headers, _ = self.ask("POST", "/session", json.dumps({"key": self.server.key}), key=False, Origin=own)
        self.assertEqual(status, 204)
        self.assertIn("; Secure", headers["Set-Cookie"])
        self.assertEqual(self.ask("POST", "/session", json.dumps({"key": self.server.key}), key=False, Origin="https://evil.example")[0], 403)
        # what a client says of itself is not what the proxy says
        status, _, body = wait_for(lambda: self.named() if self.named()[0] == 200 else None)
        self.assertEqual(json.loads(body)["name"], USER)

    def named(self):
        return self.ask("GET", "/session", key=False, X_Forwarded_User="root")

    def try_events(self):
        stream = self.connect()
        stream.request("GET", "/api/v1/events", headers={"Authorization": "Bearer " + self.server.key})
        events = stream.getresponse()
        self.assertEqual(events.status, 200)
        status, _, body = self.ask("POST", "/traces?name=through", make_trace(2, 3, filler=2 << 20))
        self.assertEqual(status, 201, body)
        heard = b""
        while json.loads(body)["id"].encode() not in heard:  # while the stream is open
            line = events.readline()
            self.assertNotEqual(line, b"", "the stream ended")
            heard += line
        stream.close()

    def try_push(self):
        path = self.folder + "/pushed.json"
        with open(path, "wb") as file:
            file.write(make_trace(3, 20))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        run = subprocess.run([NODE, "push", path, "--server", f"https://127.0.0.1:{self.port}"], capture_output=True, text=True, timeout=120,
                             env={**clean, "LACUNA_TOKEN": self.server.key, "LACUNA_CA_FILE": self.cert, "XDG_STATE_HOME": self.folder})
        if run.returncode == 0:
            self.assertIn(f"https://127.0.0.1:{self.port}/t/", run.stdout + run.stderr)
        else:
            self.assertIn("libcurl", run.stderr)

    @unittest.skipUnless(NGINX, "no nginx: its example is not tried")
    def test_nginx(self):
        site = replaced(example("nginx.conf"), ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"), ("traces.example.org", "localhost"),
                        ("/etc/ssl/certs/traces.pem", self.cert), ("/etc/ssl/private/traces.key", self.key), ("127.0.0.1:7070", f"127.0.0.1:{self.server.port}"),
                        ("# proxy_set_header X-Forwarded-User $remote_user", f"proxy_set_header X-Forwarded-User {USER}"))
        temporary = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(self.folder + "/nginx.conf", "w") as file:
            file.write(f"{'user root;' if os.geteuid() == 0 else ''} pid {self.folder}/pid; daemon off; worker_processes 1; error_log stderr;\n"
                       f"events {{}}\nhttp {{ access_log off; {temporary}\n{site}\n}}\n")
        self.try_all([NGINX, "-p", self.folder, "-c", self.folder + "/nginx.conf", "-e", "stderr"])

    @unittest.skipUnless(CADDY, "no caddy: its example is not tried")
    def test_caddy(self):
        site = replaced(example("Caddyfile"), ("\ntraces.example.org {", f"\nhttps://127.0.0.1:{self.port} {{\n\tbind 127.0.0.1\n\ttls {self.cert} {self.key}"),
                        ("127.0.0.1:7070", f"127.0.0.1:{self.server.port}"), ("# header_up X-Forwarded-User {http.auth.user.id}", f"header_up X-Forwarded-User {USER}"))
        with open(self.folder + "/Caddyfile", "w") as file:
            file.write("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
        self.try_all([CADDY, "run", "--config", self.folder + "/Caddyfile", "--adapter", "caddyfile"])


class Unit(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze: the unit is not checked")
    def test_the_unit_is_sound(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/lacuna.service"
            with open(path, "w") as file:
                file.write(replaced(example("lacuna.service"), ("/usr/bin/lacuna", PROGRAM)))
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, timeout=60)
            self.assertNotRegex(said.stderr, r"lacuna\.service.*(Unknown|Failed to parse|Invalid|not executable)")
            said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", path], capture_output=True, text=True, timeout=60)
            if "unrecognized option" not in said.stderr:
                self.assertEqual(said.returncode, 0, said.stdout[-300:] + said.stderr)


if __name__ == "__main__":
    unittest.main()
