"""Input and output statements of Fortran. flang makes several calls of each:

    %s = call ptr @_FortranAioBeginExternalListOutput(i32 6, ...)     begins the statement: what it does, and to what
    call i1 @_FortranAioOutputReal64(ptr %s, double %x)               an item
    call i32 @_FortranAioEndIoStatement(ptr %s)

What the later calls do follows from where their statement began: print, write to a file, or fill a variable with text.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Module, declared_name
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Value, int_value

_PREFIX = "_FortranAio"
_PRINTS = re.compile(rf"{_PREFIX}Begin(External|Unformatted)\w*Output$|{_PREFIX}BeginFlush$")
_HANDLES_FILES = re.compile(rf"{_PREFIX}Begin(Open\w*|Close|Rewind|Backspace|Endfile)$")
_ASKS_FILES = re.compile(rf"{_PREFIX}Begin((External|Unformatted)\w*Input|Inquire(Unit|File)|Wait\w*)$")
_NUMBERS_OUT = re.compile(rf"{_PREFIX}Output(Real|Complex|Descriptor|Derived|Namelist)")
_NUMBERS_IN = re.compile(rf"{_PREFIX}Input(Real|Complex|Descriptor|Derived|Namelist)")
_CONSOLE = (-1, 0, 6)
_SPECIFIER = f"{_PREFIX}Set"
NEW_UNIT = f"{_PREFIX}GetNewUnit"
"""Leaves the number of a unit that `open(newunit=...)` has chosen."""


class Statement(enum.Enum):
    CONSOLE = "prints"
    FILE = "writes to a file, opens or closes one"
    OTHER = "reads, or has to do with a variable of the program"


class Purpose(enum.Enum):
    """What a statement does with the file of a unit, or with one that it names."""

    OPENS = "opens it"
    CLOSES = "closes it, and may delete it"
    REWINDS = "goes back to its start"
    READS = "reads it, or asks about it"
    WRITES = "writes to it"
    ASKS = "asks about a file that it names"


_PURPOSES = (
    (re.compile(rf"{_PREFIX}BeginOpen"), Purpose.OPENS),
    (re.compile(rf"{_PREFIX}BeginClose$"), Purpose.CLOSES),
    (re.compile(rf"{_PREFIX}BeginRewind$"), Purpose.REWINDS),
    (re.compile(rf"{_PREFIX}BeginInquireFile$"), Purpose.ASKS),
    (re.compile(rf"{_PREFIX}Begin((External|Unformatted)\w*Input|InquireUnit)$"), Purpose.READS),
    (re.compile(rf"{_PREFIX}Begin((External|Unformatted)\w*Output|Endfile)$"), Purpose.WRITES),
)


def purpose(begin: I.CallBase) -> Purpose | None:
    """What a statement is for, by the call that begins it; None for what has to do with no file."""
    found = next((kind for pattern, kind in _PURPOSES if pattern.match(begin.callee.name)), None)
    if found is Purpose.WRITES and int_value(unit_of(begin)) in _CONSOLE:
        return None
    return found


def statements(module: Module) -> dict[I.CallBase, list[I.CallBase]]:
    """The calls that begin statements, each with all calls that may belong to it."""
    parts = [
        i for f in module.functions.values() for i in f.instructions() if isinstance(i, I.CallBase) and _is_part(i)
    ]
    found: dict[I.CallBase, list[I.CallBase]] = {}
    for part in parts:
        for begin in _begins(part):
            if begin is not None:
                found.setdefault(begin, []).append(part)
    return found


def specified(calls: Iterable[I.CallBase]) -> dict[str, tuple[Value, Value]]:
    """What the specifiers of a statement say (`File`, `Status`): texts, and their lengths."""
    return {
        call.callee.name.removeprefix(_SPECIFIER): (call.operands[1], call.operands[2])
        for call in calls
        if call.callee.name.startswith(_SPECIFIER) and len(call.arguments) == 3
    }


def statement(call: I.CallBase) -> Statement | None:
    """What the statement does that a call is a part of; None for other calls. Of several the most that one may do."""
    if not _is_part(call):
        return None
    kinds = {_kind(begin) for begin in _begins(call)}
    return next((kind for kind in (Statement.OTHER, Statement.FILE) if kind in kinds), Statement.CONSOLE)


def asks_files(module: Module) -> bool:
    """Whether a program reads files, or asks about them: what it has written to them matters."""
    return any(map(_ASKS_FILES.match, module.functions))


def hands_numbers_on(module: Module, call: I.CallBase) -> bool:
    """Whether numbers that a call writes to a file may be read again."""
    found = _NUMBERS_OUT.match(call.callee.name) and any(map(_NUMBERS_IN.match, module.functions))
    return bool(found) and statement(call) is Statement.FILE and asks_files(module)


def _is_part(call: I.CallBase) -> bool:
    return declared_name(call).startswith(_PREFIX)


def _kind(begin: I.CallBase | None) -> Statement:
    if begin is None:
        return Statement.OTHER
    name = begin.callee.name
    if _PRINTS.match(name):
        return Statement.CONSOLE if int_value(unit_of(begin)) in _CONSOLE else Statement.FILE
    return Statement.FILE if _HANDLES_FILES.match(name) else Statement.OTHER


def unit_of(begin: I.CallBase) -> Value:
    """The number of the unit that a statement is about; not for one that opens a unit which it chooses."""
    return begin.operands[3 if "Formatted" in begin.callee.name else 0]


def _begins(call: I.CallBase) -> Iterator[I.CallBase | None]:
    """The calls that begin the statement of this one; None for what is not found."""
    found = Reached[Value]([call if call.callee.name.startswith(f"{_PREFIX}Begin") else call.operands[0]])
    for value in found:
        match value:
            case I.CallBase() if _is_part(value) and value.callee.name.startswith(f"{_PREFIX}Begin"):
                yield value
            case I.Phi() | I.Select() | I.Freeze():
                found.add(I.merged(value))
            case _:
                yield None
