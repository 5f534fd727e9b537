"""Label structures: `Taxonomy`, `LabelGraph` and `Labels` give labels a distance Delta and a kernel kappa."""
from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlinekernels._core.functions import GraphOutputs, MatrixOutputs, TaxonomyOutputs
from onlinekernels.base.labelvalues import plain, shown_list
from onlinekernels.base.params import Parameterized
from onlinekernels.base.validation import bad_parameter

if TYPE_CHECKING:
    from onlinekernels.annotations import Any, Sequence

__all__ = ["LabelStructure", "Taxonomy", "LabelGraph", "Labels"]


class LabelStructure(Parameterized):
    """Base of all label structures."""

    nodes: Any  # all labels, and where labels are grouped the groups

    def validate(self) -> None:
        """Raise ValueError if the structure is not valid."""
        self.nodes()

    def names(self) -> Any:
        """The labels that y may hold, in order."""
        return self.nodes()

    def kernel_part(self) -> Any:
        """What there is to know about its kernel; None if that is the identity."""
        return None

    def resolved(self) -> Any:
        """The same structure, of values only."""
        return self


@dataclass(eq=False, repr=False)
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

    References
    ----------
    {V}

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

    parents: dict[Any, Any]
    labels: Sequence[Any] | None = None

    @classmethod
    def from_paths(cls, labels: Any, split: Any = lambda label: label.split("/")) -> Any:
        """A taxonomy from labels that are paths; `split` gives the parts of one, from the top down.

        >>> tree = Taxonomy.from_paths(["D05/C", "D05/B", "D06/M"])
        >>> tree.distance("D05/C", "D05/B"), tree.distance("D05/C", "D06/M")
        (1.0, 2.0)
        """
        labels = list(dict.fromkeys(labels))
        paths: dict[Any, tuple[Any, ...]] = {}
        for label in labels:
            path = tuple(split(label))
            if not path:
                raise ValueError(f"The label {label!r} of from_paths has no path: split gave no part of it.")
            if path in paths:
                raise ValueError(f"The labels {paths[path]!r} and {label!r} of from_paths have one path, {path!r}.")
            paths[path] = label
        if labels and all(len(path) == 1 for path in paths):
            raise ValueError(
                f"None of the labels of from_paths has a part above it, {shown_list(labels)}; expected paths. "
                'Where parts are not separated by "/", give split=.'
            )
        nodes = dict.fromkeys(path[:depth] for path in paths for depth in range(len(path)))  # () is the root
        names = {**_names_of_inner_nodes([node for node in nodes if node not in paths], labels), **paths}
        parents = {}
        for path in paths:
            for depth in range(1, len(path) + 1):
                parents[names[path[:depth]]] = names[path[: depth - 1]]
        return cls(parents, labels)

    def nodes(self) -> Any:
        """All nodes, parents before children."""
        if not isinstance(self.parents, dict) or not self.parents or not _are_hashable(self.parents.values()):
            raise ValueError(f"The 'parents' parameter of Taxonomy must be a dictionary {{child: parent}}. Got "
                             f"{self.parents!r}.")
        roots = list(dict.fromkeys(p for p in self.parents.values() if p not in self.parents))
        if len(roots) != 1:
            what = f"{len(roots)} roots: {shown_list(roots)}" if roots else "a cycle and no root"
            raise ValueError(f"A Taxonomy must be a tree with one root. Got {what}.")
        children: dict[Any, list[Any]] = {}
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
            self._check_labels(reached)
        return order

    def _check_labels(self, nodes):
        labels = self.labels
        is_list = hasattr(labels, "__len__") and not isinstance(labels, (str, bytes))
        if not is_list or len(labels) == 0 or not _are_hashable(labels):
            raise ValueError(f"The 'labels' parameter of Taxonomy must be None or a list of nodes. Got {labels!r}.")
        _check_known(labels, nodes, "Taxonomy")
        _check_distinct(labels, "Taxonomy")

    def names(self) -> Any:
        nodes = self.nodes()
        if self.labels is not None:
            return list(self.labels)
        inner = set(self.parents.values())
        return [node for node in self.parents if node not in inner] or nodes

    def outputs(self, order: Any = None) -> Any:
        """The structure for the engine."""
        nodes = self.nodes()
        index = {node: i for i, node in enumerate(nodes)}
        parent = [index[self.parents[node]] if node in self.parents else -1 for node in nodes]
        order = self.names() if order is None else order
        _check_known(order, index, "Taxonomy")
        return TaxonomyOutputs(parent, [index[label] for label in order])

    def kernel_part(self) -> Any:
        return self

    def distance(self, a: Any, b: Any) -> Any:
        """Delta(a, b), V (62)."""
        return float(self.outputs([a, b]).distances_from(0)[1])

    def kernel(self, a: Any, b: Any) -> Any:
        """kappa(a, b), V (65)."""
        return float(self.outputs([a, b]).kappa_times([0.0, 1.0])[0])


@dataclass(eq=False, repr=False)
class LabelGraph(LabelStructure):
    """Labels as nodes of a weighted graph: Delta is the length of the shortest path, V 4.2.2.

    The label kernel is the identity.

    Parameters
    ----------
    edges : list of (a, b, weight)
        Undirected; weights are not negative; the graph is connected.

    References
    ----------
    {V}

    Examples
    --------
    >>> line = LabelGraph([("low", "middle", 1.0), ("middle", "high", 1.0)])
    >>> line.distance("low", "high")
    2.0
    """

    edges: Sequence[tuple[Any, Any, float]]

    def nodes(self) -> Any:
        """All nodes, in the order of the edges."""
        try:
            edges = [(a, b, float(weight)) for a, b, weight in self.edges]
            hash(tuple(edges))
        except (TypeError, ValueError) as error:
            raise ValueError("The 'edges' parameter of LabelGraph must be a list of (a, b, weight). "
                             f"Got {self.edges!r} instead.") from error
        if not edges:
            raise ValueError("The 'edges' parameter of LabelGraph must hold at least one edge. Got none.")
        for a, b, weight in edges:
            if not 0 <= weight < np.inf:
                raise ValueError(f"The edge ({a!r}, {b!r}) of LabelGraph must have a weight of at least 0. Got "
                                 f"{weight}.")
        return list(dict.fromkeys(node for a, b, _ in edges for node in (a, b)))

    def _neighbours(self):
        neighbours = {}
        for a, b, weight in self.edges:
            neighbours.setdefault(a, []).append((b, float(weight)))
            neighbours.setdefault(b, []).append((a, float(weight)))
        return neighbours

    def distances(self, order: Any = None) -> Any:
        """Matrix of Delta between labels, by Dijkstra's algorithm from each."""
        nodes = self.nodes()
        order = nodes if order is None else order
        neighbours = self._neighbours()
        _check_known(order, neighbours, "LabelGraph")
        return np.array([[row[label] for label in order] for row in (_dijkstra(neighbours, a, nodes) for a in order)])

    def validate(self) -> None:
        self.distances(self.nodes()[:1])

    def outputs(self, order: Any = None) -> Any:
        """The structure for the engine."""
        return GraphOutputs(self.distances(order))

    def distance(self, a: Any, b: Any) -> Any:
        """Delta(a, b)."""
        return float(self.distances([a, b])[0, 1])


@dataclass(eq=False, repr=False)
class Labels(LabelStructure):
    """Labels with a distance and a kernel of your own, V 4.2.2.

    A callable is asked once for each pair of labels, at the first fit; the model keeps, and saves, the matrix.

    Parameters
    ----------
    labels : list
        The labels that y may hold, in order.
    distance : matrix, callable or None
        Delta: how bad it is to predict the label of the column where that of the row is right, or a function of both.
        Not negative, and 0 on the diagonal. None is 1 between different labels.
    kernel : matrix, callable or None
        kappa: what labels have in common, a symmetric positive semidefinite matrix or a function of two labels. None is
        the identity.

    References
    ----------
    {V}

    Examples
    --------
    >>> from onlinekernels import NORMA, Labels
    >>> sizes = Labels(["S", "M", "L"], distance=[[0, 1, 3], [1, 0, 1], [3, 1, 0]])
    >>> NORMA("graph_hinge", labels=sizes).fit([[0.0], [1.0], [2.0]], ["S", "M", "L"]).predict([[2.0]])
    array(['L'], dtype='<U1')
    >>> tens = Labels([1, 2, 10, 11], kernel=lambda a, b: (a == b) + (a // 10 == b // 10))
    >>> tens.kernels()
    array([[2., 1., 0., 0.],
           [1., 2., 0., 0.],
           [0., 0., 2., 1.],
           [0., 0., 1., 2.]])
    """

    labels: Sequence[Any]
    distance: Any = None
    kernel: Any = None

    def nodes(self) -> Any:
        """All labels, in order."""
        labels = self.labels
        is_list = hasattr(labels, "__len__") and not isinstance(labels, (str, bytes, dict))
        if not is_list or len(labels) < 2 or not _are_hashable(labels):
            raise bad_parameter(self, "labels", "a list of at least two labels", labels)
        _check_distinct(labels, "Labels")
        return [plain(label) for label in labels]

    def distances(self, order: Any = None) -> Any:
        """Matrix of Delta between labels: rows are right, columns are predicted."""
        return self._matrix("distance", lambda n: 1.0 - np.eye(n), order)

    def kernels(self, order: Any = None) -> Any:
        """Matrix of kappa between labels."""
        return self._matrix("kernel", np.eye, order)

    def _matrix(self, name, default, order=None):
        labels, given = self.nodes(), getattr(self, name)
        n = len(labels)
        if given is None:
            matrix = default(n)
        else:
            try:
                values = [[given(a, b) for b in labels] for a in labels] if callable(given) else given
                matrix = np.array(values, dtype=float)
            except (TypeError, ValueError, OverflowError) as error:
                raise bad_parameter(self, name, f"a matrix of {n} x {n} numbers, a callable or None", given) from error
            if matrix.shape != (n, n) or not np.isfinite(matrix).all():
                raise bad_parameter(self, name, f"a matrix of {n} x {n} finite numbers, a callable or None", given)
        if order is None:
            return matrix
        index = {label: i for i, label in enumerate(labels)}
        _check_known(order, index, "Labels")
        chosen = [index[label] for label in order]
        return matrix[np.ix_(chosen, chosen)]

    def validate(self) -> None:
        Delta, kappa = self.distances(), self.kernels()
        if Delta.min() < 0 or Delta.diagonal().any():
            raise bad_parameter(self, "distance", "at least 0, and 0 from each label to itself", Delta)
        largest = np.abs(kappa).max()
        if np.abs(kappa - kappa.T).max() > 1e-10 * largest:
            raise bad_parameter(self, "kernel", "symmetric", kappa)
        try:
            np.linalg.cholesky(kappa + (1e-10 * largest + 1e-300) * np.eye(len(kappa)))
        except np.linalg.LinAlgError as error:
            raise bad_parameter(self, "kernel", "positive semidefinite", kappa) from error

    def outputs(self, order: Any = None) -> Any:
        """The structure for the engine."""
        Delta = self.distances(order)
        return GraphOutputs(Delta) if self.kernel is None else MatrixOutputs(Delta, self.kernels(order))

    def kernel_part(self) -> Any:
        return None if self.kernel is None else Labels(self.nodes(), kernel=self.kernels())

    def resolved(self) -> Any:
        return Labels(self.nodes(),
                      None if self.distance is None else self.distances(),
                      None if self.kernel is None else self.kernels())


def _names_of_inner_nodes(nodes, taken):
    """A name for each node that is no label: its parts and a slash, and more slashes where another has that name."""
    plain = {node: "/".join(map(str, node)) + "/" for node in nodes}
    taken = set(taken)
    reserved = taken | set(plain.values())
    names = {}
    for node, name in plain.items():
        while name in taken or name != plain[node] and name in reserved:
            name += "/"
        taken.add(name)
        names[node] = name
    return names


def _are_hashable(labels):
    try:
        return all(hash(label) is not None for label in labels)
    except TypeError:
        return False


def _check_distinct(labels, where):
    seen = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"The 'labels' parameter of {where} must hold each label once. Got {label!r} twice.")
        seen.add(label)


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
