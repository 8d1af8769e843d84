#!/usr/bin/env python3
"""The check of the dialect of C, on small trees made for it: what is in it is quiet, each breach is named with its line, and
--fix writes what the check then passes and a compiler accepts."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(ROOT, "tests", "tidy", "check_dialect.py")
HEADER = """#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
struct leaf { int *values; int count; };
struct tree { struct leaf *first; struct leaf inner; int numbers[4]; bool is_open; char *name; };
struct other { int name; char *names[3]; };
int *find(const char *text);
int count(const char *text);
void take(bool yes, int n);
"""
MORE = {"server/b.h": HEADER, "collector/base/count_of.h": open(os.path.join(ROOT, "collector/base/count_of.h"), encoding="utf-8").read()}
INCLUDE = '#include "server/b.h"\n'

# a body of `int f(struct tree *t, struct other *o, int n, char *p)`, what becomes of it (None: it stays)
CASES = [
    # sizeof
    ("return (int)sizeof n;", "return (int)sizeof(n);"),
    ("return (int)sizeof *t;", "return (int)sizeof(*t);"),
    ("return (int)sizeof *t->first->values;", "return (int)sizeof(*t->first->values);"),
    ("return (int)(sizeof t->numbers[n + 1] * 2);", "return (int)(sizeof(t->numbers[n + 1]) * 2);"),
    ('return (int)sizeof "text" - 1;', 'return (int)sizeof("text") - 1;'),
    ("return (int)sizeof(int);", None),
    ("return (int)(n * sizeof(*t));", None),
    ('return count("sizeof n") /* sizeof n */ + (int)sizeof(n); // sizeof n', None),
    # elements
    ("return (int)(sizeof t->numbers / sizeof t->numbers[0]);", "return (int)(LAC_COUNT_OF(t->numbers));"),
    ("return (int)(sizeof(t->numbers) / sizeof(*t->numbers));", "return (int)(LAC_COUNT_OF(t->numbers));"),
    ("return (int)(sizeof(t->numbers) / sizeof((t->numbers)[0]));", "return (int)(LAC_COUNT_OF(t->numbers));"),
    ("return (int)(sizeof(t->numbers) / sizeof(n));", None),
    # pointers
    ("return !p;", "return p == NULL;"),
    ("if (!p || n > 1) { return 1; }", "if (p == NULL || n > 1) { return 1; }"),
    ("if (p) { return 1; }", "if (p != NULL) { return 1; }"),
    ("while (n > 0 && t->first) { n--; }", "while (n > 0 && t->first != NULL) { n--; }"),
    ("return p ? 1 : 2;", "return p != NULL ? 1 : 2;"),
    ("for (; p; p = NULL) { n++; }", "for (; p != NULL; p = NULL) { n++; }"),
    ("bool is = !t->inner.values; take(is, n);", "bool is = t->inner.values == NULL; take(is, n);"),
    ("take(!t->first, n);", "take(t->first == NULL, n);"),
    ("if (!find(p)) { return 1; }", "if (find(p) == NULL) { return 1; }"),
    ("if (!strchr(p, 'x')) { return 1; }", "if (strchr(p, 'x') == NULL) { return 1; }"),
    ("if (!o->names[n]) { return 1; }", "if (o->names[n] == NULL) { return 1; }"),
    ("const struct leaf *leaf = t->first; if (!leaf) { return 1; }", "const struct leaf *leaf = t->first; if (leaf == NULL) { return 1; }"),
    # one name, two meanings: the struct decides
    ("if (!t->name) { return 1; }", "if (t->name == NULL) { return 1; }"),
    ("if (!o->name) { return 1; }", None),
    # a number, a bool, a function's number, a name that hides a pointer
    ("if (!n || !t->is_open || !count(p) || !t->first->count) { return 1; }", None),
    ("if (n && t->is_open) { return 1; }", None),
    ("{ int p = n; if (!p) { return 1; } }", None),
    ("return n * !n;", None),
    # what is pointed to is no pointer
    ("if (!*p) { return 1; }", None),
    ("if (!p[0]) { return 1; }", None),
    ("if (p[0] && *p) { return 1; }", None),
    # given as it is
    ("return find(p) == NULL || count(p) > 0;", None),
    ("free(p);", None),
    ("if (p != NULL && !t->is_open) { return 1; }", None),
]


def path_of(number):
    return f"server/a{number}.c"


def write_tree(folder):
    files = dict(MORE)
    for number, (body, _) in enumerate(CASES):
        name = f"f{number}"
        head = f"int {name}(struct tree *t, struct other *o, int n, char *p)"
        files[path_of(number)] = f"{INCLUDE}{head};\n{head}\n{{\n    (void)t, (void)o, (void)n, (void)p;\n    {body}\n    return 0;\n}}\n"
    for path, content in files.items():
        os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(content)


def check(folder, *options):
    done = subprocess.run([sys.executable, CHECK, "--root", folder, *options], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


def problem_of(folder, number, found, fixed, left):
    """What is wrong with a case, from what the check printed before, at, and after --fix."""
    expected, path = CASES[number][1], path_of(number)
    own = [line for line in found if line.startswith(path + ":")]
    if expected is None:
        return "named: " + own[0] if own else None
    if not own or any(not line.startswith(path + ":6: write ") for line in own):
        return f"printed: {own}"
    if path not in fixed:
        return "--fix did not name the file"
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        text = file.read()
    if f"    {expected}\n" not in text:
        return f"became: {text}"
    if ("LAC_COUNT_OF" in expected) != ('#include "collector/base/count_of.h"\n' in text):
        return "the include line is not as needed"
    if any(line.startswith(path + ":") for line in left):
        return f"the check does not pass what --fix wrote: {text}"
    compiled = subprocess.run(["cc", "-std=c17", "-fsyntax-only", "-Wall", "-Wno-unused-result", "-Werror", "-iquote", folder, os.path.join(folder, path)],
                              capture_output=True, text=True, timeout=120)
    return compiled.stderr or None


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_tree(folder)
        status, found = check(folder)
        fixed, left = check(folder, "--fix"), check(folder)
        problems = {number: problem_of(folder, number, found, fixed[1], left[1]) for number in range(len(CASES))}
    if (status, fixed[0], left) != (1, 0, (0, [])):
        problems["exit statuses and the check behind --fix"] = f"{status}, {fixed[0]}, {left}"
    failed = {name: problem for name, problem in problems.items() if problem is not None}
    for name, problem in failed.items():
        print(f"not ok: {CASES[name][0] if isinstance(name, int) else name}\n  {problem}")
    print(f"{len(problems) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
