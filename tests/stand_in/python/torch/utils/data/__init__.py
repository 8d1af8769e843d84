from .dataloader import DataLoader, Dataset
