"""Functions that a source has, and of which compilers make nothing by themselves: templates without instances, and
inline and static functions that nobody calls. Another source that includes the first and takes their address asks for
them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from jax_enzyme.cache import digest
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.spelling import Spelling, written
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import ConstantAggregate, ConstantExpr, Value

_NAME = "je_asked_for"
_CHOICE = """template <class... A> struct je_choice {
  template <class R> static constexpr auto of(R (*f)(A...)) { return f; }
};
"""


def instance(unit: Unit, symbol: str) -> Unit | None:
    """The unit that has the function as well; None for what is no name of one."""
    asked = written(symbol)
    if not asked.name.isidentifier():
        return None
    source = unit.source
    text = f'#include "{os.path.abspath(source.path)}"\n' if source.path else source.contents.decode() + "\n"
    text += _request(asked, source.lang)
    return replace(unit, source=replace(source, contents=text.encode(), path=None, name=os.path.basename(source.name)))


def chosen(ir: str, symbol: str) -> list[str]:
    """The function that the compiler of such a unit took the name for: it may lie in an inline namespace, or be known
    there by `using`."""
    variable = parse(ir).globals.get(_name(written(symbol)))
    held = () if variable is None or variable.initializer is None else (variable.initializer,)
    return [value.name for value in reached(held, _parts) if isinstance(value, Function)]


def _parts(value: Value) -> Sequence[Value]:
    match value:
        case ConstantAggregate():
            return value.elements
        case ConstantExpr():
            return value.operands
        case _:
            return ()


def _name(asked: Spelling) -> str:
    return f"{_NAME}_{digest(str(asked))[:8]}"  # more may be asked for of one source


def _request(asked: Spelling, lang: str) -> str:
    """A variable that nobody uses: it goes when the program is put together."""
    name = _name(asked)
    if lang == "c":
        return f"void *const {name} = (void *){asked.name};\n"
    address = "&" + str(Spelling(asked.scopes, asked.name, asked.arguments))
    if asked.parameters is None:
        return _variable(name, address)
    choice = _CHOICE.replace("je_choice", f"{name}_of")
    return choice + _variable(name, f"{name}_of<{', '.join(asked.parameters)}>::of({address})")


def _variable(name: str, value: str) -> str:
    return f"extern const decltype({value}) {name};\nconst decltype({value}) {name} = {value};\n"
