"""The example at the top of the README runs as it stands there, and says what is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_first_example(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(README), "exec"), names)
    assert capsys.readouterr().out
    x = jnp.arange(1.0, 5.0)
    np.testing.assert_allclose(names["soft_norm"](x), np.sqrt(31))


def test_local_links() -> None:
    for link in re.findall(r"\]\((?!http)([^)#]+)", README.read_text()):
        assert (README.parent / link).exists(), link
