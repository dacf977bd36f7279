"""Short loops over rows are to become vectors, and not to be unrolled before.

    for (i = 0; i < n; i++)                                     in reverse:
        for (j = 0; j < 16; j++) s[i] += w[i][j] * h[j];            for j: h_[j] += w[i][j] * g; w_[i][j] += h[j] * g;

LLVM unrolls loops of a few iterations before it would make vectors of them, and then finds vectors elsewhere: of the
loop around, whose iterations read and write in columns, one number at a time. Once they are vectors they may be
unrolled: what a loop around them goes on with stays in registers then. In reverse what was a sum in the order of the
source is no more, so that a loop may be a row there alone. What is found in a kernel is noted where derivatives take it
over.
"""

from __future__ import annotations

from jax_enzyme.analysis.evaluation import is_pure
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.marks import ROW, ROW_BACK
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.transform.loop_hints import ask
from jax_enzyme.transform.rewriting import phis

_ROWS = range(16, 65, 8)
"""Elements of a row: whole vectors. Of more LLVM makes vectors in any case."""


def note_rows(function: ArrayFunction) -> ArrayFunction:
    """The array function, in canonical form, with the rows noted in place."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    candidates = [loop for loop in loops if loop.parent is not None and _is_plain(loop)]
    if candidates:
        facts = Recurrences(root, loops, function.module)
        layout = DataLayout(function.module)
        for loop in candidates:
            again = facts.repeats(loop)
            if again is not None and again + 1 in _ROWS and _is_row(facts, layout, loop):
                is_ordered = any(isinstance(phi.type, T.FloatType) for phi in phis(loop.header))
                kinds = (ROW_BACK,) if is_ordered else (ROW, ROW_BACK)
                latch = loop.latches[0].terminator
                known = {kind for kind, _ in latch.metadata}
                latch.metadata = [*latch.metadata, *((kind, MDNode()) for kind in kinds if kind not in known)]
    return function


def show_rows(module: Module) -> None:
    """Tells LLVM of the rows, in place."""
    for block in (b for function in module.functions.values() for b in function.blocks):
        for branch in block.instructions[-1:]:
            if any(kind == ROW for kind, _ in branch.metadata):
                ask(module, branch, "late")
                branch.metadata = [(kind, node) for kind, node in branch.metadata if kind not in (ROW, ROW_BACK)]


def _is_plain(loop: Loop) -> bool:
    if loop.children or len(loop.blocks) != 1 or loop.preheader is None:
        return False
    calls = (i for i in loop.header.instructions if isinstance(i, I.CallBase))
    return all(callee_name(call).startswith("llvm.") or is_pure(call) for call in calls)


def _is_row(facts: Recurrences, layout: DataLayout, loop: Loop) -> bool:
    """Whether all that a loop reads or writes lies side by side, or is read from one place."""
    accesses = [i for i in loop.header.instructions if isinstance(i, I.Load | I.Store)]
    return bool(accesses) and all(_is_beside(facts, layout, loop, access) for access in accesses)


def _is_beside(facts: Recurrences, layout: DataLayout, loop: Loop, access: I.Load | I.Store) -> bool:
    try:
        place = facts.form_at(access.operands[-1], loop.header).polynomial
        first, *steps = place.coefficients(facts.iteration(loop))
    except TooComplex:
        return False
    if len(steps) > 1 or not facts.is_invariant(first, loop):
        return False
    step = steps[0].value if steps else 0
    size = layout.store_size(I.accessed_value(access).type)
    return step in (size, -size) or (step == 0 and isinstance(access, I.Load))
