from accelerate import Accelerator


class TrainingArguments:
    def __init__(self, per_device_train_batch_size=8, gradient_accumulation_steps=1, bf16=False, fp16=False, dataloader_num_workers=0,
                 deepspeed=None, fsdp=""):
        self.__dict__.update(locals())


class Trainer:
    def __init__(self, model, args, train_dataset, optimizers, loader):
        self.model, self.args, self.optimizer, self.loader = model, args, optimizers[0], loader
        self.accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)

    def train(self):
        for number, inputs in enumerate(self.loader(), 1):
            self.training_step(self.model, inputs, None)
            if number % self.args.gradient_accumulation_steps == 0:
                self.optimizer.step()
        self.evaluation_loop(self.loader(), "Evaluation")
        self._save_checkpoint(self.model, None)

    def training_step(self, model, inputs, num_items_in_batch=None):
        return model(inputs)

    def evaluation_loop(self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"):
        return [self.model(inputs) for inputs in dataloader]

    def _save_checkpoint(self, model, trial):
        return None
