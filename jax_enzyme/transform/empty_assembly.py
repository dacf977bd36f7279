"""Assembly without a text, which keeps optimisers from something and does nothing itself, goes.

    before    call void asm sideeffect "", "rm,~{memory}"(double %x)       (what Zig's and Rust's libraries, and
              %y = call double asm "", "=r,0,~{flags}"(double %x)           benchmarks, do with a number that is not
              %z = fmul double %y, %x                                       to be computed in advance)

    after     %z = fmul double %x, %x

An output that is tied to no input would be whatever lies in its register: such assembly stays.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import InlineAsm, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import Change, lower


def drop_empty_assembly(module: Module) -> Module:
    """A copy of the module without it; itself where there is none."""
    return lower(module, _gone)


def _gone(instruction: I.Instruction, _: Declarations) -> Change | None:
    value = _stands_for(instruction)
    return None if value is None else lambda _: None if instruction.type == T.VOID else value


def _stands_for(instruction: I.Instruction) -> Value | None:
    """The value of a call of assembly without a text; for one without a value the assembly. None for all else."""
    if not isinstance(instruction, I.Call) or not isinstance(code := instruction.callee, InlineAsm):
        return None
    if code.template.strip() or instruction.bundles:
        return None
    words = [word for word in code.constraints.split(",") if not word.startswith("~")]
    given = [word for word in words if not word.startswith("=") or word.startswith("=*")]
    if instruction.type == T.VOID:
        return code if len(given) == len(words) else None
    tied = [value for word, value in zip(given, instruction.arguments, strict=False) if word == "0"]
    is_one = len(words) == len(given) + 1 == len(instruction.arguments) + 1 and words[0] not in given
    return tied[0] if is_one and tied and tied[0].type == instruction.type else None
