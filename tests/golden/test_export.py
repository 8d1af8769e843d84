#!/usr/bin/env python3
"""lacuna export: reports that hold what was found and nothing that runs, what is left out, and files
that other tools (and we ourselves) read again.

An imported trace gives the same as its file: every form of a small one, Chrome JSON of the larger ones. With LACUNA_SOAK=1 every
form of a larger one too, more real traces, and SQLite of a second one.

LACUNA names the program (default build/lacuna). --update writes the reports under tests/golden/reports anew: read them before
they are committed.
"""
import atexit
import contextlib
import difflib
import functools
import glob
import html.parser
import json
import os
import re
import sqlite3
import stat
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402
from kept import LACUNA  # noqa: E402
from real_traces import real_traces  # noqa: E402
from soak import SOAK  # noqa: E402

TRACES = real_traces()
REAL = ["kineto/resnet50_num_workers_0*", "nsys/nevakrien*", "tf/*02_step_0*", "hta/rank_non_gpu*"]
if SOAK:
    REAL += ["kineto/resnet50_num_workers_4*", "sidnb13/*.json", "nsys/nsysai_mock*", "hta/amd_trace*", "hta/nccl_parser*", "harryjmoss/*"]
FORMS = ("chrome", "perfetto", "folded", "speedscope", "html", "markdown", "svg", "png")
MARKUP = '<script>alert(1)</script>"\'><img src=x onerror=alert(2)>&amp;]]>--></style>`|*_[x](javascript:a)'

passed = failed = 0


def expect(what, holds, detail=""):
    global passed, failed
    if holds:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}: {str(detail)[:600]}")


def run(*args):
    return subprocess.run([LACUNA, *args], capture_output=True, timeout=300)


def export(path, form, *more):
    done = run("export", path, "--to", form, *more)
    expect(f"{form} of {os.path.basename(path)}", done.returncode == 0, done.stderr)
    return done.stdout.decode()


@functools.cache
def report(path, form):
    done = kept.ask("export", path, "--to", form)
    expect(f"{form} of {os.path.basename(path)}", done.returncode == 0, done.stderr)
    return done.stdout


def analyze(path):
    return json.loads(kept.ask("analyze", "--json", path).stdout)


# of what does not change: the traces that are exported
analyze_once = functools.cache(analyze)


@functools.cache
def stored(path):
    """(the file, its id, its data folder): what an import of it leaves."""
    data = tempfile.mkdtemp(prefix="lacuna-export-")
    atexit.register(shutil.rmtree, data)
    run("import", path, "--data", data)
    file, = glob.glob(os.path.join(data, "traces", "*.db"))
    return file, os.path.basename(file)[:-3], data


def ask_sql(path, query):
    """Asked of the imported trace: that it says what the trace itself says is shown by test_sql.py."""
    return json.loads(run("sql", stored(path)[0], query, "--json").stdout)["rows"]


class Page(html.parser.HTMLParser):
    """Elements that were opened, attributes that run or fetch, balance."""
    EMPTY = {"meta", "rect", "line", "img", "br", "link", "input"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.dangers, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        for name, value in attributes:
            if name.startswith("on") or name in ("src", "href", "action", "srcset", "data"):
                self.dangers.append((tag, name, value))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.dangers.append(("unbalanced", tag, None))

    def handle_data(self, data):
        self.text.append(data)


def check_page(what, text):
    page = Page(text)
    expect(f"{what} balanced and inert", not page.dangers and not page.open, page.dangers or page.open)
    expect(f"{what} elements", not {"script", "iframe", "object", "embed", "link", "img", "form", "base"} & set(page.seen), set(page.seen))
    expect(f"{what} policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text, text[:400])
    expect(f"{what} fetches nothing", "http:" not in text and "https:" not in text and "@import" not in text and "url(" not in text)
    for part in text.split("<svg")[1:]:
        try:
            xml.etree.ElementTree.fromstring("<svg" + part[:part.index("</svg>")] + "</svg>")
        except xml.etree.ElementTree.ParseError as error:
            expect(f"{what} picture", False, error)
    return " ".join(page.text)


def check_report(path):
    what = os.path.basename(path)
    analysis = analyze_once(path)
    seen = " ".join(check_page(what, report(path, "html")).split())
    markdown = report(path, "markdown")
    plain = lambda text: " ".join(text.split())  # noqa: E731
    expect(f"{what} verdict", plain(analysis["verdict"]["text"])[1:] in seen, seen[:400])
    for finding in analysis["findings"]:
        for part in ("title", "why", "change", "expect", "costs", "wrong_if", "check"):
            expect(f"{what} {finding['id']} {part}", plain(finding[part])[1:-1] in seen, finding[part])
        expect(f"{what} {finding['id']} in markdown", finding["change"].strip() in markdown, finding["change"])
    for text in analysis["checked_fine"] + analysis["not_recorded"] + analysis["caveats"]:
        expect(f"{what} note", plain(text) in seen, text)
    if analysis["trace"]["simulated"]:
        expect(f"{what} simulated", "simulated" in seen and "imulated" in markdown)
    expect(f"{what} same bytes", export(path, "html") == report(path, "html"))


def facts(analysis):
    trace = analysis["trace"]
    return {
        "t0": trace["t0_ns"], "duration": trace["duration_ns"], "slices": trace["slice_count"],
        "simulated": trace["simulated"], "settings": analysis["settings"], "kernels": analysis["kernels"], "devices": analysis["devices"],
        "steps": {key: analysis["steps"][key] for key in ("method", "count", "kept_count", "mean_ns", "median_ns")},
        "layout": analysis["layout"], "copies": analysis["copies"], "dataloader": analysis["dataloader"], "verdict": analysis["verdict"]["text"],
        "findings": [finding["id"] for finding in analysis["findings"]],
    }


def check_chrome(path, folder):
    what = os.path.basename(path)
    target = os.path.join(folder, "again.json")
    done = run("export", path, "--to", "chrome", "-o", target)
    expect(f"{what} chrome", done.returncode == 0, done.stderr)
    with open(target, "rb") as file:
        written = file.read()
    document = json.loads(written)
    expect(f"{what} events", all({"ph", "pid", "tid", "name"} <= event.keys() for event in document["traceEvents"]))
    have, want = facts(analyze(target)), facts(analyze_once(path))
    # stacks that a profiler sampled beside the trace stay out: who reads the file would take them for calls (folded and speedscope have them)
    rows = ask_sql(path, "SELECT t.kind = 'profile' AS sampled, count(*) AS slices, max(s.start_ns + s.dur_ns) AS end_ns "
                         "FROM slices s JOIN tracks t ON t.id = s.track GROUP BY 1")
    sampled = [row for row in rows if row[0] == 1]
    if sampled and len(rows) == 2:
        want["slices"] -= sampled[0][1]
        want["duration"] = next(row[2] for row in rows if row[0] == 0)
    for key in want:
        expect(f"{what} again {key}", have[key] == want[key], f"{have[key]} WANT {want[key]}")
    expect(f"{what} nothing beside it", os.listdir(folder).count("again.json") == 1 and not glob.glob(target + ".*"))
    return written


def check_async(folder):
    """What overlaps leaves on the row that it had; a point in time is one event."""
    path = os.path.join(folder, "async.json")
    events = [{"ph": phase, "pid": 1, "tid": 1, "cat": "requests", "id": "7", "name": name, "ts": at}
              for phase, name, at in (("b", "request", 2), ("n", "midway", 3), ("e", "request", 4))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "op", "ts": 1, "dur": 5}, *events]}, file)
    written = json.loads(check_chrome(path, folder))
    left = [(event["ph"], event["cat"], event["name"], event["ts"]) for event in written["traceEvents"] if event["ph"] in "bne"]
    expect("async events", left == [("b", "requests", "request", 1), ("e", "requests", "request", 3), ("n", "requests", "midway", 2)], left)


def check_two_processes(folder):
    """Each numbers its calls from 1, and each has a GPU: the export keeps their launches apart."""
    path = os.path.join(folder, "two.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES(1, 'gemm'), (2, 'cudaLaunchKernel_v7000');
            CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);
            INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION', '3.11.0');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT,
                demangledName INT, shortName INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT, returnValue INT);""")
        for device in (0, 1):
            process = (100 + device) << 24
            for launch in range(10):
                start = 100000 * launch + 37000 * device
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, 0, ?, ?, 2, 0)", (start, start + 5000, process + 7, launch + 1))
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?, ?, ?, 1, 7, ?, ?, 1, 1)",
                                 (start + 8000, start + 30000, device, launch + 1, process))
        database.commit()
    check_chrome(path, folder)


def check_stacks(path):
    what = os.path.basename(path)
    analysis = analyze_once(path)
    total = 0
    for line in export(path, "folded", "--metric", "gpu").splitlines():
        stack, value = line.rsplit(" ", 1)
        expect_quietly = stack and value.isdigit()
        if not expect_quietly:
            expect(f"{what} folded line", False, line)
        total += int(value)
    copies = sum(copy["total_ns"] for copy in analysis["copies"])
    kernels = analysis["kernels"]["total_ns"] or 0
    expect(f"{what} folded total", total >= kernels + copies, f"{total} {kernels} {copies}")
    document = json.loads(export(path, "speedscope"))
    frames = len(document["shared"]["frames"])
    for profile in document["profiles"]:
        expect(f"{what} {profile['name']}", len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == profile["endValue"])
        expect(f"{what} {profile['name']} frames", all(0 <= frame < frames for stack in profile["samples"] for frame in stack))


def check_sqlite(path, folder):
    what = os.path.basename(path)
    target = os.path.join(folder, "tables.sqlite")
    expect(f"{what} sqlite", run("export", path, "--to", "sqlite", "-o", target).returncode == 0)
    analysis = analyze_once(path)
    db = sqlite3.connect(target)
    one = lambda sql: db.execute(sql).fetchone()[0]  # noqa: E731
    expect(f"{what} kernels", one("SELECT count(*) FROM kernels") == analysis["kernels"]["count"])
    expect(f"{what} kernel time", one("SELECT sum(dur_ns) FROM kernels") == analysis["kernels"]["total_ns"])
    expect(f"{what} steps", one("SELECT count(*) FROM steps WHERE left_out IS NULL") == analysis["steps"]["kept_count"])
    idle = sum(device["idle_ns"] for device in analysis["devices"]) if analysis["devices"] else None
    expect(f"{what} idle", one("SELECT sum(dur_ns) FROM gaps") == (idle or None))
    expect(f"{what} findings", [row[0] for row in db.execute("SELECT id FROM findings ORDER BY position")] == [f["id"] for f in analysis["findings"]])
    reference = json.loads(run("sql", "--tables", "--json").stdout)["tables"]
    functions = ("by_name", "ancestors", "overlap", "flame", "critical_path")
    documented = {table["name"]: [c["name"] for c in table["columns"] if not c["is_argument"]] for table in reference if table["name"] not in (*functions, "strings")}
    written = {name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")] for name, in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    expect(f"{what} tables are those of lacuna sql", written == documented, (written, documented))
    for query in ("SELECT * FROM slices ORDER BY id LIMIT 3000", "SELECT * FROM kernels ORDER BY id LIMIT 3000", "SELECT count(*), sum(dur_ns) FROM operators",
                  "SELECT * FROM gaps ORDER BY device, start_ns LIMIT 500", "SELECT * FROM steps", "SELECT * FROM tracks"):
        asked = ask_sql(path, query)
        expect(f"{what} {query}", [list(row) for row in db.execute(query)] == [[None if v == "" else v for v in row] for row in asked])
    expect(f"{what} whole", one("PRAGMA integrity_check") == "ok")
    db.close()
    os.unlink(target)


def hostile_trace(name):
    """A trace whose every name is markup, with a host, a user, paths and a command line."""
    events = [{"ph": "M", "pid": 1, "tid": 0, "ts": 0, "name": "process_name", "args": {"name": "python /home/kim/secret/train.py --token abc"}},
              {"ph": "M", "pid": 1, "tid": 1, "ts": 0, "name": "thread_name", "args": {"name": name}}]
    for step in range(6):
        at = step * 1000.0
        events.append({"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": at, "dur": 1000, "name": f"ProfilerStep#{step}"})
        events.append({"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": at + 1, "dur": 990, "name": name})
        events.append({"ph": "X", "cat": "python_function", "pid": 1, "tid": 1, "ts": at + 2, "dur": 900, "name": "/home/kim/secret/net.py(3): forward"})
        events.append({"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at + 3, "dur": 800, "name": name + " op", "args": {"Call stack": "/home/kim/secret/x.py:1"}})
        for kernel in range(4):
            launch = at + 10 + 100 * kernel
            events.append({"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": 1, "ts": launch, "dur": 5, "name": "cudaLaunchKernel", "args": {"correlation": step * 10 + kernel + 1}})
            events.append({"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": launch + 20, "dur": 50, "name": name, "args": {"device": 0, "stream": 7, "correlation": step * 10 + kernel + 1}})
    return {"schemaVersion": 1, "host_name": "node-17", "deviceProperties": [{"id": 0, "name": name, "numSms": 80}],
            "lacuna": {"version": 1, "settings": {"argv": "train.py --token abc", name: name, "data": {"dir": "/home/kim/data set/imagenet"}, "node": "node-17"}}, "traceEvents": events}


def check_hostile(folder):
    for i, name in enumerate((MARKUP, "\u202egnp.exe", "a\u0000b\u001b[31mred", "\ud800 alone", "x" * 3000)):
        path = os.path.join(folder, f"hostile{i}.json")
        json.dump(hostile_trace(name), open(path, "w", encoding="utf-8"))
        done = run("export", path, "--to", "html")
        text = done.stdout.decode()
        expect(f"hostile {i} html", done.returncode == 0, done.stderr)
        check_page(f"hostile {i}", text)
        expect(f"hostile {i} text", not any(c in text for c in "\u202e\u001b\u0000"), [c for c in text if c < " " and c != "\n"])
        markdown = export(path, "markdown")
        expect(f"hostile {i} markdown", "<script" not in markdown and "<img" not in markdown and not re.search(r"(?<!\\)\]\(", markdown), markdown)
        json.loads(export(path, "chrome"))
        json.loads(export(path, "speedscope"))
        expect(f"hostile {i} folded", all(line.rsplit(" ", 1)[1].isdigit() for line in export(path, "folded").splitlines()))
        terminal = done.stderr
        expect(f"hostile {i} terminal", b"\x1b" not in terminal and b"\x00" not in terminal, terminal)


def check_redaction(folder):
    path = os.path.join(folder, "secret name.json")
    trace = hostile_trace("our_new_model")
    trace["traceEvents"].append({"ph": "i", "cat": "user_annotation", "name": "secret mark", "pid": 1, "tid": 1, "ts": 50, "s": "t"})
    json.dump(trace, open(path, "w", encoding="utf-8"))
    words = {"hosts": ["node-17"], "users": ["/home/kim"], "paths": ["/home/kim", "secret/"], "argv": ["--token abc"], "names": ["secret name", "secret mark"]}
    for form in ("html", "markdown", "chrome", "speedscope", "folded"):
        done = run("export", path, "--to", form, "--redact", "hosts,users,paths,argv,names")
        text = done.stdout.decode().replace("\\", "")
        expect(f"redacted {form}", done.returncode == 0, done.stderr)
        for kind, leaks in words.items():
            expect(f"{form} without {kind}", not any(leak in text for leak in leaks), [leak for leak in leaks if leak in text])
    for kind, leaks in words.items():
        text = export(path, "html", "--redact", kind)
        expect(f"html without {kind} alone", not any(leak in text for leak in leaks), [leak for leak in leaks if leak in text])
    done = run("export", path, "--to", "html")
    told, text = done.stderr.decode(), done.stdout.decode()
    for kind, word in (("hosts", "node-17"), ("users", "kim"), ("argv", "--token abc")):
        expect(f"tells {kind}", f"({kind})" in told and word in told and word in text, told)
    expect("tells how", "--redact hosts,users,paths,argv,names" in told, told)
    told = run("export", path, "--to", "html", "--redact", "hosts").stderr.decode()
    expect("tells what was left out", "removed: host names" in told and "in the file: command lines" in told, told)
    target = os.path.join(folder, "redacted.sqlite")
    run("export", path, "--to", "sqlite", "-o", target, "--redact", "hosts,users,paths,argv,names")
    content = open(target, "rb").read()
    expect("sqlite redacted", not any(word in content for word in (b"node-17", b"/home/kim", b"--token", b"secret name", b"secret mark")))


def check_golden(stage, update):
    """A report read by eye and kept: what changes in it is to be read again."""
    path = os.path.join(ROOT, "tests", "golden", "reports", os.path.basename(stage)[:-5] + ".md")
    text = report(stage, "markdown")
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        kept = file.read()
    changed = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm="", n=0))
    expect(f"{os.path.basename(path)} is the one that was read (else: test_export.py --update, and read it)", not changed, "\n".join(changed))


def check_usage(folder, path):
    for args in ((), (path,), (path, "--to", "pdf"), (path, path, "--to", "html"), (path, "--to", "sqlite"), (path, "--to", "html", "--redact", "faces"),
                 (path, "--to", "folded", "--metric", "x")):
        done = run("export", *args)
        expect(f"usage {args}", done.returncode == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1, done.stderr)
    done = run("export", path, "--to", "html", "-o", os.path.join(folder, "no", "such", "folder.html"))
    expect("no folder", done.returncode == 1 and b"cannot be written" in done.stderr, done.stderr)
    expect("no file", run("export", os.path.join(folder, "none.json"), "--to", "html").returncode == 1)
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([LACUNA, "export", path, "--to", "html"], stdout=full, stderr=subprocess.PIPE, timeout=300)
    expect("full disk", done.returncode == 1 and b"failed" in done.stderr, done.stderr)


def check_output(folder, path):
    """-o puts a file beside the name and renames it; a link stays a link, and what is no file is written as it is."""
    folder = os.path.join(folder, "output")
    os.mkdir(folder)
    pipe, file, link, nothing, full, loop = (os.path.join(folder, name) for name in ("pipe", "file", "link", "nothing", "full", "loop"))
    text = run("export", path, "--to", "folded").stdout
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        done = run("export", path, "--to", "folded", "-o", pipe)
        if not stat.S_ISFIFO(os.stat(pipe).st_mode):
            reader.kill()
        expect("a named pipe's reader gets it", done.returncode == 0 and reader.stdout.read() == text and stat.S_ISFIFO(os.stat(pipe).st_mode), done.stderr)
    with open(file, "w", encoding="utf-8") as old:
        old.write("old")
    os.symlink("file", link)
    os.symlink(os.path.join(folder, "later"), nothing)
    os.symlink("loop", loop)
    for each in (link, nothing):
        done = run("export", path, "--to", "folded", "-o", each)
        with open(each, "rb") as made:
            expect("a link is followed", done.returncode == 0 and os.path.islink(each) and made.read() == text, done.stderr)
    done = run("export", path, "--to", "folded", "-o", loop)
    expect("a link to itself", done.returncode == 1 and done.stderr.count(b"\n") == 1, done.stderr)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        with open(file, "wb") as log:
            log.write(b"before\n")
        with open(file, "ab") as log:
            done = subprocess.run([LACUNA, "export", path, "--to", "folded", "-o", f"/proc/self/fd/{stream}"],
                                  **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, name: log}, timeout=300)
        with open(file, "rb") as log:
            kept_text = log.read()
        expect(f"what is in {name} already stays", done.returncode == 0 and kept_text.startswith(b"before\n" + text), kept_text[:100])
    try:  # the machine's own nodes are never named: a mistake would cost them
        os.mknod(full, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        with open(full, "wb"):
            pass
    except OSError:
        print("skip: no device can be made here")
        os.path.exists(full) and os.remove(full)
    else:
        for form in ("folded", "csv", "chrome"):
            done = run("export", path, "--to", form, *(("--table", "kernels") if form == "csv" else ()), "-o", full)
            expect(f"a full device, {form}", done.returncode == 1 and done.stderr.count(b"\n") == 1 and stat.S_ISCHR(os.stat(full).st_mode), done.stderr)
        os.remove(full)
    expect("nothing is left", sorted(os.listdir(folder)) == ["file", "later", "link", "loop", "nothing", "pipe"], os.listdir(folder))


def check_stored(path):
    """A trace of a data folder leaves as the file that was imported does, by its id and by its file."""
    file, identity, data = stored(path)
    for form in FORMS:
        made = [run("export", *source, "--to", form) for source in ((path,), (file,), (identity, "--data", data))]
        expect(f"{form} of stored {os.path.basename(path)}", all(each.returncode == 0 and each.stdout == made[0].stdout for each in made) and made[0].stdout,
               [each.stderr[-200:] for each in made])


def check_stored_large(path, chrome):
    """The same of one that holds much, in the form that holds the most."""
    file, _, data = stored(path)
    expect(f"chrome of stored {os.path.basename(path)}", run("export", file, "--to", "chrome").stdout == chrome)
    done = run("export", "a" * 26, "--data", data, "--to", "chrome")
    expect("an id that is no trace", done.returncode == 1 and b"no trace of the data folder" in done.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        stages = kept.demo()
        for stage in (stages[0], stages[2], stages[5]):
            check_report(stage)
            check_golden(stage, "--update" in sys.argv[1:])
        check_stored_large(stages[0], check_chrome(stages[0], folder))
        check_two_processes(folder)
        check_async(folder)
        check_stacks(stages[0])
        check_hostile(folder)
        check_redaction(folder)
        check_usage(folder, stages[5])
        check_output(folder, stages[5])
        real = [path for pattern in REAL for path in sorted(glob.glob(os.path.join(TRACES, pattern)))[:1]]
        if not real:
            print("skip: real traces are not beside the repository")
        for path in real:
            check_report(path)
            check_stored_large(path, check_chrome(path, folder))
            check_stacks(path)
        small = os.path.join(folder, "small.json")
        json.dump(hostile_trace("a_model"), open(small, "w", encoding="utf-8"))
        for path in (small, stages[0]) if SOAK else (small,):
            check_stored(path)
        for path in [*real[:1], stages[0]] if SOAK else [*real, stages[0]][:1]:
            check_sqlite(path, folder)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
