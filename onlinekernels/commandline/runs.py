"""A run of learn: a model on its way through its files."""

import math
import os
import sys
from itertools import chain

import numpy as np

from onlinekernels.algorithms import OnlineKernelClassifier
from onlinekernels.commandline import checkpoints, models, specifications
from onlinekernels.commandline.choosing import LOOKED_AT, choice, choice_by_options
from onlinekernels.commandline.figures import Figures
from onlinekernels.commandline.options import Usage, as_labels, label_options, needs_target, open_data, with_line
from onlinekernels.commandline.places import Places
from onlinekernels.commandline.reports import Reports
from onlinekernels.commandline.weights import Balance
from onlinekernels.evaluate.measures import judge
from onlinekernels.files.modelfile import load
from onlinekernels.streams import ChangedFile
from onlinekernels.streams.lines import can_reopen
from onlinekernels.validation import is_sparse

__all__ = ["Run"]


class Run:
    """A model on its way through its files, with the figures so far, and the places that it has reached.

    Parameters
    ----------
    arguments : of the command line
    interruption : Interruption
        What may end it early.
    """

    def __init__(self, arguments, interruption):
        self.arguments = arguments
        self.interruption = interruption
        self.model = models.made(arguments)  # None until the target has said which
        self.classes = None
        if arguments.classes is not None:
            self.classes = as_labels([word.strip() for word in arguments.classes.split(",")], arguments.label_type)
        weights = None if arguments.class_weight is None else specifications.class_weight(arguments.class_weight)
        self.balance = Balance() if weights == "balanced" else None
        self.class_weights = weights if isinstance(weights, dict) else None  # by the texts of labels
        self.options = {name: checkpoints.brief(getattr(arguments, name)) for name in models.DECISIVE}
        self.columns = checkpoints.names_in(self.model) if arguments.model else None
        self.places = Places((checkpoints.stream_of(self.model) or {"files": ()})["files"] if self.model is not None else ())
        self.n_skipped, self.has_said_target = 0, False
        self.seconds, self.timed = 0.0, 0
        self.is_resumed = arguments.resume and os.path.exists(arguments.save)
        kept = self._resumed(arguments.save) if self.is_resumed else None
        self.task, self.figures = None, Figures(None)
        if self.model is not None:
            self._begin(kept)
        else:
            self._choose(choice_by_options(arguments))

    def _begin(self, kept=None):
        """What depends on the model; figures go on from those that were kept."""
        self.task = self.model._current_loss().task
        self.figures = Figures(self.task, kept)
        self.saved = self.figures.count
        if self.arguments.class_weight is not None and self.task not in ("binary", "multiclass"):
            raise Usage(f"--class-weight needs a loss of classes. Got {self.model._current_loss()!r}.")
        self.reports = Reports(self.task, self.arguments.json)
        self.learned = self._t()

    def _choose(self, found):
        """Let the front door learn that was found for the target, and say so; None says that more has to be seen."""
        if found is not None:
            self.model = models.new_model(self.arguments, found.algorithm)
            self._begin()
            said = found.reason.replace("the target", "the last column", 1) if self.has_said_target else found.reason
            print(f"{type(self.model).__name__} learns {said}. --target COLUMN (or none), --effort and --algorithm choose otherwise.",
                  file=sys.stderr)

    def _resumed(self, path):
        """Take up the model in a file, and return what it knows of its stream."""
        self.model = load(path)
        stream = checkpoints.stream_of(self.model)
        if stream is None:
            hint = f"(--model {path} goes on with it.)"
            raise ValueError(f"{path} cannot be resumed: it does not remember a stream. {hint}")
        for name, now in self.options.items():
            before = stream["options"].get(name)
            if now != before:
                option = "--" + name.replace("_", "-")
                was, is_now = (f"was {value!r}" if value is not None else "was not given" for value in (before, now))
                raise Usage(f"{option} must be as it was for {path} to resume: it {was}. Now it {is_now}.")
        self.columns = stream["columns"]
        self.places = Places(stream["files"])
        if self.balance is not None:
            self.balance = Balance(stream["counts"])
        return stream

    def _t(self):
        return 0 if self.model is None or self.model._state is None else self.model.t_

    # ---- Files --------------------------------------------------------------------------------

    def learn_all(self, advance):
        """Learn all passes over all files that are still to come; `advance` hears of each chunk."""
        for epoch in range(self.arguments.epochs):
            for source in self.arguments.data:
                if self.interruption.signal is None:
                    self._learn_file(source, epoch, advance)

    def _learn_file(self, source, epoch, advance):
        if self.model is None and can_reopen(source):
            self._look_at(source)
        if epoch == 0 and not self.is_resumed:
            self.places.forget(source)
        sources = self.arguments.data if self.is_resumed else None
        record = self.places.found(source, lambda: self._opened(source), sources)
        is_known = record is not None
        if is_known and record["epoch"] > epoch:
            return
        start = record["position"] if is_known and record["epoch"] == epoch else None
        reader = self.interruption.stops(self._opened(source, start=start))
        if self.is_resumed and (epoch == 0 or start is not None):
            self.reports.file(reader.name, reader.unit, start["line"] if start else 0)
        if not is_known:
            record = self.places.new(source, reader)
        for X, y, lines in self._chunks(reader):
            if X.shape[0]:
                self._learn(X, y, reader, lines)
                self.places.reach(source, record, epoch, reader)
                self.columns, self.learned = reader.feature_names or self.columns, self._t()
                self._report_if_due()
                self._save_if_due()
                advance(X.shape[0])
        self.n_skipped += reader.n_skipped

    def _look_at(self, source):
        """Let the first rows of a file choose the model."""
        limit = LOOKED_AT if self.arguments.limit is None else min(LOOKED_AT, self.arguments.limit)
        for _, y, lines, _ in self.interruption.stops(self._opened(source, limit=limit, chunk=LOOKED_AT)).with_lines():
            if lines:
                self._choose(choice(y))
                return

    def _chunks(self, reader):
        """(X, y, lines) of the chunks; those of live input that are needed to choose a model come in one."""
        first = []
        try:
            for X, y, lines, _ in reader.with_lines():
                if self.model is not None:
                    yield X, y, lines
                elif X.shape[0]:
                    first.append((X, y, lines))
                    self._choose(choice(_joined(y for _, y, _ in first), live=True))
                    if self.model is not None:
                        yield _together(first)
            if self.model is None and first:
                self._choose(choice(_joined(y for _, y, _ in first)))
                yield _together(first)
        except ChangedFile as error:
            save = self.arguments.save
            raise ValueError(f"{error} (Without --resume, --model {save} learns it from its first row.)") from error

    def _opened(self, source, **others):
        options = label_options(self.arguments, self.model, self.task, self.classes)
        if self.task != "novelty" and needs_target(self.arguments, source):
            options["target"] = -1
            self._say_target()
        return open_data(self.arguments, source, self.model, names=self.columns, **options, **others)

    def _say_target(self):
        """Say once that the last column is what is learned; who is chosen for it says so, too."""
        if not self.has_said_target and self.model is not None:
            print("The target is the last column; --target COLUMN names another.", file=sys.stderr)
        self.has_said_target = True

    # ---- Learning -----------------------------------------------------------------------------

    def _learn(self, X, y, reader, lines):
        """Test, then train, on one chunk."""
        if self.task == "novelty":
            y = None
        elif y is None:
            raise Usage(f"{reader.name} has no labels; only novelty losses and --algorithm onlinekerneldetector need none")
        elif self.task != "regression":
            self._check_labels(y, reader, lines)
        classes = self.classes if self.model._state is None else None
        if self.model._state is None:
            models.settled(self.model, self.arguments, X, reader.feature_names)
        weights, balance = self._weights(y)
        try:
            judged, seconds = judge(self.model, X, y, classes, sample_weight=weights)
        except (FloatingPointError, ValueError) as error:
            raise with_line(error, reader, lines) from error
        self.balance = balance
        self.seconds += seconds
        self.timed += len(judged.measures)
        self.figures.add(judged, y)

    def _check_labels(self, y, reader, lines):
        """Numbers are no labels, and three labels are not two: say which loss learns them."""
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            row = np.flatnonzero(y != np.floor(y))[0]
            raise ValueError(
                f"{reader.name}, {reader.unit} {lines[row]}: the target {y[row]} is a number, and {self._loss_name()} "
                "learns classes. Use --algorithm onlinekernelregressor or --loss squared for numbers; --label-type string "
                "takes them for names."
            )
        known = self.classes if self.model._state is None else self.model.classes_
        labels = list(dict.fromkeys([*([] if known is None else known.tolist()), *y.tolist()]))
        if self.task == "binary" and len(labels) > 2 and not self._is_open(labels):
            some = ", ".join(map(repr, labels[:5])) + ", ..." * (len(labels) > 5)
            raise ValueError(
                f"{reader.name} has more than two labels, {some}, and {self._loss_name()} is for two. "
                "Use --loss multiclasshinge for many classes, --loss squared for numbers, or neither: then a model is chosen."
            )

    def _loss_name(self):
        if isinstance(self.model, OnlineKernelClassifier):
            return type(self.model).__name__
        return f"--loss {type(self.model._current_loss()).__name__.lower()}"

    def _is_open(self, labels):
        """Whether a model that has seen the label 1 alone is yet to learn what its counterpart is."""
        return self.model._state is not None and self.model._state.labels.negative_is_open and len(labels) == 3

    def _weights(self, y):
        """(weights of the examples, the balance after them)."""
        if self.balance is not None:
            return self.balance.advanced(y.tolist())
        if self.class_weights is not None:
            texts = list(self.class_weights)
            labels = as_labels(texts, "string" if y.dtype.kind == "U" else self.arguments.label_type).tolist()
            wanted = dict(zip(labels, self.class_weights.values(), strict=True))
            if self.model.class_weight != wanted:
                self.model.set_params(class_weight=wanted)
        return None, None

    # ---- Reports ------------------------------------------------------------------------------

    def _report_if_due(self):
        every = self.arguments.report
        if every is not None and self.figures.reported.count // every < self.figures.count // every:
            self._report()

    def _report(self):
        microseconds = 1e6 * self.seconds / self.timed if self.timed else math.nan
        self.reports.report(self.figures, self.model.n_terms_, microseconds)
        self.figures.report()

    def finish(self):
        """Last report, last save; the exit status."""
        if self._t() == 0:
            raise ValueError(f"{', '.join(self.arguments.data)}: no examples to learn from.")
        if not self.reports.count or self.figures.reported.count < self.figures.count:
            self._report()
        if self.arguments.save is not None:
            self._save()
        self.reports.end(self.arguments.save, self.n_skipped)
        for label in set(self.model.class_weight or ()) - set(getattr(self.model, "classes_", np.array([])).tolist()):
            print(f"--class-weight names {label!r}, which never came.", file=sys.stderr)
        if self.figures.beside().get("f1") == 0 and isinstance(self.model, OnlineKernelClassifier) and self.model.threshold is None:
            print("No row of the rarer class was found (F1 is 0): --set threshold=f1 finds some, with false alarms.", file=sys.stderr)
        return 0

    # ---- Saving -------------------------------------------------------------------------------

    def _save_if_due(self):
        every = self.arguments.checkpoint
        if every is not None and self.saved // every < self.figures.count // every:
            self._save()

    def _save(self):
        stream = {
            "options": self.options,
            **self.figures.to_dict(),
            "counts": None if self.balance is None else self.balance.counts,
            "columns": self.columns,
            "files": self.places.records,
        }
        checkpoints.save(self.model, self.arguments.save, stream)
        self.saved = self.figures.count

    def rescue(self, who=None):
        """Save what was learned before something went wrong, and say so."""
        if self.arguments.save is None or self.model is None or self._t() != self.learned:
            return ""
        if self.saved != self.figures.count:
            self._save()
        elif who is None or not self.saved:
            return ""
        return f" {who or f'The {self.figures.count} examples before it'} are saved in {self.arguments.save}."


def _joined(parts):
    """Targets, or rows, of several chunks; None where there are none."""
    parts = list(parts)
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    if is_sparse(parts[0]):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def _together(chunks):
    """Chunks (X, y, lines) as one."""
    X, y, lines = zip(*chunks, strict=True)
    return _joined(X), _joined(y), [*chain.from_iterable(lines)]
