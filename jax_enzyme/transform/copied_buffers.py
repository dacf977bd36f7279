"""Memory that is a copy of an input, or is copied to an output, is that buffer itself.

    before    %a = call ptr @malloc(i64 800)                      after
              %b = call ptr @malloc(i64 800)
              call void @llvm.memcpy(ptr %a, ptr %x, i64 800)
              for i: { ... load from %a ... store to %b }                 for i: { ... load from %x ... store to %y }
              call void @llvm.memcpy(ptr %y, ptr %b, i64 800)
              call void @free(ptr %a) ...

Programs for other devices have their arrays there, and copy what the caller gave and wants: one thread copies, while
the loops between have several.

Of an input, if the copy is all of the memory, comes before all that is read, and nothing else is written there, nor to
the input. Of an output, if it is touched by this copy alone, and whatever was written to the memory is copied before
the function returns, unless it fails: then outputs are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.extents import allocation_size, argument_size
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function, Uses, declared_name, used_at, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import on_copy, substitute

_Edge = tuple[BasicBlock, BasicBlock]


@dataclass(eq=False)
class _Memory:
    """What is done with one allocation of constant size; what only holds the memory itself (a comparison with null, its
    end) goes with it."""

    site: I.Call
    size: int
    reads: list[I.Instruction] = field(default_factory=list[I.Instruction])
    writes: list[I.Instruction] = field(default_factory=list[I.Instruction])
    holds: list[I.Instruction] = field(default_factory=list[I.Instruction])
    copied_in: list[I.Call] = field(default_factory=list[I.Call])
    """Copies of a buffer to all of the memory, which are among what writes."""
    copied_out: list[I.Call] = field(default_factory=list[I.Call])


def use_buffers(function: ArrayFunction) -> ArrayFunction:
    """The array function without such memory, in a copy of its module; itself where there is none."""
    if not any(_found(function.module.functions[function.symbol], function.buffers)):
        return function

    def change(_: object, root: Function) -> bool:
        for memory, buffer in list(_found(root, function.buffers)):
            _put(root, memory, buffer)
        return True

    return on_copy(function, change)


def _found(root: Function, buffers: tuple[Buffer, ...]) -> Iterator[tuple[_Memory, Argument]]:
    """The memory that is a buffer, and which."""
    sites = [i for i in root.instructions() if isinstance(i, I.Call) and allocation_size(i)]
    if not sites:
        return
    users = uses(root)
    order: Loops | None = None
    for memory in filter(None, [_memory(site, users) for site in sites]):
        for copy, buffer in _with_buffers(memory, buffers):
            order = order or Loops.of(root)
            is_buffer = _is_input if copy in memory.copied_in else _is_output
            if is_buffer(memory, copy, buffer, users, order):
                yield memory, buffer
                break


def _memory(site: I.Call, users: Uses) -> _Memory | None:
    """What is done with an allocation; None where its address goes elsewhere."""
    size = allocation_size(site)
    assert size is not None
    found = _Memory(site, size)
    for user, index, pointer in used_at(site, users):
        effect = call_effect(user) if isinstance(user, I.Call) else None
        match user:
            case I.Load() if I.is_plain(user):
                found.reads.append(user)
            case I.Store() if I.is_plain(user) and index == 1:
                found.writes.append(user)
            case I.Compare(predicate="eq" | "ne") if isinstance(user.operands[1 - index], ConstantNull):
                found.holds.append(user)
            case I.Call() if effect is Effect.FREE and pointer is site:
                found.holds.append(user)
            case I.Call() if effect is Effect.MEMORY_SET and index == 0:
                found.writes.append(user)
            case I.Call() if effect is Effect.MEMORY_COPY and index < 2 and not int_value(user.operands[3]):
                (found.writes if index == 0 else found.reads).append(user)
                is_whole = pointer is site and int_value(user.operands[2]) == size
                if is_whole and isinstance(user.operands[1 - index], Argument):
                    (found.copied_in if index == 0 else found.copied_out).append(user)
            case _:
                return None
    return found


def _with_buffers(memory: _Memory, buffers: tuple[Buffer, ...]) -> Iterator[tuple[I.Call, Argument]]:
    """The copies that may make a buffer of the memory, an input or an output, each with that buffer."""
    if len(memory.copied_in) == len(memory.writes) == 1:
        (copy,) = memory.copied_in
        source = copy.operands[1]
        if isinstance(source, Argument) and buffers[source.index].io == "in":
            yield copy, source
    if len(memory.copied_out) == 1 and declared_name(memory.site) != "calloc":
        (copy,) = memory.copied_out
        target = copy.operands[0]
        whole = isinstance(target, Argument) and argument_size(target) == memory.size
        if isinstance(target, Argument) and whole and _may_be_output(memory, buffers[target.index]):
            yield copy, target


def _may_be_output(memory: _Memory, buffer: Buffer) -> bool:
    """Whether a buffer is an output in which all that is stored has a place: no pointers, among numbers no other words
    either, which may be pointers, and nothing that is copied from elsewhere."""
    stored = [write.operands[0].type for write in memory.writes if isinstance(write, I.Store)]
    if any(isinstance(w, I.Call) and call_effect(w) is not Effect.MEMORY_SET for w in memory.writes):
        return False
    is_fit = T.is_float if buffer.is_floating else T.is_int
    return buffer.io == "out" and all(is_fit(T.scalar(type_)) for type_ in stored)


def _is_input(memory: _Memory, copy: I.Call, buffer: Argument, users: Uses, order: Loops) -> bool:
    return _is_only_read(buffer, users) and all(order.precedes(copy, read) for read in memory.reads)


def _is_output(memory: _Memory, copy: I.Call, buffer: Argument, users: Uses, order: Loops) -> bool:
    alone = [user for user, _ in users.get(buffer, ())] == [copy]
    return alone and not _succeeds_without(order, copy, memory.writes)


def _is_only_read(buffer: Argument, users: Uses) -> bool:
    def reads(user: I.Instruction, index: int) -> bool:
        is_copy = isinstance(user, I.Call) and call_effect(user) is Effect.MEMORY_COPY
        return isinstance(user, I.Load | I.Compare) or (is_copy and index == 1)

    return all(reads(user, index) for user, index, _ in used_at(buffer, users, through=(I.Phi, I.Select)))


def _succeeds_without(order: Loops, stop: I.Instruction, starts: list[I.Instruction]) -> bool:
    """May the function return without failing, behind one of some instructions, and not come by `stop` between?"""
    if stop not in order.home:
        return True
    block, at = order.home[stop]
    begun = {b for b, n in (order.home[s] for s in starts if s in order.home) if b is not block or n > at}
    edges = Reached[_Edge]((b, after) for b in begun for after in b.successors)
    if any(not b.successors for b in begun):
        return True
    for source, here in edges:
        if here is block:
            continue
        if isinstance(here.terminator, I.Return) and not _fails(here, source):
            return True
        edges.add((here, after) for after in here.successors)
    return False


def _fails(end: BasicBlock, source: BasicBlock) -> bool:
    """Does the function fail where control comes from `source` to a block with its return?"""
    (status,) = end.terminator.operands or (None,)
    if isinstance(status, I.Phi) and status in end.instructions:
        status = status.operands[status.targets.index(source)]
    return status is not None and bool(int_value(status))


def _put(root: Function, memory: _Memory, buffer: Argument) -> None:
    """The buffer in place of the memory."""
    align = next((int(w.removeprefix("align ")) for w in buffer.attributes if w.startswith("align ")), 1)
    for access in (*memory.reads, *memory.writes):
        if isinstance(access, I.Load | I.Store):
            access.align = min(access.align or 1, align)
        elif isinstance(access, I.Call):
            access.parameter_attributes = [
                tuple(w for w in words if not w.startswith("align ")) for words in access.parameter_attributes
            ]
    copies = [c for c in (*memory.copied_in, *memory.copied_out) if buffer in c.operands[:2]]
    answers: dict[Value, Value] = {
        i: const_int(T.I1, i.predicate == "ne") for i in memory.holds if isinstance(i, I.Compare)
    }
    gone = {*copies, *(i for i in memory.holds if isinstance(i, I.Call))}
    for block in root.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    substitute(root, {memory.site: buffer, **answers})
