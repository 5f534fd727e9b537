"""What is known of f, and how well: second order."""
from onlinekernels._core import posterior
from onlinekernels.model.representations.terms import Terms
from onlinekernels.model.representations.weights import MappedWeights, Weights
from onlinekernels.nouns.maps import feature_map

__all__ = ["PointsPosterior", "WeightsPosterior"]

MOST_WEIGHTS = 8192  # their covariance has the square of that


class PointsPosterior(Terms):
    """The posterior of f at points, which are the terms of its mean."""

    double = True  # a posterior is as good as the digits of its kernel

    def __init__(self, plan):
        super().__init__(plan)
        self.classes = plan.loss.task == "multiclass"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        return posterior.PointsPosterior(
            dictionary=self.dictionary(n_features, dtype, origin, sparse),
            outputs=outputs,
            memory=self.rule.memory,
            classes=self.classes,
            budget=self.rule.budget,
            tolerance=self.rule.tolerance,
        )


class WeightsPosterior(MappedWeights):
    """The posterior of weights, over the features of a map; for a linear kernel they are those of the examples."""

    double = True
    array = "mean"

    def __init__(self, plan):
        super().__init__(plan)
        self.scale = 1.0 if self.kernel.has_map() else self.kernel.linear_scale()
        self.classes = plan.loss.task == "multiclass"

    def function(self, n_features, dtype, origin, outputs, sparse, form):
        features = feature_map(self.features, n_features, sparse)
        if features.size > MOST_WEIGHTS:
            raise ValueError(
                f"KRLS with {self.kernel!r} keeps the covariance of all weights, and there are {features.size} features; at "
                f"most {MOST_WEIGHTS} will do. A sum such as Linear() + Gaussian(1.0) keeps points instead, as many as the budget says."
            )
        return posterior.WeightsPosterior(
            map=features, scale=self.scale, outputs=outputs, memory=self.rule.memory, classes=self.classes
        )

    def terms(self, state, ahead=False):
        return super().terms(state, ahead) if self.kernel.has_map() else Weights.terms(self, state)
