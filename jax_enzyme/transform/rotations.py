"""Pointers that change places in every iteration of a loop are chosen by its number.

    before    %from = phi ptr [ %u, %entry ], [ %to, %loop ]
              %to = phi ptr [ %v, %entry ], [ %from, %loop ]
    after     %t = phi i64 [ 0, %entry ], [ %t.next, %loop ]
              %turn = urem i64 %t, 2
              %one = icmp eq i64 %turn, 1
              %from = select i1 %one, ptr %v, ptr %u
              %to = select i1 %one, ptr %u, ptr %v

A tape then has no addresses, and of the pointers in an iteration of the reverse sweep it is still known that they lead
to different memory (`analysis.alias`).
"""

from __future__ import annotations

from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import count_iterations, on_copy, phis, substitute

_MOST = 4
"""So many pointers may change places: each takes as many choices."""


def choose_by_turn(function: ArrayFunction) -> ArrayFunction:
    """The array function with such pointers chosen, in a copy of the module; the function itself where it has none."""
    root = function.module.functions[function.symbol]
    return on_copy(function, _choose) if any(_rounds(loop) for loop in Loops.of(root).all) else function


def _choose(_: Module, root: Function) -> bool:
    for loop in Loops.of(root).all:
        for turning in _rounds(loop):
            substitute(root, _by_turn(loop, turning))
    return True


def _rounds(loop: Loop) -> list[list[I.Phi]]:
    """The pointers of a loop's header that are each the next one of them in the next iteration."""
    found: list[list[I.Phi]] = []
    if loop.preheader is None or len(loop.latches) != 1:
        return found
    seen: set[Value] = set()
    for phi in phis(loop.header):
        turning: list[I.Phi] = []
        following: Value = phi
        while isinstance(following, I.Phi) and following not in seen and following in loop.header.instructions:
            seen.add(following)
            turning.append(following)
            following = _way(following, loop.latches[0])
        if following is phi and T.is_pointer(phi.type) and 1 < len(turning) <= _MOST:
            found.append(turning)
    return found


def _by_turn(loop: Loop, turning: list[I.Phi]) -> dict[Value, Value]:
    """By pointer, what it is in an iteration; that is at the start of the header."""
    count = len(turning)
    iteration = count_iterations(loop, [loop.front])
    first = Builder.behind_phis(loop.header)
    turn = first.binary("urem", iteration, const_int(T.I64, count))
    is_turn = [first.icmp("eq", turn, const_int(T.I64, n)) for n in range(1, count)]
    starts = [_way(phi, loop.front) for phi in turning]
    chosen: dict[Value, Value] = {}
    for number, phi in enumerate(turning):
        value = starts[number]
        for n, this in enumerate(is_turn, 1):
            value = first.select(this, starts[(number + n) % count], value)
        chosen[phi] = value
    return chosen


def _way(phi: I.Phi, block: BasicBlock) -> Value:
    return next(value for value, source in phi.incoming if source is block)
