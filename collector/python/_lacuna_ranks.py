"""Which rank a process is, from what joins the ranks: mp.spawn, Ray, accelerate and engines set no RANK.

Ranks that met at the same place are one job: a trainer and the engine that samples for it, in one recording, are two.
"""
import functools
import os

import _lacuna

_told_in = 0  # the process that told its rank: a forked one is another


def _tell(rank, world_size, group, **settings):
    global _told_in
    _told_in = os.getpid()
    _lacuna.identity(int(rank), int(world_size), str(group))
    local = os.environ.get("LOCAL_RANK")
    if local is not None:
        settings["local_rank"] = local[:20]
    for name, given in (("rank", rank), ("world_size", world_size), *settings.items()):
        _lacuna.setting(f"{name}={given}")


# ---- torch.distributed: signature (backend, init_method, timeout, world_size, rank, store, group_name, ...) from 1.0 to 2.9

def _meeting_place(args, kwargs):
    """The same text in all ranks of a job."""
    store = kwargs.get("store") or (args[5] if len(args) > 5 else None)
    while hasattr(store, "underlying_store"):  # of a PrefixStore
        store = store.underlying_store
    if hasattr(store, "host"):
        return f"{store.host}:{store.port}"
    method = kwargs.get("init_method") or (args[1] if len(args) > 1 else None)
    if method and not method.startswith("env://"):
        return method
    return f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"


def process_group(module):
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            _tell(module.get_rank(), module.get_world_size(), _meeting_place(args, kwargs), dist_backend=module.get_backend())
        except Exception:
            pass
        return result

    module.init_process_group = init_process_group


# ---- engines that start a process for each of their GPUs

def engine_worker(engine, rank, world_size, meeting_place, local_rank):
    """A worker is ready: its engine told it which rank it is. What it joined says more, as with several engines that share experts."""
    if int(world_size) < 2:
        return
    _lacuna.setting(f"started_by={engine}")
    if _told_in != os.getpid():
        _tell(rank, world_size, meeting_place)
    if "LOCAL_RANK" not in os.environ:
        _lacuna.setting(f"local_rank={int(local_rank)}")


# ---- JAX: distributed.State holds what jax.distributed.initialize() was given or found

def jax_distributed(module):
    kind = module.State
    original = kind.initialize

    @functools.wraps(original)
    def initialize(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        try:
            if self.num_processes:
                _tell(self.process_id, self.num_processes, self.coordinator_address or "", dist_backend="jax")
        except Exception:
            pass
        return result

    kind.initialize = initialize
