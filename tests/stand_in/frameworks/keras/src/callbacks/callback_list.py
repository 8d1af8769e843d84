import concurrent.futures


class CallbackList:
    def __init__(self, callbacks=None):
        self.callbacks, self._executor = callbacks or [], concurrent.futures.ThreadPoolExecutor()

    def on_train_batch_begin(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_train_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch, logs=None):
        self._executor.submit(self._on_train_batch_end, batch, logs)

    def _on_train_batch_end(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_train_batch_end(batch, logs=logs)

    def on_test_begin(self, logs=None):
        return None

    def on_test_end(self, logs=None):
        return None
