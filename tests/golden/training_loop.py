"""Training loops as PyTorch's profiler records them, with causes that are known, and the same loop without them.

A host that launches, streams that run in order, a loader, all on one clock; what is written down of it is a Kineto
trace. Shares nothing with `tests/simulator` nor with the engine.
"""
import collections
import json
import random

COMPUTE, COPIES, COLLECTIVES = 7, 21, 20
QUEUE = 1000  # launches that wait on a stream before the host has to
PINNED_NS_MB, PAGEABLE_NS_MB = 83_333, 250_000

SETTINGS = {
    "seed": 1, "steps": 12, "warm_up": 14, "synced": False,  # whether the profiler waits for the device when it begins
    "layers": 60, "forward_us": 600, "backward_us": 1000, "dispatch_us": 80, "jitter": 0.02,
    "kernel": "conv", "half": True, "layout": 0.0, "graph": False, "compiled": False,
    "updates": 8, "update_us": 300, "update_dispatch_us": 60, "accumulate": 1,
    "workers": 8, "fetch_ms": 100.0, "in_phase": False, "first_batch_ms": 0.0, "epoch": 0,
    "copy_mb": 38, "pinned": True, "copies_ahead": True,
    "reads_loss": True, "reads_in_layers": 0, "scaler": False, "logs": False, "python_ms": 0.0,
    "buckets": 0, "allreduce_us": 0, "allocates_ms": 0.0, "loads_modules_ms": 0.0,
    "checkpoint_every": 0, "checkpoint_ms": 0.0, "validates_every": 0,
    "trains": True, "names_steps": True,
}


class Loop:
    """One run. `step_ns` has the times between the ends of its steps."""

    def __init__(self, **settings):
        unknown = set(settings) - set(SETTINGS)
        if unknown:
            raise ValueError(f"no such settings: {sorted(unknown)}")
        self.is_ = dict(SETTINGS, **settings)
        self.random = random.Random(self.is_["seed"])
        self.events, self.step_ns = [], []
        self.now, self.ids, self.records = 0, 0, False
        self.free = {COMPUTE: 0, COPIES: 0, COLLECTIVES: 0}
        self.queue = {stream: collections.deque() for stream in (COMPUTE, COPIES, COLLECTIVES)}
        self.ready, self.taken, self.worker_free, self.copied_ns = [], {}, {}, 0
        for step in range(self.is_["warm_up"] + self.is_["steps"]):
            self.records = step >= self.is_["warm_up"]
            if self.is_["synced"] and step == self.is_["warm_up"]:
                self.wait("cudaDeviceSynchronize")
            begin = self.now
            self.step(step)
            if self.records:
                self.step_ns.append(self.now - begin)
                if self.is_["names_steps"]:
                    self.put("user_annotation", f"ProfilerStep#{step}", begin, self.now)

    @property
    def mean_ns(self):
        return sum(self.step_ns) / len(self.step_ns)

    # -- what is written down ---------------------------------------------------------------------

    def put(self, category, name, start_ns, end_ns, thread=1000, process=1000, **args):
        if self.records:
            self.events.append({"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread,
                                "ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000, "args": args})

    def write(self, path):
        document = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_700_000_000_000_000_000,
                    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8,
                                          "computeMinor": 0, "numSms": 108, "totalGlobalMem": 85899345920}]}
        if self.is_["buckets"]:
            document["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 8}
        document["traceEvents"] = [{"ph": "M", "name": "process_name", "pid": 1000, "args": {"name": "python"}}]
        document["traceEvents"] += self.events
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(document))  # json.dump() encodes in Python, not in C

    # -- host and device --------------------------------------------------------------------------

    def about(self, us):
        return int(us * 1000 * (1 + self.is_["jitter"] * (2 * self.random.random() - 1)))

    def launch(self, name, dur_ns, thread=1000, category="kernel", stream=COMPUTE, call="cudaLaunchKernel", after_ns=0,
               blocks=False, **args):
        """The device's operation, and the call that asks for it."""
        self.ids += 1
        called_ns = self.now
        queue = self.queue[stream]
        while queue and queue[0] <= self.now:  # a stream's operations start in order
            queue.popleft()
        if len(queue) >= QUEUE:
            self.now = queue[-QUEUE]
        self.now += 5000
        start_ns = max(self.free[stream], self.now + 3000, after_ns)
        end_ns = start_ns + int(dur_ns)
        self.free[stream] = end_ns
        queue.append(start_ns)
        if blocks:
            self.now = end_ns + 3000
        self.put("cuda_runtime", call, called_ns, self.now, thread, correlation=self.ids)
        self.put(category, name, start_ns, end_ns, stream, 0, device=0, stream=stream, correlation=self.ids, **args)
        return end_ns

    def wait(self, call="cudaStreamSynchronize", thread=1000):
        called_ns = self.now
        self.now = max(self.now + 2000, self.free[COMPUTE] + 3000)
        self.put("cuda_runtime", call, called_ns, self.now, thread)

    def join(self, stream):
        """The stream that computes waits for another; the host does not."""
        self.put("cuda_runtime", "cudaStreamWaitEvent", self.now, self.now + 2000)
        self.now += 2000
        self.free[COMPUTE] = max(self.free[COMPUTE], self.free[stream] if stream == COLLECTIVES else self.copied_ns)

    def read(self, size_bytes=4, dur_ns=1500, name="aten::_local_scalar_dense"):
        begin = self.now
        self.now += 5000
        self.launch("Memcpy DtoH (Device -> Pageable)", dur_ns, category="gpu_memcpy", call="cudaMemcpyAsync",
                    bytes=size_bytes)
        self.wait()
        self.now += 2000
        self.put("cpu_op", name, begin, self.now)

    # -- parts of a step --------------------------------------------------------------------------

    def take_batch(self, batch):
        """The loader hands out batches in order; worker k works at k, k + n, ..."""
        workers, begin = self.is_["workers"], self.now
        if workers == 0:
            self.now += self.about(self.is_["fetch_ms"] * 1000)
        else:
            while len(self.ready) <= batch:
                number = len(self.ready)
                worker = number % workers
                asked_ns = self.taken.get(number - 2 * workers, 0)
                first_ns = 0 if self.is_["in_phase"] else int(self.is_["fetch_ms"] * 1e6 * worker / workers)
                start_ns = max(self.worker_free.get(worker, first_ns), asked_ns)
                self.worker_free[worker] = start_ns + self.about(self.is_["fetch_ms"] * 1000)
                self.ready.append(self.worker_free[worker])
            is_first = self.is_["epoch"] and batch and batch % self.is_["epoch"] == 0
            late_ns = int(self.is_["first_batch_ms"] * 1e6) if is_first else 0
            self.now = max(self.now + 150_000 + late_ns, self.ready[batch] + 50_000)
            self.taken[batch] = self.now
        kind = "_SingleProcessDataLoaderIter" if workers == 0 else "_MultiProcessingDataLoaderIter"
        self.put("user_annotation", f"enumerate(DataLoader)#{kind}.__next__", begin, self.now)

    def copy_batch(self):
        pinned, begin = self.is_["pinned"], self.now
        name = f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)"
        dur_ns = self.is_["copy_mb"] * (PINNED_NS_MB if pinned else PAGEABLE_NS_MB)
        size = int(self.is_["copy_mb"] * 1e6)
        ahead = pinned and self.is_["copies_ahead"]
        before_ns = self.copied_ns
        self.now += 10_000
        end_ns = self.launch(name, dur_ns, category="gpu_memcpy", stream=COPIES if ahead else COMPUTE,
                             call="cudaMemcpyAsync", blocks=not pinned, bytes=size)
        if ahead:  # this step computes with the batch that was copied in the one before
            self.copied_ns = before_ns
            self.join(COPIES)
            self.copied_ns = end_ns
        else:
            self.wait()
        self.put("cpu_op", "aten::to", begin, self.now)

    def layer(self, number, backward):
        thread = 1001 if backward else 1000
        time_us = self.is_["backward_us" if backward else "forward_us"]
        begin = self.now
        self.now += self.about(self.is_["dispatch_us"] * 0.5)
        conversion_ns = time_us * 1000 * self.is_["layout"] / 2
        if self.is_["layout"]:
            self.launch("void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(cudnn::ops::nchw2nhwc_params_t<float>)",
                        conversion_ns, thread)
        part = "dgrad" if backward else "fprop"
        if self.is_["kernel"] == "linear":
            name = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn" if self.is_["half"] else "ampere_sgemm_128x64_tn"
        elif self.is_["half"]:
            name = (f"sm80_xmma_{part}_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage3_"
                    "warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn")
        else:
            name = f"void cudnn::detail::{part}_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int)"
        self.launch(name, self.about(time_us * 0.8), thread)
        if self.is_["layout"]:
            self.launch("void cudnn::ops::nhwcToNchwKernel<__half, __half, float>(cudnn::ops::nhwc2nchw_params_t<float>)",
                        conversion_ns, thread)
        self.now += self.about(self.is_["dispatch_us"] * 0.5)
        operator = "aten::linear" if self.is_["kernel"] == "linear" else "aten::conv2d"
        self.put("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0" if backward else operator, begin,
                 self.now, thread)
        begin = self.now
        name = f"triton_poi_fused_relu_{number}" if self.is_["compiled"] else (
            "void at::native::vectorized_elementwise_kernel<4, at::native::clamp_min<float>, at::detail::Array<char*, 2>>(int)")
        self.launch(name, self.about(time_us * 0.2), thread)
        self.put("cpu_op", "autograd::engine::evaluate_function: ReluBackward0" if backward else "aten::relu", begin,
                 self.now, thread)

    def replay_graph(self):
        """All kernels of the layers by one launch."""
        self.ids += 1
        begin = self.now
        self.now += 400_000
        self.put("cuda_runtime", "cudaGraphLaunch", begin, self.now, correlation=self.ids)
        at_ns = max(self.free[COMPUTE], self.now + 5000)
        for number in range(2 * self.is_["layers"]):
            end_ns = at_ns + self.about(self.is_["forward_us" if number < self.is_["layers"] else "backward_us"])
            self.put("kernel", f"sm80_xmma_fprop_implicit_gemm_f16f16_tensor16x8x16_{number % 7}", at_ns, end_ns, COMPUTE,
                     0, device=0, stream=COMPUTE, correlation=self.ids)
            at_ns = end_ns + 1000
        self.free[COMPUTE] = at_ns

    def forward(self):
        for number in range(self.is_["layers"]):
            self.layer(number, False)
            if self.is_["reads_in_layers"] and number % max(1, self.is_["layers"] // self.is_["reads_in_layers"]) == 0:
                self.read()

    def backward(self, updates):
        for number in reversed(range(self.is_["layers"])):
            self.layer(number, True)
            buckets = self.is_["buckets"] if updates else 0
            if buckets and number % max(1, self.is_["layers"] // buckets) == 0:
                begin = self.now
                self.put("cuda_runtime", "cudaStreamWaitEvent", self.now, self.now + 2000, 1001)
                self.now += 2000
                self.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                            self.about(self.is_["allreduce_us"] / buckets), 1001, stream=COLLECTIVES,
                            after_ns=self.free[COMPUTE])
                self.put("cpu_op", "nccl:all_reduce", begin, self.now, 1001)

    def update(self):
        if self.is_["buckets"]:
            self.join(COLLECTIVES)
        if self.is_["scaler"]:
            self.read()
        begin = self.now
        for _ in range(self.is_["updates"]):
            self.now += self.about(self.is_["update_dispatch_us"])
            self.launch("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
                        "namespace)::TensorListMetadata<3>>(T)", self.about(self.is_["update_us"]))
        self.put("user_annotation", "Optimizer.step#SGD.step", begin, self.now)

    def allocate(self):
        self.wait("cudaDeviceSynchronize")
        for call in ("cudaFree", "cudaMalloc") * 4:
            begin = self.now
            self.now += int(self.is_["allocates_ms"] * 1e6 / 8)
            self.put("cuda_runtime", call, begin, self.now)

    def load_modules(self):
        for _ in range(4):
            begin = self.now
            self.now += int(self.is_["loads_modules_ms"] * 1e6 / 4)
            self.put("cuda_driver", "cuModuleLoadData", begin, self.now)

    def step(self, step):
        of_job = step - self.is_["warm_up"]
        for micro in range(self.is_["accumulate"]):
            self.take_batch(step * self.is_["accumulate"] + micro)
            self.copy_batch()
            self.now += self.about(self.is_["python_ms"] * 1000)
            if self.is_["loads_modules_ms"] and of_job in (0, 1):
                self.load_modules()
            if self.is_["allocates_ms"]:
                self.allocate()
            is_last = micro == self.is_["accumulate"] - 1
            if self.is_["graph"]:
                self.replay_graph()
            else:
                self.forward()
                if self.is_["trains"]:
                    self.backward(is_last)
            if is_last and self.is_["trains"]:
                self.update()
        if self.is_["reads_loss"]:
            self.read()
        if self.is_["logs"]:
            self.read(400_000, 30_000, "aten::to")
            self.now += 300_000
        self.now_and_then(step)
        self.now += 20_000

    def now_and_then(self, step):
        """A checkpoint, an evaluation."""
        every = self.is_["checkpoint_every"]
        if every and step % every == every - 1:
            for _ in range(5):
                self.launch("Memcpy DtoH (Device -> Pageable)", 5_000_000, category="gpu_memcpy", call="cudaMemcpyAsync",
                            blocks=True, bytes=20_000_000)
            self.now += int(self.is_["checkpoint_ms"] * 1e6)
        every = self.is_["validates_every"]
        if every and step % every == every - 1:
            for _ in range(5):
                begin = self.now
                self.now += 2_000_000
                self.put("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin, self.now)
                self.forward()
                self.read()
