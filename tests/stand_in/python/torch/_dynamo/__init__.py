from .eval_frame import optimize
