"""What functions of the C library, and `std::sort`, do to the memory that they are handed, checked before the call.

before    %d = call ptr @strcpy(ptr %b, ptr %t)    after    %s = call i64 @je_checked_text(<object of %t>, %t, ...)
                                                            (the failure %s where it is not 0)
                                                            %n = call i64 @je_checked_length(%t, ...)
                                                            %r = call i64 @je_checked_region(<object of %b>, %b, ...)
                                                            (the failure %r where it is not 0)
                                                            %d = call ptr @strcpy(ptr %b, ptr %t)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import callee_name, declared_name
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.failure_sites import constant_text
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.formats import texts
from jax_enzyme.transform.sanitize.provenance import Provenance
from jax_enzyme.transform.sanitize.runtime import Runtime

_ONE = const_int(T.I64, 1)
_NO_LIMIT = const_int(T.I64, -1)


@dataclass(frozen=True, eq=False)
class _Called:
    """A call. `records` are of the objects that its arguments lead to, by their indices."""

    call: I.Call
    records: Mapping[int, Value]
    runtime: Runtime

    def number(self, at: Builder, index: int | None) -> Value:
        if index is None:
            return _NO_LIMIT
        given = self.call.arguments[index]
        return given if given.type == T.I64 else at.cast("sext", given, T.I64)

    def address(self, at: Builder, index: int) -> Value:
        return at.cast("ptrtoint", self.call.arguments[index], T.I64)

    def length(self, at: Builder, pointer: int, limit: int | None) -> Value:
        return self.runtime.call(at, "length", self.address(at, pointer), self.number(at, limit))

    def region(self, at: Builder, pointer: int, start: Value, size: Value, *, writes: bool) -> Value:
        place = self.runtime.place(self.call)
        return self.runtime.call(at, "region", self.records[pointer], start, size, const_int(T.I32, int(writes)), place)


_Effect = Callable[[_Called, Builder], Value]
"""Builds a status, which is 0 where all is well."""


def _text(pointer: int, limit: int | None = None, most: int | None = None) -> _Effect:
    """Reads a text that ends with a byte 0, or of as many bytes as another argument says, or of so many."""

    def status(of: _Called, at: Builder) -> Value:
        address, place = of.address(at, pointer), of.runtime.place(of.call)
        bytes_ = of.number(at, limit) if most is None else const_int(T.I64, most)
        return of.runtime.call(at, "text", of.records[pointer], address, bytes_, place)

    return status


def _region(pointer: int, *factors: int, unit: int = 1, writes: bool = True, null: bool = False) -> _Effect:
    """So many bytes: the product of arguments and `unit`. `null`: the pointer may be null, and nothing is done."""

    def status(of: _Called, at: Builder) -> Value:
        size: Value = const_int(T.I64, unit)
        for factor in factors:
            size = at.binary("mul", size, of.number(at, factor))
        address = of.address(at, pointer)
        if null:
            size = at.select(at.icmp("eq", address, const_int(T.I64, 0)), const_int(T.I64, 0), size)
        return of.region(at, pointer, address, size, writes=writes)

    return status


def _between(first: int, last: int) -> _Effect:
    """Writes all from one pointer to another; nothing where that comes first."""

    def status(of: _Called, at: Builder) -> Value:
        start, end = of.address(at, first), of.address(at, last)
        size = at.select(at.icmp("ult", end, start), const_int(T.I64, 0), at.binary("sub", end, start))
        return of.region(at, first, start, size, writes=True)

    return status


def _read(pointer: int, *factors: int) -> _Effect:
    return _region(pointer, *factors, writes=False)


def _copied(pointer: int, source: int, limit: int | None = None, *, behind: bool = False) -> _Effect:
    """Writes as many bytes as a text has, and one; `behind` the text that is there."""

    def status(of: _Called, at: Builder) -> Value:
        start, size = of.address(at, pointer), of.length(at, source, limit)
        if behind:
            start = at.binary("add", start, of.length(at, pointer, None))
        return of.region(at, pointer, start, at.binary("add", size, _ONE), writes=True)

    return status


def _printed(pointer: int, form: int, limit: int | None = None) -> _Effect:
    """Writes what `snprintf` says of the arguments from `form` on, and one byte more; no more than the limit."""

    def status(of: _Called, at: Builder) -> Value:
        declarations = Declarations(of.runtime.module)
        type_ = T.FunctionType(T.I32, (T.PTR, T.I64, T.PTR), variadic=True)
        function = declarations.function("snprintf", type_)
        given = [ConstantNull(T.PTR), const_int(T.I64, 0), *of.call.arguments[form:]]
        size = at.binary("add", at.cast("sext", at.call(function, given), T.I64), _ONE)
        if limit is not None:
            size = declarations.invoke(at, "llvm.umin.i64", T.I64, [size, of.number(at, limit)])
        return of.region(at, pointer, of.address(at, pointer), size, writes=True)

    return status


def _formatted(form: int) -> _Effect:
    """Reads the texts that a format names; only the format itself, where that is no constant."""

    def status(of: _Called, at: Builder) -> Value:
        words = constant_text(of.call.arguments[form])
        if words is None:
            return _text(form)(of, at)
        found: Value = const_int(T.I64, 0)
        for text in texts(words):
            pointer = form + 1 + text.argument
            if pointer in of.records:
                own = _text(pointer, None if text.limit is None else form + 1 + text.limit, text.most)(of, at)
                found = at.select(at.icmp("eq", found, const_int(T.I64, 0)), own, found)
        return found

    return status


_TEXTS = (_text(0), _text(1))
_NUMBER_OF_TEXT = (_text(0), _region(1, unit=8, null=True))
_EFFECTS: Mapping[str, tuple[_Effect, ...]] = {
    **{name: (_read(1, 2), _region(0, 2)) for name in ("memcpy", "memmove", "mempcpy")},
    "memset": (_region(0, 2),),
    "bzero": (_region(0, 1),),
    **{name: (_read(0, 2), _read(1, 2)) for name in ("memcmp", "bcmp")},
    **{name: (_text(1), _copied(0, 1)) for name in ("strcpy", "stpcpy")},
    **{name: (_text(1, 2), _region(0, 2)) for name in ("strncpy", "stpncpy")},
    "strcat": (*_TEXTS, _copied(0, 1, behind=True)),
    "strncat": (_text(0), _text(1, 2), _copied(0, 1, 2, behind=True)),
    **{name: (_text(0),) for name in ("strlen", "strchr", "strrchr", "strdup", "atoi", "atol", "atoll", "atof")},
    **{name: (_text(0),) for name in ("puts", "fputs")},
    **{name: _TEXTS for name in ("strcmp", "strcoll", "strstr", "strspn", "strcspn", "strpbrk")},
    **{name: _NUMBER_OF_TEXT for name in ("strtod", "strtof", "strtol", "strtoll", "strtoul", "strtoull")},
    **{name: (_text(0, 1),) for name in ("strnlen", "strndup")},
    "strncmp": (_text(0, 2), _text(1, 2)),
    "printf": (_formatted(0),),
    **{name: (_formatted(1),) for name in ("fprintf", "dprintf")},
    "sprintf": (_formatted(1), _printed(0, 1)),
    "snprintf": (_formatted(2), _printed(0, 2, limit=1)),
    "vsnprintf": (_region(0, 1),),
    "fgets": (_region(0, 1),),
    "fread": (_region(0, 1, 2),),
    "fwrite": (_read(0, 1, 2),),
    "qsort": (_region(0, 1, 2),),
    "bsearch": (_read(1, 2, 3),),
    **{name: (_region(1, unit=4),) for name in ("frexp", "frexpf", "lgamma_r", "lgammaf_r", "modff")},
    "modf": (_region(1, unit=8),),
    **{name: (_region(2, unit=4),) for name in ("remquo", "remquof")},
    "sincos": (_region(1, unit=8), _region(2, unit=8)),
    "sincosf": (_region(1, unit=4), _region(2, unit=4)),
}
_SORTS_NUMBERS = "_ZNSt3__16__sortIRNS_6__lessI"
"""How the instances of `std::sort` begin that libc++ has in its binary, and whose bodies are ours, without checks."""


def library_checks(call: I.Instruction, provenance: Provenance, runtime: Runtime) -> list[Check]:
    """What is to be checked before an instruction, where it calls such a function."""
    effects = _EFFECTS.get(declared_name(call), ())
    if callee_name(call).startswith(_SORTS_NUMBERS):
        effects = (_between(0, 1),)
    if not effects or not isinstance(call, I.Call):
        return []
    pointers = {i: v for i, v in enumerate(call.arguments) if v.type == T.PTR}
    called = _Called(call, {i: provenance.record(v) for i, v in pointers.items()}, runtime)
    return [_check(called, effect) for effect in effects]


def _check(called: _Called, effect: _Effect) -> Check:
    built: list[Value] = []

    def condition(at: Builder) -> Value:
        built.append(effect(called, at))
        return at.icmp("ne", built[-1], const_int(T.I64, 0))

    return Check(condition, lambda _: built[-1])
