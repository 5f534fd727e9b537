"""Self-tuning NORMA and ILK: the vote of learners whose decays are powers of two, and its bound."""
import math
import pickle

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from onlinekernels import bounds
from onlinekernels.algorithms.norma import drift_rates
from test_bounds import KERNELS, drifting, labelled, looser, still, switching

MAKERS = {"NORMA": ok.NORMA.self_tuning, "ILK": ok.ILK.self_tuning}


def mistakes(model, X, y):
    labels = model.progressive(X, y, classes=[-1, 1], return_labels=True)[1]
    return int((labels != y).sum())


def voting(members, rate, share, X, y):
    """Littlestone and Warmuth's weighted majority with a fixed share, in plain NumPy: what each member and the vote say."""
    said = np.array([np.where(model.progressive(X, y, classes=[-1, 1]) > 0, 1, -1) for model in members])
    weights, votes = np.full(len(members), 1.0 / len(members)), np.zeros(len(y))
    for t in range(len(y)):
        votes[t] = weights @ said[:, t]
        weights = weights * np.exp(-rate * (said[:, t] != y[t]))
        weights = (1 - share) * weights / weights.sum() + share / len(weights)
    return votes, (said != y).sum(axis=1), weights


@each("name", MAKERS)
def test_it_is_the_weighted_majority_of_its_members(name):
    rng = np.random.default_rng(0)
    kernel = ok.Gaussian(0.7)
    X, y, _ = labelled(rng, kernel, drifting, 0.1, n=150)
    model = MAKERS[name](kernel, examples=200)
    members = {name: type(member)(**member.get_params(deep=False)) for name, member in model.members.items()}
    votes, wrong, weights = voting(list(members.values()), 0.5, 1 / 200, X, y)
    scores = model.progressive(X, y, classes=[-1, 1])
    both = np.arange(150) > np.flatnonzero(y != y[0])[0]  # labels have been seen: until then all members say the same
    np.testing.assert_allclose(scores[both], np.column_stack([-votes, votes])[both], atol=1e-9)
    np.testing.assert_allclose(list(model.weights_.values()), weights, atol=1e-9)
    apart = np.array(list(model.member_losses_.values())) - wrong
    assert np.ptp(apart) == 0 and -2 <= apart[0] <= 0  # but for the rows before that


def test_what_each_member_is():
    """One z each; for the right one, and a comparison without loss, it is what the theorems prescribe but for the scale of f."""
    assert drift_rates(1000)[:3] == [0.0, 2.0, 1.0] and drift_rates(1000)[-1] <= 1 / 1000 < drift_rates(1000)[-2]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        kernel = KERNELS[seed]
        X, y, about = labelled(rng, kernel, drifting, 0.1)
        z = math.sqrt(about["squared_path"] / about["examples"]) / about["norm"]
        for name, tune in (("NORMA", bounds.tune_norma_mistakes), ("ILK", bounds.tune_ilk_mistakes)):
            model = MAKERS[name](kernel, radius=about["radius"], examples=100).members["z=0.25"]
            moved = {**about, "loss": 0.0, "squared_path": about["squared_path"] * (0.25 / z) ** 2}  # so that z is 0.25
            scores = [one.progressive(X, y, classes=[-1, 1]) for one in (model, type(model)(kernel=kernel, **tune(**moved)))]
            known = np.abs(scores[0]) > 1e-6 * np.abs(scores[0]).max()
            ratios = scores[1][known] / scores[0][known]
            assert known.sum() > 40 and np.ptp(ratios) < 1e-6 * ratios[0]


def test_the_bound_of_each_member_is_that_for_any_parameters():
    rng = np.random.default_rng(1)
    for _ in range(50):
        about = dict(radius=10 ** rng.uniform(-1, 1), margin=10 ** rng.uniform(-1, 1), loss=rng.choice([0.0, 10 ** rng.uniform(-2, 3)]),
                     norm=10 ** rng.uniform(-1, 1), path=2.0, squared_path=rng.choice([0.0, 0.3]), examples=500)
        members = [make(radius=about["radius"], examples=500).members for make in MAKERS.values()]
        best = []
        for norma, ilk in zip(*(found.values() for found in members)):
            explicit = bounds.norma_mistakes_untuned(
                step=norma.step, regularization=norma.regularization, learner_margin=norma.loss.margin, **about)
            implicit = bounds.ilk_mistakes_untuned(
                step=ilk.step, regularization=ilk.regularization, learner_margin=ilk.loss.margin, penalty=ilk.penalty, **about)
            assert explicit == pytest.approx(implicit, rel=1e-9)
            best.append(explicit)
        vote = bounds.majority_mistakes(mistakes=min(best), members=len(best), examples=500, rate=0.5, share=1 / 500)
        assert bounds.self_tuned_mistakes(longest=500, **about) == pytest.approx(vote, rel=1e-9)


def worst_ratios(seeds, n=70):
    """The largest parts of the bounds that are used up, of the vote and of its best member."""
    worst = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kernel = KERNELS[seed % len(KERNELS)]
        X, y, about = labelled(rng, kernel, (still, drifting, switching)[seed % 3], rng.choice([0.0, 0.15]), n=n)
        about = looser(rng, about)
        longest = int(n * rng.choice([1, 3, 50]))
        rate = float(rng.choice([0.1, 0.5, 2.0]))
        limit = bounds.self_tuned_mistakes(longest=longest, rate=rate, **about)
        for name in MAKERS:
            model = MAKERS[name](kernel, radius=about["radius"], examples=longest, rate=rate)
            count = mistakes(model, X, y)
            worst[name] = max(worst.get(name, 0.0), count / limit)
            least = bounds.majority_mistakes(
                mistakes=min(model.member_losses_.values()), members=len(model.members), examples=n, rate=rate, share=1 / longest)
            worst[name, "vote"] = max(worst.get((name, "vote"), 0.0), count / least)
    return worst


def test_the_bound_holds():
    worst = worst_ratios(range(24))
    assert max(worst.values()) <= 1.0, worst


@pytest.mark.slow
def test_the_bound_holds_on_a_thousand_streams():
    worst = worst_ratios(range(1000, 2000))
    assert max(worst.values()) <= 1.0, worst


def test_the_best_member_is_near_what_a_prophet_would_prescribe():
    """E of the best z on the grid against B^2 + B (sqrt(m D2) + D1), as the docstring has it."""
    rng = np.random.default_rng(2)
    for _ in range(2000):
        m, B = int(rng.integers(2, 10**5)), 10 ** rng.uniform(-2, 2)
        moves = 10 ** rng.uniform(-7, 0.3) * B * rng.random(min(m - 1, 50))
        moves = np.minimum(moves, 2 * B)
        D1, D2 = moves.sum(), (moves**2).sum()
        best = min(bounds.norma.energy_of(z, B, D1, D2, m) for z in drift_rates(m))
        prescribed = B**2 + B * (math.sqrt(m * D2) + D1)
        assert best <= max(prescribed + 0.07 * B * math.sqrt(m * D2), prescribed + 1.5 * B**2) * (1 + 1e-12)


def test_votes_are_refused_where_nobody_says_a_class():
    with pytest.raises(ValueError, match="votes=True is for members that say a class"):
        ok.Hedge([ok.NORMA("squared")], votes=True).fit([[0.0], [1.0]], [0.5, 0.7])
    with pytest.raises(ValueError, match="'votes' parameter of Hedge must be True or False"):
        ok.Hedge([ok.NORMA("hinge")], votes=1).fit([[0.0], [1.0]], [0, 1])
    for make in MAKERS.values():
        for bad in (1, 2.5, True, "many"):
            with pytest.raises(ValueError, match="'examples' parameter of .*self_tuning must be an integer of at least 2"):
                make(examples=bad)
        with pytest.raises(ValueError, match="'radius' parameter of .*self_tuning must be a positive number"):
            make(radius=0.0)
    with pytest.raises(ValueError, match="'longest' parameter of self_tuned_mistakes must be at least examples = 9"):
        bounds.self_tuned_mistakes(longest=8, radius=1.0, margin=1.0, loss=0.0, norm=1.0, examples=9)


def test_many_classes_vote_and_calls_may_be_cut(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 2)), rng.choice(["a", "b", "c"], size=120)
    makers = lambda: ok.Hedge([ok.NORMA("multiclasshinge", ok.Gaussian(width)) for width in (0.3, 1.0, 3.0)], votes=True)  # noqa: E731
    whole, parts = makers(), makers()
    scores = whole.progressive(X, y, classes=["a", "b", "c"])
    cut = [parts.progressive(X[:50], y[:50], classes=["a", "b", "c"])]
    parts.save(tmp_path / "model.ok")
    parts = ok.load(tmp_path / "model.ok")
    assert parts.votes is True
    cut.append(parts.progressive(X[50:], y[50:]))
    np.testing.assert_allclose(np.concatenate(cut), scores, atol=1e-12)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    assert all(loss.is_integer() for loss in whole.member_losses_.values())
