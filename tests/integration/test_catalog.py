#!/usr/bin/env python3
"""The catalog in PostgreSQL: the unit tests of the store over it, and `serve --catalog`, restarts included."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import postgres_harness
import server_harness as harness
from postgres_harness import IN_ADDRESS, PASSWORD

# PLAIN_TESTS of the Makefile builds them
UNIT = ("test_store_catalog", "test_store_lost", "test_people", "test_journal_rows", "test_ingest", "test_catalog_postgres")
SERVER = ("test_server_reports", "test_webhooks", "test_labels", "test_backup")
if harness.SOAK:  # UNIT asks the same tables
    SERVER += ("test_server_people", "test_server_runs", "test_journal")
LAST = 0


def setUpModule():
    global postgres
    postgres = postgres_harness.Postgres()


def tearDownModule():
    postgres.close()


def lacuna(*arguments, environment=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
    return subprocess.run([harness.PROGRAM, *arguments], capture_output=True, text=True, timeout=120, env={**clean, **(environment or {})})


class Units(unittest.TestCase):
    def test_the_tests_of_the_store_hold_over_postgresql(self):
        folder = os.path.join(os.path.dirname(harness.PROGRAM), "tests")
        for name in UNIT:
            with self.subTest(name):
                program = os.path.join(folder, name)
                done = subprocess.run([program], capture_output=True, text=True, timeout=900, cwd=harness.ROOT,
                                      env={**os.environ, "LACUNA_TEST_CATALOG": f"postgresql://lacuna@/postgres?host={postgres.home}"})
                self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])
                self.assertIn("100%", done.stdout)
        self.assertGreater(self.count_schemas(), 40)

    def test_the_tests_of_the_server_hold_over_postgresql(self):
        before = self.count_schemas()
        for name in SERVER:
            with self.subTest(name):
                done = subprocess.run([sys.executable, os.path.join(harness.ROOT, "tests/integration", name + ".py")], capture_output=True, text=True, timeout=900,
                                      env={**os.environ, "LACUNA_TEST_CATALOG": f"postgresql://lacuna@/postgres?host={postgres.home}"})
                self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])
        self.assertGreaterEqual(self.count_schemas(), before + len(SERVER))

    def count_schemas(self):
        return int(postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 't%lacunatest%'"))


class Serve(unittest.TestCase):
    def setUp(self):
        global LAST
        LAST += 1
        self.name = f"catalog{LAST}"
        self.url = postgres.database(self.name).replace("team@", f"team:{IN_ADDRESS}@")
        self.data = tempfile.mkdtemp(prefix="lacuna-data-")
        self.server = None
        self.is_stopped = False

    def tearDown(self):
        try:
            if self.server is not None:
                self.server.close()
        finally:
            if self.is_stopped:
                postgres.start()
            shutil.rmtree(self.data, ignore_errors=True)

    def serve(self, *flags, environment=None):
        self.server = harness.Server(*flags, data=self.data, environment=environment)
        return self.server

    def restart(self, *flags):
        self.assertEqual(self.server.terminate(), 0)
        self.server.flags = flags
        self.server.start()

    def stop_postgres(self):
        postgres.stop()
        self.is_stopped = True

    def start_postgres(self):
        postgres.start()
        self.is_stopped = False

    def test_a_trace_is_there_after_both_have_restarted(self):
        server = self.serve("--catalog", self.url)
        first = server.upload(harness.make_trace(), "a")
        self.assertEqual(server.wait_ready(first)["state"], "ready")
        self.assertFalse(os.path.exists(os.path.join(self.data, "catalog.db")))
        self.assertEqual(os.stat(os.path.join(self.data, "catalog.url")).st_mode & 0o777, 0o600)
        self.assertEqual(server.request("PATCH", f"/api/v1/traces/{first}", body='{"name":"renamed \\u00e9","notes":"n"}',
                                        headers={"Content-Type": "application/json"}).status, 200)
        before = server.api(f"/traces/{first}")
        self.restart()  # where it is stands in the folder
        self.stop_postgres()
        self.start_postgres()
        self.assertEqual(server.api(f"/traces/{first}"), before)
        self.assertEqual([row["name"] for row in server.api("/traces?q=RENAMED")["traces"]], ["renamed é"])
        self.assertEqual(len(server.api(f"/traces/{first}/tracks")["tracks"]) > 0, True)
        second = server.upload(harness.make_trace(steps=5), "b")
        self.assertEqual(server.wait_ready(second)["state"], "ready")
        self.assertEqual([row["id"] for row in server.api("/traces")["traces"]], [second, first])
        self.assertEqual(postgres.sql("SELECT count(*) FROM traces WHERE state = 2", self.name), "2")
        self.assertEqual(lacuna("admin", "verify", "--data", self.data).returncode, 0)

    def test_requests_wait_for_a_postgresql_that_restarts(self):
        server = self.serve("--catalog", self.url)
        first = server.upload(harness.make_trace(), "a")
        server.wait_ready(first)
        self.stop_postgres()
        answers = []
        asked = [threading.Thread(target=lambda: answers.append(server.get(f"/api/v1/traces/{first}").status)),
                 threading.Thread(target=lambda: answers.append(server.request("POST", "/api/v1/traces?name=b", body=harness.make_trace(steps=6)).status))]
        for thread in asked:
            thread.start()
        self.start_postgres()
        for thread in asked:
            thread.join(120)
        self.assertEqual(sorted(answers), [200, 201])
        rows = server.api("/traces")["traces"]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(server.wait_ready(row["id"])["state"], "ready")

    def test_a_server_stops_while_postgresql_is_away(self):
        server = self.serve("--catalog", self.url)
        rows = [server.upload(harness.make_trace(steps=steps), "a") for steps in (5, 6)]
        for row in rows:
            server.wait_ready(row)
        self.stop_postgres()
        asked = threading.Thread(target=lambda: self.assertEqual(server.get(f"/api/v1/traces/{rows[0]}").status, 503))
        asked.start()
        time.sleep(2.5)  # by then the server's own look at the catalog, once a second, waits as well
        begun = time.monotonic()
        self.assertEqual(server.terminate(timeout=60), 0)
        # requests in hand have 10 s; each question to the catalog waited 20 s more
        self.assertLess(time.monotonic() - begun, 15)
        asked.join()

    def test_uploads_while_postgresql_restarts_lose_nothing_and_come_once(self):
        server = self.serve("--catalog", self.url)
        acknowledged, refused, ends = [], [], threading.Event()

        def upload(number):
            at = 0
            while not ends.is_set():
                reply = server.request("POST", f"/api/v1/traces?name=n{number}.{at}", body=harness.make_trace(steps=2 + number, kernels=4 + at % 40), timeout=120)
                if reply.status == 201:
                    acknowledged.append((f"n{number}.{at}", reply.json()["id"]))
                else:
                    refused.append((reply.status, reply.json()["error"]["message"]))
                at += 1

        threads = [threading.Thread(target=upload, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for how in ("fast", "immediate", "fast"):
            seen = len(acknowledged)
            harness.wait_for(lambda seen=seen: len(acknowledged) > seen + 2, 120)
            postgres.stop(how)
            self.is_stopped = True
            self.start_postgres()
        ends.set()
        for thread in threads:
            thread.join(240)
        for _, trace in acknowledged:
            row = server.wait_ready(trace, 240)
            self.assertEqual(row["state"], "ready", row)
        self.assertEqual([told for told in refused if told[0] < 500], [])
        names = postgres.sql("SELECT name FROM traces", self.name).split("\n")
        for name, _ in acknowledged:
            self.assertEqual(names.count(name), 1, name)

    def test_a_commit_that_a_crash_undid_is_not_taken_for_another_of_its_number(self):
        """PostgreSQL gives the id of a transaction whose log was lost in a crash to the next one."""
        server = self.serve("--catalog", self.url)
        server.wait_ready(server.upload(harness.make_trace(), "a"))
        for state in (0, 1):  # the row that is begun, and the one that is acknowledged
            with self.subTest(state):
                # a commit that waits in a trigger of its end: nothing of it is on the disk
                postgres.sql("CREATE OR REPLACE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';"
                             "CREATE CONSTRAINT TRIGGER hold_up AFTER INSERT OR UPDATE ON traces DEFERRABLE INITIALLY DEFERRED"
                             f" FOR EACH ROW WHEN (NEW.state = {state}) EXECUTE FUNCTION hold_up()", self.name)
                postgres.sql(f"ALTER DATABASE {self.name} CONNECTION LIMIT 0")  # of new ones, and never of the tests' user
                replies = []
                asked = threading.Thread(target=lambda state=state: replies.append(self.post(f"lost{state}", 5 + state)))
                asked.start()
                number = int(harness.wait_for(lambda: postgres.sql("SELECT backend_xid FROM pg_stat_activity WHERE wait_event = 'PgSleep'")))
                self.is_stopped = True
                postgres.stop("immediate")
                self.start_postgres()
                while int(postgres.sql("SELECT txid_current()")) < number:
                    pass
                postgres.sql("DROP TRIGGER hold_up ON traces", self.name)
                postgres.sql(f"ALTER DATABASE {self.name} CONNECTION LIMIT -1")
                asked.join(120)
                self.assertEqual(replies[0].status, 503, replies[0].body)
                self.assertIn("the change was not made", replies[0].json()["error"]["message"])
        harness.wait_for(lambda: len(server.api("/traces")["traces"]) == 1)
        self.assertEqual(server.wait_ready(server.upload(harness.make_trace(steps=6), "lost1"))["state"], "ready")

    def post(self, name, steps):
        return self.server.request("POST", f"/api/v1/traces?name={name}", body=harness.make_trace(steps=steps), timeout=120)

    def test_a_commit_whose_answer_is_lost_is_said_to_be_made_where_it_was(self):
        wire = postgres_harness.Wire(postgres)
        self.addCleanup(wire.close)
        server = self.serve("--catalog", self.url.replace(postgres.home, wire.folder))
        server.wait_ready(server.upload(harness.make_trace(), "a"))
        for which in (1, 2):  # the row that is begun, and the one that is acknowledged
            wire.expect(which)
            reply = self.post(f"made{which}", 4 + which)
            self.assertTrue(wire.cut.is_set())
            self.assertEqual(reply.status, 201, reply.body)
            self.assertEqual(server.wait_ready(reply.json()["id"])["state"], "ready")
            wire.expect(which, keeps_question=True)
            replies = []
            asked = threading.Thread(target=lambda which=which: replies.append(self.post(f"not{which}", 6 + which)))
            asked.start()
            self.assertTrue(wire.cut.wait(60))
            asked.join(0.3)  # who still holds the lock may still make it
            self.assertEqual(replies, [])
            wire.let_go.set()
            asked.join(60)
            self.assertEqual(replies[0].status, 503, replies[0].body)
        harness.wait_for(lambda: sorted(row["name"] for row in server.api("/traces")["traces"]) == ["a", "made1", "made2"])
        self.assertEqual(postgres.sql("SELECT count(*) FROM catalog_commits", self.name), "1")

    def test_a_trace_keeps_its_file_while_nobody_can_tell_whether_it_was_listed(self):
        wire = postgres_harness.Wire(postgres)
        self.addCleanup(wire.close)
        server = self.serve("--catalog", self.url.replace(postgres.home, wire.folder))
        # of an upload the third commit lists its trace; its answer is lost, and then what would tell of it cannot be read
        wire.expect(3, meanwhile=lambda: postgres.sql("ALTER TABLE catalog_commits RENAME TO hidden", self.name))
        trace = self.post("a", 4).json()["id"]
        self.assertTrue(wire.cut.wait(60))
        self.assertEqual(server.wait_ready(trace)["state"], "ready")
        harness.wait_for(lambda: not os.listdir(os.path.join(self.data, "staging")))
        postgres.sql("ALTER TABLE hidden RENAME TO catalog_commits", self.name)
        self.assertGreater(len(server.api(f"/traces/{trace}/tracks")["tracks"]), 0)
        self.assertEqual(lacuna("admin", "verify", "--data", self.data).returncode, 0)

    def test_an_upload_whose_row_is_lost_is_to_be_sent_again(self):
        server = self.serve("--catalog", self.url)
        # a sequence counts on when its transaction is undone: the first acknowledgment finds no row, and that is no answer to the client's request
        postgres.sql("CREATE SEQUENCE losses; GRANT USAGE ON SEQUENCE losses TO team; CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS "
                     "'BEGIN IF nextval(''losses'') % 2 = 1 THEN RETURN NULL; END IF; RETURN NEW; END';"
                     "CREATE TRIGGER lose BEFORE UPDATE ON traces FOR EACH ROW WHEN (OLD.state = 0 AND NEW.state = 1) EXECUTE FUNCTION lose()", self.name)
        reply = self.post("a", 4)
        self.assertEqual((reply.status, reply.headers["Retry-After"]), (503, "5"), reply.body)
        self.assertEqual(self.post("a", 4).status, 201)
        body = harness.make_trace(steps=5)
        tus = {"Tus-Resumable": "1.0.0", "Upload-Length": str(len(body))}
        place = server.request("POST", "/api/v1/uploads", headers=tus).headers["Location"]
        piece = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        reply = server.request("PATCH", place, body=body, headers=piece)
        self.assertEqual(reply.status, 503, reply.body)
        reply = server.request("PATCH", place, body=b"", headers={**piece, "Upload-Offset": str(len(body))})
        self.assertEqual((reply.status, len(reply.headers["Lacuna-Trace-Id"])), (204, 26), reply.body)
        harness.wait_for(lambda: [row["state"] for row in server.api("/traces")["traces"]] == ["ready", "ready"])

    def test_an_import_outlives_a_connection_lost_while_it_is_listed(self):
        server = self.serve("--catalog", self.url)
        # a sequence counts on when its transaction is undone: the first three are cut
        postgres.sql("CREATE SEQUENCE cuts; GRANT USAGE ON SEQUENCE cuts TO team; CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS "
                     "'BEGIN IF nextval(''cuts'') <= 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END';"
                     "CREATE TRIGGER cut BEFORE INSERT OR UPDATE ON traces FOR EACH ROW WHEN (NEW.state = 2) EXECUTE FUNCTION cut()", self.name)
        row = server.wait_ready(server.upload(harness.make_trace(), "a"), 240)
        self.assertEqual(row["state"], "ready", row)
        self.assertGreater(int(postgres.sql("SELECT last_value FROM cuts", self.name)), 3)
        self.assertEqual(lacuna("admin", "verify", "--data", self.data).returncode, 0)

    def test_a_user_made_beside_the_server_is_heard_of(self):
        server = self.serve("--catalog", self.url)
        secret = os.path.join(self.data, "..", os.path.basename(self.data) + ".password")
        with open(secret, "w") as file:
            file.write("correct horse battery\n")
        try:
            done = lacuna("admin", "--data", self.data, "user", "add", "ann", "--admin", "--password-file", secret)
            self.assertEqual(done.returncode, 0, done.stderr)
            harness.wait_for(lambda: any(user["name"] == "ann" for user in server.api("/users")["users"]), 60)
        finally:
            os.unlink(secret)

    def test_the_password_is_in_no_message_and_no_log(self):
        wrong = self.url.replace(IN_ADDRESS, "s3cret-w0rd")
        done = lacuna("serve", "--data", self.data, "--listen", "127.0.0.1:0", "--catalog", wrong)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("password authentication failed", done.stderr)
        self.assertNotIn("s3cret", done.stderr + done.stdout)
        for address in ("postgresql://team:s3cret-w0rd/x@/d", "postgresql://team:s3cret-w0rd@h:s3cret-w0rd/d", "host=/tmp password=s3cret-w0rd nonsense=1", "s3cret-w0rd"):
            done = lacuna("serve", "--data", self.data, "--listen", "127.0.0.1:0", "--catalog", address)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("postgresql://", done.stderr)
            self.assertNotIn("s3cret", done.stderr + done.stdout)
        server = self.serve(environment={"LACUNA_CATALOG": self.url})
        trace = server.upload(harness.make_trace(), "a")
        server.wait_ready(trace)
        self.assertEqual(postgres.sql("SELECT count(*) FROM traces", self.name), "1")
        with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
            self.assertNotIn(b"postgresql", file.read())
        self.stop_postgres()
        self.start_postgres()
        server.api("/traces")
        for word in (IN_ADDRESS, PASSWORD):
            self.assertNotIn(word, server.log_text())

    def test_one_catalog_has_one_folder_and_a_folder_one_catalog(self):
        server = self.serve("--catalog", self.url)
        self.assertEqual(server.terminate(), 0)
        with tempfile.TemporaryDirectory() as other:
            done = lacuna("serve", "--data", other, "--listen", "127.0.0.1:0", "--catalog", self.url)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("belongs to another data folder", done.stderr)
        with tempfile.TemporaryDirectory() as old:
            with_file = harness.Server(data=old)
            self.assertEqual(with_file.terminate(), 0)
            with_file.close()
            self.assertTrue(os.path.exists(os.path.join(old, "catalog.db")))
            done = lacuna("serve", "--data", old, "--listen", "127.0.0.1:0", "--catalog", self.url)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("has its catalog in catalog.db", done.stderr)
        self.server.start()

    def told(self, server, trace):
        """What the service says of everything that is in its catalog."""
        paths = ["/traces", "/projects", "/users", "/tokens", "/audit?limit=1000", "/projects/vision/members", "/projects/vision/journal", "/projects/vision/webhooks"]
        paths += [f"/traces/{trace}{part}" for part in ("", "/analysis", "/settings")] + [f"/reports/{self.report}", f"/reports/{self.report}/comments"]
        return {path: server.get("/api/v1" + path).json() for path in paths}

    def fill(self, server):
        """Something in every part of it; a trace that goes again leaves a number that nobody gets."""
        call = lambda method, path, body=None: server.request(method, "/api/v1" + path, body=None if body is None else json.dumps(body))
        first, gone = (server.request("POST", f"/api/v1/traces?name=t{steps}&project=vision", body=harness.make_trace(steps=steps)).json()["id"] for steps in (4, 5))
        for trace in (first, gone):
            self.assertEqual(server.wait_ready(trace)["state"], "ready")
        self.assertEqual(call("PATCH", f"/traces/{first}", {"name": "\u00e9", "notes": "n\n'\\", "tags": ["a", "b"]}).status, 200)
        self.assertEqual(call("PUT", "/users/ann", {"password": "correct horse battery"}).status, 201)
        self.assertEqual(call("PUT", "/projects/vision/members/ann", {"role": "write"}).status, 204)
        self.token = call("POST", "/tokens", {"name": "t", "scope": "read"}).json()["token"]
        self.report = call("POST", "/reports", {"project": "vision", "title": "r", "markdown": f"```lacuna\ntable trace={first} of=kernels\n```"}).json()["id"]
        self.assertEqual(call("POST", f"/reports/{self.report}/comments", {"body": "c"}).status, 201)
        call("GET", "/projects/vision/journal")
        self.assertEqual(call("DELETE", f"/traces/{gone}").status, 204)
        return first

    def move(self, *arguments, status=0, environment=None):
        done = lacuna("admin", "move-catalog", *arguments, "--data", self.data, environment=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn(IN_ADDRESS, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_service_moves_into_postgresql_and_back(self):
        self.maxDiff = None
        server = harness.Server(data=self.data)
        self.server = server
        first = self.fill(server)
        before = self.told(server, first)
        self.assertIn("a server is running", self.move("--to", self.url, status=1))
        for step, (arguments, environment, said) in enumerate(((("--to", self.url), None, "is in PostgreSQL"), (("--back",), None, "is in the data folder"),
                                                               ((), {"LACUNA_CATALOG": self.url}, "is in PostgreSQL"))):
            self.assertEqual(server.terminate(), 0)
            self.assertRegex(self.move(*arguments, environment=environment), said + r": \d\d+ rows")
            is_there = step % 2 == 0
            self.assertEqual([os.path.exists(os.path.join(self.data, name)) for name in ("catalog.url", "catalog.db", "catalog.url.part", "catalog.db.new")],
                             [is_there, not is_there, not is_there, False])
            self.assertIn("already", self.move(*(("--to", self.url) if is_there else ("--back",)), status=1))
            self.assertEqual(lacuna("admin", "verify", "--data", self.data).returncode, 0)
            server.start()
            self.assertEqual(self.told(server, first), before)
            self.assertEqual(server.request("GET", "/api/v1/traces", headers={"Authorization": "Bearer " + self.token}, key=False).status, 200)
            self.assertEqual(server.request("POST", "/api/v1/session", body=json.dumps({"name": "ann", "password": "correct horse battery"}), key=False).status, 204)
            trace = server.upload(harness.make_trace(steps=7 + step), "later")
            self.assertEqual(server.wait_ready(trace)["state"], "ready")
            self.assertEqual(server.api("/traces")["traces"][0]["id"], trace)
            before = self.told(server, first)
        self.assertEqual(postgres.sql("SELECT count(*) FROM traces", self.name), "4")

    def test_a_move_that_was_cut_short_is_finished_by_the_next(self):
        server = harness.Server(data=self.data)
        self.server = server
        first = self.fill(server)
        before = self.told(server, first)
        self.assertEqual(server.terminate(), 0)
        path = lambda name: os.path.join(self.data, name)
        kept = path("kept")
        shutil.copy(path("catalog.db"), kept)
        self.move("--to", self.url)
        # killed before catalog.url had its name: the file is the catalog, and has grown since
        os.rename(path("catalog.url"), path("catalog.url.part"))
        os.rename(kept, path("catalog.db"))
        server.start()
        second = server.upload(harness.make_trace(steps=9), "second")
        self.assertEqual(server.wait_ready(second)["state"], "ready")
        self.assertEqual(server.terminate(), 0)
        self.move("--to", self.url)
        self.assertEqual(postgres.sql("SELECT count(*) FROM traces", self.name), "2")
        # killed before the file went: no server starts on two
        shutil.copy(path("catalog.db.moved"), path("catalog.db"))
        done = lacuna("serve", "--data", self.data, "--listen", "127.0.0.1:0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("lacuna admin move-catalog", done.stderr)
        self.move("--to", self.url)
        self.assertFalse(os.path.exists(path("catalog.db")))
        # killed on the way back, with both there
        shutil.copy(path("catalog.db.moved"), path("catalog.db"))
        self.move("--back")
        self.assertFalse(os.path.exists(path("catalog.url")))
        server.start()
        self.assertEqual(server.request("DELETE", f"/api/v1/traces/{second}").status, 204)
        after = self.told(server, first)
        for said in (before, after):
            said.pop("/audit?limit=1000")
            said.pop("/projects")
        self.assertEqual(after, before)

    def test_a_move_to_where_something_is_changes_nothing(self):
        server = harness.Server(data=self.data)
        self.server = server
        first = self.fill(server)
        before = self.told(server, first)
        self.assertEqual(server.terminate(), 0)
        with tempfile.TemporaryDirectory() as other:
            others = harness.Server("--catalog", self.url, data=other)
            self.assertEqual(others.terminate(), 0)
            others.close()
        self.assertIn("belongs to another data folder", self.move("--to", self.url, status=1))
        self.assertIn("postgresql://", self.move("--to", "mysql://x", status=1))
        self.move("--to", self.url, "--back", status=2)
        self.move(status=2)
        server.start()
        self.assertEqual(self.told(server, first), before)

    def test_without_libpq_a_sentence_says_what_to_install(self):
        done = lacuna("serve", "--data", self.data, "--listen", "127.0.0.1:0", "--catalog", self.url, environment={"LACUNA_LIBPQ": "/nonexistent/libpq.so"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("libpq5", done.stderr)

    def test_without_postgresql_the_start_says_so(self):
        self.stop_postgres()
        done = lacuna("serve", "--data", self.data, "--listen", "127.0.0.1:0", "--catalog", self.url)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot open the catalog", done.stderr)


if __name__ == "__main__":
    if postgres_harness.why_not() is not None:
        print("skip: " + postgres_harness.why_not())
        print("0 passed, 0 failed")
    else:
        harness.main()
