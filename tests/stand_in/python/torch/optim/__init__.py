from .optimizer import SGD, Optimizer, Warm
