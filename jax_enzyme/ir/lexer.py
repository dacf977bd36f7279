"""Splits textual LLVM IR into tokens, and the cursor that walks over them.

Tokens are plain strings; their first character says what they are, so no object per token is made:

    %x %"x y" %5    local name or named type        !x !5          metadata name or number
    @x @"x y" @5    global name                     !"text"        metadata string
    $x              comdat                          "text" c"text" string, byte string
    #5 #dbg_value   attribute group, debug record   x: "x y": 5:   label or field name
    words, integers, floats, `...`, and single characters of punctuation
    [...] {...}     the type of a global and what it holds, where that is a long table of numbers

White space and comments separate tokens and mean nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from string import ascii_letters, digits

_SKIP = r"(?:\s+|;[^\n]*)*+"
_TOKEN = re.compile(
    _SKIP
    + r"""(%[-\w$.]+|[,()=]"""
    + r"""|-?\d+\.\d*(?:[eE][-+]?\d+)?"""
    + r"""|[-\w$.]+:|[c%@$]"[^"]*"|[-\w$.]+"""
    + r"""|![-\w$.\\]+|!"[^"]*"|@[-\w$.]+|#\w+|"[^"]*":?|.|\Z)"""
)
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2}|\\)")
_END = "\0"
NAME_CHARACTERS = ascii_letters + digits + "-_$."
"""Of which names are made that need no quotes."""

_LONG = 8000
"""Characters from which the line of a global may be that of a table. What analyses lose, numbers one by one, they do
not use in so many."""
_SHORT = 1000
"""The same for floating point alone, where such lines have more than `_MUCH` altogether: a long array constructor may
be a thousand of them. Integers may be indices."""
_MUCH = 200_000

_CLOSING = {"[": "]", "{": "}", "<": ">"}
_BRACKET = re.compile(r"[][{}<>]")
_NO_TABLE = ("@", '"', ";", "ptr", "undef", "poison")
"""What does not occur in the line of a table: symbols, strings and comments, addresses, what has no value."""


class ReadError(ValueError):
    """Text that is no IR we know; the message names line and column."""


def tokenize(text: str) -> list[str]:
    """All tokens, followed by two end marks (so that looking one token ahead needs no check)."""
    tokens: list[str] = []
    for start, end, table in _pieces(text):
        tokens += _TOKEN.findall(text, start, end)
        while tokens and not tokens[-1]:  # the end matches too: else the search would start inside a comment
            tokens.pop()
        tokens += [text[first:last] for first, last in table]
    tokens.append(_END)
    tokens.append(_END)
    return tokens


def _pieces(text: str) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Start and end of each part without tables, and where the type of the table behind it and the table are."""
    start = 0
    for begin, table, end in _tables(text):
        yield start, begin, ((begin, table - 1), (table, end))
        start = end
    yield start, len(text), ()


def is_table(token: str) -> bool:
    """Whether a token is all that a global holds, or the type of that."""
    return len(token) > 1 and token[0] in _CLOSING


def _tables(text: str) -> Iterator[tuple[int, int, int]]:
    """Where the type of each table of numbers begins, where the table does and where it ends. LLVM writes a global on
    one line."""
    lines: list[tuple[int, int]] = []
    end = 0
    while (start := text.find("\n@", end) + 1) and (end := text.find("\n", start)) > 0:
        if end - start >= _SHORT:
            lines.append((start, end))
    many = sum(end - start for start, end in lines) > _MUCH
    for start, end in lines:
        if (many or end - start >= _LONG) and (found := _table(text[start:end])):
            first, place, last = (start + at for at in found)
            if end - start >= _LONG or not {"i", "%"} & {*text[first:place]}:  # no integers, as far as the type tells
                yield first, place, last


def _table(line: str) -> tuple[int, int, int] | None:
    """The same in the line of a global; None where it holds no such table. The type is in brackets as well."""
    if line.rfind("@") > 0 or any(word in line for word in _NO_TABLE[1:]):
        return None
    keyword = min((k for k in map(line.find, (" constant ", " global ")) if k > 0), default=None)
    if keyword is None:
        return None
    first = line.index(" ", keyword + 1) + 1
    if line[first] not in _CLOSING:
        return None
    depth = place = 0
    for bracket in _BRACKET.finditer(line, first):
        depth += 1 if bracket[0] in _CLOSING else -1
        if not depth:
            place = bracket.end()
            break
    end = line.rfind(_CLOSING[line[first]]) + 1
    return (first, place + 1, end) if line[place : place + 1] == " " and line[place + 1] == line[first] else None


def unescape(text: str) -> str:
    r"""Undoes `\xx` escapes; each byte becomes the character of that number."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)


def escape(text: str) -> str:
    r"""The text, in UTF-8, with all that cannot stand between quotes as `\xx`."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())


def normal(token: str) -> str:
    """A name token with its sigil, quotes and escapes undone, except where only quotes tell a name from a number. Its
    bytes are UTF-8; those that are none stay what they are (`surrogateescape`)."""
    if len(token) > 1 and token[1] == '"':
        name = unescape(token[2:-1])
        if not name.isascii():
            name = name.encode("latin-1").decode("utf-8", "surrogateescape")
        return token if name.isdigit() else token[0] + name
    return token


def plain_name(key: str) -> str:
    """The `Value.name` for a normal name token: empty for a number, without quotes for a quoted number."""
    name = key[1:]
    if name.isdigit():
        return ""
    return name[1:-1] if name[:1] == '"' else name


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.pos = 0

    def take(self) -> str:
        token = self.tokens[self.pos]
        self.pos += 1
        return token

    def accept(self, token: str) -> bool:
        """Steps over `token` if it comes next."""
        if self.tokens[self.pos] == token:
            self.pos += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if self.tokens[self.pos] != token:
            raise self.error(f"expected {token!r}")
        self.pos += 1

    def integer(self) -> int:
        token = self.tokens[self.pos]
        try:
            value = int(token)
        except ValueError:
            raise self.error("expected an integer") from None
        self.pos += 1
        return value

    def string(self) -> str:
        """A quoted string, quotes removed and escapes kept."""
        token = self.take()
        if token[0] != '"' or token[-1] != '"':
            self.pos -= 1
            raise self.error("expected a string")
        return token[1:-1]

    def balanced(self) -> list[str]:
        """The tokens from an opening bracket to its partner, both included."""
        depth = 0
        start = self.pos
        while True:
            token = self.take()
            if token in ("(", "[", "{", "<"):
                depth += 1
            elif token in (")", "]", "}", ">"):
                depth -= 1
                if depth == 0:
                    return self.tokens[start : self.pos]
            elif token == _END:
                self.pos = start
                raise self.error("bracket without a partner")

    def error(self, message: str) -> ReadError:
        """An error at the current token. The place is found by lexing again, which only an error has to pay for."""
        token = self.tokens[min(self.pos, len(self.tokens) - 1)]  # the end itself may have been taken
        if token == _END:
            return ReadError(f"{message}, found the end of the text")
        start = next(islice(self._starts(), self.pos, None))
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        source = self.text.splitlines()[line - 1].strip() if token.strip() else ""
        found = token if len(token) <= 160 else token[:157] + "..."
        shown = source if len(source) <= 160 else source[:157] + "..."
        return ReadError(f"line {line}, column {column}: {message}, found {found!r} in: {shown}")

    def _starts(self) -> Iterator[int]:
        """Where each token starts."""
        for start, end, table in _pieces(self.text):
            yield from (match.start(1) for match in _TOKEN.finditer(self.text, start, end) if match[1])
            yield from (first for first, _ in table)


def spell(tokens: list[str]) -> str:
    """Tokens back as text, spaced as LLVM spaces attributes."""
    parts: list[str] = []
    previous = ""
    for token in tokens:
        tight = not parts or token in (")", ",", "]", ">", "(", "=") or previous in ("(", "[", "<", "=")
        parts.append(token if tight and not (token == "(" and previous == ",") else " " + token)
        previous = token
    return "".join(parts)
