"""Emits the two sweeps of every routine of a reversal.

root     i64 forward(buffers..., shadows..., tape, arena)          void reverse(buffers..., shadows..., tape, arena)
inner    {result, frame} forward(parameters..., shadows..., arena) {adjoints} reverse(frame, adjoint of the result)
"""

from __future__ import annotations

from jax_enzyme.ad.adjoints import Adjoints
from jax_enzyme.ad.augment import Augmenter, ForwardSweep
from jax_enzyme.ad.check import Forward, Reverse, check_emission
from jax_enzyme.ad.check_reloads import check_reload
from jax_enzyme.ad.checkpoint import snapshot
from jax_enzyme.ad.common import element_alignment, extended
from jax_enzyme.ad.lookup import Lookup
from jax_enzyme.ad.outline import is_segment
from jax_enzyme.ad.reversal import Reversal, Routine
from jax_enzyme.ad.reverse import Sweep
from jax_enzyme.ad.runtime import ARENA, Runtime
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.declare import Declarations

_ROOT = ("alwaysinline", "nounwind", "mustprogress")
_INNER = ("nounwind",)


class Sweeps:
    """Emits into a module of its own (`module`), which shares what is there already."""

    def __init__(self, reversal: Reversal) -> None:
        self.reversal = reversal
        self.module = extended(reversal.module)
        self.runtime = Runtime(self.module, reversal.kinds)
        self._declarations = Declarations(self.module)
        self._forward_of: dict[Routine, Forward] = {}
        self._reverse_of: dict[Routine, Reverse] = {}
        self._forward = {f: self._declare_forward(r) for f, r in reversal.inner.items()}
        self._reverse = {f: self._declare_reverse(r) for f, r in reversal.inner.items()}

    def check(self) -> None:
        """Checks what has been emitted. Raises EmissionError for a defect."""
        facts = self.reversal.facts
        for routine, reverse in self._reverse_of.items():
            check_emission(routine.plan.tape, routine.function, self._forward_of.get(routine), reverse)
            for load in reverse.reloads.values():
                check_reload(load, routine.function, facts.points_to, routine.plan.recipes.layout)

    # -- forward -------------------------------------------------------------------------------------------------------

    def forward(self) -> Function:
        """The root's forward sweep; the shadows are used only where shadow pointers are carried."""
        for function, routine in self.reversal.inner.items():
            self._emit_forward(routine, self._forward[function])
        target = self._root_function("forward", T.I64, 2)
        arguments, shadows = self._argument_map(target)
        carries = self.reversal.carries_shadows
        self._augment(
            self.reversal.root,
            target,
            arguments,
            shadows if carries else {},
            target.arguments[-2],
            target.arguments[-1],
            None,
        )
        return target

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
        self._forward_of[routine] = Augmenter(
            routine.plan,
            self.reversal.facts,
            self.runtime,
            target,
            arguments,
            shadows,
            routine.pointers,
            tape,
            arena,
            self._forward,
            self.reversal.originals,
            self.reversal.carries_shadows,
            lambda call, shadows: snapshot(self.reversal, call, shadows),
            own,
        ).run()

    def _declare_forward(self, routine: Routine) -> ForwardSweep:
        source = routine.function
        facts = self.reversal.facts
        shadowed = tuple(a for a in source.arguments if T.is_pointer(a.type) and facts.shadowed_memory(a))
        result = source.function_type.result
        returned = [
            b.terminator.operands[0]
            for b in source.blocks
            if isinstance(b.terminator, I.Return) and b.terminator.operands
        ]
        shadow = T.is_pointer(result) and any(map(facts.shadowed_memory, returned))
        results = [] if isinstance(result, T.VoidType) else [result]
        packed = T.StructType((*results, *([T.PTR] if shadow else []), T.PTR))
        types = [*(a.type for a in source.arguments), *(T.PTR for _ in shadowed), T.PTR]
        return ForwardSweep(self._function(f"{source.name}.forward", packed, types), shadowed, shadow)

    def _emit_forward(self, routine: Routine, sweep: ForwardSweep) -> None:
        parameters = routine.function.arguments
        given = sweep.function.arguments
        count = len(parameters)
        arguments: dict[Value, Value] = dict(zip(parameters, given[:count], strict=True))
        shadows: dict[Value, Value] = dict(zip(sweep.shadowed, given[count:-1], strict=True))
        self._augment(routine, sweep.function, arguments, shadows, None, given[-1], sweep)

    # -- reverse -------------------------------------------------------------------------------------------------------

    def reverse(self) -> tuple[Function, set[Value]]:
        """The root's reverse sweep, and the parameters of the base that it reads."""
        for function, routine in self.reversal.inner.items():
            self._emit_reverse(routine, self._reverse[function])
        target = self._root_function("reverse", T.VOID, 2)
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
        return self._function(f"{source.name}.reverse", result, types)

    def _returns_active(self, routine: Routine) -> bool:
        return any(self.reversal.facts.activity.value(v) for v in self._returned(routine))

    def _returned(self, routine: Routine) -> list[Value]:
        last = [b.terminator for b in routine.function.blocks if isinstance(b.terminator, I.Return)]
        return [v for instruction in last for v in instruction.operands]

    def _emit_reverse(self, routine: Routine, target: Function) -> None:
        seed = target.arguments[1] if len(target.arguments) > 1 else None
        self._sweep_back(routine, target, {}, {}, target.arguments[0], None, seed)

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
        for loop in routine.plan.tape.frames:
            frames[loop] = prologue.alloca(T.PTR)
        sources = Lookup(routine.plan, builder, shadows, routine.pointers, arguments, iterations, frames)

        def pulled(call: I.CallBase, frame: Value, adjoint: Value | None) -> list[tuple[int, Value]]:
            if is_segment(call.callee):
                assert arena is not None
                return self._pull_segment(builder, sources, call, frame, arena, prologue.alloca(ARENA, align=16))
            return self._pull(builder, call, frame, adjoint)

        adjoints = Adjoints(self.reversal.facts, sources, builder, prologue, self._declarations, self.runtime, pulled)

        def finish() -> None:
            if not routine.parameters:
                builder.ret()
                return
            packed: Value = zero(target.function_type.result)
            for index, parameter in enumerate(routine.parameters):
                packed = builder.insert_value(packed, adjoints.take(parameter), index)
            builder.ret(packed)

        sweep = Sweep(routine.work, sources, adjoints, builder, iterations, self.runtime.free, finish)
        if seed is not None:
            for value in self._returned(routine):
                adjoints.add(value, seed)
        start = sweep.run()
        prologue.br(start)
        target.blocks = [prologue.block, *sweep.blocks]
        primal = frozenset(arguments.values())
        self._reverse_of[routine] = Reverse(target, tape, sweep.positions, sources.reloads, primal)
        return sources.used_arguments

    def _pull_segment(
        self, builder: Builder, sources: Lookup, call: I.CallBase, record: Value, arena: Value, mark: Value
    ) -> list[tuple[int, Value]]:
        """Puts the state back, runs the segment again with a tape, reverses it, and frees the tape."""
        callee = call.callee
        assert isinstance(callee, Function)
        sweep = self._forward[callee]
        kept = snapshot(self.reversal, call, len(sweep.shadowed))
        for item, offset, size in kept.objects:
            self.runtime.copy(builder, sources.object(item), builder.offset(record, offset), size)
        for item, offset, size in kept.shadow_objects:
            assert item.site is not None
            self.runtime.copy(builder, sources.shadows[item.site], builder.offset(record, offset), size)
        types = sweep.function.function_type.parameters
        given = [
            builder.load(type_, builder.offset(record, offset), element_alignment(type_, None))
            for type_, offset in zip(types, (*kept.arguments, *kept.shadows), strict=False)
        ]
        self.runtime.copy(builder, mark, arena, 24)
        results = builder.call(sweep.function, [*given, arena])
        frame = builder.extract_value(results, 0, T.PTR)
        parts = self._pull(builder, call, frame, None)
        builder.call(self.runtime.arena("reset"), [arena, mark])
        return parts

    def _pull(self, builder: Builder, call: I.CallBase, frame: Value, adjoint: Value | None) -> list[tuple[int, Value]]:
        callee = call.callee
        assert isinstance(callee, Function)
        routine, target = self.reversal.inner[callee], self._reverse[callee]
        seeds: list[Value] = []
        if len(target.arguments) > 1:
            seeds = [adjoint if adjoint is not None else zero(call.type)]
        results = builder.call(target, [frame, *seeds])
        return [
            (parameter.index, builder.extract_value(results, index, parameter.type))
            for index, parameter in enumerate(routine.parameters)
        ]

    # -- functions -----------------------------------------------------------------------------------------------------

    def _function(
        self,
        name: str,
        result: T.Type,
        types: list[T.Type],
        words: tuple[str, ...] = (),
        attributes: tuple[str, ...] = _INNER,
    ) -> Function:
        arguments = [Argument(t, words, i, name=f"a{i}") for i, t in enumerate(types)]
        type_ = T.FunctionType(result, tuple(types))
        function = Function(T.PTR, type_, arguments=arguments, prefix=("internal",), attributes=attributes, name=name)
        self.module.functions[name] = function
        return function

    def _root_function(self, suffix: str, result: T.Type, extra: int) -> Function:
        """Of the base's buffers, the shadows of `shadow_objects`, and `extra` more pointers."""
        count = len(self.reversal.base.buffers) + len(self.reversal.shadow_objects) + extra
        name = f"{self.reversal.base.symbol}.{suffix}"
        # Shadow pointers that come back from the tape may lead to the same memory as the parameters.
        words = () if self.reversal.carries_shadows else ("noalias",)
        return self._function(name, result, [T.PTR] * count, words, _ROOT)

    def _argument_map(self, target: Function) -> tuple[dict[Value, Value], dict[Value, Value]]:
        """The parameters of a root's sweep: for the base's parameters, and for the shadows by their objects' sites."""
        sources = self.reversal.root.function.arguments
        count = len(sources)
        sites = [o.site for o in self.reversal.shadow_objects if o.site is not None]
        shadows: dict[Value, Value] = dict(zip(sites, target.arguments[count : count + len(sites)], strict=True))
        return dict(zip(sources, target.arguments[:count], strict=True)), shadows
