"""Short arms of a branch in an innermost loop become choices, where what they load, if anything, is there in any case.

    before    br i1 %c, label %then, label %else                     after    %a = load double, ptr %left
              then: %a = load double, ptr %left                               %b = load double, ptr %right
              else: %b = load double, ptr %right                              %d = select i1 %c, double %a, double %b

Upwind differences are like that, limiters, and filters that leave their rims out. LLVM does not load what the source
did not load unless a look at a type tells it that it may; here the whole range of addresses in a buffer is known.
Without branches a loop is made vectors, and in reverse what is added to neighbours is added behind it
(`ad.plan.late_sums`); which arm was taken is kept without a branch, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.analysis.extents import ADDRESSES, is_inside
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.long_loops import root_of, stays
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import has_marks
from jax_enzyme.ir.module import callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.rewriting import phis, replace_values

_ARITHMETIC = 4
"""Instructions of both arms together, loads and addresses aside."""
_CHEAP = frozenset("fadd fsub fmul fneg fcmp select".split())
_CALLS = ("llvm.fmuladd.", "llvm.fabs.")


@dataclass(frozen=True)
class _Branch:
    """`block` goes to `behind` by two ways, on each of which lies an arm or nothing."""

    block: BasicBlock
    arms: tuple[BasicBlock | None, BasicBlock | None]
    behind: BasicBlock


def choose_loads(function: ArrayFunction) -> bool:
    """Makes such choices, in place; whether there are any."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    found = {loop: branches for loop in loops if not loop.children and (branches := list(_branches(loops, loop)))}
    if not found or has_marks(function.module):
        return False
    facts = Recurrences(root, loops, function.module)
    layout = DataLayout(function.module)
    chosen: list[_Branch] = []
    for loop, branches in found.items():
        inside = (i for b in loop.blocks for i in b.instructions)
        written = {root_of(i.operands[1]) for i in inside if isinstance(i, I.Store)}
        chosen += [branch for branch in branches if _are_there(facts, layout, branch, written)]
    gone = {arm for branch in chosen for arm in branch.arms}
    replaced: dict[Value, Value] = {}
    for branch in chosen:
        _choose(branch, replaced)
    root.blocks = [b for b in root.blocks if b not in gone]
    replace_values(root, replaced)
    return bool(chosen)


def _branches(loops: Loops, loop: Loop) -> Iterator[_Branch]:
    """The branches of a loop whose arms do little."""
    for block in loops.blocks(loop):
        last = block.terminator
        if not isinstance(last, I.CondBranch) or last.targets[0] is last.targets[1]:
            continue
        arms = tuple(_arm(loops, block, target) for target in last.targets)
        ends = {t if arm is None else arm.terminator.targets[0] for t, arm in zip(last.targets, arms, strict=True)}
        if len(ends) != 1 or not any(arms):
            continue
        (behind,) = ends
        inside = [i for arm in arms if arm is not None for i in arm.instructions[:-1]]
        is_whole = behind in loop and behind is not loop.header and len(loops.cfg.preds[behind]) == 2
        fits = all(_is_cheap(i) or _is_of_address(i) or _is_plain_load(i) for i in inside)
        is_little = sum(map(_is_cheap, inside)) <= _ARITHMETIC
        if is_whole and fits and is_little:
            yield _Branch(block, (arms[0], arms[1]), behind)


def _arm(loops: Loops, block: BasicBlock, target: BasicBlock) -> BasicBlock | None:
    """A block that a branch alone leads to, and that goes on by one way without phis; else none."""
    alone = loops.cfg.preds[target] == [block] and isinstance(target.terminator, I.Branch) and not phis(target)
    return target if alone else None


def _is_cheap(instruction: I.Instruction) -> bool:
    is_call = isinstance(instruction, I.CallBase) and callee_name(instruction).startswith(_CALLS)
    return instruction.opcode in _CHEAP or is_call


def _is_of_address(instruction: I.Instruction) -> bool:
    return instruction.opcode in ADDRESSES and instruction.type in (T.PTR, T.I64)


def _is_plain_load(instruction: I.Instruction) -> bool:
    return isinstance(instruction, I.Load) and isinstance(instruction.type, T.FloatType) and I.is_plain(instruction)


def _are_there(facts: Recurrences, layout: DataLayout, branch: _Branch, written: set[Value]) -> bool:
    """Whether all that the arms load lies in buffers that are not written, whatever the condition says."""
    for load in (i for arm in branch.arms if arm is not None for i in arm.instructions if isinstance(i, I.Load)):
        base = root_of(load.operands[0])
        if not stays(base, written) or not is_inside(facts, layout, load, base, branch.block):
            return False
    return True


def _choose(branch: _Branch, replaced: dict[Value, Value]) -> None:
    block, (yes, no) = branch.block, branch.arms
    last = block.instructions.pop()
    for arm in (yes, no):
        for instruction in arm.instructions[:-1] if arm is not None else ():
            if _is_of_address(instruction):
                instruction.flags = ()  # what is said of it holds in the arm
            block.instructions.append(instruction)
    at = Builder(block)
    for phi in phis(branch.behind):
        values = [phi.operands[phi.targets.index(block if arm is None else arm)] for arm in (yes, no)]
        replaced[phi] = at.select(last.operands[0], values[0], values[1])
    branch.behind.instructions[:] = branch.behind.instructions[len(phis(branch.behind)) :]
    at.br(branch.behind)
