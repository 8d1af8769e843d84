import types

_ARGS = types.SimpleNamespace(bf16=True, fp16=False, tensor_model_parallel_size=2, pipeline_model_parallel_size=4, micro_batch_size=1,
                              global_batch_size=64, num_workers=2)


def get_args():
    return _ARGS
