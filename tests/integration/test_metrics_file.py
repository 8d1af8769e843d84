#!/usr/bin/env python3
"""`run --metrics-file`: figures of a job for node_exporter's textfile collector, in Prometheus's text format."""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE = os.path.join(ROOT, "build/release/lacuna-node")
NVML = os.path.join(ROOT, "build/release/stand_in/nvml")
SECONDS = 90

# Steps of 20 ms, half of it waiting for data, until a file says that it is enough.
JOB = textwrap.dedent("""
    import os, sys, time, _lacuna
    while not os.path.exists(sys.argv[1]):
        _lacuna.push_loader("loader.wait", 0, -1)
        _lacuna.push("inside")
        time.sleep(0.01)
        _lacuna.pop()
        _lacuna.pop()
        time.sleep(0.01)
        _lacuna.step()
""")

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(r"^(" + NAME + r")\{(" + LABEL + r"(?:," + LABEL + r")*)\} (-?[0-9.]+(?:e[-+][0-9]+)?)$")


def parse(text):
    """What the format's description demands: {(name, labels): value}, {name: type}."""
    assert text.endswith("\n"), text[-50:]
    samples, types, helped, current = {}, {}, set(), None
    for line in text.splitlines():
        head = re.match(r"^# (HELP|TYPE) (" + NAME + r") (.+)$", line)
        if head:
            kind, name, rest = head.groups()
            if kind == "HELP":
                assert name not in helped, line
                helped.add(name)
            else:
                assert name not in types and rest in ("gauge", "counter"), line
                assert (rest == "counter") == name.endswith("_total"), line
                types[name] = rest
            current = name
            continue
        sample = SAMPLE.match(line)
        assert sample and sample.group(1) == current and current in types and current in helped, line
        key = (sample.group(1), sample.group(2))
        assert key not in samples, line
        samples[key] = float(sample.group(3))
    return samples, types


class Metrics(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-test-")
        self.collected = os.path.join(self.folder, "textfile")
        os.mkdir(self.collected)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LACUNA_", "SLURM_"))}
        self.environment["TMPDIR"] = self.folder
        self.end = os.path.join(self.folder, "end")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *options, **environment):
        process = subprocess.Popen([NODE, "run", "-o", os.path.join(self.folder, 'a "name" \\ of its own'), *options, "--", sys.executable, "-c", JOB, self.end],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environment, **environment})
        self.started.append(process)
        return process

    def wait_for(self, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def finish(self, process):
        open(self.end, "w").close()
        said = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 0, said)
        return said[1]

    def read(self, name="lacuna.prom"):
        with open(os.path.join(self.collected, name)) as file:
            return parse(file.read())

    def value(self, samples, name):
        found = [value for (one, _), value in samples.items() if one == "lacuna_" + name]
        return found[0] if len(found) == 1 else None

    def test_the_figures_of_a_job_are_there_while_it_runs_and_go_with_it(self):
        place = os.path.join(self.collected, "lacuna.prom")
        process = self.start("--metrics-file", place)
        self.wait_for(lambda: os.path.exists(place) and self.value(self.read()[0], "step_seconds") is not None)
        samples, types = self.read()
        self.assertTrue(all(re.fullmatch(r'job="a \\"name\\" \\\\ of its own",rank="0"', labels) for _, labels in samples), samples)
        self.assertEqual(self.value(samples, "recording"), 1)
        self.assertEqual(self.value(samples, "recorded_processes_total"), 1)
        self.assertEqual(self.value(samples, "lost_events_total"), 0)
        self.assertGreater(self.value(samples, "steps_total"), 10)
        self.assertGreaterEqual(self.value(samples, "step_seconds"), 0.02)
        self.assertGreater(self.value(samples, "loader_wait_seconds_total"), 0.01 * (self.value(samples, "steps_total") - 1))
        self.assertGreater(self.value(samples, "loader_wait_ratio"), 0.1)  # half of it on a machine that is not busy
        self.assertLess(self.value(samples, "loader_wait_ratio"), 1)
        self.assertLess(abs(time.time() - self.value(samples, "updated_timestamp_seconds")), SECONDS)
        self.assertEqual(types["lacuna_steps_total"], "counter")
        self.assertEqual(stat.S_IMODE(os.stat(place).st_mode), 0o644)  # node_exporter is another user
        self.finish(process)
        self.assertEqual(os.listdir(self.collected), [])

    def test_a_job_that_is_not_being_recorded_says_so(self):
        place = os.path.join(self.collected, "lacuna.prom")
        process = self.start("--on-demand", "--metrics-file", place)
        self.wait_for(lambda: os.path.exists(place))
        self.assertEqual(self.value(self.read()[0], "recording"), 0)
        self.finish(process)

    def test_a_gpu_that_the_driver_tells_of(self):
        if not os.path.exists(os.path.join(NVML, "libnvidia-ml.so.1")):
            self.skipTest("the stand-in for NVML is not built")
        place = os.path.join(self.collected, "lacuna.prom")
        process = self.start("--metrics-file", place, LD_LIBRARY_PATH=NVML, NVML_STAND_IN_GPUS="2", CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")
        self.wait_for(lambda: os.path.exists(place))
        # the driver answers in a thread of its own, so it may be the second time
        self.wait_for(lambda: any(name == "lacuna_gpu_busy_ratio" for name, _ in self.read()[0]))
        busy = {labels: value for (name, labels), value in self.read()[0].items() if name == "lacuna_gpu_busy_ratio"}
        self.finish(process)
        self.assertEqual([(labels.rpartition(",")[2], value) for labels, value in busy.items()], [('gpu="1"', 0.98)])

    def test_ranks_of_a_node_write_files_of_their_own(self):
        ranks = [self.start(LACUNA_METRICS_FILE=os.path.join(self.collected, "lacuna.prom"), SLURM_JOB_ID="77", SLURM_PROCID=str(rank), SLURM_NTASKS="2")
                 for rank in range(2)]
        names = ["lacuna-task-0.prom", "lacuna-task-1.prom"]
        self.wait_for(lambda: set(names) <= set(os.listdir(self.collected)))
        for rank, name in enumerate(names):
            self.assertTrue(all(labels == f'job="slurm-77",rank="{rank}"' for _, labels in self.read(name)[0]))
        for process in ranks:
            self.finish(process)
        self.assertEqual(os.listdir(self.collected), [])

    def test_what_a_killed_launcher_left_says_how_old_it_is(self):
        place = os.path.join(self.collected, "node.%h.prom")
        process = self.start("--metrics-file", place)
        self.wait_for(lambda: any(name.endswith(".prom") for name in os.listdir(self.collected)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        name = [name for name in os.listdir(self.collected) if name.endswith(".prom")][0]
        self.assertLess(abs(time.time() - self.value(self.read(name)[0], "updated_timestamp_seconds")), SECONDS)

    def test_a_place_that_cannot_be_written_is_said_once_and_the_job_goes_on(self):
        process = self.start("--metrics-file", os.path.join(self.folder, "nowhere", "lacuna.prom"))
        said = self.finish(process)
        self.assertEqual(said.count("the metrics cannot be written to"), 1, said)
        for bad in ("%x.prom", "%"):
            self.assertEqual(subprocess.run([NODE, "run", "--metrics-file", bad, "--", "true"], stderr=subprocess.DEVNULL).returncode, 2)

    def test_what_is_no_file_stays_what_it_is(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        link = os.path.join(self.folder, "link")
        os.symlink(pipe, link)
        for place in (pipe, link):
            said = self.finish(self.start("--metrics-file", place, LACUNA_METRICS_FILE=""))
            self.assertEqual(said.count("no regular file"), 1, said)
            self.assertTrue(stat.S_ISFIFO(os.stat(place).st_mode))
        self.assertTrue(os.path.islink(link))

    def test_a_link_is_followed(self):
        place, link = os.path.join(self.collected, "lacuna.prom"), os.path.join(self.folder, "link")
        os.symlink("textfile/lacuna.prom", link)
        process = self.start("--metrics-file", link)
        self.wait_for(lambda: os.path.exists(place))
        self.assertTrue(os.path.islink(link) and not os.path.islink(place))
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
