"""What a Numba function raises, as text. Numba itself keeps it pickled, for a caller in Python.

    if x[0] > 1:
        raise ValueError("too big")      returns the status 713064127, which stands for "ValueError: too big (f.py:12)"

The statuses are digests of their texts, so that the same function is the same program in every process.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterable
from typing import Any

from jax_enzyme.ir.instructions import Return
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import int_value

_FIRST = 2
"""Numba's own status of an exception is 1; all from there on are exceptions to it."""
_LAST = 2**31 - 1


def convention(target: Any, texts: dict[int, str]) -> Any:
    """Numba's calling convention for a target, with a status for each text, which is noted in `texts`."""
    numbas = importlib.import_module("numba.core.callconv")

    class Convention(numbas.CPUCallConv):
        status: int | None = None

        def return_user_exc(
            self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
        ) -> None:
            said = ", ".join(map(str, exc_args or ()))
            self.status = _noted(texts, exc, said, loc)
            super().return_user_exc(builder, exc, exc_args, loc, func_name)
            self.status = None

        def return_dynamic_user_exc(
            self, builder: Any, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
        ) -> None:
            self.status = _noted(texts, exc, "", loc)
            super().return_dynamic_user_exc(builder, exc, exc_args, nb_types, loc, func_name)
            self.status = None

        def _return_errcode_raw(self, builder: Any, code: Any) -> None:
            own = self.status is not None and code is numbas.RETCODE_USEREXC
            super()._return_errcode_raw(builder, code.type(self.status) if own else code)

    return Convention(target)


def statuses(modules: Iterable[Module]) -> set[int]:
    """The statuses that functions of these modules return as constants."""
    ends = (block.terminator for m in modules for function in m.functions.values() for block in function.blocks)
    found = (int_value(end.operands[0]) for end in ends if isinstance(end, Return) and end.operands)
    return {status for status in found if status is not None}


def _noted(texts: dict[int, str], exception: Any, said: str, place: Any) -> int:
    name = getattr(exception, "__name__", "exception")
    where = f" ({place.filename}:{place.line})" if place is not None else ""
    text = f"{name}: {said}{where}" if said else f"{name}{where}"
    status = _FIRST + zlib.crc32(text.encode()) % (_LAST - _FIRST)
    texts[status] = text
    return status
