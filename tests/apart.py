"""Code that may crash, hang or fork runs in an interpreter of its own."""
import subprocess
import sys
import textwrap

HEAD = """
import copy, os, pickle, random, signal, sys, threading, time, warnings
import numpy as np
import onlinekernels as ok
sys.setswitchinterval(1e-5)
failed = []
threading.excepthook = lambda arguments: failed.append(repr(arguments.exc_value))
"""
TAIL = """
assert not failed, failed[:5]
"""


def run_apart(code, timeout=120):
    """Run code in an interpreter of its own, so that a crash there is only a failure here.

    An exception in any of its threads is a failure, too.
    """
    code = HEAD + textwrap.dedent(code) + TAIL
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout)
    assert result.returncode == 0, (result.returncode, result.stderr[-3000:])
