"""The frame of a derivative: memory that lives for one call, made at the start and freed at the end."""

from __future__ import annotations

from jax_enzyme.ad.emit.runtime import ARENA
from jax_enzyme.ad.emit.shadows import constant_shadow
from jax_enzyme.ad.plan.shared_tapes import mark_residents
from jax_enzyme.ad.reversal import Reversal
from jax_enzyme.ad.sweeps import Sweeps
from jax_enzyme.analysis.layout import DataLayout, addresses
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.marks import is_common, mark_common
from jax_enzyme.ir.module import Function, GlobalVariable
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value

_STACK_BYTES = 4096


class Frame:
    """The body of a derivative; `first` is the number of its first shadow among its buffers."""

    def __init__(self, sweeps: Sweeps, target: Function, first: int, buffers: tuple[Buffer, ...]) -> None:
        self._reversal = sweeps.reversal
        self._runtime = sweeps.runtime
        self._layout = DataLayout(self._reversal.module)
        self._given = {b.of: a for b, a in zip(buffers[first:], target.arguments[first:], strict=True)}
        self._heap: list[Value] = []
        self._arena: Value | None = None
        self.builder = Builder(BasicBlock(name="entry"))
        target.blocks = [self.builder.block]

    @classmethod
    def more(cls, reversal: Reversal, combined: bool) -> tuple[Buffer, ...]:
        """Buffers that the derivative asks for behind its own, with or without the forward sweep in it."""
        return ()

    def tape(self) -> Value:
        """The tape of a derivative that has both sweeps in it. Nothing clears it: the forward sweep writes each slot
        before the reverse sweep reads it (`ad.check.tapes`)."""
        memory = self.room(self._reversal.root.plan.tape.root.size)
        mark_residents(self._reversal.root.plan, memory)
        return memory

    def unread(self, argument: Value, buffer: Buffer) -> Value:
        """Where the forward sweep may put an output that nobody reads: memory of our own, so that the optimiser sees
        that. Like the output it is no thread's own."""
        memory = self.room(buffer.nbytes, zeroed=True)
        mark_common(memory)
        return memory

    def room(self, size: int, zeroed: bool = False) -> Value:
        """Memory of constant size: on the stack where it is small."""
        if size == 0:
            return ConstantNull(T.PTR)
        if size > _STACK_BYTES:
            clean = self._runtime.allocate if zeroed else self._runtime.take
            self._heap.append(clean(self.builder, size))
            return self._heap[-1]
        return self._local(size, zeroed)

    def _local(self, size: int, zeroed: bool) -> Value:
        """Memory of constant size on the stack. It is cleared by `memset`: of a store of an array of bytes, LLVM makes
        one store for each."""
        memory = self.builder.alloca(T.ArrayType(size, T.I8), align=16)
        if zeroed:
            self._runtime.clear(self.builder, memory, const_int(T.I64, size))
        return memory

    def arena(self) -> Value:
        if not self._reversal.needs_arena:
            return ConstantNull(T.PTR)
        self._arena = self.builder.alloca(ARENA, align=16)
        self.builder.store(zero(ARENA), self._arena)
        return self._arena

    def shadows(self) -> list[Value]:
        """One per shadowed object: given, or made here: zero, but for the addresses in a table."""
        items = self._reversal.shadow_objects
        shadows = [self._shadow(item) for item in items]
        sites = {item.site: shadow for item, shadow in zip(items, shadows, strict=True)}
        for site, memory in sites.items():
            if isinstance(site, GlobalVariable) and site.initializer is not None:
                for offset, address in addresses(self._layout, site.initializer):
                    shadow = constant_shadow(address, lambda v: sites.get(v, v), self.builder)
                    self.builder.store(shadow, self.builder.offset(memory, offset), 1)
        return shadows

    def _shadow(self, item: MemoryObject) -> Value:
        """Its shadow: no thread's own where the object is not, since what iterations clear of it they write of that."""
        memory = self._memory_for(item)
        if item.kind == "buffer" or is_common(item.site):
            mark_common(memory)
        return memory

    def _memory_for(self, item: MemoryObject) -> Value:
        if item.kind == "buffer":
            index = next(i for i, a in enumerate(self._reversal.root.function.arguments) if a is item.site)
            if index in self._given:
                return self._given[index]
            return self._zeros(self._reversal.base.buffers[index].nbytes, item.site)  # nobody gives or wants it
        if isinstance(item.site, GlobalVariable):
            return self._global_shadow(item.site)
        return self._zeros(self._reversal.root.plan.recipes.object_size(item) or 0, item.site)

    def _global_shadow(self, variable: GlobalVariable) -> Value:
        return self._zeros(self._layout.alloc_size(variable.value_type), variable)

    def _zeros(self, size: int, site: Value | None) -> Value:
        return self.room(size + self._reversal.facts.behind(site) if size else 0, zeroed=True)

    def finish(self, status: Value) -> None:
        runtime = self._runtime
        if self._arena is not None:
            self.builder.call(runtime.arena("release"), [self._arena])
        for memory in self._heap:
            runtime.free(self.builder, memory)
        self.builder.ret(status)
