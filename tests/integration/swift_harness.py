"""A real S3 server for tests: OpenStack Swift with its s3api middleware, from the distribution, on 127.0.0.1."""
import base64
import email.utils
import functools
import hashlib
import hmac
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # the one that the distribution's packages are for
ACCESS_KEY, SECRET_KEY, BUCKET = "test:tester", "testing", "lacuna"


@functools.lru_cache(None)
def why_not():
    """Why Swift cannot run here, or None."""
    parts = ("proxy", "account", "container", "obj")
    check = "import eventlet, " + ", ".join(f"swift.{part}.server" for part in parts)
    if not os.access(PYTHON, os.X_OK) or subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('swift'))"]).returncode != 0:
        return "OpenStack Swift is not installed (swift-proxy, swift-account, swift-container, swift-object)"
    if not os.access("/etc/swift/swift.conf", os.R_OK):
        return "/etc/swift/swift.conf cannot be read"
    if subprocess.run([PYTHON, "-c", check], capture_output=True).returncode != 0:
        return "OpenStack Swift is not complete (swift-proxy, swift-account, swift-container, swift-object)"
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.setxattr(file.name, "user.lacuna", b"1")
        except OSError:
            return "the temporary folder has no extended attributes"
    return None


class Swift:
    """One process, one device, one replica; what it holds outlives stop() and start()."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="lacuna-swift-")
        os.makedirs(os.path.join(self.home, "devices", "d1"))
        for tries_left in range(4, -1, -1):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            try:
                self.start()
                break
            except RuntimeError:  # another process has taken the port meanwhile
                self.stop()
                if not tries_left:
                    raise

    def start(self):
        log_path = os.path.join(self.home, "log")
        with open(log_path, "ab") as log:
            self.process = subprocess.Popen([PYTHON, os.path.join(HERE, "swift_server.py"), self.home, str(self.port)], stdout=log, stderr=log)
        until = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                is_answered = True  # by it, or by another process that has the port
            except OSError:
                is_answered = False
            time.sleep(0.05)
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Swift did not start: {open(log_path).read()[-2000:]}")
            if is_answered:
                return

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def environment(self):
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def request(self, method, path, body=b""):
        """Signed another way (version 2) than the code under test does: path is BUCKET/name. @return status and body"""
        date = email.utils.formatdate(usegmt=True)
        signature = base64.b64encode(hmac.new(SECRET_KEY.encode(), f"{method}\n\ntext/plain\n{date}\n/{path}".encode(), hashlib.sha1).digest()).decode()
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link.request(method, "/" + path, body=body, headers={"Date": date, "Content-Type": "text/plain", "Authorization": f"AWS {ACCESS_KEY}:{signature}",
                                                             "Content-Length": str(len(body))})
        reply = link.getresponse()
        content = reply.read()
        link.close()
        return reply.status, content

    def names(self):
        """Of all objects in the bucket."""
        status, body = self.request("GET", BUCKET)
        if status != 200:
            raise RuntimeError(f"cannot list: {status} {body[:300]}")
        return sorted(re.findall(r"<Key>([^<]+)</Key>", body.decode()))
