"""Distances of two places in memory, which lead from one of them to the other where they are added to an address.

    %d = sub (ptrtoint %b), (ptrtoint %a)
    %q = getelementptr i8, ptr %a, i64 %d        a place in what %a leads to, as far as the map of pointers can tell

Shadows lie as far from one another as the allocator has it, and not as the objects do. A distance of two places in one
object is the same in its shadow; what is only compared says where memory overlaps.

Distances of two objects are refused. What may be of two or of one is *unsure*: what is one object in the map may be
several at run time (the nodes of a list, and the numbers of vectors), and a pointer may lead to one of several objects.
Such distances are compared with those of the shadows when a derivative runs, if they can come to an address at all:
through arithmetic, calls and memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, Objects, copy_operands, is_copy
from jax_enzyme.analysis.usefulness import Part, Usefulness
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Constant, Value


@dataclass(frozen=True, eq=False)
class Distances:
    """Those of a program; `varied` are the objects that hold numbers with derivatives, or pointers to such."""

    points_to: PointsTo
    varied: AbstractSet[MemoryObject]

    def lead_across(self, difference: I.BinaryOp) -> bool:
        """Whether this is one of two objects, and may reach an address."""
        return self._matters(difference) and not self._may_be_in_one(difference)

    def is_unsure(self, difference: I.BinaryOp) -> bool:
        """Whether this may be one of two objects as well as of one, and may reach an address."""
        if not self._matters(difference) or not self._may_be_in_one(difference):
            return False
        objects = self._objects(difference)
        return not ((len(objects) == 1 and self._is_one(next(iter(objects)))) or self._starts_in_one(difference))

    def _objects(self, difference: I.BinaryOp) -> Objects:
        first, second = map(self.points_to.of, difference.operands)
        return first | second if first and second else frozenset()

    def _matters(self, difference: I.BinaryOp) -> bool:
        return not self._objects(difference).isdisjoint(self.varied) and difference in self._leading

    def _may_be_in_one(self, difference: I.BinaryOp) -> bool:
        return self.points_to.may_meet(*map(self.points_to.of, difference.operands))

    def _is_one(self, item: MemoryObject) -> bool:
        """Whether there is only one of an object: none is made in a loop, or in a function that others call."""
        site = item.site
        return site is not None and (not isinstance(site, I.Instruction) or site in self._once)

    @cached_property
    def _once(self) -> frozenset[I.Instruction]:
        loops = Loops.of(self.points_to.root)
        return frozenset(i for b in self.points_to.root.blocks if loops.loop_of.get(b) is None for i in b.instructions)

    # -- whether both places come from one pointer

    def _starts_in_one(self, difference: I.BinaryOp) -> bool:
        """Whether both places are computed from one pointer, whose value is the same for both: phis on the way come
        behind it."""
        starts = frozenset[Value]().union(*map(_starts, difference.operands))
        phis = {start for start in starts if isinstance(start, I.Phi)}
        others = starts - phis
        return len(others) == 1 and self._come_behind(phis, next(iter(others)))

    def _come_behind(self, phis: Collection[I.Phi], start: Value) -> bool:
        if not isinstance(start, I.Instruction):
            return True
        for function in self.points_to.functions if phis else ():
            home = {i: block for block in function.blocks for i in block.instructions}
            if start in home:
                tree = Dominators(Cfg(function))
                return all(home[p] is not home[start] and tree.dominates(home[start], home[p]) for p in phis)
        return not phis

    # -- what comes to an address

    @cached_property
    def _leading(self) -> AbstractSet[Value]:
        """What may become a part of the address of something that varies, by way of memory too."""
        noted = Usefulness(self.points_to, DataLayout(self.points_to.module))
        unknown, astray = self.points_to.unknown, MemoryObject("astray", None)
        returned = [value for function in self.points_to.functions for value in function.returned()]
        for instruction in self.points_to.instructions():
            moves = noted.moves(instruction, _may_hold_distance)
            given = list(filter(_may_hold_distance, instruction.operands))
            match instruction:
                case I.Load():
                    noted.flows(instruction, [Part(astray)])
                case I.Store(operands=[_, to]) | I.AtomicRMW(operands=[to, *_]) | I.CmpXchg(operands=[to, *_]):
                    noted.fills([unknown, astray] if unknown in self.points_to.of(to) else [unknown], given)
                case I.CallBase() if is_copy(instruction):
                    target, source, _ = copy_operands(instruction)
                    if unknown in self.points_to.of(target):
                        noted.fills([astray], noted.parts(source, None))
                case I.CallBase() if not isinstance(instruction.callee, Function):
                    noted.flows(instruction, [*given, *filter(_may_hold_distance, returned)])
                    for callee in self.points_to.functions:
                        for parameter, value in zip(callee.arguments, instruction.arguments, strict=False):
                            noted.flows(parameter, (value,))
                case _ if not moves:
                    noted.flows(instruction, given)
                case _:
                    pass
        return noted.of(list(filter(_may_hold_distance, self._parts_of_addresses())))[0]

    def _parts_of_addresses(self) -> Iterator[Value]:
        """Of pointers; and integers that hold addresses, where they go to memory, in which they may be pointers."""
        for instruction in self.points_to.instructions():
            match instruction:
                case I.GetElementPtr() | I.Cast(opcode="inttoptr") if self._may_vary(instruction):
                    yield from instruction.operands
                case I.Store(operands=[stored, _]):
                    yield from filter(self._may_vary, (stored,))
                case I.AtomicRMW() | I.CmpXchg():
                    yield from filter(self._may_vary, instruction.operands[1:])
                case _:
                    pass

    def _may_vary(self, pointer: Value) -> bool:
        return not self.points_to.of(pointer).isdisjoint(self.varied)


def _may_hold_distance(value: Value) -> bool:
    return not isinstance(value, Constant) and not T.is_pointer(value.type) and value.type not in (T.I1, T.VOID)


def _starts(value: Value) -> frozenset[Value]:
    """What a pointer, or the integer made of it, is computed from: constants aside, and the phis on the way with it."""
    found: set[Value] = set()
    passed = Reached([value])
    for made in passed:
        if isinstance(made, I.GetElementPtr | I.Cast | I.Freeze):
            passed.add(made.operands[:1])
        elif isinstance(made, I.Select):
            passed.add(made.operands[1:])
        elif not isinstance(made, Constant):
            found.add(made)
            passed.add(made.operands if isinstance(made, I.Phi) else ())
    return frozenset(found)
