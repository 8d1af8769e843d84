"""A trace that is open: questions in SQL, its tables, its analysis, and pictures of it."""
import base64
import os
import shutil
import tempfile
import weakref

from . import _html
from ._analysis import Analysis
from ._program import Error, run, run_json
from ._result import Result


class Picture:
    """A drawing as SVG, which a notebook shows."""

    def __init__(self, name, svg):
        self.name = name
        self.svg = svg

    def save(self, path):
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self):
        """An image, so that its styles stay its own and follow light and dark."""
        return '<img alt="{}" style="max-width:100%" src="data:image/svg+xml;base64,{}"/>'.format(
            _html.text(self.name), base64.b64encode(self.svg.encode("utf-8")).decode("ascii"))


class Tables:
    """The tables of a trace as attributes: `trace.tables.kernels`. Each is read when it is asked for."""

    def __init__(self, trace):
        self._trace = trace
        self._names = None

    def names(self):
        """Tables, and table functions, which take arguments in SQL."""
        if self._names is None:
            self._names = [table["name"] for table in reference()["tables"]]
        return list(self._names)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self.names()))

    def __iter__(self):
        return iter(self.names())

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as problem:
            raise AttributeError(problem.args[0])

    def __getitem__(self, name):
        if name not in self.names():
            raise KeyError("no table {!r}: there are {}".format(name, ", ".join(self.names())))
        return self._trace.sql('SELECT * FROM "{}"'.format(name))


_reference = []


def reference():
    """Tables with their columns, and the questions of the cookbook; the same for every trace."""
    if not _reference:
        _reference.append(run_json("sql", "--tables"))
    return _reference[0]


class Trace:
    """One trace. It is read when the first question comes, and once."""

    def __init__(self, path):
        self.path = os.fspath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError("no file or folder {!r}".format(self.path))
        self.tables = Tables(self)
        self._stored = None
        self._analyses = {}
        self._finalizer = None

    def __repr__(self):
        return "lacuna.open({!r})".format(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
        return False

    def close(self):
        """Remove what was kept for further questions; otherwise that happens at the end of the process."""
        if self._finalizer is not None:
            self._finalizer()
        self._stored = self._finalizer = None

    def _store(self):
        """The trace in columns, which further questions read in milliseconds."""
        if self._stored is None:
            folder = tempfile.mkdtemp(prefix="lacuna-open-")
            self._finalizer = weakref.finalize(self, shutil.rmtree, folder, True)
            try:
                made = run("import", "--data", folder, self.path).decode("utf-8", "replace").split("\n")
            except Error:
                self.close()
                raise
            ids = [line.split()[0] for line in made if line.strip()]
            if len(ids) != 1:
                self.close()
                raise Error("{} contains {} traces; unpack it and open one of them".format(self.path, len(ids)))
            self._stored = os.path.join(folder, "traces", ids[0] + ".db")
        return self._stored

    def sql(self, query):
        """The rows of one SELECT. Times are ns, relative to the beginning of the trace."""
        document = run_json("sql", self._store(), query, "--limit", "0")
        return Result(document["columns"], document["rows"])

    def analyze(self, what_if=None):
        """What was found, as an Analysis. `what_if` is a dict of changes: {"workers": 4, "pinned": 1}."""
        changes = ",".join("{}={}".format(name, value) for name, value in sorted((what_if or {}).items()))
        if changes not in self._analyses:
            arguments = [self.path] + (["--what-if", changes] if changes else [])
            self._analyses[changes] = Analysis(run_json("analyze", *arguments))
        return self._analyses[changes]

    def timeline(self, start_ns=None, end_ns=None):
        """A picture of the timeline from `start_ns` to `end_ns`; without them, of what the first finding is about."""
        arguments = [] if start_ns is None else ["--from", str(int(start_ns))]
        return self._picture("timeline", *(arguments + ([] if end_ns is None else ["--until", str(int(end_ns))])))

    def flame(self, metric=None):
        """A picture of the flame graph; `metric` is "gpu", "waiting" or "cpu"."""
        return self._picture("flame", *([] if metric is None else ["--metric", metric]))

    def _picture(self, view, *arguments):
        return Picture("flame graph" if view == "flame" else view, run("export", self.path, "--to", "svg", "--view", view, *arguments).decode("utf-8"))

    def _repr_html_(self):
        parts = [self.analyze()._repr_html_()]
        for picture, name in ((self.timeline, "timeline"), (self.flame, "flame graph")):
            try:
                parts.append(picture()._repr_html_())
            except Error as problem:  # a profile without times has no timeline
                parts.append("<p>no {}: {}</p>".format(name, _html.text(problem)))
        return "".join(parts)
