"""Files of all formats that lie: damaged, absurd, hard to work on, and bombs.

What must hold: no crash, no leak, no hang, no temporary file left, a sentence where it is refused, and an analysis
whose numbers can be true. Runs the sanitizer build where it is there; times are taken with the released program.
"""
import gzip
import io
import json
import math
import os
import resource
import signal
import sqlite3
import struct
import subprocess
import tarfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "traces")
EXACT = 2**53
FORMS = ("chrome", "folded", "speedscope", "sqlite", "html", "markdown")
WHAT_IF = "workers=4,layout=nhwc,pinned=1,async=1,sync=0,allocator=0,module_load=0,launch=0,comm=0.5,kernels=0.5"


class Attack:
    """One run of this area: programs, folders and how a reply is judged."""

    def __init__(self, area):
        self.area, self.random = area, area.random
        sanitized = os.path.join(area.sanitized, "lacuna")
        self.release = os.path.join(area.release, "lacuna")
        self.program = sanitized if os.path.exists(sanitized) else self.release
        self.temporary = os.path.join(area.folder, "tmp")
        os.makedirs(self.temporary)
        self.environment = dict(os.environ, TMPDIR=self.temporary, LC_ALL="C.UTF-8",
                                ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=99")
        self.count = 0

    def path(self, ending):
        self.count += 1
        return os.path.join(self.area.folder, f"{self.count}{ending}")

    def run(self, *args, program=None, seconds=120):
        """(status, stdout, stderr, CPU seconds); status None: it was ended for its time."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen([program or self.program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment)
        try:
            out, err = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            status = None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return status, out, err.decode("utf-8", "replace"), cpu

    def broken(self, name, reply, allowed=(0, 1)):
        """What is wrong with a reply of the program, or None."""
        status, out, err, _ = reply
        if status is None:
            return f"{name}: no end"
        if status not in allowed or "Sanitizer" in err or "runtime error" in err:
            return f"{name}: status {status}: {err[-300:]}"
        if status == 1 and (not err.startswith("lacuna ") or not 1 <= err.count("\n") <= 64 or
                            "out of memory" in err):
            return f"{name}: refused with {err[-300:]!r}"
        if any(ord(c) < 32 and c != "\n" for c in err) or b"\x1b" in out:
            return f"{name}: steers the terminal: {err[-200:]!r}"
        left = os.listdir(self.temporary)
        return f"{name}: left {left[:3]} in the temporary folder" if left else None

    def analysis(self, path, *more):
        """Analyzes; returns the document (None: refused) and what is wrong."""
        reply = self.run("analyze", path, "--json", *more)
        wrong = self.broken("analyze", reply)
        if wrong or reply[0] != 0:
            return None, wrong
        try:
            document = json.loads(reply[1], parse_constant=lambda word: math.nan)
        except ValueError as error:
            return None, f"analyze: no JSON: {error}"
        documents = ([rank["analysis"] for rank in document["ranks"]] if document["schema"] == "lacuna.run/1"
                     else [document])
        for one in documents:
            wrong = impossible(one)
            if wrong:
                return None, wrong
        return document, None

    def note(self, problems, wrong, name, data):
        if wrong:
            kept = self.area.keep(f"{name}-{len(problems)}", data)
            problems.append(f"{name}: {wrong} ({kept})")


def impossible(document):
    """The first number of an analysis that cannot be true of any trace, or None."""
    stack = [("", document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [(f"{path}/{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            stack += [(f"{path}/{at}", inner) for at, inner in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{path} is {value}"
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if abs(value) >= EXACT and "settings" not in path and "metadata" not in path:
                return f"{path} is {value}"
            if path.endswith("_pct") and not path.endswith(("spread_pct", "error_pct")) and not -1e-3 <= value <= 100.001:
                return f"{path} is {value}"
    duration = document["trace"]["duration_ns"]
    steps = document["steps"]
    for key in ("mean_ns", "median_ns", "p95_ns", "device_mean_ns"):
        if (steps.get(key) or 0) > duration + 1000:
            return f"steps/{key} {steps[key]} in a recording of {duration}"
    for device in document["devices"]:
        if sum(device["partition_ns"].values()) != device["span_ns"]:
            return "the partition does not sum to the span"
        if sum(device["idle_by_cause_ns"].values()) != device["idle_ns"]:
            return "causes do not sum to the idle time"
        if device["span_ns"] > duration:
            return f"a device spans {device['span_ns']} of {duration}"
    for finding in document["findings"]:
        gain = finding["gain_pct"]
        if gain["mid"] is not None and not gain["low"] <= gain["mid"] <= gain["high"]:
            return f"{finding['id']}: gains {gain}"
        for text in (finding["title"], finding["why"]):
            if " nan" in text or " inf" in text or "-nan" in text:
                return f"{finding['id']}: {text}"
    text = document["verdict"]["text"]
    if "waits 0 ns" in text or " 1 ns step" in text or " nan" in text or " inf " in text:
        return f"verdict: {text}"
    return None


# ---- traces of our own


def kineto(random, steps=12, kernels=24):
    """A training loop as torch.profiler writes it."""
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
              {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}]
    at, corr, busy = 1000.0, 1, 0.0
    for step in range(steps):
        begin = at
        events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                       "pid": 1, "tid": 1, "ts": at, "dur": 300 + 10 * random.random(), "args": {"External id": corr}})
        at += 320
        events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7,
                       "ts": at + 5, "dur": 40, "args": {"device": 0, "stream": 7, "correlation": corr, "bytes": 1 << 20}})
        for k in range(kernels):
            corr += 1
            name = ("nchwToNhwcKernel", "sgemm_128x128", "void at::native::vectorized_elementwise_kernel<4>",
                    "ncclKernel_AllReduce", "cudnn_conv")[k % 5]
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at,
                           "dur": 6, "args": {"correlation": corr, "External id": corr}})
            busy = max(busy, at + 8)
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": busy, "dur": 20.125,
                           "args": {"device": 0, "context": 1, "stream": 7, "correlation": corr, "grid": [80, 1, 1],
                                    "block": [256, 1, 1], "registers per thread": 32, "est. achieved occupancy %": 40}})
            events.append({"ph": "s", "id": corr, "pid": 1, "tid": 1, "ts": at, "cat": "ac2g", "name": "ac2g"})
            events.append({"ph": "f", "id": corr, "pid": 0, "tid": 7, "ts": busy, "cat": "ac2g", "name": "ac2g", "bp": "e"})
            busy += 21
            at += 9
        corr += 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 1, "tid": 1, "ts": at,
                       "dur": max(1.0, busy - at), "args": {"correlation": corr}})
        at = max(at, busy) + 20
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1,
                       "ts": begin, "dur": at - begin})
        events.append({"ph": "C", "name": "memory", "pid": 1, "tid": 1, "ts": at, "args": {"bytes": step * 1000}})
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80 << 30, "numSms": 132}],
            "traceEvents": events}


def tensorflow(random):
    """A timeline of TensorFlow."""
    rows = ["/job:worker/replica:0/task:0/device:GPU:0 Compute", "/device:GPU:0/stream:7", "/device:GPU:0/memcpy",
            "/job:worker/replica:0/task:0/cpu:0 Compute"]
    events = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in enumerate(rows)]
    for i in range(300):
        events.append({"ph": "X", "cat": "Op", "name": ("Conv2D", "MEMCPYHtoD", "MatMul", "IteratorGetNext")[i % 4],
                       "pid": i % 4, "tid": i % 2, "ts": 100 * i, "dur": random.randrange(1, 90),
                       "args": {"name": f"op{i}", "op": "Conv2D"}})
    return {"traceEvents": events}


def pairs(random):
    """Begin and end, async, instants and arrows."""
    events = []
    for i in range(200):
        for phase, at in (("B", 10 * i), ("E", 10 * i + random.randrange(1, 30))):
            events.append({"ph": phase, "name": f"r{i % 7}", "pid": 1, "tid": i % 3, "ts": at, "args": {"i": i}})
        for phase, at in (("b", 10 * i), ("n", 10 * i + 1), ("e", 10 * i + 8)):
            events.append({"ph": phase, "id": hex(i % 9), "cat": "async", "name": f"a{i % 5}", "pid": 1, "ts": at})
        events.append({"ph": "i", "s": "t", "name": "mark", "pid": 1, "tid": 1, "ts": 10 * i})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def traces_to_mutate(attack):
    """(name, document) of our own and, cut to some thousand events, of the real traces that are at hand."""
    random = attack.random
    found = [("kineto", kineto(random)), ("tensorflow", tensorflow(random)), ("pairs", pairs(random))]
    folder = os.path.join(attack.area.folder, "demo")
    if attack.run("demo", folder, seconds=300)[0] == 0:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".json", ".json.gz")))
        found += [("demo-" + name, cut(load(os.path.join(folder, name)))) for name in names[:2]]
    if not os.path.isdir(SHARED):
        attack.area.skip("mutations of real traces", "../shared/traces is not there")
        return found
    for base, _, names in sorted(os.walk(SHARED)):
        for name in sorted(names):
            path = os.path.join(base, name)
            if name.endswith((".json", ".json.gz")) and os.path.getsize(path) < 4 << 20 and len(found) < 40:
                document = load(path)
                if document and document.get("traceEvents"):
                    found.append((name, cut(document)))
    return found


def load(path):
    """A trace as a document, or None."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            document = json.loads(file.read())
    except (ValueError, OSError, EOFError):
        return None
    return {"traceEvents": document} if isinstance(document, list) else document


def cut(document, most=2500):
    events = [event for event in document.get("traceEvents", []) if isinstance(event, dict)]
    kept = [event for event in events if event.get("ph") == "M"][:300]
    timed = sorted((event for event in events if event.get("ph") != "M" and isinstance(event.get("ts"), (int, float))),
                   key=lambda event: event["ts"])
    return dict(document, traceEvents=kept + timed[:most])


# ---- forty kinds of damage to an event or a document

NUMBERS = (0, -1, 1, 0.5, 1e-9, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -2**63, 1e18, 1e300, -1e300, 9007199254740993,
           1e15, 123456789.987654321)
TEXTS = ("", "\u0000", "\u001b[31mred\u001b[0m", "\u009b31m", "\u202eabc", "a" * 70000, "ProfilerStep#99999999999999999999", "NaN",
         "<script>alert(1)</script>", "'; DROP TABLE trace; --", "\ud800", "../../../etc/passwd", "{\"a\":[", "%s%n%d",
         "ncclKernel", "nchwToNhwcKernel", "loader.fetch", "cudaMalloc", "ProfilerStep#3", "GPU 0", "-0", "1e999")
PHASES = "XBEbenisfCMODNPSFTpRVcv"


def pick(random, events, wanted=lambda event: True):
    fitting = [event for event in events if wanted(event)]
    return random.choice(fitting) if fitting else {}


def number(random):
    return random.choice(NUMBERS) if random.random() < 0.7 else random.uniform(-1e6, 1e12)


def mutations():
    """(name, function of (random, document, events)); each changes the document in place."""
    def some(change, share=0.05, wanted=lambda event: True):
        def apply(random, document, events):
            for event in events:
                if random.random() < share and wanted(event):
                    change(random, event)
            change(random, pick(random, events))
        return apply

    def put(key, values):
        return some(lambda random, event: event.__setitem__(key, values(random)))

    def in_args(key, values):
        def change(random, event):
            if not isinstance(event.get("args"), dict):
                event["args"] = {}
            event["args"][key] = values(random)
        return some(change)

    def text(random):
        return random.choice(TEXTS)

    def any_value(random):
        return random.choice((None, True, [], {}, [[[]]], {"a": {"b": 1}}, text(random), number(random)))

    def swap(key):
        def apply(random, document, events):
            for _ in range(20):
                a, b = pick(random, events), pick(random, events)
                a[key], b[key] = b.get(key), a.get(key)
        return apply

    def drop(key):
        return some(lambda random, event: event.pop(key, None))

    def scale(factor):
        def apply(random, document, events):
            for event in events:
                for key in ("ts", "dur"):
                    if isinstance(event.get(key), (int, float)):
                        event[key] *= factor
        return apply

    def same(key):
        def apply(random, document, events):
            value = pick(random, events).get(key, 1)
            for event in events:
                event[key] = value
        return apply

    def same_arg(key):
        def apply(random, document, events):
            for event in events:
                if isinstance(event.get("args"), dict):
                    event["args"][key] = 1
        return apply

    def document_member(random, document, events):
        document[random.choice(("baseTimeNanoseconds", "displayTimeUnit", "deviceProperties", "distributedInfo", "schemaVersion",
                                "metadata", "otherData", "stackFrames"))] = any_value(random)

    def duplicate(random, document, events):
        events.extend(random.choices(events, k=len(events) // 2))

    def shuffle(random, document, events):
        random.shuffle(events)

    def delete(random, document, events):
        wanted = random.choice(("X", "M", "s", "f", "B", "E", "b", "e"))
        events[:] = [event for event in events if event.get("ph") != wanted or random.random() < 0.3]

    def keep_few(random, document, events):
        events[:] = random.sample(events, min(len(events), random.randrange(1, 20)))

    def not_events(random, document, events):
        for _ in range(10):
            events.insert(random.randrange(len(events) + 1), any_value(random))

    def many_steps(random, document, events):
        for i in range(500):
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1,
                           "ts": random.choice((i * 0.001, i, 5, 1e15 / (i + 1))), "dur": random.choice((0, 0.001, 1, 1e15))})

    def long_kernels(random, document, events):
        for event in events:
            if event.get("cat") == "kernel" and random.random() < 0.3:
                event["dur"] = random.choice((1e9, 1e12, 8e15, 9e15, 0, 0.001))

    def overlap(random, document, events):
        begin = min((event["ts"] for event in events if isinstance(event.get("ts"), (int, float))), default=0)
        for event in events:
            if event.get("cat") == "kernel":
                event["ts"] = begin

    def nest(random, document, events):
        value = {}
        for _ in range(random.choice((10, 63, 64, 65, 200))):
            value = random.choice(({"a": value}, [value]))
        pick(random, events)["args"] = value

    def far(random, document, events):
        for _ in range(3):
            pick(random, events)["ts"] = random.choice((-9e15, 9e15, 9.2e18, 1e19, -1e19))

    def devices(random, document, events):
        for event in events:
            if isinstance(event.get("args"), dict) and "device" in event["args"]:
                event["args"]["device"] = random.choice((0, 1, 7, 200, -1, 2**40, "x"))

    def streams(random, document, events):
        for event in events:
            if isinstance(event.get("args"), dict) and "stream" in event["args"]:
                event["args"]["stream"] = random.randrange(200)

    return [
        ("ts", put("ts", number)), ("dur", put("dur", number)), ("ph", put("ph", lambda r: r.choice(PHASES))),
        ("name", put("name", text)), ("cat", put("cat", text)), ("pid", put("pid", number)), ("tid", put("tid", number)),
        ("pid text", put("pid", text)), ("id", put("id", any_value)), ("args", put("args", any_value)),
        ("any ts", put("ts", any_value)), ("any name", put("name", any_value)), ("tts", put("tts", number)),
        ("correlation", in_args("correlation", number)), ("bytes", in_args("bytes", number)),
        ("device", in_args("device", number)), ("stream", in_args("stream", any_value)), ("grid", in_args("grid", any_value)),
        ("External id", in_args("External id", number)), ("strange argument", in_args("\u0000\"\\", any_value)),
        ("swap names", swap("name")), ("swap phases", swap("ph")), ("swap times", swap("ts")), ("swap args", swap("args")),
        ("no ts", drop("ts")), ("no ph", drop("ph")), ("no dur", drop("dur")), ("no args", drop("args")),
        ("tiny", scale(1e-7)), ("huge", scale(1e6)), ("one correlation", same_arg("correlation")), ("one ts", same("ts")),
        ("one name", same("name")), ("members", document_member), ("duplicate", duplicate), ("shuffle", shuffle),
        ("delete", delete), ("few", keep_few), ("no events", not_events), ("many steps", many_steps),
        ("long kernels", long_kernels), ("overlap", overlap), ("nest", nest), ("far", far), ("devices", devices),
        ("streams", streams),
    ]


def as_bytes(random, document):
    """The document as a file: sometimes with duplicate members, damage, packed."""
    data = json.dumps(document, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    chance = random.random()
    if chance < 0.1:
        data = data.replace(b'"ph"', b'"ts": 1, "ts": 2, "ph"', random.randrange(1, 50))
    elif chance < 0.25 and data:
        damaged = bytearray(data)
        for _ in range(random.randrange(1, 30)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        data = bytes(damaged)
    elif chance < 0.3:
        data = data[:random.randrange(len(data))]
    return gzip.compress(data, 1) if random.random() < 0.15 else data


def mutated(attack, traces):
    """A mutated trace: (kinds, path, bytes)."""
    random = attack.random
    name, document = random.choice(traces)
    document = json.loads(json.dumps(document))
    kinds = random.sample(mutations(), random.choice((1, 1, 2, 3)))
    for _, change in kinds:
        try:
            change(random, document, document["traceEvents"])
        except (TypeError, AttributeError, ValueError, OverflowError):
            pass  # two changes that do not fit together
    data = as_bytes(random, document)
    path = attack.path(".json")
    with open(path, "wb") as file:
        file.write(data)
    return f"{name}: {', '.join(kind for kind, _ in kinds)}", path, data


def attack_json(attack, seconds):
    traces = traces_to_mutate(attack)
    end, tried, problems = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        kinds, path, data = mutated(attack, traces)
        how = attack.random.random()
        if how < 0.6:
            _, wrong = attack.analysis(path)
        elif how < 0.8:
            _, wrong = attack.analysis(path, "--what-if", WHAT_IF)
        else:
            wrong = attack.broken("analyze", attack.run("analyze", path))
        attack.note(problems, wrong and f"{kinds}: {wrong}", "json", data)
        os.unlink(path)
        tried += 1
    attack.area.row(f"JSON traces, {len(mutations())} kinds of structural mutation", tried, problems)
    return traces


def attack_export(attack, traces, seconds):
    end, tried, problems = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        kinds, path, data = mutated(attack, traces)
        form = attack.random.choice(FORMS)
        out = attack.path("." + form)
        redact = ["--redact", "hosts,users,paths,argv,names"] if attack.random.random() < 0.3 else []
        reply = attack.run("export", path, "--to", form, "-o", out, *redact)
        wrong = attack.broken(f"export {form}", reply, (0, 1))
        if not wrong and reply[0] == 0:
            wrong = check_exported(attack, form, out)
        elif not wrong and os.path.exists(out):
            wrong = f"export {form}: refused, and wrote"
        attack.note(problems, wrong and f"{kinds}: {wrong}", "export", data)
        for made in (path, out):
            if os.path.exists(made):
                os.unlink(made)
        tried += 1
    attack.area.row("export in six forms; Chrome files import again", tried, problems)


def check_exported(attack, form, out):
    with open(out, "rb") as file:
        written = file.read()
    if b"\x1b" in written and form != "sqlite":
        return f"export {form}: an escape sequence in the file"
    if form in ("chrome", "speedscope"):
        try:
            json.loads(written)
        except ValueError as error:
            return f"export {form}: no JSON: {error}"
    if form == "chrome":
        return attack.broken("import of an exported trace", attack.run("analyze", out, "--json"), (0,))
    if form == "folded":
        for line in written.decode("utf-8").splitlines():
            if not line.rsplit(" ", 1)[-1].isdigit() or any(0x7f <= ord(c) <= 0x9f for c in line):
                return f"export folded: {line[:80]!r}"
    if form == "sqlite":
        with sqlite3.connect(out) as db:
            if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                return "export sqlite: damaged"
        db.close()
    return None


def attack_compare(attack, traces, seconds):
    end, tried, problems = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        first, a, data = mutated(attack, traces)
        second, b, _ = mutated(attack, traces)
        reply = attack.run("compare", a, b, "--json", "--fail-if", "step_time>+3%")
        wrong = attack.broken("compare", reply, (0, 1, 3))
        if not wrong and reply[0] != 1:
            try:
                json.loads(reply[1], parse_constant=lambda word: 1 / 0)
            except (ValueError, ZeroDivisionError) as error:
                wrong = f"compare: no JSON: {error}"
        attack.note(problems, wrong and f"{first} and {second}: {wrong}", "compare", data)
        os.unlink(a)
        os.unlink(b)
        tried += 1
    attack.area.row("compare of mutated pairs", tried, problems)


# ---- exports of Nsight Systems

NSYS = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER,
 streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER,
 gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER,
 staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
 correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
 correlationId INTEGER, globalPid INTEGER, bytes INTEGER, value INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER,
 nameId INTEGER, returnValue INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
 streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER,
 text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER);
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT, cuDevice INTEGER, smCount INTEGER,
 totalMemory INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
"""


def make_nsys(path, random):
    db = sqlite3.connect(path)
    db.executescript(NSYS)
    names = ["cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020", "sgemm_128x128", "nchwToNhwcKernel", "iteration", "main",
             "cudaMemcpyAsync_v3020"]
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    pid = 1 << 24
    at = 1000000
    for i in range(200):
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0)", (at, at + 5000, pid | 1, i, i % 2))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, ?, ?, 80, 1, 1, 256, 1, 1, 32, 0, 0)",
                   (at + 6000, at + 6000 + random.randrange(1, 9000), i, pid, 2 + i % 2, 2 + i % 2))
        if i % 10 == 0:
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 1, 7, ?, ?, 4096, 1, 1, 2)", (at, at + 3000, i, pid))
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, 0, 0, ?, ?, NULL, 4, 0, 7)",
                       (at, at + 100000, i, "iteration", pid | 1))
        at += 10000
    db.execute("INSERT INTO PROCESSES VALUES (?, 1, 'python')", (pid,))
    db.execute("INSERT INTO ThreadNames VALUES (5, 0, ?)", (pid | 1,))
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'H100', '', 0, 132, 80000000000, 9, 0)")
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '')")
    db.commit()
    db.close()


SQL_VALUES = ("0", "-1", "NULL", "9223372036854775807", "-9223372036854775808", "'text'", "x'00ff00'", "1e308", "zeroblob(100000)",
              "randomblob(64)", "9e999", "4611686018427387904", "char(27) || '[31m'", "''")


def damage_schema(random, db, table):
    """Rows that lie, and schemas that want to run something."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    column = random.choice(columns)
    kind = random.randrange(9)
    if kind <= 3:
        db.execute(f"UPDATE {table} SET {column} = {random.choice(SQL_VALUES)} WHERE rowid % {random.randrange(1, 9)} = 0")
    elif kind == 4:
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        db.execute(f"CREATE VIEW {table} AS SELECT * FROM old_{table}")
    elif kind == 5:
        db.execute(f"CREATE TRIGGER t_{column} AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END")
    elif kind == 6:
        db.execute(f"ALTER TABLE {table} ADD COLUMN made INTEGER GENERATED ALWAYS AS ({column} * 1000000007) VIRTUAL")
    elif kind == 7:
        db.execute(f"DROP TABLE {table}")
    else:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_schema SET sql = ?, rootpage = ? WHERE name = ?",
                   (random.choice((f"CREATE TABLE {table} ({column} CHECK (load_extension('x')))", "CREATE TABLE x(", "", None,
                                   f"CREATE VIRTUAL TABLE {table} USING fts3(a)",
                                   f"CREATE VIEW {table} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n")),
                    random.choice((0, 1, 2, 3, 99999)), table))


def attack_nsys(attack, seconds):
    random = attack.random
    bases = [attack.path(".sqlite")]
    make_nsys(bases[0], random)
    folder = os.path.join(SHARED, "nsys")
    if os.path.isdir(folder):
        bases += [os.path.join(folder, name) for name in sorted(os.listdir(folder))
                  if name.endswith(".sqlite") and os.path.getsize(os.path.join(folder, name)) < 8 << 20]
    end, tried, problems = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        with open(random.choice(bases), "rb") as file:
            data = bytearray(file.read())
        path = attack.path(".sqlite")
        with open(path, "wb") as file:
            file.write(data)
        if random.random() < 0.6:
            db = sqlite3.connect(path)
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            try:
                for _ in range(random.randrange(1, 4)):
                    damage_schema(random, db, random.choice(tables))
                db.commit()
            except (sqlite3.Error, IndexError):
                pass
            db.close()
        else:
            for _ in range(random.randrange(1, 40)):
                data[random.randrange(len(data))] = random.randrange(256)
            page = random.randrange(max(1, len(data) // 4096)) * 4096
            choice = random.randrange(4)
            if choice == 0:
                data[page:page + 4096] = bytes(4096)
            elif choice == 1:
                data[page:page + 4096] = random.randbytes(4096)
            elif choice == 2:
                del data[random.randrange(100, len(data)):]
            with open(path, "wb") as file:
                file.write(data)
        with open(path, "rb") as file:
            kept = file.read()
        _, wrong = attack.analysis(path)
        attack.note(problems, wrong, "nsys", kept)
        os.unlink(path)
        tried += 1
    attack.area.row("Nsight exports: values, schemas, views, triggers, pages", tried, problems)


# ---- hard work on purpose


def launch(i, at, **more):
    event = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2,
             "args": {"correlation": i}}
    event.update(more)
    return event


def kernel(i, at, dur=5, **more):
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at, "dur": dur,
             "args": {"device": 0, "stream": 7, "correlation": i}}
    event.update(more)
    return event


def host(i, at, dur=5, **more):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": at, "dur": dur}
    event.update(more)
    return event


def hard_work(n):
    """(name, events) of about n events each; the first is the plain one that the others are measured by."""
    two, long_time = range(n // 2), 10 * n
    gpu = {"device": 0, "stream": 7}

    def steps(count, dur=10):
        return [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": dur}
                for i in range(count)]

    def launched(**more):
        return [event for i in two for event in (launch(i, 10 * i), kernel(i, 10 * i + 3, **more))]

    yield "plain", launched()
    yield "kernels that all overlap", [kernel(i, 0, long_time) for i in range(n)]
    yield "kernels that begin together", [kernel(i, 0, i + 1) for i in range(n)]
    yield "kernels that end together", [kernel(i, i, n - i) for i in range(n)]
    yield "kernels of no length", [kernel(i, i, 0) for i in range(n)]
    yield "nested ranges", [host(i, i, 2 * (n - i)) for i in range(n)]
    yield "ranges at one time", [host(i, 5, 5) for i in range(n)]
    yield "steps in steps", steps(n, 10 * n)
    yield "steps of no length", steps(n, 0)
    yield "steps and kernels", steps(n // 2) + [kernel(i, 10 * i) for i in two]
    yield "one correlation", [event for i in two for event in (launch(1, 10 * i), kernel(1, 10 * i + 3))]
    yield "one launch, many kernels", [launch(1, 0)] + [kernel(1, i) for i in range(n)]
    yield "many launches, one kernel", [kernel(1, 0)] + [launch(1, i) for i in range(n)]
    yield "launches backwards", [event for i in two for event in (launch(i, 10 * i), kernel(i, long_time - 10 * i))]
    yield "one arrow id", [{"ph": "sf"[i % 2], "id": 1, "cat": "c", "name": "a", "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    yield "arrows without ends", [{"ph": "s", "id": i, "cat": "c", "name": "a", "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    yield "begins", [{"ph": "B", "name": f"b{i}", "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    yield "ends", [{"ph": "E", "name": f"b{i}", "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    yield "begins, then ends in the wrong order", (
        [{"ph": "B", "name": f"b{i}", "pid": 1, "tid": 1, "ts": i} for i in two] +
        [{"ph": "E", "name": f"b{i}", "pid": 1, "tid": 1, "ts": n + i} for i in two])
    yield "async of one id", [{"ph": "be"[i % 2], "id": "1", "cat": "c", "name": f"n{i % 1000}", "pid": 1, "ts": i} for i in range(n)]
    yield "async begins of one id", [{"ph": "b", "id": "1", "cat": "c", "name": f"n{i}", "pid": 1, "ts": i} for i in range(n)]
    yield "threads", [host(i, i, tid=i) for i in range(n)]
    yield "processes", [host(i, i, pid=i) for i in range(n)]
    yield "thread names", [{"ph": "M", "name": "thread_name", "pid": 1, "tid": i, "args": {"name": f"t{i}"}} for i in range(n)] + [host(1, 1)]
    yield "streams", [kernel(i, 10 * i, tid=i, args={"device": 0, "stream": i, "correlation": i}) for i in range(n)]
    yield "devices", [kernel(i, 10 * i, pid=i % 1000, args={"device": i % 1000, "stream": 7, "correlation": i}) for i in range(n)]
    yield "kernel names", [kernel(i, 10 * i, name=f"kernel_{i}") for i in range(n)]
    yield "long kernel names", [kernel(i, 10 * i, name=f"void k<{'a' * 500}{i}>") for i in range(n // 20)]
    yield "operator names", [host(i, 10 * i, name=f"aten::op{i}") for i in range(n)]
    yield "categories", [host(i, 10 * i, cat=f"c{i}") for i in range(n)]
    yield "argument templates", [host(i, 10 * i, args={f"a{i}": i}) for i in range(n)]
    yield "shapes", [host(i, 10 * i, args={"Input Dims": [[i, i, i]] * 8}) for i in range(n // 4)]
    yield "counters", [{"ph": "C", "name": f"c{i % 5000}", "pid": 1, "ts": i, "args": {"v": i}} for i in range(n)]
    yield "counter series", [{"ph": "C", "name": "c", "pid": 1, "ts": i, "args": {f"s{i % 5000}": i}} for i in range(n)]
    yield "waits for data", [host(i, 10 * i, name="enumerate(DataLoader)#x.__next__", cat="user_annotation") for i in two] + launched()[:n // 2]
    yield "loader ranges of many workers", [host(i, i, 50, name="loader.fetch", cat="user_annotation", tid=i % 5000,
                                                 args={"batch": i, "worker": i % 5000}) for i in range(n)]
    yield "long waits", [host(i, i, long_time, name="cudaStreamSynchronize", cat="cuda_runtime", tid=i % 1000) for i in two] + launched()[:n // 2]
    yield "copies over all kernels", [event for i in two for event in (
        kernel(i, 10 * i), kernel(i, 0, long_time, cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)", tid=i,
                                  args={"device": 0, "stream": i, "bytes": 1}))]
    yield "copies of one stream over all kernels", [event for i in two for event in (
        kernel(i, 10 * i), kernel(i, i, long_time, cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)",
                                  args=dict(gpu, bytes=1)))]
    yield "collectives", [kernel(i, 10 * i, 50, name="ncclDevKernel_AllReduce_Sum_f32", args=dict(gpu, correlation=i)) for i in range(n)]
    yield "module loads", [host(i, 10 * i, 9, name="cudaModuleLoadData", cat="cuda_runtime") for i in two] + launched()[:n // 2]
    yield "allocations", [host(i, 10 * i, 9, name="cudaMalloc", cat="cuda_runtime") for i in two] + launched()[:n // 2]
    yield "python frames", [host(i, i, 2 * (n - i), cat="python_function", name=f"train.py({i}): f") for i in range(n)]
    yield "instants", [{"ph": "i", "name": f"i{i}", "pid": 1, "tid": 1, "ts": i, "s": "t"} for i in range(n)]
    yield "GPU ranges", [kernel(i, i, n - i, cat="gpu_user_annotation", name="r") for i in two] + launched()[:n // 2]
    yield "events of no time", [{"ph": "X", "name": "x", "pid": 1, "tid": 1} for _ in range(n)]
    yield "times backwards", [kernel(i, 10 * (n - i)) for i in range(n)]
    yield "optimizer steps", [host(i, 10 * i, 5, name="Optimizer.step#SGD.step", cat="user_annotation") for i in two] + launched()[:n // 2]
    yield "threads whose numbers collide in a simple hash", [host(i, i, pid=i // 300 * 8192, tid=i % 300 * 65536) for i in range(n)]


def attack_hard_work(attack, n):
    plain, tried, problems = None, 0, []
    for name, events in hard_work(n):
        path = attack.path(".json")
        data = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
        with open(path, "wb") as file:
            file.write(data)
        status, _, err, cpu = attack.run("analyze", path, "--json", program=attack.release, seconds=300)
        plain = plain or (cpu, len(data))
        limit = 2.0 + 12.0 * plain[0] * max(1.0, len(data) / plain[1])
        if status is None or cpu > limit:
            attack.note(problems, f"{cpu:.1f} s of CPU, at most {limit:.1f}", name.replace(" ", "-"), data)
        elif status not in (0, 1) or (status == 1 and "lacuna analyze" not in err):
            attack.note(problems, f"status {status}: {err[-200:]}", name.replace(" ", "-"), data)
        os.unlink(path)
        tried += 1
        if attack.area.time_left() < 5:
            break
    attack.area.row(f"hard work on purpose, {n:,} events each, by CPU time", tried, problems)


# ---- bombs


def part(name, size, data, offset):
    return struct.pack("<IIIIQ", 0x5452504C, len(name), size, len(data), offset) + name + data


def tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data, *kind in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if kind:
                info.type, info.linkname, info.size = kind[0], "/etc/passwd", 0
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zstd_window(exponent):
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(exponent - 10) << 3]) + struct.pack("<I", (17 << 3) | 1)[:3] + b'{"traceEvents":[]'


def bombs():
    """(name, bytes, seconds of CPU that it may take)"""
    event = b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1},'
    trace = b'{"traceEvents":[' + event[:-1] + b"]}"
    nested = trace
    for depth in range(1, 6):
        nested = gzip.compress(nested)
        yield f"gzip in gzip, {depth}", nested, 2
    zeros = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield "600 MB of blanks", zeros.compress(b" " * (600 << 20)) + zeros.flush(), 5
    yield "gzip of gzip of blanks", gzip.compress(gzip.compress(b" " * (200 << 20))), 5
    yield "200,000 gzip members", gzip.compress(b" ") * 200000, 10
    yield "gzip, then other bytes", gzip.compress(trace) + b"junk" * 1000, 2
    yield "gzip cut", gzip.compress(trace * 1000)[:-9], 2
    for exponent in (20, 27, 28, 31, 41):
        yield f"zstd window of 2^{exponent}", zstd_window(exponent), 2
    yield "200,000 zstd frames", (b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00") * 200000, 10
    yield "200,000 skippable frames", (b"\x50\x2a\x4d\x18" + struct.pack("<I", 8) + b"x" * 8) * 200000, 10
    yield "a skippable frame of 4 GiB", b"\x50\x2a\x4d\x18\xff\xff\xff\xff" + b"x" * 1000, 2
    yield "300,000 members", tar_of((f"{i}.txt", b"") for i in range(30000)) + tar_of([("a.json", trace)]), 10
    yield "links and devices", tar_of([(f"{kind!r}.json", b"", kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE,
                                                                              tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE,
                                                                              tarfile.GNUTYPE_SPARSE)] + [("a.json", trace)]), 2
    yield "names that climb", tar_of([("../../../../tmp/evil.json", trace), ("/etc/evil.json", trace)]), 2
    yield "tar in tar in tar in tar", tar_of([("a.tar", tar_of([("b.tar", tar_of([("c.tar", tar_of([("d.json", trace)]))]))]))]), 2
    sized = bytearray(tar_of([("a.json", trace)]))
    for size in (b"77777777777\0", b"\xff" * 12, b"\x80" + b"\xff" * 11, b"-1         \0"):
        sized[124:136] = size
        sized[148:156] = b" " * 8
        sized[148:156] = b"%06o\0 " % sum(sized[:512])
        yield f"a member of size {size!r}", bytes(sized), 2
    pax = b"30 size=99999999999999999999\n"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a.json")
        info.size, info.pax_headers = len(trace), {"path": "b" * 70000}
        tar.addfile(info, io.BytesIO(trace))
    yield "a pax name of 70,000 bytes", out.getvalue(), 2
    yield "a pax size beyond 64 bits", out.getvalue().replace(b"path=", b"size="), 2
    del pax
    yield "a string of 100 MB", b'{"traceEvents":[{"ph":"X","name":"' + b"a" * (100 << 20) + b'"}]}', 10
    yield "a number of 20 MB", b'{"traceEvents":[{"ph":"X","ts":' + b"1" * (20 << 20) + b"}]}", 10
    yield "5 M brackets", b"[" * 5000000, 5
    yield "5 M objects", b'{"a":' * 1000000, 5
    yield "5 M brackets in args", b'{"traceEvents":[{"args":' + b"[" * 5000000, 10
    yield "5 M commas", b'{"traceEvents":[' + b"," * 5000000 + b"]}", 10
    yield "5 M quotes", b'{"traceEvents":[' + b'"' * 5000000, 10
    yield "a member of 100 MB", b'{"x":"' + b"a" * (100 << 20) + b'","traceEvents":[' + event[:-1] + b"]}", 10
    yield "1 M empty objects", b'{"traceEvents":[' + b"{}," * 1000000 + b"{}]}", 10
    yield "1 M members", b"{" + b",".join(b'"m%d":1' % i for i in range(1000000)) + b"}", 10
    many = b"LACPART1" + b"".join(part(b"%d.spool" % i, 16, b"", 0) for i in range(60000)) + part(b"0.spool", 16, b"", 0) * 200000
    yield "a bundle of 60,000 names, 200,000 parts", gzip.compress(many, 6), 2
    yield "a bundle of 70,000 names", b"LACPART1" + b"".join(part(b"%d" % i, 16, b"", 0) for i in range(70000)), 5
    yield "a bundle of holes", b"LACPART1" + b"".join(part(b"%d" % i, 1 << 24, b"x", 1 << 34) for i in range(1000)), 5
    yield "a bundle that overwrites itself", b"LACPART1" + part(b"a", 1 << 20, b"x" * (1 << 16), 5) * 500, 5
    yield "a bundle written backwards", b"LACPART1" + b"".join(part(b"a", 64, b"x" * 64, 64 * (200000 - i)) for i in range(200000)), 10
    yield "bundles in a tar", tar_of((f"{i}", b"LACPART1" + part(b"a", 1 << 24, b"x", 1 << 30)) for i in range(1000)), 5
    yield "a profile beside a recording that holds one again", tar_of(
        [("1.spool", b"LACSPOOL" + bytes(65536)), ("torch-profiler-1.json.gz", gzip.compress(tar_of([("2.spool", b"LACSPOOL")])))]), 2
    yield "empty", b"", 2
    yield "one byte", b"{", 2


def attack_bombs(attack):
    tried, problems = 0, []
    for name, data, seconds in bombs():
        path = attack.path("")
        with open(path, "wb") as file:
            file.write(data)
        reply = attack.run("analyze", path, program=attack.release, seconds=120)
        wrong = attack.broken(name, reply)
        if not wrong and reply[3] > seconds:
            wrong = f"{reply[3]:.1f} s of CPU, at most {seconds}"
        attack.note(problems, wrong, name.replace(" ", "-")[:40], data[:1 << 20])
        os.unlink(path)
        tried += 1
    attack.area.row("bombs: gzip, zstd, tar, JSON, bundles", tried, problems)


def attack_ended(attack):
    """Programs that are ended leave nothing behind."""
    big = attack.path(".json")
    with open(big, "wb") as file:
        file.write(json.dumps({"traceEvents": [kernel(i, 10 * i, name=f"k{i % 999}") for i in range(150000)]}).encode())
    archive = attack.path(".tar")
    with open(archive, "wb") as file:
        file.write(b"LACPART1" + b"".join(part(b"%d.spool" % i, 1 << 16, b"x" * 60000, 0) for i in range(500)))
    tried, problems = 0, []
    for args in (("analyze", archive), ("analyze", big), ("export", big, "--to", "chrome", "-o", "OUT"),
                 ("import", big, "--data", "OUT")):
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            folder = attack.path(".d")
            os.makedirs(folder)
            process = subprocess.Popen([attack.release, *[os.path.join(folder, "out") if a == "OUT" else a for a in args]],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=attack.environment)
            time.sleep(attack.random.uniform(0.02, 0.6))
            process.send_signal(end)
            status = process.wait(60)
            left = os.listdir(attack.temporary)
            staged = [name for base, folders, files in os.walk(folder) for name in folders + files
                      if "out." in name or os.path.basename(base) == "staging"]
            if status not in (-end, 0, 1) or left or staged:
                problems.append(f"{args[0]} ended by {end.name}: status {status}, left {left[:3]} {staged[:3]}")
            tried += 1
    attack.area.row("analyze, export and import ended by signals leave nothing", tried, problems)


def attack(area):
    run = Attack(area)
    share = area.time_left()
    attack_bombs(run)
    attack_ended(run)
    attack_hard_work(run, 100000 if share > 600 else 20000)
    rest = max(4.0, area.time_left() - 2)
    traces = attack_json(run, rest * 0.45)
    attack_export(run, traces, rest * 0.25)
    attack_compare(run, traces, rest * 0.1)
    attack_nsys(run, rest * 0.2)
