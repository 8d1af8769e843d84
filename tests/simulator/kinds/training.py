"""A loop of steps: what is in it, and how it runs on a Machine. Kinds change what they need of both."""
import dataclasses
import functools

import vocabulary
from data_loader import DataLoader
from machine import AUTOGRAD, COMM, COPY, Machine

MS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Loop:
    """Every field decides something; what a change removes is one of them."""
    seed: int
    warm: int = 3  # steps before the recording
    steps: int = 8
    family: str = "transformer"
    layers: int = 4
    compute_ns: int = 60 * MS  # of a step, on the device
    forward_only: bool = False
    op_ns: int = 18_000  # the framework's time for an operator
    slow_host: float = 1.0
    jitter: float = 0.03
    python_ns: int = 300_000  # between steps
    workers: int = 4
    fetch_ns: int = 30 * MS
    fetch_jitter: float = 0.01
    pageable: bool = False
    copy_ahead: bool = True
    copy_ns: int = 300_000  # from pinned memory; from pageable 3 times that
    reads: str = "late"  # the loss, a step late; "none", "last", or "layers": in each of them
    read_python_ns: int = 15_000
    parameters: int = 0  # updated one by one; 0: fused
    zeroed: bool = False  # gradients are filled with zeros and added to
    layout_ns: int = 0  # conversions of a step
    allocations: int = 0  # pairs of cudaMalloc and cudaFree of a step
    allocation_ns: int = 0
    buckets: int = 0
    comm_ns: int = 0
    comm_hidden: bool = False
    names: str = "profiler"  # of steps: "profiler", "loader", "optimizer", "none"
    synced: bool = True  # the recording begins with an idle device
    joined_ns: int = 0  # the last mark ends that much late
    stacks: str = ""
    kind: dict = dataclasses.field(default_factory=dict, hash=False, compare=False)  # what only one kind knows

    def but(self, **changes):
        """The same loop but for that; `kind` is added to, not replaced."""
        return dataclasses.replace(self, kind={**self.kind, **changes.pop("kind", {})}, **changes)


@functools.lru_cache(maxsize=64)
def plan(family, layers, compute_ns, forward_only):
    """One layer's [(operator, kernel, ns)] forward and [(node, operator, [(kernel, ns)])] backward; layers are alike."""
    rows = vocabulary.LAYERS[family]
    weight = sum(row[2] * (1 if forward_only else 3) for row in rows) * layers
    forward = [(row[0], row[1], compute_ns * row[2] // weight) for row in rows]
    backward = [(row[3], row[4], [(row[5], compute_ns * row[2] * 2 // weight // row[6])] * row[6]) for row in reversed(rows)]
    return forward, backward


class Runner:
    """A loop on one rank. `run` gives its Machine."""

    def __init__(self, loop, quiet=False, rank=0, fabric=None, record=True):
        self.loop = loop
        self.m = Machine(loop.seed, rank, fabric, quiet, device=rank if fabric else 0)
        self.m.stacks = loop.stacks or None
        self.record = record
        self.loader = self.make_loader()
        self.copied_ns, self.loss_ns, self.sequence = 0, 0, 10_000
        self.bucket_ends = []

    def make_loader(self):
        loop = self.loop
        return DataLoader(self.m, loop.workers, loop.fetch_ns, loop.fetch_jitter) if loop.fetch_ns else None

    # -- the recording ------------------------------------------------------------------------------

    def run(self):
        loop, m = self.loop, self.m
        with m.frame("train.py(12): <module>"), m.frame("train.py(88): main"):
            self.before()
            for step in range(loop.warm + loop.steps):
                m.begin_step(step)
                if step == loop.warm and self.record:
                    if loop.synced:
                        m.wait_device("host")
                    m.host_starts[step] = m.window[0] = m.now
                begin = m.now
                self.step(step)
                m.go(m.about(loop.python_ns * loop.slow_host, loop.jitter, "python"))
                if step == loop.warm + loop.steps - 1:
                    self.last()
                self.mark(step, begin)
            if self.record:
                self.after()
                m.wait_device("host")  # as the profiler does when it ends
                m.window[1] = m.now
        return m

    def before(self):
        """Before the first step."""

    def last(self):
        """In the last step, behind its work."""
        self.m.go(self.loop.joined_ns)

    def after(self):
        """Behind the last step, still recorded."""

    def mark(self, step, begin):
        if self.loop.names == "profiler":
            self.m.mark(f"ProfilerStep#{step}", begin)

    # -- a step ---------------------------------------------------------------------------------------

    def step(self, step):
        self.take_batch(step)
        self.zero_gradients()
        self.forward()
        self.backward()
        self.optimize()
        self.read(step)

    def op_time(self, share=1.0):
        self.m.go(self.m.about(self.loop.op_ns * self.loop.slow_host * share, self.loop.jitter, "op"), "launch")

    def take_batch(self, step):
        loop, m = self.loop, self.m
        if self.loader:
            if loop.names in ("profiler", "loader"):
                self.loader.take(step)
            else:  # nothing names the loader either
                begin, kept = m.now, m.quiet
                m.quiet = True
                self.loader.take(step)
                m.quiet = kept
                if not kept:
                    m.line.append((begin, m.now, "data_wait"))
        if loop.copy_ns:
            self.copy_batch()

    def copy_batch(self):
        loop, m = self.loop, self.m
        before_ns = self.copied_ns
        with m.frame("train.py(41): to_device"), m.op("aten::to"), m.op("aten::_to_copy"), m.op("aten::copy_"):
            self.op_time(0.5)
            size = loop.copy_ns * 24  # 24 GB/s
            if loop.pageable:
                m.copy("HtoD", size, loop.copy_ns * 3, memory="Pageable")
                m.wait_stream(cause="copy_wait")
            elif loop.copy_ahead:
                self.copied_ns = m.copy("HtoD", size, loop.copy_ns, COPY)
                m.stream_waits(7, before_ns)
            else:
                m.copy("HtoD", size, loop.copy_ns, blocks=True)

    def zero_gradients(self):
        loop, m = self.loop, self.m
        with m.range("Optimizer.zero_grad#AdamW.zero_grad"):
            m.go(20_000)
            if loop.zeroed:
                for _ in range(loop.layers * 8):
                    with m.op("aten::zero_"), m.op("aten::fill_"):
                        self.op_time(0.5)
                        m.memset(1_000_000)
                m.seen.add("zeroed")

    def forward(self):
        for layer in range(self.loop.layers):
            with self.m.frame(f"nn.Module: Block_{layer}"):
                self.forward_layer(layer)

    def forward_layer(self, layer):
        loop, m = self.loop, self.m
        forward, _ = plan(loop.family, loop.layers, loop.compute_ns, loop.forward_only)
        for name, kernel, ns in forward:
            self.forward_op(name, kernel, ns)
        if loop.reads == "layers":
            m.read_scalar(m.about(loop.read_python_ns, loop.jitter, "read"))

    def forward_op(self, name, kernel, ns):
        m = self.m
        if not self.loop.forward_only:
            self.sequence += 1
            with m.op(name, **{"Sequence number": self.sequence, "Fwd thread id": 0}):
                self.launch_in(name, kernel, ns)
        else:
            with m.op(name):
                self.launch_in(name, kernel, ns)

    def launch_in(self, name, kernel, ns):
        m, loop = self.m, self.loop
        self.op_time(0.5)
        with m.op("aten::as_strided"):
            m.go(1_100 * loop.slow_host, "launch")
        is_converted = loop.layout_ns and "convolution" in name
        if is_converted:
            m.seen.add("layout")
            m.kernel(vocabulary.TO_NHWC, loop.layout_ns // (loop.layers * 12))
        m.kernel(kernel, m.about(ns, 0.004, "kernel"))
        if is_converted:
            m.kernel(vocabulary.TO_NCHW, loop.layout_ns // (loop.layers * 12))
        self.op_time(0.4)

    def backward(self):
        loop, m = self.loop, self.m
        with m.frame("torch/_tensor.py(512): backward"):
            m.go(40_000)
            self.bucket_ends = []
            with m.thread(AUTOGRAD):
                for layer in reversed(range(loop.layers)):
                    self.backward_layer(layer)
                    if loop.buckets and (loop.layers - layer) * loop.buckets // loop.layers > len(self.bucket_ends):
                        self.reduce()
            m.go(15_000)

    def backward_layer(self, layer):
        loop, m = self.loop, self.m
        forward, backward = plan(loop.family, loop.layers, loop.compute_ns, loop.forward_only)
        for i, (node, name, kernels) in enumerate(backward):
            number = self.sequence - i - (loop.layers - 1 - layer) * len(forward)
            with m.op(f"autograd::engine::evaluate_function: {node}", **{"Sequence number": number, "Fwd thread id": 1}), \
                    m.op(node, **{"Sequence number": number, "Fwd thread id": 1}):
                for kernel, ns in kernels:
                    with m.op(name):
                        self.launch_in(name, kernel, ns)
                if loop.zeroed and "mm" in name:
                    with m.op("torch::autograd::AccumulateGrad"), m.op("aten::add_"):
                        self.op_time(0.5)
                        m.kernel(vocabulary.ADD, 25_000)

    def reduce(self):
        """One bucket of gradients, on a stream of its own."""
        loop, m = self.loop, self.m
        size = loop.comm_ns // loop.buckets * 100  # 100 GB/s
        self.bucket_ends.append(m.collective("allreduce", vocabulary.ALL_REDUCE, size, loop.comm_ns // loop.buckets))

    def optimize(self):
        loop, m = self.loop, self.m
        if self.bucket_ends and not loop.comm_hidden:
            m.stream_waits(7, m.streams[COMM].free_ns)
        with m.frame("torch/optim/adamw.py(161): step"), m.range("Optimizer.step#AdamW.step"):
            m.go(60_000 * loop.slow_host)
            if loop.parameters:
                m.seen.add("single optimizer")
                for _ in range(loop.parameters):
                    for name in ("aten::mul_", "aten::addcmul_", "aten::addcdiv_"):
                        with m.op(name):
                            self.op_time(0.5)
                            m.kernel(vocabulary.ADD, 2_200)
            else:
                for _ in range(3):
                    with m.op("aten::_fused_adamw_"):
                        self.op_time()
                        m.kernel(vocabulary.ADAM, loop.compute_ns // 120)
        self.allocate()

    def allocate(self):
        loop, m = self.loop, self.m
        for _ in range(loop.allocations):
            with m.op("aten::empty"):
                m.go(3_000)
                m.malloc(64_000_000, m.about(loop.allocation_ns, 0.05, "malloc"))
        for _ in range(loop.allocations):
            m.free(m.about(loop.allocation_ns, 0.05, "free"))

    def read(self, step):
        loop, m = self.loop, self.m
        with m.frame("train.py(57): log"):
            if loop.reads == "last":
                m.read_scalar(m.about(loop.read_python_ns, loop.jitter, "read"))
            elif loop.reads == "late" and step > 0:  # of the step before: it is there long since
                m.call("cudaEventSynchronize", max(m.now + 2_500, self.loss_ns + 5_000), "sync")
                m.go(8_000)
        self.loss_ns = m.streams[7].free_ns


def long_run(runner, loop, steps, **more):
    """The same loop, without a profiler, for longer: what a step takes in the long run."""
    return runner(loop.but(warm=4, steps=steps, synced=False, joined_ns=0), quiet=True, record=False, **more).run()
