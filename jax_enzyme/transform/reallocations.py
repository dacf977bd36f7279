"""`realloc` becomes what it means, where the old size is known: new memory, a copy, and the end of the old memory.

    before    %p = call ptr @malloc(i64 %n)           after    %p = call ptr @malloc(i64 %n)
              ...                                              ...
              %q = call ptr @realloc(ptr %p, i64 %m)           %q = call ptr @malloc(i64 %m)
                                                               %c = call i64 @llvm.umin.i64(i64 %n, i64 %m)
                                                               call void @llvm.memcpy(ptr %q, ptr %p, i64 %c, i1 false)
                                                                   , !je.resized
                                                               call void @free(ptr %p)

The old size follows the pointer: through phis and selects it becomes a phi or a select of sizes, and that of null is 0.
Of a pointer that comes out of memory or out of a call only the allocator knows it: `malloc_usable_size` says how many
bytes there are to copy, the size that was asked for or a little more (`ad.facts.room` makes shadows as large). That is
asked where nothing else is left to find out: another pass may yet show where the pointer comes from.
"""

from __future__ import annotations

from jax_enzyme.analysis.objects import RESIZED
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, Module, declared_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import allocated
from jax_enzyme.transform.rewriting import place, replace_values

_RESIZING = ("realloc", "reallocarray")


def lower_reallocations(module: Module) -> Module:
    """A copy of the module without those whose old size is known, or without any where there are none of those; the
    module itself where there is nothing to do."""
    resizing = [i for f in module.functions.values() for i in f.instructions() if _resizes(i)]
    if not resizing:
        return module
    chosen = _traceable if any(map(_traceable, resizing)) else _resizes
    copy = clone(module)
    declarations = Declarations(copy)
    for function in list(copy.functions.values()):
        calls = [i for i in function.instructions() if chosen(i)]
        if calls:
            _Sizes(function, declarations).rewrite(calls)
    return copy


def _resizes(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Call) and declared_name(instruction) in _RESIZING


def _traceable(instruction: I.Instruction) -> bool:
    """A `realloc` of memory all of whose origins are in sight."""
    if not _resizes(instruction):
        return False
    found = Reached(instruction.operands[:1])
    for value in found:
        if isinstance(value, I.Phi | I.Freeze | I.Select):
            found.add(I.merged(value))
        elif not isinstance(value, ConstantNull) and allocated(declared_name(value)) is None:
            return False
    return True


class _Sizes:
    """The sizes that go with pointers, as values of their own."""

    def __init__(self, function: Function, declarations: Declarations) -> None:
        self._function = function
        self._declarations = declarations
        self._sizes: dict[Value, Value] = {}
        self._block = {i: b for b in function.blocks for i in b.instructions}

    def rewrite(self, calls: list[I.Instruction]) -> None:
        sizes = [self._of(call.operands[0]) if _traceable(call) else self._asked(call) for call in calls]
        new_sizes = [self._of(call) for call in calls]
        replaced: dict[Value, Value] = {}
        for call, old, new in zip(calls, sizes, new_sizes, strict=True):
            replaced[call] = self._resize(call, old, new)
        replace_values(self._function, replaced)

    def _of(self, pointer: Value) -> Value:
        """The size of the memory at a pointer's value, made where the pointer is made."""
        known = self._sizes.get(pointer)
        if known is not None:
            return known
        if isinstance(pointer, ConstantNull):
            return const_int(T.I64, 0)
        assert isinstance(pointer, I.Instruction)
        block = self._block[pointer]
        made = Builder(BasicBlock())
        match pointer:
            case I.Phi():
                phi = made.phi(T.I64)
                self._sizes[pointer] = phi
                block.instructions.insert(0, phi)
                self._block[phi] = block
                phi.operands, phi.targets = [self._of(v) for v in pointer.operands], list(pointer.targets)
                return phi
            case I.Select():
                self._sizes[pointer] = made.select(
                    pointer.operands[0], self._of(pointer.operands[1]), self._of(pointer.operands[2])
                )
            case I.Freeze():
                self._sizes[pointer] = self._of(pointer.operands[0])
            case _:
                factors = allocated(declared_name(pointer)) or ()
                self._sizes[pointer] = made.product(pointer.operands[i] for i in factors)
        at = block.instructions.index(pointer)
        block.instructions[at:at] = made.block.instructions
        return self._sizes[pointer]

    def _asked(self, call: I.Instruction) -> Value:
        """The size as the allocator has it, asked in front of the call."""
        made = Builder.before(self._block[call], call)
        return self._declarations.invoke(made, "malloc_usable_size", T.I64, [call.operands[0]])

    def _resize(self, call: I.Instruction, old: Value, new: Value) -> Value:
        block = self._block[call]
        made = Builder(BasicBlock())
        memory = self._declarations.memory(made, "malloc", new)
        memory.name = call.name
        least = self._declarations.invoke(made, "llvm.umin.i64", T.I64, [old, new])
        copy = self._declarations.memory(made, "memcpy", memory, call.operands[0], least)
        self._declarations.memory(made, "free", call.operands[0])
        at = block.instructions.index(call)
        block.instructions[at : at + 1] = made.block.instructions
        place(call, made.block.instructions)
        assert isinstance(copy, I.Instruction)
        copy.metadata = [*copy.metadata, (RESIZED, MDNode())]
        return memory
