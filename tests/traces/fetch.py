#!/usr/bin/env python3
"""`make traces`: fetches the real traces of list.tsv, for the tests that read some, into build/traces.

A file is taken only when its SHA-256 is that of the list, and is not fetched again once it is there. What is true of
each trace (truth.json, counted in the plainest way, none of the program's code) is laid beside them.

usage: fetch.py [--to DIR] [--from URL] [--list FILE]
"""
import argparse
import hashlib
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIZE_MAX = 64 << 20
TIMEOUT_S = 60


class Refused(Exception):
    """A file that cannot be had, or is not the one of the list."""


def entries(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def fetch(url, path, sha256):
    """The whole file or none: it has another name until it is checked."""
    part = path + ".part"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    size = 0
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply, open(part, "wb") as file:
            while piece := reply.read(1 << 16):
                size += len(piece)
                if size > SIZE_MAX:
                    raise Refused(f"more than {SIZE_MAX >> 20} MiB")
                file.write(piece)
        if digest_of(part) != sha256:
            raise Refused(f"its SHA-256 is not {sha256}: not the file of the list")
        os.replace(part, path)
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code} {error.reason}") from None
    finally:
        if os.path.exists(part):
            os.unlink(part)


def lay_truth(folder, names):
    """Of the traces that are there: what is true of hta/x.json.gz is called hta__x.json, of an archive's member hta__x__member.json."""
    stems = tuple(name.replace("/", "__").removesuffix(".gz").removesuffix(ending) + joint
                  for name in names for ending in (os.path.splitext(name.removesuffix(".gz"))[1],) for joint in (".", "__"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(HERE, "truth.json"), encoding="utf-8") as file:
        for name, truth in json.load(file).items():
            if name.startswith(stems):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    json.dump(truth, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", default=os.path.join(ROOT, "build", "traces"))
    parser.add_argument("--from", dest="base", default="https://raw.githubusercontent.com")
    parser.add_argument("--list", default=os.path.join(HERE, "list.tsv"))
    args = parser.parse_args()
    have = fetched = missing = 0
    names = []
    for name, repository, commit, source, sha256 in entries(args.list):
        path = os.path.join(args.to, name)
        if os.path.exists(path) and digest_of(path) == sha256:
            have += 1
            names.append(name)
            continue
        url = f"{args.base}/{repository}/{commit}/{urllib.parse.quote(source)}"
        try:
            fetch(url, path, sha256)
            fetched += 1
            names.append(name)
        except Refused as error:
            missing += 1
            print(f"{name}: {url}: {error}", file=sys.stderr)
        except OSError as error:  # no network: the others would not come either
            sys.exit(f"traces: {url}: {getattr(error, 'reason', error)}")
    lay_truth(os.path.join(args.to, "truth"), names)
    print(f"{args.to}: {fetched} fetched, {have} there already, {missing} not to be had")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
