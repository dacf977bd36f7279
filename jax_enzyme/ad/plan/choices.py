"""What a plan may use."""

from __future__ import annotations

from dataclasses import fields

from jax_enzyme.classes import dataclass
from jax_enzyme.options import Options


@dataclass(frozen=True)
class Choices:
    """`tape_cost` is as in `Options`; the others are what `Options.without` takes away, as it describes them."""

    tape_cost: float = 1.0
    recomputing: bool = True
    counting: bool = True
    reloading: bool = True
    later_writes: bool = True
    late_sums: bool = True
    packing: bool = True
    snapshots: bool = True
    turned_loops: bool = True
    arms: bool = True

    @staticmethod
    def of(options: Options) -> Choices:
        return Choices(options.tape_cost, **{f.name: False for f in fields(Choices) if f.name in options.without})


ALL = Choices()
