"""Conditions that ask in several steps whether two numbers are equal ask it in one.

    before    %less = fcmp olt double %x, 0.0            after    %less = fcmp olt double %x, 0.0
              br i1 %less, label %a, label %next                  br i1 %less, label %a, label %next
            next:                                               next:
              %more = fcmp ogt double %x, 0.0                     %more = fcmp one double %x, 0.0
              br i1 %more, label %b, label %c                     br i1 %more, label %b, label %c

Where `next` runs, %x is not less than 0: there both say the same. An integer that is made of comparisons,
`(x > 0) - (x < 0)`, is one more way to ask. Where it is no condition, but a factor or an index, what it is of equal
numbers is chosen:

    before    %sign = sub i32 %more, %less               after    %equal = fcmp oeq double %x, 0.0
              %factor = sitofp i32 %sign to double                %chosen = select i1 %equal, i32 0, i32 %sign
                                                                  %factor = sitofp i32 %chosen to double
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.analysis.orders import EQUAL, GREATER, LESS, UNORDERED, Relations, Table, relation_table
from jax_enzyme.analysis.signs import without_ceiling
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.clone import clone_with_map
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, Module, declared_name
from jax_enzyme.ir.values import Constant, ConstantFloat, ConstantInt, Value, int_value, is_zero

_EXPONENTS = ("ilogb", "ilogbf", "llogb", "llogbf")
_LEAST: dict[T.Type, int] = {T.I32: -(1 << 31), T.I64: -(1 << 63)}
_EQUALITIES = ("oeq", "ueq", "one", "une")
ORDERED = ("je.ordered", MDNode())
"""Says of a comparison for equality that the source orders two numbers by it."""
STEPS = ("je.steps", MDNode())
"""Says of a comparison for equality that what it chooses is another integer on each side: that proves nothing."""
_DECIDES = (I.CondBranch, I.Select, I.BinaryOp, I.Cast)


@dataclass(frozen=True, eq=False)
class _Question:
    """Operand `index` of `user` asks by `table` whether its numbers are equal. `chosen` is what the operand is then,
    where it is no condition."""

    user: I.Instruction
    index: int
    table: Table
    predicate: str
    chosen: ConstantInt | None = None


def name_equalities(module: Module, root: Function) -> Module:
    """A copy of the module where such conditions of the functions that `root` enters are comparisons for equality; the
    module itself where there are none."""
    found = [question for f in reachable_functions(root) if f.blocks for question in _questions(f)]
    if not found:
        return module
    module, copies = clone_with_map(module)
    new: dict[I.Instruction, list[I.Instruction]] = {}
    for question in found:
        user, first = copies[question.user], copies[question.table.places[0]]
        assert isinstance(user, I.Instruction) and isinstance(first, I.Instruction)
        numbers = [copies.get(v, v) for v in (question.table.x, question.table.y)]
        dbg = [(kind, node) for kind, node in first.metadata if kind == "dbg"]
        if not any(isinstance(v, Constant) for v in numbers):
            dbg.append(ORDERED)
        comparison = I.Compare(T.IntType(1), "fcmp", numbers, question.predicate, metadata=dbg)
        added: list[I.Instruction] = [comparison]
        if question.chosen is not None:
            comparison.metadata.append(STEPS)
            operands = [comparison, question.chosen, user.operands[question.index]]
            added.append(I.Select(question.chosen.type, "select", operands))
        user.operands[question.index] = added[-1]
        new.setdefault(user, []).extend(added)
    for function in module.functions.values():
        for block in function.blocks:
            if any(i in new for i in block.instructions):
                block.instructions = [j for i in block.instructions for j in (*new.get(i, ()), i)]
    return module


def _questions(function: Function) -> Iterator[_Question]:
    asked = Counter(v for i in function.instructions() if _asks(i) for v in _numbers(i))
    relations: Relations | None = None
    for user in function.instructions():
        yield from _steps(user)
        if not isinstance(user, _DECIDES):
            continue
        for index, value in enumerate(user.operands):
            if value.type != T.IntType(1) or not isinstance(value, I.Instruction):
                continue
            stepped = _of_step(value)
            if stepped is not None:
                yield _Question(user, index, *stepped)
                continue
            if isinstance(value, I.Compare) and value.predicate in _EQUALITIES:
                continue
            table = relation_table(value)
            if table is None or asked[table.x] < 2:
                continue
            relations = relations or Relations(function)
            predicate = _equality(table, relations.at(user, index, table))
            if predicate is not None:
                yield _Question(user, index, table, predicate)


def _steps(user: I.Instruction) -> Iterator[_Question]:
    """The integers that an instruction uses, and that are others of equal numbers than of any two that are not."""
    if isinstance(user, I.Phi):
        return
    for index, value in enumerate(user.operands):
        if not isinstance(value, I.Instruction) or not isinstance(value.type, T.IntType) or value.type == T.IntType(1):
            continue
        table = relation_table(value)
        if table is None or relation_table(user) is not None or all(p.predicate in _EQUALITIES for p in table.places):
            continue
        rows = [*zip(table.values, *_indices(user, table), strict=True)]
        if rows[EQUAL] not in (rows[LESS], rows[GREATER]):
            yield _Question(user, index, table, "oeq", ConstantInt(value.type, table.values[EQUAL]))


def _indices(user: I.Instruction, table: Table) -> Iterator[Sequence[int]]:
    """By what else an address that an instruction makes depends on how the numbers of a table compare."""
    while isinstance(user, I.GetElementPtr):
        known = (relation_table(v) for v in user.operands[1:])
        yield from (t.values for t in known if t is not None and t.is_about(table.x, table.y))
        base = user.operands[0]
        if not isinstance(base, I.GetElementPtr):
            return
        user = base


def _of_step(question: I.Instruction) -> tuple[Table, str] | None:
    """The comparison with 0 that is asked of a step, which has no derivative: `ceil(fabs(x)) > 0`, `ilogb(x) ==
    FP_ILOGB0`, which is that of a NaN too."""
    if not isinstance(question, I.Compare):
        return None
    value, other = question.operands
    if question.opcode == "fcmp" and is_zero(other):
        number, predicate = without_ceiling(value), question.predicate
    elif declared_name(value) in _EXPONENTS and int_value(other) == _LEAST[value.type]:
        assert isinstance(value, I.CallBase)
        number, predicate = value.arguments[0], {"eq": "ueq", "ne": "one"}.get(question.predicate, "")
    else:
        return None
    if number is value or not predicate:
        return None
    return Table(number, ConstantFloat(number.type, "0.0"), (0, 0, 0, 0), (question,)), predicate


def _asks(instruction: I.Instruction) -> bool:
    """Whether an instruction compares numbers, or takes their bits, as `signbit` does."""
    return instruction.opcode in ("fcmp", "bitcast")


def _numbers(question: I.Instruction) -> Iterable[Value]:
    """What a question is about: also the number that is clamped to what it is compared with."""
    table = relation_table(question)
    return question.operands if table is None else dict.fromkeys((*question.operands, table.x))


def _equality(table: Table, possible: frozenset[int]) -> str | None:
    """The comparison for equality that a table is, where these relations are possible."""
    values = table.values
    others = possible & {LESS, GREATER}
    if EQUAL not in possible or not others or any(bool(values[r]) == bool(values[EQUAL]) for r in others):
        return None
    known = values[UNORDERED] if UNORDERED in possible else values[EQUAL]
    kind = "eq" if values[EQUAL] else "ne"
    return f"{'u' if known else 'o'}{kind}"
