"""What the engine knows about one operation: a rule is a row of data, never code.

A rule gives one partial derivative per argument. Forward mode multiplies each by the argument's tangent and adds;
reverse mode multiplies each by the result's cotangent and adds to the argument's. Partials are written for scalars and
hold for vectors lane by lane. A partial is computed in the type of the operation's result; where an argument has
another floating-point type (`fpext`, `fptrunc`) the product is converted, and that is all that differs.
"""

from __future__ import annotations

import enum
from typing import Final, Literal

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.rules.expr import Expr, parse


class Kind(enum.Enum):
    SMOOTH = "smooth"
    """There are partials that are not zero."""
    ZERO = "zero"
    """The derivative is zero wherever it exists, or no argument is a floating-point number."""
    REFUSED = "refused"
    """An active argument is an error: see the refusal."""


class Outcome(enum.Enum):
    """Why a derivative is refused. The third outcome, that it is zero, is no refusal."""

    NOT_DIFFERENTIABLE = "not differentiable"
    NO_RULE = "no rule"


class Zero(enum.Enum):
    """The partial that is proved to be zero: no tangent and no cotangent flows, and none is computed."""

    ZERO = "0"

    def __str__(self) -> str:
        return "0"


ZERO: Final = Zero.ZERO
Partial = Expr | Literal[Zero.ZERO] | None
"""None: the argument is no floating-point number."""

ANYTHING: Final = "*"
"""The `parameters` of a rule that is about a function of any type."""

Ends = tuple[float, float]


@dataclass(frozen=True)
class Refusal:
    outcome: Outcome
    cause: str
    remedy: str


@dataclass(frozen=True)
class Rule:
    """`partials[i]` belongs to argument i. `parameters` has one letter per argument: `f` floating, `i` integer, `p`
    pointer. `result` is the letter of the result (`v` for none). `domain` holds, per argument, the ends between which
    tests draw points (integers for an integer argument). `edges` says what happens where the derivative does not exist
    or the formula has no value, `source` where the formula can be looked up, `reason` why a derivative is zero."""

    name: str
    kind: Kind
    parameters: str
    partials: tuple[Partial, ...]
    result: str = "f"
    refusal: Refusal | None = None
    domain: tuple[Ends, ...] = ()
    edges: str = ""
    source: str = ""
    reason: str = ""

    @property
    def arity(self) -> int:
        return len(self.parameters)

    def accepts(self, signature: T.FunctionType) -> bool:
        """Can a function of this type be the one that the rule is about? (Another one may have the same name.) What is
        refused is refused under any type."""
        if self.kind is Kind.REFUSED or self.parameters == ANYTHING:
            return True
        return (
            not signature.variadic
            and len(signature.parameters) == self.arity
            and _letter(signature.result) == self.result
            and all(_letter(t) == letter for t, letter in zip(signature.parameters, self.parameters, strict=True))
        )


def _letter(type_: T.Type) -> str:
    if T.is_float(type_):
        return "f"
    if T.is_int(type_):
        return "i"
    if T.is_pointer(type_):
        return "p"
    return "v" if isinstance(type_, T.VoidType) else "s"


def smooth(
    name: str,
    *partials: str | None,
    domain: tuple[Ends, ...] = (),
    edges: str = "",
    source: str = "C99 7.12",
) -> Rule:
    """A row with a formula per argument; `"0"` for a partial that is zero, None for an integer argument."""
    parsed = tuple(None if p is None else ZERO if p == "0" else parse(p) for p in partials)
    letters = "".join("i" if p is None else "f" for p in partials)
    return Rule(name, Kind.SMOOTH, letters, parsed, domain=domain, edges=edges, source=source)


def zero(name: str, reason: str, parameters: str = "f", result: str = "f", source: str = "C99 7.12") -> Rule:
    """A row whose derivative is zero."""
    partials = tuple(ZERO if letter == "f" else None for letter in parameters)
    return Rule(name, Kind.ZERO, parameters, partials, result, reason=reason, source=source)


def refused(
    name: str, outcome: Outcome, cause: str, remedy: str, parameters: str = "f", result: str = "f", source: str = ""
) -> Rule:
    """A row that says why there is no derivative and what to do instead."""
    partials = tuple(ZERO if letter == "f" else None for letter in parameters)
    return Rule(name, Kind.REFUSED, parameters, partials, result, Refusal(outcome, cause, remedy), source=source)
