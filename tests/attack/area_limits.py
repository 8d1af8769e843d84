"""Limits of the host and clocks that jump: a server under them serves, or says which limit it is; nothing that was acknowledged is lost."""
import os
import pwd
import resource
import shutil
import time

import server_harness
from server_harness import Server, SkewedClock, children, make_trace
from test_uploads import Client

MIB = 1 << 20
DAY_S = 86400
LIMITS = [
    ("ulimit -n", resource.RLIMIT_NOFILE, (64, 32, 24, 16)),
    ("ulimit -v", resource.RLIMIT_AS, tuple(mib * MIB for mib in (2000, 1000, 480, 300, 160, 80))),
    ("ulimit -t", resource.RLIMIT_CPU, (1800, 60, 5)),
    ("ulimit -f", resource.RLIMIT_FSIZE, (1_000_000_000, 50_000_000, 4_000_000, 1_000_000, 300_000)),
    ("ulimit -u", resource.RLIMIT_NPROC, (200, 20, 5)),
    ("ulimit -c", resource.RLIMIT_CORE, (0,)),
]


class Host:
    """Starts servers as a user, under limits."""

    def __init__(self, area, user):
        self.folder = os.path.join(area.folder, user)
        self.entry = pwd.getpwnam(user)
        self.number = 0
        os.makedirs(self.folder)
        os.chmod(area.folder, 0o755)
        os.chown(self.folder, self.entry.pw_uid, self.entry.pw_gid)
        self.program = os.path.join(area.folder, "lacuna")
        shutil.copy(server_harness.PROGRAM, self.program)
        os.chmod(self.program, 0o755)

    def serve(self, limits, data=None, environment=None, flags=()):
        self.number += 1
        if data is None:
            data = os.path.join(self.folder, f"data{self.number}")
            os.makedirs(data)
            os.chown(data, self.entry.pw_uid, self.entry.pw_gid)

        def begin():
            for what, value in limits:
                resource.setrlimit(what, (value, value))
            if self.entry.pw_uid != os.geteuid():
                os.setgroups([])
                os.setresgid(self.entry.pw_gid, self.entry.pw_gid, self.entry.pw_gid)
                os.setresuid(self.entry.pw_uid, self.entry.pw_uid, self.entry.pw_uid)

        server_harness.PROGRAM, before = self.program, server_harness.PROGRAM
        try:
            return Server("--log-level", "error", *flags, data=data, log=os.path.join(self.folder, f"log{self.number}"), preexec=begin, environment=environment)
        finally:
            server_harness.PROGRAM = before

    def said(self):
        """What the last one said that did not start."""
        with open(os.path.join(self.folder, f"log{self.number}"), errors="replace") as file:
            return file.read().strip()


def under_a_limit(host, what, resource_number, value, problems):
    """A server under a limit: it does not start and says why in a line, or imports, or says what to do."""
    name = f"{what} {value} as {host.entry.pw_name}"
    try:
        server = host.serve(((resource_number, value),))
    except RuntimeError:
        said = host.said()
        # below what a program needs to be loaded at all the system speaks, not we
        if len(said.splitlines()) != 1:
            problems.append(f"{name}: does not start, and says {said[-300:]!r}")
        return
    kept = []
    try:
        for body in (make_trace(), make_trace(steps=30, kernels=100)):
            reply = server.request("POST", "/api/v1/traces", body=body)
            if reply.status == 201:
                kept.append(reply.json()["id"])
            elif reply.status not in (500, 503, 507) or "error" not in reply.json():
                problems.append(f"{name}: an upload is answered {reply.status}: {reply.body[:200]!r}")
        for trace in kept:
            row = server.wait_ready(trace, 120)
            if row["state"] == "failed":
                if not row["error"]["can_retry"]:
                    problems.append(f"{name}: failed and not kept: {row['error']}")
                if "ulimit" not in row["error"]["message"]:
                    problems.append(f"{name}: does not name the limit: {row['error']}")
        if server.process.poll() is not None:
            problems.append(f"{name}: the server ended with {server.process.returncode}")
        server.kill()
        server.preexec = None if os.geteuid() == 0 else server.preexec
        if host.entry.pw_uid == os.geteuid():  # without the limit all is there
            server.start()
            for trace in kept:
                server.request("POST", f"/api/v1/traces/{trace}/retry")
                if server.wait_ready(trace, 120)["state"] != "ready":
                    problems.append(f"{name}: lost: {server.api('/traces/' + trace)['error']}")
    except (OSError, AssertionError) as error:
        problems.append(f"{name}: {error!r}")
    finally:
        server.close()


def queue_over_a_start(host, problems):
    """Many imports wait, and the next server has few descriptors."""
    server = host.serve((), flags=("--import-workers", "1"))
    try:
        body = make_trace()
        traces = [server.upload(body) for _ in range(200)]
        server.kill()
        server.preexec = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        server.start()
        for trace in traces:
            if server.wait_ready(trace, 120)["state"] != "ready":
                problems.append(f"not imported: {server.api('/traces/' + trace)['error']}")
        if len(children(server.process.pid)) > 1:
            problems.append("processes are left")
    finally:
        server.close()


def jumps(area, host, problems):
    """The time of day of a server that runs, and of one that starts, goes anywhere."""
    clock = SkewedClock(area.folder)
    os.chmod(clock.path, 0o644)
    server = host.serve((), environment=clock.environment)
    tried = 0
    try:
        client = Client(server)
        body = make_trace(steps=30)
        places = {}
        for jump in (0, 3 * DAY_S, -3 * DAY_S, -60 * 365 * DAY_S, 400 * 365 * DAY_S, 0, 86400 * 2, -86400 * 2, 0):
            clock.set(jump)
            for restart in (False, True):
                if restart:
                    server.kill()
                    server.start()
                tried += 1
                for place, offset in list(places.items()):
                    head = client.head(place)
                    if head.status != 200 or int(head.headers["Upload-Offset"]) != offset:
                        problems.append(f"jump of {jump} s, restart {restart}: an upload at {offset} answers {head.status} {dict(head.headers)}")
                        del places[place]
                        continue
                    part = body[offset:offset + 3000]
                    if client.patch(place, offset, part).status != 204:
                        problems.append(f"jump of {jump} s: an upload does not go on")
                    places[place] = offset + len(part)
                place = client.start(len(body))
                places[place] = 0
                row = server.wait_ready(server.upload(make_trace()))
                if row["state"] != "ready":
                    problems.append(f"jump of {jump} s: {row['error']}")
                listed, after = [], ""
                while True:
                    page = server.api("/traces?limit=3" + after)
                    listed += [row["id"] for row in page["traces"]]
                    if not page["next"]:
                        break
                    after = "&after=" + page["next"]
                if len(listed) != tried or len(set(listed)) != tried:
                    problems.append(f"jump of {jump} s: the list shows {len(listed)} of {tried}")
        for place, offset in places.items():
            if client.patch(place, offset, body[offset:]).status != 204 or "Lacuna-Trace-Id" not in client.head(place).headers:
                problems.append("an upload does not become a trace after all")
    finally:
        server.close()
    return tried


def attack(area):
    users = ("root", "nobody") if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name,)
    hosts = [Host(area, user) for user in users]
    for what, number, values in LIMITS:
        problems, tried = [], 0
        for host in hosts:
            for value in values:
                if what == "ulimit -u" and host.entry.pw_uid == 0:
                    continue  # root is not bound by it
                under_a_limit(host, what, number, value, problems)
                tried += 1
                if area.time_left() == 0:
                    break
        if tried:
            area.row(f"{what} {' '.join(str(value) for value in values)}"[:58], tried, problems)
    problems = []
    queue_over_a_start(hosts[0], problems)
    area.row("200 imports that wait, and a start with 64 descriptors", 1, problems)
    problems = []
    begin = time.monotonic()
    tried = jumps(area, hosts[0], problems)
    area.row(f"clocks at +3 days, -3 days, 1966, 2426 ({time.monotonic() - begin:.0f} s)", tried, problems)
