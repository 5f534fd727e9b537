"""What tests share."""
import gc
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy is imported; scikit-learn skips checks without it


def pytest_collection_finish():
    """What is imported by now stays: the garbage collector need not look at it again and again, thousands of times."""
    gc.collect()
    gc.freeze()
