"""How good is a model on a stream? Progressive validation, comparison and tuning.

Every example is predicted before it is learned from, so that one pass over a stream gives an honest
error and no data has to be held back. `progressive` follows one model, `compare` several in one pass,
and `tune` tries settings of parameters, one after the other or on any executor.

matplotlib draws the plots and pandas makes the data frames; both are optional. For a progress bar, give a stream that
shows it: `tqdm(chunks)`.
"""
from onlinekernels.evaluate.reports import Comparison, Confusion, Report, Trial, Tuning
from onlinekernels.evaluate.running import compare, fresh_copy, progressive, tune

__all__ = ["progressive", "compare", "tune", "fresh_copy", "Report", "Confusion", "Comparison", "Trial", "Tuning"]
