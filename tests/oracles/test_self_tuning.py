"""Self-tuning NORMA and ILK: the vote of learners whose decays are powers of two, and its bound."""

import numpy as np
import pytest

import onlinekernels as ok
from cases import each
from onlinekernels import bounds
from test_bounds import drifting, labelled

MAKERS = {"NORMA": ok.NORMA.self_tuning, "ILK": ok.ILK.self_tuning}


def voting(members, rate, share, X, y):
    """Littlestone and Warmuth's weighted majority with a fixed share, in plain NumPy: what each member and the vote
    say."""
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


def test_the_bound_of_each_member_is_that_for_any_parameters():
    rng = np.random.default_rng(1)
    for _ in range(50):
        about = dict(radius=10 ** rng.uniform(-1, 1), margin=10 ** rng.uniform(-1, 1),
                     loss=rng.choice([0.0, 10 ** rng.uniform(-2, 3)]),
                     norm=10 ** rng.uniform(-1, 1), path=2.0, squared_path=rng.choice([0.0, 0.3]), examples=500)
        members = [make(radius=about["radius"], examples=500).members for make in MAKERS.values()]
        best = []
        for norma, ilk in zip(*(found.values() for found in members)):
            explicit = bounds.norma_mistakes_untuned(
                step=norma.step, regularization=norma.regularization, learner_margin=norma.loss.margin, **about)
            implicit = bounds.ilk_mistakes_untuned(step=ilk.step, regularization=ilk.regularization,
                                                   learner_margin=ilk.loss.margin, penalty=ilk.penalty, **about)
            assert explicit == pytest.approx(implicit, rel=1e-9)
            best.append(explicit)
        vote = bounds.majority_mistakes(mistakes=min(best), members=len(best), examples=500, rate=0.5, share=1 / 500)
        assert bounds.self_tuned_mistakes(longest=500, **about) == pytest.approx(vote, rel=1e-9)
