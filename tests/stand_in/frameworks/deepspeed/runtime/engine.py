import torch


class FusedAdam(torch.optim.Optimizer):
    def step(self, closure=None):
        return None


class DeepSpeedZeroOptimizer_Stage3:
    """No optimizer of PyTorch, and steps the one inside it for each group of parameters."""

    def __init__(self, inner, groups):
        self.optimizer, self.groups = inner, groups

    def step(self, closure=None):
        for _ in range(self.groups):
            self.optimizer.step()


class DeepSpeedEngine:
    def __init__(self, gradient_accumulation_steps=1):
        self._accumulation, self.micro_steps = gradient_accumulation_steps, 0
        self.optimizer = DeepSpeedZeroOptimizer_Stage3(FusedAdam(), 3)

    def zero_optimization_stage(self):
        return 3

    def gradient_accumulation_steps(self):
        return self._accumulation

    def bfloat16_enabled(self):
        return True

    def fp16_enabled(self):
        return False

    def is_gradient_accumulation_boundary(self):
        return (self.micro_steps + 1) % self._accumulation == 0

    def step(self, lr_kwargs=None):
        if self.is_gradient_accumulation_boundary():
            self._take_model_step(lr_kwargs)
        self.micro_steps += 1

    def _take_model_step(self, lr_kwargs, block_eigenvalue={}):  # noqa: B006
        self.optimizer.step()

    def save_checkpoint(self, save_dir, tag=None, client_state={}, save_latest=True):  # noqa: B006
        return True
