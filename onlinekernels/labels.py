"""Labels: between what users call their classes and the numbers that losses see; label structures.

`Taxonomy` and `LabelGraph` give labels a distance Delta, and a taxonomy also a kernel kappa.
"""
import heapq

import numpy as np

from onlinekernels._core.outputs import Outputs
from onlinekernels.params import Parameterized
from onlinekernels.validation import check_column

__all__ = ["BinaryLabels", "ManyLabels", "LabelStructure", "Taxonomy", "LabelGraph"]


class _Labels:
    """What both kinds of label sets share: the short way for a single label."""

    _targets = {}
    display = None  # how the labels are shown, if not in their own order

    def encode_one(self, y):
        """Target of one label, or None if it is not known yet."""
        try:
            return self._targets.get(y)
        except TypeError:
            return None


class BinaryLabels(_Labels):
    """Two labels; the first in sorted order is -1, the second +1.

    Immutable: `encode` returns the targets and the labels to go on with, so that a refused call
    changes nothing.

    >>> labels = BinaryLabels.first_seen(np.array(["spam", "ham"]))
    >>> labels.classes
    array(['ham', 'spam'], dtype='<U4')
    >>> labels.encode(np.array(["spam"]))[0]
    array([1.])
    """

    def __init__(self, classes, negative_is_open=False):
        self.classes = classes
        # Only the label 1 has been seen: its counterpart may turn out to be -1 or 0.
        self.negative_is_open = negative_is_open
        self._targets = dict(zip(classes.tolist(), (-1.0, 1.0)))
        if negative_is_open:
            del self._targets[-1]  # not for the short way: the label settles the question

    @classmethod
    def first_seen(cls, y, classes=None):
        """The labels that `classes` names or, without it, that the first y shows."""
        if classes is not None:
            classes = _distinct(_classes_column(classes), "classes")
            if len(classes) != 2:
                raise ValueError(
                    f"classes must hold two different labels for a two-class loss. Got {len(classes)}: "
                    f"{_shown(classes)}."
                )
            return cls(classes)
        seen = _distinct(y)
        if len(seen) == 2:
            return cls(seen)
        if len(seen) > 2:
            kind = "Unknown label type: continuous" if _is_continuous(seen) else "Only binary classification is supported"
            raise ValueError(
                f"{kind}. y must hold two labels for a two-class loss. Got "
                f"{len(seen)}: {_shown(seen)}. For many classes use a loss such as MulticlassHinge()."
            )
        label = seen[0]
        if seen.dtype.kind == "b":
            return cls(np.array([False, True]))
        if seen.dtype.kind in "iuf" and label in (-1, 0, 1):
            if label == 1 and seen.dtype.kind != "u":
                return cls(np.array([-1, 1], dtype=seen.dtype), negative_is_open=True)
            return cls(np.array([-1, 1] if label == -1 else [0, 1], dtype=seen.dtype))
        raise ValueError(
            f"y holds one class only, {_shown(seen)}, and two are needed: pass classes=[...] with both labels "
            "to the first partial_fit. (Labels -1/1, 0/1 and booleans need no classes.)"
        )

    def encode(self, y):
        """(targets -1.0 or +1.0, labels to go on with); ValueError for an unknown label."""
        if len(y) == 1:
            target = self.encode_one(y[0])
            if target is not None:
                return np.array([target]), self
        positive, negative = _equals(y, self.classes[1]), _equals(y, self.classes[0])
        if self.negative_is_open:
            zero = _equals(y, 0)
            if zero.any() != negative.any():
                return self.settled(0 if zero.any() else -1).encode(y)
        known = positive | negative
        if not known.all():
            raise ValueError(
                f"y contains an unknown label, {_shown(y[~known][:1])}; expected one of {_shown(self.classes)}."
            )
        return np.where(positive, 1.0, -1.0), self

    def decode(self, scores):
        """Labels of scores: the second class where the score is positive."""
        return self.classes[(scores[:, 0] > 0).astype(np.intp)]

    def settled(self, negative):
        """The labels, now that the counterpart of 1 is known."""
        return BinaryLabels(np.array([negative, 1], dtype=self.classes.dtype))

    def as_learned(self, before, targets, joined):
        """These labels, or those from before if no target that was learned has settled the question."""
        is_open = before is not None and before.negative_is_open
        return before if is_open and not (targets < 0).any() else self

    def agreeing_with(self, classes):
        """These labels, or the ones that `classes` settles; None if they differ."""
        named = _distinct(_classes_column(classes), "classes").tolist()
        if self.negative_is_open and named in ([-1, 1], [0, 1]):
            return self.settled(named[0])
        return self if self.classes.tolist() == named else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"classes": self.classes.tolist(), "dtype": self.classes.dtype.str, "open": self.negative_is_open}

    @classmethod
    def restore(cls, state):
        classes = np.array(state["classes"], dtype=np.dtype(state["dtype"]))
        if classes.shape != (2,) or classes[0] == classes[1]:
            raise ValueError("there are not two different labels")
        if state["open"] and classes.tolist() != [-1, 1]:
            raise ValueError("the labels cannot be open")
        return cls(classes, bool(state["open"]))


class ManyLabels(_Labels):
    """Any number of hashable labels; new ones may join unless the set is fixed.

    Immutable, like `BinaryLabels`. A target is the label's place in the order of appearance, or in
    the order of `classes` where they were given. Users may see them in another order, `display`.

    >>> labels = ManyLabels.first_seen(np.array(["b", "a", "b"]))
    >>> targets, labels = labels.encode(np.array(["b", "a", "c"]))
    >>> targets.tolist(), labels.classes.tolist()
    ([0.0, 1.0, 2.0], ['b', 'a', 'c'])
    """

    def __init__(self, order, fixed, display=None):
        self.order = order
        self.fixed = fixed
        self.display = display
        self._targets = {label: float(i) for i, label in enumerate(order)}
        self._classes = None

    @classmethod
    def first_seen(cls, y, classes=None, structure=None):
        """No labels yet; or those of `classes`, or of a label structure, and no others."""
        if classes is not None:
            classes = list(dict.fromkeys(_hashable(_classes_column(classes).tolist(), "classes")))
            if len(classes) < 2:
                raise ValueError(f"classes must hold at least two different labels. Got {_shown_list(classes)}.")
        if structure is not None:
            known = structure.names()
            if classes is None:
                return cls(list(known), True)
            nodes = set(structure.nodes())
            missing = [label for label in classes if label not in nodes]
            if missing:
                raise ValueError(f"classes contains {missing[0]!r}, which is not in {type(structure).__name__}.")
        if classes is not None:
            try:
                return cls(sorted(classes), True)
            except TypeError:
                return cls(classes, True)
        return cls([], False)

    @property
    def classes(self):
        """The labels as an array, in the order that users see."""
        if self._classes is None:
            display = range(len(self.order)) if self.display is None else self.display
            self._classes = _as_label_array([self.order[i] for i in display])
        return self._classes

    def in_sorted_order(self):
        """The same labels, shown in sorted order where there is one."""
        try:
            display = sorted(range(len(self.order)), key=self.order.__getitem__)
        except TypeError:
            return self
        return ManyLabels(self.order, self.fixed, display)

    def encode(self, y):
        """(indices, labels to go on with); ValueError for a label outside a fixed set."""
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity; expected labels.")
        if _is_continuous(y):
            raise ValueError(
                f"Unknown label type: continuous. y must hold labels for a classification loss. Got {_shown(y)}."
            )
        labels = _hashable(y.tolist(), "y")
        targets = [self._targets.get(label) for label in labels]
        if None not in targets:
            return np.array(targets), self
        if self.fixed:
            unknown = labels[targets.index(None)]
            raise ValueError(
                f"y contains an unknown label, {unknown!r}; expected one of {_shown_list(self.order)}."
            )
        order = list(dict.fromkeys([*self.order, *labels]))
        display = None if self.display is None else [*self.display, *range(len(self.order), len(order))]
        return ManyLabels(order, False, display).encode(y)

    def decode(self, scores):
        """The label with the largest score; among equals the first in order."""
        if scores.shape[1] == 0:
            raise ValueError("No label has been learned yet.")
        best = scores.argmax(axis=1)
        return self.classes[best if self.display is None else np.argsort(self.display)[best]]

    def as_learned(self, before, targets, joined):
        """The labels that have joined."""
        if self.fixed or joined == len(self.order):
            return self
        display = None if self.display is None else [place for place in self.display if place < joined]
        return ManyLabels(self.order[:joined], False, display)

    def agreeing_with(self, classes):
        """These labels, or None if `classes` names others."""
        return self if set(self.order) == set(_classes_column(classes).tolist()) else None

    def state(self):
        """Plain values from which `restore` makes the same labels."""
        return {"order": list(self.order), "fixed": self.fixed, "display": self.display}

    @classmethod
    def restore(cls, state):
        if len(set(state["order"])) != len(state["order"]):
            raise ValueError("a label appears twice")
        display = state["display"]
        if display is not None and sorted(display) != list(range(len(state["order"]))):
            raise ValueError("the labels are not shown once each")
        return cls(list(state["order"]), bool(state["fixed"]), display)


# ---- Structures --------------------------------------------------------------------------------


class LabelStructure(Parameterized):
    """Base of taxonomies and label graphs."""

    def validate(self):
        """Raise ValueError if the structure makes no sense."""
        self.nodes()

    def names(self):
        """The labels that y may hold, in order."""
        return self.nodes()


class Taxonomy(LabelStructure):
    """A tree of labels, V 6.4.

    Its distance Delta (62) is half the number of nodes that are ancestors of exactly one of two
    labels; its kernel kappa (65) counts their common ancestors. Every node is its own ancestor, and
    the root counts. y holds leaves, or whatever `classes` names.

    Parameters
    ----------
    parents : dict
        {child: parent}; the node that is no child is the root.
    labels : list or None
        The nodes that y may hold, in order; None means the leaves.

    Examples
    --------
    >>> drives = Taxonomy({"hdd": "drives", "cdrom": "drives", "drives": "root", "cables": "root"})
    >>> drives.names()
    ['hdd', 'cdrom', 'cables']
    >>> drives.distance("hdd", "cdrom"), drives.distance("hdd", "cables")
    (1.0, 1.5)
    >>> drives.kernel("hdd", "cdrom"), drives.kernel("hdd", "cables")
    (2.0, 1.0)
    """

    def __init__(self, parents, labels=None):
        self.parents = parents
        self.labels = labels

    @classmethod
    def from_paths(cls, labels, split=lambda label: label.split("/")):
        """A taxonomy from labels that are paths; `split` gives the parts of one, from the top down.

        >>> tree = Taxonomy.from_paths(["D05/C", "D05/B", "D06/M"])
        >>> tree.distance("D05/C", "D05/B"), tree.distance("D05/C", "D06/M")
        (1.0, 2.0)
        """
        labels = list(dict.fromkeys(labels))
        paths = {tuple(split(label)): label for label in labels}
        if labels and all(len(path) == 1 for path in paths):
            raise ValueError(
                f"None of the labels of from_paths has a part above it, {_shown_list(labels)}; expected paths. "
                'Where parts are not separated by "/", give split=.'
            )
        root = "/"
        while root in labels:
            root += "/"
        parents = {}
        for path in paths:
            above = root
            for depth in range(1, len(path) + 1):
                part = path[:depth]
                node = paths[part] if part in paths else "/".join(str(p) for p in part) + "/"
                parents[node] = above
                above = node
        return cls(parents, labels)

    def nodes(self):
        """All nodes, parents before children."""
        if not isinstance(self.parents, dict) or not self.parents:
            raise ValueError(
                f"The 'parents' parameter of Taxonomy must be a dictionary {{child: parent}}. Got {self.parents!r}."
            )
        roots = list(dict.fromkeys(p for p in self.parents.values() if p not in self.parents))
        if len(roots) != 1:
            what = f"{len(roots)} roots: {_shown_list(roots)}" if roots else "a cycle and no root"
            raise ValueError(f"A Taxonomy must be a tree with one root. Got {what}.")
        children = {}
        for child, parent in self.parents.items():
            children.setdefault(parent, []).append(child)
        order = [roots[0]]
        for node in order:
            order.extend(children.get(node, ()))
        reached = set(order)
        if len(order) != len(self.parents) + 1:
            stray = next(node for node in self.parents if node not in reached)
            raise ValueError(f"A Taxonomy must be a tree: {stray!r} is on a cycle.")
        if self.labels is not None:
            unknown = [label for label in self.labels if label not in reached]
            if unknown:
                raise ValueError(f"The label {unknown[0]!r} is not a node of the Taxonomy.")
        return order

    def names(self):
        nodes = self.nodes()
        if self.labels is not None:
            return list(self.labels)
        inner = set(self.parents.values())
        return [node for node in self.parents if node not in inner] or nodes

    def outputs(self, order=None):
        """The structure for the engine."""
        nodes = self.nodes()
        place = {node: i for i, node in enumerate(nodes)}
        parent = [place[self.parents[node]] if node in self.parents else -1 for node in nodes]
        order = self.names() if order is None else order
        _check_known(order, place, "Taxonomy")
        return Outputs(len(order), parent=parent, place=[place[label] for label in order])

    def distance(self, a, b):
        """Delta(a, b), V (62)."""
        return float(self.outputs([a, b]).distances_from(0)[1])

    def kernel(self, a, b):
        """kappa(a, b), V (65)."""
        return float(self.outputs([a, b]).kappa_times([0.0, 1.0])[0])


class LabelGraph(LabelStructure):
    """Labels as nodes of a weighted graph: Delta is the length of the shortest path, V 4.2.2.

    The label kernel is the identity.

    Parameters
    ----------
    edges : list of (a, b, weight)
        Undirected; weights are not negative; the graph is connected.

    Examples
    --------
    >>> line = LabelGraph([("low", "middle", 1.0), ("middle", "high", 1.0)])
    >>> line.distance("low", "high")
    2.0
    """

    def __init__(self, edges):
        self.edges = edges

    def nodes(self):
        """All nodes, in the order of the edges."""
        try:
            edges = [(a, b, float(weight)) for a, b, weight in self.edges]
        except (TypeError, ValueError) as error:
            raise ValueError(
                "The 'edges' parameter of LabelGraph must be a list of (a, b, weight). "
                f"Got {self.edges!r} instead."
            ) from error
        if not edges:
            raise ValueError("The 'edges' parameter of LabelGraph must hold at least one edge. Got none.")
        for a, b, weight in edges:
            if not 0 <= weight < np.inf:
                raise ValueError(f"The edge ({a!r}, {b!r}) of LabelGraph must have a weight of at least 0. Got {weight}.")
        return list(dict.fromkeys(node for a, b, _ in edges for node in (a, b)))

    def _neighbours(self):
        neighbours = {}
        for a, b, weight in self.edges:
            neighbours.setdefault(a, []).append((b, float(weight)))
            neighbours.setdefault(b, []).append((a, float(weight)))
        return neighbours

    def distances(self, order=None):
        """Matrix of Delta between labels, by Dijkstra's algorithm from each."""
        nodes = self.nodes()
        order = nodes if order is None else order
        neighbours = self._neighbours()
        _check_known(order, neighbours, "LabelGraph")
        return np.array([[row[label] for label in order] for row in (_dijkstra(neighbours, a, nodes) for a in order)])

    def validate(self):
        self.distances(self.nodes()[:1])

    def outputs(self, order=None):
        """The structure for the engine."""
        table = self.distances(order)
        return Outputs(len(table), table=table)

    def distance(self, a, b):
        """Delta(a, b)."""
        return float(self.distances([a, b])[0, 1])


def _check_known(labels, nodes, where):
    for label in labels:
        if label not in nodes:
            raise ValueError(f"The label {label!r} is not a node of the {where}.")


def _dijkstra(neighbours, start, nodes):
    """Shortest path lengths from one node to all; ValueError if some cannot be reached."""
    lengths, queue = {}, [(0.0, 0, start)]
    tie = 1
    while queue:
        length, _, node = heapq.heappop(queue)
        if node in lengths:
            continue
        lengths[node] = length
        for other, weight in neighbours[node]:
            if other not in lengths:
                heapq.heappush(queue, (length + weight, tie, other))
                tie += 1
    for node in nodes:
        if node not in lengths:
            raise ValueError(f"A LabelGraph must be connected: there is no path from {start!r} to {node!r}.")
    return lengths


# ---- Small things ------------------------------------------------------------------------------


def _equals(y, label):
    """Elementwise y == label as an array, also where numpy has no such comparison."""
    same = y == label
    return same if isinstance(same, np.ndarray) and same.shape == y.shape else np.zeros(len(y), dtype=bool)


def _classes_column(classes):
    """The argument `classes` as an array: any collection of labels."""
    if isinstance(classes, (set, frozenset, range, dict)):
        classes = list(classes)
    if not hasattr(classes, "__len__") or isinstance(classes, (str, bytes)):
        raise ValueError(f"classes must be a list of labels. Got {classes!r} instead.")
    return label_column(classes, len(classes), "classes")


def label_column(y, n, name="y"):
    """Labels as an array that keeps what each of them is: mixed kinds and tuples stay objects."""
    if isinstance(y, (list, tuple)):
        kinds = {type(label) for label in y}
        if kinds - {int, float, bool} and (len(kinds) > 1 or kinds & {tuple, frozenset}):
            array = np.empty(len(y), dtype=object)
            for i, label in enumerate(y):
                array[i] = label
            y = array
    y = check_column(y, n, name)
    if y.dtype == object:
        for label in y:
            if _is_missing(label):
                raise ValueError(f"Input {name} contains NaN or None, {label!r}; expected labels.")
    return y


def _is_missing(label):
    """Whether a label is None, NaN, or pandas' idea of these."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA; an array, which is no label either
        return not isinstance(label, np.ndarray)


def _is_continuous(y):
    """Numbers that are not whole are targets of a regression, not labels."""
    return y.dtype.kind == "f" and bool((y != np.floor(y)).any())


def _distinct(y, name="y"):
    """Sorted distinct labels; NaN is not a label."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; expected labels.")
    try:
        return np.unique(y)
    except TypeError as error:
        raise ValueError(
            f"{name} must hold labels of one kind that can be sorted, such as numbers or strings."
        ) from error


def _hashable(labels, name):
    for label in labels:
        try:
            hash(label)
        except TypeError as error:
            raise ValueError(f"{name} must hold hashable labels. Got {label!r} instead.") from error
    return labels


def _as_label_array(labels):
    """Labels of one plain kind as an ordinary array, others as an array of objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {int, float, str, bool}:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _shown(labels):
    return _shown_list(labels.tolist())


def _shown_list(labels, most=5):
    return ", ".join(repr(label) for label in labels[:most]) + (", ..." if len(labels) > most else "")
