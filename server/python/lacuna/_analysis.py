"""The document `lacuna.analysis/1` as typed objects.

A member of the document is an attribute of the same name. What is unknown is None, never 0. Documents grow: members that
these classes do not name are in `.json`, the part of the document that an object was made of.
"""
from typing import Any, Dict, List, Optional

from . import _html


class Record:
    """An object made of a JSON object by the annotations of its class; it does not change."""

    def __init__(self, json: Optional[Dict[str, Any]] = None):
        values = json if isinstance(json, dict) else {}
        object.__setattr__(self, "json", values)
        for name, kind in self._fields():
            object.__setattr__(self, name, _value(kind, values.get(name)))

    @classmethod
    def _fields(cls):
        return [(name, kind) for base in reversed(cls.__mro__) for name, kind in getattr(base, "__annotations__", {}).items()]

    def __setattr__(self, name, value):
        raise AttributeError("an analysis does not change")

    def __eq__(self, other):
        return type(other) is type(self) and other.json == self.json

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return "{}({})".format(type(self).__name__, ", ".join("{}={!r}".format(name, getattr(self, name)) for name, _ in self._fields()))


class _Several:
    """An annotation: a list of records."""

    def __init__(self, kind):
        self.kind = kind


def _value(kind, value):
    if _is_optional(kind):
        kind = kind.__args__[0]
        if value is None:
            return None
    if isinstance(kind, _Several):
        return [kind.kind(one) for one in value or []]
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind(value)
    return value if value is not None or not _is_list(kind) else []


def _is_optional(kind):
    return type(None) in (getattr(kind, "__args__", None) or ())


def _is_list(kind):
    return getattr(kind, "__origin__", None) in (list, List)


class TraceFacts(Record):
    name: str
    format: str
    event_count: int
    slice_count: int
    dropped_count: int
    repaired_count: int
    t0_ns: str  # decimal: the time since the epoch at which the trace begins
    duration_ns: int
    rank: Optional[int]
    world_size: Optional[int]
    host: str
    simulated: bool
    timeline: bool  # False: a profile without times
    subject: str


class Verdict(Record):
    cause: str
    text: str
    detail: str
    part_ns: Optional[int]


class Throughput(Record):
    unit: str
    per_s: Optional[float]
    batch_size: Optional[int]
    padding_pct: Optional[float]


class Needs(Record):
    """What each part needs for one step, on its own."""
    data: Optional[int]
    host: Optional[int]
    copies: Optional[int]
    gpu: Optional[int]
    comm: Optional[int]


class Gaps(Record):
    count_10us: int
    total_10us_ns: int
    longest_ns: int
    longest_at_ns: Optional[int]


class Device(Record):
    id: int
    name: str
    first_ns: Optional[int]
    span_ns: Optional[int]
    busy_ns: Optional[int]
    idle_ns: Optional[int]
    busy_pct: Optional[float]
    not_computing_pct: Optional[float]
    partition_ns: Dict[str, int]
    gaps: Gaps
    idle_by_cause_ns: Dict[str, int]


class Steps(Record):
    method: str
    confidence: Optional[float]
    count: int
    kept_count: int
    mean_ns: Optional[int]
    median_ns: Optional[int]
    p95_ns: Optional[int]
    spread_pct: Optional[float]
    partition_ns: Optional[Dict[str, int]]


class KernelTotal(Record):
    name: str
    short: str
    family: str
    count: int
    total_ns: int


class Kernels(Record):
    count: int
    total_ns: Optional[int]
    top: _Several(KernelTotal)


class Copy(Record):
    kind: str
    src: str
    dst: str
    count: int
    bytes: Optional[int]
    total_ns: int
    exposed_ns: Optional[int]


class DataLoader(Record):
    wait_ns: Optional[int]
    starved_ns: Optional[int]
    wait_pct_of_steps: Optional[float]
    batch_count: int
    num_workers: Optional[int]
    recommended_num_workers: Optional[int]


class Band(Record):
    low: Optional[float]
    mid: Optional[float]
    high: Optional[float]


class Evidence(Record):
    track: str
    t0_ns: Optional[int]
    t1_ns: Optional[int]
    text: str


class Finding(Record):
    id: str
    severity: str
    cause: str
    cost_ns_per_step: Optional[int]
    cost_pct: Optional[float]
    gain_pct: Optional[Band]  # None: it proposes no change
    step_ns: Optional[Band]
    confidence: Optional[float]
    title: str
    why: str
    change: str
    change_kind: str
    effort: str
    where: str
    brief: str
    expect: str
    costs: str
    wrong_if: str
    check: str
    evidence: _Several(Evidence)

    def explain(self):
        """What the finding means, how it is detected, how its gain is computed, when it is wrong: Markdown."""
        from ._program import run
        return run("explain", self.id).decode("utf-8")


class PlanStep(Record):
    brief: str
    step_ns: Optional[int]
    gain_pct: Optional[float]


class WhatIf(Record):
    changes: Dict[str, Any]
    step_mean_ns: Optional[int]
    step_low_ns: Optional[int]
    step_high_ns: Optional[int]
    step_median_ns: Optional[int]
    why_not: Optional[str]


class Analysis(Record):
    """What `lacuna analyze` finds in one trace. In a notebook it shows its verdict and findings."""
    schema: str
    trace: TraceFacts
    verdict: Verdict
    throughput: Throughput
    needs_ns: Needs
    devices: _Several(Device)
    steps: Steps
    kernels: Kernels
    copies: _Several(Copy)
    dataloader: DataLoader
    settings: Dict[str, Any]
    findings: _Several(Finding)
    plan: _Several(PlanStep)
    what_if: Optional[WhatIf]  # of analyze(what_if=...)
    checked_fine: List[str]
    not_recorded: List[str]
    caveats: List[str]

    def finding(self, identifier):
        """The finding with that id, or None."""
        return next((one for one in self.findings if one.id == identifier), None)

    def _repr_html_(self):
        return _html.analysis(self)
