"""Build the compiled core.  Everything else about the package is in pyproject.toml.

Cython runs when something is compiled, and only then: metadata and the sdist need no generated C.  ONLINEKERNELS_CFLAGS
and ONLINEKERNELS_LDFLAGS come after all other flags.
"""
import glob
import os
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = "onlinekernels/_core"
HEADERS = [f"{CORE}/formulas"]
SHARED = "onlinekernels._core._cython"  # what Cython would otherwise put into each module

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "auto_pickle": False,
    "freethreading_compatible": True,  # models take turns; see _core/lock.pyx
}

# Portable code: no -march, no fast-math.  vecmath.h chooses vector instructions at load time.  Python's own flags may
# ask for debug information, which is most of what they produce.  -O2 with vectors would save a twentieth of the size,
# and posteriors and local averages would take 1.4 times as long.
UNIX = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-g0"]
GCC = ["-fno-asynchronous-unwind-tables"]
FLAGS = {"unix": UNIX, "mingw32": UNIX, "msvc": ["/O2", "/fp:precise"]}
# No symbols either, a tenth of what is installed, unless somebody wants to look inside.
STRIP = ["-Wl,-s"] if sys.platform == "linux" and "ONLINEKERNELS_CFLAGS" not in os.environ else []


def cores():
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_gcc(compiler):
    """Whether a compiler of setuptools understands the options of GCC."""
    if compiler.compiler_type != "unix":
        return False
    done = subprocess.run([compiler.compiler_so[0], "--version"], capture_output=True, text=True)
    return "Free Software Foundation" in done.stdout


class BuildCore(build_ext):
    """Run Cython and choose the flags, now that the compiler is known; use all cores."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or cores()

    def build_extensions(self):
        self.run_cython()
        knows_gcc = is_gcc(self.compiler)
        for extension in self.extensions:
            extension.extra_compile_args += FLAGS.get(self.compiler.compiler_type, [])
            if knows_gcc:
                extension.extra_compile_args += GCC
            extension.extra_compile_args += os.environ.get("ONLINEKERNELS_CFLAGS", "").split()
            extension.extra_link_args += STRIP
            extension.extra_link_args += os.environ.get("ONLINEKERNELS_LDFLAGS", "").split()
        super().build_extensions()

    def run_cython(self):
        """Replace the sources of all extensions by generated C in build/."""
        from Cython.Build import cythonize

        generated = cythonize(
            list(self.extensions),
            build_dir="build",
            nthreads=self.parallel,
            force=bool(self.force),
            shared_utility_qualified_name=SHARED,
            compiler_directives=DIRECTIVES,
        )
        for extension, made in zip(self.extensions, generated, strict=True):
            extension.sources = made.sources


def extensions():
    """A module for each .pyx, the largest first, so that no core waits for it at the end."""
    yield Extension(SHARED, [])  # Cython writes its source
    for path in sorted(glob.glob(f"{CORE}/**/*.pyx", recursive=True), key=os.path.getsize, reverse=True):
        name = path.removesuffix(".pyx").replace(os.sep, "/").replace("/", ".")
        yield Extension(name, [path], include_dirs=HEADERS, depends=glob.glob(f"{CORE}/**/*.h", recursive=True))


if __name__ == "__main__":  # Cython's processes may import this file
    setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildCore})
