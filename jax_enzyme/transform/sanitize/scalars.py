"""Local variables that are read before anything is written to them.

Every variable starts with a pattern that programs do not compute (`csrc/checked.cc`), and what is read is compared
with it, where the number is used for more than to be moved. Where a variable is always written first, nothing of this
is left after optimisation. Copies of memory carry the pattern along, so that what was never written is found wherever
it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDConstant
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, declared_callee, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import locate
from jax_enzyme.transform.sanitize.insertion import Check, insert_checks, put_behind
from jax_enzyme.transform.sanitize.runtime import Runtime

_WORD = 0xFFB5A5A5
_INLINE_BYTES = 64
_PARTS = ((8, T.I64, _WORD << 32 | _WORD), (4, T.I32, _WORD), (1, T.I8, _WORD & 0xFF))
MOVES = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
HIDE = "je.hide"


def pattern_of(type_: T.Type) -> tuple[T.Type, Value] | None:
    """The integer type in which a number is compared, and the pattern in it; None where it is not looked for."""
    if type_ in (T.FLOAT, T.I32):
        return T.I32, const_int(T.I32, _WORD)
    if type_ in (T.DOUBLE, T.I64):
        return T.I64, const_int(T.I64, _WORD << 32 | _WORD)
    return None


def holds_pattern(at: Builder, value: Value) -> Value:
    found = pattern_of(value.type)
    assert found is not None
    integer, pattern = found
    return at.icmp("eq", value if value.type == integer else at.cast("bitcast", value, integer), pattern)


def is_computed_with(
    load: I.Instruction, users: Uses, but: Callable[[Value], Value | None] = lambda user: None
) -> bool:
    """Whether a number that was read is used for more than to be moved, `but` by users for which that gives the number.
    A word that goes back with some bits changed is one of bit fields of which one is written."""
    for user, index in users.get(load, ()):
        match user:
            case _ if but(user) is load:
                continue
            case I.Cast(opcode="bitcast") if all(but(u) is load for u, _ in users.get(user, ())):
                continue
            case I.Store() | I.Return() | I.Phi() | I.InsertValue() | I.Freeze():
                continue
            case I.Select() if index > 0:
                continue
            case I.BinaryOp(opcode="and" | "or") if _goes_back(user, load.operands[0], users):
                continue
            case I.CallBase() if declared_callee(user) is None:
                continue
            case _:
                return True
    return False


def _goes_back(word: I.Instruction, address: Value, users: Uses) -> bool:
    """Whether a word is, with more bits changed at most, written to an address, and nothing else."""
    for user, index in users.get(word, ()):
        match user:
            case I.Store() if index == 0 and user.operands[1] is address:
                continue
            case I.BinaryOp(opcode="and" | "or") if _goes_back(user, address, users):
                continue
            case _:
                return False
    return True


def start_unwritten(function: Function, runtime: Runtime, layout: DataLayout) -> None:
    """Gives all local variables of a function the pattern, checks the reads of those that become registers, and hides
    the others from SROA until `unhide`."""
    users = uses(function)
    declared = _declared(function, runtime.module)
    hide = Declarations(runtime.module).function(HIDE, T.FunctionType(T.VOID, (T.PTR,)))
    filled: dict[I.Instruction, list[I.Instruction]] = {}
    checks: dict[I.Instruction, Sequence[Check]] = {}
    for number, alloca in enumerate([i for i in function.instructions() if isinstance(i, I.Alloca)]):
        alloca.name = f"{declared.get(alloca) or alloca.name}.v{number}"
        own = users.get(alloca, ())
        starts = [user for user, _ in own if is_lifetime(user, "start")]
        reads = _whole_accesses(alloca, users, layout)
        fill = Builder(BasicBlock())
        if reads is None:
            fill.call(hide, [alloca])
            filled.setdefault(alloca, []).extend(fill.block.instructions)
        elif alloca not in declared:
            continue
        for start in starts or [alloca]:
            fill = Builder(BasicBlock())
            _fill(fill, alloca, runtime, layout)
            locate(start, fill.block.instructions)
            filled.setdefault(start, []).extend(fill.block.instructions)
        for load in reads or ():
            if pattern_of(load.type) is not None and is_computed_with(load, users):
                checks[load] = [_check(load, alloca, runtime)]
    put_behind(function, filled)
    insert_checks(function, {}, checks, Declarations(runtime.module))


def reveal(function: Function, runtime: Runtime, layout: DataLayout) -> bool:
    """Structures whose addresses have turned out to go nowhere become registers as well: whether there are any."""
    users = uses(function)
    found: dict[Value, list[I.Instruction]] = {}
    for alloca in [i for i in function.instructions() if isinstance(i, I.Alloca)]:
        reads = _whole_accesses(alloca, users, layout)
        if reads is not None and any(_hides(user) for user, _ in users.get(alloca, ())):
            found[alloca] = reads
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not (_hides(i) and i.operands[0] in found)]
    checks: dict[I.Instruction, Sequence[Check]] = {
        load: [_check(load, alloca, runtime)]
        for alloca, reads in found.items()
        if isinstance(alloca, I.Alloca)
        for load in reads
        if pattern_of(load.type) is not None and is_computed_with(load, users)
    }
    insert_checks(function, {}, checks, Declarations(runtime.module))
    return bool(found)


def unhide(function: Function) -> None:
    """The end of hiding, in place."""
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not _hides(i)]


def _hides(instruction: I.Instruction) -> bool:
    return callee_name(instruction) == HIDE


def _check(load: I.Instruction, alloca: I.Alloca, runtime: Runtime) -> Check:
    status = runtime.failure(f"reads what nothing wrote: {variable_name(alloca)}", load)
    return Check(lambda at: holds_pattern(at, load), lambda at: status)


def _fill(at: Builder, alloca: I.Alloca, runtime: Runtime, layout: DataLayout) -> None:
    count, size = int_value(alloca.operands[0]), layout.alloc_size(alloca.allocated_type)
    if count is None:
        wide = alloca.operands[0]
        if wide.type != T.I64:
            wide = at.cast("zext", wide, T.I64)
        runtime.call(at, "fill", alloca, at.binary("mul", wide, const_int(T.I64, size)))
        return
    total = count * size
    if total > _INLINE_BYTES:
        runtime.call(at, "fill", alloca, const_int(T.I64, total))
        return
    align, offset = alloca.align or 1, 0
    for step, type_, number in _PARTS:
        while total - offset >= step:
            at.store(const_int(type_, number), at.offset(alloca, offset), min(align, step))
            offset += step


def _declared(function: Function, module: Module) -> dict[Value, str]:
    """The variables that the source names, and their names."""
    found: dict[Value, str] = {}
    for record in (r for i in function.instructions() for r in i.records if r.kind == "declare"):
        operand, variable = record.operands[0], resolve(module, record.operands[1])
        if isinstance(operand, MDConstant) and variable is not None:
            found[operand.value] = variable.string("name") or ""
    return found


def variable_name(alloca: I.Alloca) -> str:
    """What the source calls a variable, for messages."""
    name = alloca.name.split(".")[0]
    return f"local variable `{name}`" if name else "a local variable"


def _whole_accesses(alloca: I.Alloca, users: Uses, layout: DataLayout) -> list[I.Instruction] | None:
    """The reads of a variable, or of members of a structure, that becomes registers, since it is only read and written
    at constant places inside; None for one that stays in memory."""
    kind = layout.body(alloca.allocated_type)
    if int_value(alloca.operands[0]) != 1 or isinstance(kind, T.ArrayType):
        return None
    extent = layout.alloc_size(kind)
    reads: list[I.Instruction] = []
    pending: list[tuple[Value, int]] = [(alloca, 0)]
    while pending:
        pointer, offset = pending.pop()
        for user, index in users.get(pointer, ()):
            size = 0
            match user:
                case I.Load():
                    size = layout.store_size(user.type)
                    reads.append(user)
                case I.Store() if index == 1:
                    size = layout.store_size(user.operands[0].type)
                case I.GetElementPtr() if (step := _constant_offset(user, layout)) is not None:
                    pending.append((user, offset + step))
                case I.Call() if user.callee.name.startswith(MOVES) and index < 2:
                    size = int_value(user.arguments[2]) or extent + 1
                case _ if is_lifetime(user) or _hides(user):
                    pass
                case _:
                    return None
            if offset < 0 or offset + size > extent:
                return None
    return reads


def _constant_offset(gep: I.GetElementPtr, layout: DataLayout) -> int | None:
    """The bytes that an address with constant indices goes on by; None for another, or for one into an array, which the
    index may leave."""
    indices = [int_value(v) for v in gep.operands[1:]]
    offset, kind = 0, gep.source_type
    for depth, index in enumerate(indices):
        if index is None:
            return None
        if depth == 0:
            offset += index * layout.alloc_size(kind)
            continue
        kind = layout.body(kind)
        if not isinstance(kind, T.StructType):
            return None
        offset, kind = offset + layout.offsets(kind)[index], kind.elements[index]
    return offset


def is_lifetime(instruction: I.Instruction, which: str = "") -> bool:
    return callee_name(instruction).startswith(f"llvm.lifetime.{which}")
