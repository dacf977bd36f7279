"""Reads types and attributes."""

from __future__ import annotations

from functools import lru_cache

from jax_enzyme.ir import types as T
from jax_enzyme.ir.lexer import Cursor, ReadError, is_table, spell

_FLOATS = ("half", "bfloat", "float", "double", "x86_fp80", "fp128", "ppc_fp128")


class TypeReader(Cursor):
    """Types are cached by the token that spells them, where one token does."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.types: dict[str, T.Type] = {
            "void": T.VOID,
            "label": T.LABEL,
            "metadata": T.METADATA,
            "token": T.TOKEN,
            "x86_amx": T.AmxType(),
            "ptr": T.PTR,
            **{kind: T.FloatType(kind) for kind in _FLOATS},
        }
        self.bodies: dict[str, T.Type | None] = {}

    def at_type(self) -> bool:
        """Does a type come next?"""
        token = self.tokens[self.pos]
        if token in self.types or token[0] in "%[{<":
            return True
        return token == "target" or (token[0] == "i" and token[1:].isdigit())

    def type(self) -> T.Type:
        found = self.types.get(self.tokens[self.pos])
        if found is None:
            found = self._other_type()
        else:
            self.pos += 1
        following = self.tokens[self.pos]
        if following == "addrspace" and isinstance(found, T.PointerType):
            found = T.PointerType(self.address_space())
            following = self.tokens[self.pos]
        while following == "(":
            found = self._function_type(found)
            following = self.tokens[self.pos]
        return found

    def _other_type(self) -> T.Type:
        token = self.take()
        first = token[0]
        if first == "i" and token[1:].isdigit():
            found: T.Type = T.IntType(int(token[1:]))
        elif first == "%" and len(token) > 1:
            found = T.NamedStructType(token[1:])
        elif is_table(token):
            try:
                found = _of_table(token)
            except ReadError as error:
                self.pos -= 1
                raise self.error("expected a type") from error
        elif first == "[":
            count = self.integer()
            self.expect("x")
            found = T.ArrayType(count, self.type())
            self.expect("]")
            return found
        elif first == "{":
            return self._struct(packed=False)
        elif first == "<":
            return self._angled()
        elif token == "target":
            return self._target_type()
        else:
            self.pos -= 1
            raise self.error("expected a type")
        self.types[token] = found
        return found

    def _struct(self, packed: bool) -> T.Type:
        elements: list[T.Type] = []
        if not self.accept("}"):
            elements.append(self.type())
            while self.accept(","):
                elements.append(self.type())
            self.expect("}")
        return T.StructType(tuple(elements), packed)

    def _angled(self) -> T.Type:
        if self.accept("{"):
            found = self._struct(packed=True)
            self.expect(">")
            return found
        scalable = self.accept("vscale")
        if scalable:
            self.expect("x")
        count = self.integer()
        self.expect("x")
        found = T.VectorType(count, self.type(), scalable)
        self.expect(">")
        return found

    def _function_type(self, result: T.Type) -> T.Type:
        self.expect("(")
        parameters: list[T.Type] = []
        variadic = False
        while not self.accept(")"):
            if self.accept("..."):
                variadic = True
            else:
                parameters.append(self.type())
            self.accept(",")
        return T.FunctionType(result, tuple(parameters), variadic)

    def _target_type(self) -> T.Type:
        self.expect("(")
        name = self.string()
        types: list[T.Type] = []
        integers: list[int] = []
        while self.accept(","):
            if self.at_type():
                types.append(self.type())
            else:
                integers.append(self.integer())
        self.expect(")")
        return T.TargetExtType(name, tuple(types), tuple(integers))

    def address_space(self) -> int:
        """`addrspace(n)`."""
        self.expect("addrspace")
        self.expect("(")
        number = self.integer()
        self.expect(")")
        return number

    def attribute(self) -> str:
        """One attribute, whatever its shape: `noundef`, `align 8`, `range(i32 0, 5)`, `"key"="value"`, `#3`."""
        token = self.take()
        following = self.tokens[self.pos]
        if following == "(":
            return token + spell(self.balanced())
        if following == "=":
            self.pos += 1
            return f"{token}={self.take()}"
        if token == "align" and following.isdigit():
            self.pos += 1
            return f"align {following}"
        return token

    def attributes_before_type(self) -> tuple[str, ...]:
        if self.at_type():
            return ()
        found: list[str] = []
        while not self.at_type():
            token = self.tokens[self.pos]
            if not (token[0].isalpha() or token[0] == '"'):
                raise self.error("expected an attribute or a type")
            found.append(self.attribute())
        return tuple(found)


@lru_cache(maxsize=128)
def _of_table(text: str) -> T.Type:
    """The type of a table, which names every member of every record where some of them end in zeros. A kernel's module
    is written and read some five times."""
    return TypeReader(text).type()
