from .eval_frame import optimize

__all__ = ["optimize"]
