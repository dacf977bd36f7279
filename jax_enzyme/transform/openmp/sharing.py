"""Worksharing loops as one loop over all iterations.

A schedule with chunks, and every schedule that is dynamic, is a loop over chunks around a loop over iterations:

    before    call void @__kmpc_dispatch_init_4(...)               after    (bounds of the whole loop are kept)
            chunks:                                                       chunks:
              %more = call i32 @__kmpc_dispatch_next_4(...)                 %more = lower <= upper
              br i1 (icmp ne %more, 0), label %inner, label %end            br i1 (icmp ne %more, 0), ...
              ...                                                           ...
              br label %chunks                                              br label %end

Who gets which chunk is nobody's business until threads are there: one chunk has everything, and the outer loop is no
loop. `__kmpc_for_static_init_*`, which runs in `frontends/runtime/openmp_team.cpp`, gives all iterations as well.
Chunks of one iteration, under `distribute parallel for`, have no loop around them: there `i` grows by the stride.
"""

from __future__ import annotations

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.marks import Mark, mark
from jax_enzyme.ir.module import Function, Module, callee_name, declare
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.transform.openmp.calls import calls_of, replace_call
from jax_enzyme.transform.rewriting import local, replace_values

_STATIC = ("__kmpc_for_static_init_", "__kmpc_dist_for_static_init_")
_START = "__kmpc_dispatch_init_"
_NEXT = "__kmpc_dispatch_next_"
_CHUNKS = 33
_CHUNKED = frozenset({_CHUNKS, 65, 91})
_ORDERED = range(64, 72)
_EVENLY = 34
_MODIFIERS = 0xFFFF


@dataclass(frozen=True)
class Worksharing:
    """A loop over all iterations of a worksharing loop, outside of which lies `start`. `ordered`: iterations have parts
    that run in order. `chunks`: several that follow each other may be one thread's, by the source, which runs them in
    order."""

    function: Function
    loop: Loop
    start: BasicBlock
    ordered: bool
    chunks: bool


def worksharing_loops(module: Module, *, teams: bool, by_number: bool) -> list[Worksharing]:
    """Takes the loops over chunks away, in place; what is left of each worksharing construct. In `teams` each member
    gets a part of what a dynamic schedule shares out. With `by_number` static chunks stay, of which members take
    turns: the program may ask who has which."""
    found: list[Worksharing] = []
    for function in list(module.functions.values()):
        starts = list(calls_of(function, *_STATIC, _START))
        if not starts:
            continue
        _dispatch(module, function, teams)
        kinds = [(block, int_value(call.arguments[2])) for block, call in starts]
        alone = [_gives_one(call) for _, call in starts]
        chunked = _CHUNKED - {_CHUNKS} if by_number else _CHUNKED
        for (block, kind), (_, call) in zip(kinds, starts, strict=True):
            loop = loop_behind(function, block)
            if loop is None:
                continue
            if callee_name(call).startswith(_START):
                _once(module, function, loop)
            elif (kind or 0) & _MODIFIERS in chunked and _has_chunks(loop, call):
                _once(module, function, loop)
                if (kind or 0) & _MODIFIERS == _CHUNKS:
                    call.operands[2] = const_int(T.I32, _EVENLY)
        for block, call in calls_of(function, _START):
            block.instructions.remove(call)
        for (block, kind), one in zip(kinds, alone, strict=True):
            loop = loop_behind(function, block)
            if loop is not None:
                ordered = kind is None or kind & _MODIFIERS in _ORDERED
                found.append(Worksharing(function, loop, block, ordered, not one))
    return found


def _gives_one(start: I.CallBase) -> bool:
    """Does a thread get one iteration at a time, or a range of which the source does not say where it ends?"""
    kind = int_value(start.arguments[2])
    return (kind is not None and kind & _MODIFIERS == _EVENLY) or int_value(start.arguments[-1]) in (0, 1)


def mark_taskloop(module: Module, entry: Function) -> None:
    """Marks, in place, the loop of a `taskloop`, where it is the only one of its task: arrays may be copied in others.
    Iterations of one task may depend on those before them, and how many it has may be anything: no loop of these is
    EXCLUSIVE."""
    # clang's entry calls a function with the loop, flang's has it itself.
    called = [i.callee for i in entry.instructions() if isinstance(i, I.CallBase)]
    bodies = [entry, *(f for f in called if isinstance(f, Function) and f.blocks)]
    loops = [loop for body in bodies for loop in Loops.of(body).roots]
    for latch in loops[0].latches if len(loops) == 1 else ():
        mark(module, latch.terminator, frozenset({Mark.PARALLEL, Mark.TASKS}))


def mark_behind(module: Module, name: str) -> None:
    """Marks, in place, the loop behind each call of a function as one whose iterations may run in any order apart from
    sums; the calls go, and so does the function."""
    for function in module.functions.values():
        for block, call in calls_of(function, name):
            loop = loop_behind(function, block)
            for latch in loop.latches if loop is not None else ():
                mark(module, latch.terminator, frozenset({Mark.PARALLEL}))
            replace_call(block, call, [])
    module.functions.pop(name, None)


def loop_behind(function: Function, start: BasicBlock) -> Loop | None:
    """The first outermost loop behind a block that `start` leads to by force."""
    loops = Loops.of(function)
    dominates = loops.dominators.dominates
    behind = (x for x in loops.all if start not in x and dominates(start, x.header) and _siblings(x, start))
    return next(behind, None)


def _siblings(loop: Loop, start: BasicBlock) -> bool:
    """Does the loop lie in the same loop as the block, and in no other besides?"""
    return loop.parent is None or start in loop.parent


def _has_chunks(loop: Loop, start: I.CallBase) -> bool:
    """Does each round of a loop get the bounds of a chunk?"""
    lower = start.arguments[4]
    return any(isinstance(i, I.Store) and i.operands[1] is lower for b in loop.blocks for i in b.instructions)


def _once(module: Module, function: Function, loop: Loop) -> None:
    """A loop that is known to run once at most is one no more."""
    ends = list(dict.fromkeys(target for _, target in loop.exit_edges if not catches(target) and _goes_on(target)))
    if len(ends) != 1 or any(isinstance(i, I.Phi) for i in ends[0].instructions):
        raise CompileError(
            "a worksharing loop has an irregular form",
            location(module, loop.header.terminator) or function.name,
            "compile the source itself, rather than IR that was optimised before",
        )
    for latch in loop.latches:
        terminator = latch.terminator
        terminator.targets = [ends[0] if t is loop.header else t for t in terminator.targets]
        terminator.metadata = [(k, n) for k, n in terminator.metadata if k != "llvm.loop"]
    for phi in loop.header.instructions:
        if not isinstance(phi, I.Phi):
            break
        phi.incoming = [(v, b) for v, b in phi.incoming if b not in loop.latches]


def catches(block: BasicBlock) -> bool:
    """Does a block begin with an exception? Exceptions leave a loop by ways of their own."""
    return any(isinstance(i, I.LandingPad) for i in block.instructions)


def _goes_on(block: BasicBlock) -> bool:
    """May the function return after a block? After an exception that nobody catches it does not."""
    return any(isinstance(b.terminator, I.Return) for b in reached([block], lambda b: b.successors))


def _dispatch(module: Module, function: Function, teams: bool) -> None:
    """`next` answers with all iterations, if there are any."""
    dominators = Dominators(Cfg(function))
    starts = [(b, c) for b, c in calls_of(function, _START)]
    kept: dict[I.CallBase, list[Value]] = {}
    for block, call in starts:
        at = Builder(BasicBlock())
        bounds = call.arguments[3:6]
        kept[call] = [local(function, v.type) for v in bounds]
        for value, memory in zip(bounds, kept[call], strict=True):
            at.store(value, memory)
        if teams:
            _share(module, function, at, call, kept[call])
        index = block.instructions.index(call)
        block.instructions[index:index] = at.block.instructions
    replaced: dict[Value, Value] = {}
    for block, call in calls_of(function, _NEXT):
        before = [s for s in starts if s[0] is not block and dominators.dominates(s[0], block)]
        if not before:
            raise CompileError("a worksharing loop has no beginning", location(module, call) or function.name)
        nearest = before[0]
        for start in before[1:]:
            if dominators.dominates(nearest[0], start[0]):
                nearest = start
        replaced[call] = _answer(block, call, kept[nearest[1]], nearest[1].arguments[3].type)
    replace_values(function, replaced)


def _share(module: Module, function: Function, at: Builder, call: I.CallBase, kept: list[Value]) -> None:
    """The bounds become those of the member's part; `kept` gets whether that has the last iteration."""
    suffix, type_ = callee_name(call).removeprefix(_START), call.arguments[3].type
    kind = T.FunctionType(T.VOID, (T.PTR, T.I32, T.I32, T.PTR, T.PTR, T.PTR, T.PTR, type_, type_))
    last, stride = local(function, T.I32), local(function, type_)
    loc, thread, _, _, _, step, _ = call.arguments
    evenly = [loc, thread, const_int(T.I32, _EVENLY), last, *kept[:2], stride, step, const_int(type_, 1)]
    at.call(declare(module, _STATIC[0] + suffix, kind), evenly)
    kept.append(last)


def _answer(block: BasicBlock, call: I.CallBase, kept: list[Value], type_: T.Type) -> Value:
    at = Builder(BasicBlock())
    lower, upper, step = (at.load(type_, memory) for memory in kept[:3])
    sign = "u" if callee_name(call).endswith("u") else "s"
    up = at.icmp("sgt", step, const_int(type_, 0))
    more = at.select(up, at.icmp(f"{sign}le", lower, upper), at.icmp(f"{sign}ge", lower, upper))
    result = at.cast("zext", more, T.I32)
    last, *bounds = call.arguments[2:6]
    at.store(result if len(kept) == 3 else at.load(T.I32, kept[3]), last)
    for value, place in zip((lower, upper, step), bounds, strict=True):
        at.store(value, place)
    replace_call(block, call, at.block.instructions)
    return result
