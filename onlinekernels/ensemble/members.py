"""The members of the default ensembles: which models, with which kernels, at which effort.

Letters: G is a Gaussian of width w sqrt(d), L a Laplacian (city-block) of width w d, both + 1; GL and LL have Linear()
/ d beside. "Fading" is behind a scaler with a memory of 100 rows, "ranks" behind normal scores of running ranks,
"relevance" in units of how much features matter. Members on "differences" see those of a series, and predict by how
much the next value differs from the last. Chosen on the streams that docs/tutorials/default-ensembles.md names.
"""
import math

from onlinekernels.algorithms.implicit import SILK
from onlinekernels.algorithms.projection import PassiveAggressive
from onlinekernels.algorithms.krls import KRLS
from onlinekernels.algorithms.selftuned import SelfTuned
from onlinekernels.algorithms.smoother import Smoother
from onlinekernels.kernels import Gaussian, Laplacian, Linear
from onlinekernels.base.validation import bad_parameter, check_count
from onlinekernels.preprocessing.scaling import RunningScaler

EFFORTS = ("low", "medium", "high")
POINTS = {"low": 32, "medium": 75, "high": 150}
TUNED = {"low": {"axes": "own", "budget": 40, "window": 1000}, "medium": {"axes": "own"}, "high": {}}
FAST = {"low": 24, "medium": 32, "high": 32}  # points of a posterior that remembers 50 rows or so
KEPT = {"low": 500, "medium": 3000, "high": 5000}  # rows of the local average of numbers
WIDEST = 300  # features beyond which a kernel is not learned: too many scales for a few hundred rows
MOST = 1000  # features beyond which there are lines alone: every row that is kept has as many numbers
FLATTEST = 256  # features beyond which lines by least squares take too long; a dozen columns of words have as many


def check_effort(owner):
    """The parameters that all default ensembles have."""
    if not isinstance(owner.effort, str) or owner.effort not in EFFORTS:
        raise bad_parameter(owner, "effort", '"low", "medium" or "high"', owner.effort)
    check_count(owner, "n_jobs")


def kernel(letters, w, d):
    """A kernel by its letters, for d features of the size of 1."""
    local = Gaussian(w * math.sqrt(d)) if letters[0] == "G" else Laplacian(1.0 / (w * d))
    return (local + (1.0 / d) * Linear() if len(letters) > 1 else local) + 1.0


def fading():
    """A scaler that follows the last hundred rows or so."""
    return RunningScaler(0.99)


def class_members(effort, d):
    """{name: (model, transform)} for classes."""
    points = POINTS[effort]

    def posterior(letters, w, memory=1.0, scale=True, budget=points, tolerance=1e-2, noise=0.3):
        return KRLS("multiclass_squared", kernel(letters, w, d), noise=noise, memory=memory, budget=budget,
                    tolerance=tolerance, scale=scale)

    def line(penalty, scale):
        return PassiveAggressive("multiclass_hinge", "linear", penalty=penalty, scale=scale)

    def near(w, rows, scale=True):
        return Smoother("multiclass_squared", Gaussian(w * math.sqrt(d)), budget=rows, scale=scale)

    found = {
        "line": (line(0.01, True), None),
        "line fading": (line(1.0, fading()), None),
        "near 500": (near(0.06, 500), None),
    }
    tuned = d <= WIDEST
    if effort != "low" or not tuned:
        found |= {
            "LL 1 fast": (posterior("LL", 1.0, 0.98, fading(), FAST[effort], 0.05), None),
            "G 1 fading": (posterior("G", 1.0, scale=fading()), None),
        }
    if d <= FLATTEST:  # rare classes: with few mistakes to make, hinges learn little
        squares = KRLS("multiclass_squared", (1.0 / d) * Linear() + 1.0, noise=1.0, scale=True)
        found["line by squares"] = (squares, None)
    if tuned:
        found["self-tuned"] = (SelfTuned("multiclass_squared", **TUNED[effort]), None)
    if effort == "low":
        return {**found, "near 1500 ranks": (near(0.06, 1500, False), "ranks")}
    found |= {
        "G 2 fast": (posterior("G", 2.0, 0.98), None),
        "LL 1 ranks": (posterior("LL", 1.0, scale=False, noise=1.0), "ranks"),
        # Spikes, heavy tails, many zeros and ones: where most columns hardly vary, rows are near each other
        "L 0.2 ranks": (posterior("L", 0.2, scale=False, budget=max(100, points), noise=0.1), "ranks"),
        "near 5000": (near(0.03, 5000), None),
        "near 8000 ranks": (near(0.06, 8000, False), "ranks"),
    }
    found["near 5000 relevance"] = (near(0.12, 5000, not tuned), "relevance" if tuned else None)
    if effort == "high":
        found |= {
            "LL 2": (posterior("LL", 2.0, 0.999), None),
            "GL 0.25": (posterior("GL", 0.25, 0.999), None),
            "L 1": (posterior("L", 1.0), None),
            "L 1 ranks": (posterior("L", 1.0, scale=False), "ranks"),
            "L 0.5 fading": (posterior("L", 0.5, 0.999, fading()), None),
            "G 0.5 fast": (posterior("G", 0.5, 0.98), None),
            "near 5000 wide": (near(0.12, 5000), None),
            "near 5000 ranks wide": (near(0.12, 5000, False), "ranks"),
            "line slow fading": (line(0.01, fading()), None),
        }
    return found


def number_members(effort, d, series=False):
    """{name: (model, transform)} for numbers; of a series also from differences, for the next one."""
    points = max(72, POINTS[effort])

    def posterior(letters, w, noise, memory=1.0, scale=True, target=True):
        return KRLS("squared", kernel(letters, w, d), noise=noise, memory=memory, budget=points, tolerance=1e-2,
                    scale=scale, scale_target=target)

    def line(memory=0.999):
        return KRLS("squared", (1.0 / d) * Linear() + 1.0, noise=0.1, memory=memory, scale=True, scale_target=True)

    def near(scale=True):
        return Smoother("squared", Gaussian(0.5), neighbours=3, budget=KEPT[effort], scale=scale)

    def tuned_kernel():
        return SelfTuned("squared", axes="own", budget=100) if effort == "low" else SelfTuned("squared")

    def with_differences(found):
        if not series:
            return found
        beside = {"line differences": (line(1.0), "differences")}
        if tuned:
            beside["self-tuned differences"] = (tuned_kernel(), "differences")
        if effort != "low":
            beside["LL 1 differences"] = (posterior("LL", 1.0, 0.1), "differences")
        return {name: member for name, member in found.items() if name != "GL 1 ranks log"} | beside

    tuned = d <= WIDEST
    found = {"LL 1": (posterior("LL", 1.0, 0.1), None), "line": (line(), None), "near": (near(), None)}
    if effort == "low" and tuned:
        return with_differences({**found, "self-tuned": (tuned_kernel(), None)})
    found |= {
        "GL 1": (posterior("GL", 1.0, 0.1), None),
        "GL 1 ranks": (posterior("GL", 1.0, 0.1, scale=False), "ranks"),
    }
    if effort == "low":
        return with_differences(found)
    found |= {
        "L 1": (posterior("L", 1.0, 0.03), None),
        # Counts and money: arcsinh of the target
        "GL 1 ranks log": (posterior("GL", 1.0, 0.1, scale=False, target="log"), "ranks"),
    }
    if tuned:
        found["self-tuned"] = (tuned_kernel(), None)
    if effort == "high":
        found |= {
            "L 0.5": (posterior("L", 0.5, 0.03), None),
            "GL 0.5": (posterior("GL", 0.5, 0.03), None),
            "L 2 slow": (posterior("L", 2.0, 0.1, 0.999), None),
            "near ranks": (near(False), "ranks"),
        }
    return with_differences(found)


def line_members(task, scale):
    """{name: (model, transform)} for rows that are sparse or too long for distances: lines alone."""
    if task == "classes":
        lines = {f"line {penalty:g}": (PassiveAggressive("multiclass_hinge", "linear", penalty=penalty, scale=scale),
                                       None)
                 for penalty in (0.01, 0.1, 1.0)}
        return {**lines, "logistic": (SILK("multiclass_logistic", "linear", budget=None, scale=scale), None)}
    return {f"line {penalty:g}": (PassiveAggressive("insensitive", "linear", penalty=penalty, scale=scale,
                                                    scale_target=True), None)
            for penalty in (0.01, 0.1, 1.0)}
