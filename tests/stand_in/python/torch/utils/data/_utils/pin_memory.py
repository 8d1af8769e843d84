import queue


def pin_memory(data, device=None):
    """Calls itself for what is inside, as the real one does."""
    return [pin_memory(each, device) for each in data] if isinstance(data, list) else data


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device):
    while not done_event.is_set():
        try:
            number, data = in_queue.get(timeout=0.1)
        except queue.Empty:
            continue
        out_queue.put((number, pin_memory(data, device)))
