"""Your own ranges in a training script: `lacuna.annotate`.

    import lacuna

    @lacuna.annotate                      # a range with the function's name at every call
    def validate(model): ...

    with lacuna.annotate("checkpoint"):   # a range around some lines
        save(model)

`import lacuna` works in every job that `lacuna run` starts, unless the job has a module of that
name. Where nothing is recorded, it does nothing. A script that must also run without Lacuna
installed can carry this one file, as lacuna.py. Coroutines, generators and classes are left as they
are: their work interleaves with other work, and the ranges of a thread must nest.
"""
import functools

try:
    import _lacuna
    _push, _pop = (_lacuna.push, _lacuna.pop) if _lacuna.load() else (None, None)
except ImportError:
    _push = _pop = None

_LATER = 0x20 | 0x80 | 0x100 | 0x200  # code flags: a call only makes a generator or a coroutine, of either kind

__all__ = ["annotate", "is_recording"]


def is_recording():
    """Whether ranges are recorded in this process."""
    return _push is not None


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
