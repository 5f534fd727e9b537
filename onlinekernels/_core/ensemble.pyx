"""Ensembles: members that learn for themselves, and a combiner that learns whom to trust.

Members do not know of each other, and do not depend on the combination: each learns from (x, y) alone.  A block of rows
is opened by all, run by all, and then combined in one loop over its rows.  Opening may fail, and is then taken back;
all else is compiled and cannot fail, so nobody is ever ahead of another.  A member whose numbers diverge, or whose loss
or kernel is Python that fails, is disabled at that row, and the others go on.
"""
import warnings

import numpy as np
from libc.math cimport exp, fabs, fmax, fmin
cimport cython
from libc.string cimport memcpy, memmove, memset
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.points cimport Rows

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


cdef class Member:
    """A backend as a member of an ensemble: which rows it sees, and what its scores mean there.

    Parameters
    ----------
    name : str
    backend : Backend
    scale : str
        What its scores mean: see `Scale`.
    transform : Transform or None
    model : object
        What shows the backend to users.
    labels : list of int or None
        Codes of the labels that the backend knows already.
    before : int
        Rows that it has learned already.
    frozen : bool
        Whether it learns no more.
    fixed : bool
        Whether no other labels can join.
    has_deviations : bool
        Whether the combination wants its deviations.
    has_python : bool
        Whether code of the user's runs in it.
    disabled : str or None
        Why it takes no part.
    """

    def __init__(self, str name, Backend backend, str scale, Transform transform=None, model=None, labels=(),
                 long long before=0,
                 bint frozen=False, bint fixed=False, bint has_deviations=False, bint has_python=False, disabled=None):
        self.has_deviations, self.has_python, self.fixed = has_deviations, has_python, fixed
        self.disabled, self.text = disabled is not None, disabled
        self.name, self.backend, self.scale, self.transform, self.model = name, backend, SCALES[scale], transform, model
        self.before, self.frozen = before, frozen
        self.reserve(1, 1, max(labels, default=1) + 1)
        for code in labels:
            self.codes[self.known], self.labels[code] = code, self.known
            self.known += 1

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
        if self.code_array is None or len(self.code_array) < width:
            codes, known = np.full(2 * width, -1, dtype=np.int64), np.full(2 * width, -1, dtype=np.int64)
            if self.code_array is not None:
                codes[:len(self.code_array)], known[:len(self.label_array)] = self.code_array, self.label_array
            self.codes, self.labels = <long long*> array_data(codes), <long long*> array_data(known)
            self.code_array, self.label_array = codes, known
        width = max(width, self.width)
        size = n * (max(1, targets) + 1) + width * (1 + n * self.frozen)
        if self.room is None or len(self.room) < size:
            room = np.zeros(size)
            self.y, self.room = <double*> array_data(room), room
        self.known_before = <Py_ssize_t*> (self.y + n * max(1, targets))
        self.raw, self.width = <double*> (self.known_before + n), width
        self.answers = self.raw + width
        return 0

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
        return 0

    cdef int open(self, examples, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t targets,
                  Py_ssize_t labels) except -1:
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
                                  self.answers, self.width,
                                  NULL, 0)
        else:
            self.backend.open(first if self.transform is None else 0, n, self.y, weights, known)
        self.rows = self.until = n
        self.trained, self.is_wild, self.diverged = 0, False, False
        return 0

    cdef void run_all(self, Py_ssize_t k, Py_ssize_t n, double* scores, Py_ssize_t stride, Py_ssize_t outputs,
                      double* deviations,
                      Py_ssize_t spread, Py_ssize_t groups) noexcept nogil:
        """The member k places further on tests and trains all rows of the block; strides are from row to row."""
        cdef Py_ssize_t i
        if k:
            self.next.run_all(k - 1, n, scores + outputs, stride, outputs, deviations + groups, spread, groups)
            return
        for i in range(n):
            self.test(i, scores + i * stride, outputs, deviations + i * spread)
            self.train(i)

    cdef void test_all(self, Py_ssize_t i, double* scores, Py_ssize_t outputs, double* deviations,
                       Py_ssize_t groups) noexcept nogil:
        """Test row i, as do the members that follow."""
        self.test(i, scores, outputs, deviations)
        if self.next is not None:
            self.next.test_all(i, scores + outputs, outputs, deviations + groups, groups)

    cdef void train_all(self, Py_ssize_t i) noexcept nogil:
        """Learn row i, as do the members that follow."""
        self.train(i)
        if self.next is not None:
            self.next.train_all(i)

    cdef Py_ssize_t enabled_from(self, Py_ssize_t i, Py_ssize_t end, unsigned char* enabled) noexcept nogil:
        """Which members, from this one on, take part at row i, and up to which row that stays so."""
        enabled[0] = self.until > i
        if enabled[0]:
            end = min(end, self.until)
        return end if self.next is None else self.next.enabled_from(i, end, enabled + 1)

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
        else:
            memset(scores, 0, outputs * sizeof(double))

    cdef bint tested(self, Py_ssize_t i, double* deviations) noexcept nogil:
        cdef Py_ssize_t tries = 1
        while not self.backend.test(i, self.raw, deviations if self.has_deviations else NULL):
            if not self.was_signal() or tries == TRIES:
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
            if not self.was_signal() or tries == TRIES or not self.backend.test(i, self.raw, NULL):
                self.until = i                  # and what it has said of this row counts no more
                return
            tries += 1
        self.trained = i + 1
        if not self.frozen and self.backend.diverges():
            self.diverged, self.until = True, i + 1

    cdef bint was_signal(self) noexcept with gil:
        """Whether a signal, or want of memory, came in a loss of the user's: the row is tried again, and it is raised
        later."""
        signal = self.backend.signal()
        if signal is not None and self.signal is None:
            self.signal = signal
        return signal is not None

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
        elif self.signal is not None:           # again and again
            self.text = in_words(self.signal)
        else:
            self.text = in_words(self.backend.failure())

    def disable(self, error):
        """Take part no more, for this error."""
        self.text = in_words(error)
        self.disabled, self.until = True, 0

    cdef int evaluate(self, examples, Py_ssize_t n, double* raw, Py_ssize_t width, double* scores, Py_ssize_t outputs,
                      Py_ssize_t stride, double* deviations, Py_ssize_t spread) except -1:
        """Scores of n rows as of now, as the combiner takes them; raw: (n, width), for those of the backend."""
        cdef Py_ssize_t i
        if self.t + self.before == 0:
            for i in range(n):
                self.place_nothing(scores + i * stride, outputs)
            return 0
        self.backend.evaluate(examples, n, raw, width, deviations if self.has_deviations else NULL, spread)
        for i in range(n):
            self.place(raw + i * width, scores + i * stride, outputs, self.known)
        return 0

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
cdef class WarmUp(Backend):
    """An engine whose kernel gets its width from the distances of the first rows, which are then learned anew.

    Parameters
    ----------
    state : State
        What has the engine, and the first rows (`beginning`) as long as they are looked at.
    """

    cdef readonly object state          # what has the engine,
    cdef Backend engine
    cdef object after                   # the first rows after the open block,
    cdef Py_ssize_t learned             # if so many of it were learned
    cdef object examples                # of the call

    def __init__(self, state):
        self.state, self.engine = state, state.engine
        Backend.__init__(self, self.engine.task, self.engine.targets)

    def catch_up(self):
        """The first rows are those that were learned. As often as you like."""
        if self.after is not None:
            before = self.state.beginning
            self.state.beginning, self.after = self.after.first(len(before) + self.learned), None

    cdef int attach(self, examples) except -1:
        self.examples = examples
        self.engine.attach(examples)
        return 0

    cdef int detach(self) except -1:
        self.examples = None
        self.engine.detach()
        return 0

    cdef Py_ssize_t room(self) except -1:
        cdef Py_ssize_t rows = self.engine.room()
        if self.state.beginning is None:
            return rows
        self.catch_up()
        if self.state.beginning.left == 0:
            self.choose_width()
            return self.room()
        return min(rows, self.state.beginning.left)

    cdef int choose_width(self) except -1:
        """Go on with the engine that fits the first rows."""
        state = self.state.after_first()
        if state is not self.state:
            self.engine.detach()
            self.state, self.engine = state, state.engine
            self.engine.attach(self.examples)
        return 0

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        self.room()
        if self.state.beginning is not None:
            targets = np.array(<const double[:n * max(1, self.targets)]> y)
            weighted = None if weights == NULL else np.array(<const double[:n]> weights)
            self.after = self.state.beginning.followed_by(self.examples[first:first + n], targets, weighted)
            self.learned = 0
        self.engine.open(first, n, y, weights, labels)
        return 0

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        return self.engine.test(i, scores, deviations)

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return self.engine.train(i)

    cdef void commit(self, Py_ssize_t n) noexcept:
        self.engine.commit(n)
        self.learned = n

    cdef bint diverges(self) noexcept nogil:
        return self.engine.diverges()

    cdef object signal(self):
        return self.engine.signal()

    cdef object failure(self):
        return self.engine.failure()

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        return self.engine.evaluate(examples, n, scores, stride, deviations, spread)


cdef double mixed(double local) noexcept nogil:
    """Factor of a deviation by what errors nearby were, in units of the running one; nothing is said before there are
    rows."""
    return 0.2 + 0.8 * local if local > 0.0 else 1.0


@cython.final
cdef class Centre(Backend):
    """How far a row is from the middle, all features together: minus the sum of their sizes. It learns nothing."""

    cdef object examples                # of the call
    cdef const double* data
    cdef const double* rows             # of the block

    def __init__(self, Py_ssize_t n_features):
        Backend.__init__(self, "novelty", 1)
        self.n_features = n_features

    cdef int attach(self, examples) except -1:
        self.examples, self.data = examples, <const double*> array_data(examples)
        return 0

    cdef int detach(self) except -1:
        self.examples, self.data = None, NULL
        return 0

    cdef Py_ssize_t room(self) except -1:
        return BLOCK

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        self.rows = self.data + first * self.n_features
        return 0

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        scores[0] = self.score(self.rows + i * self.n_features)
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        return True

    cdef double score(self, const double* x) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0.0
        for j in range(self.n_features):
            total += fabs(x[j])
        return -total

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        cdef Py_ssize_t i
        cdef const double* rows = <const double*> array_data(examples)
        for i in range(n):
            scores[i * stride] = self.score(rows + i * self.n_features)
        return 0


cdef void open_task(void* ensemble, Py_ssize_t k) noexcept nogil:
    with gil:
        (<Ensemble> ensemble).open_member((<Ensemble> ensemble).order[k])


cdef void run_task(void* ensemble, Py_ssize_t k) noexcept nogil:
    (<Ensemble> ensemble).run_member((<Ensemble> ensemble).order[k])


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
    calibration : Calibration or None
        Of probabilities.
    correction : PriorCorrection or None
        Of decisions about rare classes.
    intervals : IntervalTracker or None
    fences : TargetFences or None
        To which the targets of members are clipped.
    nearby : LocalRows or None
        What errors were nearby, on the rows of the transform "near"; deviations follow it.
    relevance : str or None
        The self-tuned member that says how relevant features are for the transform "relevance".
    lags : int
        Targets are a time series, and rows have so many of its values behind their own features. Before its beginning a
        series is taken to have been at its first value.
    joined : int
        Labels that members know already.
    """

    def __init__(self, members, Combiner combiner, str task, Py_ssize_t targets, Py_ssize_t n_features, *,
                 transforms=None, Calibration calibration=None, PriorCorrection correction=None,
                 IntervalTracker intervals=None, TargetFences fences=None, LocalRows nearby=None, relevance=None,
                 Py_ssize_t lags=0, Py_ssize_t joined=0):
        Backend.__init__(self, task, targets)
        self.members, self.combiner = list(members), combiner
        self.transforms = {} if transforms is None else transforms
        self.calibration, self.correction, self.intervals = calibration, correction, intervals
        self.fences, self.nearby, self.relevance = fences, nearby, relevance
        if nearby is not None:
            self.near = self.transforms["near"]
        self.lags, self.latest = lags, np.zeros((lags, targets))
        self.latest_data = <double*> array_data(self.latest)
        self.n_features, self.joined = n_features, joined
        self.stride, self.history, self.n_jobs = SPACING, [], 1
        self.knows_no_losses, self.looks_early = task == "novelty", fences is not None or relevance is not None
        self.errors = [None] * len(self.members)
        self.link()
        losses = np.zeros(len(self.members) + 1)
        self.loss_sums, self.losses = <double*> array_data(losses), losses

    cdef int link(self) except -1:
        """Let each member know the next one."""
        cdef Member member, before = None
        for member in self.members:
            if before is not None:
                before.next = member
            member.next = None
            before = member
        self.first_member = self.members[0]
        return 0

    cdef int share(self, Py_ssize_t n) except -1:
        """See whether threads share the members of a block of n rows; they are made, and members dealt, when first
        needed."""
        self.is_shared = False
        if self.n_jobs == 1:
            self.pool = None
        if self.n_jobs == 1 or n < SHARED:
            return 0
        if self.pool is None or not self.pool.serves(self.n_jobs):
            self.deal()
            self.pool = Pool(self.n_jobs)
        self.is_shared = self.pool.n_threads > 1 and self.n_dealt > 1
        return 0

    cdef int deal(self) except -1:
        """In which order threads take members: ensembles first, which have most to do. Who calls Python stays with the
        caller."""
        cdef Py_ssize_t[::1] order
        dealt = [k for k, member in enumerate(self.members) if not member.calls_python]
        dealt.sort(key=lambda k: not isinstance(self.members[k].backend, Ensemble))
        alone = [k for k, member in enumerate(self.members) if member.calls_python]
        order = found = np.array(dealt + alone, dtype=np.intp)
        self.order, self.memory_of_order, self.n_dealt = &order[0], found, len(dealt)
        return 0

    # ---- A call -------------------------------------------------------------------------------

    cdef int attach(self, examples) except -1:
        cdef Member member
        self.examples = examples
        self.data = NULL if isinstance(examples, Rows) else <const double*> array_data(examples)
        for member in self.members:
            if not member.disabled and not member.frozen:
                member.attach(examples, min(len(examples), BLOCK))
        return 0

    cdef int detach(self) except -1:
        cdef Member member
        self.examples, self.data = None, NULL
        if self.rows:
            self.commit(0)
        for member in self.members:
            if member.attached is not None:
                member.attached = None
                member.backend.detach()
        return 0

    cdef Py_ssize_t room(self) except -1:
        cdef Member member
        cdef Py_ssize_t rows = min(BLOCK, SPACING - self.t % SPACING)
        for member in self.members:
            if not member.disabled and not member.frozen:
                rows = min(rows, member.backend.room())
        if self.task == "novelty":
            for age in YOUNG:
                if age > self.t:
                    rows = min(rows, age - self.t)
        elif self.looks_early:
            for stop in EARLY:
                if stop > self.t:
                    rows = min(rows, stop - self.t)
        return rows

    cdef int reserve(self, Py_ssize_t n, Py_ssize_t outputs) except -1:
        """Room for a block."""
        cdef Py_ssize_t m = len(self.members), g = self.groups
        if self.room_rows >= n and self.room_outputs >= outputs:
            return 0
        n, outputs = max(n, self.room_rows), max(outputs, self.room_outputs)
        room = np.zeros(n * (m * (outputs + g) + 4 * outputs + 5 * g + 2) + m + 1)
        self.table = <double*> array_data(room)
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
        self.counts = self.ratios + n * g
        self.joined_before = <Py_ssize_t*> (self.counts + n)
        self.enabled = <unsigned char*> (self.joined_before + n)
        self.memory_of_block, self.room_rows, self.room_outputs = room, n, outputs
        return 0

    cdef int open(self, Py_ssize_t first, Py_ssize_t n, const double* y, const double* weights,
                  Py_ssize_t labels) except -1:
        cdef Transform transform
        cdef Py_ssize_t i, joined = self.joined
        self.prepare()
        self.outputs = self.outputs_for(labels)
        self.reserve(n, self.outputs)
        self.y, self.weights, self.first, self.rows = y, weights, first, n
        if self.fences is not None:
            self.fences.clip(y, n, self.clipped)
        try:
            for transform in self.transforms.values():
                transform.open(self.data + first * self.n_features, n)
            self.open_members()
            if self.nearby is not None:
                self.nearby.open(self.near.out, n, self.targets)
            self.combiner.open(n, self.outputs)
            if self.correction is not None:
                self.correction.open(n, self.outputs)
        except BaseException:
            self.commit(0)
            raise
        for i in range(n):
            self.joined_before[i] = joined
            if self.task == "classes":
                joined = max(joined, <Py_ssize_t> y[i] + 1)
            self.counts[i] = 1.0 if weights == NULL else weights[i]
        if self.t == 0 and not self.has_learned_members():      # what is said of the first row is not worth judging
            self.counts[0] = 0.0
        return 0

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
            member.open(self.examples, self.first, self.rows, self.clipped if self.fences is not None else self.y,
                        self.weights,
                        self.targets, self.outputs)
        except BaseException as error:
            self.errors[k], self.has_errors = error, True

    cdef bint has_learned_members(self):
        cdef Member member
        for member in self.members:
            if member.before:
                return True
        return False

    cdef int prepare(self) except -1:
        """What is due between two blocks: an entry of the history, and a look at what is known. As often as you
        like."""
        cdef Member member
        if self.t == 0:
            return 0
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
            if self.fences is not None:
                self.fences.set()
            if self.relevance is not None:
                self.follow_relevance()
            self.looked = self.t
        return 0

    cdef int follow_relevance(self) except -1:
        """Weigh features by what the self-tuned member knows, and so the rows that others keep. All or nothing."""
        cdef Member member, source = self.named()[self.relevance]
        cdef Relevance transform = self.transforms["relevance"]
        cdef double[::1] weights
        if source.disabled:
            return 0
        found = transform.weights_for(source.backend.relevance())
        if np.array_equal(found, transform.weights):
            return 0
        ratio, weights = found / transform.weights, found
        kept = [(member.backend.rows, member.backend.rows.rescaled(ratio)) for member in self.members
                if member.transform is transform and not member.disabled]
        transform.set_weights(&weights[0])      # nothing can fail any more
        for rows, rescaled in kept:
            (<LocalRows> rows).take_rescaled(rescaled)
        return 0

    # ---- A block ------------------------------------------------------------------------------

    cdef bint test(self, Py_ssize_t i, double* scores, double* deviations) noexcept nogil:
        cdef Py_ssize_t m = self.combiner.n_members
        self.first_member.test_all(i, self.table + i * m * self.outputs, self.outputs,
                                   self.member_deviations + i * m * self.groups,
                                   self.groups)
        self.combine(i, i + 1)
        memcpy(scores, self.answers + i * self.outputs, self.outputs * sizeof(double))
        if deviations != NULL:
            memcpy(deviations, self.deviations + i * self.groups, self.groups * sizeof(double))
        return True

    cdef bint train(self, Py_ssize_t i) noexcept nogil:
        self.first_member.train_all(i)
        return True

    cdef void combine(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Combine rows that the members have tested, and learn from them whom to trust."""
        cdef Py_ssize_t i = begin, j, stop, m = self.combiner.n_members, o = self.outputs, g = self.groups
        cdef bint anybody
        while i < end:
            stop = self.first_member.enabled_from(i, end, self.enabled)
            anybody = False
            for j in range(m):
                anybody = anybody or self.enabled[j]
            if anybody:
                self.combiner.run(stop - i, o, self.table + i * m * o, self.y + i * (g if self.targets else 1),
                                  self.joined_before + i, self.counts + i, self.enabled, self.combined + i * o,
                                  self.deviations + i * g)
            else:
                self.answer_nothing(stop - i, o, self.combined + i * o, self.deviations + i * g)
            i = stop
        self.finish(begin, end)
        self.count_losses(begin, end)

    cdef void answer_nothing(self, Py_ssize_t n, Py_ssize_t outputs, double* combined,
                             double* deviations) noexcept nogil:
        """Where all members are disabled."""
        cdef Py_ssize_t i
        for i in range(n * outputs):
            combined[i] = 0.0 if self.targets else -1.0
        for i in range(n * self.groups):
            deviations[i] = 1.0

    cdef void finish(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """What is answered: probabilities are calibrated, and innovations followed, by which intervals go."""
        cdef Py_ssize_t i, c, o = self.outputs, n = end - begin
        cdef double* combined = self.combined + begin * o
        cdef double* answers = self.answers + begin * o
        if self.nearby is not None:
            self.follow_errors(begin, end)
        if self.intervals is not None:
            self.intervals.run(n, combined, self.y + begin * o, self.deviations + begin * o,
                               self.innovations_of_rows + begin * o,
                               self.leasts + begin * o)
        if self.calibration is None:
            memcpy(answers, combined, n * o * sizeof(double))
            return
        for i in range(n * o):
            combined[i] = 0.5 * (1.0 + combined[i])
        self.calibration.run(n, o, combined, self.y + begin, self.joined_before + begin, self.counts + begin, answers)
        if self.correction is not None:
            memcpy(combined, answers, n * o * sizeof(double))
            self.correction.run(n, o, combined, self.y + begin, self.joined_before + begin, answers,
                                self.factors + begin * o)
        for i in range(n):
            for c in range(o):
                answers[i * o + c] = 2.0 * answers[i * o + c] - 1.0 if c < self.joined_before[begin + i] else -1.0

    cdef void follow_errors(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Deviations by what errors nearby were, in units of the running one."""
        cdef Py_ssize_t i, j, k, T = self.targets
        for i in range(begin, end):
            self.nearby.test_row(i, self.local + i * T, self.ratios + i * T)
            for j in range(T):
                k = i * T + j
                self.ratios[k] = fmin(fabs(self.y[k] - self.combined[k]) / self.deviations[k], LARGE)
                self.deviations[k] *= mixed(self.local[k])
            self.nearby.train_row(i, self.ratios + i * T, 0.0 if self.t + i < FIRST else 1.0, self.local + i * T)

    cdef void count_losses(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Mistakes, or squared errors, of each member and of all together."""
        cdef Py_ssize_t i, j, k, m = self.combiner.n_members, o = self.outputs
        cdef double loss, error
        cdef const double* scores
        if self.knows_no_losses:
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
                    loss = self.best(scores, self.joined_before[i]) != <Py_ssize_t> self.y[i]
                self.loss_sums[k] += loss

    cdef Py_ssize_t best(self, const double* scores, Py_ssize_t joined) noexcept nogil:
        """The first of the largest scores; -1 if there are no labels."""
        cdef Py_ssize_t c, best = 0
        for c in range(1, joined):
            if scores[c] > scores[best]:
                best = c
        return best if joined else -1

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
            if self.fences is not None:
                self.fences.commit(self.y, n)
            if self.lags:
                self.remember(n)
            self.t += n
            if self.task == "classes":
                self.joined = max(self.joined_before[n - 1], <Py_ssize_t> self.y[n - 1] + 1)
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
        if self.lags:
            examples = self.with_lags(examples, y)
        return Backend.learn(self, examples, y, weights, labels, trace)

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
        return 0

    def scores(self, examples):
        """The same as of now; of a series, each row follows the one before, with what was predicted for it as its
        value."""
        if not self.lags:
            return Backend.scores(self, examples)
        latest, found = self.latest, []
        for i in range(len(examples)):
            found.append(Backend.scores(self, self.ahead(examples[i:i + 1], latest)))
            latest = np.concatenate([latest, found[i][0]])[1:]
        return tuple(np.concatenate(parts) for parts in zip(*found))

    def ahead(self, examples, latest=None):
        """The first rows that follow a series, by default its `latest` values, as members see them."""
        past = self.latest if latest is None else latest
        return np.ascontiguousarray(np.hstack([examples, np.repeat(past.reshape(1, -1), len(examples), axis=0)]))

    cdef void run_block(self, Py_ssize_t n, const double* y, double* scores, Py_ssize_t stride, double* deviations,
                        double* innovations) noexcept nogil:
        """Members one after another, or side by side, then the combiner."""
        cdef Py_ssize_t k
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
        cdef Py_ssize_t m = self.combiner.n_members
        self.first_member.run_all(k, self.rows, self.table, m * self.outputs, self.outputs, self.member_deviations,
                                  m * self.groups,
                                  self.groups)

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
                    self.warn_of(refused.member)

    cdef int settle(self) except -1:
        """Warn of members that were disabled in the latest block, and raise what signals have raised in a member's own
        code."""
        cdef Member member
        for member in self.members:
            if isinstance(member.backend, Ensemble) and not member.disabled:
                member.backend.settle()
            if member.disabled and member.text is None:
                member.find_reason()
                self.warn_of(member)
            if member.signal is not None:
                signal, member.signal = member.signal, None
                raise signal
            member.backend.settle()
        return 0

    def warn_of(self, Member member):
        """Say that a member is disabled."""
        from onlinekernels.base.status import LearningWarning, level_outside

        warnings.warn(f"The member {member.name!r} is disabled, the others go on: {member.text}", LearningWarning,
                      stacklevel=level_outside())

    def enabled_members(self):
        """Which members take part."""
        return np.array([not member.disabled for member in self.members])

    def members_scores(self, examples):
        """Scores of all members as of now, shape (n, members, outputs); 0 of those that are disabled."""
        cdef Py_ssize_t n = examples.shape[0], outputs = self.outputs_now(), m = len(self.members)
        table, spreads = np.zeros((n, m, outputs)), np.zeros((n, m, self.groups))
        self.ask_members(examples, n, outputs, <double*> array_data(table), <double*> array_data(spreads))
        return table

    cdef int ask_members(self, examples, Py_ssize_t n, Py_ssize_t outputs, double* table, double* spreads) except -1:
        """What all members answer as of now."""
        cdef Member member
        cdef Transform transform
        cdef Py_ssize_t k = 0, m = len(self.members), g = self.groups, width = outputs
        cdef dict seen = {}
        for transform in self.transforms.values():
            if transform is not self.near:
                rows = np.empty((n, transform.n_features))
                transform.evaluate(<const double*> array_data(examples), n, <double*> array_data(rows))
                seen[transform] = rows
        for member in self.members:
            width = max(width, member.width)
        raw = np.empty(n * width)
        for member in self.members:
            if not member.disabled:
                member.evaluate(examples if member.transform is None else self.seen_by(member, seen, examples, n), n,
                                <double*> array_data(raw), width, table + k * outputs, outputs, m * outputs,
                                NULL if spreads == NULL else spreads + k * g, m * g)
            k += 1
        return 0

    cdef object seen_by(self, Member member, dict seen, examples, Py_ssize_t n):
        """Rows as a member sees them."""
        found = seen.get(member.transform)
        if found is None:                       # a transform of its own
            found = np.empty((n, member.transform.n_features))
            member.transform.evaluate(<const double*> array_data(examples), n, <double*> array_data(found))
        return found

    cdef int evaluate(self, examples, Py_ssize_t n, double* scores, Py_ssize_t stride, double* deviations,
                      Py_ssize_t spread) except -1:
        cdef Py_ssize_t i, outputs = self.outputs_now(), m = len(self.members), g = self.groups
        room = np.zeros(n * (m * (outputs + g) + outputs + g))
        cdef double* table = <double*> array_data(room)
        cdef double* spreads = table + n * m * outputs
        cdef double* answers = spreads + n * m * g
        cdef double* found = answers + n * outputs
        self.ask_members(examples, n, outputs, table, NULL if deviations == NULL else spreads)
        self.answer(n, outputs, table, spreads, answers, found, examples)
        for i in range(n):
            memcpy(scores + i * stride, answers + i * outputs, outputs * sizeof(double))
            if deviations != NULL:
                memcpy(deviations + i * spread, found + i * g, g * sizeof(double))
        return 0

    cdef int answer(self, Py_ssize_t n, Py_ssize_t outputs, const double* table, const double* spreads, double* answers,
                    double* deviations, object examples) except -1:
        """Answers and deviations for what members answer, as of now."""
        cdef Py_ssize_t i
        cdef double* rows
        cdef double* local
        flags = self.enabled_members().astype(np.uint8)
        if not flags.any():
            self.answer_nothing(n, outputs, answers, deviations)
            return 0
        self.combiner.evaluate(n, outputs, table, self.joined, <const unsigned char*> array_data(flags), answers,
                               deviations)
        if self.nearby is not None:
            near = np.empty(n * (self.n_features + 2 * self.targets))
            rows = <double*> array_data(near)
            self.near.evaluate(<const double*> array_data(examples), n, rows)
            local = rows + n * self.n_features
            self.nearby.evaluate(rows, n, self.targets, local, local + n * self.targets)
            for i in range(n * self.targets):
                deviations[i] *= mixed(local[i])
        if self.calibration is None:
            return 0
        likely = np.empty(n * outputs)
        cdef double* p = <double*> array_data(likely)
        for i in range(n * outputs):
            p[i] = 0.5 * (1.0 + answers[i])
        self.calibration.evaluate(n, outputs, p, self.joined, answers)
        if self.correction is not None:
            memcpy(p, answers, n * outputs * sizeof(double))
            self.correction.evaluate(n, outputs, p, self.joined, answers)
        for i in range(n * outputs):
            answers[i] = 2.0 * answers[i] - 1.0
        return 0

    def threshold(self):
        """Of a detector: ranks below it are alerts."""
        return (<AveragedRanks> self.combiner).level

    def named(self):
        """The members by name."""
        return {member.name: member for member in self.members}

    # ---- State --------------------------------------------------------------------------------

    def parts(self):
        """What is kept beside the members, by name."""
        found = {"combiner": self.combiner, "calibration": self.calibration, "correction": self.correction,
                 "intervals": self.intervals, "fences": self.fences, "nearby": self.nearby}
        return {name: part for name, part in found.items() if part is not None}

    def state(self):
        """What is learned, by name, but for the members."""
        times = [t for t, _, _ in self.history]
        found = {"t": int(self.t), "joined": int(self.joined), "stride": int(self.stride), "losses": self.losses.copy(),
                 "latest": self.latest.copy(), "history": {"t": np.array(times, dtype=np.int64)}}
        if times:
            found["history"]["weights"] = np.array([weights for _, weights, _ in self.history])
            found["history"]["losses"] = np.array([losses for _, _, losses in self.history])
        if self.transforms:
            found["transforms"] = {name: transform.state() for name, transform in self.transforms.items()}
        return {**found, **{name: part.state() for name, part in self.parts().items()}}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it cannot be."""
        t, joined, stride = (state[name] for name in ("t", "joined", "stride"))
        for count, least in ((t, 0), (joined, 0), (stride, SPACING)):
            if type(count) is not int or not least <= count < 1 << 62:
                raise ValueError("t, joined or stride is not a number of rows or labels")
        losses = check_array(state["losses"], "losses", np.float64, self.losses.shape)
        latest = check_array(state["latest"], "latest", np.float64, self.latest.shape)
        times = check_array(state["history"]["t"], "times", np.int64, (-1,))
        in_order = len(times) <= ENTRIES and (np.diff(times, prepend=0) > 0).all() and times.max(initial=0) <= t
        if (losses < 0.0).any() or not in_order:
            raise ValueError("losses are negative, or the history has times that are not in order")
        groups, m = self.combiner.weights().shape
        history = []
        if len(times):
            weights = check_array(state["history"]["weights"], "weights", np.float64, (len(times), groups, m))
            sums = check_array(state["history"]["losses"], "losses", np.float64, (len(times), m + 1))
            history = [(int(time), w.copy(), s.copy()) for time, w, s in zip(times, weights, sums)]
        for name, part in self.parts().items():
            part.restore(state[name])
        for name, transform in self.transforms.items():
            transform.restore(state["transforms"][name])
        if any(transform.t != t for transform in self.transforms.values()):
            raise ValueError("the transforms have not seen the rows that the members have learned")
        if any(not member.disabled and member.t != t for member in self.members):
            raise ValueError("the members have not learned the same rows")
        if any(max(member.label_codes, default=-1) >= joined for member in self.members):
            raise ValueError("the labels of a member have not joined")
        self.t, self.joined, self.looked, self.stride, self.history = t, joined, t, stride, history
        self.losses[:], self.latest[:] = losses, latest

    def _check(self):
        """Assert what must always hold."""
        cdef Member member
        self.combiner._check()
        assert len(self.history) <= ENTRIES and self.rows == 0
        for member in self.members:
            assert member.disabled or member.t == self.t
        for transform in self.transforms.values():
            assert transform.t == self.t
            transform._check()
