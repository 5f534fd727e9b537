"""Examples that need a library which is not there are left out; an error on import is an error everywhere else."""
from importlib.util import find_spec

NEEDS = {"river": "river"}

collect_ignore = [module for module, library in NEEDS.items() if find_spec(library) is None]
