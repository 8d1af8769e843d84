class _TrainingEpochLoop:
    def __init__(self, trainer, min_steps=None, max_steps=-1):
        self.trainer, self.batches = trainer, 0

    def advance(self, data_fetcher):
        batch = next(data_fetcher)
        model, self.batches = self.trainer.lightning_module, self.batches + 1

        def closure():
            model.training_step(batch, self.batches)

        if self.batches % self.trainer.accumulate_grad_batches == 0:
            self.trainer.optimizer.step(closure=closure)
        else:
            closure()
