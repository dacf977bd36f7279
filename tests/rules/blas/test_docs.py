"""The page of the documentation says what the tables say."""

from __future__ import annotations

from pathlib import Path

from jax_enzyme.rules.blas.docs import page
from jax_enzyme.rules.blas.table import bodies, routines

_PAGE = Path(__file__).parents[3] / "docs" / "blas.md"


def test_the_page_is_up_to_date() -> None:
    assert _PAGE.read_text() == page(), "python -m jax_enzyme.rules.blas.docs > docs/blas.md"


def test_every_routine_is_on_the_page() -> None:
    text = page()
    assert all(f"`{name}`" in text for name in (*routines(), *bodies()))
