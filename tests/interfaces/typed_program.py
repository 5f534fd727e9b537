"""A program of a user with annotations: type checkers, told to be strict, have nothing to say of it."""
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinekernels import (KRLS, NORMA, SILK, Bank, Gaussian, Hinge, OnlineKernelClassifier, OnlineKernelDetector,
                           OnlineKernelRegressor, RunningEncoder, RunningScaler, SelfTuned, Smallest, Stacking, combine,
                           load,)
from onlinekernels.budgets import Budget
from onlinekernels.evaluate import Comparison, Report, Tuning, compare, progressive, tune
from onlinekernels.kernels import Kernel
from onlinekernels.losses import Loss
from onlinekernels.steps import Decaying, Step

Rows = list[list[float]]


class Cubed(Loss):
    """A loss of the user's own."""

    task = "regression"

    def value(self, score: Any, y: Any = None, *, scalar: Any = None) -> Any:
        return np.abs(y - score) ** 3

    def derivative(self, score: Any, y: Any = None, *, scalar: Any = None) -> Any:
        return -3.0 * np.sign(y - score) * (y - score) ** 2


def narrow(kernel: Kernel, budget: Budget) -> SILK:
    return SILK(Hinge(margin=1.0), kernel + 1.0, budget=budget, scale=RunningScaler(memory=0.999))


def single_models(rows: Rows, labels: list[str], path: Path) -> float:
    model = narrow(Gaussian(width=0.5), Smallest(100)).partial_fit(rows, labels, classes=["a", "b"])
    model.save(path)
    step: Step = Decaying(0.1, delay=50)
    steps: NORMA = NORMA("logistic", "gaussian", step=step, budget=200).fit(rows, labels)
    again = load(path)
    both = combine([steps, steps])
    terms: int = model.n_terms_ + again.n_terms_ + both.n_terms_
    chances: NDArray[Any] = steps.predict_proba(rows)
    return steps.score(rows, labels) + terms + float(chances.sum())


def own_parts(rows: Rows, numbers: list[float]) -> float:
    def near(x: Any, z: Any) -> float:
        return float(np.exp(-np.sum(np.subtract(x, z) ** 2)))

    model = NORMA(Cubed(), near, step=0.01)
    for x, y in zip(rows, numbers):
        model.learn_one(x, y)
    return float(model.predict_one(rows[0]))


def front_door(rows: Rows, labels: list[str], numbers: list[float]) -> float:
    table = [{"size": a, "word": label} for (a, _), label in zip(rows, labels)]
    classifier = OnlineKernelClassifier(effort="low", encode=RunningEncoder(slots=8)).fit(table, labels)
    regressor = OnlineKernelRegressor("low", n_jobs=2).partial_fit(rows, numbers)
    detector: OnlineKernelDetector = OnlineKernelDetector(effort="low").fit(rows)
    low, high = regressor.predict_interval(rows, coverage=0.9)
    return classifier.score(table, labels) + float(np.mean(high - low)) + float(np.mean(detector.predict(rows)))


def ensembles(rows: Rows, numbers: list[float]) -> float:
    members = {"wide": KRLS("squared", Gaussian(2.0), budget=20), "tuned": SelfTuned("squared", budget=20)}
    stack = Stacking(members, memory=0.99).fit(rows, numbers)
    mean, deviation = stack.predict(rows, return_std=True)
    stack.set_params(members__wide__budget=30)
    return float(np.mean(mean)) + float(np.mean(deviation)) + len(stack.get_params(deep=False))


def many_models(rows: Rows, path: Path) -> int:
    keys = ["left" if a < 0.5 else "right" for a, _ in rows]
    bank = Bank(2, "novelty", Gaussian(1.0), budget=10, threads=2).partial_fit(rows, keys=keys)
    scores: NDArray[Any] = bank.progressive(rows, keys=keys)
    bank.save(path)
    again: Bank = Bank.load(path)
    return len(again) + len(scores)


def measured(rows: Rows, labels: list[str]) -> float:
    stream = np.asarray(rows), np.asarray(labels)
    report: Report = progressive(NORMA("hinge"), stream, window=10)
    beside: Comparison = compare({"one": NORMA("hinge"), "other": SILK("hinge")}, stream)
    tuned: Tuning = tune(NORMA("hinge"), [{"step": 0.1}, {"step": 1.0}], stream)
    trial: Report = tuned.trials[0].report or report
    return float(report.error + trial.error) + len(beside.table().splitlines()) + tuned.best_value


def main(rows: Rows, labels: list[str], folder: Path) -> float:
    numbers = [a + b for a, b in rows]
    return (single_models(rows, labels, folder / "model.npz") + own_parts(rows, numbers) + front_door(rows, labels,
                                                                                                      numbers)
            + ensembles(rows, numbers) + many_models(rows, folder / "bank.npz") + measured(rows, labels))
