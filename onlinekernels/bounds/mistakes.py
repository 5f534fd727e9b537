"""How many mistakes, and how much loss, a function that is known in hindsight allows."""
import math

from onlinekernels.base.validation import bad_parameter
from onlinekernels.bounds.checks import NOT_NEGATIVE, POSITIVE, bound, checked
from onlinekernels.bounds.comparisons import complexity_of, least_mistakes

# ---- NORMA ----


@bound
def norma_margin_errors(*, learner_margin: float, radius: float, margin: float, loss: float, norm: float,
                        path: float = 0.0, squared_path: float = 0.0, examples: int) -> float:
    """Bound on the margin errors y f(x) <= rho of NORMA tuned by `tune_norma_margin_errors`, K Thm 2.

    With x = mu - rho > 0 it is K/x + 2 C/x^2 + 2 sqrt(C/x^2) sqrt(K/x + C/x^2), where C is `complexity`.

    >>> norma_margin_errors(learner_margin=0.5, radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    36.0
    """
    gap = gap_of("norma_margin_errors", margin, learner_margin)
    return least_mistakes(gap, loss, complexity_of(radius, norm, path, squared_path, examples))


def gap_of(owner, margin, learner_margin):
    if learner_margin >= margin:
        raise bad_parameter(owner, "learner_margin", f"below the comparison's margin {margin:g}", learner_margin)
    return margin - learner_margin


@bound
def norma_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                   squared_path: float = 0.0, examples: int) -> float:
    """Bound on the mistakes y f(x) <= 0 of NORMA tuned by `tune_norma_mistakes`, K Thm 3.

    K/mu + 2 C/mu^2 + 2 sqrt(C/mu^2) sqrt(K/mu + C/mu^2), where C is `complexity`. For a function that
    separates the stream, K = 0, it is X^2 B^2 / mu^2. If the comparison does not move it holds for the
    `Perceptron` as well, and for all comparisons at once: with lambda = rho = 0 the step does not matter.

    >>> norma_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    >>> norma_mistakes(radius=1.0, margin=1.0, loss=40.0, norm=3.0, examples=1000)
    64.0
    """
    return least_mistakes(margin, loss, complexity_of(radius, norm, path, squared_path, examples))


@bound
def norma_hinge_loss(*, learner_margin: float, radius: float, margin: float, loss: float, norm: float,
                     path: float = 0.0, squared_path: float = 0.0, examples: int) -> float:
    """Bound on NORMA's own cumulative hinge loss sum_t max(0, rho - y_t f_t(x_t)), K (47): K + C/(mu - rho).

    It is for the step eta' = 2 (mu - rho) / X^2, that is eta = eta'/(1 + eta' lambda), with lambda of K (32).
    `tune_norma_mistakes` has that step for its own margin rho = mu - h(mu, K, C).

    >>> norma_hinge_loss(learner_margin=0.5, radius=1.0, margin=1.0, loss=2.0, norm=1.0, examples=100)
    2.5
    """
    gap = gap_of("norma_hinge_loss", margin, learner_margin)
    return loss + complexity_of(radius, norm, path, squared_path, examples) / gap


@bound(regularization=NOT_NEGATIVE)
def norma_mistakes_untuned(*, step: float, regularization: float, learner_margin: float, radius: float, margin: float,
                           loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                           examples: int) -> float:
    """Bound on the mistakes of NORMA with the hinge loss and *any* fixed step, lambda and margin.

    It follows from K (45) before any tuning. With eta' = eta/(1 - eta lambda) and z = eta' lambda,

        M <= (2 eta' K + E) / (eta' (2 mu - eta' X^2)),    E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z)

    whenever rho + eta' X^2/2 <= mu. As c g at the margin c mu is as good a comparison as g at mu, the
    best c that meets the condition is taken. Infinite for a moving comparison without regularization.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    >>> norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=0.0, **stream)
    9.0
    >>> round(norma_mistakes_untuned(step=0.3, regularization=0.0, learner_margin=1.0, **stream), 1)
    19.8
    """
    full, energy = _full_step("norma_mistakes_untuned", step, regularization, norm, path, squared_path, examples)
    return mistakes_at_best_scale(full, full, learner_margin + full * radius ** 2 / 2, energy, radius, margin, loss)


@bound(regularization=NOT_NEGATIVE)
def norma_margin_errors_untuned(*, step: float, regularization: float, learner_margin: float, radius: float,
                                margin: float, loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                                examples: int) -> float:
    """Bound on the margin errors y f(x) <= rho of NORMA with the hinge loss and *any* fixed step, lambda and margin.

    As `norma_mistakes_untuned`, from K (45): M_rho <= (2 eta' K + E) / (eta' (2 mu - 2 rho - eta' X^2)), for the best
    scale of the comparison.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    >>> norma_margin_errors_untuned(step=0.5, regularization=0.0, learner_margin=0.0, **stream)
    9.0
    >>> round(norma_margin_errors_untuned(step=0.5, regularization=0.0, learner_margin=0.25, **stream), 6)
    18.0
    """
    full, energy = _full_step("norma_margin_errors_untuned", step, regularization, norm, path, squared_path, examples)
    # K (45) is that of the mistakes with X^2 + 2 rho / eta' for X^2.
    wider = math.sqrt(radius ** 2 + 2 * learner_margin / full)
    return mistakes_at_best_scale(full, full, 0.0, energy, wider, margin, loss)


@bound(regularization=NOT_NEGATIVE)
def norma_hinge_loss_untuned(*, step: float, regularization: float, learner_margin: float, radius: float, margin: float,
                             loss: float, norm: float, path: float = 0.0, squared_path: float = 0.0,
                             examples: int) -> float:
    """Bound on NORMA's cumulative hinge loss at its own margin, with *any* fixed step, lambda and margin.

    From K (45), c K + c^2 E / (2 eta') for the scale c mu = rho + eta' X^2/2, where no margin error counts.

    >>> norma_hinge_loss_untuned(step=1.0, regularization=0.0, learner_margin=0.5, radius=1.0, margin=1.0, loss=2.0,
    ...                          norm=1.0, examples=100)
    2.5
    """
    full, energy = _full_step("norma_hinge_loss_untuned", step, regularization, norm, path, squared_path, examples)
    scale = (learner_margin + full * radius ** 2 / 2) / margin
    return scale * loss + scale ** 2 * energy / (2 * full)


def _full_step(owner, step, regularization, norm, path, squared_path, examples):
    """eta' = eta/(1 - eta lambda), and E for it."""
    if step * regularization >= 1:
        raise bad_parameter(owner, "step", f"below 1 / regularization = {1 / regularization:g}", step)
    full = step / (1 - step * regularization)
    return full, energy_of(full * regularization, norm, path, squared_path, examples)


def energy_of(decay, norm, path, squared_path, examples):
    """E = B^2 + (D2/z + 2 B D1 + m z B^2) / (2 + z), K (43)-(45), for z = eta' lambda."""
    if squared_path == 0:
        moving = 0.0  # nothing moves, whatever bound on the path was given
    elif decay == 0:
        return math.inf
    else:
        moving = squared_path / decay + 2 * norm * path
    return norm ** 2 + (moving + examples * decay * norm ** 2) / (2 + decay)


def mistakes_at_best_scale(largest, sure, least_margin, energy, radius, margin, loss):
    """min over c of (2 largest c K + c^2 E) / (sure (2 c mu - sure X^2)), subject to c mu >= least_margin.

    `largest` bounds every coefficient of an update, `sure` is what a mistake gets at least.
    """
    if energy == math.inf:
        return math.inf
    charge, cost = 2 * largest * loss, sure * radius ** 2
    scale = (cost + math.sqrt(cost ** 2 + 2 * margin * charge * cost / energy)) / (2 * margin)
    scale = max(scale, least_margin / margin)
    return (charge * scale + energy * scale ** 2) / (sure * (2 * scale * margin - cost))


# ---- ILK ----


@bound
def ilk_mistakes(*, radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                 squared_path: float = 0.0, examples: int) -> float:
    """Bound on the mistakes of ILK tuned by `tune_ilk_mistakes`, I Thm 2: the number of `norma_mistakes`.

    I states it for every eta, which is false. With eta C X^2 = 2 h(mu, K, S) and the margin
    rho = eta C X^2/(1 + eta lambda) every mistake makes a full step and K's proof goes through. The loss of the
    comparison is the hinge loss at the margin mu, without C. (I's own mu is 0 whenever Delta is constant.)

    For many labels, radius^2 bounds k((x,y),(x,y)) - 2 k((x,y),(x,l)) + k((x,l),(x,l)) for all labels l; with the delta
    kernel that is 2 k(x, x). A mistake is then f(x, y) <= f(x, l) for some l. With a graph hinge, whose margin over l
    is rho Delta(y, l), both margins are mu d and rho d, d the smallest distance of two labels, and K the comparison's
    graph hinge loss at mu: `comparison` and `tune_ilk_mistakes` do so if they are told the `labels`. (The proof goes on
    as for two classes: a step against r that is not after a mistake ends at rho Delta(y, r) <= mu Delta(y, r) at most,
    and after a mistake against l it has (1 + eta lambda) rho Delta(y, l), or more, to make good for. I's step against a
    single runner-up is meant, exact=False.)

    >>> ilk_mistakes(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=100)
    9.0
    """
    return norma_mistakes(radius=radius, margin=margin, loss=loss, norm=norm, path=path,
                          squared_path=squared_path, examples=examples)


@bound(regularization=NOT_NEGATIVE, learner_margin=POSITIVE)
def ilk_mistakes_untuned(*, step: float, regularization: float, learner_margin: float, penalty: float = 1.0,
                         radius: float, margin: float, loss: float, norm: float, path: float = 0.0,
                         squared_path: float = 0.0, examples: int) -> float:
    """Bound on the mistakes of ILK with the hinge loss and *any* fixed step, lambda, margin and penalty.

    Let R = (1 + eta lambda) rho. A mistake gets a coefficient of at least b = min(eta C, R/X^2) before it
    shrinks. If R <= mu, other updates cannot lead away from the comparison, and

        M <= (2 eta C K + E) / (b (2 mu - b X^2)),    E as in `norma_mistakes_untuned` with z = eta lambda

    The comparison is scaled as there, so that any margin will do. For small steps the bound grows like
    1/eta, and so can the mistakes.

    >>> stream = dict(radius=1.0, margin=1.0, loss=0.0, norm=3.0, examples=1000)
    >>> ilk_mistakes_untuned(step=1.0, regularization=0.0, learner_margin=1.0, **stream)
    9.0
    >>> round(ilk_mistakes_untuned(step=0.01, regularization=0.0, learner_margin=1.0, **stream))
    452
    """
    reach = (1 + step * regularization) * learner_margin
    sure = min(step * penalty, reach / radius ** 2)
    energy = energy_of(step * regularization, norm, path, squared_path, examples)
    return mistakes_at_best_scale(step * penalty, sure, reach, energy, radius, margin, loss)


# ---- Perceptrons and projections ----


@bound
def perceptron_mistakes(*, radius: float, margin: float, norm: float = 1.0, deviation: float = 0.0) -> float:
    """Bound on the mistakes of the Perceptron, V Thm 1: ((R |theta| + D) / gamma)^2.

    D is the `deviation` sqrt(sum_t max(0, gamma - y_t theta(x_t))^2) of a function theta with norm |theta|.
    D = 0 is Novikoff's theorem; otherwise it is Freund and Schapire's, for streams that cannot be
    separated. `norma_mistakes` with the sum of the deviations as `loss` holds too: take the smaller.

    >>> perceptron_mistakes(radius=1.0, margin=0.25)
    16.0
    >>> perceptron_mistakes(radius=1.0, margin=0.25, deviation=0.5)
    36.0
    """
    return ((radius * norm + deviation) / margin) ** 2


@checked
def voted_perceptron_error(*, expected_mistakes: float, examples: int) -> float:
    """Bound on the probability that the voted Perceptron errs on a new example, V Thm 2: 2 E[bound]/(m + 1).

    After one pass over m independent examples. `expected_mistakes` is the expectation of
    `perceptron_mistakes` over draws of m + 1 examples, for the best theta and gamma of each draw. At most 1.

    >>> voted_perceptron_error(expected_mistakes=16.0, examples=999)
    0.032
    """
    return min(1.0, 2 * expected_mistakes / (examples + 1))


@bound
def projection_mistakes(*, radius: float, norm: float, ball: float | None = None, margin: float = 1.0) -> float:
    """Bound on the mistakes of Herbster's projection algorithm for two classes, H Thms 2 and 4.

    R^2 |u|^2 / margin^2, for every u with y u(x) >= margin on all examples; `norm` is |u| (or |u - w_1|, for
    another start than 0). H has margin 1.

    With hypotheses kept in the ball |w| <= gamma it is R^2 (gamma + |u|)^2 / margin^2 for *any* stretch of
    the stream, if |u| <= gamma; u need fit this stretch only, and R is the radius of the stretch.

    >>> projection_mistakes(radius=1.0, norm=3.0)
    9.0
    >>> projection_mistakes(radius=1.0, norm=3.0, ball=4.0)
    49.0
    """
    return _projection("projection_mistakes", radius, norm, ball) / margin ** 2


@bound
def projection_loss(*, radius: float, norm: float, ball: float | None = None) -> float:
    """Bound on sum_t max(0, |y_t - w_t(x_t)| - width)^2 of the projection algorithm, H Thms 3, 5 and 6.

    R^2 |u|^2 for every u with |y - u(x)| <= width on all examples, and R^2 (gamma + |u|)^2 for any
    stretch if hypotheses are kept in a ball; see `projection_mistakes`. R^2 = max K(x, x); H Thm 6 prints R.

    >>> projection_loss(radius=2.0, norm=3.0)
    36.0
    """
    return _projection("projection_loss", radius, norm, ball)


def _projection(owner, radius, norm, ball):
    if ball is not None and norm > ball:
        raise bad_parameter(owner, "norm", f"at most the radius {ball:g} of the ball", norm)
    distance = norm if ball is None else norm + ball
    return radius ** 2 * distance ** 2


@bound
def random_removal_mistakes(*, terms: int, radius: float, margin: float, norm: float, loss: float = 0.0) -> float:
    """Bound on the mean over seeds of the mistakes of `Perceptron` with `RandomRemoval`, on any stream.

    While there is room, up to B = `terms` mistakes, it is the Perceptron, with its bound. If there are more, m in the
    mean, then (m - K/mu)^2 <= g^2 (m^2 / B + m/2 - B/2), where g = X |u| / mu; infinite for g^2 >= B, as B + 1 examples
    that have nothing to do with each other have g^2 = B + 1 at best.

    For a mistake with a full budget, w / B goes in the mean, so that <u, w> gains mu - l_t and loses <u, w> / B, and
    |w|^2 gains 2 X^2 - 2 |w|^2 / B at most. The second, summed, bounds |w|^2 at the end and its sum over mistakes; with
    Cauchy and Schwarz both bound what the first allows. (Cavallanti, Cesa-Bianchi and Gentile 2007, "Tracking the best
    hyperplane with a simple budget Perceptron", follow moving comparisons, with larger constants.)

    >>> random_removal_mistakes(terms=100, radius=1.0, margin=1.0, norm=5.0)
    25.0
    >>> round(random_removal_mistakes(terms=100, radius=1.0, margin=1.0, norm=5.0, loss=60.0), 1)
    124.9
    """
    share, square = loss / margin, (radius * norm / margin) ** 2
    perceptron = least_mistakes(margin, loss, complexity_of(radius, norm, 0.0, 0.0, 1))
    if perceptron < terms:
        return perceptron
    if square >= terms:
        return math.inf
    curve, slope, height = 1 - square / terms, share + square / 4, share**2 + square * terms / 2
    return max(float(terms), (slope + math.sqrt(max(0.0, slope**2 - curve * height))) / curve)


# ---- Ensembles ----


@bound(share=NOT_NEGATIVE)
def majority_mistakes(*, mistakes: float, members: int, examples: int, rate: float, share: float = 0.0) -> float:
    """Bound on the mistakes of `Hedge` with votes, if a member makes M.

    It is (eta M + log m + T log 1 / (1 - alpha)) / log(2 / (1 + exp(-eta))).
    When the vote is wrong, so is half of all weight, or more, of which exp(-eta) is left: all weight falls to (1 +
    exp(-eta)) / 2 or less. That of a member that makes M mistakes is (1 - alpha)^T exp(-eta M) / m or more (Littlestone
    and Warmuth 1994, Herbster and Warmuth 1998). Rows before both, or all, labels are known do not count.

    >>> round(majority_mistakes(mistakes=100, members=10, examples=1000, rate=0.5), 1)
    238.7
    """
    weights = rate * mistakes + math.log(members) - examples * math.log1p(-share)
    return weights / math.log(2.0 / (1.0 + math.exp(-rate)))
