#!/usr/bin/env python3
"""`lacuna export --to perfetto`: every slice is there once, rows nest, and Perfetto's engine agrees where it is at hand."""
import collections
import glob
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/lacuna")
TRACES = os.environ.get("LACUNA_TRACES", os.path.join(ROOT, "../shared/traces"))
ENGINE = os.environ.get("LACUNA_PERFETTO", "")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Number and value of each field; values are numbers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert at <= len(data)
        yield tag >> 3, value


def first(data, number, default=None):
    return next((value for field, value in fields(data) if field == number), default)


class File:
    """Slices, marks, samples and arrows of an exported file, read as its format says."""

    def __init__(self, path):
        self.slices, self.marks, self.samples, self.flows = collections.Counter(), collections.Counter(), 0, collections.Counter()
        self.tracks, self.interned, self.open = {}, collections.defaultdict(dict), collections.defaultdict(list)
        self.extra, last = [], collections.defaultdict(int)
        with open(path, "rb") as file:
            data = file.read()
        for number, packet in fields(data):
            assert number == 1
            self.packet(dict(fields(packet)), last)
        assert not any(self.open.values()), "a slice never ends"

    def packet(self, packet, last):
        assert packet[10] == 1
        for number, entry in fields(packet.get(12, b"")):
            iid, text = first(entry, 1), first(entry, 2)
            assert iid not in self.interned[number], "an iid has two meanings"
            self.interned[number][iid] = text
        if 60 in packet:
            self.tracks[first(packet[60], 1)] = packet[60]
        elif 53 in packet:
            stage = dict(fields(packet[53]))
            self.slices[self.interned[24][stage[14]].decode(), packet[8], stage[2]] += 1
            assert stage[13] in self.interned[24] and stage[5] in self.interned[23]
            self.extra.append([(first(value, 1), first(value, 2)) for field, value in fields(packet[53]) if field == 6])
        elif 11 in packet:
            self.event(packet[8], packet[11], last)

    def event(self, time, event, last):
        kind, track = first(event, 9), first(event, 11)
        assert track in self.tracks, "a track is described before it is used"
        if kind == 4:
            self.samples += 1
            return
        name = self.interned[2].get(first(event, 10), b"").decode()
        if kind == 3:
            self.marks[name, time] += 1
            return
        assert time >= last[track], "a row goes forward"
        last[track] = time
        if kind == 1:
            self.open[track].append((name, time))
            for field, value in fields(event):
                if field == 47:
                    self.flows[value] += 1
                elif field == 4:
                    assert first(value, 1) in self.interned[3]
        else:
            name, start = self.open[track].pop()
            self.slices[name, start, time - start] += 1


def random_trace(seed):
    """Threads that nest and overlap, streams that overlap, marks, samples and arrows."""
    rng = random.Random(seed)
    events = [{"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "python"}}]
    for tid in range(3):
        for n in range(60):
            start = rng.randrange(0, 4000)
            events.append({"ph": "X", "pid": 1, "tid": tid, "cat": "cpu_op", "name": f"op {n % 7}", "ts": start, "dur": rng.choice([0, 1, 5, 300]),
                           "args": {"whole": n, "real": n / 3, "text": "\u00fc\"\\\n" * (n % 9), "list": [n], "yes": True}})
        events.append({"ph": "i", "s": "t", "pid": 1, "tid": tid, "name": "mark", "ts": 7 * tid})
    for stream in (7, 8):
        for n in range(80):
            events.append({"ph": "X", "pid": 0, "tid": stream, "cat": "kernel", "name": f"kernel {n % 5}", "ts": rng.randrange(0, 4000),
                           "dur": rng.choice([0, 2, 90]), "args": {"device": 0, "stream": stream, "correlation": n + 1000 * stream}})
    for n in range(5):
        events.append({"ph": "C", "pid": 1, "name": "memory", "ts": 10 * n, "args": {"bytes": n}})
    return {"traceEvents": events, "deviceProperties": [{"id": 0, "name": "GPU"}]}


class Perfetto(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.out = os.path.join(self.folder, "out.pftrace")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def lacuna(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout

    def check(self, path):
        """The file holds the slices that the trace has, each as often. Returns it, and their number and time."""
        self.lacuna("export", path, "--to", "perfetto", "-o", self.out)
        rows = json.loads(self.lacuna("sql", "--json", "--limit", "0", path,
                                      "SELECT t.kind = 'marks', s.name, s.start_ns, s.dur_ns, s.kind FROM slices s JOIN tracks t ON t.id = s.track"))["rows"]
        found = File(self.out)
        wanted, copies, marks = collections.Counter(), collections.Counter(), collections.Counter()
        for is_mark, name, start, length, kind in rows:
            if is_mark:
                marks[name, start] += 1
            elif kind == "copy":  # its name may say more than the recorded one
                copies[start, length] += 1
            else:
                wanted[name or "(no name)", start, length] += 1
        self.assertEqual(wanted - found.slices, collections.Counter())
        rest = collections.Counter()
        for (_, start, length), count in (found.slices - wanted).items():
            rest[start, length] += count
        self.assertEqual(rest, copies)
        self.assertEqual(found.marks, marks)
        return found, len(rows), sum(row[3] for row in rows if not row[0])

    def check_engine(self, path, count, total_ns):
        done = subprocess.run(["node", os.path.join(ROOT, "tests/support/perfetto_engine.mjs"), ENGINE, path,
                               "SELECT count(*), sum(dur) FROM slice", "SELECT name, value FROM stats WHERE severity = 'error' AND value > 0"],
                              capture_output=True, text=True, check=True)
        slices, errors = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((slices, errors), ([[count, total_ns]], []))

    def test_every_slice_of_random_traces(self):
        for seed in range(8):
            path = os.path.join(self.folder, "in.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(random_trace(seed), file)
            found, count, total_ns = self.check(path)
            self.assertEqual(found.samples, 5)
            self.assertTrue(all((b"stream", b"7") in extra or (b"stream", b"8") in extra for extra in found.extra))
            if ENGINE and seed < 3:
                self.check_engine(self.out, count, total_ns)

    def test_steps_and_the_causes_of_idle_time_are_rows(self):
        events = [{"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "main"}}]
        for n in range(12):
            at = 10000 * n
            events += [{"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": at, "dur": 10000},
                       {"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                        "ts": at, "dur": 5000},
                       {"ph": "X", "pid": 1, "tid": 1, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 5100, "dur": 10, "args": {"correlation": n + 1}},
                       {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": "gemm", "ts": at + 5200, "dur": 4000,
                        "args": {"device": 0, "stream": 7, "correlation": n + 1}}]
        path = os.path.join(self.folder, "in.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "GPU"}]}, file)
        found, count, total_ns = self.check(path)
        names = {first(track, 2) for track in found.tracks.values()}
        self.assertIn(b"steps", names)
        self.assertTrue(any(name and name.startswith(b"why idle") for name in names))
        self.assertGreaterEqual(sum(count for (name, _, _), count in found.slices.items() if name == "data_wait"), 10)
        if ENGINE:
            self.check_engine(self.out, count, total_ns)

    def test_what_is_to_be_left_out_is_not_in_the_file(self):
        trace = random_trace(1)
        trace["traceEvents"].append({"ph": "X", "pid": 1, "tid": 1, "cat": "python_function", "name": "/home/kim/secret/train.py(3): run", "ts": 1, "dur": 1,
                                     "args": {"file": "/home/kim/secret/train.py", "deep": {"host": "/home/kim/secret"}}})
        path = os.path.join(self.folder, "in.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        self.lacuna("export", path, "--to", "perfetto", "-o", self.out, "--redact", "hosts,users,paths,argv,names")
        with open(self.out, "rb") as file:
            data = file.read()
        self.assertNotIn(b"kim", data)
        self.assertNotIn(b"secret", data)

    def test_rows_of_the_jobs_own_have_no_name_where_names_are_left_out(self):
        trace = random_trace(1)
        for at in (1, 2):
            trace["traceEvents"] += [{"ph": "C", "pid": 1, "name": name, "ts": at, "args": {"value": at}}
                                     for name in ("loss of the secret model", "secret score", "GPU 0: secret", "secret: power (W)", "GPU 0: power (W)", "main 12: on a core (%)")]
            trace["traceEvents"].append({"ph": "be"[at - 1], "pid": 1, "tid": 1, "cat": "secret requests", "id": "7", "name": "secret request", "ts": at})
        trace["traceEvents"] += [{"ph": "M", "pid": 1, "tid": 1, "name": name, "args": {key: "secret"}}
                                 for name, key in (("thread_name", "name"), ("process_name", "name"), ("process_labels", "labels"))]
        trace |= {"added": "secret", "distributedInfo": {"hostname": "secret", "rank": 0}}
        path = os.path.join(self.folder, "in.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        for form in ("perfetto", "chrome", "sqlite", "csv"):
            for table in ("counters", "tracks", "processes") if form == "csv" else ("",):
                with self.subTest(form + table):
                    self.lacuna("export", path, "--to", form, "-o", self.out, "--redact", "names,hosts", *(["--table", table] if table else []))
                    with open(self.out, "rb") as file:
                        data = file.read()
                    self.assertNotIn(b"secret", data)
                    if table != "processes":
                        self.assertIn(b"GPU 0: power (W)", data)
                        self.assertIn(b"on a core (%)", data)
                    os.unlink(self.out)

    def test_real_traces(self):
        wanted = ("hta/trace_filter__sampled_rank-0.json.gz", "tracelens/mi300__resnet*", "tf/ikhlestov*merged*", "nsys/nsysai_mfu*")
        paths = [path for pattern in wanted for path in glob.glob(os.path.join(TRACES, pattern))]
        if not paths:
            self.skipTest("real traces are not beside the repository (make traces)")
        for path in paths:
            with self.subTest(os.path.basename(path)):
                _, count, total_ns = self.check(path)
                if ENGINE:
                    self.check_engine(self.out, count, total_ns)

    @unittest.skipUnless(ENGINE, "LACUNA_PERFETTO names no folder with Perfetto's engine")
    def test_the_engine(self):
        """The others ask it."""


if __name__ == "__main__":
    unittest.main()
