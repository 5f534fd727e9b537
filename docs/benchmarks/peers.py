"""Beside other libraries: learning in chunks and one by one, prediction, memory, each measured in the same run.

    python docs/benchmarks/peers.py                                     # some minutes
    python docs/benchmarks/peers.py --quick                             # without 4096 supports of 784 features
    python docs/benchmarks/peers.py --page docs/reference/peers.md --picture docs/images/peers.png

Peers that are not installed are left out with a note: scikit-learn, river, CapyMOA and vowpalwabbit (pip), kernlab
(R), dlib (its C++ headers, a compiler and, which makes it four times as fast, OpenBLAS). Microseconds are of processor
time, of one thread but for Java's own; contestants in this process take turns, the best of four runs each, and medians
are compared; R, C++ and Vowpal Wabbit run for themselves. Rows are normal numbers with random labels, so that nearly
every example becomes a support; a budget of ours is full, and every example makes a term and drops one. The exit
status is 1 if a bar of ours is missed: those of ``learning.py`` against bare products, and, of first order, to be
faster than every peer that is not merely linear. Second order has no bar here. Neighbours and linear models are no
kernel learners, and are there for scale; their time is of predicting and learning, since neighbours do nothing before
they are asked.
"""

import argparse
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np  # noqa: E402
from learning import BARS, ONE_BAR, PREDICT_BAR, contestants  # noqa: E402

from onlinekernels import KRLS, NORMA, SILK, Gaussian, Hinge, NuNovelty  # noqa: E402

CHUNK = 256
COMPONENTS = 2000  # of Nystroem's map, at most
POINTS = 150  # of a posterior
ONES = 64  # rows that are learned one by one, per turn
TITLES = {
    "chunks": "Learning in chunks of 256",
    "one": "Learning one by one",
    "predict": "Predicting 256 rows",
    "novelty": "Novelty, learning in chunks of 256",
    "posterior": "Second order, learning one by one",
    "uncertain": "Second order, predicting with deviations",
}


@dataclass
class Peer:
    table: str
    size: tuple  # (supports, features)
    name: str
    us: float
    kind: str = "peer"  # or "ours", "limit"
    note: str = ""
    memory: int = 0  # bytes of the pickled model
    bar: float = None  # at most so many times the limit, or microseconds more than it
    more: bool = False


class Missing(Exception):
    """A peer that is not here."""


# ---- Taking turns -----------------------------------------------------------------------------


def turns(runs, seconds):
    """{name: microseconds of processor time per example} of {name: (function, examples)}, as ``learning.py`` takes
    turns."""

    def spent(run):
        start = time.process_time()
        run()
        return time.process_time() - start

    taken, order, end = {name: [] for name in runs}, list(runs.items()), time.process_time() + seconds
    while time.process_time() < end or len(taken[order[0][0]]) < 3:
        random.shuffle(order)  # nobody always follows the one who warms its cache
        for name, (run, count) in order:
            run()  # not timed: brings its data into the cache
            taken[name].append(min(spent(run) for _ in range(4)) / count)
    return {name: 1e6 * float(np.median(times)) for name, times in taken.items()}


def rows(supports, features, n=None, seed=0):
    rng = np.random.default_rng(seed)
    n = max(4 * CHUNK, supports) if n is None else n
    return rng.normal(size=(n, features)) / np.sqrt(features), rng.choice([-1, 1], n)


# ---- scikit-learn -----------------------------------------------------------------------------


def nystroem(supports, features, model):
    """(map fitted to as many rows as there are supports, a linear model that knows both classes)."""
    try:
        from sklearn.kernel_approximation import Nystroem
    except ImportError as error:
        raise Missing("scikit-learn: pip install scikit-learn") from error
    X, _ = rows(supports, features)
    return Nystroem(gamma=0.5, n_components=min(supports, COMPONENTS), random_state=0).fit(X[:supports]), model


def sklearn_chunks(supports, features):
    from_sklearn = nystroem(supports, features, None)[0]
    from sklearn.linear_model import SGDClassifier

    X, y = rows(supports, features)
    model = SGDClassifier(random_state=0).partial_fit(from_sklearn.transform(X[:CHUNK]), y[:CHUNK], classes=[-1, 1])
    one, label = X[:4], y[:4]

    def chunk():
        model.partial_fit(from_sklearn.transform(X[:CHUNK]), y[:CHUNK])

    def by_one():
        for i in range(4):
            model.partial_fit(from_sklearn.transform(one[i : i + 1]), label[i : i + 1])

    def predict():
        model.decision_function(from_sklearn.transform(X[:CHUNK]))

    return chunk, by_one, predict, len(pickle.dumps((from_sklearn, model)))


def sklearn_svc(supports, features):
    from sklearn.svm import SVC

    X, y = rows(supports, features, supports)
    model = SVC(gamma=0.5, C=0.01).fit(X, y)  # so soft that all rows are supports, or nearly
    chunk = rows(CHUNK, features, CHUNK, seed=1)[0]
    share = len(model.support_) / supports  # time for as many supports as the others have
    return lambda: model.decision_function(chunk), int(CHUNK * share), len(pickle.dumps(model))


def sklearn_novelty(supports, features):
    mapped = nystroem(supports, features, None)[0]
    from sklearn.linear_model import SGDOneClassSVM

    X, _ = rows(supports, features)
    model = SGDOneClassSVM(nu=0.05, random_state=0).partial_fit(mapped.transform(X[:CHUNK]))

    def chunk():
        model.partial_fit(mapped.transform(X[:CHUNK]))

    return chunk, len(pickle.dumps((mapped, model)))


def gaussian_process():
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF
    except ImportError as error:
        raise Missing("scikit-learn: pip install scikit-learn") from error
    X, y = regression(POINTS + 4)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None)

    def learn():
        """Each row means a fit to the last 150."""
        for i in range(4):
            model.fit(X[i : i + POINTS], y[i : i + POINTS])

    learn()
    return learn, lambda: model.predict(X[:CHUNK], return_std=True), len(pickle.dumps(model))


def regression(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


# ---- river, CapyMOA, Vowpal Wabbit ------------------------------------------------------------


def river_models(supports, features):
    try:
        from river import linear_model, neighbors
    except ImportError as error:
        raise Missing("river: pip install river") from error
    X, y = rows(supports, features)
    dicts = [dict(enumerate(row)) for row in X.tolist()]
    for name, note, model in (
        ("river linear PA", "linear only", linear_model.PAClassifier()),
        (
            "river KNN",
            "neighbours among as many rows",
            neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=supports)),
        ),
    ):
        for x, label in zip(dicts[:supports], y[:supports].tolist()):
            model.learn_one(x, label)

        def learn(model=model):
            for i in range(8):
                model.predict_one(dicts[i])
                model.learn_one(dicts[i], int(y[i]))

        yield name, note, learn, 8, len(pickle.dumps(model))


def capymoa_knn(supports, features):
    try:
        from capymoa.classifier import KNN
        from capymoa.stream import NumpyStream
    except ImportError as error:
        raise Missing("CapyMOA: a Java runtime (default-jre-headless), then pip install capymoa") from error
    X, y = rows(supports, features, supports + 4000)
    stream = NumpyStream(X, (y > 0).astype(int), target_type="categorical")
    model = KNN(stream.get_schema(), window_size=supports)

    def some(count):
        for _ in range(count):
            if not stream.has_more_instances():
                stream.restart()
            instance = stream.next_instance()
            model.predict(instance)
            model.train(instance)

    some(supports + 200)
    return lambda: some(16), 16


def vowpal(supports, features):
    try:
        from vowpalwabbit import Workspace
    except ImportError as error:
        raise Missing("Vowpal Wabbit: pip install vowpalwabbit") from error
    X, y = rows(supports, features, supports + 256)
    lines = [
        f"{label} | " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(x))
        for x, label in zip(X.tolist(), y.tolist())
    ]
    model = Workspace("--ksvm --kernel rbf --bandwidth 0.5 --l2 1 --reprocess 1 --quiet")
    examples = [model.example(line) for line in lines]
    for example in examples[:supports]:
        model.learn(example)
    start = time.process_time()
    for example in examples[supports:]:
        model.learn(example)
    return 1e6 * (time.process_time() - start) / 256  # it grows, so each example once


# ---- R and C++ --------------------------------------------------------------------------------

ONLEARN = """
suppressMessages(library(kernlab)); set.seed(0)
n <- {supports}; d <- {features}; more <- {more}
x <- matrix(rnorm((n + more) * d), n + more) / sqrt(d); y <- sample(c(-1, 1), n + more, TRUE)
o <- inlearn(d, kernel = "rbfdot", kpar = list(sigma = 0.5), type = "classification", buffersize = n)
for (i in 1:n) o <- onlearn(o, x[i, , drop = FALSE], y[i], nu = 0.2, lambda = 0.1)
t <- proc.time()
for (i in (n + 1):(n + more)) o <- onlearn(o, x[i, , drop = FALSE], y[i], nu = 0.2, lambda = 0.1)
spent <- proc.time() - t
cat(1e6 * (spent[["user.self"]] + spent[["sys.self"]]) / more, "\\n")
"""


def kernlab(supports, features):
    if shutil.which("Rscript") is None:
        raise Missing("kernlab: Debian's r-cran-kernlab, or R and install.packages('kernlab')")
    script = ONLEARN.format(supports=supports, features=features, more=100)
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"kernlab: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout.split()[-1])


DLIB = """
#include <cstdio>
#include <ctime>
#include <random>
#include <dlib/svm.h>
int main() {
    typedef dlib::matrix<double, 8, 1> row;
    typedef dlib::radial_basis_kernel<row> kernel;
    dlib::krls<kernel> learner(kernel(0.125), 1e-3, POINTS);
    std::mt19937 generator(0); std::normal_distribution<double> normal;
    const int first = 3000, more = 2000;
    double spent = 0;
    for (int i = 0; i < first + more; i++) {
        row x; for (int j = 0; j < 8; j++) x(j) = normal(generator);
        double y = std::sin(x(0)) + x(1) + 0.3 * normal(generator);
        std::clock_t start = std::clock();
        learner.train(x, y);
        if (i >= first) spent += double(std::clock() - start) / CLOCKS_PER_SEC;
    }
    std::printf("%g %lu\\n", 1e6 * spent / more, (unsigned long) learner.dictionary_size());
}
"""


def dlib():
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise Missing("dlib: a C++ compiler")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "krls.cpp", Path(folder) / "krls"
        source.write_text(DLIB.replace("POINTS", str(POINTS)))
        for blas, libraries in (("BLAS", ["-ldlib", "-lblas", "-llapack", "-lpthread"]), ("no BLAS", ["-lpthread"])):
            command = [compiler, "-O3", "-march=native", "-DNDEBUG", str(source), "-o", str(program), *libraries]
            if subprocess.run(command, capture_output=True).returncode == 0:
                break
        else:
            raise Missing("dlib: Debian's libdlib-dev, libopenblas-dev and liblapack-dev")
        us, size = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    return float(us), f"C++, {blas}, {size} points, no forgetting, no deviations"


# ---- The tables -------------------------------------------------------------------------------


class Book:
    """What was measured, and who was not here."""

    def __init__(self):
        self.peers, self.missing = [], ["kafbox: MATLAB or Octave, which is not called from here"]

    def add(self, *arguments, **keywords):
        self.peers.append(Peer(*arguments, **keywords))
        peer = self.peers[-1]
        print(f"{peer.table:10} {peer.size!s:12} {peer.name:34} {peer.us:10.2f}", flush=True)

    def try_to(self, function, *arguments):
        try:
            return function(*arguments)
        except Missing as reason:
            if str(reason) not in self.missing:
                self.missing.append(str(reason))
                print(f"left out: {reason}", flush=True)
            return None


def first_order(book, size, seconds):
    """Learning in chunks and one by one, and predicting, with so many supports."""
    supports, features = size
    own = contestants(supports, features, np.float64)
    runs = {name: own[name] for name in ("matmul", "bare", "chunked", "predict", "bare one", "learn_one")}
    sklearn = book.try_to(sklearn_chunks, *size)
    memory = {}
    if sklearn:
        chunk, by_one, predict, bytes_ = sklearn
        runs |= {"sk chunks": (chunk, CHUNK), "sk one": (by_one, 4), "sk predict": (predict, CHUNK)}
        memory["sk"] = bytes_
        if supports <= 1024:  # fitting is quadratic
            run, count, memory["svc"] = sklearn_svc(*size)
            runs["svc"] = run, count
    river = list(book.try_to(lambda: list(river_models(*size))) or []) if supports <= 1024 else []
    for name, _, run, count, _ in river:
        runs[name] = run, count
    knn = book.try_to(capymoa_knn, *size) if supports <= 1024 else None
    if knn:
        runs["CapyMOA KNN"] = knn
    us = turns(runs, seconds)
    X, y = rows(*size)
    model = NORMA(Hinge(1e6), Gaussian(1.0), step=0.1, regularization=1e-3, budget=supports).partial_fit(X, y)
    bytes_ = len(pickle.dumps(model))

    against, bar = BARS.get(size, (None, None))
    limit = {"matmul": "np.matmul", "bare": "np.matmul, exp, dot"}
    for name in ("matmul", "bare"):
        book.add("chunks", size, limit[name], us[name], kind="limit", bar=bar if against == name else None)
    book.add("chunks", size, "NORMA, exact", us["chunked"], kind="ours", memory=bytes_)
    book.add(
        "one", size, "S @ x, exp", us["bare one"], kind="limit", bar=ONE_BAR if supports == 512 else None, more=True
    )
    book.add("one", size, "NORMA.learn_one", us["learn_one"], kind="ours", memory=bytes_)
    book.add("predict", size, "np.matmul, exp, dot", us["bare"], kind="limit", bar=PREDICT_BAR)
    book.add("predict", size, "NORMA", us["predict"], kind="ours", memory=bytes_)
    if sklearn:
        note = f"approximate, at most {COMPONENTS} components"
        book.add("chunks", size, "scikit-learn Nystroem + SGD", us["sk chunks"], note=note, memory=memory["sk"])
        book.add("one", size, "scikit-learn Nystroem + SGD", us["sk one"], note=note, memory=memory["sk"])
        book.add("predict", size, "scikit-learn Nystroem + SGD", us["sk predict"], note=note, memory=memory["sk"])
    if "svc" in us:
        book.add("predict", size, "scikit-learn SVC", us["svc"], note="exact", memory=memory["svc"])
    for name, note, _, _, bytes_ in river:
        book.add("one", size, name, us[name], note=note, memory=bytes_)
    if knn:
        book.add("one", size, "CapyMOA KNN", us["CapyMOA KNN"], note="neighbours among as many rows")
    if supports <= 1024:
        for name, note, measure in (
            ("Vowpal Wabbit --ksvm", "LASVM, no budget", vowpal),
            ("R kernlab onlearn", "NORMA", kernlab),
        ):
            found = book.try_to(measure, *size)
            if found is not None:
                book.add("one", size, name, found, note=note)


def novelty(book, size, seconds):
    supports = size[0]
    X, _ = rows(*size)
    model = SILK(NuNovelty(0.05), Gaussian(1.0), budget=supports)
    model.partial_fit(X)
    runs = {"ours": (lambda: model.partial_fit(X[:CHUNK]), CHUNK)}
    peer = book.try_to(sklearn_novelty, *size)
    if peer:
        runs["peer"] = peer[0], CHUNK
    us = turns(runs, seconds)
    book.add("novelty", size, "SILK, nu novelty", us["ours"], kind="ours", memory=len(pickle.dumps(model)))
    if peer:
        book.add(
            "novelty", size, "scikit-learn Nystroem + SGDOneClassSVM", us["peer"], note="approximate", memory=peer[1]
        )


def second_order(book, seconds):
    """A posterior at 150 points, which is a Gaussian process of as many rows when it stands."""
    size = POINTS, 8
    X, y = regression(4000)
    model = KRLS("squared", Gaussian(2.0), budget=POINTS, noise=0.1)
    model.partial_fit(X, y)
    place = iter(range(10**9))

    def learn():
        for _ in range(ONES):
            i = next(place) % len(y)
            model.learn_one(X[i], y[i])

    runs = {"ours": (learn, ONES), "ours predict": (lambda: model.predict(X[:CHUNK], return_std=True), CHUNK)}
    peer = book.try_to(gaussian_process)
    if peer:
        runs |= {"gp": (peer[0], 4), "gp predict": (peer[1], CHUNK)}
    us = turns(runs, seconds)
    bytes_ = len(pickle.dumps(model))
    book.add("posterior", size, "KRLS.learn_one", us["ours"], kind="ours", memory=bytes_)
    book.add("uncertain", size, "KRLS", us["ours predict"], kind="ours", memory=bytes_)
    if peer:
        book.add(
            "posterior",
            size,
            "scikit-learn GaussianProcessRegressor",
            us["gp"],
            note="fitted to the last 150 rows",
            memory=peer[2],
        )
        book.add("uncertain", size, "scikit-learn GaussianProcessRegressor", us["gp predict"], memory=peer[2])
    found = book.try_to(dlib)
    if found:
        book.add("posterior", size, "dlib krls", found[0], note=found[1])


# ---- Judgement --------------------------------------------------------------------------------


def own(book, peer):
    return next(one for one in book.peers if one.kind == "ours" and (one.table, one.size) == (peer.table, peer.size))


def missed(book):
    """Sentences, one for each bar that is missed."""
    for peer in book.peers:
        ours = own(book, peer).us
        place = f"{TITLES[peer.table]}, {peer.size[0]} x {peer.size[1]}"
        if peer.kind == "limit" and peer.bar is not None:
            found = ours - peer.us if peer.more else ours / peer.us
            if found > peer.bar:
                what = f"{found:.1f} microseconds more than" if peer.more else f"{found:.2f} times"
                yield f"{place}: ours takes {what} {peer.name}, and the bar is {peer.bar:g}"
        if (
            peer.kind == "peer"
            and peer.us < ours
            and peer.note != "linear only"
            and peer.table not in ("posterior", "uncertain")
        ):
            yield f"{place}: {peer.name} takes {peer.us:.1f}, ours {ours:.1f} microseconds"


def faster(book):
    """Peers that take less time than ours, with a bar or without."""
    for peer in book.peers:
        ours = own(book, peer).us
        if peer.kind == "peer" and peer.us < ours:
            where = f"{TITLES[peer.table].lower()} ({peer.size[0]} × {peer.size[1]})"
            yield f"{peer.name}, {where}: {rounded(peer.us)} to {rounded(ours)} microseconds"


def page(book, picture):
    yield "# Beside other libraries"
    yield ""
    yield from filled(
        "Here you can look up what an example costs here and elsewhere, in microseconds of processor time of one "
        "thread, each measured in the same run. The script that writes this page runs on your machine, too; its "
        "docstring says how it measures."
    )
    yield "```console"
    yield "$ python docs/benchmarks/peers.py --quick"
    yield "```"
    yield ""
    if picture:
        yield "![Microseconds per example, ours and peers](../images/peers.png)"
        yield ""
    yield from filled(
        "Columns are supports × features. In brackets: times ours, so above 1 we are faster. A *limit* is NumPy's bare "
        "products, without any learning; its *bar* says how many times this, or (with a plus) how many microseconds "
        "more, ours may take. Learners of first order also have to be faster than every peer that is not linear."
    )
    for table, title in TITLES.items():
        some = [peer for peer in book.peers if peer.table == table]
        yield f"## {title}"
        yield ""
        yield from lines(some, lambda peer: microseconds(peer, own(book, peer)))
    sizes = {
        (peer.name.replace(".learn_one", "").replace(", exact", ""), peer.size): peer.memory for peer in book.peers
    }
    memory = [f"{name} {bytes_ / 1e6:.2g}" for (name, size), bytes_ in sizes.items() if bytes_ and size == (512, 256)]
    yield from filled(f"Megabytes of the pickled model, 512 × 256: {'; '.join(memory)}.")
    yield from filled(f"Faster than ours: {'; '.join(faster(book)) or 'none'}.")
    yield from filled(f"Bars that were missed in this run: {'; '.join(missed(book)) or 'none'}.")
    yield from filled(f"Left out: {'; '.join(book.missing)}.")


def lines(peers, cell):
    """A table: a row for each name, a column for each size, and a note."""
    sizes = sorted({peer.size for peer in peers})
    yield f"| | {' | '.join(f'{supports} × {features}' for supports, features in sizes)} | |"
    yield "|---" * (len(sizes) + 2) + "|"
    for name in dict.fromkeys(peer.name for peer in peers):
        some = {peer.size: peer for peer in peers if peer.name == name}
        first = next(iter(some.values()))
        cells = [cell(some[size]) if size in some else "" for size in sizes] + [noted(first)]
        shown = f"**{name}**" if first.kind == "ours" else name.replace("--ksvm", "`--ksvm`")
        yield f"| {shown} | {' | '.join(cells)} |"
    yield ""


def microseconds(peer, ours):
    ratio = "" if peer.kind == "ours" else f" ({rounded(peer.us / ours.us)})"
    bar = "" if peer.bar is None else f", bar {'+' if peer.more else ''}{peer.bar:g}"
    return rounded(peer.us) + ratio + bar


def noted(peer):
    return "limit" if peer.kind == "limit" else peer.note


def filled(text):
    """A paragraph."""
    yield from textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)
    yield ""


def rounded(value):
    """Two or three digits that count, as people write them."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def draw(book, path):
    """A panel for each table and size, all on one scale: a dot for who it is, and how many times ours it takes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    some = [peer for peer in book.peers if peer.size[0] < 4096]
    groups = list(dict.fromkeys((peer.table, peer.size) for peer in some))
    order = list(TITLES)
    groups = sorted(groups, key=lambda group: (order.index(group[0]), group[1]))
    counts = [sum((peer.table, peer.size) == group for peer in some) for group in groups]
    heights = [max(pair) + 1.6 for pair in zip(counts[::2], [*counts[1::2], 0][: -(-len(counts) // 2)])]
    figure, panels = plt.subplots(
        len(heights),
        2,
        figsize=(12, 0.26 * sum(heights) + 0.8),
        dpi=110,
        layout="constrained",
        squeeze=False,
        sharex=True,
        height_ratios=heights,
    )
    figure.get_layout_engine().set(h_pad=0.06, w_pad=0.12)
    colours = {"ours": "#D55E00", "limit": "0.55", "peer": "#0072B2"}
    least, most = min(peer.us for peer in some), max(peer.us for peer in some)
    for axes, group in zip(panels.flat, groups):
        here = sorted((peer for peer in some if (peer.table, peer.size) == group), key=lambda peer: -peer.us)
        ours = own(book, here[0]).us
        axes.set(xscale="log", xlim=(least / 1.6, 20 * most), ylim=(-0.7, len(here) - 0.3))
        axes.axvline(ours, color=colours["ours"], linewidth=1, alpha=0.35, zorder=1)
        for place, peer in enumerate(here):
            times = "" if peer.kind == "ours" else f"   × {rounded(peer.us / ours)}"
            axes.plot([ours, peer.us], [place, place], color=colours[peer.kind], linewidth=2, alpha=0.4, zorder=2)
            axes.plot(peer.us, place, "o", color=colours[peer.kind], markersize=7, zorder=3)
            axes.annotate(
                rounded(peer.us) + times,
                (max(peer.us, ours), place),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=colours[peer.kind] if peer.kind == "ours" else "0.25",
            )
        axes.set_yticks(range(len(here)), [peer.name for peer in here], fontsize=9)
        for label, peer in zip(axes.get_yticklabels(), here):
            label.set_color(colours["ours"] if peer.kind == "ours" else "0.25")
        title = TITLES[group[0]].replace(", learning", ",").replace(", predicting", ",")
        axes.set_title(f"{title}, {group[1][0]} × {group[1][1]}", fontsize=9.5, loc="left", weight="bold")
        axes.xaxis.set_major_locator(ticker.FixedLocator([10.0**k for k in range(-2, 7) if 10.0**k <= 2 * most]))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelbottom=True, labelsize=8)
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
    for axes in list(panels.flat)[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "microseconds of processor time per example (log scale), and times ours; orange is ours, grey the limit",
        fontsize=10,
    )
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="without the largest size, and fewer turns")
    parser.add_argument("--page", type=Path, help="write the tables there, as Markdown")
    parser.add_argument("--picture", type=Path, help="draw them; needs matplotlib")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    book, seconds = Book(), 3.0 if options.quick else 8.0
    for size in [(512, 256), (1024, 16)] + [(4096, 784)] * (not options.quick):
        first_order(book, size, seconds)
    novelty(book, (512, 256), seconds / 3)
    second_order(book, seconds / 3)
    text = "\n".join(page(book, options.picture)).rstrip() + "\n"
    print("\n" + text)
    if options.page:
        options.page.write_text(text)
    if options.picture:
        draw(book, options.picture)
    return 1 if any(missed(book)) else 0


if __name__ == "__main__":
    sys.exit(main())
