#!/usr/bin/env python3
"""The check of the layers, on small trees made for it: a tree in order is quiet, and each breach is named."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(ROOT, "tests", "tidy", "check_layers.py")
RULES = """
layer analysis/low   # what stands before may be included
layer analysis/high
layer server
reach analysis analysis
reach server analysis server
header sqlite3.h server/sql
header json-c/ server/json
files 3
"""
TREE = {
    "analysis/low/low.h": "",
    "analysis/low/low.c": '#include "analysis/low/low.h"\n#include <stdint.h>\n',
    "analysis/high/high.c": '#include "analysis/low/low.h"\n',
    "server/main.c": '#include "analysis/low/low.h"\n',
    "server/sql_tables.c": "#include <sqlite3.h>\n",
}


def check(changes=None, rules="", base=RULES):
    """(exit status, what was printed) for the tree with some files written anew, and some rules more."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**TREE, **(changes or {})}.items():
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(folder, "layers.txt"), "w", encoding="utf-8") as file:
            file.write(base + rules)
        done = subprocess.run([sys.executable, CHECK, "--root", folder, "--rules", os.path.join(folder, "layers.txt")],
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


CIRCLE = {"analysis/high/high.h": "", "analysis/low/low.c": '#  include "analysis/high/high.h"\n'}
# name, files that are changed, rules that are added, what is printed (none: nothing)
CASES = [
    ("a tree in order", {}, "", None),
    ("an include line up the order", CIRCLE, "", "analysis/low lies below analysis/high"),
    ("a circle", CIRCLE, "", "in a circle: analysis/high, analysis/low"),
    ("a circle over three folders", {**CIRCLE, "analysis/mid/mid.h": "", "analysis/mid/mid.c": '#include "analysis/high/high.h"\n',
                                     "analysis/low/low.c": '#include "analysis/mid/mid.h"\n'}, "layer analysis/mid\n",
     "in a circle: analysis/high, analysis/low, analysis/mid"),
    ("an excepted line", CIRCLE, "up analysis/low analysis/high/high.h\n", None),
    ("an exception that nothing needs", {}, "up analysis/low analysis/high/high.h\n", "no longer needed"),
    ("a folder out of reach", {"server/main.h": "", "analysis/high/high.c": '#include "server/main.h"\n'}, "",
     "analysis/high may include only analysis"),
    ("a header by name", {"analysis/low/low.c": "#include <sqlite3.h>\n"}, "", "sqlite3.h may be included only by server/sql"),
    ("a header by folder", {"server/sql_tables.c": "#include <json-c/json_object.h>\n"}, "",
     "json-c/json_object.h may be included only by server/json"),
    ("a header in quotes", {"server/sql_tables.c": '#include "json-c/json.h"\n'}, "", "json-c/json.h may be included only"),
    ("a folder without a place", {"analysis/other/other.c": ""}, "", "analysis/other: holds code and has no place"),
    ("a place without a folder", {}, "layer analysis/gone\n", "analysis/gone: has a place in the order and no code"),
    ("too many files", {f"server/more_{i}.c": "" for i in range(2)}, "", "server: 4 files, 3 at most"),
    ("too many files, excepted", {f"server/more_{i}.c": "" for i in range(2)}, "files server 5\n", None),
    ("an exception for few files", {}, "files server 5\n", "files server: no longer needed"),
    ("a rule of no kind", {}, "lair server\n", "layers.txt:10: lair is no rule"),
]


# the project's own rules: a file, what it includes, and who alone may
CONFINED = [
    ("server/api/api_slices.c", "json-c/json.h", "server/json/"),
    ("server/doctor/doctor.c", "json-c/json_tokener.h", "server/json/"),
    ("analysis/diagnose/diagnose.c", "json-c/json_object.h", "server/json/"),
    ("server/api/api_runs.c", "sqlite3.h", "server/store/, server/sql/, analysis/import/"),
    ("server/api/routes.c", "microhttpd.h", "server/http/"),
    ("analysis/model/model.c", "cupti.h", "collector/inject/cupti_"),
]


def cases():
    """(name, exit status, what was printed, what should be)"""
    for name, changes, rules, want in CASES:
        yield (name, *check(changes, rules), want)
    with open(os.path.join(ROOT, "tests", "tidy", "layers.txt"), encoding="utf-8") as file:
        own = file.read()
    for path, header, place in CONFINED:
        yield (f"{header} in {path}", *check({path: f"#include <{header}>\n"}, base=own), f"{path}: {header} may be included only by {place}\n")


def main():
    passed = failed = 0
    for name, status, text, want in cases():
        is_right = (status == 0 and text == "") if want is None else (status != 0 and want in text)
        passed, failed = passed + is_right, failed + (not is_right)
        if not is_right:
            print(f"{name}: wanted {want!r}, exit status {status}, printed: {text}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
