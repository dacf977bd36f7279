"""Numbers that integer arithmetic makes of the bits of other numbers: what they are is said beside the integers.

    %u = bitcast double %x to i64
    %v = add i64 %u, 13510798882111488
    %y = bitcast i64 %v to double                     becomes    call double @je.rescaled_bits.f64(double %x, i64 %v)
    %m = and i64 %u, -4294967296
    %h = bitcast i64 %m to double                     becomes    call double @je.rounded_bits.f64(double %x, i64 %m)

The value is the integer, as before. Its rule (`rules.intrinsics`) says how it depends on the number whose digits it has
(`analysis.number_fields`). Where numbers' bits merge, the numbers merge as well.
"""

from __future__ import annotations

from jax_enzyme.analysis.bit_arithmetic import DIGITS, width
from jax_enzyme.analysis.number_fields import NumberFields
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import BasicBlock, Constant, Value
from jax_enzyme.rules.declare import PURE, Declarations
from jax_enzyme.transform.bit_operations import as_number
from jax_enzyme.transform.rewriting import locate, phis, substitute


def name_numbers(function: Function, declarations: Declarations) -> bool:
    """Rewrites such numbers of a function in place; whether there are any."""
    casts = [i for i in function.instructions() if _makes_number(i)]
    if not casts or not any(i.opcode == "bitcast" and width(i.type) in DIGITS for i in function.instructions()):
        return False
    return _Naming(function, declarations).run(casts)


def _makes_number(value: I.Instruction) -> bool:
    if value.opcode != "bitcast" or not isinstance(value.operands[0], I.Instruction):
        return False
    number = T.scalar(value.type)
    bits = width(value.operands[0].type)
    return isinstance(number, T.FloatType) and 8 * number.size == bits and bits in DIGITS


class _Naming:
    def __init__(self, function: Function, declarations: Declarations) -> None:
        self._function = function
        self._declarations = declarations
        self._fields = NumberFields(function)
        self._homes = {i: b for b in function.blocks for i in b.instructions}
        self._sources: dict[Value, Value] = {}

    def run(self, casts: list[I.Instruction]) -> bool:
        named = [c for c in casts if (found := self._fields.number(c.operands[0])) and not _is_cast(found.source, c)]
        if named:
            substitute(self._function, {c: self._number(c.operands[0], c.type, c) for c in named})
        return bool(named)

    def _number(self, value: Value, type_: T.Type, before: I.Instruction) -> Value:
        """The number that an integer is the bits of, made before an instruction unless it is there."""
        made = Builder(BasicBlock())
        constant = as_number(value, type_) if isinstance(value, Constant) else None
        found = self._fields.number(value)
        if constant is not None:
            return constant
        if found is None:
            result = made.cast("bitcast", value, type_)
        elif found.source is value or isinstance(value, I.Phi):  # which may be how a source leaves its loop
            return self._source(value, type_)
        else:
            name = "rounded_bits" if found.same else "rescaled_bits"
            result = self._call(made, name, self._source(found.source, type_), value)
        self._insert(made.block.instructions, before, before)
        return result

    def _source(self, value: Value, type_: T.Type) -> Value:
        if value in self._sources:
            return self._sources[value]
        assert isinstance(value, I.Instruction)
        made = Builder(BasicBlock())
        home = self._home(value)
        match value:
            case I.Cast(opcode="bitcast", operands=[number]) if T.is_float(number.type):
                self._sources[value] = number
                return number
            case I.Phi():
                phi = made.insert(I.Phi(type_, "phi", [], targets=list(value.targets)))
                self._sources[value] = phi
                self._insert([phi], home, home)
                phi.operands = [self._number(v, type_, b.terminator) for v, b in value.incoming]
                return phi
            case I.Select(operands=[condition, then, other]):
                result = made.select(condition, self._number(then, type_, home), self._number(other, type_, home))
            case I.Freeze(operands=[bits]):
                result = made.insert(I.Freeze(type_, "freeze", [self._number(bits, type_, home)]))
            case _:
                before = self._fields.made_of(value)
                assert before is not None, "of an integer that is no number's bits"
                result = self._call(made, "rescaled_bits", self._source(before.source, type_), value)
        self._sources[value] = result
        block = self._homes[home]
        at = block.instructions.index(home) + 1
        self._insert(made.block.instructions, home, block.instructions[at])
        return result

    def _home(self, source: I.Instruction) -> I.Instruction:
        """The instruction in whose place a source stands."""
        parts = self._fields.parts.get(source)
        return source if parts is None else min(parts, key=self._homes[next(iter(parts))].instructions.index)

    def _call(self, made: Builder, name: str, number: Value, bits: Value) -> Value:
        if isinstance(number.type, T.VectorType):
            lanes = range(number.type.count)
            parts = [
                self._call(made, name, made.extract_element(number, i), made.extract_element(bits, i)) for i in lanes
            ]
            return made.pack(number.type, parts)
        name = f"je.{name}.f{width(bits.type)}"
        return self._declarations.invoke(made, name, number.type, [number, bits], PURE, PURE)

    def _insert(self, new: list[I.Instruction], like: I.Instruction, before: I.Instruction) -> None:
        block = self._homes[before]
        locate(like, new)
        at = block.instructions.index(before)
        if not isinstance(before, I.Phi) and not any(isinstance(i, I.Phi) for i in new):
            at = max(at, len(phis(block)))
        block.instructions[at:at] = new
        self._homes.update(dict.fromkeys(new, block))


def _is_cast(source: Value, cast: I.Instruction) -> bool:
    """Whether a cast takes back, as it is, what another one took for an integer."""
    return source is cast.operands[0] and isinstance(source, I.Cast)
