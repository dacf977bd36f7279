"""The tree of errors. Every one has a cause, and where they are known a place and a remedy::

    JaxEnzymeError
        SignatureError              (also a ValueError) a signature that does not parse, or does not fit the source
            ArgumentError           (also a TypeError) the arguments of a call do not fit the signature
        CompileError                a source that does not compile, is not there, or lacks the symbol; a missing tool
        DifferentiationError        the engine refuses
            NotDifferentiableError  the function has no derivative there: no rule could help
            NoRuleError             a derivative may exist, but nobody told the engine
        LoweringError               code generation and the call from XLA
        RaceError                   threads of a CUDA kernel or iterations of a loop race (`check_races`)

ShortcutWarning is no error: a kernel that looks for exact values may hide a derivative there.

That a derivative is *zero* is no error, so the three outcomes of differentiation stay apart: a zero, a
NotDifferentiableError, a NoRuleError. SignatureError and ArgumentError are ValueError and TypeError too, because that
is what callers of array functions catch for a wrong shape and a wrong dtype or count.
"""

from __future__ import annotations

from typing import Any

_MAX_LINES = 40


class JaxEnzymeError(Exception):
    """Base of all errors of this package.

    `cause` says what is wrong, `place` where (`file:line`, an argument, an instruction), `remedy` what to do about it.
    The message is the three in that order, never longer than a screen: a long cause (a compiler's output) is cut in the
    message and kept whole in the attribute.
    """

    def __init__(self, cause: str, place: str | None = None, remedy: str | None = None) -> None:
        super().__init__(cause, place, remedy)
        self.cause = cause
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        lines = self.cause.rstrip().splitlines()
        if len(lines) > _MAX_LINES:
            lines = [*lines[:_MAX_LINES], f"... ({len(lines) - _MAX_LINES} more lines in .cause)"]
        if self.place:
            lines.append(_labelled("place", self.place))
        if self.remedy:
            lines.append(_labelled("remedy", self.remedy))
        return "\n".join(lines)


def _labelled(label: str, text: str) -> str:
    indent = " " * (len(label) + 4)
    return f"  {label}: " + f"\n{indent}".join(text.rstrip().splitlines())


class SignatureError(JaxEnzymeError, ValueError):
    """A signature that does not parse, does not make sense, or does not fit the source."""


class ArgumentError(SignatureError, TypeError):
    """The arguments of a call do not fit the signature: count, name, dtype, rank or shape. Also arguments of
    `je.kernel` that are of another type than it takes."""


class CompileError(JaxEnzymeError):
    """A source that does not compile, is not there or lacks the symbol, or a compiler that is not there."""


class DifferentiationError(JaxEnzymeError):
    """The engine refuses to differentiate; the primal still runs."""


class NotDifferentiableError(DifferentiationError):
    """The function has no derivative where one is asked for."""


class NoRuleError(DifferentiationError):
    """The derivative may exist, but the engine has no rule for an operation or a call."""


class ShortcutWarning(UserWarning):
    """A kernel compares a number that varies with an exact value, and its derivative there may miss something: see
    `docs/shortcuts.md`."""


class RaceWarning(UserWarning):
    """Threads of a CUDA kernel touch shared memory between the same two barriers, one of them writing, and are not
    proved apart; `je.check_races` settles it."""


class LoweringError(JaxEnzymeError):
    """Generating machine code, or calling it from XLA, failed."""


class RaceError(JaxEnzymeError):
    """Threads of a CUDA kernel race, or iterations of a loop that a directive shares out. `report` has all
    that was found."""

    def __init__(self, cause: str, place: str | None = None, remedy: str | None = None, *, report: Any = None) -> None:
        super().__init__(cause, place, remedy)
        self.report = report

    def __reduce__(self) -> tuple[object, ...]:
        return (_race_error, (self.cause, self.place, self.remedy, self.report))


def _race_error(cause: str, place: str | None, remedy: str | None, report: Any) -> RaceError:
    return RaceError(cause, place, remedy, report=report)
