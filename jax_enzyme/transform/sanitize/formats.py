"""Which arguments a format of C's `printf` reads texts through.

printf("%d: %*s, %.3s", ...)          argument 2 (behind the width in 1); argument 3, at most 3 bytes of it
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jax_enzyme.classes import dataclass

_CONVERSION = re.compile(r"%[-+ #0']*(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|q|j|z|t|L)?(.)", re.DOTALL)
_NOTHING = "%m"
"""What is written without an argument."""


@dataclass(frozen=True)
class Text:
    """An argument, counted from the first one behind the format. `most`: so many bytes are read, if none of them is 0;
    `limit`: as many as that argument says."""

    argument: int
    most: int | None = None
    limit: int | None = None


def texts(form: str) -> Iterator[Text]:
    """The texts that a format reads; none of one that counts its arguments itself (`%2$s`), or of wide characters."""
    if "$" in form:
        return
    index = 0
    for found in _CONVERSION.finditer(form):
        width, precision, length, kind = found.groups()
        index += width == "*"
        limit = index if precision == "*" else None
        index += precision == "*"
        if kind == "s" and length != "l":
            yield Text(index, None if precision in (None, "*") else int(precision or 0), limit)
        index += kind not in _NOTHING
