"""Reads the text of a signature: a recursive descent parser with one function per line of the grammar.

signature := param ("," param)* [ "->" dtype | "->" "status" | "->" "{" member ("," member)* "}" ]
param     := [ "in" | "out" | "inout" | "scratch" | "const" ] name ":" type
type      := dtype ("[" dims "]")* [ "=" integer ] | record | "null" | "fn" "(" name ")" | string | "status" "[" "]"
record    := "{" member ("," member)* "}" [ "[" dims "]" ] [ "*" ]
member    := param, where a "*" behind a dtype with brackets is a pointer, and brackets alone an array in place
dims      := [ expression ("," expression)* ]           (expressions: see the module `expressions`)

A `const` parameter is a variable of the source, and comes behind all others wherever it stands. Names in expressions
may have dots (`p.n`). What stands between `#` and the end of its line is a comment.
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Mapping
from typing import NoReturn

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import SignatureError
from jax_enzyme.signature.declarations import Declaration, DeclarationError, Dims, formals_of, structure_of
from jax_enzyme.signature.dimensions import plan
from jax_enzyme.signature.expressions import Expression, Literal, Name, Negation, Operation
from jax_enzyme.signature.formals import Record
from jax_enzyme.signature.model import RETURN, Order, Signature
from jax_enzyme.signature.params import DIRECTIONS, DTYPES, Direction

_TOKEN = re.compile(
    r"(?:\s|#[^\n]*(?:\n|$))*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<string>\"[^\"]*\"|'[^']*')"
    r"|(?P<symbol>->|//|[-+*/%()\[\]{}:,=]|\.(?=[A-Za-z_]))|(?P<bad>\S)|$)"
)
_WINDOW = 100
_MAX_NESTING = 50

_CLOSEST_DTYPES = {
    "double": "f64", "float": "f32", "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int": "i32", "long": "i64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "size_t": "u64",
    "unsigned": "u32", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "char": "i8", "short": "i16",
    "complex64": "c64", "complex128": "c128", "complex": "c128", "_bool": "bool", "i1": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is name, number, string, symbol or end."""

    kind: str
    text: str
    start: int


def parse(text: str, order: str | int = "C", constants: Mapping[str, int] | None = None) -> Signature:
    """The signature that `text` is. SignatureError, with a caret under the place, if it is none. `constants` are values
    of integer parameters or of names in shapes."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SignatureError(f"a signature is a string, not {type(text).__name__}: {text!r}")
    if order not in ("C", "F"):
        in_text = f"give a parameter of this name its value in the signature: `order: i32 = {order}`"
        raise SignatureError(f"order is 'C' or 'F', not {order!r}", None, in_text if isinstance(order, int) else None)
    checked: Order = "C" if order == "C" else "F"
    signature = _Parser(text).signature(checked, constants or {})
    signature.check_meaning()
    plan(signature)
    return signature


def parse_shapes(text: str) -> dict[str, str]:
    """Shapes by name, with their brackets: `x[n], p.y[n][m]`. SignatureError, with a caret, for other text."""
    return _Parser(text, "the list of shapes").shapes()


def parse_expression(text: str) -> Expression:
    """The expression over dimensions that `text` is. SignatureError, with a caret under the place, if it is none."""
    return _Parser(text, "the expression").whole_expression()


class _Parser:
    def __init__(self, text: str, what: str = "the signature") -> None:
        self.text = text
        self.what = what
        self.tokens = self._tokens()
        self.index = 0
        self.depth = 0

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = len(self.text.rstrip())
        position = 0
        while position < end:
            match = _TOKEN.match(self.text, position)
            assert match is not None
            if match.lastgroup is None:
                break  # nothing but a comment
            start = match.start(match.lastgroup)
            if match["bad"] == "?":
                self.fail("`?` stands for what nobody knows but you", start, "write the size, or the type")
            if match.lastgroup == "bad":
                self.fail(f"unexpected character {match['bad']!r}", start)
            tokens.append(_Token(match.lastgroup, match[match.lastgroup], start))
            position = match.end()
        tokens.append(_Token("end", "", end))
        return tokens

    # -- helpers

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def advance(self) -> _Token:
        token = self.token
        self.index += 1
        return token

    def accept(self, symbol: str) -> bool:
        if self.token.kind == "symbol" and self.token.text == symbol:
            self.index += 1
            return True
        return False

    def fail(self, cause: str, start: int, remedy: str | None = None) -> NoReturn:
        raise SignatureError(f"{self.what} does not parse: {cause}", _caret(self.text, start), remedy)

    def expect(self, symbol: str, after: str) -> None:
        if not self.accept(symbol):
            found = f"`{self.token.text}`" if self.token.text else "the end"
            self.fail(f"expected `{symbol}` after {after}, found {found}", self.token.start)

    # -- the grammar

    def signature(self, order: Order, constants: Mapping[str, int]) -> Signature:
        declarations = sorted(self.declarations(in_structure=False), key=lambda d: d.is_variable)
        result = self.result() if self.accept("->") else None
        structure: Record | None = None
        try:
            formals, params = formals_of(declarations, order, constants)
            if isinstance(result, Declaration):
                structure, result = structure_of(result, order, constants), None
        except DeclarationError as error:
            self.fail(str(error), error.start, error.remedy)
        if self.token.kind != "end":
            shown = formals[-1].text("in") if formals else str(params[-1])
            self.fail(f"expected `,` or `->` or the end after `{shown}`, found `{self.token.text}`", self.token.start)
        variables = tuple(d.name for d in declarations if d.is_variable)
        return Signature(params, result, order, formals, structure, variables)

    def declarations(self, *, in_structure: bool) -> tuple[Declaration, ...]:
        found = [self.declaration(in_structure)]
        while self.accept(","):
            found.append(self.declaration(in_structure))
        return tuple(found)

    def result(self) -> str | Declaration:
        start = self.token.start
        if self.accept("{"):
            members = self.members(RETURN, start)
            return Declaration(RETURN, start, "record", members=members)
        if self.token.text == "status":
            return self.advance().text
        if self.token.text == "void":
            self.fail("a kernel that returns nothing has no `->`", self.token.start, "leave `-> void` out")
        return self.dtype("`->`")

    def declaration(self, in_structure: bool) -> Declaration:
        direction: Direction | None = None
        for word in DIRECTIONS:
            # A direction is a direction only before a name: `in: f64` is caught below as a bad name.
            if self.token.text == word and self.tokens[self.index + 1].kind == "name":
                self.advance()
                direction = word
                break
        is_variable = self.variable(in_structure)
        token = self.advance()
        if token.kind != "name":
            self.index -= 1
            found = f"`{token.text}`" if token.text else "the end"
            self.fail(f"expected a parameter, `name: dtype`, found {found}", token.start)
        if keyword.iskeyword(token.text):
            self.fail(
                f"`{token.text}` is a Python keyword and cannot name an argument",
                token.start,
                f"names need not be the source's: call it `{token.text}_`",
            )
        self.expect(":", f"`{token.text}`")
        start, name = token.start, token.text
        special = self.special(name, start)
        if special is None:
            members: tuple[Declaration, ...] = ()
            dtype = ""
            if self.accept("{"):
                members = self.members(name, start)
            else:
                dtype = self.dtype(f"`{name}:`")
            groups = self.groups()
            is_pointer = self.pointer(name, dtype, groups, in_structure)
            kind = "record" if members else "number"
            value = self.integer(name) if kind == "number" and self.accept("=") else None
            if is_variable:
                self.check_variable(name, start, kind, groups)
                groups = groups or ((),)
            return Declaration(name, start, kind, direction, dtype, groups, is_pointer, value, members, is_variable)
        if is_variable:
            self.fail(f"`const {name}` is an array or a number", start)
        if direction is not None:
            self.fail(f"`{name}` is the same in every call, and no {direction}put", start, f"leave `{direction}` out")
        return special

    def variable(self, in_structure: bool) -> bool:
        """Whether a parameter is a variable of the source."""
        if self.token.text != "const" or self.tokens[self.index + 1].kind != "name":
            return False
        start = self.advance().start
        if in_structure:
            self.fail("`const` is for variables, and members of a structure are none", start, "leave `const` out")
        return True

    def check_variable(self, name: str, start: int, kind: str, groups: tuple[Dims, ...]) -> None:
        if kind != "number" or len(groups) > 1:
            self.fail(
                f"`const {name}` is an array or a number",
                start,
                "a structure of numbers of one type is an array of them, as `f32[4]` for a float4",
            )

    def members(self, name: str, start: int) -> tuple[Declaration, ...]:
        self.deeper(start)
        found = self.declarations(in_structure=True)
        self.depth -= 1
        self.expect("}", f"the members of `{name}`")
        return found

    def special(self, name: str, start: int) -> Declaration | None:
        """What no caller passes: null, fn(name), a text, status[]."""
        token = self.token
        if token.kind == "string":
            return Declaration(name, start, "text", what=self.advance().text[1:-1])
        if token.kind == "name" and token.text == "null":
            self.advance()
            return Declaration(name, start, "null")
        if token.kind == "name" and token.text == "fn":
            self.advance()
            self.expect("(", "`fn`")
            named = self.advance()
            if named.kind not in ("name", "string"):
                self.fail("expected the name of a function of the source after `fn(`", named.start)
            self.expect(")", f"`fn({named.text}`")
            return Declaration(name, start, "function", what=named.text.strip("\"'"))
        if token.kind == "name" and token.text == "status":
            self.advance()
            if self.groups() != ((),):
                self.fail("a status is a pointer to one integer", token.start, f"`{name}: status[]`")
            return Declaration(name, start, "status")
        return None

    def pointer(self, name: str, dtype: str, groups: tuple[Dims, ...], in_structure: bool) -> bool:
        start = self.token.start
        if not self.accept("*"):
            return False
        if in_structure and (not dtype or groups):
            return True
        if not in_structure and not dtype and not groups:
            return True
        if in_structure:
            self.fail(
                "a pointer has brackets before its star", start, f"a pointer to one value is `{name}: {dtype}[]*`"
            )
        if dtype and not groups:
            self.fail("brackets mark a pointer, and no star", start, f"a pointer to one value is `{name}: {dtype}[]`")
        inner = dtype or "{...}"
        self.fail("brackets alone are a pointer already", start, f"an array of pointers is `{name}: {inner}[n][m]`")

    def integer(self, name: str) -> int:
        start = self.token.start
        sign = -1 if self.accept("-") else 1
        token = self.advance()
        if token.kind != "number":
            self.fail(f"expected an integer after `{name} =`", start)
        return sign * int(token.text)

    def dtype(self, after: str) -> str:
        token = self.token
        if token.kind == "name" and token.text in DTYPES:
            return self.advance().text
        if token.kind != "name":
            found = f"`{token.text}`" if token.text else "the end"
            self.fail(f"expected a dtype after {after}, found {found}", token.start, f"dtypes: {' '.join(DTYPES)}")
        word = token.text.lower()
        near = [_CLOSEST_DTYPES[word]] if word in _CLOSEST_DTYPES else difflib.get_close_matches(word, DTYPES, 1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        if token.text in DIRECTIONS:
            hint = f"`{token.text}` stands before the name. "
        self.fail(f"`{token.text}` is no dtype", token.start, f"{hint}dtypes: {' '.join(DTYPES)}")

    def shapes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self.tokens[self.index].kind != "end":
            start = self.token.start
            if self.tokens[self.index].kind != "name":
                self.fail(f"expected `name[dims]`, found `{self.token.text}`", start)
            name = self.dotted()
            groups = self.groups()
            if not groups:
                self.fail(f"`{name}` has no brackets", start, f"`{name}[n]`")
            found[name] = "".join(f"[{','.join(map(str, group))}]" for group in groups)
            if not self.accept(",") and self.tokens[self.index].kind != "end":
                self.fail(f"expected `,` after `{name}{found[name]}`, found `{self.token.text}`", self.token.start)
        return found

    def groups(self) -> tuple[Dims, ...]:
        found: list[Dims] = []
        while self.accept("["):
            found.append(self.dims())
        return tuple(found)

    def dims(self) -> Dims:
        if self.accept("]"):
            return ()
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        self.expect("]", f"`{found[-1]}`")
        return tuple(found)

    def whole_expression(self) -> Expression:
        found = self.expression()
        if self.token.kind != "end":
            self.fail(f"expected the end after `{found}`, found `{self.token.text}`", self.token.start)
        return found

    def expression(self) -> Expression:
        left = self.term()
        while self.token.text in ("+", "-"):
            left = Operation(self.advance().text, left, self.term())
        return left

    def term(self) -> Expression:
        left = self.factor()
        while self.token.text in ("*", "/", "//", "%"):
            left = Operation(self.advance().text, left, self.factor())
        return left

    def factor(self) -> Expression:
        token = self.token
        self.deeper(token.start)
        try:
            if self.accept("-"):
                return Negation(self.factor())
            if self.accept("("):
                inner = self.expression()
                self.expect(")", f"`{inner}`")
                return inner
        finally:
            self.depth -= 1
        if token.kind == "number":
            return Literal(int(self.advance().text))
        if token.kind == "name":
            return Name(self.dotted())
        found = f"`{token.text}`" if token.text else "the end"
        self.fail(f"expected a dimension (a name, a number or an expression), found {found}", token.start)

    def deeper(self, start: int) -> None:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            self.fail("this is nested too deeply", start)

    def dotted(self) -> str:
        name = self.advance().text
        while self.accept("."):
            token = self.advance()
            if token.kind != "name":
                self.fail(f"expected a member after `{name}.`", token.start)
            name = f"{name}.{token.text}"
        return name


def _caret(text: str, start: int) -> str:
    """The line around a position, cut to a window, with a caret under it."""
    flat = re.sub(r"\s", " ", text)
    begin = max(0, min(start - _WINDOW // 2, len(flat) - _WINDOW))
    end = min(len(flat), begin + _WINDOW)
    shown = ("..." if begin else "") + flat[begin:end] + ("..." if end < len(flat) else "")
    return shown.rstrip() + "\n" + " " * (start - begin + (3 if begin else 0)) + "^"
