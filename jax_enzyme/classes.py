"""Classes of fields, made in a fifth of the time that `dataclasses` takes.

That compiles six functions for a class that is frozen, one by one, and there are hundreds of classes: an eighth of the
time to a first gradient went there. Here the functions are the same for all classes but `__init__`, which `dataclasses`
writes as for a class that is not frozen: it sets attributes, and does so in less than half the time. Whether somebody
changes a frozen object is for the type checker to see, which takes this for `dataclasses.dataclass`; what users are
given is made with that (`docs/decisions/0020-classes-of-fields.md`).
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
            result = dataclasses.dataclass(of, repr=False, eq=False, slots=slots)
            values = _values([f.name for f in dataclasses.fields(result) if f.compare])
            generic = {"__repr__": _repr} if repr else {}
            if eq:
                generic |= {"__eq__": _equal(values), "__hash__": _hash(values) if frozen else None}
            for name in generic.keys() - own:
                setattr(result, name, generic[name])
            return result

        return made if cls is None else made(cls)


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
