"""Prints `docs/rules.md` from the table: `python -m jax_enzyme.rules.docs > docs/rules.md`."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.rules import complex, instructions, intrinsics, libm
from jax_enzyme.rules.names import ALIASES, LLVM_NAMES
from jax_enzyme.rules.rule import Kind, Rule

_INTRODUCTION = """\
# Derivative rules

This page is generated from the table in `jax_enzyme/rules` by `python -m jax_enzyme.rules.docs > docs/rules.md`; a test
keeps it up to date. `x0`, `x1` ... are the arguments of an operation and `y` is its result. A derivative keeps only the
values that its formula names.

A function goes under many names: `f` and `l` suffixes, LLVM intrinsics of any type (`llvm.sin.v4f32`), `__sin_finite`,
`__builtin_sin`, and CUDA's `__nv_sinf`. They are expanded in one place, `jax_enzyme/rules/names.py`.

Three outcomes are kept apart: the derivative is given by a formula, it is zero, or it is refused with a reason. A call
that has no row is refused as well, unless nothing that varies goes into it.
"""


def page() -> str:
    """The whole page."""
    real = (*libm.ROWS, *intrinsics.ROWS)
    sections = [
        _INTRODUCTION,
        _smooth("Instructions", (*instructions.ROWS, instructions.RECIPROCAL)),
        _smooth("Functions", real),
        _zero("The derivative is zero", (*instructions.ROWS, *real)),
        _refused(real),
        _complex(),
        _names(),
    ]
    return "\n".join(sections)


def _table(title: str, headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"## {title}", "", _line(headings), _line(("---",) * len(headings)), *map(_line, rows)]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _smooth(title: str, rules: Iterable[Rule]) -> str:
    return _table(
        title,
        ("name", "derivatives", "edges", "source"),
        (
            (f"`{rule.name}`", "<br>".join(_partials(rule)), rule.edges, rule.source)
            for rule in rules
            if rule.kind is Kind.SMOOTH
        ),
    )


def _partials(rule: Rule) -> Iterable[str]:
    for index, partial in enumerate(rule.partials):
        if partial is not None:
            yield f"by `x{index}`: `{partial}`" if rule.arity > 1 else f"`{partial}`"


def _zero(title: str, rules: Iterable[Rule]) -> str:
    names: dict[str, list[str]] = {}
    for rule in rules:
        if rule.kind is Kind.ZERO:
            names.setdefault(rule.reason, []).append(f"`{rule.name}`")
    return _table(title, ("names", "why"), ((", ".join(found), reason) for reason, found in names.items()))


def _refused(rules: Iterable[Rule]) -> str:
    return _table(
        "Refused",
        ("name", "outcome", "cause", "remedy"),
        (
            (f"`{rule.name}`", rule.refusal.outcome.value, rule.refusal.cause, rule.refusal.remedy)
            for rule in rules
            if rule.refusal is not None
        ),
    )


def _complex() -> str:
    analytic = (
        (
            f"`{function.name}`",
            "<br>".join(f"by `x{i}`: `{formula}`" for i, formula in enumerate(function.derivatives)),
            function.source,
        )
        for function in complex.ANALYTIC
    )
    text = (
        "Complex functions are split into real ones before differentiation; these formulas are read in complex\n"
        "arithmetic. `cdivide` is the quotient that compilers emit as a call (`__divdc3`), computed by Smith's\n"
        "algorithm.\n"
    )
    parts = (
        (f"`{name}`", "<br>".join(f"`{formula}`" for formula in formulas))
        for name, formulas in complex.REAL_PARTS.items()
    )
    return (
        _table("Complex functions", ("name", "derivative", "source"), analytic)
        + f"\n{text}\n"
        + _table("Complex functions that are real formulas", ("name", "real and imaginary part"), parts)
    )


def _names() -> str:
    others = {**ALIASES, **{f"llvm.{name}": row for name, row in LLVM_NAMES.items()}}
    rows = ((f"`{name}`", f"`{row.lstrip('%')}`") for name, row in others.items())
    return _table("Other names", ("name", "row"), rows)


if __name__ == "__main__":
    print(page(), end="")
