"""A change that `lacuna try` asks for, made to a job whose script stays as it is, and the end of that job after enough steps.

LACUNA_TRY="workers=7,pinned=1" names the changes, LACUNA_TRY_STEPS after how many training steps the job ends. Each change that was
really made is told as the setting `tried_KEY`: a job without a loader has nothing to change, and its comparison would mean nothing.
"""
import functools
import os
import signal
import sys
import threading

from _lacuna import pop, push_loader, setting

CACHED_BATCHES = 4     # enough that batches differ, few enough to fit anywhere
GRACE_STEPS = 3        # of a job that does not let SystemExit through, before it is ended by a signal

_changes = dict(change.split("=", 1) for change in os.environ.get("LACUNA_TRY", "").split(",") if "=" in change)
_steps_left = int(os.environ.get("LACUNA_TRY_STEPS", "0") or 0)
_told = set()


def _tell(key):
    if key not in _told:
        _told.add(key)
        setting(f"tried_{key}={_changes[key]}")


# ---- the loader

def _loader_arguments(given):
    """The arguments that the loader is made with, by name, and which changes are in them. A loader without workers takes none of theirs."""
    made = dict(given)
    keys = []
    if "workers" in _changes:
        made["num_workers"] = int(_changes["workers"])
        keys.append("workers")
    has_workers = made.get("num_workers", 0) > 0
    if "pinned" in _changes:
        made["pin_memory"] = _changes["pinned"] == "1"
        keys.append("pinned")
    if "prefetch" in _changes and has_workers:
        made["prefetch_factor"] = int(_changes["prefetch"])
        keys.append("prefetch")
    if "persistent" in _changes and has_workers:
        made["persistent_workers"] = _changes["persistent"] == "1"
        keys.append("persistent")
    if not has_workers:
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            made.pop(name, None)
    return made, keys


def dataloader(module):
    """As the last of the loader's patches: what they see is the loader as it is changed."""
    import inspect
    kind = module.DataLoader
    original = kind.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        try:
            given = dict(signature.bind(self, *args, **kwargs).arguments)
            given.pop(next(iter(signature.parameters)))
            for name, parameter in signature.parameters.items():
                if parameter.kind is parameter.VAR_KEYWORD:
                    given.update(given.pop(name, {}))
            made, keys = _loader_arguments(given)
        except Exception:  # the script's own mistake, which the loader words better
            return original(self, *args, **kwargs)
        original(self, **made)
        for key in keys:
            _tell(key)

    if _changes.keys() & {"workers", "pinned", "prefetch", "persistent"}:
        kind.__init__ = __init__
    if _changes.get("batch") == "cached":
        _cache_batches(kind)


class _Cached:
    """An epoch of the same few batches: the first ones as the loader makes them, then these again. `batches` is the loader's own list, for
    all its epochs. The wait, of no length, is recorded still: it tells one step from the next."""

    def __init__(self, begin, batches, count):
        self._batches, self._count, self._next = batches, count, 0
        self._loading = begin() if len(batches) < CACHED_BATCHES else None

    def __iter__(self):
        return self

    def _load(self):
        try:
            self._batches.append(next(self._loading))
        except StopIteration:
            self._loading = None  # of fewer batches than that
            return
        if len(self._batches) >= CACHED_BATCHES:
            self._loading = None  # its workers end

    def __next__(self):
        number, self._next = self._next, self._next + 1
        if self._count is not None and number >= self._count:
            raise StopIteration
        if self._loading is not None and number >= len(self._batches):
            self._load()
            if number < len(self._batches):
                return self._batches[number]
        if not self._batches:
            raise StopIteration
        push_loader("loader.wait", number, -1)
        pop()
        return self._batches[number % len(self._batches)]


def _cache_batches(kind):
    original = kind.__iter__

    @functools.wraps(original)
    def __iter__(self):
        batches = self.__dict__.setdefault("_lacuna_cached", [])
        try:
            count = len(self)
        except TypeError:  # of a stream
            count = None
        _tell("batch")
        return _Cached(functools.partial(original, self), batches, count)

    kind.__iter__ = __iter__


# ---- PyTorch's own switches and the optimizer

def _set_switches():
    """Once when PyTorch is there, so that the first step has them, and once after the script has made its own settings."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for key in _changes:
        try:
            if key == "tf32":
                torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = _changes[key] == "1"
            elif key == "cudnn_benchmark":
                torch.backends.cudnn.benchmark = _changes[key] == "1"
            elif key == "threads":
                torch.set_num_threads(int(_changes[key]))
            else:
                continue
            _tell(key)
        except Exception:
            setting(f"hook.missing=try.{key}")


def optimizer(module):
    if "optimizer" not in _changes:
        return
    original = module.Optimizer.__init__
    wanted = _changes["optimizer"]

    @functools.wraps(original)
    def __init__(self, params, defaults, *args, **kwargs):
        if isinstance(defaults, dict) and wanted in defaults:
            defaults = {**defaults, **{name: name == wanted for name in ("foreach", "fused") if name in defaults}}
            if wanted == "fused":
                self._step_supports_amp_scaling = True
            _tell("optimizer")
        original(self, params, defaults, *args, **kwargs)

    module.Optimizer.__init__ = __init__


# ---- the end

_has_switches = False


def step_ended():
    """A training step of this process is over. The job ends as a script does that calls sys.exit(): what it opened is closed."""
    global _steps_left, _has_switches
    if not _has_switches:
        _has_switches = True
        _set_switches()
    if not os.environ.get("LACUNA_TRY_STEPS"):
        return
    _steps_left -= 1
    if _steps_left > 0:
        return
    if _steps_left <= -GRACE_STEPS or threading.current_thread() is not threading.main_thread():
        os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit(0)


def patch(name, module):
    """Called for every module that is patched, after the recorder's own patches."""
    try:
        if name == "torch.utils.data.dataloader":
            dataloader(module)
        elif name == "torch.optim.optimizer":
            optimizer(module)
        elif name == "torch":
            _set_switches()
    except Exception:
        setting(f"hook.missing=try.{name}")
