"""Firefox without a window, driven over Marionette, the protocol that is in every release: length-prefixed JSON on a local socket."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

START_S = 60
CONTROL = "\ue009"
PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
# it asks nobody anything, and what scripts complain of is on its standard output
PREFERENCES = {"app.update.enabled": False, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
               "network.captive-portal-service.enabled": False, "toolkit.telemetry.enabled": False}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Firefox:
    def __init__(self, width=1440, height=900):
        self.profile = tempfile.mkdtemp(prefix="lacuna-firefox-")
        port = free_port()
        with open(os.path.join(self.profile, "user.js"), "w", encoding="utf-8") as file:
            for name, value in {**PREFERENCES, "marionette.port": port}.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.process = subprocess.Popen([PROGRAM, "--headless", "--marionette", "--no-remote", "--profile", self.profile, f"--width={width}",
                                         f"--height={height}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile})
        self.number = 0
        self.socket = self._connect(port)
        self.socket.settimeout(120)
        self.stream = self.socket.makefile("rb")
        self._read()  # who it is
        self.call("WebDriver:NewSession")

    def _connect(self, port):
        end = time.monotonic() + START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), 5)
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.close()
                    raise
                time.sleep(0.2)

    def _read(self):
        length = b""
        while (byte := self.stream.read(1)) != b":":
            if not byte:
                raise ConnectionError("Firefox has ended")
            length += byte
        return json.loads(self.stream.read(int(length)))

    def call(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        if error:
            raise AssertionError(f"{command}: {error.get('message')}")
        return result

    def go(self, url):
        self.call("WebDriver:Navigate", url=url)

    def script(self, text, *arguments):
        return self.call("WebDriver:ExecuteScript", script=text, args=list(arguments), newSandbox=False)["value"]

    def until(self, text, *arguments, seconds=60):
        """Until the script returns something true; that is returned."""
        end = time.monotonic() + seconds
        while not (value := self.script(text, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds} s still not: {text} {arguments}")
            time.sleep(0.1)
        return value

    def _perform(self, kind, actions, **more):
        self.call("WebDriver:PerformActions", actions=[{"type": kind, "id": kind, "actions": actions, **more}])

    def press(self, keys):
        self._perform("key", [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")])

    def drag(self, start, *points):
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 50} for x, y in (start, *points)]
        self._perform("pointer", [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}],
                      parameters={"pointerType": "mouse"})

    def zoom(self, x, y):
        """The wheel turned away from the person while Control is down."""
        self._perform("key", [{"type": "keyDown", "value": CONTROL}])
        self._perform("wheel", [{"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": -240, "duration": 0, "origin": "viewport"}])
        self._perform("key", [{"type": "keyUp", "value": CONTROL}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("WebDriver:TakeScreenshot", full=False)["value"]))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
