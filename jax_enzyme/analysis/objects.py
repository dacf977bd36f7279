"""Memory objects, what calls do to memory, and which code a program may enter.

An *object* is a piece of storage known by the place that makes it: a parameter of the root function, an alloca, an
allocation call, a global. Two pointers into different objects never alias (array functions promise it for their
buffers).

    unknown     results of calls without a body and of `inttoptr` from an integer of unknown origin: aliases everything
                that has escaped to such calls
    caller      what pointers in the memory of `OPEN` parameters lead to: memory of the caller's, where there may be
                pointers again
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.analysis.fortran_io import Statement, statement
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import (
    Function,
    GlobalAlias,
    GlobalVariable,
    callee_name,
    callee_of,
    declared_callee,
    declared_name,
)
from jax_enzyme.ir.values import (
    Constant,
    ConstantExpr,
    ConstantFloat,
    ConstantInt,
    ConstantNull,
    Poison,
    Undef,
    Value,
    int_value,
    parts_of,
)
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.blas.table import routine as routine_named
from jax_enzyme.rules.effects import OF_ITS_KIND, Effect, calls_nothing_back, effect, writes_text
from jax_enzyme.rules.mpi.table import communication, is_mpi, under_way
from jax_enzyme.rules.pairs import declared_routine
from jax_enzyme.rules.table import standard

_PAGE = 4096
"""Bytes of the first and the last page, in which no system has memory."""

_CXX_TABLES = ("_ZTV", "_ZTI", "_ZTS")


@dataclass(frozen=True, eq=False)
class MemoryObject:
    """`site` is what makes the object: an Argument, an Alloca, the allocating Call, a GlobalVariable, or None
    (unknown)."""

    kind: str
    site: Value | None = None

    @property
    def is_constant(self) -> bool:
        """A table that no program can write to."""
        return isinstance(self.site, GlobalVariable) and self.site.is_constant

    @property
    def is_code(self) -> bool:
        """A function, or what C++ knows of a class (virtual functions, type information, the type's name), in the
        module or in the run time: nothing that a program writes to."""
        return self.kind == "function" or (self.site is not None and self.site.name.startswith(_CXX_TABLES))

    @property
    def is_fixed(self) -> bool:
        """A function or a table: nothing is stored there."""
        return self.is_constant or isinstance(self.site, Function)

    @property
    def is_given(self) -> bool:
        """Whether it holds something before the function starts that the module does not show."""
        return self.kind == "buffer" or (isinstance(self.site, GlobalVariable) and self.site.initializer is None)

    def __str__(self) -> str:
        return f"{self.kind} {self.site.name}" if self.site is not None else self.kind


OBSERVED = '"je.observed"'
"""A parameter: what a kernel leaves in its memory, the caller sees, also where only a derivative is asked for."""
OPEN = '"je.open"'
"""Marks a parameter of the root that leads to memory with pointers in it, or to a function: `caller`."""

RESIZED = "je.resized"
"""Metadata of a copy that is a part of a reallocation."""

UNSIZED = '"je.unsized"'
"""Marks a parameter of the root that leads to memory of which nobody says how large it is."""

ALLOCATORS = frozenset("malloc calloc _Znwm _Znam".split())
"""Those of memory of a size that they are given, aligned as `HEAP_ALIGNMENT` says."""
HEAP_ALIGNMENT = 16
_NO_ADDRESS = (ConstantInt, ConstantFloat, ConstantNull, Undef, Poison)
Objects = frozenset[MemoryObject]
NOTHING: Objects = frozenset()

_MEETINGS = (Effect.BARRIER, Effect.VOTE, Effect.SHUFFLE, Effect.FENCE)


def call_effect(call: I.CallBase) -> Effect | None:
    """What a call to a function without a body does to memory, by its name; None for the unknown and for defined
    ones."""
    found = effect(declared_name(call))
    return None if found is Effect.OUTPUT and statement(call) is Statement.OTHER else found


def is_heap_block(item: MemoryObject) -> bool:
    """Whether the C library aligns an object to `HEAP_ALIGNMENT`."""
    return isinstance(item.site, I.CallBase) and callee_name(item.site) in (*ALLOCATORS, "realloc")


def is_of_its_kind(value: Value) -> bool:
    """Whether it is told of what was loaded, as the program runs, that it is what was stored."""
    return isinstance(value, I.CallBase) and callee_name(value).startswith(OF_ITS_KIND)


def allocates_zeros(site: Value | None) -> bool:
    return (
        isinstance(site, I.CallBase)
        and call_effect(site) is Effect.ALLOCATE
        and any(word in declared_name(site) for word in ("calloc", "zeroed"))
    )


def is_defined_call(instruction: Value) -> bool:
    """A direct call of a function that has a body."""
    callee = callee_of(instruction)
    return callee is not None and not callee.is_declaration


def called_routine(call: I.CallBase) -> Routine | None:
    """The routine of BLAS, LAPACK or MPI that a call is of: it reads and writes what its table says, and keeps no
    pointer."""
    callee = declared_callee(call)
    if callee is not None:
        if is_mpi(callee.name):
            found = communication(callee.name, call.arguments, callee.attributes)
            return found or declared_routine(callee.name, callee.attributes)
        if (begun := under_way(callee.name)) is not None:
            return begun
        return routine_named(callee.name, callee.function_type) or declared_routine(callee.name, callee.attributes)
    return None


def is_copy(call: I.CallBase) -> bool:
    """Whether a call copies memory, or moves it to where it has more room."""
    return call_effect(call) in (Effect.MEMORY_COPY, Effect.REALLOCATE)


def is_resize(call: I.CallBase) -> bool:
    """Whether a copy of memory is what a reallocation does: what lies there is used as before."""
    return call_effect(call) is Effect.REALLOCATE or RESIZED in dict(call.metadata)


def copy_operands(call: I.CallBase) -> tuple[Value, Value, int | None]:
    """Target, source and length of a copy of memory, or of a reallocation; None: it is not known."""
    if call_effect(call) is Effect.REALLOCATE:
        return call, call.operands[0], None
    return call.operands[0], call.operands[1], int_value(call.operands[2])


def reachable_functions(*roots: Function) -> list[Function]:
    """The roots and every defined function that they may call, in order of discovery: through a pointer, or from code
    that is not there, it may be any whose address a reachable function names, itself or in a table."""
    found = dict.fromkeys(roots)
    tables: set[GlobalVariable] = set()
    pending, unasked = list(found), list[Function]()
    named: dict[Function, None] = {}
    through_pointers = False
    while pending:
        unasked.append(pending.pop(0))
        for instruction in unasked[-1].instructions():
            is_call = isinstance(instruction, I.CallBase)
            for operand in instruction.arguments if is_call else instruction.operands:
                if isinstance(operand, Constant) and not isinstance(operand, _NO_ADDRESS):
                    named.update(dict.fromkeys(named_functions(operand, tables)))
            if is_call and isinstance(callee := instruction.callee, Function):
                pending += _entered(found, [callee])
        if not pending and not all(f.is_declaration or f in found for f in named):  # most programs name none
            through_pointers = through_pointers or any(_enters_any(i) for f in unasked for i in f.instructions())
            unasked.clear()
            pending += _entered(found, named) if through_pointers else ()
    return list(found)


def _entered(found: dict[Function, None], functions: Iterable[Function]) -> list[Function]:
    """Those with a body that are new, which are then known."""
    new = [f for f in functions if not f.is_declaration and f not in found]
    found.update(dict.fromkeys(new))
    return new


def _enters_any(instruction: I.Instruction) -> bool:
    """Whether control may come to any function whose address is known there: through a pointer, or from code that is
    not there, now or later."""
    if isinstance(instruction, I.Store):
        return _leaves_outside(instruction)
    if not isinstance(instruction, I.CallBase):
        return False
    callee = instruction.callee
    if not isinstance(callee, Function) or (may_call_back(instruction) and not calls_nothing_back(callee.name)):
        return True
    given = (a for a in instruction.arguments if isinstance(a, Constant) and not isinstance(a, _NO_ADDRESS))
    return _enters_unknown(instruction) and any(True for a in given for _ in named_functions(a, set()))


def _enters_unknown(instruction: I.CallBase) -> bool:
    """A call of which nothing is known: it may call the functions that it is given. What copies a table calls none."""
    harmless = (Effect.MEMORY_COPY, Effect.MEMORY_SET, Effect.IGNORED)
    return not is_defined_call(instruction) and call_effect(instruction) not in harmless


def may_call_back(call: I.CallBase) -> bool:
    """A call of code that is not there, and of which nothing is known, which may have been given functions in memory,
    or as integers."""
    if declared_callee(call) is None or not any(map(_may_lead_on, call.arguments)):
        return False  # most calls are of mathematical functions
    if call_effect(call) is not None or leaves_pointers(call):
        return False
    return standard().for_call(call.callee.name, call.function_type) is None


def _leaves_outside(store: I.Store) -> bool:
    """Whether what may lead to functions is stored where code that is not there finds it, in a variable of its own."""
    if not _may_lead_on(store.operands[0]):
        return False
    target = I.base_of(store.operands[1])
    while isinstance(target, ConstantExpr):
        target = target.operands[0]
    return isinstance(target, GlobalVariable) and target.initializer is None


def _may_lead_on(value: Value) -> bool:
    return T.is_pointer(value.type) or value.type == T.I64


def named_functions(value: Value, tables: set[GlobalVariable] | None = None) -> Iterator[Function]:
    """The functions whose addresses a constant holds. With `tables` also those in the globals that it names, each of
    which is looked through once and noted there."""
    match value:
        case Function():
            yield value
        case GlobalAlias(target=Constant() as target):
            yield from named_functions(target, tables)
        case GlobalVariable(initializer=Constant() as initializer) if tables is not None and value not in tables:
            tables.add(value)
            yield from named_functions(initializer, tables)
        case _:
            for part in parts_of(value):
                yield from named_functions(part, tables)


def is_memory_free(call: I.CallBase) -> bool:
    """True where the call is declared to touch no memory (`memory(none)`), on itself or on its callee, and for an
    intrinsic that is given no pointer and at which threads do not meet."""
    words = list(call.attributes)
    callee = callee_of(call)
    if callee is not None:
        words += callee.attributes
        if callee.name.startswith("llvm.") and not any(T.is_pointer(a.type) for a in call.arguments):
            return "convergent" not in words and effect(callee.name) not in _MEETINGS
    return any("memory(none)" in word for word in words)


def leaves_pointers(call: I.CallBase) -> bool:
    """Whether a call of a function whose code is not there neither keeps a pointer nor writes one."""
    if is_memory_free(call) or called_routine(call) is not None:
        return True
    return writes_text(declared_name(call))


def writes_pointers(instruction: I.Instruction) -> bool:
    """Whether an instruction may put pointers into memory."""
    if isinstance(instruction, I.CallBase):
        effect = call_effect(instruction)
        unknown = effect is None and not is_defined_call(instruction) and not leaves_pointers(instruction)
        return unknown or effect in (Effect.MEMORY_COPY, Effect.REALLOCATE)
    return isinstance(instruction, I.Store | I.AtomicRMW | I.CmpXchg)


def is_near_null(pointer: Value) -> bool:
    """Whether an address is a constant in the first page or the last, which belong to nobody: null, a member of a
    record at null, as what LLVM makes of them, or a mark among addresses."""
    if isinstance(pointer, ConstantExpr | I.Cast) and pointer.opcode == "inttoptr":
        number = pointer.operands[0]
        at = int_value(number)
        return pointer.type == T.PTR and number.type == T.I64 and at is not None and -_PAGE <= at < _PAGE
    return isinstance(pointer, ConstantNull)
