"""What a kernel may find otherwise when it runs a second time, because it ran before, or because time went on.

A derivative that has no tape of the first run runs the kernel again. What it reads of a file that the first run has
changed is something else then; so are what somebody typed, and the time:

    f = fopen("count", "r"); fscanf(f, "%lf", &n); ...; f = fopen("count", "w"); fprintf(f, "%g", n + 1);

Files are told apart by their names, and one that is emptied first holds what this run has written. Of numbers it is
followed where they go, to which bytes of memory: a time that is printed, that decides what is printed, or that is kept
beside the result changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from jax_enzyme.analysis.accesses import closure
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.congruence import ANY, copied_to, overlap
from jax_enzyme.analysis.divergence import Divergence
from jax_enzyme.analysis.file_uses import FileUse, file_uses
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, call_effect, copy_operands, is_defined_call
from jax_enzyme.analysis.usefulness import Part, parts
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Module, callee_name, uses
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.draws import differs, left
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.files import reads
from jax_enzyme.rules.opened import Way, reads_by_mpi
from jax_enzyme.rules.table import Rules

_ADDS = frozenset("fadd fsub fneg fptrunc fpext bitcast freeze phi load store insertvalue extractvalue".split())
"""What has derivatives that do not depend on the numbers that come in."""
_MOST_PARTS = 64
"""Of an object of which so many ranges of bytes depend on them, all do."""
_SILENT = (Effect.OUTPUT, Effect.FREE, Effect.IGNORED)


def changed_file(module: Module, rules: Rules) -> FileUse | None:
    """A place where a kernel may find another file than the first time."""
    uses = [] if _is_promised(module, rules) else file_uses(module)
    consuming = next((use for use in uses if Way.CONSUMES in use.way), None)
    if consuming is not None:
        return consuming
    changes = [u for u in uses if u.way & (Way.CHANGES | Way.REPLACES)]
    for use in uses:
        if Way.LOOKS in use.way and any(map(use.may_meet, changes)):
            emptied = (u for u in changes if Way.REPLACES in u.way and u.name is not None and u.name == use.name)
            if not any(_comes_first(module, u.instruction, use.instruction) for u in emptied):
                return use
    return None


def _is_promised(module: Module, rules: Rules) -> bool:
    """Whether the user has a rule for all functions that read."""
    readers = [f for name, f in module.functions.items() if reads(name) or reads_by_mpi(name)]
    return bool(readers) and all(rules.for_call(f.name, f.function_type) is not None for f in readers)


def draws_numbers(module: Module) -> bool:
    """Whether a module has functions that return another number each time."""
    return any(map(differs, module.functions))


def drawn_number(points_to: PointsTo, activity: Activity, rules: Rules) -> I.CallBase | None:
    """A call for a number that is another one each time, where a derivative may depend on it."""
    instructions = list(points_to.instructions())
    calls = (i for i in instructions if isinstance(i, I.CallBase) and not is_defined_call(i))
    drawn = [call for call in calls if differs(callee_name(call)) and rule_of(call, rules) is None]
    return drawn[0] if drawn and _Spread(points_to, activity, drawn).matters(instructions) else None


def _comes_first(module: Module, first: I.Instruction, second: I.Instruction) -> bool:
    """Whether one instruction has run whenever another one does: where both are in one function."""
    for function in module.functions.values():
        if first in (own := set(function.instructions())) and second in own:
            return Loops.of(function).precedes(first, second)
    return False


class _Spread:
    """What depends on some calls, values and objects, as far as it goes."""

    def __init__(self, points_to: PointsTo, activity: Activity, calls: Collection[I.CallBase]) -> None:
        self._points_to = points_to
        self._activity = activity
        self._calls = frozenset(calls)
        self._values: set[Value] = set()
        self._parts: dict[MemoryObject, set[Part]] = {}
        self._known: dict[I.Instruction, Collection[Value] | None] = {}

    def matters(self, instructions: Collection[I.Instruction]) -> bool:
        """Whether a derivative may depend on them: by a choice, an address, or a number that it is computed with."""
        before = -1
        while before != (before := len(self._values) + sum(map(len, self._parts.values()))):
            for instruction in instructions:
                self._step(instruction)
        return any(map(self._decides, instructions))

    def _step(self, instruction: I.Instruction) -> None:
        given = instruction.operands
        match instruction:
            case I.CallBase() if instruction in self._calls:
                self._values.add(instruction)
                self._mark(instruction.arguments, left(callee_name(instruction)))
            case I.CondBranch() | I.Switch() if given[0] in self._values:
                self._values.update(self._chosen(instruction) or ())
            case I.Store() if given[0] in self._values:
                self._put(given[1], self._size(given[0].type))
            case I.CallBase() if is_defined_call(instruction):
                self._enter(instruction)
            case I.CallBase() if call_effect(instruction) in _SILENT:
                pass
            case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
                self._copy(*copy_operands(instruction))
            case I.CallBase() if call_effect(instruction) is Effect.MEMORY_SET and self._values.isdisjoint(given):
                pass
            case I.CallBase() if self._is_given(instruction.arguments):
                self._values.add(instruction)
                self._mark(instruction.arguments)
            case I.Load() | I.AtomicRMW() | I.CmpXchg() if self._holds(given[0], self._size(instruction.type)):
                self._values.add(instruction)
            case _ if not self._values.isdisjoint(given):
                self._values.add(instruction)
            case _:
                pass

    def _enter(self, call: I.CallBase) -> None:
        callee = call.callee
        assert isinstance(callee, Function)
        self._values.update(p for p, a in zip(callee.arguments, call.arguments, strict=False) if a in self._values)
        if not self._values.isdisjoint(callee.returned()):
            self._values.add(call)

    def _is_given(self, arguments: Iterable[Value]) -> bool:
        return any(a in self._values or not self._parts.keys().isdisjoint(self._reach(a)) for a in arguments)

    def _mark(self, arguments: Iterable[Value], size: int | None = None) -> None:
        for argument in arguments:
            for part in map(Part, self._reach(argument)) if size is None else parts(self._points_to, argument, size):
                self._add(part)

    def _put(self, pointer: Value, size: int | None) -> None:
        for part in parts(self._points_to, pointer, size):
            self._add(part)

    def _copy(self, target: Value, source: Value, length: int | None) -> None:
        to = parts(self._points_to, target, length)
        for here in parts(self._points_to, source, length):
            for known in [*self._parts.get(here.item, ())]:
                if ANY in (known.at, here.at):
                    self._put(target, length)
                elif overlap(known.at, known.size, here.at, here.size):
                    for there in to:
                        at = ANY if there.at == ANY else copied_to(known.at, known.size, here.at, there.at, length)
                        self._add(Part(there.item, at, known.size))

    def _add(self, part: Part) -> None:
        if not part.item.is_constant:
            known = self._parts.setdefault(part.item, set())
            known.add(part if len(known) < _MOST_PARTS else Part(part.item))

    def _holds(self, pointer: Value, size: int | None) -> bool:
        """Whether what is read there may depend on them."""
        return any(
            overlap(known.at, known.size, part.at, part.size)
            for part in parts(self._points_to, pointer, size)
            for known in self._parts.get(part.item, ())
        )

    def _size(self, type_: T.Type) -> int:
        return self._layout.store_size(type_)

    def _reach(self, argument: Value) -> Iterable[MemoryObject]:
        return closure(self._points_to, self._points_to.of(argument))

    def _decides(self, instruction: I.Instruction) -> bool:
        given = instruction.operands
        if instruction in self._calls or self._values.isdisjoint(given):
            return False
        match instruction:
            case I.CondBranch() | I.Switch() | I.IndirectBranch():
                return self._chosen(instruction) is None
            case I.Select() if given[0] not in self._values:
                return False
            case I.Load() | I.Store() if given[-1] in self._values:
                return not self._activity.varied_objects.isdisjoint(self._points_to.of(given[-1]))
            case I.CallBase() if not is_defined_call(instruction):
                return self._activity.value(instruction) or self._activity_of(instruction)
            case _:
                return instruction.opcode not in _ADDS and self._activity.value(instruction)

    def _chosen(self, branch: I.Instruction) -> Collection[Value] | None:
        """The values that depend on which way a branch goes; None where something else does besides them and what is
        printed: numbers that vary, or what memory holds."""
        if branch not in self._known:
            self._known[branch] = self._chosen_by(branch)
        return self._known[branch]

    def _chosen_by(self, branch: I.Instruction) -> Collection[Value] | None:
        function, block = self._homes[branch]
        cfg = Cfg(function)
        between = Divergence(cfg, lambda _: False, lambda _: False).between(block)
        if between is None or not all(self._is_silent(i) for b in between for i in b.instructions):
            return None
        inside = {i for b in between for i in b.instructions}
        joins = {s for b in between | {block} for s in cfg.succs[b]} - between
        used = uses(function)
        found: set[I.Instruction] = {i for b in joins for i in b.instructions if isinstance(i, I.Phi)}
        found.update(i for i in inside if any(user not in inside for user, _ in used.get(i, ())))
        return None if any(map(self._activity.value, found)) else found

    @staticmethod
    def _is_silent(instruction: I.Instruction) -> bool:
        if isinstance(instruction, I.CallBase):
            return not isinstance(instruction, I.Invoke) and call_effect(instruction) in _SILENT
        return not isinstance(instruction, I.Store | I.AtomicRMW | I.CmpXchg | I.Fence | I.Unreachable)

    @cached_property
    def _layout(self) -> DataLayout:
        return DataLayout(self._points_to.module)

    @cached_property
    def _homes(self) -> dict[I.Instruction, tuple[Function, BasicBlock]]:
        return {b.terminator: (f, b) for f in self._points_to.functions for b in f.blocks}

    def _activity_of(self, call: I.CallBase) -> bool:
        """Whether a call reads or writes numbers that vary."""
        if call_effect(call) in _SILENT:
            return False
        return any(not self._activity.varied_objects.isdisjoint(self._reach(a)) for a in call.arguments)
