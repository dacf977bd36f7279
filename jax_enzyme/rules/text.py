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
    r"(?:__isoc\d+_)?(?:strto(?:d|f|ld)(?:_l)?|atof|v?sscanf)$|_ZNSt3__1(?:4stod|4stof|5stold|10from_chars)|"
    r"_ZN?\w*basic_istream\w*E(?:r?s)+ER[dfe]|_(?:R|ZN)\w*7dec2flt|"
    r"_FortranAioInput(?:Real|Complex|Descriptor|Derived|Namelist)"
)

# May fill memory with numbers.
_INPUT = re.compile("13basic_istreamI|sgetn")


def writers_of_text(symbols: Iterable[str]) -> tuple[str, ...]:
    """Those of the functions of a module that make text of numbers; none where it has one that does the opposite."""
    known = tuple(symbols)
    if any(map(_READS.match, known)):
        return ()
    return tuple(name for name in known if _WRITES.match(name) or (of_streams(name) and not _INPUT.search(name)))
