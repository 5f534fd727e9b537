"""Before anything is imported: scikit-learn skips its checks of array API input unless this is set."""
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
