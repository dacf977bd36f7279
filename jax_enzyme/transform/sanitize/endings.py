"""Loops that go on for ever, and recursion that goes too deep.

Every loop looks at a flag, which Ctrl-C and a time limit raise, but for loops that count to a bound, and have none in
them but such as count to a small constant: those end soon enough, and stay such that LLVM can vectorise them. Functions
that call themselves compare the address of their frame with the end of their thread's stack.
"""

from __future__ import annotations

from jax_enzyme.analysis.counters import repeats, tests
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.rewriting import phis
from jax_enzyme.transform.sanitize.runtime import Runtime

Checks = dict[I.Instruction, list[Check]]
_MOST_BRIEF = 256


def ending_checks(function: Function, runtime: Runtime, *, recursive: bool) -> Checks:
    """The checks, by the instruction that they come before. Inserts, in place, what they read."""
    loops = Loops.of(function)
    headers = [loop.header for loop in loops.all if not _counts(loop)]
    headers += [target for _, target in loops.irreducible]
    checks: Checks = {}
    if not headers and not recursive:
        return checks
    start = Builder(BasicBlock())
    flag = runtime.call(start, "flag")
    for header in dict.fromkeys(headers):
        first = header.instructions[len(phis(header))]
        checks[first] = [_stop(flag, first, runtime)]
    if recursive:
        first = function.entry.instructions[0]
        checks.setdefault(first, []).extend([_depth(function, flag, first, runtime), _stop(flag, first, runtime)])
    function.entry.instructions[:0] = start.block.instructions
    return checks


def _stop(flag: Value, culprit: I.Instruction, runtime: Runtime) -> Check:
    def raised(at: Builder) -> Value:
        value = at.load(T.I32, flag, 4)
        value.flags = ("volatile",)
        return at.icmp("ne", value, const_int(T.I32, 0))

    return Check(raised, lambda at: runtime.call(at, "stopped", runtime.place(culprit)))


def _depth(function: Function, flag: Value, culprit: I.Instruction, runtime: Runtime) -> Check:
    def too_deep(at: Builder) -> Value:
        frame = Declarations(runtime.module).invoke(at, "llvm.frameaddress.p0", T.PTR, [const_int(T.I32, 0)])
        address = at.cast("ptrtoint", frame, T.I64)
        return at.icmp("ult", address, at.load(T.I64, at.offset(flag, 8), 8))

    status = runtime.failure("calls itself too often: the recursion has used up the stack", culprit, function)
    return Check(too_deep, lambda at: status)


def _counts(loop: Loop) -> bool:
    """Whether a loop counts, by a constant, to a bound that does not change in it, and those inside of it are brief."""
    if len(loop.latches) != 1 or any(iterations(child) is None for child in loop.children):
        return False
    # Behind the header other ways may lead around an exit; a loop that is left at its end has but one block here.
    certain = (loop.header, loop.latches[0])
    inside: set[Value] = {i for block in loop.blocks for i in block.instructions}

    def is_fixed(bound: Value) -> bool:
        if bound in inside and isinstance(bound, I.BinaryOp | I.Cast):
            return all(map(is_fixed, bound.operands))
        return bound not in inside

    return any(test.block in certain and is_fixed(test.bound) for test in tests(loop))


def iterations(loop: Loop) -> int | None:
    """How often the innermost loops of a nest run at most, if that is seldom, by constants."""
    if not _counts(loop):
        return None
    certain = (loop.header, loop.latches[0])
    own = next((n for block in certain if (n := repeats(loop, block)) is not None), None)
    inner = max((iterations(child) or 0 for child in loop.children), default=1)
    return None if own is None or own * inner > _MOST_BRIEF else max(own * inner, 1)
