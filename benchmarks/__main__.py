"""Times gradients beside their functions, keeps the figures of this machine, and draws them: `make bench`.

python -m benchmarks [--budget SECONDS] [--only NAME]

Each gradient is checked before it is timed: by finite differences of the function built by another compiler, and
against what each of the others finds. With `--only` some rows are renewed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import tempfile
import warnings

import jax
import numpy as np

from benchmarks.gradients import Gradient, Problem
from benchmarks.jax_functions import FUNCTIONS
from benchmarks.measure import Timed, medians
from benchmarks.native import adjoint, primal
from benchmarks.problems import growth, table
from benchmarks.report import Row, keep, show, write_pages
from benchmarks.through_jax import JaxCall
from jax_enzyme.errors import ShortcutWarning


def measured(problem: Problem, budget: float) -> Row:
    """Microseconds of each form, medians, in turns for `budget` seconds. Raises WrongGradientError."""
    ours = Gradient(problem)
    ours.check()
    calls: dict[str, tuple[Timed, ...]] = {"value": (ours.primal,), "one": (ours.combined,)}
    if ours.split is not None:
        calls["two"] = ours.split
    if problem.model is None:  # with one, another compiler may leave the function at n^2
        calls["clang"] = (primal(problem),)
    if problem.hand is not None:
        hand, found = adjoint(problem, ours.seeds)
        ours.compare(found, "by hand")
        calls["hand"] = (hand,)
    if problem.name in FUNCTIONS:
        theirs = JaxCall(problem.name, problem.arguments, problem.wanted, ours.seeds)
        ours.compare(theirs.found, "of jax.numpy", 1e-8)
        calls["jax"] = (theirs,)
    microseconds = {form: round(seconds * 1e6, 2) for form, seconds in medians(calls, budget).items()}
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    return Row(problem.name, problem.size, microseconds, ours.tape_bytes, round(ours.build_seconds, 2), commit)


def exponent(budget: float) -> float:
    """How the time of the gradient of `norm` grows with n: `mag(in)` is called inside of its loop."""
    points: list[tuple[int, float]] = []
    for problem in growth():
        ours = Gradient(problem)
        ours.check()
        points.append((len(problem.arguments["x"]), medians({"one": (ours.combined,)}, budget)["one"]))
    return float(np.polyfit(*np.log(points).T, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ShortcutWarning)
    jax.config.update("jax_enable_x64", True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["JAX_ENZYME_CACHE_DIR"] = cache  # so that building is measured, not reading what was built before
        for problem in table():
            if options.only in problem.name:
                rows.append(measured(problem, options.budget))
                keep("rows", rows[-1:], Python=platform.python_version(), JAX=jax.__version__)
        if not options.only:
            keep("rows", (), **{"exponent of norm": round(exponent(options.budget / 4), 2)})
    show(rows)
    write_pages()


if __name__ == "__main__":
    main()
