"""Functions that read their unnamed arguments take them in memory, by two parameters: x86-64's list of them is filled
with what leads there.

    before    define double @total(i32 %n, ...) {
                %list = alloca %struct.__va_list_tag
                call void @llvm.va_start.p0(ptr %list)
              ...
              %s = call double (i32, ...) @total(i32 2, double %x, ptr %p)

    after     define double @total(i32 %n, ptr %registers, ptr %stack) {
                %list = alloca %struct.__va_list_tag
                store i32 8, ptr %list                      ; behind %n, among the integers
                store i32 48, ptr (%list + 4)               ; no number is named
                store ptr %stack, ptr (%list + 8)
                store ptr %registers, ptr (%list + 16)
              ...
              %registers = alloca [176 x i8], align 16
              %stack = alloca [0 x i8], align 16
              store double %x, ptr (%registers + 48)
              store ptr %p, ptr (%registers + 8)
              %s = call double @total(i32 2, ptr %registers, ptr %stack)

So such a function is inlined like any other (LLVM inlines none that asks for its list), and a number that is passed
without a name is a number in memory. Functions that hand their list to one without a body (`vfprintf`) stay as they
are, and so do those whose addresses are taken, and those that are given structures in memory or vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, callee_of, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failing import address_taken
from jax_enzyme.transform.rewriting import Change, add_parameter, forget_tails, local, locate, place, rewrite

_INTEGERS_END, _NUMBERS_END = 48, 176
"""Where registers end in the memory that holds them: six of 8 bytes for integers, eight of 16 for numbers."""
_LIST_BYTES = 24
_LONG_DOUBLE = T.FloatType("x86_fp80")
_STARTS, _COPIES, _ENDS = "llvm.va_start", "llvm.va_copy", "llvm.va_end"
_KNOWN = ("llvm.lifetime.", _STARTS, _COPIES, _ENDS)
"""Functions without a body that may be given a list."""

_Calls = dict[Function, list[tuple[Function, I.CallBase]]]


def lower_variadic(module: Module) -> Module:
    """A copy of the module in which no function that reads unnamed arguments itself has any; the module itself where
    there is none, and for other processors."""
    if not module.triple.startswith("x86_64") or not _lowered(module):
        return module
    copy = clone(module)
    declarations = Declarations(copy)
    calls = _lowered(copy)
    for function, sites in calls.items():
        slots = _Slots.behind(function.function_type, [a.attributes for a in function.arguments])
        registers, stack = (add_parameter(function, name) for name in ("registers", "stack"))
        function.value_type = replace(function.function_type, variadic=False)
        _make_lists(function, slots, registers, stack)
        for caller, call in sites:
            _pass_in_memory(caller, call, function)
    for function in [*copy.functions.values()]:
        _copy_lists(function, declarations)
    return copy


def _lowered(module: Module) -> _Calls:
    """The functions that are to be lowered, each with the calls of it, and who makes them."""
    found: _Calls = {f: [] for f in module.functions.values() if f.function_type.variadic and any(_lists(f))}
    if not found:
        return found
    kept = address_taken(module) | {f for f in found if _is_handed_on(f)}
    for caller in module.functions.values():
        for call in caller.instructions():
            callee = callee_of(call)
            if callee in found and isinstance(call, I.CallBase):
                found[callee].append((caller, call))
                if not _can_pass(call, callee):
                    kept.add(callee)
    return {f: calls for f, calls in found.items() if f not in kept}


def _lists(function: Function) -> Iterator[Value]:
    """Where a function makes a list of its unnamed arguments."""
    return (i.operands[0] for i in function.instructions() if callee_name(i).startswith(_STARTS))


def _is_handed_on(function: Function) -> bool:
    """Whether the list of a function may come to where it is not known what becomes of it."""
    tables: dict[Function, Uses] = {}
    pending = Reached((function, _base(made)) for made in _lists(function))
    for within, pointer in pending:
        if within not in tables:
            tables[within] = uses(within)
        for user, index in tables[within].get(pointer, ()):
            onward = _onward(within, user, index, tables[within])
            if onward is None:
                return True
            pending.add(onward)
    return False


def _onward(within: Function, user: I.Instruction, index: int, table: Uses) -> Sequence[tuple[Function, Value]] | None:
    """Where the address of a list, or of a part of it, goes on to from an instruction, as its operand of that index;
    None where nobody knows."""
    match user:
        case I.Load() | I.Compare():
            return ()
        case I.Store() if index == 1:
            return ()
        case I.Store() if _is_plain_local(user.operands[1], table):
            return [(within, load) for load, _ in table[user.operands[1]] if isinstance(load, I.Load)]
        case I.GetElementPtr() | I.Cast() | I.Phi() | I.Select():
            return [(within, user)]
        case I.CallBase() if (callee := callee_of(user)) is not None and not callee.is_declaration:
            return [(callee, callee.arguments[index])] if index < len(callee.arguments) else None
        case I.CallBase() if callee_name(user).startswith(_COPIES):
            return [(within, _base(user.operands[0]))]
        case I.CallBase() if callee_name(user).startswith(_KNOWN):
            return ()
        case _:
            return None


def _base(pointer: Value) -> Value:
    """What a list is a part of."""
    while isinstance(pointer, I.GetElementPtr | I.Cast):
        pointer = pointer.operands[0]
    return pointer


def _is_plain_local(memory: Value, table: Uses) -> bool:
    """Whether memory is a local variable that is only loaded and stored."""
    return isinstance(memory, I.Alloca) and all(
        isinstance(user, I.Load) or (isinstance(user, I.Store) and index == 1) or _lives(user)
        for user, index in table.get(memory, ())
    )


def _lives(user: I.Instruction) -> bool:
    return callee_name(user).startswith("llvm.lifetime.")


@dataclass
class _Slots:
    """Where the next argument goes that is an integer, a number, or in memory: offsets in what holds the registers,
    and on the stack."""

    integers: int = 0
    numbers: int = _INTEGERS_END
    stack: int = 0

    @staticmethod
    def behind(kind: T.FunctionType, attributes: Sequence[tuple[str, ...]]) -> _Slots:
        """Those of the first unnamed argument of a call. The stack begins with it."""
        slots = _Slots()
        for type_, words in zip(kind.parameters, attributes, strict=False):
            if not _is_by_value(words):
                slots.take(type_)
        slots.stack = 0
        return slots

    def take(self, type_: T.Type) -> tuple[bool, int]:
        """Whether an argument is in a register, and where."""
        if _is_integer(type_) and self.integers < _INTEGERS_END:
            self.integers += 8
            return True, self.integers - 8
        if _is_number(type_) and self.numbers < _NUMBERS_END:
            self.numbers += 16
            return True, self.numbers - 16
        size = 16 if type_ == _LONG_DOUBLE else 8
        start = -(-self.stack // size) * size
        self.stack = start + size
        return False, start


def _is_integer(type_: T.Type) -> bool:
    return T.is_pointer(type_) or (isinstance(type_, T.IntType) and type_.bits <= 64)


def _is_number(type_: T.Type) -> bool:
    return isinstance(type_, T.FloatType) and type_ != _LONG_DOUBLE


def _is_by_value(words: tuple[str, ...]) -> bool:
    return any(word.startswith("byval") for word in words)


def _can_pass(call: I.CallBase, callee: Function) -> bool:
    """Whether it is known where each argument of a call lies."""
    named = len(callee.function_type.parameters)
    types = [*callee.function_type.parameters, *(a.type for a in call.arguments[named:])]
    return (
        isinstance(call, I.Call | I.Invoke)
        and call.function_type == callee.function_type
        and "musttail" not in call.flags
        and all(_is_integer(t) or _is_number(t) or t == _LONG_DOUBLE for t in types)
        and not any(map(_is_by_value, call.parameter_attributes[named:]))
    )


def _make_lists(function: Function, slots: _Slots, registers: Value, stack: Value) -> None:
    """Fills the lists of a function, in place."""
    for block in function.blocks:
        for start in [i for i in block.instructions if callee_name(i).startswith(_STARTS)]:
            at = Builder.before(block, start)
            first = block.instructions.index(start)
            made = start.operands[0]
            at.store(const_int(T.I32, slots.integers), made, 8)
            at.store(const_int(T.I32, slots.numbers), at.offset(made, 4), 4)
            at.store(stack, at.offset(made, 8), 8)
            at.store(registers, at.offset(made, 16), 8)
            last = block.instructions.index(start)
            place(start, block.instructions[first:last])
            del block.instructions[last]


def _pass_in_memory(caller: Function, call: I.CallBase, callee: Function) -> None:
    """Stores the unnamed arguments of a call in front of it, in place."""
    kind = call.function_type
    named = len(kind.parameters)
    slots = _Slots.behind(kind, call.parameter_attributes)
    places = [slots.take(argument.type) for argument in call.arguments[named:]]
    registers = local(caller, T.ArrayType(_NUMBERS_END, T.I8), 16)
    stack = local(caller, T.ArrayType(slots.stack, T.I8), 16)
    (block,) = (b for b in caller.blocks if call in b.instructions)
    first = block.instructions.index(call)
    at = Builder(block, first)
    for argument, (is_held, offset) in zip(call.arguments[named:], places, strict=True):
        at.store(argument, at.offset(registers if is_held else stack, offset), 8)
    locate(call, block.instructions[first : block.instructions.index(call)])
    call.operands[named:-1] = [registers, stack]
    call.parameter_attributes[named:] = [(), ()]
    call.function_type = callee.function_type


def _copy_lists(function: Function, declarations: Declarations) -> None:
    """Copies of lists are those of memory, and nothing ends them, in place."""

    def change(instruction: I.Instruction) -> Change | None:
        name = callee_name(instruction)
        if not name.startswith((_COPIES, _ENDS)):
            return None

        def copy(builder: Builder) -> None:
            if name.startswith(_COPIES):
                to, source = instruction.operands[:2]
                declarations.memory(builder, "memcpy", to, source, const_int(T.I64, _LIST_BYTES))

        return copy

    rewrite(function, change)
    forget_tails(function)
