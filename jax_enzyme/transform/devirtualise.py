"""Calls through pointers become direct calls, chosen by comparing the pointer.

    before    %f = load ptr, ptr %slot                      (points-to finds @square and @cube behind %slot)
              %y = call double %f(double %x)

    after     %f = load ptr, ptr %slot
              %is = icmp eq ptr %f, @square
              br i1 %is, label %call.square, label %call.cube
            call.square:
              %y.1 = call double @square(double %x)
              br label %called
            call.cube:
              %y.2 = call double @cube(double %x)
              br label %called
            called:
              %y = phi double [ %y.1, %call.square ], [ %y.2, %call.cube ]

The candidates are the functions of the call's type that the pointer may point to; of a table that never changes (a C++
class's virtual functions), those in the slot that is read. Where it may point to others too (a cast, or places that are
not told apart), a failure ends the chain (`unfitting`). Where the pointer may come from elsewhere as well, the call
through it stays there, and where there are too many, nothing changes. Where all memory that the pointer may come from
is known and there is no such function in it (a table without a destructor), no run gets there: the call becomes a
failure. Functions that are in tables, and that no run comes to, lose their code (`stand_ins`). An optimiser would
conclude that such a call never runs. So what is called is hidden from it, until little is left of
the code, and to see where pointers lead takes little time:

    hidden    %g = call ptr @je.callee(ptr %f)            %y = call double %g(double %x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone, clone_with_map, own, with_operands
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import (
    BasicBlock,
    InlineAsm,
    Value,
)
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.transform.rewriting import (
    call_like,
    phis,
    place,
    redirect_phis,
    remove_unreachable,
    replace_values,
    split_before,
    substitute,
)
from jax_enzyme.transform.stand_ins import forget, unentered
from jax_enzyme.transform.unfitting import end_at_call, fail_unfitting
from jax_enzyme.transform.unprototyped_calls import fits, pass_as

_CALLEE = "je.callee"
MOST = 32
"""With more candidates than this a call stays as it is; a derivative that depends on it is refused."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """What a call through a pointer may be of. `complete`: of nothing else. `fails`: but the pointer may lead to what
    does not fit it."""

    candidates: list[Function]
    complete: bool
    fails: bool


def hide_callees(module: Module) -> Module:
    """A copy of the module in which no optimiser sees what is called through pointers; itself where nothing is."""
    if not any(map(_is_visible, (i for f in module.functions.values() for i in f.instructions()))):
        return module
    copy = own(module)
    hide = Declarations(copy).function(_CALLEE, T.FunctionType(T.PTR, (T.PTR,)), (*PURE, "norecurse"))
    for block in (b for f in copy.functions.values() for b in f.blocks):
        kept: list[I.Instruction] = []
        for instruction in block.instructions:
            if _is_visible(instruction):
                at = Builder(BasicBlock())
                instruction.operands[-1] = at.call(hide, [instruction.operands[-1]], attributes=PURE)
                place(instruction, at.block.instructions)
                kept += at.block.instructions
            kept.append(instruction)
        block.instructions = kept
    return copy


def show_callees(module: Module) -> set[I.Instruction]:
    """Ends that, in place. The calls of what was hidden, which may be a function of another type by now."""
    calls: set[I.Instruction] = set()
    for function in module.functions.values() if _CALLEE in module.functions else ():
        hidden: dict[Value, Value] = {i: i.operands[0] for i in function.instructions() if callee_name(i) == _CALLEE}
        if hidden:
            calls.update(i for i in function.instructions() if _is_indirect(i) and i.operands[-1] in hidden)
            substitute(function, hidden)
            for block in function.blocks:
                block.instructions = [i for i in block.instructions if i not in hidden]
    module.functions.pop(_CALLEE, None)
    return calls


def devirtualise(function: ArrayFunction) -> ArrayFunction:
    """The array function with direct calls in a copy of the module; itself where there is nothing to do."""
    if not any(map(_is_indirect, (i for f in function.module.functions.values() for i in f.instructions()))):
        return function
    if _CALLEE in function.module.functions:
        function = replace(function, module=clone(function.module))
    module = function.module
    shown = show_callees(module)
    root = module.functions[function.symbol]
    points_to = PointsTo(module, root)
    zeros = Zeros(points_to)
    choices: dict[I.CallBase, _Choice] = {}
    for caller in points_to.functions:
        for instruction in caller.instructions():
            if isinstance(instruction, I.Call | I.Invoke) and (_is_indirect(instruction) or instruction in shown):
                choice = _choice(points_to, zeros, instruction)
                if choice is not None:
                    choices[instruction] = choice
    idle = unentered(points_to)
    if not choices and not idle:
        return function
    copy, copied = clone_with_map(module)
    declarations = Declarations(copy)
    forget((copied[f] for f in idle), copy)
    for caller in points_to.functions:
        twin = copied[caller]
        assert isinstance(twin, Function)
        calls = [(copied[i], choices[i]) for i in caller.instructions() if isinstance(i, I.CallBase) and i in choices]
        replace_calls(twin, [_targets(call, choice, copied, declarations) for call, choice in calls], declarations)
    return ArrayFunction(copy, function.symbol, function.buffers)


def _is_indirect(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Call | I.Invoke) and not isinstance(instruction.callee, Function | InlineAsm)


def _is_visible(instruction: I.Instruction) -> bool:
    return _is_indirect(instruction) and callee_name(instruction.operands[-1]) != _CALLEE


def _targets(
    call: Value, choice: _Choice, copied: Mapping[Value, Value], declarations: Declarations
) -> tuple[I.Call | I.Invoke, list[Value], Ending | None]:
    """What a call of the copy may be of, and what is at the end of the chain."""
    assert isinstance(call, I.Call | I.Invoke)
    targets = [*(copied[f] for f in choice.candidates), *([] if choice.complete else [call.callee])]
    return call, targets, partial(_failure, call, declarations) if choice.fails and targets else None


def _choice(points_to: PointsTo, zeros: Zeros, call: I.CallBase) -> _Choice | None:
    objects = points_to.of(call.callee)
    functions = [o.site for o in objects if isinstance(o.site, Function)]
    candidates = [f for f in functions if fits(f.function_type, call)]
    complete = not points_to.is_any_code(objects) if objects else zeros.is_null(call.callee)
    if len(candidates) > MOST or not (candidates or complete):
        return None
    order = {f: i for i, f in enumerate(points_to.module.functions.values())}
    fails = complete and len(candidates) < len(functions)
    return _Choice(sorted(candidates, key=order.__getitem__), complete, fails)


# -- the chain of calls ------------------------------------------------------------------------------------------------


def _failure(call: I.CallBase, declarations: Declarations, _join: BasicBlock) -> tuple[BasicBlock, None]:
    at = Builder(BasicBlock(name="call.unfitting"))
    fail_unfitting(at, call, declarations)
    return at.block, None


Ending = Callable[[BasicBlock], tuple[BasicBlock, Value | None]]
"""Makes a block that goes on at another one; with the value of the call there, None where it does not."""


def replace_calls(
    function: Function,
    calls: Iterable[tuple[I.Call | I.Invoke, Sequence[Value], Ending | None]],
    declarations: Declarations,
) -> None:
    """Puts calls of what each may be of in the place of calls through pointers, in place; where it may be of nothing,
    and nothing else is to be done, a failure."""
    replaced: dict[Value, Value] = {}
    is_ended = False
    for call, targets, ending in calls:
        block = next((b for b in function.blocks if call in b.instructions), None)
        if block is None:
            continue  # behind a call that no run gets to
        known = [t for t in targets if isinstance(t, Function)]
        for target in known:  # what is told apart by its address has one of its own
            target.attributes = tuple(w for w in target.attributes if "unnamed_addr" not in w)
        if not targets and ending is None:
            end_at_call(function, block, call, declarations)
            is_ended = True
        elif len(known) == len(targets) == 1 and ending is None:
            call.operands[-1] = known[0]
            at = block.instructions.index(call)
            block.instructions[at:at] = pass_as(known[0].function_type, call)
        elif (value := _call_one_of(function, block, call, targets, ending)) is not None:
            replaced[call] = value
    replace_values(function, replaced)
    if is_ended:
        remove_unreachable(function)


def _call_one_of(
    function: Function, block: BasicBlock, call: I.Call | I.Invoke, candidates: Sequence[Value], ending: Ending | None
) -> Value | None:
    """Puts calls of the candidates in the place of a call through a pointer, each where it is that one, and at the end
    of the chain, unless there is none, something else. The value that stands for the call's, if it has any."""
    index = block.instructions.index(call)
    join = BasicBlock(name="called")
    if isinstance(call, I.Invoke):
        normal, unwind = call.targets
        del block.instructions[index:]
        function.blocks.insert(function.blocks.index(block) + 1, join)
        Builder(join).br(normal)
        redirect_phis(normal, block, join)
    else:
        unwind = None
        join = split_before(function, block, index + 1, "called")
        del block.instructions[index:]
    arms = [_arm(call, target, join) for target in candidates]
    arms += [ending(join)] if ending is not None else []
    last = arms[-1][0]
    at = Builder(block)
    made: list[BasicBlock] = []
    for target, (arm, _), (following, _) in zip(candidates, arms[:-1], arms[1:], strict=False):
        other = last if following is last else BasicBlock(name="call.other")
        at.cond_br(at.icmp("eq", call.callee, target), arm, other)
        made += [arm] if other is last else [arm, other]
        at = Builder(other)
    if len(arms) == 1:
        at.br(last)
    at_join = function.blocks.index(join)
    function.blocks[at_join:at_join] = [*made, last]
    if unwind is not None:
        _multiply_edge(unwind, block, [arm for arm, _ in arms])
    if call.type == T.VOID:
        return None
    incoming = [(value, arm) for arm, value in arms if value is not None]
    phi = I.Phi(call.type, "phi", [v for v, _ in incoming], targets=[b for _, b in incoming], name=call.name)
    join.instructions.insert(0, phi)
    return phi


def _arm(call: I.Call | I.Invoke, target: Value, join: BasicBlock) -> tuple[BasicBlock, Value]:
    """A block with a copy of the call, of one target."""
    twin: I.Call | I.Invoke = call_like(call, target, call.arguments)
    if isinstance(call, I.Invoke):
        invoked = with_operands(call, [*call.arguments, target])
        assert isinstance(invoked, I.Invoke)
        invoked.name, invoked.bundles, invoked.targets = "", list(call.bundles), [join, call.targets[1]]
        twin = invoked
    first = pass_as(target.function_type, twin) if isinstance(target, Function) else []
    arm = BasicBlock(name=f"call.{target.name}" if isinstance(target, Function) else "call.unknown")
    arm.instructions = [*first, twin]
    if isinstance(twin, I.Call):
        Builder(arm).br(join)
    return arm, twin


def _multiply_edge(block: BasicBlock, old: BasicBlock, new: list[BasicBlock]) -> None:
    """Several edges into a block where there was one."""
    for phi in phis(block):
        at = phi.targets.index(old)
        phi.operands[at : at + 1] = [phi.operands[at]] * len(new)
        phi.targets[at : at + 1] = new
