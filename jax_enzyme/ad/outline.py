"""Cuts a counted loop into segments, each a call, so that reverse mode can keep states instead of iterations.

    before   loop:                          after    for (k = 0; k < n; k += length)
               %u = phi double [ ... ]                   je.segment(k, min(k + length, n), ..., slots)
               ...
               br i1 %more, %loop, %exit             je.segment: %u from its slot; the loop from k; %u to its slot

Values that the loop carries, and those that are used after it, pass through *slots*: local variables of the caller. The
segment is a copy of the loop, so a segment runs as fast as the loop did.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax_enzyme.ad.common import copied, extended
from jax_enzyme.ad.instrument import clone
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import Objects, PointsTo
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, ConstantInt, Value

SEGMENT = "je.segment"


def is_segment(function: Value) -> bool:
    """Whether a function is a segment that was cut out here."""
    return isinstance(function, Function) and function.name == SEGMENT


def can_be_outlined(loop: Loop) -> bool:
    """A loop on the outermost level that is left at its latch alone and makes no local variables."""
    if loop.parent is not None or loop.preheader is None or len(loop.latches) != 1:
        return False
    if loop.exiting != loop.latches or len(loop.exit_edges) != 1:
        return False
    return not any(isinstance(i, I.Alloca) for b in loop.blocks for i in b.instructions)


@dataclass(eq=False)
class _Loop:
    """What has to pass between the loop and its surroundings."""

    loop: Loop
    phis: list[I.Phi]
    live_in: list[Value]
    live_out: list[I.Phi]

    @property
    def latch(self) -> BasicBlock:
        return self.loop.latches[0]

    @property
    def exit(self) -> BasicBlock:
        return self.loop.exits[0]

    @property
    def preheader(self) -> BasicBlock:
        assert self.loop.preheader is not None
        return self.loop.preheader


def outline(base: ArrayFunction, header: int, iterations: int, length: int) -> ArrayFunction:
    """The array function with the loop whose header is block number `header`, and that runs `iterations` times, cut
    into segments of `length` iterations."""
    module = extended(base.module)
    source = module.functions[base.symbol]
    points_to = PointsTo(module, source)
    function, origin = clone(source)
    loops = Loops(Cfg(function), Dominators(Cfg(function)))
    loop = next(x for x in loops if x.header is function.blocks[header])
    parts = _parts(function, loop)
    segment = _segment(parts, {v: points_to.of(origin.get(v, v)) for v in parts.live_in})
    module.functions[SEGMENT] = segment
    _call_segments(function, parts, segment, iterations, length)
    function.attributes = source.attributes
    function.prefix = source.prefix
    module.functions[base.symbol] = function
    return ArrayFunction(module, base.symbol, base.buffers)


def _parts(function: Function, loop: Loop) -> _Loop:
    inside = {i for b in loop.blocks for i in b.instructions}
    ordered = [b for b in function.blocks if b in loop.blocks]
    live_in: dict[Value, None] = {}
    for block in ordered:
        for instruction in block.instructions:
            for operand, source in _operands(instruction):
                if source is loop.preheader or operand in inside or isinstance(operand, Constant):
                    continue
                live_in[operand] = None
    phis = [i for i in loop.header.instructions if isinstance(i, I.Phi)]
    live_out = [i for i in loop.exits[0].instructions if isinstance(i, I.Phi)]
    return _Loop(loop, phis, list(live_in), live_out)


def _operands(instruction: I.Instruction) -> list[tuple[Value, BasicBlock | None]]:
    """Operands, those of a phi with the predecessor that they come from."""
    if isinstance(instruction, I.Phi):
        return list(instruction.incoming)
    return [(v, None) for v in instruction.operands]


def _segment(parts: _Loop, objects: dict[Value, Objects]) -> Function:
    """`void je.segment(i64 from, i64 to, live-ins..., slots...)`."""
    carried, out = parts.phis, parts.live_out
    types = [T.I64, T.I64, *(v.type for v in parts.live_in), *(T.PTR for _ in (*carried, *out))]
    arguments = [Argument(t, (), i, name=f"s{i}") for i, t in enumerate(types)]
    count = 2 + len(parts.live_in)
    for argument, value in zip(arguments[2:count], parts.live_in, strict=True):
        if T.is_pointer(value.type) and _alone(value, objects):
            argument.attributes = ("noalias",)
    for argument in arguments[count:]:
        argument.attributes = ("noalias",)
    function = Function(T.PTR, T.FunctionType(T.VOID, tuple(types)), arguments=arguments, name=SEGMENT)
    function.prefix = ("internal",)
    function.attributes = ("noinline", "nounwind", "mustprogress")
    entry, leave = BasicBlock(name="entry"), BasicBlock(name="leave")
    blocks = {b: BasicBlock(name=b.name) for b in parts.loop.blocks}
    blocks |= {parts.preheader: entry, parts.exit: leave}
    values: dict[Value, Value] = dict(zip(parts.live_in, arguments[2:count], strict=True))
    slots = arguments[count:]
    builder = Builder(entry)
    starts = [builder.load(phi.type, slot) for phi, slot in zip(carried, slots, strict=False)]
    builder.br(blocks[parts.loop.header])
    ordered = [b for b in _function_order(parts)]
    twins: list[I.Instruction] = []
    for block in ordered:
        for instruction in block.instructions:
            twin = copied(instruction, lambda v: v, blocks.__getitem__)
            twin.metadata = list(instruction.metadata)
            values[instruction] = twin
            blocks[block].instructions.append(twin)
            twins.append(twin)
    for twin in twins:
        twin.operands = [v if isinstance(v, Constant) else values.get(v, v) for v in twin.operands]
    for phi, start in zip(carried, starts, strict=True):
        twin = values[phi]
        assert isinstance(twin, I.Phi)
        twin.operands[twin.targets.index(entry)] = start
    _count(parts, blocks, arguments, entry)
    builder = Builder(leave)
    for phi, slot in zip(carried, slots, strict=False):
        builder.store(_mapped(phi.operands[phi.targets.index(parts.latch)], values), slot)
    for phi, slot in zip(out, slots[len(carried) :], strict=True):
        builder.store(_mapped(phi.operands[0], values), slot)
    builder.ret()
    function.blocks = [entry, *(blocks[b] for b in ordered), leave]
    _close(function, parts, blocks, leave)
    return function


def _function_order(parts: _Loop) -> list[BasicBlock]:
    """The loop's blocks, the header first."""
    seen = [parts.loop.header]
    for block in seen:
        seen += [s for s in block.successors if s in parts.loop.blocks and s not in seen]
    return seen


def _mapped(value: Value, values: dict[Value, Value]) -> Value:
    return value if isinstance(value, Constant) else values.get(value, value)


def _alone(value: Value, objects: dict[Value, Objects]) -> bool:
    """Whether no other pointer that comes in may point to the same memory."""
    own = objects[value]
    return bool(own) and all(own.isdisjoint(o) for v, o in objects.items() if v is not value)


def _count(parts: _Loop, blocks: dict[BasicBlock, BasicBlock], arguments: list[Argument], entry: BasicBlock) -> None:
    """The segment's own counter decides when it ends; the loop's condition is no longer asked."""
    header, latch = blocks[parts.loop.header], blocks[parts.latch]
    counter = I.Phi(T.I64, "phi", [arguments[0]], targets=[entry])
    header.instructions.insert(0, counter)
    latch.instructions.pop()
    builder = Builder(latch)
    following = builder.binary("add", counter, ConstantInt(T.I64, 1), ("nuw", "nsw"))
    counter.operands.append(following)
    counter.targets.append(latch)
    builder.cond_br(builder.icmp("ult", following, arguments[1]), header, blocks[parts.exit])


def _close(function: Function, parts: _Loop, blocks: dict[BasicBlock, BasicBlock], leave: BasicBlock) -> None:
    """Values that the exit stores pass through phis there (LCSSA)."""
    inside = {i for b in parts.loop.blocks for i in blocks[b].instructions}
    closing: dict[Value, I.Phi] = {}
    for instruction in list(leave.instructions):
        for index, operand in enumerate(instruction.operands):
            if operand in inside:
                if operand not in closing:
                    closing[operand] = I.Phi(operand.type, "phi", [operand], targets=[blocks[parts.latch]])
                instruction.operands[index] = closing[operand]
    leave.instructions[:0] = list(closing.values())


def _call_segments(function: Function, parts: _Loop, segment: Function, iterations: int, length: int) -> None:
    """Replaces the loop in `function` by a loop over segments."""
    slots: list[Value] = []
    top = Builder(BasicBlock())
    for phi in (*parts.phis, *parts.live_out):
        slots.append(top.alloca(phi.type))
    function.entry.instructions[:0] = top.block.instructions
    preheader = Builder(parts.preheader)
    terminator = parts.preheader.instructions.pop()
    for phi, slot in zip(parts.phis, slots, strict=False):
        preheader.store(phi.operands[phi.targets.index(parts.preheader)], slot)
    over, after = BasicBlock(name="segments"), BasicBlock(name="segments.after")
    terminator.targets = [over]
    parts.preheader.instructions.append(terminator)
    builder = Builder(over)
    start = builder.phi(T.I64, [(ConstantInt(T.I64, 0), parts.preheader)])
    following = builder.binary("add", start, ConstantInt(T.I64, length), ("nuw", "nsw"))
    total = const_int(T.I64, iterations)
    end = builder.select(builder.icmp("ult", following, total), following, total)
    builder.call(segment, [start, end, *parts.live_in, *slots])
    start.operands.append(following)
    start.targets.append(over)
    builder.cond_br(builder.icmp("ult", following, total), over, after)
    builder = Builder(after)
    finals = [builder.load(phi.type, s) for phi, s in zip(parts.live_out, slots[len(parts.phis) :], strict=True)]
    builder.br(parts.exit)
    for phi, final in zip(parts.live_out, finals, strict=True):
        phi.operands, phi.targets = [final], [after]
    at = function.blocks.index(parts.loop.header)
    function.blocks = [b for b in function.blocks if b not in parts.loop.blocks]
    function.blocks[at:at] = [over, after]
