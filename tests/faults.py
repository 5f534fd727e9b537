"""Fault injection: let the n-th call, or the n-th request for memory, fail while a model learns, and see what is left
of it.

`KINDS` of contracts/registry.py has a model of every kind. `places(kind, fault)` says how many places there are where a
fault can strike while such a model learns its stream, and `survives(kind, fault, n)` lets it strike at the n-th of
them: afterwards all invariants hold, the model can be pickled, and it and its copy go on to what a model has learned
that was never interrupted.

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
from contracts.registry import CHUNKS, KINDS, NEW, ROWS

# ---- Faults ---------------------------------------------------------------------------------------


class Call:
    """The n-th entry to, or return from, a function that Python sees raises an error.

    With `core`, only what the compiled loop calls counts, and not what is done before and after it.
    """

    def __init__(self, error, core, n):
        self.error, self.core, self.n, self.seen = error, core, n, 0
        self.hook = self.look  # kept: CPython 3.11 may call a hook that was freed

    def start(self):
        sys.setprofile(self.hook)

    def look(self, frame, event, _):
        if frame.f_code.co_filename == __file__ or self.core and not _in_core(frame.f_back):
            return
        self.seen += 1
        if self.seen == self.n:  # an error takes the hook away; a hook that does so itself may be called once more
            raise self.error

    def stop(self):
        sys.setprofile(None)


def _in_core(frame):
    """Whether a function was called by the compiled loop: above it is the line that started the loop."""
    while frame is not None and not frame.f_code.co_filename.endswith(("estimator.py", "state.py")):
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
    return scores_of(KINDS[name], model)


def scores_of(kind, model):
    """Scores; of a model of several members what each says that takes part: NaN for the others."""
    if not kind.is_composite:
        return kind.scores(model)
    backend, rows = model._state.backend, model._state.rows_of(kind.points(0, len(NEW), NEW), "model")
    if hasattr(backend, "members_scores"):
        scores = backend.members_scores(rows)
        scores[:, ~backend.enabled_members()] = np.nan
        return scores
    return backend.scores(rows)[0]


def check(model):
    if hasattr(getattr(model, "_state", None), "backend"):
        model._state.backend._check()
    elif hasattr(model, "_check"):
        model._check()


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
        check(survivor)
        go_on(kind, survivor, left)
        check(survivor)
        assert kind.learned_by(survivor) == ROWS
        scores = scores_of(kind, survivor)
        assert np.allclose(scores, expected, rtol=0,
                           atol=1e-12 * max(1.0, np.abs(expected).max())), np.abs(scores - expected).max()
    if kind.is_composite:
        assert np.array_equal(model.predict(NEW), copy.predict(NEW))
    return bool(left)


def storm(count, seed, part=""):
    """Let faults strike at random places of random kinds; return how many did, and what did not survive."""
    rng, names = np.random.default_rng(seed), [name for name in KINDS if part in name]
    wrong, struck, told = [], 0, time.monotonic()
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
