#!/usr/bin/env python3
"""Everything that is distributed, of what `make dist` has built: tarballs, wheel, Debian package, list of parts, checksums.

The same inputs give the same bytes: times are SOURCE_DATE_EPOCH, else the last commit's, and everything is sorted.

usage: make_dist.py --version V --program FILE --beside FILE --node MACHINE=FOLDER[=STRIP]... --archive FILE... --shared FILE OUT
"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

import archives
import deb
import parts
import wheel

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAINTAINER = "{} <{}>".format(os.environ.get("DEBFULLNAME") or "Who built this", os.environ.get("DEBEMAIL") or "builder@localhost.localdomain")
NODE_README = """\
Lacuna's node side, {version}, for {machine} Linux with glibc 2.17 or later (CentOS 7, RHEL 8, Ubuntu 18.04 and everything since). It needs
no installation, no root, and no other library.

    ./lacuna-node run -o run1 -- python train.py      records a job; the exit status is the job's
    ./lacuna-node push run1 --server URL              sends it to a server of Lacuna
    ./lacuna-node env                                 variables for jobs that are started some other way

Read a recording with `lacuna analyze run1`, on any machine. To have it in a module:

    prepend-path PATH /opt/lacuna-node-{version}-linux-{machine}
"""


def epoch():
    said = os.environ.get("SOURCE_DATE_EPOCH") or parts.run("git", "-C", ROOT, "log", "-1", "--format=%ct")
    return int(said) if said.isdigit() else 315532800


def stripped(path, strip, folder):
    """A copy without symbols, which a profiler of the job would otherwise read, too."""
    copy = os.path.join(folder, os.path.basename(path))
    subprocess.run([strip, "--strip-unneeded", "-o", copy, path], check=True)
    return copy


def node_tarball(version, machine, build, strip, when):
    """The launcher, the library and the hook: all that a node needs to record."""
    top = f"lacuna-node-{version}-linux-{machine}/"
    members = [archives.file(top + "LICENSE", f"{ROOT}/LICENSE"),
               archives.text(top + "README", NODE_README.format(version=version, machine=machine))]
    with tempfile.TemporaryDirectory(prefix="lacuna-dist-") as folder:
        for name in ("lacuna-node", "liblacuna.so", "python/_lacuna.abi3.so"):
            members.append(archives.file(top + name, stripped(f"{build}/{name}", strip, folder), is_program=True))
    for name in sorted(os.listdir(f"{build}/python")):
        if name.endswith(".py"):
            members.append(archives.file(f"{top}python/{name}", f"{build}/python/{name}"))
    return top[:-1] + ".tar.gz", archives.make_gz(archives.make_tar(members, when))


def program_tarball(args, third_party, when):
    top = f"lacuna-{args.version}-linux-x86_64/"
    members = [archives.file(top + "LICENSE", f"{ROOT}/LICENSE"), archives.text(top + "THIRD-PARTY", third_party),
               archives.file(top + "lacuna", args.beside, is_program=True), archives.file(top + "libisal.so.2", args.shared, is_program=True)]
    return top[:-1] + ".tar.gz", archives.make_gz(archives.make_tar(members, when))


def everything(args, when):
    """Yields (file name, bytes)."""
    used = [parts.library(path, "linked, static") for path in args.archive] + [parts.library(args.shared, "shared library beside the program")]
    used = list({part.name: part for part in used}.values())  # two libraries of one source are one part
    used += parts.page_packages(os.path.join(ROOT, "web"))
    third_party, sbom = parts.licenses(used), parts.bill(args.version, used, when)
    with open(os.path.join(ROOT, "LICENSE"), encoding="utf-8") as file:
        license_text = file.read()
    yield wheel.make(args.version, args.beside, args.shared, os.path.join(HERE, "run_program.py"), license_text, third_party, sbom, when)
    if args.only == "wheel":
        return
    for node in args.node:
        machine, build, strip = (node.split("=") + ["strip"])[:3]
        yield node_tarball(args.version, machine, build, strip, when)
    yield program_tarball(args, third_party, when)
    help_text = subprocess.run([args.program, "help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    yield deb.make(args.version, MAINTAINER, args.program, help_text, third_party, sbom, when)
    yield f"lacuna-{args.version}.spdx.json", sbom.encode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--program", required=True)  # finds its libraries where the system has them
    parser.add_argument("--beside", required=True)  # finds them beside itself
    parser.add_argument("--shared", required=True)  # the one there is
    parser.add_argument("--node", action="append", default=[])
    parser.add_argument("--archive", action="append", default=[])
    parser.add_argument("--only", default="")  # wheel: that alone
    parser.add_argument("out")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    sums = []
    for name, content in everything(args, epoch()):
        path = os.path.join(args.out, name)
        with open(path + ".part", "wb") as file:
            file.write(content)
        os.replace(path + ".part", path)
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
        print(f"{len(content):>9}  {path}")
    with open(os.path.join(args.out, "SHA256SUMS"), "w", encoding="ascii") as file:
        file.write("".join(sorted(sums, key=lambda line: line[66:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
