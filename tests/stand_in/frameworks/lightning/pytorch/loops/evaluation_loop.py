class _EvaluationLoop:
    def __init__(self, trainer, batches):
        self.trainer, self.batches = trainer, batches

    def run(self):
        return [self.trainer.lightning_module.validation_step(batch, 0) for batch in self.batches]
