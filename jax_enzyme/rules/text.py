"""Functions that write numbers as text into memory, where the kernel may read it, and streams. What is done with text
has no derivative, unless numbers are read from it again: a kernel that does that is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jax_enzyme.rules.streams import of_streams

_WRITES = re.compile(
    r"(?:__)?(?:v?s(?:n)?printf|v?asprintf)(?:_chk)?$|[efg]cvt$|_(?:R|ZN)\w*5alloc3fmt6format12format_inner|"
    r"_FortranAio(?:Output|BeginInternal|EndIoStatement|Set|EnableHandlers)"
)
_READS = re.compile(
    r"(?:__isoc\d+_)?(?:strto(?:d|f|ld)(?:_l)?|atof|v?[sf]?scanf)$|_ZNSt3__1(?:4stod|4stof|5stold|10from_chars)|"
    r"_ZN?\w*basic_istream\w*E(?:r?s)+ER[dfe]|_(?:R|ZN)\w*7dec2flt|"
    r"_FortranAioInput(?:Real|Complex|Descriptor|Derived|Namelist)"
)

# May fill memory with numbers, or take them from there.
_INPUT = re.compile("13basic_istreamI|sgetn")
_BYTES = re.compile(r"13basic_ostreamI\w*E5write|s?putn")


def handles_text(symbol: str) -> bool:
    """Whether a function makes text of numbers in memory, or numbers of text."""
    return _WRITES.match(symbol) is not None or _READS.match(symbol) is not None


def fills_memory(symbol: str) -> bool:
    """Whether a function of C++'s streams reads one, maybe into memory."""
    return of_streams(symbol) and _INPUT.search(symbol) is not None


def writers_of_text(symbols: Iterable[str]) -> tuple[str, ...]:
    """Those of the functions of a module that make text of numbers; none where it has one that does the opposite."""
    known = tuple(symbols)
    if any(map(_READS.match, known)):
        return ()
    return tuple(name for name in known if _WRITES.match(name) or _only_text(name))


def _only_text(symbol: str) -> bool:
    return of_streams(symbol) and not _INPUT.search(symbol) and not _BYTES.search(symbol)
