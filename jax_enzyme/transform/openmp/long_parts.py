"""Parts of an array that a loop reduces of which only the run knows how long it is: each range's lies behind the last
one's, in one block. What all ranges reduced has memory of its own: so nothing behind the loop sees what ranges had.

    void k(int n, int m, ...) {
      double h[m];
      #pragma omp parallel for reduction(hyp : h[:m])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module, Uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import replace_operands

_COMPUTED = (I.GetElementPtr, I.Cast, I.Phi, I.Select)


def is_long(variable: I.Alloca) -> bool:
    """Has a variable as many elements as the run says?"""
    return int_value(variable.operands[0]) is None


def is_apart(
    variable: I.Alloca, behind: Collection[BasicBlock], home: Mapping[I.Instruction, BasicBlock], used: Uses
) -> bool:
    """Do blocks behind a loop use the variable itself alone, and no address that was computed of it before?"""
    addresses = Reached[Value]([variable])
    for address in addresses:
        users = [u for u, _ in used.get(address, ())]
        if address is not variable and any(home[u] in behind for u in users):
            return False
        addresses.add(u for u in users if isinstance(u, _COMPUTED) and home[u] not in behind)
    return True


@dataclass(frozen=True)
class _Long:
    """Of such an array its bytes, what it holds where nothing was reduced, the block of all parts, and what all ranges
    reduced."""

    bytes: Value
    none: Value
    parts: Value
    whole: Value


@dataclass(frozen=True)
class LongParts:
    """Those of the variables of a loop that are such arrays."""

    declarations: Declarations
    arrays: dict[I.Alloca, _Long]

    @classmethod
    def of(cls, module: Module, at: Builder, own: Sequence[I.Alloca], ranges: int) -> LongParts:
        """Made in front of the loop, where the variables hold nothing yet, and so do all ranges together."""
        layout, made = DataLayout(module), cls(Declarations(module), {})
        for variable in filter(is_long, own):
            type_ = variable.allocated_type
            count = at.wide(variable.operands[0])
            size = at.binary("mul", count, const_int(T.I64, layout.alloc_size(type_)))
            none, whole = (at.alloca(type_, count, variable.align) for _ in range(2))
            parts = at.alloca(type_, at.binary("mul", count, const_int(T.I64, ranges)), variable.align)
            made.arrays[variable] = _Long(size, none, parts, whole)
            for place in (none, whole):
                made._copy(at, place, variable, size)
        return made

    def hand_on(self, behind: Iterable[BasicBlock]) -> None:
        """Blocks behind the loop use what all ranges reduced."""
        wholes: dict[Value, Value] = {variable: long.whole for variable, long in self.arrays.items()}
        replace_operands([i for block in behind for i in block.instructions], wholes)

    def bytes_of_all(self, at: Builder) -> Value:
        """How many bytes all of them have."""
        total: Value = const_int(T.I64, 0)
        for long in self.arrays.values():
            total = at.binary("add", total, long.bytes)
        return total

    def begin(self, at: Builder) -> None:
        """The variables hold nothing again."""
        for variable, long in self.arrays.items():
            self._copy(at, variable, long.none, long.bytes)

    def keep(self, at: Builder, number: Value) -> None:
        """The variables are the part of this range."""
        for variable, long in self.arrays.items():
            self._copy(at, self.part(at, variable, number), variable, long.bytes)

    def take(self, at: Builder, number: Value) -> None:
        """What all ranges reduced is the part of this one."""
        for variable, long in self.arrays.items():
            self._copy(at, long.whole, self.part(at, variable, number), long.bytes)

    def whole(self, variable: I.Alloca) -> Value:
        """What all ranges reduced of a variable."""
        return self.arrays[variable].whole

    def part(self, at: Builder, variable: I.Alloca, number: Value) -> Value:
        """Where the part of this range lies."""
        long = self.arrays[variable]
        return at.gep(T.I8, long.parts, [at.binary("mul", number, long.bytes)])

    def length(self, at: Builder, variable: I.Alloca) -> list[Value]:
        """What a list of variables has behind such an array; nothing behind others."""
        return [at.cast("inttoptr", at.wide(variable.operands[0]), T.PTR)] if variable in self.arrays else []

    def _copy(self, at: Builder, to: Value, from_: Value, bytes_: Value) -> None:
        self.declarations.memory(at, "memcpy", to, from_, bytes_)
