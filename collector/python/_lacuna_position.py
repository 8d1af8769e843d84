"""`loader.wait` of unknown loaders: what the training thread waits in at the head of a step.

    optimizer.step() ends ... next batch ... forward begins
                          \\____ the head ____/

Until a known loader is seen, a few heads are watched with a profile function: generators and `__next__` methods that the
training loop itself calls. The one that takes longest is the loader. A class is then patched. A generator cannot be patched, so
its code is watched: from Python 3.12 on by sys.monitoring, which costs two calls per batch; before, by a profile function in C
between the end of a step and the next value, until that costs the job too many calls.
"""
import atexit
import functools
import os
import sys
import threading
import time

import _lacuna

HEADS = frozenset((2, 3, 4, 20, 100, 1000))  # steps after which the head is watched
FOUND_AFTER = 2                              # heads with the same candidate
EVENTS_MAX = 100_000                         # of the profile function in Python, per head
HEAD_MAX_S = 5.0                             # after the last step comes no batch: the job shall not be watched for good
CALL_S = 30e-9                               # cost of looking at a call from C
COST_SHARE = 0.01                            # largest share of its time that looking at a generator may take
TOO_MANY = "the loader makes too many calls"
GENERATOR = 0x20                             # CO_GENERATOR

_steps = 0
_seen = {}       # code -> [heads, seconds, calls, class or None]
_look = None     # while a head is watched
_generator = None  # the loader's code
_is_armed = False
is_decided = False  # a loader is known, by name or by position


class _Look:
    """The profile function of one head. What it calls is bound here: at the end of the interpreter a module has lost its names."""

    def __init__(self, frame):
        self.now = time.perf_counter
        self.until = self.now() + HEAD_MAX_S
        self.callers = set()
        while frame is not None:
            self.callers.add(id(frame))
            frame = frame.f_back
        self.open = None
        self.start = 0.0
        self.events = 0
        self.events_before = 0
        self.took = {}

    def __call__(self, frame, event, argument, stop=sys.setprofile, events_max=EVENTS_MAX):
        try:
            self.events += 1
            if self.events > events_max:
                stop(None)
                _give_up(TOO_MANY)
            elif self.open is None and self.now() > self.until:
                stop(None)  # a later head may tell
            else:
                self.see(frame, event)
        except Exception:  # the job must not see it
            stop(None)

    def see(self, frame, event):
        if event == "call" and self.open is None and id(frame.f_back) in self.callers:
            code = frame.f_code
            if code.co_flags & GENERATOR or code.co_name == "__next__":
                self.open, self.start, self.events_before = frame, self.now(), self.events
        elif event == "return" and frame is self.open:
            seconds = self.now() - self.start
            kind = None if frame.f_code.co_flags & GENERATOR else _class_of(frame)
            known = self.took.get(frame.f_code, (0.0, 0, kind))
            self.took[frame.f_code] = (seconds + known[0], self.events - self.events_before + known[1], kind)
            self.open = None


def _class_of(frame):
    """Whose `__next__` it is: the class that defines it."""
    names = frame.f_code.co_varnames
    instance = frame.f_locals.get(names[0]) if frame.f_code.co_argcount else None
    return next((kind for kind in type(instance).__mro__ if getattr(kind.__dict__.get("__next__"), "__code__", None) is frame.f_code), None)


def _quietly(function):
    """What fails in here ends the search, never the job."""

    @functools.wraps(function)
    def safe(*arguments):
        try:
            function(*arguments)
        except Exception:
            _give_up("it cannot be watched")

    return safe


@atexit.register
def _forget():
    """Nothing of ours is called any more while the interpreter ends."""
    if _look is not None and sys.getprofile() is _look:
        sys.setprofile(None)


@_quietly
def known():
    """A loader that is recorded by name: nothing to look for."""
    global is_decided
    if not is_decided:
        is_decided = True
        end_of_head()


def is_watching():
    """Whether the ends of steps matter: a loader is looked for, or watched."""
    return not is_decided or _generator is not None or _Monitor.thread is not None


@_quietly
def step_ended(frame):
    """The head of the next step begins; `frame` is where the step was called."""
    global _steps, _look, _is_armed
    _steps += 1
    if _Monitor.thread is not None:
        _Monitor.close()
        return
    if _generator is not None:
        if not _is_armed and sys.getprofile() is None:
            _is_armed = _lacuna.watch(_generator)
            if not _is_armed:
                _give_up("this Python does not tell its frames apart")
    elif not is_decided and _steps in HEADS and sys.getprofile() is None:
        _look = _Look(frame)
        sys.setprofile(_look)


@_quietly
def end_of_head():
    """The batch has arrived: computation has begun."""
    global _look, _is_armed
    if _is_armed:
        _is_armed = False
        if sys.getprofile() is None and _lacuna.unwatch() < 0:
            _give_up(TOO_MANY)
    elif _look is not None:
        look, _look = _look, None
        if sys.getprofile() is look:
            sys.setprofile(None)
            _weigh(look)


def _give_up(why):
    """The wait of the loader that was found, or is looked for, is not known."""
    global _generator, is_decided
    if _generator is not None or not is_decided:
        _generator = None
        is_decided = True
        _lacuna.setting(f"hook.loader_wait=off ({why})")


def _weigh(look):
    for code, (seconds, calls, kind) in look.took.items():
        entry = _seen.setdefault(code, [0, 0.0, 0, kind])
        entry[0] += 1
        entry[1] += seconds
        entry[2] += calls
    found = [(entry[1], code, entry) for code, entry in _seen.items() if entry[0] >= FOUND_AFTER]
    if found and not is_decided:
        seconds, code, (_, _, calls, kind) = max(found, key=lambda each: each[0])
        is_dear = kind is None and not hasattr(sys, "monitoring") and calls * CALL_S > seconds * COST_SHARE
        if is_dear:
            _give_up(TOO_MANY)
        else:
            _take(code, kind)


def _take(code, kind):
    global is_decided, _generator
    is_decided = True
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    if kind is not None:
        name = kind.__qualname__
        try:
            patch_next(kind)
        except Exception:
            _lacuna.setting("hook.loader_wait=off (its class cannot be changed)")
    elif hasattr(sys, "monitoring"):
        if not _Monitor.begin(code):
            _lacuna.setting("hook.loader_wait=off (other tools watch this Python)")
    elif code.co_flags & GENERATOR:
        _generator = code
    _seen.clear()
    _lacuna.setting(f"loader={name}")
    _lacuna.setting("loader_found=by position")
    _lacuna.setting(f"loader_at={os.path.abspath(code.co_filename)}:{code.co_firstlineno}")


class _Monitor:
    """Waits in a generator, reported by Python itself. Exceptions of a generator are not reported: the end of the next step closes
    its wait."""

    thread = None  # that trains
    depth = 0

    @classmethod
    def begin(cls, code):
        monitoring = sys.monitoring
        tool = next((tool for tool in (4, 3) if monitoring.get_tool(tool) is None), None)
        if tool is None:
            return False
        monitoring.use_tool_id(tool, "lacuna")
        events = monitoring.events
        for event, called in ((events.PY_START, cls.entered), (events.PY_RESUME, cls.entered),
                              (events.PY_YIELD, cls.left), (events.PY_RETURN, cls.left)):
            monitoring.register_callback(tool, event, called)
        monitoring.set_local_events(tool, code, events.PY_START | events.PY_RESUME | events.PY_YIELD | events.PY_RETURN)
        cls.thread = threading.get_ident()
        return True

    @classmethod
    def entered(cls, *unused):
        if threading.get_ident() == cls.thread:
            if cls.depth == 0:
                _lacuna.push_loader("loader.wait", -1, -1)
            cls.depth += 1

    @classmethod
    def left(cls, *unused):
        if cls.depth > 0 and threading.get_ident() == cls.thread:
            cls.depth -= 1
            if cls.depth == 0:
                _lacuna.pop()

    @classmethod
    def close(cls):
        if cls.depth > 0:
            cls.depth = 0
            _lacuna.pop()


def patch_next(kind):
    """The wait of an iterator's class."""
    original = kind.__next__

    @functools.wraps(original)
    def __next__(self):
        _lacuna.push_loader("loader.wait", -1, -1)
        try:
            return original(self)
        finally:
            _lacuna.pop()

    kind.__next__ = __next__
