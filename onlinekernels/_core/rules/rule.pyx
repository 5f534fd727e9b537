"""The contract of rules: what an example does to a function. The formulas are in ``moves`` and ``dense``."""
import numpy as np
from libc.math cimport INFINITY, NAN
from onlinekernels._core.formulas.moves cimport ADAPTED, DECAYING, FIXED, INVERSE_SQRT, Standing, Step, step_size
from onlinekernels._core.functions.function cimport Function, Scratch
from onlinekernels._core.functions.outputs cimport Outputs
from onlinekernels._core.run.example cimport Example

STEP_CODES = {"Fixed": FIXED, "InverseSqrt": INVERSE_SQRT, "Decaying": DECAYING, "MetaDescent": ADAPTED}
DIRECTIONS = "OneOutput", "Targets", "LabelPair"        # forms that ask for moves in one direction


def step_sizes(int code, double rate, double delay, double meta_rate, double memory, t):
    """eta_t for one t or an array of them."""
    cdef Step step = Step(code, rate, delay, meta_rate, memory)
    times = np.asarray(t, dtype=np.int64)
    sizes = np.array([step_size(&step, one) for one in times.ravel().tolist()])
    return sizes.reshape(times.shape) if times.ndim else float(sizes[0])


cdef class Rule:
    """Turns an example into a move, and has named state of its own.

    A rule says which `forms` it serves, by the names of their classes. It decides first, which changes nothing: it writes to
    the example, e.move, and e.term where all labels move. What its own state will be goes to e.decision, where it has
    `decision_size` bytes; when the move is carried out, `accept` makes the state follow. With n outputs, it implements

    `move(now, e)`
        the move in the direction of e.view, if it serves such a form: e.move.transform, alpha and offset. The scalar, its
        pace and the norms stay as they are unless it says otherwise. O(1);
    `move_all(now, outputs, y, k, e)`
        a move with a coefficient for every label, if it serves such a form: e.term.alpha, and e.term.offset. What it may
        find there is the derivative of the loss, e.derivative. O(n) and one product with the label kernel;

    and may implement

    `shrink(t, e)`
        the factor that it will apply to f, if it `looks_ahead`, at the scores after that. O(1);
    `look_back(now, e)`
        before that, if it has a trace too: the example at f_t itself, along e.term.labels. O(1);
    `decide_offsets(labels, offset, e)`
        after the move, if it adapts offsets itself, or something that goes with each of them. O(n);
    `accept(now, labels, offset, e)`
        the move is carried out: let its own state follow, and offsets that it adapts itself. O(n);
    `follow(w, e)`
        the move has been carried out: w.piece.slot is where the example is now. O(1) for all but second-order rules and
        those that move coefficients of other terms;
    `state`, `check_state`, `restore`, `grow`
        for a state of its own, between calls. Numbers per slot, or per pair of slots, are tables of the dictionary;
    `stand_on(function)`
        to know the function that it will move;
    `take_loss(loss)`
        to know a Python loss, if it `asks_loss` itself in `move`; e.failure says if that went wrong.

    Parameters
    ----------
    step : tuple
        (code, rate, delay, meta_rate, memory), for `MetaDescent` also meta_rate and memory of offsets and of the margin,
        the first rates of both, and whether to take exponentials.
    """
    def __init__(self, step):
        self.configure(step)

    def configure(self, step):
        """Set what may change between calls. O(1)."""
        self.step = Step(step[0], step[1], step[2], step[3], step[4])

    # ---- Decide -------------------------------------------------------------------------------

    cdef void move(self, const Standing* now, Example e) noexcept nogil:
        """For forms that ask for a move in one direction."""
        pass

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """For forms that ask for a coefficient for every output."""
        pass

    cdef void look_back(self, const Standing* now, Example e) noexcept nogil:
        """The example as f_t sees it, before the rule is asked how much it will shrink f. O(1)."""
        pass

    cdef double shrink(self, long long t, Example e) noexcept nogil:
        """What the rule leaves of old coefficients at example t, if it looks at the scores after that. O(1)."""
        return 1.0

    cdef bint decide_offsets(self, Py_ssize_t labels, const double* offset, Example e) noexcept nogil:
        """What `accept` will do to offsets that it adapts itself, and what goes with them; False if not finite. O(n)."""
        return True

    cdef bint is_finite(self, Example e) noexcept nogil:
        """Whether its own state would be, after the move that has been decided. O(1)."""
        return True

    cdef Py_ssize_t decision_size(self, Py_ssize_t width) noexcept:
        """Bytes of e.decision with so many outputs."""
        return 0

    # ---- Carry out ----------------------------------------------------------------------------

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        """The move that has been decided is carried out: let its own state follow, and offsets that it adapts itself. O(n)."""
        pass

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        """The move has been carried out: w.piece.slot is where the example is now, -1 if it is nowhere. O(1)."""
        pass

    # ---- Tell ---------------------------------------------------------------------------------

    cdef double step_at(self, long long t) noexcept nogil:
        """eta of example t, the latest one. O(1)."""
        return step_size(&self.step, t)

    cdef double noise_of_targets(self) noexcept nogil:
        """The variance of y about f, where the rule knows it. O(1)."""
        return 0.0

    cdef double longest(self) noexcept nogil:
        """What the sizes of all coefficients cannot exceed together, per weight of the examples and |l'|. O(1)."""
        return INFINITY

    cdef double half_width(self, Example e, Py_ssize_t output, int level, double share, double factor) noexcept nogil:
        """Half the width of the interval of a coverage about the score that was just evaluated: see `level_of`. O(1)."""
        return NAN

    cdef int stand_on(self, Function function) except -1:
        """This is the function that it will move. O(1)."""
        return 0

    def take_loss(self, loss):
        """This Python loss is learned. O(1)."""

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint ahead):
        """Make room for more labels than are known; those that learn ahead go on from the last one. O(width)."""

    def current_step(self, long long t):
        """eta of example t, the latest one. O(1)."""
        return self.step_at(t)

    def state(self, Py_ssize_t labels):
        """Named numbers and arrays. O(their size)."""
        return {}

    def check_state(self, state):
        """ValueError unless a state fits. O(its size)."""

    def restore(self, state):
        """Continue from a state that has been checked; the function has been restored. O(its size)."""

    def _check(self):
        """Assert every invariant."""
