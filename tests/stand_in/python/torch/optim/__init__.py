from .optimizer import SGD, Optimizer, Warm

__all__ = ["SGD", "Optimizer", "Warm"]
