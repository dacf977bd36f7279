"""What is reached from some things step by step, each once: what values are made of, where control goes, who calls.

reached([block], cfg.succs.__getitem__)         the block, and all that control comes to from it

found = Reached([value])                        where a step needs more than an expression
for item in found:
    found.add(item.operands)                    these come by as well, unless they did
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from jax_enzyme.ir.instructions import Instruction
from jax_enzyme.ir.values import Value

N = TypeVar("N", bound=Hashable)


class Reached(Generic[N]):
    """Goes over what it starts with and what is added meanwhile, last in, first out, and holds it all then. Its length
    is how many came by. `within` says what is let in."""

    def __init__(self, start: Iterable[N], within: Callable[[N], bool] | None = None) -> None:
        self._all: dict[N, None] = {}
        self._pending: list[N] = []
        self._within = within
        self.add(start)

    def add(self, more: Iterable[N]) -> None:
        for item in more:
            if item not in self._all and (self._within is None or self._within(item)):
                self._all[item] = None
                self._pending.append(item)

    def __iter__(self) -> Iterator[N]:
        while self._pending:
            yield self._pending.pop()

    def __contains__(self, item: object) -> bool:
        return item in self._all

    def __len__(self) -> int:
        return len(self._all) - len(self._pending)

    @property
    def all(self) -> dict[N, None]:
        """In the order in which they were added."""
        return self._all


def reached(
    start: Iterable[N], onward: Callable[[N], Iterable[N]], within: Callable[[N], bool] | None = None
) -> dict[N, None]:
    """All that is reached, what it starts from included, in the order of discovery; of what `within` lets in."""
    found = Reached(start, within)
    for item in found:
        found.add(onward(item))
    return found.all


def bottom_up(start: N, parts: Callable[[N], Iterable[N]], known: Container[N]) -> Iterator[tuple[N, bool]]:
    """A thing, and what it is made of that is not `known` yet, each behind its parts, to be known before the next one
    is asked for; and whether parts of it are not known all the same, as it is one of theirs."""
    pending, begun = [start], set[N]()
    while pending:
        item = pending[-1]
        missing = [] if item in known else [part for part in parts(item) if part not in known]
        if missing and item not in begun:
            begun.add(item)
            pending += missing
            continue
        pending.pop()
        if item not in known:
            yield item, bool(missing)


def led_to(begin: Iterable[N], all_: Iterable[N], from_: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """What is reached the other way round: of all things those that come from where it begins, and these."""
    onward: dict[N, list[N]] = {}
    for item in all_:
        for source in from_(item):
            onward.setdefault(source, []).append(item)
    return reached(begin, lambda item: onward.get(item, ()))


def made_of(value: Value) -> list[Value]:
    """The operands of an instruction; nothing for other values."""
    return value.operands if isinstance(value, Instruction) else []
