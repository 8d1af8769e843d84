#!/usr/bin/env python3
"""What was acknowledged stays: an import that failed for reasons of the machine keeps the upload and is tried again; the clock may jump."""
import hashlib
import json
import os
import resource
import shutil
import signal
import tempfile
import time
import unittest

from server_harness import Server, SkewedClock, importers, main, make_trace, wait_for
from test_uploads import Client

DAY_S = 86400


class Kept(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.large = make_trace(steps=60, kernels=200)
        cls.small = make_trace()

    def start(self, *flags, **options):
        server = Server(*flags, **options)
        self.addCleanup(server.close)
        return server

    def catch(self, server, number):
        """Uploads until the process of its import could be sent a signal; the trace."""
        for _ in range(20):
            trace = server.upload(self.large)
            end = time.monotonic() + 30
            while time.monotonic() < end:
                found = importers(server.process.pid)
                if found:
                    try:
                        os.kill(found[0], number)
                    except ProcessLookupError:
                        break
                    if number != signal.SIGSTOP:
                        return trace
                    if wait_for(lambda: set("TZX") & {state_of(found[0])}) == {"T"}:
                        return trace
                    break
                if server.api("/traces/" + trace)["state"] != "importing":
                    break
        raise AssertionError("no import could be caught")

    def retry(self, server, trace):
        return server.request("POST", f"/api/v1/traces/{trace}/retry")

    def kill_an_import(self, server):
        for _ in range(20):
            trace = self.catch(server, signal.SIGKILL)
            row = server.wait_ready(trace)
            if row["state"] == "failed":
                return row
        raise AssertionError("no import could be killed")

    def test_a_killed_import_keeps_the_upload_and_is_tried_again(self):
        server = self.start("--import-workers", "1")
        row = self.kill_an_import(server)
        self.assertEqual((row["error"]["code"], row["error"]["fault"], row["error"]["kept"], row["error"]["can_retry"]), ("killed", "host", True, True), row["error"])
        reply = self.retry(server, row["id"])
        self.assertEqual((reply.status, reply.json()), (202, {"id": row["id"], "state": "importing"}))
        row = server.wait_ready(row["id"])
        self.assertEqual((row["state"], row["error"], row["sha256"]), ("ready", None, hashlib.sha256(self.large).hexdigest()))
        self.assertEqual((self.retry(server, row["id"]).status, self.retry(server, row["id"]).json()["error"]["code"]), (409, "cannot_retry"))
        killed = self.kill_an_import(server)["id"]
        self.assertEqual(server.terminate(), 0)
        server.start()
        self.assertEqual(server.wait_ready(killed)["state"], "ready")  # by itself
        wait_for(lambda: not os.listdir(os.path.join(server.data, "staging")))

    def test_what_is_no_trace_is_not_kept(self):
        server = self.start()
        trace = server.upload(b"hello, I am no trace")
        error = server.wait_ready(trace)["error"]
        self.assertEqual((error["code"], error["fault"], error["kept"], error["can_retry"]), ("corrupt", "file", False, False))
        self.assertEqual(self.retry(server, trace).status, 409)
        self.assertEqual(self.retry(server, "a" * 26).status, 404)
        self.assertEqual(self.retry(server, "x").status, 404)
        self.assertEqual(server.request("POST", f"/api/v1/traces/{trace}/retry", key=False).status, 401)

    def test_a_long_queue(self):
        """Nothing is said of a trace that is not so; what waits costs no descriptor; the queue has an end, and a start under few descriptors resumes it."""
        server = self.start("--import-workers", "1", "--import-queue", "40")
        self.catch(server, signal.SIGSTOP)
        descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        first = server.upload(self.small, "same")
        again = server.request("POST", "/api/v1/traces?name=same&reuse=1", body=self.small)
        self.assertEqual((again.status, again.json()), (200, {"id": first, "state": "importing"}))
        waiting = [first] + [server.upload(self.small) for _ in range(39)]
        self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/fd")), descriptors + 20)
        reply = server.request("POST", "/api/v1/traces", body=self.small)
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (503, "busy"))
        self.assertGreater(int(reply.headers["Retry-After"]), 0)
        # a resumable one is whole, and becomes a trace once there is room
        client = Client(server)
        place = client.start(len(self.small))
        self.assertEqual(client.patch(place, 0, self.small).status, 503)
        self.assertEqual(client.offset(place), len(self.small))
        self.assertEqual(server.terminate(), 0)
        server.preexec = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
        server.start()
        for trace in waiting:
            self.assertEqual(server.wait_ready(trace)["state"], "ready")
        wait_for(lambda: client.head(place).headers["Lacuna-Trace-Id"])
        row = server.request("POST", "/api/v1/traces?name=same&reuse=1", body=self.small)
        self.assertEqual((row.status, row.json()), (200, {"id": first, "state": "ready"}))

    def test_names_that_a_site_adds_reach_analysis_and_kernels(self):
        folder = tempfile.mkdtemp(prefix="lacuna-names-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "names")
        events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at * 100, "dur": 90,
                   "args": {"device": 0, "stream": 7}} for at in range(20) for name in ("acme_mma_64",)]
        trace = json.dumps({"deviceProperties": [{"id": 0, "name": "Test GPU"}], "traceEvents": events}).encode()

        def seen(server):
            id = server.upload(trace)
            self.assertEqual(server.wait_ready(id)["state"], "ready")
            return (server.api(f"/traces/{id}/analysis")["kernels"]["unknown_pct"],
                    server.api(f"/traces/{id}/kernels")["kernels"][0]["family"])

        self.assertEqual(seen(self.start()), (100.0, "other"))
        with open(path, "w") as file:
            file.write('LAC_NAME_ROW(FAMILY, LAC_FAMILY_GEMM, "^acme_mma", "acme_mma_4")\n')
        self.assertEqual(seen(self.start("--names", path)), (0.0, "gemm"))
        with open(path, "w") as file:
            file.write("LAC_NAME_ROW(FAMILY, 7)\n")
        with self.assertRaisesRegex(RuntimeError, "names: line 1"):
            self.start("--names", path)

    def test_a_clock_that_jumps_ends_no_upload(self):
        folder = tempfile.mkdtemp(prefix="lacuna-clock-")
        self.addCleanup(shutil.rmtree, folder)
        try:
            clock = SkewedClock(folder)
        except OSError as error:
            self.skipTest(f"no C compiler for the clock ({error})")
        server = self.start(environment=clock.environment)
        client = Client(server)
        jumps = (3 * DAY_S, -3 * DAY_S, -60 * 365 * DAY_S, 400 * 365 * DAY_S, 0)
        part = len(self.small) // (2 * len(jumps))
        place = client.start(len(self.small))
        for number, jump in enumerate(jumps):
            clock.set(jump)
            at = 2 * number * part
            reply = client.patch(place, at, self.small[at:at + part])
            self.assertEqual(reply.status, 204, (jump, reply.body))
            server.kill()
            server.start()
            self.assertEqual(client.offset(place), at + part, jump)
            self.assertEqual(client.patch(place, at + part, self.small[at + part:at + 2 * part]).status, 204, jump)
            server.api("/traces")
        at = 2 * len(jumps) * part
        if at < len(self.small):
            self.assertEqual(client.patch(place, at, self.small[at:]).status, 204)
        self.assertEqual(server.wait_ready(client.head(place).headers["Lacuna-Trace-Id"])["state"], "ready")


def state_of(pid):
    """Letter of a process's state; X when it has gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0]
    except OSError:
        return "X"


if __name__ == "__main__":
    main()
