"""What transformers of rows share that learn as the rows come: scikit-learn's protocol, frames, pickles."""
from __future__ import annotations

import copyreg
import sys
from typing import TYPE_CHECKING

from onlinekernels.base import validation
from onlinekernels._core.lock import Locked
from onlinekernels.base.params import Parameterized

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples, Self


class RunningTransformer(Parameterized, Locked):
    """Base of `RunningScaler` and `RunningEncoder`.

    A subclass has `get_feature_names_out`, `_advance(X, wanted)`, which learns from rows and returns them as they are
    `wanted`, each by what was known then, and `_transformed(X)`, by what is known now. What it has learned is `_state`,
    which is only replaced.
    """

    _state = None

    def fit(self, X: Examples, y: Any = None) -> Self:
        """Forget everything, then learn from X; return self."""
        with self._lock.alone:
            fresh = type(self)(**self.get_params(deep=False))
            fresh._advance(X, False)
            self._state = fresh._state
        return self

    def partial_fit(self, X: Examples, y: Any = None) -> Self:
        """Learn from some more rows; return self."""
        self._advance(X, False)
        return self

    def progressive(self, X: Examples) -> Any:
        """Learn from the rows one after another, and return each transformed by what was known then."""
        return self._shown(X, self._advance(X, True))

    def transform(self, X: Examples) -> Any:
        """X transformed by what is known now."""
        return self._shown(X, self._transformed(X))

    def _advance(self, X, wanted):
        raise NotImplementedError

    def _transformed(self, X):
        raise NotImplementedError

    def fit_transform(self, X: Examples, y: Any = None) -> Any:
        """`fit`, then `transform`."""
        return self.fit(X).transform(X)

    def _fitted(self):
        if self._state is None:
            raise validation.not_fitted(self)
        return self._state

    def _attribute(self):
        if self._state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return self._state

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say what `transform`, `fit_transform` and `progressive` return; return self.

        Parameters
        ----------
        transform : "default", "pandas", "polars" or None
            Arrays, or data frames of that library; None changes nothing.
        """
        if transform not in (None, "default", "pandas", "polars"):
            raise validation.bad_parameter(self, "transform", "'default', 'pandas', 'polars' or None", transform)
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # as scikit-learn calls it, whose clone copies it
        return self

    def _shown(self, X, out):
        """Rows as `set_output` says, or scikit-learn's own setting."""
        sklearn = sys.modules.get("sklearn")
        of_all = {} if sklearn is None else sklearn.get_config()
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", of_all.get("transform_output", "default"))
        if wanted == "default":
            return out
        if validation.is_sparse(out):
            raise ValueError(f"Sparse rows cannot become a data frame: set_output(transform={wanted!r}) is for dense "
                             "ones.")
        names = self.get_feature_names_out(validation.feature_names(X))
        if wanted == "pandas":
            import pandas

            return pandas.DataFrame(out, getattr(X, "index", None), names, copy=False)
        import polars

        return polars.DataFrame(out, list(names), orient="row")

    @staticmethod
    def _tags(**inputs):
        """What scikit-learn wants to know; it is imported only when it asks."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=TransformerTags(),
                    input_tags=InputTags(**inputs))

    def __sklearn_is_fitted__(self):
        return self._state is not None

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        kept = {name: value for name, value in self.__dict__.items() if name == "_sklearn_output_config"}
        return {**self.get_params(deep=False), **kept, "_state": self._state}

    def __setstate__(self, state):
        self.__dict__.update(state)
