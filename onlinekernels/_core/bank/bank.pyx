"""Many small models of one kind, side by side: what `Bank` keeps.

Models live in blocks of OK_LANES.  Within a block, lane l of every row of numbers belongs to model l, so that one
vector instruction serves all of them: points are [block][slot][feature][lane], coefficients [block][slot][lane].  A slot
that holds no term has coefficient 0.  Each model has a frame of its own (the factor that its stored coefficients have to
be multiplied by), an offset, the scalar of its loss, and its number of examples.

`block` has what examples do to the models, `shares` the threads of a call.

All that can fail or be interrupted (memory, keys, Python) comes before the first write.  What then learns is compiled code
that cannot raise, in threads that know nothing of the interpreter; nobody runs Python code here until all of them are done.
"""
import numpy as np
from libc.stdint cimport int64_t
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.bank.block cimport LAST_TICK, MAX_SLOTS, Examples, Outcome, Store
from onlinekernels._core.bank.shares cimport Shares
from onlinekernels._core.formulas.losses cimport Loss
from onlinekernels._core.formulas.moves cimport Step
from onlinekernels._core.formulas.vecmath cimport OK_LANES
from onlinekernels._core.run.example cimport NONE

LANES_CODES = {"lanes": OK_LANES, "most slots": MAX_SLOTS}


cdef class Models:
    """Many small models of one kind.

    Parameters
    ----------
    loss, step : tuple
        As the engine takes them.
    implicit : bool
        Whether steps are implicit, with a penalty, or gradient steps.
    regularization, penalty : float
    recent : bool
        Whether the budget keeps the latest terms, or the largest.
    slots : int
        Terms of a model, at most.
    offset : bool
    gamma : float or None
        Of the Gaussian exp(-gamma |x - z|^2); None is the linear kernel.
    n_features : int
    dtype : numpy dtype
        float32 or float64, of points, coefficients and kernel values.
    """
    cdef Store store
    cdef readonly Py_ssize_t n          # models
    cdef readonly object dtype
    cdef readonly dict arrays           # by name; what `store` points to
    cdef readonly dict index            # number of each key's model, if models have keys
    cdef public object labels           # of all models, or None: theirs who learns
    cdef readonly int64_t visited       # rows of all calls that learned, those that did not count included

    def __init__(self, *, loss, step, bint implicit, double regularization, double penalty, bint recent, Py_ssize_t slots,
                 bint offset, gamma, Py_ssize_t n_features, dtype):
        code, scalar, nu, own_step = loss
        self.store.rule.loss = Loss(code, scalar, nu, own_step)
        self.store.rule.has_offset = offset
        self.store.linear = gamma is None
        self.store.gamma = 0.0 if gamma is None else gamma
        self.store.rule.implicit, self.store.recent, self.store.slots = implicit, recent, slots
        self.store.d = n_features
        self.dtype = np.dtype(dtype)
        single = self.dtype == np.float32
        self.store.rule.range = np.finfo(self.dtype).max
        self.store.rule.dust = 1e-6 if single else 0.0
        self.store.rule.least_frame, self.store.rule.most = (1e-20, 1e30) if single else (1e-100, 1e150)
        self.configure(step, regularization, penalty)
        self.index = {}
        self.move_to(self.allocated(0))

    def configure(self, step, double regularization, double penalty):
        """Set what may change between calls."""
        self.store.step = Step(step[0], step[1], step[2], step[3], step[4])
        self.store.regularization, self.store.rule.penalty = regularization, penalty

    cdef dict allocated(self, Py_ssize_t blocks):
        """Arrays of so many blocks, at least as many as are in use, with what is learned."""
        cdef Py_ssize_t slots = self.store.slots, used = (self.n + OK_LANES - 1) // OK_LANES
        shapes = {"points": (self.dtype, (slots, self.store.d)), "coefficients": (self.dtype, (slots,)),
                  "born": (np.uint8, (slots,)), "t": (np.int64, ()), "frame": (np.float64, ()),
                  "offset": (np.float64, ()), "scalar": (np.float64, ()), "count": (np.uint8, ()), "clock": (np.uint8, ())}
        if self.store.rule.loss.step > 0.0:
            shapes.update(gap=(np.float64, ()), gap_weight=(np.float64, ()))
        starts = {"frame": 1.0, "scalar": self.store.rule.loss.scalar}
        arrays = {}
        for name, (dtype, shape) in shapes.items():
            arrays[name] = zeros((blocks, *shape, OK_LANES), np.dtype(dtype))
            if name in starts:
                arrays[name][...] = starts[name]
            if used:
                arrays[name][:used] = self.arrays[name][:used]
        return arrays

    cdef move_to(self, dict arrays):
        """Go on in other arrays."""
        cdef Store store = self.store
        store.t = <int64_t*> array_data(arrays["t"])
        store.frame = <double*> array_data(arrays["frame"])
        store.offset = <double*> array_data(arrays["offset"])
        store.scalar = <double*> array_data(arrays["scalar"])
        store.gap = store.gap_weight = NULL
        if "gap" in arrays:
            store.gap = <double*> array_data(arrays["gap"])
            store.gap_weight = <double*> array_data(arrays["gap_weight"])
        store.count = <unsigned char*> array_data(arrays["count"])
        store.clock = <unsigned char*> array_data(arrays["clock"])
        store.born = <unsigned char*> array_data(arrays["born"])
        self.store, self.arrays = store, arrays

    def reserve(self, Py_ssize_t n):
        """Memory for n models, or MemoryError and all is as it was; it doubles, so that each moves a few times at most."""
        cdef Py_ssize_t blocks = (n + OK_LANES - 1) // OK_LANES, room = len(self.arrays["t"])
        if blocks > room:
            self.move_to(self.allocated(max(blocks, 2 * room) if self.n else blocks))

    cdef int enter(self, dict keys) except -1:
        """Let keys have models, all of them or none; their numbers follow those that there are."""
        try:
            self.index.update(keys)
        except BaseException:
            while len(self.index) > self.n:
                self.index.popitem()            # asks no key whether it equals another
            raise
        return 0

    cdef Shares shared_out(self, Examples* examples, Py_ssize_t first, Py_ssize_t last, Py_ssize_t threads):
        """The places first, ..., last - 1 of a call, for each of its threads."""
        cdef Py_ssize_t i
        if threads >= last - first:
            threads = 1
        cdef Shares shares = Shares(threads, first, last, zeros((threads, self.store.d, OK_LANES), self.dtype))
        for i in range(threads):
            shares.of[i].store, shares.of[i].examples = &self.store, examples
            shares.of[i].single = self.dtype == np.float32
            shares.of[i].points = array_data(self.arrays["points"])
            shares.of[i].coef = array_data(self.arrays["coefficients"])
        return shares

    def visit(self, X, const double[::1] y, double[::1] scores, *, groups=None, const unsigned char[::1] active=None,
              Py_ssize_t first, Py_ssize_t last, Py_ssize_t threads=1, bint learning=False, Py_ssize_t rows=0,
              Py_ssize_t n=0, dict keys=None, labels=None, unsigned char[::1] failed=None):
        """The examples of blocks first, ..., last - 1: scores, and moves if `learning`.

        Row m of X is for model m, unless `groups` = (blocks, starts, order) says what belongs together; `first` and
        `last` are then places in `blocks`.

        Whoever learns is alone.  These are `rows` rows of a call (those that do not count included).  With them there are n
        models, for which there is memory; the new ones have `keys`, and all have these `labels`.  `failed` tells, and is
        told, which models have met a row that they cannot learn.  After an error or an interrupt, `visited` says whether
        all rows are learned or none.

        Returns
        -------
        learned, row, reason : how many rows went well; the first that did not (-1: none), and why
        """
        cdef Examples examples
        cdef const int64_t[::1] blocks, order
        cdef const int64_t[:, ::1] starts
        cdef Outcome outcome = Outcome(0, -1, NONE)
        cdef Shares shares = None
        examples.X = array_data(X)
        examples.n = X.shape[0]
        examples.y = <const double*> NULL if y is None or not len(y) else &y[0]
        examples.active = <const unsigned char*> NULL if active is None or not len(active) else &active[0]
        examples.failed = NULL if failed is None else &failed[0]
        examples.learning = learning
        examples.blocks = NULL
        if last > first:
            examples.scores = &scores[0]
            if groups is not None:
                blocks, starts, order = groups
                examples.blocks, examples.starts, examples.order = &blocks[0], &starts[0, 0], &order[0]
            shares = self.shared_out(&examples, first, last, threads)
        if learning:
            if keys:
                self.enter(keys)
            self.n, self.labels = n, labels
        if last > first:
            shares.run()
            outcome = shares.outcome()
        if learning:
            self.visited += rows
        return outcome.learned, outcome.row, outcome.reason

    def values(self, name):
        """One number of each model: an array over models."""
        return self.arrays[name].reshape(-1)[:self.n].copy()

    def gather(self, models):
        """State of some models, by name; the first axis of each array is over them, the second over slots."""
        block, lane = np.divmod(np.asarray(models, dtype=np.int64), OK_LANES)
        return {name: np.ascontiguousarray(array[block, ..., lane]) for name, array in self.arrays.items()}

    def admit(self, state, Py_ssize_t n, dict keys=None):
        """n more models, in a state that `gather` gave and `check_state` has seen."""
        self.reserve(self.n + n)
        block, lane = np.divmod(np.arange(self.n, self.n + n), OK_LANES)
        for name, array in self.arrays.items():
            array[block, ..., lane] = state[name]
        if keys:
            self.enter(keys)
        self.n += n

    def check_state(self, state, Py_ssize_t n):
        """Raise ValueError unless a state of n models fits: every index and shape that C relies on."""
        for name, array in self.arrays.items():
            check_array(state[name], name, array.dtype, (n, *array.shape[1:array.ndim - 1]))
        count, clock = state["count"].astype(int), state["clock"].astype(int)
        born, slots = state["born"], np.arange(self.store.slots)
        recent = self.store.recent
        if (count > self.store.slots).any():
            raise ValueError(f"a model has more terms than the budget of {self.store.slots}")
        if (state["t"] < 0).any() or (state["t"] >= 1 << 62).any():
            raise ValueError("t is not a number of examples")
        if "gap" in self.arrays and ((state["gap"] < 0) | (state["gap_weight"] < 0)).any():
            raise ValueError("a distance to the margin is below 0")
        if (state["frame"] == 0).any():
            raise ValueError("a frame is 0")
        if recent and ((clock != 0) & ((count < self.store.slots) | (clock >= self.store.slots))).any():
            raise ValueError("the slot of the oldest term is none")
        if not recent and ((clock >= LAST_TICK) | (clock < count)).any():
            raise ValueError("a clock has run out")
        free = slots >= count[:, None]  # no-cython-lint
        if state["coefficients"][free].any():
            raise ValueError("a slot without a term has a coefficient")
        if not recent:
            if (born[~free] >= np.repeat(clock, count)).any():
                raise ValueError("a term is younger than its model")
            days = np.sort(np.where(free, 256 + slots, born.astype(int)), axis=1)
            if (np.diff(days, axis=1) == 0).any():
                raise ValueError("two terms have the same birthday")

    def terms(self, Py_ssize_t model):
        """(points, true coefficients) of a model, oldest first, terms that have decayed to 0 left out."""
        state = {name: array[0] for name, array in self.gather([model]).items()}
        slots = np.arange(state["count"])
        if self.store.recent:
            slots = (slots + state["clock"]) % self.store.slots
        else:
            slots = np.argsort(state["born"][:state["count"]])
        slots = slots[state["coefficients"][slots] != 0]
        return state["points"][slots], state["frame"] * state["coefficients"][slots].astype(float)

    def term_counts(self):
        """Number of terms of each model."""
        return np.count_nonzero(self.arrays["coefficients"], axis=1).reshape(-1)[:self.n]

    def nbytes(self):
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def _check(self):
        """Assert every invariant."""
        blocks = len(self.arrays["t"])
        assert blocks * OK_LANES >= self.n
        for name, array in self.arrays.items():
            assert len(array) == blocks and array.shape[array.ndim - 1] == OK_LANES and array.flags.c_contiguous, name
        try:
            self.check_state(self.gather(np.arange(self.n)), self.n)
        except ValueError as error:
            raise AssertionError(str(error)) from error
        spare = self.gather(np.arange(self.n, blocks * OK_LANES))
        assert not spare["t"].any() and not spare["count"].any(), "a model beyond the last has learned"
        assert list(self.index.values()) in ([], list(range(self.n))), "keys and models do not fit"


cdef zeros(shape, dtype):
    """np.zeros that starts at a cache line."""
    size = dtype.itemsize
    for n in shape:
        size *= n
    memory = np.zeros(size + 64, dtype=np.uint8)
    start = -<Py_ssize_t> array_data(memory) & 63
    return memory[start:start + size].view(dtype).reshape(shape)
