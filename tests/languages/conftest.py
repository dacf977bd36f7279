"""How the kernels of this folder are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from tests.support.engine import agree, by_turns, native, three_way
from tests.support.tools import need

KERNELS = Path(__file__).parent / "kernels"
TOOLS = {"fortran": "flang-22", "rust": "rustc"}


def check(
    file: str, symbol: str, lang: str, signature: str, dims: dict[str, int], inputs: list[Any], **kw: Any
) -> None:
    """<w, J v> of one kernel by forward mode, reverse mode and differences. The name says in which way it is reversed:
    what a language makes of its constructs is the same to both."""
    tool = TOOLS.get(lang)
    if tool is not None:
        need(tool)
    tolerances = kw.pop("tolerances", ())
    kernel = native((KERNELS / file).read_text(), symbol, signature, dims, lang=lang, **kw)
    agree(three_way(kernel, inputs, sweeps=by_turns(crc32(symbol.encode()))), *tolerances)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of order one, none near another or near where a kernel branches."""
    return np.random.default_rng(seed).uniform(0.3, 1.7, shape)
