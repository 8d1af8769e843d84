#!/usr/bin/env python3
"""Writes a made-up export of Nsight Systems (SQLite): steps of ranges, calls, kernels and copies.

usage: make_nsys.py OUT.sqlite ROWS
"""
import json
import os
import sqlite3
import sys

TABLES = """
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU(vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT, isDiscrete INTEGER, totalMemory INTEGER, smCount INTEGER,
  computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE ThreadNames(nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
  registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT,
  globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
"""
KERNELS_PER_STEP = 400
NAME_COUNT = 60
LAUNCH, COPY_CALL, MAIN = 1, 2, 3
FIRST_NAME = 10
PID = 4711
GLOBAL_PID = PID << 24
GLOBAL_TID = GLOBAL_PID | PID
NVTX_PUSH_POP = 59


def step_rows(number, begin):
    """Rows of one training step by table, and when it ends."""
    kernels, calls, ranges = [], [], []
    now, device, first = begin, begin + 20_000, number * (KERNELS_PER_STEP + 1) + 1
    calls.append((now, now + 9000, 0, GLOBAL_TID, first, COPY_CALL, 0, None))
    copies = [(now + 10_000, now + 410_000, 0, 1, 7, first, GLOBAL_PID, 154_140_672, 1, 0, 2)]
    device = now + 411_000
    for i in range(KERNELS_PER_STEP):
        name, correlation = FIRST_NAME + 2 * (i % NAME_COUNT), first + 1 + i
        now += 11_000
        duration = 4000 + 130 * (i % 97)
        device = max(device + 800, now + 6000)
        calls.append((now, now + 4200, 0, GLOBAL_TID, correlation, LAUNCH, 0, None))
        kernels.append((device, device + duration, 0, 1, 7, correlation, GLOBAL_PID, name, name + 1, name, 1, 0,
                        64, 256, 1 + i % 4, 1, 128, 1, 1, 0, 16_384, 0, 0, correlation, None))
        if i % 4 == 0:
            ranges.append((now - 900, now + 5000, NVTX_PUSH_POP, None, None, None, f"layer {i // 4}", GLOBAL_TID, None, None, 0))
        device += duration
    end = max(now, device) + 5000
    ranges.append((begin, end, NVTX_PUSH_POP, None, None, None, f"step {number}", GLOBAL_TID, None, None, 0))
    return kernels, calls, copies, ranges, end + 2000


def insert(database, table, rows):
    database.executemany(f"INSERT INTO {table} VALUES({','.join('?' * len(rows[0]))})", rows)
    return len(rows)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, wanted = sys.argv[1], int(sys.argv[2])
    if os.path.exists(path):
        os.unlink(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + TABLES)
    database.execute("BEGIN")
    strings = [(LAUNCH, "cudaLaunchKernel_v7000"), (COPY_CALL, "cudaMemcpyAsync_v3020"), (MAIN, "pt_main_thread")]
    for i in range(NAME_COUNT):
        strings += [(FIRST_NAME + 2 * i, f"void made_up::kernel_{i}<float, (int){i}>(float const*, float*, int)"), (FIRST_NAME + 2 * i + 1, f"kernel_{i}")]
    insert(database, "StringIds", strings)
    database.execute("INSERT INTO TARGET_INFO_GPU VALUES(0, 0, 'made up', '0000:01:00.0', 1, 85899345920, 108, 8, 0)")
    database.execute("INSERT INTO ThreadNames VALUES(?, 0, ?)", (MAIN, GLOBAL_TID))
    rows, number, begin = 0, 0, 1_000_000
    while rows < wanted:
        kernels, calls, copies, ranges, begin = step_rows(number, begin)
        rows += insert(database, "CUPTI_ACTIVITY_KIND_KERNEL", kernels) + insert(database, "CUPTI_ACTIVITY_KIND_RUNTIME", calls)
        rows += insert(database, "CUPTI_ACTIVITY_KIND_MEMCPY", copies) + insert(database, "NVTX_EVENTS", ranges)
        number += 1
    database.execute("COMMIT")
    database.close()
    print(json.dumps({"rows": rows, "steps": number, "bytes": os.path.getsize(path)}))


if __name__ == "__main__":
    main()
