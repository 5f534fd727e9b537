"""A trial: is the model better than a constant? Nothing here changes what is learned.

A trial holds each prediction, made before its example was learned, against a constant: the most frequent class so far,
the mean of the targets so far. G is what the model has gained on it in a block of examples, in mistakes or in the loss, and
G / sqrt(sum of squared gains), nearly normal if there is no difference, says whether that is more than chance. Who is
clearly better has passed, and is watched no more. Who is clearly worse has failed; so has, in all blocks but the first,
which is for learning, who has gained less than a hundredth of the constant's loss, and no more than chance gives. Each block
is twice as long as the one before and has a verdict of its own; after some ten thousand examples nobody is watched any more.
"""
import numpy as np
from libc.math cimport fmin, sqrt
from onlinekernels._core.arrays cimport array_data
from onlinekernels._core.formulas.losses cimport Loss, loss_value
from onlinekernels._core.functions cimport Example, Outputs

cdef enum:
    FIRST_BLOCK = 500   # examples of a trial before its first verdict,
    LAST_BLOCK = 16000  # and before its last one
    CHANCES = 20        # examples in which a constant must have been wrong, so that there was something to gain


cdef class Trial:
    """The model against the constant that is best so far.

    Parameters
    ----------
    width : int
        Outputs that there is room for.
    regression : bool
        Whether y are numbers to predict.
    two_classes : bool
        Whether one score says which of two classes it is.
    """

    def __init__(self, Py_ssize_t width, bint regression, bint two_classes):
        self.regression, self.two_classes = regression, two_classes
        self.block = FIRST_BLOCK
        self.set_constants(np.zeros(max(2, width)))             # two classes may have one output

    cdef int set_constants(self, constants) except -1:
        """Go on with these constants: O(1)."""
        cdef double* data = <double*> array_data(constants)
        self.constants, self.says = constants, data
        return 0

    def grow(self, Py_ssize_t width):
        """Make room for labels that will join."""
        constants = np.zeros(max(2, width))
        constants[:len(self.constants)] = self.constants
        self.set_constants(constants)

    def verdict(self):
        """(examples, mean loss of the model, that of the constant, the most frequent class) of the latest block that it lost."""
        return self.lost, self.lost_by, self.lost_to, self.leader

    cdef void hold(self, const Loss* loss, Outputs outputs, Example e) noexcept nogil:
        """See whether the scores of an example were better than what a constant would have said. O(outputs)."""
        cdef Py_ssize_t l, y
        cdef double mine = 0.0, constant = 0.0, share
        cdef bint is_first = self.total == 0.0
        self.total += e.weight
        if self.regression:
            share = e.weight / self.total if self.total > 0.0 else 0.0
            for l in range(outputs.n):
                mine += loss_value(loss, e.scores[l], e.targets[l])
                constant += loss_value(loss, self.says[l], e.targets[l])
                self.says[l] += share * (e.targets[l] - self.says[l])
        else:
            y = e.targets[0] > 0.0 if self.two_classes else <Py_ssize_t> e.targets[0]
            mine, constant = self.is_wrong(outputs, e, y), y != self.leader
            self.says[y] += e.weight
            if self.says[y] > self.says[self.leader]:
                self.leader = y
        if not is_first:                        # when no constant was known
            self.take_in(mine, constant, e.weight)

    cdef bint is_wrong(self, Outputs outputs, Example e, Py_ssize_t y) noexcept nogil:
        """Whether the scores of an example say another class than y. O(outputs)."""
        cdef Py_ssize_t l
        if self.two_classes:
            return (e.scores[0] > 0.0) != y
        for l in range(outputs.joined):
            if e.scores[l] > e.scores[y] or (e.scores[l] == e.scores[y] and l < y):
                return True
        return False

    cdef void take_in(self, double loss, double constant, double weight) noexcept nogil:
        """Take in the losses of the model and of the constant at an example. O(1)."""
        loss, constant = weight * loss, weight * constant
        self.loss += loss
        self.constant += constant
        self.constant_square += constant * constant
        self.square += (constant - loss) * (constant - loss)
        self.weight += weight
        self.rows += 1
        if self.rows >= self.block:
            self.judge()

    cdef void judge(self) noexcept nogil:
        """The verdict on a block, and the next one. O(1)."""
        cdef double gain = self.constant - self.loss, chance = sqrt(self.square)
        cdef bint had_chances = self.constant * self.constant >= CHANCES * self.constant_square > 0.0
        self.failed = had_chances and (gain < -4.0 * chance
                                       or self.block > FIRST_BLOCK and gain <= fmin(chance, 0.01 * self.constant))
        if self.failed:
            self.lost, self.lost_by, self.lost_to = self.rows, self.loss / self.weight, self.constant / self.weight
        self.rows, self.block = 0, 0 if gain > 3.0 * chance or self.block == LAST_BLOCK else 2 * self.block
        self.loss = self.constant = self.constant_square = self.square = self.weight = 0.0
