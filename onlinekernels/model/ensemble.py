"""Ensembles: members are ordinary models that know nothing of each other, and a combiner listens.

A piece of rows goes to each member, in threads if asked; what they would have answered before each row is then combined in one
compiled loop. A member that fails is put to sleep with a warning, and the others go on.
"""
import math
import warnings
from _thread import allocate_lock, get_ident, start_new_thread
from concurrent.futures import ThreadPoolExecutor
from threading import main_thread

import numpy as np

from onlinekernels import validation
from onlinekernels._core.points.sparse import Rows
from onlinekernels._core.combining.exponential import ExponentialWeights
from onlinekernels._core.combining.newton import NewtonStack
from onlinekernels._core.combining.squares import SquaresStack
from onlinekernels._core.run.ranks import Ranks
from onlinekernels.model.composition import RECALLED, Composition, Member
from onlinekernels.model.trouble import DIVERGED, LearningWarning, level_outside, silence

__all__ = ["AveragedRanks", "Ensemble", "ExponentialWeights", "NewtonStack", "SquaresStack", "Voice", "checked_sleep", "task_of", "unbroken"]

PIECE = 512  # rows at most that all members learn before anything else happens
SPACING = 512  # rows between two looks at what has been learned, at first
ENTRIES = 256  # of a history; then every second one goes, and entries are twice as far apart
SCORES = 2000  # that ranks are taken among
LATEST = 100  # scores that remain when others are forgotten
GAIN = 0.02  # by which an alert lowers the level of alerts
LOWEST, HIGHEST = 0.5, 4.0  # levels of alerts at least and at most, in units of nu
LATELY, MUCH = 4000, 2.0  # rows whose alerts are counted, fading, and how many deviations of their number are too many
YOUNG = (500, 2000)  # rows after which the scores of detectors so far are forgotten: of few rows they are too low, and would stay
LARGEST = 1e120  # answer of a member: squares of larger ones would leave what combines them without numbers


def task_of(model):
    """"classes", "numbers" or "novelty"."""
    return {"binary": "classes", "multiclass": "classes", "regression": "numbers"}.get(model._current_loss().task, "novelty")


def unbroken(function, *arguments):
    """Call a function that no signal interrupts: what a signal raises, such as KeyboardInterrupt, is raised when it is done.

    Signals go to the main thread; so there another one does the work.
    """
    if get_ident() != main_thread().ident:
        return function(*arguments)
    tickets, done, found = [True], allocate_lock(), []
    done.acquire()

    def work():
        try:
            tickets.pop()  # who has it: this thread works, or the main one has given up before
        except IndexError:
            return
        try:
            found.append((function(*arguments), None))
        except BaseException as error:
            found.append((None, error))
        finally:
            done.release()

    signal = None
    try:
        start_new_thread(work, ())
    except BaseException as error:
        signal = error
    while not found and not (signal is not None and tickets and _taken(tickets)):  # a signal may come when it is done already
        try:
            done.acquire()
            break
        except BaseException as error:
            signal = error
    if found and found[0][1] is not None and signal is None:
        raise found[0][1]
    if signal is not None:
        raise signal
    return found[0][0]


def _taken(tickets):
    try:
        tickets.pop()
    except IndexError:
        return False
    return True


def spacing(t):
    """How far apart the places are where an ensemble looks at itself: pieces that end there in vain cost time."""
    return SPACING if t < 8 * SPACING else 4 * SPACING


# ---- Members ------------------------------------------------------------------------------------


class Voice(Member):
    """Any model as a member of an ensemble, on encoded rows: labels are places 0, 1, 2, ...

    Parameters
    ----------
    model : OnlineLearner
    view : str or None
        The name of what its rows go through first.
    """

    before = 0  # rows that the model had learned when it became a member
    heard = None  # of a model that learns no more, how many rows it has heard since

    def __init__(self, model, view=None):
        self.model, self.view = model, view
        self.task = task_of(model)
        self.many = self.task == "classes"
        self.asleep = None  # why it does not take part any more

    def become(self, model, frozen):
        """Go on with a model that has learned already, and knows labels by their places."""
        self.model, self.before, self.heard = model, model.t_, 0 if frozen else None

    @property
    def two(self):
        """Whether there cannot be more than two labels."""
        return self.model._current_loss().task == "binary"

    @property
    def rows(self):
        """How many rows it has heard as a member."""
        return super().rows - self.before if self.heard is None else self.heard

    def learn(self, X, y, weights, outputs):
        """Scores just before each row, shape (n, outputs), which is learned."""
        if self.heard is not None:
            scores = self.scores(X, outputs)
            self.heard += len(y)
            return scores
        met = self._met()
        scores = self.model.progressive(self.mapped(X), self._answers(y), sample_weight=weights, **self._classes())
        return self._in_place(np.reshape(scores, (len(y), -1)), outputs, met, y)

    def take(self, X, y, weights):
        if self.heard is not None:
            self.heard += len(y)
        else:
            self.model.partial_fit(self.mapped(X), self._answers(y), sample_weight=weights, **self._classes())

    def scores(self, X, outputs):
        """Scores as of now."""
        model, n, X = self.model, len(X), self.mapped(X)
        if model._state is None:
            return np.full((n, outputs), -1.0 if self.many else 0.0)
        if not self.many:
            scores = model.score_samples(X) if self.task == "novelty" else model.predict(X)
            return np.reshape(scores, (n, -1))
        with model._turn.shared:
            scores = model._state.shown(model._scores(model._state, X).T).T
        return self._in_place(scores, outputs, self._met(), None)

    def mapped(self, X):
        return validation.as_csr(X) if isinstance(X, Rows) else X

    def _classes(self):
        """A loss of two classes must know both; a third one it will refuse."""
        return {"classes": [0, 1]} if self.two and self.model._state is None else {}

    def _answers(self, y):
        return None if self.task == "novelty" else super()._targets(y)

    def _in_place(self, scores, outputs, met, y):
        """Scores in [-1, 1] with a column for each of so many labels, as estimates of 2 p - 1."""
        if not self.many:
            return scores
        loss = self.model._current_loss()
        if self.two:
            likely = 2.0 * loss.probabilities(scores[:, 0]) - 1.0 if loss.probabilistic else np.hstack([-scores, scores])
            whole = np.full((len(scores), max(2, outputs)), -1.0)
            whole[:, :2] = likely
            return np.clip(whole, -1.0, 1.0)[:, :outputs]
        if loss.probabilistic and not loss.over_all_labels:
            scores = 2.0 * loss.probabilities(scores) - 1.0
        return np.clip(super()._in_place(scores, outputs, met, y), -1.0, 1.0)

    def state(self):
        return {**super().state(), "asleep": self.asleep, "before": self.before, "heard": self.heard}

    def restore(self, state):
        if state["model"] is not None:
            self.model.__dict__["_state"] = self.model._restored(state["model"])
        before, heard = state["before"], state["heard"]
        if type(before) is not int or not 0 <= before <= super().rows or not (heard is None or type(heard) is int and heard >= 0):
            raise ValueError("it does not say how many rows a member has learned")
        self.before, self.heard = before, heard
        self.asleep = checked_sleep(state["asleep"])


def checked_sleep(reason):
    """Why a member is asleep, or None; ValueError for something else."""
    if not (reason is None or isinstance(reason, str)):
        raise ValueError("it does not say why a member is asleep")
    return reason


# ---- Combiners ----------------------------------------------------------------------------------


class AveragedRanks:
    """Novelty: the mean over members of the log rank of a score among its like, and the rank of that mean among its like.

    Logarithms, as Fisher combined tests: whoever is very sure that a row is odd is heard. Ranks are among uniform samples of the
    past: ranks among the latest scores would get used to a burst of odd ones. The higher,
    the more ordinary.

    A rank below `level` is an alert. Where rows are like those before them a share nu has ranks below nu. Where rows become more and
    more ordinary there are fewer, so the level slowly rises until there are as many as asked for. It is below nu only where rows drift
    and more have alerted of late than chance would have it, and never below half of nu: a burst of odd rows silences none that come
    after it.

    Parameters
    ----------
    n : int
        Members.
    memory : int
        After how many rows the past fades; 0 for never.
    nu : float
        The share of rows to alert about, in (0, 1).
    """

    def __init__(self, n, memory=0, nu=0.02):
        self.each, self.mean = Ranks(n, SCORES, memory, 1), Ranks(1, SCORES, memory, 2)
        self.nu = self.level = nu
        self.surplus = 0.0  # of alerts, of late

    def advance(self, scores, awake):
        """(ranks of the mean, levels of alerts) just before each row, shapes (n, 1)."""
        ranks = self._ranks(self.mean.advance, self._means(self.each.advance, scores, awake))
        levels, level, highest = np.empty(ranks.shape), self.level, self._highest()
        fall, rise = math.exp(-GAIN), math.exp(GAIN * self.nu / (1.0 - self.nu))  # in balance where a share nu alerts
        keep, much = 1.0 - 1.0 / LATELY, MUCH * math.sqrt(0.5 * LATELY * self.nu * (1.0 - self.nu))
        surplus = self.surplus
        for i, rank in enumerate(ranks[:, 0].tolist()):
            levels[i] = level
            surplus = keep * surplus + (rank < level) - self.nu
            if rank < level:
                lowest = LOWEST * self.nu if surplus > much else self.nu
                level = max(level * fall, min(level, lowest))
            else:
                level = min(highest, level * rise)
        self.level, self.surplus = level, surplus
        return ranks, levels

    def _highest(self):
        return min(HIGHEST * self.nu, 0.5 + 0.5 * self.nu)

    def combined(self, scores, awake):
        """The same as of now."""
        return self._ranks(self.mean.ranks, self._means(self.each.ranks, scores, awake))

    @staticmethod
    def _means(ranks, scores, awake):
        return np.log(ranks(scores[:, :, 0])[:, awake]).mean(axis=1, keepdims=True)

    @staticmethod
    def _ranks(ranks, means):
        """Ranks, told apart a little by the means themselves, also where these are beyond all that were."""
        return ranks(means) + 1e-6 * means

    def begin_anew(self):
        """Forget the scores of a time when members knew too little, but for the latest."""
        self.each.keep_latest(LATEST)
        self.mean.keep_latest(LATEST)
        self.level, self.surplus = self.nu, 0.0

    def weights(self):
        """All count alike."""
        return np.full((1, self.each.columns), 1.0 / self.each.columns)

    def state(self):
        """What is learned, by name."""
        return {"each": self.each.state(), "mean": self.mean.state(), "level": self.level, "surplus": self.surplus}

    def restore(self, state):
        """Go on from what `state` gave; ValueError if it makes no sense."""
        level, surplus = float(state["level"]), float(state["surplus"])
        if not LOWEST * self.nu <= level <= self._highest() or not abs(surplus) <= LATELY:
            raise ValueError("the level of alerts makes no sense")
        self.each.restore(state["each"])
        self.mean.restore(state["mean"])
        self.level, self.surplus = level, surplus

    def _check(self):
        self.each._check()
        self.mean._check()


# ---- Together -----------------------------------------------------------------------------------


class Ensemble(Composition):
    """Voices, what their rows go through first, and a combiner.

    Parameters
    ----------
    members : dict of str to Voice
    task : "classes", "numbers" or "novelty"
    targets : int
        0 for labels.
    combiner : NewtonStack, SquaresStack, ExponentialWeights or AveragedRanks
        In the place of the `stack` of a composition.
    views : dict of str to view
        A view has `advance(X)`, rows as they are seen with what was known at each, `transform(X)`, `state` and `restore`.
    """

    def __init__(self, members, task, targets, combiner, views=None):
        self.members, self.task, self.targets, self.stack = members, task, targets, combiner
        self.views = {} if views is None else views
        self.n_jobs = 1
        self.t = self.joined = 0
        self.innovations = np.zeros((0, targets if task == "numbers" else 0))
        self.lost = np.zeros(len(members) + 1)  # mistakes or squared errors of each member, and of all together
        self.stride, self.history = SPACING, []  # (t, weights, what was lost so far)

    # ---- On the way ---------------------------------------------------------------------------

    def _counts(self, n, weights):
        """The first row is worth judging where members had learned before."""
        return weights if any(voice.before for voice in self.members.values()) else super()._counts(n, weights)

    def rows_ahead(self):
        ahead = min(PIECE, spacing(self.t) - self.t % spacing(self.t))
        return min([ahead, *(age - self.t for age in YOUNG if age > self.t)]) if self.task == "novelty" else ahead

    def at_stop(self):
        if self.task == "novelty" and self.t in YOUNG:
            self.stack.begin_anew()
        if self.t and self.t % self.stride == 0 and (not self.history or self.history[-1][0] < self.t):
            history = [*self.history, (self.t, self.stack.weights(), self.lost.copy())]
            if len(history) > ENTRIES:
                self.stride, history = 2 * self.stride, history[1::2]
            self.history = history

    def _piece(self, X, y, weights, outputs):
        slept = [member.asleep for member in self.members.values()]
        try:
            return unbroken(self._whole_piece, X, y, weights, outputs)
        finally:
            for (name, member), before in zip(self.members.items(), slept, strict=True):
                if member.asleep is not None and before is None:
                    warnings.warn(f"The member {name!r} is put to sleep, the others go on: {member.asleep}", LearningWarning,
                                  stacklevel=level_outside())

    def _whole_piece(self, X, y, weights, outputs):
        rows = {None: X, **{name: view.advance(X) for name, view in self.views.items()}}
        t, start = self.t, {voice: voice.rows for voice in self.members.values()}
        try:
            return self._learned(rows, y, weights, outputs)
        except BaseException:
            if self.t == t:
                self._finish(rows, y, weights, start)
            raise

    def _finish(self, rows, y, weights, start):
        """After an error: all members learn all rows of the piece if any has begun with it; nothing is combined."""
        if all(voice.rows == begin for voice, begin in start.items()):
            return
        for voice, begin in start.items():
            left = slice(voice.rows - begin, None)
            if voice.asleep is None and left.start < len(y):
                try:
                    with silence:
                        voice.take(rows[voice.view][left], self.lesson(y)[left], None if weights is None else weights[left])
                except Exception as error:
                    voice.asleep = f"{type(error).__name__}: {error}"
        joined = max(self.joined, int(y.max()) + 1) if self.task == "classes" else self.joined
        self.__dict__.update(t=self.t + len(y), joined=joined)

    def _learned(self, rows, y, weights, outputs):
        voices, n, told = list(self.members.values()), len(y), self.lesson(y)

        def hear(voice):
            with silence:
                return self._heard(voice, rows[voice.view], told, weights, outputs)

        if self.n_jobs == 1:
            heard = list(map(hear, voices))
        else:
            with ThreadPoolExecutor(self.n_jobs) as pool:
                heard = list(pool.map(hear, voices))
        scores = np.stack([part for part, _ in heard], axis=1)
        awake = np.array([until for _, until in heard])
        joined = None
        if self.task == "classes":
            joined = np.maximum.accumulate(np.concatenate([[self.joined], y.astype(np.intp) + 1]))[:-1]
        counts = self._counts(n, weights)
        counts = np.ones(n) if counts is None else counts
        combined, deviations = np.zeros((n, outputs)), np.ones((n, max(1, self.targets)))
        places = sorted({0, n, *(int(until) for until in awake if until < n)})
        for begin, end in zip(places[:-1], places[1:], strict=True):
            part = slice(begin, end)
            combined[part], deviations[part] = self._combine(
                scores[part], y[part], None if joined is None else joined[part], counts[part], awake > begin)
        combined, deviations, errors = self._finished(rows, y, combined, deviations, joined, counts)
        self._count_losses(scores, combined, y, joined)
        self.__dict__.update(
            t=self.t + n,
            joined=max(self.joined, int(y.max()) + 1) if self.task == "classes" else self.joined,
            innovations=np.concatenate([self.innovations, errors])[-RECALLED:],
        )
        return combined, deviations, errors

    def _heard(self, voice, X, y, weights, outputs):
        """(scores of a member, up to which row it takes part); it falls asleep at the first row that it cannot take."""
        scores = np.zeros((len(y), outputs))
        if voice.asleep is not None:
            return scores, 0
        begin, until, reason = voice.rows, len(y), None
        try:
            scores = voice.learn(X, y, weights, outputs)
        except Exception as error:
            reason, until = f"{type(error).__name__}: {error}", 0
            if voice.rows == begin and len(y) > 1:  # it has refused all rows for the sake of one
                until, reason = self._up_to_an_error(voice, X, y, weights, scores)
        bad = np.flatnonzero(~(np.abs(scores[:until]) < LARGEST).all(axis=1))  # or not numbers
        if len(bad):
            until, reason = int(bad[0]), "its answers are too large, or not numbers"
        state = None if voice.model is None else voice.model._state
        if reason is None and state is not None and state.trouble == DIVERGED:
            reason = "learning diverges"
        voice.asleep = reason
        scores[until:] = 0.0
        return scores, until

    @staticmethod
    def _up_to_an_error(voice, X, y, weights, scores):
        for i in range(len(y)):
            row = slice(i, i + 1)
            try:
                scores[row] = voice.learn(X[row], y[row], None if weights is None else weights[row], scores.shape[1])
            except Exception as error:
                return i, f"{type(error).__name__}: {error}"
        return len(y), None

    def _combine(self, scores, y, joined, counts, awake):
        """(combined scores, deviations) of rows, which the combiner learns."""
        combiner = self.stack
        if not awake.any():
            return (-1.0 if self.task == "classes" else 0.0), 1.0
        if self.task == "novelty":
            return combiner.advance(scores, awake)
        if isinstance(combiner, ExponentialWeights):
            Y = y if joined is None else y[:, None]
            combined, deviations = combiner.advance(scores, Y, np.zeros(len(y), dtype=np.intp) if joined is None else joined,
                                                    counts, awake)
            if joined is not None:
                combined = np.where(np.arange(scores.shape[2]) < joined[:, None], combined, -1.0)
            return combined, deviations
        if self.task == "classes":
            return 2.0 * combiner.advance(scores, y, joined, counts) - 1.0, 1.0
        return combiner.advance(scores, y, counts, awake)

    def lesson(self, y):
        """What members are told of the targets."""
        return y

    def _finished(self, rows, y, combined, deviations, joined, counts):
        """(scores, deviations, innovations) as they are given out; `rows` are as the views show them."""
        return combined, deviations, self._errors(combined, y, deviations)

    def _errors(self, combined, Y, deviations):
        if self.task != "numbers":
            return np.zeros((len(combined), 0))
        return np.abs(Y - combined) / np.maximum(deviations, 1e-300)

    def _count_losses(self, scores, combined, y, joined):
        """What each member, and all together, have lost: mistakes, or squared errors of all targets."""
        every = np.concatenate([scores, combined[:, None]], axis=1)
        if self.task == "numbers":
            with np.errstate(over="ignore"):
                self.lost = self.lost + ((every - y[:, None]) ** 2).sum(axis=(0, 2))
        elif self.task == "classes":
            there = np.arange(every.shape[2]) < joined[:, None, None]
            guesses = np.where(there, every, -np.inf).argmax(axis=2)
            self.lost = self.lost + ((guesses != y[:, None]) | (joined == 0)[:, None]).sum(axis=0)

    # ---- As of now ----------------------------------------------------------------------------

    def threshold(self):
        """Of a detector: ranks below it are alerts."""
        return self.stack.level

    def awake(self):
        """Which members take part."""
        return np.array([member.asleep is None for member in self.members.values()])

    def members_scores(self, X):
        """Scores of all members as of now, shape (n, members, outputs); 0 of those asleep."""
        outputs = self.targets or self.joined
        rows = {None: X, **{name: view.transform(X) for name, view in self.views.items()}}
        n = len(X)
        return np.stack([member.scores(rows[member.view], outputs) if member.asleep is None else np.zeros((n, outputs))
                         for member in self.members.values()], axis=1)

    def scores(self, X):
        scores, awake, combiner = self.members_scores(X), self.awake(), self.stack
        ones = np.ones((len(scores), max(1, self.targets)))
        if not awake.any():
            return np.full((len(scores), scores.shape[2]), -1.0 if self.task == "classes" else 0.0), ones
        if self.task == "novelty":
            return combiner.combined(scores, awake), ones
        if self.task == "classes" and isinstance(combiner, NewtonStack):
            return 2.0 * combiner.combined(scores, self.joined) - 1.0, ones
        return combiner.combined(scores, awake)

    # ---- State --------------------------------------------------------------------------------

    def state(self):
        history = {"t": np.array([t for t, _, _ in self.history], dtype=np.int64)}
        if self.history:
            history["weights"] = np.array([weights for _, weights, _ in self.history])
            history["lost"] = np.array([lost for _, _, lost in self.history])
        return {
            "t": self.t,
            "joined": self.joined,
            "stride": self.stride,
            "innovations": self.innovations,
            "lost": self.lost,
            "stack": self.stack.state(),
            "history": history,
            "views": {name: view.state() for name, view in self.views.items()},
            "members": {name: member.state() for name, member in self.members.items()},
        }

    def restore(self, state):
        for name in ("t", "joined", "stride"):
            if type(state[name]) is not int or state[name] < 0:
                raise ValueError(f"{name} is not a number of rows")
        innovations, lost = np.array(state["innovations"], dtype=float), np.array(state["lost"], dtype=float)
        if innovations.shape[1:] != self.innovations.shape[1:] or len(innovations) > RECALLED or not (innovations >= 0).all():
            raise ValueError("the innovations make no sense")
        if lost.shape != self.lost.shape or not (lost >= 0).all():
            raise ValueError("what the members have lost makes no sense")
        if set(state["members"]) != set(self.members) or set(state["views"]) != set(self.views):
            raise ValueError("the members are not those of the parameters")
        times, (groups, n) = state["history"]["t"], self.stack.weights().shape
        history = []
        if len(times):
            weights, sums = state["history"]["weights"], state["history"]["lost"]
            if weights.shape != (len(times), groups, n) or sums.shape != (len(times), n + 1) or state["stride"] < SPACING:
                raise ValueError("the history does not fit the members")
            history = [(int(t), w.copy(), s.copy()) for t, w, s in zip(times, weights, sums, strict=True)]
        self.stack.restore(state["stack"])
        for name, view in self.views.items():
            view.restore(state["views"][name])
        for name, member in self.members.items():
            member.restore(state["members"][name])
        self.__dict__.update(t=state["t"], joined=state["joined"], stride=state["stride"], innovations=innovations, lost=lost,
                             history=history)
        self._check_labels()
        if any(member.asleep is None and member.rows != self.t for member in self.members.values()):
            raise ValueError("the members have not learned the same rows")

    def _check(self):
        assert self.t >= 0 and len(self.innovations) <= RECALLED and len(self.history) <= ENTRIES
        self.stack._check()
        for member in self.members.values():
            assert member.asleep is not None or member.rows == self.t
