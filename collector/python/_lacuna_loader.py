"""The patches of PyTorch's data loader: waits in the training process, batches and their parts where they are made.

Batches are made in worker processes, in worker threads, or in the training process while it waits. `here` (here.c) knows which
batch each thread is making. What is called for every batch is a patch of one line here, and one function of batches.c.
"""
import atexit
import builtins
import functools
import io
import os
import sys
import threading
import time

import _lacuna
import _lacuna_padding

push_loader, pop, value, setting = _lacuna.push_loader, _lacuna.pop, _lacuna.value, _lacuna.setting
here = _lacuna.here
_lacuna.loader_begin(getattr)

is_known = False  # a loader of PyTorch gave a batch
named = []        # loaders of others that did

# Parts of batches are no longer recorded when they are so quick that recording them would slow the job.
ITEM_NS_MIN = 75_000   # mean of ITEMS_WEIGHED items, the first aside
ITEMS_WEIGHED = 256
RANGE_NS = 2_250 + _lacuna.cpu_clock_ns()  # what a range costs a job whose own data fill the caches: it reads the CPU clock once, or little more
COST_SHARE = 30        # of the time of FETCHES_WEIGHED batches: one in so many
FETCHES_WEIGHED = 16


class _Rate:
    on = True
    items = 0
    items_ns = 0
    ranges = 0
    fetches = 0
    fetches_ns = 0


_patched_data = []  # (class, its own __getitem__)


def parts_are_on():
    """Whether a part of a batch that begins now is recorded."""
    return _Rate.on and here.batch >= 0


def _parts_off():
    """Permanent: what is quick stays quick, and asking again costs time in each call."""
    _Rate.on = False
    _lacuna.loader_calls("fetched", None)
    while _patched_data:
        kind, original = _patched_data.pop()
        kind.__getitem__ = original


def _core_wait_ns():
    """How long this thread has waited for a core so far; 0 where the system does not say."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(file, 100).split()[1])
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return 0


class _Window:
    """The items that are weighed together, since the first of them ended."""

    thread = 0
    since_ns = 0
    waited_ns = 0

    @classmethod
    def begin(cls):
        cls.thread, cls.since_ns, cls.waited_ns = threading.get_ident(), time.perf_counter_ns(), _core_wait_ns()

    @classmethod
    def share_waited(cls):
        """Of its time, what went by without a core: a busy machine makes quick items no slower. 0: other threads made some."""
        if cls.thread != threading.get_ident():
            return 0.0
        return min((_core_wait_ns() - cls.waited_ns) / max(time.perf_counter_ns() - cls.since_ns, 1), 1.0)


def _weigh_items(took_ns):
    _Rate.items += 1
    if _Rate.items == 1:  # it may have waited, or made ready what the others use: it begins the window and does not count
        _Window.begin()
        return
    _Rate.items_ns += took_ns
    if _Rate.items == ITEMS_WEIGHED:
        if _Rate.items_ns * (1.0 - _Window.share_waited()) < (ITEMS_WEIGHED - 1) * ITEM_NS_MIN:
            _parts_off()
        _Rate.items = _Rate.items_ns = 0


def _weigh_fetches(took_ns):
    _Rate.fetches += 1
    _Rate.fetches_ns += took_ns
    if _Rate.fetches == FETCHES_WEIGHED:
        if _Rate.ranges * RANGE_NS * COST_SHARE > _Rate.fetches_ns:
            _parts_off()
        _Rate.fetches = _Rate.fetches_ns = _Rate.ranges = 0


_lacuna.loader_calls("fetched", _weigh_fetches)


def part(name, function, *args, **kwargs):
    """Call it inside a range of the batch that is being made."""
    _Rate.ranges += 1
    push_loader(name, here.batch, here.worker)
    try:
        return function(*args, **kwargs)
    finally:
        pop()


def in_part(holder, attribute, name):
    """Replace holder.attribute by itself inside a range, while a batch is made."""
    original = getattr(holder, attribute)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        if _Rate.on and here.batch >= 0:
            return part(name, original, *args, **kwargs)
        return original(*args, **kwargs)

    setattr(holder, attribute, wrapper)


# ---- the training process

def _user_line():
    """file:line of the nearest frame that is neither ours nor of a library."""
    torch = sys.modules.get("torch")
    skipped = tuple(os.path.dirname(path) + os.sep for path in (__file__, getattr(torch, "__file__", None) or __file__))
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not ("site-packages" in path or "dist-packages" in path or path.startswith("<") or path.startswith(skipped)):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _known(has_workers):
    """A loader is asked for its first batch, or for its first of workers."""
    global is_known
    is_known = True
    queues = sys.modules.get("multiprocessing.queues")  # there once workers are processes
    if has_workers and hasattr(queues, "_ForkingPickler"):
        _lacuna.loader_calls("known", None)
        if not isinstance(queues._ForkingPickler, _Packing):
            queues._ForkingPickler = _Packing(queues._ForkingPickler)


def _taken(iterator):
    """It gave a batch, while nobody has told the settings of the loader that feeds the training."""
    _LoaderSettings.last = getattr(iterator, "_lacuna_settings", None)
    _LoaderSettings.batches += 1
    if _LoaderSettings.batches == _LoaderSettings.batches_max:
        tell_settings()


def dataloader(module):
    base = module._BaseDataLoaderIter
    original_next, original_start = base.__next__, base.__init__
    wait = _lacuna.wait

    @functools.wraps(original_next)
    def __next__(self):
        return wait(original_next, self)

    @functools.wraps(original_start)
    def start(self, loader, *args, **kwargs):
        original_start(self, loader, *args, **kwargs)
        self._lacuna_settings = _settings_lines(loader)

    base.__next__, base.__init__ = __next__, start
    _lacuna.loader_calls("known", _known)
    _lacuna.loader_calls("taken", _taken)
    original_init = module.DataLoader.__init__

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            self.__dict__["_lacuna_at"] = _user_line()
        except Exception:
            pass

    module.DataLoader.__init__ = __init__
    atexit.register(tell_settings)  # for a job that ends before anything else reports them


# ---- the loader's settings: of the one that the training steps take their batches from

class _LoaderSettings:
    last = None  # of the loader that gave the last batch
    is_told = False
    batches = 0
    batches_max = 50  # without a step: then it is not training, or we do not see its steps


def tell_settings():
    """The settings of the loader that gave the last batch; a second call does nothing."""
    if _LoaderSettings.last is not None and not _LoaderSettings.is_told:
        _LoaderSettings.is_told = True
        _lacuna.loader_calls("taken", None)
        for line in _LoaderSettings.last:
            setting(line)


def optimizer_is_there():
    """From now on the first step tells which loader feeds the training, unless that takes very long."""
    _LoaderSettings.batches, _LoaderSettings.batches_max = 0, 1000


def _settings_lines(loader):
    lines = []
    try:
        for name, given in _settings_of(loader):
            lines.append(f"{name}={given}")
    except Exception:  # of an attribute that is code of the job's
        pass
    return lines


def _settings_of(loader):
    line = loader.__dict__.get("_lacuna_at") or _user_line()
    if line:
        yield "loader_at", line
    for name in ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "drop_last", "in_order", "timeout", "worker_method"):
        if hasattr(loader, name):
            yield name, getattr(loader, name)
    if loader.num_workers:  # which are about to be started: asking for the method settles it no sooner
        context = getattr(loader, "multiprocessing_context", None) or sys.modules.get("multiprocessing")
        yield "start_method", context.get_start_method()
    yield "dataset", type(loader.dataset).__name__
    if getattr(loader, "sampler", None) is not None:
        yield "sampler", type(loader.sampler).__name__
    yield "collate_fn", getattr(getattr(loader, "collate_fn", None), "__qualname__", "?")
    size = getattr(loader, "batch_size", None)
    yield "batch_size", size if size is not None else getattr(loader.batch_sampler, "batch_size", None)


def pin_memory(module):
    original = module.pin_memory

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        if here.in_pin:  # it calls itself for each tensor of a batch
            return original(*args, **kwargs)
        here.in_pin = True
        push_loader("loader.pin", here.batch if here.batch >= 0 else here.waiting, here.worker)
        try:
            return original(*args, **kwargs)
        finally:
            pop()
            here.in_pin = False

    module.pin_memory = wrapper
    original_loop = module._pin_memory_loop

    @functools.wraps(original_loop)
    def loop(in_queue, *args, **kwargs):
        here.takes = True
        return original_loop(_Queue(in_queue, _lacuna.getting_next), *args, **kwargs)

    module._pin_memory_loop = loop


# ---- workers

class _Queue:
    """A queue that is read; `here` remembers the batch that it returned last."""

    def __init__(self, queue, getting):
        self._queue, self.get = queue, getting(queue)

    def __getattr__(self, name):
        return getattr(self._queue, name)


class _Packing:
    """Stands before multiprocessing's pickler: in a worker packing a batch is a range, which happens in a thread of the queue
    after the worker has gone on; in the training process unpacking is."""

    def __init__(self, pickler, queue=None, worker=-1):
        self._pickler, self.loads = pickler, _lacuna.unpacking(pickler)
        if queue is not None:
            self.dumps = _lacuna.packing(pickler, lambda: threading.get_ident() == getattr(queue._thread, "ident", None), worker)

    def __getattr__(self, name):
        return getattr(self._pickler, name)


def _watch_packing(queue, worker):
    queues = sys.modules["multiprocessing.queues"]
    if isinstance(queue, queues.Queue) and queue._thread is None:
        queues._ForkingPickler = _Packing(getattr(queues._ForkingPickler, "_pickler", queues._ForkingPickler), queue, worker)


def worker_loops(module):
    """Workers are processes; from some version on they may be threads of the training process."""
    names = [name for name in ("_worker_loop", "_process_worker_loop", "_thread_worker_loop") if hasattr(module, name)]
    for name in names:
        _patch_loop(module, name, is_thread="thread" in name)
    if not names:
        raise AttributeError("no worker loop")


def _patch_loop(module, name, is_thread):
    original = getattr(module, name)
    names = original.__code__.co_varnames[:original.__code__.co_argcount]
    index_queue = names.index("index_queue")

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        given = {**dict(zip(names, args)), **kwargs}
        args = list(args)
        try:
            number = given["worker_id"]
            _lacuna.worker_begins(number, is_thread)
            queue = _Queue(given["index_queue"], _lacuna.getting)
            if index_queue < len(args):
                args[index_queue] = queue
            else:
                kwargs["index_queue"] = queue
            if not is_thread:
                _watch_files()
                _watch_packing(given["data_queue"], number)
                import _lacuna_hang
                _lacuna_hang.listen()
                _begin_stacks()
        except Exception:
            setting(f"hook.missing={module.__name__}.{name}")
        return original(*args, **kwargs)

    setattr(module, name, wrapper)


def _begin_stacks():
    if os.environ.get("LACUNA_PYTHON_STACKS") == "all":
        import _lacuna_stacks
        _lacuna_stacks.begin(is_worker=True)


# ---- batches

def fetch(module):
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _patch_fetcher(getattr(module, name))


_lacuna.loader_calls("collated", _lacuna_padding.look)


def _patch_fetcher(fetcher):
    original_fetch, original_init = fetcher.fetch, fetcher.__init__

    make = _lacuna.fetch

    @functools.wraps(original_fetch)
    def fetch(self, *args, **kwargs):
        return make(original_fetch, self, args, kwargs)

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        try:
            self.collate_fn = _lacuna.collating(self.collate_fn, id(self))
            _watch_items(self)
        except Exception:  # a class that cannot be changed
            pass

    fetcher.fetch, fetcher.__init__ = fetch, __init__


# ---- items, while they are slow enough for recording not to matter

def _watch_items(fetcher):
    if not _Rate.on:
        return
    iterator = getattr(fetcher, "dataset_iter", None)
    if iterator is None:
        _patch_data(fetcher.dataset, 0)
    elif type(iterator) is type(_ for _ in ()):  # any other may have more methods than those of iterators
        fetcher.dataset_iter = _Items(iterator)


class _Items:
    """Items of an iterable data set."""

    def __init__(self, items):
        self._items = items

    def __iter__(self):
        return self

    def __next__(self):
        return _item(next, self._items) if _Rate.on and here.batch >= 0 and not here.in_item else next(self._items)


def _item(function, *args, **kwargs):
    _Rate.ranges += 1
    here.in_item = True
    start = time.perf_counter_ns()
    push_loader("loader.item", here.batch, here.worker)
    try:
        return function(*args, **kwargs)
    finally:
        pop()
        here.in_item = False
        _weigh_items(time.perf_counter_ns() - start)


def _patch_data(data, depth):
    """The class that defines how an item is made. Of data sets that hold others (subsets, several put together) theirs, too:
    those may be asked for their items past the outer one."""
    inside = getattr(data, "__dict__", {})
    several = inside.get("datasets")
    for inner in [inside.get("dataset"), *(several[:8] if isinstance(several, (list, tuple)) else ())]:
        if depth < 4 and any(kind.__name__ == "Dataset" and kind.__module__.startswith("torch.") for kind in type(inner).__mro__):
            _patch_data(inner, depth + 1)
    kind = next((kind for kind in type(data).__mro__ if "__getitem__" in kind.__dict__), None)
    original = kind.__dict__["__getitem__"] if kind is not None else None
    if original is None or getattr(original, "_lacuna", False):
        return

    @functools.wraps(original)
    def __getitem__(self, *args, **kwargs):
        if not _Rate.on or here.batch < 0 or here.in_item:
            return original(self, *args, **kwargs)
        return _item(original, self, *args, **kwargs)

    __getitem__._lacuna = True
    kind.__getitem__ = __getitem__
    _patched_data.append((kind, original))


# ---- files, in worker processes alone

class _File(io.FileIO):
    """What reads for an ordinary binary file object; each read that reaches the system is a range with its bytes."""

    def readinto(self, buffer):
        if not parts_are_on():
            return super().readinto(buffer)
        return part("loader.read", self._read_counted, super().readinto, buffer)

    def readall(self):
        if not parts_are_on():
            return super().readall()
        return part("loader.read", self._read_counted, super().readall)

    @staticmethod
    def _read_counted(read, *args):
        got = read(*args)
        value((got if isinstance(got, int) else len(got)) if got else 0)
        return got


def _watch_files():
    """Opening and reading of files inside batches. Only plain binary reading is wrapped: the rest is left as it is."""
    original = builtins.open

    @functools.wraps(original)
    def open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        if not parts_are_on() or not isinstance(file, (str, bytes, os.PathLike)):
            return original(file, mode, buffering, encoding, errors, newline, closefd, opener)
        is_plain = mode == "rb" and buffering == -1 and encoding is errors is newline is opener is None and closefd
        if is_plain:
            return part("loader.read", _open_counted, file)
        return part("loader.read", original, file, mode, buffering, encoding, errors, newline, closefd, opener)

    builtins.open = open_file


def _open_counted(file):
    raw = _File(file, "rb")
    return io.BufferedReader(raw, max(min(getattr(raw, "_blksize", 0), 8 << 20), io.DEFAULT_BUFFER_SIZE))


# ---- what a batch spends its time on

def compose(module):
    original = module.Compose.__call__

    @functools.wraps(original)
    def __call__(self, image):
        if not parts_are_on():
            return original(self, image)
        inside, here.in_module = here.in_module, True  # transforms are modules, too: once is enough
        try:
            for transform in self.transforms:
                image = part(f"loader.transform {type(transform).__name__}", transform, image)
        finally:
            here.in_module = inside
        return image

    module.Compose.__call__ = __call__


def pil_image(module):
    in_part(module, "open", "loader.read")


def pil_image_file(module):
    in_part(module.ImageFile, "load", "loader.decode")


def torchvision_io(module):
    for name, range_name in (("read_file", "loader.read"), ("decode_jpeg", "loader.decode"),
                             ("decode_image", "loader.decode"), ("decode_png", "loader.decode")):
        if hasattr(module, name):
            in_part(module, name, range_name)
