"""What each part of the plan gains: gradients without it over gradients with it, one part at a time.

python -m benchmarks.ablation [--budget SECONDS] [--only NAME]

The gradient in one function; each is compared with the one that has everything before it is timed, all in turns.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from benchmarks.gradients import Gradient, Problem
from benchmarks.measure import medians
from benchmarks.problems import table
from benchmarks.report import Ablation, keep, write_pages
from jax_enzyme.errors import ShortcutWarning
from jax_enzyme.options import Lever

CHANGES: Mapping[str, Mapping[str, Any]] = {
    **{name: {"without": (name,)} for name in get_args(Lever)},
    "vector_math": {"vector_math": False},
}


def ablated(problem: Problem, budget: float) -> Ablation:
    """Raises WrongGradientError where a part changes the gradient."""
    whole = Gradient(problem)
    forms = {name: Gradient(replace(problem, options=replace(problem.options, **c))) for name, c in CHANGES.items()}
    for name, form in forms.items():
        whole.compare(form.found, f"without {name}")
    times = medians({"": (whole.combined,), **{name: (form.combined,) for name, form in forms.items()}}, budget)
    return Ablation(
        problem.name,
        problem.size,
        {name: round(times[name] / times[""], 2) for name in forms},
        {"": whole.tape_bytes, **{name: form.tape_bytes for name, form in forms.items()}},
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ShortcutWarning)
    for problem in table():
        if options.only in problem.name:
            found = ablated(problem, options.budget)
            print(found, flush=True)
            keep("ablation", [found])
    write_pages()


if __name__ == "__main__":
    main()
