"""Splits textual LLVM IR into tokens, and the cursor that walks over them.

Tokens are plain strings; their first character says what they are, so no object per token is made:

    %x %"x y" %5    local name or named type        !x !5          metadata name or number
    @x @"x y" @5    global name                     !"text"        metadata string
    $x              comdat                          "text" c"text" string, byte string
    #5 #dbg_value   attribute group, debug record   x: "x y": 5:   label or field name
    words, integers, floats, `...`, and single characters of punctuation

White space and comments separate tokens and mean nothing else.
"""

from __future__ import annotations

import re

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


class ReadError(ValueError):
    """Text that is no IR we know; the message names line and column."""


def tokenize(text: str) -> list[str]:
    """All tokens, followed by two end marks (so that looking one token ahead needs no check)."""
    tokens: list[str] = _TOKEN.findall(text)
    while tokens and not tokens[-1]:  # the end of the text matches too: else the search would start inside a comment
        tokens.pop()
    tokens.append(_END)
    tokens.append(_END)
    return tokens


def unescape(text: str) -> str:
    r"""Undoes `\xx` escapes; each byte becomes the character of that number."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)


def escape(text: str) -> str:
    r"""The text, in UTF-8, with all that cannot stand between quotes as `\xx`."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())


def normal(token: str) -> str:
    """A name token with its sigil, quotes and escapes undone, except where only quotes tell a name from a number."""
    if len(token) > 1 and token[1] == '"':
        name = unescape(token[2:-1])
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
        for index, match in enumerate(_TOKEN.finditer(self.text)):
            if index == self.pos and match[1]:
                start = match.start(1)
                line = self.text.count("\n", 0, start) + 1
                column = start - self.text.rfind("\n", 0, start)
                source = self.text.splitlines()[line - 1].strip() if match[1].strip() else ""
                shown = source if len(source) <= 160 else source[:157] + "..."
                return ReadError(f"line {line}, column {column}: {message}, found {match[1]!r} in: {shown}")
        return ReadError(f"{message}, found the end of the text")


def spell(tokens: list[str]) -> str:
    """Tokens back as text, spaced as LLVM spaces attributes."""
    parts: list[str] = []
    previous = ""
    for token in tokens:
        tight = not parts or token in (")", ",", "]", ">", "(", "=") or previous in ("(", "[", "<", "=")
        parts.append(token if tight and not (token == "(" and previous == ",") else " " + token)
        previous = token
    return "".join(parts)
