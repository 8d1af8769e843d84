"""Results of the job, such as its loss: numbers in what it prints, found by the regular expressions of `lacuna run --metric`.

The job's own sys.stdout and sys.stderr stay what they are: only the `write` of the two objects is ours, and it calls theirs first.
"""
import os
import re
import sys

try:
    from re import _parser as _grammar  # from Python 3.11 on
except ImportError:
    import sre_parse as _grammar

import _lacuna

_LINE_MAX = 1024  # characters of a line that are looked at
_NAMES_MAX = 64
_VALUES_MAX = 1000000
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"

_patterns = []  # (compiled, {group: name})
_names = set()
_values = 0


def _repeats_within_repeats(node, is_inside=False):
    """Whether matching may take time that grows exponentially with the line: `(a+)+`."""
    for operator, argument in node:
        if str(operator) in ("MAX_REPEAT", "MIN_REPEAT"):
            is_open = argument[1] is _grammar.MAXREPEAT or argument[1] > 64
            if (is_open and is_inside) or _repeats_within_repeats(argument[2], is_inside or is_open):
                return True
            continue
        parts = argument if isinstance(argument, (tuple, list)) else (argument,)
        for part in parts:
            for inner in part if isinstance(part, list) else (part,):
                if isinstance(inner, _grammar.SubPattern) and _repeats_within_repeats(inner, is_inside):
                    return True
    return False


def _words(text):
    """What of a regular expression are letters, from left to right."""
    return re.findall(r"[A-Za-z][\w./-]*", re.sub(r"\\[A-Za-z]|\(\?[^()]*\)|\(\?[a-zA-Z<>=!]*|\[[^\]]*\]", " ", text))


def _compile(text):
    """(compiled, {group: name}). Without a group, the number behind what matches; a group without a name has the last word before it."""
    compiled = re.compile(text)
    if _repeats_within_repeats(_grammar.parse(text)):
        raise ValueError("repeats within repeats may take forever")
    if compiled.groups == 0:
        flags = re.match(r"(?:\(\?[a-zA-Z]+\))*", text).group()
        name = " ".join(_words(text)) or "metric"
        return re.compile(rf"{flags}(?<!\w)(?:{text[len(flags):]})\s*[:=]?\s*({_NUMBER})"), {1: name}
    names = {group: name for name, group in compiled.groupindex.items()}
    before = _words(re.split(r"(?<!\\)\((?!\?)", text)[0])
    return compiled, names or {1: before[-1] if before else "metric"}


def _look(line):
    global _values
    for pattern, names in _patterns:
        found = pattern.search(line)
        for group, name in names.items() if found else ():
            try:
                value = float(found.group(group).replace(",", ""))
            except (AttributeError, ValueError):  # a group that took no part, or no number
                continue
            if _values < _VALUES_MAX and (name in _names or len(_names) < _NAMES_MAX):
                _names.add(name)
                _values += 1
                _lacuna.metric(name, value)


class _Write:
    """The `write` of a stream: lines are looked at once they are complete, or begun anew as progress bars do."""

    def __init__(self, write):
        self._write, self._rest, self._process = write, "", os.getpid()

    def __call__(self, text):
        written = self._write(text)
        try:
            if self._process == os.getpid():  # a worker that was forked prints for itself
                self._add(text)
        except Exception:  # the job must not see it
            pass
        return written

    def _add(self, text):
        if "\n" not in text and "\r" not in text:
            self._rest += text[:_LINE_MAX - len(self._rest)]
            return
        *lines, rest = re.split(r"[\r\n]+", text)
        lines[0] = self._rest + lines[0]
        self._rest = rest[:_LINE_MAX]
        for line in lines:
            _look(line[:_LINE_MAX])

    def end(self):
        if self._process == os.getpid():
            _look(self._rest)
            self._rest = ""


def begin():
    """What cannot be understood is said once, by the first process that reads it."""
    good = []
    for text in filter(None, os.environ["LACUNA_METRIC"].split("\n")):
        try:
            _patterns.append(_compile(text))
            good.append(text)
        except Exception as problem:
            sys.stderr.write(f"lacuna: --metric '{text[:200]}': {problem}\n")
    os.environ["LACUNA_METRIC"] = "\n".join(good)
    for stream in (sys.stdout, sys.stderr) if good else ():
        try:
            stream.write = write = _Write(stream.write)
        except AttributeError:  # closed, or of a kind that keeps its own
            continue
        import atexit
        atexit.register(write.end)
