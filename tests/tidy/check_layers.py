#!/usr/bin/env python3
"""Checks the include lines of all C code against the order of the folders in layers.txt.

  check_layers.py [--root DIR] [--rules FILE]

An include line is an edge between two folders. Every edge has to point down the order (`layer`), stay within what the
folder may reach (`reach`), and no set of folders may include each other in a circle: that is looked for in the edges
themselves, not in the order. A folder with code that has no place in the order, a rule that nothing needs any more, a
third-party header outside of its place (`header`) and a folder of too many files (`files`) are errors as well.
Prints each breach on a line of its own; exit status 1 when there is one.
"""
import argparse
import collections
import os
import re
import sys

TOPS = ("collector", "analysis", "server", "kernels", "tests/simulator")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.M)
CODE = (".c", ".h", ".cu", ".def")


class Rules:
    """layers.txt as data. Every rule remembers whether something needed it."""

    def __init__(self, path):
        self.layers, self.reach, self.headers = [], {}, collections.defaultdict(list)
        self.up, self.files_max, self.files = {}, 0, {}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.split("#")[0].split()
                if words and not self.take(words):
                    raise SystemExit(f"{path}:{number}: {words[0]} is no rule, or has the wrong number of words")

    def take(self, words):
        kind, rest = words[0], words[1:]
        if kind == "layer" and len(rest) == 1:
            self.layers.append(rest[0])
        elif kind == "reach" and len(rest) > 1:
            self.reach[rest[0]] = rest[1:]
        elif kind == "header" and len(rest) > 1:
            self.headers[rest[0]] += rest[1:]
        elif kind == "up" and len(rest) == 2:
            self.up[(rest[0], rest[1])] = False
        elif kind == "files" and len(rest) == 1:
            self.files_max = int(rest[0])
        elif kind == "files" and len(rest) == 2:
            self.files[rest[0]] = int(rest[1])
        else:
            return False
        return True

    def may_reach(self, folder):
        """What the longest rule that holds the folder lets it include; None without one."""
        at = folder
        while at:
            if at in self.reach:
                return self.reach[at]
            at = os.path.dirname(at)
        return None


def is_under(path, folder):
    return path == folder or path.startswith(folder + "/")


def read_tree(root):
    """(file -> included names, folder -> number of files) of all code below the top folders."""
    includes, counts = {}, collections.Counter()
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if name.endswith((".c", ".h")) or name == "README.md":
                    counts[os.path.dirname(path)] += 1
                if name.endswith(CODE):
                    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                        includes[path] = INCLUDE.findall(file.read())
    return includes, counts


def project_file(root, target):
    """The project's file that an include line names, or None; collector/include is on the search path."""
    for path in (target, "collector/include/" + target):
        if path.startswith(TOPS) and os.path.isfile(os.path.join(root, path)):
            return path
    return None


def find_circles(edges):
    """Sets of folders that include each other (Tarjan's strongly connected components), each as a sorted list."""
    index, low, stack, circles = {}, {}, [], []

    def visit(folder):
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for other in sorted(edges.get(folder, ())):
            if other not in index:
                visit(other)
                low[folder] = min(low[folder], low[other])
            elif other in stack:
                low[folder] = min(low[folder], index[other])
        if low[folder] == index[folder]:
            at = stack.index(folder)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    for folder in sorted(edges):
        if folder not in index:
            visit(folder)
    return circles


def check_edges(root, rules, includes):
    """Yields breaches of order and reach, then the circles that are left without the excepted lines."""
    edges = collections.defaultdict(set)
    place = {folder: i for i, folder in enumerate(rules.layers)}
    for path, targets in sorted(includes.items()):
        folder = os.path.dirname(path)
        for target in targets:
            file = project_file(root, target)
            other = os.path.dirname(file) if file else folder
            if other == folder:
                continue
            if (folder, file) in rules.up:
                rules.up[(folder, file)] = True
                continue
            edges[folder].add(other)
            reach = rules.may_reach(folder)
            if reach is not None and not any(is_under(other, to) for to in reach):
                yield f"{path}: {folder} may include only {', '.join(reach)}, not {file}"
            elif folder in place and other in place and place[other] > place[folder]:
                yield f"{path}: {folder} lies below {other} and may not include {file}"
    for circle in find_circles(edges):
        yield f"folders that include each other in a circle: {', '.join(circle)}"


def check_headers(rules, includes):
    for path, targets in sorted(includes.items()):
        for target in targets:
            for header, places in rules.headers.items():
                is_it = f"/{header}" in f"/{target}" if header.endswith("/") else os.path.basename(target) == header
                if is_it and not any(path.startswith(place) for place in places):
                    yield f"{path}: {target} may be included only by {', '.join(places)}"


def check_rules(rules, includes, counts):
    """Folders without a place, places without a folder, too many files, and exceptions that are not needed."""
    folders = {os.path.dirname(path) for path in includes}
    for folder in sorted(folders - set(rules.layers)):
        yield f"{folder}: holds code and has no place in the order"
    for folder in sorted(set(rules.layers) - folders):
        yield f"{folder}: has a place in the order and no code"
    for (folder, file), is_used in sorted(rules.up.items()):
        if not is_used:
            yield f"up {folder} {file}: no longer needed, remove the exception"
    for folder in sorted(folders):
        most = rules.files.get(folder, rules.files_max)
        if most and counts[folder] > most:
            yield f"{folder}: {counts[folder]} files, {most} at most"
        if folder in rules.files and counts[folder] <= rules.files_max:
            yield f"files {folder}: no longer needed, remove the exception"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--rules", default=os.path.join(here, "layers.txt"))
    args = parser.parse_args()
    rules = Rules(args.rules)
    includes, counts = read_tree(args.root)
    breaches = [*check_edges(args.root, rules, includes), *check_headers(rules, includes),
                *check_rules(rules, includes, counts)]
    for breach in breaches:
        print(f"layering: {breach}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
