from ..loops.evaluation_loop import _EvaluationLoop
from ..loops.training_epoch_loop import _TrainingEpochLoop


class SingleDeviceStrategy:
    pass


class Trainer:
    def __init__(self, precision="32-true", accumulate_grad_batches=1, max_steps=-1):
        self.precision, self.accumulate_grad_batches, self.max_steps = precision, accumulate_grad_batches, max_steps
        self.strategy, self.num_nodes = SingleDeviceStrategy(), 1

    def fit(self, model, train_dataloaders, val_dataloaders=()):
        self.lightning_module, self.optimizer = model, model.configure_optimizers()
        loop = _TrainingEpochLoop(self)
        batches = iter(train_dataloaders)
        try:
            while True:
                loop.advance(batches)
        except StopIteration:
            pass
        _EvaluationLoop(self, val_dataloaders).run()
        self.save_checkpoint("last.ckpt")

    def save_checkpoint(self, filepath, weights_only=False, storage_options=None):
        return None
