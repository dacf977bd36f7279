"""Nests that write by way of a table of pointers, where that shows in front to lie apart from all else that they do.

    before    for (k = 0; k < n; k++)                      after    if (<the rows of c lie apart from those of a and b,
                c[i][j] += a[i][k] * b[k][j];                         and all tables from all rows>)
                                                                      (the same, in scopes of `noalias`)
                                                                    else
                                                                      for (k = 0; k < n; k++) ...

No compiler knows that `c[i][j]` is not where `b[k]` is kept: it reads rows and writes sums in each iteration.
What is read or written from one pointer, or from one table of pointers, is a group: all from its first byte to its
last. It is found anew each time that control comes to the nest, where the scopes are declared: so a loop around it that
LLVM unrolls, and in which rows change places, has scopes of their own for each time.
"""

from __future__ import annotations

from itertools import combinations

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import add_node, resolve
from jax_enzyme.ir.metadata import MDNode, MDRef, MDString, MetadataOperand
from jax_enzyme.ir.module import Module, declare
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.transform.scopes import SCOPE_DECLARATION

_MOST_GROUPS = 16


def lie_apart(at: Builder, one: tuple[Value, Value], other: tuple[Value, Value]) -> Value:
    """Whether bytes from one address up to another are none of others."""
    return at.binary("or", at.icmp("ule", one[1], other[0]), at.icmp("ule", other[1], one[0]))


@dataclass(eq=False)
class Group:
    """Bytes from `low` up to `high`, and the accesses that lie there."""

    low: Value
    high: Value
    writes: bool = False
    accesses: list[I.Instruction] = field(default_factory=list[I.Instruction])


class Groups:
    """The groups of a nest. `at` is in front of it."""

    def __init__(self, at: Builder) -> None:
        self._at = at
        self._all: dict[object, Group] = {}

    def add(self, key: object, access: I.Instruction, low: Value, high: Value, *, writes: bool) -> None:
        """An access from `low` up to `high`; `key` tells from which pointer or table it is computed."""
        at, group = self._at, self._all.get(key)
        if group is None:
            group = self._all[key] = Group(low, high)
        else:
            group.low = at.least(low, group.low)
            group.high = at.most(high, group.high)
        group.writes |= writes
        group.accesses.append(access)

    def apart(self) -> Value:
        """Whether each group that is written lies apart from all others."""
        at, result = self._at, const_int(T.I1, int(len(self._all) <= _MOST_GROUPS))
        for one, other in self._pairs() if len(self._all) <= _MOST_GROUPS else ():
            result = at.binary("and", result, lie_apart(at, (one.low, one.high), (other.low, other.high)))
        return result

    def say(self, module: Module, start: BasicBlock) -> None:
        """Says so of the accesses, in place, which `start` leads to."""
        domain = add_node(module, MDNode(operands=[MDString("je nest")], distinct=True))
        named = [MDString("je group"), domain]
        scopes = {g: add_node(module, MDNode(operands=[*named], distinct=True)) for g in self._all.values()}
        others: dict[Group, list[MDRef]] = {group: [] for group in scopes}
        for one, other in self._pairs():
            others[one].append(scopes[other])
            others[other].append(scopes[one])
        declared = declare(module, SCOPE_DECLARATION, T.FunctionType(T.VOID, (T.METADATA,)), ())
        at = Builder.before(start, start.terminator)
        for group, scope in scopes.items():
            at.call(declared, [MetadataOperand(T.METADATA, add_node(module, MDNode(operands=[scope])))])
            for access in group.accesses:
                _add(module, access, "alias.scope", [scope])
                _add(module, access, "noalias", others[group])

    def _pairs(self) -> list[tuple[Group, Group]]:
        return [(a, b) for a, b in combinations(self._all.values(), 2) if a.writes or b.writes]


def _add(module: Module, instruction: I.Instruction, kind: str, scopes: list[MDRef]) -> None:
    given = next((resolve(module, node) for name, node in instruction.metadata if name == kind), None)
    node = add_node(module, MDNode(operands=[*(given.operands if given else ()), *scopes]))
    instruction.metadata = [*((k, n) for k, n in instruction.metadata if k != kind), (kind, node)]
