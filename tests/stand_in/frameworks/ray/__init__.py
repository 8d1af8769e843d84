"""A stand-in, not Ray: see ../README.md."""
import importlib

importlib.import_module("ray._private.worker")
