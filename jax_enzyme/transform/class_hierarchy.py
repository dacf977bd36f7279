"""C++ classes as the Itanium ABI describes them in a module: the bases of a class (`_ZTI...`) and its tables of virtual
functions (`_ZTV...`).

    @_ZTI1D = { ptr @vtable_of___vmi_class_type_info, ptr @name, i32 flags, i32 count, ptr @_ZTI1B, i64 2, ... }
    @_ZTV1D = { [4 x ptr] [offset to top, ptr @_ZTI1D, ptr @f, ptr @g], [3 x ptr] [...] }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jax_enzyme.analysis.folding import wrapped
from jax_enzyme.classes import dataclass
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.values import Constant, ConstantAggregate, ConstantExpr, ConstantNull, int_value

_WORD = 8
_VIRTUAL, _PUBLIC = 1, 2


@dataclass(frozen=True)
class Base:
    """A direct base of a class. `offset` is in bytes from the start of the object; for a virtual base, from the address
    point of the object's table to the word that has that."""

    type: str
    offset: int
    is_virtual: bool = False
    is_public: bool = True


@dataclass(frozen=True)
class Table:
    """What an object's table pointer may be while it is an object of the class `type`: the address `offset` bytes into
    the variable, for the part of the object that starts at `part`. `words` are those before the address, nearest first:
    the class, the offset to the top, offsets of virtual bases."""

    variable: GlobalVariable
    type: str
    offset: int
    part: int
    words: tuple[Constant, ...]

    def virtual_offset(self, at: int) -> int | None:
        """The number in the word that is `at` (negative) bytes from the address."""
        index = -at // _WORD - 1
        return number(self.words[index]) if 0 <= index < len(self.words) else None


def defined_bases(module: Module, type_: str) -> list[Base] | None:
    """The direct bases of a class that the module describes; None of one that it does not."""
    variable = module.globals.get(type_)
    held = variable.initializer if variable is not None else None
    if not isinstance(held, ConstantAggregate):
        return None
    fields = held.elements
    if len(fields) == 3 and isinstance(fields[2], GlobalVariable):
        return [Base(fields[2].name, 0)]
    found: list[Base] = []
    for base, place in zip(fields[4::2], fields[5::2], strict=False):
        word = int_value(place)
        if isinstance(base, GlobalVariable) and word is not None:
            packed = wrapped(word, 64)
            found.append(Base(base.name, packed >> 8, bool(packed & _VIRTUAL), bool(packed & _PUBLIC)))
    return found


def tables(module: Module) -> Iterator[Table]:
    """All tables of virtual functions of a module's classes."""
    for name, variable in module.globals.items():
        held = variable.initializer
        if not name.startswith("_ZTV") or not isinstance(held, ConstantAggregate):
            continue
        start = 0
        for group in held.elements:
            if isinstance(group, ConstantAggregate):
                yield from _table(variable, f"_ZTI{name[4:]}", group.elements, start)
                start += _WORD * len(group.elements)


def _table(variable: GlobalVariable, type_: str, words: list[Constant], start: int) -> Iterator[Table]:
    for index, word in enumerate(words):
        if isinstance(word, GlobalVariable) and word.name == type_ and index:
            to_top = number(words[index - 1])
            if to_top is not None:
                before = tuple(reversed(words[: index + 1]))
                yield Table(variable, type_, start + _WORD * (index + 1), -to_top, before)
            return


def number(word: Constant) -> int | None:
    """The signed number that a word of a table is."""
    if isinstance(word, ConstantNull):
        return 0
    value = int_value(word.operands[0]) if isinstance(word, ConstantExpr) and word.opcode == "inttoptr" else None
    return None if value is None else wrapped(value, 64)


def parts(module: Module, class_tables: Mapping[int, Table], type_: str, wanted: str) -> dict[int, bool] | None:
    """Where in an object of a class its parts of the class `wanted` start, and whether a cast may go there.
    `class_tables` are the tables of the class by the part that they are for. None where a class is not described."""
    found: dict[int, bool] = {}
    pending = [(type_, 0, True)]
    while pending:
        name, at, is_public = pending.pop()
        if name == wanted:
            found[at] = found.get(at, False) or is_public
            continue
        bases = defined_bases(module, name)
        if bases is None:
            return None
        for base in bases:
            offset: int | None = base.offset
            if base.is_virtual:
                offset = class_tables[at].virtual_offset(base.offset) if at in class_tables else None
            if offset is None:
                return None
            pending.append((base.type, at + offset, is_public and base.is_public))
    return found
