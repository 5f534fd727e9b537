"""Two labels of a stream, as far as they are known."""
import numpy as np

from onlinekernels.nouns.labelvalues import plain


class TwoLabels:
    """What the two labels of a stream are called, as far as they are known; immutable.

    Parameters
    ----------
    sides : dict
        What the learner is told for each label.
    pair : list
        The negative and the positive of what it may be told.
    """

    def __init__(self, sides, pair=(False, True)):
        self.sides = sides
        self.pair = pair
        self._names = {side: label for label, side in sides.items()}

    def including(self, y):
        """These labels with those in a list; ValueError if there are more than two."""
        sides = dict(self.sides)
        for label in y:
            if label not in sides:
                sides.update(self._sides_of(label, sides))
        return self if len(sides) == len(self.sides) else TwoLabels(sides, self.pair)

    def _sides_of(self, label, sides):
        if label is None or label != label:
            raise ValueError(f"y must be a label. Got {label!r} instead.")
        if len(sides) == 2:
            raise ValueError(
                f"y must be one of {', '.join(map(repr, sides))} for a loss of two classes. Got {label!r} instead; "
                "for more use a loss such as MulticlassHinge(), or multiclass.OneVsRestClassifier of river."
            )
        if isinstance(label, (bool, np.bool_)) and not sides:
            return {False: False, True: True}
        free = [side for side in self.pair if side not in sides.values()]
        likely = label not in (0, -1) if label in (0, -1, 1) else free[0]
        return {plain(label): likely if likely in free else free[0]}

    def name(self, side):
        """The label on a side; the other one if there is none yet."""
        names = self._names
        return names[side] if side in names else next(iter(names.values()))

    def names(self):
        """The labels, the negative one first; booleans before any is known, as river has it."""
        return [self._names[side] for side in self.pair if side in self._names] or [False, True]
