"""Arithmetic that has no result: integer division by zero and its overflow, shifts by too many places, floating-point
numbers that the integers they become cannot hold, the absolute value of the least integer. Of numbers, not of vectors,
in which no source language has these. Of constants a compiler, and LLVM when it inlines, computes that there is no
result: `poison`.
A local array whose length came out negative, or which no stack would hold, is told as well."""

from __future__ import annotations

from collections.abc import Callable

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.debug import comes_from_fortran
from jax_enzyme.ir.module import Function, callee_name
from jax_enzyme.ir.values import ConstantFloat, Poison, Value, int_value
from jax_enzyme.transform.divisions import division_failures
from jax_enzyme.transform.failure_sites import DIVISIONS
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.rewriting import Change, rewrite
from jax_enzyme.transform.sanitize.runtime import Runtime
from jax_enzyme.transform.sanitize.scalars import variable_name

_SHIFTS = ("shl", "lshr", "ashr")
_MOST_ELEMENTS = 2**31
"""Of a local array: an `int` that is negative gives that many and more as the size that a compiler makes of it."""
_MOST_BYTES = 2**30
"""More of a local array than any stack holds: it would end the process where the kernel runs by itself."""
_WIDENED = frozenset({"half", "bfloat", "float", "double"})
_ROUNDS = ("llvm.lround.", "llvm.llround.", "llvm.lrint.", "llvm.llrint.")
_SATURATES = ("llvm.fptosi.sat.", "llvm.fptoui.sat.")
"""What Fortran's conversions become, which does not say what numbers out of range give. Rust's do too, and it says."""
_ZEROS = ("llvm.ctlz.", "llvm.cttz.")


def constant_checks(function: Function, runtime: Runtime) -> dict[I.Instruction, list[Check]]:
    """What is to be checked before instructions that use a constant without a value, before SROA, which has such
    constants for the padding of structures."""
    true = const_int(T.I1, 1)
    checks: dict[I.Instruction, list[Check]] = {}
    for instruction in function.instructions():
        uses = isinstance(instruction, I.Store | I.BinaryOp | I.Cast | I.Compare | I.GetElementPtr)
        if uses and any(isinstance(o, Poison) and T.is_int(o.type) for o in instruction.operands):
            status = runtime.failure(
                "uses an integer without a value: a conversion, shift or division of constants has no result",
                instruction,
            )
            checks[instruction] = [Check(lambda at: true, _constant(status))]
    return checks


def say_sums_plainly(function: Function) -> None:
    """Numbers that come with a flag for their overflow, as Rust's do, become sums and products of their own, in place:
    addresses that are linear in them are told as those of other languages are.

    before    %r = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %x, i64 %y)     after    %r = (the same)
              %p = extractvalue { i64, i1 } %r, 0                                             %p = mul i64 %x, %y
    """

    def change_of(instruction: I.Instruction) -> Change | None:
        whole = instruction.operands[0] if isinstance(instruction, I.ExtractValue) else None
        if not (isinstance(whole, I.Call) and isinstance(instruction, I.ExtractValue) and instruction.indices == (0,)):
            return None
        name = callee_name(whole)
        if not (name.startswith("llvm.") and ".with.overflow." in name):
            return None
        opcode = name.removeprefix("llvm.")[1:4]
        x, y = whole.arguments
        return lambda at: at.binary(opcode, x, y)

    rewrite(function, change_of)


def arithmetic_checks(instruction: I.Instruction, runtime: Runtime) -> list[Check]:
    """What is to be checked before an instruction."""
    kind, name = instruction.type, callee_name(instruction)
    match instruction:
        case I.Alloca() if int_value(count := instruction.operands[0]) is None:
            what = f"makes {variable_name(instruction)} with a negative number of elements, or with 2^31 or more"
            most = const_int(count.type, _MOST_ELEMENTS)
            size = max(1, DataLayout(runtime.module).alloc_size(instruction.allocated_type))
            large = const_int(count.type, min(_MOST_BYTES // size, _MOST_ELEMENTS))
            huge = f"makes {variable_name(instruction)} of a gigabyte or more, which no stack holds"
            return [
                Check(lambda at: at.icmp("uge", count, most), _constant(runtime.failure(what, instruction))),
                Check(lambda at: at.icmp("uge", count, large), _constant(runtime.failure(huge, instruction))),
            ]
        case _ if not isinstance(kind, T.IntType):
            return []
        case I.BinaryOp(opcode=opcode) if opcode in I.INTEGER_DIVISIONS:
            return [
                Check(condition, _constant(runtime.failure(DIVISIONS[name], instruction)))
                for name, condition in division_failures(instruction)
            ]
        case I.BinaryOp(opcode=opcode) if opcode in _SHIFTS and int_value(instruction.operands[1]) is None:
            status = runtime.failure(
                f"shifts a number of {kind.bits} bits by as many or more, or by less than 0", instruction
            )
            places = instruction.operands[1]
            return [Check(lambda at: at.icmp("uge", places, const_int(kind, kind.bits)), _constant(status))]
        case I.Cast(opcode="fptosi" | "fptoui"):
            return _conversion(instruction, kind, runtime, signed=instruction.opcode == "fptosi", rounds=False)
        case I.Call() if name.startswith(_ROUNDS):
            return _conversion(instruction, kind, runtime, signed=True, rounds=True)
        case I.Call() if name.startswith(("llvm.abs.", *_ZEROS)) and int_value(instruction.arguments[1]):
            number, is_abs = instruction.arguments[0], name.startswith("llvm.abs.")
            what = (
                "takes the absolute value of the least integer" if is_abs else "counts leading or trailing zeros of 0"
            )
            none = const_int(kind, 1 << (kind.bits - 1) if is_abs else 0)
            status = runtime.failure(what, instruction)
            return [Check(lambda at: at.icmp("eq", number, none), _constant(status))]
        case I.Call() if name.startswith(_SATURATES) and comes_from_fortran(runtime.module, instruction):
            return _conversion(instruction, kind, runtime, signed=name.startswith("llvm.fptosi"), rounds=False)
        case _:
            return []


def _constant(status: Value) -> Callable[[Builder], Value]:
    return lambda at: status


def _conversion(
    instruction: I.Instruction, kind: T.IntType, runtime: Runtime, *, signed: bool, rounds: bool
) -> list[Check]:
    number = instruction.operands[0]
    if not isinstance(number.type, T.FloatType) or isinstance(number, ConstantFloat):
        return []
    wide = T.DOUBLE if number.type.kind in _WIDENED else number.type
    low, high = (-(2.0 ** (kind.bits - 1)), 2.0 ** (kind.bits - 1)) if signed else (0.0, 2.0**kind.bits)
    # What is cut off behind the point may lie below the least integer, where a double can say so.
    least, most = (low - 0.5, high - 0.5) if rounds else (low - 1.0, high)
    predicate = "oge" if rounds or least == low else "ogt"

    def condition(at: Builder) -> Value:
        def of(bound: float) -> Value:
            constant = const_float(T.DOUBLE, bound)
            return constant if wide == T.DOUBLE else at.cast("fpext", constant, wide)

        compared = number if number.type == wide else at.cast("fpext", number, wide)
        inside = at.binary("and", at.fcmp(predicate, compared, of(least)), at.fcmp("olt", compared, of(most)))
        return at.icmp("eq", inside, const_int(T.I1, 0))

    what = f"converts a number to {kind.bits} bits of {'signed' if signed else 'unsigned'} integer that is out of range"
    return [Check(condition, _constant(runtime.failure(what, instruction)))]
