"""Adjoints that are kept while loops are reversed, and added to memory behind them (`ad.plan.late_sums`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite

from jax_enzyme.ad.emit.addresses import element_alignment, load_number, store_number
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.emit.partials import added
from jax_enzyme.ad.emit.runtime import Runtime
from jax_enzyme.ad.facts.copying import ALIGNMENT
from jax_enzyme.ad.plan.late_sums import Gather
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.clone import with_operands
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value

_Layer = tuple[I.Instruction, int, Value | None]
"""What changes the sign of one of its operands, or scales it: by a constant, or by a value of the kernel that no
iteration changes."""
_Kept = list[tuple[I.Load, Value, list[_Layer]]]
"""Loads, the local memory of what is kept for them, and how their adjoints are made of that, the first layer first."""


class LateSums:
    """Emits both parts. `prologue` builds where the local memory is made; `buffers` has it, with what it is for."""

    def __init__(
        self,
        loads: Mapping[I.Instruction, Gather],
        sources: Sources,
        prologue: Builder,
        runtime: Runtime,
    ) -> None:
        self.loads = loads
        self._sources = sources
        self._builder = sources.builder
        self._prologue = prologue
        self._runtime = runtime
        self._waiting: dict[Loop, dict[Gather, _Kept]] = {}
        self._of_value: dict[tuple[Gather, Value], Value] = {}
        self._last: dict[Loop, Value] = {}
        self.buffers: dict[Value, Gather] = {}

    def begin(self, loop: Loop, last: Value) -> None:
        """Says with which iteration the reverse of a loop begins."""
        self._last[loop] = last

    def keep(self, load: I.Load, adjoint: Value) -> None:
        """Keeps the adjoint of one of the loads that wait. What is the adjoint of several is kept once, also where they
        have other signs or factors (`u[i + 1] - u[i - 1]`)."""
        gather = self.loads[load]
        given = {self._sources.value(by): by for by in gather.factors.get(load, ())}
        adjoint, layers = _without_factors(adjoint, not gather.alike, given)
        buffer = self._of_value.get((gather, adjoint))
        if buffer is None:
            buffer = self._made(gather, adjoint.type)
            store_number(self._builder, adjoint, self._builder.gep(adjoint.type, buffer, [self._number(gather)]))
            self._of_value[gather, adjoint] = buffer
        self._waiting.setdefault(gather.loop, {}).setdefault(gather, []).append((load, buffer, layers))

    def _made(self, gather: Gather, type_: T.Type) -> Value:
        """Local memory for one adjoint in all iterations, with zeros wherever none is."""
        buffer = self._prologue.alloca(T.ArrayType(gather.room, type_), align=ALIGNMENT)
        if gather.has_zeros:
            item = element_alignment(type_, None)
            self._runtime.clear(self._prologue, buffer, ConstantInt(T.I64, gather.room * item))
        self.buffers[buffer] = gather
        return buffer

    def _number(self, gather: Gather) -> Value:
        """Where what is kept of the current iterations lies."""
        total: Value = ConstantInt(T.I64, gather.start)
        for loop, step in zip(gather.nest, gather.steps, strict=True):
            scaled = self._builder.binary("mul", self._sources.iteration(loop), ConstantInt(T.I64, step), ("nsw",))
            total = self._builder.binary("add", total, scaled, ("nsw",))
        return total

    def finish(self, loop: Loop, new_block: Callable[[str], BasicBlock]) -> None:
        """Adds what has been kept in a loop that is left now. Where places are some items apart, one loop goes over all
        that lies between them."""
        together: dict[object, list[tuple[Gather, _Kept]]] = {}
        for gather, kept in self._waiting.pop(loop, {}).items():
            key = gather if gather.apart == 1 else (gather.apart, gather.span + gather.rim)
            together.setdefault(key, []).append((gather, kept))
        for gathers in together.values():
            self._add(gathers, new_block)

    def _end(self, gather: Gather, kept: _Kept) -> Value:
        """How many places a loop whose length differs came to. Behind what it kept, older numbers become zeros."""
        end = self._builder.binary("add", self._last[gather.loop], ConstantInt(T.I64, gather.rim + 1), ("nuw", "nsw"))
        for buffer, type_ in {buffer: load.type for load, buffer, *_ in kept}.items():
            size = ConstantInt(T.I64, gather.rim * element_alignment(type_, None))
            self._runtime.clear(self._builder, self._builder.gep(type_, buffer, [end]), size)
        return end

    def _add(self, gathers: list[tuple[Gather, _Kept]], new_block: Callable[[str], BasicBlock]) -> None:
        builder, gather = self._builder, gathers[0][0]
        firsts = [(g, kept, min(g.shifts, key=g.shifts.__getitem__)) for g, kept in gathers]
        places = [self._sources.shadow_at(lowest.operands[0], g.first) for g, _, lowest in firsts]
        end: Value = ConstantInt(T.I64, gather.span + gather.rim)
        if gather.ragged:
            end = self._end(gather, gathers[0][1])
        scales = {by: self._sources.value(by) for g, _ in gathers for factors in g.factors.values() for by in factors}
        before, body, after = builder.block, new_block("sum"), new_block("added")
        ways = [(body, False)]
        if scales and any(g.has_zeros for g, _ in gathers):
            ways.append((new_block("some"), True))
            builder.cond_br(self._are_finite(scales.values()), *(block for block, _ in ways))
        else:
            builder.br(body)
        for block, is_masked in ways:
            builder.block = block
            number = builder.phi(T.I64, [(ConstantInt(T.I64, 0), before)])
            for (gather, kept, lowest), first in zip(firsts, places, strict=True):
                self._add_one(gather, kept, lowest.type, first, number, scales, is_masked)
            builder.count_on(number, block, end, after)
        builder.block = after

    def _are_finite(self, values: Iterable[Value]) -> Value:
        """Whether all these numbers are finite, so that what they scale is zero where nothing was kept."""
        result: Value = ConstantInt(T.I1, 1)
        for value in values:
            none = self._builder.binary("fsub", value, value)
            is_finite = self._builder.fcmp("oeq", none, zero(value.type))
            result = self._builder.binary("and", result, is_finite)
        return result

    def _add_one(
        self,
        gather: Gather,
        kept: _Kept,
        type_: T.Type,
        first: Value,
        number: Value,
        scales: Mapping[Value, Value],
        is_masked: bool,
    ) -> None:
        """Adds to one place what has been kept for it; if masked, an exact zero stays one whatever scales it."""
        builder = self._builder
        align = min(element_alignment(load.type, load.align) for load in gather.shifts)
        item = number
        if gather.apart > 1:
            item = builder.binary("mul", number, ConstantInt(T.I64, gather.apart), ("nuw", "nsw"))
        pointer = builder.gep(type_, first, [item])
        total = load_number(builder, type_, pointer, align)
        for load, buffer, layers in kept:
            shift = ConstantInt(T.I64, gather.rim - gather.shifts[load])
            place = builder.binary("add", number, shift, ("nuw", "nsw"))
            term = given = load_number(builder, load.type, builder.gep(load.type, buffer, [place]))
            for layer, at, by in layers:
                others = (o if by is None else scales[by] for o in layer.operands)
                operands = (term if i == at else o for i, o in enumerate(others))
                term = builder.insert(with_operands(layer, operands))
            if is_masked and any(by is not None for _, _, by in layers):
                is_zero = builder.fcmp("oeq", given, zero(load.type))
                term = builder.select(is_zero, given, term)
            total = added(builder, total, term)
        store_number(builder, total, pointer, align)


def _without_factors(adjoint: Value, constants: bool, given: Mapping[Value, Value]) -> tuple[Value, list[_Layer]]:
    """What an adjoint is but for its sign, `given` factors, and constant ones if they are asked for, and these."""
    layers: list[_Layer] = []
    while isinstance(adjoint, I.Instruction):
        at, by = _scaled_operand(adjoint), None
        if adjoint.opcode == "fmul" and (at is None or not constants):
            at = next((1 - i for i, operand in enumerate(adjoint.operands) if operand in given), None)
            by = None if at is None else given[adjoint.operands[1 - at]]
        if at is None:
            break
        layers.insert(0, (adjoint, at, by))
        adjoint = adjoint.operands[at]
    return adjoint, layers


def _scaled_operand(instruction: I.Instruction) -> int | None:
    """Which operand an instruction changes the sign of, or multiplies by a constant."""
    match instruction:
        case I.UnaryOp(opcode="fneg"):
            return 0
        case I.BinaryOp(opcode="fmul"):
            factors = [float_value(operand) for operand in instruction.operands]
            constant = [i for i, factor in enumerate(factors) if factor is not None and isfinite(factor)]
            return 1 - constant[0] if len(constant) == 1 else None
        case _:
            return None
