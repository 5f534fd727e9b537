"""Do the tests notice?  The faults of mutants.txt, one at a time, against the tests that should catch them.

    python tests/mutants.py WHERE                        # all faults, in a copy of the tree that is built in WHERE
    python tests/mutants.py WHERE --only 3,17 --slow     # some, with the tests that are marked slow
    python tests/mutants.py WHERE --sample 40            # so many, drawn at random
    python tests/mutants.py --stale                      # only say which have no place in the package any more

A fault replaces an expression, or a line, by another one, wherever in the package it stands.  All of them are in the
copy at once, each asleep until ONLINEKERNELS_FAULT has its number, so that one build serves all; a second run in the
same place builds what has changed, and asks first the test that caught a fault the last time.  A fault whose text is
not in one place, that does not compile, or whose tests are gone, is stale: write it anew.  The copy without any fault
must pass; what it does not pass is told first.
"""
import argparse
import concurrent.futures
import json
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


def places(text, old):
    """Where a source has this text, whatever white space is between its words."""
    return [found.span() for found in re.finditer(r"\s+".join(map(re.escape, old.split())), text)]


def with_fault(text, number, old, new, language):
    """A source with one more fault that sleeps in it; None if there is no place for it."""
    if re.match(r"(el)?if .*:$", old) and re.match(r"if .*:$", new):  # of a condition the expression
        old, new = old.partition("if ")[2][:-1], new[3:-1]
    found = places(text, old)
    if len(found) != 1:
        return None
    (at, after), = found
    begin, end = text.rindex("\n", 0, at) + 1, text.index("\n", after)
    old, before, rest = text[at:after], text[begin:at], text[after:end].split("#")[0].strip()
    awake = {"py": f'(__import__("os").environ.get("ONLINEKERNELS_FAULT") == "{number}")'}.get(language,
                                                                                               f"ok_fault({number})")
    is_line = language != "h" and not before.strip() and not rest and not old.startswith(("np.", "(", "not ", "{"))
    if new == "pass" or language != "h" and re.match(r"[\w.,\[\]:* ]+ [-+*/]?= ", old):
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


def sleeping(package, without=()):
    """Sources with all faults in them, {path: text}, and the numbers of those that are stale."""
    sources = {path: path.read_text() for path in sorted(package.rglob("*.*"))
               if path.suffix in (".h", ".py", ".pyx", ".pxd")}
    stale, changed = [*without], {}
    for number, name, old, new, tests in NUMBERED:
        # A file of this name, or any other in the same language: a text may have moved.
        likely = [path for path in sources if path.as_posix().endswith("/" + name)]
        others = [path for path in sources if (path.suffix == ".h") == name.endswith(".h")]
        found = next((paths for paths in ([path for path in some if places(sources[path], old)]
                                          for some in (likely, others)) if paths), [])
        text = with_fault(sources[found[0]], number, old, new, found[0].suffix[1:]) if len(found) == 1 else None
        if text is not None and found[0].suffix == ".py" and not compiles(text):
            text = None
        if number in without:
            continue
        if text is None or not all(any((ROOT / "tests").rglob(f"test_{test}.py")) for test in tests):
            stale.append(number)
        if text is not None:
            sources[found[0]] = changed[found[0]] = text
    return changed, sorted(stale)


def update(path, text):
    """Write a file if it is another one: what depends on it is built again."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def prepare(where):
    """Copy the tree, put all faults into it, and build; the numbers of faults that are stale."""
    left_out = shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", ".hypothesis", "_build")
    kept, compiled = {where / "faults" / "faults.h"}, where / "build"
    for folder, names, files in os.walk(ROOT):
        names[:] = [name for name in names if not left_out(folder, [name])]
        kept |= {where / (pathlib.Path(folder) / name).relative_to(ROOT) for name in files
                 if not left_out(folder, [name])}
    for path in [path for part in ("onlinekernels", "tests", "docs") for path in (where / part).rglob("*")]:
        if path.is_file() and path not in kept and path.suffix not in (".so", ".pyc", ".c"):
            path.unlink()
    update(where / "faults" / "faults.h", HEADER.encode())
    compiled.mkdir(exist_ok=True)
    environment, broken = {**os.environ, "ONLINEKERNELS_CFLAGS": f"-g0 -O1 -I{where / 'faults'}"}, set()
    while True:
        files, stale = sleeping(ROOT / "onlinekernels", broken)
        for path in kept - {where / "faults" / "faults.h"}:
            source = ROOT / path.relative_to(where)
            text = files.get(source)
            if text is None:
                update(path, source.read_bytes())
                continue
            if path.suffix == ".h":
                text = '#include "faults.h"\n' + text
            elif path.suffix in (".pyx", ".pxd"):
                first = re.search(r"^(from [\w.]+ c?import|c?import|cdef) ", text, re.M).start()
                text = text[:first] + IN_CYTHON + text[first:]
            update(path, text.encode())
        done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=where, env=environment,
                              capture_output=True, text=True)
        if not done.returncode:
            return stale
        more = {int(number) for number in re.findall(r"ok_fault\((\d+)\)", done.stderr + done.stdout)} - broken
        if not more:
            sys.exit(done.stderr[-6000:])
        print("do not compile:", *sorted(more), flush=True)
        broken |= more


def run(where, number, tests, slow):
    """(outcome, seconds, first failing test) of tests, files or one of them, for a fault."""
    environment = {**os.environ, "ONLINEKERNELS_FAULT": str(number), "OPENBLAS_NUM_THREADS": "1",
                   "PYTHONPATH": str(where)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no",
               *(["-m", ""] if slow else []), *map(str, tests)]
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "caught", time.monotonic() - start, "it hangs"
    failing = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.M)
    outcome = {0: "MISSED", 1: "caught"}.get(done.returncode, "caught" if done.returncode < 0 or failing else "failed")
    return outcome, time.monotonic() - start, failing[1] if failing else f"status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("where", type=pathlib.Path, nargs="?", help="a directory for the copy")
    parser.add_argument("--only", help="numbers of faults, between commas")
    parser.add_argument("--sample", type=int, help="so many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stale", action="store_true", help="only say which faults have no place any more")
    parser.add_argument("--slow", action="store_true", help="run tests that are marked slow, too")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.where is None and not options.stale:
        parser.error("where?")
    where = options.where and options.where.resolve()
    stale = sleeping(ROOT / "onlinekernels")[1] if options.stale else prepare(where)
    for number in stale:
        print(f"{number:4d} stale    {NUMBERED[number - 1][1]}: {NUMBERED[number - 1][2]}")
    if options.stale:
        return
    memory = where / "caught.json"
    caught = json.loads(memory.read_text()) if memory.exists() else {}
    wanted = [fault for fault in NUMBERED if fault[0] not in stale]
    if options.only:
        wanted = [fault for fault in wanted if str(fault[0]) in options.only.split(",")]
    elif options.sample:
        wanted = sorted(random.Random(options.seed).sample(wanted, min(options.sample, len(wanted))))

    def files(names):
        return [path for name in sorted(names) for path in (where / "tests").rglob(f"test_{name}.py")]

    def look(fault):
        number, _, old, new, tests = fault
        known = caught.get(f"{old} -> {new}")
        first = run(where, number, [known], options.slow) if known else ("MISSED", 0.0, "")
        found = first if first[0] == "caught" else run(where, number, files(tests), options.slow)
        if found[0] == "caught" and "::" in found[2]:
            caught[f"{old} -> {new}"] = found[2]
        return found

    if not options.only:
        outcome, seconds, by = run(where, 0, files({name for fault in wanted for name in fault[4]}), options.slow)
        print(f"   0 {'passed' if outcome == 'MISSED' else 'FAILS'}   {seconds:5.0f} s  without any fault  {by}",
              flush=True)
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (number, name, old, new, _), (outcome, seconds, by) in zip(wanted, pool.map(look, wanted)):
            totals[outcome] = totals.get(outcome, 0) + 1
            print(f"{number:4d} {outcome:8s} {seconds:5.0f} s  {name}: {old[:60]} -> {new[:40]}  {by}", flush=True)
            memory.write_text(json.dumps({**caught}, indent=0))
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())), f"of {len(wanted)};",
          len(stale), "stale")


if __name__ == "__main__":
    main()
