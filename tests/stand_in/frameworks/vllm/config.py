"""A stand-in, not vLLM."""
import types


def vllm_config(tensor_parallel_size=1):
    return types.SimpleNamespace(
        parallel_config=types.SimpleNamespace(tensor_parallel_size=tensor_parallel_size, pipeline_parallel_size=1, world_size=tensor_parallel_size),
        model_config=types.SimpleNamespace(dtype="torch.bfloat16"), scheduler_config=types.SimpleNamespace(max_num_seqs=256))
