"""Through which operands a derivative flows into an instruction's result: the local facts that activity builds on.

Memory is not dealt with here: a load's result depends on memory, and copying calls write memory, see `activity`.
"""

from __future__ import annotations

from jax_enzyme.analysis.objects import call_effect, called_routine
from jax_enzyme.analysis.rounding import rounds
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import callee_of, declared_name
from jax_enzyme.ir.values import ConstantNull, Value, lane_of
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.rules.instructions import RECIPROCAL
from jax_enzyme.rules.rule import ZERO, Kind, Rule
from jax_enzyme.rules.table import Rules

_STRUCTURAL = {
    "phi": None,
    "select": (1, 2),
    "freeze": (0,),
    "extractvalue": (0,),
    "insertvalue": (0, 1),
    "extractelement": (0,),
    "insertelement": (0, 1),
    "shufflevector": (0, 1),
    "bitcast": (0,),
    "fpext": (0,),
    "fptrunc": (0,),
}


def holds_float(type_: T.Type) -> bool:
    """True where a value of the type can hold a floating-point number as such."""
    match type_:
        case T.FloatType():
            return True
        case T.VectorType(_, element) | T.ArrayType(_, element):
            return holds_float(element)
        case T.StructType(elements):
            return any(map(holds_float, elements))
        case _:
            return False


def only_decides(instruction: Value) -> bool:
    """Whether an instruction is made of numbers without a derivative going through it: an answer, or a whole number."""
    if isinstance(instruction, I.Cast):
        return instruction.opcode in ("fptosi", "fptoui")
    return isinstance(instruction, I.Compare)


def rule_of(instruction: I.Instruction, rules: Rules) -> Rule | None:
    """The derivative rule of an arithmetic instruction or of a call to a function without a body."""
    if isinstance(instruction, I.CallBase):
        name = declared_name(instruction)
        rule = rules.for_call(name, instruction.function_type) if name else None
        return None if rule is not None and _stores_address(instruction, rule) else rule
    if instruction.opcode == "fdiv" and _is_unit(instruction.operands[0]):
        return RECIPROCAL
    return rules.for_call("rint") if rounds(instruction) else rules.for_opcode(instruction.opcode)


def _stores_address(call: I.CallBase, rule: Rule) -> bool:
    """Whether a call leaves an address in memory besides, of which no rule tells."""
    return rule.name in ("strtod", "strtof") and not isinstance(call.arguments[1], ConstantNull)


def _is_unit(value: Value) -> bool:
    """Whether a number, or each lane of a vector of copies, is the constant 1 or -1."""
    return float_value(lane_of(value)) in (1.0, -1.0)


def flow(instruction: I.Instruction, rules: Rules) -> tuple[int, ...]:
    """Indices of the operands on which the result depends differentiably."""
    if instruction.opcode in _STRUCTURAL:
        indices = _STRUCTURAL[instruction.opcode]
        return tuple(range(len(instruction.operands))) if indices is None else indices
    if is_shuffle(instruction):
        return (1,)
    rule = rule_of(instruction, rules)
    if rule is None or rule.kind is Kind.REFUSED:
        # Nothing is known, or it is known that there is no derivative: the result depends on every argument, so that
        # a derivative that would have to pass here is refused and not lost.
        return tuple(range(len(instruction.operands))) if is_opaque_call(instruction) or rule is not None else ()
    return tuple(i for i, partial in enumerate(rule.partials) if partial is not None and partial is not ZERO)


def is_shuffle(instruction: Value) -> bool:
    """A call that returns what another lane of the warp passes in."""
    return effect(declared_name(instruction)) is Effect.SHUFFLE


def is_opaque_call(instruction: Value) -> bool:
    """A call of which nothing is known: of a pointer, of inline assembly, or of a function without body or effect."""
    if not isinstance(instruction, I.CallBase):
        return False
    callee = callee_of(instruction)
    if callee is None:
        return True
    return callee.is_declaration and call_effect(instruction) is None and called_routine(instruction) is None
