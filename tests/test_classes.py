"""Classes of fields behave as those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from jax_enzyme import classes

KINDS = (
    {},
    {"frozen": True},
    {"frozen": True, "eq": False},
    {"eq": False, "slots": True},
    {"frozen": True, "slots": True},
)


def made(dataclass: Any, **kind: bool) -> Any:
    @dataclass(**kind)
    class Pair:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        rank: int = dataclasses.field(default=0, compare=False, repr=False, kw_only=True)

    Pair.__qualname__ = "Pair"
    return Pair


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_objects_are_made_shown_compared_and_replaced_alike(kind: dict[str, bool]) -> None:
    ours, theirs = made(classes.dataclass, **kind), made(dataclasses.dataclass, **kind)
    for of in (ours, theirs):
        one = of(1, rank=3)
        assert dataclasses.replace(one, x=2).x == 2 and dataclasses.asdict(one) == {"x": 1, "y": [], "rank": 3}
        assert copy.copy(one).y is one.y and one.__class__.__match_args__ == ("x", "y")
    assert repr(ours(1, [2])) == repr(theirs(1, [2]))
    for x, y, rank in ((1, [], 1), (1, [2], 0), (2, [], 0)):
        assert (ours(1) == ours(x, y, rank=rank)) is (theirs(1) == theirs(x, y, rank=rank))
    assert ours(1) != theirs(1)
    assert (ours.__hash__ is None) is (theirs.__hash__ is None)
    if kind.get("frozen") and kind.get("eq", True):
        assert hash(ours(1, ())) == hash(ours(1, (), rank=2)) != hash(ours(2, ()))


@classes.dataclass(frozen=True, slots=True)
class Named:
    """Has its own words for itself."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named)


@classes.dataclass(frozen=True)
class Empty:
    """Nothing."""


@pytest.mark.parametrize("slots", [False, True])
def test_what_objects_are_made_of_is_alike_in_classes_that_go_on_from_others(slots: bool) -> None:
    def classes_of(dataclass: Any) -> tuple[Any, Any]:
        @dataclass(slots=slots)
        class Base:
            x: int
            low: int = dataclasses.field(default=3, init=False)
            found: list[int] = dataclasses.field(default_factory=list, init=False)

            def __post_init__(self) -> None:
                self.found.append(self.x)

        @dataclass(slots=slots)
        class Derived(Base):
            y: int = 5
            seen: dict[int, int] = dataclasses.field(default_factory=dict, kw_only=True)

        return Derived, Base

    for derived, base in (classes_of(classes.dataclass), classes_of(dataclasses.dataclass)):
        one, other = derived(1, 2), derived(1)
        assert dataclasses.asdict(one) == {"x": 1, "low": 3, "found": [1], "y": 2, "seen": {}} and other.y == 5
        assert one.seen is not other.seen and one.found is not other.found and base(4).found == [4]
        for wrong in (lambda of=derived: of(), lambda of=derived: of(1, 2, {}), lambda of=derived: of(1, low=2)):
            with pytest.raises(TypeError):
                wrong()


def test_what_a_class_defines_itself_stays() -> None:
    assert repr(Named("n")) == "n" and Named("n") == Named("m") and hash(Named("n")) == hash(Named("n"))
    assert Empty() == Empty() and hash(Empty()) == hash(Empty()) and repr(Empty()) == "Empty()"
    assert pickle.loads(pickle.dumps(Named("n"))).name == "n"
