"""Reads what instructions are made of, apart from values: flags, blocks, alignment, orderings, index lists."""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.keywords import ATOMIC_ORDERINGS, FLAGS
from jax_enzyme.ir.lexer import normal, plain_name
from jax_enzyme.ir.reader_metadata import MetadataReader


class OperandReader(MetadataReader):
    def flags(self) -> tuple[str, ...]:
        if self.tokens[self.pos] not in FLAGS:
            return ()
        found: list[str] = []
        while self.tokens[self.pos] in FLAGS:
            found.append(self.take())
        return tuple(found)

    def block(self, token: str) -> V.BasicBlock:
        """The block that a `%` token names; made where the token is the first to name it."""
        found = self.blocks.get(token)
        if found is not None:
            return found
        key = normal(token)
        found = self.blocks.get(key)
        if found is None:
            found = self.addressed.get((self.function_name, key))
            if found is None:
                found = V.BasicBlock(name=plain_name(key))
            self.blocks[key] = found
        return found

    def label(self) -> V.BasicBlock:
        self.expect("label")
        return self.block(self.take())

    def align_suffix(self) -> int | None:
        """`, align n`, if it comes next."""
        if self.tokens[self.pos] == "," and self.tokens[self.pos + 1] == "align":
            self.pos += 2
            return self.integer()
        return None

    def ordering(self) -> str:
        """`syncscope("x") acquire`, as printed; empty if there is none."""
        scope = ""
        if self.accept("syncscope"):
            self.expect("(")
            scope = f'syncscope("{self.string()}") '
            self.expect(")")
        if self.tokens[self.pos] in ATOMIC_ORDERINGS:
            return scope + self.take()
        return scope.rstrip()

    def indices(self) -> tuple[int, ...]:
        found: list[int] = []
        while self.tokens[self.pos] == "," and self.tokens[self.pos + 1][0] != "!":
            self.pos += 1
            found.append(self.integer())
        return tuple(found)

    def member(self, type_: T.Type, indices: tuple[int, ...]) -> T.Type:
        """The type inside an aggregate that a path of indices leads to."""
        for index in indices:
            body = self.bodies.get(type_.name) if isinstance(type_, T.NamedStructType) else type_
            if isinstance(body, T.StructType):
                type_ = body.elements[index]
            elif isinstance(body, T.ArrayType):
                type_ = body.element
            else:
                raise self.error(f"no element {index} in {type_}")
        return type_

    def _label_list(self) -> list[V.BasicBlock]:
        self.expect("[")
        found: list[V.BasicBlock] = []
        while not self.accept("]"):
            found.append(self.label())
            self.accept(",")
        return found
