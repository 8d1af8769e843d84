"""One rank's training process and its device: a line of host time, streams that run in order, and the rows a profiler writes of them.

The host goes on by `go`; what it launches starts when the host, the stream and whatever it waits for allow. Times are integer
nanoseconds from the start of the program. A draw depends on the seed, the step and what it is for, so that a loop without one of its
causes is otherwise the same loop.
"""
import collections
import contextlib
import random

MAIN_PID = 4242
MAIN, AUTOGRAD = 4242, 4399
COMPUTE, COMM, COPY, SIDE = 7, 20, 21, 24
LATENCY_NS, PAUSE_NS, LAUNCH_NS, CALL_NS, RETURN_NS = 4_000, 900, 4_200, 2_500, 5_000
QUEUE_MAX = 1000  # operations that may wait on a stream before launching blocks

CALL_IDS = {"cudaLaunchKernel": 211, "cudaLaunchKernelExC": 430, "cudaMemcpyAsync": 41, "cudaMemsetAsync": 51, "cudaGraphLaunch": 311,
            "cudaStreamSynchronize": 131, "cudaDeviceSynchronize": 165, "cudaEventSynchronize": 137, "cudaEventRecord": 135,
            "cudaStreamWaitEvent": 147, "cudaEventQuery": 136, "cudaStreamQuery": 132, "cudaMalloc": 20, "cudaFree": 22, "cuModuleLoadData": 62}

Row = collections.namedtuple("Row", "cat name pid tid start end args launched")


class Stream:
    def __init__(self):
        self.free_ns = 0  # its last operation ends then
        self.wait_ns = 0  # an event of another stream that the next one waits for
        self.starts = collections.deque()  # of operations that the host may be ahead of


class Machine:
    def __init__(self, seed, rank=0, fabric=None, quiet=False, device=0):
        self.seed, self.rank, self.fabric, self.quiet, self.device = seed, rank, fabric, quiet, device
        self.now, self.tid, self.step = 0, MAIN, 0
        self.streams = collections.defaultdict(Stream)
        self.rows, self.line = [], []  # line: what the host was in, (start, end, cause)
        self.ops = [0]  # external ids, innermost last
        self.correlation, self.external, self.python_ids = 0, 0, 0
        self.frames, self.frame_ids = [], []
        self.stacks = None  # Python functions as "rows", as "args" of operators, or not
        self.seen = set()  # what is in the loop at all
        self.window = [0, 0]
        self.device_starts = collections.defaultdict(list)  # step -> starts on the compute stream
        self.host_starts = {}
        self.computed = []  # (start, end) of operations on the compute stream
        self.meetings = 0  # collectives joined
        self._dice = {}

    # -- draws ------------------------------------------------------------------------------------

    def begin_step(self, step):
        self.step = step
        self._dice.clear()
        self.host_starts[step] = self.now

    def about(self, ns, width, purpose):
        """`ns`, more or less by up to the share `width`."""
        dice = self._dice.get(purpose)
        if dice is None:
            dice = self._dice[purpose] = random.Random(f"{self.seed}/{self.rank}/{self.step}/{purpose}")
        return int(ns * (1.0 + width * (2.0 * dice.random() - 1.0)))

    # -- the host -----------------------------------------------------------------------------------

    def go_to(self, until_ns, cause="host"):
        if until_ns > self.now:
            if not self.quiet:
                self.line.append((self.now, until_ns, cause))
            self.now = until_ns

    def go(self, ns, cause="host"):
        self.go_to(self.now + int(ns), cause)

    def row(self, cat, name, start, end, args=None, pid=MAIN_PID, tid=None, launched=None):
        if not self.quiet:
            self.rows.append(Row(cat, name, pid, self.tid if tid is None else tid, start, end, args or {},
                                 start if launched is None else launched))

    @contextlib.contextmanager
    def op(self, name, **args):
        """An operator: a row, the place of what is launched in it."""
        self.external += 1
        number, begin = self.external, self.now
        self.ops.append(number)
        yield
        self.ops.pop()
        if not self.quiet:
            args["External id"] = number
            if self.stacks == "args":
                args["Call stack"] = ";".join(reversed(self.frames))
            self.row("cpu_op", name, begin, self.now, args)

    @contextlib.contextmanager
    def range(self, name):
        """A user's range, and its shadow on the device: from the first to the last operation launched in it."""
        self.external += 1
        number, begin, first = self.external, self.now, len(self.computed)
        yield
        self.row("user_annotation", name, begin, self.now, {"External id": number})
        if len(self.computed) > first:
            self.row("gpu_user_annotation", name, self.computed[first][0], self.computed[-1][1], {"External id": number}, self.device, COMPUTE, begin)

    def mark(self, name, begin):
        """A range that began then and ends now."""
        self.external += 1
        self.row("user_annotation", name, begin, self.now, {"External id": self.external})

    @contextlib.contextmanager
    def frame(self, name):
        """A Python function, `file(line): function`."""
        if self.stacks is None:
            yield
            return
        self.python_ids += 1
        number, begin = self.python_ids, self.now
        parent = self.frame_ids[-1] if self.frame_ids else None
        self.frames.append(name)
        self.frame_ids.append(number)
        yield
        self.frames.pop()
        self.frame_ids.pop()
        if self.stacks == "rows":
            self.row("python_function", name, begin, self.now, {"Python parent id": parent, "Python id": number})

    @contextlib.contextmanager
    def thread(self, tid):
        before, self.tid = self.tid, tid
        yield
        self.tid = before

    def call(self, name, end_ns, cause, cat="cuda_runtime", **args):
        """A call of the CUDA API until then. Its number is that of what it launches."""
        self.correlation += 1
        if not self.quiet:
            self.row(cat, name, self.now, end_ns, {"External id": self.ops[-1], "cbid": CALL_IDS[name], "correlation": self.correlation, **args})
        self.go_to(end_ns, cause)
        return self.correlation

    # -- the device ---------------------------------------------------------------------------------

    def enqueue(self, stream, dur_ns, ready_ns):
        """When the host may go on, and start and end of an operation that is launched now."""
        s = self.streams[stream]
        while s.starts and s.starts[0] <= self.now:
            s.starts.popleft()
        room_ns = s.starts[0] if len(s.starts) >= QUEUE_MAX else self.now
        returns_ns = max(room_ns, self.now) + LAUNCH_NS
        start = max(returns_ns + LATENCY_NS, s.free_ns + PAUSE_NS, s.wait_ns, ready_ns)
        s.free_ns, s.wait_ns = start + int(dur_ns), 0
        s.starts.append(start)
        if stream == COMPUTE:
            self.device_starts[self.step].append(start)
            self.computed.append((start, s.free_ns))
        return returns_ns, start, s.free_ns

    def kernel(self, name, dur_ns, stream=COMPUTE, ready_ns=0, grid=2048, **more):
        returns_ns, start, end = self.enqueue(stream, dur_ns, ready_ns)
        launched = self.now
        number = self.call("cudaLaunchKernel", returns_ns, "launch")
        if not self.quiet:
            self.row("kernel", name, start, end, self.kernel_args(stream, number, grid, more), self.device, stream, launched)
        return end

    def kernel_args(self, stream, number, grid, more):
        return {"External id": self.ops[-1], "queued": 0, "device": self.device, "context": 1, "stream": stream, "correlation": number,
                "registers per thread": 64, "shared memory": 16384, "blocks per SM": grid / 108, "warps per SM": grid * 8 / 108,
                "grid": [grid, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 50, **more}

    def copy(self, way, size, dur_ns, stream=COMPUTE, memory="Pinned", blocks=False, ready_ns=0):
        """`way` is HtoD, DtoH or DtoD. From pageable memory the call returns when it is done."""
        begin = self.now
        returns_ns, start, end = self.enqueue(stream, dur_ns, ready_ns)
        pageable = memory == "Pageable" and way != "DtoD"
        number = self.call("cudaMemcpyAsync", max(returns_ns, end + CALL_NS) if pageable and way == "HtoD" else returns_ns, "copy_wait")
        names = {"HtoD": f"{memory} -> Device", "DtoH": f"Device -> {memory}", "DtoD": "Device -> Device"}
        if not self.quiet:
            self.row("gpu_memcpy", f"Memcpy {way} ({names[way]})", start, end,
                     {"External id": self.ops[-1], "device": self.device, "context": 1, "stream": stream, "correlation": number,
                      "bytes": int(size), "memory bandwidth (GB/s)": round(size / max(1, dur_ns), 3)}, self.device, stream, begin)
        if blocks:
            self.wait_stream(stream, "sync" if way == "DtoH" else "copy_wait")
        self.seen.add("pageable" if pageable and size > 1_000_000 else "copy")
        return end

    def memset(self, size, stream=COMPUTE):
        begin = self.now
        returns_ns, start, end = self.enqueue(stream, 1_600, 0)
        number = self.call("cudaMemsetAsync", returns_ns, "launch")
        if not self.quiet:
            self.row("gpu_memset", "Memset (Device)", start, end,
                     {"External id": self.ops[-1], "device": self.device, "context": 1, "stream": stream, "correlation": number,
                      "bytes": int(size), "memory bandwidth (GB/s)": 500.0}, self.device, stream, begin)

    def graph(self, nodes, inside, number, launch_ns=12_000):
        """Launch nodes [(name, ns)] as one. `inside`: "nodes" each has a row, "partly" every third has none and the longest neither,
        "none" has no row at all, "whole" is one row."""
        s = self.streams[COMPUTE]
        total = sum(ns + PAUSE_NS for _, ns in nodes)
        begin = self.now
        returns_ns, start, end = self.enqueue(COMPUTE, total, 0)
        correlation = self.call("cudaGraphLaunch", returns_ns + launch_ns, "launch")
        longest = max(range(len(nodes)), key=lambda i: nodes[i][1])
        at = start
        for i, (name, ns) in enumerate(nodes):
            is_lost = inside in ("none", "whole") or inside == "partly" and (i == longest or i % 3 == 2)
            if not self.quiet and not is_lost:
                self.row("kernel", name, at, at + ns, {**self.kernel_args(COMPUTE, correlation, 2048, {}), "graph id": number,
                                                     "graph node id": i + 1}, self.device, COMPUTE, begin)
            at += ns + PAUSE_NS
        if inside == "whole" and not self.quiet:
            self.row("kernel", f"CUDA Graph {number}", start, end, {"External id": self.ops[-1], "device": self.device, "context": 1,
                     "stream": COMPUTE, "correlation": correlation, "graph id": number}, self.device, COMPUTE, begin)
        s.free_ns = max(s.free_ns, end)
        self.seen.add("graph")

    # -- waiting ------------------------------------------------------------------------------------

    def wait_stream(self, stream=COMPUTE, cause="sync"):
        self.call("cudaStreamSynchronize", max(self.now + CALL_NS, self.streams[stream].free_ns + RETURN_NS), cause)

    def wait_device(self, cause="sync"):
        last = max((s.free_ns for s in self.streams.values()), default=0)
        self.call("cudaDeviceSynchronize", max(self.now + CALL_NS, last + RETURN_NS), cause)

    def spin(self, name, pause_ns, stream=COMPUTE):
        """The host asks again and again whether the stream is done, and pauses between."""
        done_ns = self.streams[stream].free_ns + RETURN_NS
        while True:
            is_done = self.now >= done_ns
            self.call(name, self.now + 2_000, "sync")
            if is_done:
                return
            self.go(pause_ns, "sync")

    def stream_waits(self, stream, event_ns):
        """cudaStreamWaitEvent: nothing of the stream starts before that."""
        self.streams[stream].wait_ns = max(self.streams[stream].wait_ns, event_ns)
        self.call("cudaStreamWaitEvent", self.now + 1_500, "host")

    def malloc(self, size, dur_ns):
        self.call("cudaMalloc", self.now + int(dur_ns), "allocator", bytes=int(size))
        self.seen.add("allocator")

    def free(self, dur_ns):
        """cudaFree waits for the whole device."""
        last = max((s.free_ns for s in self.streams.values()), default=0)
        self.call("cudaFree", max(self.now, last) + int(dur_ns), "allocator")
        self.seen.add("allocator")

    def load_module(self, dur_ns):
        self.call("cuModuleLoadData", self.now + int(dur_ns), "module_load", cat="cuda_driver")
        self.seen.add("module")

    def read_scalar(self, host_ns=15_000, stream=COMPUTE, ready_ns=0):
        """aten::item: the host waits for the value."""
        with self.op("aten::item"):
            self.go(2_000)
            with self.op("aten::_local_scalar_dense"):
                self.go(3_000)
                self.copy("DtoH", 4, 1_400, stream, "Pageable", True, ready_ns)
                self.go(2_000)
        self.seen.add("sync")
        self.go(host_ns, "sync")

    # -- other ranks --------------------------------------------------------------------------------

    def collective(self, name, kernel, size, dur_ns, dtype="BFloat16", stream=COMM, after_ns=None):
        """Of all ranks: it begins when this one is there and ends `dur_ns` after the last joined."""
        ranks = self.fabric.ranks if self.fabric else 8
        after_ns = self.streams[COMPUTE].free_ns if after_ns is None and stream != COMPUTE else after_ns or 0
        self.seen.add("comm")
        with self.op(f"c10d::{name}_"), self.op("record_param_comms", **{
                "Collective name": name, "dtype": dtype, "In msg nelems": int(size) // 2, "Out msg nelems": int(size) // 2,
                "Group size": ranks, "Process Group Name": "0"}):
            self.go(9_000)
            begin = self.now
            returns_ns, start, _ = self.enqueue(stream, 0, after_ns)
            last_ns = self.fabric.meet(self.rank, self.meetings, start) if self.fabric else start
            self.meetings += 1
            s = self.streams[stream]
            s.free_ns = max(start, last_ns) + int(dur_ns)
            number = self.call("cudaLaunchKernelExC", returns_ns, "launch")
            if not self.quiet:
                self.row("kernel", kernel, start, s.free_ns, self.kernel_args(stream, number, 24, {
                    "Collective name": name, "dtype": dtype, "In msg nelems": int(size) // 2, "Out msg nelems": int(size) // 2,
                    "Group size": ranks, "Process Group Name": "0"}), self.device, stream, begin)
        return s.free_ns
