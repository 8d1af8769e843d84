"""The module __main__ of the wheel: runs the program that the package carries, in the place of this process."""
import os
import signal
import sys


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "lacuna")
    if not os.access(path, os.X_OK):  # an installer that drops modes
        try:
            os.chmod(path, os.stat(path).st_mode | 0o111)
        except OSError:
            pass  # execv says what is wrong
    # Python ignores these from its start, and what is ignored stays so: a job of `lacuna run` would ignore them, too
    for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(path, ["lacuna"] + sys.argv[1:])
    except OSError as problem:
        sys.exit("lacuna: cannot run {}: {}".format(path, problem.strerror))


if __name__ == "__main__":
    main()
