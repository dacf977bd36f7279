"""Reads metadata: nodes, attachments, debug records."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.metadata import DebugRecord, MDConstant, MDNode, MDNull, MDRef, MDString, MDValue, MetadataOperand
from jax_enzyme.ir.reader_values import ValueReader

_FIELD_ENDS = frozenset((",", ")"))


class MetadataReader(ValueReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.metadata_constants: list[MDConstant] = []
        self.references: dict[str, MDRef] = {}

    def metadata(self) -> MDValue:
        token = self.tokens[self.pos]
        known = self.references.get(token)
        if known is not None:
            self.pos += 1
            return known
        if token[0] != "!":
            if token == "null":
                self.pos += 1
                return MDNull()
            return self._value_as_metadata()
        if token[1:].isdigit():
            self.pos += 1
            found = self.references[token] = MDRef(token[1:])
            return found
        if token[1:2] == '"':
            self.pos += 1
            return MDString(token[2:-1])
        return self.node()

    def _value_as_metadata(self) -> MDConstant:
        found = MDConstant(self.typed_value())
        self.metadata_constants.append(found)
        return found

    def node(self) -> MDNode:
        """A node itself: `!{...}` or `!DISomething(...)`, either of which may be `distinct`."""
        distinct = self.accept("distinct")
        token = self.take()
        if token == "!":
            self.expect("{")
            return MDNode("", self._operands("}"), distinct=distinct)
        if token[0] != "!":
            self.pos -= 1
            raise self.error("expected a metadata node")
        self.expect("(")
        return MDNode(token[1:], [], self._fields(), distinct)

    def _fields(self) -> list[tuple[str, MDValue | str]]:
        """Up to the closing parenthesis. Most of a module with debug information is read here, so the two common kinds
        of value, a plain word and a reference, go without a call."""
        fields: list[tuple[str, MDValue | str]] = []
        tokens = self.tokens
        references = self.references
        pos = self.pos
        while (word := tokens[pos]) != ")":
            key = ""
            if word[-1] == ":" and word[0] != '"':
                key = word[:-1]
                pos += 1
                word = tokens[pos]
            value: MDValue | str | None
            value = references.get(word) if word[0] == "!" else word
            if value is not None and tokens[pos + 1] in _FIELD_ENDS:
                pos += 1
            else:
                self.pos = pos
                value = self._field()
                pos = self.pos
            fields.append((key, value))
            if tokens[pos] == ",":
                pos += 1
        self.pos = pos + 1
        return fields

    def _operands(self, closing: str) -> list[MDValue]:
        found: list[MDValue] = []
        while not self.accept(closing):
            found.append(self.metadata())
            self.accept(",")
        return found

    def _field(self) -> MDValue | str:
        token = self.tokens[self.pos]
        if token[0] == "!":
            return self.metadata()
        if token == "{":
            self.pos += 1
            return MDNode("{", self._operands("}"))
        if self.tokens[self.pos + 1] == "|":
            words = [self.take()]
            while self.accept("|"):
                words.append(self.take())
            return " | ".join(words)
        return self._value_as_metadata()

    def attachments(self) -> list[tuple[str, MDValue]]:
        """`, !kind !node ...` after an instruction."""
        found: list[tuple[str, MDValue]] = []
        tokens = self.tokens
        while tokens[self.pos] == "," and tokens[self.pos + 1][0] == "!":
            kind = tokens[self.pos + 1][1:]
            self.pos += 2
            found.append((kind, self.metadata()))
        return found

    def bare_attachments(self) -> list[tuple[str, MDValue]]:
        """`!kind !node ...` of a function, without commas."""
        found: list[tuple[str, MDValue]] = []
        while self.tokens[self.pos][0] == "!":
            kind = self.take()[1:]
            found.append((kind, self.metadata()))
        return found

    def metadata_operand(self) -> V.Value:
        """What follows the type `metadata` in an argument list."""
        return MetadataOperand(T.METADATA, self.metadata())

    def debug_record(self) -> DebugRecord:
        kind = self.take().removeprefix("#dbg_")
        self.expect("(")
        return DebugRecord(kind, self._operands(")"))

    def resolve_metadata(self) -> None:
        for constant in self.metadata_constants:
            if isinstance(constant.value, V.Constant):
                constant.value = self.resolved(constant.value)
