"""The pool of terms: points, coefficients and birthdays, and which of them a budget keeps.

Terms live in slots of a few arrays.  The slots in use are one range ``[start, stop)``, so that a
kernel row is one matrix product with a contiguous block:

* Unlimited appends and grows by doubling;
* Recent is a circular buffer: once ``size`` terms are there, the newcomer overwrites the oldest;
* Window and Sublinear append at the end and drop at the beginning, and move to the front when the
  end of the block is reached (each term moves at most once per doubling, so this costs O(1));
* Smallest keeps a heap of slots.  All terms share the frame, so their order by size never changes
  and neither does a key.

A slot that holds no term has coefficient 0 in every row, so sums may run over it.
"""
import numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport fabs
from onlinekernels._core.frame cimport MAX_CHANNELS, frame_row

BUDGET_CODES = {
    "Unlimited": UNLIMITED,
    "Recent": RECENT,
    "Window": WINDOW,
    "Smallest": SMALLEST,
    "Sublinear": SUBLINEAR,
}

cdef double TINY = 2.2250738585072014e-308      # below it numbers lose digits: folded to 0


def window_lengths(int code, long long size, double exponent, t):
    """Length of the window at one example t or at an array of them, for the Python objects of budgets.py."""
    cdef Budget budget = Budget(code, size, exponent)
    times = np.asarray(t, dtype=np.int64)
    lengths = np.array([window_length(&budget, one) for one in times.ravel().tolist()], dtype=np.int64)
    return lengths.reshape(times.shape) if times.ndim else int(lengths[0])


cdef class Pool:
    """Terms under a budget.

    Parameters
    ----------
    budget : tuple
        (code, size, exponent) of a budget.
    channels, outputs : int
        Coordinates per term.
    n_features : int or None
        Width of a point; None holds Python objects instead.
    dtype : numpy dtype
        Precision of the points.
    n_facts : int
        Numbers that the kernel keeps with each point.
    paired : bool
        Whether each term belongs to two labels, with opposite signs.
    """

    def __init__(self, budget, Py_ssize_t channels, Py_ssize_t outputs, n_features, dtype,
                 Py_ssize_t n_facts, bint paired=False):
        self.budget = Budget(budget[0], budget[1], budget[2])
        self.rows = channels * outputs
        self.outputs = outputs
        self.n_facts = n_facts
        self.n_features = 0 if n_features is None else n_features
        if paired:
            self.pairs = np.zeros((2, 0), dtype=np.int32)
        if n_features is None:
            self.objects = []
        else:
            self.points = np.zeros((0, n_features), dtype=dtype)
            self.point_bytes = n_features * self.points.itemsize
        self.allocate(0)

    cdef allocate(self, Py_ssize_t capacity):
        """Move to arrays of another capacity, which holds at least all slots in use."""
        cdef Py_ssize_t used = min(self.stop, capacity)

        def moved(old, shape, dtype):
            new = np.zeros(shape, dtype=dtype)
            if old is not None and used:
                new[..., :used] = old[..., :used]
            return new

        if self.objects is None:
            points = aligned_empty((capacity, self.n_features), self.points.dtype)
            points[:used] = self.points[:used]
            self.points = points
            self.point_data = array_data(points)
        else:
            self.objects.extend([None] * (capacity - len(self.objects)))
        self.coefficients = moved(self.coefficients, (self.rows, capacity), np.float64)
        self.point_facts = moved(self.point_facts, (self.n_facts, capacity), np.float64)
        self.birthdays = moved(self.birthdays, capacity, np.int64)
        self.keys_array = moved(self.keys_array, capacity, np.float64)
        self.heap_array = moved(self.heap_array, capacity, np.intp)
        if self.pairs is not None:
            self.pairs = moved(self.pairs, (2, capacity), np.int32)
            self.first = <int*> array_data(self.pairs)
            self.second = self.first + capacity
        self.coef = <double*> array_data(self.coefficients)
        self.facts = <double*> array_data(self.point_facts)
        self.born = <long long*> array_data(self.birthdays)
        self.keys = <double*> array_data(self.keys_array)
        self.heap = <Py_ssize_t*> array_data(self.heap_array)
        self.capacity = capacity

    def reserve(self, Py_ssize_t newcomers):
        """Make sure that so many terms can enter without any array moving."""
        cdef Py_ssize_t wanted
        self.tidy()
        wanted = self.stop + newcomers
        if self.budget.code in (RECENT, SMALLEST) and wanted > self.budget.size:
            wanted = self.budget.size
        if wanted <= self.capacity:
            return
        if self.start and 2 * (self.count + newcomers) <= self.capacity:
            self.pack()
            return
        wanted = max(2 * self.count, self.count + newcomers, 16)
        if self.budget.code in (RECENT, SMALLEST):
            wanted = min(wanted, self.budget.size)
        self.pack()
        self.allocate(wanted)

    def widen(self, Py_ssize_t outputs):
        """Make room for more outputs; their coefficients are 0."""
        cdef Py_ssize_t channels = self.rows // self.outputs
        old = self.coefficients.reshape(channels, self.outputs, self.capacity)
        new = np.zeros((channels, outputs, self.capacity))
        new[:, :self.outputs] = old
        self.outputs = outputs
        self.rows = channels * outputs
        self.coefficients = new.reshape(self.rows, self.capacity)
        self.coef = <double*> array_data(self.coefficients)

    def tidy(self):
        """Pack if a slot in use may hold no term, so that [start, stop) is exactly the live terms."""
        if self.stale or self.count != self.stop - self.start:
            self.pack()

    def live_slots(self):
        """Slots that hold a term, oldest first."""
        slots = np.arange(self.start, self.stop)
        slots = slots[(self.coefficients[:, self.start:self.stop] != 0).any(axis=0)]
        return slots[np.argsort(self.birthdays[slots], kind="stable")]

    def pack(self):
        """Move the terms to the front, oldest first."""
        slots = self.live_slots()
        n = len(slots)
        if self.objects is None:
            self.points[:n] = self.points[slots]
        else:
            kept = [self.objects[slot] for slot in slots]
            self.objects[:] = kept + [None] * (self.capacity - n)
        self.coefficients[:, :n] = self.coefficients[:, slots]
        self.coefficients[:, n:] = 0.0
        self.point_facts[:, :n] = self.point_facts[:, slots]
        self.birthdays[:n] = self.birthdays[slots]
        if self.pairs is not None:
            self.pairs[:, :n] = self.pairs[:, slots]
        self.start = self.oldest = 0
        self.stop = self.count = n
        self.stale = False
        self.rebuild_heap()

    cdef bint is_full(self) noexcept nogil:
        return self.budget.code in (RECENT, SMALLEST) and self.count >= self.budget.size

    cdef double size_of(self, const double* stored) noexcept nogil:
        """max_y |coefficient| in frame coordinates: what Smallest goes by."""
        cdef Py_ssize_t row
        cdef double key = 0.0
        for row in range(self.outputs):
            key = max(key, fabs(stored[row]))
        return key

    cdef Py_ssize_t victim(self, const double* stored) noexcept nogil:
        """The slot that a newcomer would overwrite, NOBODY or NEWCOMER."""
        if not self.is_full():
            return NOBODY
        if self.budget.code == RECENT:
            return self.oldest
        # Among equals the oldest goes, not the newcomer.
        return NEWCOMER if self.size_of(stored) < self.keys[self.heap[0]] else self.heap[0]

    cdef Py_ssize_t enter(self, long long t, const double* stored) noexcept nogil:
        """Give a new term a slot, dropping one if the budget says so; -1 if the newcomer goes.

        The caller has reserved room and writes the point and its facts into the slot.
        """
        cdef Py_ssize_t row, i, slot = self.victim(stored)
        cdef bint full = self.is_full()
        cdef double key = self.size_of(stored)
        if slot == NEWCOMER:
            return -1
        if self.budget.code == RECENT:
            slot = (self.oldest + self.count) % self.budget.size
            if full:
                self.oldest = (self.oldest + 1) % self.budget.size
        elif self.budget.code == SMALLEST:
            slot = slot if full else self.count
        else:
            slot = self.stop
        if not full:
            self.count += 1
        if slot >= self.stop:
            self.stop = slot + 1
        for row in range(self.rows):
            self.coef[row * self.capacity + slot] = stored[row]
        self.born[slot] = t
        if self.budget.code == SMALLEST:
            self.keys[slot] = key
            if full:
                self.sift_down(0, self.count)
            else:
                self.heap[self.count - 1] = slot
                i = self.count - 1
                while i > 0 and self.goes_before(self.heap[i], self.heap[(i - 1) // 2]):
                    self.heap[i], self.heap[(i - 1) // 2] = self.heap[(i - 1) // 2], self.heap[i]
                    i = (i - 1) // 2
        return slot

    cdef bint first_expires(self, long long t) noexcept nogil:
        """Whether f_{t+1} may not use the first term, because a window has left it behind."""
        if self.budget.code not in (WINDOW, SUBLINEAR) or self.start == self.stop:
            return False
        return self.born[self.start] < t + 1 - window_length(&self.budget, t + 1)

    cdef void drop_first(self) noexcept nogil:
        """Drop the term at the beginning of a window."""
        cdef Py_ssize_t row
        for row in range(self.rows):
            self.coef[row * self.capacity + self.start] = 0.0
        self.start += 1
        self.count -= 1

    cdef void clear(self) noexcept nogil:
        """Forget all terms, leaving the slots in use where they are."""
        cdef Py_ssize_t row, slot
        for row in range(self.rows):
            for slot in range(self.start, self.stop):
                self.coef[row * self.capacity + slot] = 0.0
        self.count = 0
        if self.budget.code == RECENT:
            self.oldest = self.stop % self.budget.size
        elif self.budget.code in (WINDOW, SUBLINEAR):
            self.start = self.stop

    cdef void fold(self, const Frame* frame) noexcept nogil:
        """Multiply the frame into the stored coordinates."""
        cdef double stored[MAX_CHANNELS]
        cdef Py_ssize_t slot, output, stride = self.outputs * self.capacity
        cdef int channel
        cdef double value
        for output in range(self.outputs):
            for slot in range(self.start, self.stop):
                for channel in range(frame.channels):
                    stored[channel] = self.coef[channel * stride + output * self.capacity + slot]
                for channel in range(frame.channels):
                    value = frame_row(frame, channel, stored)
                    if fabs(value) < TINY:
                        value = 0.0
                        self.stale = True
                    self.coef[channel * stride + output * self.capacity + slot] = value
        self.rebuild_heap()

    # ---- The heap of Smallest -----------------------------------------------------------------

    cdef bint goes_before(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Whether slot a is dropped before slot b: smaller, or as small and older."""
        return self.keys[a] < self.keys[b] or (self.keys[a] == self.keys[b] and self.born[a] < self.born[b])

    cdef void sift_down(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t child, slot = self.heap[i]
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and self.goes_before(self.heap[child + 1], self.heap[child]):
                child += 1
            if not self.goes_before(self.heap[child], slot):
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = slot

    cdef void rebuild_heap(self) noexcept nogil:
        """Keys and heap from the coefficients: after a fold, a move or a load."""
        cdef Py_ssize_t i, row
        if self.budget.code != SMALLEST:
            return
        for i in range(self.count):
            self.heap[i] = i
            self.keys[i] = 0.0
            for row in range(self.outputs):
                self.keys[i] = max(self.keys[i], fabs(self.coef[row * self.capacity + i]))
        for i in range(self.count // 2 - 1, -1, -1):
            self.sift_down(i, self.count)

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        """Named arrays from which `restore` makes the same pool, slot by slot."""
        # Changes nothing, not even the places of terms: where a pack is due, it gives the packed form.
        packed = self.stale or self.count != self.stop - self.start
        used = self.live_slots() if packed else np.arange(self.start, self.stop)
        state = {
            "coefficients": self.coefficients[:, used],
            "point_facts": self.point_facts[:, used],
            "birthdays": self.birthdays[used],
            "oldest": 0 if packed else int(self.oldest),
        }
        if self.pairs is not None:
            state["pairs"] = self.pairs[:, used]
        if self.objects is None:
            state["points"] = self.points[used]
        else:
            state["objects"] = [self.objects[slot] for slot in used]
        return state

    def restore(self, state):
        """Take over a state that has been validated (`check_state`)."""
        n = len(state["birthdays"])
        self.start = self.stop = self.count = self.oldest = 0
        self.allocate(n)
        if self.objects is None:
            self.points[:] = state["points"]
        else:
            self.objects[:] = list(state["objects"])
        self.coefficients[:] = state["coefficients"]
        self.point_facts[:] = state["point_facts"]
        self.birthdays[:] = state["birthdays"]
        if self.pairs is not None:
            self.pairs[:] = state["pairs"]
        self.oldest = state["oldest"]
        self.stop = self.count = n
        self.rebuild_heap()

    def check_state(self, state, long long t, Py_ssize_t labels=1):
        """Raise ValueError unless a state fits this pool: every index and shape that C relies on."""
        birthdays = check_array(state["birthdays"], "birthdays", np.int64, (-1,))
        n = len(birthdays)
        check_array(state["coefficients"], "coefficients", np.float64, (self.rows, n))
        check_array(state["point_facts"], "point_facts", np.float64, (self.n_facts, n))
        if self.objects is None:
            check_array(state["points"], "points", self.points.dtype, (n, self.n_features))
        elif len(state["objects"]) != n or isinstance(state["objects"], dict):
            raise ValueError(f"there are not {n} objects for {n} terms")
        if n and birthdays.max() > t:
            raise ValueError("a term is younger than the model")
        if self.pairs is not None:
            pairs = check_array(state["pairs"], "pairs", np.int32, (2, n))
            if n and not (0 <= pairs.min() and pairs.max() < labels):
                raise ValueError("the labels of the terms are not pairs of known labels")
        if self.budget.code in (RECENT, SMALLEST) and n > self.budget.size:
            raise ValueError(f"{n} terms are more than the budget of {self.budget.size}")
        oldest = state["oldest"]
        if type(oldest) is not int:
            raise ValueError("the slot of the oldest term is not a whole number")
        if oldest != 0 and not (self.budget.code == RECENT and n == self.budget.size and 0 < oldest < n):
            raise ValueError(f"{oldest} is not the slot of the oldest of {n} terms")
        if n and not (np.diff(np.roll(state["birthdays"], -oldest)) > 0).all() \
                and self.budget.code != SMALLEST:
            raise ValueError("the terms are not in the order of their birthdays")

    def _check(self):
        """Assert every invariant."""
        n = self.stop - self.start
        assert 0 <= self.start <= self.stop <= self.capacity
        assert 0 <= self.count <= n
        assert self.coefficients.shape == (self.rows, self.capacity)
        assert len(self.birthdays) == self.capacity
        assert not self.coefficients[:, :self.start].any() and not self.coefficients[:, self.stop:].any()
        assert len(self.live_slots()) <= self.count, "a slot without a term has a coefficient"
        if self.objects is None:
            assert self.points.shape == (self.capacity, self.n_features)
        if self.budget.code in (RECENT, SMALLEST):
            assert self.count <= self.budget.size
        if self.budget.code == SMALLEST:
            heap = self.heap_array[:self.count].tolist()
            assert sorted(heap) == list(range(self.count))
            for i in range(1, self.count):
                assert not self.goes_before(heap[i], heap[(i - 1) // 2]), "the heap is out of order"
        elif self.budget.code == RECENT:
            circle = [(self.oldest + i) % self.budget.size for i in range(self.count)]
            assert (np.diff(self.birthdays[circle]) > 0).all()
        else:
            assert (np.diff(self.birthdays[self.start:self.stop]) > 0).all()


def check_array(array, name, dtype, shape):
    """An array of this kind and shape (-1: any length) with finite numbers, or ValueError."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise ValueError(f"{name} is not an array of {np.dtype(dtype)}")
    if array.ndim != len(shape) or any(want not in (-1, have) for want, have in zip(shape, array.shape)):
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array


def aligned_empty(shape, dtype):
    """np.empty that starts at a cache line: vector loads that straddle two lines take half as long again."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(shape)


cdef char* array_data(array) except? NULL:
    """Address of a C-contiguous array's elements, valid while the array lives."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef char* data = <char*> view.buf
    PyBuffer_Release(&view)
    return data
