"""Whether a kernel alone frees what it allocates, and nobody else keeps an address of that: what is small then lies one
behind the other in memory that is used again by the next call (`csrc/checked.cc`).

Libraries that are handed an address may give it back by a `free` of their own (`getline`), or come back to it in a
later call (`setvbuf`). So all functions without a body that are called have to be such as do neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jax_enzyme.analysis.objects import call_effect, leaves_pointers, named_functions
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_of, declared_callee
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.table import standard

_OWN = ("llvm.", "je_checked_", "je.")
_FREES = frozenset((Effect.FREE, Effect.REALLOCATE))
_OTHERS = frozenset(("setbuf", "setvbuf", "malloc_usable_size"))  # keep it, or look at what malloc says of it
_OF_EXCEPTION = re.compile(r"_ZN(K?)St\d+\w*(D[012]Ev|4whatEv)$")
"""Members of the library's exceptions: they free texts of the library's own."""


def is_alone(module: Module) -> bool:
    """Whether no function without a body frees, or keeps, what the kernel allocates."""
    calls = [i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.CallBase)]
    if not all(_leaves_alone(call) for call in calls if declared_callee(call) is not None):
        return False
    by_pointer = any(callee_of(call) is None for call in calls)
    return not by_pointer or all(map(_is_harmless, _named(module)))


def _leaves_alone(call: I.CallBase) -> bool:
    name = call.callee.name
    if name.startswith(_OWN) or leaves_pointers(call):
        return True
    if not any(T.is_pointer(a.type) or a.type == T.I64 for a in call.arguments):
        return True
    known = call_effect(call)
    if known is not None:
        return known not in _FREES and name not in _OTHERS
    return standard().for_call(name, call.function_type) is not None


def _is_harmless(function: Function) -> bool:
    """Whether a function without a body may be called through a pointer."""
    return (
        function.name.startswith(_OWN)
        or effect(function.name) is Effect.ABORT
        or bool(_OF_EXCEPTION.match(function.name))
    )


def _named(module: Module) -> Iterator[Function]:
    """The functions without a body whose addresses are taken."""
    tables: set[GlobalVariable] = set()
    for instruction in (i for f in module.functions.values() for i in f.instructions()):
        operands = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
        for operand in operands:
            yield from (f for f in named_functions(operand, tables) if f.is_declaration)
