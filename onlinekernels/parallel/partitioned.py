"""A bank over the workers of a Dask cluster."""
from __future__ import annotations

import contextlib
import copy
import json
import os
import zlib
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels.bank import Bank, as_keys, targets
from onlinekernels.base import validation
from onlinekernels.base.files import write_atomically
from onlinekernels.base.labelsets import BinaryLabels

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Examples, Self

SIGNS = BinaryLabels(np.array([-1, 1]))
MANIFEST = "checkpoint.json"
FORMAT = "onlinekernels partitioned bank"
LOST = ("Actor was lost", "contact Actor's worker")  # what Dask says of a part whose worker is


class PartitionedBank:
    """A `Bank` whose keys are spread over the workers of a Dask cluster; equal to one bank.

    Each part is a bank that lives on a worker, as a Dask actor. A call sends every row to the part that has its key,
    and all parts learn at the same time. Parts live as long as this object, its client and their workers: `save` now
    and then, and go on from there with `load`. Ctrl-C waits until parts have learned the rows that they have. Where
    some have learned theirs and others have not, as after the death of a worker, the bank cannot be saved.

    Parameters
    ----------
    bank : Bank
        With keys. What it has learned is handed over.
    client : distributed.Client
        With ``direct_to_workers=True`` rows do not go through the scheduler, and a worker that dies is missed at once.
    parts : int or None
        None: one for each worker.

    Attributes
    ----------
    n_rows_ : int
        Rows that have been learned, those before a checkpoint included; of calls that went well.

    Examples
    --------
    >>> from distributed import Client                              # doctest: +SKIP
    >>> bank = PartitionedBank(Bank(3, "novelty"), Client())        # doctest: +SKIP
    >>> scores = bank.progressive(X, keys=keys)                     # doctest: +SKIP
    >>> bank.save("sensors")                                        # doctest: +SKIP
    >>> bank = PartitionedBank.load("sensors", Client())            # doctest: +SKIP
    """

    def __init__(self, bank: Bank, client: Any, parts: int | None = None) -> None:
        if not isinstance(bank, Bank) or bank.n_models is not None:
            raise ValueError(f"bank must be a Bank with keys. Got {bank!r} instead.")
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise ValueError("client has no workers. Start some, and wait for them: client.wait_for_workers(1).")
        self.parts = len(workers) if parts is None else parts
        validation.check_integer(self, "parts", 1)
        self.n_rows_ = rows_of(bank)
        # Examples are checked, and labels encoded, once and here; the parts see -1 and +1.
        self._labels = bank._labels
        self._plan = bank._plan or bank._checked_plan()
        self._params = bank.get_params(deep=False)
        self._dtype = None if bank._models is None else bank._models.dtype
        futures = [  # on other workers, if one is lost that the scheduler does not miss yet
            client.submit(Part, one, index, self.parts, actor=True, pure=False, workers=[workers[index % len(workers)]],
                          allow_other_workers=True)
            for index, one in enumerate(_shares(bank, self.parts))
        ]
        self._actors = [future.result() for future in futures]

    # ---- As a bank ----------------------------------------------------------------------------

    def partial_fit(self, X: Examples, y: Any = None, keys: Any = None, *, classes: Any = None) -> Self:
        """As `Bank.partial_fit`; return self."""
        self._learn("partial_fit", X, y, keys, classes)
        return self

    def progressive(self, X: Examples, y: Any = None, keys: Any = None, *, classes: Any = None) -> Any:
        """As `Bank.progressive`."""
        return self._learn("progressive", X, y, keys, classes)

    def scores(self, X: Examples, keys: Any = None) -> Any:
        """As `Bank.scores`."""
        return self._ask("scores", *self._checked(X, keys))

    def predict(self, X: Examples, keys: Any = None) -> Any:
        """As `Bank.predict`."""
        answers = self._ask("predict", *self._checked(X, keys))
        return answers if self._labels is None else self._labels.decode(answers[:, None])

    def collect(self) -> Any:
        """One `Bank` with copies of all models, here."""
        bank = Bank.joined(self._of_all("whole"))
        if bank._models is not None:
            bank._models.labels = self._labels
        return bank

    # ---- Checkpoints --------------------------------------------------------------------------

    def save(self, folder: Any) -> None:
        """Let every part write its models into a folder that this process and all workers see.

        The folder holds one checkpoint, the last that was completed, whoever dies on the way. Keys must be numbers or
        strings.
        """
        import shutil

        folder = os.path.abspath(os.fspath(folder))
        os.makedirs(folder, exist_ok=True)
        before = read_manifest(folder)
        number = 0 if before is None else before["number"] + 1
        inner = os.path.join(folder, f"{number:06d}")
        shutil.rmtree(inner, ignore_errors=True)  # of a process that died here
        os.makedirs(inner)
        Bank(**self._params).save(os.path.join(inner, "bank.npz"))
        learned = sum(self._of_all("save", inner, self._labels))
        if learned != self.n_rows_:
            shutil.rmtree(inner, ignore_errors=True)
            what = "of one that did not, some parts have learned their rows and others have not"
            hint = "PartitionedBank.load goes on from the last checkpoint; collect gives what there is."
            raise RuntimeError(
                f"The parts have learned {learned} rows, and calls that went well had {self.n_rows_}: {what}. {hint}")
        manifest = {"format": FORMAT, "number": number, "parts": self.parts, "rows": self.n_rows_}
        write_atomically(os.path.join(folder, MANIFEST), lambda file: file.write(json.dumps(manifest).encode()))
        if before is not None:
            shutil.rmtree(os.path.join(folder, f"{before['number']:06d}"), ignore_errors=True)

    @staticmethod
    def load(folder: Any, client: Any, parts: Any = None) -> Any:
        """A partitioned bank that goes on from the checkpoint in a folder, on this client's workers.

        With the number of parts that was saved, which is what ``parts=None`` means, workers read their own files;
        with another the models travel through this process.
        """
        folder = os.path.abspath(os.fspath(folder))
        manifest = read_manifest(folder)
        if manifest is None:
            raise ValueError(f"{folder} holds no checkpoint of a partitioned bank: there is no {MANIFEST}.")
        inner = os.path.join(folder, f"{manifest['number']:06d}")
        if parts is None or parts == manifest["parts"]:
            bank = PartitionedBank(Bank.load(os.path.join(inner, "bank.npz")), client, manifest["parts"])
            for dtype, labels in bank._of_all("load", inner):
                bank._dtype, bank._labels = bank._dtype or dtype, bank._labels or labels
        else:
            whole = Bank.joined([Bank.load(part_path(inner, i)) for i in range(manifest["parts"])])
            bank = PartitionedBank(whole, client, parts)
        bank.n_rows_ = manifest["rows"]
        return bank

    # ---- Calls --------------------------------------------------------------------------------

    def _checked(self, X, keys):
        X = validation.check_points(X, n_features=self._plan.n_features, dtype=self._dtype, owner="Bank")
        if keys is None:
            raise ValueError("This bank has a model for each key: pass keys=...")
        if not (isinstance(keys, np.ndarray) and keys.dtype.kind in "iu" and keys.shape == (len(X),)):
            keys = as_keys(keys, len(X))  # an array of whole numbers goes as it is
        try:
            return X, keys, part_of(keys, self.parts)
        except TypeError as error:
            raise TypeError(f"keys must be hashable, such as numbers, strings or tuples: {error}.") from error

    def _learn(self, method, X, y, keys, classes):
        X, keys, indices = self._checked(X, keys)
        y, self._labels = targets(self._plan, self._labels, y, len(X), classes=classes)
        self._dtype = X.dtype
        try:
            answers = self._ask(method, X, keys, indices, y)
        except Exception:
            raise
        except BaseException as error:  # Ctrl-C: parts that have their rows learn them
            with contextlib.suppress(OSError):
                if sum(self._of_all("n_rows")) == self.n_rows_ + len(X):
                    self.n_rows_ += len(X)
                    validation.add_rows_learned(error, len(X))
            raise
        self.n_rows_ += len(X)
        return answers

    def _ask(self, method, X, keys, indices, y=None):
        """Call every part with its rows, and put the answers together; X and y have been checked."""
        few = self.parts <= 2**16
        order = np.argsort(indices.astype(np.uint16) if few else indices, kind="stable")  # of so short ones by digits
        ends = np.cumsum(np.bincount(indices, minlength=self.parts))
        rows_of_part = np.split(order, ends[:-1])
        X = X[order]

        def calls():
            for index, rows in enumerate(rows_of_part):
                if not len(rows):
                    continue
                own = keys[rows] if isinstance(keys, np.ndarray) else [keys[row] for row in rows.tolist()]
                given = {} if y is None else {"y": y[rows]}
                if y is not None and self._plan.loss.task == "binary":
                    given["classes"] = [-1, 1]
                yield index, "call", (method, X[ends[index] - len(rows) : ends[index]], {"keys": own, **given})

        answers = None
        for index, part in self._answers(calls()).items():
            if part is not None:
                answers = np.empty(len(X), dtype=part.dtype) if answers is None else answers
                answers[rows_of_part[index]] = part
        return answers

    def _of_all(self, method, *arguments):
        """What every part answers."""
        return list(self._answers((index, method, arguments) for index in range(self.parts)).values())

    def _answers(self, calls):
        """{index: what the part there answers} to calls (index, method, arguments), when all are done with theirs."""
        waiting, answers, failed = {}, {}, None
        for index, method, arguments in calls:
            try:
                waiting[index] = getattr(self._actors[index], method)(*arguments)
            except RuntimeError as error:  # its worker is lost
                failed = index, error
                break
        for index, future in waiting.items():
            try:
                answers[index] = future.result()
            except Exception as error:
                failed = failed or (index, error)
        if failed is None:
            return answers
        reason, where = failed[1], f"part {failed[0]} of {self.parts}"
        if isinstance(reason, (OSError, RuntimeError)) and any(words in str(reason) for words in LOST):
            what = f"what {where} has learned since the last save ({reason})"
            raise OSError(f"A worker was lost, or the client was closed, and {what}. PartitionedBank.load goes on from "
                          "there.") from reason
        validation.add_note(reason, f"This happened in {where}.")
        raise reason


def _shares(bank, parts):
    """A bank for each part, with the models that it gets of one that has learned."""
    if bank._models is None:
        return [copy.deepcopy(bank) for _ in range(parts)]
    keys = bank.keys_
    indices = part_of(keys, parts)
    shares = [bank.take([keys[i] for i in np.flatnonzero(indices == index)]) for index in range(parts)]
    for share in shares:
        share._models.labels = None if bank._labels is None else SIGNS
    return shares


def rows_of(bank):
    """How many rows all its models have learned."""
    return 0 if bank._models is None else int(bank.t_.sum())


def read_manifest(folder):
    """The checkpoint that a folder holds, None if there is none."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        manifest = json.loads(file.read())
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by PartitionedBank.save.")
    return manifest


def part_path(folder, index):
    return os.path.join(folder, f"part{index:05d}.npz")


class Part:
    """What a worker holds of a bank: its models, and where it stands among the parts."""

    def __init__(self, bank, index, parts):
        self.bank, self.index, self.parts = bank, index, parts

    def call(self, method, X, arguments):
        """The answer of a method of the bank; None for the bank itself, which stays here."""
        if len(self.bank) == 0 and method in ("scores", "predict"):  # what models say that have learned nothing
            novel = method == "predict" and self.bank._checked_plan().loss.task != "regression"
            return np.full(len(X), -1) if novel else np.zeros(len(X))
        answer = getattr(self.bank, method)(X, **arguments)
        return None if answer is self.bank else answer

    def n_rows(self):
        """Number of rows that were learned."""
        return rows_of(self.bank)

    def whole(self):
        """The bank."""
        return self.bank

    def save(self, folder, labels):
        """Write the models with the labels that users know; the number of rows that they have learned."""
        try:
            if self.bank._models is not None:
                self.bank._models.labels = labels
            self.bank.save(part_path(folder, self.index))
        finally:
            self._with_signs(labels)
        return rows_of(self.bank)

    def _with_signs(self, labels):
        """Let the models go on with -1 and +1 for two labels."""
        if self.bank._models is not None:
            self.bank._models.labels = None if labels is None else SIGNS

    def load(self, folder):
        """Go on with what `save` wrote; (type of the points, labels)."""
        bank = Bank.load(part_path(folder, self.index))
        if len(bank) and (part_of(bank.keys_, self.parts) != self.index).any():
            raise ValueError(f"{part_path(folder, self.index)} holds keys of another part.")
        self.bank, labels = bank, bank._labels
        self._with_signs(labels)
        return None if bank._models is None else bank._models.dtype, labels


MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: neighbours, and multiples of anything, go to different parts
PLAIN = 2**61 - 1  # whole numbers below it are their own hash


def part_of(keys, parts):
    """The part, from 0 to parts - 1, that each of n keys belongs to.

    Keys that are equal have one part. For numbers, strings, bytes and tuples of them it is the same in every process
    and on every machine; for other objects it is as stable as their ``hash``.
    """
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        keys = keys if not keys.size or -PLAIN < keys.min() and keys.max() < PLAIN else keys.tolist()
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        hashes = keys.astype(np.int64)
        hashes[hashes == -1] = -2  # as Python does
        hashes = hashes.view(np.uint64)
    else:
        hashes = np.fromiter((_stable_hash(key) & MASK for key in keys), dtype=np.uint64, count=len(keys))
    return (((hashes * np.uint64(GOLDEN)) >> np.uint64(32)) % np.uint64(parts)).astype(np.int64)


def _stable_hash(key):
    """Python's hash where that is the same everywhere: it is not for strings."""
    if isinstance(key, str):
        return zlib.crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key)
    if isinstance(key, tuple):
        mixed = len(key)
        for item in key:
            mixed = (1_000_003 * mixed ^ _stable_hash(item)) & MASK
        return mixed
    return 0 if key is None else hash(key)
