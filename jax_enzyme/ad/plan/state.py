"""The state of a loop that is checkpointed: the memory that has to be put back before a part of it can run again.

Objects that the loop can reach, and that it or anything after it changes, are of two kinds. Those that exist once per
call and have a constant size (buffers, local variables) are *fixed*. Other memory from the heap is *kept*: it comes
from the arena instead, so that it is there when the reverse sweep comes to the loop, and a list of what is alive
(`ad.emit.kept`) says at run time what to copy.

What cannot be put back is refused: memory that one iteration allocates for another or frees, mutable globals, calls
that may do something else the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jax_enzyme.ad.facts.errors import describe
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.facts.hindrances import (
    CALLERS_SIZE,
    FILE_SCOPE,
    FREES_EARLIER,
    FREES_STATE,
    MIXED_STATE,
    OTHER_EFFECT,
    PASSED_ON,
    UNKNOWN_POINTER,
    UNKNOWN_SIZE,
    Hindrance,
)
from jax_enzyme.ad.facts.one_plane import is_own, may_hold_pointer
from jax_enzyme.ad.plan.recipes import Recipes
from jax_enzyme.analysis.accesses import Access, accesses, reachable_objects
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.objects import (
    ALLOCATORS,
    UNSIZED,
    MemoryObject,
    call_effect,
    called_routine,
    is_defined_call,
    is_memory_free,
    reachable_functions,
)
from jax_enzyme.analysis.words import Words
from jax_enzyme.classes import dataclass
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, GlobalVariable, callee_name
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.rules.effects import KINDS, Effect
from jax_enzyme.rules.mpi.table import Communication

_WRITES_BYTES = (Effect.MEMORY_SET, Effect.MEMORY_COPY)


class StateError(DifferentiationError):
    """A loop whose state cannot be put back; `loop` is the name of its function."""

    def __init__(self, loop: str, made: DifferentiationError) -> None:
        super().__init__(made.cause, made.place, made.remedy)
        self.loop = loop


@dataclass(frozen=True, eq=False)
class State:
    """`fixed` are objects with their sizes, `moved` those of them whose shadows hold pointers that change too. `kept`
    comes from the arena; `saved` is the part of it that changes, `followed` the part of that whose shadows do.
    `tells_kinds`: what the table of kinds knows of the objects is put back with them."""

    fixed: tuple[tuple[MemoryObject, int], ...]
    moved: tuple[tuple[MemoryObject, int], ...]
    kept: frozenset[MemoryObject]
    saved: tuple[MemoryObject, ...]
    followed: frozenset[MemoryObject]
    tells_kinds: bool

    @property
    def follows_pointers(self) -> bool:
        """Whether the forward sweep has to move shadow pointers along."""
        return bool(self.moved or self.followed)


def heads(states: Iterable[State]) -> dict[MemoryObject, int]:
    """The kinds of memory that are saved, each with its number: it has a list of what is alive of it."""
    saved = dict.fromkeys(item for state in states for item in state.saved)
    return {item: number for number, item in enumerate(saved)}


def object_bytes(base: ArrayFunction, recipes: Recipes, item: MemoryObject) -> int | None:
    """The size of an object that exists once per call."""
    if item.kind == "buffer":
        assert isinstance(item.site, Argument)
        return base.buffers[item.site.index].nbytes
    return recipes.object_size(item)


class StateFinder:
    """Finds the state of a loop that has been cut out: that of `call`, in the root."""

    def __init__(self, base: ArrayFunction, call: I.CallBase, recipes: Recipes, facts: Facts, words: Words) -> None:
        self._base = base
        self._call = call
        self._recipes = recipes
        self._facts = facts
        self._words = words
        assert isinstance(call.callee, Function)
        self._name = call.callee.name
        self._functions = reachable_functions(call.callee)
        points_to, layout = facts.points_to, recipes.layout
        self._accesses = [a for f in self._functions for a in accesses(points_to, f, layout)]

    def find(self) -> State:
        """Raises StateError where something cannot be put back."""
        self._check_calls()
        self._check_accesses()
        self._check_numbers()
        fixed: list[tuple[MemoryObject, int]] = []
        moved: list[tuple[MemoryObject, int]] = []
        kept: set[MemoryObject] = set()
        saved: list[MemoryObject] = []
        followed: set[MemoryObject] = set()
        for item in self._reachable():
            changes = not self._recipes.is_unchanged(self._call, item)
            follows = changes and self._follows(item)
            size = object_bytes(self._base, self._recipes, item)
            if size is None:
                self._check_kept(item)
                kept.add(item)
                saved += [item] if changes else []
                followed |= {item} if follows else set()
            elif changes:
                self._check_size(item, size)
                fixed.append((item, size))
                moved += [(item, size)] if follows else []
        kept |= self._freed_with(kept)
        self._check_released(kept)
        tells_kinds = any(callee_name(i) in KINDS for f in self._functions for i in f.instructions())
        return State(tuple(fixed), tuple(moved), frozenset(kept), tuple(saved), frozenset(followed), tells_kinds)

    def _reachable(self) -> list[MemoryObject]:
        found = [
            o for o in reachable_objects(self._facts.points_to, self._call) if o.kind in ("buffer", "stack", "heap")
        ]
        order: dict[Value, int] = {i: n for n, i in enumerate(self._recipes.code.function.instructions())}
        return sorted(found, key=lambda o: (order.get(o.site, -1), o.site.name) if o.site is not None else (-1, ""))

    def _refused(self, why: Hindrance, at: I.Instruction | None = None, **words: str) -> StateError:
        place = self._place(at) if at is not None else None
        return StateError(self._name, why.error(place, **words))

    def _place(self, instruction: I.Instruction) -> str | None:
        return location(self._facts.module, self._facts.origin.get(instruction, instruction))

    # -- what cannot be done twice -------------------------------------------------------------------------------------

    def _check_calls(self) -> None:
        for instruction in (i for f in self._functions for i in f.instructions()):
            if not isinstance(instruction, I.CallBase) or is_defined_call(instruction):
                continue
            effect = call_effect(instruction)
            routine = called_routine(instruction)
            unknown = isinstance(routine, Communication) or (
                effect is None
                and routine is None
                and rule_of(instruction, self._facts.rules) is None
                and not is_memory_free(instruction)
            )
            if unknown or effect is Effect.READ_CLOCK:
                raise self._refused(OTHER_EFFECT, instruction, instruction=describe(instruction))

    def _check_accesses(self) -> None:
        own = {i for f in self._functions for i in f.instructions()}
        for access in self._accesses:
            for item in access.objects if access.writes else ():
                if item is self._facts.points_to.unknown:
                    raise self._refused(UNKNOWN_POINTER, access.instruction)
                if isinstance(item.site, GlobalVariable):
                    raise self._refused(FILE_SCOPE, access.instruction, name=item.site.name)
                if access.kills and item.site not in own:
                    raise self._refused(FREES_EARLIER, access.instruction)

    def _check_numbers(self) -> None:
        """Where a number may take the place of a pointer, the forward sweep clears its shadow. When the loop runs
        again, adjoints are there."""
        points_to = self._facts.points_to
        for access in self._accesses:
            if not access.writes or self._writes_pointers(access):
                continue
            match access.instruction:
                case I.Store(operands=[value, target]):
                    size = self._recipes.layout.store_size(value.type)
                case I.CallBase(operands=[target, _, length, *_]) as call if call_effect(call) in _WRITES_BYTES:
                    size = int_value(length)
                case _:
                    continue
            is_own_shadow = self._facts.shadowed_memory(target) and is_own(points_to.written(target))
            if is_own_shadow and may_hold_pointer(self._words, target, size):
                items = [item for item in access.objects if points_to.contents[item]]
                raise self._refused(MIXED_STATE, access.instruction, item=str(items[0]).strip())

    def _check_size(self, item: MemoryObject, size: int) -> None:
        if not size and isinstance(item.site, Argument) and UNSIZED in item.site.attributes:
            raise self._refused(CALLERS_SIZE, number=str(item.site.index + 1))

    def _check_kept(self, item: MemoryObject) -> None:
        site = item.site
        assert isinstance(site, I.Instruction)
        if site not in self._recipes.block_of:
            raise self._refused(PASSED_ON, site)
        if callee_name(site) not in ALLOCATORS:
            raise self._refused(UNKNOWN_SIZE, site, instruction=describe(site))
        if item in self._facts.measured:
            raise self._refused(FREES_STATE, site, instruction=describe(site))

    def _freed_with(self, kept: set[MemoryObject]) -> frozenset[MemoryObject]:
        """Memory that the same calls free: it has to come from the arena as well."""
        every = self._recipes.freed_with(kept)
        for item in every - kept:
            if object_bytes(self._base, self._recipes, item) is None:
                self._check_kept(item)
        return every

    def _check_released(self, kept: set[MemoryObject]) -> None:
        """Kept memory is given back by the root's `free` alone."""
        points_to = self._facts.points_to
        for function in points_to.functions:
            for access in accesses(points_to, function, self._recipes.layout):
                if not access.kills or kept.isdisjoint(access.objects):
                    continue
                call = access.instruction
                assert isinstance(call, I.CallBase)
                if function is not points_to.root or call_effect(call) is not Effect.FREE:
                    raise self._refused(FREES_STATE, call, instruction=describe(call))

    # -- pointers ------------------------------------------------------------------------------------------------------

    def _follows(self, item: MemoryObject) -> bool:
        """Whether pointers in an object change, in the loop or after it, that have shadows."""
        if not self._facts.points_to.contents[item] or item not in self._facts.shadowed:
            return False
        if not any(item in a.objects and self._writes_pointers(a) for a in self._later()):
            return False
        if self._words.of(item):
            at = item.site if isinstance(item.site, I.Instruction) else None
            raise self._refused(MIXED_STATE, at, item=str(item).strip())
        return True

    def _later(self) -> Iterator[Access]:
        yield from self._recipes.writes_after(self._call)
        code = self._recipes.code.function
        for function in self._facts.points_to.functions:
            if function is not code:
                yield from accesses(self._facts.points_to, function, self._recipes.layout)

    def _writes_pointers(self, access: Access) -> bool:
        points_to = self._facts.points_to
        match access.instruction:
            case I.Store(operands=[value, _]):
                return T.is_pointer(value.type) or bool(points_to.of(value))
            case I.CallBase() as call if call_effect(call) is Effect.MEMORY_COPY:
                return any(points_to.contents[o] for o in points_to.of(call.operands[1]))
            case I.CallBase() as call:
                return not is_defined_call(call) and called_routine(call) is None and call_effect(call) is None
            case _:
                return access.writes
