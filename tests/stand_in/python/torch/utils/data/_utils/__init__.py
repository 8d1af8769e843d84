from . import fetch, pin_memory, worker
