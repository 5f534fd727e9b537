"""The package as a whole: layers, stubs, imports, the sdist's promise."""
import ast
import importlib
import importlib.machinery
import importlib.resources
import pathlib
import shutil
import subprocess
import sys

import pytest

import onlinekernels

PACKAGE = pathlib.Path(onlinekernels.__file__).parent
SETUP = pathlib.Path(__file__).parent.parent / "setup.py"
COMPILED = sorted({path.name.split(".")[0] for suffix in importlib.machinery.EXTENSION_SUFFIXES
                   for path in (PACKAGE / "_core").glob(f"*{suffix}")})
MODULES = [name for name in COMPILED if name != "_cython"]  # that one is Cython's own
# Each layer may import the ones before it, and modules of its own layer only where named.
LAYERS = [
    ["_core"],
    ["params", "validation", "archive", "trouble"],
    ["labelvalues"],
    ["kernels", "losses", "steps", "budgets", "labels"],
    ["additive", "scaling", "target_scaling", "structures", "defaults"],
    ["plan"],
    ["state", "fitted"],
    ["learner"],
    ["algorithms"],
    ["oldfiles"],
    ["modelfile", "streams", "bounds", "evaluate", "compat"],
    ["bank"],
    ["parallel", "video"],
    ["experiments"],
    ["commandline"],
    ["__init__", "__main__"],
]


def layer_of(module):
    return next(i for i, layer in enumerate(LAYERS) if module.split(".")[0] in layer)


def imported_by(path):
    """Modules of the package that a file imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "onlinekernels":
            rest = node.module.split(".")[1:]
            yield from [".".join(rest)] if rest else [alias.name for alias in node.names]


def test_dependencies_point_one_way():
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if module in ("__main__",):
            continue
        for other in imported_by(path):
            if module.split(".")[0] == other.split(".")[0]:
                continue
            allowed = layer_of(other) < layer_of(module) or (module, other) in {("validation", "params")}
            assert allowed, f"{module} imports {other}"


def test_importing_needs_numpy_only():
    code = (
        "import sys, onlinekernels; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'sklearn', 'scipy', 'river', 'pandas', 'matplotlib', 'tqdm', 'dask', 'pytest', 'Cython'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_submodules_are_there_when_they_are_named():
    code = (
        "import sys, onlinekernels as ok; early = 'onlinekernels.evaluate' in sys.modules; "
        "print(early, ok.evaluate.tune.__name__, ok.streams.read.__name__, ok.bounds.__name__, hasattr(ok, 'nothing'))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False tune read onlinekernels.bounds False\n"


@pytest.mark.parametrize("name", MODULES)
def test_stubs_of_compiled_modules_are_in_step(name):
    stub = ast.parse((importlib.resources.files("onlinekernels._core") / f"{name}.pyi").read_text())
    module = importlib.import_module(f"onlinekernels._core.{name}")

    def names(body):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.AnnAssign):
                yield node.target.id

    def public(thing):
        return {n for n in vars(thing) if not n.startswith("_") or n == "_check"}

    stubbed = set(names(stub.body))
    here = {n for n in public(module) if getattr(getattr(module, n), "__module__", name) == module.__name__
            or n.isupper() and n.endswith(("CODES", "REASONS", "FORMS"))}
    assert stubbed == here
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            cls = getattr(module, node.name)
            assert {n for n in names(node.body) if not n.startswith("_") or n == "_check"} == public(cls)


@pytest.mark.skipif(not (SETUP.parent / "onlinekernels" / "_core").is_dir(), reason="needs the sources")
def test_metadata_needs_no_cython(tmp_path):
    """Neither metadata nor the sdist's list of files may translate anything: Cython runs when C is compiled."""
    pytest.importorskip("setuptools")
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


def test_all_public_names_exist_and_have_docstrings():
    for name in onlinekernels.__all__:
        assert getattr(onlinekernels, name).__doc__, name


def test_the_version_is_the_distributions():
    metadata = pytest.importorskip("importlib.metadata")
    assert metadata.version("onlinekernels") == onlinekernels.__version__
