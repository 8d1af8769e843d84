class DataPipeline:
    def __init__(self, *args):
        self.pipeline, self.repetitions, self.nsamples = list(args), 1, -1

    def invoke(self, f, *args):
        return f(*args) if callable(f) else iter(f)

    def iterator(self):
        source = self.invoke(self.pipeline[0])
        for step in self.pipeline[1:]:
            source = self.invoke(step, source)
        for sample in source:
            yield sample

    def __iter__(self):
        return self.iterator()
