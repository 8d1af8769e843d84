"""What this machine is: GPU, PyTorch, libcupti, whether the engine runs here."""
import glob
import os
import platform
import subprocess

from bench import BUILD

SMI_QUERY = ["nvidia-smi", "--format=csv,noheader,nounits"]


def have_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout.startswith(b"GPU ")
    except (OSError, subprocess.TimeoutExpired):
        return False


def machine(bench):
    said = bench.run("nvidia-smi", [*SMI_QUERY, "--query-gpu=name,driver_version,memory.total,clocks.max.sm"], seconds=30)
    bench.note("gpu", (said or "none").strip())
    shared = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    bench.note("host", {"kernel": os.uname().release, "libc": "-".join(platform.libc_ver()), "cores": len(os.sched_getaffinity(0)),
                        "dev_shm_mb": shared.f_blocks * shared.f_frsize >> 20 if shared else None})
    said = bench.run("versions", [bench.args.python, "-c", "import torch, sys; print(torch.__version__, torch.version.cuda, torch.cuda.is_available(), "
                                                           "sys.version.split()[0])"])
    bench.note("torch_cuda_python", (said or "no torch").strip())
    bench.have_torch = said is not None and (" True " in said or bench.args.rehearse)
    bench.have_engine = bench.engine("lacuna --version", "--version") is not None
    bench.note("engine_runs_here", bench.have_engine or bench.last_words())
    bench.cupti = find_cupti(bench)
    bench.note("cupti", bench.cupti or "none")
    if bench.have_torch:   # once, for all runs
        bench.run("pictures", bench.train("--steps", "1", "--workers", "0", "--batch", "2"))


def find_cupti(bench):
    """The recorder finds a toolkit's and PyTorch's own; a program without either is given PyTorch's, or what was carried here."""
    for folder in ("/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"):
        found = sorted(glob.glob(os.path.join(folder, "libcupti.so.*")))
        if found:
            return found[-1]
    said = bench.run("cupti of PyTorch", [bench.args.python, "-c", "import nvidia, glob; print(*(path for folder in nvidia.__path__ for path in "
                                                                   "sorted(glob.glob(folder + '/c*/lib/libcupti.so.*'))))"])
    found = (said or "").split() or sorted(glob.glob(os.path.join(BUILD, "cupti", "libcupti.so.*")))
    if not found:
        return None
    bench.environment_of_c = {"LACUNA_CUPTI": found[-1]}
    return found[-1]


def clocks(bench, part):
    """After each part: figures of a GPU that was throttled are to be known as such."""
    if not bench.args.rehearse:
        said = bench.run("clocks", [*SMI_QUERY, "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_event_reasons.active"], seconds=15)
        bench.results.setdefault("clocks_after", {})[part] = (said or "not said").strip()
