"""Prints the time of our gradients (one function) over that of adjoints written by hand in C."""

from __future__ import annotations

import argparse
import statistics

from rich.console import Console
from rich.table import Table

from benchmarks.adjoints.comparison import ratio
from benchmarks.adjoints.problems import hand_written


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adjoints", description=__doc__)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    shown = Table(title="Gradients over adjoints by hand (medians of processor time; compared with each other first)")
    for head in ("function", "size", "ours µs", "by hand µs", "ratio"):
        shown.add_column(head)
    ratios: list[float] = []
    for row in hand_written():
        if options.only not in row.problem.name:
            continue
        ours, hand = ratio(row, options.budget)
        ratios.append(ours / hand)
        shown.add_row(
            row.problem.name, row.problem.size, f"{ours * 1e6:,.1f}", f"{hand * 1e6:,.1f}", f"{ours / hand:.2f}"
        )
    console = Console(width=120)
    console.print(shown)
    if ratios:
        console.print(f"geometric mean: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
