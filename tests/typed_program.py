"""A program of a user with annotations: type checkers, told to be strict, have nothing to say of it."""
from onlinekernels import NORMA, SILK, Gaussian, Hinge, OnlineKernelClassifier, RunningScaler, Smallest, load
from onlinekernels.kernels import Kernel
from onlinekernels.steps import Decaying


def narrow(kernel: Kernel) -> SILK:
    return SILK(Hinge(margin=1.0), kernel + 1.0, budget=Smallest(100), scale=RunningScaler(memory=0.999))


def main(rows: list[list[float]], labels: list[str], path: str) -> float:
    model = narrow(Gaussian(width=0.5)).partial_fit(rows, labels, classes=["a", "b"])
    model.save(path)
    steps: NORMA = NORMA("logistic", "gaussian", step=Decaying(0.1, delay=50), budget=200).fit(rows, labels)
    best = OnlineKernelClassifier(effort="low").fit(rows, labels)
    again = load(path)
    terms: int = model.n_terms_ + again.n_terms_
    return float(steps.score(rows, labels) + best.score(rows, labels) + terms)
