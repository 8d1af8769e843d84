"""What each Python thread is in, 50 times a second, while the recording records: which line keeps the host busy.

A thread of ours keeps the time without Python's lock; stacks.c says how it looks. Where another tool has stacks already it does not: two
tools in each other's way would measure each other. Looks take 1 % of the time at most: where they would take more, they are rarer.
"""
import gc
import os
import sys
import threading

import _lacuna

MODE = os.environ.get("LACUNA_PYTHON_STACKS", "off")  # off, auto, on: also beside other tools, all: on, also in loader workers
LOOKS_BETWEEN_CHECKS = 25
EXTERNAL = ("py-spy", "austin", "austinp", "pyflame")
COMM_BYTES_MAX = 64
CMDLINE_BYTES_MAX = 4096
ANCESTORS_MAX = 32

_sampler = 0      # the process whose thread samples
_training = ""    # the tool that the thread that trains has, as it told last
_torch = 0        # torch.profilers with stacks that run
_is_told = False


def begin(is_worker=False):
    """Have a thread that samples, if that is wanted here. Called where the other thread of ours is (`_lacuna_hang.listen`)."""
    global _sampler
    if MODE not in ("auto", "on", "all") or (is_worker and MODE != "all") or _sampler == os.getpid():
        return False
    import _lacuna_hang
    if not _lacuna_hang.may_have_a_thread():
        return False
    if not _lacuna.stack_begin(sys.hexversion, threading._active, sys._current_frames, gc.isenabled, gc.disable, gc.enable):
        return False
    _sampler = os.getpid()
    _lacuna_hang.start_thread(_sample)
    return True


def _sample():
    main = threading.main_thread().ident
    is_begin = True
    external = ""
    while True:
        try:
            if is_begin and MODE == "auto":
                external = _external()
            tool = (external or _tool()) if MODE == "auto" else ""
            if tool:
                _tell(tool)
            looks = _lacuna.stack_run(main, 0 if tool else LOOKS_BETWEEN_CHECKS if _is_told else 1)  # also a short job tells
            if looks < 0:
                return
            is_begin = looks == 0  # a pause
            if looks > 0:
                _tell(tool)
        except Exception:  # the job must not see it
            return


def _tell(tool):
    global _is_told
    if not _is_told:
        _is_told = True
        _lacuna.setting(f"python_stacks=left to {tool}" if tool else "python_stacks=50 Hz")


# ---- other tools that have stacks

def step_ended():
    """In the thread that trains, which alone can see what is set there."""
    global _training
    _training = "sys.setprofile" if sys.getprofile() is not None else "sys.settrace" if sys.gettrace() is not None else ""


def profiler_runs(with_stack, by):
    """torch.profiler with stacks has begun (1) or ended (-1)."""
    global _torch
    if with_stack:
        _torch = max(_torch + by, 0)


def _tool():
    if _torch > 0:
        return "torch.profiler"
    if _training:
        return _training
    if getattr(threading, "_profile_hook", None) is not None:
        return "threading.setprofile"
    if getattr(threading, "_trace_hook", None) is not None:
        return "threading.settrace"
    if "scalene.scalene_profiler" in sys.modules:
        return "scalene"
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    if monitoring is not None:
        for number in range(6):
            name = monitoring.get_tool(number)
            if name and name != "lacuna":
                return f"sys.monitoring: {name}"
    return ""


def _read(path, most):
    file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(file, most)
    finally:
        os.close(file)


def _ancestors():
    found = set()
    pid = os.getpid()
    while pid > 1 and len(found) < ANCESTORS_MAX:
        # "pid (comm) state ppid": the name may hold anything
        pid = int(_read(f"/proc/{pid}/stat", 512).rsplit(b")", 1)[1].split()[1])
        found.add(pid)
    return found


def _external():
    """A program that reads this process's stacks from outside: its parent, or one that names it."""
    own = str(os.getpid()).encode()
    try:
        ancestors = _ancestors()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                name = _read(f"/proc/{entry}/comm", COMM_BYTES_MAX).strip().decode("ascii", "replace")
                if name not in EXTERNAL:
                    continue
                words = _read(f"/proc/{entry}/cmdline", CMDLINE_BYTES_MAX).split(b"\0")
                if int(entry) in ancestors or any(word.rsplit(b"=", 1)[-1] in (own, b"-p" + own) for word in words[1:]):
                    return name
            except OSError:  # it has ended, or is none of our business
                continue
    except (OSError, ValueError, IndexError):
        pass
    return ""
