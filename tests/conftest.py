"""What tests share."""
import gc
import os
import signal

# as in what a script runs in the background; some tests press Ctrl-C
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy is imported; scikit-learn skips checks without it


def pytest_collection_finish():
    """What is imported by now stays: the garbage collector need not look at it again and again, thousands of times."""
    gc.collect()
    gc.freeze()
