"""A stand-in for PyTorch 2.x, of our own: the names, signatures and habits that the Python hook relies on, and nothing that
computes. It runs on any Python, where the real one is not at hand."""
from . import _tensor, compiler, nn, optim
from ._tensor import Tensor

__all__ = ["_tensor", "compiler", "nn", "optim", "Tensor", "compile"]
__version__ = "2.99.0"


def compile(model=None, **options):
    from ._dynamo import eval_frame
    return eval_frame.optimize(**options)(model)
