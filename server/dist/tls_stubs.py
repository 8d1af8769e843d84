#!/usr/bin/env python3
"""C source, on stdout, of the TLS functions that an archive of libmicrohttpd asks for.

The archive is built with TLS, and Lacuna serves plain HTTP: on the loopback address, or behind a proxy that has the certificate. So the
distributed program does without GnuTLS and the nine libraries behind it: its global start does nothing, and everything else answers
with an error. usage: tls_stubs.py ARCHIVE
"""
import re
import subprocess
import sys


def main():
    table = subprocess.run(["nm", "-u", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    print("/* made by server/dist/tls_stubs.py */")
    for name in sorted(set(re.findall(r"\bgnutls_\w+", table))):
        result = 0 if name in ("gnutls_global_init", "gnutls_global_deinit") else -1
        print(f"long {name}(void);\nlong {name}(void)\n{{\n    return {result};\n}}")


if __name__ == "__main__":
    main()
