"""Prints the time of gradients over the time of their functions, and how the gradient of `norm` grows."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.gradients import Figures, run
from benchmarks.problems import growth, table

TOOLS = ("Enzyme", "Tapenade", "Adept")


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def _ratio(value: float | None, figures: Figures) -> str:
    return "-" if value is None else f"{value / figures.primal:.2f}"


def _print_table(console: Console, budget: float, only: str) -> None:
    shown = Table(title="Gradient over primal (medians; every gradient was checked against finite differences first)")
    shown.add_column("function")
    shown.add_column("size")
    for head in ("primal µs", "one function", "two sweeps", "tape KiB", "build s", *TOOLS):
        shown.add_column(head, justify="right")
    for problem in table():
        if only not in problem.name:
            continue
        f = run(problem, budget)
        tape = "-" if f.tape_bytes is None else f"{f.tape_bytes / 1024:,.1f}"
        others = [f"{problem.published[t]:g}" if t in problem.published else "" for t in TOOLS]
        ratios = [_ratio(f.combined, f), _ratio(f.split, f)]
        compiled = f"{f.compile_seconds:.1f}"
        shown.add_row(problem.name, problem.size, _microseconds(f.primal), *ratios, tape, compiled, *others)
    console.print(shown)
    console.print(
        "one function: forward and reverse sweep in one call; two sweeps: the forward sweep that keeps a tape, then\n"
        "the pullback. Enzyme, Tapenade, Adept: what these tools reach on two x86-64 cores (docs/benchmarks.md)."
    )


def _print_growth(console: Console, budget: float) -> None:
    shown = Table(title="norm(out, in), mag(in) called inside the loop: nanoseconds per element")
    for head in ("n", "primal", "gradient", "ratio"):
        shown.add_column(head, justify="right")
    sizes: list[int] = []
    times: list[float] = []
    for problem in growth():
        f = run(problem, budget)
        n = len(problem.arguments["x"])
        sizes.append(n)
        times.append(f.combined)
        shown.add_row(f"{n:,}", f"{f.primal / n * 1e9:.3f}", f"{f.combined / n * 1e9:.3f}", _ratio(f.combined, f))
    console.print(shown)
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    console.print(f"time of the gradient grows as n^{slope:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this; the growth of norm is left out")
    options = parser.parse_args()
    console = Console(width=None if os.isatty(1) else 140)
    console.print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["JAX_ENZYME_CACHE_DIR"] = cache  # so that building is measured, not reading what was built before
        _print_table(console, options.budget, options.only)
        if not options.only:
            _print_growth(console, options.budget / 2)


if __name__ == "__main__":
    main()
