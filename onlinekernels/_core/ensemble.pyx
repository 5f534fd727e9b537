"""Ensembles: members that learn for themselves, and a combiner that learns whom to trust.

Members do not know of each other, and do not depend on the combination: each learns from (x, y) alone.  A block of rows
is opened by all, run by all, and then combined in one loop over its rows.  Opening may fail, and is then taken back;
all else is compiled and cannot fail, so nobody is ever ahead of another.  A member whose numbers diverge, or whose loss
or kernel is Python that fails, is disabled at that row, and the others go on.

`SelfTuning` is an ensemble of posteriors whose kernels are learned as well: when, from which rows, and when to begin
anew.  A refresh learns kernels from rows that are kept, and lets new posteriors replay these.  Its work is counted, and
done in steps: some with every row that is learned, so that no row waits long.  At a row that is known beforehand all of
it is done, and the new posteriors take over.  So nothing depends on when the work was done, and whoever is interrupted
does it again.
"""
import warnings

import numpy as np
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, fmax, fmin
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.backend cimport Backend, RowBackend
from onlinekernels._core.combiners cimport (AveragedRanks, ChangeDetector, Combiner, DECIDED, IntervalTracker,
                                            Probabilities, TargetFences, likeliest)
from onlinekernels._core.formulas.moments cimport MANY, not_farther
from onlinekernels._core.combiners import LeastSquares, interval_ends
from onlinekernels._core.pool cimport Pool
from onlinekernels._core.targets cimport TargetScaler
from onlinekernels._core.transforms cimport Transform
from onlinekernels._core.arrays import check_array
from onlinekernels._core.transforms import SeriesDifferences
from onlinekernels._core.schema import (Array, Buffer, Count, Number, Part, Parts, Size, assign, at_least,
                                        not_negative, ordered, restore, state_of)

cdef enum:
    BLOCK = 128         # rows at most that all members learn before anything else happens
    SPACING = 512       # rows between two entries of the history, at first
    TRIES = 9           # of a member to learn a row while signals come
    SHARED = 16         # rows at least of which several threads learn
    ENTRIES = 256       # of a history; then every second one goes, and entries are twice as far apart

cdef enum Scale:
    # What the scores of a backend mean
    NUMBERS             # targets
    DENSITY             # how ordinary a row is
    MARGIN              # positive for the second of two classes
    LOG_ODDS            # of the second of two classes
    LABELS              # one for each label, about +1 and -1
    LOGITS              # one for each label, whose softmax are probabilities

cdef double LARGEST = 1e120     # answer of a member: squares of larger ones would leave the combiner without numbers
FEWEST = 20                     # innovations that values of the future are drawn from
cdef double LARGE = 6.0         # what an error counts for at most, in units of the running one
cdef long long FIRST = 10              # rows whose errors say nothing yet
EARLY = (32, 64, 128, 256)      # rows after which there is a first look at what is known
# rows after which the scores of detectors so far are forgotten: of few rows they are too low, and would stay
YOUNG = (500, 2000)
SCALES = {"numbers": NUMBERS, "density": DENSITY, "margin": MARGIN, "log odds": LOG_ODDS, "labels": LABELS,
          "logits": LOGITS}


class MemberError(Exception):
    """A member cannot take a row: `member`, and the error that it raised."""

    def __init__(self, member, error):
        super().__init__(member, error)
        self.member, self.error = member, error


@cython.final
cdef class Member:
    """A backend as a member of an ensemble: which rows it sees, and what its scores (`scale`, see `Scale`) mean there.

    `labels` are codes of those that the backend knows already, `before` rows that it has learned, and `disabled` is why
    it takes no part, if so. `state` has an engine whose kernel gets its width from the distances of the first rows, and
    these rows (`warm_up`) as long as they are looked at; they are learned anew by an engine that fits them.
    """

    cdef readonly str name
    cdef public object model            # what shows the backend to users
    cdef readonly Backend backend
    cdef object state                   # what has the backend, which may become another one; or None
    cdef Py_ssize_t warmed              # rows of the latest block of first rows that were learned
    cdef readonly Transform transform   # what its rows go through first; None: they are those of the ensemble
    cdef Py_ssize_t base                # column of rows that its targets are counted from, those of a series; or -1
    cdef readonly int scale             # what its scores mean
    cdef readonly Py_ssize_t width      # outputs that there is room for
    cdef readonly bint frozen           # whether it learns no more
    cdef readonly bint has_deviations   # whether the combination wants its deviations
    cdef readonly bint has_python       # whether code of the user's runs in it
    cdef readonly bint disabled         # whether it takes part no more,
    cdef object text                    # and why
    cdef readonly long long before      # rows that it had learned when it became a member
    cdef readonly long long t           # rows that it has seen as a member
    cdef public long long begun         # rows that the ensemble had seen when it began anew
    cdef public long long unheard       # rows that it learns before it takes part
    cdef public long long due           # row of the ensemble from which on it begins anew, if it is disabled
    cdef public long long failures      # how often it was
    # Labels: the backend's are numbered as they appear to it
    cdef readonly bint fixed            # whether no other can join
    cdef Py_ssize_t known               # how many it has met
    cdef object label_table             # owns these:
    cdef long long* codes               # the ensemble's code of a label
    cdef long long* labels              # the label of a code, or -1
    # The block
    cdef Py_ssize_t rows                # of it; 0: none is open
    cdef Py_ssize_t until               # rows in which it takes part
    cdef Py_ssize_t trained             # rows that are learned
    cdef bint is_wild                   # whether a score was too large, or no number,
    cdef bint diverged                  # or the backend has said that it diverges
    cdef bint exhausted                 # or signals have come again and again in the user's code
    cdef object memory                  # owns these:
    cdef double* y                      # as the backend takes them
    cdef Py_ssize_t* known_before       # labels before each row
    cdef double* raw                    # scores of a row
    cdef double* answers                # of all rows, if it is frozen
    cdef object attached                # what the backend's call is about
    cdef object signal                  # that came in the user's code

    def __init__(self, str name, Backend backend, str scale, Transform transform=None, model=None, labels=(),
                 long long before=0, bint frozen=False, bint fixed=False, bint has_deviations=False,
                 bint has_python=False, disabled=None, state=None):
        self.has_deviations, self.has_python, self.fixed = has_deviations, has_python, fixed
        self.disabled, self.text = disabled is not None, disabled
        self.name, self.backend, self.scale, self.transform, self.model = name, backend, SCALES[scale], transform, model
        self.before, self.frozen, self.base, self.state = before, frozen, -1, state
        if isinstance(transform, SeriesDifferences):
            self.base = transform.n_features - transform.targets
        self.go_on_from(0, labels)

    @property
    def is_labelled(self):
        """Whether its scores are of labels that join as they appear."""
        return self.scale >= LABELS

    @property
    def label_codes(self):
        """The ensemble's codes of its labels."""
        return [self.codes[label] for label in range(self.known)]

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t targets, Py_ssize_t labels) except -1:
        """Room for a block."""
        cdef Py_ssize_t width = max(2, max(targets, labels))
        if self.label_table is None or self.label_table.shape[1] < width:
            table = np.full((2, 2 * width), -1, dtype=np.int64)
            if self.label_table is not None:
                table[:, :self.label_table.shape[1]] = self.label_table
            self.codes, self.label_table = <long long*> array_data(table), table
            self.labels = self.codes + 2 * width
        width = max(width, self.width)
        size = n * (max(1, targets) + 1) + width * (1 + n * self.frozen)
        if self.memory is None or len(self.memory) < size:
            memory = np.zeros(size)
            self.y, self.memory = <double*> array_data(memory), memory
        self.known_before = <Py_ssize_t*> (self.y + n * max(1, targets))
        self.raw, self.width = <double*> (self.known_before + n), width
        self.answers = self.raw + width

    cdef int attach(self, examples, Py_ssize_t n) except -1:
        """A call is about these rows, or what its transform makes of n of them at a time."""
        cdef double[:, ::1] rows
        if self.transform is not None:
            self.transform.reserve(n)
            rows = <double[:self.transform.capacity, :self.transform.n_features]> self.transform.out
            examples = np.asarray(rows)
        elif self.has_python:                   # out of reach of the user's code, which may keep what it sees
            examples = examples.copy()
        self.attached = examples
        self.backend.attach(examples)

    def catch_up(self):
        """The first rows are those that were learned. As often as you like."""
        if self.state is not None and self.state.warm_up is not None:
            self.state.warm_up.commit(self.warmed)

    cdef Py_ssize_t rows_at_once(self) except -1:
        """Up to the next look at the first rows; if that is due, it is done, and the engine that fits them goes on."""
        while self.state is not None and self.state.warm_up is not None:
            self.catch_up()
            if self.state.warm_up.left:
                return min(self.backend.rows_at_once(), self.state.warm_up.left)
            self.state.look()
            if self.state.engine is not self.backend:
                self.backend.detach()
                self.backend = self.state.engine
                self.backend.attach(self.attached)
        return self.backend.rows_at_once()

    cdef int open(self, examples, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t targets, Py_ssize_t labels) except -1:
        """Get ready for n rows of the call from `first` on. As the backend."""
        cdef Py_ssize_t i, known = self.known
        cdef long long code
        self.reserve(n, targets, labels)
        if self.scale == NUMBERS:
            memcpy(self.y, y, n * targets * sizeof(double))
        for i in range(n if self.scale >= MARGIN else 0):
            code = <long long> y[i]
            self.known_before[i] = known
            if self.scale < LABELS:
                if code > 1:
                    raise ValueError("a loss of two classes cannot take a third one")
                self.y[i] = 2.0 * code - 1.0
                continue
            if self.labels[code] < 0 or self.labels[code] >= known or self.codes[self.labels[code]] != code:
                if self.fixed:
                    raise ValueError("its labels are fixed, and another one has joined")
                self.labels[code], self.codes[known] = known, code
                known += 1
            self.y[i] = <double> self.labels[code]
        if self.frozen:
            self.backend.evaluate(examples[first:first + n] if self.transform is None else self.attached[:n], n,
                                  self.answers, self.width, NULL, 0)
        else:
            self.rows_at_once()
            first = first if self.transform is None else 0
            if self.state is not None and self.state.warm_up is not None:
                self.warmed = 0
                self.state.warm_up.open(self.attached[first:first + n],
                                        np.array(<double[:n * self.backend.groups]> self.y),
                                        None if weights == NULL else np.array(<const double[:n]> weights))
            self.backend.open(first, n, self.y, weights, known)
        self.rows = self.until = n
        self.trained, self.is_wild, self.diverged, self.exhausted = 0, False, False, False

    cdef void tell(self, Py_ssize_t i, const double* y, Py_ssize_t targets) noexcept nogil:
        """The targets of row i are these."""
        cdef Py_ssize_t j
        for j in range(targets if self.until > i else 0):
            self.y[i * targets + j] = y[j]
            if self.base >= 0:
                self.y[i * targets + j] -= self.transform.out[i * self.transform.n_features + self.base + j]

    cdef void test(self, Py_ssize_t i, double* scores, Py_ssize_t outputs, double* deviations) noexcept nogil:
        """Its scores of row i, as the combiner takes them; zeros once it is disabled."""
        cdef Py_ssize_t j, known = self.known_before[i] if self.scale >= LABELS else 0, width = known
        if self.scale < LABELS:
            width = outputs if self.scale == NUMBERS else 1
        if self.until > i:
            if self.frozen:
                memcpy(self.raw, self.answers + i * self.width, width * sizeof(double))
            elif not self.tested(i, deviations):
                width, self.until = 0, i
            for j in range(width):
                if not fabs(self.raw[j]) < LARGEST:
                    self.until, self.is_wild = i, True
        if self.until > i:
            self.place(self.raw, scores, outputs, known)
            if self.base >= 0 and self.t + self.before + i > 0:
                for j in range(outputs):
                    scores[j] += self.transform.out[i * self.transform.n_features + self.base + j]
        else:
            memset(scores, 0, outputs * sizeof(double))

    cdef bint tested(self, Py_ssize_t i, double* deviations) noexcept nogil:
        cdef Py_ssize_t tries = 1
        while not self.backend.test(i, self.raw, deviations if self.has_deviations else NULL):
            if not self.may_try_again(tries):
                return False
            tries += 1
        return True

    cdef void train(self, Py_ssize_t i) noexcept nogil:
        """Learn row i, which was tested, unless it is disabled by now."""
        cdef Py_ssize_t tries = 1
        if self.until <= i:
            return
        while not (self.frozen or self.backend.train(i)):
            # its label joins anew
            if not (self.may_try_again(tries) and self.backend.test(i, self.raw, NULL)):
                self.until = i                  # and what it has said of this row counts no more
                return
            tries += 1
        self.trained = i + 1
        if not self.frozen and self.backend.diverges():
            self.diverged, self.until = True, i + 1

    cdef bint may_try_again(self, Py_ssize_t tries) noexcept with gil:
        """Whether a signal, or want of memory, came in a loss of the user's, not too often: it is raised later."""
        signal = self.backend.signal()
        if signal is not None and self.signal is None:
            self.signal = signal
        self.exhausted = signal is not None and tries == TRIES
        return signal is not None and tries < TRIES

    cdef void place(self, double* raw, double* scores, Py_ssize_t outputs, Py_ssize_t known) noexcept nogil:
        """The backend's scores as the combiner takes them: of classes in [-1, 1], as estimates of 2 p - 1."""
        cdef Py_ssize_t l
        cdef double largest, total = 0.0, p
        if self.scale <= DENSITY:
            memcpy(scores, raw, outputs * sizeof(double))
            return
        for l in range(outputs):
            scores[l] = -1.0
        if self.scale < LABELS:
            p = raw[0] if self.scale == MARGIN else 2.0 / (1.0 + exp(-raw[0])) - 1.0
            p = fmin(fmax(p, -1.0), 1.0)
            if outputs > 0:
                scores[0] = -p
            if outputs > 1:
                scores[1] = p
            return
        if self.scale == LOGITS and known:
            largest = raw[0]
            for l in range(1, known):
                largest = fmax(largest, raw[l])
            for l in range(known):
                raw[l] = exp(raw[l] - largest)
                total += raw[l]
            for l in range(known):
                raw[l] = 2.0 * raw[l] / total - 1.0
        for l in range(known):
            if self.codes[l] < outputs:
                scores[self.codes[l]] = fmin(fmax(raw[l], -1.0), 1.0)

    cdef void commit(self, Py_ssize_t n) noexcept:
        """The first n rows of the block count, or as many of them as it has learned."""
        cdef Py_ssize_t i
        if self.rows == 0:
            return
        self.disabled = self.disabled or self.until < n or n > 0 and self.diverged
        n = min(n, self.trained)
        if not self.frozen:
            self.backend.commit(n)
            self.warmed = n
        for i in range(n if self.scale >= LABELS else 0):
            self.known = max(self.known, 1 + <Py_ssize_t> self.y[i])
        self.t += n
        self.rows = 0
        if self.disabled:
            self.until = 0

    @property
    def status(self):
        """Why it is disabled; None if it takes part."""
        return (self.text or "it failed") if self.disabled else None

    def go_on_from(self, long long t, codes):
        """It has seen so many rows, and labels with these codes, in this order."""
        self.t, self.known = t, 0
        self.reserve(1, 1, max(codes, default=1) + 1)
        for code in codes:
            self.codes[self.known], self.labels[code] = code, self.known
            self.known += 1

    def find_reason(self):
        """Why it was disabled in the latest block, in words."""
        if self.text is not None:
            return
        if self.is_wild:
            self.text = "its answers are too large, or not numbers"
        elif self.diverged:
            self.text = "learning diverges"
        elif self.exhausted:
            self.text = in_words(self.signal)
        else:
            self.text = in_words(self.backend.failure())

    def disable(self, error):
        """Take part no more, for this error."""
        self.text = in_words(error)
        self.disabled, self.until = True, 0

    def wait(self, long long t):
        """Begin anew some thousand rows after row t - 1 of the ensemble, twice as late each time."""
        self.failures += 1
        self.due = ((t - 1) // SPACING + 1 + (1 << min(self.failures, 20))) * SPACING

    cdef int evaluate(self, examples, Py_ssize_t n, double* raw, Py_ssize_t width, double* scores, Py_ssize_t outputs,
                      Py_ssize_t stride, double* deviations, Py_ssize_t spread) except -1:
        """Scores of n rows as of now, as the combiner takes them; raw: (n, width), for those of the backend."""
        cdef Py_ssize_t i, j
        cdef const double* bases = <const double*> array_data(examples) if self.base >= 0 else NULL
        if self.t + self.before == 0:
            for i in range(n):
                self.place_nothing(scores + i * stride, outputs)
            return 0
        self.backend.evaluate(examples, n, raw, width, deviations if self.has_deviations else NULL, spread)
        for i in range(n):
            self.place(raw + i * width, scores + i * stride, outputs, self.known)
            for j in range(outputs if self.base >= 0 else 0):
                scores[i * stride + j] += bases[i * self.transform.n_features + self.base + j]

    cdef void place_nothing(self, double* scores, Py_ssize_t outputs) noexcept nogil:
        """Scores before anything is learned."""
        cdef Py_ssize_t l
        for l in range(outputs):
            scores[l] = -1.0 if self.scale >= MARGIN else 0.0

    @property
    def calls_python(self):
        """Whether code of the user's runs in it, or in a member of it."""
        return self.has_python or isinstance(self.backend, Ensemble) and any(each.calls_python
                                                                             for each in self.backend.members)

    def may_fail(self, error):
        """Whether an error in getting ready is about these rows, or the user's code, and so the member's own."""
        if isinstance(error, MemoryError) or not isinstance(error, Exception):
            return False
        return self.has_python or isinstance(error, (ValueError, FloatingPointError, MemberError))


def in_words(error):
    """Why a member is disabled that has raised an error."""
    return f"{type(error).__name__}: {error}"


@cython.final
cdef class Centre(RowBackend):
    """How far a row is from the middle, all features together: minus the sum of their sizes. It learns nothing."""

    def __init__(self, Py_ssize_t n_features):
        Backend.__init__(self, "novelty", 1)
        self.n_features = n_features

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return True

    cdef void answer(self, const double* x, double* scores) noexcept nogil:
        cdef Py_ssize_t j
        scores[0] = 0.0
        for j in range(self.n_features):
            scores[0] -= fabs(x[j])


cdef double FADING = 0.999              # memory of what is known of targets
cdef double PRIOR = 5.0                 # rows that say beforehand that a target says nothing of the next
cdef double LARGEST_SUM = 1e300
cdef double FARTHEST = 6.0              # deviations from the mean beyond which a target moves it no more


@cython.final
cdef class LastTarget(RowBackend):
    """What the last target says of the next, whatever the features: mean and last one, mixed by the correlation
    of targets in a row; or how frequent labels are and the last one, mixed by how much oftener it is repeated.

    `in_rows`: the last targets are the last columns of rows.
    """

    cdef readonly bint in_rows
    cdef readonly double count          # of rows, weighted
    cdef readonly Py_ssize_t known      # labels so far
    # (4, targets): last target, mean, products and squares of what two in a row differ by from it;
    # or last label, repeats, those by chance, and frequencies
    cdef readonly object kept
    cdef double* now                    # of that,
    cdef readonly Py_ssize_t size
    cdef object before                  # and before the block
    cdef double count_before
    cdef Py_ssize_t known_before

    FIELDS = (Number("count", at_least(0.0)), Count("known"),
              Array("kept", float, (lambda last, sizes: last.size if last.targets else None,)))

    def __init__(self, str task, Py_ssize_t targets, Py_ssize_t n_features, bint in_rows=False):
        Backend.__init__(self, task, targets)
        self.n_features, self.in_rows = n_features, in_rows
        self.take(np.zeros(4 * targets or 8))

    cdef int take(self, kept) except -1:
        """Go on with these numbers."""
        self.before, self.kept = kept.copy(), kept
        self.now, self.size = <double*> array_data(kept), len(kept)

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        if not self.targets and self.size < 3 + labels:
            self.take(np.concatenate([self.kept, np.zeros(labels + 8)]))
        memcpy(array_data(self.before), self.now, self.size * sizeof(double))
        self.count_before, self.known_before = self.count, self.known
        return RowBackend.open(self, first, n, y, weights, labels)

    cdef void answer(self, const double* x, double* scores) noexcept nogil:
        cdef Py_ssize_t j, T = self.targets
        cdef double* now = self.now
        cdef double share, last
        for j in range(T):
            last = x[self.n_features - T + j] if self.in_rows else now[j]
            share = now[2 * T + j] / (now[3 * T + j] * (1.0 + PRIOR / self.count)) if now[3 * T + j] > 0.0 else 0.0
            scores[j] = now[T + j] + fmin(fmax(share, -1.0), 1.0) * (last - now[T + j])
        if T == 0:
            share = fmax(0.0, now[1] - now[2]) / (self.count - now[2] + PRIOR)
            for j in range(self.known):
                scores[j] = 2.0 * ((1.0 - share) * (now[3 + j] + 1.0) / (self.count + self.known)
                                   + share * (j == <Py_ssize_t> now[0])) - 1.0

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j, T = self.targets, label = 0 if T else <Py_ssize_t> self.y[i]
        cdef double weight = 1.0 if self.weights == NULL else fmin(self.weights[i], LARGEST)
        cdef double before = self.count, error, apart
        cdef double* now = self.now
        if weight <= 0.0:
            return True
        self.count = FADING * before + weight
        for j in range(T):
            error = self.y[i * T + j] - now[T + j] if before > 0.0 else 0.0
            apart = (self.rows[i * self.n_features + self.n_features - T + j] if self.in_rows else now[j]) - now[T + j]
            if before > 0.0:
                now[2 * T + j] = fmin(fmax(FADING * now[2 * T + j] + weight * apart * error, -LARGEST_SUM), LARGEST_SUM)
                now[3 * T + j] = fmin(FADING * now[3 * T + j] + weight * apart * apart, LARGEST_SUM)
            if before > MANY:                   # no outlier moves the mean much
                error = not_farther(error, 0.0, now[3 * T + j] / before, FARTHEST)
            now[T + j] = now[T + j] + weight * error / self.count if before > 0.0 else self.y[i * T + j]
            now[j] = self.y[i * T + j]
        if T == 0:
            if before > 0.0:
                now[1] = FADING * now[1] + weight * (label == <Py_ssize_t> now[0])
                now[2] = FADING * now[2] + weight * now[3 + <Py_ssize_t> now[0]] / before
            self.known, now[0] = max(self.known, label + 1), label
            for j in range(self.known):
                now[3 + j] = FADING * now[3 + j] + weight * (j == label)
        return True

    cdef void commit(self, Py_ssize_t n) noexcept:
        cdef Py_ssize_t i
        memcpy(self.now, array_data(self.before), self.size * sizeof(double))
        self.count, self.known = self.count_before, self.known_before
        for i in range(n):
            self.train(i)

    def fits(self, state):
        """Numbers are those of targets; there is one for each label, and the last one is one of them."""
        limits = np.repeat([LARGEST, 1.1 * LARGEST_SUM], 2 * self.targets)
        if self.targets and not (np.abs(state["kept"]) < limits).all():
            raise ValueError("kept has numbers that no targets lead to")
        if not self.targets and not max(1, state["known"]) + 3 <= len(state["kept"]) < 1 << 31:
            raise ValueError("kept does not have the frequencies of all labels")
        if not self.targets and state["kept"][0] not in range(max(1, state["known"])):
            raise ValueError("the last label is none")

    def resume(self, state):
        self.take(state["kept"].copy())
        self.count, self.known = state["count"], state["known"]


cdef double by_local_errors(double local) noexcept nogil:
    """Factor of a deviation by errors nearby, in units of the running one; 0 before there are rows."""
    return 0.2 + 0.8 * local if local > 0.0 else 1.0


cdef void open_task(void* ensemble, Py_ssize_t k) noexcept nogil:
    with gil:
        (<Ensemble> ensemble).open_member((<Ensemble> ensemble).order[k])


cdef void run_task(void* ensemble, Py_ssize_t k) noexcept nogil:
    (<Ensemble> ensemble).run_member((<Ensemble> ensemble).order[k])


def baseline_size(ensemble, sizes):
    """Numbers in an ensemble's `baseline`."""
    return 1 + (ensemble.targets or sizes["n_seen"])


cdef class Ensemble(Backend):
    """Members, what their rows go through first, and a combiner.

    Parameters
    ----------
    members : list of Member
    combiner : Combiner
    task : "classes", "numbers" or "novelty"
    targets : int
        Numbers to predict; 0 for labels.
    n_features : int
    transforms : dict of str to Transform
    calibration, correction : Calibration and PriorCorrection, or None
        Of probabilities, and of decisions about rare classes.
    intervals : IntervalTracker or None
    fences : TargetFences or None
        Within which members are told targets, which are numbers.
    nearby : Smoothing or None
        What errors were nearby; deviations follow it.
    relevance : str or None
        The self-tuned member that says how relevant features are for the transform "relevance".
    last : LastTarget or None
        The member that is this, which is the last one.
    lags : int
        Targets are a time series, and rows have so many of its values behind their own features. Before its beginning a
        series is taken to have been at its first value.
    n_seen : int
        Labels that members know already.
    """

    cdef readonly list members
    cdef object memory_of_ring          # owns this:
    cdef void** ring                    # the members, for compiled code
    cdef readonly dict transforms       # by name
    cdef readonly bint is_novelty       # whether there are no targets
    cdef bint tells                     # whether there are numbers, which may be told otherwise than they are
    cdef readonly Combiner combiner
    cdef readonly Probabilities calibration     # of probabilities, or None
    cdef readonly Probabilities correction   # of decisions about rare classes, or None
    cdef readonly TargetFences fences   # within which members are told targets, or None
    cdef readonly ChangeDetector changes        # in how many mistakes there are, or None
    cdef readonly Backend nearby        # what errors were nearby, or None
    cdef readonly object relevance      # name of the member that says how relevant features are, or None
    cdef readonly object last           # what the last target says, which is a member, or None
    cdef readonly Py_ssize_t lags       # values of a series that rows have behind their features,
    cdef readonly object latest         # and the last ones of them, (lags, targets)
    cdef double* latest_data
    cdef tuple stops                    # rows after which something is due between two blocks
    cdef public long long looked        # t at the latest look at what is known
    cdef public long long t             # rows learned
    cdef readonly object losses         # mistakes or squared errors of each member, and of all together
    cdef double* loss_sums
    cdef readonly object baseline       # weight of all rows, and means of their targets or weights of their labels
    cdef double* baseline_data
    cdef Py_ssize_t n_baseline
    cdef public list history            # (t, weights, losses so far)
    cdef public Py_ssize_t stride       # rows between two entries
    cdef public Py_ssize_t n_jobs       # threads that are wanted
    cdef Pool pool                      # of them, or None
    cdef object memory_of_order         # owns this:
    cdef Py_ssize_t* order              # in which threads take members; the last are those that the caller keeps
    cdef Py_ssize_t n_dealt             # the others
    # The block
    cdef Py_ssize_t first               # row of the call
    cdef Py_ssize_t rows                # 0: none is open
    cdef bint is_shared                 # whether threads share the members
    cdef list errors                    # of the members, in getting ready,
    cdef bint has_errors                # if there are any
    cdef Py_ssize_t outputs
    cdef const double* y
    cdef const double* weights
    cdef object memory_of_block         # owns these:
    cdef double* table                  # scores (rows, members, outputs)
    cdef double* member_deviations      # (rows, members, groups)
    cdef double* combined               # (rows, outputs): before they are calibrated,
    cdef double* answers                # and after,
    cdef double* factors                # and what a prior correction has multiplied
    cdef double* deviations             # (rows, groups)
    cdef double* innovations_of_rows    # (rows, groups)
    cdef double* leasts                 # (rows, groups): least target before each row
    cdef double* clipped                   # (rows, targets): targets as members learn them
    cdef double* local                  # (rows, targets): errors nearby,
    cdef double* ratios                 # and errors, in units of the running one,
    cdef double* judged                 # (rows,): and whether these say anything
    cdef double* counts                 # weights of the rows in the combination
    cdef Py_ssize_t* n_seen_before      # labels before each row
    cdef unsigned char* enabled         # members that take part
    cdef unsigned char* held            # rows that members should not keep
    cdef Py_ssize_t capacity_rows, capacity_outputs

    def __init__(self, members, Combiner combiner, str task, Py_ssize_t targets, Py_ssize_t n_features, *,
                 transforms=None, Probabilities calibration=None, Probabilities correction=None,
                 IntervalTracker intervals=None, TargetFences fences=None, Backend nearby=None, relevance=None,
                 LastTarget last=None, Py_ssize_t lags=0, Py_ssize_t n_seen=0):
        Backend.__init__(self, task, targets)
        self.members, self.combiner = list(members), combiner
        self.transforms = {} if transforms is None else transforms
        self.calibration, self.correction, self.intervals = calibration, correction, intervals
        self.fences, self.nearby, self.relevance, self.last = fences, nearby, relevance, last
        self.lags, self.latest = lags, np.zeros((lags, targets))
        self.latest_data = <double*> array_data(self.latest)
        self.n_features, self.n_seen = n_features, n_seen
        self.stride, self.history, self.n_jobs = SPACING, [], 1
        self.tells = task == "numbers"
        self.is_novelty = task == "novelty"
        self.stops = YOUNG if self.is_novelty else EARLY if relevance is not None else ()
        self.changes = None if task == "novelty" else ChangeDetector(targets)
        self.errors = [None] * len(self.members)
        losses, self.memory_of_ring = np.zeros(len(self.members) + 1), np.zeros(len(self.members), dtype=np.intp)
        self.loss_sums, self.losses = <double*> array_data(losses), losses
        self.ring = <void**> array_data(self.memory_of_ring)
        self.link()
        self.set_baseline(np.zeros(1 + targets))

    cdef void link(self) noexcept:
        """Let compiled code find the members."""
        cdef Member member
        for k, member in enumerate(self.members):
            self.ring[k] = <void*> member

    cdef int share(self, Py_ssize_t n) except -1:
        """See whether threads share the members of a block of n rows; they are made when first needed."""
        self.is_shared = False
        if self.n_jobs == 1:
            self.pool = None
        if self.n_jobs == 1 or n < SHARED:
            return 0
        if self.pool is None or not self.pool.serves(self.n_jobs):
            self.deal()
            self.pool = Pool(self.n_jobs)
        self.is_shared = self.pool.n_threads > 1 and self.n_dealt > 1

    cdef int deal(self) except -1:
        """The order of members for threads: ensembles first; who calls Python stays with the caller."""
        cdef Py_ssize_t[::1] order
        dealt = [k for k, member in enumerate(self.members) if not member.calls_python]
        dealt.sort(key=lambda k: not isinstance(self.members[k].backend, Ensemble))
        alone = [k for k, member in enumerate(self.members) if member.calls_python]
        order = found = np.array(dealt + alone, dtype=np.intp)
        self.order, self.memory_of_order, self.n_dealt = &order[0], found, len(dealt)

    # ---- A call -------------------------------------------------------------------------------

    cdef int attach(self, examples) except -1:
        cdef Member member
        Backend.attach(self, examples)
        if self.nearby is not None:
            self.nearby.attach(examples)
        for member in self.members:
            if not member.disabled and not member.frozen:
                member.attach(examples, min(len(examples), BLOCK))

    cdef int detach(self) except -1:
        cdef Member member
        if self.rows:
            self.commit(0)
        for member in self.members:
            if member.attached is not None:
                member.attached = None
                member.backend.detach()
        if self.nearby is not None:
            self.nearby.detach()
        return Backend.detach(self)

    cdef Py_ssize_t rows_at_once(self) except -1:
        cdef Member member
        cdef Transform transform
        cdef Py_ssize_t rows = min(BLOCK, SPACING - self.t % SPACING)
        for member in self.members:
            if not member.disabled and not member.frozen:
                rows = min(rows, member.rows_at_once())
        for transform in self.transforms.values():
            rows = min(rows, transform.rows_at_once())
        if self.fences is not None and self.fences.t < DECIDED:
            rows = min(rows, DECIDED - <Py_ssize_t> self.fences.t)
        for stop in self.stops:
            if stop > self.t:
                rows = min(rows, stop - self.t)
        return rows

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t outputs) except -1:
        """Room for a block."""
        cdef Py_ssize_t m = len(self.members), g = self.groups
        if self.capacity_rows >= n and self.capacity_outputs >= outputs:
            return 0
        n, outputs = max(n, self.capacity_rows), max(outputs, self.capacity_outputs)
        memory = np.zeros(n * (m * (outputs + g) + 4 * outputs + 5 * g + 4) + m + 1)
        self.table = <double*> array_data(memory)
        self.member_deviations = self.table + n * m * outputs
        self.combined = self.member_deviations + n * m * g
        self.answers = self.combined + n * outputs
        self.factors = self.answers + n * outputs
        self.deviations = self.factors + n * outputs
        self.innovations_of_rows = self.deviations + n * g
        self.leasts = self.innovations_of_rows + n * g
        self.clipped = self.leasts + n * g
        self.local = self.clipped + n * outputs
        self.ratios = self.local + n * g
        self.judged = self.ratios + n * g
        self.counts = self.judged + n
        self.n_seen_before = <Py_ssize_t*> (self.counts + n)
        self.enabled = <unsigned char*> (self.n_seen_before + n)
        self.held = self.enabled + m
        self.memory_of_block, self.capacity_rows, self.capacity_outputs = memory, n, outputs

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        cdef Transform transform
        cdef Py_ssize_t i, n_seen = self.n_seen
        self.prepare()
        self.outputs = self.outputs_for(labels)
        self.reserve(n, self.outputs)
        if not self.targets and len(self.baseline) < 1 + self.outputs:
            self.set_baseline(np.concatenate([self.baseline, np.zeros(self.outputs)]))
        self.y, self.weights, self.first, self.rows = y, weights, first, n
        try:
            for transform in self.transforms.values():
                transform.held = self.held
                transform.open(self.data + first * self.n_features, n)
            if self.nearby is not None:
                self.nearby.open(first, n, self.ratios, self.judged, 0)
            self.open_members()
            self.combiner.open(n, self.outputs)
            if self.correction is not None:
                self.correction.open(self.outputs)
        except BaseException:
            self.commit(0)
            raise
        for i in range(n):
            self.n_seen_before[i] = n_seen
            if self.task == "classes":
                n_seen = max(n_seen, <Py_ssize_t> y[i] + 1)
            self.counts[i], self.held[i] = 1.0 if weights == NULL else weights[i], False
            self.judged[i] = self.t + i >= FIRST
        if self.t == 0 and not any([member.before for member in self.members]):     # nobody knows anything yet
            self.counts[0] = 0.0

    cdef int open_members(self) except -1:
        """Let all members open the block. The error of the first that fails is raised, unless there is a signal."""
        cdef Py_ssize_t k, first = -1, m = len(self.members)
        if self.is_shared:
            with nogil:
                self.pool.call(open_task, <void*> self, self.n_dealt)
        for k in range(self.n_dealt if self.is_shared else 0, m):
            if self.is_shared or not self.has_errors:
                self.open_member(self.order[k] if self.is_shared else k)
        if not self.has_errors:
            return 0
        for k in range(m):
            if self.errors[k] is not None and (first < 0 or not isinstance(self.errors[k], Exception)):
                first = k
        member, error = self.members[first], self.errors[first]
        for k in range(m):
            self.errors[k] = None
        self.has_errors = False
        raise MemberError(member, error) if member.may_fail(error) and not isinstance(error, MemberError) else error

    cdef void open_member(self, Py_ssize_t k) noexcept:
        """Let a member open the block, and keep its error."""
        cdef Member member = self.members[k]
        member.until = 0
        if member.disabled:
            return
        try:
            member.open(self.examples, self.first, self.rows, self.y, self.weights, self.targets, self.outputs)
        except BaseException as error:
            self.errors[k], self.has_errors = error, True

    cdef int prepare(self) except -1:
        """What is due between two blocks: an entry of the history, a look at what is known."""
        cdef Member member
        if self.t == 0:
            return 0
        self.begin_anew()
        for member in self.members:
            if not (member.disabled or member.frozen):
                member.backend.prepare()
        if self.t % self.stride == 0 and (not self.history or self.history[len(self.history) - 1][0] < self.t):
            history = [*self.history, (int(self.t), self.combiner.weights(), self.losses.copy())]
            stride = self.stride
            if len(history) > ENTRIES:
                stride, history = 2 * stride, history[1::2]
            self.stride, self.history = stride, history
        if self.looked < self.t and (self.t in EARLY or self.t % SPACING == 0
                                     and (self.t < 4096 or self.t % 2048 == 0)):
            if self.relevance is not None:
                self.follow_relevance()
            self.looked = self.t

    cdef int begin_anew(self) except -1:
        """Let members begin anew: those disabled long ago, or all, if one of the first targets was an outlier."""
        cdef Member member, old
        cdef bint has_outlier
        cdef dict fresh_ones = {}
        if self.examples is None:
            return 0
        has_outlier = self.fences is not None and self.fences.t == DECIDED and self.fences.has_outlier()
        for k, old in enumerate(self.members):
            if old.model is None and has_outlier:
                last = LastTarget(self.task, self.targets, self.n_features, self.last.in_rows)
                member = Member(old.name, last, "numbers")
            elif has_outlier or old.disabled and self.t >= old.due and self.t % SPACING == 0 and old.before == 0:
                from onlinekernels.base.members import fresh, new_member

                rows = self.examples[:1] if old.transform is None else np.zeros((1, self.n_features))
                member = new_member(old.name, fresh(old.model), rows, self.targets, old.transform)
                member.due, member.failures = old.due, old.failures
                member.unheard = 0 if has_outlier else SPACING
            else:
                continue
            member.begun = self.t
            member.attach(self.examples, min(len(self.examples), BLOCK))
            fresh_ones[k] = member
        for k, member in fresh_ones.items():    # nothing can fail any more
            old = self.members[k]
            old.attached = None
            self.members[k] = member
            if old.backend is self.last:
                self.last = member.backend
        if fresh_ones:
            self.link()
        if has_outlier:
            self.fences.forget_outliers()
            self.combiner.forget()

    cdef int follow_relevance(self) except -1:
        """Weigh features by what the self-tuned member knows, and so the rows that others keep. All or nothing."""
        cdef Member member, source = self.named()[self.relevance]
        cdef double* weights
        transform = self.transforms["relevance"]
        if source.disabled:
            return 0
        found = transform.weights_for(source.backend.relevance())
        if np.array_equal(found, transform.weights):
            return 0
        ratio, weights = found / transform.weights, <double*> array_data(transform.weights)
        kept = [(member.backend.rows, member.backend.rows.rescaled(ratio)) for member in self.members
                if member.transform is transform and not member.disabled]
        memcpy(weights, array_data(found), len(found) * sizeof(double))     # nothing can fail any more
        for rows, rescaled in kept:
            rows.take_rescaled(rescaled)

    # ---- A block ------------------------------------------------------------------------------

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        cdef Py_ssize_t k, m = self.combiner.n_members
        for k in range(m):
            (<Member> self.ring[k]).test(i, self.table + (i * m + k) * self.outputs, self.outputs,
                                         self.member_deviations + (i * m + k) * self.groups)
        if self.tells:
            self.predict(i)
        else:
            self.combine(i, i + 1)
        memcpy(scores, (self.combined if self.tells else self.answers) + i * self.outputs,
               self.outputs * sizeof(double))
        if deviations != NULL:
            memcpy(deviations, self.deviations + i * self.groups, self.groups * sizeof(double))
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t k
        if self.tells:
            self.tell(i)
            self.combine(i, i + 1)
        for k in range(self.combiner.n_members):
            (<Member> self.ring[k]).backend.holds = self.held[i] == 1
            (<Member> self.ring[k]).train(i)
        return True

    cdef Py_ssize_t see_enabled(self, Py_ssize_t i, Py_ssize_t end, bint* anybody) noexcept nogil:
        """Which members take part at row i, whether there are any, and up to which row that stays so."""
        cdef Py_ssize_t k
        cdef void* member
        anybody[0] = False
        for k in range(self.combiner.n_members):
            member = self.ring[k]
            self.enabled[k] = (<Member> member).until > i and (<Member> member).t >= (<Member> member).unheard
            if self.enabled[k]:
                anybody[0], end = True, min(end, (<Member> member).until)
        return end

    cdef void predict(self, Py_ssize_t i) noexcept nogil:
        """What is answered for row i, of numbers; nothing is learned."""
        cdef Py_ssize_t m = self.combiner.n_members, o = self.outputs, g = self.groups
        cdef bint anybody
        self.see_enabled(i, i + 1, &anybody)
        if anybody:
            self.combiner.combine(1, o, self.table + i * m * o, 0, self.enabled, self.combined + i * o,
                                  self.deviations + i * g, self.combiner.scratch)
        else:
            self.answer_nothing(1, o, self.combined + i * o, self.deviations + i * g)
        self.bound(1, self.combined + i * o, self.deviations + i * g)

    cdef void bound(self, Py_ssize_t n, double* combined, double* deviations) noexcept nogil:
        """The median of the first targets, before members know anything; and no negative numbers if there were none."""
        cdef Py_ssize_t i, j, T = self.targets
        cdef double most
        if self.fences is None:
            return
        for i in range(n):
            for j in range(T):
                if self.fences.is_young():
                    combined[i * T + j] = self.fences.mean_data[j]
                    deviations[i * T + j] = self.fences.deviation(j, &most)
                    if deviations[i * T + j] == 0.0:
                        deviations[i * T + j] = 1.0
                if self.intervals.positive and 0.0 <= self.intervals.least_data[j] < INFINITY:
                    combined[i * T + j] = fmax(combined[i * T + j], 0.0)

    cdef void tell(self, Py_ssize_t i) noexcept nogil:
        """Tell members the targets of row i, within the fences about what was predicted."""
        cdef Py_ssize_t k, T = self.targets
        if self.nearby is not None:
            self.nearby.test(i, self.local + i * T, NULL)
        memcpy(self.clipped + i * T, self.y + i * T, T * sizeof(double))
        if self.fences is not None:
            if self.weights == NULL or self.weights[i] > 0.0:
                self.fences.tell(self.y + i * T, self.combined + i * T, self.deviations + i * T,
                                 NULL if self.nearby is None else self.local + i * T, self.clipped + i * T)
        for k in range(self.combiner.n_members):
            (<Member> self.ring[k]).tell(i, self.clipped + i * T, T)

    cdef void combine(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Combine rows that the members have tested, and learn from them whom to trust."""
        cdef Py_ssize_t i = begin, j, stop, m = self.combiner.n_members, o = self.outputs, g = self.groups
        cdef const double* y = self.y
        cdef double* combined = self.combined
        cdef double* deviations = self.deviations
        cdef bint anybody
        if self.fences is not None:             # it is known what is answered
            y, combined, deviations = self.clipped, self.answers, self.innovations_of_rows
        while i < end:
            stop = self.see_enabled(i, end, &anybody)
            if self.is_novelty:
                (<AveragedRanks> self.combiner).held = self.held + i
            if anybody:
                self.combiner.run(stop - i, o, self.table + i * m * o, y + i * g, self.n_seen_before + i,
                                  self.counts + i, self.enabled, combined + i * o, deviations + i * g)
            else:
                stop = i + 1
                self.answer_nothing(1, o, combined + i * o, deviations + i * g)
            for j in range(i, stop):
                self.count_target(j)
            i = stop
        self.finish(begin, end)
        self.count_losses(begin, end)
        if self.changes is not None:            # of what is most probable, whatever a correction answers
            combined = self.answers if self.correction is None else self.combined
            self.changes.run(end - begin, o, combined + begin * o, self.y + begin * (g if self.targets else 1),
                             self.n_seen_before + begin, self.counts + begin)

    cdef void answer_nothing(self, Py_ssize_t n, Py_ssize_t outputs, double* combined,
                             double* deviations) noexcept nogil:
        """Where all members are disabled: the running mean, or how frequent labels were."""
        cdef Py_ssize_t i, j
        cdef double* baseline = self.baseline_data
        for i in range(n * outputs):
            j = 1 + i % outputs
            if self.fences is not None:
                combined[i] = self.fences.mean_data[i % outputs]
            elif self.targets:
                combined[i] = baseline[j]
            else:
                combined[i] = -1.0
                if j < self.n_baseline and baseline[0] > 0.0:
                    combined[i] = 2.0 * baseline[j] / baseline[0] - 1.0
        for i in range(n * self.groups):
            deviations[i] = 1.0

    cdef int set_baseline(self, baseline) except -1:
        """Go on with this weight of all rows, and these means or weights."""
        self.baseline_data, self.baseline, self.n_baseline = <double*> array_data(baseline), baseline, len(baseline)

    cdef void count_target(self, Py_ssize_t i) noexcept nogil:
        """Row i counts in what is answered where all members are disabled."""
        cdef Py_ssize_t j
        cdef double* baseline = self.baseline_data
        cdef double weight = 1.0 if self.weights == NULL else self.weights[i]
        if self.is_novelty or not weight > 0.0:
            return
        baseline[0] += weight
        if not self.targets:
            baseline[1 + <Py_ssize_t> self.y[i]] += weight
        for j in range(self.targets):
            if self.y[i * self.targets + j] == self.y[i * self.targets + j]:    # no hole in a series
                baseline[1 + j] += weight / baseline[0] * (self.y[i * self.targets + j] - baseline[1 + j])

    cdef void finish(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """What is answered: probabilities are calibrated, and innovations followed, by which intervals go."""
        cdef Py_ssize_t i, c, o = self.outputs, n = end - begin
        cdef double* combined = self.combined + begin * o
        cdef double* answers = self.answers + begin * o
        if self.nearby is not None:             # row by row, as there are fences
            self.follow_errors(begin)
        if self.intervals is not None:
            self.intervals.run(n, combined, self.y + begin * o, self.deviations + begin * o,
                               self.innovations_of_rows + begin * o, self.leasts + begin * o)
        if self.calibration is None:
            memcpy(answers, combined, n * o * sizeof(double))
            return
        for i in range(n * o):
            combined[i] = 0.5 * (1.0 + combined[i])
        self.calibration.run(n, o, combined, self.y + begin, self.n_seen_before + begin, self.counts + begin, answers,
                             NULL)
        if self.correction is not None:
            memcpy(combined, answers, n * o * sizeof(double))
            self.correction.run(n, o, combined, self.y + begin, self.n_seen_before + begin, self.counts + begin,
                                answers, self.factors + begin * o)
        for i in range(n):
            for c in range(o):
                answers[i * o + c] = 2.0 * answers[i * o + c] - 1.0 if c < self.n_seen_before[begin + i] else -1.0
                combined[i * o + c] = 2.0 * combined[i * o + c] - 1.0

    cdef void follow_errors(self, Py_ssize_t i) noexcept nogil:
        """Deviations by what errors nearby were, in units of the running one."""
        cdef Py_ssize_t j, k, T = self.targets
        for j in range(T):
            k = i * T + j
            self.ratios[k] = fmin(fabs(self.y[k] - self.combined[k]) / self.deviations[k], LARGE)
            self.deviations[k] *= by_local_errors(self.local[k])
        self.nearby.train(i)

    cdef void count_losses(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Mistakes, or squared errors, of each member and of all together."""
        cdef Py_ssize_t i, j, k, m = self.combiner.n_members, o = self.outputs
        cdef double loss, error
        cdef const double* scores
        if self.is_novelty:
            return
        for i in range(begin, end):
            for k in range(m + 1):
                scores = self.answers + i * o if k == m else self.table + (i * m + k) * o
                loss = 0.0
                if self.targets:
                    for j in range(o):
                        error = scores[j] - self.y[i * o + j]
                        loss += error * error
                else:
                    loss = self.n_seen_before[i] == 0 or likeliest(scores, self.n_seen_before[i]) != self.y[i]
                self.loss_sums[k] += loss

    cdef void commit(self, Py_ssize_t n) noexcept:
        cdef Member member
        cdef Transform transform
        for member in self.members:
            member.commit(n)
        for transform in self.transforms.values():
            transform.commit(n)
        if self.nearby is not None:
            self.nearby.commit(n)
        if n:
            if self.lags:
                self.remember(n)
            self.t += n
            if self.task == "classes":
                self.n_seen = max(self.n_seen_before[n - 1], <Py_ssize_t> self.y[n - 1] + 1)
            if self.task == "novelty" and self.t in YOUNG:
                (<AveragedRanks> self.combiner).begin_anew()
        self.rows, self.is_shared = 0, False

    # ---- For Python ---------------------------------------------------------------------------

    cdef void remember(self, Py_ssize_t n) noexcept nogil:
        """The last values of a series, after the block."""
        cdef Py_ssize_t i, T = self.targets
        for i in range(self.lags if self.t == 0 else 0):
            memcpy(self.latest_data + i * T, self.y, T * sizeof(double))
        for i in range(n):
            memmove(self.latest_data, self.latest_data + T, (self.lags - 1) * T * sizeof(double))
            memcpy(self.latest_data + (self.lags - 1) * T, self.y + i * T, T * sizeof(double))

    def with_lags(self, examples, y):
        """Rows with the values of the series before each behind their own features; y are the values of these rows."""
        whole = np.concatenate([self.latest if self.t else np.repeat(y[:1], self.lags, axis=0), y])
        rows = np.arange(len(examples))[:, None] + np.arange(self.lags)
        return np.ascontiguousarray(np.hstack([examples, whole[rows].reshape(len(examples), -1)]))

    def learn(self, examples, y, weights=None, Py_ssize_t labels=0, dict trace=None):
        """The same; targets of a series that are NaN are not learned, and what is predicted for them is their value.
        Innovations of these rows are NaN."""
        if not self.lags:
            return Backend.learn(self, examples, y, weights, labels, trace)
        parts, traces, begin = [], [], 0
        for hole in [*np.flatnonzero(np.isnan(y).any(axis=1)), len(y)]:
            rows = slice(begin, hole)
            if begin < hole or len(y) == 0:
                known = None if trace is None else {}
                traces.append(known)
                parts.append(Backend.learn(self, self.with_lags(examples[rows], y[rows]), y[rows],
                                           None if weights is None else weights[rows], labels, known))
            if hole < len(y):
                traces.append({"leasts": self.intervals.least[None].copy()})
                parts.append(self.pass_by(examples[hole:hole + 1], y[hole]))
            begin = hole + 1
        if trace is None:
            return None
        trace.update({name: np.concatenate([each[name] for each in traces]) for name in traces[0]})
        return tuple(np.concatenate(found) for found in zip(*parts))

    def pass_by(self, examples, y):
        """The answer for a row of a series whose target is NaN, at least in part: it becomes a value of the series."""
        nothing = np.full((1, self.targets), np.nan)
        if self.t == 0:
            return np.zeros((1, self.targets)), np.ones((1, self.targets)), nothing
        scores, deviations = Backend.scores(self, self.next_rows(examples))
        self.latest[:] = np.concatenate([self.latest[1:], np.where(np.isnan(y), scores, y)])
        return scores, deviations, nothing

    cdef int trace_block(self, dict trace, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t n) except -1:
        """Least targets before each row, for intervals, and what probabilities were multiplied by, for rare classes."""
        cdef Py_ssize_t o = self.outputs
        for name, wanted in (("leasts", self.intervals is not None), ("factors", self.correction is not None)):
            if wanted and name not in trace:
                trace[name] = np.ones((n, o))
        if self.intervals is not None:
            memcpy(<double*> array_data(trace["leasts"]) + first * o, self.leasts, rows * o * sizeof(double))
        if self.correction is not None:
            memcpy(<double*> array_data(trace["factors"]) + first * o, self.factors, rows * o * sizeof(double))

    def scores(self, examples):
        """The same as of now; rows of a series follow each other, with predictions as values."""
        if not self.lags:
            return Backend.scores(self, examples)
        latest, found = self.latest, []
        for i in range(len(examples)):
            found.append(Backend.scores(self, self.next_rows(examples[i:i + 1], latest)))
            latest = np.concatenate([latest, found[i][0]])[1:]
        return tuple(np.concatenate(parts) for parts in zip(*found))

    def next_rows(self, examples, latest=None):
        """The first rows that follow a series, by default its `latest` values, as members see them."""
        past = self.latest if latest is None else latest
        return np.ascontiguousarray(np.hstack([examples, np.repeat(past.reshape(1, -1), len(examples), axis=0)]))

    def simulated(self, Py_ssize_t steps, Py_ssize_t paths, seed):
        """Ways on which a series may go on, shape (paths, steps, targets): each value is the one predicted for its way,
        and an innovation of the past, of either sign."""
        rng, least = np.random.default_rng(seed), self.intervals.least if self.intervals.positive else -np.inf
        known, latest, found = self.innovations, np.repeat(self.latest[None], paths, axis=0), []
        for _ in range(steps):
            f, deviations = Backend.scores(self, np.ascontiguousarray(latest.reshape(paths, -1)))
            drawn = known[rng.integers(len(known), size=paths)] if len(known) >= FEWEST else np.abs(
                rng.normal(size=f.shape))
            low, high = interval_ends(f, drawn * deviations, least)
            value = np.where(rng.random(f.shape) < 0.5, low, high)
            found.append(value)
            latest = np.concatenate([latest[:, 1:], value[:, None]], axis=1)
        return np.stack(found, axis=1)

    cdef void run_block(self, Py_ssize_t n, const double* y, double* scores, Py_ssize_t stride, double* deviations,
                        double* innovations) noexcept nogil:
        """Members one after another, or side by side, then the combiner."""
        cdef Py_ssize_t k
        if self.fences is not None or self.is_novelty:  # all must have predicted a row before anybody is told of it
            for k in range(n):
                self.test(k, scores, NULL)
                self.train(k)
        else:
            if self.is_shared:
                self.pool.call(run_task, <void*> self, self.n_dealt)
            for k in range(self.n_dealt if self.is_shared else 0, self.combiner.n_members):
                self.run_member(self.order[k] if self.is_shared else k)
            self.combine(0, n)
        memcpy(scores, self.answers, n * self.outputs * sizeof(double))
        memcpy(deviations, self.deviations, n * self.groups * sizeof(double))
        if self.intervals is not None:
            memcpy(innovations, self.innovations_of_rows, n * self.groups * sizeof(double))

    cdef void run_member(self, Py_ssize_t k) noexcept nogil:
        """Let a member test and train all rows of the block."""
        cdef Py_ssize_t i, m = self.combiner.n_members, o = self.outputs, g = self.groups
        for i in range(self.rows):
            (<Member> self.ring[k]).test(i, self.table + (i * m + k) * o, o, self.member_deviations + (i * m + k) * g)
            (<Member> self.ring[k]).train(i)

    cdef Py_ssize_t open_block(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                               Py_ssize_t labels) except -1:
        """Open a block of at most n rows; how many. A member that cannot take its first row is disabled."""
        while True:
            self.share(n)
            try:
                self.open(first, n, y, weights, labels)
                return n
            except MemberError as refused:
                if n > 1:
                    n = n // 2                  # up to the row that it cannot take
                else:
                    while isinstance(refused.error, MemberError):
                        refused = refused.error # of an ensemble in the ensemble
                    refused.member.disable(refused.error)
                    refused.member.wait(self.t + 1)
                    self.warn_of(refused.member)

    cdef int resolve(self) except -1:
        """Warn of members that were disabled in the latest block, and raise what signals have raised."""
        cdef Member member
        for member in self.members:
            if isinstance(member.backend, Ensemble) and not member.disabled:
                member.backend.resolve()
            if member.disabled and member.text is None:
                member.find_reason()
                member.wait(self.t)
                self.warn_of(member)
            if member.signal is not None:
                signal, member.signal = member.signal, None
                raise signal
            member.backend.resolve()
        if all(member.disabled for member in self.members):
            answer = "nothing" if self.is_novelty else "the running mean" if self.targets else "the most frequent class"
            self.warn(f"All members are disabled, and the ensemble answers {answer}.")

    def warn_of(self, Member member):
        """Say that a member is disabled."""
        self.warn(f"The member {member.name!r} is disabled, the others go on: {member.text}")

    def warn(self, text):
        """Say what goes wrong."""
        from onlinekernels.base.status import LearningWarning, level_outside

        warnings.warn(text, LearningWarning, stacklevel=level_outside())

    def enabled_members(self):
        """Which members take part."""
        return np.array([not member.disabled and member.t >= member.unheard for member in self.members])

    def members_scores(self, examples):
        """Scores of all members as of now, shape (n, members, outputs); 0 of those that are disabled."""
        cdef Py_ssize_t n = examples.shape[0], outputs = self.outputs_now(), m = len(self.members)
        table, spreads = np.zeros((n, m, outputs)), np.zeros((n, m, self.groups))
        self.ask_members(examples, n, outputs, <double*> array_data(table), <double*> array_data(spreads))
        return table

    cdef int ask_members(self, examples, Py_ssize_t n, Py_ssize_t outputs, double* table, double* spreads) except -1:
        """What all members answer as of now."""
        cdef Member member
        cdef Py_ssize_t k, m = len(self.members), g = self.groups, width = outputs
        cdef dict seen = {None: examples}       # rows behind each transform
        for member in self.members:
            width = max(width, member.width)
        raw = np.empty(n * width)
        for k, member in enumerate(self.members):
            if member.disabled:
                continue
            if member.transform not in seen:
                seen[member.transform] = rows = np.empty((n, member.transform.n_features))
                member.transform.evaluate(<const double*> array_data(examples), n, <double*> array_data(rows))
            member.evaluate(seen[member.transform], n, <double*> array_data(raw), width, table + k * outputs, outputs,
                            m * outputs, NULL if spreads == NULL else spreads + k * g, m * g)

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        cdef Py_ssize_t i, outputs = self.outputs_now(), m = len(self.members), g = self.groups
        memory = np.zeros(n * (m * (outputs + g) + outputs + g))
        cdef double* table = <double*> array_data(memory)
        cdef double* spreads = table + n * m * outputs
        cdef double* answers = spreads + n * m * g
        cdef double* found = answers + n * outputs
        self.ask_members(examples, n, outputs, table, NULL if deviations == NULL else spreads)
        self.answer(n, outputs, table, spreads, answers, found, examples)
        for i in range(n):
            memcpy(scores + i * stride, answers + i * outputs, outputs * sizeof(double))
            if deviations != NULL:
                memcpy(deviations + i * spread, found + i * g, g * sizeof(double))

    cdef int answer(self, Py_ssize_t n, Py_ssize_t outputs, const double* table, const double* spreads, double* answers,
                    double* deviations, object examples) except -1:
        """Answers and deviations for what members answer, as of now."""
        cdef Py_ssize_t i
        flags = self.enabled_members().astype(np.uint8)
        if not flags.any():
            self.answer_nothing(n, outputs, answers, deviations)
            return 0
        self.combiner.evaluate(n, outputs, table, self.n_seen, <const unsigned char*> array_data(flags), answers,
                               deviations)
        self.bound(n, answers, deviations)
        if self.nearby is not None:
            local = np.empty(n * self.targets)
            self.nearby.evaluate(examples, n, <double*> array_data(local), self.targets, NULL, 0)
            for i in range(n * self.targets):
                deviations[i] *= by_local_errors((<double*> array_data(local))[i])
        if self.calibration is None:
            return 0
        likely = np.empty(n * outputs)
        cdef double* p = <double*> array_data(likely)
        for i in range(n * outputs):
            p[i] = 0.5 * (1.0 + answers[i])
        self.calibration.evaluate(n, outputs, p, self.n_seen, answers)
        if self.correction is not None:
            memcpy(p, answers, n * outputs * sizeof(double))
            self.correction.evaluate(n, outputs, p, self.n_seen, answers)
        for i in range(n * outputs):
            answers[i] = 2.0 * answers[i] - 1.0

    def threshold(self):
        """Of a detector: ranks below it are alerts."""
        return (<AveragedRanks> self.combiner).level()

    def named(self):
        """The members by name."""
        return {member.name: member for member in self.members}

    # ---- State --------------------------------------------------------------------------------

    FIELDS = (
        Count("t"), Size("n_seen"), Count("stride", at_least(SPACING)),
        Buffer("losses", not_negative), Buffer("latest"), Array("baseline", float, (baseline_size,)),
        Array("times", np.int64, ("entries",), ordered),
        Array("past_weights", float, ("entries", "groups", "n_members")),
        Array("past_losses", float, ("entries", "n_losses")),
        Part("combiner"), Part("calibration"), Part("correction"), Part("intervals"), Part("fences"), Part("nearby"),
        Part("last"), Part("changes"),
        Parts("transforms", when=lambda ensemble: ensemble.transforms))

    def sizes(self, state):
        """Weights and losses have one for each member; losses one more, of the ensemble."""
        return {"n_members": len(self.members), "n_losses": len(self.members) + 1}

    def stored(self):
        """The history as arrays."""
        n, m, columns = len(self.history), len(self.members), list(zip(*self.history)) or [(), (), ()]
        times, weights, losses = (np.array(column) for column in columns)
        return {"baseline": self.baseline_of_seen(), "times": times.astype(np.int64),
                "past_weights": weights.reshape(n, self.groups, m), "past_losses": losses.reshape(n, m + 1)}

    def fits(self, state):
        """Members, transforms and the history have seen the same rows."""
        t, times = state["t"], state["times"]
        if len(times) > ENTRIES or times.min(initial=1) < 1 or times.max(initial=0) > t:
            raise ValueError("times are too many, or not those of rows")
        if any(transform["t"] != t for transform in state.get("transforms", {}).values()):
            raise ValueError("the transforms have not seen the rows that the members have learned")
        if "nearby" in state and state["nearby"]["rows"]["t"] != t:
            raise ValueError("the errors nearby are not those of the rows that the members have learned")
        if any(not member.disabled and member.begun + member.t != t for member in self.members):
            raise ValueError("the members have not learned the same rows")
        if any(max(member.label_codes, default=-1) >= state["n_seen"] for member in self.members):
            raise ValueError("the labels of a member have not joined")

    def resume(self, state):
        past = zip(state["times"].tolist(), state["past_weights"].copy(), state["past_losses"].copy())
        self.history, self.looked = list(past), state["t"]
        self.set_baseline(state["baseline"].copy())
        past = "times", "past_weights", "past_losses", "baseline"
        assign(self, {name: value for name, value in state.items() if name not in past})

    def baseline_of_seen(self):
        """`baseline`, of the labels that were seen."""
        known = np.zeros(1 + (self.targets or self.n_seen))
        known[:len(self.baseline)] = self.baseline[:len(known)]
        return known

    def restore(self, state):
        """The same, but for the members, which there are already."""
        Backend.restore(self, {name: value for name, value in state.items() if name != "members"})

    def _check(self):
        Backend._check(self)
        assert self.rows == 0


# ---- The kernel that learns itself -----------------------------------------------------------------------------------

cdef enum:
    FIRST_REFRESH = 100         # rows before the first refresh,
    LONGEST = 4000              # and between two of them at most; in between they double
    CHECKED = 128               # rows between two looks for an alarm
    LATELY = 64                 # rows whose loss is compared
    USUALLY = 500               # with that of so many before them
    OFTEN = 42                  # of the latest rows on which the plain member must be better
    REPLAYED = 128              # rows in one step of a replay
    TRIED = 16                  # values of the evidence that a kernel usually takes
    LOSSES = 1024               # rows in the ring of losses, more than LATELY + USUALLY + BLOCK

cdef double WORSE = 2.0         # times the running loss,
cdef double BEATEN = 1.25       # and times that of the plain member: then something has changed
WORK = 100e6                    # multiplications with every row during a refresh: some milliseconds
STEP = 4e6                      # which a step takes at least
SAMPLED = 200, 300              # rows that the evidence is taken of, at least and at most; in between a fifth of all


class Refresh:
    """Kernels that are being learned from the rows first, ..., t - 1, since row t; their members take over at row
    `until`. After an alarm nothing is gone on from. It usually takes so much `work`, in multiplications."""

    def __init__(self, t, first, alarm, until, work):
        self.t, self.first, self.alarm, self.until = t, first, alarm, until
        self.pace = max(WORK, work / max(1, until - t))     # with every row
        self.begin_again()

    def state(self):
        """What makes it, but for the rows."""
        return {"t": int(self.t), "until": int(self.until), "alarm": bool(self.alarm)}

    def begin_again(self):
        """Nothing is done yet."""
        self.steps, self.done, self.members = None, 0.0, None


@cython.final
cdef class SelfTuning(Ensemble):
    """Posteriors whose kernels are learned, and a plain one beside them with a short memory.

    The plain one is for what changes faster than a kernel can be learned. It also tells a change from a hard stretch:
    after a change, it is better than what was learned before.

    Members err alike, so the deviation of the combination is the mean of theirs, by their weights just before the row.

    `maker` makes members: `first_members()`, `renewed(...)` and what `state` and `restore` need.
    """

    cdef readonly object maker          # makes members
    cdef readonly tuple kinds           # names of those whose kernel is learned; the last member is plain
    cdef readonly Py_ssize_t window     # rows that are kept to learn kernels from
    cdef readonly Py_ssize_t sampled    # rows at most that the evidence is taken of
    cdef public bint frozen             # kernels stay as they are
    cdef readonly long long began       # row at which the clock of refreshes started
    cdef readonly long long due         # row at which the next one takes over,
    cdef readonly long long begin       # and at which it begins
    cdef readonly long long oldest      # row that may be kept
    cdef readonly long long first_loss  # row from which losses are known
    cdef Py_ssize_t place               # of the first member in `stagger`
    cdef long long checked              # row at which a change was looked for last
    cdef readonly object pending        # the pending refresh, or None
    cdef readonly list refreshes        # (t, whether by an alarm, what each kind has learned)
    cdef double* kept                   # rings in which row t is at t % size: rows, targets and weights,
    cdef double* losses_kept            # losses of the learned members and of the plain one
    cdef readonly Py_ssize_t capacity   # rows of the first
    cdef readonly object kept_array, loss_array, units
    cdef double* unit                   # of each target, in which losses are measured
    cdef object memory_of_shares
    cdef double* shares                 # (members, groups): of members in the deviation, before a row

    def __init__(self, maker, tuple kinds, Py_ssize_t window, Py_ssize_t n_features, Py_ssize_t targets):
        cdef Py_ssize_t m = len(kinds) + 1, width = n_features + max(1, targets) + 1
        # Within a factor of 3, all is much the same on the streams that were tried.
        memory, prior = (0.9995, 6.0) if targets else (0.998, 100.0)
        combiner, intervals = LeastSquares(m, targets, memory, prior), IntervalTracker(targets) if targets else None
        Ensemble.__init__(self, maker.first_members(), combiner, "numbers" if targets else "classes", targets,
                          n_features, intervals=intervals)
        self.maker, self.kinds, self.window = maker, kinds, window
        self.stagger(0)
        self.sampled = min(max(window // 5, SAMPLED[0]), SAMPLED[1])
        self.checked, self.refreshes = -1, []
        self.plan(FIRST_REFRESH)
        self.capacity, self.kept_array, self.loss_array = 0, np.zeros((0, width)), np.zeros((LOSSES, 2))
        self.losses_kept = <double*> array_data(self.loss_array)
        self.units, self.memory_of_shares = np.ones(self.groups), np.zeros(m * self.groups)
        self.unit, self.shares = <double*> array_data(self.units), <double*> array_data(self.memory_of_shares)

    cdef int reserve_rows(self, long long rows) except -1:
        """Let the ring of rows hold the first so many, until it is full; before, row t is at t."""
        # a block that is rolled back must not replace what is kept
        cdef Py_ssize_t most = self.window + self.span(self.window) + BLOCK
        if self.capacity < min(most, rows):
            kept = np.zeros((min(most, max(rows, 2 * self.capacity)), self.kept_array.shape[1]))
            kept[:self.capacity] = self.kept_array
            self.kept, self.kept_array, self.capacity = <double*> array_data(kept), kept, len(kept)

    # ---- A block ------------------------------------------------------------------------------

    cdef Py_ssize_t rows_at_once(self) except -1:
        """Up to where a change is looked for, or a refresh begins or ends."""
        cdef Py_ssize_t rows
        self.prepare()
        rows = min(Ensemble.rows_at_once(self), CHECKED - self.t % CHECKED)
        if self.frozen:
            return rows
        return max(1, min(rows, (self.begin if self.pending is None else self.pending.until) - self.t))

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        self.reserve_rows(self.t + n)
        return Ensemble.open(self, first, n, y, weights, labels)

    cpdef Py_ssize_t stagger(self, Py_ssize_t place) noexcept:
        cdef Member member
        self.place = place
        for member in self.members:
            place = member.backend.stagger(place)
        return place

    cdef void combine(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        cdef Py_ssize_t i
        cdef bint anybody
        for i in range(begin, end):
            self.see_enabled(i, i + 1, &anybody)
            self.weigh(self.enabled, self.shares)
            Ensemble.combine(self, i, i + 1)
            self.keep(i)

    cdef void finish(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        self.spread(self.member_deviations + begin * self.combiner.n_members * self.groups, self.shares,
                    self.deviations + begin * self.groups)
        Ensemble.finish(self, begin, end)

    cdef void weigh(self, const unsigned char* enabled, double* shares) noexcept nogil:
        """Shares of members in the deviation of each target: their weights, as far as these are positive."""
        cdef Py_ssize_t g, k, m = self.combiner.n_members
        for g in range(self.groups):
            self.combiner.current_weights(g, shares + g * m)
            for k in range(m):
                shares[g * m + k] = fmax(shares[g * m + k], 0.0) + 1e-9 if enabled[k] else 0.0

    cdef void spread(self, const double* deviations, const double* shares, double* out) noexcept nogil:
        """The deviation of each target from those of the members, unless nobody takes part."""
        cdef Py_ssize_t g, k, m = self.combiner.n_members
        cdef double total, sum
        for g in range(self.groups):
            total = sum = 0.0
            for k in range(m):
                if shares[g * m + k] > 0.0:
                    total += shares[g * m + k]
                    sum += shares[g * m + k] * deviations[k * self.groups + g]
            if total > 0.0:
                out[g] = sum / total

    cdef void keep(self, Py_ssize_t i) noexcept nogil:
        """Write row i of the block, and the losses of the members, into the rings."""
        cdef Py_ssize_t j, k, d = self.n_features, g = self.groups, o = self.outputs, m = self.combiner.n_members
        cdef long long t = self.t + i
        cdef double* row = self.kept + (t % self.capacity) * (d + g + 1)
        cdef double* losses = self.losses_kept + 2 * (t % LOSSES)
        cdef const double* scores
        cdef double loss, error, target
        memcpy(row, self.data + (self.first + i) * d, d * sizeof(double))
        memcpy(row + d, self.y + i * g, g * sizeof(double))
        row[d + g] = 1.0 if self.weights == NULL else self.weights[i]
        losses[0] = losses[1] = 0.0
        for k in range(m if row[d + g] > 0.0 else 0):
            scores = self.table + (i * m + k) * o
            loss = 0.0
            for j in range(o):
                target = self.y[i * g + j] if self.targets else 1.0 if j == <Py_ssize_t> self.y[i] else -1.0
                error = (scores[j] - target) / (self.unit[j] if self.targets else 1.0)
                loss += error * error
            if k < m - 1:
                losses[0] += loss / (m - 1)
            else:
                losses[1] = loss

    cdef int answer(self, Py_ssize_t n, Py_ssize_t outputs, const double* table, const double* spreads, double* answers,
                    double* deviations, object examples) except -1:
        cdef Py_ssize_t i, m = self.combiner.n_members
        Ensemble.answer(self, n, outputs, table, spreads, answers, deviations, examples)
        flags, shares = self.enabled_members().astype(np.uint8), np.empty(m * self.groups)
        self.weigh(<const unsigned char*> array_data(flags), <double*> array_data(shares))
        for i in range(n):
            self.spread(spreads + i * m * self.groups, <const double*> array_data(shares), deviations + i * self.groups)

    # ---- Between two blocks -------------------------------------------------------------------

    cdef int prepare(self) except -1:
        """Begin a refresh, go on with it, and let new members take over. All or nothing, as often as you like."""
        cdef bint is_due
        if self.frozen:
            self.pending = None
            return 0
        if self.t % CHECKED == 0 and self.checked != self.t:
            if self.has_changed():
                self.pending = self.new_refresh(max(self.first_kept, self.t - LATELY), True)
            self.checked = self.t
        if self.pending is None and self.t >= self.begin:
            self.pending = self.new_refresh(self.first_kept, False)
        if self.pending is not None:
            is_due = self.t >= self.pending.until
            self.go_on(self.pending, np.inf if is_due else self.pending.pace * (self.t + 1 - self.pending.t))
            if is_due:
                self.take_over(self.pending)

    def has_changed(self):
        """Whether the learned members have got much worse, and the plain one, which forgets, has not as much."""
        losses = self.latest_losses()
        if len(losses) < LATELY + 2 * LATELY:
            return False
        before, lately = losses[:-LATELY], losses[-LATELY:]
        running, (tuned, plain) = before[:, 0].mean(), lately.mean(axis=0)
        return bool(tuned > WORSE * running and tuned > BEATEN * plain and (lately[:, 1] < lately[:, 0]).sum() >= OFTEN)

    def latest_losses(self):
        """Losses of the learned members, and of the plain one, at the latest rows, shape (n, 2)."""
        return self.loss_array[np.arange(max(self.first_loss, self.t - LATELY - USUALLY), self.t) % LOSSES]

    @property
    def first_kept(self):
        """The first row of those that are kept."""
        return max(self.oldest, self.t - self.window)

    def rows_kept(self, long long first, long long last):
        """(X, y, weights) of rows that are kept, oldest first."""
        part, d = self.kept_array[np.arange(first, last) % self.capacity], self.n_features
        return np.ascontiguousarray(part[:, :d]), np.ascontiguousarray(part[:, d:-1]), np.ascontiguousarray(part[:, -1])

    def refresh(self):
        """Learn the kernels anew from the rows that are kept, now. All or nothing."""
        refresh = Refresh(self.t, self.first_kept, False, self.t, 0.0)
        self.go_on(refresh, np.inf)
        self.take_over(refresh)

    # ---- A refresh ----------------------------------------------------------------------------

    def new_refresh(self, first, alarm):
        """A refresh that begins now, from the rows from `first` on; soon over after an alarm."""
        n = self.t - first
        until = self.t + self.span(n)
        return Refresh(self.t, first, alarm, until if alarm else max(until, self.due), self.work_of(n))

    cdef int plan(self, long long due) except -1:
        """The next refresh takes over at this row, and begins as many rows before it as its work takes."""
        self.due, self.begin = due, due - self.span(min(self.window, due - self.oldest))

    def span(self, n):
        """How many rows are learned during a refresh of n rows: as its work takes, but not too many."""
        return max(1, min(1 + int(self.work_of(n) / WORK), n // 4))

    def work_of(self, n):
        """Multiplications that a refresh of n rows usually takes."""
        return len(self.kinds) * (TRIED * self.work_of_evidence(min(n, self.sampled)) + n * self.maker.work_of_row())

    def work_of_evidence(self, n):
        """Multiplications of a value of the evidence of n rows with its gradient, and of a step."""
        return n * n * (n + 4.0 * self.n_features) + STEP

    def go_on(self, refresh, work):
        """Have so much work done in all. An error leaves none, and it is done again."""
        try:
            if refresh.steps is None:
                refresh.steps = self.steps_of(refresh)
            while refresh.members is None and refresh.done < work:
                try:
                    refresh.done += next(refresh.steps)
                except StopIteration as end:
                    refresh.members = end.value
                PyErr_CheckSignals()
        except BaseException:
            refresh.begin_again()
            raise

    def steps_of(self, refresh):
        """The work of a refresh, step by step: first kernels, then their rows.

        It gives how much work each step was, and returns the members. A member whose kernel is no better than it was is
        None. The plain one is made anew if it is disabled.
        """
        cdef Member member
        rows = self.rows_kept(refresh.first, refresh.t)
        olds = self.named()
        is_full = refresh.t - refresh.first == self.window and not refresh.alarm
        members, work = {}, self.work_of_evidence(min(len(rows[0]), self.sampled))
        for found in self.maker.renewed(olds, rows, self.sampled, is_full, refresh.alarm):
            if found is None:
                yield work
                continue
            kind, member = found
            members[kind] = member
            if member is not None:
                member.backend.stagger(self.place + list(olds).index(kind))
        each = self.maker.work_of_row()
        n = max(1, min(REPLAYED, int(WORK / each)))
        for first in range(refresh.first, refresh.t, n):
            last = min(first + n, refresh.t)
            for member in members.values():
                if member is not None:
                    self.replay(member, first, last)
                    yield each * (last - first)
        return members

    cdef int replay(self, Member member, long long first, long long last) except -1:
        """A member learns rows that are kept; it is disabled if it cannot."""
        cdef Py_ssize_t i, rows, done = 0, n = last - first, outputs = self.outputs_now()
        if n == 0 or member.disabled:
            return 0
        X, y, weights = self.rows_kept(first, last)
        cdef const double* x = <const double*> array_data(X)
        cdef const double* targets = <const double*> array_data(y)
        cdef const double* counts = <const double*> array_data(weights)
        scratch = np.empty(outputs + self.groups)
        cdef double* scores = <double*> array_data(scratch)
        member.attach(X, BLOCK)
        try:
            while done < n and not member.disabled:
                rows = min(n - done, min(BLOCK, member.rows_at_once()))
                try:
                    if member.transform is not None:
                        member.transform.open(x + done * self.n_features, rows)
                    member.open(X, done, rows, targets + done * self.groups, counts + done, self.targets, outputs)
                except (ValueError, FloatingPointError) as error:
                    member.disable(error)
                    break
                with nogil:
                    for i in range(rows):
                        member.test(i, scores, outputs, scores + outputs)
                        member.train(i)
                member.commit(rows)
                if member.transform is not None:
                    member.transform.commit(rows)
                done += rows
                PyErr_CheckSignals()
        finally:
            member.attached = None
            member.backend.detach()

    def take_over(self, refresh):
        """New members, which learn what came during the refresh, take the place of the old ones."""
        cdef Member member, old
        cdef Py_ssize_t k
        cdef long long began = refresh.first if refresh.alarm else self.began
        units, shares = np.empty(self.groups), self.learned_shares()
        members, seen, olds, fresh = [], [], [], []
        try:
            for k, old in enumerate(self.members):
                member = refresh.members.get(old.name)
                if member is not None:
                    self.replay(member, refresh.t, self.t)
                    if not member.disabled:
                        member.t = self.t
                        if member.transform is not None:
                            member.transform.t = self.t
                        if self.examples is not None:
                            member.attach(self.examples, min(len(self.examples), BLOCK))
                        olds.append(old)
                        fresh.append(member)
                        old = member
                members.append(old)
                if k < len(self.kinds):
                    seen.append(old.model.summary(shares[k]))
            entry = int(self.t), bool(refresh.alarm), tuple(seen)
            transforms = {member.name: member.transform for member in members if member.transform is not None}
            refreshes, units[:] = [*self.refreshes, entry], self.maker.units(members)
            due = self.t + min(max(self.t - began, <long long> FIRST_REFRESH // 2), <long long> LONGEST)
        except BaseException:
            for member in fresh:
                if member.attached is not None:
                    member.backend.detach()
            refresh.begin_again()
            raise
        self.members, self.transforms, self.refreshes, self.pending = members, transforms, refreshes, None
        self.link()
        memcpy(self.unit, array_data(units), self.groups * sizeof(double))
        if refresh.alarm:
            self.began = self.oldest = began
            self.first_loss = self.t
        self.plan(due)
        for old in olds:
            if old.attached is not None:
                old.attached = None
                old.backend.detach()

    def learned_shares(self):
        """How much each of the learned members counts among them: their weights in the combination; they sum to 1."""
        weights = np.maximum(self.combiner.weights().mean(axis=0)[:len(self.kinds)], 1e-9)
        return (weights / weights.sum()).tolist()

    def relevance(self):
        """How much each feature counts for distances, the learned members together; sums to 1."""
        models = [member.model for member in self.members[:len(self.kinds)]]
        roots = np.sqrt(sum(share * (model.map**2).sum(axis=1) for share, model in zip(self.learned_shares(), models)))
        return roots / roots.sum()

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        first = self.first_kept if self.pending is None else min(self.first_kept, self.pending.first)
        X, y, weights = self.rows_kept(first, self.t)
        return {
            "t": self.t, "n_seen": self.n_seen, "baseline": self.baseline_of_seen(),
            **({} if self.intervals is None else {"intervals": state_of(self.intervals)}),
            "combiner": state_of(self.combiner), "changes": state_of(self.changes),
            "members": {member.name: self.maker.state_of(member) for member in self.members},
            "losses": self.latest_losses(), "kept": {"X": X, "y": y, "weights": weights},
            "clock": {"began": self.began, "due": self.due, "oldest": self.oldest, "first_loss": self.first_loss},
            "pending": {"t": -1, "until": -1, "alarm": False} if self.pending is None else self.pending.state(),
            "history": self.maker.state_of_history(self.refreshes),
        }

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it cannot be."""
        cdef Member member
        clock, pending = state["clock"], state["pending"]
        if set(state["members"]) != set(self.named()):
            raise ValueError("the members are not those of the parameters")
        for found, names in ((state, ("t", "n_seen")), (clock, ("began", "due", "oldest", "first_loss"))):
            for name in names:
                Count(name).check(found[name], self, {})
        self.t, self.n_seen = state["t"], state["n_seen"]
        began, due, oldest, first_loss = (clock[name] for name in ("began", "due", "oldest", "first_loss"))
        size = 1 + (self.targets or self.n_seen)
        self.set_baseline(check_array(state["baseline"], "baseline", float, (size,)).copy())
        if max(began, oldest, first_loss) > self.t:
            raise ValueError("the clock of refreshes is ahead of the rows")
        self.began, self.oldest, self.first_loss = began, oldest, first_loss
        self.plan(due)
        if self.intervals is not None:
            restore(self.intervals, state["intervals"])
        restore(self.combiner, state["combiner"])
        restore(self.changes, state["changes"])
        self._restore_pending(pending)
        self._restore_rows(state["kept"])
        losses = np.array(state["losses"], dtype=float).reshape(len(state["losses"]), 2)
        rows = np.arange(max(first_loss, self.t - LATELY - USUALLY), self.t)
        if len(losses) != len(rows) or not (losses >= 0.0).all():
            raise ValueError("the losses are negative, or not those of the latest rows")
        self.loss_array[rows % LOSSES] = losses
        saved = state["members"]
        self.members = [self.maker.restored(name, saved[name], self.n_seen) for name in self.named()]
        for member in self.members:
            member.t = self.t
            if member.transform is not None:
                member.transform.t = self.t
        self.transforms = {member.name: member.transform for member in self.members if member.transform is not None}
        self.link()
        self.stagger(self.place)
        self.units[:] = self.maker.units(self.members)
        self.refreshes = self.maker.history_of(state["history"])

    def _restore_pending(self, state):
        t, until, alarm = state["t"], state["until"], state["alarm"]
        self.pending = None
        if type(t) is not int or type(until) is not int or type(alarm) is not bool:
            raise ValueError("the pending refresh is not one of two rows and a flag")
        if t >= 0:
            first = max(self.oldest, t - (LATELY if alarm else self.window))
            if not first < t <= self.t <= until <= t + self.span(self.window):
                raise ValueError("the pending refresh should have begun earlier or later")
            self.pending = Refresh(t, first, alarm, until, self.work_of(t - first))

    def _restore_rows(self, state):
        X, y, weights = (np.array(state[name], dtype=float) for name in ("X", "y", "weights"))
        first = self.first_kept if self.pending is None else min(self.first_kept, self.pending.first)
        n = self.t - first
        if X.shape != (n, self.n_features) or y.shape != (n, self.groups) or weights.shape != (n,):
            raise ValueError("the rows that are kept do not fit the features, the targets, or each other")
        if not all(np.isfinite(part).all() for part in (X, y, weights)) or (weights < 0.0).any():
            raise ValueError("the rows that are kept are not numbers")
        if not self.targets and not ((y >= 0) & (y < self.n_seen) & (y == np.floor(y))).all():
            raise ValueError("the rows that are kept have labels that are none")
        self.reserve_rows(self.t)
        self.kept_array[np.arange(first, self.t) % self.capacity] = np.column_stack([X, y, weights])

    def _check(self):
        Ensemble._check(self)
        assert self.began <= self.t and self.oldest <= self.t and self.first_loss <= self.t
        assert self.pending is None or self.t <= self.pending.until
        assert [member.name for member in self.members][:len(self.kinds)] == list(self.kinds)
        for member in self.members:
            member.model._check()


def tuned_member(name, engine, model, labels, disabled, transform=None, fixed=None):
    """A posterior as a member: behind a metric, and with fixed (centre, unit) of its targets."""
    if fixed is not None:
        engine.target_scaler = TargetScaler.fixed(*fixed)
    return Member(name, engine, "labels" if engine.growing else "numbers", transform, model, labels,
                  has_deviations=True, disabled=disabled)
