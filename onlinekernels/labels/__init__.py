"""Label sets: between what users call their classes and the numbers that losses see."""
from onlinekernels.labels.binary import BinaryLabels
from onlinekernels.labels.choosing import among_joined, first_among_equals
from onlinekernels.labels.many import ManyLabels
from onlinekernels.labelvalues import label_column

__all__ = ["BinaryLabels", "ManyLabels", "among_joined", "first_among_equals", "label_column"]
