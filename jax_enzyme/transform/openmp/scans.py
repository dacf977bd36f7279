"""Worksharing loops with `reduction(inscan, ...)` as the loops that they are without a directive.

clang 22 makes two loops of one, with the sums of the iterations' parts, from neutral elements, in arrays:

    first loop     sum = 0;  [input phase];  part[i] = sum
    rounds         part[i] = part[i] + part[i - 2^k]        as many as the logarithm of the length
    second loop    sum = part[i], or part[i - 1] for `exclusive`;  [scan phase]
    behind         total = part[n - 1]

What `total` was before gets lost, natively too. Each loop has both phases, one behind the other, and jumps to one of
them. Here the first loop does nothing, the rounds go, the second loop runs both phases in the order of the source, and
`sum` is `total`, to which it goes back behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.values import Argument, BasicBlock, GlobalValue, Value
from jax_enzyme.transform.openmp.calls import FORKS, calls_of
from jax_enzyme.transform.rewriting import call_like, remove_unreachable

_ROUNDS = ["uitofp", "llvm.log2.f64", "llvm.ceil.f64", "fptoui"]
_Calls = dict[Function, list[tuple[Function, list[Value]]]]
"""In which functions each function is called, with which arguments."""
_Origin = tuple[Function | None, Value]
"""A value by what it is where it is made, and in which function that is."""


class _UnknownForm(Exception):
    """The loops are not as clang 22 makes them."""


def join_scans(module: Module, name: str) -> frozenset[BasicBlock]:
    """Makes one loop of the two of each directive, in place; a block of each of those loops, which run in order.
    CompileError, at the user's line, where they have another form. `name` is that of the source, for messages."""
    rounds = [(f, b) for f in module.functions.values() for b in f.blocks if _starts_rounds(b)]
    calls = _calls(module) if rounds else {}
    found: list[BasicBlock] = []
    for function, block in rounds:
        try:
            found.append(_join(function, block, calls))
        except _UnknownForm:
            raise CompileError(
                "a worksharing loop with `reduction(inscan, ...)` has a form that is not known: it is of sections of "
                "arrays, of objects that are copied in several steps, or of variables that a lambda captures",
                location(module, block.terminator) or name,
                "write the loop as `#pragma omp simd reduction(inscan, ...)`, which has the meaning of the "
                "program without the directive",
            ) from None
    for function in dict.fromkeys(f for f, _ in rounds):
        remove_unreachable(function)
    return frozenset(found)


def _starts_rounds(block: BasicBlock) -> bool:
    words = [callee_name(i) or i.opcode for i in block.instructions]
    return any(words[at : at + len(_ROUNDS)] == _ROUNDS for at in range(len(words)))


def _calls(module: Module) -> _Calls:
    found: _Calls = {}
    for caller in module.functions.values():
        for _, call in calls_of(caller, ""):
            for value in call.operands:
                if isinstance(value, Function):
                    found.setdefault(value, []).append((caller, _given(call, value)))
    return found


def _given(call: I.CallBase, function: Function) -> list[Value]:
    """What a call gives to a function, as far as that is known."""
    if call.callee is function:
        return call.arguments
    if callee_name(call).startswith(FORKS) and call.operands[2] is function:
        # The numbers of the thread are none of the call's.
        return [*function.arguments[:2], *call.arguments[len(call.arguments) + 2 - len(function.arguments) :]]
    return []


def _join(function: Function, rounds: BasicBlock, calls: _Calls) -> BasicBlock:
    blocks = function.blocks
    loop = next((x for x in Loops.of(function).all if x.header in rounds.successors), None)
    behind = [b for b in loop.latches[0].successors if b is not loop.header] if loop is not None else []
    if loop is None or len(behind) != 1:
        raise _UnknownForm
    parts = {a.operands[0] for b in loop.blocks for a in _addresses(b)}
    touching = [b for b in blocks if b not in loop and any(a.operands[0] in parts for a in _addresses(b))]
    first = [b for b in touching if blocks.index(b) < blocks.index(rounds)]
    last = [b for b in touching if b not in first]
    if len(first) != 1 or not last:
        raise _UnknownForm
    both = _BothPhases.of(function, last[0])
    copies = [(part, copy) for part, _, copy in _copies(last[0])]
    sums = _sums(function, both.start)
    if {part for part, _ in copies} != parts or not len(parts) == len(copies) == len(sums):
        raise _UnknownForm
    totals = {part: _total(function, part, {*first, *loop.blocks, last[0]}, calls) for part in parts}
    # The first loop's phases are left out: its `exit` and where they are chosen lie behind the one, or are next to it.
    choice = blocks[blocks.index(first[0]) + (1 if both.exclusive else 2)]
    for block in _before(function, choice):
        block.terminator.targets = first[0].successors
    rounds.terminator.targets = behind
    both.join()
    for (part, copy), sum_ in zip(copies, sums, strict=True):
        _copy_like(copy, totals[part], sum_, Builder(both.start, len(both.start.instructions) - 1))
        _copy_like(copy, sum_, totals[part], Builder.behind_phis(both.exit.successors[0]))
    return both.start


@dataclass(frozen=True)
class _BothPhases:
    """An iteration of the second loop, as its blocks stand one behind the other: where it starts, the phase that the
    source has first, `exit`, where one of them is chosen, and the other phase, which leads to `exit`. Iterations go on
    behind that."""

    start: BasicBlock
    first: list[BasicBlock]
    exit: BasicBlock
    second: list[BasicBlock]
    exclusive: bool

    @classmethod
    def of(cls, function: Function, copying: BasicBlock) -> _BothPhases:
        """By the block that copies parts of sums, if there are any before the iteration's."""
        blocks = function.blocks
        choice, chosen = copying, copying
        before = _before(function, copying)
        exclusive = len(before) == 1 and isinstance(before[0].terminator, I.CondBranch)
        if exclusive:
            choice, chosen = before[0], copying.successors[0]
            before = _before(function, choice)
        if len(before) != 1 or not all(isinstance(b.terminator, I.Branch) for b in (before[0], chosen)):
            raise _UnknownForm
        start, at = blocks.index(before[0]) + 1, blocks.index(choice)
        exit_ = blocks[at - 1]
        end = blocks.index(exit_.successors[0]) if isinstance(exit_.terminator, I.Branch) else -1
        first, second = blocks[start : at - 1], blocks[blocks.index(chosen) + 1 : max(end, 0)]
        if not first or not second or chosen.successors[0] not in (first[0], second[0]):
            raise _UnknownForm
        if first[-1].successors != exit_.successors or second[-1].successors != [exit_]:
            raise _UnknownForm
        return cls(before[0], first, exit_, second, exclusive)

    def join(self) -> None:
        """Lets the iteration run both, in place."""
        self.start.terminator.targets = self.first[:1]
        self.first[-1].terminator.targets = self.second[:1]


def _sums(function: Function, start: BasicBlock) -> list[Value]:
    """The variables of one iteration, in the order of the clauses, which is that of all copies. Where those are of a
    variable at file scope, clang copies that one instead."""
    loop = Loops.of(function).loop_of.get(start)
    if loop is None:
        raise _UnknownForm
    own = function.blocks[function.blocks.index(loop.header) : function.blocks.index(start) + 1]
    starts = [i for b in own for i in b.instructions if callee_name(i).startswith("llvm.lifetime.start.")]
    return [i.operands[-2] for i in starts]


def _before(function: Function, block: BasicBlock) -> list[BasicBlock]:
    return [b for b in function.blocks if block in b.successors]


def _addresses(block: BasicBlock) -> Iterator[I.GetElementPtr]:
    return (i for i in block.instructions if isinstance(i, I.GetElementPtr))


def _copies(block: BasicBlock) -> Iterator[tuple[Value, Value, I.Instruction]]:
    """What a block copies from elements of an array: the array, where to, and the instruction that does it."""
    elements: dict[Value, Value] = {a: a.operands[0] for a in _addresses(block)}
    loaded: dict[Value, Value] = {}
    for instruction in block.instructions:
        match instruction:
            case I.Load(operands=[address]) if address in elements:
                loaded[instruction] = elements[address]
            case I.Store(operands=[value, to]) if value in loaded:
                yield loaded[value], to, instruction
            case I.Call(arguments=[to, address, *_]) if address in elements:
                # `memcpy`, or a user's operator of assignment.
                yield elements[address], to, instruction
            case _:
                pass


def _copy_like(copy: I.Instruction, source: Value, to: Value, at: Builder) -> None:
    """Copies from one place to another, as an instruction among `_copies` does."""
    if isinstance(copy, I.Call):
        call = at.insert(call_like(copy, copy.callee, [to, source, *copy.arguments[2:]]))
        call.parameter_attributes[:2] = [(), ()]
    else:
        at.store(at.load(copy.operands[0].type, source), to)


def _total(function: Function, part: Value, known: Collection[BasicBlock], calls: _Calls) -> Value:
    """The variable, in a function, that gets the last of the sums in an array, which are not copied there any more."""
    home, array = _origin(function, part, calls)
    found: dict[_Origin, list[tuple[BasicBlock, I.Instruction]]] = {}
    assert home is not None
    for block in home.blocks:
        for base, to, copy in _copies(block) if block not in known else ():
            if _origin(home, base, calls) == (home, array):
                found.setdefault(_origin(home, to, calls), []).append((block, copy))
    if len(found) != 1:
        raise _UnknownForm
    [(total, copies)] = found.items()
    for block, copy in copies:
        block.instructions.remove(copy)
    if total[0] is None or total[0] is function:
        return total[1]
    for argument in function.arguments:
        if _origin(function, argument, calls) == total:
            return argument
    raise _UnknownForm


def _origin(function: Function, value: Value, calls: _Calls) -> _Origin:
    """What a value is: followed through variables that are written once, and arguments of functions that are given the
    same by all calls, of which `if` in a directive makes two."""
    while True:
        match value:
            case GlobalValue():
                return None, value
            case I.Load(operands=[I.Alloca() as variable]) if (stored := _only_value(function, variable)) is not None:
                value = stored
            case Argument() if "internal" in function.prefix and calls.get(function):
                at = function.arguments.index(value)
                given = {(caller, values[at]) for caller, values in calls[function] if at < len(values)}
                if len(given) != 1 or any(at >= len(values) for _, values in calls[function]):
                    return function, value
                [(caller, known)] = given
                if known is value:
                    return function, value
                function, value = caller, known
            case _:
                return function, value


def _only_value(function: Function, variable: Value) -> Value | None:
    """What a variable always has, if it is written once and its address goes nowhere."""
    stored: list[Value] = []
    for user, index in uses(function).get(variable, ()):
        if isinstance(user, I.Store) and index == 1:
            stored.append(user.operands[0])
        elif not isinstance(user, I.Load) and not callee_name(user).startswith("llvm.lifetime."):
            return None
    return stored[0] if len(stored) == 1 else None
