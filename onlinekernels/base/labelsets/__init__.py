"""Label sets: between what users call their classes and the numbers that losses see."""
from onlinekernels.base.labelsets.binary import BinaryLabels
from onlinekernels.base.labelsets.choosing import among_joined, first_among_equals
from onlinekernels.base.labelsets.many import ManyLabels
from onlinekernels.base.labelvalues import label_column

__all__ = ["BinaryLabels", "ManyLabels", "among_joined", "first_among_equals", "label_column"]
