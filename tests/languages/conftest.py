"""How the kernels of this folder are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.support.engine import agree, native, three_way
from tests.support.tools import need

KERNELS = Path(__file__).parent / "kernels"
TOOLS = {"fortran": "flang-22", "rust": "rustc"}


def check(
    file: str, symbol: str, lang: str, signature: str, dims: dict[str, int], inputs: list[Any], **kw: Any
) -> None:
    """<w, J v> of one kernel by forward mode, reverse mode and differences."""
    tool = TOOLS.get(lang)
    if tool is not None:
        need(tool)
    tolerances = kw.pop("tolerances", ())
    kernel = native((KERNELS / file).read_text(), symbol, signature, dims, lang=lang, **kw)
    agree(three_way(kernel, inputs), *tolerances)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of order one, none near another or near where a kernel branches."""
    return np.random.default_rng(seed).uniform(0.3, 1.7, shape)
