"""Finds recipes: how the reverse sweep can have a value of the forward sweep again without a tape (`ad.plan.recipe`).

Whether the values that a recipe reads are taped or have recipes themselves is the plan's business. Values that need
none (constants, parameters, iteration numbers) are *free*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from jax_enzyme.ad.facts.copying import ALIGNMENT
from jax_enzyme.ad.facts.functions import ALONE, Execution
from jax_enzyme.ad.facts.instrument import Instrumented
from jax_enzyme.ad.plan.choices import Choices
from jax_enzyme.ad.plan.gates import GateBuilder, leaves
from jax_enzyme.ad.plan.recipe import Closed, Forward, Gate, ReadBack, Recall, Recipe, Reload, Repeat, Resident
from jax_enzyme.ad.plan.snapshots import Snapshots
from jax_enzyme.ad.plan.writers import writing_calls
from jax_enzyme.analysis.accesses import Access
from jax_enzyme.analysis.alias import Alias
from jax_enzyme.analysis.extents import allocation_size, argument_size, extent
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.instances import Instances
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.memory_uses import MemoryUses
from jax_enzyme.analysis.objects import MemoryObject, Objects, call_effect, is_memory_free
from jax_enzyme.analysis.polynomials import Iteration, Leaf, Polynomial
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.repetition import is_repeated
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.marks import marks_of
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.sources import noted_sources
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.effects import Effect
from jax_enzyme.rules.table import Rules

_SAFE_DEPTH = 8
"""What is computed from more is not computed again by the reverse sweep: it is kept."""
_COUNTING = 14.0
"""What costs more (a division does, but by a constant) is kept where that is cheaper, though it follow from iteration
numbers."""
_MANY_WRITES = 64
"""Of more writes into one object than this, it is not asked which iterations they meet."""
_COST = {"fdiv": 7.0, "frem": 30.0, "sdiv": 16.0, "udiv": 16.0, "srem": 16.0, "urem": 16.0}
_BY_CONSTANT = 2.0
"""An integer divided by a constant is multiplied and shifted."""
_CHEAP_CALLS = frozenset("fabs fma copysign floor ceil trunc rint nearbyint round roundeven identity".split())
"""By the names of their rules."""
_OF_TWO = frozenset("fmax fmin maximum minimum".split())
"""A comparison and two choices, since either may be no number."""
_PURE = frozenset(
    "fneg add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem trunc zext sext fptrunc "
    "fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast addrspacecast icmp fcmp select freeze "
    "getelementptr extractvalue insertvalue extractelement insertelement shufflevector".split()
)


@dataclass(frozen=True)
class _LastWrites:
    """The writes into an object, where it is written last in each block that writes it, and the set of these blocks, as
    `Cfg` has it."""

    all: list[Access]
    positions: dict[BasicBlock, int]
    blocks: int


@dataclass(frozen=True, eq=False)
class Program:
    """What is known of all functions together. `writers` are those that write, and what; `measured` is the memory whose
    size is asked for (`facts.room`); `given` are the names of functions whose reverse gets the parameters again, as the
    root's does, where others find them in their frame; `choices` is what may be used."""

    module: Module
    points_to: PointsTo
    rules: Rules
    layout: DataLayout
    writers: dict[Function, Objects]
    measured: Objects
    given: Collection[str]
    execution: Execution
    choices: Choices


class Recipes:
    """Finds recipes in one instrumented function of a program. `writes` are all of the function, and its calls of
    functions with bodies, whose pointer is the function."""

    def __init__(self, code: Instrumented, program: Program) -> None:
        self.is_given = code.function.name in program.given
        self.choices = program.choices
        self.execution = program.execution
        self.code = code
        self.points_to = points_to = program.points_to
        self.rules = program.rules
        self.recurrences = Recurrences(code.function, code.loops, program.module)
        self.layout = layout = program.layout
        self.is_root = code.function is points_to.root
        self.block_of: dict[Value, BasicBlock] = {i: block for i, (block, _) in code.loops.home.items()}
        if not self.is_given:
            self.block_of.update(dict.fromkeys(code.function.arguments, code.cfg.entry))
        self.memory = MemoryUses(code.function, points_to, layout, writing_calls(code.function, program.writers))
        self.writes = [a for a in self.memory.all if a.writes]
        self._measured = program.measured
        self._writes_to: dict[MemoryObject, list[Access]] = {}
        for access in self.writes:
            for item in access.objects:
                self._writes_to.setdefault(item, []).append(access)
        self.alias = Alias(self.recurrences, self.memory)
        self._snapshots = Snapshots(code, self.recurrences, self.memory, self.alias)
        self._last_writes: dict[tuple[MemoryObject, bool], _LastWrites] = {}
        self.instances = Instances(code.loops)
        self._written_anywhere: Objects = frozenset().union(*program.writers.values())
        self._loop_of_phi: dict[Value, Loop] = {phi: loop for loop, phi in code.iteration.items()}
        self._sources = noted_sources(code.function)

    def is_free(self, value: Value) -> bool:
        """Constants, parameters and iteration numbers are at hand wherever they mean something."""
        if isinstance(value, Argument):
            return self.is_given
        return isinstance(value, Constant) or value in self._loop_of_phi

    def loop_counted_by(self, value: Value) -> Loop | None:
        """The loop whose iteration number a value is, or None."""
        return self._loop_of_phi.get(value)

    @remembered
    def of(self, value: Value) -> Recipe | None:
        """The recipe of a value that is not free, or None where only a tape will do."""
        recipe = self._find(value) if isinstance(value, I.Instruction) else None
        self._check(value, recipe)
        return recipe

    def repeated(self, value: Value) -> frozenset[Loop]:
        """The loops inside of others in all of whose iterations a value is the same, since none of them writes what it
        is made of: kept in one, it is kept for all. Not where several threads may share them."""
        if not isinstance(value, I.Instruction) or self.execution is not ALONE:
            return frozenset()

        def repeats(loop: Loop) -> bool:
            def stays(load: I.Load) -> bool:
                objects = self.points_to.of(load.operands[0])
                return bool(objects) and not self.memory.may_be_written(objects, loop)

            return not self.is_shared(loop) and is_repeated(value, loop, self.code.loops, self.block_of, stays)

        return frozenset(filter(repeats, self.code.nest(self.block_of[value])[1:]))

    def is_shared(self, loop: Loop) -> bool:
        """Whether several threads may run a loop, by its marks."""
        return any(marks_of(self.points_to.module, latch.terminator) for latch in loop.latches)

    @remembered
    def is_counted(self, value: Value) -> bool:
        """Whether an integer follows from iteration numbers, constants and parameters alone, by little work."""
        if not self.choices.counting:
            return False
        cost, parts = 0.0, Reached([value])
        for part in parts:
            recipe = None if self.is_free(part) or not T.is_int(part.type) else self.of(part)
            if isinstance(recipe, Repeat | Closed | Gate):
                cost += recipe.cost
                parts.add(recipe.operands)
            elif not (self.is_free(part) and T.is_int(part.type)):
                return False
            if cost > _COUNTING:
                return False
        return True

    def _check(self, value: Value, recipe: Recipe | None) -> None:
        """A recipe reads only what means something where its value does: nothing from inside a loop that is over."""
        if recipe is None or isinstance(recipe, Forward):
            return
        nest = self.code.nest(self.block_of[value])
        for operand in recipe.operands:
            if not self._in_reach(operand, nest):
                raise AssertionError(f"the recipe of %{value.name} reads %{operand.name} from inside another loop")

    @remembered
    def begin(self, item: MemoryObject) -> I.Call | None:
        """The mark in a loop at which a local object is new each time: if it is resident, each iteration has its own.
        None for an object that is there once."""
        start = self.instances.start(item.site) if isinstance(item.site, I.Alloca) else None
        return start if start is not None and self._is_renewed(item, start) else None

    def _is_renewed(self, item: MemoryObject, start: I.Call) -> bool:
        assert isinstance(item.site, I.Alloca)
        nest = self.code.nest(self.block_of[start])
        if self.execution is not ALONE or not nest or self.object_size(item) is None:
            return False
        counts = [self.recurrences.trip_count(loop).exact for loop in nest]
        return (item.site.align or 1) <= ALIGNMENT and all(c is not None and c.value is not None for c in counts)

    @remembered
    def object_size(self, item: MemoryObject) -> int | None:
        """Bytes of a local object that exists once per call and has a constant size, else None: it can be resident."""
        site = item.site
        if not self.is_root or not isinstance(site, I.Alloca | I.Call) or site not in self.block_of:
            return None
        if self.code.loop_of(self.block_of[site]) is not None:
            return None
        if isinstance(site, I.Alloca):
            return extent(self.layout, item)
        return self._heap_size(item, site)

    def _heap_size(self, item: MemoryObject, call: I.Call) -> int | None:
        """The size of an allocation, unless something is freed that may be it or memory of another kind, by way of
        other allocations too, or the kernel asks how much it was given."""
        if item in self._measured:
            return None
        return allocation_size(call) if self._are_freed_plainly(self._freed_together.get(item, frozenset())) else None

    @remembered
    def _are_freed_plainly(self, together: frozenset[MemoryObject]) -> bool:
        frees = {a for item in together for a in self._writes_to.get(item, ()) if a.kills}
        return all(map(self._frees_plainly, frees))

    @remembered
    def _frees_plainly(self, access: Access) -> bool:
        """Whether what a call frees is nothing but memory that is allocated once, with a known size."""
        moved = isinstance(access.instruction, I.CallBase) and call_effect(access.instruction) is Effect.REALLOCATE
        return not moved and all(map(self._is_plain_allocation, access.objects))

    def _is_plain_allocation(self, item: MemoryObject) -> bool:
        site = item.site
        if not isinstance(site, I.Call) or site not in self.block_of or allocation_size(site) is None:
            return False
        return self.code.loop_of(self.block_of[site]) is None

    def freed_with(self, items: Iterable[MemoryObject]) -> frozenset[MemoryObject]:
        """`items`, and the objects that the same calls free: if one lives in the tape, so do all."""
        items = frozenset(items)
        return items.union(*(self._freed_together.get(item, ()) for item in items))

    @cached_property
    def _freed_together(self) -> Mapping[MemoryObject, frozenset[MemoryObject]]:
        """For each object that a call frees those that such calls free with it, by way of others too."""
        found: dict[MemoryObject, frozenset[MemoryObject]] = {}
        for access in self.memory.all:
            if access.kills:
                others = {id(group): group for item in access.objects if (group := found.get(item)) is not None}
                together = frozenset(access.objects).union(*others.values())
                found.update(dict.fromkeys(together, together))
        return found

    def reloadable(self, load: I.Instruction, pointer: Value) -> tuple[MemoryObject, ...] | None:
        """Where a load can be done again in the reverse sweep: the local objects that must be resident; else None."""
        objects = self.points_to.of(pointer)
        residents: list[MemoryObject] = []
        if not objects or not self.choices.reloading:
            return None
        for item in objects:
            match item.kind:
                case "buffer":
                    pass
                case "stack" | "heap" if self.execution.moves_locals and self.object_size(item) is not None:
                    residents.append(item)
                case "global" if isinstance(item.site, GlobalVariable) and item.site.is_constant:
                    continue
                case "global" if self.execution.refills(item):
                    pass
                case _:
                    return None
            if self._overwritten(load, item):
                return None
        return tuple(residents)

    def is_unchanged(self, call: I.Instruction, item: MemoryObject) -> bool:
        """Whether nothing writes into an object from a call on, the call included."""
        wrote = any(access.instruction is call for access in self._writes_to.get(item, ()))
        return not wrote and not self._overwritten(call, item)

    def stays(self, call: I.Instruction, pointer: Value) -> bool:
        """Whether the memory behind a pointer can be read in the reverse sweep as the call found it."""
        objects = self.points_to.of(pointer)
        return bool(objects) and all(o.kind == "buffer" and not self._overwritten(call, o) for o in objects)

    def _overwritten(self, load: I.Instruction, item: MemoryObject) -> bool:
        """Whether anything may write into an object after the load. What callers of an inner function do later is not
        seen from inside it: there, nothing may write at all, and neither where other threads may write at any time."""
        refilled = self.is_root and self.execution.refills(item)
        if not self.is_root or (self.execution.shares(item) and not refilled):
            return item in self._written_anywhere or self.points_to.unknown in self._written_anywhere
        # A resident object outlives its `free`.
        if self._is_written_after(load, self.points_to.unknown, item.kind == "buffer"):
            return True
        if self.begin(item) is None:
            return self._is_written_after(load, item, item.kind == "buffer")
        later = [a for a in self._writes_to.get(item, ()) if not a.kills and a.instruction in self.block_of]
        later = [a for a in later if item.site is None or self.instances.meet(load, a.instruction, item.site)]
        return not self._miss(load, later)

    def _position(self, instruction: I.Instruction) -> int:
        return self.code.loops.home[instruction][1]

    def _is_written_after(self, instruction: I.Instruction, item: MemoryObject, kills_count: bool) -> bool:
        """Whether control may come to a write into an object after an instruction."""
        key = (item, kills_count)
        if key not in self._last_writes:
            writes = self._writes_to.get(item, ())
            found = [a for a in writes if a.instruction in self.block_of and (kills_count or not a.kills)]
            positions: dict[BasicBlock, int] = {}
            for access in found:
                block = self.block_of[access.instruction]
                positions[block] = max(positions.get(block, -1), self._position(access.instruction))
            self._last_writes[key] = _LastWrites(found, positions, self.code.cfg.set_of(positions))
        last, block = self._last_writes[key], self.block_of[instruction]
        later = last.positions.get(block, -1) > self._position(instruction)
        if not later and not self.code.cfg.reaches_any(block, last.blocks):
            return False
        # Another thread writes elsewhere than this one.
        return self.execution.shares(item) or not self._miss(instruction, last.all)

    def _miss(self, load: I.Instruction, later: list[Access]) -> bool:
        """Whether none of these writes can come to the place of a load after it."""
        if not self.choices.later_writes or len(later) > _MANY_WRITES:
            return not later
        return all(self.alias.later.miss(load, access) for access in later)

    def writes_after(self, instruction: I.Instruction) -> Iterator[Access]:
        """The writes of this function that control may come to after an instruction."""
        block = self.block_of[instruction]
        for access in self.writes:
            where = self.block_of.get(access.instruction)
            if where is None:
                continue
            later = where is block and self._position(access.instruction) > self._position(instruction)
            if later or self.code.cfg.reaches(block, where):
                yield access

    def _find(self, value: I.Instruction) -> Recipe | None:
        closed = self._closed(value)
        if closed is not None:
            return closed
        match value:
            case I.Phi():
                return self._gate(value)
            case I.Load() if value in self._sources:
                source = self._sources[value]
                return Forward(source, None, Polynomial({}), (source,))
            case I.Load() if I.is_plain(value):
                residents = self.reloadable(value, value.operands[0])
                if residents == ():
                    return Reload((value.operands[0],), ())
                forwarded = self._forwarded(value)
                if forwarded is not None or residents is None:
                    return forwarded or self._recalled(value)
                return Reload((value.operands[0],), residents)
            case I.Alloca() | I.Call() if value in self.points_to.objects:
                item = self.points_to.objects[value]
                return None if self.object_size(item) is None else Resident((item,))
            case I.Call():
                return self._pure_call(value)
            case _ if value.opcode in _PURE:
                return Repeat(tuple(value.operands), work(value, self.rules))
            case _:
                return None

    def _pure_call(self, call: I.Call) -> Recipe | None:
        if isinstance(call.type, T.VoidType):
            return None
        if call_effect(call) is Effect.PURE_INT and is_memory_free(call):
            return Repeat(tuple(call.arguments), 1.0)
        rule = rule_of(call, self.rules)
        if rule is None or not is_memory_free(call):
            return None
        return Repeat(tuple(call.arguments), work(call, self.rules))

    def _recalled(self, load: I.Load) -> Recall | None:
        """From a copy of memory that nothing writes in a loop around. Not inside of a loop that several threads may
        share, each of whose iterations would have a copy to make; in front of one there is one copy for all."""
        if not self.choices.snapshots or self.execution is not ALONE:
            return None
        found = self._snapshots.of(load)
        if found is None:
            return None
        snapshot, place = found
        if any(loop is not snapshot.loop and self.is_shared(loop) for loop in snapshot.loop.ancestors):
            return None
        return Recall(snapshot, place, tuple(a.value for a in place.atoms if isinstance(a, Leaf)))

    # -- what was stored -----------------------------------------------------------------------------------------------

    def _forwarded(self, load: I.Load) -> Forward | None:
        """Where one store alone fills the memory that is read, and is done with it before the load: the stored
        value."""
        objects = self.points_to.of(load.operands[0])
        touched = (self._writes_to.get(item, ()) for item in (*objects, self.points_to.unknown))
        writes = [a for a in dict.fromkeys(chain.from_iterable(touched)) if not a.kills]
        if len(objects) != 1 or len(writes) != 1 or not isinstance(writes[0].instruction, I.Store):
            return None
        if any(map(self.execution.shares, objects)):
            return None
        store = writes[0].instruction
        stored, target = store.operands
        if stored.type != load.type or writes[0].instruction not in self.block_of:
            return None
        read = self.recurrences.form(load.operands[0]).polynomial
        written = self.recurrences.form(target).polynomial
        above, below = self.code.nest(self.block_of[store]), self.code.nest(self.block_of[load])
        common = [a for a, b in zip(above, below, strict=False) if a is b]
        index = Polynomial({})
        loop = None
        if len(above) == len(common):
            if not self.code.loops.precedes(store, load) or (read - written).terms:
                return None
        elif len(above) == len(common) + 1:
            loop = above[-1]
            found = self._iteration_that_wrote(store, load, loop, read, written)
            if found is None:
                return None
            index = found
        else:
            return None
        leaves = [a.value for a in index.atoms if isinstance(a, Leaf)]
        loops = [a.loop for a in index.atoms if isinstance(a, Iteration)]
        if not all(self._in_reach(v, below) for v in leaves) or not all(x in below for x in loops):
            return None
        return Forward(stored, loop, index, (stored, *leaves))

    def _iteration_that_wrote(
        self, store: I.Instruction, load: I.Instruction, loop: Loop, read: Polynomial, written: Polynomial
    ) -> Polynomial | None:
        """The iteration of `loop` in which the store wrote what the load reads, if it is one that took place."""
        dominates = self.code.dominators.dominates
        count = self.recurrences.trip_count(loop).exact
        if len(loop.exit_edges) != 1 or count is None or count.value is None:
            return None
        leaving, after = loop.exit_edges[0]
        block = self.block_of[store]
        if not dominates(after, self.block_of[load]) or not dominates(block, loop.latches[0]):
            return None
        last = count if dominates(block, leaving) else count.add_constant(-1)
        parts = written.coefficients(self.recurrences.iteration(loop))
        if len(parts) != 2 or not parts[1].value:
            return None
        index = (read - parts[0]).divide(parts[1].value)
        if index is None or any(isinstance(a, Iteration) and a.loop is loop for a in index.atoms):
            return None
        inside = self.recurrences.interval(index).low >= 0 and self.recurrences.interval(last - index).low >= 0
        return index if inside else None

    @cached_property
    def _stores(self) -> dict[Value, list[I.Store]]:
        """The stores of each value in the block that makes it."""
        found: dict[Value, list[I.Store]] = {}
        for block in self.code.cfg.rpo:
            for store in block.instructions:
                if isinstance(store, I.Store) and I.is_plain(store) and self.block_of.get(store.operands[0]) is block:
                    found.setdefault(store.operands[0], []).append(store)
        return found

    def read_back(self, value: Value) -> ReadBack | None:
        """A number from where it is stored as soon as it is made, if it stays there: an output. The place is in the
        buffer in all iterations, also in those that make no such number: there, nothing depends on what is read."""
        for store in self._stores.get(value, ()) if T.is_float(value.type) and not self.repeated(value) else ():
            place = self.recurrences.form(store.operands[1]).polynomial
            buffers = [atom.value for atom in place.atoms if isinstance(atom, Leaf)]
            if len(buffers) != 1 or not isinstance(buffers[0], Argument) or not self.is_given:
                continue
            place -= Polynomial.atom(Leaf(buffers[0]))
            reach, room = self.recurrences.interval(place), argument_size(buffers[0])
            inside = room is not None and reach.low >= 0 and reach.high + self.layout.store_size(value.type) <= room
            if inside and Leaf(buffers[0]) not in place.atoms and self.reloadable(store, store.operands[1]) == ():
                return ReadBack(store, buffers[0], place)
        return None

    # -- closed forms --------------------------------------------------------------------------------------------------

    def _closed(self, value: I.Instruction) -> Recipe | None:
        if not isinstance(value, I.Phi) or not (T.is_int(value.type) or T.is_pointer(value.type)):
            return None
        if self.recurrences.bits(value.type) is None:
            return None
        polynomial = self.recurrences.form(value).polynomial
        if polynomial.is_atom(self.recurrences.leaf(value)):
            return None
        base = None
        if isinstance(value.type, T.PointerType):
            bases = [a.value for a in polynomial.atoms if isinstance(a, Leaf) and T.is_pointer(a.value.type)]
            if len(bases) != 1 or bases[0] is value:
                return None
            base = bases[0]
            rest = polynomial - Polynomial.atom(Leaf(base))
            if any(a == Leaf(base) for a in rest.atoms):
                return None
            polynomial = rest
        nest = self.code.nest(self.block_of[value])
        if base is not None and not self._in_reach(base, nest):
            return None
        operands: list[Value] = [] if base is None else [base]
        for atom in polynomial.atoms:
            if isinstance(atom, Iteration):
                if atom.loop not in nest:
                    return None
            elif atom.value is value or not self._in_reach(atom.value, nest):
                return None
            else:
                operands.append(atom.value)
        return Closed(polynomial, base, tuple(operands))

    def _in_reach(self, value: Value, nest: list[Loop]) -> bool:
        """Whether a value means something where the loops `nest` are being run: it is not from inside another loop."""
        block = self.block_of.get(value)
        loop = self.code.loop_of(block) if block is not None else None
        return loop is None or loop in nest

    # -- gates ---------------------------------------------------------------------------------------------------------

    def _gate(self, phi: I.Phi) -> Recipe | None:
        block = self.block_of[phi]
        loop = self.code.loop_of(block)
        preds = self.code.cfg.preds[block]
        if loop is not None and loop.header is block:
            return None
        if len(preds) == 1:
            same = self.code.loop_of(preds[0]) is loop
            return Repeat((phi.operands[0],), 0.0) if same else None
        top = self.code.dominators.idom[block]
        if top is None:
            return None
        values = dict(zip(phi.targets, phi.operands, strict=True))
        gate = GateBuilder(self.code, block, values).build(top)
        if gate is None:
            return None
        operands = tuple(dict.fromkeys(v for v in leaves(gate)))
        if not all(self._safe(v, block, _SAFE_DEPTH) for v in operands):
            return None
        return Gate(gate, operands, cost=float(sum(not isinstance(v, Constant) for v in operands)))

    def _safe(self, value: Value, block: BasicBlock, depth: int) -> bool:
        """Whether computing a value is harmless even where the forward sweep did not: it dominates `block`, or it is
        arithmetic that cannot trap over such values."""
        if self.is_free(value) or self.code.dominators.dominates(self.block_of[value], block):
            return True
        assert isinstance(value, I.Instruction)
        if depth == 0 or value.opcode in I.INTEGER_DIVISIONS or value.opcode not in _PURE:
            return False
        if self.code.loop_of(self.block_of[value]) is not self.code.loop_of(block):
            return False
        return all(self._safe(v, block, depth - 1) for v in value.operands)


def work(value: I.Instruction, rules: Rules) -> float:
    """What it costs to compute a pure instruction, or to call a function that has a rule."""
    if isinstance(value, I.CallBase):
        rule = rule_of(value, rules)
        name = "" if rule is None else rule.name
        return 1.0 if name in _CHEAP_CALLS else 3.0 if name in _OF_TWO else 8.0 if name == "sqrt" else 40.0
    if value.opcode in I.INTEGER_DIVISIONS and int_value(value.operands[1]):
        return _BY_CONSTANT
    return _COST.get(value.opcode, 0.5 if T.is_int(value.type) or T.is_pointer(value.type) else 1.0)
