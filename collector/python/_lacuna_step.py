"""What a step is in a job whose steps nothing shows: `lacuna run --step NAME` (LACUNA_STEP).

Ranges of that name are counted by the recorder, whoever opens them; torch's record_function opens one that it would not see. Calls
of a Python function of that name become such ranges here: "function" of the job's own code, "Class.method", or either behind "module:".

From Python 3.12 on Python tells of the function itself (sys.monitoring): until it is found, of every function once, then of it
alone. Before, the function is looked for in the modules that are loaded, by a thread of ours that ends once it is found, and gets
code that tells of its calls. What Python does not call is not seen: what a compiler made of a function, and C.
"""
import _ast
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
_taken = []      # _Calls, before Python 3.12
_compilers = []  # what compiles() was told


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
    """A call has ended; `frame` is where it was called, None: in C. May raise, where the interpreter ends."""
    import _lacuna_hook
    _lacuna_hook.framework_counts()
    _lacuna_hook.framework_step_ended(frame)


# ---- record_function, which is recorded by itself only where it calls NVTX

def record_function(module):
    kind = module.record_function
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def __enter__(self):
        try:
            if self.name == NAME:
                _lacuna.push(NAME)
        except Exception:  # the job must not see it
            pass
        return enter(self)

    @functools.wraps(leave)
    def __exit__(self, *arguments):
        try:
            return leave(self, *arguments)
        finally:
            try:
                if self.name == NAME:
                    _lacuna.pop()
                    _ended(sys._getframe().f_back)
            except Exception:
                pass

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
        try:
            if code is not cls.code:
                if cls.code is not None or code.co_qualname.rpartition("<locals>.")[2] != FUNCTION or code.co_flags & LATER:
                    return other
                space = frame_of(1).f_globals
                if not _is_asked(space.get("__name__"), space):
                    return other
                cls._take(code)
            cls._open(frame_of(1))
        except Exception:  # the job must not see it
            return None if code is cls.code else other
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
    for name, module in list(sys.modules.items()):
        try:
            space = object.__getattribute__(module, "__dict__")  # a module that loads when it is asked for anything stays as it is
            if not _is_found and type(space) is dict and _is_asked(name, space):
                _is_found = _take(space)
        except Exception:  # a module that is being made, or is none
            pass
    return _is_found


def _take(space):
    """Count the calls of the function from now on, if it is there."""
    *classes, last = FUNCTION.split(".")
    kind = None
    for name in classes:
        kind = space.get(name)
        if not issubclass(type(kind), type):  # isinstance() would ask what stands in for an object that is made when it is used
            return False
        space = kind.__dict__
    held = space.get(last)
    function = held.__func__ if issubclass(type(held), (staticmethod, classmethod)) else held
    if type(function) is not type(_take) or function.__code__.co_flags & LATER:
        return False
    if kind is None and function.__qualname__.rpartition("<locals>.")[2] != FUNCTION:
        return False  # another one, under this name
    try:
        calls = _Calls(function)
    except Exception:  # it stays as it is
        _lacuna.setting("hook.missing=step")
        return True
    if function.__code__ is calls.own:
        _taken.append(calls)  # before, for compiles() on another thread
        function.__code__ = calls.counting
        for is_whole in _compilers:
            calls.hide(is_whole)
    return True


def compiles(is_whole):
    """A compiler is used that takes functions apart. `is_whole`: it may leave no part of one to Python."""
    if is_whole not in _compilers:
        _compilers.append(is_whole)
    for calls in _taken:
        calls.hide(is_whole)


class _Calls:
    """The calls of a function. It stays the object that it is, for pickle and under each name that it was given, and gets other
    code: that calls us and its own code, takes the same arguments, and says that it stands at the same place."""

    DEEP = 10  # calls inside one another; the rest of them are the function's own again, and meet no limit that they do not meet alone

    def __init__(self, function):
        own = function.__code__
        call = type(function)(own, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        call.__kwdefaults__, call.__qualname__, call.__module__ = function.__kwdefaults__, function.__qualname__, function.__module__
        self.function, self.own, self.call = function, own, call
        self.here = threading.local()  # .depth: how many of its calls are inside one another
        self.is_deep = False
        self.counting = self._code(own)

    def enter(self):
        try:
            depth = self.here.depth = getattr(self.here, "depth", 0) + 1
            if depth == 1:
                _lacuna.push(NAME)
            elif depth >= self.DEEP and self.function.__code__ is self.counting:
                self.is_deep, self.function.__code__ = True, self.own
        except Exception:  # the job must not see it
            pass

    def leave(self):
        try:
            depth = getattr(self.here, "depth", 0)
            if depth > 0:
                self.here.depth = depth - 1
            if depth == 1:
                if self.is_deep:
                    self.is_deep = False
                    if self.function.__code__ is self.own:
                        self.function.__code__ = self.counting
                _lacuna.pop()
                _ended(sys._getframe(1).f_back)
        except Exception:
            pass

    def hide(self, is_whole):
        """PyTorch's compiler passes over this code, and compiles what it calls; where it must not pass over any, this one goes."""
        dynamo = sys.modules.get("torch._dynamo.eval_frame")
        if is_whole:
            self.is_deep = False
            if self.function.__code__ is self.counting:
                self.function.__code__ = self.own
                _lacuna.setting("hook.missing=step")
        elif hasattr(dynamo, "skip_code"):
            dynamo.skip_code(self.counting)

    def __reduce__(self):
        """Of a function that is sent somewhere with its code, where we may not be: it calls its own code there."""
        return type(sys.implementation), (), {"enter": bool, "leave": bool, "call": self.call}

    def _code(self, own):
        """In a `try`, and with a call that PyTorch's compiler does not know: it lets Python run this where it would have taken it in."""
        positional = own.co_varnames[:own.co_argcount]
        named = own.co_varnames[own.co_argcount:][:own.co_kwonlyargcount]
        rest = iter(own.co_varnames[own.co_argcount + own.co_kwonlyargcount:])
        more = "*" + next(rest) if own.co_flags & 0x4 else ""
        more_named = "**" + next(rest) if own.co_flags & 0x8 else ""
        only = getattr(own, "co_posonlyargcount", 0)
        taken = [*positional[:only], *("/" for _ in positional[:only][:1]), *positional[only:], more or ("*" if named else ""), *named, more_named]
        given = [*positional, more, *(f"{name}={name}" for name in named), more_named]
        text = f"""
def outer():
    {"=".join([*own.co_freevars, "None"])}
    def function({", ".join(filter(None, taken))}):
        if 0: {", ".join([*own.co_freevars, "None"])}
        try:
            memoryview(b"")
            " ours".enter()
            return " ours".call({", ".join(filter(None, given))})
        finally:
            " ours".leave()
"""
        tree = compile(text, own.co_filename, "exec", _ast.PyCF_ONLY_AST, True)
        _place(tree, own.co_firstlineno)
        code = compile(tree, own.co_filename, "exec", 0, True)
        for _ in range(2):
            code = next(each for each in code.co_consts if type(each) is type(own))
        if code.co_freevars != own.co_freevars:
            raise ValueError(own.co_freevars)
        consts = tuple(self if type(each) is str and each == " ours" else each for each in code.co_consts)
        if not hasattr(code, "replace"):  # Python 3.7
            return type(code)(code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code, consts,
                              code.co_names, code.co_varnames, code.co_filename, own.co_name, code.co_firstlineno, code.co_lnotab,
                              code.co_freevars, code.co_cellvars)
        return code.replace(co_consts=consts, co_name=own.co_name, **({"co_qualname": own.co_qualname} if hasattr(own, "co_qualname") else {}))


def _place(node, line):
    """All of a tree is on that line, and nowhere in it."""
    for name in node._attributes:
        setattr(node, name, line if "line" in name else -1)
    for name in node._fields:
        value = getattr(node, name, None)
        for each in value if type(value) is list else [value]:
            if isinstance(each, _ast.AST):
                _place(each, line)
