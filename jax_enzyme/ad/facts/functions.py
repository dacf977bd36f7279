"""What is known about the functions that are being reversed: who runs them (`Execution`), and which of their
instructions have a reverse (`Facts`). `ALONE` is a function of the CPU; `ad.device` has the case of many threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from jax_enzyme.ad.facts.causes import GLOBAL, HELD, Cause
from jax_enzyme.ad.facts.cut_numbers import BEYOND
from jax_enzyme.ad.facts.distances import Distances
from jax_enzyme.ad.facts.errors import refuse
from jax_enzyme.ad.facts.one_plane import numbers_under
from jax_enzyme.ad.facts.room import measured_memory
from jax_enzyme.ad.facts.threads import Sums, Threads
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.flow import is_opaque_call, only_decides, rule_of
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import (
    MemoryObject,
    call_effect,
    called_routine,
    copy_operands,
    is_copy,
    is_defined_call,
    is_memory_free,
)
from jax_enzyme.analysis.speculation import may_be_infinite, speculated
from jax_enzyme.analysis.zeros import Zeros
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.marks import is_told
from jax_enzyme.ir.module import Function, Module, callers_of
from jax_enzyme.ir.reach import led_to, made_of, reached
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules


@dataclass(frozen=True, eq=False)
class Site:
    """Where a reverse sweep is emitted: its module, what is known, what builds, and what gives forward values."""

    module: Module
    facts: Facts
    builder: Builder
    value: Callable[[Value], Value]


class Execution:
    """One thread, alone."""

    threads: Threads | None = None
    """Those that share the tape."""
    node_threads: Threads | None = None
    """Those that share the memory for loops without a bound."""
    moves_locals = True
    """Whether local objects may live in the tape."""
    operations_per_byte = 1.0
    """How many operations cost as much as a byte that is kept: written by one sweep, read by the other."""

    def shares(self, item: MemoryObject) -> bool:
        """Whether other threads may touch an object while this one runs."""
        return False

    def refills(self, item: MemoryObject) -> bool:
        """Whether an object that other threads touch holds in the reverse sweep what the forward sweep left there."""
        return False

    def reverses(self, call: I.CallBase, facts: Facts) -> bool:
        """Whether threads have to meet in the reverse sweep where they meet at `call`."""
        return False

    def meet(self, site: Site, call: I.CallBase) -> None:
        """Emits the reverse of a call at which threads meet."""
        raise AssertionError("a thread that is alone meets nobody")

    def shuffled_back(self, site: Site, call: I.CallBase, adjoint: Value) -> Value:
        """The adjoint of what a lane passes into a shuffle, from that of what it gets."""
        raise AssertionError("a thread that is alone meets nobody")

    def takes_once(self, facts: Facts, store: I.Store) -> bool:
        """Whether nobody asks for the cotangent of what a store writes once its reverse has taken it."""
        return False

    def global_error(self, name: str) -> DifferentiationError:
        """The refusal of a mutable global variable that holds numbers."""
        return GLOBAL.error(name=name)

    def sums(self, site: Site, prologue: Builder) -> Sums:
        """The sums of a reverse sweep, which begins with `prologue`."""
        return Sums()

    def addition(self, facts: Facts, item: MemoryObject, instruction: I.Instruction) -> tuple[str, str]:
        """How the reverse of an instruction adds to an object's shadow, and why so: for people."""
        return "plain", "one thread runs at a time"

    def check_copy(self, call: I.CallBase, facts: Facts) -> None:
        """Raises DifferentiationError where the reverse of a copy would have to add to memory that others add to."""


ALONE = Execution()


@dataclass(eq=False)
class Facts:
    """`origin` leads to the instructions of the source functions, `dynamic` are the allocations whose shadows are made
    along with them. `has_frames` says that the functions are those of a derivative, whose memory is frames. `dropped`
    are buffers of whose shadows nobody wants what is left when the reverse sweep is over. `looked_at`: see
    `ad.facts.cut_numbers`."""

    module: Module
    rules: Rules
    points_to: PointsTo
    activity: Activity
    shadowed: frozenset[MemoryObject]
    origin: dict[Value, I.Instruction]
    dynamic: frozenset[Value]
    execution: Execution = ALONE
    has_frames: bool = False
    dropped: tuple[MemoryObject, ...] = ()
    looked_at: frozenset[MemoryObject] = frozenset()

    def behind(self, site: Value | None) -> int:
        """The bytes that a shadow has behind those of its object."""
        return 0 if site is None else BEYOND * (self.points_to.objects.get(site) in self.looked_at)

    def shadowed_memory(self, pointer: Value) -> bool:
        return not self.shadowed.isdisjoint(self.points_to.of(pointer))

    @cached_property
    def measured(self) -> frozenset[MemoryObject]:
        """Memory whose size the kernel asks of the allocator."""
        return measured_memory(self.points_to)

    def active_memory(self, pointer: Value) -> bool:
        return self.activity.memory(pointer)

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.points_to, self.activity.varied_objects)

    @cached_property
    def zeros(self) -> Zeros:
        return Zeros(self.points_to)

    @cached_property
    def compared(self) -> frozenset[I.Instruction]:
        """The distances that have to be those of the shadows as well, which only the run knows."""
        found = (i for i in self.points_to.instructions() if isinstance(i, I.BinaryOp) and i.opcode == "sub")
        return frozenset(filter(self.distances.is_unsure, found))

    @cached_property
    def _told(self) -> frozenset[MemoryObject]:
        """Memory that is copied, and of which only the run knows what kind of number lies where."""
        calls = (i for i in self.points_to.instructions() if isinstance(i, I.CallBase))
        copies = [call for call in calls if is_copy(call) and is_told(call)]
        return frozenset(o for copy in copies for p in copy_operands(copy)[:2] for o in self.points_to.of(p))

    def tells_kinds(self, pointer: Value) -> bool:
        """Whether the table of kinds has to know of adjoints in the shadow of such memory."""
        return not self._told.isdisjoint(self.points_to.of(pointer))

    @remembered
    def ends_number(self, store: I.Store) -> bool:
        """Whether what is stored, a pointer or an integer, may take the place of a number that varies."""
        return bool(numbers_under(self.activity, store))

    @cached_property
    def _reversed_functions(self) -> frozenset[Function]:
        """The functions in which, or below which, something has an adjoint, or a pointer moves whose shadow has to move
        along with it, or is compared with it."""
        functions, callers = self.points_to.functions, callers_of(self.points_to.functions)
        own = (f for f in functions if any(self._own_adjoint(i) or self._moves_shadow(i) for i in f.instructions()))
        return frozenset(reached(own, lambda f: callers.get(f, ())))

    def has_reverse(self, function: Function) -> bool:
        """Whether the reverse of a function with a body does anything."""
        return function in self._reversed_functions

    def has_adjoint(self, instruction: I.Instruction) -> bool:
        """Whether the reverse of an instruction does anything (phis are reversed with the edges into their block)."""
        if is_defined_call(instruction):
            assert isinstance(instruction, I.CallBase) and isinstance(instruction.callee, Function)
            return self.has_reverse(instruction.callee)
        return self._own_adjoint(instruction)

    def _own_adjoint(self, instruction: I.Instruction) -> bool:
        match instruction:
            case I.Phi():
                return self.activity.value(instruction)
            case I.Load():
                return self.activity.value(instruction) or instruction in self.activity.halves
            case I.Store():
                value, target = instruction.operands
                return self.active_memory(target) and (not T.is_pointer(value.type) or self.ends_number(instruction))
            case I.CallBase() if is_defined_call(instruction):
                return False
            case I.CallBase() if call_effect(instruction) in (Effect.MEMORY_COPY, Effect.MEMORY_SET):
                return self.active_memory(instruction.operands[0])
            case I.CallBase() if call_effect(instruction) in (Effect.BARRIER, Effect.VOTE):
                return self.execution.reverses(instruction, self)
            case I.CallBase() if (routine := called_routine(instruction)) is not None:
                written = (instruction.operands[i] for i in routine.floats if routine.writes(i))
                return routine.communicates or self.activity.value(instruction) or any(map(self.active_memory, written))
            case I.CallBase() if is_opaque_call(instruction) and rule_of(instruction, self.rules) is None:
                return self._touches_active(instruction)
            case I.AtomicRMW() | I.CmpXchg():
                # Counters are integers that carry no number, whatever lies beside them.
                carries = any(self.activity.value(v) or not T.is_int(v.type) for v in instruction.operands[1:])
                return carries and self.active_memory(instruction.operands[0])
            case _:
                return self.activity.value(instruction)

    def _moves_shadow(self, instruction: I.Instruction) -> bool:
        """Whether memory gets a shadow pointer, or a caller does, or one is looked at."""
        match instruction:
            case I.Store():
                value, target = instruction.operands
                holds_address = T.is_pointer(value.type) or self.shadowed_memory(value)
                return holds_address and self.shadowed_memory(target)
            case I.Return():
                return any(map(self.shadowed_memory, instruction.operands))
            case I.CallBase() if call_effect(instruction) is Effect.MEMORY_COPY:
                held = (self.points_to.contents[o] for o in self.points_to.of(instruction.operands[1]))
                return any(map(bool, held)) and self.shadowed_memory(instruction.operands[0])
            case _:
                return instruction in self.dynamic or instruction in self.compared

    def _touches_active(self, call: I.CallBase) -> bool:
        """Whether a call of which nothing is known could pass a derivative on: by value, or through memory."""
        if self.activity.value(call):
            return True
        if is_memory_free(call):
            return False
        return any(self.active_memory(a) for a in call.arguments)

    def may_be_dropped(self, instruction: I.Instruction) -> bool:
        """Whether a value is computed for a `select`, or ahead of a branch, that may drop it. LLVM makes branches into
        selects, moves quotients out of loops, and then computes `sqrt(x)` of negative x as well: its cotangent there is
        an exact zero, which an infinite partial must not spoil."""
        return instruction in self._select_operands or instruction in self._speculated

    def may_go(self, instruction: I.Instruction, factor: Value) -> bool:
        """Whether code may run without what keeps a `factor` of the cotangent of a dropped instruction away from it
        first, and be run again if that makes no number: hardly ever, then."""
        alone = not (self.activity.has_codes or self.activity.tagged or self.has_frames) and self.execution is ALONE
        ahead = may_be_infinite(instruction) and instruction in self._ahead
        return alone and not ahead and self._guarded.isdisjoint((instruction, factor))

    @cached_property
    def _guarded(self) -> frozenset[Value]:
        """What may be infinite where a `select` takes a constant instead: `x > 0 ? x * log(x) : 0`."""
        chosen = (i.operands[1:] for i in self.points_to.instructions() if isinstance(i, I.Select))
        guarded = (arm for arms in chosen for arm in arms if any(isinstance(other, Constant) for other in arms))
        parts = reached(guarded, made_of, _passes)
        return frozenset(led_to(filter(may_be_infinite, parts), parts, made_of))

    @cached_property
    def _speculated(self) -> frozenset[I.Instruction]:
        return frozenset(i for f in self.points_to.functions if f.blocks for i in speculated(f))

    @cached_property
    def _ahead(self) -> frozenset[I.Instruction]:
        """Those of them that are likely to be infinite."""
        return frozenset(i for f in self.points_to.functions if f.blocks for i in speculated(f, likely=True))

    @cached_property
    def _select_operands(self) -> frozenset[Value]:
        selects = [i for i in self.points_to.instructions() if isinstance(i, I.Select)]
        chosen = [v for select in selects for v in select.operands[1:]]
        return frozenset(reached(chosen, made_of, _passes))

    def half_beside(self, load: I.Load) -> bool:
        """Whether an integer is read in a half of a word that may be a double, which its shadow tells. Raises
        DifferentiationError where other threads may be at the same shadow."""
        if load in self.activity.beside and self.execution is not ALONE:
            raise self.refused(load, HELD)
        return load in self.activity.beside

    def call_with(self, parameter: Value) -> I.Instruction:
        """A call that passes something for a parameter of a function that the root calls."""
        calls = (i for i in self.points_to.instructions() if isinstance(i, I.CallBase))
        return next(c for c in calls if any(parameter in f.arguments for f in self.points_to.callees(c)))

    def refused(self, instruction: I.Instruction, cause: Cause, **words: object) -> DifferentiationError:
        return refuse(self.module, self.origin.get(instruction, instruction), cause, **words)


def _passes(value: Value) -> bool:
    """Whether what drops a value may drop what it is made of as well."""
    return isinstance(value, I.Instruction) and not isinstance(value, I.Phi | I.Load) and not only_decides(value)
