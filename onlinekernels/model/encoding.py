"""Rows of every kind on their way into a model: ``encode=`` of all learners."""
from __future__ import annotations

from typing import TYPE_CHECKING

from onlinekernels import validation
from onlinekernels.nouns.encoding import RunningEncoder, as_encoder
from onlinekernels.nouns.params import same_parameters

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Encodes"]


class Encodes:
    """What a learner needs to have an encoder in front of it.

    To learn, `_to_learn` encodes rows, and the encoder moves on when `_took_in` tells how many of them were learned. So a
    refused call changes nothing, and after an error the encoder has seen what the model has. To predict, there is
    `_to_predict`. Sparse rows are numbers, and pass.
    """

    _state: Any
    encode = False
    _encoder = None  # that has seen what the state has learned; None if that was not encoded
    _pending = None  # (rows to be learned, the encoder before them, and after them)

    def _encodes(self):
        """Whether there is anything to do with rows that shall be learned."""
        return self.encode is not False or self._encoder is not None or self._pending is not None

    def _to_learn(self, state, X, start=None, whole=False):
        """Rows as numbers, each by what was known before it.

        `start` is the state that the model starts from; `whole` rows, those of `fit`, are known all or not at all.
        """
        encoder = self._encoder if state is not None else as_encoder(self.encode, self)
        if state is not None and state.stale:
            self._check_encode()
        if getattr(start, "encoder", None) is not None:
            if encoder is None:
                raise ValueError("initial= has learned from encoded rows: encode=True is needed here, too.")
            encoder = start.encoder
        if encoder is None or validation.is_sparse(X):
            self.__dict__["_pending"] = None, encoder, encoder
            return X
        table = encoder.table(X)
        ahead, rows = encoder.advanced(table)
        self.__dict__["_pending"] = None if whole else table, encoder, ahead
        return rows

    def _numbers_of_one(self, state, x):
        """x as one row of numbers that is learned or evaluated as it is; None if that takes a longer look."""
        if self._encoder is not None:
            x = self._encoder.numbers_of_one(x)
        return x if x is not None and state.feature_names is None and state.composition.takes(x) else None

    def _check_encode(self):
        """ValueError if `encode` is not what it was when the model began."""
        wanted = as_encoder(self.encode, self)
        if (wanted is None) != (self._encoder is None) or wanted is not None and not same_parameters(wanted, self._encoder):
            raise ValueError(f"The 'encode' parameter changed after fitting, to {self.encode!r}; call fit to start anew.")

    def _took_in(self, rows):
        """So many of the rows that were encoded last are learned; may be called again."""
        if self._pending is not None and rows > 0:
            table, before, after = self._pending
            part = table is not None and rows < len(table)
            self.__dict__.update(_encoder=before.advanced(table[:rows])[0] if part else after, _pending=None)

    def _to_predict(self, X):
        """Rows as numbers, by what is known now. Of a model of sparse rows the encoder has seen nothing."""
        passes = self._encoder is None or self._encoder._state is None or validation.is_sparse(X)
        return X if passes else self._encoder.encoded(X)

    def take_encoder(self, encoder: Any) -> Any:
        """Go on with an encoder from a file; ValueError if it does not make the rows that the state has learned."""
        if encoder.n_features_out_ != self._state.n_features:
            raise ValueError("the encoder does not fit the number of features")
        self.__dict__["_encoder"] = encoder

    @property
    def encoder_(self) -> Any:
        """A copy of the encoder in front of the model, with ``encode=True``; `feature_names_out` tells what the model sees."""
        if self._encoder is None:
            raise AttributeError("encoder_ exists only for a model that has learned from encoded rows.")
        fresh = RunningEncoder(**self._encoder.get_params(deep=False))
        fresh._state = self._encoder._state
        return fresh
