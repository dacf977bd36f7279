"""What conditions say of two numbers: which is the larger, or that they are equal.

    fcmp olt double %x, 0.0                              less
    icmp eq i32 %t, 0   with %t = (x > 0) - (x < 0)      equal or unordered

Two numbers are in one of four relations (IEEE 754, 5.11). An integer that depends on nothing but the relation of two
numbers is a table with one entry for each (`relation_table`); what has been asked before leaves some of the four
(`Relations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.folding import folded
from jax_enzyme.analysis.guards import known_with, taken
from jax_enzyme.analysis.symbols import float_value
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, declared_name, uses
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantFloat, Value, int_value
from jax_enzyme.rules.names import canonical

LESS, EQUAL, GREATER, UNORDERED = range(4)
ALL = frozenset((LESS, EQUAL, GREATER, UNORDERED))
_DEPTH = 12
"""How many instructions deep an integer is looked into. What lies deeper is no table."""

_HOLDS = {"eq": (EQUAL,), "gt": (GREATER,), "ge": (GREATER, EQUAL), "lt": (LESS,), "le": (LESS, EQUAL),
          "ne": (LESS, GREATER), "rd": (LESS, EQUAL, GREATER)}  # fmt: skip
_BOUNDED = {"fmax": LESS, "maximum": LESS, "fmin": GREATER, "minimum": GREATER}
"""On which side of its bound a number becomes that."""
_SWAPPED = (GREATER, EQUAL, LESS, UNORDERED)


@dataclass(frozen=True, eq=False)
class Table:
    """An integer that depends on the relation of `x` to `y` alone: its values, in the order of the relations.
    `places` are the comparisons that it was made of."""

    x: Value
    y: Value
    values: tuple[int, int, int, int]
    places: tuple[I.Compare, ...]

    def is_about(self, x: Value, y: Value) -> bool:
        return same(self.x, x) and same(self.y, y)

    def relations(self, truth: bool) -> frozenset[int]:
        return frozenset(r for r in ALL if bool(self.values[r]) == truth)


def same(x: Value, y: Value) -> bool:
    """Whether two values are one, or constants that compare as one."""
    if x is y:
        return True
    if not isinstance(x, ConstantFloat) or not isinstance(y, ConstantFloat) or x.type != y.type:
        return False
    return x.text == y.text or (float_value(x) == 0 and float_value(y) == 0)


def relation_table(value: Value, depth: int = _DEPTH) -> Table | None:
    """The table that an integer is; None where it depends on something else."""
    match value:
        case I.Compare(opcode="fcmp"):
            return _of_comparison(value)
        case I.Freeze():
            return relation_table(value.operands[0], depth - 1)
        case I.Cast(opcode="zext" | "sext" | "trunc") | I.BinaryOp() | I.Select() | I.Compare(opcode="icmp") if depth:
            if not all(isinstance(v.type, T.IntType) for v in (value, *value.operands)):
                return None
            return _computed(value, depth)
        case _:
            return None


def _of_comparison(comparison: I.Compare) -> Table | None:
    x, y = comparison.operands
    if not isinstance(x.type, T.FloatType) or comparison.predicate in ("true", "false"):
        return None
    holds = _relations(comparison.predicate)
    if isinstance(x, Constant) and not isinstance(y, Constant):
        x, y, holds = y, x, frozenset(_SWAPPED[r] for r in holds)
    number, becomes = _unclamped(x, y)
    less, equal, greater, unordered = (int(r in holds) for r in becomes)
    return Table(number, y, (less, equal, greater, unordered), (comparison,))


def _unclamped(x: Value, bound: Value) -> tuple[Value, Sequence[int]]:
    """The number that is never let above, or below, the bound that it is compared with, and how what it is then
    compares where the number itself is less, equal, more or unordered: `fmax(x, 0) == 0` asks for x <= 0."""
    name = canonical(declared_name(x), _BOUNDED) if isinstance(x, I.CallBase) else None
    others = [v for v in x.operands[:2] if not same(v, bound)] if name is not None and isinstance(x, I.CallBase) else []
    if name is None or len(others) != 1:
        return x, range(4)
    becomes = {_BOUNDED[name]: EQUAL, UNORDERED: EQUAL if name.startswith("f") else UNORDERED}
    return others[0], [becomes.get(r, r) for r in range(4)]


def _relations(predicate: str) -> frozenset[int]:
    if predicate == "uno":
        return frozenset((UNORDERED,))
    if predicate == "ord":
        return ALL - {UNORDERED}
    return frozenset(_HOLDS[predicate[1:]]) | ({UNORDERED} if predicate[0] == "u" else frozenset())


def _computed(value: I.Instruction, depth: int) -> Table | None:
    tables = [None if int_value(v) is not None else relation_table(v, depth - 1) for v in value.operands]
    known = [t for t in tables if t is not None]
    if not known or any(t is None and int_value(v) is None for t, v in zip(tables, value.operands, strict=True)):
        return None
    first = known[0]
    columns: list[Sequence[int]] = []
    for table, operand in zip(tables, value.operands, strict=True):
        if table is None:
            columns.append([int_value(operand) or 0] * 4)
        elif table.is_about(first.x, first.y):
            columns.append(table.values)
        elif table.is_about(first.y, first.x):
            columns.append([table.values[r] for r in _SWAPPED])
        else:
            return None
    found = [folded(value, row) for row in zip(*columns, strict=True)]
    if any(n is None for n in found):
        return None
    less, equal, greater, unordered = (n or 0 for n in found)
    places = tuple(p for t in known for p in t.places)
    return Table(first.x, first.y, (less, equal, greater, unordered), places)


def sign_asked(condition: Value) -> tuple[Value, bool] | None:
    """The number whose sign a condition asks for, and what the condition is where that is set; None where it asks
    something else. Either may be set of a zero."""
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return None
    bits, bound = condition.operands
    if not isinstance(bits, I.Cast) or bits.opcode != "bitcast" or not isinstance(bits.operands[0].type, T.FloatType):
        return None
    asked = (condition.predicate, int_value(bound))
    if asked not in (("slt", 0), ("sgt", -1)):
        return None
    return bits.operands[0], asked[0] == "slt"


class Relations:
    """Which relations of two numbers are possible where a function uses a condition."""

    def __init__(self, function: Function) -> None:
        self._cfg = Cfg(function)
        self._dominators = Dominators(self._cfg)
        self._uses = uses(function)
        self._block_of = {i: b for b in function.blocks for i in b.instructions}

    def at(self, user: I.Instruction, index: int, table: Table) -> frozenset[int]:
        """The relations of a table's numbers that are possible where its value is used and matters."""
        found = ALL
        for condition, truth in self._conditions(user, index):
            for part, holds in known_with(condition, truth):
                sign = sign_asked(part)
                if sign is not None and sign[0] is table.x and float_value(table.y) == 0:
                    found &= {LESS if sign[1] == holds else GREATER, EQUAL, UNORDERED}
                    continue
                known = relation_table(part)
                if known is None:
                    continue
                if known.is_about(table.x, table.y):
                    found &= known.relations(holds)
                elif known.is_about(table.y, table.x):
                    found &= frozenset(_SWAPPED[r] for r in known.relations(holds))
        return found

    def leave_no_greater(self, user: I.Instruction, index: int, number: Value) -> bool:
        """Whether a number may be 0 there, and less, but not greater."""
        compared = Table(number, ConstantFloat(number.type, "0.0"), (1, 0, 0, 0), ())
        return self.at(user, index, compared) - {UNORDERED} == frozenset((LESS, EQUAL))

    def _conditions(self, user: I.Instruction, index: int) -> Iterator[tuple[Value, bool]]:
        """What is known to be true or false wherever it matters what operand `index` of an instruction is."""
        while True:
            if isinstance(user, I.Select) and index:
                yield user.operands[0], index == 1
            if isinstance(user, I.Phi):
                yield from self._on_edge(user.targets[index], self._block_of[user])
            yield from self._above(self._block_of[user])
            users = self._uses.get(user, ())
            if len({user for user, _ in users}) != 1 or (len(users) > 1 and not isinstance(users[0][0], I.BinaryOp)):
                return
            user, index = users[0]
            if not isinstance(user, I.Select | I.Phi | I.BinaryOp | I.UnaryOp | I.Cast | I.Freeze):
                return

    def _on_edge(self, source: BasicBlock, target: BasicBlock) -> Iterator[tuple[Value, bool]]:
        asked = taken(source, target)
        if asked is not None:
            yield asked
        yield from self._above(source)

    def _above(self, block: BasicBlock) -> Iterator[tuple[Value, bool]]:
        place: BasicBlock | None = block
        while place is not None:
            sources = self._cfg.reachable_preds(place)
            asked = taken(sources[0], place) if len(sources) == 1 else None
            if asked is not None:
                yield asked
            place = self._dominators.idom.get(place)
