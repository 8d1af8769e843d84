"""The wheel: the whole program in a package, so that `python -m lacuna` and the script `lacuna` are it."""
import os

import archives

TAG = "py3-none-manylinux2014_x86_64"
METADATA = """\
Metadata-Version: 2.1
Name: lacuna
Version: {version}
Summary: Find out why a GPU training job is slow, and what to change
License: Apache-2.0
Keywords: GPU,profiler,PyTorch,CUDA,DataLoader
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Requires-Python: >=3.6
Description-Content-Type: text/markdown

# Lacuna

Why is my GPU idle, and what do I change? One program records a training job as it is, finds what its GPU waits for, and says which change gains how much.

    lacuna demo                        # a simulated job: its verdict, and the page, in seconds
    lacuna doctor                      # checks this host
    lacuna run -o run1 -- python train.py
    lacuna analyze run1                # the verdict in the terminal; or: lacuna import run1; lacuna serve

    import lacuna                      # in a script: ranges; in a notebook: traces, in SQL, pandas, Polars or Arrow
    with lacuna.annotate("checkpoint"): ...
    lacuna.open("run1").analyze().verdict.text

It reads traces of PyTorch's profiler, TensorFlow and Nsight Systems, too. The program is in this package, with the page and the collector inside it; it needs nothing else.
"""


SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "lacuna")


def make(version, program, library, main_module, license_text, third_party, sbom, epoch):
    """(file name, bytes): the program, the library beside it, and the module that runs it."""
    info = f"lacuna-{version}.dist-info"
    members = [
        *(archives.file(f"lacuna/{name}", os.path.join(SOURCES, name)) for name in sorted(os.listdir(SOURCES)) if name.endswith((".py", ".typed"))),
        archives.file("lacuna/__main__.py", main_module),
        archives.file("lacuna/bin/lacuna", program, is_program=True),
        archives.file("lacuna/bin/libisal.so.2", library, is_program=True),
        archives.text(f"{info}/METADATA", METADATA.format(version=version)),
        archives.text(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: lacuna\nRoot-Is-Purelib: false\nTag: {TAG}\n"),
        archives.text(f"{info}/entry_points.txt", "[console_scripts]\nlacuna = lacuna.__main__:main\n"),
        archives.text(f"{info}/licenses/LICENSE", license_text),
        archives.text(f"{info}/licenses/THIRD-PARTY", third_party),
        archives.text(f"{info}/sboms/lacuna.spdx.json", sbom),
    ]
    record = f"{info}/RECORD"
    rows = [f"{member.path},{archives.record_hash(member.content)},{len(member.content)}\n" for member in members]
    members.append(archives.text(record, "".join(rows) + f"{record},,\n"))
    return f"lacuna-{version}-{TAG}.whl", archives.make_zip(members, epoch)
