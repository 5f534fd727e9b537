"""The papers' experiments, each with one command: ``python docs/experiments/run.py norma-fig2``.

One file per experiment, or per family that shares its learners, on common pieces: ``experiment`` says what an
experiment is, what it finds and how that is reported, ``data`` where data sets come from, ``learners`` what all use to
learn, and ``panels`` what is drawn.

The letters of the papers: K is Kivinen, Smola and Williamson, I is Cheng et al., V is Vishwanathan, Schraudolph and
Smola, H is Herbster.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))  # video.py

from experiments import norma_fig2, norma_fig3, norma_bounds, ilk_fig1, ilk_video, ilk_fig4  # noqa: F401
from experiments import svmd_digits, svmd_fig7, svmd_fig8, herbster  # noqa: F401
from experiments.experiment import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
