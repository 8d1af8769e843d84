import torch

from .global_vars import get_args


class FusedAdam(torch.optim.Optimizer):
    def step(self, closure=None):
        return None


def pretrain(data_iterator, forward_step_func, train_iters, eval_interval):
    get_args()
    model, optimizers = [object()], [FusedAdam(), FusedAdam()]  # of dense and of expert parameters
    for iteration in range(1, train_iters + 1):
        train_step(forward_step_func, data_iterator, model, optimizers, None, None)
        if iteration % eval_interval == 0:
            evaluate(forward_step_func, data_iterator, model)
            save_checkpoint(iteration, model, optimizers, None)


def train_step(forward_step_func, data_iterator, model, optimizer, opt_param_scheduler, config):
    forward_step_func(data_iterator, model)
    for each in optimizer:
        each.step()
    return {}, 0, True, False, 0, 0.0, None


def evaluate(forward_step_func, data_iterator, model, process_non_loss_data_func=None, config=None):
    return forward_step_func(data_iterator, model)


def save_checkpoint(iteration, model, optimizer, opt_param_scheduler):
    return None
