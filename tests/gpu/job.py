"""A small program that uses the GPU in one way that a recorder has to bear; what it did is one line of JSON.

usage: job.py MODE [--stand-in LIBRARY]

With --stand-in the launches go to the stand-in for libcupti, in a process without a GPU: the recorder is loaded as libcuda does.
"""
import argparse
import ctypes
import gc
import json
import os
import signal
import sys
import time

LONG_NS = 20_000_000


def tell(**figures):
    print(json.dumps(figures), flush=True)


class StandIn:
    """Launches without a GPU."""

    name = "stand-in"

    def __init__(self, path):
        injection = os.environ.get("CUDA_INJECTION64_PATH")
        if injection:
            ctypes.CDLL(injection).InitializeInjection()
        self.library = ctypes.CDLL(path)
        self.library.stand_in_deliver_device(ctypes.c_uint32(0), ctypes.c_uint8(0xa0))

    def launch(self, count, kernel_ns=2000):
        self.library.stand_in_launch(ctypes.c_uint32(count), ctypes.c_uint64(kernel_ns), ctypes.c_uint32(os.getpid()))

    def sync(self):
        time.sleep(0.002)

    @staticmethod
    def memory_bytes():
        return None


class Cuda:
    """Launches of PyTorch."""

    def __init__(self):
        import torch
        self.torch = torch
        torch.zeros(1, device="cuda")
        self.values = torch.zeros(1024, device="cuda")
        self.name = torch.cuda.get_device_name()

    def launch(self, count, kernel_ns=2000):
        for _ in range(count):
            if kernel_ns > 100_000:
                self.torch.cuda._sleep(int(kernel_ns * 1.7))  # cycles of about 1.7 GHz
            else:
                self.values.add_(1)

    def sync(self):
        self.torch.cuda.synchronize()

    def memory_bytes(self):
        free, total = self.torch.cuda.mem_get_info()
        return total - free


def ahead(gpu, seconds):
    """Launches for so long, 50 ms ahead of the GPU."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        gpu.launch(50, 2000)
        gpu.launch(1, LONG_NS)
        count += 51
        time.sleep(0.015)
    return count


def work_in_flight(gpu):
    gpu.launch(100)
    gpu.sync()
    gpu.launch(3, LONG_NS)
    gpu.launch(5, 30 * LONG_NS)
    tell(launched=108, ends="by itself")


def killed(gpu):
    tell(launched=ahead(gpu, 3), ends="SIGKILL")
    os.kill(os.getpid(), signal.SIGKILL)


def left_at_once(gpu):
    tell(launched=ahead(gpu, 3), ends="os._exit")
    os._exit(0)


def middle_step(gpu, launch, count):
    """Steps, one every 10 ms at most: the time and the CPU time of the middle one."""
    times, cpu = [], []
    for _ in range(count):
        began, computed = time.perf_counter(), time.process_time()
        launch()
        gpu.sync()
        times.append((time.perf_counter() - began) * 1e6)
        cpu.append((time.process_time() - computed) * 1e6)
        time.sleep(max(0, 0.01 - (time.perf_counter() - began)))
    return [sorted(times)[count // 2], sorted(cpu)[count // 2]]


def captured(gpu, count):
    """A CUDA graph of small kernels."""
    torch = gpu.torch
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(count):
            gpu.values.add_(1)
    return graph


def products(gpu):
    """Four GEMMs of some 100 us or more each."""
    matrix = gpu.torch.ones(4096, 4096, device="cuda", dtype=gpu.torch.float16)
    return lambda: [gpu.torch.mm(matrix, matrix) for _ in range(4)]


def steps(gpu):
    """Steps of 200 small kernels, of those in a graph, and of large products."""
    kinds = {"small kernels": middle_step(gpu, lambda: gpu.launch(200), 300)}
    if isinstance(gpu, Cuda):
        kinds["graph"] = middle_step(gpu, captured(gpu, 200).replay, 100)
        kinds["products"] = middle_step(gpu, products(gpu), 100)
    tell(step_us_and_cpu_us=kinds, memory_bytes=gpu.memory_bytes())


def forked(gpu):
    """Children made after the first use of CUDA: one that ends by sys.exit, one by exit handlers of C, one at once. They must not touch CUPTI."""
    gpu.launch(100)
    gpu.sync()
    ended = []
    for end in (lambda: sys.exit(3), lambda: ctypes.CDLL(None).exit(4), lambda: os._exit(5)):
        pid = os.fork()
        if pid == 0:
            gc.disable()
            end()
        ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if isinstance(gpu, Cuda):
        ended += loaders(gpu.torch)
    gpu.launch(100)
    gpu.sync()
    tell(launched=200, ended=ended)


def loaders(torch):
    """Workers that are forked after the first use of CUDA: some that end as they should, and one by sys.exit."""
    class Items(torch.utils.data.Dataset):
        def __init__(self, bad): self.bad = bad
        def __len__(self): return 16
        def __getitem__(self, index): return sys.exit(6) if index == self.bad else index
    ended = []
    for bad in (-1, 5):
        try:
            ended.append(sum(batch.sum().item() for batch in torch.utils.data.DataLoader(Items(bad), batch_size=4, num_workers=2)))
        except RuntimeError as error:
            ended.append(type(error).__name__)
    return ended


def two_processes(gpu):
    """A second program on the same GPU, at the same time."""
    other = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *[argument if argument != "two_processes" else "one" for argument in sys.argv]])
    one(gpu)
    os.waitpid(other, 0)


def one(gpu):
    for _ in range(20):
        gpu.launch(20)
        gpu.sync()
    tell(launched=400)


# ---- with PyTorch alone

def profiler_cycles(gpu):
    """torch.profiler with a schedule of three cycles; steps before, between and behind. The first two of each five are between."""
    profile, counts, between = gpu.torch.profiler, [], []

    def ready(profiler):
        counts.append(sum(str(event.device_type).endswith("CUDA") for event in profiler.events() if event.name.find("elementwise") >= 0))

    one(gpu)
    with profile.profile(activities=[profile.ProfilerActivity.CPU, profile.ProfilerActivity.CUDA], on_trace_ready=ready,
                         schedule=profile.schedule(wait=2, warmup=1, active=2, repeat=3)) as profiler:
        for number in range(15):
            began = time.monotonic_ns()
            gpu.launch(100)
            gpu.sync()
            if number % 5 < 2:
                between.append([number // 5, began, time.monotonic_ns()])
            time.sleep(0.1)
            profiler.step()
    one(gpu)
    tell(theirs=counts, between=between)


def profiler_first(_gpu):
    """The first use of CUDA is inside torch.profiler."""
    import torch
    profile = torch.profiler
    with profile.profile(activities=[profile.ProfilerActivity.CPU, profile.ProfilerActivity.CUDA]) as profiler:
        gpu = Cuda()
        gpu.launch(100)
        gpu.sync()
    theirs = sum(str(event.device_type).endswith("CUDA") and "elementwise" in event.name for event in profiler.events())
    gpu.launch(100)
    gpu.sync()
    tell(theirs=theirs)


def profiler_off(gpu):
    """The usual off switch, in each step."""
    for _ in range(200):
        with gpu.torch.autograd.profiler.profile(enabled=False):
            gpu.launch(5)
    gpu.sync()
    tell(launched=1000)


def graphs(gpu):
    """A graph of 200 kernels replayed; recording of whole graphs is switched on and off 100 times meanwhile, past the recorder."""
    torch = gpu.torch
    graph = captured(gpu, 200)
    with open("/proc/self/maps") as maps:
        library = next((line.split()[-1] for line in maps if "libcupti" in line), None)
    cupti = ctypes.CDLL(library) if library else None
    memory, before, after, waited = [gpu.memory_bytes()], [], [], 0.0
    for number in range(100):
        for times in (before, after):
            began = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - began) * 1e6)
            if times is before and cupti is not None:
                began = time.perf_counter()
                (cupti.cuptiActivityDisable if number % 2 else cupti.cuptiActivityEnable)(ctypes.c_int(51))  # CUPTI_ACTIVITY_KIND_GRAPH_TRACE
                waited = max(waited, time.perf_counter() - began)
    for _ in range(2000):
        graph.replay()
    torch.cuda.synchronize()
    memory.append(gpu.memory_bytes())
    tell(replays=2200, toggled=100 if cupti else 0, before_us=sorted(before)[50], first_after_us=sorted(after)[50], longest_switch_ms=waited * 1e3, memory_bytes=memory)


MODES = {mode.__name__: mode for mode in (work_in_flight, killed, left_at_once, steps, forked, two_processes, one, profiler_cycles, profiler_first, profiler_off, graphs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=sorted(MODES))
    parser.add_argument("--stand-in", metavar="LIBRARY")
    args = parser.parse_args()
    MODES[args.mode](StandIn(args.stand_in) if args.stand_in else None if args.mode == "profiler_first" else Cuda())


if __name__ == "__main__":
    main()
