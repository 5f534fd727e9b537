"""Write returns.csv, an ordinary table: orders of a shop with dates, words, numbers and holes, few of which are
returned.

    python docs/examples/make_returns.py

Expensive clothes come back, above all those that were ordered by telephone and on weekends; nothing else matters.
"""
import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("returns.csv")


def orders(n=600, seed=0):
    """Rows of texts, the header first."""
    rng = np.random.default_rng(seed)
    yield ["ordered", "price", "weight", "kind", "channel", "city", "member", "returned"]
    for i in range(n):
        day = date(2024, 1, 1) + timedelta(days=i // 3)
        price = float(np.exp(rng.normal(3.5, 0.7)))
        kind = str(rng.choice(["clothes", "books", "toys", "tools"], p=[0.4, 0.3, 0.2, 0.1]))
        channel = str(rng.choice(["web", "app", "telephone"], p=[0.5, 0.3, 0.2]))
        city = str(rng.choice(["Bern", "Rome", "Oslo", "Sofia", "Saint-Denis, La Réunion"]))
        score = -9.0 + 6.0 * (kind == "clothes") + 3.0 * (np.log(price) - 3.5) + 3.0 * (channel == "telephone")
        score += 1.0 * (day.weekday() >= 5)
        returned = rng.random() < 1.0 / (1.0 + np.exp(-score))
        row = [
            day.isoformat(),
            f"{price:.2f}",
            f"{rng.gamma(2.0, 0.5):.2f}",
            kind,
            channel,
            city,
            str(rng.choice(["yes", "no"])),
        ]
        yield [*("" if rng.random() < 0.05 else field for field in row), "yes" if returned else "no"]


if __name__ == "__main__":
    with open(PATH, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(orders())
