import types


class Worker:
    def __init__(self, tensor_parallel_size=2):
        self.parallel_config = types.SimpleNamespace(tensor_parallel_size=tensor_parallel_size, pipeline_parallel_size=1)
        self.model_config = types.SimpleNamespace(dtype="torch.bfloat16")
        self.scheduler_config = types.SimpleNamespace(max_num_seqs=256)

    def execute_model(self, scheduler_output):
        return scheduler_output
