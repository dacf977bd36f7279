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
from jax_enzyme.ir.values import Value
from jax_enzyme.signature.formals import Record
from jax_enzyme.transform.layouts import Layout
from jax_enzyme.transform.records import Composer
from jax_enzyme.transform.struct_copies import store_members


@dataclass(frozen=True)
class Returned:
    """What comes, and where it is put."""

    record: Record
    layout: Layout
    place: Value

    def take(self, composer: Composer, sizes: DataLayout, result: Value, *, in_memory: bool) -> None:
        """Stores the members where they belong, behind the call whose result this is."""
        if not in_memory:
            store_members(composer.at, sizes, result, self.place)
        composer.drain(self.record, self.layout, self.place)
