"""Classes of fields, made in a tenth of the time that `dataclasses` takes.

That compiles six functions for a class that is frozen, one by one, and there are hundreds of classes: an eighth of the
time to a first gradient went there. Here the functions are the same for all classes but `__init__`, which is compiled
when the first object is made, and sets attributes of a frozen one as of any other, in less than half the time. Whether
somebody changes a frozen object is for the type checker to see, which takes this for `dataclasses.dataclass`; what
users are given is made with that (`docs/decisions/0020-classes-of-fields.md`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field as field
from dataclasses import replace as replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, slots=False):
        """As that of `dataclasses`, but that attributes of frozen objects can be set."""

        def made(of: type) -> type:
            own = {name for name, value in of.__dict__.items() if value is not None}
            if "__doc__" not in own:
                of.__doc__ = of.__name__  # the signature otherwise, which takes as long as all else
            result = dataclasses.dataclass(of, init=False, repr=False, eq=False, slots=slots)
            if "__init__" not in own:
                result.__init__ = _compiled_later(result)
            values = _values([f.name for f in dataclasses.fields(result) if f.compare])
            generic = {"__repr__": _repr} if repr else {}
            if eq:
                generic |= {"__eq__": _equal(values), "__hash__": _hash(values) if frozen else None}
            for name in generic.keys() - own:
                setattr(result, name, generic[name])
            return result

        return made if cls is None else made(cls)


def _compiled_later(of: type) -> Callable[..., None]:
    def __init__(self: object, /, *args: object, **named: object) -> None:
        of.__init__ = _initialiser(of)
        of.__init__(self, *args, **named)

    return __init__


def _initialiser(of: type) -> Callable[..., None]:
    """`__init__` as `dataclasses` would write it for a class that is not frozen."""
    scope: dict[str, Any] = {"made_anew": _MADE_ANEW}
    given: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for f in dataclasses.fields(of):
        own, value, default = f"of_{f.name}", f.name, ""
        if f.default_factory is not dataclasses.MISSING:
            scope[own], default = f.default_factory, "=made_anew"
            value = f"{own}() if {f.name} is made_anew else {f.name}" if f.init else f"{own}()"
        elif f.default is not dataclasses.MISSING:
            scope[own], default = f.default, f"={own}"
        if f.init:
            (by_name if f.kw_only else given).append(f.name + default)
            body.append(f"self.{f.name} = {value}")
        elif default:
            body.append(f"self.{f.name} = {value if f.default is dataclasses.MISSING else own}")
    if hasattr(of, "__post_init__"):
        body.append("self.__post_init__()")
    words = ", ".join(["self", *given, *(["*", *by_name] if by_name else ())])
    exec(f"def __init__({words}):\n  " + "\n  ".join(body or ["pass"]), scope)
    return scope["__init__"]


_MADE_ANEW = object()
"""The default of a field of which each object has its own."""


def _values(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda _: None


def _equal(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    return lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(values: Callable[[object], object]) -> Callable[[object], int]:
    return lambda self: hash(values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
