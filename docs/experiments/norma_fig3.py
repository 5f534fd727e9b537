"""K, Figure 3: which digits are novel."""
import numpy as np

from experiments.experiment import Check, Results, experiment
from experiments.learners import UNTUNED, digits_of, untuned, watch
from experiments.panels import Images, Lines
from onlinekernels import NORMA, Gaussian, InverseSqrt, NuNovelty

NU, WIDTH = 0.01, 8.0  # 2 width^2 = 0.5 d = 128
TRAINING, SHOWN = 5000, 50
WIDTHS, NUS = (4.0, 8.0, 16.0), (0.01, 0.05)


def detector(width, nu, regularization=0.01):
    # K sets lambda = 1. Then terms fade so fast that f is nearly 0, and the margin alone makes the alerts.
    loss = NuNovelty(nu, margin=1.0, margin_step=None)
    return NORMA(loss, Gaussian(width), step=InverseSqrt(1.0), regularization=regularization)


def alerts_of(model, X):
    """Which examples raise an alert when they come."""
    scores, margins = model.progressive(X, return_margins=True)
    return scores < margins


@experiment(name="norma-fig3", paper="K VI-B, Fig. 3", title="novel digits of USPS",
            claim="A fraction nu of the digits raises an alert. At first these are regular ones, later badly written "
            "ones; so are the worst of the training set and of unseen digits.", needs=("usps",))
def run(data, quick, seeds):
    X, digits = (part[:TRAINING] for part in digits_of(data))
    unseen, _ = digits_of(data, "test")
    distances = to_class_means(X, digits)
    table, rates, found = [], {}, {}
    settings = [(width, nu) for nu in NUS for width in WIDTHS]
    for width, nu in watch(settings):
        model = detector(width, nu)
        alerts = alerts_of(model, X)
        found[width, nu] = model, alerts
        rates[width, nu] = alerts.mean() / nu
        paper = "nu" if (width, nu) == (WIDTH, NU) else None
        table.append(row_of(f"NORMA, width {width:g}", nu, alerts, distances, paper))
    papers = alerts_of(detector(WIDTH, NU, regularization=1.0), X)
    table.append(row_of(f"NORMA, width {WIDTH:g}, K's lambda = 1", NU, papers, distances, None))
    apart = np.median(np.diff(np.flatnonzero(papers)))
    other = untuned("novelty")
    other_alerts = alerts_of(other, X)
    table.append(row_of(UNTUNED, NuNovelty().nu, other_alerts, distances, None))
    model, alerts = found[WIDTH, NU]
    first = np.flatnonzero(alerts)[:SHOWN]
    worst = np.argsort(model.decision_function(X))[:SHOWN]
    worst_unseen = np.argsort(model.decision_function(unseen))[:SHOWN]
    so_far = {f"NORMA, width {w:g}, nu {nu:g}": np.cumsum(found[w, nu][1]) for w, nu in ((WIDTH, NU), (4.0, NU))}
    so_far |= {UNTUNED: np.cumsum(other_alerts), f"nu t, nu = {NU:g}": NU * np.arange(1, len(X) + 1)}
    panels = [
        Images(f"the first {len(first)} alerts", pictures_of(X[first])),
        Images(f"the worst {len(worst)} after training", pictures_of(X[worst])),
        Images(f"the worst {len(worst_unseen)} of unseen digits", pictures_of(unseen[worst_unseen])),
        Lines("alerts so far", "digits", "alerts", so_far),
    ]
    return Results(table, panels, checks_of(rates, alerts, papers, distances, worst), [
        f"The first {len(X)} training digits in the published order, then {len(unseen)} others. Regularization is "
        "0.01 and the first margin 1, chosen on these digits.",
        f"With K's lambda = 1 alerts come like a clock: of two in a row the second is {apart:.0f} digits later in "
        "the median, and they are hardly odder than others.",
        "Distance is that of a digit to the mean of its class; the detector knows no classes.",
    ])


def to_class_means(X, digits):
    means = np.array([X[digits == digit].mean(axis=0) for digit in range(10)])
    return np.linalg.norm(X - means[digits], axis=1)


def row_of(name, nu, alerts, distances, paper):
    return {"detector": name, "nu": nu, "alert rate": f"{alerts.mean():.2%}", "paper": paper,
            "distance of alerts": round(float(distances[alerts].mean()), 2),
            "of others": round(float(distances[~alerts].mean()), 2)}


def pictures_of(X):
    side = int(round(np.sqrt(X.shape[1])))
    return list(X.reshape(-1, side, side))


def checks_of(rates, alerts, with_papers_lambda, distances, worst):
    papers, others = rates[WIDTH, NU], [rate for key, rate in rates.items() if key != (WIDTH, NU)]
    by_clock = distances[with_papers_lambda].mean()
    novel, plain = distances[alerts].mean(), distances[~alerts].mean()
    places = np.flatnonzero(alerts)
    early, late = distances[places[:5]].mean(), distances[places[5:]].mean()
    return [
        Check(f"a fraction nu = {NU:g} raises an alert, within a tenth", f"{papers:.2f} nu", 0.9 <= papers <= 1.1),
        Check("alerts lie farther from the mean of their class than others", f"{novel:.1f} against {plain:.1f}",
              novel > plain),
        Check("with K's lambda = 1, too, alerts lie farther from it, by a tenth at least",
              f"{by_clock:.1f} against {plain:.1f}", by_clock > 1.1 * plain),
        Check("the first alerts are quite regular, later ones are not", f"{early:.1f} for five, then {late:.1f}",
              early < late),
        Check("the worst digits after training are badly written",
              f"they lie {distances[worst].mean():.1f} from their class, others {plain:.1f}",
              distances[worst].mean() > plain),
        Check("other widths and nu: a fraction nu raises an alert, within a fifth",
              f"{min(others):.2f} to {max(others):.2f} nu", all(0.8 <= rate <= 1.2 for rate in others), ours=True),
    ]
