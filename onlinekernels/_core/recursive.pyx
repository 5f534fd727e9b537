"""Second order: the rule that takes an example into a posterior, and how it tells what it does not know.

What a posterior knows of an example before it has seen its y is N(f, variance + noise).  Real data is not like that, so
innovations are watched: how large they are, for the noise, and how often they are beyond each of several quantiles, for
intervals that cover as often as they say.
"""
import numpy as np
from libc.math cimport exp, fabs, fmax, fmin, isfinite, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.arrays import check_array, check_number
from onlinekernels._core.rules cimport Form, Rule
from onlinekernels._core.formulas.moves cimport Standing, stand_still
from onlinekernels._core.functions cimport MOVE, Example, Outputs, Scratch
from onlinekernels._core.posterior cimport CHECKPOINT, ROUNDING, Posterior, PosteriorScratch

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
cdef double[LEVELS] COVERAGE = COVERAGES
# How far from the mean so much of a Gaussian is, in deviations
cdef double[LEVELS] QUANTILE = (0.12566134685507413, 0.2533471031357998, 0.3853204664075676, 0.5244005127080407,
                                0.6744897501960817, 0.8416212335729144, 1.0364333894937894, 1.2815515655446008,
                                1.6448536269514715, 1.9599639845400536, 2.5758293035489)
cdef double GAIN = 0.1              # of the tracked ratios
cdef double LEAST_NOISE = 1e-10     # what an estimate does not fall below
cdef double OUTLIER = 4.0           # usual innovations beyond which one counts for no more than that
cdef double CHANGE = 3.0             # times the usual square of innovations after which f is doubted


cdef inline double size_of(const double* innovations, Py_ssize_t n) noexcept nogil:
    """Root of the mean square."""
    cdef Py_ssize_t l
    cdef double square = 0.0
    for l in range(n):
        square += innovations[l] * innovations[l] / n
    return sqrt(square)


def level_of(double coverage):
    """(level, share of the next one, factor): the interval of a coverage among those that are tracked.

    In between its half-width goes with the quantiles of a Gaussian; beyond the first and the last it is a multiple of theirs.
    """
    from statistics import NormalDist           # takes milliseconds to import

    cdef int level = 0
    cdef double quantile = NormalDist().inv_cdf(0.5 + 0.5 * coverage)
    cdef double share
    while level < LEVELS - 2 and coverage > COVERAGE[level + 1]:
        level += 1
    share = (quantile - QUANTILE[level]) / (QUANTILE[level + 1] - QUANTILE[level])
    if share < 0.0:
        return level, 0.0, quantile / QUANTILE[level]
    return level, min(share, 1.0), max(1.0, quantile / QUANTILE[level + 1])


cdef class Recursive(Rule):
    """Condition on an example: kernel recursive least squares.

    Parameters
    ----------
    step : tuple
    posterior : Posterior
        It takes the example in.
    noise : float
        The variance of y about f, of an example of weight 1.
    estimates : bool
        Let the noise follow the innovations.
    """

    def __init__(self, step, Posterior posterior, double noise, bint estimates=False):
        self.forms = ("Innovations",)
        self.posterior, self.noise, self.usual, self.reference = posterior, noise, 1.0, noise
        self.set_ratios(np.ones((LEVELS, posterior.width)))
        self.configure(step, noise, estimates)

    def configure(self, step, double noise, bint estimates=False):
        Rule.configure(self, step)
        self.estimates = estimates
        if not estimates:
            self.noise = noise

    cdef int set_ratios(self, ratios) except -1:
        cdef double* ratio = <double*> array_data(ratios)
        cdef Py_ssize_t columns = ratios.shape[1]
        self.ratios, self.ratio, self.columns = ratios, ratio, columns
        return 0

    def grow(self, Py_ssize_t width, Py_ssize_t known, bint ahead):
        if width > self.columns:
            ratios = np.ones((LEVELS, width))
            ratios[:, :self.columns] = self.ratios
            self.set_ratios(ratios)

    cdef void move_all(self, const Standing* now, Outputs outputs, Py_ssize_t y, double k, Example e) noexcept nogil:
        """Innovations in units of their deviation; a weight divides the noise."""
        cdef Py_ssize_t c
        cdef double weight = e.weight, noise = self.noise / weight if weight > 0.0 else 0.0
        stand_still(&e.move)
        if not isfinite(noise):                 # so small a weight says nothing
            weight = noise = 0.0
        e.view.weight = weight
        e.deviation = sqrt(e.variance + fmax(noise, fmax(ROUNDING * k, 1e-300)))
        if self.is_robust() and weight > 0.0:
            e.deviation *= fmax(1.0, size_of(e.innovation, self.posterior.width) / e.deviation / (OUTLIER * fmax(self.usual, 1.0)))
        for c in range(self.posterior.width):
            e.innovation[c] = e.innovation[c] / e.deviation if weight > 0.0 else 0.0

    cdef bint is_robust(self) noexcept nogil:
        """Whether outliers and changes are looked for: numbers, whose noise is not known. Classes cannot be far off."""
        return self.estimates and not self.posterior.classes

    cdef void accept(self, const Standing* now, Py_ssize_t labels, double* offset, Example e) noexcept nogil:
        cdef double square, excess = 1.0        # by how much the deviation was raised, for an outlier or above rounding
        labels = self.posterior.outputs.joined
        if e.view.weight > 0.0 and labels > 0:
            if self.is_robust():
                excess = e.deviation / sqrt(e.variance + self.noise / e.view.weight)
            if not self.posterior.classes:
                self.follow_coverage(labels, excess, e)
            if self.estimates:
                square = (excess * size_of(e.innovation, labels)) ** 2
                if self.is_robust():
                    self.look_for_a_change(square, e)
                self.follow_noise(square, e)

    cdef void follow_coverage(self, Py_ssize_t labels, double excess, Example e) noexcept nogil:
        """Each ratio grows if the innovation was beyond its quantile and shrinks otherwise, so that it balances."""
        cdef Py_ssize_t l, level
        cdef double* ratio
        cdef bint beyond
        for level in range(LEVELS):
            for l in range(labels):
                ratio = self.ratio + level * self.columns + l
                beyond = excess * fabs(e.innovation[l]) > QUANTILE[level] * ratio[0]
                ratio[0] *= exp(GAIN * ((1.0 if beyond else 0.0) - (1.0 - COVERAGE[level])))
                ratio[0] = fmin(fmax(ratio[0], 1e-6), 1e6)

    cdef void follow_noise(self, double square, Example e) noexcept nogil:
        """A step up the likelihood of the innovation, in log noise; an outlier counts for little."""
        cdef double share = self.noise / (e.view.weight * e.variance + self.noise)
        self.noise *= exp(fmax(0.01, 0.5 / sqrt(<double> self.since + 1.0)) * share * fmin(square - 1.0, 5.0))
        self.noise = fmax(self.noise, LEAST_NOISE)
        self.since += 1

    cdef void look_for_a_change(self, double square, Example e) noexcept nogil:
        """Doubt all that is known of f if the innovations from one checkpoint to the next are much larger than they used to be.

        Some outliers are no change: none counts for more than 9.
        """
        cdef double raw = square * (e.variance + self.noise / e.view.weight)
        self.surprise += fmin(raw / (e.variance + self.reference / e.view.weight), 9.0)
        self.surprised += 1
        self.usual *= exp(fmax(0.05, 2.0 / (self.since + 2.0)) * (1.0 if square > (0.6745 * self.usual) ** 2 else -1.0))
        if self.posterior.root.n == CHECKPOINT - 1:  # the last row before one
            if self.surprised >= CHECKPOINT // 2 and self.surprise > CHANGE * self.surprised:
                self.posterior.doubt()
                self.changes += 1
                self.since = 0
            self.surprise, self.surprised, self.reference = 0.0, 0, self.noise * fmax(self.usual, 1.0) ** 2

    cdef void follow(self, Scratch w, Example e) noexcept nogil:
        self.posterior.absorb(<PosteriorScratch> w, e.innovation, e.deviation, e.view.weight > 0.0)

    cdef bint is_finite(self, Example e) noexcept nogil:
        return isfinite(self.noise + e.deviation)       # an outlier may be so far off that its square is not a number

    cdef double tracked(self, Py_ssize_t output, int level, double share) noexcept nogil:
        """How far y may be from f, in deviations, between a level and the next; never less than at a lower level."""
        cdef int l
        cdef double here = 0.0, there
        for l in range(level + 1):
            here = fmax(here, QUANTILE[l] * self.ratio[l * self.columns + output])
        there = fmax(here, QUANTILE[level + 1] * self.ratio[(level + 1) * self.columns + output])
        return (1.0 - share) * here + share * there

    cdef double noise_of_targets(self) noexcept nogil:
        return self.noise

    cdef double half_width(self, Example e, Py_ssize_t output, int level, double share, double factor) noexcept nogil:
        return sqrt(e.variance + self.noise) * factor * self.tracked(output, level, share)

    def half_widths(self, double coverage):
        """Half the width of the interval of this coverage for each output, in deviations of y."""
        level, share, factor = level_of(coverage)
        return np.array([factor * self.tracked(output, level, share) for output in range(self.posterior.width)])

    def state(self, Py_ssize_t labels):
        return {"noise": self.noise, "ratios": self.ratios[:, :labels].copy(), "usual": self.usual, "since": self.since,
                "reference": self.reference, "surprise": self.surprise, "surprised": self.surprised, "changes": self.changes,
                "doubts": bool(self.posterior.doubts)}

    def check_state(self, state):
        check_number(state["noise"], "noise", 0.0)
        ratios = check_array(state["ratios"], "ratios", np.float64, (LEVELS, state["labels"]))
        if state["noise"] == 0.0 or ratios.size and not (1e-7 < ratios.min() and ratios.max() < 1e7):
            raise ValueError("the noise or the ratios are not positive numbers that make sense")
        for name in ("usual", "reference", "surprise"):
            check_number(state[name], name, 0.0)
        for name in ("since", "surprised", "changes"):
            if type(state[name]) is not int or state[name] < 0:
                raise ValueError(f"{name} is not a number of examples")
        if state["usual"] == 0.0 or state["reference"] == 0.0 or type(state["doubts"]) is not bool:
            raise ValueError("what innovations usually are makes no sense")

    def restore(self, state):
        self.noise, self.usual, self.reference, self.surprise = (state[name] for name in ("noise", "usual", "reference", "surprise"))
        self.since, self.surprised, self.changes = state["since"], state["surprised"], state["changes"]
        if state["doubts"]:
            self.posterior.doubt()
        self.ratios[:, :state["labels"]] = state["ratios"]


cdef class Innovations(Form):
    """Targets minus scores, of all outputs: numbers, or +1 for the label and -1 for all others.

    Parameters
    ----------
    rule : Recursive
    outputs, targets
        As for `Form`.
    """

    def __init__(self, Recursive rule, Outputs outputs, Py_ssize_t targets=1):
        Form.__init__(self, rule, outputs, None, targets)
        self.posterior = rule.posterior

    cdef bint decide(self, const Standing* now, const double* offset, double k, Example e) noexcept nogil:
        cdef Py_ssize_t c, width = self.posterior.width
        cdef Py_ssize_t label = <Py_ssize_t> e.targets[0] if self.posterior.classes else -1
        cdef bint finite = True
        e.all_labels, e.term.n, e.term.enters = True, 0, False
        for c in range(width):
            e.innovation[c] = ((1.0 if c == label else -1.0) if self.posterior.classes else e.targets[c]) - e.bare[c]
        self.rule.move_all(now, self.outputs, label, k, e)
        for c in range(width):
            finite &= isfinite(e.innovation[c])
        if not finite:
            e.failure = MOVE
        return finite
