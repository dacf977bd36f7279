"""Local variables that become registers: which of their bytes are written is known where they are read.

    before    %u = alloca i64                         after    %u.written = alloca i64      (a twin: -1 where written)
              store i32 %n, ptr %u                             store i32 -1, ptr %u.written
              %v = load i64, ptr %u                            %w = load i64, ptr %u.written
                                                               %bad = icmp ne i64 %w, -1
                                                               br i1 %bad, label %fails, label %fine

Twins become registers too, and constants where a variable is always written first, so that nothing is left of them.
What moves numbers from one variable to another moves what is known of their bytes; what comes out of memory counts as
written, where the pattern of `scalars` tells.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import resolve
from jax_enzyme.ir.metadata import MDConstant
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failing import PLACE
from jax_enzyme.transform.insertion import Check, insert_checks, put_behind
from jax_enzyme.transform.rewriting import locate
from jax_enzyme.transform.sanitize.dominated import BytesOfVariable, certainly_written
from jax_enzyme.transform.sanitize.narrow import is_narrow, narrow_check, vary
from jax_enzyme.transform.sanitize.provenance import root_of
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import (
    MOVES,
    WORD,
    holds_pattern,
    is_computed_with,
    is_lifetime,
    least_of_narrow,
    moved_from,
    pattern_of,
    variable_name,
)

_INLINE_BYTES = 256
_PARTS = ((8, T.I64, WORD << 32 | WORD), (4, T.I32, WORD), (1, T.I8, WORD & 0xFF))
_HIDE = "je.hide"


def start_unwritten(function: Function, runtime: Runtime, layout: DataLayout) -> None:
    """Gives all local variables of a function the pattern, checks the reads of those that become registers, and hides
    the others from SROA until `unhide`."""
    users = uses(function)
    declared = _declared(function, runtime.module)
    hide = Declarations(runtime.module).function(_HIDE, T.FunctionType(T.VOID, (T.PTR,)))
    filled: dict[I.Instruction, list[I.Instruction]] = {}
    for number, alloca in enumerate([i for i in function.instructions() if isinstance(i, I.Alloca)]):
        if alloca not in declared and alloca.allocated_type == PLACE and alloca.name.startswith("failure"):
            continue  # of `failures`, and of no source
        alloca.name = f"{declared.get(alloca) or alloca.name}.v{number}"
        is_number = isinstance(alloca.allocated_type, T.IntType | T.FloatType | T.PointerType)  # what is returned
        if alloca not in declared and not is_number and _whole_accesses(alloca, users, layout) is not None:
            continue
        starts = [user for user, _ in users.get(alloca, ()) if is_lifetime(user, "start")]
        for start in starts or [alloca]:
            fill = Builder(BasicBlock())
            _fill(fill, alloca, runtime, layout)
            fill.call(hide, [alloca])
            locate(start, fill.block.instructions)
            filled.setdefault(start, []).extend(fill.block.instructions)
    put_behind(function, filled)
    reveal(function, runtime, layout)


def reveal(function: Function, runtime: Runtime, layout: DataLayout) -> bool:
    """Checks the reads of hidden variables whose addresses have turned out to go nowhere, and lets these become
    registers: whether there are any."""
    users = uses(function)
    found: dict[I.Alloca, list[BytesOfVariable]] = {}
    for alloca in [i for i in function.instructions() if isinstance(i, I.Alloca)]:
        if any(hides(user) for user, _ in users.get(alloca, ())):
            accesses = _whole_accesses(alloca, users, layout)
            if accesses is not None:
                found[alloca] = accesses
    if not found:
        return False
    filled = fills(function)
    certain = certainly_written(function, found, {i for v in found for i in filled.get(v, ())}, _starts(found, users))
    needless = {i for variable in certain for i in filled.get(variable, ())}
    revealed = dict(found)
    for variable in certain:
        del found[variable]
    behind, written = _followed(found, layout, Declarations(runtime.module))
    checks: dict[I.Instruction, Sequence[Check]] = {}
    for alloca, accesses in found.items():
        unit = _unit(alloca, layout)
        for load, offset in [(a.instruction, a.offset) for a in accesses if a.instruction in written]:
            if isinstance(load.type, T.IntType | T.FloatType | T.PointerType) and is_computed_with(load, users):
                name = variable_name(alloca) + (f", index {offset // unit}" if unit and offset % unit == 0 else "")
                checks[written[load]] = _checks(load, written[load], name, is_narrow(load, users, runtime), runtime)
    put_behind(function, behind)
    _drop(function, revealed, needless)
    insert_checks(function, {}, checks, Declarations(runtime.module))
    return True


def unhide(function: Function, needless: Container[I.Instruction], runtime: Runtime, layout: DataLayout) -> None:
    """The end of hiding, in place, and of what gives variables the pattern that need none."""
    bytes_ = {i for v, own in fills(function).items() if _may_have_bytes(v, layout) for i in own if i not in needless}
    if any(isinstance(i, I.Store) for i in bytes_):
        vary(function, bytes_, runtime)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not hides(i) and i not in needless]


def fills(function: Function) -> dict[Value, list[I.Instruction]]:
    """What gives hidden variables the pattern: it comes right before they are hidden."""
    found: dict[Value, list[I.Instruction]] = {}
    for block in function.blocks:
        for place, hide in enumerate(block.instructions):
            if not hides(hide):
                continue
            own = found.setdefault(hide.operands[0], [])
            for instruction in reversed(block.instructions[:place]):
                if not _is_of_fill(instruction, hide.operands[0]):
                    break
                own.append(instruction)
    return found


def _may_have_bytes(variable: Value, layout: DataLayout) -> bool:
    """Whether there may be numbers of 8 or 16 bits in a local variable."""
    assert isinstance(variable, I.Alloca)
    return any(least_of_narrow(kind) is not None for kind in layout.kinds(variable.allocated_type))


def _is_of_fill(instruction: I.Instruction, variable: Value) -> bool:
    match instruction:
        case I.GetElementPtr():
            return instruction.operands[0] is variable
        case I.Store():
            number = int_value(instruction.operands[0])
            parts = [
                int_value(const_int(type_, part)) for _, type_, part in _PARTS if type_ == instruction.operands[0].type
            ]
            return number in parts and root_of(instruction.operands[1]) is variable
        case _:
            return callee_name(instruction) == "je_checked_fill" and instruction.operands[0] is variable


def is_written(condition: Value) -> bool:
    """Whether what a check found unwritten bytes by is certain to find none."""
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp" or condition.predicate != "ne":
        return False
    twin, all_ = condition.operands
    if not isinstance(twin.type, T.IntType) or not _is_all(all_, twin.type):
        return False
    return all(_is_all(value, twin.type) for value in reached([twin], I.merged) if not I.merged(value))


Behind = dict[I.Instruction, list[I.Instruction]]


def _followed(
    found: dict[I.Alloca, list[BytesOfVariable]], layout: DataLayout, declarations: Declarations
) -> tuple[Behind, dict[Value, I.Load]]:
    """What goes behind which instructions to know which bytes of the variables in `found` are written, and what is
    known of those that a load reads."""
    behind: Behind = {}
    twins: dict[I.Alloca, Value] = {}
    written: dict[Value, I.Load] = {}

    def put(instruction: I.Instruction, at: Builder) -> None:
        locate(instruction, at.block.instructions)
        behind.setdefault(instruction, []).extend(at.block.instructions)

    for alloca, accesses in found.items():
        size, at = layout.alloc_size(alloca.allocated_type), Builder(BasicBlock())
        twins[alloca] = at.alloca(T.ArrayType(size, T.I8), align=8)
        _mark(at, declarations, twins[alloca], size, True)  # a jump may pass by the start of its life
        put(alloca, at)
        for access in [access for access in accesses if isinstance(access.instruction, I.Load)]:
            at = Builder(BasicBlock())
            kind = T.IntType(8 * access.size)
            written[access.instruction] = at.load(kind, at.offset(twins[alloca], access.offset), 1)
            put(access.instruction, at)
    moved = {
        access.instruction: (twins[alloca], access.offset)
        for alloca, accesses in found.items()
        for access in accesses
        if isinstance(access.instruction, I.Call) and access.index == 1
    }
    for alloca, access in [(a, access) for a, accesses in found.items() for access in accesses]:
        instruction, at = access.instruction, Builder(BasicBlock())
        place = at.offset(twins[alloca], access.offset)
        if hides(instruction):
            _mark(at, declarations, place, layout.alloc_size(alloca.allocated_type), False)
        elif isinstance(instruction, I.Store):
            known = written.get(moved_from(instruction.operands[0]))
            kind = T.IntType(8 * access.size)
            at.store(known if known is not None and known.type == kind else const_int(kind, -1), place, 1)
        elif isinstance(instruction, I.Call) and access.index == 0:
            if instruction in moved and not instruction.callee.name.startswith("llvm.memset."):
                source = at.offset(*moved[instruction])
                declarations.memory(at, "memmove", place, source, const_int(T.I64, access.size))
            else:
                _mark(at, declarations, place, access.size, True)
        put(instruction, at)
    return behind, written


def _mark(at: Builder, declarations: Declarations, twin: Value, size: int, written: bool) -> None:
    declarations.memory(at, "memset", twin, const_int(T.I8, -int(written)), const_int(T.I64, size))


def _is_all(value: Value, kind: T.IntType) -> bool:
    number = int_value(value)
    return number is not None and number % 2**kind.bits == 2**kind.bits - 1


def hides(instruction: I.Instruction) -> bool:
    """Whether an instruction hides a variable from SROA."""
    return callee_name(instruction) == _HIDE


def _starts(found: Iterable[I.Alloca], users: Uses) -> dict[Value, list[I.Instruction]]:
    """Where the lives of variables start."""
    return {v: [user for user, _ in users.get(v, ()) if hides(user)] for v in found}


def _drop(function: Function, revealed: Container[Value], needless: Container[I.Instruction]) -> None:
    """Lets variables no longer be hidden, in place, and removes what gives the pattern to those that need none."""
    for block in function.blocks:
        block.instructions = [
            i for i in block.instructions if i not in needless and not (hides(i) and i.operands[0] in revealed)
        ]


def _unit(alloca: I.Alloca, layout: DataLayout) -> int:
    """The size of an element of an array; 0 for other variables, and bytes in which a compiler keeps something else."""
    kind = layout.body(alloca.allocated_type)
    if not isinstance(kind, T.ArrayType) or kind.element == T.I8:
        return 0
    while isinstance(kind, T.ArrayType):
        kind = layout.body(kind.element)
    return layout.alloc_size(kind)


def _checks(load: I.Instruction, written: Value, name: str, narrow: bool, runtime: Runtime) -> list[Check]:
    assert isinstance(written.type, T.IntType)
    status = runtime.failure(f"reads what nothing wrote: {name}", load)
    all_ = const_int(written.type, -1)
    checks = [Check(lambda at: at.icmp("ne", written, all_), lambda at: status)]
    if pattern_of(load.type) is not None:
        checks.append(Check(lambda at: holds_pattern(at, load), lambda at: status))
    if narrow:
        nothing, nowhere, place = const_int(T.I64, 0), ConstantNull(T.PTR), runtime.place(load)
        told = [nowhere, nothing, nothing, nothing, runtime.text(name), place]
        checks.append(narrow_check(load, runtime, lambda at: told))
    return checks


def _fill(at: Builder, alloca: I.Alloca, runtime: Runtime, layout: DataLayout) -> None:
    count, size = int_value(alloca.operands[0]), layout.alloc_size(alloca.allocated_type)
    if count is None:
        whole = at.binary("mul", at.wide(alloca.operands[0]), const_int(T.I64, size))
        runtime.call(at, "fill", alloca, whole)
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


def _whole_accesses(alloca: I.Alloca, users: Uses, layout: DataLayout) -> list[BytesOfVariable] | None:
    """The accesses of a variable, or of members of a structure or an array, that becomes registers, since it is only
    read and written at constant places inside; None for one that stays in memory."""
    kind = layout.body(alloca.allocated_type)
    if int_value(alloca.operands[0]) != 1:
        return None
    extent = layout.alloc_size(kind)
    accesses: list[BytesOfVariable] = []
    pending: list[tuple[Value, int]] = [(alloca, 0)]
    while pending:
        pointer, offset = pending.pop()
        for user, index in users.get(pointer, ()):
            size = 0
            match user:
                case I.Load():
                    size = layout.store_size(user.type)
                case I.Store() if index == 1:
                    size = layout.store_size(user.operands[0].type)
                case I.GetElementPtr() if (step := _constant_offset(user, layout)) is not None:
                    pending.append((user, offset + step))
                case I.Call() if user.callee.name.startswith(MOVES) and index < 2:
                    size = int_value(user.arguments[2]) or extent + 1
                case _ if is_lifetime(user) or hides(user):
                    pass
                case _:
                    return None
            if offset < 0 or offset + size > extent:
                return None
            if not isinstance(user, I.GetElementPtr) and not is_lifetime(user):
                accesses.append(BytesOfVariable(user, index, offset, size))
    return accesses


def _constant_offset(gep: I.GetElementPtr, layout: DataLayout) -> int | None:
    """The bytes that an address with constant indices goes on by; None for another, or where an index leaves an
    array."""
    indices = [int_value(v) for v in gep.operands[1:]]
    offset, kind = 0, gep.source_type
    for depth, index in enumerate(indices):
        if index is None:
            return None
        if depth == 0:
            offset += index * layout.alloc_size(kind)
            continue
        match kind := layout.body(kind):
            case T.StructType():
                offset, kind = offset + layout.offsets(kind)[index], kind.elements[index]
            case T.ArrayType() if 0 <= index < kind.count:
                offset, kind = offset + index * layout.alloc_size(kind.element), kind.element
            case _:
                return None
    return offset
