"""Trampolines become records that are read where they are called.

    before    call void @llvm.init.trampoline(ptr %t, ptr @inner, ptr %frame)
              %f = call ptr @llvm.adjust.trampoline(ptr %t)
              %y = call double %f(ptr %x)                       (%f leads to %t, or to @square)

    after     store ptr @inner, ptr %t
              store ptr %frame, ptr (%t + 8)
              %plain = icmp eq ptr %t, @square
              br i1 %plain, label %call.square, label %call.closure
            call.square:
              %y.1 = call double @square(ptr %x)
              br label %called
            call.closure:
              %inner = load ptr, ptr %t
              %frame = load ptr, ptr (%t + 8)
              %y.2 = call double %inner(ptr %x, ptr %frame)
              br label %called
            called:
              %y = phi double [ %y.1, %call.square ], [ %y.2, %call.closure ]

A trampoline is machine code, written to the stack at run time, that calls a nested function with the frame of the
function around it: Fortran passes internal procedures so. No stack may be executed here, nor could anybody
differentiate such code; what is called, and with which frame, is data as any other. A call that fits no nested function
fails unless it leads to another one (`unfitting`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import LoweringError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, define, numbered
from jax_enzyme.ir.values import BasicBlock, ConstantNull, InlineAsm, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.devirtualise import Ending, replace_calls
from jax_enzyme.transform.rewriting import Change, call_like, rewrite
from jax_enzyme.transform.unfitting import fail_unfitting

_FILL, _ENTER = "llvm.init.trampoline", "llvm.adjust.trampoline"
_FRAME = 8
"""Where the frame is in a record, behind the function."""


def lower_closures(function: ArrayFunction) -> ArrayFunction:
    """The array function without trampolines, in a copy of the module; itself where it has none."""
    if not any(callee_name(i) == _FILL for f in function.module.functions.values() for i in f.instructions()):
        return function
    shown, twins = clone_with_map(function.module)
    plain_forms = _as_plain_functions(shown)
    points_to = PointsTo(shown, shown.functions[function.symbol])
    module, copies = clone_with_map(function.module)
    for each in module.functions.values():
        _write_records(each)
    _pass_frames_plainly(module)
    for caller in function.module.functions.values():
        if twins[caller] not in points_to.functions:
            continue
        choices: dict[I.Call, _Choice] = {}
        for call in caller.instructions():
            if isinstance(call, I.Call) and not _is_direct(call):
                twin, copy = twins[call], copies[call]
                assert isinstance(twin, I.Call) and isinstance(copy, I.Call)
                if choice := _choice(points_to, plain_forms, twin):
                    choices[copy] = choice.within(module)
        copy_of_caller, declarations = copies[caller], Declarations(module)
        assert isinstance(copy_of_caller, Function)
        replace_calls(copy_of_caller, [c.targets(call, declarations) for call, c in choices.items()], declarations)
    return ArrayFunction(module, function.symbol, function.buffers)


@dataclass(frozen=True, eq=False)
class _Choice:
    """What a call through a pointer may enter: nested functions, the frame at `position` among the arguments (None
    where none fits), and the others, which are `plain`."""

    position: int | None
    plain: list[Function]

    def within(self, module: Module) -> _Choice:
        """The same of a copy of the module."""
        return _Choice(self.position, [module.functions[f.name] for f in self.plain])

    def targets(self, call: I.Call, declarations: Declarations) -> tuple[I.Call, list[Function], Ending | None]:
        """What a call may be of, and what is at the end of the chain."""
        is_any = self.position is not None or self.plain
        return call, self.plain, partial(_call, call, self.position, declarations) if is_any else None


def _choice(points_to: PointsTo, plain_forms: dict[Function, int], call: I.Call) -> _Choice | None:
    """What a call may enter; None for one of no nested function, or behind one that no run gets to."""
    objects = points_to.of(call.callee)
    functions = [o.site for o in objects if isinstance(o.site, Function)]
    nested = [f for f in functions if f in plain_forms]
    if not nested:
        return None
    # As everywhere, a pointer is taken to lead to functions of the call's own type alone.
    positions = {plain_forms[f] for f in nested if f.function_type == call.function_type}
    if len(positions) > 1:
        raise LoweringError(
            f"a nested procedure is called as `{call.function_type}`: several of those passed fit",
            location(points_to.module, call),
            "pass procedures that are not nested in another one, or give all the same parameters",
        )
    if points_to.is_any_code(objects):
        if not positions:
            return None
        raise LoweringError(
            "a procedure is called that may be nested in another one or come from somewhere unknown",
            location(points_to.module, call),
            "pass procedures directly, or none that is nested in another one",
        )
    plain = [f for f in functions if f not in plain_forms and f.function_type == call.function_type]
    return _Choice(positions.pop() if positions else None, sorted(plain, key=lambda f: f.name))


def _as_plain_functions(module: Module) -> dict[Function, int]:
    """Says what trampolines lead to in terms that the map of memory knows, in place: a record holds a function that
    finds the frame in a variable. These functions, with the position of the parameter that takes the frame."""
    made: dict[Function, tuple[Function, GlobalVariable]] = {}

    def fill(at: Builder, record: Value, nested: Function, frame: Value) -> None:
        if nested not in made:
            made[nested] = _plain_form(module, nested, len(made))
        at.store(made[nested][0], record, 1)
        at.store(frame, made[nested][1], 1)

    for function in list(module.functions.values()):
        _replace_trampolines(function, fill, lambda at, record: at.load(T.PTR, record, 1))
    return {plain: _frame_parameter(nested) for nested, (plain, _) in made.items()}


def _plain_form(module: Module, nested: Function, number: int) -> tuple[Function, GlobalVariable]:
    """A function that calls a nested one with the frame in a variable, and this variable."""
    frame = GlobalVariable(T.PTR, T.PTR, ConstantNull(T.PTR), prefix=("internal",), name=f"je.frame.{number}")
    module.globals[frame.name] = frame
    index = _frame_parameter(nested)
    parameters = nested.function_type.parameters
    arguments = numbered(parameters[:index] + parameters[index + 1 :])
    body = BasicBlock(name="entry")
    at = Builder(body)
    given: list[Value] = [*arguments]
    given.insert(index, at.load(T.PTR, frame, 1))
    result = at.call(nested, given)
    at.ret(None if result.type == T.VOID else result)
    return define(module, f"je.plain.{number}", result.type, arguments, [body]), frame


def _is_direct(call: I.Call) -> bool:
    return isinstance(call.callee, Function | InlineAsm)


def _frame_parameter(function: Function) -> int:
    return next(i for i, a in enumerate(function.arguments) if "nest" in a.attributes)


def _write_records(function: Function) -> None:
    """Stores for trampolines, in place."""

    def fill(at: Builder, record: Value, nested: Function, frame: Value) -> None:
        at.store(nested, record, 1)
        at.store(frame, at.offset(record, _FRAME), 1)

    _replace_trampolines(function, fill, lambda _, record: record)


def _replace_trampolines(
    function: Function,
    fill: Callable[[Builder, Value, Function, Value], None],
    enter: Callable[[Builder, Value], Value],
) -> None:
    """Puts other code where trampolines are made (of a record, a nested function and its frame) and where their
    addresses are asked for (those of a record), in place."""

    def change_of(instruction: I.Instruction) -> Change | None:
        if callee_name(instruction) == _FILL:
            record, nested, frame = instruction.operands[:3]
            assert isinstance(nested, Function)
            return lambda at: fill(at, record, nested, frame)
        if callee_name(instruction) == _ENTER:
            return lambda at: enter(at, instruction.operands[0])
        return None

    rewrite(function, change_of)


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


def _call(
    call: I.Call, position: int | None, declarations: Declarations, join: BasicBlock
) -> tuple[BasicBlock, Value | None]:
    """The block in which a call enters a nested function, or fails where none fits."""
    at = Builder(BasicBlock(name="call.closure"))
    if position is None:
        fail_unfitting(at, call, declarations)
        return at.block, None
    arguments = list(call.arguments)
    arguments.insert(position, at.load(T.PTR, at.offset(call.callee, _FRAME), 1))
    made = call_like(call, at.load(T.PTR, call.callee, 1), arguments)
    made.parameter_attributes.insert(position, ())
    made.function_type = T.FunctionType(call.function_type.result, tuple(a.type for a in arguments))
    made.flags = tuple(f for f in call.flags if f != "tail")
    at.insert(made)
    at.br(join)
    return at.block, made
