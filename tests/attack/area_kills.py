"""kill -9 at random moments of uploads, imports, deletions and starts: what was acknowledged is there, what was deleted is not.

1,000 kills, 50 of them on a full disk; fewer where the time is short.
"""
import hashlib
import http.client
import os
import random
import re
import subprocess
import threading
import time

import server_harness
from server_harness import Server, make_trace, status_of
from small_disk import SmallDisk
from test_uploads import Client

KILLS = 1000
KILLS_FULL = 50


class Known:
    """What the server has promised so far."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged = {}  # trace -> sha256
        self.deleted = set()
        self.offsets = {}  # place of an upload -> (body, offset that was answered)
        self.problems = []

    def tell(self, text):
        with self.lock:
            self.problems.append(text)


class Worker(threading.Thread):
    """One client: whole bodies, resumable uploads, deletions, until the server is gone."""

    def __init__(self, server, known, bodies, rng):
        super().__init__(daemon=True)
        self.server, self.known, self.bodies, self.rng = server, known, bodies, rng
        self.client = Client(server)
        self.stop = False

    def run(self):
        while not self.stop:
            try:
                self.rng.choice((self.whole, self.whole, self.resumable, self.resumable, self.delete))()
            except (OSError, http.client.HTTPException):
                if self.stop or self.server.process.poll() is not None:
                    return
                time.sleep(0.01)

    def whole(self):
        body = self.rng.choice(self.bodies)
        with self.server.connect(10) as connection:
            connection.sendall(b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                               % (self.server.key.encode(), len(body)))
            at = 0
            while at < len(body):
                step = self.rng.randrange(1, 300_000)
                connection.sendall(body[at:at + step])
                at += step
            reply = b""
            while part := connection.recv(65536):
                reply += part
        found = re.search(rb'"id":"([a-z2-7]{26})"', reply)
        if status_of(reply) == 201 and found:
            with self.known.lock:
                self.known.acknowledged[found.group(1).decode()] = hashlib.sha256(body).hexdigest()

    def resumable(self):
        with self.known.lock:
            place = self.rng.choice(list(self.known.offsets)) if self.known.offsets and self.rng.random() < 0.7 else None
            body, answered = self.known.offsets.get(place, (None, 0))
        if place is None:
            body = self.rng.choice(self.bodies)
            reply = self.client.create(len(body))
            if reply.status == 201:
                with self.known.lock:
                    self.known.offsets[reply.headers["Location"]] = (body, 0)
            return
        head = self.client.head(place)
        if head.status == 410 or head.status == 404:
            with self.known.lock:
                if place in self.known.offsets:
                    self.known.problems.append(f"an upload is gone: {place} {head.status}")
                    del self.known.offsets[place]
            return
        if head.status != 200:
            return
        offset = int(head.headers["Upload-Offset"])
        if offset < answered:
            self.known.tell(f"an offset went back from {answered} to {offset}")
        trace = head.headers.get("Lacuna-Trace-Id")
        if trace is None and offset < len(body):
            step = self.rng.randrange(1, len(body))
            reply = self.client.patch(place, offset, body[offset:offset + step])
            if reply.status != 204:
                return
            offset, trace = int(reply.headers["Upload-Offset"]), reply.headers.get("Lacuna-Trace-Id")
        with self.known.lock:
            if place not in self.known.offsets:
                return
            if trace is not None:
                del self.known.offsets[place]
                if trace not in self.known.deleted:
                    self.known.acknowledged[trace] = hashlib.sha256(body).hexdigest()
            else:
                self.known.offsets[place] = (body, max(offset, self.known.offsets[place][1]))

    def delete(self):
        with self.known.lock:
            if len(self.known.acknowledged) < 4:
                return
            trace = self.rng.choice(list(self.known.acknowledged))
            sha = self.known.acknowledged.pop(trace)  # while it is asked for, nobody knows
        reply = self.server.request("DELETE", "/api/v1/traces/" + trace)
        with self.known.lock:
            if reply.status in (204, 404):
                self.known.deleted.add(trace)
            elif reply.status in (500, 507, 503):
                self.known.acknowledged[trace] = sha


def rows_of(server):
    rows, after = {}, ""
    while True:
        page = server.api("/traces?limit=1000" + after)
        rows.update({row["id"]: row for row in page["traces"]})
        if not page["next"]:
            return rows
        after = "&after=" + page["next"]


def check(server, known):
    """Everything that was promised, after a start."""
    end = time.monotonic() + 30
    rows = rows_of(server)
    # a whole upload is made a trace by the start itself, for a moment that is being received
    while any(row["state"] == "receiving" for row in rows.values()) and time.monotonic() < end:
        time.sleep(0.05)
        rows = rows_of(server)
    with known.lock:
        acknowledged, deleted = dict(known.acknowledged), set(known.deleted)
    for trace, sha in acknowledged.items():
        if trace not in rows:
            known.tell(f"an acknowledged trace is gone: {trace}")
        elif rows[trace]["sha256"] != sha:
            known.tell(f"another sha256: {trace}")
    for trace in deleted & set(rows):
        known.tell(f"a deleted trace is there: {trace} {rows[trace]['state']}")
    for row in rows.values():
        if row["state"] == "receiving":
            known.tell(f"half of an upload is shown: {row['id']}")
        if row["state"] == "failed" and not (row["error"]["fault"] == "host" and row["error"]["can_retry"]):
            known.tell(f"{row['id']} failed: {row['error']}")


def settle_one(server, known, trace):
    """Becomes ready, when it failed by trying again; then it goes."""
    for _ in range(3):
        row = server.wait_ready(trace, 120)
        if row["state"] == "ready":
            break
        server.request("POST", f"/api/v1/traces/{trace}/retry")
    if row["state"] != "ready":
        known.tell(f"{trace} does not become ready: {row['error']}")
    elif server.get(f"/api/v1/traces/{trace}/analysis").status != 200:
        known.tell(f"{trace} is ready, but has no analysis")
    if server.request("DELETE", "/api/v1/traces/" + trace).status != 204:
        known.tell(f"{trace} cannot be deleted")
    with known.lock:
        known.acknowledged.pop(trace, None)
        known.deleted.add(trace)


def settle(server, known):
    """All become ready and are deleted, until no file is left.

    Again and again: a start makes a trace of a resumable upload whose last byte had come, which may be after the first list.
    """
    end = time.monotonic() + 120
    while True:
        for trace in rows_of(server):
            settle_one(server, known, trace)
        left = [os.path.join(folder, name) for folder in ("traces", "originals", "staging") for name in os.listdir(os.path.join(server.data, folder))]
        if not left:
            return
        if time.monotonic() > end:
            known.tell(f"{left[:3]} are left when all is deleted, and no row names them")
            return
        time.sleep(0.05)


def kill_while_starting(server, rng):
    """Starts and kills before it serves, sometimes."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
    process = subprocess.Popen([server_harness.PROGRAM, "serve", "--data", server.data, "--listen", "127.0.0.1:0"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment)
    time.sleep(rng.random() * 0.06)
    process.kill()
    process.wait()


def rounds(area, share, kills, data, disk=None):
    """Kills until that many, or until the share of the time is over. Returns how many, and what broke."""
    rng = random.Random(area.random.random())
    bodies = [make_trace(), make_trace(steps=20, kernels=60), make_trace(steps=4, filler=2_000_000), make_trace(steps=60, kernels=150)]
    known = Known()
    end = time.monotonic() + area.time_left(share)
    os.makedirs(data, exist_ok=True)
    server = Server("--log-level", "error", "--import-workers", "2", data=data, log=os.path.join(area.folder, "server.log"))
    done = 0
    try:
        while done < kills and time.monotonic() < end:
            workers = [Worker(server, known, bodies, random.Random(rng.random())) for _ in range(2)]
            for worker in workers:
                worker.start()
            time.sleep(rng.choice((0.0, 0.05, 0.2, 0.5)) + rng.random() * 0.2)
            if disk is not None:
                disk.fill(rng.choice((0, 4096, 65536, 300_000, 2_000_000)))
                time.sleep(rng.random() * 0.4)
            server.kill()
            done += 1
            for worker in workers:
                worker.stop = True
            for worker in workers:
                worker.join(30)
            while rng.random() < 0.3 and done < kills:
                kill_while_starting(server, rng)
                done += 1
            if disk is not None and rng.random() < 0.7:
                disk.empty()
            try:
                server.start()
            except RuntimeError as error:
                if disk is None:
                    raise
                if "space" not in str(error) and "full" not in str(error):
                    known.tell(f"a start on a full disk says: {str(error)[-200:]}")
                disk.empty()
                server.start()
            if disk is not None:
                disk.empty()
            check(server, known)
            if len(known.acknowledged) > 30:
                settle(server, known)
        settle(server, known)
        if server.terminate() != 0:
            known.tell("it did not stop with status 0")
    finally:
        server.close()
    return done, known.problems


def attack(area):
    done, problems = rounds(area, 0.8, KILLS - KILLS_FULL, os.path.join(area.folder, "data"))
    area.row("SIGKILL in uploads, imports, deletions, starts", done, problems)
    why = SmallDisk.why_not()
    if why:
        area.skip("SIGKILL on a full disk", why)
        return
    disk = SmallDisk(area.folder)
    try:
        done, problems = rounds(area, 1.0, KILLS_FULL, disk.data, disk)
    finally:
        disk.close()
    area.row("SIGKILL on a full disk", done, problems)
