"""A stream that is learned by posteriors whose kernels are learned as well: when, from which rows, and when to begin
anew.

A refresh learns kernels from rows that are kept, and lets new posteriors replay these.  Its work is counted, and done
in steps: some with every row that is learned, so that no row waits long.  At a row that is known beforehand all of it
is done, and the new posteriors take over.  So nothing depends on when the work was done, and whoever is interrupted
does it again.
"""
cimport cython
import numpy as np
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fmax, fmin
from libc.string cimport memcpy
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array
from onlinekernels._core.combiners cimport Differences, IntervalTracker, LeastSquares
from onlinekernels._core.ensemble cimport Ensemble, Member
from onlinekernels._core.linalg cimport ok_times_rows
from onlinekernels._core.schema import restore, state_of
from onlinekernels._core.targets cimport TargetScaler
from onlinekernels._core.transforms cimport Transform

cdef enum:
    BLOCK = 128                 # rows of a block at most
    FIRST = 100                 # rows before the first refresh,
    LONGEST = 4000              # and between two of them at most; in between they double
    CHECKED = 128               # rows between two looks for an alarm
    LATELY = 64                 # rows whose loss is compared
    USUALLY = 500               # with that of so many before them
    OFTEN = 42                  # of the latest rows on which the plain member must be better
    REPLAYED = 128              # rows in one step of a replay
    TRIES = 16                  # values of the evidence that a kernel usually takes
    LOSSES = 1024               # rows in the ring of losses, more than LATELY + USUALLY + BLOCK

cdef double WORSE = 2.0         # times the running loss,
cdef double BEATEN = 1.25        # and times that of the plain member: then something has changed
cdef double FARTHEST = 10.0     # deviations at which a number stops to move
WORK = 100e6                    # multiplications with every row during a refresh: some milliseconds
STEP = 4e6                      # which a step takes at least
# rows that the evidence is taken of, at least and at most: in between a fifth of the window
SAMPLED = 200, 300


# ---- A metric
# ---------------------------------------------------------------------------------------------------------

@cython.final
cdef class Metric(Transform):
    """Features on one footing, times a linear map: a transform that stands still.

    A feature becomes slope (x - mean), at most half of `FARTHEST`, plus the polygon through (knots, scores), which is
    flat outside of it.

    Parameters
    ----------
    features : Features
        With these arrays.
    map : array of shape (n_features, n_features) or None
        B; a row u of features becomes u B.
    """

    # B such that distances are |u B - v B|, for features u and v; None: features alone
    cdef readonly object map
    cdef Py_ssize_t levels              # knots of a feature at most
    cdef object memory_of_map           # owns these:
    cdef double* mean                   # (features,)
    cdef double* slope                  # of the part that is linear
    cdef double* last                   # knot of each feature
    cdef double* knots                  # (features, levels): ascending, infinite behind the last one,
    cdef double* scores                 # at the knots,
    cdef double* rises                  # and slopes from each knot on
    cdef double* transposed_map                 # the map, transposed
    cdef double* compared               # a row's features

    def __init__(self, features, map=None):
        cdef Py_ssize_t d = len(features.mean)
        Transform.__init__(self, d)
        self.levels, self.map = features.knots.shape[1], map
        transposed_map = np.zeros((0, 0)) if map is None else np.asarray(map, dtype=float).T
        parts = features.mean, features.slope, features.last, features.knots, features.scores, features.rises
        memory = np.concatenate([np.ravel(part) for part in (*parts, transposed_map, np.zeros(d))])
        self.memory_of_map, self.mean = memory, <double*> array_data(memory)
        self.slope = self.mean + d
        self.last = self.slope + d
        self.knots = self.last + d
        self.scores = self.knots + d * self.levels
        self.rises = self.scores + d * self.levels
        self.transposed_map = self.rises + d * self.levels
        self.compared = self.transposed_map + <Py_ssize_t> transposed_map.size

    cdef void score_row(self, const double* x, double* out) noexcept nogil:
        """The features of a row. O(d levels)."""
        cdef Py_ssize_t j, k, below
        cdef double inside
        cdef const double* knots
        for j in range(self.n_features):
            knots = self.knots + j * self.levels
            inside = fmin(fmax(x[j], knots[0]), self.last[j])
            below = 0
            for k in range(1, self.levels):
                below += knots[k] <= inside
            out[j] = (fmin(fmax((x[j] - self.mean[j]) * self.slope[j], -0.5 * FARTHEST), 0.5 * FARTHEST)
                      + (self.scores[j * self.levels + below] + self.rises[j * self.levels + below]
                         * (inside - knots[below])))

    cdef void map_row(self, const double* x, double* compared, double* out) noexcept nogil:
        """A row transformed. O(d (levels + d))."""
        if self.map is None:
            self.score_row(x, out)
            return
        self.score_row(x, compared)
        ok_times_rows(self.transposed_map, self.n_features, self.n_features, self.n_features, compared, out)

    cdef int transform_block(self, const double* rows, Py_ssize_t n) except -1:
        cdef Py_ssize_t i, d = self.n_features
        for i in range(n):
            self.map_row(rows + i * d, self.compared, self.out + i * d)
        return 0

    cdef int evaluate(self, const double* rows, Py_ssize_t n, double* out) except -1:
        cdef Py_ssize_t i, d = self.n_features
        scratch = np.empty(d)                   # several threads may ask
        for i in range(n):
            self.map_row(rows + i * d, <double*> array_data(scratch), out + i * d)
        return 0

    def _check(self):
        """Assert what must always hold."""
        assert np.isfinite(self.memory_of_map[: 2 * self.n_features]).all()


# ---- A refresh
# --------------------------------------------------------------------------------------------------------

class Refresh:
    """Kernels that are being learned from the rows first, ..., t - 1.

    Parameters
    ----------
    t : int
        Row at which it began.
    first : int
        The first row.
    alarm : bool
        Whether nothing is to be gone on from.
    until : int
        Row at which its members take over.
    work : float
        Multiplications that it usually takes.
    """

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

    Parameters
    ----------
    maker : object
        It makes members: `first_members()`, `renewed(...)` and what `state` and `restore` need.
    kinds : tuple of str
        Names of the learned ones.
    budget, window : int
    n_features, targets : int
        targets is 0 for labels.
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
    cdef object memory_of_rows          # owns these, both rings in which row t is at t % size:
    cdef double* kept                   # rows, targets and weights,
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
                          n_features,
                          intervals=intervals)
        self.maker, self.kinds, self.window = maker, kinds, window
        self.stagger(0)
        self.sampled = min(max(window // 5, SAMPLED[0]), SAMPLED[1])
        self.checked, self.refreshes = -1, []
        self.plan(FIRST)
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
        return 0

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
        for i in range(begin, end):
            self.first_member.enabled_from(i, i + 1, self.enabled)
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
            (<Differences> self.combiner).member_weights(g, shares + g * m)
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
        return 0

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
        return 0

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
        """A refresh that begins now, from the rows from `first` on; it takes over when that is due, or soon after an
        alarm."""
        n = self.t - first
        until = self.t + self.span(n)
        return Refresh(self.t, first, alarm, until if alarm else max(until, self.due), self.work_of(n))

    cdef int plan(self, long long due) except -1:
        """The next refresh takes over at this row, and begins as many rows before it as its work takes."""
        self.due, self.begin = due, due - self.span(min(self.window, due - self.oldest))
        return 0

    def span(self, n):
        """How many rows are learned during a refresh of n rows: those that its work takes, but not too many of
        these."""
        return max(1, min(1 + int(self.work_of(n) / WORK), n // 4))

    def work_of(self, n):
        """Multiplications that a refresh of n rows usually takes."""
        return len(self.kinds) * (TRIES * self.work_of_evidence(min(n, self.sampled)) + n * self.maker.work_of_row())

    def work_of_evidence(self, n):
        """Multiplications that one value of the evidence of n rows takes, with its gradient, and what else a step
        costs."""
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
                rows = min(n - done, min(BLOCK, member.backend.rows_at_once()))
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
        return 0

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
            due = self.t + min(max(self.t - began, <long long> FIRST // 2), <long long> LONGEST)
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
        """What is learned, by name."""
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
        self.t, self.n_seen = (checked_rows(state, name) for name in ("t", "n_seen"))
        began, due, oldest, first_loss = (
            checked_rows(clock, name) for name in ("began", "due", "oldest", "first_loss"))
        self.set_baseline(check_array(state["baseline"], "baseline", float, (1 + (self.targets or self.n_seen),)).copy())
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
        """Assert what must always hold."""
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
                  has_deviations=True,
                  disabled=disabled)


def checked_rows(state, name):
    """A number of rows, or of labels, in what `state` gave; ValueError if it is none."""
    if type(state[name]) is not int or not 0 <= state[name] < 1 << 62:
        raise ValueError(f"{name} is not a number of rows")
    return state[name]
