#!/usr/bin/env python3
"""Puts the documents of all findings into one C file, with the thresholds that they quote.

  embed_documents.py OUT.c DIAGNOSE_FOLDER

Every row of result/finding_registry.def needs an ID.md in a folder of findings/ with the sections of SECTIONS in their order.
`{NAME}` in a document is the value of that constant in one of the folders' *_thresholds.h, with the unit in its name
(NS, PCT, BYTES, MB_S); `{NAME%}` is a share as a percentage, `{2*NAME}` a multiple. Text is then filled to 80 columns and
tables are aligned, for a terminal. What is missing, unknown or out of order stops the build.
"""
import ast
import glob
import operator
import os
import re
import sys
import textwrap

SECTIONS = ("What it means", "How it is detected", "How the gain is computed", "What to change", "When it is wrong",
            "Sources")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
             ast.LShift: operator.lshift}
QUOTE = re.compile(r"\{(?:(\d+)\*)?([A-Z][A-Z0-9_]+)(%?)\}")
ITEM = re.compile(r"(?:[-*]|\d+\.) +")
WHOLE = re.compile(r"\[[^\]]+\]\([^)]+\)|`[^`]{1,40}`")  # links and short code: never on two lines
COLUMNS = 80
LINK = re.compile(r"\]\(((?:[a-z./]+/)?([a-z-]+)\.md)\)")  # to another document, from folder to folder
CONSTANT = re.compile(r"^[^/*\n]*\b([A-Z][A-Z0-9_]+) =\s+([^,;/\n]+)", re.M)
DEFINE = re.compile(r"^#define ([A-Z][A-Z0-9_]+) ([^/\n]+)", re.M)


def value_of(text):
    """A constant expression of C as a number; None for what is none."""
    text = re.sub(r"\b(?:U?INT(?:64|32)_C)\(([^)]*)\)", r"(\1)", text.strip())
    text = re.sub(r"(?<=[0-9.])(?:[uUlL]+|[fF])\b", "", text)

    def walk(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        raise ValueError
    try:
        return walk(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return None


def constants(folder):
    """name -> number of every constant in a *_thresholds.h below the folder."""
    found = {}
    for path in glob.glob(os.path.join(folder, "**", "*_thresholds.h"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, expression in CONSTANT.findall(text) + DEFINE.findall(text):
            number = value_of(expression)
            if number is not None:
                found[name] = number
    return found


def digits(number):
    return f"{number:.6g}"


def with_unit(name, number, is_share):
    """As people write it: 10 us, 5 %, 16 MiB."""
    words = name.split("_")
    if is_share:
        return f"{digits(100 * number)} %"
    if name.endswith("_MB_S"):
        return f"{digits(number)} MB/s"
    if "PCT" in words:
        return f"{digits(number)} %"
    if "NS" in words:
        for size, word in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
            if number >= size:
                return f"{digits(number / size)} {word}"
        return f"{digits(number)} ns"
    if "BYTES" in words:
        for size, word in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if number >= size and number % size == 0:
                return f"{digits(number / size)} {word}"
        return f"{digits(number)} bytes"
    return digits(number)


def registered(folder):
    with open(os.path.join(folder, "result", "finding_registry.def"), encoding="utf-8") as file:
        return re.findall(r'^LAC_FINDING\((\w+),\s*"([a-z-]+)"', file.read(), re.M)


def document(path, finding_id, known):
    """The text with its constants; a ValueError says what is wrong with it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    title = re.match(rf"# {re.escape(finding_id)}: (\S.*)\n", text)
    if not title:
        raise ValueError(f"{path}:1: begins with '# {finding_id}: its title in words'")
    sections = tuple(re.findall(r"^## (.*)$", text, re.M))
    if sections != SECTIONS:
        raise ValueError(f"{path}: its sections are {', '.join(sections)}; wanted: {', '.join(SECTIONS)}")
    unknown = sorted({name for _, name, _ in QUOTE.findall(text) if name not in known})
    if unknown:
        raise ValueError(f"{path}: no *_thresholds.h has {', '.join(unknown)}")
    lost = [link for link, _ in LINK.findall(text) if not os.path.isfile(os.path.join(os.path.dirname(path), link))]
    if lost:
        raise ValueError(f"{path}: no file {', '.join(lost)}")
    text = LINK.sub(r"](\2.md)", text)
    text = QUOTE.sub(lambda m: with_unit(m.group(2), int(m.group(1) or 1) * known[m.group(2)], m.group(3)), text)
    return title.group(1), filled(text)


def aligned(rows):
    """Lines of a table with columns of one width, where that fits a line."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])] for row in rows]
    widths = [max(len(row[i]) for k, row in enumerate(cells) if k != 1) for i in range(len(cells[0]))]
    lines = []
    for k, row in enumerate(cells):
        padded = ["-" * width if k == 1 else cell.ljust(width) for cell, width in zip(row, widths)]
        lines.append("| " + " | ".join(padded) + " |")
    return lines if len(lines[0]) <= COLUMNS + 20 else rows


def filled(text):
    """Paragraphs and items of lists filled, tables aligned; code and headings as they are."""
    out, lines, at = [], text.split("\n"), 0
    while at < len(lines):
        line, first = lines[at], at
        at += 1
        if line.lstrip().startswith("```"):
            while not lines[at].lstrip().startswith("```"):
                at += 1
            at += 1
            out += lines[first:at]
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            out += aligned(lines[first:at])
        elif not line.strip() or line.startswith("#"):
            out.append(line)
        else:
            item = ITEM.match(line)
            indent = " " * (item.end() if item else len(line) - len(line.lstrip()))
            while at < len(lines) and lines[at].strip() and not re.match(r"#|\|| *```", lines[at]) and not ITEM.match(lines[at]):
                at += 1
            words = WHOLE.sub(lambda m: m.group().replace(" ", "\0"), " ".join(part.strip() for part in lines[first:at]))
            words = ITEM.sub(lambda m: m.group().replace(" ", "\0"), words, count=1) if item else words
            out += textwrap.wrap(words, COLUMNS, initial_indent="" if item else indent, subsequent_indent=indent,
                                 break_long_words=False, break_on_hyphens=False)
    return "\n".join(out).replace("\0", " ")


def c_bytes(text):
    data = text.encode() + b"\0"
    return ",".join(str(byte if byte < 128 else byte - 256) for byte in data)


def main():
    out, folder = sys.argv[1:3]
    known, problems, rows = constants(folder), [], []
    ids = registered(folder)
    paths = {os.path.basename(path)[:-3]: path
             for path in sorted(glob.glob(os.path.join(folder, "findings", "*", "*.md"))) if not path.endswith("README.md")}
    for kind, finding_id in ids:
        path = paths.pop(finding_id, os.path.join(folder, "findings", "documents", finding_id + ".md"))
        try:
            rows.append((kind, *document(path, finding_id, known)))
        except (OSError, ValueError) as problem:
            problems.append(str(problem))
    problems += [f"{path}: no finding has this id" for path in paths.values()]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    with open(out, "w", encoding="utf-8") as file:
        file.write('/* Made by embed_documents.py. */\n#include "analysis/diagnose/documents.h"\n')
        for kind, title, text in rows:
            file.write(f"static const char title_{kind}[] = {{{c_bytes(title)}}};\n")
            file.write(f"static const char text_{kind}[] = {{{c_bytes(text)}}};\n")
        file.write("const struct lac_finding_document lac_finding_documents[LAC_FINDING_COUNT_] = {\n")
        for kind, _, _ in rows:
            file.write(f"[LAC_FINDING_{kind}] = {{title_{kind}, text_{kind}}},\n")
        file.write("};\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
