"""Fault injection: let the n-th call, or the n-th request for memory, fail while a model learns, and see what is left of it.

`KINDS` has a model of every kind. `places(kind, fault)` says how many places there are where a fault can strike while such
a model learns its stream, and `survives(kind, fault, n)` lets it strike at the n-th of them: afterwards all invariants hold,
the model can be pickled, and it and its copy go on to what a model has learned that was never interrupted.

As a script it lets faults strike at random places, and tells what does not survive:

    python tests/faults.py COUNT [SEED] [PART OF A KIND'S NAME]
"""
import ctypes
import functools
import linecache
import pickle
import signal
import sys
import time
import traceback
import warnings

import numpy as np

import onlinekernels as ok

try:
    from scipy.sparse import csr_matrix
except ImportError:
    csr_matrix = None

RECURSIVE = True  # whether posteriors take part
CHUNKS = [1, 30, 1, 60, 1, 1, 40, 20]
ROWS = sum(CHUNKS)


# ---- Models and streams -------------------------------------------------------------------------

# Multiples of 1/8: inner products are exact, and results do not depend on where a stream is cut.
RNG = np.random.default_rng(5)
POINTS = RNG.integers(-12, 13, size=(ROWS, 3)) / 8
POINTS[RNG.random(POINTS.shape) < 0.2] = 0.0
NEW = RNG.integers(-12, 13, size=(20, 3)) / 8
WORDS = ["".join(RNG.choice(list("abcdefgh"), size=5)) for _ in range(ROWS)]
SIGNS = np.where(POINTS[:, 0] * POINTS[:, 1] + 0.2 * RNG.normal(size=ROWS) > 0, 1, -1)
NUMBERS = np.round(8 * (np.sin(2 * POINTS[:, 0]) + POINTS[:, 1])) / 8
# Labels join as the stream goes on.
LETTERS = np.array([list("abcdefg")[int(RNG.integers(0, 2 + 5 * i // ROWS))] for i in range(ROWS)])
Y = {"signs": SIGNS, "numbers": NUMBERS, "letters": LETTERS, "several": np.column_stack([NUMBERS, POINTS[:, 2]]), "none": None}


class Own(ok.Loss):
    """A loss in Python."""

    task = "regression"

    def __init__(self):
        pass

    def derivative(self, score, y):
        return max(-1.0, min(1.0, score - y))


class OwnMany(ok.Loss):
    """A loss of many classes in Python."""

    task = "multiclass"

    def __init__(self):
        pass

    def derivative(self, scores, y):
        return np.clip(scores - np.where(np.arange(len(scores)) == y, 1.0, -1.0), -1.0, 1.0)


def overlap(a, b):
    """A kernel in Python, on words."""
    return float(len(set(a) & set(b)))


def near(x, z):
    """A kernel in Python, on rows."""
    return float(np.exp(-np.sum((x - z) ** 2)))


class Kind:
    """How to make a model, what kind of rows it learns and what y they have."""

    is_composite = False

    def __init__(self, make, y="signs", rows="dense"):
        self.make, self.y, self.rows = make, Y[y], rows

    def points(self, first, last, points=POINTS):
        if self.rows == "words":
            return WORDS[first:last]
        if self.rows == "sparse":
            return csr_matrix(points[first:last])
        return points[first:last].astype(np.float32 if self.rows == "single" else np.float64)

    def call(self, model, first, last):
        """To be called to learn some rows."""
        X, y = self.points(first, last), None if self.y is None else self.y[first:last]
        if last == first + 1 and self.rows != "sparse" and first > 0:
            return functools.partial(model.learn_one, X[0], None if y is None else y[0].tolist())
        return functools.partial(model.partial_fit, X, y)

    def scores(self, model):
        points = WORDS[:20] if self.rows == "words" else self.points(0, len(NEW), NEW)
        for method in ("decision_function", "predict"):
            if hasattr(model, method):
                return np.asarray(getattr(model, method)(points), dtype=float)

    def learned_by(self, model):
        """How many rows."""
        return getattr(model, "t_", 0)

    def check(self, model):
        """Assert all invariants."""
        if model._state is not None:
            model._state.engine._check()


class Composite(Kind):
    """A model that has no engine of its own, but members maybe."""

    is_composite = True

    def check(self, model):
        model._check()

    def scores(self, model):
        """Of a model of several members, what each says that takes part: NaN for the others."""
        composition = model._state.composition
        if hasattr(composition, "members_scores"):
            scores = composition.members_scores(NEW)
            scores[:, ~composition.enabled_members()] = np.nan
            return scores
        return composition.scores(NEW)[0]


class Local(Kind):
    """A model that is no composite, and has no engine either."""

    def check(self, model):
        model._check()


class Transformer(Kind):
    """What learns from rows alone, and transforms them."""

    def __init__(self, make, rows="dense"):
        super().__init__(make, "none", rows)

    def points(self, first, last, points=POINTS):
        if self.rows == "dense":
            return points[first:last]
        return [{"word": WORDS[i % 60] if i % 7 else None, "number": float(points[i, 0]) if i % 5 else None, "day": f"2024-{1 + i % 12:02}-11"}
                for i in range(first, last)]

    def call(self, model, first, last):
        X = self.points(first, last)
        return functools.partial(model.learn_one, X[0]) if last == first + 1 else functools.partial(model.partial_fit, X)

    def scores(self, model):
        return model.transform(self.points(0, len(NEW), NEW))

    def learned_by(self, model):
        return int(getattr(model, "count_", getattr(model, "t_", 0)))

    def check(self, model):
        if hasattr(model, "_check"):
            model._check()


def members():
    return {"posterior": ok.KRLS("squared", G, budget=9), "near": ok.Smoother("squared", G), "line": ok.SILK("squared", "linear")}


def label_members():
    return {"posterior": ok.KRLS("multiclass_squared", G, budget=9), "near": ok.Smoother("multiclass_squared", G),
            "line": ok.PassiveAggressive("multiclass_hinge", "linear")}


G, SPLINE = ok.Gaussian(0.7), 0.15 * ok.AdditiveSpline(1, bounds=(-2.0, 2.0))
KINDS = {
    # Terms under every budget
    "norma": Kind(lambda: ok.NORMA("hinge", G, step=0.3, offset=True)),
    "norma average": Kind(lambda: ok.NORMA("squared", G, average=True, regularization=0.3, step=0.5), "numbers"),
    "recent": Kind(lambda: ok.NORMA("squared", G, budget=30, step=0.2), "numbers"),
    "recent single": Kind(lambda: ok.NORMA("squared", G, budget=30, step=0.2), "numbers", "single"),
    "window": Kind(lambda: ok.NORMA("squared", ok.Laplacian(0.5), budget=ok.Window(31), step=0.2), "numbers"),
    "sublinear": Kind(lambda: ok.NORMA("nuinsensitive", ok.Gaussian(2) + ok.Linear(), budget=ok.Sublinear()), "numbers"),
    "smallest": Kind(lambda: ok.NORMA("huber", G, step=0.1, budget=ok.Smallest(30), regularization=0.2), "numbers"),
    "random removal": Kind(lambda: ok.Perceptron(G, budget=ok.RandomRemoval(30))),
    "redundant": Kind(lambda: ok.Perceptron(G, budget=ok.Redundant(24, tighter=True))),
    "redundant labels": Kind(lambda: ok.Perceptron(G, update="uniform", budget=ok.Redundant(24)), "letters"),
    "merging": Kind(lambda: ok.NORMA("hinge", G, budget=ok.Merging(24), step=0.3)),
    "merging labels": Kind(lambda: ok.Perceptron(G, update="uniform", budget=ok.Merging(24)), "letters"),
    "projecting": Kind(lambda: ok.NORMA("squared", G, budget=ok.Projecting(24), step=0.2), "numbers"),
    "projecting labels": Kind(lambda: ok.NORMA("multiclass_logistic", G, budget=ok.Projecting(9), step=0.3), "letters"),
    "forgetron": Kind(lambda: ok.Forgetron(G, budget=24)),
    "projectron": Kind(lambda: ok.Projectron(G, aggressive=True, budget=24)),
    "fading": Kind(lambda: ok.NORMA("squared", G, step=0.5, regularization=1.99), "numbers"),
    "wiped": Kind(lambda: ok.NORMA("squared", G, step=0.5, regularization=2.0), "numbers"),
    # Rules
    "silk": Kind(lambda: ok.SILK("hinge", G)),
    "silk own width": Kind(lambda: ok.SILK("nunovelty"), "none"),
    "ilk": Kind(lambda: ok.ILK("squared", G, exact=True, budget=9), "numbers"),
    "svmd": Kind(lambda: ok.SVMD("squared", G, exact_norms=True, budget=9, offset=True), "numbers"),
    "svmd labels": Kind(lambda: ok.SVMD("multiclass_logistic", G, offset=True), "letters"),
    "per feature": Kind(lambda: ok.NORMA("multiclass_logistic", "linear", step=ok.MetaDescent(per_feature=True)), "letters"),
    "pa": Kind(lambda: ok.PassiveAggressive("insensitive", G, budget=ok.Recent(9)), "numbers"),
    "projection": Kind(lambda: ok.Projection("absolute", G, radius=1.5, budget=9), "numbers"),
    "alma": Kind(lambda: ok.ALMA(G)),
    "romma": Kind(lambda: ok.ROMMA(G, cap=3.0)),
    "voted": Kind(lambda: ok.VotedPerceptron(G)),
    "lasvm": Kind(lambda: ok.LASVM(G)),
    # Labels
    "pairs": Kind(lambda: ok.Perceptron(G, update="runner-up", budget=24), "letters"),
    "all labels": Kind(lambda: ok.SILK("multiclass_squared", G), "letters"),
    "several targets": Kind(lambda: ok.NORMA("squared", G, budget=9), "several"),
    # Other rows, other functions
    "sparse": Kind(lambda: ok.NORMA("hinge", G, step=0.3, budget=24), rows="sparse"),
    "sparse unlimited": Kind(lambda: ok.NORMA("squared", G, step=0.3), "numbers", "sparse"),
    "sparse weights": Kind(lambda: ok.NORMA("multiclass_hinge", "linear"), "letters", "sparse"),
    "words": Kind(lambda: ok.NORMA("hinge", overlap, step=0.05, budget=ok.Smallest(9)), rows="words"),
    "words projection": Kind(lambda: ok.Projection("absolute", overlap, radius=0.5), "numbers", "words"),
    "callable": Kind(lambda: ok.NORMA("squared", near, budget=ok.Window(9)), "numbers"),
    "own loss": Kind(lambda: ok.NORMA(Own(), G, budget=9), "numbers"),
    "weights": Kind(lambda: ok.NORMA("multiclass_hinge", "linear", average=True, offset=True), "letters"),
    "trees": Kind(lambda: ok.NORMA("multiclass_logistic", SPLINE), "letters"),
    "budgeted trees": Kind(lambda: ok.NORMA("multiclass_logistic", SPLINE, budget=24, regularization=0.5), "letters"),
    "fourier": Kind(lambda: ok.NORMA("hinge", ok.RandomFourier(G, 20) + ok.Linear(), step=0.3)),
    "nystroem": Kind(lambda: ok.NORMA("squared", ok.Nystroem(G, 20), step=0.2), "numbers"),
    "nystroem labels": Kind(lambda: ok.NORMA("multiclass_hinge", ok.Nystroem(G, 9) + ok.Nystroem(ok.Gaussian(2.0), 12)), "letters"),
    "nystroem sparse": Kind(lambda: ok.NORMA("squared", ok.Nystroem(ok.Polynomial(2), 12), step=ok.MetaDescent(per_feature=True)),
                            "numbers", "sparse"),
    # Scaled
    "scaled": Kind(lambda: ok.NORMA("squared", G, scale=True, scale_target=True, budget=9), "numbers"),
    "scaled sparse": Kind(lambda: ok.NORMA("hinge", G, scale=True), rows="sparse"),
    "scaled own loss": Kind(lambda: ok.NORMA(Own(), G, scale=True), "numbers"),
    # Posteriors
    "krls": Kind(lambda: ok.KRLS("squared", G, budget=9, memory=0.98), "numbers"),
    "krls unlimited": Kind(lambda: ok.KRLS("squared", G, noise="auto"), "numbers"),
    "krls weights": Kind(lambda: ok.KRLS("squared", ok.Linear(), noise="auto"), "numbers"),
    "krls nystroem": Kind(lambda: ok.KRLS("squared", ok.Nystroem(G, 20), noise=0.1), "numbers"),
    "krls labels": Kind(lambda: ok.KRLS("multiclass_squared", G, budget=9), "letters"),
    "krls sparse": Kind(lambda: ok.KRLS("squared", G, budget=9), "numbers", "sparse"),
    "krls words": Kind(lambda: ok.KRLS("squared", overlap, budget=9), "numbers", "words"),
    "krls scaled": Kind(lambda: ok.KRLS("squared", G, scale=True, scale_target=True, budget=9), "numbers"),
    # Local averages
    "smoother": Local(lambda: ok.Smoother("squared", G, budget=30), "numbers"),
    "smoother labels": Local(lambda: ok.Smoother("multiclass_squared", G, scale=True), "letters"),
    "smoother density": Local(lambda: ok.Smoother("nunovelty", G, budget=ok.Reservoir(40)), "none"),
    # Models of several
    "selftuned": Composite(lambda: ok.SelfTuned(window=100, budget=9), "numbers"),
    "selftuned labels": Composite(lambda: ok.SelfTuned("multiclass_squared", axes="own", window=100, budget=9), "letters"),
    "stacking": Composite(lambda: ok.Stacking(members()), "numbers"),
    "stacking several": Composite(lambda: ok.Stacking(members(), n_jobs=2), "several"),
    "stacking labels": Composite(lambda: ok.Stacking(label_members()), "letters"),
    "hedge": Composite(lambda: ok.Hedge(members()), "numbers"),
    "hedge labels": Composite(lambda: ok.Hedge(label_members()), "letters"),
    "stacking own code": Composite(lambda: ok.Stacking({"loss": ok.NORMA(Own(), G, budget=9), "near": ok.Smoother("squared", G),
                                                       "kernel": ok.NORMA("squared", near, budget=9)}), "numbers"),
    "stacking own loss labels": Composite(lambda: ok.Stacking({"loss": ok.NORMA(OwnMany(), G, budget=9), **label_members()}), "letters"),
    "stacking nested": Composite(lambda: ok.Stacking({"all": ok.Hedge({"loss": ok.NORMA(Own(), G, budget=9), **members()}),
                                                     "tuned": ok.SelfTuned(window=100, budget=9)}), "numbers"),
    "front door numbers": Composite(lambda: ok.OnlineKernelRegressor("low"), "numbers"),
    "front door labels": Composite(lambda: ok.OnlineKernelClassifier("low"), "letters"),
    "front door novelty": Composite(lambda: ok.OnlineKernelDetector(0.1, "low"), "none"),
    # What comes before models, or stands alone
    "scaler": Transformer(lambda: ok.RunningScaler()),
    "encoder": Transformer(lambda: ok.RunningEncoder(slots=4), "mixed"),
    "hebbian": Transformer(lambda: ok.KernelHebbian(2, G, budget=20)),
}
KINDS = {name: kind for name, kind in KINDS.items()
         if (RECURSIVE or not name.startswith("krls")) and (csr_matrix or kind.rows != "sparse")}


# ---- Faults ---------------------------------------------------------------------------------------


class Call:
    """The n-th entry to, or return from, a function that Python sees raises an error.

    With `core`, only what the compiled loop calls counts, and not what is done before and after it.
    """

    def __init__(self, error, core, n):
        self.error, self.core, self.n, self.seen = error, core, n, 0

    def start(self):
        sys.setprofile(self.look)

    def look(self, frame, event, _):
        if frame.f_code.co_filename == __file__ or self.core and not _in_core(frame.f_back):
            return
        self.seen += 1
        if self.seen == self.n:
            sys.setprofile(None)
            raise self.error

    def stop(self):
        sys.setprofile(None)


def _in_core(frame):
    """Whether a function was called by the compiled loop: above it is the line that started the loop."""
    while frame is not None and not frame.f_code.co_filename.endswith("learning.py"):
        frame = frame.f_back
    return frame is not None and "engine.learn" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


class _Allocator(ctypes.Structure):  # as in numpy/ndarraytypes.h
    _fields_ = [
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("calloc", ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)),
        ("realloc", ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
        ("free", ctypes.c_void_p),
    ]


class _Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator)]


@functools.cache
def _handlers():
    """(a function that puts a handler of NumPy's memory in force, a handler that may refuse, NumPy's own)."""
    core = getattr(np, "_core", None) or np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    put = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    own = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305])()
    allocator = _Handler.from_address(pointer(own, b"mem_handler")).allocator
    handler = _Handler(b"refusing", 1, _Allocator(
        allocator.context,
        type(allocator.malloc)(lambda *size: None if Allocation.refuses() else allocator.malloc(*size)),
        type(allocator.calloc)(lambda *size: None if Allocation.refuses() else allocator.calloc(*size)),
        type(allocator.realloc)(lambda *size: None if Allocation.refuses() else allocator.realloc(*size)),
        allocator.free,
    ))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # arrays may outlive this module
    return put, make(ctypes.addressof(handler), b"mem_handler", None), own


class Allocation:
    """NumPy's n-th request for memory is refused."""

    at_work = None

    def __init__(self, n):
        self.n, self.seen = n, 0

    def start(self):
        put, refusing, _ = _handlers()
        Allocation.at_work = self
        put(refusing)

    def stop(self):
        put, _, own = _handlers()
        put(own)
        Allocation.at_work = None

    @classmethod
    def refuses(cls):
        self = cls.at_work
        if self is None:
            return False
        self.seen += 1
        return self.seen == self.n


class Timer:
    """A signal arrives after n microseconds."""

    seen = None  # nobody counts

    def __init__(self, n):
        self.n, self.is_awaited = n, False

    def start(self):
        self.before = signal.signal(signal.SIGALRM, self.handle)
        self.is_awaited = True
        if self.n is not None:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * max(1, self.n))

    def handle(self, *_):
        if self.is_awaited:
            raise KeyboardInterrupt

    def stop(self):
        self.is_awaited = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


FAULTS = {
    "interrupt": functools.partial(Call, KeyboardInterrupt, False),
    "interrupt in core": functools.partial(Call, KeyboardInterrupt, True),
    "memory": functools.partial(Call, MemoryError, False),
    "memory in core": functools.partial(Call, MemoryError, True),
    "allocation": Allocation,
    "timer": Timer,
}
if np.__version__.startswith("1."):  # which itself dies where it is refused memory, or fails and does not say why
    del FAULTS["allocation"]


# ---- What is left of a model ----------------------------------------------------------------------


def go_on(kind, model, chunks):
    for first, last in chunks:
        kind.call(model, first, last)()


@functools.cache
def undisturbed(name):
    """Scores of a model of this kind that was never interrupted."""
    model = KINDS[name].make()
    go_on(KINDS[name], model, chunks())
    return KINDS[name].scores(model)


def chunks():
    ends = np.cumsum(CHUNKS).tolist()
    return list(zip([0, *ends[:-1]], ends))


def places(name, fault):
    """How many places there are for a fault while a model of this kind learns; None if nobody can count them."""
    _, fault, _ = strike(name, fault, None)
    return fault.seen


def strike(name, fault, n):
    """(model, fault, chunks that are left): learn until a fault stops it."""
    kind, left = KINDS[name], chunks()
    model, fault = kind.make(), FAULTS[fault](n)
    while left:
        first, last = left[0]
        before, learn = kind.learned_by(model), kind.call(model, first, last)
        try:
            disturbed(fault, learn)
            left.pop(0)
        except (KeyboardInterrupt, MemoryError) as error:
            learned = kind.learned_by(model) - before
            assert getattr(error, "rows_learned", learned) == learned, (name, error.rows_learned, learned)
            left[0] = first + learned, last
            return model, fault, left if first + learned < last else left[1:]
    return model, fault, left


def disturbed(fault, learn):
    fault.start()
    try:
        learn()
    finally:
        fault.stop()


def survives(name, fault, n):
    """Let the n-th fault strike, and see that nothing is lost by it; return whether there was one."""
    kind = KINDS[name]
    model, _, left = strike(name, fault, n)
    copy = pickle.loads(pickle.dumps(model))
    expected = undisturbed(name)
    for survivor in (model, copy):
        kind.check(survivor)
        go_on(kind, survivor, left)
        kind.check(survivor)
        assert kind.learned_by(survivor) == ROWS
        scores = kind.scores(survivor)
        assert np.allclose(scores, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max())), np.abs(scores - expected).max()
    if kind.is_composite:
        assert np.array_equal(model.predict(NEW), copy.predict(NEW))
    return bool(left)


def storm(count, seed, part=""):
    """Let faults strike at random places of random kinds; return how many did, and what did not survive."""
    rng, names, wrong, struck, told = np.random.default_rng(seed), [name for name in KINDS if part in name], [], 0, time.monotonic()
    counted = functools.cache(lambda name, fault: 12_000 if fault == "timer" else places(name, fault))
    for i in range(count):
        name = names[rng.integers(len(names))]
        possible = [fault for fault in FAULTS if counted(name, fault)]
        fault = possible[rng.integers(len(possible))]
        place = int(rng.integers(1, counted(name, fault) + 1))
        try:
            struck += survives(name, fault, place)
        except BaseException as error:
            wrong.append(f"{name!r}, {fault!r}, {place}: {error!r}\n{traceback.format_exc()}")
        if time.monotonic() > told + 60:
            told = time.monotonic()
            print(f"{i + 1} of {count}, {struck} with rows left, {len(wrong)} do not survive", flush=True)
    return struck, wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None  # of a generator that was interrupted
    count, seed, part = (sys.argv[1:] + ["0", ""][len(sys.argv) - 2 :])[:3]
    struck, wrong = storm(int(count), int(seed), part)
    print(*wrong[:20], f"{count} faults, {struck} with rows left, {len(wrong)} do not survive", sep="\n")
    sys.exit(1 if wrong else 0)
