"""How many programs are drawn of those that are compiled; `make fuzz` draws as many as its profile says."""

from __future__ import annotations

from hypothesis import settings

_SHORT = 20


def few(count: int, most: int | None = None) -> settings:
    """So many in the short profile; in another one its own number, or `most` where that is less."""
    own = settings().max_examples
    if own <= _SHORT:
        return settings(max_examples=count)
    return settings(max_examples=own if most is None else min(own, most))
