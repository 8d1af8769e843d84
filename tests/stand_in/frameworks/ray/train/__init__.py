"""A stand-in, not Ray."""

class ScalingConfig:
    def __init__(self, num_workers=1, use_gpu=False):
        self.num_workers, self.use_gpu = num_workers, use_gpu
