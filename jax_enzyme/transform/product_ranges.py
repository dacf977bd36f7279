"""Products that iterations of a marked loop build up are built up in ranges, each of which begins anew.

    before    for i < n: p = p * f(i)

    after     for r < 64:                     the marked loop
                q = 1
                for i in range r: q = q * f(i)
                part[r] = q
              for r < 64: p = p * part[r]

The loop itself could be cut later, as those of sums are (`transform.ranges`). Not so its derivatives: they need what
the product was in each iteration, and what became of it behind. With ranges each range has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.accumulation import Chain, carried_sum
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import full_count
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.marks import Mark, has_marks, mark, marks_of, unmark
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import (
    count_iterations,
    local,
    locate,
    on_copy,
    phis,
    redirect_phis,
    replace_operands,
    split_edge,
)

_PRODUCT = "fmul"
_RANGES, _BITS = 64, 64
_FEWEST = 1024
"""Iterations of a loop that is cut: ranges of fewer would be mostly their own beginnings and ends."""


@dataclass(frozen=True)
class _Product:
    """A loop that is left at its latch alone after `count` iterations, with the phis of its header that are products,
    and the others: counters with their steps, and (None) sums."""

    loop: Loop
    count: int
    products: tuple[I.Phi, ...]
    others: tuple[tuple[I.Phi, int | None], ...]


def cut_products(function: ArrayFunction) -> ArrayFunction:
    """The array function with ranges of such loops, in a copy of the module; the function itself where it has none."""
    if not has_marks(function.module):
        return function
    root = function.module.functions[function.symbol]
    return on_copy(function, _cut_all) if any(_found(function.module, root, Loops.of(root))) else function


def _cut_all(module: Module, root: Function) -> bool:
    facts = Recurrences.of(root, module)
    built_up = _found(module, root, facts.loops)
    found = [each for loop, sums in built_up if (each := _known(facts, loop, sums)) is not None]
    for each in found:
        _cut(module, root, each)
    return bool(found)


def _found(module: Module, root: Function, loops: Loops) -> Iterator[tuple[Loop, Mapping[I.Phi, Chain]]]:
    """The outermost marked loops that build up products, with their sums of any kind."""
    home: dict[Value, BasicBlock] = {i: block for block in root.blocks for i in block.instructions}
    used = uses(root)

    def visit(loop: Loop) -> Iterator[tuple[Loop, Mapping[I.Phi, Chain]]]:
        if len(loop.latches) == 1 and Mark.PARALLEL in marks_of(module, loop.latches[0].terminator):
            sums = {p: c for p in phis(loop.header) if (c := carried_sum(p, loop, used, home)) is not None}
            if any(sum_.kind == _PRODUCT for sum_ in sums.values()):
                yield loop, sums
            return
        for child in loop.children:
            yield from visit(child)

    for loop in loops.roots:
        yield from visit(loop)


def _known(facts: Recurrences, loop: Loop, sums: Mapping[I.Phi, Chain]) -> _Product | None:
    """What is known of a loop, if that is enough to cut it."""
    trips = full_count(facts, loop).exact
    count = 0 if trips is None or trips.value is None else trips.value + 1
    if count < _FEWEST or loop.exiting != loop.latches or loop.preheader is None:
        return None
    products: list[I.Phi] = []
    others: list[tuple[I.Phi, int | None]] = []
    for phi in phis(loop.header):
        is_narrow = isinstance(phi.type, T.IntType) and phi.type.bits <= _BITS
        step = facts.step(phi, loop) if is_narrow else None
        if phi in sums and sums[phi].kind == _PRODUCT:
            products.append(phi)
        elif phi in sums or step is not None:
            others.append((phi, None if phi in sums else step))
        else:
            return None
    return _Product(loop, count, tuple(products), tuple(others))


def _cut(module: Module, root: Function, found: _Product) -> None:
    loop, before, latch = found.loop, found.loop.preheader, found.loop.latches[0]
    ((_, behind),) = loop.exit_edges
    assert before is not None
    size = -(-found.count // _RANGES)
    number = -(-found.count // size)
    start, end, join = (BasicBlock(name=name) for name in ("range", "range.end", "product"))
    root.blocks.insert(root.blocks.index(loop.header), start)
    root.blocks[root.blocks.index(latch) + 1 : root.blocks.index(latch) + 1] = [end, join]

    # Each range.
    before.terminator.targets = [start if b is loop.header else b for b in before.terminator.targets]
    first: dict[I.Phi, Value] = {}
    following: dict[I.Phi, Value] = {}
    for phi in phis(loop.header):
        ends = loop.ends(phi)
        assert ends is not None
        first[phi], following[phi] = ends
    at = Builder(start)
    turn = at.phi(T.I64, [(const_int(T.I64, 0), before)])
    sums = {phi: at.phi(phi.type, [(first[phi], before)]) for phi, step in found.others if step is None}
    done = at.binary("mul", turn, const_int(T.I64, size), ("nuw", "nsw"))
    rest = at.binary("sub", const_int(T.I64, found.count), done, ("nuw", "nsw"))
    is_last = at.icmp("ult", rest, const_int(T.I64, size))
    length = at.select(is_last, rest, const_int(T.I64, size)) if found.count % size else const_int(T.I64, size)
    begin: dict[I.Phi, Value] = dict(sums)
    for phi, step in found.others:
        if step is not None:
            count = at.narrow(done, phi.type)
            begin[phi] = at.binary("add", first[phi], at.binary("mul", count, const_int(phi.type, step)))
    at.br(loop.header)
    products = {phi: following[phi] for phi in found.products}
    for phi in (*begin, *products):
        value = begin.get(phi) or const_float(phi.type, 1.0)
        phi.incoming = [(value, start) if b is before else (v, b) for v, b in phi.incoming]
    here = count_iterations(loop, [start])
    words = marks_of(module, latch.terminator)
    unmark(module, latch.terminator)
    held = latch.instructions.pop()
    at = Builder(latch)
    at.cond_br(at.icmp("eq", here.operands[-1], length), end, loop.header)
    latch.terminator.metadata = held.metadata

    # What each came to, and all together.
    at = Builder(end)
    made = {i for block in loop.blocks for i in block.instructions}
    outside = [i for block in root.blocks if block not in loop for i in block.instructions]
    needed = [*products.values(), *(following[phi] for phi in sums), *(o for i in outside for o in i.operands)]
    left = {value: at.phi(value.type, [(value, latch)]) for value in dict.fromkeys(needed) if value in made}
    for phi, around in sums.items():
        around.add(left.get(following[phi], following[phi]), end)
    parts = {phi: local(root, T.ArrayType(number, phi.type), name="parts") for phi in products}
    for phi, value in products.items():
        at.store(left[value], at.gep(phi.type, parts[phi], [turn]))
    at.count_on(turn, start, const_int(T.I64, number), join)
    locate(held, [end.terminator])
    mark(module, end.terminator, words)
    at = Builder(join)
    each = at.phi(T.I64, [(const_int(T.I64, 0), end)])
    whole: dict[Value, Value] = {}
    for phi, value in products.items():
        product = at.phi(phi.type, [(first[phi], end)])
        whole[value] = product
    for phi, value in products.items():
        product = whole[value]
        assert isinstance(product, I.Phi)
        part = at.load(phi.type, at.gep(phi.type, parts[phi], [each]))
        whole[value] = at.binary("fmul", product, part)
        product.add(whole[value], join)
    at.count_on(each, join, const_int(T.I64, number), behind)
    redirect_phis(behind, latch, join)
    at = Builder(split_edge(root, end, join), 0)
    replaced = {
        value: whole.get(value) or at.phi(value.type, [(value_left, end)]) for value, value_left in left.items()
    }
    replace_operands(outside, replaced)
