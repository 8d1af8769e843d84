"""The service over HTTP: framing, pipelines, damaged requests, ids, other people's pages, slow readers, crowds, chaos."""
import itertools
import json
import os
import random
import re
import resource
import socket
import threading
import time

import server_harness
from server_harness import Server, hear, make_trace, status_of

HOST = b"Host: 127.0.0.1\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
OK = b'"status":"ok"'


def attack(area):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    try:
        with_server(area, area.release, (), framing, pipelining, names, methods, other_pages)
        with_server(area, area.sanitized, (), fuzz)
        with_server(area, area.release, ("--reply-memory", "256M"), slow_readers)
        with_server(area, area.release, ("--idle-timeout", "600000", "--keyless-timeout", "600000"), crowd)
        with_server(area, area.release, (), event_streams)
        with_server(area, area.sanitized, (), chaos)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def with_server(area, build, flags, *attacks):
    program = os.path.join(build, "lacuna")
    if not os.path.exists(program):
        area.skip(attacks[0].__name__, f"{program} is not built")
        return
    server_harness.PROGRAM = program
    server = Server("--log-level", "warn", *flags)
    try:
        for each in attacks:
            each(area, server)
        status = server.terminate(timeout=120)
        if status != 0:
            area.row("the server stops with status 0", 1, [f"status {status} after {attacks[-1].__name__}"])
    finally:
        server.close()  # raises on any report of a sanitizer


def bearer(server):
    return b"Authorization: Bearer " + server.key.encode() + b"\r\n"


def statuses(reply):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", reply)]


def memory_mb(server, field="VmRSS"):
    with open(f"/proc/{server.process.pid}/status") as file:
        return int(re.search(field + r":\s+(\d+)", file.read()).group(1)) // 1024


def metric(server, name):
    return int(re.search(rf"^{name} (\d+)$", server.get("/metrics").body.decode(), re.M).group(1))


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


# -- requests that could be read in two ways ---------------------------------------------------------

def framing(area, server):
    post = b"POST /api/v1/session HTTP/1.1\r\n" + HOST
    get = b"GET /healthz HTTP/1.1\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    refused = [get + fields + b"\r\n" for fields in (
        b" X: y\r\n" + HOST, HOST + b"X: y\r\n z\r\n", HOST + b"X: y\r\n\tz\r\n", HOST + b"X: a\rb\r\n", HOST + b"X: a\r\r\n", HOST + b": a\r\n", HOST + b"X\r\n",
        HOST + b"X : y\r\n", HOST + b"X\t: y\r\n", HOST + b"X\x00: y\r\n", HOST + b"X: \x00\r\n", HOST + b"X: \x7f\r\n", HOST + b"X: a\n", HOST + b"X(: y\r\n",
        b"Host: 127.0.0.1\n", b"Host : 127.0.0.1\r\n", b"")]
    refused += [post + lengths + b"\r\n0\r\n\r\n" for lengths in (
        b"Content-Length: 5\r\nContent-Length: 5\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"Content-Length\t: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length : 5\r\n",
        b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding\t: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: \"chunked\"\r\n", b"Transfer-Encoding:\r\n chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Transfer-Encoding: identity\r\n", b"Content-Length: +5\r\n", b"Content-Length: -5\r\n",
        b"Content-Length: 0x5\r\n", b"Content-Length: 5,5\r\n", b"Content-Length: 5 5\r\n", b"Content-Length:\r\n", b"Content-Length: 18446744073709551621\r\n",
        b"Content-Length: 5\r\n Transfer-Encoding: chunked\r\n")]
    refused += [chunked + body for body in (
        b"5\nhello\r\n0\r\n\r\n", b"5;\nhello\r\n0\r\n\r\n", b"5;a=b\nhello\r\n0\r\n\r\n", b"5\rhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b" 5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n", b"-1\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhelloX\r\n0\r\n\r\n",
        b"\r\n\r\n", b"g\r\n\r\n", b"ffffffffffffffff\r\n", b"10000000000000005\r\nhello\r\n0\r\n\r\n", b"5;" + b"a" * 5000 + b"\r\nhello\r\n0\r\n\r\n",
        b"0\r\nT: x\n\r\n", b"0\r\n T: x\r\n\r\n", b"0\r\n: x\r\n\r\n", b"0\r\nT : x\r\n\r\n", b"0\n\n")]
    refused += [line + b"\r\n" + HOST + b"\r\n" for line in (
        b"GET  /healthz HTTP/1.1", b"GET /healthz  HTTP/1.1", b"GET /healthz HTTP/1.1 ", b"GET\t/healthz HTTP/1.1", b" GET /healthz HTTP/1.1", b"GET /healthz",
        b"GET /healthz http/1.1", b"GET /healthz HTTP/1.2", b"GET /healthz HTTP/2.0", b"GET /healthz HTTP/11", b"GET /healthz HTTP/1.1x", b"PRI * HTTP/2.0",
        b"CONNECT 127.0.0.1:80 HTTP/1.1", b"GET http://evil/healthz HTTP/1.1", b"G(T /healthz HTTP/1.1", b"\r\n\r\nGET /healthz HTTP/1.1")]
    problems = []
    for request in refused:
        reply = server.raw(request + HEALTH, 1.0)
        if OK in reply or not statuses(reply) or statuses(reply)[0] not in (400, 403, 404, 405, 413, 505):
            problems.append(f"{request[:120]!r}: {statuses(reply)}, {reply[-80:]!r}")
    area.row("framing that can be read in two ways, a request behind it", len(refused), problems)
    taken = [b"\r\n" + HEALTH, get + HOST + b"X:\r\nY: \ta\tb\xff \r\n\r\n", get + HOST + b"X: " + b"y" * 19000 + b"\r\n\r\n", b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n",
             get + HOST + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", get + HOST + b"Expect: 100-continue\r\n\r\n", get + HOST + b"Content-Length: 0\r\n\r\n"]
    problems = []
    for request in taken:
        reply = server.raw(request + get + HOST + b"Connection: close\r\n\r\n", 2.0)
        if reply.count(OK) != (1 if b"HTTP/1.0" in request else 2):
            problems.append(f"{request[:120]!r}: {statuses(reply)}")
    area.row("framing that is allowed, answered in order", len(taken), problems)


def pipelining(area, server):
    problems = []
    listing = b"GET /api/v1/traces HTTP/1.1\r\n" + HOST + bearer(server) + b"\r\n"
    for count in (200, 5000):
        wanted = [OK, b'"traces":['] * (count // 2)
        with server.connect(60) as connection:
            sender = threading.Thread(target=connection.sendall, args=((HEALTH + listing) * (count // 2) + b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",))
            sender.start()
            reply = hear(connection, 60)
            sender.join()
        if re.findall(rb'"status":"ok"|"traces":\[', reply) != wanted + [OK]:
            problems.append(f"{count} requests: {len(statuses(reply))} replies, or not in order")
    reply = server.raw(b"HEAD /api/v1/events HTTP/1.1\r\n" + HOST + bearer(server) + b"\r\n" + HEALTH, 2)
    if not re.match(rb"HTTP/1\.1 200 OK\r\n(?s:.*?)Connection: close\r\n(?s:.*?)\r\n\r\n$", reply) or reply.count(b"\r\n\r\n") != 1:
        problems.append(f"HEAD of the events has a body: {reply[-60:]!r}")
    area.row("200 and 5000 requests at once; HEAD of the events", 3, problems)


# -- what is asked for -------------------------------------------------------------------------------

def names(area, server):
    hostile = ["..", ".", "%2e%2e", "%2e%2e%2f", "..%2f", "%252e%252e", "..%5c", "%c0%ae%c0%ae", "....//", "..;", "%00", "a%00b", "' OR 1=1--", "1;DROP TABLE trace", "a" * 300,
               "A" * 26, "a" * 25, "a" * 27, "%e2%80%ae", "0" * 26, "é" * 13, "local.token", "catalog.db"]
    routes = ["/api/v1/traces/{}", "/api/v1/traces/{}/tracks", "/api/v1/traces/{}/report?format=html", "/api/v1/runs/{}", "/api/v1/uploads/{}", "/{}", "/assets/{}", "/t/{}"]
    problems, tried = [], 0
    for route, name in itertools.product(routes, hostile):
        target = route.format(name).replace(" ", "%20").encode()
        reply = server.raw(b"GET " + target + b" HTTP/1.1\r\n" + HOST + bearer(server) + b"Connection: close\r\n\r\n", 5)
        tried += 1
        is_page = status_of(reply) == 200 and b"<!doctype html>" in reply.lower() and not route.startswith("/api/")
        if (status_of(reply) not in (400, 404, 414) and not is_page) or server.key.encode() in reply or b"SQLite" in reply or b"sqlite" in reply:
            problems.append(f"{target[:100]!r}: {status_of(reply)}")
    area.row("paths and ids that are none", tried, problems)


def methods(area, server):
    trace = server.upload(make_trace())
    server.wait_ready(trace)
    problems, tried = [], 0
    for path in ("/", "/healthz", "/metrics", "/openapi.json", "/api/v1/traces", f"/api/v1/traces/{trace}", f"/api/v1/traces/{trace}/analysis", f"/api/v1/traces/{trace}/names"):
        whole = server.get(path)
        part = server.get(path, headers={"Range": "bytes=0-9"})
        head = server.request("HEAD", path)
        tried += 3
        if (part.status, len(part.body) > 10) != (200, True):
            problems.append(f"Range of {path}: {part.status}, {len(part.body)} bytes")
        if head.status != 200 or head.body or (path != "/metrics" and head.headers["Content-Length"] != whole.headers["Content-Length"]):
            problems.append(f"HEAD of {path}: {head.status}")
        for method in ("OPTIONS", "TRACE"):
            if server.request(method, path).status not in (404, 405):
                problems.append(f"{method} of {path} is answered")
    area.row("Range, HEAD, OPTIONS, TRACE", tried, problems)


def other_pages(area, server):
    problems, tried = [], 0
    made = server.request("POST", "/api/v1/session", body=json.dumps({"key": server.key}), key=False)
    cookie = made.headers["Set-Cookie"].split(";")[0]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        if part not in made.headers["Set-Cookie"]:
            problems.append(f"the cookie is not {part}")
    if server.key in made.headers["Set-Cookie"]:
        problems.append("the cookie is the key")
    own = f"http://127.0.0.1:{server.port}"
    foreign = ["http://evil.example", "null", own + ".evil", f"http://127.0.0.1:{server.port + 1}", "file://", f"https://localhost:{server.port}", own.upper().replace("HTTP", "http") + "@evil"]
    for origin, (method, path), key in itertools.product(foreign, (("GET", "/api/v1/traces"), ("DELETE", "/api/v1/traces/" + "a" * 26), ("POST", "/api/v1/traces")), (True, False)):
        headers = {"Origin": origin, "Cookie": cookie}
        reply = server.request(method, path, headers=headers, key=key)
        tried += 1
        if reply.status != 403 or [name for name in reply.headers if name.lower().startswith("access-control")]:
            problems.append(f"{method} {path} of {origin}: {reply.status}")
    for site in ("cross-site", "same-site"):
        tried += 1
        if server.request("GET", "/api/v1/traces", headers={"Cookie": cookie, "Sec-Fetch-Site": site}, key=False).status != 403:
            problems.append(f"the cookie counts for a {site} request")
    for wrong in (server.key[:-1], server.key + "a", server.key.upper(), "", cookie.split("=")[1]):
        tried += 1
        if server.request("GET", "/api/v1/traces", headers={"Authorization": "Bearer " + wrong}).status != 401:
            problems.append(f"a wrong key of {len(wrong)} characters is taken")
    if server.key in server.log_text():
        problems.append("the key is in the log")
    area.row("pages of others, cookies, wrong keys", tried, problems)


# -- damaged requests, sanitized ---------------------------------------------------------------------

def fuzz(area, server):
    trace = server.upload(make_trace())
    server.wait_ready(trace)
    upload = server.request("POST", "/api/v1/uploads", headers={"Tus-Resumable": "1.0.0", "Upload-Length": "100000"}).json()["id"]
    draw, problems, tried = area.random, [], 0
    paths = ["/", "/healthz", "/metrics", "/openapi.json", "/api/v1/traces", "/api/v1/session", "/api/v1/uploads", f"/api/v1/uploads/{upload}", "/api/v1/runs", "/api/v1/clock",
             "/api/v1/compare?a={t}&b={t}", "/api/v1/traces?limit=5&after=x&q=%41"] + ["/api/v1/traces/{t}" + rest for rest in (
                 "", "/analysis", "/tracks?limit=3&after=1", "/g1/tiles/5/0-1?tracks=0-9", "/counters/3?points=9", "/names?ids=1,4-9", "/names?from=1&limit=3", "/slices/4",
                 "/slices?track=1&t0=0&t1=99999", "/search?q=conv&kind=kernel", "/kernels?sort=count", "/gaps?device=0", "/flame?metric=cpu", "/report?format=markdown")]
    fields = [b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"Connection: close", b"If-None-Match: *", b"Accept-Encoding: gzip",
              b"Tus-Resumable: 1.0.0", b"Upload-Length: 9", b"Upload-Offset: 0", b"Upload-Metadata: name YQ==", b"Upload-Checksum: sha1 AAAA", b"Upload-Defer-Length: 1",
              b"Content-Type: application/offset+octet-stream", b"Origin: http://127.0.0.1", b"Cookie: lacuna_key=x", b"X: " + b"y" * 3000, b"Range: bytes=0-1"]

    def request():
        path = draw.choice(paths).replace("{t}", trace).encode()
        if draw.random() < 0.3:
            path += draw.choice([b"&", b"?", b"/", b"%"]) + bytes(draw.choices(b"abc=&%01-9_.", k=draw.randrange(12)))
        text = draw.choice([b"GET", b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"]) + b" " + path + b" HTTP/1.1\r\n" + HOST
        text += bearer(server) if draw.random() < 0.8 else b""
        text += b"".join(field + b"\r\n" for field in draw.sample(fields, draw.randrange(4))) + b"\r\n"
        return text + draw.choice([b"", b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b'{"key":"x"}', os.urandom(20)])

    wanted, deadline = 14000, time.monotonic() + area.time_left(0.4)
    while tried < wanted and time.monotonic() < deadline:
        data = bytearray(b"".join(request() for _ in range(draw.randrange(1, 5))))
        for _ in range(draw.choice([0, 0, 1, 3])):
            at = draw.randrange(len(data))
            data[at:at + draw.randrange(3)] = bytes([draw.choice([0, 9, 10, 13, 32, 58, 127, 255, draw.randrange(256)])]) * draw.randrange(3)
        if draw.random() < 0.2:
            del data[draw.randrange(len(data) + 1):]
        try:
            with server.connect(5) as connection:
                cut = draw.randrange(len(data) + 1)
                connection.sendall(data[:cut])
                connection.sendall(data[cut:])
                if draw.random() < 0.7:
                    connection.shutdown(socket.SHUT_WR)
                reply = hear(connection, 0.02 if draw.random() < 0.5 else 0.2)
        except OSError:
            reply = b""
        tried += 1
        if [status for status in statuses(reply) if status >= 500 and status not in (503, 505, 507)]:
            problems.append(f"{statuses(reply)}; the request is in {area.keep(f'request-{tried}', bytes(data))}")
        if server.process.poll() is not None:
            problems.append(f"the server ended; the request is in {area.keep('last-request', bytes(data))}")
            break
    if server.process.poll() is None:
        if server.get("/healthz").status != 200 or not wait_for(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 40, 120):
            problems.append(f"{len(os.listdir(f'/proc/{server.process.pid}/fd'))} descriptors are open afterwards")
    area.row("damaged requests, 1 to 4 a connection, sanitized", tried, problems)


# -- crowds ------------------------------------------------------------------------------------------

def slow_readers(area, server):
    events = [{"ph": "X", "cat": "cpu_op", "name": f"{i:06d}" + "x" * 130, "pid": 1, "tid": 1, "ts": i * 10, "dur": 5} for i in range(60000)]
    trace = server.upload(json.dumps({"traceEvents": events}).encode())
    server.wait_ready(trace, 300)
    problems, readers = [], []
    for _ in range(300):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(120)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(f"GET /api/v1/traces/{trace}/names HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.key}\r\n\r\n".encode())
        readers.append(connection)
    answers = [connection.recv(12, socket.MSG_WAITALL)[9:12] for connection in readers]
    if set(answers) - {b"200", b"503"} or b"503" not in answers:
        problems.append(f"statuses {sorted(set(answers))}")
    if memory_mb(server, "VmHWM") > 256 + 250:
        problems.append(f"{memory_mb(server, 'VmHWM')} MB at most, with 256 MB for replies")
    begin = time.monotonic()
    if server.get("/api/v1/traces", timeout=30).status != 200 or time.monotonic() - begin > 5:
        problems.append("a small request is not answered beside them")
    if not wait_for(lambda: metric(server, "lacuna_http_reply_bytes") == 0, 60):
        problems.append(f"{metric(server, 'lacuna_http_reply_bytes')} bytes are held after a minute")
    for connection in readers:
        connection.close()
    area.row("300 clients with the key that read nothing", 300, problems)


def crowd(area, server):
    problems, opened, longest = [], 0, 0.0
    held = []
    for _ in range(5):
        for _ in range(2000):
            try:
                connection = server.connect(5)
                connection.sendall(HEALTH)
                held.append(connection)
                opened += 1
            except OSError as error:
                problems.append(f"connection {opened}: {error}")
                break
        while len(held) > 6000:  # our own descriptors
            held.pop(0).close()
        for _ in range(10):
            begin = time.monotonic()
            try:
                status = server.get("/api/v1/traces", timeout=10).status
            except OSError as error:
                status = error
            longest = max(longest, time.monotonic() - begin)
            if status != 200:
                problems.append(f"with the key, beside {len(held)}: {status}")
    if longest > 5:
        problems.append(f"a request with the key took {longest:.1f} s")
    if memory_mb(server) > 400:
        problems.append(f"{memory_mb(server)} MB for them")
    area.row("connections without the key, one with it beside them", opened, problems)
    for connection in held:
        connection.close()
    problems, halves = [], []
    for _ in range(4200):
        connection = server.connect(5)
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        except OSError:
            pass
        halves.append(connection)
    for _ in range(20):
        if server.get("/api/v1/traces", timeout=10).status != 200:
            problems.append("the key holder is not answered")
    for connection in halves:
        connection.close()
    if not wait_for(lambda: metric(server, "lacuna_http_connections") <= 2, 60):
        problems.append(f"{metric(server, 'lacuna_http_connections')} connections stay")
    area.row("half headers", len(halves), problems)


def event_streams(area, server):
    problems, streams = [], []
    for _ in range(256):
        connection = server.connect(20)
        connection.sendall(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + bearer(server) + b"\r\n")
        streams.append(connection)
    if not wait_for(lambda: metric(server, "lacuna_http_event_streams") == 256, 30):
        problems.append(f"{metric(server, 'lacuna_http_event_streams')} of 256 streams")
    reply = server.raw(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + bearer(server) + b"\r\n", 3)
    if status_of(reply) != 503:
        problems.append(f"one more: {status_of(reply)}")
    body, uploads, end = make_trace(steps=1, kernels=1), 0, time.monotonic() + min(60, area.time_left(0.1))
    while uploads < 6000 and time.monotonic() < end:
        server.upload(body)
        uploads += 1
    if memory_mb(server) > 400:
        problems.append(f"{memory_mb(server)} MB")
    for connection in streams:
        connection.close()
    if not wait_for(lambda: metric(server, "lacuna_http_event_streams") == 0, 60):
        problems.append("streams stay open")
    area.row("event streams that never read, uploads beside them", 256 + uploads, problems)


# -- chaos, sanitized --------------------------------------------------------------------------------

def chaos(area, server):
    problems, counts, stop = [], {}, time.monotonic() + min(120, area.time_left(0.8))
    lock, seed = threading.Lock(), area.random.random()
    body = make_trace()

    def note(what, status, fine):
        with lock:
            counts[what] = counts.get(what, 0) + 1
            if status not in fine:
                problems.append(f"{what}: {status}")

    def worker(number):
        draw = random.Random(f"{seed}:{number}")
        while time.monotonic() < stop:
            try:
                listed = [row["id"] for row in server.api("/traces?limit=20")["traces"]] or ["a" * 26]
                trace, what = draw.choice(listed), draw.randrange(6)
                if what == 0:
                    note("upload", server.request("POST", "/api/v1/traces?name=chaos", body=body).status, (201, 503))
                elif what == 1:
                    tus(draw)
                elif what == 2:
                    note("delete", server.request("DELETE", "/api/v1/traces/" + trace).status, (204, 404, 409))
                elif what == 3:
                    with server.connect(5) as connection:  # gone in the middle
                        connection.sendall(b"POST /api/v1/traces HTTP/1.1\r\n" + HOST + bearer(server) + b"Content-Length: %d\r\n\r\n" % len(body) + body[:draw.randrange(len(body))])
                    note("cut upload", 0, (0,))
                else:
                    rest = draw.choice(["", "/analysis", "/tracks", "/names", "/kernels", "/gaps", "/flame", "/search?q=conv", "/report?format=html", "/g1/tiles/5/0-1?tracks=0-9"])
                    note("read", server.get(f"/api/v1/traces/{trace}{rest}").status, (200, 404, 409, 503))
            except (OSError, AssertionError) as error:
                note("connection", repr(error)[:200], ())

    def tus(draw):
        head = {"Tus-Resumable": "1.0.0"}
        made = server.request("POST", "/api/v1/uploads", headers={**head, "Upload-Length": str(len(body))})
        note("tus create", made.status, (201, 429, 503))
        if made.status != 201:
            return
        place, half = made.headers["Location"], draw.randrange(1, len(body))
        append = {**head, "Content-Type": "application/offset+octet-stream"}
        wrong = {"Upload-Checksum": "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk="} if draw.random() < 0.2 else {}
        note("tus append", server.request("PATCH", place, body=body[:half], headers={**append, "Upload-Offset": "0", **wrong}).status, (204, 460, 423, 503))
        if wrong or draw.random() < 0.3:
            note("tus remove", server.request("DELETE", place, headers=head).status, (204, 423))
            return
        note("tus append", server.request("PATCH", place, body=body[half:], headers={**append, "Upload-Offset": str(half)}).status, (204, 503))

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    def states():
        rows, after = {}, ""
        while after is not None:
            page = server.api("/traces?limit=1000" + (f"&after={after}" if after else ""), timeout=300)
            rows, after = {**rows, **{row["id"]: row["state"] for row in page["traces"]}}, page["next"]
        return rows

    wait_for(lambda: set(states().values()) <= {"ready", "failed"}, 600)
    rows = states()
    files = {name[:26] for name in os.listdir(os.path.join(server.data, "traces")) if name.endswith(".db")}
    if {trace for trace, state in rows.items() if state == "ready"} != files:
        problems.append(f"{len(rows)} rows and {len(files)} trace files do not agree")
    if os.listdir(os.path.join(server.data, "staging")):
        problems.append(f"staging holds {os.listdir(os.path.join(server.data, 'staging'))[:3]}")
    area.row("chaos of 12 clients, sanitized", sum(counts.values()), problems)
