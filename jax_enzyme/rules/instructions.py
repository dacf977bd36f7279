"""Rules of LLVM's arithmetic instructions, by opcode.

Instructions that only move values (`select`, `phi`, `freeze`, `extractvalue`, `shufflevector`, loads, stores, ...) are
differentiated by the engine through their structure and have no row here.
"""

from __future__ import annotations

from jax_enzyme.rules.rule import Rule, smooth, zero

_SOURCE = "LLVM LangRef"
_ALL = ((-3.0, 3.0),)
_INTEGER = "an integer result is piecewise constant in its argument"
_NO_FLOAT = "no argument is a floating-point number"

ROWS: tuple[Rule, ...] = (
    smooth("fneg", "-1", domain=_ALL, source=_SOURCE),
    smooth("fadd", "1", "1", domain=_ALL * 2, source=_SOURCE),
    smooth("fsub", "1", "-1", domain=_ALL * 2, source=_SOURCE),
    smooth("fmul", "x1", "x0", domain=_ALL * 2, source=_SOURCE),
    smooth("fdiv", "1 / x1", "-y / x1", domain=((-3.0, 3.0), (0.3, 3.0)), source=_SOURCE),
    smooth(
        "frem",
        "1",
        "-rint((x0 - y) / x1)",
        domain=((-9.0, 9.0), (0.7, 2.0)),
        edges="at a jump that of the side whose value the instruction returns",
        source=_SOURCE,
    ),
    smooth("fpext", "1", domain=_ALL, source=_SOURCE, edges="the product is converted to the argument's type"),
    smooth("fptrunc", "1", domain=_ALL, source=_SOURCE, edges="the product is converted to the argument's type"),
    zero("fptosi", _INTEGER, result="i", source=_SOURCE),
    zero("fptoui", _INTEGER, result="i", source=_SOURCE),
    zero("sitofp", _NO_FLOAT, parameters="i", source=_SOURCE),
    zero("uitofp", _NO_FLOAT, parameters="i", source=_SOURCE),
    zero("fcmp", "a comparison is piecewise constant", parameters="ff", result="i", source=_SOURCE),
)

RECIPROCAL = smooth("fdiv of 1 or -1", "1 / x1", "-y * y * x0", domain=((1.0, 1.0), (0.3, 3.0)), source=_SOURCE)
"""Of 1 and -1 by a number: nothing is divided again, and the result alone is kept."""
