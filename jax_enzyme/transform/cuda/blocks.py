"""The threads of a block, by number and by coordinates, where extents of the block may be what only the run knows.

An open extent is an index without a group, `je.ntid.x`, until it becomes a parameter of the kernel (`take_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.signature.launch import MAX_BLOCK, MAX_SHARED, MAX_THREADS, Shape
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.failing import fail
from jax_enzyme.transform.cuda.group import Axis, product
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.rewriting import add_parameter, phis, substitute

_EXACT = ("nuw", "nsw")


@dataclass(frozen=True)
class Block:
    """The extents of a block; of those that are open (0, 1 or 2, an axis) `shape` has the largest."""

    module: Module
    shape: Shape
    open: tuple[int, ...] = ()

    @property
    def most(self) -> int:
        """Threads, at most."""
        return min(self.shape.threads, MAX_THREADS) if self.open else self.shape.threads

    @property
    def most_warps(self) -> int:
        """Warps, at most."""
        return -(-self.most // WARP_SIZE)

    def extent(self, at: Builder, axis: int) -> Value:
        """Of one axis."""
        known = self.shape.block[axis]
        if axis not in self.open:
            return const_int(T.I32, known)
        return at.call(marks.index(self.module, marks.EXTENTS[axis], known + 1), [])

    def threads(self, at: Builder) -> Value:
        """How many there are."""
        if not self.open:
            return const_int(T.I32, self.most)
        x, y, z = (self.extent(at, axis) for axis in range(3))
        return product(at, product(at, x, y), z)

    def warps(self, at: Builder) -> Value:
        """How many there are; the last one may have fewer lanes."""
        if not self.open:
            return const_int(T.I32, self.most_warps)
        more = at.binary("add", self.threads(at), const_int(T.I32, WARP_SIZE - 1), _EXACT)
        return at.binary("lshr", more, const_int(T.I32, 5))

    def lanes(self) -> Axis:
        """The lanes of a warp."""
        if self.most <= WARP_SIZE:
            return Axis(marks.LANE, self.most, self.threads if self.open else None)
        if not (self.open or self.most % WARP_SIZE):
            return Axis(marks.LANE, WARP_SIZE)

        def here(at: Builder) -> Value:
            first = at.binary("shl", self.index(at, marks.WARP, self.most_warps), const_int(T.I32, 5), _EXACT)
            rest = at.binary("sub", self.threads(at), first, _EXACT)
            whole = const_int(T.I32, WARP_SIZE)
            return at.least(rest, whole)

        return Axis(marks.LANE, WARP_SIZE, here)

    def of_warps(self) -> tuple[Axis, ...]:
        """The loop over the warps of the block."""
        return (Axis(marks.WARP, self.most_warps, self.warps if self.open else None),)

    def of_threads(self) -> tuple[Axis, ...]:
        """The loops over the threads of the block."""
        return tuple(
            Axis(name, extent, partial(self._limit, axis) if axis in self.open else None)
            for axis, (name, extent) in enumerate(zip(marks.THREADS, self.shape.block, strict=True))
        )

    def _limit(self, axis: int, at: Builder) -> Value:
        return self.extent(at, axis)

    def index(self, at: Builder, name: str, extent: int) -> Value:
        """An index that is less than `extent`."""
        return const_int(T.I32, 0) if extent == 1 else at.call(marks.index(self.module, name, extent), [])

    def number_threads(self, kernel: Function) -> None:
        """Threads are lanes of warps: thread number 32 warp + lane."""

        def numbered(at: Builder) -> Mapping[str, Value]:
            lane = self.index(at, marks.LANE, WARP_SIZE)
            warp = self.index(at, marks.WARP, self.most_warps)
            lane = at.binary("and", lane, const_int(T.I32, WARP_SIZE - 1))
            number = at.binary("or", at.binary("shl", warp, const_int(T.I32, 5), _EXACT), lane, ("disjoint",))
            return self._coordinates(at, number)

        _put_in(kernel, marks.THREADS, numbered)

    def number_lanes(self, kernel: Function) -> None:
        """Lane and warp of a thread, where they are only asked for."""

        def numbered(at: Builder) -> Mapping[str, Value]:
            x, y, z = (self.index(at, n, e) for n, e in zip(marks.THREADS, self.shape.block, strict=True))
            row = at.binary("add", at.binary("mul", z, self.extent(at, 1)), y)
            number = at.binary("add", at.binary("mul", row, self.extent(at, 0)), x)
            lane = at.binary("and", number, const_int(T.I32, WARP_SIZE - 1))
            return {marks.LANE: lane, marks.WARP: at.binary("lshr", number, const_int(T.I32, 5))}

        _put_in(kernel, (marks.LANE, marks.WARP), numbered)

    def _coordinates(self, at: Builder, number: Value) -> Mapping[str, Value]:
        nothing: Value = const_int(T.I32, 0)
        large = [axis for axis, extent in enumerate(self.shape.block) if extent > 1]
        found: list[Value] = [nothing] * 3
        rest = number
        for axis in large[:-1]:
            extent = self.extent(at, axis)
            found[axis], rest = at.binary("urem", rest, extent), at.binary("udiv", rest, extent)
        if large:
            found[large[-1]] = rest
        return dict(zip(marks.THREADS, found, strict=True))


def take_numbers(
    kernel: Function, module: Module, *, open_grid: bool, open_block: Sequence[int], open_shared: bool
) -> None:
    """More parameters: the three extents of an open grid, and of a block of which some are open, and the bytes of
    dynamic shared memory. What no device could do is an error of the call."""
    conditions: list[tuple[str, str, Callable[[Builder], Value]]] = []
    if open_grid:
        extents = _extents(kernel, marks.GRID)
        conditions.append(("grid", "every grid that is launched has extents of at least 1", partial(_empty, extents)))
    if open_block:
        extents = _extents(kernel, marks.EXTENTS)
        text = f"every block that is launched has 1 to {MAX_THREADS} threads, at most {MAX_BLOCK[2]} along z"
        conditions.append(("block", text, partial(_no_block, extents)))
    if open_shared:
        given = add_parameter(kernel, "", type_=T.I64)
        text = f"every block that is launched has at most {MAX_SHARED} bytes of dynamic shared memory"
        conditions.append(("shared", text, lambda at: at.icmp("ugt", given, const_int(T.I64, MAX_SHARED))))
    here = kernel.entry
    for name, text, wrong in conditions:
        here = _fail_where(kernel, module, here, wrong, f"je.launch.{name}", text)


def _extents(kernel: Function, names: Sequence[str]) -> Sequence[Value]:
    """Three parameters that take the place of indices."""
    extents = [add_parameter(kernel, "", type_=T.I32) for _ in range(3)]
    made = dict(zip(names, extents, strict=True))
    substitute(kernel, {i: made[name] for i in kernel.instructions() if (name := callee_name(i)) in made})
    return extents


def _empty(extents: Sequence[Value], at: Builder) -> Value:
    return reduce(partial(at.binary, "or"), [at.icmp("eq", extent, const_int(T.I32, 0)) for extent in extents])


def _no_block(extents: Sequence[Value], at: Builder) -> Value:
    found = [_empty(extents, at)]
    found += [at.icmp("ugt", e, const_int(T.I32, limit)) for e, limit in zip(extents, MAX_BLOCK, strict=True)]
    # Each is small enough for the product where none of the above holds.
    x, y, z = (at.cast("zext", extent, T.I64) for extent in extents)
    found.append(at.icmp("ugt", at.binary("mul", at.binary("mul", x, y), z), const_int(T.I64, MAX_THREADS)))
    return reduce(partial(at.binary, "or"), found)


def _fail_where(
    kernel: Function, module: Module, here: BasicBlock, wrong: Callable[[Builder], Value], name: str, text: str
) -> BasicBlock:
    """The kernel fails at the end of a block, which has one successor, where something holds; the block from which it
    goes on."""
    (target,) = here.instructions.pop().targets
    at = Builder(here)
    failing, on = BasicBlock(name="nothing"), BasicBlock(name="launched")
    at.cond_br(wrong(at), failing, on)
    fail(module, Builder(failing), name, text)
    Builder(on).br(target)
    for phi in phis(target):
        phi.targets = [on if b is here else b for b in phi.targets]
    kernel.blocks += [on, failing]
    return on


def _put_in(kernel: Function, names: Sequence[str], made: Callable[[Builder], Mapping[str, Value]]) -> None:
    """Calls of indices become values that are computed at the start of the kernel."""
    calls = [i for i in kernel.instructions() if callee_name(i) in names]
    if not calls:
        return
    at = Builder.on_top(kernel)
    values = made(at)
    substitute(kernel, {i: values[callee_name(i)] for i in calls if isinstance(i, I.Call)})
