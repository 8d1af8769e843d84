"""A stand-in, not Ray: a process a worker, which joins the group and then gets the variables that torchrun sets."""
import multiprocessing
import os
import socket

from ray.train.torch.config import _setup_torch_process_group


def _work(train_loop_per_worker, config, rank, count, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    _setup_torch_process_group("gloo", rank, count, "env://")
    os.environ.update(LOCAL_RANK=str(rank), RANK=str(rank), LOCAL_WORLD_SIZE=str(count), WORLD_SIZE=str(count), NODE_RANK="0")
    train_loop_per_worker(config)


class TorchTrainer:
    def __init__(self, train_loop_per_worker, *, train_loop_config=None, scaling_config=None):
        self.train_loop_per_worker, self.train_loop_config, self.scaling_config = train_loop_per_worker, train_loop_config, scaling_config

    def fit(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        start, count = multiprocessing.get_context("spawn"), self.scaling_config.num_workers
        workers = [start.Process(target=_work, args=(self.train_loop_per_worker, self.train_loop_config, rank, count, port)) for rank in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if any(worker.exitcode for worker in workers):
            raise RuntimeError(f"a worker failed: {[worker.exitcode for worker in workers]}")
