"""Derivatives that run the kernel a second time are refused where it may compute something else then."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ad.facts.causes import CHANGED_FILE, DRAWN_NUMBER
from jax_enzyme.ad.facts.errors import refuse
from jax_enzyme.analysis.activity import activity_of
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.reruns import changed_file, drawn_number, draws_numbers
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import ArrayFunction, Step
from jax_enzyme.ir.module import declared_name
from jax_enzyme.rules.files import reads
from jax_enzyme.rules.opened import Way
from jax_enzyme.rules.table import Rules


def hindrances(base: ArrayFunction, step: Step, rules: Rules) -> Iterator[DifferentiationError]:
    """Why a kernel that has run may not run again for a derivative; nothing where it does the same."""
    module = base.module
    use = changed_file(module, rules)
    if use is not None:
        reader = next(filter(reads, module.functions), declared_name(use.instruction))
        why = _CONSUMED if Way.CONSUMES in use.way else _CHANGED
        yield refuse(module, use.instruction, CHANGED_FILE, name=reader, why=why)
    if draws_numbers(module):
        points_to = PointsTo(module, module.functions[base.symbol])
        call = drawn_number(points_to, activity_of(points_to, rules, step), rules)
        if call is not None:
            yield refuse(module, call, DRAWN_NUMBER, name=declared_name(call))


_CHANGED = "the first run may have changed it"
_CONSUMED = "the first run has read it, and the second one goes on behind"
