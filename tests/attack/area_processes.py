"""Very many recorded processes, and spools that their processes harm."""
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEGMENT = 256 << 10
SEGMENTS_OFFSET = 65536
# place and size of the fields of a header that somebody else may change
FIELDS = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4), (28, 4), (88, 8), (96, 8), (104, 8), (112, 8), (128, 4), (132, 4),
          (136, 4), (144, 8), (152, 8), (160, 8), (240, 8), (248, 8), (256, 4))
VALUES = (0, 1, 2, 3, 255, 4096, 65536, 65537, 1 << 24, (1 << 24) + 65536, 1 << 26, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, 1 << 48,
          (1 << 63) - 1, (1 << 64) - 1)

SCRIBBLE = """
import mmap, os, random, shutil, struct, sys, time
made, seconds, seed = sys.argv[1], float(sys.argv[2]), sys.argv[3]
draw = random.Random(seed)
spool = os.path.join(os.environ["LACUNA_SPOOL"], f"{os.getpid()}-1-0.spool")
shutil.copyfile(made, spool + ".new")
with open(spool + ".new", "r+b") as file:
    file.seek(28)
    file.write(struct.pack("<i", os.getpid()))
os.rename(spool + ".new", spool)
with open(spool, "r+b") as file:
    whole = file.read()
    size = len(whole)
    header = mmap.mmap(file.fileno(), 8192)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for k in range(2000):
            header[20:24] = struct.pack("<I", 1 << 26)
            header[88:96] = struct.pack("<Q", 1 << 48)
            header[240:256] = struct.pack("<QQ", draw.getrandbits(64), draw.getrandbits(64))
            header[20:24] = struct.pack("<I", 256 << 10)
        if draw.random() < 0.3:
            header.close()
            os.truncate(spool, draw.choice((0, 100, 8192, 70000, size)))
            time.sleep(0.02)
            os.truncate(spool, size)
            file.seek(0)
            file.write(whole)
            file.flush()
            header = mmap.mmap(file.fileno(), 8192)
sys.exit(5)
"""


def compile_job(area):
    job = os.path.join(area.folder, "short_processes")
    subprocess.run(["gcc", "-O1", "-iquote", ROOT, os.path.join(ROOT, "tests/integration/short_processes.c"),
                    os.path.join(ROOT, "kernels/ranges.c"), "-o", job, "-ldl"], check=True, timeout=120)
    return job


def compile_node(area):
    """The launcher with sanitizers, beside the library that it looks for."""
    folder = os.path.join(area.folder, "sanitized")
    os.mkdir(folder)
    sources = [os.path.join(ROOT, "collector", part, name) for part in ("base", "sample", "gather", "push", "launch")
               for name in sorted(os.listdir(os.path.join(ROOT, "collector", part))) if name.endswith(".c")]
    subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", '-DLAC_VERSION="0"', "-O1", "-g", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-iquote", ROOT, "-iquote", os.path.join(ROOT, "collector/include"), *sources,
                    "-lpthread", "-ldl", "-o", os.path.join(folder, "lacuna-node")], check=True, timeout=300)
    shutil.copy(os.path.join(area.release, "liblacuna.so"), folder)
    shutil.copytree(os.path.join(area.release, "python"), os.path.join(folder, "python"))
    return os.path.join(folder, "lacuna-node")


def run(area, *command, files=None, seconds=600):
    def limit():
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    temporary = os.path.join(area.folder, "tmp")
    os.makedirs(temporary, exist_ok=True)
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, preexec_fn=limit,
                              text=True, errors="replace", cwd=area.folder, env={**os.environ, "TMPDIR": temporary})
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, out, err = "none", "", f"not ended after {late.timeout} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    area.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return status, out, err, time.monotonic() - begin


def left_behind(area):
    temporary = os.path.join(area.folder, "tmp")
    return [name for name in os.listdir(temporary) if name.startswith("lacuna-")]


def many(area, node, job):
    """(what, mode, count, files); each is compared with the same processes unrecorded."""
    per_process = {}
    for mode, count, files in (("row", 200, None), ("row", 1000, 64), ("fork", 2000, 256), ("together", 500, 64),
                               ("together", 2000, None), ("row", 2000, None), ("row", 10000, None)):
        if area.time_left() < count / 100:
            area.skip(f"{count} processes, {mode}", "no time is left")
            continue
        out = os.path.join(area.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        plain, plain_cpu_s = run(area, job, mode, str(count))[3], area.cpu_s
        status, _, err, took = run(area, node, "run", "--quiet", "--limit", "100g", "-o", out, "--", job, mode, str(count), files=files)
        cpu_s = area.cpu_s
        shown = run(area, node, "show", out)[1]
        numbers = {int(number) for number in re.findall(r"^    process (\d+)$", shown, re.MULTILINE)}
        problems = [f"status {status}, {err[:300]}"] if status != 0 or err else []
        if numbers != set(range(count)):
            problems.append(f"{count - len(numbers)} of {count} are not in the recording")
        problems += [f"left behind: {name}" for name in left_behind(area)]
        if files is None and mode == "row":
            per_process[count] = (cpu_s - plain_cpu_s) / count
        limit = f", {files} descriptors" if files else ""
        area.row(f"processes, {mode}{limit}: {plain / count * 1e3:.1f} ms each, {took / count * 1e3:.1f} recorded", count, problems)
        shutil.rmtree(out, ignore_errors=True)
    if len(per_process) == 3:
        few, most = min(per_process[200], per_process[2000]), per_process[10000]
        area.row(f"CPU time of one of 10,000 and of few: {most * 1e3:.1f}, {few * 1e3:.1f} ms", 1,
                 ["it grows with their number"] if most > 2 * few + 0.002 else [])


def make_spool(area, node, job):
    made = os.path.join(area.folder, "made")
    os.makedirs(made, exist_ok=True)
    variables = run(area, node, "env", "--spool", made)[1]
    subprocess.run(["sh", "-c", f"{variables}\n{job} one 7"], check=True, timeout=60)
    return os.path.join(made, [name for name in os.listdir(made) if name.endswith(".spool")][0])


def scribble(area, node, made):
    script = os.path.join(area.folder, "scribble.py")
    with open(script, "w") as file:
        file.write(SCRIBBLE)
    problems = []
    tries = 0
    while tries < 12 and (tries == 0 or area.time_left() > 30):
        out = os.path.join(area.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        tries += 1
        status, _, err, took = run(area, node, "run", "--quiet", "-o", out, "--", sys.executable, script, made, "2", str(tries),
                                   seconds=120)
        if status != 5 or "Sanitizer" in err or "runtime error" in err:
            problems.append(f"status {status} after {took:.0f} s: {err[:400]}")
        for name in left_behind(area):
            shutil.rmtree(os.path.join(area.folder, "tmp", name))
    area.row("jobs that scribble on their header, cut and refill their spool", tries, problems)


def scribble_while_gathered(area, node, made):
    """A large spool whose segment_bytes changes as often as can be while it is gathered."""
    folder = os.path.join(area.folder, "spools")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "1-1-0.spool")
    with open(made, "rb") as file:
        content = file.read()
    segments = content[SEGMENTS_OFFSET:]
    with open(path, "wb") as file:
        file.write(content[:SEGMENTS_OFFSET])
        for _ in range(100 << 20 >> 19):
            file.write(segments)
    count = (os.path.getsize(path) - SEGMENTS_OFFSET) // SEGMENT
    ends = threading.Event()

    def flip():
        fd = os.open(path, os.O_RDWR)
        while not ends.is_set():
            os.pwrite(fd, struct.pack("<I", 1 << 26), 20)
            os.pwrite(fd, struct.pack("<Q", 1 << 48), 88)
            os.pwrite(fd, struct.pack("<I", SEGMENT), 20)
            os.pwrite(fd, struct.pack("<Q", count), 88)
        os.close(fd)

    flipper = threading.Thread(target=flip)
    flipper.start()
    problems = []
    tries = 0
    while tries < 40 and (tries == 0 or area.time_left() > 20):
        out = os.path.join(area.folder, "gathered")
        shutil.rmtree(out, ignore_errors=True)
        tries += 1
        status, _, err, took = run(area, node, "gather", folder, "-o", out, seconds=60)
        if status not in (0, 1) or "Sanitizer" in err or "runtime error" in err:
            problems.append(f"status {status} after {took:.0f} s: {err[:400]}")
    ends.set()
    flipper.join()
    shutil.rmtree(folder)
    area.row("a spool whose header changes while it is gathered", tries, problems)


def damage(area, content):
    data = bytearray(content)
    for _ in range(area.random.choice((1, 1, 1, 2, 4))):
        kind = area.random.randrange(7)
        at = area.random.randrange(max(1, len(data)))
        if kind < 2:
            offset, size = area.random.choice(FIELDS)
            data[offset:offset + size] = struct.pack("<Q", area.random.choice(VALUES))[:size]
        elif kind == 2:  # a field of a segment's header, or of its first record
            at = SEGMENTS_OFFSET + SEGMENT * area.random.randrange(4) + 4 * area.random.randrange(24)
            data[at:at + 4] = struct.pack("<I", area.random.choice(VALUES) & 0xffffffff)
        elif kind == 3 and data:
            data[at] ^= 1 << area.random.randrange(8)
        elif kind == 4:
            data = data[:at]
        elif kind == 5:
            first, second = (SEGMENTS_OFFSET + SEGMENT * area.random.randrange(4) for _ in range(2))
            one, other = bytes(data[first:first + SEGMENT]), bytes(data[second:second + SEGMENT])
            data[first:first + len(other)], data[second:second + len(one)] = other, one
        else:
            data[at:at + 4096] = bytes(area.random.randrange(256) for _ in range(min(4096, len(data) - at)))
    return bytes(data)


def damaged(area, node, made):
    with open(made, "rb") as file:
        content = file.read()
    analyze = os.path.join(area.sanitized, "lacuna")
    if not os.path.exists(analyze):
        analyze = os.path.join(area.release, "lacuna")
    folder, out = os.path.join(area.folder, "damaged"), os.path.join(area.folder, "gathered")
    commands = ((node, "gather", folder, "-o", out), (node, "show", folder), (analyze, "analyze", "--json", folder))
    problems = []
    tries = 0
    until = area.time_left() * 0.6
    while tries < 3000 and (tries == 0 or area.time_left() > until):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(folder)
        data = damage(area, content)
        with open(os.path.join(folder, "1-1-0.spool"), "wb") as file:
            file.write(data)
        command = commands[tries % 3]
        tries += 1
        status, stdout, err, took = run(area, *command, seconds=60)
        raw = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", stdout + err) if command[1] == "show" else None
        if status not in (0, 1) or "Sanitizer" in err or "runtime error" in err or took > 20 or raw:
            place = area.keep(f"{tries}.spool", data)
            problems.append(f"{command[1]}: status {status} after {took:.0f} s, {place}: {err[:300]}")
    area.row("recordings with flips, cuts, swaps through gather, show, analyze", tries, problems)


def attack(area):
    job = compile_job(area)
    node = os.path.join(area.release, "lacuna-node")
    sanitized = compile_node(area)
    made = make_spool(area, node, job)
    scribble_while_gathered(area, sanitized, made)
    scribble(area, sanitized, made)
    damaged(area, sanitized, made)
    many(area, node, job)
