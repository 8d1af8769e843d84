"""What every thread of this process does, when a launcher asks because the job stands still.

A thread of ours sleeps in the kernel (a futex in the spool's header) until it is asked: no signal is sent, no timer runs. To look at
frames it takes Python's lock like any other thread; where that is held for good, it cannot answer, and the launcher looks from outside.
It is started where there are other threads already: after a step, with a process group, in a loader's worker. It takes no lock of
Python code, and imports nothing, when it is asked: any of those may be what the job waits for.
"""
import _thread
import atexit
import functools
import os
import sys
import threading

import _lacuna

FRAMES_MAX = 48
THREADS_MAX = 64
TEXT_MAX = 400
SOURCE_BYTES_MAX = 1 << 20

COLLECTIVES = (
    "all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier", "send", "recv", "batch_isend_irecv",
    "all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "all_reduce_coalesced",
    "all_gather_coalesced", "init_process_group", "new_group", "destroy_process_group",
)

_listener = 0      # the process whose thread listens
_ident = 0         # of that thread
_training = 0      # the thread that ends steps
_is_end_told = False


class _Last:
    """The collective that was called last."""

    name = ""
    inside = 0     # the thread that is in it
    total = 0
    counts = {}


def _is_main_interpreter():
    """A subinterpreter cannot end while a thread of it sleeps: Python aborts the process."""
    number = _lacuna.interpreter()
    if number >= 0:
        return number == 0
    try:
        try:
            import _interpreters as interpreters  # from Python 3.13 on
        except ImportError:
            import _xxsubinterpreters as interpreters
        return interpreters.get_current() == interpreters.get_main()
    except (ImportError, AttributeError, RuntimeError):
        return True


def may_have_a_thread():
    """Whether a thread of ours is in nobody's way here."""
    if sys.version_info >= (3, 12) and len(os.listdir("/proc/self/task")) == 1:
        return False  # a fork of a process with threads gives a warning there: that shall not be because of us
    return _is_main_interpreter()


def start_thread(function):
    """A thread of ours, which stops before the interpreter ends."""
    global _is_end_told
    if not _is_end_told:
        _is_end_told = True
        atexit.register(_lacuna.end)
    _lacuna.thread_begins()
    try:
        _thread.start_new_thread(_run, (function,))
    except BaseException:
        _lacuna.thread_ends()
        raise
    finally:
        _lacuna.thread_started()


def _run(function):
    try:
        function()
    finally:
        _lacuna.thread_ends()


def listen(is_training=False):
    """Have a thread that answers. `is_training`: the caller is the thread that trains."""
    global _listener, _training
    if is_training:
        _training = _thread.get_ident()
    if _listener == os.getpid() or os.environ.get("LACUNA_HANG", "1") == "0" or not may_have_a_thread():
        return
    _listener = os.getpid()
    start_thread(_listen)


def _listen():
    global _ident
    _ident = _thread.get_ident()
    seen = _lacuna.wait_asked(0, 1)
    while seen >= 0:
        now = _lacuna.wait_asked(seen, 0)
        if now != seen and now >= 0:
            try:
                _answer(now)
            except Exception:  # the job must not see it
                pass
        seen = now


def _clean(text):
    return str(text)[:TEXT_MAX].replace("\n", " ").replace("\t", " ")


def _source(code, line):
    """The text of a line of the script's own. Without open(), which may be the hook's."""
    try:
        file = os.open(code.co_filename, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        try:
            lines = os.read(file, SOURCE_BYTES_MAX).split(b"\n")
        finally:
            os.close(file)
        return lines[line - 1].decode("utf-8", "replace").strip()
    except (OSError, IndexError):
        return ""


def _is_library(path):
    return "-packages/" in path or "/lib/python" in path or path.startswith("<")


def _rank():
    try:
        module = sys.modules.get("torch.distributed.distributed_c10d")
        if module is not None and module.is_initialized():
            yield f"rank {module.get_rank()} {module.get_world_size()}"
    except Exception:
        pass


def _lines():
    main = threading.main_thread().ident
    training = _training or main
    known = threading._active  # without its lock
    yield "lacuna-stacks 1"
    if _Last.name:
        yield f"collective {_Last.total} {_Last.counts.get(_Last.name, 0)} {int(_Last.inside != 0)} {_Last.name}"
    for words in _rank():
        yield words
    frames = sys._current_frames()
    for ident in sorted(frames, key=lambda each: each != training)[:THREADS_MAX]:
        if ident == _ident:
            continue
        thread = known.get(ident)
        native = os.getpid() if ident == main else getattr(thread, "native_id", None) or -1
        role = "training" if ident == training else "other"
        yield f"thread {native} {role} {_clean(getattr(thread, '_name', '?'))}"
        frame = frames[ident]
        depth = 0
        is_told = False
        while frame is not None and depth < FRAMES_MAX:
            code = frame.f_code
            line = frame.f_lineno or 0
            yield f"frame {line}\t{_clean(code.co_name)}\t{_clean(code.co_filename)}"
            if not is_told and not _is_library(code.co_filename):
                is_told = True
                yield f"source {_clean(_source(code, line))}"
            frame = frame.f_back
            depth += 1


def _answer(number):
    data = "\n".join(_lines()).encode("utf-8", "replace")[:60000] + b"\n"
    path = os.path.join(os.environ["LACUNA_SPOOL"], f"hang-{os.getpid()}-{number}.stacks")
    new = path + ".new"
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)
    os.rename(new, path)


# ---- the last collective

def distributed(module):
    for name in COLLECTIVES:
        if hasattr(module, name):
            setattr(module, name, _noted(getattr(module, name), name))


def _noted(original, name):
    last = _Last

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        if last.inside:  # of one that is made of others, or beside another thread's
            return original(*args, **kwargs)
        last.name = name
        last.total += 1
        last.counts[name] = last.counts.get(name, 0) + 1
        last.inside = _thread.get_ident()
        try:
            return original(*args, **kwargs)
        finally:
            last.inside = 0
            if name == "init_process_group":
                _begin()

    return wrapper


def _begin():
    try:
        listen()
    except Exception:
        pass
