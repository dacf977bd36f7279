"""What a derivative needs to be true, as distances that have to be those of the shadows as well: it fails where that
is not so.

    before    call void @je.distances.agree(i1 %same)

    after     br i1 %same, label %fine, label %apart
            apart:
              call void @je.distances.differ()         (never returns: `lower_failures` makes a status of it)
              unreachable
            fine:

The engine emits the first, which is a call until divisions are guarded (`transform.divisions`).
"""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.debug import note_place
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.values import ConstantInt, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import DISTANCES_AGREE, NUMBERS_KNOWN, NUMBERS_WHOLE
from jax_enzyme.transform.failure_sites import DISTANCES_DIFFER, NUMBERS_CUT, NUMBERS_OTHER

_FAILURES = {DISTANCES_AGREE: DISTANCES_DIFFER, NUMBERS_WHOLE: NUMBERS_CUT, NUMBERS_KNOWN: NUMBERS_OTHER}
"""What a derivative fails with where something is not true that it checks."""
_ONLY_CHECKS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")


def demand(module: Module, at: Builder, check: str, holds: Value, place: str | None) -> None:
    """Emits a check into a function of a module; `place` is that of what is checked in the source."""
    call = Declarations(module).invoke(at, check, T.VOID, [holds], _ONLY_CHECKS, _ONLY_CHECKS)
    note_place(module, call, place)


def is_check(instruction: I.Instruction) -> bool:
    return callee_name(instruction) in _FAILURES


def check_failures(check: I.Instruction) -> list[tuple[str, Callable[[Builder], Value]]]:
    """By which function such a check fails, and what builds the condition."""
    failure = _FAILURES[callee_name(check) or ""]
    return [(failure, lambda at: at.binary("xor", check.operands[0], ConstantInt(T.I1, 1)))]
