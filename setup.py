"""Build the compiled core.  Everything else about the package is in pyproject.toml."""
import os

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODULES = [
    "vecmath", "losses", "kernels", "ring", "tree", "outputs", "rules", "dense", "expansion", "forest", "sparse", "adatron",
    "scaling", "turns", "hypothesis", "decider", "engine", "bank",
]

# Portable code: no -march, no fast-math.  vecmath.h chooses vector instructions at load time.
FLAGS = {
    "unix": ["-O3", "-fno-math-errno", "-fno-trapping-math"],
    "mingw32": ["-O3", "-fno-math-errno", "-fno-trapping-math"],
    "msvc": ["/O2", "/fp:precise"],
}


class BuildWithFlags(build_ext):
    """Choose the flags when the compiler is known."""

    def build_extensions(self):
        for extension in self.extensions:
            extension.extra_compile_args += FLAGS.get(self.compiler.compiler_type, [])
            extension.extra_compile_args += os.environ.get("ONLINEKERNELS_CFLAGS", "").split()
            extension.extra_link_args += os.environ.get("ONLINEKERNELS_LDFLAGS", "").split()
        super().build_extensions()


extensions = [
    Extension(
        f"onlinekernels._core.{name}",
        [f"onlinekernels/_core/{name}.pyx"],
        include_dirs=["onlinekernels/_core"],
        depends=[f"onlinekernels/_core/{header}.h" for header in ("vecmath", "additive", "losses", "rules", "lanes")],
    )
    for name in MODULES
]

setup(
    ext_modules=cythonize(
        extensions,
        build_dir="build",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "auto_pickle": False,
        },
    ),
    cmdclass={"build_ext": BuildWithFlags},
)
