"""Functions that a source has, and of which compilers make nothing by themselves: templates without instances, and
inline and static functions that nobody calls. Another source that includes the first and takes their address asks for
them."""

from __future__ import annotations

import os
from dataclasses import replace

from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.spelling import Spelling, written

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


def _request(asked: Spelling, lang: str) -> str:
    """A variable that nobody uses: it goes when the program is put together."""
    if lang == "c":
        return f"void *const {_NAME} = (void *){asked.name};\n"
    address = "&" + str(Spelling(asked.scopes, asked.name, asked.arguments))
    if asked.parameters is None:
        return _variable(address)
    return _CHOICE + _variable(f"je_choice<{', '.join(asked.parameters)}>::of({address})")


def _variable(value: str) -> str:
    return f"extern const decltype({value}) {_NAME};\nconst decltype({value}) {_NAME} = {value};\n"
