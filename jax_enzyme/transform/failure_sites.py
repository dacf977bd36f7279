"""Where a program ends itself or throws: which calls never return, how, and what to tell the user about each.

A failure has a kind and a number (see `csrc/abi.h`). Numbers below `FIRST_MESSAGE` are exit codes; the others count the
texts in the module's named metadata `!je.failures`, from which `message` finds the text for a status again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from jax_enzyme.classes import dataclass, replace
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.debug import add_node, location, resolve
from jax_enzyme.ir.inlining import expanded_attributes
from jax_enzyme.ir.lexer import escape, unescape
from jax_enzyme.ir.metadata import MDNode, MDString, MDValue
from jax_enzyme.ir.module import Function, GlobalVariable, Module, constant_bytes, declared_callee
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import (
    ConstantExpr,
    Value,
    int_value,
)
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect, effect

OUT_OF_MEMORY = 2
TERMINATED = 3
EXCEPTION = 4
CHECKED = 5
FIRST_MESSAGE = 256
TABLE = "je.failures"
UNFITTING = "je.unfitting"
"""Stands for a call through a pointer, or a dummy procedure, that may lead to nothing that fits."""
DIVIDED_BY_ZERO = "je.divided.by.zero"
DIVISION_OVERFLOWS = "je.division.overflows"
DISTANCES_DIFFER = "je.distances.differ"
NUMBERS_CUT = "je.numbers.cut"
NUMBERS_OTHER = "je.numbers.other"
FAILS = "je.fails"
"""Ends the call with the status that is its argument."""

_APART = "nomerge"
_RETURNING = frozenset(
    "__cxa_allocate_exception __cxa_free_exception __cxa_begin_catch __cxa_end_catch __cxa_get_exception_ptr "
    "llvm.debugtrap".split()
)
# Control that stays inside the program: `setjmp` is where it arrives.
_JUMPS = frozenset("longjmp _longjmp siglongjmp __longjmp_chk".split())
_EXITS = frozenset("exit _exit _Exit quick_exit _FortranAExit _FortranAStopStatement".split())
DIVISIONS = {
    DIVIDED_BY_ZERO: "integer division by zero",
    DIVISION_OVERFLOWS: "integer division overflows: the least integer by -1",
}
_NAMED = {
    **DIVISIONS,
    DISTANCES_DIFFER: "the distance of two objects is added to an address, and in a derivative they lie elsewhere: "
    "keep pointers in its place, or indices into one array",
    NUMBERS_CUT: "memory is copied or cleared from or up to a place within a number that a derivative depends on: "
    "copy and clear numbers as a whole",
    NUMBERS_OTHER: "a number that a derivative depends on is read where another kind of number, or a part of one, was "
    "stored last: read numbers as what was stored",
}
# Where headers and the Rust library lie: a place there says nothing about the user's source.
_LIBRARIES = ("/include/", "/rustc/", "/rustlib/", "/library/")
_FEW = 3
_HELPERS = re.compile(r"_ZSt\d+__throw_([a-z_]+?)(?:PKcz?|v|i|_fmtPKcz)$")
_RUN_TIME = {
    "__cxa_bad_cast": "_ZTISt8bad_cast",
    "__cxa_bad_typeid": "_ZTISt10bad_typeid",
    "__cxa_throw_bad_array_new_length": "_ZTISt20bad_array_new_length",
}
"""What functions of the run time throw."""
_PANIC = re.compile(
    r"panicking\d+(?:panic_const\d+)?(panic\w*?|\w*unwrap_failed|assert_failed\w*?|slice\w*|copy\w*)(?=17h|$)"
    # In what stands elsewhere in Rust's library (`core::cell::panic_already_borrowed`), the last name.
    r"|(?:4core|5alloc|3std)\d+\w*\D\d+([a-z_]+)(?:17h[0-9a-f]+E)?$"
)
_ZIG_PANIC = re.compile(r"debug\.(?:defaultPanic$|FullPanic\(.*\)\.([a-zA-Z]+?)(?:__\w+)?$)")
"""With what has gone wrong, where that has a function of its own."""


@dataclass(frozen=True, eq=False)
class Site:
    """A call that never returns. `thrown` is the symbol of the exception's type, `thrown_object` the exception; both
    are None where they are not known. `code` is the exit code of a program that ends itself, or the whole status."""

    call: I.CallBase
    kind: int
    what: str
    thrown: str | None = None
    thrown_object: Value | None = None
    code: Value | None = None

    def in_copy(self, copies: Mapping[Value, Value]) -> Site:
        """The same in a copy of its function."""

        def copied(value: Value | None) -> Value | None:
            return None if value is None else copies.get(value, value)

        call = copies[self.call]
        assert isinstance(call, I.CallBase)
        return replace(self, call=call, thrown_object=copied(self.thrown_object), code=copied(self.code))


def site(module: Module, instruction: I.Instruction) -> Site | None:
    """The failure that an instruction is; None for one that goes on."""
    callee = declared_callee(instruction)
    if callee is None or not isinstance(instruction, I.Call | I.Invoke):
        return None
    if callee.name in _RETURNING or callee.name in _JUMPS:
        return None
    if callee.name == FAILS:
        return Site(instruction, CHECKED, "a check failed", code=instruction.arguments[0])
    found = effect(callee.name)
    if found is Effect.THROW:
        return _thrown(instruction, callee.name)
    words = expanded_attributes(module, (*callee.attributes, *instruction.attributes))
    if found in (Effect.ABORT, Effect.TRAP):
        return _terminated(instruction, callee.name)
    if "noreturn" not in words:
        return None
    panics = "panic" in callee.name or callee.name.startswith("_R")
    if panics or "throw" in callee.name:
        return _thrown(instruction, callee.name)
    return _terminated(instruction, callee.name)


def keep_failures_apart(module: Module) -> None:
    """Changes the module: an optimiser makes one call of two that fail, whose place is then that of neither; of these
    it must not."""
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and site(module, instruction) is not None:
                instruction.attributes = (*instruction.attributes, _APART)


def _terminated(call: I.CallBase, name: str) -> Site:
    if name in _EXITS:
        return Site(call, TERMINATED, "exit", code=call.arguments[0] if call.arguments else None)
    if name in ("__assert_fail", "__assert"):
        text = constant_text(call.arguments[0])
        return Site(call, TERMINATED, f"assertion `{text}` failed" if text else "an assertion failed")
    if name == UNFITTING:
        return Site(call, TERMINATED, "a procedure is called that does not fit the call, or is none")
    if name.startswith("llvm."):
        return Site(call, TERMINATED, "the kernel ran into a trap")
    if name == "_FortranAErrorStop" or name == "_FortranAStopStatementText":
        text = _counted_text(call.arguments[0], call.arguments[1]) if len(call.arguments) > 1 else None
        return Site(call, TERMINATED, f"STOP {text}" if text else "STOP")
    if name == "_FortranAReportFatalUserError" and (text := constant_text(call.arguments[0])):
        return Site(call, TERMINATED, text)
    if panic := _ZIG_PANIC.match(name):
        text = _counted_text(call.arguments[0], call.arguments[1]) if len(call.arguments) > 1 else None
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", panic[1] or "").lower()
        return Site(call, TERMINATED, ": ".join(filter(None, ("Zig panic", text or words))))
    if name in _NAMED:
        return Site(call, TERMINATED, _NAMED[name])
    if name == "python_exception":  # of Numba's: see frontends/numba.py
        text = constant_text(call.arguments[0]) if call.arguments else None
        return Site(call, TERMINATED, text or "a Python exception")
    plain = {"_ZSt9terminatev": "std::terminate", "__clang_call_terminate": "std::terminate"}.get(name, name)
    return Site(call, TERMINATED, f"`{plain}` was called")


def _thrown(call: I.CallBase, name: str) -> Site:
    if name == "__cxa_throw":
        thrown = call.arguments[1]
        symbol = thrown.name if isinstance(thrown, GlobalVariable) else None
        shown = f"C++ exception `{readable_type(symbol)}`" if symbol else "C++ exception"
        return Site(call, EXCEPTION, shown, symbol, call.arguments[0])
    if name == "__cxa_rethrow":
        return Site(call, EXCEPTION, "C++ exception")
    helper = _HELPERS.match(name)
    if helper:
        text = constant_text(call.arguments[0]) if call.arguments else None
        what = f"C++ exception `std::{helper[1]}`" + (f": {text}" if text else "")
        return Site(call, EXCEPTION, what, f"_ZTISt{len(helper[1])}{helper[1]}")
    if name.startswith(("__cxa", "_ZSt", "_ZNSt")):
        return Site(call, EXCEPTION, f"C++ exception in `{name}`", _RUN_TIME.get(name))
    return Site(call, EXCEPTION, f"Rust panic{_panic_text(call, name)}")


def _panic_text(call: I.CallBase, name: str) -> str:
    known = _PANIC.search(name)
    what = (known[1] or known[2]) if known else ""
    if what == "panic_bounds_check":
        return ": index out of bounds"
    if len(call.arguments) >= 2:
        text = _counted_text(call.arguments[0], call.arguments[1])
        if text:
            return f": {text}"
    words = what.removeprefix("panic_const_").removeprefix("panic_").replace("_", " ")
    return f": {words}" if words and words != "fmt" else ""


def _counted_text(pointer: Value, count: Value) -> str | None:
    """Text by address and length. Rust marks the length of a format without arguments by a low bit."""
    length = int_value(count)
    if isinstance(count, ConstantExpr) and count.opcode == "inttoptr":
        tagged = int_value(count.operands[0])
        length = tagged >> 1 if tagged is not None and tagged & 1 else None
    data = constant_bytes(pointer)
    return None if data is None or length is None else data[:length].decode("utf-8", "replace").strip()


def constant_text(value: Value) -> str | None:
    """The C string that a constant points to."""
    data = constant_bytes(value)
    return None if data is None else data.split(b"\0", 1)[0].decode("utf-8", "replace")


def readable_type(symbol: str) -> str:
    """`std::runtime_error` of `_ZTISt13runtime_error`; the symbol itself where it is not as simple as that."""
    basic = {"i": "int", "d": "double", "f": "float", "PKc": "const char *", "l": "long", "j": "unsigned", "b": "bool"}
    rest = symbol.removeprefix("_ZTI")
    if rest in basic:
        return basic[rest]
    if rest.startswith("N") and rest.endswith("E"):
        rest = rest[1:-1]
    parts: list[str] = []
    if rest.startswith("St"):
        parts, rest = ["std"], rest[2:]
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        parts.append(rest[found.end() : end])
        rest = rest[end:]
    return "::".join(parts) if parts and not rest else symbol


# -- the table of messages ---------------------------------------------------------------------------------------------


def describe(module: Module, found: Site, home: Function, callers: Callers, detail: str | None = None) -> str:
    """The message of a site in a function: what happened, and where in the user's source."""
    text = found.what + (f": {detail}" if detail else "")
    place = location(module, found.call)
    if place is None or _is_of_library(place):
        place = callers.place(home)
    return f"{text} ({place})" if place else text


def _is_of_library(place: str) -> bool:
    return place.startswith("library/") or any(part in place for part in _LIBRARIES)


class Callers:
    """Where the functions of a module are called."""

    def __init__(self, module: Module) -> None:
        self._module = module

    @remembered
    def place(self, called: Function) -> str | None:
        """Where the user's source calls a function of a library, or what calls it there: one place of a few."""
        found: set[str] = set()
        above = Reached([called])
        for function in above:
            for caller, instruction in self._calls.get(function, ()):
                place = location(self._module, instruction)
                if place is None or _is_of_library(place):
                    above.add([caller])
                else:
                    found.add(place)
        return " or ".join(sorted(found)) if 0 < len(found) <= _FEW else None

    @cached_property
    def _calls(self) -> dict[Function, list[tuple[Function, I.Instruction]]]:
        found: dict[Function, list[tuple[Function, I.Instruction]]] = {}
        for function in self._module.functions.values():
            for instruction in function.instructions():
                if isinstance(instruction, I.CallBase) and isinstance(instruction.callee, Function):
                    found.setdefault(instruction.callee, []).append((function, instruction))
        return found


def add_message(module: Module, text: str) -> int:
    """The number that stands for a message, which joins the module's table."""
    known = messages(module)
    if text in known:
        return FIRST_MESSAGE + known.index(text)
    row = add_node(module, MDNode(operands=[MDString(escape(text))]))
    module.named_metadata.setdefault(TABLE, []).append(row)
    return FIRST_MESSAGE + len(known)


def append_messages(module: Module, own: tuple[str, ...], more: tuple[str, ...]) -> None:
    """Makes the table of messages what it was, `own`, with others behind, which keep their order."""
    module.named_metadata.pop(TABLE, None)
    rows: list[MDValue] = [add_node(module, MDNode(operands=[MDString(escape(text))])) for text in (*own, *more)]
    if rows:
        module.named_metadata[TABLE] = rows


def messages(module: Module) -> tuple[str, ...]:
    """The table of messages: the text of number `FIRST_MESSAGE + i` at index i."""
    nodes = [resolve(module, value) for value in module.named_metadata.get(TABLE, ())]
    found = [node.operands[0] for node in nodes if node is not None]
    escaped = [text.text for text in found if isinstance(text, MDString)]
    return tuple(unescape(text).encode("latin-1").decode("utf-8", "replace") for text in escaped)


def message(module: Module, status: int) -> str | None:
    """What a status of an array function of this module means, if the table has it."""
    index = (status & 0xFFFFFFFF) - FIRST_MESSAGE
    known = messages(module)
    return known[index] if status >> 32 in (TERMINATED, EXCEPTION) and 0 <= index < len(known) else None
