class TraceMe:
    """In C++ there."""

    def __init__(self, name, **kwargs):
        self.given = (name, kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None


class TraceAnnotation(TraceMe):
    pass


class StepTraceAnnotation(TraceAnnotation):
    def __init__(self, name, **kwargs):
        super().__init__(name, _r=1, **kwargs)
