"""What transformations of OpenMP's calls have in common: finding and replacing them."""

from __future__ import annotations

from collections.abc import Iterator

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import BasicBlock
from jax_enzyme.transform.rewriting import locate

PREFIX = "__kmpc_"
FORKS = (PREFIX + "fork_call", PREFIX + "fork_teams")
"""Calls of what a parallel region does."""
REDUCE = PREFIX + "reduce"
"""How calls begin with which threads join what each has reduced."""
TEAM, TEAM_SIZE = "je_team", "je_team_size"
LOCKING = (
    *("__kmpc_critical", "omp_set_lock", "omp_set_nest_lock", "omp_test_lock", "omp_test_nest_lock"),
    *("pthread_mutex_lock", "pthread_mutex_trylock", "mtx_lock", "mtx_trylock"),
    *("_ZNSt3__15mutex4lock", "_ZNSt3__15mutex8try_lock"),
    *("_ZNSt3__115recursive_mutex4lock", "_ZNSt3__115recursive_mutex8try_lock"),
)
"""Calls that take a lock: the last pointer that they are given."""
UNLOCKING = (
    *("__kmpc_end_critical", "omp_unset_lock", "omp_unset_nest_lock", "pthread_mutex_unlock", "mtx_unlock"),
    *("_ZNSt3__15mutex6unlock", "_ZNSt3__115recursive_mutex6unlock"),
)
WAITING = (
    *("pthread_", "mtx_", "cnd_", "sem_", "call_once", "__atomic_"),
    *("_ZNSt3__15mutex", "_ZNSt3__111timed_mutex", "_ZNSt3__119__shared_mutex_base", "_ZNSt3__111__call_once"),
    *("_ZNSt3__115recursive_mutex", "_ZNSt3__121recursive_timed_mutex", "_ZNSt3__118condition_variable"),
)
"""How the functions of C, C++ and POSIX begin by which threads may wait for one another."""
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
