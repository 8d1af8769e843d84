"""A stand-in, not vLLM: a process a worker, which gets its ranks as arguments and is asked through a pipe."""
import multiprocessing


class WorkerProc:
    @staticmethod
    def make_worker_process(vllm_config, local_rank, rank, distributed_init_method):
        ours, theirs = multiprocessing.Pipe()
        kwargs = {"vllm_config": vllm_config, "local_rank": local_rank, "rank": rank, "distributed_init_method": distributed_init_method, "pipe": theirs}
        process = multiprocessing.get_context("fork").Process(target=WorkerProc.worker_main, kwargs=kwargs, name=f"VllmWorker-{rank}", daemon=True)
        process.start()
        theirs.close()
        return process, ours

    @staticmethod
    def worker_main(pipe, **kwargs):
        from vllm.v1.worker.gpu_worker import Worker
        worker = Worker(**kwargs)
        worker.init_device()
        for method, args in iter(pipe.recv, None):
            pipe.send(getattr(worker, method)(*args))


class MultiprocExecutor:
    def __init__(self, vllm_config, distributed_init_method):
        self.workers = [WorkerProc.make_worker_process(vllm_config, rank, rank, distributed_init_method)
                        for rank in range(vllm_config.parallel_config.world_size)]

    def collective_rpc(self, method, *args):
        for _, pipe in self.workers:
            pipe.send((method, args))
        return [pipe.recv() for _, pipe in self.workers]

    def shutdown(self):
        for process, pipe in self.workers:
            pipe.send(None)
            process.join()
