"""What a derivative needs to be true, as distances that have to be those of the shadows as well: it fails where that
is not so.

    before    call void @je.distances.agree(i1 %same)

    after     br i1 %same, label %fine, label %apart
            apart:
              call void @je.distances.differ()         (never returns: `lower_failures` makes a status of it)
              unreachable
            fine:

The engine emits the first, which is a call until the last, as all of a derivative's own checks of divisions are.
"""

from __future__ import annotations

from functools import partial

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.debug import note_place
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import ConstantInt, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import DISTANCES_AGREE, NUMBERS_WHOLE
from jax_enzyme.transform.failure_sites import DISTANCES_DIFFER, NUMBERS_CUT
from jax_enzyme.transform.insertion import NEVER_RETURNS, Check, insert_checks

_FAILURES = {DISTANCES_AGREE: DISTANCES_DIFFER, NUMBERS_WHOLE: NUMBERS_CUT}
"""What a derivative fails with where something is not true that it checks."""
_ONLY_CHECKS = ("nounwind", "willreturn", "memory(inaccessiblemem: readwrite)")


def demand(module: Module, at: Builder, check: str, holds: Value, place: str | None) -> None:
    """Emits a check into a function of a module; `place` is that of what is checked in the source."""
    callee = Declarations(module).function(check, T.FunctionType(T.VOID, (T.I1,)), _ONLY_CHECKS)
    call = at.call(callee, [holds], attributes=_ONLY_CHECKS)
    assert isinstance(call, I.Instruction)
    note_place(module, call, place)


def lower_checks(module: Module) -> Module:
    """A copy of the module in which such checks are branches; the module itself where it has none."""
    if _FAILURES.keys().isdisjoint(module.functions):
        return module
    module = clone(module)
    declarations = Declarations(module)
    for function in [f for f in module.functions.values() if f.blocks]:
        _lower(function, declarations)
    return module


def _lower(function: Function, declarations: Declarations) -> None:
    calls = {i: failure for i in function.instructions() if (failure := _FAILURES.get(callee_name(i)))}
    checks = {
        call: [Check(partial(_is_untrue, call.operands[0]), partial(_fails, declarations, failure))]
        for call, failure in calls.items()
    }
    insert_checks(function, checks, {}, declarations)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i not in checks]


def _is_untrue(holds: Value, at: Builder) -> Value:
    return at.binary("xor", holds, ConstantInt(T.I1, 1))


def _fails(declarations: Declarations, failure: str, at: Builder) -> None:
    callee = declarations.function(failure, T.FunctionType(T.VOID, ()))
    at.call(callee, [], attributes=NEVER_RETURNS)
