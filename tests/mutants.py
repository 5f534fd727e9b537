"""Do the tests notice?  The faults of mutants.txt, one at a time, against the tests that should catch them.

    python tests/mutants.py WHERE                        # all faults, in a copy of the tree that is built in WHERE
    python tests/mutants.py WHERE --only 3,17 --slow     # some, with the tests that are marked slow
    python tests/mutants.py WHERE --tests DIR            # the tests of another edition
    python tests/mutants.py WHERE --sample 40            # so many, drawn at random
    python tests/mutants.py --stale                      # only say which are stale

A fault replaces an expression, or a line, by another one.  All of them are in the copy at once, each asleep until
ONLINEKERNELS_FAULT has its number, so that one build serves all.  A fault whose text is not in one place, or whose
tests are gone, is stale: write it anew.  The copy without any fault must pass; what it does not pass is told first.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 900  # seconds for the tests of one fault; who hangs is caught


def read(path):
    """[(number, file, text, what it becomes, tests that should notice)] of a list of faults."""
    faults, name, tests = [], None, []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name, _, noticed = line[1:-1].partition(": ")
            tests = noticed.split()
        elif line and not line.startswith("#"):
            faults.append((len(faults) + 1, name, *line.split(" -> "), tests))
    return faults


NUMBERED = read(ROOT / "tests" / "mutants.txt")
HEADER = """#pragma once
#include <stdlib.h>
static inline int ok_fault(int number)
{
    static int awake = -1;
    if (awake < 0) {
        const char *text = getenv("ONLINEKERNELS_FAULT");
        awake = text ? atoi(text) : 0;
    }
    return awake == number;
}
"""
IN_CYTHON = 'cdef extern from "faults.h" nogil:\n    bint ok_fault(int number) noexcept\n'


def places(text, old):
    """Where a source has this text, whatever white space is between its words."""
    return [found.span() for found in re.finditer(r"\s+".join(map(re.escape, old.split())), text)]


def with_fault(text, number, old, new, language):
    """A source with one more fault that sleeps in it; None if there is no place for it."""
    found = places(text, old)
    if len(found) != 1:
        return None
    (at, after), = found
    begin, end = text.rindex("\n", 0, at) + 1, text.index("\n", after)
    old, before, rest = text[at:after], text[begin:at], text[after:end].split("#")[0].strip()
    awake = {"py": f'(__import__("os").environ.get("ONLINEKERNELS_FAULT") == "{number}")'}.get(language,
                                                                                               f"ok_fault({number})")
    is_line = language != "h" and not before.strip() and not rest and not old.startswith(("np.", "(", "not ", "{"))
    if new == "pass" or is_line and re.match(r"[\w.,\[\]:* ]+ [-+*/]?= ", old):
        if not is_line:
            return None
        return f"{text[:begin]}{before}if {awake}:\n{before}    {new}\n{before}else:\n{before}    {old}{text[after:]}"
    chosen = f"({awake} ? ({new}) : ({old}))" if language == "h" else f"(({new}) if {awake} else ({old}))"
    return text[:at] + chosen + text[after:]


def compiles(text):
    try:
        compile(text, "a source", "exec")
    except SyntaxError:
        return False
    return True


def sleeping(package):
    """Sources with all faults in them, {path: text}, and the numbers of those that are stale."""
    sources = {path: path.read_text() for path in sorted(package.rglob("*.*"))
               if path.suffix in (".h", ".py", ".pyx", ".pxd")}
    stale, changed = [], {}
    for number, name, old, new, tests in NUMBERED:
        # A file of this name, or any other in the same language: a text may have moved.
        likely = [path for path in sources if path.as_posix().endswith("/" + name)]
        others = [path for path in sources if (path.suffix == ".h") == name.endswith(".h")]
        found = next((paths for paths in ([path for path in some if places(sources[path], old)]
                                          for some in (likely, others)) if paths), [])
        text = with_fault(sources[found[0]], number, old, new, found[0].suffix[1:]) if len(found) == 1 else None
        if text is not None and found[0].suffix == ".py" and not compiles(text):
            text = None
        if text is None or not all(any((ROOT / "tests").rglob(f"test_{test}.py")) for test in tests):
            stale.append(number)
        if text is not None:
            sources[found[0]] = changed[found[0]] = text
    return changed, stale


def prepare(where):
    """Copy the tree, put all faults into it, and build."""
    if where.exists():
        shutil.rmtree(where)
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", ".hypothesis"))
    files, _ = sleeping(where / "onlinekernels")
    for path, source in files.items():
        if path.suffix == ".h":
            source = '#include "faults.h"\n' + source
        elif path.suffix in (".pyx", ".pxd"):
            first = re.search(r"^(from [\w.]+ c?import|c?import|cdef) ", source, re.M).start()
            source = source[:first] + IN_CYTHON + source[first:]
        path.write_text(source)
    (where / "faults").mkdir()
    (where / "faults" / "faults.h").write_text(HEADER)
    (where / "build").mkdir()
    environment = {**os.environ, "ONLINEKERNELS_CFLAGS": f"-g0 -O1 -I{where / 'faults'}"}
    done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=where, env=environment,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-6000:])


def run(where, number, tests, slow, directory):
    """(outcome, seconds, first failing test) of the tests named for a fault."""
    paths = [path for name in tests for path in directory.rglob(f"test_{name}.py")]
    environment = {**os.environ, "ONLINEKERNELS_FAULT": str(number), "OPENBLAS_NUM_THREADS": "1",
                   "PYTHONPATH": str(where)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no",
               *(["-n0"] if has_xdist() else []), *(["-m", ""] if slow else []), *map(str, paths)]
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "caught", time.monotonic() - start, "it hangs"
    failing = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    outcome = {0: "MISSED", 1: "caught"}.get(done.returncode, "caught" if done.returncode < 0 else "failed")
    if outcome == "failed" and failing:
        outcome = "caught"  # while a test file is imported
    status = f"status {done.returncode}" if done.returncode else ""
    return outcome, time.monotonic() - start, failing[1] if failing else status


def has_xdist():
    try:
        import xdist  # noqa: F401
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("where", type=pathlib.Path, nargs="?", help="a directory for the copy, which is made anew")
    parser.add_argument("--tests", type=pathlib.Path, help="tests of another edition")
    parser.add_argument("--only", help="numbers of faults, between commas")
    parser.add_argument("--sample", type=int, help="so many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stale", action="store_true",
                        help="only say which faults have no place in the package any more")
    parser.add_argument("--slow", action="store_true", help="run tests that are marked slow, too")
    parser.add_argument("--again", action="store_true", help="use the copy that is there")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    _, stale = sleeping(ROOT / "onlinekernels")
    for number in stale:
        print(f"{number:4d} stale    {NUMBERED[number - 1][1]}: {NUMBERED[number - 1][2]}")
    if options.stale:
        return
    if options.where is None:
        parser.error("where?")
    where = options.where.resolve()
    if not options.again:
        prepare(where)
    directory = options.tests.resolve() if options.tests else where / "tests"
    wanted = [number for number in range(1, len(NUMBERED) + 1) if number not in stale]
    if options.only:
        wanted = [number for number in map(int, options.only.split(",")) if number in wanted]
    elif options.sample:
        wanted = sorted(random.Random(options.seed).sample(wanted, min(options.sample, len(wanted))))
    faults = [NUMBERED[number - 1] for number in wanted]
    if not options.only:
        outcome, seconds, by = run(where, 0, sorted({name for fault in faults for name in fault[4]}), options.slow,
                                   directory)
        print(f"   0 {'passed' if outcome == 'MISSED' else 'FAILS'}   {seconds:5.0f} s  without any fault  {by}",
              flush=True)
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run, where, fault[0], fault[4], options.slow, directory) for fault in faults]
        for (number, name, old, new, _), job in zip(faults, jobs):
            outcome, seconds, by = job.result()
            totals[outcome] = totals.get(outcome, 0) + 1
            print(f"{number:4d} {outcome:8s} {seconds:5.0f} s  {name}: {old[:60]} -> {new[:40]}  {by}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())), f"of {len(faults)};",
          len(stale), "stale")


if __name__ == "__main__":
    main()
