"""Behind the choice of a virtual function an object is one of those whose table has it.

    before    %table = load ptr, ptr %this
              %f = load ptr, ptr %table
              %is = icmp eq ptr %f, @square
              br i1 %is, label %call.square, label %call.cube
            call.square:
              %p = getelementptr i8, ptr %this, i64 8

    after   call.square:
              %this.1 = getelementptr i8, ptr %this, i64 0, !je.tables !{i64 0, !"_ZTV6Square", i64 16}
              %p = getelementptr i8, ptr %this.1, i64 8

Without that, what each class has behind its table would be read as what any of them has there: a number as an integer
or as a pointer. `%this` and `%table` are those of one moment, as each way to a block goes by where its values were
made last. Where a pointer leads to one function alone, or never to the one that is asked for, the other arm goes: when
calls became direct, less was known of what is where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.layout import DataLayout, addresses
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.tables import Held, held_at, holder
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module, uses
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.transform.rewriting import go_one_way, phis, remove_unreachable


def leave_out_other_functions(function: ArrayFunction) -> ArrayFunction:
    """The array function without the arms of choices by functions that no run takes; itself where there are none."""
    if not _asks(function.module):
        return function
    result, points_to, tables = _copied(function)
    decided = [
        (owner, choice.block, choice.target(known))
        for owner in points_to.functions
        for choice in _choices(owner)
        if (known := tables.is_known(choice)) is not None
    ]
    for _, block, target in decided:
        go_one_way(block, target)
    for owner in dict.fromkeys(owner for owner, _, _ in decided):
        remove_unreachable(owner)
    return result if decided else function


def tell_objects(function: ArrayFunction) -> ArrayFunction:
    """The array function with what choices by functions say of objects, without the arms that no run takes by what that
    says; itself where it is nothing."""
    if not _asks(function.module):
        return function
    result, points_to, tables = _copied(function)
    told = [_Objects(owner, points_to, tables).tell() for owner in points_to.functions]
    if not any(told):
        return function
    while (fewer := leave_out_other_functions(result)) is not result:
        result = fewer
    return result


def _copied(function: ArrayFunction) -> tuple[ArrayFunction, PointsTo, Tables]:
    result = replace(function, module=clone(function.module))
    points_to = PointsTo(result.module, result.module.functions[function.symbol])
    return result, points_to, Tables(points_to)


@dataclass(frozen=True, eq=False)
class _Choice:
    """The branch at the end of a block that asks whether a pointer is that to a function."""

    block: BasicBlock
    pointer: Value
    function: Function
    is_first: bool

    def target(self, is_it: bool) -> BasicBlock:
        first, second = self.block.terminator.targets
        return first if is_it == self.is_first else second


def _choices(function: Function) -> Iterator[_Choice]:
    for block in function.blocks:
        match block.instructions[-1]:
            case I.CondBranch(operands=[I.Compare(opcode="icmp", operands=[pointer, Function() as asked]) as compare]):
                if compare.predicate in ("eq", "ne") and not isinstance(pointer, Constant):
                    yield _Choice(block, pointer, asked, compare.predicate == "eq")
            case _:
                pass


def _asks(module: Module) -> bool:
    return any(True for f in module.functions.values() if f.blocks for _ in _choices(f))


class Tables:
    """What is known of the functions in constant tables."""

    def __init__(self, points_to: PointsTo) -> None:
        self._points_to = points_to
        self.layout = DataLayout(points_to.module)

    def is_known(self, choice: _Choice) -> bool | None:
        """Whether a pointer is always that to the function that is asked for, or never; None where that is open."""
        by_objects = [self._is_of_none(choice.target(is_it)) for is_it in (False, True)]
        if any(by_objects):
            return by_objects[0] if not all(by_objects) else None
        objects = self._points_to.of(choice.pointer)
        if not objects or self._points_to.is_any_code(objects):
            return None
        if all(o.site is not choice.function for o in objects):
            return False
        slots = self.slots(choice.pointer)
        return True if slots and all(f is choice.function for f in slots.values()) else None

    def _is_of_none(self, block: BasicBlock) -> bool:
        """Whether a block is told to be gone to with such an object as there is none."""
        points_to = self._points_to
        addresses = [i for i in block.instructions if isinstance(i, I.GetElementPtr) and held_at(points_to.module, i)]
        return any(points_to.of(i.operands[0]) and not points_to.of(i) for i in addresses)

    def slots(self, pointer: Value) -> Mapping[tuple[GlobalVariable, int], Value | None] | None:
        """The places in constant tables that a pointer is loaded from, and what is there; None where it may come from
        elsewhere too."""
        if not isinstance(pointer, I.Load):
            return None
        found: dict[tuple[GlobalVariable, int], Value | None] = {}
        for item, offsets in self._points_to.within(pointer.operands[0]).items():
            if not isinstance(item.site, GlobalVariable) or not item.is_constant or any(at.modulus for at in offsets):
                return None
            found.update(((item.site, at.offset), self._entries(item.site).get(at.offset)) for at in offsets)
        return found

    @remembered
    def _entries(self, table: GlobalVariable) -> Mapping[int, Value]:
        return {} if table.initializer is None else dict(addresses(self.layout, table.initializer))


@dataclass(frozen=True, eq=False)
class _Region:
    """All that `first` dominates, where an object is told."""

    first: BasicBlock
    address: I.GetElementPtr


class _Objects:
    """What choices say of the objects of one function, which changes."""

    def __init__(self, function: Function, points_to: PointsTo, tables: Tables) -> None:
        self._function, self._points_to, self._tables = function, points_to, tables
        self._regions: list[_Region] = []
        self._around: dict[Value, dict[BasicBlock, _Region | None]] = {}
        self._made: dict[_Region, dict[Value, I.Instruction]] = {}

    def tell(self) -> bool:
        """Changes the function; whether there is anything to tell."""
        choices = {choice.block: choice for choice in _choices(self._function)}
        for block in self._cfg.rpo if choices else ():  # a block comes behind those that dominate it
            if block in choices:
                self._split(choices[block])
        for base in self._around:
            self._use(base)
        for region in self._regions:
            at = len(phis(region.first))
            region.first.instructions[at:at] = [region.address, *self._made.get(region, {}).values()]
        return bool(self._regions)

    def _split(self, choice: _Choice) -> None:
        slots = self._tables.slots(choice.pointer)
        if not slots or not isinstance(choice.pointer, I.Load):
            return
        table, slot = self._origin(choice.pointer.operands[0])
        if not isinstance(table, I.Load):
            return
        base, at = self._origin(table.operands[0])
        for is_it in (True, False):
            first = choice.target(is_it)
            if self._cfg.preds[first] != [choice.block]:
                continue
            told = {(t.name, place - slot) for (t, place), f in slots.items() if (f is choice.function) == is_it}
            held = Held(at, frozenset(told))
            if len(told) < len(slots) and not self._is_told(first, held):
                around = self._region(base, first)
                region = _Region(first, holder(around.address if around else base, held))
                self._regions.append(region)
                self._around[base][first] = region

    def _is_told(self, block: BasicBlock, held: Held) -> bool:
        addresses = (i for i in block.instructions if isinstance(i, I.GetElementPtr))
        return any(held_at(self._points_to.module, i) == held for i in addresses)

    def _use(self, base: Value) -> None:
        """Puts what is told of an address in its place, and in that of what is a constant away from it."""
        pending = [(base, 0)]
        while pending:
            value, at = pending.pop()
            home = self._region(base, self._block_of[value]) if isinstance(value, I.Instruction) else None
            for user, index in self._uses.get(value, ()):
                if isinstance(user, I.GetElementPtr) and index == 0 and (step := self._step(user)) is not None:
                    pending.append((user, at + step))
                block = user.targets[index] if isinstance(user, I.Phi) else self._block_of[user]
                region = self._region(base, block)
                if region is not None and region is not home:
                    user.operands[index] = self._address(region, value, at)

    def _region(self, base: Value, block: BasicBlock) -> _Region | None:
        """The innermost region that a block is in."""
        around = self._around.setdefault(base, {})
        way: list[BasicBlock] = []
        above: BasicBlock | None = block
        while above is not None and above not in around:
            way.append(above)
            above = self._dominators.idom.get(above)
        found = None if above is None else around[above]
        around.update(dict.fromkeys(way, found))
        return found

    def _address(self, region: _Region, value: Value, at: int) -> Value:
        if at == 0:
            return region.address
        made = self._made.setdefault(region, {})
        if value not in made:
            made[value] = I.GetElementPtr(value.type, "getelementptr", [region.address, const_int(T.I64, at)], T.I8)
        return made[value]

    def _origin(self, address: Value) -> tuple[Value, int]:
        """What an address is a constant away from."""
        total = 0
        while isinstance(address, I.GetElementPtr) and (step := self._step(address)) is not None:
            address, total = address.operands[0], total + step
        return address, total

    def _step(self, address: I.GetElementPtr) -> int | None:
        moves = self._tables.layout.moves(address.source_type, address.operands[1:])
        return None if moves is None or moves[1] or isinstance(address.type, T.VectorType) else moves[0]

    @cached_property
    def _cfg(self) -> Cfg:
        return Cfg(self._function)

    @cached_property
    def _dominators(self) -> Dominators:
        return Dominators(self._cfg)

    @cached_property
    def _block_of(self) -> Mapping[Value, BasicBlock]:
        return {i: block for block in self._function.blocks for i in block.instructions}

    @cached_property
    def _uses(self) -> Mapping[Value, Sequence[tuple[I.Instruction, int]]]:
        return uses(self._function)
