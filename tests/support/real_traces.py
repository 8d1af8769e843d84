"""Where the real traces are: $LACUNA_TRACES, else ../shared/traces beside the repository, else build/traces (`make traces`)."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NONE = "no ../shared/traces and no build/traces (make traces)"


def real_traces():
    """The folder; one that is not there when there is none."""
    beside, fetched = os.path.join(ROOT, "..", "shared", "traces"), os.path.join(ROOT, "build", "traces")
    return os.environ.get("LACUNA_TRACES") or (beside if os.path.isdir(beside) or not os.path.isdir(fetched) else fetched)
