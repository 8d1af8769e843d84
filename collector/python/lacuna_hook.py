"""The patches: ranges of the loader vocabulary in training and worker processes, and what the job's settings are.

Each patch is applied once its module has run, is guarded by itself, and keeps the patched object's
name, so that it pickles by reference. Names inside PyTorch move between versions: what is not there
is not patched, and "hook.missing=..." says so in the recording.
"""
import functools
import os
import sys
import time
import weakref

import _lacuna

push, pop, push_loader, setting, count_step = _lacuna.push, _lacuna.pop, _lacuna.push_loader, _lacuna.setting, _lacuna.step

# Of this process when it is a worker; the index queue tells which batch is being made.
_worker = -1
_batch = -1

_stepping = None

# Ranges of single items stop when items are so quick that recording them would be felt.
_ITEM_NS_MIN = 20_000
_item_count = 0
_item_ns = 0
_items_on = True


def patch(name, module):
    """Apply what there is for module `name`."""
    for function in _PATCHES.get(name, ()):
        try:
            function(module)
        except Exception:
            setting(f"hook.missing={name}.{function.__name__}")


def _wrap_range(holder, attribute, range_name):
    """Replace holder.attribute by itself inside a range."""
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        push_loader(range_name, _batch, _worker)
        try:
            return original(*args, **kwargs)
        finally:
            pop()

    setattr(holder, attribute, wrapper)


# ---- the training process

def _user_line():
    """file:line of the nearest frame that is neither ours nor of a library."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if "site-packages" not in path and "dist-packages" not in path and not path.startswith("<") \
                and os.path.dirname(path) != os.path.dirname(__file__):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _dataloader(module):
    base = module._BaseDataLoaderIter
    original_next = base.__next__

    @functools.wraps(original_next)
    def __next__(self):
        push_loader("loader.wait", getattr(self, "_num_yielded", -1), -1)
        try:
            return original_next(self)
        finally:
            pop()

    base.__next__ = __next__

    original_init = module.DataLoader.__init__

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            _loader_settings(self)
        except Exception:
            pass

    module.DataLoader.__init__ = __init__


def _loader_settings(loader):
    line = _user_line()
    if line:
        setting(f"loader_at={line}")
    for name in ("batch_size", "num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "drop_last", "in_order"):
        if hasattr(loader, name):
            setting(f"{name}={getattr(loader, name)}")
    context = getattr(loader, "multiprocessing_context", None)
    if context is not None:
        setting(f"start_method={context.get_start_method()}")
    setting(f"dataset={type(loader.dataset).__name__}")
    torch = sys.modules.get("torch")
    if torch is not None:
        setting(f"torch_version={torch.__version__}")
        setting(f"torch_num_threads={torch.get_num_threads()}")
        setting(f"float32_matmul_precision={torch.get_float32_matmul_precision()}")
        setting(f"cudnn_benchmark={torch.backends.cudnn.benchmark}")


def _pin_memory(module):
    _wrap_range(module, "pin_memory", "loader.pin")


# ---- workers

class _IndexQueue:
    """The worker's index queue; remembers which batch it gave out."""

    def __init__(self, queue):
        self._queue = queue

    def get(self, *args, **kwargs):
        global _batch
        item = self._queue.get(*args, **kwargs)
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], int):
            _batch = item[0]
        return item

    def __getattr__(self, name):
        return getattr(self._queue, name)


class _DataQueue:
    """The queue of finished batches: handing one over is a range."""

    def __init__(self, queue):
        self._queue = queue

    def put(self, *args, **kwargs):
        push_loader("loader.put", _batch, _worker)
        try:
            return self._queue.put(*args, **kwargs)
        finally:
            pop()

    def __getattr__(self, name):
        return getattr(self._queue, name)


def _worker_loop(module):
    original = module._worker_loop
    names = original.__code__.co_varnames[:original.__code__.co_argcount]
    index_queue, data_queue, worker_id = names.index("index_queue"), names.index("data_queue"), names.index("worker_id")

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        global _worker
        if len(args) > worker_id:
            args = list(args)
            _worker = args[worker_id]
            args[index_queue] = _IndexQueue(args[index_queue])
            args[data_queue] = _DataQueue(args[data_queue])
        return original(*args, **kwargs)

    module._worker_loop = wrapper


def _fetch(module):
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _patch_fetcher(getattr(module, name))


def _patch_fetcher(fetcher):
    original_fetch, original_init = fetcher.fetch, fetcher.__init__
    fetched = [0]

    @functools.wraps(original_fetch)
    def fetch(self, possibly_batched_index):
        global _batch
        if _worker < 0:
            _batch = fetched[0]
            fetched[0] += 1
        push_loader("loader.fetch", _batch, _worker)
        try:
            return original_fetch(self, possibly_batched_index)
        finally:
            pop()
            if _worker < 0:
                _batch = -1

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            _patch_dataset(type(self.dataset))
            collate = self.collate_fn

            def collate_fn(batch):
                push_loader("loader.collate", _batch, _worker)
                try:
                    return collate(batch)
                finally:
                    pop()

            self.collate_fn = collate_fn
        except Exception:
            pass

    fetcher.fetch, fetcher.__init__ = fetch, __init__


def _patch_dataset(kind):
    """Single items of map-style data sets, while they are slow enough for it not to matter."""
    original = kind.__dict__.get("__getitem__")
    if original is None or getattr(original, "_lacuna", False):
        return

    @functools.wraps(original)
    def __getitem__(self, index):
        global _item_count, _item_ns, _items_on
        if not _items_on or _batch < 0:
            return original(self, index)
        start = time.perf_counter_ns()
        push_loader("loader.item", _batch, _worker)
        try:
            return original(self, index)
        finally:
            pop()
            _item_count += 1
            _item_ns += time.perf_counter_ns() - start
            if _item_count == 256:
                _items_on = _item_ns >= 256 * _ITEM_NS_MIN
                _item_count = _item_ns = 0

    __getitem__._lacuna = True
    kind.__getitem__ = __getitem__


# ---- what a batch spends its time on

def _compose(module):
    original = module.Compose.__call__

    @functools.wraps(original)
    def __call__(self, image):
        if not _items_on or _batch < 0:
            return original(self, image)
        for transform in self.transforms:
            push_loader(f"loader.transform {type(transform).__name__}", _batch, _worker)
            try:
                image = transform(image)
            finally:
                pop()
        return image

    module.Compose.__call__ = __call__


def _pil(module):
    _in_batch_range(module, "open", "loader.read")
    load = module.Image.load

    @functools.wraps(load)
    def loader(self):
        return load(self)

    module.Image.load = loader
    # decoding happens in ImageFile.load, which PIL.ImageFile defines once it is imported
    image_file = sys.modules.get("PIL.ImageFile")
    if image_file is not None:
        _in_batch_range(image_file.ImageFile, "load", "loader.decode")
    else:
        _LATE.append(("PIL.ImageFile", lambda late: _in_batch_range(late.ImageFile, "load", "loader.decode")))


def _in_batch_range(holder, attribute, range_name):
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        _apply_late()
        if not _items_on or _batch < 0:
            return original(*args, **kwargs)
        push_loader(range_name, _batch, _worker)
        try:
            return original(*args, **kwargs)
        finally:
            pop()

    setattr(holder, attribute, wrapper)


_LATE = []


def _apply_late():
    """Patches whose module was not imported yet when its package was."""
    while _LATE and _LATE[-1][0] in sys.modules:
        name, function = _LATE.pop()
        try:
            function(sys.modules[name])
        except Exception:
            setting(f"hook.missing={name}")


def _torchvision_io(module):
    for name, range_name in (("read_file", "loader.read"), ("decode_jpeg", "loader.decode"),
                             ("decode_image", "loader.decode"), ("decode_png", "loader.decode")):
        if hasattr(module, name):
            _in_batch_range(module, name, range_name)


# ---- the step

def _optimizer(module):
    original_init = module.Optimizer.__init__

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            _patch_step(type(self))
            for name in ("foreach", "fused", "capturable"):
                if name in self.defaults:
                    setting(f"optimizer_{name}={self.defaults[name]}")
            setting(f"optimizer={type(self).__name__}")
        except Exception:
            pass

    module.Optimizer.__init__ = __init__


def _patch_step(kind):
    original = kind.step
    if getattr(original, "_lacuna", False):
        return
    name = f"Optimizer.step#{kind.__name__}.step"

    @functools.wraps(original)
    def step(*args, **kwargs):
        global _stepping
        push(name)
        try:
            return original(*args, **kwargs)
        finally:
            pop()
            # several optimizers make one step of training: the first one that steps counts
            if args and (_stepping is None or _stepping() is None):
                _stepping = weakref.ref(args[0])
            if args and _stepping() is args[0]:
                count_step()

    step._lacuna = True
    kind.step = step


def _tensor(module):
    original = module.Tensor.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        push("backward")
        try:
            return original(*args, **kwargs)
        finally:
            pop()

    module.Tensor.backward = backward


def _watch_collections():
    import gc

    def on_collection(phase, info):
        # the young generations are too quick and too many to matter
        if info.get("generation") == 2:
            if phase == "start":
                push("gc")
            else:
                pop()

    gc.callbacks.append(on_collection)


_PATCHES = {
    "torch.utils.data.dataloader": (_dataloader,),
    "torch.utils.data._utils.worker": (_worker_loop,),
    "torch.utils.data._utils.fetch": (_fetch,),
    "torch.utils.data._utils.pin_memory": (_pin_memory,),
    "torch.optim.optimizer": (_optimizer,),
    "torch._tensor": (_tensor,),
    "torchvision.transforms.transforms": (_compose,),
    "torchvision.io.image": (_torchvision_io,),
    "PIL.Image": (_pil,),
}

_watch_collections()
