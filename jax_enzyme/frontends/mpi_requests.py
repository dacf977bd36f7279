"""Persistent requests of MPI, which are begun many times, as requests that are begun once each.

    before    MPI_Send_init(x, n, MPI_DOUBLE, to, tag, comm, &r)  ... MPI_Start(&r) ... MPI_Wait(&r, s)
    after     what &r is for is kept in a table                   ... MPI_Isend(...) ... MPI_Wait(of the table, s)

So they have the rules of `MPI_Isend` and `MPI_Irecv`. The functions that do it are in `runtime/mpi_requests.h`, once
for each binary interface and type of numbers.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import declared_name
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.mpi.table import number_of

_MADE = ("MPI_Send_init", "MPI_Ssend_init", "MPI_Rsend_init", "MPI_Recv_init")
_USED = ("MPI_Start", "MPI_Startall", "MPI_Wait", "MPI_Waitall", "MPI_Request_free")
_DATATYPE = 2


def makes_requests(ir: str) -> bool:
    """Whether a module mentions a function that makes persistent requests."""
    return any(f"@{name}(" in ir for name in _MADE)


def begun_each_time(ir: str) -> str:
    """The module without persistent requests; as it is where it makes none, and where they are not all of one type of
    real numbers, named where they are made."""
    if not makes_requests(ir):
        return ir
    module = parse(ir)
    calls = [i for f in module.functions.values() for i in f.instructions() if _makes_request(i)]
    kinds = {number_of(call.arguments[_DATATYPE]) for call in calls if isinstance(call, I.CallBase)}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is None or kind[1] not in "ds":
        return ir
    for name in (*_MADE, *_USED):
        function = module.functions.pop(name, None)
        if function is not None:
            function.name = "_".join(("je", *kind, name))
            module.functions[function.name] = function
    return to_text(module)


def _makes_request(instruction: I.Instruction) -> bool:
    return declared_name(instruction) in _MADE
