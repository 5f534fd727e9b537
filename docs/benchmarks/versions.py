"""Two installed versions of the library side by side: has anything become slower?

    pip install --target /tmp/old onlinekernels-0.1.0.tar.gz
    pip install --target /tmp/new .
    python docs/benchmarks/versions.py --old /tmp/old --new /tmp/new
    python docs/benchmarks/versions.py --old /tmp/old --new /tmp/new --only "one by one" "trees"

A directory is what a version would be imported from; a checkout with its modules built in place will do.  Each version
runs in a process of its own, the two take turns, and medians are compared.  Instructions are counted by perf, or by
valgrind where the processor's counters cannot be read: the same work twice and ten times over, and the difference.
They do not depend on what else the machine does.  (valgrind takes half a minute for a workload, and has no AVX-512, so
there it is other instructions that are counted.)  A * marks more than 5 % in time or 3 % in instructions.

    time          microseconds per example, old and new, and new / old
    instructions  thousands per example in the user's part of the process, likewise
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
TIME_BAR, INSTRUCTIONS_BAR = 1.05, 1.03
FEW, MANY = 2, 10  # repetitions whose instructions are compared
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def environment(folder):
    """A process that finds the library in this folder, before all others."""
    fixed = {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **THREADS, **fixed}


# ---- In the process of one version ------------------------------------------------------------------------------


def serve():
    """Take the names of workloads from standard input; answer with microseconds per example, the best of a turn."""
    from rows import WORKLOADS

    import onlinekernels

    folder = os.path.dirname(os.path.dirname(onlinekernels.__file__))
    print(json.dumps({"from": folder, "names": list(WORKLOADS)}), flush=True)
    prepared = {}
    for line in sys.stdin:
        name = json.loads(line)
        try:
            if name not in prepared:
                prepared.clear()
                prepared[name] = WORKLOADS[name]()
                prepared[name][0]()
            run, examples = prepared[name]
            print(json.dumps(1e6 * best_of(run) / examples), flush=True)
        except Exception as error:  # a version may lack what a workload needs
            print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)


def best_of(run, turns=3):
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def repeat(name, times):
    """What is counted: a workload so many times over."""
    from rows import WORKLOADS

    run, examples = WORKLOADS[name]()
    for _ in range(times):
        run()
    print(examples)


# ---- In the process that compares -------------------------------------------------------------------------------


class Version:
    """A process that has one version loaded."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.process = subprocess.Popen([sys.executable, HERE, "--serve"], env=environment(self.folder), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tempfile.gettempdir())
        hello = json.loads(self.process.stdout.readline())
        if pathlib.Path(hello["from"]).resolve() != self.folder:
            raise SystemExit(f"The library was imported from {hello['from']}, and not from {self.folder}.")
        self.names = hello["names"]

    def ask(self, name):
        """Microseconds per example, or why there are none."""
        print(json.dumps(name), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())



def perf(version, name, times):
    with tempfile.NamedTemporaryFile() as file:
        command = ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", file.name]
        output = _repeated(command, version, name, times)
        return int(re.search(r"^(\d+),", pathlib.Path(file.name).read_text(), re.MULTILINE)[1]), output


def valgrind(version, name, times):
    with tempfile.NamedTemporaryFile() as file:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={file.name}"]
        output = _repeated(command, version, name, times)
        return int(re.search(r"Collected : (\d+)", pathlib.Path(file.name).read_text())[1]), output


def _repeated(command, version, name, times):
    """Examples of a workload that was run so many times under a command that counts."""
    command = [*command, sys.executable, str(HERE), "--repeat", name, "--times", str(times)]
    done = subprocess.run(command, env=environment(version.folder), capture_output=True, text=True, check=True,
                          cwd=tempfile.gettempdir())
    return int(done.stdout)


def counter():
    """The first way to count instructions that works here; None if there is none."""
    for count, tool in ((perf, "perf"), (valgrind, "valgrind")):
        if shutil.which(tool):
            try:
                options = ["stat", "-x", ",", "-e", "instructions:u"] if tool == "perf" else []
                done = subprocess.run([tool, *options, "true"], capture_output=True, text=True, check=True)
            except (OSError, subprocess.CalledProcessError):
                continue
            if tool != "perf" or re.search(r"^\d+,", done.stderr, re.MULTILINE):
                return count
    return None


def counted(versions, count, name):
    """Thousands of instructions per example of each version; other processes do not disturb them."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [[pool.submit(count, version, name, times) for times in (FEW, MANY)] for version in versions]
        counts = [[run.result() for run in of_version] for of_version in runs]
    return [(many - few) / (MANY - FEW) / examples / 1e3 for (few, examples), (many, _) in counts]


def interleaved(versions, name, seconds):
    """Median times of the versions, which take turns; or why there are none."""
    first = [version.ask(name) for version in versions]
    if any(isinstance(answer, str) for answer in first):
        return next(answer for answer in first if isinstance(answer, str))
    times, end, turn = [[], []], time.perf_counter() + seconds, 0
    while time.perf_counter() < end or len(times[0]) < 5:
        for place in (0, 1) if turn % 2 else (1, 0):  # nobody always follows the other
            times[place].append(versions[place].ask(name))
        turn += 1
    return [statistics.median(taken) for taken in times]


def shown(old, new, bar):
    star = "*" if new > bar * old else " "
    return f"{old:10.3f} {new:10.3f} {new / old:6.3f}{star}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", help="where the old version is imported from")
    parser.add_argument("--new", help="where the new version is imported from")
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="names of workloads; default all in rows.py")
    parser.add_argument("--seconds", type=float, default=5.0, help="for the times of each workload; 0 for five turns")
    parser.add_argument("--no-instructions", action="store_true", help="times only")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve()
    if arguments.repeat:
        return repeat(arguments.repeat, arguments.times)
    if not arguments.old or not arguments.new:
        parser.error("--old and --new are needed")
    versions = [Version(arguments.old), Version(arguments.new)]
    count = None if arguments.no_instructions else counter()
    print(f"instructions by {count.__name__ if count else 'nobody: neither perf nor valgrind can count here'}")
    print(f"{'':28} | {'time: old':>10} {'new':>10} {'ratio':>7} | {'instr.: old':>11} {'new':>9} {'ratio':>7}")
    for name in arguments.only or versions[0].names:
        times = interleaved(versions, name, arguments.seconds)
        if isinstance(times, str):
            print(f"{name:28} | {times}")
            continue
        line = f"{name:28} | {shown(*times, TIME_BAR)}"
        if count is not None:
            line += f" | {shown(*counted(versions, count, name), INSTRUCTIONS_BAR)}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
