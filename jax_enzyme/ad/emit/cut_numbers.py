"""What looks, as a derivative runs, whether a copy or a clearing of memory cuts a number in two that has a derivative.

    primal      memmove(to, from, n)
    reverse     je.numbers.whole(je.whole.8(to.shadow, from.shadow, n))       before the adjoint of the copy
    forward     je.numbers.whole(je.whole.dot.8(to.shadow, from.shadow, n))   behind the copy of the tangents, of which
                                                                              je.whole.source.8 looked in front of it
                                                                              whether it takes parts of some

Shadows lie as the numbers do, so that their addresses tell. Mostly the two addresses and the length are multiples of
the size, and that is all that is asked. Where one is not, memory may hold a text there, or integers: these have zeros
for shadows, pointers nothing that is a normal number, and words that integers share a NaN.

Records of numbers of several sizes, and what begins at no multiple of these, are looked at as they are laid out around
the addresses, where that is known, and the numbers of one kind that may lie across either end:

    records     je.whole.records.16.0float.4float.8double(to.shadow, from.shadow, n)
                    a double may end behind n, if (n - 8) % 16 is less than 8 and not 0: je.whole.number.8(..., k)

    reverse     false where an adjoint is there of a number that the primal had cut
    forward     false where a part of a tangent was copied; NaN is made of what is left of one otherwise, as of numbers
                that the kernel had there before, and that it need not read again
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from jax_enzyme.ad.emit.copies import Pattern, is_freed_next, numbers_around
from jax_enzyme.ad.emit.cut_number_texts import Look, grid_text, records_text
from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.ad.facts.cut_numbers import Grid, addresses, grid, is_unsure
from jax_enzyme.ad.facts.errors import place_of
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.analysis.objects import is_copy, is_resize
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int, zero
from jax_enzyme.ir.marks import is_told
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.effects import NUMBERS_KNOWN, NUMBERS_WHOLE
from jax_enzyme.transform.derivative_checks import demand


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The checks of one derivation, in a module. None where it `is_off`: on devices, and in derivatives of derivatives,
    which have the checks of these."""

    module: Module
    facts: Facts
    words: Words
    is_off: bool

    def layout(self, call: I.CallBase) -> Grid | Pattern | None:
        """Where the numbers stand that a copy, or a clearing, may cut; None where it cuts none, or nobody knows."""
        if self.is_off or is_told(call) or not is_unsure(self.words, self.facts.activity, call):
            return None
        if is_resize(call) or (is_copy(call) and is_freed_next(call, self.words.points_to)):
            return None  # a block moves to where it has more room: of what it did not hold, nothing is left
        multiples = grid(self.words, self.facts.activity, call)
        if multiples is not None and multiples.alone:
            return multiples
        return numbers_around(self.words, addresses(call)) or multiples

    def check_adjoints(self, at: Builder, call: I.CallBase, shadows: Sequence[Value], length: Value) -> None:
        """Emits the check in front of a call's reverse, where one is needed, by the shadows of what it writes and of
        what it copies."""
        if (layout := self.layout(call)) is not None:
            self._demand(at, call, self._look(Look.ADJOINT, at, layout, shadows, length, const_int(T.I1, 0)))

    def has_no_parts(self, at: Builder, layout: Grid | Pattern, shadows: Sequence[Value], length: Value) -> Value:
        """Emits in front of a copy of tangents whether it copies no parts of any."""
        return self._look(Look.SOURCE, at, layout, shadows, length, const_int(T.I1, 0))

    def check_tangents(
        self,
        at: Builder,
        call: I.CallBase,
        layout: Grid | Pattern,
        shadows: Sequence[Value],
        length: Value,
        no_parts: Value,
    ) -> None:
        """Emits the check behind the copy, or the clearing."""
        parts = at.binary("xor", no_parts, const_int(T.I1, 1))
        self._demand(at, call, self._look(Look.TANGENT, at, layout, shadows, length, parts))

    def of_its_kind(self, at: Builder, call: I.CallBase, is_own: Value, adjoint: Value) -> Value:
        """The adjoint of a number that is read where another kind may lie, whose call tells: there is none elsewhere,
        and what was read for a choice that took something else has an adjoint of 0."""
        is_known = at.binary(
            "or", at.icmp("ne", is_own, zero(is_own.type)), at.fcmp("oeq", adjoint, zero(adjoint.type))
        )
        if not self.is_off:
            self._demand(at, call, is_known, NUMBERS_KNOWN)
        return at.select(is_known, adjoint, const_float(adjoint.type, nan))

    def _look(
        self,
        look: Look,
        at: Builder,
        layout: Grid | Pattern,
        shadows: Sequence[Value],
        length: Value,
        others: Value,
    ) -> Value:
        if isinstance(layout, Grid):
            name = f"{look.value}.{layout.size}.{layout.start}.{layout.source_start}"
            text = grid_text(look, name, layout)
        else:
            name = layout.name.replace("je.copy", look.value)
            text = records_text(look, name, layout)
        return at.call(defined(self.module, name, text), [shadows[0], shadows[-1], length, others])

    def _demand(self, at: Builder, call: I.CallBase, holds: Value, check: str = NUMBERS_WHOLE) -> None:
        place = place_of(self.facts.module, self.facts.origin.get(call, call))
        demand(self.module, at, check, holds, place)
