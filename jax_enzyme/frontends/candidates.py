"""Which units of a set may define a name: told from their texts (`definitions`), and kept in an index, since a set may
have thousands of units and be asked for hundreds of names."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path

from jax_enzyme.frontends.definitions import PASTING, headers_with, parts
from jax_enzyme.frontends.gathering import Unit
from jax_enzyme.frontends.runtime_library import provides
from jax_enzyme.frontends.spelling import OF_THE_LINKER, Spelling, spelling, written
from jax_enzyme.frontends.symbols import nearest
from jax_enzyme.rules.effects import effect
from jax_enzyme.rules.table import standard

_FEW = 8
"""Of so many units it is cheap to see all that they define."""
_MOST_PASTED = 3
"""Of more words macros paste no name together that nobody finds by parts of it: the letters of a text make any name."""
_SCOPED = ("c++", "cuda")
"""Languages whose functions are written with their classes, or inside of them."""
_TYPE = re.compile(rb"\b(?!const\b)[A-Za-z_]\w*\b(?!::)")


def plain(symbol: str) -> str:
    """The name of a symbol in its source, in lower case."""
    return spelling(symbol).name.lower()


def may_define(unit: Unit, name: str) -> bool:
    """Whether the text of a unit is likely to define a name, or does not tell."""
    return unit.likely is None or not unit.likely.isdisjoint(_spelt(name))


def any_may_define(units: Iterable[Unit], names: Iterable[str]) -> bool:
    wanted = frozenset(names)
    return any(may_define(unit, name) for unit in units for name in wanted)


def may_bind(unit: Unit, names: Iterable[str]) -> bool:
    """Whether a Fortran unit may give any of some names to variables or procedures of its own, as C has them."""
    return unit.bound is None or not unit.bound.isdisjoint(names)


def may_rename(unit: Unit, name: str) -> bool:
    """Whether a unit is likely to define what a macro without parameters calls by a name."""
    return unit.likely is not None and any(not unit.likely.isdisjoint(unit.renamed.get(n, ())) for n in _spelt(name))


def may_be_renamed(unit: Unit, name: str) -> bool:
    """Whether a macro without parameters puts another name for one that the text of a unit is likely to define."""
    names = unit.likely and unit.likely.intersection(_spelt(name))
    return bool(names) and any(not names.isdisjoint(macros) for macros in unit.renamed.values())


def may_paste(unit: Unit) -> bool:
    """Whether macros of a unit make names of several words."""
    return unit.mentioned is not None and PASTING in unit.mentioned


def may_have(unit: Unit, symbol: str) -> bool:
    """Whether code that is made of a unit may have a function at all: its text has the name, or one that it includes,
    or macros may make it, or the text does not tell."""
    name = (spelling(symbol) if symbol.isidentifier() else written(symbol)).name.lower()
    words = unit.words if name.isidentifier() else None
    if words is None or not words.isdisjoint(_spelt(name)) or may_define(unit, name):
        return True
    return PASTING in words and 1 < _pieces(name, words) <= _MOST_PASTED


def _has_whole_names(unit: Unit) -> bool:
    """Whether all names that a unit defines stand in its text, or in those that it includes, as they are."""
    return unit.source.lang == "c" and unit.mentioned is not None and PASTING not in unit.mentioned


def _spelt(name: str) -> tuple[str, str]:
    """What C may call a function whose name is known without what Fortran puts behind it."""
    return name, f"{name}_"


class Candidates:
    """The units of a set, by the names that they are likely to define."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, unit in enumerate(self._units):
            for name in unit.likely or ():
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def _untold(self) -> list[int]:
        return [place for place, unit in enumerate(self._units) if unit.likely is None]

    @cached_property
    def _hints(self) -> dict[Unit, frozenset[str] | None]:
        return {unit: unit.texts.hinted(unit.source, unit.flags) for unit in self._units if unit.named}

    @cached_property
    def _pasting(self) -> list[tuple[Unit, frozenset[str]]]:
        words = ((u, u.texts.pasted(u.source, u.flags, all_words=u.named)) for u in self._units)
        return [(unit, found) for unit, found in words if found]

    def hiding(self, names: Collection[str], done: Container[Unit]) -> list[Unit]:
        """The units, but those that are done, that may define names, all of functions of libraries, of which their own
        texts do not tell; of units that nobody named those that seem to."""
        wanted = frozenset(names)
        pasting = (
            {unit for unit, words in self._pasting if any(_pieces(name, words) for name in names)} if names else ()
        )
        return [u for u in self._units if wanted and u not in done and (u in pasting or self._hides(u, wanted))]

    def _hides(self, unit: Unit, names: frozenset[str]) -> bool:
        if unit.named:
            hints = self._hints[unit]
            return hints is None or not hints.isdisjoint(names)
        return unit.texts.makes(unit.source, unit.flags, names) is not False

    def defining(self, asked: Spelling) -> Iterator[list[Unit]]:
        """The units that may define what somebody asks for, in their order: first those that are named, which come
        before others that define it too, then those that tell most of it, then all."""
        found = self._places(asked.name.lower())
        named = [place for place in found if self._units[place].named]
        for places in (named, self._within(found, asked), found):
            yield [self._units[place] for place in sorted(places)]

    def near(self, name: str) -> Sequence[Unit]:
        """The units that are likely to define what is called nearly like a name that nobody has; all where none is, or
        there are few."""
        places = {place for near in nearest(name, self._by_name) for place in self._by_name[near]}
        few = len(self._units) <= _FEW
        return self._units if few or not places else [self._units[place] for place in sorted(places)]

    def having(self, symbols: Iterable[str], done: Container[Unit] = ()) -> list[Unit]:
        """The units that may define any of some symbols, in their order, but those that are done: where any are left
        whose own text has the name of a function's class, or namespace, only those. All classes of a library may have
        the same few functions."""
        found: set[int] = set()
        for symbol in symbols:
            left = [place for place in self._with_symbol(symbol) if self._units[place] not in done]
            found.update(self._within(self._exact(left, symbol), spelling(symbol)))
        return [self._units[place] for place in sorted(found)]

    def _exact(self, places: Sequence[int], symbol: str) -> Sequence[int]:
        """Of the units in C that nobody named those that have a symbol as it is, where any has: others have a variable
        `scale` where `scale_` is a function of f2c's, or a macro that makes it of this."""
        free = {place for place in places if self._units[place].source.lang == "c" and not self._units[place].named}
        exact = {place for place in free if symbol.lower() in (self._units[place].likely or ())}
        return [place for place in places if place in exact or place not in free] if exact else places

    def _within(self, places: Collection[int], asked: Spelling) -> Collection[int]:
        """The units whose text has the name of what is around a function of C++; all where none has, or nothing is. Of
        these those that write the two names together, as definitions outside of their class are written; of these
        those where most types of its parameters stand behind its name, as the files of a library may all define an
        operator of one name, each for its own types."""
        sources = {place: self._units[place].source for place in places}
        scope = asked.scopes[-1].split("<")[0].encode() if asked.scopes else b""
        found = [p for p, source in sources.items() if source.lang not in _SCOPED or scope in source.contents] or places
        texts = {place: sources[place].contents for place in found if sources[place].lang in _SCOPED}
        for told in (_together(asked), _typed(asked)):
            counts = {place: told(text) for place, text in texts.items()}
            texts = {place: texts[place] for place, count in counts.items() if count == max(counts.values())}
        return [place for place in found if place in texts or sources[place].lang not in _SCOPED]

    def _places(self, name: str) -> set[int]:
        return {*self._untold, *(place for spelt in _spelt(name) for place in self._by_name.get(spelt, ()))}

    def _with_symbol(self, symbol: str) -> Iterator[int]:
        """What Fortran calls `free` is no `free` of C's unless the source binds it."""
        name = plain(symbol)
        of_fortran = symbol.endswith("_") or symbol.startswith("_Q")
        for place in self._places(name):
            bound = self._units[place].bound
            if of_fortran or bound is None or name in bound:
                yield place


def _together(asked: Spelling) -> Callable[[bytes], int]:
    """Whether a text calls a function of C++ what it is called where it is defined outside of what is around it."""
    scope, name = asked.scopes[-1].split("<")[0] if asked.scopes else "", asked.name
    pattern = re.compile(rf"\b{re.escape(scope)}\s*(?:<[^;{{}}()]*>\s*)?::\s*{re.escape(name)}(?!\w)".encode())
    return lambda text: bool(scope) and pattern.search(text) is not None


def _typed(asked: Spelling) -> Callable[[bytes], int]:
    """Of how many parameters of a function of C++ the types stand where they should, in a list behind its name."""
    pattern = re.compile(rf"(?<!\w){re.escape(asked.name)}\s*\(([^()]*)\)".encode())
    wanted = [frozenset(_TYPE.findall(of.encode())) for of in asked.parameters or ()]

    def told(text: bytes) -> int:
        lists = ([set(_TYPE.findall(of)) for of in listed.split(b",")] for listed in pattern.findall(text))
        return max(
            (sum(map(frozenset.issubset, wanted, given)) for given in lists if len(given) == len(wanted)), default=0
        )

    return told


def with_part_of(name: str, units: Sequence[Unit]) -> list[Unit]:
    """The units that may define a name which no text defines, where macros make names. First those that define a name
    for which a macro puts this one; then those that include a file in which it has its body, where one is called like
    such a file only that; then those that paste words together and have some of which the name is made, the
    fewer the better; then those that are likely to define the longest part of it: what macros put in front of names, or
    behind them, may be somewhere else. Then all that mention a part. Where names do not change, none has it."""
    if found := [unit for unit in units if may_rename(unit, name)]:
        return found
    holders = {unit: headers for unit in units if (headers := headers_with(unit.source, unit.flags, _spelt(name)))}
    if holders:
        alike = [unit for unit, headers in holders.items() if any(_is_alike(unit.name, one.name) for one in headers)]
        return alike or list(holders)
    pasting = list(filter(may_paste, units))
    made = [(count, unit) for unit in pasting if (count := _pieces(name, unit.mentioned or frozenset())) > 1]
    if made:
        fewest = min(count for count, _ in made)
        return [unit for count, unit in made if count == fewest]
    making = [unit for unit in units if not _has_whole_names(unit)]
    for part in parts(name):
        if found := [unit for unit in making if unit.likely is not None and part in unit.likely]:
            return found
    return [unit for unit in units if _mentions(unit, name)]


def _is_alike(name: str, other: str) -> bool:
    """Whether one file is called like another, but for what stands in front: pow_int.c and lib_pow_int.h."""
    short, long = sorted((Path(one).stem.lower() for one in (name, other)), key=len)
    return f"_{long}".endswith(f"_{short}")


def _pieces(name: str, words: frozenset[str]) -> int:
    """Of how many words a name is made, at least, with or without underscores and digits between them, if it is not one
    itself; 0 where it is made of none."""
    fewest: list[int | None] = [0]
    for end in range(1, len(name) + 1):
        before = fewest[end - 1]
        found = [before] if not name[end - 1].isalpha() and before is not None else []
        for start in range(end):
            count = fewest[start]
            if count is not None and end - start < len(name) and name[start:end] in words:
                found.append(count + 1)
        fewest.append(min(found, default=None))
    return fewest[-1] or 0


def _mentions(unit: Unit, name: str) -> bool:
    words = unit.mentioned
    if words is None or not words.isdisjoint(_spelt(name)):
        return True
    if _has_whole_names(unit):
        return False
    if not words.isdisjoint(parts(name)):
        return True
    return PASTING in words and any(len(w) > 1 and (name.startswith(w) or name.endswith(w)) for w in words)


def is_known(symbol: str) -> bool:
    """Whether a name that nobody defines is one of a language's libraries: there are rules for it, or the C library of
    this process has it, as it has `stderr`; or the linker's own."""
    return (
        effect(symbol) is not None
        or symbol in OF_THE_LINKER
        or standard().for_call(symbol) is not None
        or provides(symbol)
        or symbol.startswith(("_Fortran", "_ZSt", "_ZNSt", "_ZNKSt", "_ZT", "__cxa", "__gxx", "_Unwind"))
        or hasattr(ctypes.CDLL(None), symbol)
        or hasattr(_run_time_of_compilers(), symbol)
    )


def known_functions(symbols: Iterable[str], modules: Collection[str]) -> list[str]:
    """The names of functions of libraries among symbols that modules use, and not those of variables (`stderr`): macros
    of a header may print, and all files that include it would seem to make these."""
    known = (name for name in symbols if is_known(name))
    return [plain(name) for name in known if not any(f"@{name} = external " in ir for ir in modules)]


@cache
def _run_time_of_compilers() -> ctypes.CDLL | None:
    """What compilers call for arithmetic that the processor has not: `__muldc3` for complex numbers, `__udivti3`. None
    where it is no library of its own."""
    try:
        return ctypes.CDLL("libgcc_s.so.1")  # libstdc++ of Linux needs it
    except OSError:
        return None
