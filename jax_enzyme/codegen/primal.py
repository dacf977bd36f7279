"""A kernel itself, before anything is differentiated: prepared, in canonical form, with its inputs safe and its large
local variables on the heap.

bound -> prepare -> canonical -> input writes -> memory of iterations, heap locals -> (code generation | derivatives)

Code that was optimised and inlined is a tenth of what a front end leaves of C++, and tells more: so whatever looks at
each instruction comes after that wherever it may.
"""

from __future__ import annotations

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.canonical import canonical
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.transform.heap_locals import move_large_locals
from jax_enzyme.transform.input_writes import protect_inputs
from jax_enzyme.transform.iteration_memory import keep_iteration_memory
from jax_enzyme.transform.prepare import prepare


@dataclass(frozen=True, eq=False)
class Primal:
    """The canonical form of a kernel; `copied` names the inputs that it writes to, and has copies of. `has_state`: in
    its source there are variables that blocks may leave to one another."""

    canonical: ArrayFunction
    copied: tuple[str, ...]
    has_state: bool


def primal(function: ArrayFunction) -> Primal:
    """The kernel that a bound function is, whose module nobody else needs."""
    has_state = any(not v.is_constant and v.initializer is not None for v in function.module.globals.values())
    function.module.is_spent = True
    prepared = prepare(function)
    prepared.module.is_spent = False
    flat = canonical(prepared, is_spent=True)
    safe, copied = protect_inputs(flat)
    moved = move_large_locals(keep_iteration_memory(safe))
    return Primal(flat if moved is flat else canonical(moved, is_spent=True), copied, has_state)
