#!/usr/bin/env python3
"""`make bench`: speed and memory into build/bench.json; medians of alternating runs, with the spread beside each.

usage: bench.py [--group import|store|analyze|http|nvtx|spool|viewer|flame] [--runs N]

Every figure is taken from the program as people run it, or from a bench program that prints one JSON
object. A figure that cannot be taken on this machine is left out, never made up.
"""
import argparse
import glob
import http.client
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.path.join(ROOT, "build/release/lacuna")
BENCH = os.path.join(ROOT, "build/release/bench")
TRACES = os.path.join(ROOT, "../shared/traces")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory_kb = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo").read()).group(1))
    return f"{model}, {os.cpu_count()} cores, {memory_kb / 1024 / 1024:.0f} GiB, {platform.system()} {platform.release()}"


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()


def run(command, **kwargs):
    """Runs a command; its wall time, CPU time and peak memory."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {status}: {output[-500:]}")
    return {"wall_s": time.perf_counter() - start, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * 1024, "output": output}


class Results:
    def __init__(self):
        self.values = {}

    def add(self, key, samples, digits=3):
        """The median, and the lowest and highest sample."""
        if samples:
            self.values[key] = round(statistics.median(samples), digits)
            self.values[key + "_spread"] = [round(min(samples), digits), round(max(samples), digits)]
            print(f"  {key:28} {self.values[key]:>12}   ({min(samples):.4g} to {max(samples):.4g}, n={len(samples)})", flush=True)

    def add_program(self, name, runs, keys, *arguments):
        """Figures that a bench program prints as one JSON object on its last line."""
        program = os.path.join(BENCH, name)
        if not os.path.exists(program):
            return
        collected = {}
        for _ in range(runs):
            printed = run([program, *arguments])["output"].strip().splitlines()[-1]
            for key, value in json.loads(printed).items():
                collected.setdefault(key, []).append(value)
        for key in keys:
            if key in collected:
                self.add(key, collected[key])


def made_trace(scratch, megabytes):
    path = os.path.join(scratch, "big.json")
    if not os.path.exists(path):
        print(" ", run([sys.executable, os.path.join(ROOT, "tests/bench/make_trace.py"), path, str(megabytes)])["output"].strip())
    return path


def trace_id(data):
    return os.path.splitext(os.path.basename(glob.glob(os.path.join(data, "traces", "*.db"))[0]))[0]


# ---- groups

def bench_import(results, runs, scratch):
    """From a plain file to a trace that is ready, against python3's json.load of the same file."""
    path = made_trace(scratch, 250)
    size = os.path.getsize(path)
    cpu, wall, peak, python = [], [], [], []
    for _ in range(runs):
        data = os.path.join(scratch, "data-import")
        shutil.rmtree(data, ignore_errors=True)
        ours = run(["taskset", "-c", "0", LACUNA, "import", "--data", data, path])
        cpu.append(size / ours["cpu_s"] / 1e6)
        wall.append(ours["wall_s"])
        peak.append(ours["peak_bytes"] / size)
        theirs = run(["taskset", "-c", "0", sys.executable, "-c", "import json, sys; json.load(open(sys.argv[1]))", path])
        python.append(theirs["wall_s"] / ours["wall_s"])
    results.add("import_json_mb_s", cpu, 1)
    results.add("import_json_wall_s", wall)
    results.add("import_json_vs_python", python, 2)
    results.add("import_json_peak_ratio", peak)


def bench_store(results, runs, scratch):
    """Bytes of the trace file for each event of a real trace that is not repeated."""
    found = sorted(glob.glob(os.path.join(TRACES, "kineto/resnet50_num_workers_*.json.gz")))
    if not found:
        print("  no ../shared/traces: a made-up trace instead")
        found = [os.path.join(scratch, "made-up.json")]
        run([sys.executable, os.path.join(ROOT, "tests/bench/make_trace.py"), found[0], "1"])
    samples = []
    for path in found:
        data = os.path.join(scratch, "data-store")
        shutil.rmtree(data, ignore_errors=True)
        run([LACUNA, "import", "--data", data, path])
        events = json.loads(run([LACUNA, "analyze", "--json", path])["output"])["trace"]["event_count"]
        samples.append(os.path.getsize(os.path.join(data, "traces", trace_id(data) + ".db")) / events)
    results.add("store_bytes_per_event", samples, 2)


def bench_analyze(results, runs, scratch):
    results.add_program("bench_analyze", runs, ["analyze_mev_s", "analyze_20m_s"])


class Server:
    def __init__(self, data):
        self.port_file = os.path.join(data, "port")
        self.data = data
        self.process = subprocess.Popen([LACUNA, "serve", "--data", data, "--listen", "127.0.0.1:0", "--port-file", self.port_file],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            if os.path.exists(self.port_file) and open(self.port_file).read().strip():
                break
            time.sleep(0.05)
        self.port = int(open(self.port_file).read().strip().split(":")[-1])
        self.key = open(os.path.join(data, "local.token")).read().strip()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, connection, path):
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.key})
        reply = connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"GET {path}: {reply.status} {body[:200]}")
        return body

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


def random_tiles(tracks, count, seed):
    """Tile paths as a person's zooming and panning asks for them: any level, any place, the tracks of one screen."""
    chooser = random.Random(seed)
    wide = [track["index"] for track in tracks["tracks"] if track["count"] > 0 and track["kind"] != "counter"]
    paths = []
    for _ in range(count):
        level = chooser.randrange(3, tracks["level_max"] + 1)
        tiles = max(1, tracks["duration_ns"] // (512 * 8 ** level))
        first = chooser.randrange(tiles)
        chosen = ",".join(map(str, sorted(chooser.sample(wide, min(len(wide), 12)))))
        paths.append(f"{level}/{first}-{min(first + 3, tiles)}?tracks={chosen}")
    return paths


def bench_http(results, runs, scratch):
    """Tiles of a trace of 20 M events, an upload, and many connections at once."""
    data = os.path.join(scratch, "data-http")
    os.makedirs(data, exist_ok=True)
    writer = os.path.join(BENCH, "bench_store")
    if os.path.exists(writer):
        run([writer, "--write", data])
    else:
        run([LACUNA, "import", "--data", data, made_trace(scratch, 250)])
    server = Server(data)
    try:
        connection = server.connection()
        identity = trace_id(data)
        base = f"/api/v1/traces/{identity}"
        tracks = json.loads(server.get(connection, base + "/tracks"))
        p50, p99, rate = [], [], []
        for number in range(runs):
            times = []
            for path in random_tiles(tracks, 400, number):
                start = time.perf_counter()
                server.get(connection, f"{base}/g{tracks['generation']}/tiles/{path}")
                times.append((time.perf_counter() - start) * 1e3)
            times.sort()
            p50.append(times[len(times) // 2])
            p99.append(times[int(len(times) * 0.99)])
            rate.append(len(times) / (sum(times) / 1e3))
        results.add("tile_p50_ms", p50)
        results.add("tile_p99_ms", p99)
        results.add("http_tiles_per_s", rate, 0)
        if shutil.which("wrk"):
            for connections in (32, 128, 512):
                printed = run(["wrk", "-t1", f"-c{connections}", "-d3s", f"http://127.0.0.1:{server.port}/healthz"])["output"]
                results.add(f"http_requests_per_s_c{connections}", [float(re.search(r"Requests/sec: +([\d.]+)", printed).group(1))], 0)
        upload = []
        path = made_trace(scratch, 250)
        for _ in range(min(runs, 3)):
            start = time.perf_counter()
            connection = server.connection()
            with open(path, "rb") as body:
                connection.request("POST", "/api/v1/traces?name=bench", body=body,
                                   headers={"Authorization": "Bearer " + server.key, "Content-Length": str(os.path.getsize(path))})
                created = json.loads(connection.getresponse().read())
            upload.append(os.path.getsize(path) / (time.perf_counter() - start) / 1e6)
            while json.loads(server.get(connection, "/api/v1/traces/" + created["id"]))["state"] not in ("ready", "failed"):
                time.sleep(0.1)
        results.add("upload_mb_s", upload, 0)
    finally:
        server.stop()


def bench_flame(results, runs, scratch):
    results.add_program("bench_flame", min(runs, 3), ["flame_first_ms", "flame_cached_ms", "area_ms", "flame_gpu_ms", "flame_waiting_ms",
                                                      "flame_cpu_ms", "flame_gpu_area_ms"])


def bench_nvtx(results, runs, scratch):
    """Push and pop under the launcher that drains, with one name and with 512, and with no recorder."""
    program = os.path.join(BENCH, "bench_ranges")
    node = os.path.join(ROOT, "build/release/lacuna-node")
    one, many, none = [], [], []
    for _ in range(runs):
        none.append(json.loads(run([program, "1"])["output"].splitlines()[-1])["pair_ns"])
        for names, samples in ((1, one), (512, many)):
            out = os.path.join(scratch, "spool")
            printed = run([node, "run", "--quiet", "-o", out, "--", program, str(names)])["output"]
            samples.append(json.loads(printed.splitlines()[-1])["pair_ns"])
            shutil.rmtree(out, ignore_errors=True)
    results.add("nvtx_none_pair_ns", none, 2)
    results.add("nvtx_pair_ns", one, 1)
    results.add("nvtx_pair_512_ns", many, 1)


def bench_spool(results, runs, scratch):
    """How fast spools are moved out, their size, and how fast they are read."""
    program = os.path.join(BENCH, "bench_ranges")
    node = os.path.join(ROOT, "build/release/lacuna-node")
    size, rate = [], []
    for _ in range(runs):
        out = os.path.join(scratch, "spool")
        printed = json.loads(run([node, "run", "--quiet", "-o", out, "--", program, "1"])["output"].splitlines()[-1])
        stored = sum(os.path.getsize(path) for path in glob.glob(out + "/*.spool"))
        size.append(stored / (2 * printed["pairs"]))
        taken = run([os.path.join(BENCH, "bench_spool_read"), out])["output"].splitlines()[-1]
        rate.append(json.loads(taken)["spool_decode_mev_s"])
        shutil.rmtree(out, ignore_errors=True)
    results.add("spool_bytes_per_event", size, 2)
    results.add("spool_decode_mev_s", rate, 1)


def bench_viewer(results, runs, scratch):
    """The page in headless Chromium on a big trace: first paint, frames while zooming and panning, memory."""
    script = os.path.join(ROOT, "tests/bench/viewer.mjs")
    if not os.path.exists(script):
        return
    data = os.path.join(scratch, "data-http")
    if not os.path.isdir(data):
        os.makedirs(data)
        writer = os.path.join(BENCH, "bench_store")
        run([writer, "--write", data] if os.path.exists(writer) else [LACUNA, "import", "--data", data, made_trace(scratch, 250)])
    server = Server(data)
    try:
        collected = {}
        for _ in range(min(runs, 3)):
            printed = run(["node", script, f"http://127.0.0.1:{server.port}", server.key, trace_id(data)])["output"]
            for key, value in json.loads(printed.strip().splitlines()[-1]).items():
                collected.setdefault(key, []).append(value)
        for key, samples in collected.items():
            results.add(key, samples, 2)
    finally:
        server.stop()


GROUPS = {"import": bench_import, "store": bench_store, "analyze": bench_analyze, "http": bench_http, "flame": bench_flame,
          "nvtx": bench_nvtx, "spool": bench_spool, "viewer": bench_viewer}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", default="")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    if args.group and args.group not in GROUPS:
        sys.exit(f"no group {args.group}; there are: {' '.join(GROUPS)}")
    results = Results()
    results.values = {"machine": machine(), "commit": commit(), "date": time.strftime("%Y-%m-%d")}
    out = os.path.join(ROOT, "build/bench.json")
    if args.group and os.path.exists(out):
        with open(out) as file:
            results.values = {**json.load(file), **results.values}
    print(results.values["machine"])
    failed = []
    scratch = tempfile.mkdtemp(prefix="lacuna-bench-", dir=os.environ.get("TMPDIR"))
    try:
        for name, group in GROUPS.items():
            if args.group in ("", name):
                print(f"{name}: {group.__doc__ or ''}".strip(), flush=True)
                try:
                    group(results, args.runs, scratch)
                except (RuntimeError, OSError, ValueError, KeyError, IndexError) as error:
                    failed.append(name)
                    print(f"  could not be taken: {error}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with open(out, "w") as file:
        json.dump(results.values, file, indent=1)
        file.write("\n")
    print("written to build/bench.json" + (f"; could not be taken: {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
