"""Brings the recorder into every Python process of a job that `lacuna run` started.

Python imports a module of this name when it starts. Nothing is imported here that Python has not
imported already, so that a process which never touches a data loader pays about a millisecond. The
patches themselves are in _lacuna_hook.py and are loaded with the first library that they patch.
Whatever goes wrong, the job does not notice: it is just not recorded.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Finder:
    """Finds nothing itself: it lets the other finders work, and adds a patch after the module has run."""

    PATCHED = frozenset((
        "torch.utils.data.dataloader",
        "torch.utils.data._utils.worker",
        "torch.utils.data._utils.fetch",
        "torch.utils.data._utils.pin_memory",
        "torchdata.stateful_dataloader.worker",
        "torch.optim.optimizer",
        "torch._tensor",
        "torchvision.transforms.transforms",
        "torchvision.io.image",
        "PIL.Image",
        "PIL.ImageFile",
        "torch",
        "torch.nn.modules.module",
        "torch._dynamo.eval_frame",
        "torch.profiler.profiler",
        "torch.autograd.profiler",
        "torch.distributed.distributed_c10d",
        "jax._src.distributed",
        "lightning.pytorch.loops.training_epoch_loop",
        "lightning.pytorch.loops.evaluation_loop",
        "lightning.pytorch.trainer.trainer",
        "pytorch_lightning.loops.training_epoch_loop",
        "pytorch_lightning.loops.epoch.training_epoch_loop",
        "pytorch_lightning.loops.evaluation_loop",
        "pytorch_lightning.loops.dataloader.evaluation_loop",
        "pytorch_lightning.trainer.trainer",
        "transformers.trainer",
        "accelerate.accelerator",
        "deepspeed.runtime.engine",
        "megatron.training",
        "megatron.training.training",
        "vllm.v1.worker.gpu_worker",
        "vllm.worker.worker_base",
        "jax._src.profiler",
        "keras.src.callbacks.callback_list",
        "keras.src.callbacks",
        "keras.callbacks",
        "tf_keras.src.callbacks",
        "tensorflow.python.keras.callbacks",
        "nvidia.dali.plugin.pytorch",
        "nvidia.dali.plugin.jax.iterator",
        "ffcv.loader.epoch_iterator",
        "webdataset.pipeline",
        "datasets.arrow_dataset",
        "tensorflow.python.data.ops.iterator_ops",
    ))

    def find_spec(self, name, path=None, target=None):
        if name not in self.PATCHED:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _patch_after(spec, name)
                return spec
        return None


class _Annotate:
    """`import lacuna` finds ours if the job has no module or package of that name; a folder without __init__ does not count."""

    def find_spec(self, name, path=None, target=None):
        if name != "lacuna":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                return spec
        from importlib.util import spec_from_file_location
        return spec_from_file_location(name, os.path.join(_HERE, "_lacuna_annotate.py"))


def _patch_after(spec, name):
    loader = spec.loader
    run = getattr(loader, "exec_module", None)
    if run is None:
        return

    def exec_module(module):
        run(module)
        try:
            import _lacuna_hook
            _lacuna_hook.patch(name, module)
        except Exception:  # the job must not see it
            pass

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader that takes no attributes: its module stays as it is
        pass


def _run_next_sitecustomize():
    """The sitecustomize of the distribution or user, which ours hides."""
    from importlib.machinery import PathFinder

    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__file__ = spec.origin
    module.__spec__ = spec
    spec.loader.exec_module(module)


def _start():
    if not os.environ.get("LACUNA_SPOOL") or os.environ.get("LACUNA_DISABLE", "0") not in ("", "0"):
        return
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return  # free-threaded Python: other object layout than the extension's
    try:
        import _lacuna
        if _lacuna.load():
            sys.meta_path.insert(0, _Finder())
            if os.environ.get("LACUNA_STEP"):
                import _lacuna_step
                _Finder.PATCHED |= {_lacuna_step.MODULE} - {""}
                _lacuna_step.begin()
            if os.environ.get("LACUNA_METRIC"):
                import _lacuna_metric
                _lacuna_metric.begin()
    except Exception:
        pass


sys.meta_path.insert(0, _Annotate())
_start()
_run_next_sitecustomize()
