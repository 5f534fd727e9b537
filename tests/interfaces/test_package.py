"""The package as a whole: layers, imports, the sdist's promise."""
import ast
import collections
import functools
import graphlib
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import onlinekernels

PACKAGE = pathlib.Path(onlinekernels.__file__).parent
SETUP = pathlib.Path(__file__).parents[2] / "setup.py"
DOCS = SETUP.with_name("docs")
CONTRIBUTING = DOCS / "reference" / "contributing.md"
# Each layer may import the ones before it, at the top of a file and inside functions.
LAYERS = [
    ["_core"],
    ["base.validation"],
    ["base.docstrings", "base.labelvalues", "base.params"],
    ["kernels", "losses", "steps", "budgets", "labels", "preprocessing"],
    ["base"],
    ["algorithms"],
    ["ensemble"],
    ["base.files"],
    ["streams", "bounds", "evaluate", "river"],
    ["bank", "decomposition"],
    ["parallel"],
    ["annotations"],
    ["__init__"],
    ["cli"],
    ["__main__"],
]


# Imports inside functions that go up: a method that hands its model to a function above.
GOES_UP = {("base.estimator", "base.files"), ("base.files", "bank")}
# Libraries that are optional, and who may import them at the top of a file; functions may.
OPTIONAL = {"river": "river"}


BY_NAME = ("importlib.import_module", "import_module", "__import__")


def layer_of(module):
    """The layer that names the module, or else the longest of its packages that one does."""
    parts = module.split(".")
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next(i for name in names for i, layer in enumerate(LAYERS) if name in layer)


@functools.cache
def files():
    """[(module, its syntax tree)] of all files of the package, without what is for pytest alone."""
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "conftest.py"]
    modules = [".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return [(module, ast.parse(path.read_text())) for module, path in zip(modules, paths, strict=True)]


@functools.cache
def is_module(name):
    """Whether a dotted name is that of a module of the package."""
    path = PACKAGE.parent / name.replace(".", "/")
    return path.is_dir() or any(path.parent.glob(path.name + ".*"))


@functools.cache
def imported_by(tree):
    """[(module, whether the import is at the top of the file)] of all imports, those inside functions too."""
    found = []
    top = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    at_the_top = {id(inner) for node in top for inner in ast.walk(node)}
    guarded = [node for node in top if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for_annotations = {id(inner) for node in guarded for inner in ast.walk(node)}
    for node in ast.walk(tree):
        names = []
        if id(node) in for_annotations:  # nothing is imported when it runs
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if is_module(name) else node.module for name in whole]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in BY_NAME:
            names = [node.args[0].value] if isinstance(node.args[0], ast.Constant) else []
        found += [(name, id(node) in at_the_top) for name in names]
    return found


def imported_modules(tree):
    """Modules of the package among them."""
    for name, at_the_top in imported_by(tree):
        first, _, rest = name.partition(".")
        if first == "onlinekernels":
            yield rest or "__init__", at_the_top


def test_dependencies_point_one_way():
    went_up = set()
    for module, tree in files():
        for other, at_the_top in imported_modules(tree):
            is_beside = module.split(".")[0] == other.split(".")[0] and layer_of(module) == layer_of(other)
            if module == "__main__" or is_beside:
                continue
            if (module, other) in GOES_UP and not at_the_top:
                went_up.add((module, other))
            else:
                assert layer_of(other) < layer_of(module), f"{module} imports {other}"
    assert went_up == GOES_UP


@pytest.mark.skipif(not CONTRIBUTING.exists(), reason="needs the sources")
def test_the_page_names_the_layers():
    table = CONTRIBUTING.read_text().partition("| layer |")[2].partition("\n\n")[0]
    assert [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table.splitlines()[2:]] == LAYERS


@pytest.mark.skipif(not (CONTRIBUTING.exists() and (PACKAGE / "_core" / "engine.pyx").exists()),
                    reason="needs the sources")
def test_pages_name_files_that_are_there():
    """Paths in code style, from the root or from the package; a module may be named without its ending."""
    for page in (DOCS / "explanation" / "internals.md", CONTRIBUTING):
        for path in re.findall(r"`([\w./]+/[\w.]*|\w+\.(?:py|pyx|pxd|h))`", page.read_text()):
            places = [root / path for root in (PACKAGE, DOCS.parent)]
            assert any(place.exists() or [*place.parent.glob(f"{place.name}.*")]
                       for place in places), f"{page.name} names {path}"


def test_no_module_imports_itself_by_way_of_others():
    graph = {}
    for module, tree in files():
        graph[module] = {other for other, _ in imported_modules(tree) if (module, other) not in GOES_UP}
    graphlib.TopologicalSorter(graph).prepare()


def test_optional_libraries_are_imported_inside_functions():
    for module, tree in files():
        for name, at_the_top in imported_by(tree):
            library = name.split(".")[0]
            is_there = library in sys.stdlib_module_names or library in ("onlinekernels", "numpy")
            may = is_there or not at_the_top or module.startswith(OPTIONAL.get(library, "nobody"))
            assert may, f"{module} imports {name}"


def test_private_names_and_imports_are_used():
    """A function, class, constant or import that nobody names again is dead."""
    text = {path: path.read_text() for path in PACKAGE.rglob("*.p*") if path.suffix in (".py", ".pyx", ".pxd")}
    everywhere = collections.Counter(word for content in text.values() for word in re.findall(r"\w+", content))
    for path in (path for path in text if path.suffix == ".py"):
        here = collections.Counter(re.findall(r"\w+", text[path]))
        for node in ast.walk(ast.parse(text[path])):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and re.match(r"_[^_]", node.name):
                asked = node.name == "_unit_test_params"  # by river
                assert asked or everywhere[node.name] > 1, f"{path.name} defines {node.name}, which is not used"
            elif isinstance(node, ast.Assign):
                for name in (target.id for target in node.targets if isinstance(target, ast.Name)):
                    used = everywhere[name] > 1 or name == "collect_ignore"  # pytest's
                    assert used, f"{path.name} sets {name}, which is not used"
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and path.name != "__init__.py":
                for name in ((alias.asname or alias.name).split(".")[0] for alias in node.names):
                    if f"import {name}  # noqa" not in text[path] and f"{name}.sparse  # noqa" not in text[path]:
                        assert here[name] > 1, f"{path.name} imports {name}, which is not used"


def test_importing_needs_numpy_only():
    code = (
        "import sys, onlinekernels; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'sklearn', 'scipy', 'river', 'pandas', 'matplotlib', 'tqdm', 'dask', 'pytest', 'Cython'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_few_programs_need_is_imported_when_it_is_named():
    code = (
        "import sys, onlinekernels as ok; "
        "rooms = 'bank', 'base.files', 'parallel', 'base.composite', 'base.estimator', 'algorithms.norma'; "
        "print([room for room in rooms if f'onlinekernels.{room}' in sys.modules], set(ok.__all__) <= set(dir(ok)), "
        "set(ok.algorithms.__all__) <= set(dir(ok.algorithms)), hasattr(ok.algorithms, 'nothing')); "
        "from onlinekernels import *; print(Bank is ok.bank.Bank, Stacking is ok.algorithms.Stacking, load is ok.load)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[] True True False\nTrue True True\n"


@pytest.mark.skipif(not (SETUP.parent / "onlinekernels" / "_core").is_dir(), reason="needs the sources")
def test_metadata_needs_no_cython(tmp_path):
    """Neither metadata nor the sdist's list of files may translate anything: Cython runs when C is compiled."""
    needed = re.search(r'"setuptools>=(\d+)"', SETUP.with_name("pyproject.toml").read_text()).group(1)
    pytest.importorskip("setuptools", minversion=needed)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(SETUP.with_name(name), tmp_path)
    shutil.copytree(SETUP.parent / "onlinekernels", tmp_path / "onlinekernels",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    code = (
        "import sys, runpy; sys.modules['Cython'] = None; sys.argv = ['setup.py', '--quiet', 'egg_info']; "
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    listed = (tmp_path / "onlinekernels.egg-info" / "SOURCES.txt").read_text().split()
    sources = (tmp_path / "onlinekernels" / "_core").glob("*.py[xdi]")
    assert {f"onlinekernels/_core/{path.name}" for path in sources} <= set(listed)
    assert not [name for name in listed if name.endswith((".c", ".so"))]
    assert not list(tmp_path.rglob("*.c"))


def test_the_version_is_the_distributions():
    metadata = pytest.importorskip("importlib.metadata")
    assert metadata.version("onlinekernels") == onlinekernels.__version__


# What libraries are called that have another name when they are imported, and what brings those that are not named


# Words of earlier editions, for which the field has others (a lock, not a turn; classes seen, not joined; ...).
OLD_WORDS = frozenset(
    "noun voice asleep heard told said says lesson room settle settled trouble tilt tilts fact facts worn renew tame "
    "newcomer newcomers victim victims tenant wishes display doubt doubts ahead knownpoints".split()
)
IDENTIFIER = re.compile(r"(?<!\w)[A-Za-z_]\w*")
TEXT = re.compile(r'"""(?:\\.|\\\n|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(?:.|\n)*?\*/')


def test_identifiers_have_the_words_of_the_field():
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".h")):
        code = TEXT.sub("", path.read_text(encoding="utf-8"))
        code = code if path.suffix == ".h" else re.sub(r"#.*", "", code)
        parts = {part.lower() for name in IDENTIFIER.findall(code) for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
        assert not parts & OLD_WORDS, (path.name, parts & OLD_WORDS)
