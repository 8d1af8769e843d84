"""What a step is in a job whose steps nothing shows: `lacuna run --step NAME` (LACUNA_STEP).

Ranges of that name are counted by the recorder, whoever opens them; torch's record_function opens one that it would not see. Calls
of a Python function of that name become such ranges here: "function" of the job's own code, "Class.method", or either behind "module:".

From Python 3.12 on Python tells of the function itself (sys.monitoring): until it is found, of every function once, then of it
alone. Before, the function is looked for in the modules that are loaded, by a thread of ours that ends once it is found, and
replaced there by a wrapper. What Python does not call is not seen: what a compiler made of a function, and C.
"""
import functools
import os
import sys
import threading

import _lacuna

NAME = os.environ.get("LACUNA_STEP", "")
MODULE, _, FUNCTION = NAME.rpartition(":")
MAIN = ("__main__", "__mp_main__")    # a script, and what a spawned child makes of it
LIBRARY = (os.path.dirname(os.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
LATER = 0x20 | 0x80 | 0x100 | 0x200   # code flags: a call only makes a generator or a coroutine
LOOKS_MS = ((1000, 10), (2000, 50))   # that many looks so far apart, in ms; then:
LATE_LOOK_MS = 500

_is_found = False


def _is_name():
    return all(part.isidentifier() for part in FUNCTION.split(".")) and all(part.isidentifier() for part in MODULE.split(".") if MODULE)


def _is_of_job(space):
    """Whether a module is the job's own, and not a library's: those have a run, an update and a main as well."""
    file = str(space.get("__file__") or "")
    return bool(file) and not file.startswith(LIBRARY) and "site-packages" not in file and "dist-packages" not in file


def _is_asked(name, space):
    """Whether a module of that name, with these globals, is the one that was named."""
    if not MODULE:
        return name in MAIN or "." in FUNCTION or _is_of_job(space)
    if name == MODULE:
        return True
    if name not in MAIN:
        return False
    spec = getattr(space.get("__spec__"), "name", None)
    file = os.path.basename(str(space.get("__file__") or ""))
    return MODULE in ("__main__", spec) or os.path.splitext(file)[0] == MODULE


def begin():
    """In every Python process of the job, before its script."""
    if not _is_name():
        return  # of a range only
    if not (hasattr(sys, "monitoring") and _Monitor.begin()):
        _search_on()
        os.register_at_fork(after_in_child=_search_on)


def _ended(frame):
    """A call has ended; `frame` is where it was called."""
    import _lacuna_hook
    _lacuna_hook.framework_counts()
    _lacuna_hook.framework_step_ended(frame)


# ---- record_function, which is recorded by itself only where it calls NVTX

def record_function(module):
    kind = module.record_function
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def __enter__(self):
        if self.name == NAME:
            _lacuna.push(NAME)
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self, *arguments):
        try:
            return leave(self, *arguments)
        finally:
            if self.name == NAME:
                _lacuna.pop()
                _ended(sys._getframe(1))

    kind.__enter__, kind.__exit__ = __enter__, __exit__


# ---- from Python 3.12 on

class _Monitor:
    """One call inside another is the same step. That an exception leaves a function Python tells of all functions or of none."""

    tool = None
    code = None
    here = threading.local()  # .open: id of the frame of the call that is open

    @classmethod
    def begin(cls):
        monitoring = sys.monitoring
        cls.tool = next((tool for tool in (4, 3) if monitoring.get_tool(tool) is None), None)
        if cls.tool is None:
            return False
        monitoring.use_tool_id(cls.tool, "lacuna")
        monitoring.register_callback(cls.tool, monitoring.events.PY_START, cls.entered)
        monitoring.register_callback(cls.tool, monitoring.events.PY_RETURN, cls.left)
        monitoring.register_callback(cls.tool, monitoring.events.PY_UNWIND, cls.left)
        monitoring.set_events(cls.tool, monitoring.events.PY_START)
        return True

    @classmethod
    def entered(cls, code, offset, frame_of=sys._getframe, other=sys.monitoring.DISABLE if hasattr(sys, "monitoring") else None):
        if code is not cls.code:
            if cls.code is not None or code.co_qualname.rpartition("<locals>.")[2] != FUNCTION or code.co_flags & LATER:
                return other
            space = frame_of(1).f_globals
            if not _is_asked(space.get("__name__"), space):
                return other
            cls._take(code)
        try:
            cls._open(frame_of(1))
        except Exception:  # the job must not see it
            pass
        return None

    @classmethod
    def _take(cls, code):
        cls.code = code
        events = sys.monitoring.events
        sys.monitoring.set_events(cls.tool, events.PY_UNWIND)
        sys.monitoring.set_local_events(cls.tool, code, events.PY_START | events.PY_RETURN)

    @classmethod
    def _open(cls, frame):
        before = getattr(cls.here, "open", 0)
        if before:
            outer = frame.f_back
            while outer is not None and id(outer) != before:
                outer = outer.f_back
            if outer is not None:
                return  # called by itself
            _lacuna.pop()
        cls.here.open = id(frame)
        _lacuna.push(NAME)

    @classmethod
    def left(cls, code, offset, value, frame_of=sys._getframe):
        if code is not cls.code:
            return  # left by an exception
        try:
            frame = frame_of(1)
            if getattr(cls.here, "open", 0) == id(frame):
                cls.here.open = 0
                _lacuna.pop()
                _ended(frame.f_back)
        except Exception:
            pass


# ---- before

def _search_on():
    """Look again, in this process."""
    if not _is_found:
        try:
            import _lacuna_hang
            _lacuna_hang.start_thread(_search)
        except Exception:
            _lacuna.setting("hook.missing=step")


def _search():
    waits = [ms for count, ms in LOOKS_MS for _ in range(count)]
    while not look():
        _lacuna.rest(waits.pop(0) if waits else LATE_LOOK_MS)


def is_searching():
    return _Monitor.tool is None and not _is_found and _is_name()


def look():
    """Whether the function is there, and its calls are ranges from now on."""
    global _is_found
    try:
        for name, module in list(sys.modules.items()):
            space = getattr(module, "__dict__", None)
            if not _is_found and type(space) is dict and _is_asked(name, space):
                _is_found = _take(space)
    except Exception:  # a module that is being made, or is none
        pass
    return _is_found


def _take(space):
    """Wrap the function if it is there."""
    *classes, last = FUNCTION.split(".")
    kind = None
    for name in classes:
        kind = space.get(name)
        if not isinstance(kind, type):
            return False
        space = kind.__dict__
    held = space.get(last)
    make = type(held) if isinstance(held, (staticmethod, classmethod)) else None
    original = held.__func__ if make else held
    if type(original) is not type(_take) or original.__code__.co_flags & LATER:
        return False
    if kind is None and original.__qualname__.rpartition("<locals>.")[2] != FUNCTION:
        return False  # another one, under this name
    wrapper = _wrapped(original)
    if kind is not None:
        setattr(kind, last, make(wrapper) if make else wrapper)
        return True
    spaces = [original.__globals__, *(getattr(module, "__dict__", None) for module in list(sys.modules.values()))]
    for each in spaces:
        if type(each) is dict and each.get(last) is original:  # where it was imported to, too
            each[last] = wrapper
    return True


def _wrapped(original):
    here = threading.local()

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        if getattr(here, "inside", False):
            return original(*args, **kwargs)
        here.inside = True
        _lacuna.push(NAME)
        try:
            return original(*args, **kwargs)
        finally:
            _lacuna.pop()
            here.inside = False
            _ended(sys._getframe(1))

    return wrapper
