"""Trampolines become records that are read where they are called.

    before    call void @llvm.init.trampoline(ptr %t, ptr @inner, ptr %frame)
              %f = call ptr @llvm.adjust.trampoline(ptr %t)
              %y = call double %f(ptr %x)                       (%f leads to %t, or to @square)

    after     store ptr @inner, ptr %t
              store ptr %frame, ptr (%t + 8)
              %plain = icmp eq ptr %t, @square
              br i1 %plain, label %call.plain, label %call.closure
            call.plain:
              %y.1 = call double %t(ptr %x)
              br label %called
            call.closure:
              %inner = load ptr, ptr %t
              %frame = load ptr, ptr (%t + 8)
              %y.2 = call double %inner(ptr %x, ptr %frame)
              br label %called
            called:
              %y = phi double [ %y.1, %call.plain ], [ %y.2, %call.closure ]

A trampoline is machine code, written to the stack at run time, that calls a nested function with the frame of the
function around it: Fortran passes internal procedures so. No stack may be executed here, nor could anybody
differentiate such code; what is called, and with which frame, is data as any other. A call that fits no nested function
fails unless it leads to another one (`unfitting`).
"""

from __future__ import annotations

from dataclasses import dataclass

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import BasicBlock, InlineAsm, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import remove_unreachable, replace_values, split_before
from jax_enzyme.transform.unfitting import end_at_call, fail_unfitting

_FILL, _ENTER = "llvm.init.trampoline", "llvm.adjust.trampoline"
_FRAME = 8
"""Where the frame is in a record, behind the function."""


@dataclass(frozen=True, eq=False)
class _Closures:
    """The records of a program, and the nested functions with the position of the parameter that takes the frame."""

    module: Module
    records: frozenset[MemoryObject]
    nested: dict[Function, int]

    def position(self, call: I.CallBase) -> int | None:
        """Where the frame goes among the arguments of a call; None where it fits no nested function."""
        wanted = call.function_type
        found = {
            index
            for function, index in self.nested.items()
            if function.function_type.result == wanted.result
            and _without(function.function_type.parameters, index) == wanted.parameters
        }
        if len(found) > 1:
            raise LoweringError(
                f"a nested procedure is called as `{wanted}`: several of those passed fit",
                location(self.module, call),
                "pass procedures that are not nested in another one, or give all the same parameters",
            )
        return found.pop() if found else None


def lower_closures(function: ArrayFunction) -> ArrayFunction:
    """The array function without trampolines, in a copy of the module; itself where it has none."""
    if not any(_names(i, _FILL) for f in function.module.functions.values() for i in f.instructions()):
        return function
    module = clone(function.module)
    fills = [fill for f in module.functions.values() for fill in _write_records(f)]
    nested = {f: index for f in module.functions.values() if (index := _frame_parameter(f)) is not None}
    _pass_frames_plainly(module)
    points_to = PointsTo(module, module.functions[function.symbol])
    closures = _Closures(module, frozenset(o for record in fills for o in points_to.of(record)), nested)
    for caller in points_to.functions:
        calls = [i for i in caller.instructions() if isinstance(i, I.Call) and not _is_direct(i)]
        _rewrite(caller, points_to, closures, calls)
    return ArrayFunction(module, function.symbol, function.buffers)


def _names(instruction: I.Instruction, name: str) -> bool:
    callee = instruction.callee if isinstance(instruction, I.Call) else None
    return isinstance(callee, Function) and callee.name == name


def _is_direct(call: I.Call) -> bool:
    return isinstance(call.callee, Function | InlineAsm)


def _without(parameters: tuple[T.Type, ...], index: int) -> tuple[T.Type, ...]:
    return parameters[:index] + parameters[index + 1 :]


def _frame_parameter(function: Function) -> int | None:
    return next((i for i, a in enumerate(function.arguments) if "nest" in a.attributes), None)


def _write_records(function: Function) -> list[Value]:
    """Stores for trampolines, in place; the addresses of the records."""
    records: list[Value] = []
    replaced: dict[Value, Value] = {}
    for block in function.blocks:
        old, block.instructions = block.instructions, []
        at = Builder(block)
        for instruction in old:
            if _names(instruction, _FILL):
                record, nested, frame = instruction.operands[:3]
                at.store(nested, record, 1)
                at.store(frame, at.offset(record, _FRAME), 1)
                records.append(record)
            elif _names(instruction, _ENTER):
                replaced[instruction] = instruction.operands[0]
            else:
                block.instructions.append(instruction)
    replace_values(function, replaced)
    return records


def _pass_frames_plainly(module: Module) -> None:
    """The frame is a parameter as any other: `nest` would put it into a register of its own."""
    for function in module.functions.values():
        for argument in function.arguments:
            argument.attributes = tuple(w for w in argument.attributes if w != "nest")
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase):
                instruction.parameter_attributes = [
                    tuple(w for w in words if w != "nest") for words in instruction.parameter_attributes
                ]


def _rewrite(function: Function, points_to: PointsTo, closures: _Closures, calls: list[I.Call]) -> None:
    declarations = Declarations(points_to.module)
    replaced: dict[Value, Value] = {}
    for call in calls:
        objects = points_to.of(call.callee)
        block = next((b for b in function.blocks if call in b.instructions), None)
        if block is None or objects.isdisjoint(closures.records):
            continue  # behind a call that no run gets to, or of no nested function
        position = closures.position(call)
        others = objects - closures.records
        plain = [o.site for o in others if isinstance(o.site, Function)]
        if points_to.is_any_code(objects) or (position is not None and len(plain) < len(others)):
            raise LoweringError(
                "a procedure is called that may be nested in another one or come from somewhere unknown",
                location(points_to.module, call),
                "pass procedures directly, or none that is nested in another one",
            )
        for target in plain:
            # What is told apart by its address has one of its own.
            target.attributes = tuple(w for w in target.attributes if "unnamed_addr" not in w)
        if position is None and not plain:
            end_at_call(function, block, call, declarations)
            continue
        value = _call(function, block, call, sorted(plain, key=lambda f: f.name), position, declarations)
        if value is not None:
            replaced[call] = value
    replace_values(function, replaced)
    remove_unreachable(function)


def _call(
    function: Function,
    block: BasicBlock,
    call: I.Call,
    plain: list[Function],
    position: int | None,
    declarations: Declarations,
) -> Value | None:
    index = block.instructions.index(call)
    join = split_before(function, block, index + 1, "called")
    del block.instructions[index:]
    arm = BasicBlock(name="call.closure")
    at = Builder(arm)
    arms: list[tuple[BasicBlock, Value]] = []
    if position is None:
        fail_unfitting(at, call, declarations)
    else:
        arguments, words = list(call.arguments), list(call.parameter_attributes)
        arguments.insert(position, at.load(T.PTR, at.offset(call.callee, _FRAME), 1))
        words.insert(position, ())
        types = tuple(a.type for a in arguments)
        arms.append((arm, at.insert(_twin(call, at.load(T.PTR, call.callee, 1), arguments, words, types))))
        at.br(join)
    other = BasicBlock(name="call.plain")
    if plain:
        beside = Builder(other)
        same = (call.callee, list(call.arguments), list(call.parameter_attributes), call.function_type.parameters)
        arms.append((other, beside.insert(_twin(call, *same))))
        beside.br(join)
    place = function.blocks.index(join)
    function.blocks[place:place] = [arm, other] if plain else [arm]
    here = Builder(block)
    if plain:
        is_plain = here.icmp("eq", call.callee, plain[0])
        for candidate in plain[1:]:
            is_plain = here.binary("or", is_plain, here.icmp("eq", call.callee, candidate))
        here.cond_br(is_plain, other, arm)
    else:
        here.br(arm)
    if call.type == T.VOID:
        return None
    phi = I.Phi(call.type, "phi", [c for _, c in arms], targets=[b for b, _ in arms], name=call.name)
    join.instructions.insert(0, phi)
    return phi


def _twin(
    call: I.Call, callee: Value, arguments: list[Value], words: list[tuple[str, ...]], types: tuple[T.Type, ...]
) -> I.Call:
    return I.Call(
        call.type,
        call.opcode,
        [*arguments, callee],
        T.FunctionType(call.function_type.result, types),
        call.calling_convention,
        call.return_attributes,
        words,
        call.attributes,
        list(call.bundles),
        flags=tuple(f for f in call.flags if f != "tail"),
        metadata=list(call.metadata),
    )
