"""Emits the two sweeps of every routine of a reversal.

root     i64 forward(buffers..., shadows..., tape, arena)          void reverse(buffers..., shadows..., tape, arena)
inner    {result, frame} forward(parameters..., shadows..., arena) {adjoints} reverse(frame, adjoint of the result)
segment  as inner, but                                             {adjoints} reverse(frame, parameters..., shadows...)
loop     {way out, frame} forward(parameters..., shadows..., addresses..., arena, alive)
                                                                   {adjoints} reverse(the same, but `frame` at the end)

A loop is one that is checkpointed (`ad.emit.segments`): its segments are inner routines, and it calls their sweeps.
"""

from __future__ import annotations

from functools import cached_property

from jax_enzyme.ad.check.late_sums import check_late_sums
from jax_enzyme.ad.check.reloads import ReloadCheck
from jax_enzyme.ad.check.tapes import check_emission
from jax_enzyme.ad.emit.addresses import holds_address
from jax_enzyme.ad.emit.adjoints import Adjoints
from jax_enzyme.ad.emit.augment import Around, Augmenter, ForwardSweep
from jax_enzyme.ad.emit.early_loads import load_before_branches, load_before_loops
from jax_enzyme.ad.emit.emission import Forward, Reverse
from jax_enzyme.ad.emit.lookup import Lookup
from jax_enzyme.ad.emit.nodes import Nodes, ThreadNodes
from jax_enzyme.ad.emit.partials import Partials
from jax_enzyme.ad.emit.reverse import Sweep
from jax_enzyme.ad.emit.runtime import Runtime
from jax_enzyme.ad.emit.segments import Emitted, LoopSweeps
from jax_enzyme.ad.facts.copying import internal_function
from jax_enzyme.ad.plan.state import heads
from jax_enzyme.ad.plan.tape import Tape
from jax_enzyme.ad.reversal import CutLoop, Reversal, Routine, arguments_of, shadowed_parameters
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.clone import with_room
from jax_enzyme.ir.marks import EARLY
from jax_enzyme.ir.module import Function, only_reached
from jax_enzyme.ir.values import BasicBlock, Value

_ROOT = ("alwaysinline", "nounwind", "mustprogress")
_INNER = ("nounwind",)


class Sweeps:
    """Emits into a module of its own (`module`), which shares what is there already."""

    def __init__(self, reversal: Reversal) -> None:
        self.reversal = reversal
        self.module = with_room(reversal.module)
        for routine in (reversal.root, *reversal.inner.values()):
            self._add_tables(routine.plan.tape)
        self.runtime = Runtime(self.module, reversal.words)
        self._forward_of: dict[Routine, Forward] = {}
        self._reverse_of: dict[Routine, Reverse] = {}
        self._forward = {f: self._declare_forward(r) for f, r in reversal.inner.items()}
        self._reverse = {f: self._declare_reverse(r) for f, r in reversal.inner.items()}
        # Which numbers of a call's arguments the adjoints are of that its reverse returns.
        self._returned_adjoints = {f: [p.index for p in r.parameters] for f, r in reversal.inner.items()}
        self._loops = {f: self._declare_loop(f, cut) for f, cut in reversal.loops.items()}

    def _add_tables(self, tape: Tape) -> None:
        """Adds the tables that items of the tape are found by; what is differentiated may have such of its own."""
        known = self.module.globals
        for table in tape.tables():
            while known.get(table.name, table) is not table:
                table.name += ".more"
            known[table.name] = table

    def check(self) -> None:
        """Emits both sweeps and checks them. Raises EmissionError for a defect."""
        facts = self.reversal.facts
        _ = self.forward, self.reverse
        for routine, reverse in self._reverse_of.items():
            check_emission(routine.plan.tape, routine.function, self._forward_of.get(routine), reverse)
            check_late_sums(reverse, routine.function)
            repeated = {key: slot.repeated for key, slot in routine.plan.tape.slots.items() if slot.repeated}
            if reverse.reloads or reverse.recalls or repeated:
                recipes = routine.plan.recipes
                known = (recipes.layout, facts.execution, recipes.alias)
                reloads = ReloadCheck(routine.function, facts.points_to, *known)
                for load in dict.fromkeys(reverse.reloads.values()):
                    reloads.check(load)
                reloads.check_recalled(dict.fromkeys(reverse.recalls.values()))
                reloads.check_repeated(repeated)

    def delivered(self, target: Function, buffers: tuple[Buffer, ...]) -> ArrayFunction:
        """An array function of the sweeps, in a module that has only what it needs of them."""
        module = with_room(self.module)
        module.functions[target.name] = target
        return ArrayFunction(only_reached(module, target), target.name, buffers)

    # -- forward -------------------------------------------------------------------------------------------------------

    @cached_property
    def forward(self) -> Function:
        """The root's forward sweep; the shadows are used only where shadow pointers are carried."""
        for function, routine in self.reversal.inner.items():
            self._emit_forward(routine, self._forward[function])
        for function, loop in self._loops.items():
            loop.forward(self._forward[function].function)
        target = self._root_function("forward", T.I64)
        arguments, shadows = self._argument_map(target)
        tape, arena = target.arguments[-2:]
        self._augment(
            self.reversal.root, target, arguments, shadows if self._around.carries_shadows else {}, tape, arena, None
        )
        return target

    @cached_property
    def _around(self) -> Around:
        reversal = self.reversal
        states = {f: cut.state for f, cut in reversal.loops.items()}
        carries = reversal.carries_shadows
        return Around(reversal.facts, self.runtime, self._forward, reversal.originals, carries, states)

    def _augment(
        self,
        routine: Routine,
        target: Function,
        arguments: dict[Value, Value],
        shadows: dict[Value, Value],
        tape: Value | None,
        arena: Value,
        own: ForwardSweep | None,
    ) -> None:
        def nodes(prologue: Builder, arena: Value) -> Nodes:
            return self._nodes(routine, prologue, arena)

        augmenter = Augmenter(routine.plan, self._around, target, arguments, shadows, tape, arena, nodes, own)
        self._forward_of[routine] = augmenter.run()

    def _declare_forward(self, routine: Routine) -> ForwardSweep:
        source = routine.function
        facts = self.reversal.facts
        # A loop's segment gets the integers that it needs of its loop.
        is_segment = any(source is cut.segment for cut in self.reversal.loops.values())
        addresses = (a for a in source.arguments if T.is_pointer(a.type) or (a.type == T.I64 and not is_segment))
        shadowed = tuple(a for a in addresses if facts.shadowed_memory(a))
        result = source.function_type.result

        holds = result != T.I64 and holds_address(routine.plan.recipes.layout, result)
        shadow = holds and any(map(facts.shadowed_memory, source.returned()))
        results = [] if isinstance(result, T.VoidType) else [result]
        packed = T.StructType((*results, *([result] if shadow else []), T.PTR))
        types = [*(a.type for a in source.arguments), *(a.type for a in shadowed), T.PTR]
        function = self.function(f"{source.name}.forward", packed, types, variadic=source.function_type.variadic)
        return ForwardSweep(function, shadowed, shadow)

    def _emit_forward(self, routine: Routine, sweep: ForwardSweep) -> None:
        parameters = routine.function.arguments
        given = sweep.function.arguments
        count = len(parameters)
        arguments: dict[Value, Value] = dict(zip(parameters, given[:count], strict=True))
        shadows: dict[Value, Value] = dict(zip(sweep.shadowed, given[count:-1], strict=True))
        self._augment(routine, sweep.function, arguments, shadows, None, given[-1], sweep)

    # -- reverse -------------------------------------------------------------------------------------------------------

    @cached_property
    def reverse(self) -> tuple[Function, set[Value]]:
        """The root's reverse sweep, and the parameters of the base that it reads."""
        for function, routine in self.reversal.inner.items():
            self._emit_reverse(routine, self._reverse[function])
        for function, loop in self._loops.items():
            loop.reverse(self._reverse[function], Partials(Builder(BasicBlock()), self.runtime.declarations))
        target = self._root_function("reverse", T.VOID)
        arguments, shadows = self._argument_map(target)
        tape, arena = target.arguments[-2:]
        used = self._sweep_back(self.reversal.root, target, arguments, shadows, tape, arena, None)
        return target, used

    def _declare_reverse(self, routine: Routine) -> Function:
        source = routine.function
        result: T.Type = T.StructType(tuple(a.type for a in routine.parameters)) if routine.parameters else T.VOID
        types: list[T.Type] = [T.PTR]
        if self._returns_active(routine):
            types.append(source.function_type.result)
        recipes = routine.plan.recipes
        if recipes.is_given:
            types += [a.type for a in (*source.arguments, *shadowed_parameters(recipes, self.reversal.facts))]
        return self.function(f"{source.name}.reverse", result, types)

    def _returns_active(self, routine: Routine) -> bool:
        return any(self.reversal.facts.activity.value(v) for v in routine.function.returned())

    def _emit_reverse(self, routine: Routine, target: Function) -> None:
        frame, *rest = target.arguments
        seed = rest.pop(0) if self._returns_active(routine) else None
        arguments: dict[Value, Value] = dict(zip(routine.function.arguments, rest, strict=False))
        shadowed = shadowed_parameters(routine.plan.recipes, self.reversal.facts)
        shadows: dict[Value, Value] = dict(zip(shadowed, rest[len(arguments) :], strict=True))
        self._sweep_back(routine, target, arguments, shadows, frame, None, seed)

    def _sweep_back(
        self,
        routine: Routine,
        target: Function,
        arguments: dict[Value, Value],
        shadows: dict[Value, Value],
        tape: Value,
        arena: Value | None,
        seed: Value | None,
    ) -> set[Value]:
        prologue = Builder(BasicBlock(name="prologue"))
        builder = Builder(prologue.block)
        iterations: dict[Loop, Value] = {loop: prologue.alloca(T.I64) for loop in routine.code.loops}
        frames: dict[Loop | None, Value] = {None: tape}
        nodes = self._nodes(routine, prologue, arena)
        for loop in routine.plan.tape.frames:
            frames[loop] = prologue.alloca(nodes.type)
        partials = Partials(builder, self.runtime.declarations)
        sources = Lookup(routine.plan, builder, shadows, arguments, iterations, frames, nodes, partials)

        def pulled(call: I.CallBase, frame: Value, adjoint: Value | None) -> list[tuple[int, Value]]:
            cut = self.reversal.loops.get(call.callee) if isinstance(call.callee, Function) else None
            if cut is None:
                return self._pull(builder, call, [frame], adjoint)
            assert arena is not None
            given = [*arguments_of(call, self._forward[cut.function].shadowed, sources)]
            given += [sources.object(item) for item, _ in cut.state.fixed]
            given += [sources.shadows[item.site] for item, _ in cut.state.moved if item.site is not None]
            return self._pull(builder, call, [*given, arena, frame], None)

        adjoints = Adjoints(routine.work, sources, prologue, self.runtime, pulled)

        def finish() -> None:
            adjoints.finish()
            if not routine.parameters:
                builder.ret()
                return
            builder.ret(builder.pack(target.function_type.result, map(adjoints.take, routine.parameters)))

        sweep = Sweep(routine.work, sources, adjoints, iterations, finish)
        if seed is not None:
            for value in routine.function.returned():
                adjoints.add(value, seed)
            adjoints.leave_block()
        start = sweep.run()
        prologue.br(start)
        target.blocks = [prologue.block, *sweep.blocks]
        if routine is self.reversal.root and self.reversal.facts.execution.threads is None:
            known = {**sources.reloads, **adjoints.cotangents}
            counters = frozenset(iterations.values())
            repeated = {twin: load for twin, (load, _) in sources.recalls.items()}
            values = {**sources.reloads, **repeated, **sources.kept}
            load_before_loops(sources.recipes, sweep.positions, values, counters)
            if load_before_branches(routine.work, sources.recipes, sweep.positions, known, counters):
                target.attributes = (*target.attributes, EARLY)
        primal = frozenset(arguments.values())
        self._reverse_of[routine] = Reverse(
            target,
            tape,
            sweep.positions,
            sources.reloads,
            sources.recalls,
            sources.kept,
            primal,
            adjoints.late_sums.buffers,
            routine.work.turned,
        )
        return sources.used_arguments

    def _nodes(self, routine: Routine, prologue: Builder, arena: Value | None) -> Nodes:
        """How a sweep gets at nodes; it begins with `prologue`."""
        tape = routine.plan.tape
        if tape.node_threads is None or not tape.frames:
            return Nodes(tape, self.runtime)
        assert arena is not None
        return ThreadNodes(tape, self.runtime, tape.node_threads, prologue, arena)

    def _pull(
        self, builder: Builder, call: I.CallBase, given: list[Value], adjoint: Value | None
    ) -> list[tuple[int, Value]]:
        callee = call.callee
        assert isinstance(callee, Function)
        target = self._reverse[callee]
        if len(target.arguments) > len(given):
            given.append(adjoint if adjoint is not None else zero(call.type))
        results = builder.call(target, given)
        return [
            (number, builder.extract_value(results, index, callee.arguments[number].type))
            for index, number in enumerate(self._returned_adjoints[callee])
        ]

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _declare_loop(self, function: Function, cut: CutLoop) -> LoopSweeps:
        """The two sweeps of a loop that is checkpointed, whose segments are declared."""
        forward, reverse = self._forward[cut.segment], self._reverse[cut.segment]
        routine = self.reversal.inner[cut.segment]
        primal = self.reversal.originals[cut.segment]
        segment = Emitted(primal, forward.function, reverse, len(forward.shadowed), routine.parameters)
        numbers = heads(other.state for other in self.reversal.loops.values())
        loop = LoopSweeps(self.runtime, segment, cut.state, [numbers[i] for i in cut.state.saved], cut.schedule)
        target = self.function(f"{function.name}.forward", T.StructType((T.I64, T.PTR)), loop.parameters)
        shadowed = tuple(function.arguments[p.index - 2] for p in forward.shadowed)
        self._forward[function] = ForwardSweep(target, shadowed, False)
        result: T.Type = T.StructType(tuple(p.type for p in routine.parameters)) if routine.parameters else T.VOID
        self._reverse[function] = self.function(f"{function.name}.reverse", result, loop.parameters)
        self._returned_adjoints[function] = [p.index - 2 for p in routine.parameters]
        return loop

    # -- functions -----------------------------------------------------------------------------------------------------

    def function(
        self,
        name: str,
        result: T.Type,
        types: list[T.Type],
        words: tuple[str, ...] = (),
        attributes: tuple[str, ...] = _INNER,
        variadic: bool = False,
    ) -> Function:
        """A function of the module, without a body yet."""
        type_ = T.FunctionType(result, tuple(types), variadic)
        return internal_function(self.module, name, type_, words, attributes)

    def _root_function(self, suffix: str, result: T.Type) -> Function:
        """Of the base's buffers, the shadows of `shadow_objects`, the tape and the arena."""
        count = len(self.reversal.base.buffers) + len(self.reversal.shadow_objects) + 2
        name = f"{self.reversal.base.symbol}.{suffix}"
        # Shadow pointers that come back from the tape may lead to the same memory as the parameters.
        words = () if self.reversal.carries_shadows else ("noalias",)
        return self.function(name, result, [T.PTR] * count, words, _ROOT)

    def _argument_map(self, target: Function) -> tuple[dict[Value, Value], dict[Value, Value]]:
        """The parameters of a root's sweep: for the base's parameters, and for the shadows by their objects' sites."""
        sources = self.reversal.root.function.arguments
        count = len(sources)
        sites = [o.site for o in self.reversal.shadow_objects if o.site is not None]
        shadows: dict[Value, Value] = dict(zip(sites, target.arguments[count : count + len(sites)], strict=True))
        return dict(zip(sources, target.arguments[:count], strict=True)), shadows
