#!/usr/bin/env python3
"""Shared libraries to link against, of symbols alone: the C library as it was at an older version.

A program that is linked on a new system asks for the newest version of each symbol, and then starts on no older system. The C library
still has the old versions, so the program is linked against libraries that have the same symbols, each with its newest version up to
the limit. Names that came later are missing here, and old_libc.c has them.

usage: link_stubs.py OUT_FOLDER LIMIT (as 2.17) CC
"""
import os
import re
import subprocess
import sys

LIBRARIES = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2")
# they were libraries of their own, and what was in them is in libc.so.6 now: asked for by name, so that an old system loads them
EMPTY = ("libpthread.so.0", "libdl.so.2")
ROW = re.compile(r"\s*\d+: ([0-9a-f]+)\s+(\w+) (FUNC|IFUNC|OBJECT|NOTYPE)\s+(GLOBAL|WEAK|UNIQUE)\s+DEFAULT\s+(\w+) ([\w.]+)@@?(GLIBC_[0-9.]+)\s*$")


def number(version):
    return tuple(int(part) for part in version.split("_")[1].split("."))


def newest_symbols(path, limit):
    """name -> (version, type, address, bytes, directive of its binding): the newest up to the limit."""
    table = subprocess.run(["readelf", "--dyn-syms", "-W", path], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = {}
    for line in table.splitlines():
        row = ROW.match(line)
        if not row or row.group(5) == "UND" or number(row.group(7)) > limit:
            continue
        address, size, kind, binding, _, name, version = row.groups()
        if name not in found or number(found[name][0]) < number(version):
            found[name] = (version, kind, int(address, 16), int(size, 0), ".weak" if binding == "WEAK" else ".globl")
    return found


def assembler(symbols):
    """Objects that share an address share it here too, the weak ones as such: that makes a linker that copies `environ` into the program
    take `__environ` with it, which is what the C library itself uses."""
    lines, objects = [".text"], {}
    for place, (name, (version, kind, address, size, binding)) in enumerate(sorted(symbols.items())):
        if kind == "OBJECT":
            objects.setdefault(address, []).append((place, name, version, size, binding))
        else:
            lines += [f"{binding} lac_stub_{place}", f".type lac_stub_{place},@function", f"lac_stub_{place}: .symver lac_stub_{place}, {name}@@{version}", "nop"]
    lines.append(".data")
    for names in objects.values():
        lines.append(".balign 64")
        for place, name, version, size, binding in names:
            lines += [f"{binding} lac_stub_{place}", f".type lac_stub_{place},@object", f".size lac_stub_{place},{size}"]
            lines.append(f"lac_stub_{place}: .symver lac_stub_{place}, {name}@@{version}")
        lines.append(f".skip {max(1, max(row[3] for row in names))}")
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def make(folder, name, symbols, compiler):
    source, script = os.path.join(folder, name + ".s"), os.path.join(folder, name + ".map")
    with open(source, "w", encoding="ascii") as file:
        file.write(assembler(symbols))
    versions = sorted({version for version, *_ in symbols.values()}, key=number)
    with open(script, "w", encoding="ascii") as file:
        file.write("".join(f"{version} {{ {'local: lac_stub_*;' if at == 0 else ''} }};\n" for at, version in enumerate(versions)))
    version_script = [f"-Wl,--version-script={script}"] if versions else []
    subprocess.run([*compiler.split(), "-shared", "-nostdlib", f"-Wl,-soname,{name}", *version_script, source, "-o", os.path.join(folder, name)], check=True)


def main():
    folder, limit, compiler = sys.argv[1], number("GLIBC_" + sys.argv[2]), sys.argv[3]
    os.makedirs(folder, exist_ok=True)
    for name in LIBRARIES:
        path = subprocess.run([*compiler.split(), f"-print-file-name={name}"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        make(folder, name, newest_symbols(path, limit), compiler)
    for name in EMPTY:
        make(folder, name, {}, compiler)


if __name__ == "__main__":
    main()
