"""What the groups of bench.py share: running programs, a server, and figures with their spread."""
import http.client
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(ROOT, "build/release")
LACUNA = os.path.join(RELEASE, "lacuna")
NODE = os.path.join(RELEASE, "lacuna-node")
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
from real_traces import real_traces  # noqa: E402

TRACES = real_traces()
START_S = 20
IMPORT_S = 120


def bench_program(name):
    return os.path.join(RELEASE, "bench", name)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as file:
        memory_kb = int(re.search(r"MemTotal: +(\d+)", file.read()).group(1))
    return f"{model}, {os.cpu_count()} cores, {memory_kb / 1024 / 1024:.0f} GiB, {platform.system()} {platform.release()}"


def commit():
    git = ["git", "-C", ROOT]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], stdout=subprocess.PIPE, text=True).stdout
    return name + ("+changes" if changed else "")


def run(command, **kwargs):
    """Runs a command; its wall time, CPU time, peak memory and output. RuntimeError when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if status != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}: {output[-500:]}")
    return {"wall_s": time.perf_counter() - start, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024, "output": output}


def last_json(output):
    """The object on the last line that a bench program printed."""
    return json.loads(output.strip().splitlines()[-1])


class Results:
    """Figures by key: medians, with the lowest and the highest sample beside each."""

    def __init__(self, values):
        self.values = values

    def add(self, key, samples, digits=3):
        if samples:
            self.values[key] = round(statistics.median(samples), digits)
            self.values[key + "_spread"] = [round(min(samples), digits), round(max(samples), digits)]
            print(f"  {key:28} {self.values[key]:>12}   ({min(samples):.4g} to {max(samples):.4g}, n={len(samples)})", flush=True)

    def add_all(self, samples_by_key, digits=3):
        for key, samples in samples_by_key.items():
            self.add(key, samples, digits)

    def absent(self, what, why):
        print(f"  {what}: not taken: {why}", flush=True)


class Samples(dict):
    """Samples by key, in the order in which they were first taken."""

    def take(self, **figures):
        for key, value in figures.items():
            self.setdefault(key, []).append(value)


class Server:
    """`lacuna serve` on a data folder, and one connection to it."""

    def __init__(self, data):
        port_file = os.path.join(data, "port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        self.process = self.launch(data, port_file)
        try:
            self.port = self._port(port_file)
            with open(os.path.join(data, "local.token")) as file:
                self.key = file.read().strip()
        except BaseException:
            self.stop()
            raise
        self.headers = {"Authorization": "Bearer " + self.key}
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=IMPORT_S)

    def launch(self, data, port_file):
        return subprocess.Popen([LACUNA, "serve", "--data", data, "--listen", "127.0.0.1:0", "--port-file", port_file],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _port(self, port_file):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if os.path.exists(port_file):
                with open(port_file) as file:
                    text = file.read().strip()
                if text:
                    return int(text.split(":")[-1])
            time.sleep(0.02)
        raise RuntimeError("the server did not start")

    def request(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body=body, headers={**self.headers, **(headers or {})})
        reply = self.connection.getresponse()
        content = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{method} {path}: {reply.status} {content[:200]!r}")
        return content

    def get(self, path):
        return self.request("GET", path)

    def timed_ms(self, path):
        start = time.perf_counter()
        self.get(path)
        return (time.perf_counter() - start) * 1e3

    def wait_until_ready(self, identity):
        deadline = time.monotonic() + IMPORT_S
        while time.monotonic() < deadline:
            state = json.loads(self.get("/api/v1/traces/" + identity))["state"]
            if state == "ready":
                return
            if state == "failed":
                raise RuntimeError("the import failed")
            time.sleep(0.05)
        raise RuntimeError("the import takes too long")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.stop()


def python_script(name, *arguments):
    """A script of this folder, by the Python that runs us."""
    return [sys.executable, os.path.join(ROOT, "tests/bench", name), *map(str, arguments)]
