"""The tree of errors."""

from __future__ import annotations

import pickle

import pytest

from jax_enzyme import errors

ALL = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.JaxEnzymeError)]


@pytest.mark.parametrize("kind", ALL)
def test_cause_place_remedy(kind: type[errors.JaxEnzymeError]) -> None:
    error = kind("what", "where:3", "do this\nand that")
    assert str(error) == "what\n  place: where:3\n  remedy: do this\n          and that"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.cause, again.place, again.remedy) == ("what", "where:3", "do this\nand that")
    assert str(kind("only what")) == "only what"


def test_a_message_is_one_screen() -> None:
    error = errors.CompileError("\n".join(f"line {i}" for i in range(1000)), "a.c:1")
    assert len(str(error).splitlines()) < 50
    assert "line 999" in error.cause


def test_outcomes_are_kept_apart() -> None:
    assert not issubclass(errors.NoRuleError, errors.NotDifferentiableError)
    assert not issubclass(errors.NotDifferentiableError, errors.NoRuleError)
    assert issubclass(errors.ArgumentError, errors.SignatureError | TypeError)
    assert issubclass(errors.SignatureError, ValueError)
