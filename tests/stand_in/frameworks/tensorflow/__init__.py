from .python.data.ops.iterator_ops import OwnedIterator

__all__ = ["OwnedIterator"]
