from . import profiler

__all__ = ["profiler"]
__version__ = "0.99.0"
