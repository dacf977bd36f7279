"""Loops of a thread that all threads of a block run equally often are turned inside out: the block runs the loop, and
in every iteration all its threads.

    before    for (k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];     one thread
    after     the same, with a barrier at the end of the loop's body

Threads run one after the other, so this barrier means nothing to the result; but it makes the loop one of the block
(`group`), in which the threads are the innermost loop. That is the order that the kernel was written for: neighbouring
threads touch neighbouring memory, and do not wait for each other's sums, so that they become lanes of vectors. Where
there are warp operations, the warp runs the loop, and its lanes in every iteration. It is not done where most accesses
would lie further apart than before, and where a thread has local arrays.
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.polynomials import Leaf
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.clone import clone_function
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.cuda import marks
from jax_enzyme.transform.cuda.evening import count_once, counters_of, even_loop, with_preheaders
from jax_enzyme.transform.cuda.group import Group, prepare
from jax_enzyme.transform.cuda.shuffles import lower_shuffles
from jax_enzyme.transform.cuda.uniform import Uniformity

_UNROLLED = 8
"""A loop of so few iterations is unrolled later on, and then is none."""
_STATE = 12
"""So many numbers may a thread carry around the loop: they become arrays."""


@dataclass(frozen=True)
class Side:
    """Those who stand side by side: threads of a block, or lanes of a warp. They differ in `indices`, neighbours
    in the first one; `meets` are what they come to together, first the meeting of their group."""

    indices: tuple[str, ...]
    meets: tuple[str, ...]


OF_BLOCK = Side(marks.THREADS, (marks.MEET_BLOCK,))
OF_WARP = Side((marks.LANE,), (marks.MEET_WARP, marks.MEET_BLOCK))


def turn_loops(module: Module, kernel: Function, side: Side) -> Function:
    """The function of one thread, with meetings added. It takes the place of the given one."""
    if any(isinstance(i, I.Alloca) for i in kernel.instructions()):
        return kernel
    with_preheaders(kernel, Recurrences.of(kernel, module).loops)
    number = 0
    while True:
        facts = Recurrences.of(kernel, module)
        if number == len(facts.loops.all):
            module.functions[kernel.name] = kernel
            return kernel
        if not facts.loops.all[number].children and _gains(module, facts, facts.loops.all[number], side):
            turned = _turned(module, kernel, number, side, False) or _turned(module, kernel, number, side, True)
            kernel = turned or kernel
        number += 1


def _turned(module: Module, kernel: Function, number: int, side: Side, evened: bool) -> Function | None:
    """A copy of the function in which one loop is turned, after making all threads run it equally often if need be.
    None where threads that have not left may miss an iteration of it."""
    copy = clone_function(kernel, kernel.name)
    copy.metadata = list(kernel.metadata)  # there is one function of this name still
    facts = Recurrences.of(copy, module)
    loop = facts.loops.all[number]
    counters = counters_of(facts, loop)
    latch = loop.latches[0]
    if evened:
        even = even_loop(copy, facts, loop, counters)
        if even is None:
            return None
        latch = even
    else:
        count_once(copy, loop, counters)
    callee = marks.meeting(module, side.meets[0])
    latch.instructions.insert(-1, I.Call(T.VOID, "call", [callee], function_type=callee.function_type))
    trial = clone_function(copy, copy.name)
    lower_shuffles(module, trial)
    prepare(trial, Group((), side.meets))
    return None if Uniformity(trial, side.indices, side.meets).decided else copy


def _gains(module: Module, facts: Recurrences, loop: Loop, side: Side) -> bool:
    """Whether threads side by side are better than iterations side by side."""
    trips = facts.repeats(loop)
    unrolled = trips is not None and trips < _UNROLLED
    if loop.preheader is None or len(loop.latches) != 1 or unrolled:
        return False
    carried = [i for i in loop.header.instructions if isinstance(i, I.Phi) and facts.closed_form(i, loop) is None]
    if not 0 < len(carried) <= _STATE and _alongside(module, facts, loop):
        return False
    layout = DataLayout(module)
    apart = total = 0
    for block in loop.blocks:
        for instruction in block.instructions:
            match instruction:
                case I.Call() if marks.is_meeting(instruction) or callee_name(instruction).startswith(marks.SHUFFLE):
                    return False
                case _ if (accessed := I.accessed(instruction)) is not None:
                    step = _step(facts, accessed[0], block, side.indices[0])
                    total += step is not None
                    apart += step not in (None, 0, layout.alloc_size(accessed[1]))
                case _:
                    pass
    # Where addresses are data, one order is as good as the other.
    return 2 * apart < max(total, 1)


def _alongside(module: Module, facts: Recurrences, loop: Loop) -> bool:
    """Whether the iterations of a loop themselves touch memory in a row."""
    layout = DataLayout(module)
    k = facts.iteration(loop)
    for block in loop.blocks:
        for instruction in block.instructions:
            if (accessed := I.accessed(instruction)) is not None:
                pointer, type_ = accessed
                steps = facts.form_at(pointer, block).polynomial.coefficients(k)[1:]
                if any(s.value is None or abs(s.value) > layout.alloc_size(type_) for s in steps):
                    return False
    return True


def _step(facts: Recurrences, pointer: Value, block: BasicBlock, index: str) -> int | None:
    """How far apart the places of neighbours by an index are; None where that depends on data."""
    polynomial = facts.form_at(pointer, block).polynomial
    step = 0
    for atom in polynomial.atoms:
        if not isinstance(atom, Leaf) or not isinstance(atom.value, I.Instruction):
            continue
        name = callee_name(atom.value)
        if name == index:
            parts = polynomial.coefficients(atom)
            if len(parts) != 2 or parts[1].value is None:
                return None
            step += parts[1].value
        elif name not in marks.INDICES:
            return None
    return abs(step)
