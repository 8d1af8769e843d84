"""What a notebook shows: fragments of HTML. Every text that comes from a trace is escaped here."""
from html import escape


def text(value):
    return escape("" if value is None else str(value))


def table(columns, rows, note=""):
    head = "".join("<th>{}</th>".format(text(name)) for name in columns)
    body = "".join("<tr>{}</tr>".format("".join("<td>{}</td>".format(text(value)) for value in row)) for row in rows)
    return "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}".format(head, body, "<p>{}</p>".format(text(note)) if note else "")


def duration(ns):
    """A length of time with three digits."""
    if ns is None:
        return ""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("\u00b5s", 1e3)):
        if abs(ns) >= scale:
            return "{:.3g} {}".format(ns / scale, unit)
    return "{} ns".format(ns)


def analysis(one):
    """The verdict, what a step is made of, and what to change."""
    parts = ["<h3>{}</h3>".format(text(one.verdict.text))]
    facts = ["{} steps".format(one.steps.count) if one.steps.count else "",
             "{} a step".format(duration(one.steps.mean_ns)) if one.steps.mean_ns else "",
             "{:.4g} {}/s".format(one.throughput.per_s, one.throughput.unit) if one.throughput.per_s else ""]
    facts += ["{} {:.3g} % busy".format(device.name or "GPU {}".format(device.id), device.busy_pct) for device in one.devices if device.busy_pct is not None]
    parts.append("<p>{}</p>".format(text(", ".join(fact for fact in facts if fact))))
    rows = [(finding.title, finding.change, "{:.2g} %".format(finding.gain_pct.mid) if finding.gain_pct and finding.gain_pct.mid is not None else "", finding.where)
            for finding in one.findings]
    if rows:
        parts.append(table(("finding", "change", "less time", "where"), rows))
    parts += ["<p>{}</p>".format(text(caveat)) for caveat in one.caveats]
    return "".join(parts)
