"""Reverse mode of array functions: analysis, plan, both sweeps, and the functions made of them.

    Vjp         allocates tape, arena and local shadows; forward sweep; reverse sweep; frees
    Augmented   the forward sweep, its tape a result
    Pullback    the reverse sweep, the tape an argument
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock

from jax_enzyme.ad.adjoints import Adjoints, Facts
from jax_enzyme.ad.augment import Augmenter
from jax_enzyme.ad.common import array_function, extended
from jax_enzyme.ad.instrument import Instrumented, instrument
from jax_enzyme.ad.lookup import Lookup, Recorder
from jax_enzyme.ad.plan import Plan, ShadowPointer, make_plan
from jax_enzyme.ad.recipes import Recipes
from jax_enzyme.ad.reverse import Sweep, Work
from jax_enzyme.ad.runtime import ARENA, FloatKinds, Runtime
from jax_enzyme.ad.tape import Tape
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import MemoryObject, PointsTo
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Augmented, Buffer, Pullback, Vjp, shadow_buffers, vjp_buffers
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.table import Rules

_STACK_BYTES = 4096


@dataclass(frozen=True, eq=False)
class Reversal:
    """One reverse differentiation, planned: what both sweeps are emitted from, by one thread at a time."""

    base: ArrayFunction
    step: Vjp
    module: Module
    code: Instrumented
    facts: Facts
    plan: Plan
    work: Work
    runtime: Runtime
    pointers: dict[Value, ShadowPointer]
    shadow_objects: tuple[MemoryObject, ...]
    lock: Lock = field(default_factory=Lock)

    @property
    def carries_shadows(self) -> bool:
        """Whether the forward sweep has to carry shadow pointers."""
        return any(p in self.plan.taped for p in self.pointers.values())

    @property
    def splits(self) -> bool:
        """Whether the sweeps can be two calls: a tape of fixed size without pointers."""
        return self.plan.tape.is_static and not self.carries_shadows


def plan_reversal(base: ArrayFunction, step: Vjp, rules: Rules) -> Reversal:
    """Analyses an array function and decides where everything that its reverse reads will come from.

    Whether it splits, Augmented and Pullback are asked for one after the other: the last few plans are kept.
    """
    return _plan(base, step.wanted, step.seeded, rules)


@lru_cache(maxsize=8)
def _plan(base: ArrayFunction, wanted: tuple[bool, ...], seeded: tuple[bool, ...], rules: Rules) -> Reversal:
    step = Vjp(wanted, seeded)
    module = extended(base.module)
    code = instrument(module.functions[base.symbol])
    arguments = code.function.arguments
    buffers = dict(zip(arguments, base.buffers, strict=True))
    points_to = PointsTo(module, code.function)
    varied = [points_to.objects[a] for a, w in zip(arguments, step.wanted, strict=True) if w]
    seeded = [points_to.objects[a] for a, s in zip(arguments, step.seeded, strict=True) if s]
    activity = Activity(points_to, rules, varied, seeded)
    recurrences = Recurrences(code.function, code.cfg, code.loops, module)
    layout = DataLayout(module)
    recipes = Recipes(code, points_to, rules, recurrences, layout, buffers)
    shadowed = shadowed_objects(points_to, activity)
    static = tuple(
        sorted((o for o in shadowed if _is_static(o, recipes)), key=lambda o: _position(o, code.function)),
    )
    dynamic = frozenset(o.site for o in shadowed if o.kind == "heap" and o not in static and o.site is not None)
    facts = Facts(module, rules, points_to, activity, shadowed, code.origin, dynamic)
    work = Work(code, facts)
    runtime = Runtime(module, FloatKinds(points_to, buffers))
    recorder = _record(recipes, facts, work, runtime, static)
    tape = Tape(code, recurrences, layout)
    required: list[Value] = [*recorder.required, *recorder.pointers.values()]
    plan = make_plan(recipes, tape, required)
    return Reversal(base, step, module, code, facts, plan, work, runtime, recorder.pointers, static)


def _is_static(item: MemoryObject, recipes: Recipes) -> bool:
    return item.kind == "buffer" or (item.kind in ("stack", "heap") and recipes.object_size(item) is not None)


def _position(item: MemoryObject, function: Function) -> int:
    values: list[Value] = [*function.arguments, *function.instructions()]
    return next(i for i, v in enumerate(values) if v is item.site)


def _record(
    recipes: Recipes, facts: Facts, work: Work, runtime: Runtime, static: tuple[MemoryObject, ...]
) -> Recorder:
    """Runs the reverse sweep into the void, to see what it asks for."""
    scratch = extended(facts.module)
    builder = Builder(BasicBlock())
    shadows: dict[Value, Value] = {o.site: Argument(T.PTR) for o in static if o.site is not None}
    recorder = Recorder(recipes, builder, shadows)
    declarations = Declarations(scratch)
    prologue = Builder(BasicBlock())
    adjoints = Adjoints(facts, recorder, builder, prologue, declarations, Runtime(scratch, runtime.kinds))
    iterations: dict[Loop, Value] = {loop: Argument(T.PTR) for loop in work.code.loops}
    Sweep(work, recorder, adjoints, builder, iterations, _free(declarations)).run()
    return recorder


def _free(declarations: Declarations) -> Function:
    return declarations.function("free", T.FunctionType(T.VOID, (T.PTR,)))


# -- emission ------------------------------------------------------------------------------------------------------------


def _sweep_function(reversal: Reversal, suffix: str, result: T.Type, extra: int) -> Function:
    """An internal function of the base's buffers, the shadows of `shadow_objects`, and `extra` more pointers."""
    count = len(reversal.base.buffers) + len(reversal.shadow_objects) + extra
    words = ("noalias",)
    arguments = [Argument(T.PTR, words, i, name=f"a{i}") for i in range(count)]
    type_ = T.FunctionType(result, (T.PTR,) * count)
    name = f"{reversal.base.symbol}.{suffix}"
    attributes = ("alwaysinline", "nounwind", "mustprogress")
    function = Function(T.PTR, type_, arguments=arguments, prefix=("internal",), attributes=attributes, name=name)
    reversal.module.functions[name] = function
    return function


def _argument_map(reversal: Reversal, target: Function) -> tuple[dict[Value, Value], dict[Value, Value]]:
    """The parameters of a sweep function: for the base's parameters, and for the shadows by their objects' sites."""
    sources = reversal.code.function.arguments
    count = len(sources)
    sites = [o.site for o in reversal.shadow_objects if o.site is not None]
    shadows: dict[Value, Value] = dict(zip(sites, target.arguments[count : count + len(sites)], strict=True))
    return dict(zip(sources, target.arguments[:count], strict=True)), shadows


def emit_forward_sweep(reversal: Reversal) -> Function:
    """`i64 f(buffers..., shadows..., tape, arena)`; the shadows are used only where shadow pointers are carried."""
    target = _sweep_function(reversal, "forward", T.I64, 2)
    arguments, shadows = _argument_map(reversal, target)
    Augmenter(
        reversal.plan,
        reversal.facts,
        reversal.runtime,
        target,
        arguments,
        shadows if reversal.carries_shadows else {},
        reversal.pointers,
        target.arguments[-2],
        target.arguments[-1],
    ).run()
    return target


def emit_reverse_sweep(reversal: Reversal) -> tuple[Function, set[Value]]:
    """`void f(buffers..., shadows..., tape)`, and the parameters of the base that it reads."""
    target = _sweep_function(reversal, "reverse", T.VOID, 1)
    arguments, shadows = _argument_map(reversal, target)
    prologue = Builder(BasicBlock(name="prologue"))
    builder = Builder(prologue.block)
    iterations: dict[Loop, Value] = {loop: prologue.alloca(T.I64) for loop in reversal.code.loops}
    frames: dict[Loop | None, Value] = {None: target.arguments[-1]}
    for loop in reversal.plan.tape.frames:
        frames[loop] = prologue.alloca(T.PTR)
    sources = Lookup(reversal.plan, builder, shadows, reversal.pointers, arguments, iterations, frames)
    declarations = Declarations(reversal.module)
    adjoints = Adjoints(reversal.facts, sources, builder, prologue, declarations, reversal.runtime)
    sweep = Sweep(reversal.work, sources, adjoints, builder, iterations, _free(declarations))
    start = sweep.run()
    prologue.br(start)
    target.blocks = [prologue.block, *sweep.blocks]
    return target, sources.used_arguments


def combined(reversal: Reversal) -> ArrayFunction:
    """Both sweeps in one array function."""
    forward = emit_forward_sweep(reversal)
    backward, _ = emit_reverse_sweep(reversal)
    base = reversal.base
    buffers = vjp_buffers(base.buffers, reversal.step)
    target = array_function(f"{base.symbol}.vjp", buffers)
    reversal.module.functions[target.name] = target
    frame = _Frame(reversal, target, len(base.buffers), buffers)
    own = list(target.arguments[: len(base.buffers)])
    tape = frame.room(reversal.plan.tape.root.size)
    arena = frame.arena()
    shadows = frame.shadows()
    status = frame.builder.call(forward, [*own, *shadows, tape, arena])
    frame.builder.call(backward, [*own, *shadows, tape])
    frame.finish(status)
    return ArrayFunction(reversal.module, target.name, buffers)


def augmented(reversal: Reversal) -> ArrayFunction:
    """The forward sweep with its tape as a result, and scratch contents that reverse reads."""
    _require_split(reversal)
    forward = emit_forward_sweep(reversal)
    _, used = emit_reverse_sweep(reversal)
    base = reversal.base
    kept: list[Buffer] = []
    for argument, buffer in zip(reversal.code.function.arguments, base.buffers, strict=True):
        io = "out" if buffer.io == "scratch" and argument in used else buffer.io
        kept.append(replace(buffer, role="primal", of=len(kept), io=io))
    buffers = (*kept, _tape_buffer(reversal, "out"))
    target = array_function(f"{base.symbol}.augmented", buffers)
    reversal.module.functions[target.name] = target
    builder = Builder(BasicBlock(name="entry"))
    target.blocks = [builder.block]
    null: Value = ConstantNull(T.PTR)
    own, tape = target.arguments[: len(kept)], target.arguments[-1]
    shadows = [null for _ in reversal.shadow_objects]
    builder.ret(builder.call(forward, [*own, *shadows, tape, null]))
    return ArrayFunction(reversal.module, target.name, buffers)


def pullback(reversal: Reversal) -> ArrayFunction:
    """The reverse sweep over the tape and the buffers that it reads."""
    _require_split(reversal)
    backward, used = emit_reverse_sweep(reversal)
    base = reversal.base
    read: list[Buffer] = []
    for index, (argument, buffer) in enumerate(zip(reversal.code.function.arguments, base.buffers, strict=True)):
        if argument in used:
            role = "initial" if buffer.io == "in" else "final"
            read.append(replace(buffer, role=role, of=index, io="in", zero=False, discard=False))
    buffers = (*read, _tape_buffer(reversal, "in"), *shadow_buffers(base.buffers, reversal.step))
    target = array_function(f"{base.symbol}.pullback", buffers)
    reversal.module.functions[target.name] = target
    frame = _Frame(reversal, target, len(read) + 1, buffers)
    given = {b.of: a for b, a in zip(read, target.arguments, strict=False)}
    null: Value = ConstantNull(T.PTR)
    own = [given.get(i, null) for i in range(len(base.buffers))]
    frame.builder.call(backward, [*own, *frame.shadows(), target.arguments[len(read)]])
    frame.finish(zero(T.I64))
    return ArrayFunction(reversal.module, target.name, buffers)


def _tape_buffer(reversal: Reversal, io) -> Buffer:  # noqa: ANN001
    return Buffer("tape", "u8", (reversal.plan.tape.root.size,), io, "tape")


def _require_split(reversal: Reversal) -> None:
    if not reversal.splits:
        raise DifferentiationError(
            f"the reverse of `{reversal.base.symbol}` needs a tape whose size is known only at run time",
            remedy="use the combined derivative (Vjp), which recomputes the forward sweep",
        )


class _Frame:
    """The body of a derivative: memory that lives for one call, made at the start and freed at the end."""

    def __init__(self, reversal: Reversal, target: Function, first: int, buffers: tuple[Buffer, ...]) -> None:
        self._reversal = reversal
        self._given = {b.of: a for b, a in zip(buffers[first:], target.arguments[first:], strict=True)}
        self._heap: list[Value] = []
        self._arena: Value | None = None
        self.builder = Builder(BasicBlock(name="entry"))
        target.blocks = [self.builder.block]

    def room(self, size: int, zeroed: bool = False) -> Value:
        """Memory of constant size: on the stack where it is small."""
        if size == 0:
            return ConstantNull(T.PTR)
        if size > _STACK_BYTES:
            self._heap.append(self._reversal.runtime.allocate(self.builder, size))
            return self._heap[-1]
        type_ = T.ArrayType(size, T.I8)
        memory = self.builder.alloca(type_, align=16)
        if zeroed:
            self.builder.store(zero(type_), memory)
        return memory

    def arena(self) -> Value:
        if not self._reversal.plan.tape.frames:
            return ConstantNull(T.PTR)
        self._arena = self.builder.alloca(ARENA, align=16)
        self.builder.store(zero(ARENA), self._arena)
        return self._arena

    def shadows(self) -> list[Value]:
        """One per shadowed object: given, or made here and zero."""
        found: list[Value] = []
        arguments = self._reversal.code.function.arguments
        for item in self._reversal.shadow_objects:
            if item.kind == "buffer":
                index = next(i for i, a in enumerate(arguments) if a is item.site)
                size = self._reversal.base.buffers[index].nbytes
                found.append(self._given[index] if index in self._given else self.room(size, zeroed=True))
            else:
                found.append(self.room(self._reversal.plan.recipes.object_size(item) or 0, zeroed=True))
        return found

    def finish(self, status: Value) -> None:
        runtime = self._reversal.runtime
        if self._arena is not None:
            self.builder.call(runtime.arena("release"), [self._arena])
        for memory in self._heap:
            runtime.free(self.builder, memory)
        self.builder.ret(status)


def derive_reverse(base: ArrayFunction, step: Vjp, rules: Rules) -> ArrayFunction:
    """The array function of one reverse step."""
    planned = plan_reversal(base, step, rules)
    with planned.lock:
        module = extended(planned.module)
        reversal = replace(planned, module=module, runtime=Runtime(module, planned.runtime.kinds))
        match step:
            case Augmented():
                return augmented(reversal)
            case Pullback():
                return pullback(reversal)
            case _:
                return combined(reversal)
