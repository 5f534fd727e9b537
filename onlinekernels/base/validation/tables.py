"""Tables of all kinds as columns: data frames, dictionaries, structured arrays, lists of mixed rows, arrays."""
from collections.abc import Mapping
from operator import itemgetter

import numpy as np

from onlinekernels._core.errors import row_error
from onlinekernels.base.validation.errors import WrongFeatures, wrong_number
from onlinekernels.base.validation.points import is_sparse

__all__ = ["Table"]


class Table:
    """Columns of one length, each an array of numbers or dates or a list of anything, perhaps with names.

    Attributes
    ----------
    names : tuple or None
    columns : list
        Arrays of numbers, truth values, dates (datetime64) or durations; lists of everything else.
    categories : set of int
        Columns that say of themselves that they hold categories.
    keyed : bool
        Whether it was made of dictionaries, whose entries are in any order.

    Examples
    --------
    >>> table = Table.of([{"age": 3, "pet": "cat"}, {"pet": None}])
    >>> table.names, table.columns, len(table)
    (('age', 'pet'), [[3, None], ['cat', None]], 2)
    """

    def __init__(self, columns, length, names=None, categories=(), keyed=False):
        self.columns = columns
        self.length = length
        self.names = names
        self.categories = set(categories)
        self.keyed = keyed

    def __len__(self):
        return self.length

    def __getitem__(self, rows):
        """Some of the rows, by a slice."""
        return Table(
            [column[rows] for column in self.columns], len(range(self.length)[rows]), self.names, self.categories, self.keyed
        )

    @classmethod
    def of(cls, X, names=None, name="X"):
        """The table that X is. `names` are those of the columns in earlier tables, by which dictionaries are taken."""
        if is_sparse(X):
            raise TypeError(f"{name} is sparse, which holds numbers alone; expected rows to encode. Leave the encoder out.")
        if isinstance(X, Mapping):
            X = [X]
        if type(X).__name__ == "LazyFrame":
            raise TypeError(f"{name} is a LazyFrame, which has no rows yet; expected {name}.collect().")
        if hasattr(X, "columns") and hasattr(X, "shape"):
            table = cls._of_frame(X)
        elif isinstance(X, (list, tuple)) and len(X) and not isinstance(X[0], (str, bytes)) and not np.isscalar(X[0]):
            table = cls._of_rows(X, names, name)
        else:
            table = cls._of_array(np.asanyarray(X), name)
        for count, what in ((table.length, "sample(s)"), (len(table.columns), "feature(s)")):
            if count == 0:
                shape = table.length, len(table.columns)
                raise ValueError(f"Found array {name} with 0 {what} (shape={shape}) while a minimum of 1 is required.")
        if table.names is not None and len(set(table.names)) < len(table.names):
            raise ValueError(f"{name} must have columns of different names. Got {table.names!r} instead.")
        return table

    @classmethod
    def _of_frame(cls, X):
        """Columns of a data frame; pandas is not imported for it."""
        names, categories = tuple(map(_name, X.columns)), []
        columns = []
        for j in range(X.shape[1]):
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[X.columns[j]]
            kind = getattr(column.dtype, "kind", "O")
            if type(column.dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum"):
                categories.append(j)
                columns.append(column.astype(object).tolist() if hasattr(column, "iloc") else column.to_list())
            elif isinstance(column.dtype, np.dtype):
                columns.append(_column(column.to_numpy()))
            elif hasattr(column, "iloc") and kind in "fiub":  # nullable numbers
                columns.append(column.to_numpy(dtype=float, na_value=np.nan))
            elif hasattr(column, "iloc") and kind == "M":  # with a time zone
                columns.append(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
            else:
                columns.append(_column(column.to_numpy()))
        is_numbered = names == tuple(range(len(names)))  # as pandas does without being told
        return cls(columns, X.shape[0], None if is_numbered else names, categories)

    @classmethod
    def _of_rows(cls, rows, names, name):
        """Columns of a list of dictionaries, or of rows in one order."""
        kinds = set(map(type, rows))
        if any(hasattr(kind, "to_dict") for kind in kinds):  # rows of a data frame
            for i, row in enumerate(rows):
                if getattr(row, "ndim", 1) == 2 or hasattr(row, "columns"):
                    what = "is a data frame; expected one row, such as frame.iloc[0] or a dictionary."
                    raise row_error(TypeError, i, what, name)
            rows = [row.to_dict() if hasattr(row, "to_dict") else row for row in rows]
            kinds = set(map(type, rows))
        if isinstance(rows[0], np.void) and rows[0].dtype.names:
            return cls._of_array(np.stack(rows), name)
        if not any(issubclass(kind, Mapping) for kind in kinds):
            return cls._of_sequences(rows, kinds, name)
        names = tuple(rows[0]) if names is None else names
        known = set(names)
        for i, row in enumerate(rows):
            if type(row) is not dict and not isinstance(row, Mapping):
                what = f": expected a dictionary, like others. Got {type(row).__name__} instead."
                raise row_error(TypeError, i, what, name)
            if not row.keys() <= known:
                new = next(key for key in row if key not in known)
                what = f"has the new column {new!r}; expected columns among {_listed(names)}."
                raise row_error(ValueError, i, what, name)
        try:  # where nothing is missing, in half of the time
            columns = [list(column) for column in zip(*map(itemgetter(*names, names[0]), rows), strict=True)][:-1]
        except (KeyError, IndexError):
            columns = [[row.get(key) for row in rows] for key in names]
        return cls(columns, len(rows), tuple(names), keyed=True)

    @classmethod
    def _of_sequences(cls, rows, kinds, name):
        """Columns of a list of rows of these types, none of them a dictionary."""
        if any(issubclass(kind, np.ndarray) for kind in kinds):
            if all(isinstance(row, np.ndarray) and row.dtype.kind in "fiub" for row in rows):
                if len({row.shape for row in rows}) == 1:
                    return cls._of_array(np.stack(rows), name)
            rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
        if not kinds <= {list, tuple} or len(set(map(len, rows))) > 1:
            for i, row in enumerate(rows):
                if not isinstance(row, (list, tuple)):
                    what = f": expected a list, a tuple, an array or a dictionary. Got {type(row).__name__} instead."
                    raise row_error(TypeError, i, what, name)
                if len(row) != len(rows[0]):
                    what = f"has {len(row)} entries; expected {len(rows[0])}, like the rows before it."
                    raise row_error(ValueError, i, what, name)
        return cls([list(column) for column in zip(*rows, strict=True)], len(rows))

    @classmethod
    def _of_array(cls, X, name):
        if X.dtype.names is not None:
            if X.ndim != 1:
                raise ValueError(f"Expected a 1D structured array for {name}, got {X.ndim}D array instead.")
            return cls([_column(X[key]) for key in X.dtype.names], len(X), tuple(X.dtype.names))
        if X.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} must hold real numbers, got dtype {X.dtype}.")
        if X.ndim != 2:
            hint = (
                " Reshape your data with X.reshape(-1, 1) if it has a single feature, or X.reshape(1, -1) if it"
                " is a single example." if X.ndim == 1 else ""
            )
            raise ValueError(f"Expected 2D array for {name}, got {X.ndim}D array instead.{hint}")
        return cls([_column(X[:, j]) for j in range(X.shape[1])], len(X))

    def called(self, names):
        """The same with these names."""
        return Table(self.columns, self.length, names, self.categories, self.keyed)

    def in_order(self, names, count, owner, name="X"):
        """The columns of earlier tables, in their order; ValueError if these are others."""
        if names is None and self.keyed:
            raise TypeError(f"{name} must hold lists or arrays, as in the first call, where columns had no names. Got dictionaries "
                            "instead.")
        if self.names is None or names is None or self.names == names:
            if len(self.columns) != count:
                raise wrong_number(name, len(self.columns), owner, count)
            return self
        places = {key: j for j, key in enumerate(self.names)}
        for wrong, right, what in ((names, places, "has no column"), (places, set(names), "has the new column")):
            odd = [key for key in wrong if key not in right]
            if odd:
                raise WrongFeatures(f"{name} {what} {odd[0]!r}; {owner} is expecting the columns {_listed(names)}.")
        order = [places[key] for key in names]
        categories = {j for j, place in enumerate(order) if place in self.categories}
        return Table([self.columns[place] for place in order], self.length, names, categories, self.keyed)


def _column(values):
    """An array of numbers or dates as it is, anything else as a list."""
    if np.ma.isMaskedArray(values):  # what is masked is missing
        values = values.astype(float).filled(np.nan) if values.dtype.kind in "fiub" else values.astype(object).filled(None)
    return values if values.dtype.kind in "fiubMm" else values.tolist()


def _name(key):
    return key.item() if isinstance(key, np.generic) else key


def _listed(names, most=20):
    """Names in a sentence."""
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)
