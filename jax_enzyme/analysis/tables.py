"""What is said of an address: that the object there holds one of some tables of virtual functions.

    %this.1 = getelementptr i8, ptr %this, i64 0, !je.tables !{i64 0, !"_ZTV1D", i64 16, !"_ZTV1E", i64 16}

It is the address that it is made of. LLVM drops it, so that it is said of code that is optimised already, and for the
engine alone (`transform.dispatched`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property

from jax_enzyme.analysis.congruence import Congruence
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDString
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantInt, Value, int_value

_KIND = "je.tables"


@dataclass(frozen=True)
class Held:
    """The word `at` bytes behind an address leads to one of `tables`: constants by their names, and bytes in them."""

    at: int
    tables: frozenset[tuple[str, int]]

    @cached_property
    def places(self) -> Mapping[str, Set[Congruence]]:
        """The same, table by table."""
        found: dict[str, set[Congruence]] = {}
        for name, at in self.tables:
            found.setdefault(name, set()).add(Congruence(at, 0))
        return found


def holder(address: Value, held: Held) -> I.GetElementPtr:
    """The address, of which that is said."""
    node = MDNode(operands=[_number(held.at)])
    for name, at in sorted(held.tables):
        node.operands += [MDString(name), _number(at)]
    start = ConstantInt(T.I64, 0)
    return I.GetElementPtr(address.type, "getelementptr", [address, start], T.I8, metadata=[(_KIND, node)])


def held_at(module: Module, address: I.GetElementPtr) -> Held | None:
    """What is said of an address; None where it is nothing, or of a constant that the module does not have."""
    node = dict(address.metadata).get(_KIND) if address.metadata else None
    if not isinstance(node, MDNode):
        return None
    names = [name.text for name in node.operands[1::2] if isinstance(name, MDString)]
    at, *places = (int_value(n.value) or 0 for n in node.operands[::2] if isinstance(n, MDConstant))
    if not all(name in module.globals for name in names):
        return None
    return Held(at, frozenset(zip(names, places, strict=True)))


def _number(value: int) -> MDConstant:
    return MDConstant(ConstantInt(T.I64, value))
