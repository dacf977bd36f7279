"""What reverse mode knows and decides about an array function before it emits anything.

A *routine* is one function with its reverse: the root, and every function that could not be inlined (a recursive one)
and that the derivative passes through. An inner routine's forward sweep returns a frame: the memory, from the arena,
that holds everything its reverse sweep needs, parameters and shadow pointers included. A loop that has been cut out to
be checkpointed is no routine, its segments are: what runs them is `ad.emit.segments`' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from threading import Lock

from jax_enzyme.ad.emit.adjoints import Adjoints
from jax_enzyme.ad.emit.lookup import Sources
from jax_enzyme.ad.emit.reverse import Sweep
from jax_enzyme.ad.emit.runtime import Runtime
from jax_enzyme.ad.emit.segments import Schedule
from jax_enzyme.ad.facts.cut_numbers import looked_at
from jax_enzyme.ad.facts.functions import ALONE, Execution, Facts
from jax_enzyme.ad.facts.instrument import Instrumented, instrument
from jax_enzyme.ad.facts.refusals import memory_with_shadows, refuse_unprovable
from jax_enzyme.ad.facts.room import measured_memory
from jax_enzyme.ad.plan.arms import Arms
from jax_enzyme.ad.plan.choices import ALL, Choices
from jax_enzyme.ad.plan.outline import Outlined
from jax_enzyme.ad.plan.recipes import Program, Recipes
from jax_enzyme.ad.plan.state import State, StateFinder
from jax_enzyme.ad.plan.tape import Slot, Tape
from jax_enzyme.ad.plan.taping import Plan, make_plan
from jax_enzyme.ad.plan.work import Work
from jax_enzyme.ad.plan.writers import written_objects
from jax_enzyme.analysis.accesses import reachable_objects
from jax_enzyme.analysis.activity import activity_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, Objects, reachable_functions
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Vjp
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantInt, Value
from jax_enzyme.rules.table import Rules
from jax_enzyme.transform.divisions import may_trap


@dataclass(frozen=True, eq=False)
class Routine:
    """One function, planned. `parameters` are those whose adjoints its reverse sweep returns."""

    work: Work
    plan: Plan
    parameters: tuple[Argument, ...]

    @property
    def code(self) -> Instrumented:
        return self.work.code

    @property
    def function(self) -> Function:
        return self.code.function


@dataclass(frozen=True)
class Cut:
    """A loop to checkpoint, and how."""

    names: Outlined
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class CutLoop:
    """A loop that is checkpointed: the function that it became, its segment, its state."""

    function: Function
    segment: Function
    state: State
    schedule: Schedule

    @property
    def parameters(self) -> list[Argument]:
        return self.function.arguments


@dataclass(frozen=True, eq=False)
class Reversal:
    """One reverse differentiation, planned: what both sweeps are emitted from, by the one thread that has the `lock`,
    which it shares with other differentiations of the same function.

    `originals` leads from an instrumented function to the one in the module. `shadow_objects` are those whose shadows
    exist once per call and have a known size. `loops` are those that are checkpointed.
    """

    base: ArrayFunction
    step: Vjp
    module: Module
    facts: Facts
    words: Words
    root: Routine
    inner: dict[Function, Routine]
    originals: dict[Function, Function]
    shadow_objects: tuple[MemoryObject, ...]
    loops: dict[Function, CutLoop]
    choices: Choices
    lock: Lock

    @property
    def carries_shadows(self) -> bool:
        """Whether the forward sweep has to carry shadow pointers."""
        return (
            bool(self.inner)
            or bool(self.facts.compared)
            or any(p in self.root.plan.taped for p in self.root.plan.pointers.values())
        )

    @property
    def needs_arena(self) -> bool:
        return bool(self.root.plan.tape.frames) or self.carries_shadows

    @property
    def splits(self) -> bool:
        """Whether the sweeps can be two calls: a tape of fixed size without pointers."""
        return self.root.plan.tape.is_static and not self.carries_shadows

    @property
    def may_fail(self) -> bool:
        """Whether the kernel may return another status than zero: its own, or one of a division, which will be guarded
        (on GPUs none is), or of a distance."""
        terminators = (block.terminator for block in self.root.function.blocks)
        statuses = [t.operands[0] for t in terminators if isinstance(t, I.Return) and t.operands]
        if not all(isinstance(status, ConstantInt) and status.value == 0 for status in statuses):
            return True
        on_cpu = self.facts.execution.threads is None
        may_trap_here = any(map(may_trap, self.root.function.instructions()))
        return on_cpu and (may_trap_here or bool(self.facts.compared))


def plan_reversal(
    base: ArrayFunction,
    step: Vjp,
    rules: Rules,
    cuts: tuple[Cut, ...] = (),
    execution: Execution = ALONE,
    choices: Choices = ALL,
) -> Reversal:
    """Analyses an array function and decides where everything that its reverse reads will come from. `cuts` are loops
    of it that have been cut out; `choices` is what the plan may use.

    Whether it splits, Augmented and Pullback are asked for one after the other: the last few plans are kept.
    """
    return _plan(base, Vjp(step.wanted, step.seeded), rules, cuts, execution, choices)


@dataclass(frozen=True, eq=False)
class _Survey:
    """What is known of an array function whatever is differentiated; the first of the recipes are the root's."""

    program: Program
    recipes: list[Recipes]
    originals: dict[Function, Function]
    origin: dict[Value, I.Instruction]
    words: Words
    lock: Lock = field(default_factory=Lock)


@lru_cache(maxsize=4)
def _survey(
    base: ArrayFunction, rules: Rules, cuts: tuple[Cut, ...], execution: Execution, choices: Choices
) -> _Survey:
    module = with_room(base.module)
    codes, originals = _instrument_all(module.functions[base.symbol])
    root = codes[0].function
    points_to = PointsTo(module, root)
    words = Words(points_to, dict(zip(root.arguments, base.buffers, strict=True)))
    layout = DataLayout(module)
    writers, measured = written_objects(points_to, layout), measured_memory(points_to)
    given = {base.symbol, *(cut.names.segment for cut in cuts)}
    program = Program(module, points_to, rules, layout, writers, measured, given, execution, choices)
    origin = {k: v for code in codes for k, v in code.origin.items()}
    return _Survey(program, [Recipes(code, program) for code in codes], originals, origin, words)


@lru_cache(maxsize=8)
def _plan(
    base: ArrayFunction, step: Vjp, rules: Rules, cuts: tuple[Cut, ...], execution: Execution, choices: Choices
) -> Reversal:
    survey = _survey(base, rules, cuts, execution, choices)
    with survey.lock:
        return _planned(base, step, cuts, survey)


def _planned(base: ArrayFunction, step: Vjp, cuts: tuple[Cut, ...], survey: _Survey) -> Reversal:
    program, words, recipes = survey.program, survey.words, survey.recipes
    module, points_to, rules, execution = program.module, program.points_to, program.rules, program.execution
    root = points_to.root
    arguments = root.arguments
    activity = activity_of(points_to, rules, step, in_frames=base.is_derivative)
    activity = refuse_unprovable(words, activity, rules, survey.origin)
    shadowed = memory_with_shadows(points_to, activity, survey.origin)
    _refuse_globals(shadowed, execution)
    sites: tuple[Value, ...] = (*arguments, *root.instructions(), *module.globals.values())
    places: dict[Value | None, int] = {site: n for n, site in enumerate(sites)}
    static = sorted((o for o in shadowed if _is_static(o, recipes[0])), key=lambda o: places[o.site])
    dynamic = frozenset(
        o.site for o in shadowed if o.kind in ("heap", "stack") and o not in static and o.site is not None
    )
    again = any(buffer.role == "shadow" for buffer in base.buffers)
    dropped = tuple(points_to.objects[a] for a, w in zip(arguments, step.wanted, strict=True) if not w)
    looks = looked_at(words, activity) if execution is ALONE and not again else frozenset[MemoryObject]()
    facts = Facts(
        module, rules, points_to, activity, shadowed, survey.origin, dynamic, execution, again, dropped, looks
    )
    loops = _cut_loops(base, cuts, recipes[0], facts, words)
    routines = [
        _routine(each, facts, words, tuple(static), loops)
        for each in recipes
        if each.is_root or (facts.has_reverse(each.code.function) and each.code.function not in loops)
    ]
    inner = {r.function: r for r in routines[1:]}
    made = (base, step, module, facts, words, routines[0], inner, survey.originals, tuple(static), loops)
    return Reversal(*made, program.choices, survey.lock)


def _cut_loops(
    base: ArrayFunction, cuts: tuple[Cut, ...], recipes: Recipes, facts: Facts, words: Words
) -> dict[Function, CutLoop]:
    """The loops that are checkpointed. One that has nothing to reverse is a function like others."""
    schedules = {cut.names.loop: cut for cut in cuts}
    functions = {f.name: f for f in facts.points_to.functions}
    found: dict[Function, CutLoop] = {}
    for call in recipes.code.function.instructions():
        callee = call.callee if isinstance(call, I.CallBase) else None
        if isinstance(callee, Function) and callee.name in schedules and facts.has_reverse(callee):
            assert isinstance(call, I.CallBase)
            cut = schedules[callee.name]
            state = StateFinder(base, call, recipes, facts, words).find()
            found[callee] = CutLoop(callee, functions[cut.names.segment], state, cut.schedule)
    return found


def _refuse_globals(shadowed: Objects, execution: Execution) -> None:
    for item in shadowed:
        if isinstance(item.site, GlobalVariable) and not item.site.is_constant and not execution.shares(item):
            raise execution.global_error(item.site.name)


def _instrument_all(root: Function) -> tuple[list[Instrumented], dict[Function, Function]]:
    """The instrumented root, then every function that it can reach, calling one another."""
    codes = {f: instrument(f) for f in reachable_functions(root)}
    for code in codes.values():
        for instruction in code.function.instructions():
            instruction.operands = [
                codes[v].function if isinstance(v, Function) and v in codes else v for v in instruction.operands
            ]
    return list(codes.values()), {code.function: f for f, code in codes.items()}


def _routine(
    recipes: Recipes,
    facts: Facts,
    words: Words,
    static: tuple[MemoryObject, ...],
    loops: dict[Function, CutLoop],
) -> Routine:
    work = Work(recipes, facts, words)
    sites = [o.site for o in static if o.site is not None] if recipes.is_root else shadowed_parameters(recipes, facts)
    asked = _record(recipes, words, work, sites, loops)
    threads, node_threads, packs = facts.execution.threads, facts.execution.node_threads, recipes.choices.packing
    shared = (recipes.recurrences, recipes.layout, words.may_be_bits, threads, node_threads)
    arms = Arms[Slot](recipes.code.cfg) if recipes.choices.arms and threads is None and node_threads is None else None
    tape = Tape(recipes.code, *shared, recipes.is_root, packs, arms, recipes.is_shared)
    resident = _read_again(recipes, facts, loops) if recipes.is_root else ()
    plan = make_plan(recipes, tape, asked.required, asked.pointers, resident)
    arguments = () if recipes.is_root else recipes.code.function.arguments
    return Routine(work, plan, tuple(filter(facts.activity.value, arguments)))


def shadowed_parameters(recipes: Recipes, facts: Facts) -> list[Argument]:
    """The parameters of an inner routine whose shadows its reverse gets along with them."""
    parameters = recipes.code.function.arguments if recipes.is_given else ()
    return [a for a in parameters if T.is_pointer(a.type) and facts.shadowed_memory(a)]


def _read_again(recipes: Recipes, facts: Facts, loops: dict[Function, CutLoop]) -> list[MemoryObject]:
    """Local objects that the reverse sweep needs because it runs parts of loops again."""
    found: dict[MemoryObject, None] = {}
    for instruction in recipes.code.function.instructions():
        if isinstance(instruction, I.CallBase) and instruction.callee in loops:
            for item in reachable_objects(facts.points_to, instruction):
                if item.kind in ("stack", "heap") and recipes.object_size(item) is not None:
                    found[item] = None
    return list(found)


def _is_static(item: MemoryObject, recipes: Recipes) -> bool:
    return item.kind in ("buffer", "global") or (
        item.kind in ("stack", "heap") and recipes.object_size(item) is not None
    )


def _record(
    recipes: Recipes, words: Words, work: Work, shadowed: Sequence[Value], loops: dict[Function, CutLoop]
) -> Sources:
    """Runs the reverse sweep into the void, to see what it asks for. It has the shadows of the values `shadowed`."""
    facts = work.facts
    shadows: dict[Value, Value] = {value: Argument(T.PTR) for value in shadowed}
    asked = Sources(recipes, Builder(BasicBlock()), shadows)

    def pulled(call: I.CallBase, frame: Value, adjoint: Value | None) -> list[tuple[int, Value]]:
        cut = loops.get(call.callee) if isinstance(call.callee, Function) else None
        if cut is not None:
            shadowed = tuple(a for a in cut.parameters if T.is_pointer(a.type) and facts.shadowed_memory(a))
            list(arguments_of(call, shadowed, asked))
        return []

    adjoints = Adjoints(work, asked, Builder(BasicBlock()), Runtime(with_room(facts.module), words), pulled)
    iterations: dict[Loop, Value] = {loop: Argument(T.PTR) for loop in work.code.loops}
    Sweep(work, asked, adjoints, iterations, asked.builder.ret).run()
    return asked


def arguments_of(call: I.CallBase, shadowed: tuple[Argument, ...], sources: Sources) -> Iterator[Value]:
    """What a checkpointed loop was called with, in the reverse sweep: arguments, and the shadows of some."""
    for argument in call.arguments:
        yield sources.value(argument)
    for parameter in shadowed:
        yield sources.shadow(call.arguments[parameter.index])
