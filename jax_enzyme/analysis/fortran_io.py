"""Input and output statements of Fortran. flang makes several calls of each:

    %s = call ptr @_FortranAioBeginExternalListOutput(i32 6, ...)     begins the statement: what it does, and to what
    call i1 @_FortranAioOutputReal64(ptr %s, double %x)               an item
    call i32 @_FortranAioEndIoStatement(ptr %s)

What the later calls do follows from where their statement began: print, write to a file, or fill a variable with text.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

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


class Statement(enum.Enum):
    CONSOLE = "prints"
    FILE = "writes to a file, opens or closes one"
    OTHER = "reads, or has to do with a variable of the program"


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
        unit = int_value(begin.operands[3 if "Formatted" in name else 0])
        return Statement.CONSOLE if unit in _CONSOLE else Statement.FILE
    return Statement.FILE if _HANDLES_FILES.match(name) else Statement.OTHER


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
