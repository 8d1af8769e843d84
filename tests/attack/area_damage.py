"""Lost, damaged, older and foreign catalogs; damaged trace files; a folder that is verified and repaired.

What must hold: no file goes, what was ready is listed again as it was, a question is answered as before or with
an error that names the file, and `lacuna admin verify` sees what is wrong.
"""
import glob
import json
import os
import re
import shutil
import subprocess

import server_harness as harness

STARTS = 300
FLIPS = 240
QUESTIONS = ("", "/analysis", "/tracks", "/kernels?limit=50", "/gaps?limit=50", "/names", "/search?q=gemm&limit=50",
             "/slices/3", "/flame", "/g1/tiles/3/0-3?tracks=0,1,2,3")
MEMBERS = ("id", "name", "project", "run", "state", "created", "created_at", "event_count", "format", "host", "rank", "verdict")


class Folder:
    """A data folder with traces, and what a server said of them before anything was damaged."""

    def __init__(self, area, name, program):
        self.path = os.path.join(area.folder, name)
        self.area, self.program = area, program
        for i in range(3):
            trace = os.path.join(area.folder, f"{name}-{i}.json")
            with open(trace, "wb") as file:
                file.write(harness.make_trace(steps=3 + i, kernels=30 + 20 * i))
            self.run("import", trace, "--name", f"{name} {i}", "--project", f"project {i % 2}")
        self.whole = os.path.join(area.folder, name + ".whole")
        shutil.copytree(self.path, self.whole)

    def run(self, *words, check=True):
        done = subprocess.run([self.program, *words, "--data", self.path], capture_output=True, text=True, timeout=120)
        if check and done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done

    def restore(self):
        shutil.rmtree(self.path)
        shutil.copytree(self.whole, self.path)

    def files(self):
        """Traces and originals by name, wherever they lie."""
        found = set()
        for folder in ("traces", "originals", "lost"):
            found |= {os.path.basename(path) for path in glob.glob(os.path.join(self.path, folder, "*"))}
        return {name for name in found if not name.startswith("catalog")}


def listed(server):
    """What the list says of each trace, without the order."""
    rows = server.api("/traces?limit=100")["traces"]
    return sorted(json.dumps({key: row.get(key) for key in MEMBERS}, sort_keys=True) for row in rows)


def serve(folder):
    return harness.Server(data=folder.path)


def flip(area, path, count):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(count):
            at = area.random.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << area.random.randrange(8))]))


def remove_catalog(folder):
    for path in glob.glob(os.path.join(folder.path, "catalog.db*")):
        os.unlink(path)


def damage_catalog(area, folder, older, other):
    """One kind of harm; says which."""
    catalog = os.path.join(folder.path, "catalog.db")
    kind = area.random.randrange(9)
    if kind < 4:
        count = 1 + area.random.randrange(5)
        flip(area, catalog, count)
        return f"{count} bits"
    if kind == 4:
        remove_catalog(folder)
        return "removed"
    if kind == 5:
        remove_catalog(folder)
        open(catalog, "wb").close()
        return "emptied"
    if kind == 6:
        os.truncate(catalog, area.random.randrange(os.path.getsize(catalog)))
        return "cut"
    remove_catalog(folder)
    shutil.copy(older if kind == 7 else other, catalog)
    return "older" if kind == 7 else "another folder's"


def catalogs(area, folder, share):
    """Starts with a catalog that is not what it was."""
    other = Folder(area, "other", folder.program)
    older = os.path.join(area.folder, "older.db")
    young = Folder.__new__(Folder)
    young.path, young.program, young.area = os.path.join(area.folder, "young"), folder.program, area
    young.run("import", os.path.join(area.folder, "mine-0.json"), "--name", "gone since")
    shutil.copy(os.path.join(young.path, "catalog.db"), older)
    problems, tried = [], 0
    server = serve(folder)
    before, files = listed(server), folder.files()
    server.terminate()
    end = area.time_left() * (1 - share)
    for _ in range(STARTS):
        if area.time_left() < end:
            break
        folder.restore()
        what = damage_catalog(area, folder, older, os.path.join(other.path, "catalog.db"))
        tried += 1
        try:
            server = serve(folder)
        except RuntimeError as error:
            problems.append(f"{what}: no start: {str(error)[:200]}")
            continue
        try:
            after = listed(server)
            missing = [row for row in before if row not in after]
            if missing:
                problems.append(f"{what}: {len(missing)} traces are not listed as they were: {missing[0][:200]}")
            ready = [row for row in after if json.loads(row)["state"] == "ready"]
            if len(ready) != len(before):
                problems.append(f"{what}: {len(ready)} ready instead of {len(before)}")
            if not files <= folder.files():
                problems.append(f"{what}: files are gone: {sorted(files - folder.files())}")
        finally:
            server.terminate()
        done = folder.run("admin", "verify", check=False)
        if done.returncode != 0:
            problems.append(f"{what}: not whole after the start: {done.stdout[:200]}")
    area.row("starts with a lost, damaged, older or foreign catalog", tried, problems)


def ask(server, trace, question):
    reply = server.get(f"/api/v1/traces/{trace}{question}")
    return reply.status, reply.body


def plain(body):
    """Without what changes from start to start."""
    return re.sub(rb'"(progress|age_ms)":[^,}]*', b"", body)


def answers(server, trace):
    return [ask(server, trace, question) for question in QUESTIONS]


def check_answers(folder, trace, whole, what, problems):
    """Every question: as before, or an error that names the file and nothing of this machine."""
    server = serve(folder)
    try:
        for question, (status, body), (was_status, was) in zip(QUESTIONS, answers(server, trace), whole):
            if status == was_status and plain(body) == plain(was):
                continue
            text = body.decode("utf-8", "replace")
            if status != 500 or '"corrupt"' not in text or f"traces/{trace}.db" not in text:
                problems.append(f"{what}: {question or 'the row'}: {status} {text[:160]}")
            elif folder.path in text or "SELECT" in text or "PRAGMA" in text:
                problems.append(f"{what}: {question}: says too much: {text[:160]}")
    finally:
        server.terminate()


def harm_pages(area, path):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        head = file.read(100)
        page = int.from_bytes(head[16:18], "big")
        count = int.from_bytes(head[28:32], "big")
        a, b = (area.random.randrange(count) * page for _ in range(2))
        kind = area.random.choice(["zeroed", "swapped", "cut", "extended"])
        if kind == "zeroed":
            file.seek(a)
            file.write(bytes(page))
        elif kind == "swapped":
            file.seek(a)
            one = file.read(page)
            file.seek(b)
            two = file.read(page)
            file.seek(a)
            file.write(two)
            file.seek(b)
            file.write(one)
        elif kind == "cut":
            file.truncate(area.random.randrange(size))
        else:
            file.seek(0, 2)
            file.write(area.random.randbytes(area.random.randrange(1, 5000)))
    return kind, a != b or kind != "swapped"


def traces(area, folder):
    """Bits and pages of trace files."""
    folder.restore()
    server = serve(folder)
    ids = [row["id"] for row in server.api("/traces?limit=100")["traces"]]
    whole = {trace: answers(server, trace) for trace in ids}
    server.terminate()
    for what, rounds in (("one flipped bit in a trace file, ten questions", FLIPS), ("zeroed, swapped, cut, extended pages", FLIPS // 3)):
        problems, unseen, tried = [], [], 0
        for _ in range(rounds):
            if area.time_left() < 20:
                break
            folder.restore()
            trace = area.random.choice(ids)
            path = os.path.join(folder.path, "traces", trace + ".db")
            kind, harmed = "a bit", True
            if what.startswith("one"):
                flip(area, path, 1)
            else:
                kind, harmed = harm_pages(area, path)
            tried += 1
            done = folder.run("admin", "verify", check=False)
            if harmed and (done.returncode != 1 or f"traces/{trace}.db" not in done.stdout):
                unseen.append(f"{kind}: verify saw nothing: {done.stdout[:160]}")
            check_answers(folder, trace, whole[trace], kind, problems)
            if tried % 4 == 0:
                repair(folder, trace, whole[trace], kind, problems)
        area.row(what, tried, problems)
        area.row("the same, seen by admin verify", tried, unseen)


def repair(folder, trace, whole, what, problems):
    """Afterwards the trace is imported again from its original, and answers as it did."""
    done = folder.run("admin", "repair", check=False)
    if done.returncode != 0:
        problems.append(f"{what}: repair: {done.stderr[:160]}")
        return
    server = serve(folder)
    try:
        server.wait_ready(trace)
        for question, (status, body), (was_status, was) in zip(QUESTIONS, answers(server, trace), whole):
            if question and (status, plain(body)) != (was_status, plain(was)):
                problems.append(f"{what}: after the repair: {question}: {status} {body[:120]!r}")
    finally:
        server.terminate()
    done = folder.run("admin", "verify", check=False)
    if done.returncode != 0:
        problems.append(f"{what}: not whole after the repair: {done.stdout[:160]}")


def attack(area):
    program = os.path.join(area.release, "lacuna")
    folder = Folder(area, "mine", program)
    catalogs(area, folder, 0.5)
    traces(area, folder)
