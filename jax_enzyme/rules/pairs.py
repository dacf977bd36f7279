"""Functions whose derivatives are functions too, which a user has written: what a declaration says about them.

    void ext(int n, const double *x, double *y)      "n: i32, x: f64[n], out y: f64[n]"

The derivatives follow the convention of `rules/blas/support.h`, with the parameters of the function in front:

    void ext_jvp(n, x, y, dx, dy)                       the function, and the tangents of what it writes
    void *ext_forward(n, x, y, xbar, ybar, long stable, void *arena)   the function; what the reverse needs to know
    void ext_reverse(void *frame)                       xbar grows; ybar becomes the cotangent of what y was before

A shadow (dx, xbar ...) is NULL where no derivative passes. Bit k of `stable` says that the k-th memory of numbers stays
as the call leaves it until the reverse runs. A function that returns a number x returns {x, tangent} and {x, frame},
and its reverse has the cotangent as second argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jax_enzyme.classes import dataclass
from jax_enzyme.errors import SignatureError
from jax_enzyme.ir import types as T
from jax_enzyme.rules.blas.table import Kind, Parameter, Result, Routine
from jax_enzyme.signature import parse

ATTRIBUTE = "je.routine"
_SCALARS: dict[str, T.FloatType] = {"f32": T.FLOAT, "f64": T.DOUBLE}


@dataclass(frozen=True)
class UserRoutine(Routine):
    """`by_value` marks integers that are no pointers; `derivatives` are the symbols for jvp, forward and reverse."""

    by_value: tuple[bool, ...]
    derivatives: tuple[str, str, str]

    @property
    def jvp(self) -> str:
        return self.derivatives[0]

    @property
    def forward(self) -> str:
        return self.derivatives[1]

    @property
    def reverse(self) -> str:
        return self.derivatives[2]

    def accepts(self, signature: T.FunctionType) -> bool:
        result: T.Type = self.scalar if self.result is Result.NUMBER else T.VOID
        return (
            not signature.variadic
            and len(signature.parameters) == len(self.parameters)
            and signature.result == result
            and all(
                T.is_int(t) if by_value else T.is_pointer(t)
                for t, by_value in zip(signature.parameters, self.by_value, strict=True)
            )
        )


def user_routine(symbol: str, signature: str, derivatives: tuple[str, str, str]) -> UserRoutine:
    """What a signature says about a function. Raises SignatureError for what the convention cannot say."""
    parsed = parse(signature)
    if parsed.formals or parsed.structure is not None:
        raise SignatureError(
            f"the rule for `{symbol}` has structures or arrays of pointers",
            signature,
            "rules are for arrays and numbers",
        )
    parameters: list[Parameter] = []
    for param in parsed.params:
        floating = param.dtype in _SCALARS
        if param.dtype.startswith(("c", "bf", "f16")) or (floating and param.by_value):
            raise SignatureError(
                f"`{param}` in the rule for `{symbol}` cannot be differentiated",
                signature,
                "f32 and f64 through pointers, integers by value or through pointers",
            )
        kind = Kind.NUMBERS if floating else Kind.INTEGERS
        writes = param.direction != "in"
        parameters.append(Parameter(param.name, kind, reads=param.direction in ("in", "inout"), writes=writes))
    if parsed.result is not None and parsed.result not in _SCALARS:
        raise SignatureError(
            f"the rule for `{symbol}` returns {parsed.result}", signature, "return f32, f64 or nothing"
        )
    result = Result.NOTHING if parsed.result is None else Result.NUMBER
    scalar = _SCALARS[parsed.result] if parsed.result is not None else T.DOUBLE
    by_value = tuple(p.by_value for p in parsed.params)
    return UserRoutine(symbol, symbol, tuple(parameters), result, scalar, False, by_value, derivatives)


def attribute(signature: str, derivatives: Sequence[str]) -> str:
    """The attribute of a declaration that says so."""
    return f'"{ATTRIBUTE}"="{"|".join((signature, *derivatives))}"'


def declared_routine(symbol: str, attributes: tuple[str, ...]) -> UserRoutine | None:
    """What the attributes of a declaration say; None where they say nothing."""
    start = f'"{ATTRIBUTE}"="'
    for word in attributes:
        if word.startswith(start):
            return _parsed(symbol, word[len(start) : -1])
    return None


@lru_cache(maxsize=256)
def _parsed(symbol: str, text: str) -> UserRoutine:
    signature, jvp, forward, reverse = text.split("|")
    return user_routine(symbol, signature, (jvp, forward, reverse))
