"""The job's settings, read once after the first step: precision, debug switches, cores, framework.

Only modules that are loaded already are asked: looking must not load or change anything. What holds only inside a step (autocast,
anomaly detection) the hook asks there.
"""
import os
import sys

_FRAMEWORKS = (  # the one that is named first is the one the user sees
    ("lightning", "Lightning"), ("pytorch_lightning", "Lightning"), ("transformers.trainer", "HF Trainer"), ("accelerate", "Accelerate"),
    ("deepspeed", "DeepSpeed"), ("megatron", "Megatron"), ("composer", "Composer"), ("torchtitan", "torchtitan"), ("fastai", "fastai"),
    ("torch", "PyTorch"), ("jax", "JAX"), ("tensorflow", "TensorFlow"),
)
_ENVIRONMENT = ("CUDA_LAUNCH_BLOCKING", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                "NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG", "CUBLAS_WORKSPACE_CONFIG", "TORCH_CUDNN_V8_API_DISABLED",
                "NVIDIA_TF32_OVERRIDE", "TORCHDYNAMO_DISABLE", "PYTHONMALLOC")


def framework():
    return next((name for module, name in _FRAMEWORKS if module in sys.modules), "?")


def _torch_settings(torch):
    yield "torch_version", lambda: torch.__version__
    yield "cuda_version", lambda: torch.version.cuda
    yield "torch_num_threads", lambda: torch.get_num_threads()
    if hasattr(getattr(torch, "_C", None), "_get_fp32_precision_getter"):  # from 2.9 on, where asking for the older ones is warned of
        yield "matmul_allow_tf32", lambda: _is_tf32(torch.backends.cuda.matmul.fp32_precision)
        yield "cudnn_allow_tf32", lambda: _is_tf32(torch.backends.cudnn.conv.fp32_precision)
    else:
        yield "float32_matmul_precision", lambda: torch.get_float32_matmul_precision()
        yield "matmul_allow_tf32", lambda: torch.backends.cuda.matmul.allow_tf32
        yield "cudnn_allow_tf32", lambda: torch.backends.cudnn.allow_tf32
    yield "cudnn_benchmark", lambda: torch.backends.cudnn.benchmark
    yield "cudnn_deterministic", lambda: torch.backends.cudnn.deterministic
    yield "deterministic_algorithms", lambda: torch.are_deterministic_algorithms_enabled()
    yield "detect_anomaly", lambda: torch.is_anomaly_enabled()


def _is_tf32(precision):
    return {"tf32": True, "ieee": False}[precision]


def _mixed_precision():
    """The settings that accelerate, and trainers built on it, were given."""
    state = sys.modules["accelerate.state"].AcceleratorState._shared_state
    return state["_mixed_precision"]


def collect(setting):
    """Give every setting that can be seen to `setting` as "key=value"."""
    setting(f"framework={framework()}")
    for name in _ENVIRONMENT:
        if name in os.environ:
            setting(f"{name}={os.environ[name][:200]}")
    try:
        setting(f"cpu_count={os.cpu_count()}")
        setting(f"cpu_affinity={len(os.sched_getaffinity(0))}")
    except (AttributeError, OSError):
        pass
    setting(f"python_version={sys.version.split()[0]}")
    if "ray.train" in sys.modules and "ray._private.worker" in sys.modules:
        setting("started_by=Ray Train")
    torch = sys.modules.get("torch")
    for name, ask in (*(_torch_settings(torch) if torch is not None else ()), ("mixed_precision", _mixed_precision)):
        try:
            setting(f"{name}={ask()}")
        except Exception:  # versions differ in what they have
            pass
