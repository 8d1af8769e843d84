#!/usr/bin/env python3
"""What the commands say of files that lie, and what they leave behind when they are ended."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
ESCAPES = "\x1b[31mred\x1b[0m"
DEADLINE_S = 120


def kernels(count, devices=1, name="k"):
    return json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": name, "pid": i % devices, "tid": 7, "ts": 10 * i, "dur": 5,
         "args": {"device": i % devices, "stream": 7, "correlation": i}} for i in range(count)]}).encode()


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-hostile-")
        self.temporary = os.path.join(self.folder, "tmp")
        os.makedirs(self.temporary)
        self.environment = dict(os.environ, TMPDIR=self.temporary, LC_ALL="C.UTF-8")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run_it(self, *args):
        done = subprocess.run([PROGRAM, *args], capture_output=True, env=self.environment, timeout=DEADLINE_S, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_too_many_devices_are_called_so_by_every_command(self):
        path = self.write("devices.json", kernels(1100, devices=1100))
        for args in (("analyze", path), ("compare", path, path), ("export", path, "--to", "folded"),
                     ("import", path, "--data", os.path.join(self.folder, "data"))):
            status, _, error = self.run_it(*args)
            self.assertEqual((args[0], status), (args[0], 1))
            self.assertIn("more than 1024 devices in one trace", error)

    def test_a_zstd_window_is_named_with_its_size(self):
        body = b'{"traceEvents":[]}'
        frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + struct.pack("<I", len(body) << 3 | 1)[:3] + body
        status, _, error = self.run_it("analyze", self.write("long.zst", frame))
        self.assertEqual(status, 1)
        for words in ("window of 2048 MiB", "at most 128 MiB", "zstd -d --long=31"):
            self.assertIn(words, error)
        status, _, error = self.run_it("analyze", self.write("cut.zst", frame[:5]))
        self.assertEqual(status, 1)
        self.assertIn("ends too early", error)

    def test_names_of_files_do_not_steer_the_terminal(self):
        good = self.write(ESCAPES + ".json", kernels(20, name="void f\x1b[2J\u009b31m<int>(;)"))
        bad = self.write(ESCAPES + ".txt", b"no trace")
        data = os.path.join(self.folder, "data")
        for args in (("import", good, "--data", data), ("import", good, "--data", data), ("import", bad, "--data", data),
                     ("analyze", good), ("analyze", bad), ("analyze", bad, good), ("compare", bad, good),
                     ("export", bad, "--to", "html"), ("export", good, "--to", "folded"), ("analyze", "--" + ESCAPES),
                     ("analyze", good, "--what-if", ESCAPES + "=1"), ("export", good, "--to", "html", "--redact", ESCAPES)):
            status, out, error = self.run_it(*args)
            self.assertIn(status, (0, 1, 2))
            self.assertTrue(out or error)
            for text in (out, error):
                self.assertEqual([c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) <= 0x9f], [], args)
        self.assertIn("\\x1b[31mred", self.run_it("analyze", bad)[2])

    def end(self, args, is_under_way, number):
        """Starts the program, waits until it is under way, ends it. @return its status, None: it was through before"""
        process = subprocess.Popen([PROGRAM, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        until = time.monotonic() + DEADLINE_S
        while process.poll() is None and not is_under_way() and time.monotonic() < until:
            time.sleep(0.001)
        if process.poll() is None:
            process.send_signal(number)
        status = process.wait(DEADLINE_S)
        return None if status == 0 else status

    def test_what_is_ended_leaves_nothing_behind(self):
        big = self.write("big.json", kernels(120000))
        out = os.path.join(self.folder, "out")
        data = os.path.join(self.folder, "data")
        os.makedirs(out)
        staging = os.path.join(data, "staging")

        def is_exporting():
            return len(os.listdir(out)) > 0

        def is_importing():
            return os.path.isdir(staging) and any(files for _, _, files in os.walk(staging))

        ended = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            path = os.path.join(out, "big.html")
            status = self.end(("export", big, "--to", "chrome", "-o", path), is_exporting, number)
            self.assertIn(status, (None, -number))
            ended += status is not None
            self.assertEqual([name for name in os.listdir(out) if name != "big.html"], [])
            if os.path.exists(path):
                os.unlink(path)
            status = self.end(("import", big, "--data", data, "--again"), is_importing, number)
            self.assertIn(status, (None, -number))
            ended += status is not None
            self.assertEqual(os.listdir(staging), [])
        self.assertGreater(ended, 0)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_a_signal_that_is_ignored_stays_so(self):
        big = self.write("big.json", kernels(60000))
        path = os.path.join(self.folder, "big.folded")
        process = subprocess.Popen([PROGRAM, "export", big, "--to", "folded", "-o", path], stderr=subprocess.DEVNULL,
                                   env=self.environment, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(os.path.exists(path))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
