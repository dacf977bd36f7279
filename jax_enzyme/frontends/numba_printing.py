"""`print` in functions that Numba compiles, by C's printf: Numba's own calls Python, for which a kernel has no lock."""

from __future__ import annotations

import importlib
from typing import Any


def lower_print(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> Any:
    """Emits a call of `print` with arguments of the types in Numba's `signature`."""
    cgutils = importlib.import_module("numba.core.cgutils")
    texts: list[str] = []
    values: list[Any] = []
    for type_, value in zip(signature.args, arguments, strict=True):
        text, found = _shown(builder, type_, value, context)
        texts.append(text)
        values += found
    cgutils.printf(builder, " ".join(texts) + "\n", *values)
    return context.get_dummy_value()


def _shown(builder: Any, type_: Any, value: Any, context: Any) -> tuple[str, list[Any]]:
    """The format of a value, and what it formats. Of arrays and the like only the type is shown."""
    types, ir = importlib.import_module("numba").types, importlib.import_module("llvmlite.ir")
    match type_:
        case types.Literal():
            return str(type_.literal_value).replace("%", "%%"), []
        case types.Boolean():
            cgutils = importlib.import_module("numba.core.cgutils")
            words = [context.insert_const_string(builder.module, word) for word in ("True", "False")]
            return "%s", [builder.select(cgutils.is_true(builder, value), *words)]
        case types.Integer():
            extend = builder.sext if type_.signed else builder.zext
            wide = value if type_.bitwidth == 64 else extend(value, ir.IntType(64))
            return "%lld" if type_.signed else "%llu", [wide]
        case types.Float():
            return "%.16g", [value if type_.bitwidth == 64 else builder.fpext(value, ir.DoubleType())]
        case types.Complex():
            parts = context.make_complex(builder, type_, value)
            real, imaginary = (
                _shown(builder, type_.underlying_float, part, context)[1] for part in (parts.real, parts.imag)
            )
            return "(%.16g%+.16gj)", [*real, *imaginary]
        case _:
            return f"<{type_}>".replace("%", "%%"), []
