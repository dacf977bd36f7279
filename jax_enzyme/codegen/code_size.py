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
from collections.abc import Iterator, Mapping, MutableMapping
from heapq import heapify, heappop, heappush

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

_Calls = Mapping[Function, MutableMapping[Function, int]]
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
    limit = max(_LENGTH, int((_GROWTH if may_grow else 1) * sum(lengths.values())))
    calls = {f: {c: n for c, n in calls[f].items() if c in inlined} for f in lengths}
    copies = _Copies(calls, own, {f for f in lengths if f in kept or f not in inlined})
    source = [f for f in lengths if f in inlined and _is_of_the_source(f)]
    for large, most in ((source, limit), ([f for f in lengths if f in inlined], _LIBRARIES * limit)):
        while copies.total > most:
            large = [f for f in large if copies.lengths[f] > _SHORT and f in inlined]
            dearest = max(large, key=copies.cost, default=start)
            if not copies.cost(dearest):
                break
            inlined.discard(dearest)
            copies.keep(dearest)
            dearest.attributes = without_attributes(module, dearest.attributes, frozenset({_INLINE}))
    return any(calls.values())


class _Copies:
    """How long functions are with what is inlined into them, and how often the body of each is there in the end. When
    a function stays, its callers alone become shorter, and what it calls rarer: of a library hundreds may stay, and so
    not all is counted anew for each."""

    def __init__(self, calls: _Calls, own: Mapping[Function, int], staying: set[Function]):
        """`calls` has callees before their callers; `staying` are those that are there by themselves."""
        self._calls, self._staying = calls, staying
        self._rank = {f: rank for rank, f in enumerate(calls)}
        self._callers: dict[Function, dict[Function, int]] = {f: {} for f in calls}
        for function, called in calls.items():
            for callee, count in called.items():
                self._callers[callee][function] = count
        self.lengths, self._numbers = dict.fromkeys(calls, 0), dict.fromkeys(calls, 0)
        self.total = 0
        self._lengthen({f: own[f] for f in calls})
        self._multiply(dict.fromkeys(staying, 1))

    def cost(self, function: Function) -> int:
        """The instructions that its copies are beyond the first."""
        return (self._numbers[function] - 1) * self.lengths[function]

    def keep(self, function: Function) -> None:
        """A function stays: what called it has calls in place of copies."""
        length = self.lengths[function]
        if function not in self._staying:
            self._staying.add(function)
            self.total += length
        callers, self._callers[function] = self._callers[function], {}
        for caller in callers:
            self._calls[caller].pop(function)
        self._lengthen({caller: -count * length for caller, count in callers.items()})
        self._multiply({function: 1 - self._numbers[function]})

    def _lengthen(self, changes: dict[Function, int]) -> None:
        for function, change in self._spread(changes, self._callers, 1):
            self.lengths[function] += change
            self.total += change if function in self._staying else 0

    def _multiply(self, changes: dict[Function, int]) -> None:
        for function, change in self._spread(changes, self._calls, -1):
            self._numbers[function] += change

    def _spread(self, changes: dict[Function, int], along: _Calls, order: int) -> Iterator[tuple[Function, int]]:
        """What changes in all, function by function: a change goes on along calls, as often as there are some."""
        pending = [(order * self._rank[f], f) for f in changes]
        heapify(pending)
        while pending:
            _, function = heappop(pending)
            yield function, changes[function]
            for neighbour, count in along[function].items():
                if neighbour not in changes:
                    changes[neighbour] = 0
                    heappush(pending, (order * self._rank[neighbour], neighbour))
                changes[neighbour] += count * changes[function]


def _is_of_the_source(function: Function) -> bool:
    """Code without places is our run-time libraries'. They move numbers of any type, which only their callers tell:
    inlined, they are known to move these. So they stay only where a kernel would be longer than it can be compiled: an
    assignment to an object has 50,000 instructions before it is known of which type that is."""
    return any(kind == "dbg" for kind, _ in function.metadata)


def _called(function: Function) -> Mapping[Function, int]:
    """The functions of the module that a function calls directly, and how often."""
    callees = (i.operands[-1] for i in function.instructions() if isinstance(i, CallBase))
    return Counter(c for c in callees if isinstance(c, Function) and not c.is_declaration)
