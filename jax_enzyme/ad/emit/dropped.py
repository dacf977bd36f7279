"""Cotangents of what a `select` drops: zero, also where a partial is infinite or no number.

    forward   %w = fmul double %x, %y                reverse   %wbar = select i1 %c, double %ybar, double 0.0
              %y = select i1 %c, double %w, ...                %p = fmul double %wbar, %y
                                                               %term = select i1 %c, double %p, double 0.0

LLVM makes branches into selects, moves quotients out of loops, and then computes `sqrt(x)` of negative x as well: the
cotangent there is an exact zero, which an infinite partial must not spoil. Where selects of one block alone use a
value, their conditions say when it is dropped, and the mask costs next to nothing: that is for factors that are made of
the kernel's own numbers, as a discount is. Any other partial may be infinite at one place, where the cotangent is 0 for
another reason (a later choice, or 1 / (1 + w)), and is asked for together with it (decision 22).
"""

from __future__ import annotations

from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import zero
from jax_enzyme.ir.values import BasicBlock, ConstantInt, Value

_ALWAYS = ConstantInt(T.I1, 1)


class Dropped:
    """When the values of a block that is reversed are used. `within_block` are those that only their own block uses."""

    def __init__(self, facts: Facts, sources: Sources, within_block: frozenset[Value]) -> None:
        self._facts = facts
        self._sources = sources
        self._within_block = within_block
        self._uses: dict[Value, Value | None] = {}
        self._made_in: dict[Value, BasicBlock] = {}
        self._here: Value | None = None

    def enter(self, instruction: I.Instruction) -> None:
        """An instruction is reversed: what it uses is used where its own value is."""
        uses = self._known(self._uses.pop(instruction, None))
        self._here = _ALWAYS
        if self.may_be(instruction):
            self._here = uses if instruction in self._within_block else None

    def may_be(self, instruction: I.Instruction) -> bool:
        return self._facts.may_be_dropped(instruction)

    def leave(self) -> None:
        """What is added to from now on is not told."""
        self._here = None

    def use(self, value: Value, condition: Value | None = None, holds: bool = True) -> None:
        """The instruction uses a value; where a condition of its own holds, or does not."""
        when = self._known(self._here)
        if when is not None and condition is not None:
            when = self._narrowed(when, condition, holds)
        if value in self._uses:
            when = self._either(self._known(self._uses[value]), when)
        self._uses[value] = when
        if when is not None:
            self._made_in.setdefault(when, self._sources.builder.block)

    def _known(self, when: Value | None) -> Value | None:
        """What is known of a use in this block of the reverse sweep, of which one block of the kernel may have several
        with branches between them."""
        here = self._sources.builder.block
        return when if when is _ALWAYS or (when is not None and self._made_in.get(when) is here) else None

    def masked(self, term: Value, adjoint: Value, fixed: Value | None, is_setting: bool) -> Value:
        """A term of the instruction's operand, a partial times an `adjoint`, which is nothing where the instruction is
        dropped. `fixed` is the partial where it is a value that is multiplied by and that no iteration changes,
        `is_setting` says of it that no array's numbers are in it."""
        builder = self._sources.builder
        here = self._known(self._here)
        if is_setting and here is not None:
            return term if here is _ALWAYS else builder.select(here, term, zero(term.type))
        return self._unless_spoilt(term, adjoint, fixed)

    def _unless_spoilt(self, term: Value, adjoint: Value, factor: Value | None) -> Value:
        """Nothing where a partial that is infinite, or no number, meets an adjoint of exactly 0. Any other term stays
        even then, since its derivatives by the adjoint are not 0: a fit's residuals vanish, its Hessian does not. Of a
        `factor` that is the partial, and the same in all iterations, it is asked once whether it is a finite number:
        zero times anything else is none, and iterations that hand adjoints on do not wait for the product."""
        builder = self._sources.builder
        unused = builder.fcmp("oeq", adjoint, zero(adjoint.type))
        asked = term if factor is None or factor.type != term.type else builder.binary("fsub", factor, factor)
        spoilt = builder.binary("and", unused, builder.fcmp("uno", asked, zero(term.type)))
        return builder.select(spoilt, zero(term.type), term)

    def _narrowed(self, when: Value, condition: Value, holds: bool) -> Value | None:
        if condition.type != T.I1:
            return None
        builder = self._sources.builder
        chosen = condition if holds else builder.binary("xor", condition, _ALWAYS)
        return chosen if when is _ALWAYS else builder.select(when, chosen, zero(T.I1))

    def _either(self, one: Value | None, other: Value | None) -> Value | None:
        if one is None or other is None:
            return None
        if _ALWAYS in (one, other):
            return _ALWAYS
        return self._sources.builder.binary("or", one, other)
