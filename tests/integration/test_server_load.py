#!/usr/bin/env python3
"""Many, slow, silent and vanishing clients; stopping."""
import json
import os
import re
import resource
import selectors
import signal
import socket
import tempfile
import threading
import time
import unittest

from server_harness import SOAK, Server, hear, main, make_trace, status_of, wait_for

HOST = b"Host: 127.0.0.1\r\n"
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))


def hammer(server, count, seconds, request, least=0):
    """`count` keep-alive connections, each always with one request under way, until `least` replies have come. (replies, longest wait in s, replies that were not 200)."""
    selector = selectors.DefaultSelector()
    sent_at = {}
    for _ in range(count):
        connection = server.connect()
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, bytearray())
        connection.send(request)
        sent_at[connection] = time.monotonic()
    replies, longest, bad = 0, 0.0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or (replies < least and time.monotonic() < end + 60):
        for key, _ in selector.select(0.5):
            connection, data = key.fileobj, key.data
            data += connection.recv(262144)
            head = data.find(b"\r\n\r\n")
            if head < 0:
                continue
            length = re.search(rb"Content-Length: (\d+)", bytes(data[:head]))
            total = head + 4 + (int(length.group(1)) if length else 0)
            if len(data) < total:
                continue
            bad += not data.startswith(b"HTTP/1.1 200")
            del data[:total]
            now = time.monotonic()
            replies, longest = replies + 1, max(longest, now - sent_at[connection])
            sent_at[connection] = now
            connection.send(request)
    now = time.monotonic()
    longest = max([longest] + [now - at for at in sent_at.values()])
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    selector.close()
    return replies, longest, bad


class Load(unittest.TestCase):
    def server(self, *flags):
        server = Server("--log-level", "warn", *flags)
        self.addCleanup(server.close)
        return server

    def test_128_and_512_connections_do_not_stall(self):
        server = self.server()
        trace = server.upload(make_trace())
        server.wait_ready(trace)
        key = b"Authorization: Bearer " + server.key.encode() + b"\r\n"
        health = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
        tiles = b"GET /api/v1/traces/" + trace.encode() + b"/g1/tiles/6/0-1?tracks=0-5 HTTP/1.1\r\n" + HOST + key + b"\r\n"
        for count in (127, 128, 129, 256, 512):
            for name, request in (("health", health), ("tiles", tiles)):
                replies, longest, bad = hammer(server, count, 8 if SOAK else 0.5, request, count + 1)
                print(f"  {count} connections, {name}: {replies} replies, longest wait {longest * 1000:.0f} ms")
                self.assertEqual(bad, 0)
                self.assertGreater(replies, count)
                self.assertLess(longest, 20.0, "a stall")  # the one we know of lasts 30 s

    def test_a_thousand_silent_connections_change_nothing_and_are_ended(self):
        server = self.server("--header-timeout", "2500")
        silent = [server.connect() for _ in range(1000)]
        for _ in range(20):
            begin = time.monotonic()
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertLess(time.monotonic() - begin, 20.0)  # not one by one behind those that are silent
        deadline = time.monotonic() + 60
        ended = 0
        for connection in silent:
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                reply = hear(connection, max(0.1, deadline - time.monotonic()))
                ended += 1
            except OSError:
                continue
            self.assertIn(status_of(reply), (0, 408))
        for connection in silent:
            connection.close()
        self.assertEqual(ended, 1000)

        def settled():
            metrics = server.get("/metrics").body.decode()
            return (int(re.search(r"lacuna_http_timed_out_total (\d+)", metrics).group(1)) >= 1000 and
                    int(re.search(r"lacuna_http_connections (\d+)", metrics).group(1)) <= 3)

        wait_for(settled)

    def trickle(self, server, text, pause, limit):
        """Send one byte after another until the server answers or ends it. (seconds, reply)"""
        begin = time.monotonic()
        with server.connect() as connection:
            connection.settimeout(0.001)
            reply = b""
            for i in range(len(text)):
                if time.monotonic() - begin > limit:
                    break
                try:
                    connection.send(text[i:i + 1])
                    reply = connection.recv(4096)
                    break
                except socket.timeout:
                    time.sleep(pause)
                except OSError:
                    break
            reply += hear(connection, 0.5)
        return time.monotonic() - begin, reply

    def test_one_byte_a_second_is_not_waited_for(self):
        server = self.server("--header-timeout", "2000", "--rate-window", "2000", "--body-timeout", "2000")
        key = b"Authorization: Bearer " + server.key.encode() + b"\r\n"
        pause = 1.0 if SOAK else 0.2
        header = b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 500
        seconds, reply = self.trickle(server, header, pause, 60)
        self.assertLess(seconds, 60)  # all of it would take 100 s
        self.assertEqual(status_of(reply), 408, reply)
        for path in (b"/api/v1/traces", b"/api/v1/session"):
            with server.connect() as connection:
                connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + HOST + key + b"Content-Length: 3000\r\n\r\n")
                begin = time.monotonic()
                connection.settimeout(0.001)
                reply = b""
                while time.monotonic() - begin < 60 and not reply:
                    try:
                        connection.send(b"x")
                        reply = connection.recv(4096)
                    except socket.timeout:
                        time.sleep(pause)
                    except OSError:
                        break
                reply += hear(connection, 0.5)
            self.assertEqual(status_of(reply), 408, (path, reply))  # all of it would take 600 s
        wait_for(lambda: server.api("/traces")["traces"] == [] and os.listdir(os.path.join(server.data, "staging")) == [])

    def test_one_byte_a_second_from_200_clients_does_not_stop_the_others(self):
        server = self.server("--header-timeout", "60000")
        slow = [server.connect() for _ in range(200)]
        stop = threading.Event()

        def dribble():
            text = b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 1000
            at = 0
            while not stop.wait(0.1):
                for connection in slow:
                    connection.send(text[at:at + 1])
                at += 1

        thread = threading.Thread(target=dribble)
        thread.start()
        try:
            replies, longest, bad = hammer(server, 32, 2, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n", 501)
        finally:
            stop.set()
            thread.join()
        for connection in slow:
            connection.close()
        self.assertEqual(bad, 0)
        self.assertGreater(replies, 500)
        self.assertLess(longest, 20.0)

    def test_clients_that_vanish_leave_nothing(self):
        server = self.server()
        body = make_trace(filler=3_000_000)
        key = b"Authorization: Bearer " + server.key.encode() + b"\r\n"
        for i in range(40):
            with server.connect() as connection:
                connection.sendall(b"POST /api/v1/traces?name=gone HTTP/1.1\r\n" + HOST + key + b"Content-Length: %d\r\n\r\n" % len(body) + body[:i * 70000 + 1])
        wait_for(lambda: os.listdir(os.path.join(server.data, "staging")) == [] and server.api("/traces")["traces"] == [])

    def count_ended(self, connections, wanted, timeout=20):
        """How many of them the server ended, once that many are, or after `timeout` seconds."""
        ended, end = set(), time.monotonic() + timeout
        while len(ended) < wanted and time.monotonic() < end:
            for i, connection in enumerate(connections):
                if i not in ended:
                    connection.setblocking(False)
                    try:
                        if connection.recv(65536) == b"":
                            ended.add(i)
                    except BlockingIOError:
                        pass
                    except OSError:
                        ended.add(i)
            time.sleep(0.02)
        return ended

    def test_one_address_cannot_have_all_connections(self):
        server = self.server("--connections-loopback", "20", "--header-timeout", "600000")
        connections = [server.connect() for _ in range(40)]
        self.assertEqual(len(self.count_ended(connections, 20)), 20)
        time.sleep(0.5)  # and no more than that
        self.assertEqual(len(self.count_ended(connections, 21, 0.1)), 20)
        for connection in connections:
            connection.close()

    def test_who_has_the_key_gets_in_and_stays(self):
        server = self.server("--connections-loopback", "60", "--keyless-timeout", "600000")
        health = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
        listing = b"GET /api/v1/traces HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n"

        def ask(connection, text):
            connection.settimeout(20)
            connection.sendall(text)
            reply = b""
            while not re.search(rb"\r\n\r\n.*\}\n?$", reply, re.S):
                part = connection.recv(65536)
                if not part:
                    break
                reply += part
            return status_of(reply)

        mine = [server.connect() for _ in range(10)]
        for connection in mine:
            self.assertEqual(ask(connection, listing), 200)
        crowd = [server.connect() for _ in range(50)]
        for connection in crowd:
            self.assertEqual(ask(connection, health), 200)
        # all places are taken: each that comes takes the place of one that shows no key
        for _ in range(10):
            connection = server.connect()
            crowd.append(connection)
            self.assertEqual(ask(connection, health), 200)
        for _ in range(50):
            self.assertEqual(server.get("/api/v1/traces").status, 200)
        for connection in mine:
            self.assertEqual(ask(connection, listing), 200)
        self.assertEqual(len(self.count_ended(mine, 1, 0.1)), 0)
        self.assertGreaterEqual(len(self.count_ended(crowd, 10)), 10)
        metrics = server.get("/metrics").body.decode()
        self.assertGreaterEqual(int(re.search(r"lacuna_http_connections_displaced_total (\d+)", metrics).group(1)), 10)
        self.assertLessEqual(int(re.search(r"lacuna_http_connections (\d+)", metrics).group(1)), 60 + 32)
        # places whose holders all showed the key are not taken from them
        end = time.monotonic() + 30
        while len(mine) < 60 and time.monotonic() < end:
            connection = server.connect()
            try:
                self.assertEqual(ask(connection, listing), 200)
                mine.append(connection)
            except OSError:  # one that was closed just now still has its place
                connection.close()
                time.sleep(0.05)
        self.assertEqual(len(mine), 60)
        late = [server.connect() for _ in range(10)]
        self.assertEqual(len(self.count_ended(late, 10)), 10)
        for connection in mine:
            self.assertEqual(ask(connection, listing), 200)
        for connection in mine + crowd + late:
            connection.close()

    def upload_into_a_crowd(self, server):
        """While the crowd is still coming in, a connection may be the one that has to go for the next: its client tries again."""
        for _ in range(10):
            try:
                return server.upload(make_trace())
            except ConnectionError:
                time.sleep(0.1)
        return server.upload(make_trace())

    def test_few_descriptors_mean_few_connections_and_all_else_works(self):
        for files in (64, 100):
            server = Server("--log-level", "warn", files=files)
            self.addCleanup(server.close)
            crowd = []
            for _ in range(2 * files):
                try:
                    crowd.append(server.connect())
                except OSError:
                    pass
            trace = self.upload_into_a_crowd(server)
            self.assertEqual(server.wait_ready(trace)["state"], "ready")
            for _ in range(20):
                self.assertEqual(server.get(f"/api/v1/traces/{trace}/tracks").status, 200)
            self.assertEqual(server.get("/healthz", key=False).status, 200)
            for connection in crowd:
                connection.close()
            self.assertEqual(server.terminate(), 0)
        with tempfile.TemporaryDirectory(prefix="lacuna-data-") as folder, \
                self.assertRaisesRegex(RuntimeError, r"only 63 files may be open \(ulimit -n\): at least 64 are needed"):
            Server(files=63, data=folder, log=folder + "/log")

    def test_replies_that_nobody_reads_share_one_budget_and_end(self):
        server = self.server("--reply-memory", "16M", "--rate-window", "2000")
        events = [{"ph": "X", "cat": "cpu_op", "name": f"{i:05d}" + "x" * 150, "pid": 1, "tid": 1, "ts": i * 10, "dur": 5} for i in range(25000)]
        trace = server.upload(json.dumps({"traceEvents": events}).encode())
        self.assertEqual(server.wait_ready(trace)["state"], "ready")
        path = f"/api/v1/traces/{trace}/names"
        size = len(server.get(path).body)
        self.assertGreater(size, 4_000_000)

        def waiting_bytes():
            return int(re.search(r"lacuna_http_reply_bytes (\d+)", server.get("/metrics").body.decode()).group(1))

        def begin():
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n")
            return connection

        silent = [begin() for _ in range(12)]
        statuses = [connection.recv(12, socket.MSG_WAITALL)[9:12] for connection in silent]
        self.assertLessEqual(statuses.count(b"200"), 16 * 1024 * 1024 // size)
        self.assertEqual(statuses.count(b"200") + statuses.count(b"503"), 12)
        self.assertGreaterEqual(statuses.count(b"503"), 12 - 16 * 1024 * 1024 // size)
        self.assertLessEqual(waiting_bytes(), 16 * 1024 * 1024)
        refused = silent[statuses.index(b"503")]
        text = refused.recv(4096, socket.MSG_DONTWAIT)
        self.assertIn(b"\r\nRetry-After: 2\r\n", text)
        self.assertEqual(server.get("/api/v1/traces").status, 200)  # small ones are answered
        wait_for(lambda: waiting_bytes() == 0)
        for connection in silent:
            connection.close()
        # who reads slowly, but reads, gets it all
        with begin() as slow:
            taken, begun = 0, time.monotonic()
            while taken < size:
                part = slow.recv(size // 40)
                self.assertTrue(part, taken)
                taken += len(part)
                wait = begun + 5.0 * taken / size - time.monotonic()
                time.sleep(max(0.0, wait))
        self.assertGreater(time.monotonic() - begun, 4.0)

    def test_without_the_key_a_connection_does_not_stay_idle_for_long(self):
        server = self.server("--keyless-timeout", "1500")
        health = b"GET /healthz HTTP/1.1\r\n" + HOST
        keyless, mine = server.connect(), server.connect()
        begin = time.monotonic()
        keyless.sendall(health + b"\r\n")
        mine.sendall(health + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n")
        self.assertEqual(len(self.count_ended([keyless], 1)), 1)
        self.assertGreater(time.monotonic() - begin, 1.0)
        self.assertEqual(len(self.count_ended([mine], 1, 1.0)), 0)
        keyless.close()
        mine.close()

    def test_events_tell_of_an_upload_and_streams_are_limited(self):
        server = self.server()
        head = b"GET /api/v1/events HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n"
        streams = []
        for _ in range(256):
            connection = server.connect()
            connection.sendall(head)
            streams.append(connection)
        for stream in streams:
            self.assertIn(b"text/event-stream", hear(stream, 60, rb"\r\n\r\n"))
        self.assertEqual(status_of(server.raw(head, 1)), 503)
        trace = server.upload(make_trace())
        server.wait_ready(trace)
        text = hear(streams[0], 60, rb'"state":"ready".*\n\n').decode(errors="replace")
        states = re.findall(r'"state":"(\w+)"', text)
        self.assertIn("ready", states, text[:500])
        self.assertIn("event: trace\ndata: {", text)
        self.assertIn(f'"id":"{trace}"', text)
        server.request("DELETE", "/api/v1/traces/" + trace)
        self.assertIn("event: deleted", hear(streams[1], 60, rb"event: deleted").decode(errors="replace"))
        for connection in streams:
            connection.close()
        wait_for(lambda: b"lacuna_http_event_streams 0\n" in server.get("/metrics").body)


class Stop(unittest.TestCase):
    def test_sigterm_and_sigint_end_with_status_0_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server("--stop-timeout", "60000")
            idle = server.connect()
            stream = server.connect()
            stream.sendall(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() + b"\r\n\r\n")
            self.assertIn(b"text/event-stream", hear(stream, 60, rb"\r\n\r\n"))
            begin = time.monotonic()
            self.assertEqual(server.terminate(number, 90), 0)
            self.assertLess(time.monotonic() - begin, 30)  # of the 60 s that it may take
            self.assertTrue(hear(stream, 10).endswith(b"0\r\n\r\n"))
            idle.close()
            stream.close()
            server.close()

    def accepts(self, server):
        try:
            server.connect(10).close()
            return True
        except OSError:
            return False

    def test_what_is_under_way_is_finished_first(self):
        server = Server("--stop-timeout", "60000", "--body-timeout", "60000", "--rate-window", "60000")
        body = make_trace(filler=2_000_000)
        with server.connect() as connection:
            connection.sendall(b"POST /api/v1/traces?name=x HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() +
                               b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:1_000_000])
            wait_for(lambda: os.listdir(os.path.join(server.data, "staging")))
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: not self.accepts(server))
            connection.sendall(body[1_000_000:])
            reply = hear(connection, 60)
        self.assertEqual(status_of(reply), 201, reply)
        self.assertEqual(server.process.wait(60), 0)
        trace = re.search(rb'"id":"([a-z2-7]{26})"', reply).group(1).decode()
        server.start()
        self.assertEqual(server.wait_ready(trace)["state"], "ready")
        self.assertEqual(server.terminate(), 0)
        server.close()

    def test_an_upload_that_never_ends_does_not_keep_it(self):
        server = Server("--stop-timeout", "1000")
        with server.connect() as connection:
            connection.sendall(b"POST /api/v1/traces?name=x HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + server.key.encode() +
                               b"\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100000)
            wait_for(lambda: os.listdir(os.path.join(server.data, "staging")))
            self.assertEqual(server.terminate(timeout=60), 0)
        self.assertEqual(os.listdir(os.path.join(server.data, "staging")), [])
        server.close()


if __name__ == "__main__":
    main()
