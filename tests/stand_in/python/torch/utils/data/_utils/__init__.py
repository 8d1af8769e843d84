from . import fetch, pin_memory, worker

__all__ = ["fetch", "pin_memory", "worker"]
