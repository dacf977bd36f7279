"""Which loop over the threads of a block is the innermost one: that along which memory is contiguous.

    a[n * x + y] -= m[n * x] * a[y]         for x { for y { ... } }, where the order of numbers would be for y { for x

Devices run neighbours along x together; a kernel that was not written for that reads rows far apart. Between two
barriers threads run in any order, so that another one is as good, and on a processor it is rows that become vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Value, int_value

_APART = 8
"""What it costs to read numbers that lie apart, beside 1 for those side by side."""
_SHORTEST = 4
"""The least extent of an axis that is worth it."""


def fastest_axis(module: Module, kernel: Function, extents: Sequence[tuple[str, int]]) -> str:
    """The index along which the threads of a block find memory contiguous most often, of those given with their
    extents; the first one where no other is better."""
    first = extents[0][0]
    others = [name for name, extent in extents[1:] if extent >= _SHORTEST]
    calls = [i for i in kernel.instructions() if callee_name(i) in (first, *others)]
    if not any(callee_name(i) in others for i in calls):
        return first
    costs: dict[str, int] = {}
    for name in (first, *others):
        steps = _Steps(module, kernel, [i for i in calls if callee_name(i) == name])
        costs[name] = sum(map(steps.cost, steps.moving))
    best = min(others, key=lambda name: costs[name])
    return best if 2 * costs[best] < costs[first] else first


def goes_along(module: Module, kernel: Function, index: str) -> bool:
    """Whether no access is known to go through memory otherwise than from one number to the next, along an index."""
    steps = _Steps(module, kernel, [i for i in kernel.instructions() if callee_name(i) == index])
    return not any(steps.is_apart(access) for access in steps.moving)


class _Steps:
    """By how much values move on from one thread to the next; None where that is not known. Sums that wrap around are
    not asked about: it is about speed alone."""

    def __init__(self, module: Module, kernel: Function, numbers: Iterable[Value]) -> None:
        self._layout = DataLayout(module)
        self._known: dict[Value, int | None] = dict.fromkeys(numbers, 1)
        users = uses(kernel)
        self.moving = reached(list(self._known), lambda v: (user for user, _ in users.get(v, ())))

    def of(self, value: Value) -> int | None:
        if value not in self.moving:
            return 0
        if value not in self._known:
            self._known[value] = None  # what it depends on itself by
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> int | None:
        if not isinstance(value, I.BinaryOp | I.Cast | I.GetElementPtr | I.Freeze):
            return None
        parts = [self.of(operand) for operand in value.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        match value:
            case I.GetElementPtr():
                moves = self._layout.moves(value.source_type, value.operands[1:])
                return None if moves is None else known[0] + sum((self.of(i) or 0) * size for i, size in moves[1])
            case I.BinaryOp(opcode="add" | "or"):
                return known[0] + known[1]
            case I.BinaryOp(opcode="sub"):
                return known[0] - known[1]
            case I.BinaryOp(opcode="mul" | "shl"):
                factor = int_value(value.operands[1])
                if factor is None or known[1] != 0:
                    return None
                return known[0] * factor if value.opcode == "mul" else known[0] << factor
            case I.Cast() | I.Freeze():
                return known[0]
            case _:
                return None

    def cost(self, access: Value) -> int:
        """Of a load or store; nothing for other instructions."""
        match self._step(access):
            case 0:
                return 0
            case 1 | -1:
                return 1
            case _:
                return _APART

    def is_apart(self, access: Value) -> bool:
        """Whether a load or store is known to go on by several numbers."""
        return self._step(access) not in (0, 1, -1, None)

    def _step(self, access: Value) -> float | None:
        """By how many numbers a load or store goes on; 0 for other instructions."""
        if not isinstance(access, I.Load | I.Store):
            return 0
        kind = access.type if isinstance(access, I.Load) else access.operands[0].type
        step = self.of(access.operands[0 if isinstance(access, I.Load) else 1])
        return None if step is None else step / self._layout.alloc_size(kind)
