#!/usr/bin/env python3
"""Checks that all C code is written in one dialect; CONTRIBUTING.md ("Style") has it in three lines.

  check_dialect.py [--root DIR] [--fix] [FILE]...

sizeof    `sizeof(x)`, never `sizeof x`
count     LAC_COUNT_OF(a), never `sizeof(a) / sizeof(a[0])` (collector/base/count_of.h)
pointers  `p == NULL` and `p != NULL`, never `!p` or `if (p)`

Prints each breach as FILE:LINE: what; exit status 1 when there is one. `--fix` rewrites what it finds; run clang-format
on what it names, and build: a number that was taken for a pointer does not compile as `n == NULL`.

What is a pointer is read from declarations: locals and parameters of the function, members of the struct that is meant
(of any, where all agree on that name), functions (where all files agree). What cannot be known that way is left alone.
"""
import argparse
import bisect
import collections
import os
import re
import subprocess
import sys

TOPS = ("collector", "analysis", "server", "kernels", "tests")
COUNT_OF = "collector/base/count_of.h"
WITHOUT_COUNT_OF = ("kernels/",)  # includes nothing of the collector
TOKEN = re.compile(r"""
    (?P<skip>[ \t\n\f\r]+|\\\n|/\*.*?\*/|//[^\n]*)
  | (?P<text>(?:L|u8|u|U)?"(?:[^"\\\n]|\\.)*")
  | (?P<char>(?:L|u|U)?'(?:[^'\\\n]|\\.)*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<mark>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\.\.\.|.)
""", re.X | re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"][^\n]*$', re.M)
KEYWORDS = {"return", "sizeof", "case", "else", "goto", "if", "while", "for", "switch", "do", "default", "typeof"}
NOT_TYPES = KEYWORDS | {"struct", "union", "enum", "const", "volatile", "static", "extern", "inline", "register"}
# functions of libraries that return a pointer
FOREIGN = set("""malloc calloc realloc reallocarray strdup strndup strchr strrchr strstr strcasestr strpbrk memchr memmem memrchr
    getenv fopen fdopen opendir fdopendir readdir dlopen dlsym bsearch strsep strtok_r fgets realpath getcwd gmtime_r localtime_r
    json_object_new_object json_object_new_array json_object_array_get_idx json_object_object_get json_tokener_parse
    json_object_get_string json_tokener_new sqlite3_column_text sqlite3_column_blob sqlite3_value_text""".split())
BEFORE_VALUE = {"(", "&&", "||", "?", ":", "=", "return", ",", "{", ";"}
AFTER_VALUE = {")", "&&", "||", "?", ":", ";", ",", "}"}


class Token:
    __slots__ = ("kind", "text", "at", "end")

    def __init__(self, kind, text, at):
        self.kind, self.text, self.at, self.end = kind, text, at, at + len(text)


class Source:
    """The tokens of a file, with the other end of each bracket."""

    def __init__(self, path, text):
        self.path, self.text, self.tokens = path, text, []
        blank = INCLUDE.sub(lambda found: " " * len(found.group()), text)
        for found in TOKEN.finditer(blank):
            if found.lastgroup != "skip":
                self.tokens.append(Token(found.lastgroup, found.group(), found.start()))
        self.ends = [number for number, c in enumerate(text) if c == "\n"]
        self.match, self.functions = self.pair(), []
        self.find_functions()

    def pair(self):
        match, stack = {}, []
        for number, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in "([{":
                stack.append(number)
            elif token.kind == "mark" and token.text in ")]}" and stack:
                match[number] = stack.pop()
                match[match[number]] = number
        return match

    def line(self, token):
        return bisect.bisect_left(self.ends, token.at) + 1

    def is_mark(self, number, text):
        return 0 <= number < len(self.tokens) and self.tokens[number].kind == "mark" and self.tokens[number].text == text

    def text_at(self, number):
        return self.tokens[number].text if 0 <= number < len(self.tokens) else ""

    def find_functions(self):
        """(first token of the parameters, end of the body): `) {` at the outermost depth."""
        number = 0
        while number < len(self.tokens):
            if self.is_mark(number, "{") and number in self.match:
                if self.is_mark(number - 1, ")") and number - 1 in self.match:
                    self.functions.append((self.match[number - 1], self.match[number]))
                number = self.match[number]
            number += 1

    def stars(self, number):
        """(pointer depth, tag of its struct or "") of the declarator whose name is at `number`; None when no declaration is
        there. clang-format writes `type *name` for a declaration and `a * b` for a product."""
        at, depth = number - 1, 0
        while self.is_mark(at, "*") or self.text_at(at) in ("const", "restrict", "volatile"):
            depth += self.text_at(at) == "*"
            at -= 1
        before = self.tokens[at] if at >= 0 else None
        if before is None or before.kind != "name" or before.text in KEYWORDS or self.is_mark(at - 1, "->") or self.is_mark(at - 1, "."):
            return None
        star = self.tokens[at + 1]
        if depth > 0 and (star.at == before.end or self.tokens[number - 1].end != self.tokens[number].at):
            if self.tokens[number - 1].text == "*" or star.at == before.end:
                return None
        if depth == 0 and before.text in NOT_TYPES - {"const", "volatile"}:
            return None
        return depth, before.text if self.text_at(at - 1) in ("struct", "union") else ""

    def declared(self, number):
        """(pointer depth, tag, whether it is a function) of what is declared at `number`; None: no declaration."""
        follows = self.text_at(number + 1)
        if self.tokens[number].kind != "name" or follows not in ("=", ";", ",", ")", "[", "(", ":"):
            return None
        stars = self.stars(number)
        return None if stars is None else (stars[0] + (follows == "["), stars[1], follows == "(")


def agreed(meanings):
    """What stands under a name where there is one meaning only."""
    return {name: next(iter(found)) for name, found in meanings.items() if len(found) == 1}


class Types:
    """What members and functions of the whole tree are: (pointer depth, tag of the struct)."""

    def __init__(self, sources):
        members, functions, structs = (collections.defaultdict(set) for _ in range(3))
        self.own_functions, self.own_structs = {}, {}
        for source in sources:
            own = self.own_structs[source.path] = self.read_structs(source)
            for tag, inside in own.items():
                structs[tag].add(tuple(sorted(inside.items())))
                for name, meaning in inside.items():
                    members[name].add(meaning)
            own = self.own_functions[source.path] = self.read_functions(source)
            for name, meaning in own.items():
                functions[name].add(meaning)
        self.members, self.functions = agreed(members), agreed(functions)
        self.functions.update({name: (1, "") for name in FOREIGN})
        self.structs = {tag: dict(inside) for tag, inside in agreed(structs).items()}

    @staticmethod
    def read_functions(source):
        """Those that are declared or defined outside of all bodies."""
        found, at = {}, 0
        bodies = [(source.match[begin] + 1, end) for begin, end in source.functions]
        for number, token in enumerate(source.tokens):
            while at < len(bodies) and number > bodies[at][1]:
                at += 1
            if at < len(bodies) and number >= bodies[at][0]:
                continue
            stars = source.stars(number) if token.kind == "name" and source.is_mark(number + 1, "(") else None
            if stars is not None:
                found[token.text] = stars
        return found

    @staticmethod
    def read_structs(source):
        """The members of each `struct ... {` and `union ... {`; those without a tag under a number."""
        found = {}
        for number, token in enumerate(source.tokens):
            if token.kind != "name" or token.text not in ("struct", "union"):
                continue
            brace = number + 1
            while brace < len(source.tokens) and source.tokens[brace].kind == "name":
                brace += 1
            if not source.is_mark(brace, "{") or brace not in source.match:
                continue
            tag = source.text_at(number + 1) if brace > number + 1 else str(number)
            inside = found[tag] = {}
            inner = brace + 1
            while inner < source.match[brace]:
                if source.is_mark(inner, "(") and source.is_mark(inner + 1, "*"):  # int (*name)(...)
                    inside[source.text_at(inner + 2)] = (1, "")
                    inner = source.match.get(inner, inner)
                    if source.is_mark(inner + 1, "("):
                        inner = source.match.get(inner + 1, inner)
                elif source.tokens[inner].kind == "name":
                    declared = source.declared(inner)
                    if declared is not None:
                        inside[source.text_at(inner)] = declared[:2]
                    elif source.is_mark(inner - 1, ",") or source.is_mark(inner - 1, "*"):
                        inside[source.text_at(inner)] = (-1, "")  # int a, *b: not read
                inner += 1
        return found

    def function(self, source, name):
        own = self.own_functions.get(source.path, {})
        return own[name] if name in own else self.functions.get(name)

    def member(self, source, tag, name):
        inside = self.own_structs.get(source.path, {}).get(tag) or self.structs.get(tag)
        return inside.get(name) if inside else self.members.get(name)


class Scopes:
    """The variables that a place in a file sees: of its function, else of the file."""

    def __init__(self, source):
        self.source, self.places = source, []
        self.of_file = self.read(0, len(source.tokens), source.functions)
        self.of_function = [self.read(begin, end, []) for begin, end in source.functions]

    def read(self, begin, end, but):
        found, skip, number = collections.defaultdict(list), 0, begin
        while number < end:
            while skip < len(but) and number > but[skip][1]:
                skip += 1
            if skip < len(but) and number >= but[skip][0]:
                number = but[skip][1] + 1
                continue
            declared = self.source.declared(number)
            if declared is not None and not declared[2]:
                found[self.source.text_at(number)].append((number, declared[:2]))
            number += 1
        return found

    def meaning(self, number, name):
        """None: not known."""
        where = bisect.bisect_right(self.source.functions, (number, number)) - 1
        if where >= 0 and number <= self.source.functions[where][1]:
            before = [meaning for at, meaning in self.of_function[where].get(name, ()) if at < number]
            if before:
                return before[-1]
        meanings = {meaning for at, meaning in self.of_file.get(name, ()) if at < number}
        return meanings.pop() if len(meanings) == 1 else None


class Dialect:
    """The breaches of one file, each with the text that takes its place."""

    def __init__(self, source, types):
        self.source, self.types, self.scopes = source, types, None
        self.breaches, self.edits = [], []

    def breach(self, number, what, *edits):
        self.breaches.append((self.source.line(self.source.tokens[number]), what))
        self.edits += edits

    # ---- expressions

    def operand(self, number):
        """The token behind name, members, indexes and calls that begin at `number`; None: none begins there."""
        source = self.source
        if number >= len(source.tokens) or source.tokens[number].kind != "name" or source.text_at(number) in KEYWORDS:
            return None
        number += 1
        while True:
            if source.is_mark(number, "->") or source.is_mark(number, "."):
                number += 2
            elif (source.is_mark(number, "[") or source.is_mark(number, "(")) and number in source.match:
                number = source.match[number] + 1
            else:
                return number

    def is_pointer(self, begin, end):
        """Whether the operand is known to be one."""
        source, number = self.source, begin + 1
        if source.is_mark(number, "("):
            meaning, number = self.types.function(source, source.text_at(begin)), source.match[number] + 1
        else:
            meaning = self.scopes.meaning(begin, source.text_at(begin))
        while number < end:
            depth, tag = meaning or (None, "")
            if source.is_mark(number, "->") or source.is_mark(number, "."):
                meaning = self.types.member(source, tag, source.text_at(number + 1))
                number += 2
            elif source.is_mark(number, "[") and depth:
                meaning, number = (depth - 1, tag), source.match[number] + 1
            else:
                return False  # a call through a pointer, an index of what is not known
        return meaning is not None and meaning[0] > 0

    def span(self, begin, end):
        return self.source.text[self.source.tokens[begin].at:self.source.tokens[end - 1].end]

    # ---- rules

    def sizes(self):
        source = self.source
        for number, token in enumerate(source.tokens):
            if token.text != "sizeof" or token.kind != "name" or source.is_mark(number + 1, "("):
                continue
            begin = end = number + 1
            while source.is_mark(end, "*") or source.is_mark(end, "&"):
                end += 1
            if source.tokens[end].kind == "text":
                end += 1
            else:
                end = self.operand(end)
            if end is None:
                self.breach(number, "write sizeof(x)")
            else:
                self.breach(number, "write sizeof(%s)" % self.span(begin, end),
                            (token.at, source.tokens[end - 1].end, "sizeof(%s)" % self.span(begin, end)))

    def counts(self):
        """sizeof(a) / sizeof(a[0]), also as sizeof(*a) and with the array in parentheses."""
        source = self.source
        if source.path == COUNT_OF or source.path.startswith(WITHOUT_COUNT_OF) or '#include "' not in source.text:
            return
        for number, token in enumerate(source.tokens):
            if token.text != "sizeof" or token.kind != "name" or not source.is_mark(number + 1, "("):
                continue
            middle = source.match.get(number + 1, len(source.tokens))
            if not source.is_mark(middle + 1, "/") or source.text_at(middle + 2) != "sizeof" or not source.is_mark(middle + 3, "("):
                continue
            end = source.match.get(middle + 3, len(source.tokens))
            whole = [each.text for each in source.tokens[number + 2:middle]]
            one = [each.text for each in source.tokens[middle + 4:end]]
            if one in (whole + ["[", "0", "]"], ["(", *whole, ")", "[", "0", "]"], ["*", *whole]):
                array = self.span(number + 2, middle)
                self.breach(number, "write LAC_COUNT_OF(%s)" % array, (token.at, source.tokens[end].end, "LAC_COUNT_OF(%s)" % array))

    def pointers(self):
        source = self.source
        self.scopes = Scopes(source)
        for number, token in enumerate(source.tokens):
            if source.is_mark(number, "!"):
                end = self.operand(number + 1)
                before, after = source.text_at(number - 1), source.text_at(end) if end else ""
                if end and before in BEFORE_VALUE and after in AFTER_VALUE and self.is_pointer(number + 1, end):
                    text = self.span(number + 1, end)
                    self.breach(number, "write %s == NULL" % text, (token.at, source.tokens[end - 1].end, text + " == NULL"))
                continue
            if token.kind != "name" or token.text in KEYWORDS or source.text_at(number - 1) in ("->", ".", "!"):
                continue
            end = self.operand(number)
            if end and self.is_condition(number, end) and self.is_pointer(number, end):
                text = self.span(number, end)
                self.breach(number, "write %s != NULL" % text, (token.at, source.tokens[end - 1].end, text + " != NULL"))

    def is_condition(self, begin, end):
        """Whether the operand alone is asked for being true."""
        source, before, after = self.source, self.source.text_at(begin - 1), self.source.text_at(end)
        if before in ("&&", "||"):
            return after in AFTER_VALUE
        if after in ("&&", "||"):
            return before in BEFORE_VALUE
        if after == "?":
            return before in BEFORE_VALUE
        if before == "(" and after == ")" and source.text_at(begin - 2) in ("if", "while"):
            return source.match.get(begin - 1) == end
        if before == ";" and after == ";":  # for (...; p; ...)
            depth, at = 0, begin - 1
            while at >= 0 and depth >= 0 and not source.is_mark(at, "{"):
                depth += source.is_mark(at, ")")
                depth -= source.is_mark(at, "(")
                at -= 1
            return depth < 0 and source.text_at(at) == "for"
        return False

    def fixed(self):
        text = self.source.text
        for begin, end, instead in sorted(self.edits, reverse=True):
            text = text[:begin] + instead + text[end:]
        return text


def with_count_of(text):
    """The include line of LAC_COUNT_OF, where clang-format will sort it in."""
    line = f'#include "{COUNT_OF}"\n'
    if "LAC_COUNT_OF(" not in text or line in text:
        return text
    places = [found.start() for found in re.finditer(r'^#include "[^"]*"\n', text, re.M)]
    own = re.match(r'(?:(?:/\*.*?\*/|//[^\n]*|\s)*)(#include "[^"]*"\n)\n', text, re.S)
    at = own.end() if own else places[0]
    alone = own and not text.startswith('#include "', at)
    return text[:at] + line + ("\n" if alone else "") + text[at:]


def read(root, paths):
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", newline="") as file:
            yield Source(path, file.read())


def files_of(root):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *(f"{top}/*.[ch]" for top in TOPS)],
                            cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return sorted({path for path in listed.stdout.split("\n") if path and os.path.exists(os.path.join(root, path))})
    return sorted(os.path.relpath(os.path.join(folder, name), root) for top in TOPS for folder, _, names in os.walk(os.path.join(root, top))
                  for name in names if name.endswith((".c", ".h")))


def breaches_of(source, types, rules):
    dialect = Dialect(source, types)
    for rule in rules:
        getattr(dialect, rule)()
    return dialect


def main():
    parser = argparse.ArgumentParser(description="one dialect of C")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    paths = files_of(options.root)
    sources = list(read(options.root, paths))
    types = Types(sources)
    wanted = {os.path.relpath(os.path.abspath(path), os.path.abspath(options.root)) for path in options.files}
    count = 0
    for source in sources:
        if wanted and source.path not in wanted:
            continue
        before = source.text
        # a rule at a time: what one has written is what the next reads
        for rule in ("sizes", "pointers", "counts"):
            dialect = breaches_of(source, types, (rule,))
            count += len(dialect.breaches)
            for line, what in dialect.breaches:
                if not options.fix:
                    print(f"{source.path}:{line}: {what}")
            if options.fix and dialect.edits:
                source = Source(source.path, dialect.fixed())
        if options.fix and source.text != before:
            with open(os.path.join(options.root, source.path), "w", encoding="utf-8", newline="") as file:
                file.write(with_count_of(source.text))
            print(source.path)
    return 0 if options.fix or count == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
