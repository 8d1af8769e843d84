from .arrow_dataset import Dataset

__all__ = ["Dataset"]
