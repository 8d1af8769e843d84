"""Frameworks by name: their steps where no optimizer of PyTorch shows them, their phases, and their settings.

A framework is told when its training begins, not when it is imported: Lightning and TensorFlow are imported by libraries that
nobody trains with. Lightning, the HF Trainer and Accelerate step PyTorch's optimizers, which are seen by themselves. Entry
points, their signatures and where they moved: README.md.
"""
import functools
import sys
import threading

import _lacuna
import _lacuna_hook
import _lacuna_ranks
from _lacuna_loader import here

push, pop, setting = _lacuna.push, _lacuna.pop, _lacuna.setting

_told = set()


def _tell(framework, read, owner):
    """Once, before its first step: the name, then what `read` says of `owner`."""
    _told.add(framework)
    setting(f"framework={framework}")
    _settings(read, owner)


def _settings(read, owner):
    try:
        for name, given in read(owner):
            if given is not None:
                setting(f"{name}={str(given)[:100]}")
    except Exception:  # versions differ in what they have
        pass


def _wrap(holder, attribute, make):
    """holder.attribute = make(original), unless it is not there or is ours already."""
    original = getattr(holder, attribute, None)
    if original is not None and not getattr(original, "_lacuna", False):
        wrapper = functools.wraps(original)(make(original))
        wrapper._lacuna = True
        setattr(holder, attribute, wrapper)


def _tells(holder, attribute, framework, read):
    def make(original):
        def wrapper(*args, **kwargs):
            if framework not in _told:
                _tell(framework, read, args[0] if args else None)
            return original(*args, **kwargs)
        return wrapper
    _wrap(holder, attribute, make)


def _phase(holder, attribute, name):
    def make(original):
        def wrapper(*args, **kwargs):
            push(name)
            try:
                return original(*args, **kwargs)
            finally:
                pop()
        return wrapper
    _wrap(holder, attribute, make)


def _step(holder, attribute, name, framework, read, holds_optimizers=False):
    """A call is a step of training. `holds_optimizers`: what PyTorch's optimizers do inside is its own work."""
    def make(original):
        def wrapper(*args, **kwargs):
            if here.in_framework:
                return original(*args, **kwargs)
            if framework not in _told:
                _tell(framework, read, args[0] if args else None)
            _lacuna_hook.framework_counts()
            here.in_framework, inside = True, here.in_step
            here.in_step = here.in_step or holds_optimizers
            push(name)
            try:
                return original(*args, **kwargs)
            finally:
                pop()
                here.in_framework, here.in_step = False, inside
                _lacuna_hook.framework_step_ended(sys._getframe(1))
        return wrapper
    _wrap(holder, attribute, make)


# ---- PyTorch's

def _of_lightning(loop):
    trainer = loop.trainer
    yield "precision", trainer.precision
    yield "gradient_accumulation_steps", trainer.accumulate_grad_batches
    yield "strategy", type(trainer.strategy).__name__
    yield "num_nodes", trainer.num_nodes


def lightning_loop(module):
    kind = getattr(module, "_TrainingEpochLoop", None) or module.TrainingEpochLoop
    _tells(kind, "advance", "Lightning", _of_lightning)


def lightning_evaluation(module):
    _phase(getattr(module, "_EvaluationLoop", None) or module.EvaluationLoop, "run", "validation")


def lightning_trainer(module):
    _phase(module.Trainer, "save_checkpoint", "checkpoint")


def _of_hf(trainer):
    args = trainer.args
    yield "precision", "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
    yield "gradient_accumulation_steps", args.gradient_accumulation_steps
    yield "per_device_train_batch_size", args.per_device_train_batch_size
    yield "gradient_checkpointing", getattr(args, "gradient_checkpointing", None)
    yield "strategy", "DeepSpeed" if args.deepspeed else "FSDP" if getattr(args, "fsdp", None) else None


def hf_trainer(module):
    _tells(module.Trainer, "training_step", "HF Trainer", _of_hf)
    _phase(module.Trainer, "evaluation_loop", "evaluation")
    _phase(module.Trainer, "_save_checkpoint", "checkpoint")


def _of_accelerate(accelerator):
    yield "gradient_accumulation_steps", accelerator.gradient_accumulation_steps
    yield "strategy", getattr(accelerator.distributed_type, "value", accelerator.distributed_type)


def accelerate(module):
    def make(original):
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            _settings(_of_accelerate, self)
        return __init__
    _wrap(module.Accelerator, "__init__", make)
    _phase(module.Accelerator, "save_state", "checkpoint")


def _of_deepspeed(engine):
    yield "zero_stage", engine.zero_optimization_stage()
    yield "gradient_accumulation_steps", engine.gradient_accumulation_steps()
    yield "precision", "bf16" if engine.bfloat16_enabled() else "fp16" if engine.fp16_enabled() else "fp32"


def deepspeed(module):
    """Once an update, of the pipeline engine, too; optimizers of ZeRO step once for each group of parameters."""
    kind = module.DeepSpeedEngine
    _step(kind, "_take_model_step", "Optimizer.step#DeepSpeedEngine.step", "DeepSpeed", _of_deepspeed, holds_optimizers=True)
    _phase(kind, "save_checkpoint", "checkpoint")


def _of_megatron(_):
    holder = sys.modules.get("megatron.training.global_vars") or sys.modules["megatron.global_vars"]
    args = holder.get_args()
    yield "precision", "bf16" if args.bf16 else "fp16" if args.fp16 else "fp32"
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "micro_batch_size",
                 "global_batch_size", "num_workers"):
        yield name, getattr(args, name, None)


def megatron(module):
    if "train_step" in vars(module):
        _step(module, "train_step", "train_step", "Megatron", _of_megatron)
        _phase(module, "evaluate", "evaluation")
        _phase(module, "save_checkpoint", "checkpoint")


# ---- engines for inference: an iteration counts while nobody trains

def _of_vllm(worker):
    yield "tensor_parallel_size", worker.parallel_config.tensor_parallel_size
    yield "pipeline_parallel_size", worker.parallel_config.pipeline_parallel_size
    yield "dtype", worker.model_config.dtype
    yield "max_num_seqs", worker.scheduler_config.max_num_seqs


def vllm(module):
    kind = getattr(module, "Worker", None) or module.LocalOrDistributedWorkerBase

    def make(original):
        def execute_model(*args, **kwargs):
            if "vLLM" not in _told:
                _tell("vLLM", _of_vllm, args[0] if args else None)
            push("execute_model")
            try:
                return original(*args, **kwargs)
            finally:
                pop()
                _lacuna_hook.iteration_ended()
        return execute_model
    _wrap(kind, "execute_model", make)

    def make_ready(original):
        def init_device(worker, *args, **kwargs):
            result = original(worker, *args, **kwargs)
            try:
                _lacuna_ranks.engine_worker("vLLM", worker.rank, worker.parallel_config.world_size, worker.distributed_init_method, worker.local_rank)
            except Exception:  # versions differ in what they have
                pass
            return result
        return init_device
    _wrap(kind, "init_device", make_ready)


# ---- JAX and Keras

def _of_jax(_):
    yield "jax_version", sys.modules["jax"].__version__


def jax_profiler(module):
    """`with StepTraceAnnotation("train", step_num=n)`; the class above it is not Python's."""
    kind = module.StepTraceAnnotation
    enter, leave = kind.__enter__, kind.__exit__

    def __init__(self, name, *args, **kwargs):
        _init(self, name, *args, **kwargs)
        self._lacuna_trains = not any(word in str(name).lower() for word in ("eval", "valid", "test", "predict"))

    _init = kind.__init__
    kind.__init__ = functools.wraps(_init)(__init__)

    def __enter__(self):
        result = enter(self)
        trains = getattr(self, "_lacuna_trains", False)
        if trains and "JAX" not in _told:
            _tell("JAX", _of_jax, None)
        push("step" if trains else "evaluation")
        return result

    def __exit__(self, *args):
        pop()
        if getattr(self, "_lacuna_trains", False):
            _lacuna_hook.framework_counts()
            _lacuna_hook.framework_step_ended(sys._getframe(1))
        return leave(self, *args)

    kind.__enter__, kind.__exit__ = __enter__, __exit__


class _Open(threading.local):
    batches = ()  # ranges that callbacks opened in this thread


_open = _Open()


def keras(module):
    """A batch of fit() lies between two calls of its list of callbacks; one that fails is closed by the next."""
    kind = getattr(module, "CallbackList", None)
    if kind is None:
        return

    def between(begin, end, name, trains):
        def make_begin(original):
            def wrapper(self, *args, **kwargs):
                original(self, *args, **kwargs)
                if trains and "Keras" not in _told:
                    _tell("Keras", lambda _: (), None)
                _close(name)
                _open.batches = (*_open.batches, name)
                push(name)
            return wrapper

        def make_end(original):
            def wrapper(self, *args, **kwargs):
                if _close(name) and trains:
                    _lacuna_hook.framework_counts()
                    _lacuna_hook.framework_step_ended(sys._getframe(1))
                return original(self, *args, **kwargs)
            return wrapper

        _wrap(kind, begin, make_begin)
        _wrap(kind, end, make_end)

    between("on_train_batch_begin", "on_train_batch_end", "train_step", True)
    between("on_test_begin", "on_test_end", "validation", False)


def _close(name):
    """The open range of that name, and those inside."""
    if name not in _open.batches:
        return False
    while _open.batches:
        last = _open.batches[-1]
        _open.batches = _open.batches[:-1]
        pop()
        if last == name:
            break
    return True
