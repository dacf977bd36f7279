"""What forward and reverse emission share: extending a module, copying instructions, applying partials, refusals."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from jax_enzyme.ad.causes import ASSEMBLY, DEFECT, UNKNOWN_CALL, UNKNOWN_POINTER_CALL, Cause
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.errors import DifferentiationError, NoRuleError, NotDifferentiableError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, instruction_of
from jax_enzyme.ir.debug import NOTED, location
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, ConstantExpr, ConstantInt, InlineAsm, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.emit import emit_product
from jax_enzyme.rules.expr import Expr
from jax_enzyme.rules.rule import ZERO, Outcome, Rule
from jax_enzyme.rules.table import Rules

# The order in which derivative terms are added is ours to choose, and products may be fused into sums.
SUM_FLAGS = ("reassoc", "nsz", "contract")
PRODUCT_FLAGS = ("contract",)

MapValue = Callable[[Value], Value]


def extended(module: Module) -> Module:
    """A module that shares the functions of `module`, which stay as they are, and can be added to."""
    return replace(
        module,
        globals=dict(module.globals),
        functions=dict(module.functions),
        struct_bodies=dict(module.struct_bodies),
        attribute_groups=dict(module.attribute_groups),
        metadata=dict(module.metadata),
        named_metadata=dict(module.named_metadata),
    )


def array_function(symbol: str, buffers: tuple[Buffer, ...]) -> Function:
    """An empty array function: one `noalias` pointer per buffer, i64 status."""
    arguments: list[Argument] = []
    for index, buffer in enumerate(buffers):
        words = ["noalias", "nonnull"]
        if buffer.nbytes:
            words.append(f"dereferenceable({buffer.nbytes})")
        arguments.append(Argument(T.PTR, tuple(words), index, name=f"b{index}.{buffer.name}"))
    type_ = T.FunctionType(T.I64, tuple(a.type for a in arguments))
    return Function(T.PTR, type_, arguments=arguments, attributes=("nounwind", "mustprogress"), name=symbol)


def copied(instruction: I.Instruction, value: MapValue, block: Callable[[BasicBlock], BasicBlock]) -> I.Instruction:
    """A copy over mapped operands and targets, without metadata (debug scopes belong to the source function) but
    a place that is noted."""
    twin = copy.copy(instruction)
    twin.operands = [value(v) for v in instruction.operands]
    twin.targets = [block(b) for b in instruction.targets]
    twin.metadata = [(kind, node) for kind, node in instruction.metadata if kind == NOTED]
    twin.records = []
    if isinstance(twin, I.CallBase):
        twin.bundles = [(tag, [value(v) for v in inputs]) for tag, inputs in twin.bundles]
        twin.parameter_attributes = [tuple(map(_less_aligned, words)) for words in twin.parameter_attributes]
    elif isinstance(twin, I.Load | I.Store) and twin.align is not None:
        twin.align = min(twin.align, ALIGNMENT)
    return twin


def address_operands(instruction: I.Instruction) -> range:
    """Which operands an address, or a vector of addresses, is made of: not those that only say which, or how far on."""
    match instruction.opcode:
        case "select":
            return range(1, 3)
        case "insertelement" | "shufflevector":
            return range(2)
        case _:
            return range(1)


def holds_address(layout: DataLayout, type_: T.Type) -> bool:
    """Whether a value of the type may be an address or have one in it: a pointer, the integer made of one, a record."""
    match layout.body(type_):
        case T.StructType(elements):
            return any(holds_address(layout, element) for element in elements)
        case T.ArrayType(_, element):
            return holds_address(layout, element)
        case body:
            return T.is_pointer(body) or body == T.I64


def companion_in_sum(builder: Builder, operand: Value, value: Value, shadow: Value) -> Value:
    """The shadow of an integer, one part of an address that is computed: of the address itself, or of what is added to
    it. Where integers lie beside pointers, either may have been loaded; the shadow of one that is no pointer is zero,
    or itself, and it is added as it is."""
    if isinstance(operand, I.Cast | I.BinaryOp):
        return shadow
    return builder.select(builder.icmp("eq", shadow, ConstantInt(T.I64, 0)), value, shadow)


ALIGNMENT = 16
"""What memory that a derivative makes is aligned to: local variables that move to the tape, shadows, the tape."""


def _less_aligned(word: str) -> str:
    known = re.fullmatch(r"align[ (](\d+)\)?", word)
    return f"align {ALIGNMENT}" if known and int(known[1]) > ALIGNMENT else word


def element_alignment(type_: T.Type, align: int | None) -> int:
    """The alignment of an access to memory of the derivative's own: that of the elements. More is known only of the
    primal's addresses."""
    match type_:
        case T.VectorType(_, element) | T.ArrayType(_, element):
            natural = element_alignment(element, None)
        case T.StructType(elements):
            natural = min((element_alignment(e, None) for e in elements), default=1)
        case T.FloatType(kind):
            natural = {"double": 8, "float": 4, "half": 2, "bfloat": 2}.get(kind, ALIGNMENT)
        case T.IntType(bits):
            natural = bits // 8 if bits in (8, 16, 32, 64) else 1
        case _:
            natural = 8
    return natural if align is None else min(natural, align)


def byte_count(builder: Builder, length: Value) -> Value:
    """How many bytes a copy or `memset` is of, as an i64."""
    return length if length.type == T.I64 else builder.cast("zext", length, T.I64)


def active_rule(module: Module, instruction: I.Instruction, rules: Rules) -> Rule:
    """The rule of an instruction on which a derivative depends; the three kinds of refusal are told apart."""
    rule = rule_of(instruction, rules)
    if rule is None:
        callee = instruction.callee if isinstance(instruction, I.CallBase) else None
        if isinstance(callee, Function):
            raise refuse(module, instruction, UNKNOWN_CALL, name=callee.name)
        if isinstance(callee, InlineAsm):
            raise refuse(module, instruction, ASSEMBLY)
        if callee is None:
            raise refuse(module, instruction, DEFECT, what="there is no rule for it")
        raise refuse(module, instruction, UNKNOWN_POINTER_CALL)
    if rule.refusal is not None:
        error = NotDifferentiableError if rule.refusal.outcome is Outcome.NOT_DIFFERENTIABLE else NoRuleError
        cause = f"{describe(instruction)}: {rule.refusal.cause}"
        raise error(cause, place=_place(module, instruction), remedy=rule.refusal.remedy)
    return rule


def refuse(module: Module, instruction: I.Instruction, cause: Cause, **words: object) -> DifferentiationError:
    """The error for an instruction that cannot be differentiated, at its place in the user's source."""
    return cause.error(describe(instruction), _place(module, instruction), **words)


def _place(module: Module, instruction: I.Instruction) -> str | None:
    """The place of an instruction; of what it computes with, where a pass has made it of several."""
    parts = [instruction, *(v for v in instruction.operands if isinstance(v, I.Instruction))]
    return next((place for part in parts if (place := location(module, part)) is not None), None)


def describe(instruction: I.Instruction) -> str:
    """A short name of an instruction for messages: a call by its callee, anything else by opcode and result."""
    if isinstance(instruction, I.CallBase):
        callee = instruction.callee
        if isinstance(callee, InlineAsm):
            return f"inline assembly `{' '.join(callee.template.split())[:60]}`"
        return f"call of `{callee.name}`" if isinstance(callee, Function) else "a call through a pointer"
    result = f"%{instruction.name} = " if instruction.name else ""
    return f"`{result}{instruction.opcode}`"


class Partials:
    """Emits products of partial derivatives: the arithmetic of both sweeps."""

    def __init__(self, builder: Builder, declarations: Declarations) -> None:
        self.builder = builder
        self._declarations = declarations

    def scaled(self, partial: Expr, environment: Mapping[str, Value], factor: Value) -> Value:
        """`partial * factor`, in the factor's type."""
        return emit_product(partial, factor, self.builder, environment, self._declarations, PRODUCT_FLAGS)

    def add(self, total: Value | None, term: Value) -> Value:
        """`total + term`, where no total is zero; element by element for aggregates."""
        if total is None:
            return term
        return self._add(total, term, total.type)

    def _add(self, x: Value, y: Value, type_: T.Type) -> Value:
        if T.is_float(type_):
            return self.builder.binary("fadd", x, y, SUM_FLAGS)
        assert isinstance(type_, T.StructType | T.ArrayType)
        elements = type_.elements if isinstance(type_, T.StructType) else (type_.element,) * type_.count
        result = x
        for index, element in enumerate(elements):
            if T.is_float(element) or isinstance(element, T.StructType | T.ArrayType):
                left = self.builder.extract_value(x, index, element)
                right = self.builder.extract_value(y, index, element)
                result = self.builder.insert_value(result, self._add(left, right, element), index)
        return result


def nonzero_partials(rule: Rule) -> list[tuple[int, Expr]]:
    """(operand index, partial) of the operands that a derivative flows through."""
    return [(i, p) for i, p in enumerate(rule.partials) if p is not None and p is not ZERO]


def variables_of(instruction: I.Instruction) -> dict[str, Value]:
    """The names that a rule's formulas may use: x0, x1 ... for the operands, y for the result."""
    arguments = instruction.arguments if isinstance(instruction, I.CallBase) else instruction.operands
    return {**{f"x{i}": v for i, v in enumerate(arguments)}, "y": instruction}


def expression_of(builder: Builder, expression: ConstantExpr, operands: list[Value]) -> Value:
    """A constant expression of other operands: a constant again where they are, and otherwise computed."""
    fixed = [v for v in operands if isinstance(v, Constant)]
    if len(fixed) == len(operands):
        return replace(expression, operands=fixed)
    return builder.insert(instruction_of(expression, operands))
