"""Beside other libraries: learning in chunks and one by one, prediction, memory, each measured in the same run.

    python docs/benchmarks/peers.py                                     # some minutes
    python docs/benchmarks/peers.py --quick                             # without 4096 supports of 784 features
    python docs/benchmarks/peers.py --page docs/reference/peers.md --picture docs/images/peers.png

Peers that are not installed are left out with a note: scikit-learn, river, CapyMOA and vowpalwabbit (pip), kernlab
(R), dlib (its C++ headers and a compiler). Microseconds are of processor time, of one thread but for Java's own;
contestants in this process take turns, and medians are compared. Rows are normal numbers with random labels, so that
nearly every example becomes a support; a budget of ours is full, and every example makes a term and drops one. The
exit status is 1 if a bar of ours is missed: those of ``learning.py`` against bare products, and, of first order, to
be faster than every peer that is not merely linear. Second order has no bar here, and neighbours are no kernel
learners: they are there for scale.
"""

import argparse
import os
import pickle
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
    """{name: microseconds of processor time per example} of {name: (function, examples)}, medians over turns."""
    taken = {name: [] for name in runs}
    for run, _ in runs.values():
        run()
    end = time.process_time() + seconds
    while time.process_time() < end or len(next(iter(taken.values()))) < 3:
        for name, (run, count) in runs.items():
            start = time.process_time()
            run()
            taken[name].append((time.process_time() - start) / count)
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
        built = [
            subprocess.run(
                [compiler, "-O3", "-DNDEBUG", str(source), "-o", str(program), *libraries], capture_output=True
            ).returncode
            for libraries in (["-lpthread"], ["-ldlib", "-lblas", "-llapack", "-lpthread"])
        ]  # without BLAS, or with the system's
        if all(built):
            raise Missing("dlib: its headers, Debian's libdlib-dev")
        us, size = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    return float(us), int(size)


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
        book.add("posterior", size, "dlib krls", found[0], note=f"C++, {found[1]} points, no forgetting, no deviations")


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
    sizes = {(peer.name.replace(".learn_one", "").replace(", exact", ""), peer.size): peer.memory for peer in book.peers}
    memory = [f"{name} {bytes_ / 1e6:.2g}" for (name, size), bytes_ in sizes.items() if bytes_ and size == (512, 256)]
    yield from filled(f"Megabytes of the pickled model, 512 × 256: {'; '.join(memory)}.")
    yield from filled(f"Bars that were missed in this run: {'; '.join(missed(book)) or 'none'}.")
    yield from filled(f"Left out: {'; '.join(book.missing)}.")


def lines(peers, cell):
    """A table: a row for each name, a column for each size, and a note."""
    sizes = sorted({peer.size for peer in peers})
    yield f"| | {' | '.join(f'{supports} × {features}' for supports, features in sizes)} | |"
    yield "| --- " * (len(sizes) + 2) + "|"
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
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    groups = list(
        dict.fromkeys(
            (peer.table, peer.size) for peer in book.peers if peer.table != "uncertain" and peer.size[0] < 4096
        )
    )
    figure, panels = plt.subplots(
        -(-len(groups) // 2), 2, figsize=(11, 1.6 * len(groups)), dpi=100, layout="constrained", squeeze=False
    )
    colours = {"ours": "#D55E00", "limit": "0.75", "peer": "#0072B2"}
    for axes, (table, size) in zip(panels.flat, groups):
        some = sorted(
            (peer for peer in book.peers if (peer.table, peer.size) == (table, size)), key=lambda peer: -peer.us
        )
        bars = axes.barh(
            [peer.name for peer in some],
            [peer.us for peer in some],
            color=[colours[peer.kind] for peer in some],
            height=0.7,
        )
        axes.bar_label(bars, [rounded(peer.us) for peer in some], padding=3, fontsize=8)
        axes.set_xscale("log")
        axes.set_xlim(min(peer.us for peer in some) / 3, max(peer.us for peer in some) * 6)
        title = "Second order, one by one" if table == "posterior" else TITLES[table]
        axes.set_title(f"{title}, {size[0]} x {size[1]}", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in list(panels.flat)[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "microseconds of processor time per example (log scale); grey is the limit, orange is ours", fontsize=9
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
