"""Questions that are asked again and again: what a method answers is found once for each object and each question."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def remembered(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method, whose answers its object keeps as long as it lives. (`functools.cache` would keep the object.) On the
    way to an answer the same question must not come up."""
    name = f"answers of {method.__qualname__}"

    @wraps(method)
    def ask(self: S, *question: P.args, **named: P.kwargs) -> R:
        known: dict[object, R] | None = self.__dict__.get(name)
        if known is None:
            known = self.__dict__[name] = {}
        key = (*question, *named.items()) if named else question
        if key not in known:
            known[key] = method(self, *question, **named)
        return known[key]

    return ask
