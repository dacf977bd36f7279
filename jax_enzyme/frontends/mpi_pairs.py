"""Reductions of MPI's by `MPI_MAXLOC` and `MPI_MINLOC`, as reductions of numbers and of places.

    before    MPI_Allreduce(mine, best, n, MPI_DOUBLE_INT, MPI_MAXLOC, comm)
    after     the greatest numbers; of the processes that have them the least places; the numbers of who has both

So what comes out is the number of one process by an operation that has a rule, and its derivative goes to that
process. The functions that do it are in `runtime/mpi_pairs.h`, once for each binary interface and type of numbers.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import declared_name
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.mpi.table import OPERATIONS_ON_PAIRS, pair_of

_REDUCTIONS = frozenset(("MPI_Reduce", "MPI_Allreduce", "MPI_Scan", "MPI_Exscan"))
_OF_FORTRAN = frozenset(f"{name.lower()}_" for name in _REDUCTIONS)


def _mentions() -> tuple[str, ...]:
    """How a module mentions the operations: MPICH's handles are integers, the standard's small addresses."""
    small = 0x1000
    return tuple(
        f"@{name}" if isinstance(name, str) else f"(i64 {name} to ptr)" if name < small else str(name)
        for name in OPERATIONS_ON_PAIRS
    )


def reduces_pairs(ir: str) -> bool:
    """Whether a module may reduce pairs: it calls a reduction, and mentions the operation."""
    return any(f"@{name}(" in ir for name in (*_REDUCTIONS, *_OF_FORTRAN)) and any(text in ir for text in _mentions())


def without_pairs(ir: str) -> str:
    """The module without reductions of pairs of numbers whose datatype and operation are named in the call; as it is
    where it has none."""
    module = parse(ir)
    found = False
    for function in list(module.functions.values()):
        for instruction in function.instructions():
            name = declared_name(instruction)
            if not isinstance(instruction, I.CallBase) or name not in _REDUCTIONS:
                continue
            pair = pair_of(*instruction.arguments[3:5])
            if pair is None:
                continue
            abi, letter, place, operation = pair
            symbol = f"je_own_{abi}_{letter}_{name}_{operation}_{place}"
            if symbol not in module.functions:
                declared = module.functions[name]
                arguments = [replace(argument) for argument in declared.arguments]
                module.functions[symbol] = replace(declared, name=symbol, arguments=arguments)
            instruction.operands[-1] = module.functions[symbol]
            found = True
    return to_text(module) if found else ir
