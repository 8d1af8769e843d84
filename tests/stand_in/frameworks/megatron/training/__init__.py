from .training import pretrain

__all__ = ["pretrain"]
