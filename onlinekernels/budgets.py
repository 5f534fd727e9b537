"""Budgets: the public names of `onlinekernels.nouns`."""
from onlinekernels.nouns.budgets import *  # noqa: F403
