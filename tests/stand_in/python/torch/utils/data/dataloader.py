import multiprocessing
import queue
import threading

from . import _utils


class Dataset:
    def __getitem__(self, index):
        raise NotImplementedError


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0, collate_fn=list, pin_memory=False, multiprocessing_context="fork",
                 worker_method="multiprocessing", in_order=True):
        self.dataset, self.batch_size, self.num_workers, self.collate_fn = dataset, batch_size, num_workers, collate_fn
        self.pin_memory, self.worker_method, self.in_order = pin_memory, worker_method, in_order
        self.multiprocessing_context = multiprocessing.get_context(multiprocessing_context)
        self.sampler = range(len(dataset))
        self.batch_sampler = [list(self.sampler[at:at + batch_size]) for at in range(0, len(dataset), batch_size)]

    def __iter__(self):
        return _MultiProcessingDataLoaderIter(self) if self.num_workers else _SingleProcessDataLoaderIter(self)


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._loader, self._num_yielded = loader, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self._num_yielded == len(self._loader.batch_sampler):
            self._end()
            raise StopIteration
        data = self._next_data()
        self._num_yielded += 1
        return data

    def _end(self):
        pass


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._fetcher = _utils.fetch._MapDatasetFetcher(loader.dataset, True, loader.collate_fn, False)

    def _next_data(self):
        data = self._fetcher.fetch(self._loader.batch_sampler[self._num_yielded])
        return _utils.pin_memory.pin_memory(data) if self._loader.pin_memory else data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """All tasks are given out at once; batches are taken in order, or as they come."""

    def __init__(self, loader):
        super().__init__(loader)
        self._in_order, self._rcvd_idx, self._kept = loader.in_order, 0, {}
        is_thread = loader.worker_method == "thread"
        context = loader.multiprocessing_context
        new_queue = queue.Queue if is_thread else context.Queue
        self._results, self._tasks, self._workers = new_queue(), [], []
        for number in range(loader.num_workers):
            tasks = new_queue()
            given = (0, loader.dataset, tasks, self._results, True, loader.collate_fn)
            if is_thread:
                worker = threading.Thread(target=_utils.worker._thread_worker_loop, args=given,
                                          kwargs={"worker_id": number, "num_workers": loader.num_workers})
            else:
                worker = context.Process(target=_utils.worker._process_worker_loop, args=(*given, number, loader.num_workers))
            worker.daemon = True
            worker.start()
            self._tasks.append(tasks)
            self._workers.append(worker)
        for number, index in enumerate(loader.batch_sampler):
            self._tasks[number % len(self._tasks)].put((number, index))
        self._batches, self._done = self._results, threading.Event()
        if loader.pin_memory:
            self._batches = queue.Queue()
            threading.Thread(target=_utils.pin_memory._pin_memory_loop, args=(self._results, self._batches, 0, self._done, None),
                             daemon=True).start()

    def _next_data(self):
        while not (self._rcvd_idx in self._kept if self._in_order else self._kept):
            number, data = self._batches.get(timeout=30)
            self._kept[number] = data
        number = self._rcvd_idx if self._in_order else next(iter(self._kept))
        self._rcvd_idx += 1
        return self._kept.pop(number)

    def _end(self):
        self._done.set()
        for tasks in self._tasks:
            tasks.put(None)
        for worker in self._workers:
            worker.join(30)
