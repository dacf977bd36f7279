"""Metadata: numbered nodes, strings, values as metadata, and debug records.

Numbered nodes are referred to by number (`MDRef`), as in the text, and `Module.metadata` maps numbers to nodes; cycles
need no care and a copy of a module can share nothing but the numbers.
"""

from __future__ import annotations

from typing import TypeAlias

from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir.values import Constant, Value


@dataclass(frozen=True, slots=True)
class MDRef:
    """`!12`; `number` is the key in `Module.metadata`."""

    number: str


@dataclass(frozen=True, slots=True)
class MDString:
    """`!"text"`; `text` is as printed, escapes kept."""

    text: str


@dataclass(frozen=True, slots=True)
class MDNull:
    """`null` as an operand of a node."""


@dataclass(eq=False, slots=True)
class MDConstant:
    """A value as metadata: `i32 7`, `ptr @f`, or `double %x` in a debug record or a call's metadata operand."""

    value: Value


@dataclass(eq=False, slots=True)
class MDNode:
    """A node. `kind` is empty for a tuple `!{...}`, else the name of a specialised node (`DILocation`, `DIExpression`).

    The operands of a tuple are in `operands`. A specialised node has `fields` instead: pairs of name and value, the
    name empty for positional fields (`DIExpression`, `DIArgList`); plain values are text as printed (`5`, `"name"`,
    `DIFlagPrototyped | DIFlagVector`). The kind `{` is a bare list, as the operands of a `GenericDINode` are."""

    kind: str = ""
    operands: list[MDValue] = field(default_factory=list)
    fields: list[tuple[str, MDValue | str]] = field(default_factory=list)
    distinct: bool = False

    def get(self, name: str) -> MDValue | str | None:
        """The field called `name`, or None."""
        for key, value in self.fields:
            if key == name:
                return value
        return None

    def number(self, name: str) -> int | None:
        """An integer field, or None."""
        value = self.get(name)
        return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else None

    def string(self, name: str) -> str | None:
        """A string field without its quotes, or None."""
        value = self.get(name)
        return value[1:-1] if isinstance(value, str) and value.startswith('"') else None


MDValue: TypeAlias = MDRef | MDString | MDNull | MDConstant | MDNode


@dataclass(eq=False, slots=True)
class MetadataOperand(Constant):
    """`metadata ...` as an operand of a call: it depends on nothing that is computed."""

    metadata: MDValue


@dataclass(eq=False, slots=True)
class DebugRecord:
    """`#dbg_value(...)` and its kin; `kind` is the word after `#dbg_`, `operands` what stands in the parentheses."""

    kind: str
    operands: list[MDValue]
