"""Conversions of `bfloat` numbers that are written as integer arithmetic, as conversions.

    before    %w = zext i16 %h to i32                         after    %b = bitcast i16 %h to bfloat
              %s = shl i32 %w, 16                                      %x = fpext bfloat %b to float
              %x = bitcast i32 %s to float

    before    %b = bitcast float %x to i32                    after    %n = fptrunc float %x to bfloat
              %s = lshr i32 %b, 16                                     %h = bitcast bfloat %n to i16
              %o = and i32 %s, 1
              %r = add i32 %o, 32767
              %t = add i32 %r, %b
              %u = lshr i32 %t, 16
              %h = trunc i32 %u to i16

The first takes the number for the upper half of a `float`, which is what the format is; the second rounds to nearest,
and to even. (An infinity stays one; of what is not a number the bits may differ, but not that it is none.)
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Value, int_value, lane_of
from jax_enzyme.transform.rewriting import Change, remove_dead, rewrite

_UPPER = 16
_UPPER_MASKS = (0xFFFF0000, -0x10000)
_HALF_LESS_ONE = 0x7FFF


def name_conversions(functions: list[Function]) -> bool:
    """Rewrites those of these functions in place; whether there were any."""
    return any([_rewrite(function) for function in functions])


def _rewrite(function: Function) -> bool:
    found = {i: casts for i in function.instructions() if (casts := _conversion(i)) is not None}

    def change_of(instruction: I.Instruction) -> Change | None:
        if instruction not in found:
            return None
        number, to_short, back = found[instruction]
        short = _like(number.type, T.BFLOAT)
        return lambda at: at.cast(back, at.cast(to_short, number, short), instruction.type)

    if found:
        rewrite(function, change_of)
        remove_dead(function)
    return bool(found)


def _conversion(value: I.Instruction) -> tuple[Value, str, str] | None:
    """What is converted, and by which two casts with a `bfloat` in between."""
    half = _of_word(value, "bitcast", T.FLOAT, ("shl", _UPPER))
    if isinstance(half, I.Cast) and half.opcode in ("zext", "sext") and T.scalar(half.operands[0].type) == T.I16:
        return half.operands[0], "bitcast", "fpext"
    if (number := _carried_up(_of_word(value, "trunc", T.I16, ("lshr", _UPPER)))) is not None:
        return number, "fptrunc", "bitcast"
    kept = _carried_up(_of_word(value, "bitcast", T.FLOAT, *(("and", mask) for mask in _UPPER_MASKS)))
    return None if kept is None else (kept, "fptrunc", "fpext")


def _like(type_: T.Type, scalar: T.Type) -> T.Type:
    return T.VectorType(type_.count, scalar) if isinstance(type_, T.VectorType) else scalar


def _of_word(value: Value, cast: str, type_: T.Type, *made: tuple[str, int]) -> Value | None:
    """What a word was before one of these operations, of which a cast makes another type; None for all else."""
    if not (isinstance(value, I.Cast) and value.opcode == cast and T.scalar(value.type) == type_):
        return None
    word = value.operands[0]
    if T.scalar(word.type) != T.I32 or not isinstance(word, I.BinaryOp):
        return None
    return word.operands[0] if (word.opcode, _constant(word.operands[1])) in made else None


def _carried_up(value: Value | None) -> Value | None:
    """The `float` to whose bits so much is added that the upper half is the nearest one."""
    terms = [] if value is None else _terms(value)
    numbers = [t for t in terms if isinstance(t, I.Cast) and t.opcode == "bitcast"]
    if len(terms) != 3 or len(numbers) != 1 or T.scalar(numbers[0].operands[0].type) != T.FLOAT:
        return None
    others = [t for t in terms if t is not numbers[0]]
    odd = [t for t in others if _is_odd(t, numbers[0])]
    fixed = [t for t in others if _constant(t) == _HALF_LESS_ONE]
    return numbers[0].operands[0] if odd and fixed else None


def _is_odd(value: Value, number: Value) -> bool:
    """The lowest bit of the upper half."""
    if not _is(value, "and", 1):
        return False
    assert isinstance(value, I.Instruction)
    half = value.operands[0]
    while isinstance(half, I.Cast) and half.opcode in ("zext", "trunc"):
        half = half.operands[0]
    return _is(half, "lshr", _UPPER) and isinstance(half, I.Instruction) and half.operands[0] is number


def _terms(value: Value) -> list[Value]:
    if isinstance(value, I.BinaryOp) and value.opcode == "add":
        return [t for v in value.operands for t in _terms(v)]
    return [value]


def _is(value: Value, opcode: str, by: int) -> bool:
    return isinstance(value, I.BinaryOp) and value.opcode == opcode and _constant(value.operands[1]) == by


def _constant(value: Value) -> int | None:
    return int_value(lane_of(value))
