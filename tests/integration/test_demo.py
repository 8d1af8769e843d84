#!/usr/bin/env python3
"""`lacuna demo` without a folder: a verdict and a page, with nothing asked, and nothing left behind."""
import glob
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LACUNA = os.environ.get("LACUNA_PROGRAM", os.path.join(ROOT, "build/release/lacuna"))
LIMIT_S = 120  # on a machine that is busy with something else


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "DISPLAY", "WAYLAND", "SSH_"))}
        self.environment = {**kept, "TMPDIR": self.folder, "HOME": self.folder}

    def start(self, *arguments, **settings):
        terminal, theirs = os.openpty()
        demo = subprocess.Popen([LACUNA, "demo", *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                                env={**self.environment, **settings}, start_new_session=True)
        os.close(theirs)
        self.addCleanup(os.close, terminal)
        self.addCleanup(demo.stderr.close)
        self.addCleanup(lambda: demo.poll() is None and demo.kill())
        return demo, terminal

    def page(self, demo, terminal):
        """What it said until the page was there, and the address."""
        said = b""
        try:
            while b"\n  yours " not in said:
                said += os.read(terminal, 4096)
        except OSError:
            self.fail((said, demo.stderr.read()))
        said = said.decode().replace("\r\n", "\n")
        address = re.search(r"^  open +(http://127\.0\.0\.1:\d+)(/t/\w+)#key=(\w+)$", said, re.M)
        self.assertTrue(address, said)
        return said, address

    def folders(self):
        return glob.glob(os.path.join(self.folder, "lacuna-demo-*"))

    def children(self, demo):
        with open(f"/proc/{demo.pid}/task/{demo.pid}/children", encoding="utf-8") as file:
            return [int(pid) for pid in file.read().split()]

    def wait_gone(self, pids):
        end = time.monotonic() + LIMIT_S
        while any(alive(pid) for pid in pids) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse([pid for pid in pids if alive(pid)])

    def test_it_prints_the_verdict_serves_the_page_and_leaves_nothing(self):
        demo, terminal = self.start()
        said, address = self.page(demo, terminal)
        self.assertIn("The GPU waits 380 ms of every 750 ms step for data (51 %).", said)
        self.assertLess(said.index("num_workers=5"), said.index("  open"))
        self.assertIn("simulated", said)
        trace = address.group(2).rpartition("/")[2]
        request = urllib.request.Request(f"{address.group(1)}/api/v1/traces", headers={"Authorization": "Bearer " + address.group(3)})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
            rows = reply.read().decode()
        self.assertIn(trace, rows)
        self.assertEqual(len(re.findall(r'"state":\s*"ready"', rows)), 6, rows)
        with urllib.request.urlopen(address.group(1) + "/", timeout=LIMIT_S) as reply:
            self.assertIn("<script", reply.read().decode())
        (folder,) = self.folders()
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        pids = self.children(demo)
        self.assertEqual(len(pids), 1)
        os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C does
        self.assertEqual(demo.wait(LIMIT_S), 0)
        self.wait_gone(pids)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_browser_gets_a_page_that_leads_there_and_the_key_is_in_no_argument(self):
        seen = os.path.join(self.folder, "seen")
        browser = os.path.join(self.folder, "browser")
        with open(browser, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$#" "$1" >{seen}.part; cat "$1" >>{seen}.part; mv {seen}.part {seen}\n')
        os.chmod(browser, 0o700)
        demo, terminal = self.start("--seed", "1", BROWSER=browser, DISPLAY=":99")
        _, address = self.page(demo, terminal)
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(seen) and time.monotonic() < end:
            time.sleep(0.02)
        with open(seen, encoding="utf-8") as file:
            arguments, _, page = file.read().partition("\n")
        self.assertRegex(arguments, r"^1 /\S+/open\.html$")
        self.assertIn("url=" + "".join(address.group(1, 2)) + "#key=" + address.group(3), page)
        self.assertEqual(stat.S_IMODE(os.stat(arguments.split()[1]).st_mode), 0o600)
        demo.terminate()
        self.assertEqual(demo.wait(LIMIT_S), 0)
        self.assertEqual(self.folders(), [])

    def test_ended_as_soon_as_its_folder_is_there_it_leaves_nothing(self):
        self.end_once_it_has_a_folder({"LD_PRELOAD": self.slow("char *", "mkdtemp", "char *a", "a", "1", 500)})
        self.assertEqual(self.folders(), [])

    def test_what_writes_has_ended_before_its_folder_is_removed(self):
        """Slow to make folders, what writes would do so after access() has said that the demo's is gone."""
        late = self.slow("int ", "mkdir", "const char *a, unsigned b", "a, b", "made != 0", 300)
        last = self.slow("int ", "access", "const char *a, int b", "a, b", "made != 0", 900)
        self.end_once_it_has_a_folder({"LD_PRELOAD": late + ":" + last})
        self.assertEqual(self.folders(), [])

    def slow(self, returned, name, parameters, arguments, when, late_ms):
        """A library with which that function returns late."""
        source, library = (os.path.join(self.folder, name + kind) for kind in (".c", ".so"))
        with open(source, "w", encoding="utf-8") as file:
            file.write("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <unistd.h>\n"
                       f"{returned}{name}({parameters})\n{{\n"
                       f"    {returned}(*real)({parameters}) = ({returned}(*)({parameters}))dlsym(RTLD_NEXT, \"{name}\");\n"
                       f"    {returned}made = real({arguments});\n    if ({when}) usleep({late_ms}000);\n    return made;\n}}\n")
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True, timeout=LIMIT_S)
        return library

    def test_ended_while_it_works_it_leaves_nothing(self):
        self.end_once_it_has_a_folder({})
        self.assertEqual(os.listdir(self.folder), [])

    def end_once_it_has_a_folder(self, environment):
        self.environment.update(environment)
        demo, _ = self.start()
        end = time.monotonic() + LIMIT_S
        while not self.folders() and time.monotonic() < end:
            time.sleep(0.001)
        demo.terminate()
        self.assertEqual(demo.wait(LIMIT_S), -signal.SIGTERM)

    def test_not_on_a_terminal_the_key_stays_in_its_file_and_killed_hard_the_server_ends_too(self):
        out = os.path.join(self.folder, "out")
        with open(out, "wb") as file:
            demo = subprocess.Popen([LACUNA, "demo"], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                                    env={**self.environment, "DISPLAY": ":99", "BROWSER": "/nonexistent"})
        self.addCleanup(lambda: demo.poll() is None and demo.kill())
        end = time.monotonic() + LIMIT_S
        said = ""
        while "\n  yours " not in said and time.monotonic() < end:
            time.sleep(0.02)
            with open(out, encoding="utf-8") as file:
                said = file.read()
        (folder,) = self.folders()
        with open(os.path.join(folder, "data/local.token"), encoding="utf-8") as file:
            key = file.read().strip()
        self.assertNotIn(key, said)
        self.assertIn(f"with the key in {folder}/data/local.token", said)
        pids = self.children(demo)
        self.assertEqual(len(pids), 1)
        demo.kill()
        demo.wait(LIMIT_S)
        self.wait_gone(pids)

    def test_an_address_that_cannot_be_listened_on_is_an_error(self):
        run = subprocess.run([LACUNA, "demo", "--listen", "192.0.2.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=self.environment, timeout=LIMIT_S)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)  # before anything is made for it
        self.assertRegex(run.stderr, r"^lacuna demo: --listen 192\.0\.2\.1:0: .+\n$")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_full_temporary_folder_is_an_error_and_not_a_wait(self):
        run = subprocess.run([LACUNA, "demo"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**self.environment, "TMPDIR": "/proc/nowhere"}, timeout=LIMIT_S)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^lacuna demo: cannot make a temporary folder: .+\n$")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed")
    sys.exit(bad > 0)
