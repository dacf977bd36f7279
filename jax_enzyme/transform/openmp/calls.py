"""What transformations of OpenMP's calls have in common: finding and replacing them."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import locate

PREFIX = "__kmpc_"
TEAM, TEAM_SIZE = "je_team", "je_team_size"
LOCKING = ("__kmpc_critical", "omp_set_lock", "omp_set_nest_lock", "omp_test_lock", "omp_test_nest_lock")
TEAM_TYPE = T.FunctionType(T.VOID, (T.I32, T.PTR), True)


def calls_of(function: Function, *prefixes: str) -> Iterator[tuple[BasicBlock, I.CallBase]]:
    """The calls of functions whose names start with one of `prefixes`, and their blocks."""
    for block in list(function.blocks):
        for instruction in list(block.instructions):
            if isinstance(instruction, I.CallBase) and callee_name(instruction).startswith(prefixes):
                yield block, instruction


def replace_call(block: BasicBlock, call: I.CallBase, instead: list[I.Instruction]) -> None:
    """Other instructions in place of a call; they get its place in the source."""
    at = block.instructions.index(call)
    locate(call, instead)
    block.instructions[at : at + 1] = instead
