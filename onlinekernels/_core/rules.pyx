"""Step sizes over arrays, for the Python objects of steps.py."""
import numpy as np

STEP_CODES = {"Fixed": FIXED, "InverseSqrt": INVERSE_SQRT, "Decaying": DECAYING, "MetaDescent": META_DESCENT}


def step_sizes(int code, double rate, double delay, double meta_rate, double memory, t):
    """eta_t for one t or an array of them."""
    cdef Step step = Step(code, rate, delay, meta_rate, memory)
    times = np.asarray(t, dtype=np.int64)
    sizes = np.array([step_size(&step, one) for one in times.ravel().tolist()])
    return sizes.reshape(times.shape) if times.ndim else float(sizes[0])
