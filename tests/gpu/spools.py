"""Reads spools and dumps of CUPTI's buffers (collector/FORMAT.md) in a few lines of Python, to compare with other recorders.

A second reader, written apart from the importer, so that the two check each other.
"""
import collections
import glob
import mmap
import os
import struct

HEADER_BYTES, SEGMENTS_OFFSET, SEGMENT_HEADER_BYTES = 8192, 65536, 64
EVENTS, STRINGS, GPU = 1, 2, 3
PUSH, POP = 1, 2
KERNEL, COPY, MEMSET, GRAPH = 1, 2, 3, 9
SETTING = 17
CUPTI_KERNEL, CUPTI_CONCURRENT_KERNEL = 3, 10

Kernel = collections.namedtuple("Kernel", "name start_ns end_ns stream device")


class Spool:
    """One process: `names` by id, `kernels` and `copies` in order of time, `pushes` by name."""

    def __init__(self, path):
        self.names, self.kernels, self.copies, self.graphs, self.pushes = {}, [], 0, 0, collections.Counter()
        self.setting_names = []
        self.dropped = 0
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            self._read(data)
        self.kernels = sorted((kernel._replace(name=self.names.get(kernel.name, "")) for kernel in self.kernels), key=lambda k: k.start_ns)
        self.settings = dict(self.names.get(name, "=").split("=", 1) for name in reversed(self.setting_names) if "=" in self.names.get(name, "="))
        self.pushes = collections.Counter({self.names.get(name, "?"): count for name, count in self.pushes.items()})

    def _read(self, data):
        magic, version = struct.unpack_from("<8sI", data, 0)
        if magic != b"LACSPOOL" or version != 1:
            raise ValueError("not a spool of version 1")
        segment_bytes, = struct.unpack_from("<I", data, 20)
        self.dropped, = struct.unpack_from("<Q", data, 24 + 16 + 8 + 16 + 24 + 8)
        for at in range(SEGMENTS_OFFSET, len(data) - segment_bytes + 1, segment_bytes):
            magic, kind = struct.unpack_from("<IH", data, at)
            if magic == 0x4745534C:
                {EVENTS: self._events, STRINGS: self._strings, GPU: self._gpu}.get(kind, lambda *unused: None)(
                    data, at + SEGMENT_HEADER_BYTES, at + segment_bytes)

    def _strings(self, data, at, end):
        while at + 8 <= end:
            identity, length = struct.unpack_from("<II", data, at)
            if length == 0:
                return
            self.names[identity] = data[at + 8:at + 8 + length].decode("utf-8", "replace")
            at += 8 + (length + 7 & ~7)

    def _events(self, data, at, end):
        while at + 16 <= end and data[at + 15] != 0:
            if data[at + 15] == PUSH:
                self.pushes[struct.unpack_from("<I", data, at + 8)[0]] += 1
            elif data[at + 15] == SETTING:
                self.setting_names.append(struct.unpack_from("<I", data, at + 8)[0])
            at += 16

    def _gpu(self, data, at, end):
        while at + 32 <= end and data[at + 31] != 0:
            start, stop, _, _, stream, device, units, kind = struct.unpack_from("<QQIIIHBB", data, at)
            if units < 2:
                return
            if kind == KERNEL:
                self.kernels.append(Kernel(struct.unpack_from("<I", data, at + 32)[0], start, stop, stream, device))
            elif kind == COPY:
                self.copies += 1
            elif kind == GRAPH:
                self.graphs += 1
            at += units * 16


def read(folder):
    """All recorded processes of a folder, the launcher's own spool left out."""
    return [Spool(path) for path in sorted(glob.glob(os.path.join(folder, "*.spool"))) if not os.path.basename(path).startswith("node-")]


def host_facts(folder):
    """What the launcher noted of the host: {"cores_allowed": "0-15", ...}."""
    facts = {}
    for path in glob.glob(os.path.join(folder, "node-*.spool")):
        facts.update(name[len("host."):].split("=", 1) for name in Spool(path).names.values() if name.startswith("host.") and "=" in name)
    return facts


def dumped_kernels(folder):
    """(start, end) of every kernel in the dumps of a folder, as CUPTI wrote them."""
    spans = []
    for path in sorted(glob.glob(os.path.join(folder, "*.cupti"))):
        with open(path, "rb") as file:
            data = file.read()
        magic, _, records, _, _ = struct.unpack_from("<8sIIQQ", data)
        if magic != b"LACCUPTI":
            raise ValueError("not a dump")
        buffer = 32 + (records + 1) // 2 * 8
        for number in range(records):
            at = buffer + struct.unpack_from("<I", data, 32 + 4 * number)[0]
            if struct.unpack_from("<I", data, at)[0] in (CUPTI_KERNEL, CUPTI_CONCURRENT_KERNEL):
                spans.append(struct.unpack_from("<QQ", data, at + 16))
    return sorted(spans)


def kernel_totals(spools):
    """{name: [count, ns]} over all processes."""
    totals = collections.defaultdict(lambda: [0, 0])
    for spool in spools:
        for kernel in spool.kernels:
            totals[kernel.name][0] += 1
            totals[kernel.name][1] += kernel.end_ns - kernel.start_ns
    return dict(totals)
