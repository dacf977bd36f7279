"""What a kernel may find otherwise when it runs a second time, because it ran before, or because time went on.

A derivative that has no tape of the first run runs the kernel again. What it reads of a file that the first run has
changed is something else then; so are what somebody typed, and the time:

    f = fopen("count", "r"); fscanf(f, "%lf", &n); ...; f = fopen("count", "w"); fprintf(f, "%g", n + 1);

Files are told apart by their names, and one that is emptied first holds what this run has written. Of derivatives it is
followed back what they are made of, which bytes of memory too: a time that is printed, that decides what is printed, or
that is kept beside the result changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from jax_enzyme.analysis.accesses import reachable_objects
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import PostDominators
from jax_enzyme.analysis.file_uses import FileUse, file_uses
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loops
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import call_effect, is_defined_call
from jax_enzyme.analysis.usefulness import Part, Usefulness
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.draws import differs, left
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.files import reads
from jax_enzyme.rules.opened import Way, reads_by_mpi
from jax_enzyme.rules.table import Rules

_ADDS = frozenset("fadd fsub fneg fptrunc fpext bitcast freeze phi load store insertvalue extractvalue".split())
"""What has derivatives that do not depend on the numbers that come in."""
_BRANCHES = (I.CondBranch, I.Switch, I.IndirectBranch)
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
    needed = _Derivatives(points_to, activity, drawn).needed(instructions) if drawn else ()
    return next((call for call in drawn if call in needed), None)


def _comes_first(module: Module, first: I.Instruction, second: I.Instruction) -> bool:
    """Whether one instruction has run whenever another one does: where both are in one function."""
    for function in module.functions.values():
        if first in (own := set(function.instructions())) and second in own:
            return Loops.of(function).precedes(first, second)
    return False


class _Derivatives:
    """What derivatives may depend on: the choices, addresses and numbers that they are computed with, and whatever
    these are made of, but for some calls, which say what they say."""

    def __init__(self, points_to: PointsTo, activity: Activity, calls: Collection[I.CallBase]) -> None:
        self._points_to = points_to
        self._activity = activity
        self._calls = frozenset(calls)
        self._noted = Usefulness(points_to, DataLayout(points_to.module))
        self._homes = {b.terminator: (f, b) for f in points_to.functions for b in f.blocks}

    def needed(self, instructions: Iterable[I.Instruction]) -> Collection[Value]:
        start: list[Value] = []
        for instruction in instructions:
            if isinstance(instruction, _BRANCHES):
                chosen = self._chosen(instruction)
                start += instruction.operands[:1] if chosen is None else ()
                for value in chosen or ():
                    self._noted.flows(value, instruction.operands[:1])
            else:
                self._note(instruction)
                start += self._deciding(instruction)
        return self._noted.of(start)[0]

    def _note(self, instruction: I.Instruction) -> None:
        """What an instruction makes, or writes, and what that depends on."""
        moves = self._noted.moves(instruction)
        if isinstance(instruction, I.CallBase) and not moves:
            self._note_call(instruction)
        elif not is_defined_call(instruction):
            self._noted.flows(instruction, instruction.operands)

    def _note_call(self, call: I.CallBase) -> None:
        noted, effect = self._noted, call_effect(call)
        if call in self._calls:
            length = left(callee_name(call))
            for argument in call.arguments if length is not None else ():
                noted.writes(argument, length, (call,))
            if length is None:
                noted.fills(reachable_objects(self._points_to, call), (call,))
        elif effect is Effect.MEMORY_SET:
            noted.writes(call.operands[0], None, call.operands)
        elif effect not in _SILENT:
            reach = reachable_objects(self._points_to, call)
            sources = (*call.operands, *map(Part, reach))
            noted.flows(call, sources)
            noted.fills((item for item in reach if not item.is_constant), sources)

    def _deciding(self, instruction: I.Instruction) -> Sequence[Value]:
        """The operands of an instruction on which derivatives depend."""
        given = instruction.operands
        match instruction:
            case I.CallBase() if instruction in self._calls:
                return ()
            case I.Load() | I.Store():
                return () if self._activity.varied_objects.isdisjoint(self._points_to.of(given[-1])) else given[-1:]
            case I.Select():
                return given[:1] if self._activity.value(instruction) else ()
            case I.CallBase() if not is_defined_call(instruction):
                return given if self._activity.value(instruction) or self._touches_active(instruction) else ()
            case _:
                return given if instruction.opcode not in _ADDS and self._activity.value(instruction) else ()

    def _chosen(self, branch: I.Instruction) -> Collection[Value] | None:
        """The values that depend on which way a branch goes; None where something else does besides them and what is
        printed: numbers that vary, or what memory holds."""
        function, block = self._homes[branch]
        cfg, joins, used = self._ways(function)
        join = joins.get(block)
        between = Reached(cfg.succs[block], lambda b: b is not join)
        inside: set[Value] = set()
        for passed in between:
            if join is None or not all(map(_is_silent, passed.instructions)):
                return None
            inside.update(passed.instructions)
            between.add(cfg.succs[passed])
        found = {i for i in inside if any(user not in inside for user, _ in used.get(i, ()))}
        found.update(i for i in (join.instructions if join is not None else ()) if isinstance(i, I.Phi))
        return None if any(map(self._activity.value, found)) else found

    @remembered
    def _ways(self, function: Function) -> tuple[Cfg, Mapping[BasicBlock, BasicBlock | None], Uses]:
        cfg = Cfg(function)
        return cfg, PostDominators(cfg).idom, uses(function)

    def _touches_active(self, call: I.CallBase) -> bool:
        """Whether a call reads or writes numbers that vary."""
        if call_effect(call) in _SILENT:
            return False
        return not self._activity.varied_objects.isdisjoint(reachable_objects(self._points_to, call))


def _is_silent(instruction: I.Instruction) -> bool:
    if isinstance(instruction, I.CallBase):
        return not isinstance(instruction, I.Invoke) and call_effect(instruction) in _SILENT
    return not isinstance(instruction, I.Store | I.AtomicRMW | I.CmpXchg | I.Fence | I.Unreachable)
