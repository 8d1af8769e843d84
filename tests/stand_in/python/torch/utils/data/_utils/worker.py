"""Workers are processes or threads; both end in one loop."""
from . import fetch


def _base_worker_loop(dataset, index_queue, data_queue, auto_collation, collate_fn):
    fetcher = fetch._MapDatasetFetcher(dataset, auto_collation, collate_fn, False)
    while True:
        task = index_queue.get(timeout=30)
        if task is None:
            return
        number, index = task
        data_queue.put((number, fetcher.fetch(index)))


def _process_worker_loop(dataset_kind, dataset, index_queue, data_queue, auto_collation, collate_fn, worker_id, num_workers):
    _base_worker_loop(dataset, index_queue, data_queue, auto_collation, collate_fn)


def _thread_worker_loop(dataset_kind, dataset, index_queue, data_queue, auto_collation, collate_fn, worker_id, num_workers):
    _base_worker_loop(dataset, index_queue, data_queue, auto_collation, collate_fn)
