"""Passes on text: `fixtures/<pass>.<case>.ll` is what goes in, `.out.ll` what comes out.

`UPDATE_FIXTURES=1 pytest tests/transform` writes the second from the first; look at the difference before you keep it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.allocators import lower_allocators
from jax_enzyme.transform.byte_swaps import widen_byte_swaps
from jax_enzyme.transform.carried_loads import load_again
from jax_enzyme.transform.closures import lower_closures
from jax_enzyme.transform.computed_gotos import lower_computed_gotos
from jax_enzyme.transform.copied_buffers import use_buffers
from jax_enzyme.transform.devirtualise import devirtualise, hide_callees
from jax_enzyme.transform.dispatched import leave_out_other_functions, tell_objects
from jax_enzyme.transform.dynamic_casts import lower_dynamic_casts
from jax_enzyme.transform.empty_assembly import drop_empty_assembly
from jax_enzyme.transform.failures import lower_failures
from jax_enzyme.transform.heap_locals import move_large_locals
from jax_enzyme.transform.invariant_loads import load_before_loops
from jax_enzyme.transform.lower_calls import lower_calls
from jax_enzyme.transform.masked_memory import lower_masked_memory
from jax_enzyme.transform.output import drop_output
from jax_enzyme.transform.poison import define_poison
from jax_enzyme.transform.private_globals import privatise
from jax_enzyme.transform.reallocations import lower_reallocations
from jax_enzyme.transform.reducible import make_reducible
from jax_enzyme.transform.relative_tables import absolute_tables
from jax_enzyme.transform.retype import retype
from jax_enzyme.transform.rotations import choose_by_turn
from jax_enzyme.transform.row_sums import sum_rows
from jax_enzyme.transform.stand_ins import forget_unentered
from jax_enzyme.transform.static_objects import own_static_objects
from jax_enzyme.transform.streams import withhold_streams
from jax_enzyme.transform.struct_copies import split_struct_copies
from jax_enzyme.transform.thread_locals import emulate_thread_locals
from tests.support.verified import verify

FIXTURES = Path(__file__).parent / "fixtures"
Pass = Callable[[ArrayFunction], ArrayFunction]


def _of_module(change: Callable[[Module], Module]) -> Pass:
    def run(function: ArrayFunction) -> ArrayFunction:
        module = change(function.module)
        return function if module is function.module else replace(function, module=module)

    return run


def _without_unentered(function: ArrayFunction) -> ArrayFunction:
    copy = clone(function.module)
    return replace(function, module=copy) if forget_unentered(copy, function.symbol) else function


PASSES: dict[str, Pass] = {
    "allocators": _of_module(lower_allocators),
    "byte_swaps": widen_byte_swaps,
    "carried_loads": load_again,
    "closures": lower_closures,
    "copied_buffers": use_buffers,
    "computed_gotos": _of_module(lower_computed_gotos),
    "devirtualise": devirtualise,
    "dispatched": tell_objects,
    "dynamic_casts": _of_module(lower_dynamic_casts),
    "empty_assembly": _of_module(drop_empty_assembly),
    "failures": lower_failures,
    "heap_locals": move_large_locals,
    "hide_callees": _of_module(hide_callees),
    "invariant_loads": load_before_loops,
    "lower_calls": _of_module(lower_calls),
    "masked_memory": _of_module(lower_masked_memory),
    "other_functions": leave_out_other_functions,
    "output": _of_module(drop_output),
    "poison": _of_module(define_poison),
    "private_globals": privatise,
    "relative_tables": _of_module(absolute_tables),
    "reallocations": _of_module(lower_reallocations),
    "reducible": _of_module(make_reducible),
    "retype": retype,
    "rotations": choose_by_turn,
    "row_sums": sum_rows,
    "static_objects": own_static_objects,
    "streams": _of_module(withhold_streams),
    "struct_copies": split_struct_copies,
    "thread_locals": _of_module(emulate_thread_locals),
    "unentered": _without_unentered,
}
CASES = sorted(p.name.removesuffix(".ll") for p in FIXTURES.glob("*.ll") if not p.name.endswith(".out.ll"))


def read(case: str) -> tuple[Pass, ArrayFunction]:
    text = (FIXTURES / f"{case}.ll").read_text()
    chosen = re.search(r"^; pass: (\w+)$", text, re.M)
    listed = re.search(r"^; buffers: (.*)$", text, re.M)
    assert chosen is not None and listed is not None
    words = [b.split() for b in listed[1].split(", ")]
    buffers = tuple(Buffer(w[0], w[2] if len(w) > 2 else "f64", (4,), w[1]) for w in words)  # type: ignore[arg-type]
    return PASSES[chosen[1]], ArrayFunction(parse(text), "je.primal", buffers)


@pytest.mark.parametrize("case", CASES)
def test_text(case: str) -> None:
    run, function = read(case)
    before = to_text(function.module)
    result = run(function)
    verify(result.module)
    assert to_text(function.module) == before, "the pass changed what it was given"
    expected = FIXTURES / f"{case}.out.ll"
    text = to_text(result.module)
    if os.environ.get("UPDATE_FIXTURES"):
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_left_to_do(case: str) -> None:
    """A second run finds nothing: then a pass gives back the very function that it was given."""
    run, function = read(case)
    once = run(function)
    assert run(once) is once


def test_functions_are_not_copied_to_leave_out_constructors_that_are_not_used() -> None:
    run, function = read("static_objects.unused")
    assert run(function).module.functions["je.primal"] is function.module.functions["je.primal"]
