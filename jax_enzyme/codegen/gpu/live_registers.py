"""Kernels that need more registers than NVIDIA's assembler would give them by itself.

    before    .reqntid 32, 1, 1           after    .reqntid 32, 1, 1
              {                                    .minnctapersm 1
                                                   {

The assembler stops at 128 registers, so that more blocks fit on a multiprocessor, and keeps what is left in memory.
That is right where it can put statements into another order or compute something again, and where few bytes are left.
Where far more numbers than that are alive at one place, it is told that one block will do. In smaller kernels it is
left to choose: told the same, it takes up to twice the registers for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.classes import dataclass

_LIMIT = 140
"""In 137 live registers the assembler found 128 that sufficed, without memory. Of RSBench's tangents, 164 when halves
of numbers still counted as alive from the start, it kept 112 bytes in memory."""
_KERNEL = re.compile(r"(\.entry \w+\([^{]*?\.reqntid[^\n]*\n)\{\n(.*?)\n\}\n", re.DOTALL)
_REGISTER = re.compile(r"%(?:rd|fd|rs|rq|r|f|h|b)\d+")
_LABEL = re.compile(r"\$[\w$]+")
_STATEMENT = re.compile(r"(?:@!?%p\d+\s+)?(\S+)\s*(.*)")
_RESULT = re.compile(r"\{[^}]*\}|[^,;]*")
_WITHOUT_RESULT = ("st.", "red.", "call", "bra", "brx", "ret", "exit", "trap", "bar", "membar", "fence", "prefetch")
_WORDS = {"%rd": 2, "%fd": 2, "%rq": 4}


def with_room(ptx: str) -> str:
    """PTX in which kernels with many live registers may have as many as there are."""

    def roomy(kernel: re.Match[str]) -> str:
        head, body = kernel.groups()
        return f"{head}.minnctapersm 1\n{{\n{body}\n}}\n" if most_live(body) > _LIMIT else kernel.group()

    return _KERNEL.sub(roomy, ptx)


@dataclass(frozen=True, eq=False)
class _Statement:
    written: frozenset[str]
    read: frozenset[str]
    targets: tuple[str, ...]
    goes_on: bool

    def before(self, live: frozenset[str]) -> frozenset[str]:
        return live - self.written | self.read


def most_live(body: str) -> int:
    """Registers of 32 bits that are alive in one place of a kernel, at most. Predicates are none, and what a jump
    through a table leads to is not followed."""
    code, labels = _statements(body)
    starts = sorted(
        {0, len(code), *labels.values(), *(n + 1 for n, s in enumerate(code) if s.targets or not s.goes_on)}
    )
    blocks = dict(pairwise(starts))

    def after(start: int, facts: Mapping[int, frozenset[str]]) -> frozenset[str]:
        last = code[blocks[start] - 1]
        following = [labels[t] for t in last.targets] + ([blocks[start]] if last.goes_on else [])
        return frozenset[str]().union(*(facts[f] for f in following if f in facts))

    def at_start(start: int, facts: Mapping[int, frozenset[str]]) -> frozenset[str]:
        live = after(start, facts)
        for statement in reversed(code[start : blocks[start]]):
            live = statement.before(live)
        return live

    sources: dict[int, list[int]] = {}
    for start, end in blocks.items():
        for target in (*(labels[t] for t in code[end - 1].targets), end):
            sources.setdefault(target, []).append(start)
    facts = fixpoint([*reversed(blocks)], lambda start: sources.get(start, ()), at_start, frozenset())
    most = 0
    for start, end in blocks.items():
        live = after(start, facts)
        for statement in reversed(code[start:end]):
            live = statement.before(live)
            most = max(most, sum(_WORDS.get(register.rstrip("0123456789"), 1) for register in live))
    return most


def _statements(body: str) -> tuple[list[_Statement], dict[str, int]]:
    """The statements of a kernel, and the numbers of those that labels stand in front of."""
    code: list[_Statement] = []
    labels: dict[str, int] = {}
    for line in map(str.strip, body.split("\n")):
        if line.endswith(":"):
            labels[line[:-1]] = len(code)
        # A scope of one line may hold several: `{ .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }`.
        for text in line.strip("{} ").split("; ") if line.startswith("{") else [line]:
            if text and not text.startswith((".", "/", "{", "}", "$")):
                code.append(_statement(text))
    return code, labels


def _statement(line: str) -> _Statement:
    found = _STATEMENT.match(line)
    assert found is not None
    name, rest = found.groups()
    result = _RESULT.match(rest) if not name.startswith(_WITHOUT_RESULT) else None
    written = result.group() if result is not None and "[" not in result.group() else ""
    jumps = name.startswith("bra")
    ends = name.startswith(("bra", "brx", "ret", "exit", "trap")) and not line.startswith("@")
    return _Statement(
        frozenset(_REGISTER.findall(written)),
        frozenset(_REGISTER.findall(rest[len(written) :])),
        tuple(_LABEL.findall(rest)) if jumps else (),
        not ends,
    )
