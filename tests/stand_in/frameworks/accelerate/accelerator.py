import enum


class DistributedType(str, enum.Enum):
    NO = "NO"
    MULTI_GPU = "MULTI_GPU"


class Accelerator:
    def __init__(self, device_placement=True, split_batches=None, mixed_precision=None, gradient_accumulation_steps=1):
        self.gradient_accumulation_steps, self.distributed_type = gradient_accumulation_steps, DistributedType.MULTI_GPU

    def save_state(self, output_dir=None, safe_serialization=True):
        return output_dir
