"""Prints `docs/blas.md` from the tables: `python -m jax_enzyme.rules.blas.docs > docs/blas.md`."""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.rules.blas.table import Parameter, Routine, bodies, routines

_INTRODUCTION = """\
# BLAS and LAPACK

This page is generated from the table in `jax_enzyme/rules/blas` by
`python -m jax_enzyme.rules.blas.docs > docs/blas.md`; a test keeps it up to date.

Calls of these routines are differentiated by rules, never through their source. They are found in the process, if it
has them, and in SciPy otherwise. A rule is C code that calls BLAS and LAPACK again (the formulas stand beside each in
`jax_enzyme/rules/blas`), so that derivatives of any order go the same way. A call of another routine is refused by
name, unless nothing that varies goes into it.

- Strides of either sign, leading dimensions, triangles and unit diagonals mean what they mean in the routine: what it
  does not touch is neither read nor written in the derivative.
- `alpha` and `beta` are differentiated like everything else. Where `beta` is zero the old contents may be anything.
- The length of a character argument may follow the others, as Fortran compilers pass it, or not. Integers have 32 bits.
- `info` and `ipiv` have no derivative: it is that of the permutation that was taken. Where `potrf` or
  `pbtrf` fails, the derivative of its result is no number.
- The first number of `work` is its size, without derivative, and `lwork = -1` asks for it.
- In `geqrf` a column that is zero below the diagonal is not reflected, though one close to it is: the sign of a row of
  R jumps there, and derivatives are NaN. (The last column of a square matrix is none: of a complex one, the number on
  the diagonal is taken to keep its sign.)
- Eigenvectors and singular vectors have the sign that LAPACK gives them, and complex ones the phase: in a triangle that
  is stored below the diagonal their first component stays real, otherwise the last one; of complex singular vectors the
  first component of the right ones, or of the left ones where the matrix is wider than high. (Where that component is
  zero, the phase is the one that changes least.) Those of equal values have no
  derivative (it is infinite or NaN), though the values have. Neither have vectors beyond the smaller side of a matrix
  that is not square (`A` in `gesvd`), vectors in place of the matrix (`O`), and what is left of a matrix that is
  destroyed: NaN.
- Vectors of `geev` have size one and a real largest component, as LAPACK gives them, and stay so.
- `gesvx` and `posvx` have the derivatives of the solution. Those of factors, scales and estimates that they give, and
  of a matrix and a right-hand side that they scale, are NaN, and so are those of solutions for a matrix that is given
  scaled (`F`, with `equed` other than `N`).
- The columns that `geqp3` takes first are those of the call: where two are equally long, others come next to them.
- In `gelss`, `gelsd` and `gelsy` the rank is that of the call; where it is full, what lies below a solution has the
  size of the residual (of the first two in its first number).
- What `spev`, `hpev`, `stev`, `stevd`, `sterf`, `steqr` and `gglse` destroy is NaN. Behind a solution of `gglse`
  lies the size of the residual.
- `gecon`, `pocon` and `trcon` have the derivative of the estimate: of the solution whose size it is.
- `nrm2` has derivative 0 at 0, `asum` counts the sign of 0 as 1.
- The derivative of a complex number is that of its real and imaginary part; of the diagonal of a Hermitian matrix the
  imaginary part does not count.
"""


def page() -> str:
    """The whole page."""
    sections = [_INTRODUCTION, _with_rules(), _with_bodies()]
    return "\n".join(sections)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _with_rules() -> str:
    rows: dict[str, list[Routine]] = {}
    for routine in routines().values():
        rows.setdefault(f"{routine.name} {routine.parameters}", []).append(routine)
    text = "## With a rule\n\n" + _line(("routine", "reads", "changes")) + _line(["---"] * 3)
    for found in rows.values():
        floats = [p for p in found[0].parameters if p.is_float]
        if found[0].is_active:
            symbols = ", ".join(f"`{r.symbol}`" for r in found)
            text += _line((symbols, _names(p for p in floats if p.reads), _names(p for p in floats if p.writes)))
    inactive = ", ".join(f"`{r.symbol}`" for r in routines().values() if not r.is_active)
    return f"{text}\nThe result is an integer, without derivative: {inactive}.\n"


def _names(parameters: Iterable[Parameter]) -> str:
    return ", ".join(f"`{p.name}`" for p in parameters)


def _with_bodies() -> str:
    names = ", ".join(f"`{name}`" for name in sorted(bodies()))
    return (
        "## In terms of those\n\n"
        "The C interface, and functions that return a complex number, are put into the kernel as code that calls the\n"
        f"routines above: {names}.\n"
    )


if __name__ == "__main__":
    print(page(), end="")
