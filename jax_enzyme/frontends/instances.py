"""Functions that a source has, and of which compilers make nothing by themselves: templates without instances, and
inline and static functions that nobody calls. Another source that includes the first and takes their address asks for
them."""

from __future__ import annotations

import os
from dataclasses import replace

from jax_enzyme.cache import digest
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
    name = f"{_NAME}_{digest(str(asked))[:8]}"  # more may be asked for of one source
    if lang == "c":
        return f"void *const {name} = (void *){asked.name};\n"
    address = "&" + str(Spelling(asked.scopes, asked.name, asked.arguments))
    if asked.parameters is None:
        return _variable(name, address)
    choice = _CHOICE.replace("je_choice", f"{name}_of")
    return choice + _variable(name, f"{name}_of<{', '.join(asked.parameters)}>::of({address})")


def _variable(name: str, value: str) -> str:
    return f"extern const decltype({value}) {name};\nconst decltype({value}) {name} = {value};\n"
