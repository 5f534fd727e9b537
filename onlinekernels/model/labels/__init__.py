"""Label sets: between what users call their classes and the numbers that losses see."""
from onlinekernels.model.labels.binary import BinaryLabels
from onlinekernels.model.labels.choosing import among_joined, first_among_equals
from onlinekernels.model.labels.many import ManyLabels
from onlinekernels.nouns.labelvalues import label_column

__all__ = ["BinaryLabels", "ManyLabels", "among_joined", "first_among_equals", "label_column"]
