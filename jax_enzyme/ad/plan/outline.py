"""Cuts loops out of a function, so that reverse mode can keep states instead of iterations.

    before   loop:                          after    store %a, ptr %slot; %way = call i64 @je.loop(..., %slot)
               %u = phi double [ %a, ... ]           je.loop:     for (k = 0; !way; k++) way = je.segment(k, k + 1, ...)
               ...                                   je.segment:  %u from its slot; the loop from iteration k on, until
               br i1 %more, %loop, %exit                          it ends by itself, or iteration `to` is reached: then
                                                                  %u goes back to its slot

Values that the loop carries, and those that are used after it, pass through *slots*: local variables of the caller.
Both functions return the way that control took out of the loop (1, 2 ... for its exits), a segment 0 where the loop
goes on. A segment is a copy of the loop, so it runs as fast as the loop did. How many iterations a segment is given
does not matter for what the program computes; that is for `ad.emit.segments` to choose.
"""

from __future__ import annotations

from collections.abc import Sequence

from jax_enzyme.ad.facts.copying import copied, internal_function
from jax_enzyme.ad.facts.hindrances import JOINED_EXITS, LOCAL_ARRAYS, SEVERAL_WAYS, USED_ELSEWHERE, Hindrance
from jax_enzyme.ad.facts.instrument import clone
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects, call_effect
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, ConstantInt, Value
from jax_enzyme.rules.effects import Effect

_ATTRIBUTES = ("noinline", "nounwind")


@dataclass(frozen=True)
class Outlined:
    """The names of the functions that a loop became."""

    loop: str
    segment: str


@dataclass(eq=False)
class _Loop:
    """What has to pass between a loop and its surroundings: values that it uses, phis that it carries, and per exit
    the phis there."""

    loop: Loop
    phis: list[I.Phi]
    live_in: list[Value]
    live_out: list[I.Phi]

    @property
    def latch(self) -> BasicBlock:
        return self.loop.latches[0]

    @property
    def preheader(self) -> BasicBlock:
        return self.loop.front

    def way(self, block: BasicBlock) -> Value:
        """The number of an exit."""
        return ConstantInt(T.I64, 1 + self.loop.exits.index(block))


def hindrance(function: Function, cfg: Cfg, loop: Loop) -> Hindrance | None:
    """Why a loop cannot be cut out, or None where it can be."""
    if loop.preheader is None or len(loop.latches) != 1 or not loop.exits:
        return SEVERAL_WAYS
    if any(isinstance(i, I.Alloca) for b in loop.blocks for i in b.instructions):
        return LOCAL_ARRAYS
    if any(p not in loop.blocks for e in loop.exits for p in cfg.preds[e]):
        return JOINED_EXITS
    inside = {i for b in loop.blocks for i in b.instructions}
    for block in function.blocks:
        if block in loop.blocks:
            continue
        for instruction in block.instructions:
            if isinstance(instruction, I.Phi) and block in loop.exits:
                continue
            if not inside.isdisjoint(instruction.operands):
                return USED_ELSEWHERE
    return None


def outline(base: ArrayFunction, headers: Sequence[int]) -> tuple[ArrayFunction, tuple[Outlined, ...]]:
    """The array function with loops cut out, none of them inside another, and their names. A loop is known by the
    number of its header among the function's blocks."""
    module = with_room(base.module)
    source = module.functions[base.symbol]
    points_to = PointsTo(module, source)
    function, origin = clone(source)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not _is_hint(i)]
    function.attributes = source.attributes
    function.prefix = source.prefix
    module.functions[base.symbol] = function
    loops = {loop.header: loop for loop in Loops.of(function)}
    wanted = [loops[function.blocks[header]] for header in headers]
    found: list[Outlined] = []
    for loop in wanted:
        parts = _parts(function, loop)
        objects = {v: points_to.of(origin.get(v, v)) for v in parts.live_in}
        segment = _segment(module, parts, objects)
        whole = _whole(module, segment)
        _replace(function, parts, whole)
        found.append(Outlined(whole.name, segment.name))
    return ArrayFunction(module, base.symbol, base.buffers), tuple(found)


def _is_hint(instruction: I.Instruction) -> bool:
    """What is only said to the optimiser has been used, and may speak of values on both sides of a cut."""
    return isinstance(instruction, I.CallBase) and call_effect(instruction) is Effect.IGNORED


def _parts(function: Function, loop: Loop) -> _Loop:
    inside = {i for b in loop.blocks for i in b.instructions}
    exits = [i for e in loop.exits for i in e.instructions if isinstance(i, I.Phi)]
    live_in: dict[Value, None] = {}
    for block in function.blocks:
        for instruction in block.instructions if block in loop.blocks else ():
            for operand, source in _operands(instruction):
                if source is not loop.preheader:
                    live_in[operand] = None
    for phi in exits:
        live_in.update(dict.fromkeys(phi.operands))
    phis = [i for i in loop.header.instructions if isinstance(i, I.Phi)]
    for phi in phis:
        live_in.update(dict.fromkeys(v for v, source in phi.incoming if source is not loop.preheader))
    used = [v for v in live_in if v not in inside and not isinstance(v, Constant)]
    return _Loop(loop, phis, used, exits)


def _operands(instruction: I.Instruction) -> list[tuple[Value, BasicBlock | None]]:
    """Operands, those of a phi with the predecessor that they come from."""
    if isinstance(instruction, I.Phi):
        return list(instruction.incoming)
    return [(v, None) for v in instruction.operands]


# -- the functions -----------------------------------------------------------------------------------------------------


def _segment(module: Module, parts: _Loop, objects: dict[Value, Objects]) -> Function:
    """`i64 je.segment(i64 from, i64 to, live-ins..., slots...)`."""
    types = [T.I64, T.I64, *(v.type for v in parts.live_in)]
    function = _declared(module, module.unused("je.segment"), types, len(parts.phis) + len(parts.live_out))
    arguments = function.arguments
    count = 2 + len(parts.live_in)
    for argument, value in zip(arguments[2:count], parts.live_in, strict=True):
        if T.is_pointer(value.type) and _alone(value, objects):
            argument.attributes = ("noalias",)
    slots = arguments[count:]
    entry = BasicBlock(name="entry")
    leaves = {e: BasicBlock(name=f"{e.name}.leave") for e in parts.loop.exits}
    blocks = {b: BasicBlock(name=b.name) for b in _header_first(parts.loop)}
    targets = {**blocks, **leaves, parts.preheader: entry}
    values: dict[Value, Value] = dict(zip(parts.live_in, arguments[2:count], strict=True))
    twins: list[I.Instruction] = []
    leaving = [(e, [i for i in e.instructions if isinstance(i, I.Phi)]) for e in leaves]
    for block, instructions in (*((b, b.instructions) for b in blocks), *leaving):
        for instruction in instructions:
            twin = copied(instruction, lambda v: v, targets.__getitem__)
            twin.metadata = list(instruction.metadata)
            values[instruction] = twin
            targets[block].instructions.append(twin)
            twins.append(twin)
    for twin in twins:
        twin.operands = [_mapped(v, values) for v in twin.operands]
    builder = Builder(entry)
    for phi, slot in zip(parts.phis, slots, strict=False):
        twin = values[phi]
        assert isinstance(twin, I.Phi)
        twin.operands[twin.targets.index(entry)] = builder.load(phi.type, slot)
    builder.br(blocks[parts.loop.header])
    out = dict(zip(parts.live_out, slots[len(parts.phis) :], strict=True))
    done = BasicBlock(name="done")
    ways: list[tuple[Value, BasicBlock]] = []
    for block, phis in leaving:
        builder = Builder(leaves[block])
        for phi in phis:
            builder.store(values[phi], out[phi])
        builder.br(done)
        ways.append((parts.way(block), leaves[block]))
    turn, pause = _count(parts, blocks, values, arguments, entry)
    builder = Builder(pause)
    for phi, slot in zip(parts.phis, slots, strict=False):
        value = _mapped(phi.operands[phi.targets.index(parts.latch)], values)
        builder.store(builder.phi(value.type, [(value, turn)]) if isinstance(value, I.Instruction) else value, slot)
    pause.instructions.sort(key=lambda i: not isinstance(i, I.Phi))
    builder.br(done)
    builder = Builder(done)
    builder.ret(builder.phi(T.I64, [*ways, (ConstantInt(T.I64, 0), pause)]))
    function.blocks = [entry, *blocks.values(), turn, *leaves.values(), pause, done]
    return function


def _declared(module: Module, name: str, types: list[T.Type], slots: int) -> Function:
    type_ = T.FunctionType(T.I64, (*types, *([T.PTR] * slots)))
    function = internal_function(module, name, type_, attributes=_ATTRIBUTES)
    for argument in function.arguments[len(types) :]:
        argument.attributes = ("noalias",)
    return function


def _header_first(loop: Loop) -> list[BasicBlock]:
    return list(reached([loop.header], lambda block: block.successors, loop.blocks.__contains__))


def _mapped(value: Value, values: dict[Value, Value]) -> Value:
    return value if isinstance(value, Constant) else values.get(value, value)


def _alone(value: Value, objects: dict[Value, Objects]) -> bool:
    """Whether no other pointer that comes in may point to the same memory."""
    own = objects[value]
    return bool(own) and all(own.isdisjoint(o) for v, o in objects.items() if v is not value)


def _count(
    parts: _Loop,
    blocks: dict[BasicBlock, BasicBlock],
    values: dict[Value, Value],
    arguments: list[Argument],
    entry: BasicBlock,
) -> tuple[BasicBlock, BasicBlock]:
    """Puts a test of the segment's own counter on the way back to the header: the new latch, and where it leaves."""
    header, latch = blocks[parts.loop.header], blocks[parts.latch]
    turn, pause = BasicBlock(name="turn"), BasicBlock(name="pause")
    assert latch.terminator is not None
    latch.terminator.targets = [turn if t is header else t for t in latch.terminator.targets]
    for phi in parts.phis:
        twin = values[phi]
        twin.targets = [turn if t is latch else t for t in twin.targets]  # type: ignore[attr-defined]
    counter = I.Phi(T.I64, "phi", [arguments[0]], targets=[entry])
    header.instructions.insert(0, counter)
    builder = Builder(turn)
    builder.count_on(counter, header, arguments[1], pause)
    return turn, pause


def _whole(module: Module, segment: Function) -> Function:
    """`i64 je.loop(live-ins..., slots...)`: segments until one says that the loop is over."""
    types = [a.type for a in segment.arguments[2:]]
    function = _declared(module, module.unused("je.loop"), types, 0)
    for argument, like in zip(function.arguments, segment.arguments[2:], strict=True):
        argument.attributes = like.attributes
    entry, over, leave = BasicBlock(name="entry"), BasicBlock(name="segments"), BasicBlock(name="leave")
    Builder(entry).br(over)
    builder = Builder(over)
    start = I.Phi(T.I64, "phi", [ConstantInt(T.I64, 0)], targets=[entry])
    builder.insert(start)
    end = builder.binary("add", start, ConstantInt(T.I64, 1), ("nuw", "nsw"))
    way = builder.call(segment, [start, end, *function.arguments])
    start.add(end, over)
    builder.cond_br(builder.icmp("eq", way, ConstantInt(T.I64, 0)), over, leave)
    builder = Builder(leave)
    builder.ret(builder.phi(T.I64, [(way, over)]))
    function.blocks = [entry, over, leave]
    return function


def _replace(function: Function, parts: _Loop, whole: Function) -> None:
    """Puts a call in the place of the loop, and behind it ways to the loop's exits."""
    top = Builder.on_top(function)
    slots = [top.alloca(phi.type) for phi in (*parts.phis, *parts.live_out)]
    before = parts.preheader
    before.instructions.pop()
    builder = Builder(before)
    for phi, slot in zip(parts.phis, slots, strict=False):
        builder.store(phi.operands[phi.targets.index(before)], slot)
    way = builder.call(whole, [*parts.live_in, *slots])
    out = dict(zip(parts.live_out, slots[len(parts.phis) :], strict=True))
    fresh: list[BasicBlock] = []
    for index, block in enumerate(parts.loop.exits):
        after = BasicBlock(name=f"{block.name}.after")
        if index + 1 < len(parts.loop.exits):
            other = BasicBlock(name=f"{block.name}.else")
            builder.cond_br(builder.icmp("eq", way, parts.way(block)), after, other)
            builder = Builder(other)
            fresh += [after, other]
        else:
            builder.br(after)
            fresh.append(after)
        _enter(block, after, out)
    at = function.blocks.index(parts.loop.header)
    function.blocks = [b for b in function.blocks if b not in parts.loop.blocks]
    at = min(at, len(function.blocks))
    function.blocks[at:at] = fresh


def _enter(block: BasicBlock, after: BasicBlock, out: dict[I.Phi, Value]) -> None:
    """Goes to an exit of the loop, where phis take what is in their slots."""
    builder = Builder(after)
    for phi in block.instructions:
        if isinstance(phi, I.Phi):
            phi.operands, phi.targets = [builder.load(phi.type, out[phi])], [after]
    builder.br(block)
