"""Errors about an instruction: where it is in the source, what it is called, and which cause refuses it."""

from __future__ import annotations

from jax_enzyme.ad.facts.causes import ASSEMBLY, DEFECT, UNKNOWN_CALL, UNKNOWN_POINTER_CALL, Cause
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.errors import DifferentiationError, NoRuleError, NotDifferentiableError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import InlineAsm
from jax_enzyme.rules.rule import Outcome, Rule
from jax_enzyme.rules.table import Rules


def active_rule(module: Module, instruction: I.Instruction, rules: Rules) -> Rule:
    """The rule of an instruction on which a derivative depends; the three kinds of refusal are told apart."""
    rule = rule_of(instruction, rules)
    if rule is None:
        callee = instruction.callee if isinstance(instruction, I.CallBase) else None
        if name := callee_name(instruction):
            raise refuse(module, instruction, UNKNOWN_CALL, name=name)
        if isinstance(callee, InlineAsm):
            raise refuse(module, instruction, ASSEMBLY)
        if callee is None:
            raise refuse(module, instruction, DEFECT, what="there is no rule for it")
        raise refuse(module, instruction, UNKNOWN_POINTER_CALL)
    if rule.refusal is not None:
        error = NotDifferentiableError if rule.refusal.outcome is Outcome.NOT_DIFFERENTIABLE else NoRuleError
        cause = f"{describe(instruction)}: {rule.refusal.cause}"
        raise error(cause, place=place_of(module, instruction), remedy=rule.refusal.remedy)
    return rule


def refuse(module: Module, instruction: I.Instruction, cause: Cause, **words: object) -> DifferentiationError:
    """The error for an instruction that cannot be differentiated, at its place in the user's source."""
    return cause.error(describe(instruction), place_of(module, instruction), **words)


def place_of(module: Module, instruction: I.Instruction) -> str | None:
    """The place of an instruction; of what it computes with, where a pass has made it of several; else of what stands
    near it, or of a call of the function that it is in, which a library of ours or a pass has without places."""
    parts = [instruction, *(v for v in instruction.operands if isinstance(v, I.Instruction))]
    place = next((place for part in parts if (place := location(module, part)) is not None), None)
    return place or _near(module, instruction)


def _near(module: Module, instruction: I.Instruction) -> str | None:
    """The first place that is known in the function of an instruction, or of the calls that lead to it."""
    functions = list(module.functions.values())
    owner = [f for f in functions if any(i is instruction for i in f.instructions())]
    calls = [(f, i) for f in functions for i in f.instructions() if isinstance(i, I.CallBase)]
    around = reached(owner, lambda function: [caller for caller, call in calls if call.callee is function])
    leading = (call for function in around for _, call in calls if call.callee is function)
    near = (i for group in ((i for f in owner for i in f.instructions()), leading) for i in group)
    return next((place for i in near if (place := location(module, i)) is not None), None)


def describe(instruction: I.Instruction) -> str:
    """A short name of an instruction for messages: a call by its callee, anything else by opcode and result."""
    if isinstance(instruction, I.CallBase):
        callee = instruction.callee
        if isinstance(callee, InlineAsm):
            return f"inline assembly `{' '.join(callee.template.split())[:60]}`"
        name = callee_name(instruction)
        return f"call of `{name}`" if name else "a call through a pointer"
    result = f"%{instruction.name} = " if instruction.name else ""
    return f"`{result}{instruction.opcode}`"
