"""A function's code with companions beside it: what both modes, and both of their sweeps, have in common.

    before    %q = getelementptr double, ptr %p, i64 %i      after    %q = getelementptr double, ptr %p, i64 %i
                                                                      %q.dot = getelementptr double, ptr %p.dot, i64 %i

The *companion* of an address, or of what has one in it, is its shadow: the same address in the shadow of the memory.
Forward mode has tangents as companions of numbers besides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from jax_enzyme.ad.emit.addresses import address_operands, holds_address
from jax_enzyme.ad.emit.partials import companion_in_sum
from jax_enzyme.ad.facts.causes import ORIGIN
from jax_enzyme.ad.facts.copying import CodeCopy, again
from jax_enzyme.ad.facts.errors import place_of
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, instruction_of
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    Constant,
    ConstantAggregate,
    ConstantExpr,
    ConstantInt,
    ConstantSplat,
    GlobalValue,
    Value,
)
from jax_enzyme.rules.effects import DISTANCES_AGREE
from jax_enzyme.transform.derivative_checks import demand

_MOVES = frozenset("select insertelement shufflevector insertvalue".split())
"""What hands words on as they are: a number in one may have its tangent, or no adjoint, beside an address."""


def _same(value: Constant) -> Value:
    return value


def constant_shadow(
    value: Constant, of_global: Callable[[GlobalValue], Value], at: Builder, other: Callable[[Constant], Value] = _same
) -> Value:
    """The shadow of a constant: the same over the shadows of what it names. `at` builds what has to be computed for
    that, `other` says what goes with a constant that names nothing."""

    def part(value: Constant) -> Constant:
        found = constant_shadow(value, of_global, at, other)
        assert isinstance(found, Constant)
        return found

    match value:
        case GlobalValue():
            return of_global(value)
        case ConstantExpr():
            operands = [constant_shadow(v, of_global, at) for v in value.operands]
            fixed = [v for v in operands if isinstance(v, Constant)]
            if len(fixed) == len(operands):
                return replace(value, operands=fixed)
            return at.insert(instruction_of(value, operands))
        case ConstantAggregate():
            return replace(value, elements=list(map(part, value.elements)))
        case ConstantSplat():
            return replace(value, element=part(value.element))
        case _:
            return other(value)


def holds_shadow(facts: Facts, layout: DataLayout, value: Value) -> bool:
    """Whether a value is, or has in it, an address of memory that has a shadow."""
    return facts.shadowed_memory(value) and holds_address(layout, value.type)


class ShadowedCopy(CodeCopy, ABC):
    """A copy of some code in which companions travel along: `companions` leads to those of values."""

    def __init__(
        self,
        facts: Facts,
        layout: DataLayout,
        sources: Iterable[BasicBlock],
        values: Mapping[Value, Value],
        companions: Mapping[Value, Value],
    ) -> None:
        super().__init__(sources, values)
        self.facts = facts
        self.layout = layout
        self.companions: dict[Value, Value] = dict(companions)

    @abstractmethod
    def carries(self, value: Value) -> bool:
        """Whether a value has a companion."""

    @abstractmethod
    def is_own_shadow(self, pointer: Value) -> bool:
        """Whether a pointer that has no shadow does as well itself where one is wanted."""

    @abstractmethod
    def global_shadow(self, value: GlobalValue) -> Value:
        """The shadow of a global variable; what is written for anything global that has none."""

    def shadow(self, value: Value) -> Value:
        """The shadow of an address, or of what has one in it."""
        found = self.companions.get(value)
        if found is not None:
            return found
        if isinstance(value, Constant):
            found = constant_shadow(value, self.global_shadow, Builder(self.prologue))
            if not isinstance(found, Constant):
                self.companions[value] = found  # it is computed once, at the start
            return found
        objects = self.facts.points_to.of(value)
        if self.is_own_shadow(value) or (objects and all(o.kind == "stream" for o in objects)):
            return self.value(value)  # no program keeps numbers in streams, or among what the system lends it
        raise self.facts.refused(value if isinstance(value, I.Instruction) else self.facts.call_with(value), ORIGIN)

    def companion(self, value: Value) -> Value:
        """What goes with a value wherever it goes."""
        return self.shadow(value)

    def merge(self, phi: I.Phi) -> None:
        """Writes a phi, and one of companions."""
        twin = self.values[phi] = self.phi(phi, self.value)
        twin.flags = phi.flags
        if self.carries(phi):
            self.companions[phi] = self.phi(phi, self.companion)

    def beside(self, instruction: I.Instruction, twin: I.Instruction, indices: Iterable[int] = ()) -> I.Instruction:
        """The same beside an instruction, over the companions of some operands."""
        other = again(twin)
        for index in indices:
            other.operands[index] = self.companion(instruction.operands[index])
        if not isinstance(instruction.type, T.VoidType):
            self.companions[instruction] = other
        return self.builder.insert(other)

    def local_size(self, alloca: I.Alloca) -> Value:
        """The bytes of a local variable: i64."""
        size = ConstantInt(T.I64, self.layout.alloc_size(alloca.allocated_type))
        return self.builder.product([self.value(alloca.operands[0]), size])

    def address(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        """The shadow of an address that is computed, also as an integer: the same over the shadows of the operands that
        it is made of."""
        shadow = again(twin)
        is_pointer, moved = T.is_pointer(instruction.type), False
        only_moves = instruction.opcode in _MOVES
        for index in address_operands(instruction) if is_pointer or only_moves else range(len(instruction.operands)):
            operand = instruction.operands[index]
            carried = T.is_pointer(operand.type) or (self.carries(operand) and not isinstance(operand, Constant))
            if carried or only_moves:
                companion = self.shadow(operand) if is_pointer else self.companion(operand)
                if isinstance(instruction, I.BinaryOp):
                    companion = companion_in_sum(self.builder, operand, self.value(operand), companion)
                shadow.operands[index] = companion
                moved |= carried
        if not moved and not (isinstance(instruction, I.Cast) and T.is_int(instruction.type)):
            raise self.facts.refused(instruction, ORIGIN)
        self.companions[instruction] = self.builder.insert(shadow)

    def compare_distances(self, module: Module, difference: I.Instruction) -> None:
        """Emits what fails where the shadows of two places lie otherwise than the places themselves."""
        first, second = difference.operands
        other = self.builder.binary("sub", self.shadow(first), self.shadow(second))
        agree = self.builder.icmp("eq", self.value(difference), other)
        origin = self.facts.origin.get(difference, difference)
        demand(module, self.builder, DISTANCES_AGREE, agree, place_of(self.facts.module, origin))

    def arguments(self, call: I.CallBase, shadowed: Container[Argument], *more: Value) -> list[Value]:
        """What the derivative of a function is called with: arguments, the companions of some, what it takes besides,
        and what a variadic function takes behind its parameters."""
        callee = call.callee
        assert isinstance(callee, Function)
        count = len(callee.arguments)
        named = zip(callee.arguments, call.arguments[:count], strict=True)
        companions = [self.companion(v) for parameter, v in named if parameter in shadowed]
        own = [self.value(v) for v in call.arguments]
        return [*own[:count], *companions, *more, *own[count:]]
