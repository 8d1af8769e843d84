from .dataloader import DataLoader, Dataset

__all__ = ["DataLoader", "Dataset"]
