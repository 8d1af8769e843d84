"""A job to be watched: threads.py THREADS SECONDS. Two of the threads work all the time, as in a worker of a loader; the others sleep, as those of a pool."""
import sys
import threading
import time


def main():
    threads, seconds = (int(argument) for argument in sys.argv[1:])
    end = time.monotonic() + seconds
    try:
        import _lacuna
        _lacuna.load()
        _lacuna.setting("job=threads")  # it is recorded: the launcher looks at it as at any job
    except ImportError:
        pass

    def work():
        while time.monotonic() < end:
            time.sleep(0.005)
            sum(range(2000))

    def sleep():
        time.sleep(seconds)

    for number in range(threads - 1):
        threading.Thread(target=work if number == 0 else sleep).start()
    work()


if __name__ == "__main__":
    main()
