"""Rows of a query. Without any library they are tuples; pandas, Polars and Arrow are asked for by name."""
from collections import namedtuple

from . import _html

ROWS_SHOWN = 100


class Result:
    """The rows of a query, in order: a sequence of tuples with `columns`, their names."""

    def __init__(self, columns, rows):
        self.columns = list(columns)
        self.rows = [tuple(row) for row in rows]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, index):
        """A row by its number, or a column (a list) by its name."""
        if isinstance(index, str):
            if index not in self.columns:
                raise KeyError("no column {!r}: there are {}".format(index, ", ".join(self.columns)))
            at = self.columns.index(index)
            return [row[at] for row in self.rows]
        return self.rows[index]

    def __repr__(self):
        return "<lacuna.Result: {} rows of {}>".format(len(self.rows), ", ".join(self.columns))

    def dicts(self):
        """A dict for each row."""
        return [dict(zip(self.columns, row)) for row in self.rows]

    def named(self):
        """A namedtuple for each row; columns whose name is none in Python become _0, _1, ..."""
        row = namedtuple("Row", self.columns, rename=True)
        return [row(*values) for values in self.rows]

    def _unique(self):
        """Names for libraries that want each once: a, a_2, a_3."""
        names = []
        for name in self.columns:
            unique, number = name, 2
            while unique in names:
                unique, number = "{}_{}".format(name, number), number + 1
            names.append(unique)
        return names

    def _by_column(self):
        return [list(column) for column in zip(*self.rows)] if self.rows else [[] for _ in self.columns]

    def pandas(self):
        """A pandas.DataFrame. Integers with gaps stay integers (Int64), so that ids keep their digits."""
        import pandas
        columns = []
        for values in self._by_column():
            kinds = {type(value) for value in values if value is not None}
            exact = kinds == {int} and None in values
            columns.append(pandas.Series(values, dtype="Int64") if exact else pandas.Series(values, dtype=None if values else object))
        frame = pandas.concat(columns, axis=1) if columns else pandas.DataFrame()
        frame.columns = self._unique()
        return frame

    def polars(self):
        """A polars.DataFrame."""
        import polars
        return polars.DataFrame(dict(zip(self._unique(), self._plain())), strict=False)

    def arrow(self):
        """A pyarrow.Table."""
        import pyarrow
        return pyarrow.Table.from_arrays([pyarrow.array(values) for values in self._plain()], names=self._unique())

    def _plain(self):
        """Columns of one type each, as libraries with types want them: a mixture becomes text, integers beside reals reals."""
        columns = []
        for values in self._by_column():
            kinds = {type(value) for value in values if value is not None}
            if kinds == {int, float}:
                values = [None if value is None else float(value) for value in values]
            elif len(kinds) > 1:
                values = [None if value is None else str(value) for value in values]
            columns.append(values)
        return columns

    def _repr_html_(self):
        more = len(self.rows) - ROWS_SHOWN
        note = "{} more rows".format(more) if more > 0 else ""
        return _html.table(self.columns, self.rows[:ROWS_SHOWN], note)
