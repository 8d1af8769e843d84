"""Your own ranges in a training script: `lacuna.annotate`; what to record: `lacuna.capture`; results: `lacuna.metric`.

    import lacuna

    @lacuna.annotate                      # a range with the function's name at every call
    def validate(model): ...

    with lacuna.annotate("checkpoint"):   # a range around some lines
        save(model)

    with lacuna.capture():                # with `lacuna run --range capture`, only this is recorded
        train(epoch)

    lacuna.metric("loss", loss.item())    # a counter of the trace, and a result of the run

`import lacuna` works in every job that `lacuna run` starts, unless the job has a module of that
name. Where nothing is recorded, it does nothing. A script that must also run without Lacuna
installed can carry this one file, as lacuna.py. Coroutines, generators and classes are left as they
are: their work interleaves with other work, and the ranges of a thread must nest.
"""
import functools
import os
import sys

try:
    import _lacuna
    _push, _pop, _metric = (_lacuna.push, _lacuna.pop, _lacuna.metric) if _lacuna.load() else (None, None, None)
except ImportError:
    _push = _pop = _metric = None

_LATER = 0x20 | 0x80 | 0x100 | 0x200  # code flags: a call only makes a generator or a coroutine, of either kind

__all__ = ["annotate", "capture", "is_recording", "metric"]


def is_recording():
    """Whether ranges are recorded in this process."""
    return _push is not None


def metric(name, value):
    """A result of the job, such as its loss or accuracy, has a value now."""
    if _metric is not None:
        _metric(str(name), float(value))


class annotate:
    """A range with a name: a context manager, and a decorator for functions and methods."""

    __slots__ = ("_name",)

    def __new__(cls, name=None):
        if callable(name):  # @annotate without parentheses
            return cls._wrap(name, getattr(name, "__qualname__", repr(name)))
        self = super().__new__(cls)
        self._name = "range" if name is None else str(name)
        return self

    def __enter__(self):
        if _push is not None:
            _push(self._name)
        return self

    def __exit__(self, *unused):
        if _pop is not None:
            _pop()
        return False

    def __call__(self, function):
        return self._wrap(function, self._name)

    @staticmethod
    def _wrap(function, name):
        if _push is None or isinstance(function, type) or getattr(getattr(function, "__code__", None), "co_flags", 0) & _LATER:
            return function

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            _push(name)
            try:
                return function(*args, **kwargs)
            finally:
                _pop()

        return wrapper


def _cudart():
    """cudaProfilerStart and cudaProfilerStop, when they say what is recorded and CUDA is in use."""
    torch = sys.modules.get("torch")
    try:
        return torch.cuda.cudart() if os.environ.get("LACUNA_PROFILER_API") == "1" and torch.cuda.is_initialized() else None
    except Exception:  # another library of that name
        return None


class capture(annotate):
    """The part of a job to record: a context manager, and a decorator.

    It is a range, by default of the name that `lacuna run --range NAME` asks for, else "capture". With
    `lacuna run --profiler-api` it begins and ends what is recorded. In a job that is recorded without
    either it is a range like others.
    """

    __slots__ = ("_runtime",)

    def __new__(cls, name=None):
        if callable(name):
            return cls(None)(name)
        self = super().__new__(cls, os.environ.get("LACUNA_RANGE") or "capture" if name is None else name)
        self._runtime = None
        return self

    def __enter__(self):
        if _push is not None:
            self._runtime = _cudart()
            if self._runtime is not None:
                self._runtime.cudaProfilerStart()
        return super().__enter__()

    def __exit__(self, *unused):
        super().__exit__()
        if self._runtime is not None:
            self._runtime.cudaProfilerStop()
            self._runtime = None
        return False

    def __call__(self, function):
        if _push is None or isinstance(function, type) or getattr(getattr(function, "__code__", None), "co_flags", 0) & _LATER:
            return function
        name = self._name

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with capture(name):
                return function(*args, **kwargs)

        return wrapper
