"""Prints `docs/refusals.md` from the tables that the engine reads, by `python -m jax_enzyme.ad.docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.ad.facts.causes import CAUSES, DEVICE_CAUSES, GUARDS, Cause, Kind
from jax_enzyme.ad.facts.hindrances import HINDRANCES
from jax_enzyme.rules import intrinsics, libm
from jax_enzyme.rules.blas.table import routines
from jax_enzyme.rules.effects import Effect, known_names
from jax_enzyme.rules.instructions import ROWS as INSTRUCTIONS

_INTRODUCTION = """\
# What is supported and what is refused, in detail

This page is generated from the tables that the engine reads, by `python -m jax_enzyme.ad.docs > docs/refusals.md`; a
test keeps it up to date. An overview is in [limits.md](limits.md).

A refusal is an error before anything runs: `je.DifferentiationError`, or its `je.NoRuleError` and
`je.NotDifferentiableError`, with `.cause`, `.place` (a line of your source, where there is debug information) and
`.remedy`. Only what a derivative depends on is refused: the kernel itself runs, and so do derivatives that do not pass
there.
"""
_SORTS = {
    Kind.NO_RULE: "a derivative may exist, but nobody told the engine (`je.NoRuleError`)",
    Kind.NOT_DIFFERENTIABLE: "there is no derivative that a rule could give (`je.NotDifferentiableError`)",
    Kind.NOT_PROVABLE: "the engine cannot prove what the code means for a number (`je.DifferentiationError`)",
    Kind.LIMIT: "the engine could do it one day (`je.DifferentiationError`)",
}
_SUPPORTED_INTRODUCTION = """\
## Supported

Arithmetic and functions go by [the rules](rules.md), linear algebra by [those of BLAS and LAPACK](blas.md). Besides
those, the engine knows these instructions and functions by what they do:
"""
_STRUCTURE = {
    "memory": "alloca load store getelementptr atomicrmw(xchg, fadd, fsub, integers) memcpy memmove memset",
    "values": "phi select freeze extractvalue insertvalue extractelement insertelement shufflevector bitcast",
    "control": "br switch ret unreachable call invoke",
    "pointers": "addrspacecast ptrtoint inttoptr(of a pointer's own bits)",
    "bits of numbers": "copies, comparisons, fabs, copysign, change of sign, also by the signs of other numbers, "
    "2^n by the exponent's bits, signs and exponents as integers, numbers with the digits of others, scaled or cut "
    "off, numbers whose bits are straight lines of other numbers, or of their bits, bfloat widened and rounded as "
    "integers",
}


def page() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, _refused(), _supported()))


def _refused() -> str:
    text = "## Refused\n\n"
    text += "".join(f"- *{kind.value}*: {meaning}\n" for kind, meaning in _SORTS.items()) + "\n"
    text += _table(("what", "sort", "message", "why", "remedy"), map(_row, CAUSES))
    text += "\nWhy a loop cannot be checkpointed:\n\n"
    text += _table(("why", "remedy"), ((hindrance.why, hindrance.remedy) for hindrance in HINDRANCES))
    rules = (
        (f"`{rule.name}`", rule.refusal.outcome.value, rule.refusal.cause, "", rule.refusal.remedy)
        for rule in (*libm.ROWS, *intrinsics.ROWS)
        if rule.refusal is not None and "p" not in rule.parameters  # those are lowered to others
    )
    text += "\nFunctions with a row in [the table of rules](rules.md) that says why they have no derivative:\n\n"
    text += _table(("what", "sort", "message", "why", "remedy"), rules)
    text += "\nIn CUDA kernels besides:\n\n"
    text += _table(("what", "sort", "message", "why", "remedy"), map(_row, DEVICE_CAUSES))
    text += "\nGuards, which no program is known to come to:\n\n"
    text += _table(("what", "sort", "message", "why", "remedy"), map(_row, GUARDS))
    return text


def _row(cause: Cause) -> tuple[str, ...]:
    return cause.key, cause.kind.value, cause.what, cause.why, cause.remedy


def _supported() -> str:
    text = f"{_SUPPORTED_INTRODUCTION}\n"
    arithmetic = " ".join(rule.name for rule in INSTRUCTIONS)
    rows = [("arithmetic", _code(arithmetic.split()))]
    rows += [(what, _code(names.split()) if "," not in names else names) for what, names in _STRUCTURE.items()]
    text += _table(("instructions", "which"), rows) + "\n"
    text += _table(("functions that", "which"), _functions())
    active = [r for r in routines().values() if r.is_active]
    count = len({r.name for r in active})
    text += f"\nBLAS and LAPACK: {count} routines in up to four kinds of numbers, {len(active)} symbols in all.\n"
    return text


def _functions() -> Iterator[tuple[str, str]]:
    for effect in Effect:
        names = known_names(effect)
        if names:
            yield effect.value, _code(names)


def _code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_line(headings), _line(("---",) * len(headings)), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(page(), end="")
