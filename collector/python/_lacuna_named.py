"""Loaders of others, by name: DALI, FFCV, WebDataset, HF datasets, tf.data.

A name is told when the training takes a batch from such a loader, not when it is imported.
"""
import functools

import _lacuna
import _lacuna_loader
from _lacuna_loader import here

push_loader, pop, setting = _lacuna.push_loader, _lacuna.pop, _lacuna.setting


def _waits(name):
    """Whether what is asked for now is waited for by itself: not inside a batch that PyTorch's loader makes, nor inside another."""
    if here.in_named or here.in_fetch or here.batch >= 0 or here.worker >= 0:
        return False
    if name not in _lacuna_loader.named:
        _lacuna_loader.named.append(name)
        setting(f"loader={name}")
    return True


def _patch_next(kind, name):
    original = kind.__next__

    @functools.wraps(original)
    def __next__(self):
        if not _waits(name):
            return original(self)
        here.in_named = True
        push_loader("loader.wait", -1, -1)
        try:
            return original(self)
        finally:
            pop()
            here.in_named = False

    kind.__next__ = __next__


def dali(module):
    for name in ("DALIGenericIterator", "DALIClassificationIterator"):
        kind = getattr(module, name, None)
        if kind is not None and "__next__" in kind.__dict__:
            _patch_next(kind, "DALI")


def ffcv(module):
    _patch_next(module.EpochIterator, "FFCV")


def tf_data(module):
    _patch_next(module.OwnedIterator, "tf.data")


# ---- WebDataset: a pipeline is an iterable data set of PyTorch's loader, or is iterated by itself

def webdataset(module):
    kind = module.DataPipeline
    original = kind.__iter__

    @functools.wraps(original)
    def __iter__(self):
        items = original(self)
        first = self.pipeline[0] if getattr(self, "pipeline", None) else None
        if any(each.__name__ == "DataLoader" for each in type(first).__mro__):  # WebLoader: PyTorch's is seen by itself
            return items
        return _waited(items)

    kind.__iter__ = __iter__


def _waited(items):
    items = iter(items)
    while True:
        if here.worker >= 0 or here.in_fetch:
            _tell_library("WebDataset")
        is_own = _waits("WebDataset")
        if is_own:
            here.in_named = True
            push_loader("loader.wait", -1, -1)
        try:
            item = next(items)
        except StopIteration:
            return
        finally:
            if is_own:
                pop()
                here.in_named = False
        yield item


# ---- HF datasets: rows of an Arrow table, then their format; decoding of images and sound is part of that

_libraries = set()


def _tell_library(name):
    if name not in _libraries:
        _libraries.add(name)
        setting(f"dataset_library={name}")


def hf_datasets(module):
    _lacuna_loader.in_part(module, "query_table", "loader.read")
    _lacuna_loader.in_part(module, "format_table", "loader.decode")
    original = module.Dataset._getitem

    @functools.wraps(original)
    def _getitem(self, *args, **kwargs):
        if here.batch >= 0:
            _tell_library("HF datasets")
            module.Dataset._getitem = original
        return original(self, *args, **kwargs)

    module.Dataset._getitem = _getitem
