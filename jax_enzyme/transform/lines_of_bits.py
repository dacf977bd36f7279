"""Numbers that integer arithmetic makes of the bits of others, or of rounded numbers, along a straight line.

    %u = bitcast double %x to i64
    %h = lshr i64 %u, 1
    %v = sub i64 6910469410427058089, %h
    %y = bitcast i64 %v to double

becomes

    %l = call double @je.line_of_bits.f64(double %x, i64 %v, double -0.5)       what `sitofp i64 %v` becomes too
    %y = call double @je.bits_of_line.f64(double %l, i64 %v, double 1.0)

and

    %k = fptosi double %z to i32
    %w = zext i32 %k to i64
    %v = shl i64 %w, 32
    %y = bitcast i64 %v to double    becomes    %y = call double @je.bits_of_line.f64(double %z, i64 %v, double 0x1p32)

The bits of a number, as an integer, grow in proportion to it between two powers of two: so inverse roots, logarithms,
exponentials and powers are approximated. The values are the integers', as before; the rules (`rules.intrinsics`) say
what the lines' slopes are. What rounding leaves of either number has to be `SURE` digits: with less, a step of the
integer is one of the program. Where digits choose something, or the rounded number is used otherwise, they may be the
first ones of a number whose others come in elsewhere: nothing is said then. Nor of bits that are multiplied, or cut, so
that the integer wraps several times within an octave: those are a key's, or a random number's.
"""

from __future__ import annotations

from fractions import Fraction

from jax_enzyme.analysis.bit_arithmetic import DIGITS, width
from jax_enzyme.analysis.flow import flow
from jax_enzyme.analysis.number_fields import SURE, NumberFields
from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float
from jax_enzyme.ir.module import Function, callee_name, uses
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.rules.table import standard
from jax_enzyme.transform.rewriting import locate, substitute

_STEEPEST = 4
"""Bits that are multiplied by more than this are scattered, as those of a key, whatever is cut of them later."""
_SATURATING = ("llvm.fptosi.sat.", "llvm.fptoui.sat.")


@dataclass(frozen=True)
class _Line:
    """An integer that is `slope` times the bits of a number, or (not `of_bits`) a rounded number, plus a constant,
    rounded to multiples of `step`. `links`: the integers between."""

    number: Value
    of_bits: bool
    slope: Fraction
    step: int
    links: tuple[Value, ...]

    def is_fine(self, digits: int) -> bool:
        """Whether rounding leaves enough of the number."""
        return not self.of_bits or self.step / abs(self.slope) <= 1 << digits - SURE

    def fits(self, bits: int) -> bool:
        """Whether an integer of so many bits wraps but a few times where the number's bits wrap once."""
        number = T.scalar(self.number.type)
        assert isinstance(number, T.FloatType)
        return not self.of_bits or abs(self.slope) * Fraction(2) ** (8 * number.size - bits) <= _STEEPEST


def name_lines(function: Function, declarations: Declarations) -> bool:
    """Rewrites such numbers of a function in place; whether there are any."""
    casts = [i for i in function.instructions() if i.opcode in ("bitcast", "sitofp", "uitofp")]
    found = {cast: line for cast in casts if (line := _line_to(cast)) is not None}
    if not found:
        return False
    users, fields = uses(function), NumberFields(function)
    firsts = {line.links[0] for line in found.values()}

    def is_alone(cast: I.Instruction, line: _Line) -> bool:
        if line.of_bits:
            return not fields.digits_choose
        *between, last = line.links
        if not all(len(users[v]) == 1 for v in between) or not all(u in found for u, _ in users[last]):
            return False
        rounded = (u for u, i in users[line.number] if not isinstance(u, I.Compare) and i not in flow(u, standard()))
        return all(u in firsts for u in rounded)

    named = {cast: line for cast, line in found.items() if is_alone(cast, line)}
    homes = {i: b for b in function.blocks for i in b.instructions}
    substitute(function, {c: _number(c, line, homes[c], declarations) for c, line in named.items()})
    return bool(named)


def _line_to(cast: I.Instruction) -> _Line | None:
    """The line that leads to a number."""
    value = cast.operands[0]
    digits = DIGITS.get(8 * cast.type.size) if isinstance(cast.type, T.FloatType) else None
    if digits is None or not isinstance(value, I.Instruction) or not width(value.type):
        return None
    makes_bits = cast.opcode == "bitcast"
    line = _line(value)
    if line is None or line.number.type != cast.type or not line.is_fine(digits):
        return None
    if makes_bits:
        is_moved = line.of_bits and (line.slope, line.step) == (1, 1)
        return None if is_moved or line.step > 1 << digits - SURE else line
    is_signed = width(value.type) < 64 or cast.opcode == "sitofp"
    return line if line.of_bits and is_signed else None


def _line(value: Value) -> _Line | None:
    way: list[I.Instruction] = []
    line: _Line | None = None
    while line is None:
        match value:
            case I.Cast(opcode="bitcast", operands=[x]) if isinstance(x.type, T.FloatType) and width(value.type):
                line = _Line(x, True, Fraction(1), 1, (value,))
            case I.Cast(opcode="fptosi" | "fptoui", operands=[z]) if width(value.type):
                line = _Line(z, False, Fraction(1), 1, (value,))
            case I.CallBase() if callee_name(value).startswith(_SATURATING):
                line = _Line(value.arguments[0], False, Fraction(1), 1, (value,))
            case I.Cast(opcode="zext" | "sext" | "trunc", operands=[x]):
                way.append(value)
                value = x
            case I.BinaryOp(operands=[x, y]) if int_value(y) is not None:
                way.append(value)
                value = x
            case I.BinaryOp(opcode="sub", operands=[x, y]) if int_value(x) is not None:
                way.append(value)
                value = y
            case _:
                return None
    links = (*line.links, *reversed(way))
    for step in reversed(way):
        line = _further(line, step)
        if line is None or not line.fits(width(step.type)):
            return None
    return replace(line, links=links)


def _further(line: _Line, by: I.Instruction) -> _Line | None:
    """What one operation makes of a line, whose links stay; None: nothing that is known."""
    if isinstance(by, I.Cast):
        return None if by.opcode == "trunc" and not line.of_bits else line
    first, second = map(int_value, by.operands)
    if first is not None:
        return replace(line, slope=-line.slope) if by.opcode == "sub" else None
    assert second is not None
    factor = 1 << second if by.opcode in ("shl", "lshr", "ashr") and 0 <= second < 64 else second
    match by.opcode:
        case "add" | "sub":
            return line
        case "mul" | "shl" if factor > 0:
            return replace(line, slope=line.slope * factor, step=line.step * factor)
        case "udiv" | "sdiv" | "lshr" | "ashr" if factor > 0:
            return replace(line, slope=line.slope / factor, step=-(-line.step // factor))
        case _:
            return None


def _number(cast: I.Instruction, line: _Line, home: BasicBlock, declarations: Declarations) -> Value:
    """The number that a cast makes, made before it."""
    made = Builder(BasicBlock())
    type_ = cast.type
    assert isinstance(type_, T.FloatType)
    name, value = f"f{8 * type_.size}", cast.operands[0]

    def call(rule: str, number: Value, integer: Value, slope: float) -> Value:
        given = [number, integer, const_float(type_, slope)]
        return declarations.invoke(made, f"je.{rule}.{name}", type_, given, PURE, PURE)

    number, slope = line.number, float(line.slope)
    if line.of_bits:
        opcode = "zext" if cast.opcode == "uitofp" else "sext"
        long = value if width(value.type) == 64 else made.cast(opcode, value, T.I64)
        number, slope = call("line_of_bits", number, long, slope), 1.0
    if cast.opcode == "bitcast":
        number = call("bits_of_line", number, value, slope)
    new = made.block.instructions
    locate(cast, new)
    at = home.instructions.index(cast)
    home.instructions[at:at] = new
    return number
