"""What reverse mode knows and decides about an array function before it emits anything.

A *routine* is one function with its reverse: the root, and every function that could not be inlined (a recursive one)
and that the derivative passes through. An inner routine's forward sweep returns a frame: the memory, from the arena,
that holds everything its reverse sweep needs, parameters and shadow pointers included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from jax_enzyme.ad.adjoints import Adjoints
from jax_enzyme.ad.common import extended
from jax_enzyme.ad.facts import Facts
from jax_enzyme.ad.instrument import Instrumented, instrument
from jax_enzyme.ad.lookup import Pointers, Recorder
from jax_enzyme.ad.outline import is_segment
from jax_enzyme.ad.plan import Plan, make_plan
from jax_enzyme.ad.recipes import Recipes, written_objects
from jax_enzyme.ad.refusals import refuse_unprovable
from jax_enzyme.ad.reverse import Sweep, Work
from jax_enzyme.ad.runtime import FloatKinds, Runtime
from jax_enzyme.ad.tape import Tape
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import MemoryObject, Objects, PointsTo, reachable_functions, reachable_objects
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.shadows import shadowed_objects
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.table import Rules


@dataclass(frozen=True, eq=False)
class Routine:
    """One function, planned. `parameters` are those whose adjoints its reverse sweep returns."""

    code: Instrumented
    work: Work
    plan: Plan
    pointers: Pointers
    parameters: tuple[Argument, ...]
    is_root: bool

    @property
    def function(self) -> Function:
        return self.code.function


@dataclass(frozen=True, eq=False)
class Reversal:
    """One reverse differentiation, planned: what both sweeps are emitted from, by one thread at a time.

    `originals` leads from an instrumented function to the one in the module. `shadow_objects` are those whose shadows
    exist once per call and have a known size.
    """

    base: ArrayFunction
    step: Vjp
    module: Module
    facts: Facts
    kinds: FloatKinds
    root: Routine
    inner: dict[Function, Routine]
    originals: dict[Function, Function]
    shadow_objects: tuple[MemoryObject, ...]
    lock: Lock = field(default_factory=Lock)

    @property
    def carries_shadows(self) -> bool:
        """Whether the forward sweep has to carry shadow pointers."""
        return bool(self.inner) or any(p in self.root.plan.taped for p in self.root.pointers.values())

    @property
    def needs_arena(self) -> bool:
        return bool(self.root.plan.tape.frames) or self.carries_shadows

    @property
    def splits(self) -> bool:
        """Whether the sweeps can be two calls: a tape of fixed size without pointers."""
        return self.root.plan.tape.is_static and not self.carries_shadows


def plan_reversal(base: ArrayFunction, step: Vjp, rules: Rules) -> Reversal:
    """Analyses an array function and decides where everything that its reverse reads will come from.

    Whether it splits, Augmented and Pullback are asked for one after the other: the last few plans are kept.
    """
    return _plan(base, step.wanted, step.seeded, rules)


@lru_cache(maxsize=8)
def _plan(base: ArrayFunction, wanted: tuple[bool, ...], seeded: tuple[bool, ...], rules: Rules) -> Reversal:
    module = extended(base.module)
    codes, originals = _instrument_all(module.functions[base.symbol])
    root = codes[0].function
    arguments = root.arguments
    points_to = PointsTo(module, root)
    varied = [points_to.objects[a] for a, w in zip(arguments, wanted, strict=True) if w]
    outputs = [points_to.objects[a] for a, s in zip(arguments, seeded, strict=True) if s]
    activity = Activity(points_to, rules, varied, outputs)
    origin = {k: v for code in codes for k, v in code.origin.items()}
    refuse_unprovable(module, points_to, activity, rules, base.buffers, origin)
    shadowed = shadowed_objects(points_to, activity)
    _refuse_globals(shadowed)
    layout = DataLayout(module)
    writers = written_objects(points_to, layout)
    recipes = [_recipes(code, module, points_to, rules, layout, writers) for code in codes]
    static = sorted((o for o in shadowed if _is_static(o, recipes[0])), key=lambda o: _position(o, root))
    dynamic = frozenset(
        o.site for o in shadowed if o.kind in ("heap", "stack") and o not in static and o.site is not None
    )
    facts = Facts(module, rules, points_to, activity, shadowed, origin, dynamic)
    kinds = FloatKinds(points_to, dict(zip(arguments, base.buffers, strict=True)))
    routines = [
        _routine(code, each, facts, kinds, tuple(static))
        for code, each in zip(codes, recipes, strict=True)
        if code is codes[0] or facts.has_reverse(code.function)
    ]
    inner = {r.function: r for r in routines[1:]}
    return Reversal(base, Vjp(wanted, seeded), module, facts, kinds, routines[0], inner, originals, tuple(static))


def _refuse_globals(shadowed: Objects) -> None:
    for item in shadowed:
        if isinstance(item.site, GlobalVariable) and not item.site.is_constant:
            raise DifferentiationError(
                f"the file-scope variable `{item.site.name}` holds numbers that a derivative depends on, and a "
                "recursive function uses it",
                remedy="pass it as a parameter",
            )


def _instrument_all(root: Function) -> tuple[list[Instrumented], dict[Function, Function]]:
    """The instrumented root, then every function that it can reach, calling one another."""
    codes = {f: instrument(f) for f in reachable_functions(root)}
    for code in codes.values():
        for instruction in code.function.instructions():
            instruction.operands = [
                codes[v].function if isinstance(v, Function) and v in codes else v for v in instruction.operands
            ]
    return list(codes.values()), {code.function: f for f, code in codes.items()}


def _recipes(
    code: Instrumented,
    module: Module,
    points_to: PointsTo,
    rules: Rules,
    layout: DataLayout,
    writers: dict[Function, Objects],
) -> Recipes:
    recurrences = Recurrences(code.function, code.cfg, code.loops, module)
    is_root = code.function is points_to.root
    return Recipes(code, points_to, rules, recurrences, layout, writers, is_root)


def _routine(
    code: Instrumented, recipes: Recipes, facts: Facts, kinds: FloatKinds, static: tuple[MemoryObject, ...]
) -> Routine:
    work = Work(code, facts)
    recorder = _record(recipes, facts, kinds, work, static if recipes.is_root else ())
    tape = Tape(code, recipes.recurrences, recipes.layout)
    resident = _read_by_segments(recipes, facts) if recipes.is_root else ()
    plan = make_plan(recipes, tape, [*recorder.required, *recorder.pointers.values()], resident)
    parameters = () if recipes.is_root else tuple(a for a in code.function.arguments if facts.activity.value(a))
    return Routine(code, work, plan, recorder.pointers, parameters, recipes.is_root)


def _read_by_segments(recipes: Recipes, facts: Facts) -> list[MemoryObject]:
    """Local objects that the reverse sweep needs because it runs segments again."""
    found: list[MemoryObject] = []
    for instruction in recipes.code.function.instructions():
        if isinstance(instruction, I.CallBase) and is_segment(instruction.callee):
            for item in reachable_objects(facts.points_to, instruction):
                if item.kind in ("stack", "heap") and recipes.object_size(item) is not None:
                    found.append(item)
    return found


def _is_static(item: MemoryObject, recipes: Recipes) -> bool:
    return item.kind in ("buffer", "global") or (
        item.kind in ("stack", "heap") and recipes.object_size(item) is not None
    )


def _position(item: MemoryObject, function: Function) -> int:
    values: list[Value] = [*function.arguments, *function.instructions()]
    return next((i for i, v in enumerate(values) if v is item.site), len(values))


def _record(
    recipes: Recipes, facts: Facts, kinds: FloatKinds, work: Work, static: tuple[MemoryObject, ...]
) -> Recorder:
    """Runs the reverse sweep into the void, to see what it asks for."""
    scratch = extended(facts.module)
    builder = Builder(BasicBlock())
    shadows: dict[Value, Value] = {o.site: Argument(T.PTR) for o in static if o.site is not None}
    recorder = Recorder(recipes, builder, shadows)
    runtime = Runtime(scratch, kinds)
    adjoints = Adjoints(facts, recorder, builder, Builder(BasicBlock()), Declarations(scratch), runtime, _pulled)
    iterations: dict[Loop, Value] = {loop: Argument(T.PTR) for loop in work.code.loops}
    Sweep(work, recorder, adjoints, builder, iterations, runtime.free, builder.ret).run()
    return recorder


def _pulled(call: I.CallBase, frame: Value, adjoint: Value | None) -> list[tuple[int, Value]]:
    """Stands in for the reverse of a call while nothing is emitted."""
    return []
