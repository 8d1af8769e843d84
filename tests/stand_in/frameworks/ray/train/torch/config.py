"""A stand-in, not Ray."""
from datetime import timedelta

import torch.distributed as dist


def _setup_torch_process_group(backend, world_rank, world_size, init_method, timeout_s=1800):
    dist.init_process_group(backend=backend, init_method=init_method, rank=world_rank, world_size=world_size, timeout=timedelta(seconds=timeout_s))
