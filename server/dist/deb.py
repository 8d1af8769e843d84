"""The Debian package, for Debian 12 and Ubuntu 22.04 and later."""
import hashlib
import re
import subprocess
import time

import archives

CONTROL = """\
Package: lacuna
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {size_kib}
Depends: {depends}
Recommends: libcurl4 | libcurl4t64
Section: devel
Priority: optional
Description: find out why a GPU training job is slow
 Lacuna records a training job as it is, with the loader workers of PyTorch and
 what CUPTI tells of the GPU, or reads the trace of another profiler. It says
 what the GPU waits for, which change gains how much, and shows the evidence on
 a page in the browser.
 .
 This package has the whole program, with the page and the collector inside it.
"""
OVERRIDES = """\
# linked in on purpose: the same objects serve wheel and package, and start on older systems
lacuna: embedded-library * [usr/bin/lacuna]
# the maintainer is who builds it: DEBFULLNAME and DEBEMAIL name them
lacuna: bogus-mail-host *
lacuna: bogus-mail-host-in-debian-changelog *
"""


def depends(program):
    """Packages of the libraries that the program asks for; of the C library, since when it has what we use."""
    dynamic = subprocess.run(["objdump", "-p", program], stdout=subprocess.PIPE, check=True, text=True).stdout
    table = subprocess.run(["objdump", "-T", program], stdout=subprocess.PIPE, check=True, text=True).stdout
    versions = [tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", table)]
    rows = ["libc6 (>= {})".format(".".join(map(str, max(versions))))]
    for name in re.findall(r"NEEDED +(\S+)", dynamic):
        if not re.match(r"(libc|libm|libpthread|libdl|ld-linux-x86-64)\.so", name):
            rows.append(re.sub(r"\.so\.", "", name))  # as Debian calls a library's package: libisal.so.2 is in libisal2
    return ", ".join(rows)


def manual(version, help_text, epoch):
    """The manual page: the list of commands, as the program prints it."""
    day = time.strftime("%Y-%m-%d", time.gmtime(epoch))
    escaped = help_text.replace("\\", "\\e").replace("-", "\\-")
    lines = [("\\&" if line[:1] in (".", "'") else "") + line for line in escaped.splitlines()]
    return "\n".join([f'.TH LACUNA 1 {day} "lacuna {version}" "User commands"', ".SH NAME", "lacuna \\- find out why a GPU training job is slow", ".SH SYNOPSIS",
                      ".B lacuna", "\\fICOMMAND\\fR [\\fIOPTION\\fR]...", ".SH COMMANDS", ".nf", *lines, ".fi", "Each command answers", ".BR \\-\\-help .", ""])


def make(version, maintainer, program, help_text, third_party, sbom, epoch):
    day = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    changelog = f"lacuna ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n -- {maintainer}  {day}\n"
    own = "Copyright: the authors of Lacuna\nLicense: Apache-2.0, whose text is in /usr/share/common-licenses/Apache-2.0\n\n"
    shares = "usr/share/doc/lacuna/"
    members = [
        archives.file("usr/bin/lacuna", program, is_program=True),
        archives.text(shares + "copyright", own + third_party),
        archives.Member(shares + "changelog.gz", archives.make_gz(changelog.encode()), False),
        archives.text(shares + "lacuna.spdx.json", sbom),
        archives.Member("usr/share/man/man1/lacuna.1.gz", archives.make_gz(manual(version, help_text, epoch).encode()), False),
        archives.text("usr/share/lintian/overrides/lacuna", OVERRIDES),
    ]
    size_kib = sum(len(member.content) // 1024 + 1 for member in members) + len(archives.folders(members))
    sums = "".join(f"{hashlib.md5(member.content).hexdigest()}  {member.path}\n" for member in sorted(members))
    control = CONTROL.format(version=version, maintainer=maintainer, size_kib=size_kib, depends=depends(program))
    parts = [archives.text("debian-binary", "2.0\n"),
             archives.Member("control.tar.xz", archives.make_xz(archives.make_tar([archives.text("control", control), archives.text("md5sums", sums)], epoch)), False),
             archives.Member("data.tar.xz", archives.make_xz(archives.make_tar(members, epoch)), False)]
    return f"lacuna_{version}_amd64.deb", archives.make_ar(parts, epoch)
