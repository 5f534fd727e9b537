"""Pages whose examples need a library that is not there are left out."""
from importlib.util import find_spec

NEEDS = {"river.md": ("river", "pandas"), "sparse.md": ("scipy",), "parallel.md": ("dask", "distributed", "pandas")}

collect_ignore = [page for page, libraries in NEEDS.items() if not all(map(find_spec, libraries))]
