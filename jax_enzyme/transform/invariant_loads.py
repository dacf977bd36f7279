"""Loads of one place in all iterations of an innermost loop move before it, though the loop writes to the same array.

    for j > k: a[i][j] -= a[i][k] * a[k][j]

    before    loop:  %f = load double, ptr %p              after    %f = load double, ptr %p
                     ...                                            loop:  ...
                     store double %d, ptr %q                               store double %d, ptr %q

LLVM compares addresses of one array by what it is told of aliases, which is nothing; here what is written lies to the
right of what is read. In reverse, the adjoint of such a load would be added to memory in each iteration, and each would
wait for the one before; behind the loop it is the sum of a reduction, which can be vectorised.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.analysis.accesses import accesses
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.residues import Place, never_meet
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.sources import noted_sources


def load_before_loops(function: ArrayFunction) -> ArrayFunction:
    """The array function with such loads before their loops, in a copy of the module; the function itself where there
    is nothing of the kind. One thread at a time has to run it."""
    root = function.module.functions[function.symbol]
    if not any(_candidates(loop) for loop in Loops.of(root).all):
        return function
    module = clone(function.module)
    return replace(function, module=module) if _move(module, module.functions[function.symbol]) else function


def _move(module: Module, root: Function) -> bool:
    """Whether anything was moved."""
    loops = Loops.of(root)
    facts = Recurrences(root, loops.cfg, loops, module)
    layout = DataLayout(module)
    points_to = PointsTo(module, root)
    writes = [access for access in accesses(points_to, root, layout) if access.writes]

    def may_meet(a: Objects, b: Objects) -> bool:
        return bool(a & b) or points_to.unknown in a or points_to.unknown in b

    def stays(load: I.Load, loop: Loop) -> bool:
        """Whether nothing in the loop writes there."""
        objects = points_to.of(load.operands[0])
        read = Place(load.operands[0], loop.header, layout.store_size(load.type))
        for access in writes:
            block = facts.block_of[access.instruction]
            if block not in loop or not may_meet(access.objects, objects):
                continue
            size = access.size
            if size is None or not never_meet(facts, loop, Place(access.pointer, block, size), read):
                return False
        return True

    copies = noted_sources(root)
    found = ((loop, load) for loop in loops.all for load in _candidates(loop) if load not in copies)
    moved = [(loop, load) for loop, load in found if stays(load, loop)]
    for loop, load in moved:
        assert loop.preheader is not None
        loop.header.instructions.remove(load)
        loop.preheader.instructions.insert(-1, load)
    return bool(moved)


def _candidates(loop: Loop) -> list[I.Load]:
    """The plain loads of numbers that an innermost loop makes once it begins, whatever happens, at an address from
    outside."""
    if loop.children or loop.preheader is None:
        return []
    inside = {i for block in loop.blocks for i in block.instructions}
    if any(isinstance(i, I.CallBase) and not callee_name(i).startswith("llvm.") for i in inside):
        return []  # it may not come back
    return [
        load
        for load in loop.header.instructions
        if isinstance(load, I.Load)
        and isinstance(load.type, T.FloatType)
        and load.operands[0] not in inside
        and not load.ordering
        and "volatile" not in load.flags
    ]
