"""How a model starts from the function of another one, which may have other labels: ``initial=``."""
import numpy as np

from onlinekernels.model.representations import LabelMap
from onlinekernels.nouns.params import same_parameters

__all__ = ["Starting"]


class Starting:
    """What a `State` does before its first example if another state's function is f_1."""

    def begin_from(self, start):
        """Start from the function of another state, which the plan has checked (`Plan.check_start`)."""
        rows = ("sparse" if self.sparse else "dense"), ("sparse" if start.sparse else "dense")
        has_points = start.representation.has_points(start)
        for name, mine, other in (
            ("the number of features", self.n_features, start.n_features),
            ("the form of coefficients", self.form, start.form),
            ("the number of targets", self.targets, start.targets),
            ("the kind of rows", *(rows if has_points else (None, None))),
        ):
            if not same_parameters(mine, other):
                raise ValueError(f"initial must have {name} of this model, {mine!r}. Got {other!r} instead.")
        self.check_representation(start, "initial")
        if self.plan.scale:
            if start.sparse != self.sparse:
                raise ValueError("initial scales another kind of rows, sparse or dense, than this model.")
            self.engine.scaler.load(start.scaler)
        if self.target_scaler is not None:
            self.engine.target_scaler.restore(start.target_scaler.state())
        self.representation.take_features(self, start)
        indices = self._indices_of(start)
        intercept = start.hypothesis.intercept(self.ahead_of(start))
        if indices is not None:
            self.make_ready()
            intercept = LabelMap(self.function.width, indices, False).rows(intercept)
            if not self.labels.fixed:
                self.function.outputs.set_joined(start.joined())
        self.hypothesis.begin_from(intercept, *self.start_of(start, indices))
        self.begin_with_norms()

    def check_representation(self, start, name, whose="this model"):
        """Raise ValueError unless another state keeps f as this one does; pairs of labels may become all labels."""
        mine, its = (type(state.representation).__name__ for state in (self, start))
        if mine == its and self.representation.keeps == "terms" and self.function.pairs() is not None:
            mine += " for pairs of labels" if start.function.pairs() is None else ""
        if mine != its:
            raise ValueError(f"{name} must have the kernel and the representation of {whose}, {mine}. Got {its} instead. "
                             "Use a budget of the same kind.")

    def start_of(self, start, indices=None):
        """(points, coefficients, pairs of labels) of another state's function, in this one's form.

        `indices` are those of its labels here, None if they are the same.
        """
        return self.representation.start(self, start, LabelMap(self.function.width, indices, self.ahead_of(start)))

    def begin_with_norms(self):
        """Norms of the function that this one starts from, where they are kept."""
        if self.plan.rule.exact_norms:
            square = self.norm() ** 2
            ahead = self.norm(ahead=True) ** 2 - square if self.function.outputs.ahead else 0.0
            self.hypothesis.begin_with_square(square, max(0.0, ahead))

    def ahead_of(self, start):
        """Whether labels to join are ahead in another state, and in this one."""
        return self.function.outputs.ahead and start.function.outputs.ahead

    def _indices_of(self, start):
        """Indices of another state's labels among those of this one; None where there is one output, or targets."""
        if self.labels is None or self.form == "one":
            self.labels = start.labels if self.labels is None else self.labels
            return None
        known = start.labels.order[: start.joined()]
        indices = self.labels.indices_of(known)
        if None in indices:
            raise ValueError(f"initial has the label {known[indices.index(None)]!r}, which this model cannot have.")
        self.take_labels(self.labels)
        return np.array(indices, dtype=np.intp)
