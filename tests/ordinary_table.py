"""An ordinary table: numbers, words, a few percent of positives, a world that drifts; and what a linear model makes of it."""
import numpy as np

CITIES = [f"city {i}" for i in range(30)]


def ordinary_table(n=8000, seed=0, interaction=False, holes=0.0):
    """(rows, y): dictionaries in the order in which they come, and whether each is one of the 4 % that matter.

    The odds depend on a sum of what the columns contribute, each with a weight that wanders a little while the stream goes on. With an
    `interaction`, they also depend on whether two numbers are on the same side of their means, which no sum can say. `holes` is the
    share of entries that are missing.
    """
    rng = np.random.default_rng(seed)
    numbers = {
        "amount": np.exp(rng.normal(4.0, 1.0, n)),
        "age": rng.normal(45.0, 15.0, n),
        "visits": rng.poisson(3.0, n).astype(float),
        "balance": rng.normal(0.0, 1000.0, n),
    }
    popular = 1.0 / np.arange(1, 31)
    words = {
        "city": rng.choice(30, n, p=popular / popular.sum()),
        "channel": rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
        "device": rng.choice(3, n),
    }
    scores = np.column_stack([np.log(numbers["amount"]) - 4.0, (numbers["age"] - 45.0) / 15.0,
                              (numbers["visits"] - 3.0) / 1.7, numbers["balance"] / 1000.0])
    drift = np.cumsum(rng.normal(0.0, 0.5 / np.sqrt(n), (n, 4)), axis=0)
    odds = ((rng.choice([-1.0, 1.0], 4) * rng.uniform(0.4, 0.9, 4) + drift) * scores).sum(axis=1)
    for word, spread in (("city", 0.4), ("channel", 0.5), ("device", 0.3)):
        odds += rng.normal(0.0, spread, words[word].max() + 1)[words[word]]
    if interaction:
        odds += 1.5 * np.sign(scores[:, 1] * scores[:, 3])
    offset = np.log(0.04 / 0.96) - odds.mean()
    for _ in range(50):  # so that 4 % are positive
        offset -= 0.5 * np.log(np.mean(1.0 / (1.0 + np.exp(-odds - offset))) / 0.04)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds - offset))
    columns = {**numbers, "city": np.array(CITIES)[words["city"]], "channel": np.array(list("abcde"))[words["channel"]],
               "device": np.array(["phone", "desk", "tablet"])[words["device"]], "member": rng.random(n) < 0.3}
    columns = {name: np.where(rng.random(n) < holes, None, column) if holes else column for name, column in columns.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*(column.tolist() for column in columns.values()))]
    return rows, y


def linear_scores(rows, y):
    """Probabilities before each row of river's one-hot encoding and logistic regression, test then train."""
    from river import compose, linear_model, preprocessing

    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    numbers = compose.SelectType((float, int, bool)) | preprocessing.StandardScaler()
    model, scores = (words + numbers) | linear_model.LogisticRegression(), []
    for x, label in zip(rows, y.tolist(), strict=True):
        scores.append(model.predict_proba_one(x).get(True, 0.5))
        model.learn_one(x, label)
    return np.array(scores)


def area(scores, y):
    """Area under the curve: how often a positive has a higher score than a negative; ties count half."""
    values, places = np.unique(scores, return_inverse=True)
    positive, negative = (np.bincount(places, weights=side, minlength=len(values)) for side in (y, ~y))
    below = np.cumsum(negative) - negative
    return float((positive * (below + 0.5 * negative)).sum() / (positive.sum() * negative.sum()))
