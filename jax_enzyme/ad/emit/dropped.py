"""Cotangents of what a `select` drops: zero, also where a partial is infinite or no number.

    forward   %w = fmul double %x, %y                reverse   %term = fmul double %wbar, %y
              %z = select i1 %c, double %w, ...                %unused = fcmp oeq double %wbar, 0.0
                                                               %no_number = fcmp uno double %term, 0.0
                                                               %spoilt = and i1 %unused, %no_number
                                                               %sent = select i1 %spoilt, double 0.0, double %term

LLVM makes branches into selects, moves quotients out of loops, and then computes `sqrt(x)` of negative x as well: the
cotangent there is an exact zero, which an infinite partial must not spoil. Masks that are hardly ever needed are
marked, and compiled code runs without these first (`transform/unmasked.py`).
"""

from __future__ import annotations

from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.marks import MASK
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.values import Value


def unless_spoilt(builder: Builder, term: Value, adjoint: Value, factor: Value | None, may_go: bool) -> Value:
    """Nothing where a partial that is infinite, or no number, meets an adjoint of exactly 0. Any other term stays even
    then, since its derivatives by the adjoint are not 0: a fit's residuals vanish, its Hessian does not. Of a `factor`
    that is the partial, and the same in all iterations, it is asked once whether it is a finite number: zero times
    anything else is none, and iterations that hand adjoints on do not wait for the product. `may_go`: the mask is
    marked."""
    unused = builder.fcmp("oeq", adjoint, zero(adjoint.type))
    asked = term if factor is None or factor.type != term.type else builder.binary("fsub", factor, factor)
    spoilt = builder.binary("and", unused, builder.fcmp("uno", asked, zero(term.type)))
    sent = builder.select(spoilt, zero(term.type), term)
    if may_go and isinstance(sent, Instruction):
        sent.metadata = [*sent.metadata, (MASK, MDNode())]
    return sent
