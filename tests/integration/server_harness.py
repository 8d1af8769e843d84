"""Starts the real server on 127.0.0.1 with a data folder of its own, and talks to it; used by test_server_*.py."""
import functools
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
SOAK = os.environ.get("LACUNA_SOAK") == "1"
CATALOG_IS_FILE = not os.environ.get("LACUNA_TEST_CATALOG")
MARKUP = "<img src=x onerror=alert(1)>"


def make_trace(steps=4, kernels=40, name=MARKUP, filler=0):
    """A small Kineto trace: steps, a loader wait, operators, launches with their kernels, a copy, a counter."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python " + MARKUP}},
        {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "ts": 0, "args": {"name": "main"}},
    ]
    corr = 0
    for step in range(steps):
        t0 = 1000 + step * 20000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 10, "tid": 11, "ts": t0, "dur": 19990})
        events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                       "pid": 10, "tid": 11, "ts": t0 + 10, "dur": 8000})
        events.append({"ph": "C", "name": "GPU Utilization", "pid": 10, "ts": t0, "args": {"value": step * 10.5}})
        corr += 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 10, "tid": 11, "ts": t0 + 8100, "dur": 20, "args": {"correlation": corr}})
        events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": t0 + 8200, "dur": 100,
                       "args": {"device": 0, "stream": 7, "correlation": corr, "bytes": 1048576}})
        for k in range(kernels):
            corr += 1
            at = t0 + 8400 + k * 250
            label = name if k % 4 == 0 else ("nchwToNhwcKernel" if k % 4 == 1 else f"sm80_xmma_gemm_{k}")
            events.append({"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 10, "tid": 11, "ts": at, "dur": 60, "args": {"Input Dims": [[1, 3]], "x": MARKUP}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11, "ts": at + 5, "dur": 10, "args": {"correlation": corr}})
            events.append({"ph": "X", "cat": "kernel", "name": label, "pid": 0, "tid": 7, "ts": at + 30, "dur": 150 + k % 7,
                           "args": {"device": 0, "stream": 7, "correlation": corr, "grid": [k + 1, 1, 1], "block": [128, 1, 1],
                                    "registers per thread": 32, "shared memory": 1024, "est. achieved occupancy %": 40}})
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Test GPU", "computeMajor": 8, "computeMinor": 0, "numSms": 108,
                                                          "totalGlobalMem": 85899345920}], "traceEvents": events}
    text = json.dumps(document)
    return (text + " " * filler).encode()


def slowed(trace, factor):
    """The same, each time and duration longer."""
    document = json.loads(trace)
    for event in document["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] *= factor
    return json.dumps(document).encode()


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    """One server process. `data` survives restarts when given; `files` is how many it may open (ulimit -n)."""

    def __init__(self, *flags, data=None, log=None, files=None, preexec=None, environment=None):
        if files is not None:
            preexec = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files, files))
        self.preexec, self.environment = preexec, environment or {}
        self.own_data = data is None
        self.data = data or tempfile.mkdtemp(prefix="lacuna-data-")
        self.flags = flags
        self.log_path = log or os.path.join(self.data, "..", os.path.basename(self.data) + ".log")
        self.process = None
        try:
            self.start()
        except RuntimeError:
            self.remove()
            raise

    def start(self, listen="127.0.0.1:0"):
        self.launch(listen)
        self.await_start(30)

    def launch(self, listen="127.0.0.1:0"):
        self.port_file = port_file = self.log_path + ".port"  # not where the data is: that disk may be full
        if os.path.exists(port_file):
            os.unlink(port_file)
        self.log = open(self.log_path, "ab")
        place_catalog(self.data)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        self.launched = time.monotonic()
        self.process = subprocess.Popen([PROGRAM, "serve", "--data", self.data, "--listen", listen, "--port-file", port_file, *self.flags],
                                        stdout=subprocess.PIPE, stderr=self.log, env={**environment, **self.environment},
                                        preexec_fn=self.preexec)

    def await_start(self, timeout):
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None or time.monotonic() - self.launched > timeout:
                raise RuntimeError(f"the server did not start ({self.process.poll()}): {open(self.log_path).read()[-2000:]}")
            time.sleep(0.005)
        self.started_s = time.monotonic() - self.launched
        self.port = int(open(self.port_file).read())
        self.key = open(os.path.join(self.data, "local.token")).read().strip()
        os.unlink(self.port_file)

    def connect(self, timeout=10.0):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def http_connection(self, timeout):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, key=True, timeout=60):
        headers = dict(headers or {})
        if key and "Authorization" not in headers:
            headers["Authorization"] = "Bearer " + self.key
        connection = self.http_connection(timeout)
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def api(self, path, **kwargs):
        reply = self.get("/api/v1" + path, **kwargs)
        if reply.status != 200:
            raise AssertionError(f"{path}: {reply.status} {reply.body[:300]!r}")
        return reply.json()

    def upload(self, body, name="trace"):
        reply = self.request("POST", f"/api/v1/traces?name={name}", body=body)
        if reply.status != 201:
            raise AssertionError(f"upload: {reply.status} {reply.body[:300]!r}")
        return reply.json()["id"]

    def wait_ready(self, trace, timeout=60):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            row = self.api("/traces/" + trace)
            if row["state"] in ("ready", "failed"):
                return row
            time.sleep(0.02)
        raise AssertionError(f"{trace} is not ready after {timeout} s: {row}")

    def raw(self, data, timeout=5.0):
        """Send bytes, return all that comes back until the end or `timeout` of silence behind the first byte, which has 30 s."""
        with self.connect(30) as connection:
            try:
                connection.sendall(data)
            except OSError:
                pass
            return hear(connection, 30, rb"(?s).") + hear(connection, timeout)

    def terminate(self, number=signal.SIGTERM, timeout=30):
        """Exit status after a signal."""
        self.process.send_signal(number)
        status = self.process.wait(timeout)
        self.process.stdout.close()
        self.log.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def log_text(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def remove(self):
        os.unlink(self.log_path)
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        log = self.log_text()
        self.remove()
        found = re.search(r"(ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:|Assertion)[\s\S]{0,3000}", log)
        if found:
            raise AssertionError("the server's log has: " + found.group(0))


def place_catalog(data):
    """With LACUNA_TEST_CATALOG, the address of a PostgreSQL, new folders have their catalogs there, a schema each."""
    address, path = os.environ.get("LACUNA_TEST_CATALOG"), os.path.join(data, "catalog.url")
    if address and os.path.isdir(data) and not os.path.exists(path) and not os.path.exists(os.path.join(data, "catalog.db")):
        with open(path, "w") as file:
            file.write(f"{address}&options=-csearch_path%3Dt_lacunatest_{os.urandom(8).hex()}\n")


def children(pid):
    """Processes that a process has started and that still run."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            found = set(file.read().split())
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found.update(file.read().split())
    except OSError:
        return []
    return sorted(int(number) for number in found)


def importers(pid):
    """Of its children those that import: started, and not merely forked."""
    found = []
    for child in children(pid):
        try:
            with open(f"/proc/{child}/cmdline", "rb") as file:
                if file.read().split(b"\0")[1:2] == [b"import-worker"]:  # before exec it has the server's own words
                    found.append(child)
        except OSError:
            pass
    return found


def wait_for(what, timeout=60.0):
    """The first true value of a function."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


class SkewedClock:
    """A time of day that a server can be given, and that jumps when told to."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "skew")
        library = os.path.join(folder, "skewed_clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(ROOT, "tests/attack/skewed_clock.c")], check=True)
        self.set(0)
        self.environment = {"LD_PRELOAD": library, "SKEW_FILE": self.path}

    def set(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(int(seconds).to_bytes(8, "little", signed=True))


def hear(connection, timeout, until=None):
    """All that comes until the end, `timeout` seconds of silence, or a match of the pattern `until` in it."""
    connection.settimeout(timeout)
    heard = bytearray()
    try:
        while until is None or not re.search(until, heard):
            part = connection.recv(65536)
            if not part:
                break
            heard += part
    except OSError:
        pass
    return bytes(heard)


def status_of(reply):
    words = reply.split(b" ", 2)
    return int(words[1]) if len(words) > 2 and words[0].startswith(b"HTTP/1.") else 0


def main():
    """Run the tests of the calling file; the last line is `N passed, N failed`."""
    if not os.path.exists(PROGRAM):
        print(f"{PROGRAM} is not built")
        print("0 passed, 1 failed")
        sys.exit(1)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    for _, reason in result.skipped:
        print("skip: " + reason)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(0 if failed == 0 and result.testsRun > 0 else 1)
