"""Values that go around a marked loop and are always equal become one.

    before    %s = phi double [ 0.0, %entry ], [ %a, %latch ]
              %t = phi double [ 0.0, %entry ], [ %b, %latch ]
              %sum = fadd double %s, %x
              latch: %a = phi [ %s, %skip ], [ %sum, %add ]
                     %b = phi [ %t, %skip ], [ %sum, %add ]

    after     %s, %sum and %a alone

LLVM leaves two of what is loaded in two places from one variable, each for one way through the loop. Neither is a sum
then, since steps of one belong to the other. They are equal if what they begin with is, and if each iteration makes
equals of equals.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.marks import has_marks, marks_of
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.sameness import does_same, is_same
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.rewriting import on_copy, phis, remove_dead, replace_values

_MOST = 64
"""Pairs of values that would have to be equal: from there on they are taken for different ones."""
_COMPUTED = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr)
_Pairs = dict[Value, Value]


def join_equal_phis(function: ArrayFunction) -> ArrayFunction:
    """The array function with such values joined, in a copy of the module; the function itself where it has none."""
    module = function.module
    found = has_marks(module) and next(_found(module, module.functions[function.symbol]), None)
    return on_copy(function, _join) if found else function


def _join(module: Module, root: Function) -> bool:
    while (pairs := next(_found(module, root), None)) is not None:
        replace_values(root, pairs)
        remove_dead(root)
    return True


def _found(module: Module, root: Function) -> Iterator[_Pairs]:
    """Values of a marked loop that are equal, with which."""
    for loop in Loops.of(root):
        if any(marks_of(module, latch.terminator) for latch in loop.latches):
            for one, other in combinations(phis(loop.header), 2):
                if one.type == other.type and (pairs := _equal(loop, one, other)) is not None:
                    yield pairs


def _equal(loop: Loop, one: I.Phi, other: I.Phi) -> _Pairs | None:
    """What is equal to what if these two phis of the loop's header are, and proves that; None where they may differ."""
    pairs: _Pairs = {}
    pending: list[tuple[Value, Value]] = [(one, other)]
    home = {i: block for block in loop.blocks for i in block.instructions}
    while pending:
        x, y = pending.pop()
        if is_same(x, y) or pairs.get(y) is x:
            continue
        if x in pairs or y in pairs or len(pairs) >= _MOST:
            return None
        if not isinstance(x, I.Instruction) or not isinstance(y, I.Instruction) or home.get(x) is not home.get(y, loop):
            return None
        if isinstance(x, I.Phi) and isinstance(y, I.Phi) and set(x.targets) == set(y.targets):
            sources = {block: value for value, block in y.incoming}
            pending += [(value, sources[block]) for value, block in x.incoming]
        elif isinstance(x, _COMPUTED) and does_same(x, y):
            pending += zip(x.operands, y.operands, strict=True)
        else:
            return None
        pairs[y] = x
    return pairs
