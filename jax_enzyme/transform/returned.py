"""A structure that a function returns by value: from registers or memory into the buffers of its members.

    struct pair { double x, y; };  struct pair f(double);        "a: f64 -> {x: f64, y: f64}"

    %1 = call { double, double } @f(double %a)      ->      %2 = extractvalue { double, double } %1, 0
                                                            store double %2, ptr %place          (and so on)
                                                            %3 = load double, ptr %place
                                                            store double %3, ptr %return.x       (and so on)

Targets return a small structure in registers, in words that lie in memory as they are numbered, and others through a
pointer in front of all parameters (`sret`).
"""

from __future__ import annotations

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.values import Value
from jax_enzyme.signature.formals import Record
from jax_enzyme.transform.layouts import Layout
from jax_enzyme.transform.records import Composer


@dataclass(frozen=True)
class Returned:
    """What comes, and where it is put."""

    record: Record
    layout: Layout
    place: Value

    def take(self, composer: Composer, sizes: DataLayout, result: Value, *, in_memory: bool) -> None:
        """Stores the members where they belong, behind the call whose result this is."""
        if not in_memory:
            _spill(composer.at, sizes, result, self.place)
        composer.drain(self.record, self.layout, self.place)


def _spill(at: Builder, sizes: DataLayout, value: Value, place: Value) -> None:
    """Stores a value number by number."""
    body = sizes.body(value.type)
    if not isinstance(body, T.StructType | T.ArrayType):
        at.store(value, place, 1)
        return
    kinds = body.elements if isinstance(body, T.StructType) else (body.element,) * body.count
    for index, (kind, offset) in enumerate(zip(kinds, sizes.offsets(body), strict=True)):
        _spill(at, sizes, at.extract_value(value, index, kind), at.offset(place, offset))
