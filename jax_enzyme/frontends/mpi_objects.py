"""Persistent requests of MPI, as requests that are begun once each; derived datatypes, as messages of the numbers that
they have; what MPI_Pack packs, as an array of numbers; operations of the program's own, as what it does to all that is
gathered.

    before    MPI_Type_vector(n, 1, m, MPI_DOUBLE, &column) ... MPI_Send(a, 1, column, to, tag, comm)
    after     where its numbers lie is kept in a table      ... they are packed; MPI_Send(packed, n, MPI_DOUBLE, ...)

    before    MPI_Send_init(x, n, MPI_DOUBLE, to, tag, comm, &r)  ... MPI_Start(&r) ... MPI_Wait(&r, s)
    after     what &r is for is kept in a table                   ... MPI_Isend(...) ... MPI_Wait(of the table, s)

    before    MPI_Allreduce_init(x, y, n, MPI_DOUBLE, MPI_SUM, comm, info, &r)  ... MPI_Start(&r) ... MPI_Wait(&r, s)
    after     what &r is for is kept in a table                   ... MPI_Iallreduce(...) ... MPI_Wait(of the table, s)

    before    MPI_Pack(&n, 1, MPI_INT, b, size, &at, comm)        ... MPI_Send(b, at, MPI_PACKED, to, tag, comm)
    after     ((double *)(b + at))[0] = n; at += 8                ... MPI_Send(b, at / 8, MPI_DOUBLE, to, tag, comm)

    before    MPI_Bsend(x, n, MPI_DOUBLE, to, tag, comm)          ... MPI_Buffer_detach(...)
    after     MPI_Isend(of a copy, ...)                           ... MPI_Wait of each

    before    MPI_Op_create(f, 1, &op)                 ... MPI_Allreduce(x, y, n, MPI_DOUBLE, op, comm)
    after     what &op is for is kept in a table       ... MPI_Allgather(x, ..., all, ...); f(all, all + n, ...) ...

So messages have the rules of those of plain numbers, and packing is a loop like any other. The functions that do it are
in `runtime/mpi_objects.h`, once for each binary interface and type of numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module, declared_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantInt, Value, parts_of
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.mpi.table import (
    communication,
    counts_of,
    datatypes_that_count,
    integer_bytes,
    is_handle,
    is_integer,
    is_mpi,
    is_packed,
    number_of,
)


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
_OF_ALL = _functions(
    "Barrier_init Bcast_init Reduce_init Allreduce_init Reduce_scatter_init Reduce_scatter_block_init Gather_init "
    "Scatter_init Allgather_init Alltoall_init Gatherv_init Scatterv_init Allgatherv_init Alltoallv_init"
)
_PACKING: Mapping[str, int] = {"MPI_Pack": 2, "MPI_Unpack": 5}
"""And which of their arguments is the datatype."""
_OPERATIONS = _functions("Op_create Op_free")
_BUFFERED = _functions("Bsend Buffer_attach Buffer_detach")
_LISTED = _functions("Type_create_struct Alltoallw")
_REDUCTIONS = _functions("Allreduce Reduce Scan Exscan Reduce_scatter_block Reduce_scatter")
_OF_REQUESTS = _functions("Start Startall Request_free Wait Waitall Waitany Waitsome Test Testall Testany Testsome")
_OF_TYPES = _functions(
    "Send Ssend Rsend Recv Sendrecv Sendrecv_replace Isend Issend Irecv Bcast Gather Gatherv Scatter Scatterv "
    "Allgather Allgatherv Alltoall Alltoallv Pack_size Type_size Type_get_extent Get_count"
)
_ALWAYS = frozenset(
    {*_TYPES, *_REQUESTS, *_OF_ALL, *_OF_REQUESTS, *_OPERATIONS, *_BUFFERED, *_PACKING, "MPI_Alltoallw"}
)
_OURS = _ALWAYS.union(_OF_TYPES, _REDUCTIONS)


def makes_objects(ir: str) -> bool:
    """Whether a module mentions a function that makes persistent requests or operations, makes or uses derived
    datatypes, packs, or sends by way of a buffer."""
    makers = (*_TYPES, *_REQUESTS, *_OF_ALL, *_OPERATIONS, *_BUFFERED, *_PACKING, *_LISTED)
    return any(f"@{name}(" in ir for name in makers)


def without_objects(ir: str) -> str:
    """The module without persistent requests, derived datatypes, packed and buffered messages and operations of the
    program's own; as it is where it makes none, where they are not all of one type of real numbers (and of integers of
    two bytes and more, in structures and packed), where one goes to a function of MPI that is not among ours, where a
    persistent call of all processes has no rule when it is begun each time, and where the buffer of messages is not
    taken back."""
    if not makes_objects(ir):
        return ir
    module = parse(ir)
    calls = list(_calls(module))
    combined: list[I.CallBase] = []
    if any(name in _OPERATIONS for _, name in calls):
        combined = [call for call, name in calls if name in _REDUCTIONS and _may_be_own(call)]
    packs = any(name in _PACKING for _, name in calls)
    makers = {*_TYPES, *_REQUESTS, *_OF_ALL, *_BUFFERED}
    kinds = {number_of(a) for call, name in calls if name in makers for a in call.arguments} - {None}
    kinds |= {number_of(call.arguments[3]) for call in combined} - {None}
    between = {number_of(a) for call, name in calls if name in _PACKING for a in call.arguments}
    if any(name in _LISTED for _, name in calls):
        stored = list(_stored(module))
        if any(integer_bytes(a) == 1 for a in stored):
            return ir
        between.update(map(number_of, stored))
    kinds |= {k for k in between if k is not None and not is_integer(k)}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is None or kind[1] not in "ds" or (packs and not _sent_as_numbers(module, kind)):
        return ir
    calls = list(_calls(module))
    ours = [(c, name) for c, name in calls if name in _ALWAYS or c in combined or not _is_plain(c, name)]
    ours += [(c, name) for c, name in calls if packs and name == "MPI_Pack_size"]
    names = {name for _, name in ours}
    if (
        not names <= _OURS
        or names.intersection(_BUFFERED) == {"MPI_Bsend"}
        or not all(itertools.starmap(_begins, ours))
    ):
        return ir
    for call, name in ours:
        call.operands[-1] = _own(module, name, "_".join(("je_own", *kind, name, *_said_of_types(call, name))))
    return to_text(module)


def _calls(module: Module) -> Iterator[tuple[I.CallBase, str]]:
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and (name := declared_name(instruction)).startswith("MPI_"):
                yield instruction, name


def _sent_as_numbers(module: Module, kind: tuple[str, str]) -> bool:
    """Makes messages of what is packed, whose lengths are bytes, such of numbers, in place. False where one is another
    call's than that of a message, or of a broadcast."""
    number = next(a for call, _ in _calls(module) for a in call.arguments if number_of(a) == kind)
    for block in [b for f in module.functions.values() for b in f.blocks]:
        for call in [i for i in block.instructions if isinstance(i, I.CallBase)]:
            name = declared_name(call)
            packed = [i for i, a in enumerate(call.arguments) if is_mpi(name) and is_packed(a)]
            if packed and name == "MPI_Get_count":
                call.operands[-1] = _own(module, name, "_".join(("je_own", *kind, name, "packed")))
                continue
            if not counts_of(name).issuperset(i - 1 for i in packed):
                return False
            for i in packed:
                size = ConstantInt(T.I32, 8 if kind[1] == "d" else 4)
                call.operands[i - 1] = Builder.before(block, call).binary("sdiv", call.operands[i - 1], size)
                call.operands[i] = number
    return True


def _begins(call: I.CallBase, name: str) -> bool:
    """Whether a persistent call of all processes has a rule when it is begun; any other call."""
    if name not in _OF_ALL:
        return True
    begun = f"MPI_I{name.removeprefix('MPI_').removesuffix('_init').lower()}"
    arguments = [*call.arguments[:-2], call.arguments[-1]]  # without what else MPI is told
    return communication(begun, arguments, ()) is not None


def _said_of_types(call: I.CallBase, name: str) -> Iterator[str]:
    """Whether numbers or integers of so many bytes are packed, where the call names that."""
    of = call.arguments[_PACKING[name]] if name in _PACKING else None
    if of is not None and (size := integer_bytes(of)):
        yield f"integers_{size}"
    elif of is not None and number_of(of) is not None:
        yield "numbers"


def _stored(module: Module) -> Iterable[Value]:
    """The constants that a module's memory holds: some functions are given their datatypes there."""
    held = [g.initializer for g in module.globals.values()]
    stores = (i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.Store))
    return reached([v for v in (*held, *(s.operands[0] for s in stores)) if v is not None], parts_of)


def _is_plain(call: I.CallBase, name: str) -> bool:
    """Whether a call has no datatypes but those that it names."""
    places = datatypes_that_count(name, call.arguments)
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
