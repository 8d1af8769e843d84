import time

from .formatting import format_table, query_table


class Dataset:
    def __init__(self, rows):
        self._data, self._indices, self._format_type = rows, None, None

    def __len__(self):
        return len(self._data)

    def _getitem(self, key, **kwargs):
        time.sleep(0.002)
        pa_subtable = query_table(self._data, key, indices=self._indices)
        return format_table(pa_subtable, key, formatter=None, format_columns=None, output_all_columns=False)

    def __getitem__(self, key):
        return self._getitem(key)

    def __getitems__(self, keys):
        return [self.__getitem__(key) for key in keys]
