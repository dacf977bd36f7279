"""The example at the top of the README runs as it stands there, and says what is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_first_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    names: dict[str, Any] = {}
    first, *_ = examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(first.split("\n\n")) <= 3
    for example in examples:
        exec(compile(example, str(README), "exec"), names)
    assert capsys.readouterr().out
    position, earth = names["position"], names["earth"]
    np.testing.assert_allclose(jnp.linalg.norm(position(earth, 100.0)), 1.0, rtol=0.02)
    moved = 1e-6 * jnp.arange(1.0, 7.0)
    differences = (position(earth + moved, 100.0) - position(earth - moved, 100.0)) / 2
    for jacobian in (jax.jacrev(position), jax.jacfwd(position)):
        np.testing.assert_allclose(jacobian(earth, 100.0) @ moved, differences, rtol=1e-8, atol=1e-14)


def test_local_links() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)", README.read_text()):
        assert (README.parent / link).exists(), link
