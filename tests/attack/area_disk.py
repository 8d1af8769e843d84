"""A disk that is full, read-only or gone, in every moment of the service and under every command that writes."""
import os
import pwd
import shutil
import subprocess
import time

import server_harness
from server_harness import Server, importers, make_trace, status_of, wait_for
from small_disk import SmallDisk
from test_uploads import Client

LEAVE = (0, 4096, 20_000, 100_000, 400_000, 2_000_000)


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}


class Disk:
    """A server on a small disk."""

    def __init__(self, area):
        self.area = area
        self.disk = SmallDisk(area.folder)
        self.log = os.path.join(area.folder, "server.log")
        self.server = Server("--log-level", "error", "--import-workers", "1", data=self.disk.data, log=self.log)
        self.small, self.large = make_trace(), make_trace(steps=60, kernels=200)

    def close(self):
        try:
            self.server.close()
        finally:
            self.disk.close()

    def settled(self):
        """What is wrong once there is room: rows that stand still, folders of nobody."""
        problems = []
        try:
            wait_for(lambda: all(row["state"] in ("ready", "failed") for row in self.rows()), 60)
        except AssertionError:
            problems.append("stands still: " + str([(row["id"], row["state"]) for row in self.rows()]))
        for row in self.rows():
            if row["state"] == "failed" and not row["error"]["can_retry"]:
                problems.append(f"failed and not kept: {row['error']}")
            elif row["state"] == "failed":
                self.server.request("POST", f"/api/v1/traces/{row['id']}/retry")
        for row in self.rows():
            if self.server.wait_ready(row["id"], 120)["state"] != "ready":
                problems.append(f"does not become ready: {self.server.api('/traces/' + row['id'])['error']}")
            self.server.request("DELETE", "/api/v1/traces/" + row["id"])
        try:
            wait_for(lambda: not os.listdir(os.path.join(self.disk.data, "staging")), 20)
        except AssertionError:
            problems.append("staging is not empty")
        return problems

    def rows(self):
        return self.server.api("/traces?limit=1000")["traces"]

    def post(self, body, before_end):
        """An upload that calls a function before its last kilobyte; status and body of the reply."""
        with self.server.connect(60) as connection:
            connection.sendall(b"POST /api/v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                               % (self.server.key.encode(), len(body)))
            reply = b""
            try:
                connection.sendall(body[:-1000])
                before_end()
                connection.sendall(body[-1000:])
            except OSError:
                pass  # refused in the middle: the reply is there to be read
            try:
                while part := connection.recv(65536):
                    reply += part
            except OSError:
                pass
        return status_of(reply), reply


def bodies(run, tries):
    """Filled while the body comes, and before it is acknowledged."""
    problems = []
    for number in range(tries):
        run.disk.empty()
        if number % 2:
            status, reply = run.post(run.small, lambda: run.disk.fill(LEAVE[number % len(LEAVE)]))
        else:
            run.disk.fill((260 << 20) + LEAVE[number % len(LEAVE)])
            body = run.large + b" " * (1 << 20)
            status, reply = run.post(body, lambda: (time.sleep(0.1), run.disk.fill(LEAVE[number % len(LEAVE)])))
        if status not in (201, 507):
            problems.append(f"answered {status}: {reply[-200:]!r}")
        if status == 507 and b"insufficient_storage" not in reply:
            problems.append(f"507 without its code: {reply[-200:]!r}")
        if status == 201 and not run.rows():
            problems.append("201, and no trace")
    run.disk.empty()
    return problems + run.settled()


def imports(run, tries):
    """Filled while an import is under way: it fails by name, is kept, and is done when there is room."""
    problems = []
    for number in range(tries):
        run.disk.empty()
        trace = run.server.upload(run.large)
        end = time.monotonic() + 20
        while not importers(run.server.process.pid) and time.monotonic() < end and run.server.api("/traces/" + trace)["state"] == "importing":
            pass
        run.disk.fill(LEAVE[number % len(LEAVE)])
        if number % 3 == 0:
            time.sleep(0.5)
        try:
            row = run.server.wait_ready(trace, 20)
        except AssertionError:
            run.disk.empty()  # its row cannot be written before there is room
            row = run.server.wait_ready(trace, 60)
        if row["state"] == "failed" and row["error"]["code"] not in ("no_space", "io", "crashed"):
            problems.append(f"{row['error']}")
    run.disk.empty()
    return problems + run.settled()


def deletions(run, tries):
    """What takes the room can be deleted."""
    problems = []
    for number in range(tries):
        run.disk.empty()
        trace = run.server.upload(run.small)
        run.server.wait_ready(trace)
        run.disk.fill(LEAVE[number % 3])
        reply = run.server.request("DELETE", "/api/v1/traces/" + trace)
        if reply.status != 204:
            problems.append(f"DELETE answers {reply.status}: {reply.body[:200]!r}")
        elif run.server.get("/api/v1/traces/" + trace).status != 404:
            problems.append("a deleted trace is there")
    run.disk.empty()
    return problems + run.settled()


def resumables(run, tries):
    """An offset that was answered does not go back, and the upload goes on when there is room."""
    problems = []
    client = Client(run.server)
    for number in range(tries):
        run.disk.empty()
        body = run.large
        place = client.start(len(body))
        half = len(body) // 2
        if client.patch(place, 0, body[:half]).status != 204:
            problems.append("a first part is refused though there is room")
            continue
        run.disk.fill(LEAVE[number % len(LEAVE)])
        reply = client.patch(place, half, body[half:])
        if reply.status not in (204, 507):
            problems.append(f"PATCH answers {reply.status}: {reply.body[:200]!r}")
        head = client.head(place)
        offset = int(head.headers["Upload-Offset"])
        if offset < half:
            problems.append(f"an offset went back from {half} to {offset}")
        run.disk.empty()
        if offset < len(body):
            reply = wait_for(lambda: (lambda r: r if r.status != 423 else None)(client.patch(place, offset, body[offset:])))
            if reply.status != 204:
                problems.append(f"does not go on: {reply.status} {reply.body[:200]!r}")
        wait_for(lambda: client.head(place).headers.get("Lacuna-Trace-Id"), 60)
    return problems + run.settled()


def starts(run, tries):
    """A start on a full disk serves, or says why and what to do; with room nothing is missing."""
    problems = []
    for number in range(tries):
        run.disk.empty()
        trace = run.server.upload(run.small)
        if number % 2:
            run.server.wait_ready(trace)
        run.disk.fill(LEAVE[number % 3])
        run.server.kill()
        size = os.path.getsize(run.log)
        try:
            run.server.start()
        except RuntimeError:
            said = open(run.log, errors="replace").read()[size:].strip()
            if len(said.splitlines()) != 1 or run.disk.data not in said:
                problems.append(f"does not start, and says: {said[-300:]!r}")
            run.disk.empty()
            run.server.start()
        run.disk.empty()
        if run.server.wait_ready(trace)["state"] == "failed":
            run.server.request("POST", f"/api/v1/traces/{trace}/retry")
        if run.server.wait_ready(trace)["state"] != "ready":
            problems.append(f"lost over a start: {run.server.api('/traces/' + trace)['error']}")
    return problems + run.settled()


def commands(run):
    """Commands that write: a status and one line, and a job that is not disturbed."""
    problems, tried = [], 0
    disk, program = run.disk, server_harness.PROGRAM
    inputs = os.path.join(run.area.folder, "trace.json")
    with open(inputs, "wb") as file:
        file.write(run.large)
    other = os.path.join(disk.path, "other")
    lines = [([program, "import", "--data", other, inputs], None), ([program, "demo", os.path.join(disk.path, "demo")], None)]
    lines += [([program, "export", inputs, "--to", form, "-o", os.path.join(disk.path, "out." + form)], None)
              for form in ("chrome", "folded", "speedscope", "sqlite", "html", "markdown")]
    lines.append(([program, "run", "-o", os.path.join(disk.path, "recording"), "--", "/bin/sh", "-c", "echo done; exit 5"], 5))
    for leave in (0, 8192, 300_000):
        for command, status in lines:
            disk.empty()
            disk.fill(leave)
            done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, cwd=run.area.folder)
            tried += 1
            if status is None:
                if done.returncode not in (0, 1):
                    problems.append(f"{command[1]}: status {done.returncode}: {done.stderr[-200:]!r}")
                elif done.returncode == 1 and len(done.stderr.strip().splitlines()) != 1:
                    problems.append(f"{command[1:4]}: not one line: {done.stderr[-300:]!r}")
            elif done.returncode != status or "done" not in done.stdout:
                problems.append(f"{command[1]}: the job's status {status} became {done.returncode}: {done.stderr[-200:]!r}")
            for name in ("other", "demo", "recording"):
                shutil.rmtree(os.path.join(disk.path, name), ignore_errors=True)
    disk.empty()
    return tried, problems


def read_only(run):
    """A folder that cannot be written, at a start."""
    problems = []
    server = run.server
    trace = server.upload(run.small)
    server.wait_ready(trace)
    server.terminate()
    # an importing process dies a moment after its server
    wait_for(lambda: subprocess.run(["mount", "-o", "remount,ro", run.disk.path], capture_output=True).returncode == 0, 20)
    size = os.path.getsize(run.log)
    try:
        server.start()
        problems.append("starts on a read-only folder")
        server.terminate()
    except RuntimeError:
        said = open(run.log, errors="replace").read()[size:].strip()
        if len(said.splitlines()) != 1 or run.disk.data not in said:
            problems.append(f"a read-only folder: {said[-300:]!r}")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", run.disk.path], check=True)
    server.start()
    if server.get(f"/api/v1/traces/{trace}/analysis").status != 200:
        problems.append("a trace is not there afterwards")
    return 1, problems + run.settled()


def not_ours(run):
    """Folders that may not be written any more, below a server of a plain user."""
    nobody = pwd.getpwnam("nobody")
    data = os.path.join(run.disk.path, "nobody")
    program = os.path.join(run.area.folder, "lacuna")
    problems = []
    os.chmod(run.area.folder, 0o755)
    shutil.copy(server_harness.PROGRAM, program)
    os.makedirs(data)
    os.chown(data, nobody.pw_uid, nobody.pw_gid)

    def begin():
        os.setgroups([])
        os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
        os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)

    log = os.path.join(run.area.folder, "nobody")
    os.makedirs(log)
    os.chmod(log, 0o777)
    server_harness.PROGRAM, before = program, server_harness.PROGRAM
    server = Server("--log-level", "error", data=data, log=os.path.join(log, "log"), preexec=begin)
    server_harness.PROGRAM = before
    folders = [os.path.join(data, name) for name in ("", "staging", "traces", "originals", "uploads")]
    try:
        trace = server.upload(run.small)
        server.wait_ready(trace)
        for folder in folders:
            os.chmod(folder, 0o555)
        for method, path, body in (("POST", "/api/v1/traces", run.small), ("POST", "/api/v1/uploads", None)):
            reply = server.request(method, path, body=body, headers={"Tus-Resumable": "1.0.0", "Upload-Length": "10"})
            if reply.status not in (500, 503, 507) or "error" not in reply.json():
                problems.append(f"{method} {path} answers {reply.status}: {reply.body[:200]!r}")
        if server.get(f"/api/v1/traces/{trace}/analysis").status != 200:
            problems.append("a trace cannot be read")
        for folder in folders:
            os.chmod(folder, 0o700)
        if server.wait_ready(server.upload(run.small))["state"] != "ready":
            problems.append("does not recover")
        if server.terminate() != 0:
            problems.append("did not stop with status 0")
    finally:
        server.close()
        shutil.rmtree(data, ignore_errors=True)
    return 3, problems


def removed(run):
    """The folder goes away below a server."""
    problems = []
    server = run.server
    trace = server.upload(run.small)
    server.wait_ready(trace)
    for name in os.listdir(run.disk.data):
        path = os.path.join(run.disk.data, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    for path, body in (("/api/v1/traces", run.small), ("/api/v1/uploads", None)):
        reply = server.request("POST", path, body=body, headers={"Tus-Resumable": "1.0.0", "Upload-Length": "10"})
        if reply.status not in (201, 500, 503, 507):
            problems.append(f"POST {path} without a folder answers {reply.status}")
    for path in (f"/api/v1/traces/{trace}", f"/api/v1/traces/{trace}/analysis", "/healthz", "/api/v1/traces"):
        if server.get(path).status not in (200, 404, 500, 503):
            problems.append(f"GET {path} without a folder answers {server.get(path).status}")
    if server.terminate() != 0:
        problems.append("did not stop with status 0")
    server.start()
    return 6, problems


def attack(area):
    why = SmallDisk.why_not()
    if why:
        area.skip("a full, read-only or removed disk", why)
        area.row("a disk that is removed or full: nothing to try it on", 1, [])
        return
    run = Disk(area)
    tries = max(2, min(12, int(area.seconds / 60)))
    try:
        for name, what in (("full in a body and at its commit", bodies), ("full in an import", imports), ("full in a deletion", deletions),
                           ("full in a resumable upload", resumables), ("full at a start", starts)):
            area.row(name, tries, what(run, tries))
        area.row("full under import demo export run", *commands(run))
        area.row("read-only at a start", *read_only(run))
        area.row("folders that may not be written any more", *not_ours(run))
        area.row("removed while serving", *removed(run))
    finally:
        run.close()
