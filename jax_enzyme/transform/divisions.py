"""Integer divisions that have no result become failures of the call: the processor would end the process.

    before    %q = sdiv i32 %a, %d

    after     %none = icmp eq i32 %d, 0
              br i1 %none, label %by.zero, label %some
            by.zero:
              call void @je.divided.by.zero()          (never returns: `lower_failures` makes a status of it)
              unreachable
            some:
              ... and, for signed division, whether -2^31 is divided by -1 ...
              %q = sdiv i32 %a, %d

It is the last that is done to a function before it is compiled. The engine never sees the branches, and what the
optimiser has removed by then, because nothing uses it, is not looked at. Two kinds are the exception. Divisions in
loops that nothing else ends are guarded first of all, as an optimiser that removed one would leave a loop without an
end. And from a division by what is 0 by the sizes and integers of this call it would conclude that it never runs:

    %near = icmp ult i32 (%d + 1), 2                         what divisors are is hidden before it optimises, if they
    %kept = call i32 @je.divisor.i32(i32 %d)                 are 0 or -1; where nothing but the call is left then, there
    %hidden = select i1 %near, i32 %kept, i32 %d             is no result, and all others are shown again
    %q = sdiv i32 %a, %hidden
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone_with_map, with_operands
from jax_enzyme.ir.debug import note_places
from jax_enzyme.ir.module import Function, Module, callee_name, callee_of
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.transform.derivative_checks import check_failures, is_check
from jax_enzyme.transform.failing import address_taken
from jax_enzyme.transform.failure_sites import DIVIDED_BY_ZERO, DIVISION_OVERFLOWS
from jax_enzyme.transform.failures import lower_own_failures
from jax_enzyme.transform.insertion import NEVER_RETURNS, Check, insert_checks
from jax_enzyme.transform.rewriting import Change, lower, remove_dead, substitute

_SIGNED = ("sdiv", "srem")
_DIVISOR = "je.divisor."


def guard_divisions(function: ArrayFunction) -> ArrayFunction:
    """The array function in a copy of the module where such divisions are failures, and what else a derivative checks;
    itself where there are none."""
    guarded = _guarded(function, _all_blocks(function))
    return function if guarded is function else lower_own_failures(guarded)


def guard_checks(function: ArrayFunction) -> ArrayFunction:
    """The same for what a derivative checks alone: divisions stay the processor's."""
    guarded = _guarded(function, _all_blocks(function), divisions=False)
    return function if guarded is function else lower_own_failures(guarded)


def guard_endless_loops(function: ArrayFunction) -> ArrayFunction:
    """The array function in a copy of the module where divisions fail that control comes by when it can come to no end
    any more, in functions that are called there too; itself where there are none."""
    return _guarded(function, _endless_blocks(_root(function)))


def hide_divisors(module: Module) -> Module:
    """A copy of the module in which no optimiser sees that a divisor is 0, or the one that overflows; the module itself
    where it has no such divisions."""
    return lower(module, _hidden)


def guard_hidden_divisions(function: ArrayFunction) -> ArrayFunction:
    """The array function in a copy of the module where divisions fail of which it is known by now that they have no
    result; itself where there are none."""
    functions = reachable_functions(_root(function))
    guarded = _guarded(function, ((f, b) for f in functions for b in f.blocks if _known(b.instructions)))
    for target in guarded.module.functions.values() if guarded is not function else ():
        substitute(target, {divisor: divisor.operands[0] for divisor in _known(target.instructions())})
    return guarded


def _known(instructions: Iterable[I.Instruction]) -> list[I.Instruction]:
    """The hidden divisors by which something is divided whatever they are."""
    return [d for i in instructions if may_trap(i) and isinstance(d := i.operands[1], I.Instruction) and _is_hidden(d)]


def show_divisors(module: Module) -> None:
    """Ends that, in place."""
    hidden = [name for name in module.functions if name.startswith(_DIVISOR)]
    for function in module.functions.values() if hidden else ():
        shown: dict[Value, Value] = {i: i.operands[0] for i in function.instructions() if _is_hidden(i)}
        chosen = ((i, I.merged(i)) for i in function.instructions() if isinstance(i, I.Select))
        shown.update((i, other) for i, (one, other) in chosen if shown.get(one) is other)
        if shown:
            substitute(function, shown)
            remove_dead(function)
    for name in hidden:
        del module.functions[name]


def _root(function: ArrayFunction) -> Function:
    return function.module.functions[function.symbol]


def _all_blocks(function: ArrayFunction) -> Iterator[tuple[Function, BasicBlock]]:
    return ((f, block) for f in reachable_functions(_root(function)) for block in f.blocks)


def _guarded(
    function: ArrayFunction, blocks: Iterable[tuple[Function, BasicBlock]], *, divisions: bool = True
) -> ArrayFunction:
    """The array function in a copy of the module where what derivatives check in these blocks fails, and divisions if
    they are asked for; itself where there are none in them that may."""
    found: dict[Function, dict[BasicBlock, None]] = {}
    for target, block in blocks:
        if any(is_check(i) or (divisions and may_trap(i)) for i in block.instructions):
            found.setdefault(target, {})[block] = None
    if not found:
        return function
    module, copies = clone_with_map(function.module)
    declarations = Declarations(module)
    taken = address_taken(module)  # no status comes back through a pointer
    for target, own in found.items():
        copy = module.functions[target.name]
        twins = [b for block in own if isinstance(b := copies[block], BasicBlock)]
        _guard(copy, declarations, twins, divisions=divisions and copy not in taken)
    return replace(function, module=module)


def _hidden(division: I.Instruction, declarations: Declarations) -> Change | None:
    if not may_trap(division):
        return None
    dividend, divisor = division.operands
    kind = division.type

    def change(at: Builder) -> Value:
        near = at.icmp("ult", at.binary("add", divisor, const_int(kind, 1)), const_int(kind, 2))
        hidden = declarations.invoke(at, f"{_DIVISOR}{kind}", kind, [divisor], (*PURE, "norecurse"), PURE)
        return at.insert(with_operands(division, [dividend, at.select(near, hidden, divisor)]))

    return change


def _is_hidden(value: Value) -> bool:
    return callee_name(value).startswith(_DIVISOR)


def _endless_blocks(root: Function) -> Iterator[tuple[Function, BasicBlock]]:
    """The blocks that come to no end, and those of functions that are called there."""
    functions = reachable_functions(root)
    endless = {f: _without_end(f) for f in functions}
    called = reached(
        (c for blocks in endless.values() for c in _called(blocks)),
        lambda f: _called(f.blocks),
        lambda f: bool(f.blocks),
    )
    for target, blocks in {**endless, **{f: f.blocks for f in called}}.items():
        yield from ((target, block) for block in blocks)


def _called(blocks: Sequence[BasicBlock]) -> list[Function]:
    callees = (callee_of(i) for b in blocks for i in b.instructions)
    return [callee for callee in callees if callee is not None]


def _without_end(function: Function) -> list[BasicBlock]:
    """The blocks from which control can come to no end of the function."""
    cfg = Cfg(function)
    ends = reached((b for b in function.blocks if not cfg.succs[b]), cfg.preds.__getitem__)
    return [b for b in cfg.rpo if b not in ends]


def note_divisions(module: Module) -> None:
    """Lets copies of such divisions in derivatives know where they come from, in place."""
    note_places(module, [i for f in module.functions.values() for i in f.instructions() if may_trap(i)])


def may_trap(instruction: I.Instruction) -> bool:
    """Whether a division may have no result. Of vectors the engine makes none that divide integers."""
    if not isinstance(instruction, I.BinaryOp) or instruction.opcode not in I.INTEGER_DIVISIONS:
        return False
    if not isinstance(instruction.type, T.IntType):
        return False
    divisor = int_value(instruction.operands[1])
    return divisor is None or divisor == 0 or (divisor == -1 and instruction.opcode in _SIGNED)


def _guard(function: Function, declarations: Declarations, blocks: Sequence[BasicBlock], *, divisions: bool) -> None:
    found = {i: check_failures(i) for block in blocks for i in block.instructions if is_check(i)}
    asked = set(found)
    if divisions:
        found |= {i: division_failures(i) for block in blocks for i in block.instructions if may_trap(i)}
    checks = {i: [Check(when, partial(_fails, declarations, name)) for name, when in own] for i, own in found.items()}
    insert_checks(function, checks, {}, declarations)
    for block in function.blocks if asked else ():
        block.instructions = [i for i in block.instructions if i not in asked]


def _fails(declarations: Declarations, name: str, at: Builder) -> None:
    declarations.invoke(at, name, T.VOID, attributes=NEVER_RETURNS)


def division_failures(division: I.Instruction) -> list[tuple[str, Callable[[Builder], Value]]]:
    """What may go wrong with a division: by which function it fails, and what builds the condition."""
    dividend, divisor = division.operands
    kind = division.type
    assert isinstance(kind, T.IntType)
    known = int_value(divisor)
    least = const_int(kind, 1 << (kind.bits - 1))

    def overflows(at: Builder) -> Value:
        return at.binary("and", at.icmp("eq", dividend, least), at.icmp("eq", divisor, const_int(kind, -1)))

    found: list[tuple[str, Callable[[Builder], Value]]] = []
    if known in (None, 0):
        found.append((DIVIDED_BY_ZERO, lambda at: at.icmp("eq", divisor, const_int(kind, 0))))
    if division.opcode in _SIGNED and known in (None, -1):
        found.append((DIVISION_OVERFLOWS, overflows))
    return found
