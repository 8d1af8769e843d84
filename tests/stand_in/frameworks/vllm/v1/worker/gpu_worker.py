"""A stand-in, not vLLM."""
try:
    import torch.distributed as dist
except ImportError:  # the stand-in for PyTorch has none
    dist = None


class Worker:
    def __init__(self, vllm_config, local_rank, rank, distributed_init_method, is_driver_worker=False):
        self.parallel_config = vllm_config.parallel_config
        self.model_config = vllm_config.model_config
        self.scheduler_config = vllm_config.scheduler_config
        self.local_rank = local_rank
        self.rank = rank
        self.distributed_init_method = distributed_init_method
        self.is_driver_worker = is_driver_worker

    def init_device(self):
        if dist is not None:
            dist.init_process_group(backend="gloo", init_method=self.distributed_init_method, world_size=self.parallel_config.world_size, rank=self.rank)

    def execute_model(self, scheduler_output):
        return scheduler_output
