"""Cotangents that many threads add to one place: where a warp shares the place, its threads add up among themselves
first, and one of them adds the sum to memory, atomically.

    at the end    the place is one for the whole block, and nothing but such sums ever happens there (a scalar, a weight
                  with a number): every thread keeps its sum in a register, and what it has at its end goes to memory;
                  if all threads of a block come to the end together, the sums of warps meet in shared memory first
    at once       the place is one for the block at that moment (`c[j]` in a loop over j), and all threads of the block
                  come to it equally often, or all whose number gets past a guard (`if (i >= n) return;`)
    in groups     the place is one for some lanes of a warp (`tile[threadIdx.y][k]`), all lanes of which come by
                  (`ad.device.groups`)
    alone         all else: every thread adds to memory itself

A shuffle waits for all lanes that it names. At its end, every thread of a derivative comes by; in between, no branch or
loop around the place may part the threads (`ad.device.convergence`) but by their numbers: which lanes get past such a
guard a ballot tells when the kernel begins, when all are there. The block is known, so it is known which lanes the last
warp has. Where the lanes that come are not the first ones of the warp, each adds to memory alone.

Lanes that go by a barrier which others of their warp come to (`if (i >= n) return;` in front of it) are at the end
while those wait for the whole block: who waited there for the others would wait for ever. So they add alone, and the
rest without them. Where thread numbers do not say who that is, there are no sums at the end, nor at once in front of
such a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from jax_enzyme.ad.device.axes import axes_of
from jax_enzyme.ad.device.convergence import Convergence, Guard
from jax_enzyme.ad.device.groups import lane_bits, note
from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.ad.device.shuffles import warp_helper
from jax_enzyme.ad.emit.partials import added
from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.ad.facts.copying import MapValue, computed_again
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.facts.threads import Sums
from jax_enzyme.analysis.objects import MemoryObject, Objects
from jax_enzyme.analysis.polynomials import Leaf, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.flat import SHARED
from jax_enzyme.transform.device.registers import REGISTER, WARP_ADD, WARP_WORDS, lane_number, register, thread_in_block

BALLOT = "__je_ballot"
_MOST_REGISTERS = 8
"""So many sums at most wait for the end: each takes registers all the time. Places beyond these are summed each time,
or by atomic additions."""

_ADD = """
declare TYPE @__je_shuffle_sum_KIND(i32, TYPE, i32) convergent nounwind
declare i32 @__je_lane() nounwind willreturn memory(none)

define internal void @je.warp.add.KIND(ptr %at, TYPE %part, i32 %mask) convergent nounwind alwaysinline {
entry:
  %above = add i32 %mask, 1
  %holes = and i32 %mask, %above
  %dense = icmp eq i32 %holes, 0
  br i1 %dense, label %together, label %add

together:
  %sum = call TYPE @__je_shuffle_sum_KIND(i32 %mask, TYPE %part, i32 0) convergent
  %lane = call i32 @__je_lane()
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %add, label %done

add:
  %term = phi TYPE [ %part, %entry ], [ %sum, %together ]
  %old = atomicrmw fadd ptr %at, TYPE %term monotonic
  br label %done

done:
  ret void
}
"""

_MEET = """
declare void @llvm.nvvm.barrier.cta.sync.all(i32) convergent nocallback nounwind

define internal void @je.warp.add.meet() convergent nounwind alwaysinline {
  call void @llvm.nvvm.barrier.cta.sync.all(i32 0) convergent
  ret void
}
"""
_ADD_OF_BLOCK = """
define internal void @je.warp.add.of.block.KIND(ptr %at, ptr %sum, i1 %mine) nounwind alwaysinline {
entry:
  br i1 %mine, label %add, label %done

add:
  %term = load TYPE, ptr %sum
  %old = atomicrmw fadd ptr %at, TYPE %term monotonic
  br label %done

done:
  ret void
}
"""
BLOCK_SUMS = f"{SHARED}je.sums."
"""What shared memory is called that warps add the sums of a block to. It has to be zero when a derivative begins."""


@dataclass(frozen=True)
class Place:
    """An address that is one for a block: bytes behind `site`, and multiples of numbers of the block (`ctaid.x`)."""

    site: Argument
    offset: int
    blocks: tuple[tuple[int, str], ...]
    type: T.Type


class SharedPlaces:
    """Which loads of a function are of places that a warp shares. `shared` says whether several threads may add to
    the shadow of what a load reads, `constant` of objects that the kernel never writes them."""

    def __init__(
        self,
        facts: Facts,
        convergence: Convergence,
        recurrences: Recurrences,
        shared: Callable[[I.Load], bool],
        constant: Callable[[Objects], bool],
        lanes: Lanes,
    ) -> None:
        self.at_the_end: dict[I.Instruction, Place] = {}
        self.at_once: dict[I.Instruction, tuple[Guard, ...]] = {}
        self.in_groups: dict[I.Instruction, int] = {}
        """The bits in which the numbers of lanes differ that share a place."""
        self._convergence, self._recurrences, self._lanes = convergence, recurrences, lanes
        self.ahead = [g for g in convergence.apart.values() if g is not None and _of_the_thread(g)]
        """The conditions under which a lane is at the end before the others of its warp."""
        self.are_together = not convergence.apart and not convergence.leaves_block
        """Whether all threads of a block are at the end at once."""
        all_come = len(self.ahead) == len(convergence.apart)
        places: set[Place] = set()
        for block in convergence.cfg.rpo:
            for load in block.instructions:
                if not isinstance(load, I.Load) or load.type not in (T.FLOAT, T.DOUBLE):
                    continue
                if not facts.has_adjoint(load) or not shared(load):
                    continue
                objects = facts.points_to.of(load.operands[0])
                fixed = all_come and constant(objects) and len(objects) == 1
                place = _place(recurrences, load, next(iter(objects))) if fixed else None
                if place is not None and len(places | {place}) <= _MOST_REGISTERS:
                    places.add(place)
                    self.at_the_end[load] = place
                elif not _before(convergence, block):
                    self._note(load, convergence.guards(block))

    def _note(self, load: I.Load, guards: tuple[Guard, ...] | None) -> None:
        common = self._convergence.is_common(load.operands[0])
        every = lane_bits(self._lanes.threads) if guards == () else 0
        if every:
            bits = every if common else self._shared_bits(load.operands[0], every)
            if bits:
                self.in_groups[load] = bits
        elif common and guards is not None and _of_the_thread(guards):
            self.at_once[load] = guards

    def _shared_bits(self, pointer: Value, bits: int) -> int:
        """Those bits of a lane's number that an address does not depend on."""
        for atom in self._recurrences.form(pointer).polynomial.atoms:
            if not isinstance(atom, Leaf) or self._convergence.is_common(atom.value):
                continue  # lanes that come together are in one iteration
            table = self._lanes.of(atom.value)
            if table is None:
                return 0
            for bit in (1 << n for n in range(bits.bit_length())):
                if bits & bit and any(value != table[thread ^ bit] for thread, value in enumerate(table)):
                    bits &= ~bit
        return bits

    def way(self, instruction: I.Instruction) -> str | None:
        """How and why the reverse of a load sums over the warp; None where it does not."""
        if instruction in self.at_the_end:
            return "one place for a block: its threads sum, warps sum at their end, and add that atomically"
        if instruction in self.at_once:
            there = "the lanes that come by are known" if self.at_once[instruction] else "all lanes come by"
            return f"one place for a warp, and {there}: they sum, and one adds that atomically"
        if instruction in self.in_groups:
            count = 1 << self.in_groups[instruction].bit_count()
            whole = count == min(WARP_SIZE, self._lanes.threads)
            which = "a warp, and all lanes come by" if whole else f"each {count} lanes of a warp"
            return f"one place for {which}: they sum, and one adds that atomically"
        return None


def _of_the_thread(guards: tuple[Guard, ...]) -> bool:
    return all(axes_of(g.condition) is not None for g in guards)


def _before(convergence: Convergence, block: BasicBlock) -> bool:
    """Whether lanes that come by here in the reverse sweep have gone by a meeting that others of them come to."""
    return any(block is p or convergence.cfg.reaches(block, p) for p in convergence.apart)


def _place(recurrences: Recurrences, load: I.Load, item: MemoryObject) -> Place | None:
    if item.kind != "buffer" or not isinstance(item.site, Argument):
        return None
    behind = recurrences.form(load.operands[0]).polynomial - Polynomial.atom(Leaf(item.site))
    if (factors := behind.linear) is None:
        return None
    blocks = [(f, callee_name(a.value) if isinstance(a, Leaf) else "") for a, f in factors.items()]
    if not all(name.startswith(f"{REGISTER}ctaid.") for _, name in blocks):
        return None
    named = sorted((factor, name.removeprefix(REGISTER)) for factor, name in blocks)
    return Place(item.site, behind.constant_term, tuple(named), load.type)


def meet(module: Module, builder: Builder) -> None:
    """All threads of a block come together, to see sums and nothing else of each other."""
    builder.call(defined(module, f"{WARP_ADD}meet", _MEET), [], attributes=("convergent",))


class WarpSums(Sums):
    """The sums of one reverse sweep, which is built by `builder` and begins with `prologue`. `alone` adds what no warp
    shares."""

    def __init__(
        self,
        places: SharedPlaces,
        shape: Shape,
        module: Module,
        builder: Builder,
        prologue: Builder,
        alone: Callable[[I.Load, Value, Value], bool],
    ) -> None:
        self._places = places
        self._shape = shape
        self._module = module
        self._builder = builder
        self._prologue = prologue
        self._alone = alone
        self._sums: dict[Place, Value] = {}

    def add(self, load: I.Load, pointer: Value, adjoint: Value) -> bool:
        place = self._places.at_the_end.get(load)
        if place is not None:
            self._keep(place, adjoint)
        elif load in self._places.in_groups:
            note(self._module, self._builder, pointer, adjoint, self._places.in_groups[load], self._shape.threads)
        elif load in self._places.at_once:
            self._add(pointer, adjoint, self._lanes(self._places.at_once[load]))
        else:
            return self._alone(load, pointer, adjoint)
        return True

    def finish(self, shadow: Callable[[Value], Value]) -> None:
        places = [self._address(place, shadow(place.site)) for place in self._sums]
        first = places
        if self._sums and self._places.are_together and self._shape.threads > WARP_SIZE:
            first = [self._builder.offset(self._block_sums, 8 * n) for n in range(len(places))]
        for at, (place, variable) in zip(first, self._sums.items(), strict=True):
            total = self._builder.load(place.type, variable)
            self._builder.store(zero(place.type), variable)
            self._add(at, total, self._at_the_end)
        if first is places:
            return
        meet(self._module, self._builder)
        thread = thread_in_block(self._module, self._builder, self._shape)
        for n, (at, of_block, place) in enumerate(zip(places, first, self._sums, strict=True)):
            function = warp_helper(self._module, f"{WARP_ADD}of.block.", _ADD_OF_BLOCK, place.type)
            self._builder.call(function, [at, of_block, self._builder.icmp("eq", thread, const_int(T.I32, n))])

    def _address(self, place: Place, site: Value) -> Value:
        at = self._builder.offset(site, place.offset)
        for factor, name in place.blocks:
            extent = self._shape.grid["xyz".index(name[-1])]
            number = self._builder.cast("zext", register(self._module, self._builder, name, extent), T.I64)
            at = self._builder.gep(T.I8, at, [self._builder.binary("mul", number, const_int(T.I64, factor))])
        return at

    @cached_property
    def _block_sums(self) -> GlobalVariable:
        """Eight bytes of shared memory for each sum of a block."""
        name = next(
            n for i in range(len(self._module.globals) + 1) if (n := f"{BLOCK_SUMS}{i}") not in self._module.globals
        )
        type_ = T.ArrayType(len(self._sums), T.I64)
        made = GlobalVariable(T.PTR, type_, zero(type_), False, ("internal",), ("align 16",), name=name)
        self._module.globals[name] = made
        return made

    def _keep(self, place: Place, adjoint: Value) -> None:
        if place not in self._sums:
            self._sums[place] = self._prologue.alloca(place.type)
            self._prologue.store(zero(place.type), self._sums[place])
        variable = self._sums[place]
        old = self._builder.load(place.type, variable)
        self._builder.store(added(self._builder, old, adjoint), variable)

    def _add(self, pointer: Value, part: Value, lanes: Value) -> None:
        function = warp_helper(self._module, WARP_ADD, _ADD, part.type)
        self._builder.call(function, [pointer, part, lanes], attributes=("convergent",))

    def _lanes(self, guards: tuple[Guard, ...]) -> Value:
        """The lanes of the warp that get past some conditions: all are asked when the sweep begins."""
        if not guards:
            return self._mask(self._builder)
        return self._lanes_past(guards)

    @remembered
    def _lanes_past(self, guards: tuple[Guard, ...]) -> Value:
        return self._asked(self._passes(guards))

    @cached_property
    def _at_the_end(self) -> Value:
        """The lanes that come to the end together with this one."""
        if not self._places.ahead:
            return self._mask(self._builder)
        at = self._prologue
        stays: Value = const_int(T.I1, 1)
        for guards in self._places.ahead:
            stays = at.binary("and", stays, at.binary("xor", self._passes(guards), const_int(T.I1, 1)))
        alone = at.binary("shl", const_int(T.I32, 1), lane_number(self._module, at))
        return at.select(stays, self._asked(stays), alone)

    def _asked(self, condition: Value) -> Value:
        """The lanes of the warp for which a condition holds, where the sweep begins: or a kernel that has both."""
        at = self._prologue
        given = [self._mask(at), at.cast("zext", condition, T.I32)]
        return Declarations(self._module).invoke(at, BALLOT, T.I32, given, WARP_WORDS, ("convergent",))

    def _passes(self, guards: tuple[Guard, ...]) -> Value:
        """Whether this lane gets past some conditions."""
        at = self._prologue
        holds: Value = const_int(T.I1, 1)
        for guard in guards:
            condition = self._again(guard.condition)
            wanted = condition if guard.holds else at.binary("xor", condition, const_int(T.I1, 1))
            holds = at.binary("and", holds, wanted)
        return holds

    @cached_property
    def _again(self) -> MapValue:
        """Values of the thread's number, where the sweep begins."""
        return computed_again(self._prologue)

    def _mask(self, at: Builder) -> Value:
        """The lanes of the warp."""
        whole = const_int(T.I32, -1)
        rest = self._shape.threads % WARP_SIZE
        if rest == 0:
            return whole
        part = const_int(T.I32, (1 << rest) - 1)
        if self._shape.threads < WARP_SIZE:
            return part
        thread = thread_in_block(self._module, at, self._shape)
        return at.select(at.icmp("uge", thread, const_int(T.I32, self._shape.threads - rest)), part, whole)
