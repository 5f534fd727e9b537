"""What tests share."""
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy is imported; scikit-learn skips checks without it
