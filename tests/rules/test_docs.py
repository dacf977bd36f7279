from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jax_enzyme.rules.docs import page
from jax_enzyme.rules.rule import Kind
from jax_enzyme.rules.table import standard

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_is_up_to_date() -> None:
    """If this fails: python -m jax_enzyme.rules.docs > docs/rules.md"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_page_has_every_row() -> None:
    for name, rule in standard().functions.items():
        if name.endswith(("_re", "_im")) and rule.kind is Kind.SMOOTH:
            name = name[:-3]
        assert f"`{name.lstrip('%')}`" in page(), name


def test_the_command_prints_the_page() -> None:
    ran = subprocess.run([sys.executable, "-m", "jax_enzyme.rules.docs"], capture_output=True, text=True, check=True)
    assert ran.stdout == page()
