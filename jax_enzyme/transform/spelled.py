"""How a signature declares what the source has: the remedy where it has something else.

double **a          a: f64[n][m]        real(8) :: x(:, :)      x: f64[n,m]
double (*x)[3]      x: f64[n,3]         bool b                  b: bool
"""

from __future__ import annotations

from itertools import count

from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Module
from jax_enzyme.signature.model import Order
from jax_enzyme.transform.described import described
from jax_enzyme.transform.layouts import elements_of
from jax_enzyme.transform.source_types import POINTERS, array_extents, plain_type, source_type

ASK = "je.suggest_signature(source, symbol) shows how the source's parameters are declared"
_LETTERS = "nmklpq"


def spelled(module: Module, name: str, value: MDValue, order: Order, *, by_reference: bool) -> str:
    """How to declare it, with a letter for each size that is not known, or whom to ask where that takes more than
    numbers. `by_reference`: the source's language passes the address of what is described."""
    found = _spelled(module, value, order, by_reference=by_reference)
    return ASK if found is None else f"declare it as `{name}: {found}`"


def _spelled(module: Module, value: MDValue | str | None, order: Order, *, by_reference: bool) -> str | None:
    number = count()

    def size(extent: int | None = None) -> str:
        return str(extent) if extent else _LETTERS[next(number) % len(_LETTERS)]

    if (known := described(module, value)) is not None:
        return f"{known.dtypes[0]}[{','.join(size() for _ in range(known.rank))}]" if known.dtypes else None
    groups: list[str] = []
    while (node := plain_type(module, value)) is not None and node.get("tag") in POINTERS:
        groups.append(size() if node.get("tag") == "DW_TAG_pointer_type" else "")
        value = node.get("baseType")
    extents: list[int | None] = []
    while found := array_extents(module, value):
        extents += found if groups else reversed(found)  # Fortran's are counted from the other end
        value = elements_of(module, value)
    element = source_type(module, value)
    dtype = next(
        (d for piece in element.pieces for d in piece.dtypes or (("i8",) if piece.kind == "bytes" else ())), None
    )
    if dtype is None or element.is_record:
        return None
    if not groups and not by_reference:
        return None if extents else dtype
    rows = [f"[{row}]" for row in groups[:-1]]
    listed = [part for part in (*groups[-1:], *map(size, extents)) if part]
    return f"{dtype}{''.join(rows)}[{','.join(listed if order == 'C' else listed[::-1])}]"
