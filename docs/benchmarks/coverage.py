"""How many targets lie in 90 % intervals, after 1000 rows: every series and regression of the shared data.

    python docs/benchmarks/coverage.py --data ../shared/data          # some minutes
    python docs/benchmarks/coverage.py --data ../shared/data --rows 3000 --selftuned

Test then train. Series are predicted from their last six values; shorter ones than 3000 are counted from a third on. A *
marks what is outside of 88 to 92 %, if there are at least 1000 targets to count.
"""
import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from onlinekernels import KRLS, LearningWarning, SelfTuned  # noqa: E402

LAGS = 6
KINDS = {
    "both scalers": {"scale": True, "scale_target": True},
    "noise auto": {"scale": True, "scale_target": True, "noise": "auto"},
    "log, auto": {"scale": True, "scale_target": "log", "noise": "auto"},
}


def streams(data, rows):
    """(name, X, y) of each; regressions are shuffled, but for what has an order of its own."""
    series = np.load(Path(data) / "series.npz")
    for name in series.files:
        columns = series[name].astype(float)
        columns = (
            columns.reshape(-1, 1) if columns.ndim == 1 else columns.reshape(-1, 1) if name == "elnino" else columns
        )
        for j, column in enumerate(columns.T):
            column = column[np.isfinite(column)][: rows + LAGS]
            windows = np.lib.stride_tricks.sliding_window_view(column, LAGS + 1)
            yield name if columns.shape[1] == 1 else f"{name} {j}", windows[:, :LAGS].copy(), windows[:, LAGS].copy()
    tables = np.load(Path(data) / "regression.npz")
    for name in dict.fromkeys(key.split("::")[0] for key in tables.files):
        X, y = tables[f"{name}::X"].astype(float), tables[f"{name}::y"].astype(float)
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
        if name != "bike_hour":
            order = np.random.default_rng(0).permutation(len(X))
            X, y = X[order], y[order]
        yield name, X[:rows], y[:rows]


def covered(model, X, y):
    """(share of targets inside, normalised squared error)."""
    scores, (low, high) = model.progressive(X, y, return_interval=0.9)
    begin = min(1000, len(y) // 3)
    return np.mean(((low <= y) & (y <= high))[begin:]), np.mean((scores - y)[1:] ** 2) / y.var()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="the folder of series.npz and regression.npz")
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--selftuned", action="store_true", help="SelfTuned as well")
    options = parser.parse_args()
    makers = {name: (lambda keywords=keywords: KRLS(**keywords)) for name, keywords in KINDS.items()}
    if options.selftuned:
        makers["SelfTuned"] = SelfTuned
    print(f"{'':18}  rows |" + "".join(f" {name:>16}" for name in makers))
    for name, X, y in streams(options.data, options.rows):
        cells = []
        for make in makers.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)
                share, error = covered(make(), X, y)
            mark = "*" if len(y) >= 2000 and not 0.88 <= share <= 0.92 else " "
            cells.append(f" {share:7.1%}{mark}{error:8.4f}")
        print(f"{name:18} {len(y):5} |" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
