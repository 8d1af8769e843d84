"""Tiles from a server that stands by: the catalog in PostgreSQL, a trace of 20 M slices in a real S3 server, both on this machine."""
import json
import os
import shutil
import subprocess
import sys
import time

from bench_kit import LACUNA, ROOT, Samples, Server, run

sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
import postgres_harness  # noqa: E402
import swift_harness  # noqa: E402


class Node(Server):
    """A server with a shared catalog; `data` is its own folder."""

    def __init__(self, data, environment, *flags):
        os.makedirs(data, exist_ok=True)
        self.flags, self.environment = flags, environment
        super().__init__(data)

    def launch(self, data, port_file):
        return subprocess.Popen([LACUNA, "serve", "--data", data, "--listen", "127.0.0.1:0", "--port-file", port_file, *self.flags],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **self.environment})


def measure(samples, scratch, identity, flags, environment, seeds, tile_times, one_tile, one_screen, is_first):
    """One life of a server that stands by: its first screen, and tiles once they were asked for before."""
    name = "standby" if is_first else "standby_whole"
    with Node(scratch.fresh("standby-b"), environment, *flags) as node:
        tracks = json.loads(node.get(f"/api/v1/traces/{identity}"))  # knows people and rows
        start = time.perf_counter()
        tracks = json.loads(node.get(f"/api/v1/traces/{identity}/tracks"))
        base = f"/api/v1/traces/{identity}/g{tracks['generation']}/tiles/"
        tile_times(node, base, tracks, one_screen, 1, 1)
        samples.take(**{name + "_first_screen_ms": (time.perf_counter() - start) * 1e3})
        if not is_first:
            return
        for seed in seeds:
            _, cold = tile_times(node, base, tracks, one_tile, seed, 500)
            p50, p99 = tile_times(node, base, tracks, one_tile, seed, 500)
            samples.take(standby_tile_cold_p99_ms=cold, standby_tile_p50_ms=p50, standby_tile_p99_ms=p99)


def bench_standby(results, runs, scratch, tile_times, one_tile, one_screen):
    why_not = postgres_harness.why_not() or swift_harness.why_not()
    if why_not:
        results.absent("standby_tile_p99_ms", why_not)
        return
    stored, identity = scratch.stored()
    data = scratch.fresh("standby-a")
    shutil.copytree(stored, data)
    samples = Samples()
    postgres, swift = postgres_harness.Postgres(), swift_harness.Swift()
    try:
        swift.request("PUT", swift_harness.BUCKET)
        url, objects = postgres.database("bench").replace("team@", f"team:{postgres_harness.IN_ADDRESS}@"), f"s3://{swift_harness.BUCKET}/bench"
        environment = {**os.environ, **swift.environment}
        run([LACUNA, "admin", "move", "--to", objects, "--data", data], env=environment)
        run([LACUNA, "admin", "move-catalog", "--to", url, "--data", data], env=environment)
        flags = ("--catalog", url, "--objects", objects, "--standby")
        with Node(data, swift.environment, *flags):
            for seed in range(runs):
                measure(samples, scratch, identity, flags, swift.environment, [seed], tile_times, one_tile, one_screen, True)
                measure(samples, scratch, identity, (*flags, "--object-whole", "1T"), swift.environment, [], tile_times, one_tile, one_screen, False)
    finally:
        swift.close()
        postgres.close()
    results.add_all(samples)
