"""Each class' step is wrapped when the first instance is made, and says so: `hooked`."""
import functools


class Optimizer:
    def __init__(self, params=(), defaults=None):
        self.defaults = defaults or {}
        kind = type(self)
        if not getattr(kind.step, "hooked", None):
            kind.step = self.profiled(kind.step)
            kind.step.hooked = True

    @staticmethod
    def profiled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper


class SGD(Optimizer):
    def step(self, closure=None):
        return closure() if closure is not None else None


class Warm(SGD):
    """One that calls its base's step, which may be wrapped, too."""

    def step(self, closure=None):
        return super().step(closure)
