"""Whether a compiler traces what runs: compilers answer yes for it."""
is_tracing = False


def is_compiling():
    return is_tracing
