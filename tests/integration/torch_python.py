"""The Python whose PyTorch the tests use, and whether it has one."""
import os
import subprocess

TORCH_PYTHON = "/usr/bin/python3"


def has_torch():
    """Looks for it, and does not import it, which takes 2 s: one that is there but broken fails the tests that use it."""
    if not os.access(TORCH_PYTHON, os.X_OK):
        return False
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return subprocess.run([TORCH_PYTHON, "-c", look], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
