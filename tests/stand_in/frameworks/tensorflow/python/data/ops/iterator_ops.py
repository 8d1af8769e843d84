class OwnedIterator:
    def __init__(self, elements):
        self._elements = iter(elements)

    def __iter__(self):
        return self

    def __next__(self):
        return self._next_internal()

    def _next_internal(self):
        return next(self._elements)
