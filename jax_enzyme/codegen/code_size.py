"""Which functions stay functions because a copy of them at each call would make the kernel many times as long.

    before    alwaysinline f, g, h         f calls g four times, g calls h four times: sixteen copies of h in f
    after     alwaysinline f, h;  g        one g, in which are four copies of h

Inlined everywhere, a library whose functions call one another is as long as there are paths through its calls: cdflib's
incomplete beta function has 2,800 instructions, and 35,000 when inlined. What LLVM and the engine do takes time in
proportion, and more. So a kernel may become so long and no longer: the functions whose copies cost most stay, one
after the other, until it fits. Short ones are inlined however often: they are hardly longer than their calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Reversible

from jax_enzyme.analysis.objects import reachable_functions
from jax_enzyme.ir.inlining import without_attributes
from jax_enzyme.ir.instructions import Alloca, CallBase
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import bottom_up, reached

_INLINE = "alwaysinline"
_LENGTH = 4000
"""Instructions that a kernel may have when all is inlined, whatever the source has."""
_GROWTH = 1.25
"""How many times as long as in the source it may become, where that is more."""
_LIBRARIES = 25
"""How many times as long as that copies of run-time libraries' functions may make it, before these stay as well."""
_SHORT = 40
"""Instructions of a function that is inlined however often."""

_Calls = Mapping[Function, Mapping[Function, int]]
"""How often each function calls others: those that are inlined into it, once it is known which these are."""


def leave_large(module: Module, root: str, *, may_grow: bool = True) -> bool:
    """Changes a module that is marked for inlining: functions stay whose copies make `root` too long. Whether calls are
    left that will be inlined. Where a module is no longer as in the source, it `may_grow` no more: its length is that
    of copies already."""
    start = module.functions[root]
    calls = {f: _called(f) for f in module.functions.values() if not f.is_declaration}
    own = {f: sum(not isinstance(i, Alloca) for i in f.instructions()) for f in calls}
    inlined = {f for f in calls if f is not start and _INLINE in f.attributes}
    lengths: dict[Function, int] = {}
    kept, found = {start}, reached([start], calls.__getitem__)
    for function in reachable_functions(start):
        if function not in found:  # its address is in a table, say
            kept.add(function)
            found |= reached([function], calls.__getitem__)
    for reachable in found:
        for function, _ in bottom_up(reachable, lambda f: [c for c in calls[f] if c in inlined], lengths):
            lengths[function] = own[function]
    calls = {f: {c: n for c, n in calls[f].items() if c in inlined} for f in lengths}
    limit = max(_LENGTH, int((_GROWTH if may_grow else 1) * sum(lengths.values())))
    source = {f for f in lengths if f in inlined and _is_of_the_source(f)}
    for large, most in ((source, limit), (inlined.intersection(lengths), _LIBRARIES * limit)):
        while True:
            lengths = _lengths(lengths, calls, own)
            if sum(length for f, length in lengths.items() if f in kept or f not in inlined) <= most:
                break
            copies = _copies(lengths, calls, inlined, kept)
            costs = {f: (copies[f] - 1) * length for f, length in lengths.items() if length > _SHORT and f in large}
            dearest = max(costs, key=costs.__getitem__, default=start)
            if not costs.get(dearest):
                break
            inlined.discard(dearest)
            large.discard(dearest)
            for called in calls.values():
                called.pop(dearest, None)
            dearest.attributes = without_attributes(module, dearest.attributes, frozenset({_INLINE}))
    return any(calls.values())


def _is_of_the_source(function: Function) -> bool:
    """Code without places is our run-time libraries'. They move numbers of any type, which only their callers tell:
    inlined, they are known to move these. So they stay only where a kernel would be longer than it can be compiled: an
    assignment to an object has 50,000 instructions before it is known of which type that is."""
    return any(kind == "dbg" for kind, _ in function.metadata)


def _called(function: Function) -> Mapping[Function, int]:
    """The functions of the module that a function calls directly, and how often."""
    callees = (i.operands[-1] for i in function.instructions() if isinstance(i, CallBase))
    return Counter(c for c in callees if isinstance(c, Function) and not c.is_declaration)


def _lengths(callees_first: Iterable[Function], calls: _Calls, own: Mapping[Function, int]) -> dict[Function, int]:
    """The instructions of each function with those that are inlined into it."""
    lengths: dict[Function, int] = {}
    for function in callees_first:
        lengths[function] = own[function] + sum(count * lengths[f] for f, count in calls[function].items())
    return lengths


def _copies(
    callees_first: Reversible[Function], calls: _Calls, inlined: Container[Function], kept: Container[Function]
) -> dict[Function, int]:
    """How often the body of each function is there in the end; `kept` are those that stay though they are inlined."""
    copies = {f: int(f in kept or f not in inlined) for f in reversed(callees_first)}
    for function, number in copies.items():
        for callee, count in calls[function].items():
            copies[callee] += count * number
    return copies
