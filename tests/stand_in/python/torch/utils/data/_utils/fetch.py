class _Fetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = dataset, auto_collation, collate_fn, drop_last


class _MapDatasetFetcher(_Fetcher):
    def fetch(self, possibly_batched_index):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _IterableDatasetFetcher(_Fetcher):
    def __init__(self, *args):
        super().__init__(*args)
        self.dataset_iter = iter(self.dataset)

    def fetch(self, possibly_batched_index):
        return self.collate_fn([next(self.dataset_iter) for _ in possibly_batched_index])
