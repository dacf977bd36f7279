"""What Fortran says of its arguments and flang does not hand on: which of them a procedure may not write to, and which
have nothing for it to read.

    real(8), intent(in) :: x(n)           !6 = distinct !DISubprogram(name: "k", ..., annotations: !90)
    real(8), intent(out) :: y(n)          !90 = !{!91, !92}
                                          !91 = !{!"je.intent.in", !"x"}
                                          !92 = !{!"je.intent.out", !"y"}

The text is read from the line on that debug information gives for a procedure, as far as its declarations are plain:
what is not understood is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jax_enzyme.transform.prototype import INTENTS

_SUBPROGRAM = re.compile(r'^(!\d+ = distinct !DISubprogram\(name: "(\w+)".*, line: (\d+),.*)\)$', re.MULTILINE)
_NODE = re.compile(r"^!(\d+) = ", re.MULTILINE)
_INTERFACE = re.compile(r"(end\s*|abstract\s+)?interface\b")
_END = re.compile(r"contains$|end\s*(subroutine|function|procedure)?\s*\w*$")
_INTENT = re.compile(r"intent\s*\(\s*(in\s*out|inout|in|out)\s*\)")
_ELSEWHERE = re.compile(r"\b(pointer|type\s*\(|class\s*\()")
"""Arguments that may lead to other memory, where a procedure may write or read."""


def with_intents(ir: str, text: str, *, fixed: bool) -> str:
    """The IR of a source with the intents of its procedures' arguments in their debug information."""
    lines = text.lower().splitlines()
    number = max((int(match[1]) for match in _NODE.finditer(ir)), default=-1)
    nodes: list[str] = []

    def annotated(match: re.Match[str]) -> str:
        nonlocal number
        known = _intents(lines, match[2], int(match[3]), fixed)
        if not known:
            return match[0]
        notes: list[str] = []
        for intent, names in known.items():
            number += 1
            notes.append(f"!{number}")
            nodes.append(f'!{number} = !{{!"{INTENTS[intent]}", !"{",".join(names)}"}}\n')
        number += 1
        nodes.append(f"!{number} = !{{{', '.join(notes)}}}\n")
        return f"{match[1]}, annotations: !{number})"

    ir = _SUBPROGRAM.sub(annotated, ir)
    return ir + "".join(nodes)


def _intents(lines: list[str], name: str, line: int, fixed: bool) -> dict[str, list[str]]:
    """The arguments of a procedure by their intents, those of `INTENTS`."""
    statements = _statements(lines[line - 1 :], fixed)
    if not re.search(rf"\b(subroutine|function)\s+{name}\b", next(statements, "")):
        return {}
    found: dict[str, set[str]] = {}
    nested = 0
    for statement in statements:
        if interface := _INTERFACE.match(statement):
            nested += -1 if (interface[1] or "").startswith("end") else 1
        elif not nested and _END.match(statement):
            break
        elif not nested and (intent := _INTENT.search(statement)) and "::" in statement:
            attributes, _, declared = statement.partition("::")
            for variable in _names(declared):
                found.setdefault(variable, set()).add("other" if _ELSEWHERE.search(attributes) else intent[1])
    by_intent = {intent: [v for v, intents in found.items() if intents == {intent}] for intent in INTENTS}
    return {intent: names for intent, names in by_intent.items() if names}


def _statements(lines: list[str], fixed: bool) -> Iterator[str]:
    """The statements, in lower case, without comments; what continues is joined."""
    current = ""
    for line in lines:
        if fixed and line[:1] in ("c", "*", "d"):
            continue
        code = line.partition("!")[0].rstrip()
        if not code.strip() or code.startswith("#"):
            continue
        goes_on = bool(fixed and code[:5].strip() == "" and code[5:6].strip(" 0")) or current.endswith("&")
        if goes_on:
            current = current.removesuffix("&") + (code[6:] if fixed else code.strip().removeprefix("&"))
            continue
        if current:
            yield current.strip()
        current = code[6:] if fixed else code.strip()
    if current:
        yield current.strip()


def _names(declared: str) -> Iterator[str]:
    depth = 0
    item = ""
    for character in f"{declared},":
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            if found := re.match(r"\s*(\w+)", item):
                yield found[1]
            item = ""
        else:
            item += character
