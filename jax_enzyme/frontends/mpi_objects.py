"""Persistent requests of MPI, as requests that are begun once each; derived datatypes, as messages of the numbers that
they have; operations of the program's own, as what it does to all that is gathered.

    before    MPI_Type_vector(n, 1, m, MPI_DOUBLE, &column) ... MPI_Send(a, 1, column, to, tag, comm)
    after     where its numbers lie is kept in a table      ... they are packed; MPI_Send(packed, n, MPI_DOUBLE, ...)

    before    MPI_Send_init(x, n, MPI_DOUBLE, to, tag, comm, &r)  ... MPI_Start(&r) ... MPI_Wait(&r, s)
    after     what &r is for is kept in a table                   ... MPI_Isend(...) ... MPI_Wait(of the table, s)

    before    MPI_Bsend(x, n, MPI_DOUBLE, to, tag, comm)          ... MPI_Buffer_detach(...)
    after     MPI_Isend(of a copy, ...)                           ... MPI_Wait of each

    before    MPI_Op_create(f, 1, &op)                 ... MPI_Allreduce(x, y, n, MPI_DOUBLE, op, comm)
    after     what &op is for is kept in a table       ... MPI_Allgather(x, ..., all, ...); f(all, all + n, ...) ...

So messages have the rules of those of plain numbers, and packing is a loop like any other. The functions that do it are
in `runtime/mpi_objects.h`, once for each binary interface and type of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Module, declared_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value, parts_of
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.mpi.table import datatypes_of, is_handle, number_of


def _functions(names: str) -> tuple[str, ...]:
    return tuple(f"MPI_{name}" for name in names.split())


_TYPES = tuple(
    f"MPI_Type_{name}"
    for name in (
        "contiguous vector create_hvector indexed create_hindexed create_indexed_block create_struct create_subarray "
        "create_resized commit free"
    ).split()
)
_REQUESTS = _functions("Send_init Ssend_init Rsend_init Recv_init")
_OPERATIONS = _functions("Op_create Op_free")
_BUFFERED = _functions("Bsend Buffer_attach Buffer_detach")
_LISTED = _functions("Type_create_struct Alltoallw")
_REDUCTIONS = _functions("Allreduce Reduce Scan Exscan Reduce_scatter_block Reduce_scatter")
_OF_REQUESTS = _functions("Start Startall Request_free Wait Waitall Waitany Waitsome Test Testall Testany Testsome")
_OF_TYPES = _functions(
    "Send Ssend Rsend Recv Sendrecv Sendrecv_replace Isend Issend Irecv Bcast Gather Gatherv Scatter Scatterv "
    "Allgather Allgatherv Alltoall Alltoallv Type_size Type_get_extent Get_count"
)
_ALWAYS = frozenset({*_TYPES, *_REQUESTS, *_OF_REQUESTS, *_OPERATIONS, *_BUFFERED, "MPI_Alltoallw"})
_OURS = _ALWAYS.union(_OF_TYPES, _REDUCTIONS)


def makes_objects(ir: str) -> bool:
    """Whether a module mentions a function that makes persistent requests or operations, makes or uses derived
    datatypes, or sends by way of a buffer."""
    return any(f"@{name}(" in ir for name in (*_TYPES, *_REQUESTS, *_OPERATIONS, *_BUFFERED, *_LISTED))


def without_objects(ir: str) -> str:
    """The module without persistent requests, derived datatypes, buffered messages and operations of the program's own;
    as it is where it makes none, where they are not all of one type of real numbers, where one goes to a function of
    MPI that is not among ours, and where the buffer of messages is not taken back."""
    if not makes_objects(ir):
        return ir
    module = parse(ir)
    calls = list(_calls(module))
    combined: list[I.CallBase] = []
    if any(name in _OPERATIONS for _, name in calls):
        combined = [call for call, name in calls if name in _REDUCTIONS and _may_be_own(call)]
    makers = {*_TYPES, *_REQUESTS, *_BUFFERED}
    kinds = {number_of(a) for call, name in calls if name in makers for a in call.arguments} - {None}
    kinds |= {number_of(call.arguments[3]) for call in combined} - {None}
    if any(name in _LISTED for _, name in calls):
        kinds |= {k for k in map(number_of, _stored(module)) if k is not None}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    ours = [(c, name) for c, name in calls if name in _ALWAYS or c in combined or not _is_plain(c, name)]
    names = {name for _, name in ours}
    if kind is None or kind[1] not in "ds" or not names <= _OURS or names.intersection(_BUFFERED) == {"MPI_Bsend"}:
        return ir
    for call, name in ours:
        call.operands[-1] = _own(module, name, "_".join(("je_own", *kind, name)))
    return to_text(module)


def _calls(module: Module) -> Iterator[tuple[I.CallBase, str]]:
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and (name := declared_name(instruction)).startswith("MPI_"):
                yield instruction, name


def _stored(module: Module) -> Iterable[Value]:
    """The constants that a module's memory holds: some functions are given their datatypes there."""
    held = [g.initializer for g in module.globals.values()]
    stores = (i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.Store))
    return reached([v for v in (*held, *(s.operands[0] for s in stores)) if v is not None], parts_of)


def _is_plain(call: I.CallBase, name: str) -> bool:
    """Whether a call has no datatypes but those that it names."""
    places = datatypes_of(name)
    return places is not None and all(number_of(call.arguments[i]) is not None for i in places)


def _may_be_own(call: I.CallBase) -> bool:
    """Whether a reduction is of numbers, as far as that is said, and its operation may be the program's own."""
    kind = number_of(call.arguments[3])
    return not is_handle(call.arguments[4]) and (kind is None or kind[1] in "ds")


def _own(module: Module, name: str, symbol: str) -> Function:
    if symbol not in module.functions:
        declared = module.functions[name]
        arguments = [replace(argument) for argument in declared.arguments]
        module.functions[symbol] = replace(declared, name=symbol, arguments=arguments)
    return module.functions[symbol]
