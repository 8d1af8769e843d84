"""Archives that are the same, byte for byte, whenever and wherever they are made of the same files."""
import base64
import collections
import gzip
import hashlib
import io
import lzma
import tarfile
import time
import zipfile

# a file in an archive: its path there, its bytes, whether it is a program
Member = collections.namedtuple("Member", "path content is_program")


def text(path, content):
    return Member(path, content.encode(), False)


def file(path, source, is_program=False):
    with open(source, "rb") as opened:
        return Member(path, opened.read(), is_program)


def mode(member):
    return 0o755 if member.is_program else 0o644


def folders(members):
    """Every folder on the way to a member, from the top."""
    found = set()
    for member in members:
        parts = member.path.split("/")[:-1]
        found.update("/".join(parts[:depth + 1]) for depth in range(len(parts)))
    return sorted(found)


def make_tar(members, epoch):
    """A tar of members and their folders, owned by root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        rows = [(path, None) for path in folders(members)] + [(member.path, member) for member in members]
        for path, member in sorted(rows, key=lambda row: row[0]):
            row = tarfile.TarInfo("./" + path)
            row.mtime, row.uname, row.gname = epoch, "root", "root"
            if member is None:
                row.type, row.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(row)
            else:
                row.size, row.mode = len(member.content), mode(member)
                tar.addfile(row, io.BytesIO(member.content))
    return out.getvalue()


def make_gz(content):
    return gzip.compress(content, compresslevel=9, mtime=0)


def make_xz(content):
    return lzma.compress(content, preset=6)


def make_zip(members, epoch):
    out = io.BytesIO()
    stamp = time.gmtime(max(epoch, 315532800))[:6]  # a zip knows no time before 1980
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member in members:
            row = zipfile.ZipInfo(member.path, stamp)
            row.create_system, row.external_attr, row.compress_type = 3, (0o100000 | mode(member)) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(row, member.content)
    return out.getvalue()


def make_ar(members, epoch):
    """As dpkg-deb writes it: plain names, root's."""
    out = [b"!<arch>\n"]
    for member in members:
        out.append(f"{member.path:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(member.content):<10}`\n".encode())
        out.append(member.content + b"\n" * (len(member.content) % 2))
    return b"".join(out)


def record_hash(content):
    """A checksum as a wheel's RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
