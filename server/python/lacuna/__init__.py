"""Lacuna: why is my GPU idle, and what do I change?

In a training script (nothing happens where nothing is recorded):

    import lacuna

    @lacuna.annotate                      # a range of the function's name at every call
    def validate(model): ...

    with lacuna.annotate("checkpoint"):   # a range around some lines
        save(model)

    lacuna.metric("loss", 1.83)           # a counter of the trace, and a result of the run
    with lacuna.capture():                # `lacuna run --range capture`: only this is recorded
        train(epoch)

In a notebook or a script, on a recording or the trace of another profiler:

    trace = lacuna.open("run1")           # in a notebook: shows verdict, timeline and flame graph
    trace.analyze().verdict.text
    trace.sql("SELECT name, total_ns FROM by_name ORDER BY 2 DESC LIMIT 10").pandas()
    trace.tables.kernels.arrow()

`python -m lacuna` is the program `lacuna`.
"""
from ._annotate import annotate, capture, is_recording, metric

__all__ = ["annotate", "capture", "is_recording", "metric", "open", "compare", "Error", "Trace", "Result", "Analysis"]

_LATER = {"Error": "_program", "Trace": "_trace", "Result": "_result", "Analysis": "_analysis"}


def open(path):  # as in gzip.open and tarfile.open
    """A trace: a recording, or another tool's file."""
    from ._trace import Trace
    return Trace(path)


def compare(before, after):
    """Before and after a change: the document `lacuna.compare/1` as a dict. Each is a path or a Trace."""
    import os

    from ._program import run_json
    return run_json("compare", *[os.fspath(getattr(one, "path", one)) for one in (before, after)])


def __getattr__(name):  # from Python 3.7 on; a training job does not load what it never asks for
    if name not in _LATER:
        raise AttributeError("module 'lacuna' has no attribute {!r}".format(name))
    from importlib import import_module
    return getattr(import_module("." + _LATER[name], __name__), name)


import sys as _sys

if _sys.version_info < (3, 7):  # which does not ask a module's __getattr__
    from ._analysis import Analysis
    from ._program import Error
    from ._result import Result
    from ._trace import Trace
