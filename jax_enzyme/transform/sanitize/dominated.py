"""Variables that are written before each read, as the places of their writes show: they need no twin and no checks.

    store double %v, ptr %x.addr       all that -O0 makes of a parameter, or of `double d = a - b;`
    ...
    %r = load double, ptr %x.addr

Most variables are such, and what `registers` puts behind each of their accesses LLVM would have to find out to be
constant, in time that grows faster than the program. A read is certain where the writes that dominate it cover it, all
of them behind the start of the variable's life. What is written must not be the pattern of `scalars`, or bytes that
nothing wrote: it has been computed, or is read from memory where it is checked itself, once it is the variable's value.

**Lattice.** The set of variables of which all this holds, ordered by inclusion: it starts with all whose reads are
covered, and those go that are given what another one holds that is not in the set.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from jax_enzyme.analysis.loops import Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, callee_name
from jax_enzyme.ir.values import ConstantFloat, ConstantInt, ConstantNull, Value
from jax_enzyme.transform.sanitize.scalars import is_pattern, least_of_narrow, moved_from, pattern_of


@dataclass(frozen=True)
class BytesOfVariable:
    """What an instruction does to a variable. `index`: the operand that leads there."""

    instruction: I.Instruction
    index: int
    offset: int
    size: int

    @property
    def reads(self) -> bool:
        return isinstance(self.instruction, I.Load) or (isinstance(self.instruction, I.Call) and self.index == 1)

    @property
    def writes(self) -> bool:
        return isinstance(self.instruction, I.Store) or (
            isinstance(self.instruction, I.Call)
            and self.index == 0
            and callee_name(self.instruction).startswith("llvm.mem")
        )


def certainly_written(
    function: Function,
    found: Mapping[I.Alloca, Sequence[BytesOfVariable]],
    own: Container[I.Instruction],
    starts: Mapping[Value, Sequence[I.Instruction]],
) -> set[I.Alloca]:
    """Those of the variables in `found` that are written before each read. `own`: what gives them the pattern;
    `starts`: what their lives start with."""
    loops = Loops.of(function)
    certain: set[I.Alloca] = set()
    of_variable: dict[Value, I.Alloca] = {}
    for variable, accesses in found.items():
        writes = [a for a in accesses if a.writes and a.instruction not in own]
        reads = [a for a in accesses if a.reads]
        of_variable |= {read.instruction: variable for read in reads}
        first = [w for w in writes if all(loops.precedes(s, w.instruction) for s in starts.get(variable, ()))]
        if all(_is_covered(read, first, loops) for read in reads):
            certain.add(variable)
    while gone := [v for v in certain if not _is_clean(found[v], own, certain, of_variable)]:
        certain.difference_update(gone)
    return certain


def _is_covered(read: BytesOfVariable, writes: Sequence[BytesOfVariable], loops: Loops) -> bool:
    """Whether writes that come before a read in any case cover it."""
    at, end = read.offset, read.offset + read.size
    for write in sorted(writes, key=lambda w: w.offset):
        if write.offset <= at < write.offset + write.size and loops.precedes(write.instruction, read.instruction):
            at = write.offset + write.size
    return at >= end


def _is_clean(
    accesses: Sequence[BytesOfVariable],
    own: Container[I.Instruction],
    certain: Container[Value],
    of_variable: Mapping[Value, I.Alloca],
) -> bool:
    writes = [a.instruction for a in accesses if a.writes and a.instruction not in own]
    for write in writes:
        if isinstance(write, I.Call):
            if callee_name(write).startswith("llvm.memset."):
                continue
            return False
        value = write.operands[0]
        source = moved_from(value)
        if isinstance(source, I.Load):
            if len(writes) > 1 or (source in of_variable and of_variable[source] not in certain):
                return False
        elif not _is_computed(value):
            return False
    return True


def _is_computed(value: Value) -> bool:
    """Whether a value is no pattern."""
    match value:
        case I.BinaryOp():
            return value.opcode not in ("and", "or") or value.type == T.I1
        case I.Cast():
            return value.opcode not in ("bitcast", "ptrtoint", "inttoptr")
        case (
            I.UnaryOp() | I.Compare() | I.GetElementPtr() | I.Alloca() | GlobalVariable() | ConstantNull() | Function()
        ):
            return True
        case ConstantInt() | ConstantFloat():
            return not is_pattern(value)
        case _:
            return pattern_of(value.type) is None and least_of_narrow(value.type) is None
