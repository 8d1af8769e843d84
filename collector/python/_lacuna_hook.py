"""The patches: ranges of the loader vocabulary in training and worker processes, and the job's settings.

Each patch is applied once its module has run, is guarded by itself, and keeps the patched object's
name, so that it pickles by reference. Names inside PyTorch move between versions: what is missing
is not patched, and "hook.missing=..." says so in the recording.
"""
import functools
import os
import sys
import threading
import weakref

import _lacuna
import _lacuna_loader
from _lacuna_loader import here

push, pop, push_loader, setting, count_step = _lacuna.push, _lacuna.pop, _lacuna.push_loader, _lacuna.setting, _lacuna.step

try:
    _trial = __import__("_lacuna_try") if os.environ.get("LACUNA_TRY_STEPS") else None  # what `lacuna try` changes
except Exception:
    _trial = None
    setting("hook.missing=try")

_named = __import__("_lacuna_step") if os.environ.get("LACUNA_STEP") else None

_stepping = None       # the optimizer whose steps count
_stepping_kinds = []   # (class, its own step)
_settings_seen = False


def patch(name, module):
    """Apply the patches for module `name`."""
    for function in _PATCHES.get(name, ()):
        try:
            function(module)
        except Exception:
            setting(f"hook.missing={name}.{function.__name__}")
    if _trial is not None:
        _trial.patch(name, module)
    if _named is not None:
        _safely(_patch_named, name, module)


def _patch_named(name, module):
    """What --step names: record_function, and a function as soon as its module is there."""
    if name == "torch.autograd.profiler":
        _named.record_function(module)
    if name == _named.MODULE and _named.is_searching():
        _named.look()


_failed = set()


def _safely(function, *arguments):
    """Ours, called beside what the job called: its errors are not the job's."""
    try:
        function(*arguments)
    except Exception:
        if function not in _failed:
            _failed.add(function)
            setting(f"hook.missing={function.__name__}")


# ---- the step

def _never():
    return False


# Whether a compiler is tracing: it must not meet any code of ours. torch.compiler's own function, which compilers know.
_is_compiling = _never


def _optimizer(module):
    original_init = module.Optimizer.__init__

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            _lacuna_loader.optimizer_is_there()
            _patch_step(type(self))
            for name in ("foreach", "fused", "capturable"):
                if name in self.defaults:
                    setting(f"optimizer_{name}={self.defaults[name]}")
            setting(f"optimizer={type(self).__name__}")
        except Exception:
            pass

    module.Optimizer.__init__ = __init__


# What holds only inside a step, by the range at whose beginning it is asked, once: its name, and torch's function.
_INSIDE_STEPS = {"forward": ("autocast", "is_autocast_enabled"), "backward": ("detect_anomaly", "is_anomaly_enabled")}


def _ask(inside):
    try:
        torch = sys.modules["torch"]
        if not torch.is_grad_enabled():
            return  # an evaluation
        name, function = _INSIDE_STEPS.pop(inside)
        is_on = getattr(torch, function)()
        if is_on or "accelerate.state" not in sys.modules:  # which turns autocast on inside of the model
            setting(f"{name}={is_on}")
    except Exception:
        _INSIDE_STEPS.pop(inside, None)


def _after_first_step():
    """By now the script has made all its settings."""
    global _settings_seen
    if _stacks is not None:
        _stacks.step_ended()
    if not _settings_seen:
        try:
            import _lacuna_hang
            _lacuna_hang.listen(is_training=True)
        except Exception:
            setting("hook.missing=hang")
        _begin_stacks()
        _settings_seen = True
        try:
            _lacuna_loader.tell_settings()
            import _lacuna_settings
            _lacuna_settings.collect(setting)
        except Exception:
            setting("hook.missing=settings")


_stacks = None  # _lacuna_stacks, where they are sampled


def _begin_stacks():
    global _stacks
    if os.environ.get("LACUNA_PYTHON_STACKS", "off") == "off":
        return
    try:
        import _lacuna_stacks
        _lacuna_stacks.step_ended()
        _lacuna_stacks.begin()
        _stacks = _lacuna_stacks
    except Exception:
        setting("hook.missing=stacks")


def _is_closure_first(step):
    """Whether the argument after `self` is a closure: other callables, such as a model, must not be changed."""
    import inspect  # which PyTorch has loaded
    try:
        return list(inspect.signature(step).parameters)[1:2] == ["closure"]
    except (TypeError, ValueError):
        return False


def _patch_step(kind):
    original = kind.step
    if getattr(original, "_lacuna", False):
        return
    is_closure_first = _is_closure_first(original)

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        if _is_compiling() or here.in_step:  # of a class that calls its base's
            return original(self, *args, **kwargs)
        here.in_step = True
        if _position is not None:
            _position.end_of_head()
        span = _StepRange(f"Optimizer.step#{type(self).__name__}.step")
        try:
            # a closure computes the gradients: they are not the optimizer's work
            if callable(kwargs.get("closure")):
                kwargs["closure"] = span.after(kwargs["closure"])
            elif is_closure_first and args and callable(args[0]):
                args = (span.after(args[0]), *args[1:])
            else:
                span.open()
            return original(self, *args, **kwargs)
        finally:
            span.close()
            here.in_step = False
            _safely(_step_ended, self, sys._getframe(1))

    step._lacuna = True
    kind.step = step
    _stepping_kinds.append((kind, original))


class _StepRange:
    """The range of one step of an optimizer; it begins when the gradients are there."""

    def __init__(self, name):
        self._name = name
        self._is_open = False

    def open(self):
        if not self._is_open:
            self._is_open = True
            push(self._name)

    def after(self, closure):
        @functools.wraps(closure, ("__name__", "__doc__"), ())
        def timed(*args, **kwargs):
            try:
                return closure(*args, **kwargs)
            finally:
                self.open()

        return timed

    def close(self):
        self.open()
        pop()


def _step_ended(optimizer, frame):
    """Several optimizers make one step of training: the first one that steps counts, unless a framework says what a step is."""
    global _stepping
    if _is_counted:
        return
    if _stepping is None or _stepping() is None:
        _stepping = weakref.ref(optimizer)
    if _stepping() is optimizer:
        _count(frame)


_is_counted = False  # by a framework


def framework_counts():
    """From now on steps are those that a framework ends."""
    global _is_counted
    _is_counted = True


def framework_step_ended(frame):
    _safely(_count, frame)


def iteration_ended():
    """Of an engine for inference: a step where nothing trains."""
    if _stepping is None and not _is_counted:
        _safely(_count)


def _count(frame=None):
    count_step()
    _after_first_step()
    if frame is not None:
        _head_begins(frame)
    if _trial is not None:
        _trial.step_ended()


# ---- forward: the outermost call of a module

# Modules that only call others: their parts are what is worth a name.
_CONTAINERS = frozenset(("Compose", "RandomOrder", "RandomApply", "RandomChoice"))
_module_call = None  # of torch.nn.Module, before it was wrapped


def _module(module):
    global _module_call
    kind = module.Module
    _module_call = kind.__call__

    def __call__(self, *args, **kwargs):
        # inner modules, the most of them, pay for one look-up
        if here.in_module:
            return _module_call(self, *args, **kwargs)
        if here.batch >= 0:
            return _call_transform(self, args, kwargs)
        here.in_module = True
        if _position is not None:
            _position.end_of_head()
        if "forward" in _INSIDE_STEPS:
            _ask("forward")
        push("forward")
        try:
            return _module_call(self, *args, **kwargs)
        finally:
            pop()
            here.in_module = False

    kind.__call__ = __call__


def _call_transform(module, args, kwargs):
    """A module that is called while a batch is made is a transform."""
    name = type(module).__name__
    if not _lacuna_loader.parts_are_on() or name in _CONTAINERS:
        return _module_call(module, *args, **kwargs)
    here.in_module = True
    try:
        return _lacuna_loader.part(f"loader.transform {name}", _module_call, module, *args, **kwargs)
    finally:
        here.in_module = False


def _leave_modules(why):
    """A compiler reads Module.__call__ and must find PyTorch's own function there."""
    torch = sys.modules.get("torch")
    if _module_call is not None and torch is not None:
        torch.nn.Module.__call__ = _module_call
        setting(f"forward_ranges=off ({why})")


def _compile(module):
    global _is_compiling
    _is_compiling = getattr(getattr(module, "compiler", None), "is_compiling", _never)
    original = getattr(module, "compile", None)
    if original is None:  # before 2.0
        return

    @functools.wraps(original)
    def compile(*args, **kwargs):
        setting("compile=True")
        if kwargs.get("mode") is not None:
            setting(f"compile_mode={kwargs['mode']}")
        return _out_of_its_way(original, *args, **kwargs)

    module.compile = compile


def _dynamo(module):
    """Whatever compiles without torch.compile, as export does."""
    for name in ("optimize", "optimize_assert", "export"):
        if hasattr(module, name):
            _go_out_of_the_way_of(module, name)


def _go_out_of_the_way_of(module, name):
    original = getattr(module, name)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        return _out_of_its_way(original, *args, **kwargs)

    setattr(module, name, wrapper)


def _out_of_its_way(compiler, *args, **kwargs):
    """A compiler, when it is first used, takes PyTorch's own profiling off each optimizer's step: the outermost wrapper, which
    must not be ours."""
    _leave_modules("torch.compile")
    if _named is not None:
        _safely(_named.compiles, bool(kwargs.get("fullgraph") or kwargs.get("nopython") or compiler.__name__ in ("optimize_assert", "export")))
    kinds = []
    while _stepping_kinds:
        kind, original = _stepping_kinds.pop()
        if getattr(kind.step, "_lacuna", False):
            kind.step = original
            kinds.append(kind)
    try:
        return compiler(*args, **kwargs)
    finally:
        for kind in kinds:
            _patch_step(kind)


# ---- another profiler, explicitly used: while it runs, the GPU is left to it

def _takes_gpu(profiler):
    """False for one that is switched off, or that looks at the processor alone: to leave CUPTI to it would cost, and help nobody."""
    if not getattr(profiler, "enabled", True):
        return False
    activities = getattr(profiler, "kineto_activities", None) or getattr(profiler, "activities", None)
    return activities is None or any("CPU" not in str(activity) for activity in activities)


def _stacks_too(profiler, by):
    """Whoever samples stacks leaves them to a profiler that has them."""
    if os.environ.get("LACUNA_PYTHON_STACKS", "off") == "off":
        return
    try:
        import _lacuna_stacks
        _lacuna_stacks.profiler_runs(getattr(profiler, "enabled", True) and getattr(profiler, "with_stack", False), by)
    except Exception:
        pass


def _yields(kind, begin, end, name):
    def begins(profiler):
        _stacks_too(profiler, 1)
        return _takes_gpu(profiler) and _lacuna.gpu_yield(1, name)

    def ends(profiler):
        _stacks_too(profiler, -1)
        return _takes_gpu(profiler) and _lacuna.gpu_yield(0, name)

    _before(kind, begin, begins)
    _after(kind, end, ends)


def _profiler(module):
    kind = getattr(module, "_KinetoProfile", None) or module.profile
    _yields(kind, "prepare_trace" if hasattr(kind, "prepare_trace") else "start", "stop_trace" if hasattr(kind, "stop_trace") else "stop",
            "torch.profiler")
    _note_export(kind)


def _autograd_profiler(module):
    _yields(module.profile, "__enter__", "__exit__", "torch.autograd.profiler")
    _note_export(module.profile)


_exports = 0
_exporting = threading.local()


def _note_export(kind):
    """Where it writes its trace: the launcher adds that to the recording, so that what we left to that profiler is not lost."""
    original = kind.export_chrome_trace

    @functools.wraps(original)
    def export_chrome_trace(self, path, *args, **kwargs):
        if getattr(_exporting, "inside", False):  # torch.profiler calls torch.autograd's
            return original(self, path, *args, **kwargs)
        _exporting.inside = True
        try:
            return original(self, path, *args, **kwargs)
        finally:
            _exporting.inside = False
            try:
                _leave_note(os.path.abspath(os.fspath(path)))
            except Exception:
                pass

    kind.export_chrome_trace = export_chrome_trace


def _leave_note(path):
    global _exports
    note = os.path.join(os.environ["LACUNA_SPOOL"], f"torch-profiler-{os.getpid()}-{_exports}.path")
    with open(note + ".new", "w") as file:
        file.write(path)
    os.rename(note + ".new", note)
    _exports += 1


def _before(holder, attribute, action):
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        _safely(action, self)
        return original(self, *args, **kwargs)

    setattr(holder, attribute, wrapper)


def _after(holder, attribute, action):
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        try:
            return original(self, *args, **kwargs)
        finally:
            _safely(action, self)

    setattr(holder, attribute, wrapper)


# ---- the head of a step

_position = None  # _lacuna_position, once a step has ended


def _head_begins(frame):
    """After a step the training thread waits for its next batch: in a loader that we know, or in what?"""
    global _position
    if _position is None:
        import _lacuna_position
        _position = _lacuna_position
        if _lacuna_loader.is_known or _lacuna_loader.named:
            _position.known()
    if _position.is_watching():
        _position.step_ended(frame)


def _tensor(module):
    original = module.Tensor.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        if _is_compiling():
            return original(*args, **kwargs)
        if _position is not None:
            _position.end_of_head()
        if "backward" in _INSIDE_STEPS:
            _ask("backward")
        push("backward")
        try:
            return original(*args, **kwargs)
        finally:
            pop()

    module.Tensor.backward = backward


def _watch_collections():
    import gc

    def on_collection(phase, info):
        # young generations are collected too quickly to matter
        if info.get("generation") == 2:
            if phase == "start":
                push("gc")
            else:
                pop()

    gc.callbacks.append(on_collection)


_PATCHES = {
    "torch.utils.data.dataloader": (_lacuna_loader.dataloader,),
    "torch.utils.data._utils.worker": (_lacuna_loader.worker_loops,),
    "torch.utils.data._utils.fetch": (_lacuna_loader.fetch,),
    "torch.utils.data._utils.pin_memory": (_lacuna_loader.pin_memory,),
    "torchdata.stateful_dataloader.worker": (_lacuna_loader.worker_loops,),
    "torch.optim.optimizer": (_optimizer,),
    "torch._tensor": (_tensor,),
    "torchvision.transforms.transforms": (_lacuna_loader.compose,),
    "torchvision.io.image": (_lacuna_loader.torchvision_io,),
    "PIL.Image": (_lacuna_loader.pil_image,),
    "PIL.ImageFile": (_lacuna_loader.pil_image_file,),
    "torch": (_compile,),
    "torch.nn.modules.module": (_module,),
    "torch._dynamo.eval_frame": (_dynamo,),
    "torch.profiler.profiler": (_profiler,),
    "torch.autograd.profiler": (_autograd_profiler,),
}


def _from(name, *functions):
    """Patches of a file that is loaded with the first module that it patches."""
    def later(function):
        def patch_later(module):
            getattr(__import__(name), function)(module)

        patch_later.__name__ = function
        return patch_later

    return tuple(later(function) for function in functions)


_PATCHES.update({
    "torch.distributed.distributed_c10d": (*_from("_lacuna_ranks", "process_group"), *_from("_lacuna_hang", "distributed")),
    "jax._src.distributed": _from("_lacuna_ranks", "jax_distributed"),
    "lightning.pytorch.loops.training_epoch_loop": _from("_lacuna_frameworks", "lightning_loop"),
    "lightning.pytorch.loops.evaluation_loop": _from("_lacuna_frameworks", "lightning_evaluation"),
    "lightning.pytorch.trainer.trainer": _from("_lacuna_frameworks", "lightning_trainer"),
    "pytorch_lightning.loops.training_epoch_loop": _from("_lacuna_frameworks", "lightning_loop"),
    "pytorch_lightning.loops.epoch.training_epoch_loop": _from("_lacuna_frameworks", "lightning_loop"),
    "pytorch_lightning.loops.evaluation_loop": _from("_lacuna_frameworks", "lightning_evaluation"),
    "pytorch_lightning.loops.dataloader.evaluation_loop": _from("_lacuna_frameworks", "lightning_evaluation"),
    "pytorch_lightning.trainer.trainer": _from("_lacuna_frameworks", "lightning_trainer"),
    "transformers.trainer": _from("_lacuna_frameworks", "hf_trainer"),
    "accelerate.accelerator": _from("_lacuna_frameworks", "accelerate"),
    "deepspeed.runtime.engine": _from("_lacuna_frameworks", "deepspeed"),
    "megatron.training": _from("_lacuna_frameworks", "megatron"),
    "megatron.training.training": _from("_lacuna_frameworks", "megatron"),
    "vllm.v1.worker.gpu_worker": _from("_lacuna_frameworks", "vllm"),
    "vllm.worker.worker_base": _from("_lacuna_frameworks", "vllm"),
    "jax._src.profiler": _from("_lacuna_frameworks", "jax_profiler"),
    "keras.src.callbacks.callback_list": _from("_lacuna_frameworks", "keras"),
    "keras.src.callbacks": _from("_lacuna_frameworks", "keras"),
    "keras.callbacks": _from("_lacuna_frameworks", "keras"),
    "tf_keras.src.callbacks": _from("_lacuna_frameworks", "keras"),
    "tensorflow.python.keras.callbacks": _from("_lacuna_frameworks", "keras"),
    "nvidia.dali.plugin.pytorch": _from("_lacuna_named", "dali"),
    "nvidia.dali.plugin.jax.iterator": _from("_lacuna_named", "dali"),
    "ffcv.loader.epoch_iterator": _from("_lacuna_named", "ffcv"),
    "webdataset.pipeline": _from("_lacuna_named", "webdataset"),
    "datasets.arrow_dataset": _from("_lacuna_named", "hf_datasets"),
    "tensorflow.python.data.ops.iterator_ops": _from("_lacuna_named", "tf_data"),
})

_watch_collections()
