"""The models of a bank, one by one: by key, as ordinary models, in another bank."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.bank import Models
from onlinekernels.base.state import State

if TYPE_CHECKING:
    from onlinekernels.annotations import Any

__all__ = ["Collection"]

NUMBERS = {"t_": "t", "intercept_": "offset"}


class Collection:
    """What is shown of the models of a bank, which has a `_turn`, a `_plan` and `_models`."""

    def __len__(self):
        with self._turn:
            return 0 if self._models is None else self._models.n

    def __contains__(self, key):
        with self._turn:
            try:
                self._number(key)
            except KeyError:
                return False
            return True

    def _number(self, key):
        if self._models is not None:
            number = self._index.get(key) if self._plan.n_models is None else key
            if number is not None and 0 <= number < self._models.n:
                return number
        raise KeyError(f"The bank has no model for {key!r}.")

    def model(self, key: Any) -> Any:
        """The model of a key (a number with ``n_models=``) as an ordinary fitted model, which continues identically.

        It is a copy: what it learns from then on does not come back to the bank.
        """
        with self._turn:
            number = self._number(key)
            learned = {name: array[0] for name, array in self._models.gather([number]).items()}
            model = self._plan.blank()
            if learned["t"] == 0:
                return model
            points, alpha = self._models.terms(number)
            start = points if len(points) else np.zeros((1, self._plan.n_features), dtype=self._models.dtype)
            state = State.first(self._plan.plan, start, self._labels)
            state.hypothesis.begin_from(np.array([learned["offset"]]), points, alpha[None])
            numbers = {name: float(learned[name]) for name in ("scalar", "gap", "gap_weight") if name in learned}
            state.hypothesis.restore({**state.hypothesis.state(), "t": int(learned["t"]), **numbers})
            model._state = state
            return model

    @property
    def keys_(self) -> Any:
        with self._turn:
            return list(self._index) if self._attribute().n_models is None else list(range(self._models.n))

    @property
    def n_terms_(self) -> int:
        with self._turn:
            self._attribute()
            return self._models.term_counts()

    @property
    def classes_(self) -> Any:
        with self._turn:
            self._attribute()
            if self._labels is None:
                raise AttributeError("classes_ exists for losses of two classes only.")
            return self._labels.classes.copy()

    def __getattr__(self, name):
        """Fitted numbers of all models."""
        if name in ("margin_", "width_"):
            with self._turn:
                if self._attribute().loss.scalar_name != name[:-1]:
                    raise AttributeError(f"The loss {self._plan.loss!r} has no {name[:-1]}.")
                return self._models.values("scalar")
        if name in NUMBERS:
            with self._turn:
                self._attribute()
                return self._models.values(NUMBERS[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _attribute(self):
        if self.__dict__.get("_models") is None:
            raise AttributeError("This Bank instance is not fitted yet.")
        return self._plan

    def take(self, keys: Any) -> Any:
        """A bank with copies of the models of some keys, which differ; for banks with keys."""
        keys = list(keys)
        with self._turn:
            if self._attribute().n_models is not None:
                raise ValueError("take is for banks with keys; this one has n_models=.")
            part = keys, self._models.gather([self._number(key) for key in keys])
            labels = self._labels
        twice = first_repeated(keys)
        if twice:
            raise ValueError(f"keys must differ. Got {twice[0]!r} twice.")
        return self._with_models([part], labels)

    @staticmethod
    def joined(banks: Any) -> Any:
        """One bank with the models of several, whose parameters are the same and whose keys differ."""
        banks = list(banks)
        if not banks:
            raise ValueError("banks must hold at least one bank. Got none.")
        fitted = [bank for bank in banks if bank._models is not None]
        if not fitted:
            return copy.deepcopy(banks[0])
        first, parts, labels = fitted[0], [], fitted[0]._labels
        for bank in fitted:
            if bank._plan.n_models is not None:
                raise ValueError("Only banks with keys can be joined; this one has n_models=.")
            if not bank._plan.is_like(first._plan) or bank._models.dtype != first._models.dtype:
                raise ValueError(f"Banks to be joined must have the same parameters. Got {first!r} and {bank!r}.")
            with bank._turn:
                if bank._labels is not None and bank.classes_.tolist() != labels.classes.tolist():
                    raise ValueError(
                        f"Banks to be joined must have the same classes. Got {labels.classes} and {bank.classes_}."
                    )
                parts.append((bank.keys_, bank._models.gather(np.arange(bank._models.n))))
        twice = first_repeated([key for keys, _ in parts for key in keys])
        if twice:
            raise ValueError(f"Banks to be joined must not share keys. {twice[0]!r} is in two of them.")
        return first._with_models(parts, labels)

    def _with_models(self, parts, labels):
        """A bank like this one with other models: [(keys, their state)]."""
        bank = type(self)(**copy.deepcopy(self.get_params(deep=False)))
        models = Models(dtype=self._models.dtype, **self._plan.core())
        models.reserve(sum(len(keys) for keys, _ in parts))
        for keys, state in parts:
            models.admit(state, len(keys), dict(zip(keys, range(models.n, models.n + len(keys)))))
        models.labels = labels
        bank._plan, bank._models = self._plan, models
        return bank


def first_repeated(keys):
    """The first of some keys that was there before, in a list; an empty list if all differ."""
    if len(set(keys)) == len(keys):
        return []
    seen = set()
    return [next(key for key in keys if key in seen or seen.add(key))]
