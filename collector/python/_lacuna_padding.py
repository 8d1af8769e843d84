"""How much of a batch is padding: counted where the batch is made, from its mask or from the lengths of its rows.

Only plain tensors (or arrays) in the processor's memory are looked at: counting must never wait for a device. It computes for at most a
five-hundredth of the time; when counting would take more, batches in between are not counted. The first count of a process is free: what
it makes ready once may take longer than all that follow.
"""
import functools
import sys
import time

import _lacuna

TIME_SHARE = 500
BATCHES_WITHOUT = 64  # after this many batches without a mask, stop looking for one

# What names a mask, and what its true elements are.
MASKS = (("attention_mask", "token"), ("padding_mask", "padding"), ("key_padding_mask", "padding"), ("src_key_padding_mask", "padding"))
IDS = ("input_ids", "tokens", "ids")
LENGTHS = ("lengths", "length")


class _Spent:
    since_ns = 0  # the first look; 0: none yet
    ns = 0        # of computing, without the first count: waiting for a core costs the job nothing
    without = 0   # batches that had nothing to count; -1: one had


def look(batch, number, worker):
    """Record the positions of a batch and how many of them are padding, as numbers of two ranges."""
    if _Spent.without >= BATCHES_WITHOUT:
        _lacuna.loader_calls("collated", None)
        return
    now = time.perf_counter_ns()
    if _Spent.since_ns == 0:
        _Spent.since_ns = now
    if _Spent.ns * TIME_SHARE > now - _Spent.since_ns:
        return
    start = _lacuna.cpu_ns()
    is_first = False
    try:
        count = _counter_of(batch)
        if count is not None:
            is_first, _Spent.without = _Spent.without >= 0, -1
            _record(count, number, worker)
        elif _Spent.without >= 0:
            _Spent.without += 1
    except Exception:
        _Spent.without = BATCHES_WITHOUT
    if not is_first:
        _Spent.ns += _lacuna.cpu_ns() - start


def _record(count, number, worker):
    _lacuna.push_loader("loader.tokens", number, worker)
    try:
        positions, padding = count()
        if 0 <= padding <= positions:
            _lacuna.value(positions)
            _lacuna.push_loader("loader.padding", number, worker)
            _lacuna.value(padding)
            _lacuna.pop()
    finally:
        _lacuna.pop()


def _counter_of(batch):
    """What counts (positions, padding) of a batch; None: nothing in it does. Batches are dictionaries, objects with such
    attributes, or tuples of them."""
    for part in batch[:4] if isinstance(batch, (tuple, list)) and not hasattr(batch, "_fields") else (batch,):
        get = _getter_of(part)
        if get is not None:
            count = _by_mask(get) or _by_lengths(get)
            if count is not None:
                return count
    return None


def _getter_of(part):
    if isinstance(part, (str, bytes)) or _is_plain(part):
        return None
    if hasattr(part, "keys") and hasattr(part, "__getitem__"):
        return lambda name: part[name] if name in part else None
    if hasattr(part, "_fields"):
        return lambda name: getattr(part, name, None)
    inside = getattr(part, "__dict__", None)
    return inside.get if inside else None


def _is_plain(array):
    """A tensor in the processor's memory, of no subclass that may do anything; or an array."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and type(array) is torch.Tensor:
        return array.device.type == "cpu" and array.layout is torch.strided and not getattr(array, "is_nested", False)
    return numpy is not None and type(array) is numpy.ndarray


def _is_whole(array):
    """Whether its elements are truth values or whole numbers: others may be weights, or minus infinity."""
    kind = str(array.dtype)
    return "bool" in kind or "int" in kind


def _shape_of_ids(get):
    for name in IDS:
        ids = get(name)
        if _is_plain(ids) and len(ids.shape) >= 2:
            return tuple(ids.shape)
    return None


def _by_mask(get):
    ids = _shape_of_ids(get)
    for name, true_is in MASKS:
        mask = get(name)
        if not _is_plain(mask) or not _is_whole(mask) or (true_is == "padding" and "bool" not in str(mask.dtype)):
            continue
        if tuple(mask.shape) == ids or (ids is None and len(mask.shape) == 2):  # other shapes say who attends to whom
            return functools.partial(_count_mask, mask, true_is == "padding")
    return None


def _count_mask(mask, is_padding):
    positions, true = _elements(mask), _nonzero(mask)
    return positions, true if is_padding else positions - true


def _by_lengths(get):
    ids = _shape_of_ids(get)
    for name in LENGTHS if ids is not None and len(ids) == 2 else ():
        lengths = get(name)
        if _is_plain(lengths) and _is_whole(lengths) and tuple(lengths.shape) == ids[:1]:
            return functools.partial(_count_lengths, lengths, ids)
    return None


def _count_lengths(lengths, ids):
    positions = ids[0] * ids[1]
    is_sane = 0 <= int(lengths.min()) and int(lengths.max()) <= ids[1]
    return positions, positions - int(lengths.sum()) if is_sane else -1


def _elements(array):
    return int(array.numel()) if hasattr(array, "numel") else int(array.size)


def _nonzero(array):
    return int(array.count_nonzero()) if hasattr(array, "count_nonzero") else int((array != 0).sum())
