"""What each part of the plan gains: gradients without it over gradients with it, one part at a time.

python -m benchmarks.ablation [--budget SECONDS] [--only NAME]

The gradient in one function; each is compared with the one that has everything before it is timed, all in turns. What
is done to values as well is measured on both. `--values`: that alone.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, get_args

from benchmarks.gradients import Gradient, Problem
from benchmarks.measure import medians
from benchmarks.problems import table
from benchmarks.report import Ablation, keep, write_pages
from jax_enzyme import frontends
from jax_enzyme.codegen.loading import Built
from jax_enzyme.errors import ShortcutWarning
from jax_enzyme.options import Lever
from tests.support.through_engine import specialise

OF_VALUES: tuple[Lever, ...] = ("rows", "lockstep")

CHANGES: Mapping[str, Mapping[str, Any]] = {
    **{name: {"without": (name,)} for name in get_args(Lever) if name not in OF_VALUES},
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


def of_values(problem: Problem, budget: float) -> Ablation:
    """Value and gradient without what is done to values as well, over those with all. Where the machine code of the
    value is the same, so is that of the gradient, and nothing is timed. Raises WrongGradientError as `ablated`."""
    forms = {part: replace(problem, options=replace(problem.options, without=(part,))) for part in OF_VALUES}
    usual, *others = (_value(form) for form in (problem, *forms.values()))
    # Equal objects are linked once.
    changed = [part for part, other in zip(forms, others, strict=True) if other.address != usual.address]
    times = {f"{part}, {what}": 1.0 for part in OF_VALUES for what in ("value", "gradient")}
    tapes: dict[str, int | None] = dict.fromkeys(("", *times), 0)
    if changed:
        whole, *without = (Gradient(form) for form in (problem, *(forms[part] for part in changed)))
        found = dict(zip(changed, without, strict=True))
        for part, form in found.items():
            whole.compare(form.found, f"without {part}")
        values = medians({"": (whole.primal,), **{part: (form.primal,) for part, form in found.items()}}, budget)
        gradients = medians({"": (whole.combined,), **{part: (form.combined,) for part, form in found.items()}}, budget)
        tapes = dict.fromkeys(tapes, whole.tape_bytes)
        for part, form in found.items():
            times[f"{part}, value"] = round(values[part] / values[""], 2)
            times[f"{part}, gradient"] = round(gradients[part] / gradients[""], 2)
            tapes[f"{part}, gradient"] = form.tape_bytes
    return Ablation(problem.name, problem.size, times, tapes)


def _value(problem: Problem) -> Built:
    program = frontends.load(problem.path, problem.symbol)
    return specialise(program, problem.signature, problem.arguments, problem.options).build()


_MEASURES = {"ablation": ablated, "ablation of values": of_values}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--values", action="store_true", help="only what is done to values as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ShortcutWarning)
    for problem in table():
        if options.only in problem.name:
            measured = {"ablation of values": of_values} if options.values else _MEASURES
            for part, measure in measured.items():
                found = measure(problem, options.budget)
                print(found, flush=True)
                keep(part, [found], Python=platform.python_version(), JAX=version("jax"))
    write_pages()


if __name__ == "__main__":
    main()
