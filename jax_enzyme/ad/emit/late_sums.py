"""Adjoints that are kept while a loop is reversed, and added to memory behind it (`ad.plan.late_sums`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.ad.emit.addresses import element_alignment
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.emit.partials import added
from jax_enzyme.ad.facts.copying import ALIGNMENT
from jax_enzyme.ad.plan.late_sums import LateSum
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.tbaa import number_access
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value


class LateSums:
    """Emits both parts. `prologue` builds where the local memory is made; `buffers` has it, with its loop."""

    def __init__(
        self, loads: Mapping[I.Instruction, LateSum], sources: Sources, builder: Builder, prologue: Builder
    ) -> None:
        self.loads = loads
        self._sources = sources
        self._builder = builder
        self._prologue = prologue
        self._waiting: dict[Loop, list[tuple[I.Instruction, LateSum, Value]]] = {}
        self._of_value: dict[tuple[Loop, Value], Value] = {}
        self.buffers: dict[Value, Loop] = {}

    def keep(self, load: I.Instruction, adjoint: Value) -> None:
        """Keeps the adjoint of one of the loads that wait. What is the adjoint of several is kept once."""
        late = self.loads[load]
        buffer = self._of_value.get((late.loop, adjoint))
        if buffer is None:
            buffer = self._prologue.alloca(T.ArrayType(late.count, adjoint.type), align=ALIGNMENT)
            number = self._sources.iteration(late.loop)
            self._store(adjoint, self._builder.gep(adjoint.type, buffer, [number]), adjoint.type)
            self._of_value[late.loop, adjoint] = buffer
            self.buffers[buffer] = late.loop
        self._waiting.setdefault(late.loop, []).append((load, late, buffer))

    def finish(self, loop: Loop, new_block: Callable[[str], BasicBlock]) -> None:
        """Adds what has been kept in a loop that is left now."""
        for load, late, buffer in self._waiting.pop(loop, ()):
            self._add(load, late, buffer, new_block)

    def _add(self, load: I.Instruction, late: LateSum, buffer: Value, new_block: Callable[[str], BasicBlock]) -> None:
        builder = self._builder
        first = self._sources.shadow_at(load.operands[0], late.loop, ConstantInt(T.I64, 0))
        body, after = new_block("sum"), new_block("added")
        before = builder.block
        builder.br(body)
        builder.block = body
        number = builder.phi(T.I64, [(ConstantInt(T.I64, 0), before)])
        place = number if late.step > 0 else builder.binary("sub", ConstantInt(T.I64, 0), number, ("nsw",))
        align = element_alignment(load.type, load.align if isinstance(load, I.Load) else None)
        pointer = builder.gep(load.type, first, [place])
        old = self._load(pointer, load.type, align)
        kept = self._load(builder.gep(load.type, buffer, [number]), load.type, None)
        self._store(added(builder, old, kept), pointer, load.type, align)
        builder.count_on(number, body, ConstantInt(T.I64, late.count), after)
        builder.block = after

    def _load(self, pointer: Value, type_: T.Type, align: int | None) -> Value:
        loaded = self._builder.load(type_, pointer, align)
        assert isinstance(loaded, I.Load)
        loaded.metadata = number_access(type_)
        return loaded

    def _store(self, value: Value, pointer: Value, type_: T.Type, align: int | None = None) -> None:
        self._builder.store(value, pointer, align).metadata = number_access(type_)
