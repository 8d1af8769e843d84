"""Compiling, once: takes the outermost wrapper off each optimizer's step that says it has one."""
from .. import nn, optim

saw_call = []


def optimize(**options):
    saw_call.append(nn.Module.__call__)
    for kind in (optim.SGD, optim.Warm):
        if getattr(kind.step, "hooked", False):
            kind.step = getattr(kind.step, "__wrapped__", kind.step)
        kind.step.hooked = True
    return lambda model: model
