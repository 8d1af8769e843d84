from .src.callbacks.callback_list import CallbackList

__all__ = ["CallbackList"]
