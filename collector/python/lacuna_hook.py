"""The patches: ranges of the loader vocabulary in training and worker processes, and what the job's settings are.

Each patch is applied once its module has run, is guarded by itself, and keeps the patched object's
name, so that it pickles by reference. Names inside PyTorch move between versions: what is not there
is not patched, and "hook.missing=..." says so in the recording.
"""
import builtins
import functools
import io
import os
import sys
import threading
import time
import weakref

import _lacuna

push, pop, push_loader, setting, count_step = _lacuna.push, _lacuna.pop, _lacuna.push_loader, _lacuna.setting, _lacuna.step
value = _lacuna.value

# Of this process when it is a worker; the index queue tells which batch is being made.
_worker = -1
_batch = -1

_loader_known = False
_stepping = None
_settings_seen = False

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
        global _loader_known
        _loader_known = True
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
    sampler = getattr(loader, "sampler", None)
    if sampler is not None:
        setting(f"sampler={type(sampler).__name__}")
    setting(f"collate_fn={getattr(getattr(loader, 'collate_fn', None), '__qualname__', '?')}")


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
            _watch_files()
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
                if not _items_on:
                    kind.__getitem__ = original  # a call less for every item to come

    __getitem__._lacuna = True
    kind.__getitem__ = __getitem__


# ---- files, in workers alone

class _File(io.FileIO):
    """What reads for an ordinary binary file object; each read that reaches the system is a range with its bytes."""

    def readinto(self, buffer):
        if _batch < 0 or not _items_on:
            return super().readinto(buffer)
        push_loader("loader.read", _batch, _worker)
        try:
            count = super().readinto(buffer)
            value(count or 0)
            return count
        finally:
            pop()

    def readall(self):
        if _batch < 0 or not _items_on:
            return super().readall()
        push_loader("loader.read", _batch, _worker)
        try:
            data = super().readall()
            value(len(data or b""))
            return data
        finally:
            pop()


def _watch_files():
    """Opening and reading of files inside batches. Only plain binary reading goes through us: the rest is left as it is."""
    original = builtins.open

    @functools.wraps(original)
    def open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        if _batch < 0 or not _items_on or not isinstance(file, (str, bytes, os.PathLike)):
            return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
        push_loader("loader.read", _batch, _worker)
        try:
            if mode == "rb" and buffering == -1 and opener is None:
                raw = _File(file, "rb")
                return io.BufferedReader(raw, max(getattr(raw, "_blksize", 0), io.DEFAULT_BUFFER_SIZE))
            return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
        finally:
            pop()

    builtins.open = open_file


# ---- what a batch spends its time on

def _compose(module):
    original = module.Compose.__call__

    @functools.wraps(original)
    def __call__(self, image):
        if not _items_on or _batch < 0:
            return original(self, image)
        inside = getattr(_inside, "forward", False)
        _inside.forward = True  # transforms are modules, too: once is enough
        try:
            for transform in self.transforms:
                push_loader(f"loader.transform {type(transform).__name__}", _batch, _worker)
                try:
                    image = transform(image)
                finally:
                    pop()
        finally:
            _inside.forward = inside
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


def _after_first_step():
    """By now the script has made all its settings."""
    global _settings_seen
    if not _settings_seen:
        _settings_seen = True
        try:
            import lacuna_settings
            lacuna_settings.collect(setting)
        except Exception:
            setting("hook.missing=settings")


def _patch_step(kind):
    original = kind.step
    if getattr(original, "_lacuna", False):
        return
    name = f"Optimizer.step#{kind.__name__}.step"

    @functools.wraps(original)
    def step(*args, **kwargs):
        global _stepping
        if _position is not None:
            _position.end_of_head()
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
                _after_first_step()
                _head_begins(sys._getframe(1))

    step._lacuna = True
    kind.step = step


# ---- forward: the outermost call of a module

_inside = threading.local()
# Modules that only call others: their parts are what is worth a name.
_CONTAINERS = frozenset(("Compose", "RandomOrder", "RandomApply", "RandomChoice"))
_module_call = None  # of torch.nn.Module, before it was wrapped


def _module(module):
    global _module_call
    kind = module.Module
    _module_call = kind.__call__

    def __call__(self, *args, **kwargs):
        # inner modules, the most of them, pay for one look-up
        if getattr(_inside, "forward", False):
            return _module_call(self, *args, **kwargs)
        if _batch >= 0:
            return _call_transform(self, args, kwargs)
        _inside.forward = True
        if _position is not None:
            _position.end_of_head()
        push("forward")
        try:
            return _module_call(self, *args, **kwargs)
        finally:
            pop()
            _inside.forward = False

    kind.__call__ = __call__


def _call_transform(module, args, kwargs):
    """A module that is called while a batch is made is a transform."""
    name = type(module).__name__
    if not _items_on or name in _CONTAINERS:
        return _module_call(module, *args, **kwargs)
    _inside.forward = True
    push_loader(f"loader.transform {name}", _batch, _worker)
    try:
        return _module_call(module, *args, **kwargs)
    finally:
        pop()
        _inside.forward = False


def _leave_modules(why):
    """A compiler reads Module.__call__ and must find what PyTorch put there."""
    global _module_call
    torch = sys.modules.get("torch")
    if _module_call is not None and torch is not None:
        torch.nn.Module.__call__ = _module_call
        setting(f"forward_ranges=off ({why})")


def _compile(module):
    original = getattr(module, "compile", None)
    if original is None:  # before 2.0
        return

    @functools.wraps(original)
    def compile(*args, **kwargs):
        _leave_modules("torch.compile")
        setting("compile=True")
        mode = kwargs.get("mode")
        if mode is not None:
            setting(f"compile_mode={mode}")
        return original(*args, **kwargs)

    module.compile = compile


def _dynamo(module):
    original = module.optimize

    @functools.wraps(original)
    def optimize(*args, **kwargs):
        _leave_modules("torch.compile")
        return original(*args, **kwargs)

    module.optimize = optimize


# ---- another profiler, explicitly used: the GPU is its own as long as it runs

def _profiler(module):
    kind = getattr(module, "_KinetoProfile", None) or module.profile
    _before(kind, "prepare_trace" if hasattr(kind, "prepare_trace") else "start", lambda: _lacuna.gpu_yield(1, "torch.profiler"))
    _after(kind, "stop_trace" if hasattr(kind, "stop_trace") else "stop", lambda: _lacuna.gpu_yield(0, "torch.profiler"))
    _note_export(kind)


def _autograd_profiler(module):
    _before(module.profile, "__enter__", lambda: _lacuna.gpu_yield(1, "torch.autograd.profiler"))
    _after(module.profile, "__exit__", lambda: _lacuna.gpu_yield(0, "torch.autograd.profiler"))
    _note_export(module.profile)


_exports = 0
_exporting = threading.local()


def _note_export(kind):
    """Where it writes its trace: the launcher adds that to the recording, so that what we left to it is not lost."""
    original = kind.export_chrome_trace

    @functools.wraps(original)
    def export_chrome_trace(self, path, *args, **kwargs):
        if getattr(_exporting, "inside", False):  # torch.profiler calls torch.autograd's
            return original(self, path, *args, **kwargs)
        _exporting.inside = True
        try:
            return original(self, path, *args, **kwargs)
        finally:
            _exporting.inside = False
            try:
                _leave_note(os.path.abspath(os.fspath(path)))
            except Exception:
                pass

    kind.export_chrome_trace = export_chrome_trace


def _leave_note(path):
    global _exports
    note = os.path.join(os.environ["LACUNA_SPOOL"], f"torch-profiler-{os.getpid()}-{_exports}.path")
    with open(note + ".new", "w") as file:
        file.write(path)
    os.rename(note + ".new", note)
    _exports += 1


def _before(holder, attribute, action):
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        action()
        return original(*args, **kwargs)

    setattr(holder, attribute, wrapper)


def _after(holder, attribute, action):
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        finally:
            action()

    setattr(holder, attribute, wrapper)


# ---- loaders of others, by name

def _named_loader(kind, name):
    """The wait of an iterator that is none of PyTorch's."""
    import lacuna_position
    lacuna_position.patch_next(kind)
    _LOADERS.append(kind)
    setting(f"loader={name}")


# Classes whose instances are loaders that are recorded; one of PyTorch's is known once it gave a batch.
_LOADERS = []
_position = None  # lacuna_position, once a step has ended


def _head_begins(frame):
    """Behind a step the training thread waits for its next batch: in a loader that we know, or in what?"""
    global _position
    if _position is None:
        import lacuna_position
        _position = lacuna_position
        if _loader_known or _LOADERS:
            _position.known()
    if not _position.is_decided or _position._generator is not None:
        _position.step_ended(frame)


def _dali(module):
    for name in ("DALIGenericIterator", "DALIClassificationIterator"):
        kind = getattr(module, name, None)
        if kind is not None and "__next__" in kind.__dict__:
            _named_loader(kind, "DALI")


def _ffcv(module):
    _named_loader(module.EpochIterator, "FFCV")


def _tensor(module):
    original = module.Tensor.backward

    @functools.wraps(original)
    def backward(*args, **kwargs):
        if _position is not None:
            _position.end_of_head()
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
    "torch": (_compile,),
    "torch.nn.modules.module": (_module,),
    "torch._dynamo.eval_frame": (_dynamo,),
    "torch.profiler.profiler": (_profiler,),
    "torch.autograd.profiler": (_autograd_profiler,),
    "nvidia.dali.plugin.pytorch": (_dali,),
    "ffcv.loader.epoch_iterator": (_ffcv,),
}

_watch_collections()
