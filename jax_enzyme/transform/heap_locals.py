"""Large local arrays and arrays of variable length move from the stack to the heap.

    before    %a = alloca [100000 x double]                 after    %a = call ptr @malloc(i64 800000)
              ...                                                    ...
              ret double %r                                          call void @free(ptr %a)
                                                                     ret double %r

              %s = call ptr @llvm.stacksave()                        store ptr null, ptr %slot
              %v = alloca double, i64 %n                             %v = call ptr @malloc(i64 %bytes)
              ...                                                    store ptr %v, ptr %slot
              call void @llvm.stackrestore(ptr %s)                   %old = load ptr, ptr %slot
                                                                     call void @free(ptr %old)

XLA's threads have a stack of 8 MB, and a derivative needs room for shadows besides. What is inlined counts together:
the module is in canonical form. An array of variable length that is made again and again within one `stacksave` stays
on the stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.marks import is_common, mark_common
from jax_enzyme.ir.module import Function, GlobalVariable, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Poison, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import place, replace_values

_ARRAY = 1024
"""Bytes of an array that nobody takes for a few registers."""
STACK_BYTES = 16384
"""So much of local variables of constant size may stay on the stack, per function."""
_ALIGN = 16


def move_large_locals(function: ArrayFunction) -> ArrayFunction:
    """The array function with such variables on the heap, in a copy of its module; itself where there are none."""
    module = function.module
    layout = DataLayout(module)
    reached = reachable_functions(module.functions[function.symbol])
    if not any(_to_move(f, layout) for f in reached):
        return function
    copy = clone(module)
    move_locals_of(copy, reachable_functions(copy.functions[function.symbol]))
    return replace(function, module=copy)


def move_locals_of(module: Module, functions: Iterable[Function]) -> None:
    """The same for some functions alone, in place, as they are."""
    layout = DataLayout(module)
    for target in functions:
        moved = _to_move(target, layout)
        if moved:
            _Move(module, target, layout).run(moved)


def move_known_outside(module: Module, function: Function) -> None:
    """Moves the arrays of a function whose address it hands on, in place, but small ones and copies of constants."""
    layout, users = DataLayout(module), uses(function)
    found = [i for i in function.entry.instructions if isinstance(i, I.Alloca) and not i.flags]
    large = [i for i in found if (_static_size(i, layout) or 0) >= _ARRAY]
    moved = [i for i in large if _is_known_outside(i, users)]
    if moved:
        _Move(module, function, layout).run(moved)


def _is_known_outside(alloca: I.Alloca, users: Uses) -> bool:
    """Does a function hand on the address of a variable that it does not copy from a constant?"""
    addresses = Reached[Value]([alloca])
    for address in addresses:
        addresses.add(u for u, _ in users[address] if isinstance(u, I.GetElementPtr | I.Cast))
    found = [(u, n) for a in addresses.all for u, n in users[a]]
    if any(isinstance(o, GlobalVariable) and o.is_constant for u, _ in found if _is_copy(u) for o in u.operands):
        return False
    stored = any(isinstance(u, I.Store) and n == 0 for u, n in found)
    return stored or any(isinstance(u, I.CallBase) and not callee_name(u).startswith("llvm.") for u, _ in found)


def _is_copy(user: I.Instruction) -> bool:
    return callee_name(user).startswith("llvm.memcpy.")


def _static_size(alloca: I.Alloca, layout: DataLayout) -> int | None:
    count = int_value(alloca.operands[0])
    return None if count is None else count * layout.alloc_size(alloca.allocated_type)


def _to_move(function: Function, layout: DataLayout) -> list[I.Alloca]:
    """The variables to move: all that are not made at the start with a constant size, and the largest of the others."""
    found: list[I.Alloca] = []
    fixed: list[tuple[int, I.Alloca]] = []
    for block in function.blocks:
        for instruction in block.instructions:
            if isinstance(instruction, I.Alloca) and not instruction.flags:
                size = _static_size(instruction, layout)
                if size is None or block is not function.entry:
                    found.append(instruction)
                else:
                    fixed.append((size, instruction))
    total = sum(size for size, _ in fixed)
    for size, alloca in sorted(fixed, key=lambda pair: -pair[0]):
        if total <= STACK_BYTES:
            break
        found.append(alloca)
        total -= size
    return found


class _Move:
    """Moves variables of one function, in place."""

    def __init__(self, module: Module, function: Function, layout: DataLayout) -> None:
        self._function = function
        self._layout = layout
        self._declarations = Declarations(module)
        self._order = Loops.of(function)
        self._saves = [i for i in function.instructions() if callee_name(i).startswith("llvm.stacksave")]
        self._restores = [i for i in function.instructions() if callee_name(i).startswith("llvm.stackrestore")]
        self._replaced: dict[Value, Value] = {}

    def run(self, moved: list[I.Alloca]) -> None:
        pairs = all(r.operands[0] in self._saves for r in self._restores)
        stayed = False
        for alloca in moved:
            if _static_size(alloca, self._layout) is not None and self._block(alloca) is self._function.entry:
                self._free_at_end(self._allocate(alloca))
            elif pairs and (self._save_of(alloca) is not None or not self._repeats(alloca, None)):
                self._move_dynamic(alloca)
            else:
                stayed = True
        for block in self._function.blocks:
            block.instructions = [i for i in block.instructions if not self._is_marker(i, stayed)]
        replace_values(self._function, self._replaced)

    def _is_marker(self, instruction: I.Instruction, stayed: bool) -> bool:
        """Lifetimes are those of stack variables; without any of variable size the stack needs no saving."""
        if callee_name(instruction).startswith("llvm.lifetime."):
            return any(v in self._replaced for v in instruction.operands)
        if not stayed and instruction in self._saves:
            self._replaced[instruction] = Poison(T.PTR)
        return not stayed and (instruction in self._saves or instruction in self._restores)

    def _block(self, instruction: I.Instruction) -> BasicBlock:
        return next(b for b in self._function.blocks if instruction in b.instructions)

    def _save_of(self, alloca: I.Alloca) -> I.Instruction | None:
        """The nearest `stacksave` that is run before the variable is made, every time."""
        best: I.Instruction | None = None
        for save in self._saves:
            is_before = self._order.precedes(save, alloca) and not self._repeats(alloca, save)
            if is_before and (best is None or self._order.precedes(best, save)):
                best = save
        return best

    def _repeats(self, alloca: I.Alloca, save: I.Instruction | None) -> bool:
        """Whether the variable can be made twice without the `stacksave` in between."""
        home, wall = self._block(alloca), None if save is None else self._block(save)
        return home in reached(home.successors, lambda block: block.successors, lambda block: block is not wall)

    def _allocate(self, alloca: I.Alloca) -> Value:
        block = self._block(alloca)
        made = Builder(BasicBlock())
        count = alloca.operands[0]
        each = self._layout.alloc_size(alloca.allocated_type)
        number = int_value(count)
        if number is not None:
            size: Value = const_int(T.I64, max(number * each, 1))
        else:
            size = made.binary("mul", made.wide(count), const_int(T.I64, each), ("nuw",))
        align = alloca.align or self._layout.align(alloca.allocated_type)
        if align <= _ALIGN:
            memory = self._declarations.memory(made, "malloc", size)
        else:
            padded = made.binary("add", size, const_int(T.I64, align - 1))
            rounded = made.binary("and", padded, const_int(T.I64, -align))
            memory = self._declarations.memory(made, "aligned_alloc", const_int(T.I64, align), rounded)
        memory.name = alloca.name
        place(alloca, made.block.instructions)
        if is_common(alloca):
            mark_common(memory)
        at = block.instructions.index(alloca)
        block.instructions[at : at + 1] = made.block.instructions
        self._replaced[alloca] = memory
        return memory

    def _move_dynamic(self, alloca: I.Alloca) -> None:
        save = self._save_of(alloca)
        memory = self._allocate(alloca)
        assert isinstance(memory, I.Instruction)
        at, nothing = Builder.on_top(self._function), ConstantNull(T.PTR)
        slot = at.alloca(T.PTR, align=8)
        slot.name = f"{alloca.name}.slot"
        at.store(nothing, slot, 8)
        Builder.behind(self._block(memory), memory).store(memory, slot, 8)
        if save is not None:
            self._before(save).store(nothing, slot, 8)
            for restore in self._restores:
                if restore.operands[0] is save:
                    at = self._before(restore)
                    self._free(at, at.load(T.PTR, slot, 8))
                    at.store(nothing, slot, 8)
        for last in self._ends():
            at = self._before(last)
            self._free(at, at.load(T.PTR, slot, 8))

    def _free(self, at: Builder, memory: Value) -> None:
        self._declarations.memory(at, "free", memory)

    def _free_at_end(self, memory: Value) -> None:
        for last in self._ends():
            self._free(self._before(last), memory)

    def _ends(self) -> list[I.Instruction]:
        return [b.terminator for b in self._function.blocks if isinstance(b.terminator, I.Return | I.Resume)]

    def _before(self, instruction: I.Instruction) -> Builder:
        return Builder.before(self._block(instruction), instruction)
