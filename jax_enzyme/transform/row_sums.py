"""Sums that an inner loop makes for one element of a row after the other are made for the whole row at once.

    before    for j: { s = 0; for k: s += a[k] * b[k][j]; c[j] = s; }

    after     for j: S[j] = 0
              for k: for j: S[j] += a[k] * b[k][j]
              for j: c[j] = S[j]

What is read lies side by side for one j and the next, and far apart for one k and the next. Each sum is a chain of
additions whose order is the source's, before and after, so that nothing is rounded otherwise; but the chains of a row
are vectors now. In reverse, what an inner loop added to `b` in columns it adds in rows, and the adjoint of `a[k]` is a
sum over one row. The inner loops may be a nest, and what they carry anything, of which sums are the most frequent.
Where the innermost one has branches nothing is turned: a number that is the same for a row but read under a condition
would have an adjoint in memory, to which each element would add.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from jax_enzyme.analysis.counters import way
from jax_enzyme.analysis.evaluation import is_pure, is_silent
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.polynomials import Leaf, TooComplex
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.module import Function, Module, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value, int_value
from jax_enzyme.transform.carried_loads import LENGTHS
from jax_enzyme.transform.rewriting import (
    count_iterations,
    forget_records,
    local,
    on_copy,
    phis,
    redirect_phis,
    remove_dead,
    replace_values,
)

_ROWS = range(24, LENGTHS.stop)
"""Elements of a row: of fewer, LLVM unrolls the loop before it would make vectors of it, in reverse at least."""
_RAGGED = 2 * _ROWS.start
"""Elements of the longest row where rows differ in length."""
_BYTES = 1 << 15
"""Of what is carried for a whole row: as much as the nearest cache holds."""
_ALL_BYTES = 1 << 18
"""The same for all nests of a function together."""
_ALIGNMENT = 64
_PLAIN = (I.BinaryOp, I.UnaryOp, I.Cast, I.Compare, I.Select, I.GetElementPtr, I.Phi)


@dataclass(frozen=True, eq=False)
class _Sum:
    """What the inner loops carry: `phi` is it in the innermost one, `following` after an iteration of that, `start`
    before all; `ends` are it after the innermost loop, as the loops around that name it."""

    phi: I.Phi
    start: Value
    following: Value
    ends: frozenset[Value]


@dataclass(frozen=True, eq=False)
class _Nest:
    """A loop over a row, of at most `count` elements, and the loops inside of it, one inside the other, outermost
    first. Where rows differ in length, one has as many elements as it is from one value to another (`way`).

    `varying` is what of them all may differ from one element to the next, `kept` what the row's first block computes
    and the innermost loop uses: it is kept for the whole row as well."""

    row: Loop
    count: int
    way: tuple[Value, Value] | None
    inner: tuple[Loop, ...]
    sums: tuple[_Sum, ...]
    varying: frozenset[Value]
    kept: tuple[I.Instruction, ...]

    @property
    def innermost(self) -> BasicBlock:
        return self.inner[-1].header

    @property
    def blocks(self) -> Set[BasicBlock]:
        return self.inner[0].blocks

    @property
    def behind(self) -> BasicBlock:
        """Where the inner loops are left to."""
        return self.inner[0].exits[0]


def sum_rows(function: ArrayFunction) -> ArrayFunction:
    """The array function, in canonical form, with such nests turned, in a copy of the module; the function itself where
    there are none."""
    if not any(_shaped(loop) for loop in Loops.of(function.module.functions[function.symbol]).all):
        return function
    return on_copy(function, _turn)


def _turn(module: Module, root: Function) -> bool:
    nests = list(_Finder(module, root).nests())
    for nest, facts in nests:
        _Turn(root, nest, facts).run()
    if nests:
        remove_dead(root)
    return bool(nests)


def _shaped(row: Loop) -> tuple[Loop, ...]:
    """The loops inside of a loop, where they are one inside the other with nothing but a block before each and one
    behind; none elsewhere."""
    inner: list[Loop] = []
    loop = row
    while loop.children:
        (child, *others) = loop.children
        if others or child.preheader is not loop.header or len(child.exits) != 1 or len(child.latches) != 1:
            return ()
        if child.exiting != child.latches or (loop is not row and loop.latches != child.exits):
            return ()
        if loop is not row and loop.blocks != {loop.header, *child.blocks, *child.exits}:
            return ()
        inner.append(child)
        loop = child
    if row.preheader is None or len(row.latches) != 1 or row.exiting != row.latches or len(loop.blocks) != 1:
        return ()
    return tuple(inner)


class _Finder:
    def __init__(self, module: Module, root: Function) -> None:
        self._module = module
        self._root = root
        self._loops = Loops.of(root)
        self._facts = Recurrences(root, self._loops, module)
        self._layout = DataLayout(module)
        self._points_to = PointsTo(module, root)
        self._memory = MemoryUses(root, self._points_to, self._layout)
        self._users = uses(root)
        self._room = _ALL_BYTES

    def nests(self) -> Iterator[tuple[_Nest, Recurrences]]:
        """Of each nest of loops one row, the innermost that there is."""
        taken: set[BasicBlock] = set()
        for loop in reversed(self._loops.all):  # inner ones first
            inner = _shaped(loop)
            if not inner or inner[-1].header in taken:
                continue
            if any(marks_of(self._module, around.latches[0].terminator) for around in (loop, *inner)):
                continue
            nest = self._nest(loop, inner)
            if nest is not None:
                taken.add(nest.innermost)
                yield nest, self._facts

    def _nest(self, row: Loop, inner: tuple[Loop, ...]) -> _Nest | None:
        repeats, length = self._facts.trip_count(row), None
        if repeats.exact is None or repeats.maximum is None or repeats.maximum + 1 not in _ROWS:
            return None
        if repeats.exact.value is None:
            length = way(row) if repeats.maximum + 1 >= _RAGGED else None
            if length is None:
                return None
        varying = self._varying(row, inner)
        if any(not varying.isdisjoint(loop.latches[0].terminator.operands) for loop in inner):
            return None
        carried = [self._carried(inner, phi) for phi in phis(inner[-1].header) if phi in varying]
        sums = tuple(s for s in carried if s is not None)
        first = [i for i in row.header.instructions if isinstance(i.type, T.FloatType) and i in varying]
        used = [
            i for i in first if any(self._facts.block_of.get(u) is inner[-1].header for u, _ in self._users.get(i, ()))
        ]
        nest = _Nest(row, repeats.maximum + 1, length, inner, sums, varying, ())
        nest = replace(nest, kept=tuple(i for i in used if not self._is_side_by_side(i, nest)))
        size = sum(nest.count * self._layout.store_size(i.type) for i in (*nest.kept, *(s.phi for s in sums)))
        if not sums or len(sums) < len(carried) or size > min(_BYTES, self._room):
            return None
        if not self._may_turn(nest) or not self._gains(nest):
            return None
        self._room -= size
        return nest

    @staticmethod
    def _varying(row: Loop, inner: tuple[Loop, ...]) -> frozenset[Value]:
        """What of the row's first block and of the inner loops is not the same for all elements."""
        found: set[Value] = set(phis(row.header))
        order = [row.header, *inner[0].blocks]
        before = 0
        while before != len(found):
            before = len(found)
            for block in order:
                found.update(i for i in block.instructions if not found.isdisjoint(i.operands))
        return frozenset(found)

    @staticmethod
    def _carried(inner: tuple[Loop, ...], phi: I.Phi) -> _Sum | None:
        """What a phi of the innermost loop carries, if the loops around pass it on as it is."""
        found = inner[-1].ends(phi)
        if found is None or not isinstance(phi.type, T.FloatType):
            return None
        start, following = found
        end = following
        ends = {following}
        for loop, child in zip(reversed(inner[:-1]), reversed(inner[1:]), strict=True):
            named = [p for p in phis(child.exits[0]) if end in p.operands]
            around = loop.ends(start) if isinstance(start, I.Phi) and start in loop.header.instructions else None
            if around is None or around[1] not in named:
                return None
            start, end = around
            ends.update(named)
        return _Sum(phi, start, following, frozenset(ends))

    def _may_turn(self, nest: _Nest) -> bool:
        """Whether nothing else is done in the inner loops, everything that their sums need can be computed in a loop of
        its own, and what is written behind them is none of it. No call in the row may end the program before an
        element's turn comes."""
        if any(isinstance(i, I.CallBase) and not is_silent(i) for b in nest.row.blocks for i in b.instructions):
            return False
        for block in nest.blocks:
            for instruction in block.instructions:
                if not instruction.is_terminator and not self._is_repeatable(instruction):
                    return False
                for user, _ in self._users.get(instruction, ()):
                    if self._facts.block_of.get(user) not in nest.blocks and user not in phis(nest.behind):
                        return False
        ends = {end for s in nest.sums for end in s.ends}
        if any(phi.operands[0] in nest.varying and phi.operands[0] not in ends for phi in phis(nest.behind)):
            return False
        needed = self._needed(nest)
        loads = (i for i in needed or () if isinstance(i, I.Load))
        read = frozenset[MemoryObject]().union(*(self._points_to.of(load.operands[0]) for load in loads))
        return needed is not None and not self._memory.may_be_written(read, nest.row)

    def _is_repeatable(self, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Load():
                return I.is_plain(instruction)
            case I.Call():
                return is_pure(instruction)
            case I.BinaryOp(opcode=opcode) if opcode in I.INTEGER_DIVISIONS:
                return int_value(instruction.operands[1]) not in (None, 0, -1)
            case _:
                return isinstance(instruction, _PLAIN)

    def _needed(self, nest: _Nest) -> set[I.Instruction] | None:
        """What is computed in the loops of the row and in the inner ones; None where something of it cannot be."""
        found: set[I.Instruction] = {i for block in nest.blocks for i in block.instructions}
        allowed = {s.phi for s in nest.sums}
        needed = Reached((s.start for s in nest.sums), lambda v: self._facts.block_of.get(v) in nest.row.blocks)
        for instruction in found:
            passes = isinstance(instruction, I.Phi) and instruction in nest.varying
            needed.add([] if passes else instruction.operands)
        for value in needed:
            assert isinstance(value, I.Instruction)
            if isinstance(value, I.Phi) and value in nest.row.header.instructions:
                if _line(self._facts, value, nest.row) is None:
                    return None
            elif value in found:
                if isinstance(value, I.Phi) and value in nest.varying and value not in allowed:
                    return None
            elif not self._is_repeatable(value):
                return None
            else:
                found.add(value)
                needed.add(value.operands)
        return found

    def _gains(self, nest: _Nest) -> bool:
        """Whether all that the innermost loop reads and that differs lies side by side in the row."""
        loads = [i for b in nest.blocks for i in b.instructions if isinstance(i, I.Load) and i in nest.varying]
        near = [load for load in loads if self._is_side_by_side(load, nest)]
        return bool(near) and all(load in near or self._step(load, nest) == 0 for load in loads)

    def _is_side_by_side(self, value: I.Instruction, nest: _Nest) -> bool:
        return isinstance(value, I.Load) and abs(self._step(value, nest) or 0) == self._layout.store_size(value.type)

    def _step(self, load: I.Load, nest: _Nest) -> int | None:
        """How far the place of a load is from that for the element before."""
        try:
            form = self._facts.form_at(load.operands[0], self._facts.block_of[load]).polynomial
            first, *steps = form.coefficients(self._facts.iteration(nest.row))
        except TooComplex:
            return None
        if len(steps) > 1 or any(isinstance(a, Leaf) and a.value in nest.varying for a in first.atoms):
            return None
        return steps[0].value if steps else 0


def _line(facts: Recurrences, phi: I.Phi, row: Loop) -> tuple[Value, int] | None:
    """Where a phi of a row's header starts, and the constant by which it goes on."""
    ends, step = row.ends(phi), facts.step(phi, row) if facts.bits(phi.type) else None
    return None if ends is None or step is None else (ends[0], step)


class _Turn:
    """Turns one nest, in place."""

    def __init__(self, root: Function, nest: _Nest, facts: Recurrences) -> None:
        self._root = root
        self._nest = nest
        self._facts = facts
        self._new: list[BasicBlock] = []
        self._fixed: dict[Value, Value] = {}
        carried = (*(s.phi for s in nest.sums), *nest.kept)
        self._rows: dict[Value, Value] = {
            value: local(root, T.ArrayType(nest.count, value.type), _ALIGNMENT) for value in carried
        }
        self._count: Value = ConstantInt(T.I64, nest.count)

    def run(self) -> None:
        before, ends = self._nest.row.preheader, self._nest.way
        assert before is not None
        if ends is not None:
            self._count = I.BinaryOp(T.I64, "sub", [ends[1], ends[0]], flags=("nuw", "nsw"))
            before.instructions.insert(-1, self._count)
        ready = BasicBlock()
        self._start(before, ready)
        after = self._turned(ready)
        self._finish(before, after)

    def _place(self, carried: I.Instruction, builder: Builder, element: Value) -> Value:
        return builder.gep(carried.type, self._rows[carried], [element])

    # -- loops over the row

    def _start(self, before: BasicBlock, after: BasicBlock) -> None:
        """A loop that stores what the sums of the row start with, and what is kept."""
        builder = Builder(BasicBlock())
        self._new += [builder.block, after]
        element = builder.phi(T.I64, [(ConstantInt(T.I64, 0), before)])
        known: dict[Value, Value] = {}
        for carried in self._nest.sums:
            start = self._again(carried.start, builder, element, known)
            builder.store(start, self._place(carried.phi, builder, element))
        for value in self._nest.kept:
            builder.store(self._again(value, builder, element, known), self._place(value, builder, element))
        builder.count_on(element, builder.block, self._count, after)
        before.terminator.targets[:] = [builder.block]

    def _iteration(self, before: BasicBlock, after: BasicBlock) -> BasicBlock:
        """A loop with one iteration of the innermost loop, for each element of the row."""
        nest = self._nest
        builder = Builder(BasicBlock())
        element = builder.phi(T.I64, [(ConstantInt(T.I64, 0), before)])
        known = {**self._fixed}
        for value in (*(s.phi for s in nest.sums), *nest.kept):
            known[value] = builder.load(value.type, self._place(value, builder, element))
        for instruction in nest.innermost.instructions[:-1]:
            if instruction in nest.varying:
                self._again(instruction, builder, element, known)
        for carried in nest.sums:
            following = known.get(carried.following, carried.following)
            builder.store(following, self._place(carried.phi, builder, element))
        builder.count_on(element, builder.block, self._count, after)
        self._new.append(builder.block)
        return builder.block

    def _again(self, value: Value, builder: Builder, element: Value, known: dict[Value, Value]) -> Value:
        """A value of the row's first block or of the inner loops, for one element."""
        if not isinstance(value, I.Instruction) or self._facts.block_of.get(value) not in self._nest.row.blocks:
            return value
        if value not in known:
            if isinstance(value, I.Phi):
                known[value] = self._element(value, builder, element)
            else:
                operands = [self._again(o, builder, element, known) for o in value.operands]
                known[value] = builder.insert(with_operands(value, operands))
        return known[value]

    def _element(self, phi: I.Phi, builder: Builder, element: Value) -> Value:
        """What a phi of the row's header is in one iteration of it."""
        found = _line(self._facts, phi, self._nest.row)
        assert found is not None
        start, step = found
        if T.is_pointer(phi.type):
            return builder.gep(T.I8, start, [_scaled(builder, element, step)], flags=())
        assert isinstance(phi.type, T.IntType)
        first = int_value(start)
        if phi.type == T.I64 and first == 0:
            return _scaled(builder, element, step)
        if phi.type == T.I64 and first is not None:
            return builder.binary("add", _scaled(builder, element, step), start, ("nsw",))
        number = builder.narrow(element, phi.type)
        return builder.binary("add", builder.binary("mul", number, const_int(phi.type, step)), start)

    # -- the inner loops around them

    def _turned(self, ready: BasicBlock) -> BasicBlock:
        """The inner loops with what is the same for all elements, around a loop over the row; the block behind them."""
        nest, after, last = self._nest, BasicBlock(), BasicBlock()
        old = [loop.header for loop in nest.inner] + [loop.latches[0] for loop in reversed(nest.inner[:-1])]
        new = {block: BasicBlock() for block in old}
        left = {**new, nest.innermost: last, nest.row.header: ready}
        rest: list[tuple[I.Phi, I.Phi]] = []
        early, memo = Builder(ready), dict[Value, Value]()

        def same(value: Value) -> Value:
            if self._facts.block_of.get(value) is nest.row.header:
                return self._again(value, early, ConstantInt(T.I64, 0), memo)
            return self._fixed.get(value, value)

        for block in old:
            builder = Builder(new[block])
            self._new.append(builder.block)
            for instruction in block.instructions[:-1]:
                if instruction in nest.varying:
                    continue
                if isinstance(instruction, I.Phi):
                    self._fixed[instruction] = copy = builder.phi(instruction.type)
                    rest.append((instruction, copy))
                else:
                    operands = [same(o) for o in instruction.operands]
                    self._fixed[instruction] = builder.insert(with_operands(instruction, operands))
            if block is nest.innermost:
                builder.br(self._iteration(builder.block, last))
                self._new.append(last)
                builder.block = last
            end = with_operands(block.terminator, [same(o) for o in block.terminator.operands])
            end.targets = [after if b is nest.behind else new[b] for b in end.targets]
            builder.insert(end)
        for phi, copy in rest:
            for value, source in phi.incoming:
                copy.add(same(value), left[source])
        early.br(new[nest.inner[0].header])
        self._new.append(after)
        outermost = left[nest.inner[0].latches[0]]
        builder = Builder(after)
        for phi in phis(nest.behind):
            value = phi.operands[0]
            if value in self._fixed:
                self._fixed[phi] = builder.phi(phi.type, [(self._fixed[value], outermost)])
        builder.br(nest.row.header)
        return after

    def _finish(self, before: BasicBlock, after: BasicBlock) -> None:
        """The row's own loop goes on with what is behind the inner loops, and reads there what they left."""
        nest = self._nest
        header, behind = nest.row.header, nest.behind
        redirect_phis(header, before, after)
        element = count_iterations(nest.row, [after])
        header.terminator.targets[:] = [behind]
        builder = Builder(BasicBlock())
        replaced: dict[Value, Value] = {}
        for phi in phis(behind):
            carried = next((s for s in nest.sums if phi.operands[0] in s.ends), None)
            if carried is not None:
                replaced[phi] = builder.load(phi.type, self._place(carried.phi, builder, element))
            else:
                replaced[phi] = self._fixed.get(phi, phi.operands[0])
        behind.instructions = [*builder.block.instructions, *(i for i in behind.instructions if i not in replaced)]
        replace_values(self._root, replaced)
        forget_records(self._root, {i for b in nest.blocks for i in b.instructions})
        at = self._root.blocks.index(header)
        self._root.blocks[at:at] = self._new
        self._root.blocks = [b for b in self._root.blocks if b not in nest.blocks]


def _scaled(builder: Builder, element: Value, step: int) -> Value:
    if step == 1:
        return element
    flags = ("nuw", "nsw") if step > 0 else ("nsw",)
    return builder.binary("mul", element, const_int(T.I64, step), flags)
