"""Uses of local variables whose block or function has ended.

    before    call void @llvm.lifetime.end(ptr %x)      after    call void @llvm.lifetime.end(ptr %x)
              %v = load double, ptr %x                           call void @je.fails(i64 <status>)     (never returns)

**Lattice.** For each place in a function the set of variables that may be alive there (bits of an integer), ordered
by inclusion; a variable without marks of its life is not looked at. It lives behind a start, and no longer behind an
end; at the start of the function none does. What may be alive is not reported, so that a program without this error
has none reported; which variables a pointer may lead to is known only where these show in the function after inlining.
Where one of them may be alive, or what is no local variable is among them, the address tells (`by_address`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.analysis.accesses import direct
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantInt, ConstantNull, Poison, Undef, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.insertion import Check, insert_checks
from jax_enzyme.transform.sanitize.provenance import root_of
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import is_lifetime, variable_name


def check_lifetimes(function: Function, runtime: Runtime, *, by_address: bool = False) -> None:
    """Adds the checks of one function, in place, while it has its marks. `by_address`: of pointers that may lead
    elsewhere as well, and only those."""
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
                # These fail anyway, as does the pattern of what nothing wrote.
                roots = [v for v in ends if not isinstance(v, ConstantNull | ConstantInt | Undef | Poison)]
                ended = [root for root in roots if root in bits and not bits[root] & alive]
                if not ended or (len(ended) < len(roots)) is not by_address:
                    continue
                status = _status(instruction, "writes" if writes else "reads", ended, runtime)
                sizes = {root: layout.alloc_size(root.allocated_type) for root in ended if isinstance(root, I.Alloca)}
                condition = _leads_to(pointer, sizes) if by_address else lambda at: const_int(T.I1, 1)
                checks[instruction] = [Check(condition, lambda at, status=status: status)]
    insert_checks(function, checks, {}, Declarations(runtime.module))


def _variable(mark: I.Instruction) -> Value:
    assert isinstance(mark, I.Call)
    return root_of(mark.arguments[-1])


def _sources(value: Value) -> list[Value]:
    """What a pointer is made of; languages that keep it as bytes (Rust) have it as an integer in between."""
    if isinstance(value, I.Cast) and value.opcode in ("inttoptr", "ptrtoint"):
        return [value.operands[0]]
    root = root_of(value)
    return I.merged(value) if root is value else [root]


def _leads_to(pointer: Value, sizes: Mapping[I.Alloca, int]) -> Callable[[Builder], Value]:
    """Whether a pointer leads to one of these variables. Without marks of their lives no two share memory."""

    def condition(at: Builder) -> Value:
        address = at.cast("ptrtoint", pointer, T.I64)
        leads: Value = const_int(T.I1, 0)
        for variable, size in sizes.items():
            distance = at.binary("sub", address, at.cast("ptrtoint", variable, T.I64))
            leads = at.binary("or", leads, at.icmp("ult", distance, const_int(T.I64, size)))
        return leads

    return condition


def _status(instruction: I.Instruction, verb: str, roots: list[Value], runtime: Runtime) -> Value:
    (named, *more) = sorted({variable_name(root) for root in roots if isinstance(root, I.Alloca)})
    what = f"{verb} {named}{' or another' if more else ''} after the block or function that it belongs to has ended"
    return runtime.failure(what, instruction)
