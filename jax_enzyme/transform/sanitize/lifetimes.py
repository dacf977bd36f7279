"""Uses of local variables whose block or function has ended.

    before    call void @llvm.lifetime.end(ptr %x)      after    call void @llvm.lifetime.end(ptr %x)
              %v = load double, ptr %x                           call void @je.fails(i64 <status>)     (never returns)

**Lattice.** For each place in a function the set of variables that may be alive there (bits of an integer), ordered
by inclusion; a variable without marks of its life is not looked at. It lives behind a start, and no longer behind an
end; at the start of the function none does. What may be alive is not reported, so that a program without this error
has none reported; which of two variables a pointer leads to is known only where it is one that shows in the function
after inlining.
"""

from __future__ import annotations

from collections.abc import Mapping

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Poison, Undef, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.insertion import Check, insert_checks
from jax_enzyme.transform.sanitize.provenance import root_of
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import is_lifetime, variable_name


def check_lifetimes(function: Function, runtime: Runtime) -> None:
    """Adds the checks of one function, in place, while it has its marks."""
    marked = dict.fromkeys(_variable(i) for i in function.instructions() if is_lifetime(i, "start"))
    if not marked:
        return
    layout = DataLayout(runtime.module)
    bits = {variable: 1 << number for number, variable in enumerate(marked)}
    marks = {block: [i for i in block.instructions if is_lifetime(i)] for block in function.blocks}
    cfg = Cfg(function)

    def entering(block: BasicBlock, facts: Mapping[BasicBlock, int]) -> int:
        alive = 0
        for before in cfg.preds[block]:
            alive |= facts.get(before, 0)
        return alive

    def behind(mark: I.Instruction, alive: int) -> int:
        bit = bits.get(_variable(mark), 0)
        return alive | bit if is_lifetime(mark, "start") else alive & ~bit

    def leaving(block: BasicBlock, facts: Mapping[BasicBlock, int]) -> int:
        alive = entering(block, facts)
        for mark in marks[block]:
            alive = behind(mark, alive)
        return alive

    facts = fixpoint(cfg.rpo, cfg.succs.__getitem__, leaving, 0)
    checks: dict[I.Instruction, list[Check]] = {}
    for block in cfg.rpo:
        alive = entering(block, facts)
        for instruction in block.instructions:
            if is_lifetime(instruction):
                alive = behind(instruction, alive)
            for pointer, _, writes in reversed(direct(instruction, layout)):
                ends = [v for v in reached([pointer], _sources) if not _sources(v)]
                roots = [v for v in ends if not isinstance(v, ConstantNull | Undef | Poison)]  # which fail anyway
                if roots and all(root in bits and not bits[root] & alive for root in roots):
                    checks[instruction] = [_check(instruction, "writes" if writes else "reads", roots, runtime)]
    insert_checks(function, checks, {}, Declarations(runtime.module))


def _variable(mark: I.Instruction) -> Value:
    assert isinstance(mark, I.Call)
    return root_of(mark.arguments[-1])


def _sources(value: Value) -> list[Value]:
    root = root_of(value)
    return I.merged(value) if root is value else [root]


def _check(instruction: I.Instruction, verb: str, roots: list[Value], runtime: Runtime) -> Check:
    (named, *more) = sorted({variable_name(root) for root in roots if isinstance(root, I.Alloca)})
    what = f"{verb} {named}{' or another' if more else ''} after the block or function that it belongs to has ended"
    status = runtime.failure(what, instruction)
    return Check(lambda at: const_int(T.I1, 1), lambda at: status)
