"""The other threads of a kernel, as the engine sees them.

    object                      who touches it              its shadow
    local array                 this thread                 plain loads and stores
    shared variable             the threads of a block      in shared memory; added to atomically, but where one thread
                                                            loads a place between two barriers
    buffer                      all threads                 added to atomically

A store is to memory that no other thread touches before the next barrier, unless the kernel has a race. So the reverse
of a store, to take the cotangent and leave zero, is plain. Loads of one place by several threads are no race: their
reverses, which add to one cotangent, are atomic. Between two barriers a place is either stored to by one thread, or
added to atomically by many, or loaded by many, and the reverse sweep has barriers where the forward sweep has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from jax_enzyme.ad.device.convergence import Convergence, meets
from jax_enzyme.ad.device.lanes import Lanes
from jax_enzyme.ad.device.ownership import Ownership
from jax_enzyme.ad.device.shuffles import moves, shuffle_adjoint
from jax_enzyme.ad.device.sums import SharedPlaces, WarpSums
from jax_enzyme.ad.emit.addresses import element_alignment, store_number
from jax_enzyme.ad.facts.causes import (
    BLOCKS_EXCHANGE,
    LEAVES_BLOCK,
    LEAVES_WARP,
    PART_OF_BLOCK,
    SHARED_COPY,
    SHARED_STRUCTURE,
    STATE,
)
from jax_enzyme.ad.facts.functions import Execution, Facts, Site
from jax_enzyme.ad.facts.threads import Sums, Threads
from jax_enzyme.ad.plan.writers import written_objects
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.flow import is_shuffle
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name
from jax_enzyme.ir.values import Argument, Value, int_value
from jax_enzyme.remembered import remembered
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.flat import SHARED
from jax_enzyme.transform.device.flat import STATE as STATE_PREFIX
from jax_enzyme.transform.device.registers import thread_number

ALIGNED_BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
_BARRIER = "llvm.nvvm.barrier.cta.sync.all"
_WARP_BARRIERS = ("__je_warp_sync", "llvm.nvvm.bar.warp.sync")
SUMS = ("__je_shuffle_sum_f32", "__je_shuffle_sum_f64")
"""Sums over a warp, which every lane gets: their own reverse."""
_BARRIERS = ("llvm.nvvm.barrier", "llvm.nvvm.bar.", "llvm.nvvm.mbarrier")
_DEVICE_FENCES = ("llvm.nvvm.membar.gl", "llvm.nvvm.membar.sys")


class GridThreads(Execution):
    """All threads of a launch. `module` is where the special registers are declared. With `local_tape`, each thread
    has memory of its own for the part of the tape that has a fixed size: both sweeps are in one kernel, so that shared
    memory is filled again. `outputs` are the numbers of the buffers that begin with nothing anybody asks about,
    `inputs` those of the buffers whose shadows begin with zeros."""

    moves_locals = False
    operations_per_byte = 8.0  # Devices do 10 to 40 in the time of a byte to memory and back.

    def __init__(
        self,
        module: Module,
        shape: Shape,
        local_tape: bool,
        outputs: Collection[int] = (),
        inputs: Collection[int] = (),
    ) -> None:
        self.shape = shape
        self.lanes = Lanes(shape)
        blocks = shape.grid[0] * shape.grid[1] * shape.grid[2]
        every = Threads(blocks * shape.threads, lambda at: thread_number(module, at, shape))
        self.node_threads = every
        self._has_local_tape = local_tape
        self._outputs, self._inputs = frozenset(outputs), frozenset(inputs)
        if not local_tape:
            self.threads = every

    def shares(self, item: MemoryObject) -> bool:
        return item.kind in ("buffer", "unknown") or is_shared_memory(item)

    def refills(self, item: MemoryObject) -> bool:
        return self._has_local_tape and is_shared_memory(item)

    def reverses(self, call: I.CallBase, facts: Facts) -> bool:
        return (meets(call) or call.callee.name in _WARP_BARRIERS) and bool(self.exchanged(facts))

    @remembered
    def exchanged(self, facts: Facts) -> frozenset[MemoryObject]:
        """The objects whose shadows threads access in an order that matters. If there are any, threads have to meet in
        the reverse sweep too."""
        return frozenset(o for o in _in_order(facts) if self.shares(o) and not self.ownership(facts).is_owned(o))

    def meet(self, site: Site, call: I.CallBase) -> None:
        callee = call.callee
        assert isinstance(callee, Function)
        if callee.name in _WARP_BARRIERS:
            site.builder.call(callee, [site.value(a) for a in call.arguments], attributes=("convergent",))
        else:
            barrier(site.module, site.builder, aligned=not self.convergence(site.facts).leaves_block)

    def shuffled_back(self, site: Site, call: I.CallBase, adjoint: Value) -> Value:
        mask, _, source = call.arguments
        given = (site.value(mask), adjoint, site.value(source))
        if call.callee.name in SUMS:
            return site.builder.call(call.callee, given, attributes=("convergent",))
        table = self.lanes.by_lane(source)
        everyone = self.shape.threads % WARP_SIZE == 0 and int_value(mask) == -1
        everyone = everyone and not self.convergence(site.facts).leaves_warp
        known = None if table is None else moves(table)
        return shuffle_adjoint(site.module, site.builder, call.callee.name, given, known, everyone)

    def adds_atomically(self, facts: Facts, item: MemoryObject) -> bool:
        """Whether several threads may add to one place of an object's shadow."""
        return self.shares(item) and not self.ownership(facts).is_owned(item)

    def takes_once(self, facts: Facts, store: I.Store) -> bool:
        return self._touches_once(facts, store, store.operands[1], self._outputs)

    def _touches_once(self, facts: Facts, access: I.Load | I.Store, pointer: Value, numbers: frozenset[int]) -> bool:
        """Whether an access is of one of some buffers, of which no place is ever touched a second time."""
        objects = facts.points_to.of(pointer)
        (item,) = objects if len(objects) == 1 else (None,)
        if item is None or not isinstance(item.site, Argument) or item.site.index not in numbers:
            return False
        return self.ownership(facts).is_touched_once(item, type(access))

    def addition(self, facts: Facts, item: MemoryObject, instruction: I.Instruction) -> tuple[str, str]:
        if not self.shares(item):
            return "plain", "it is this thread's own memory"
        if isinstance(instruction, I.Load) and self._in_block(facts).is_loaded_by_one(instruction):
            return "plain", "no two threads of a block read one place"
        hindrance = self.ownership(facts).hindrance(item)
        if hindrance is None:
            once = isinstance(instruction, I.Load) and self._touches_once(
                facts, instruction, instruction.operands[0], self._inputs
            )
            return ("no", "every place is read once") if once else ("plain", "no two threads touch one place")
        way = self.shared_places(facts).way(instruction)
        return ("atomic", hindrance) if way is None else ("warp", way)

    def sums(self, site: Site, prologue: Builder) -> Sums:
        def alone(load: I.Load, pointer: Value, adjoint: Value) -> bool:
            return self._adds(site.builder, site.facts, load, pointer, adjoint)

        return WarpSums(self.shared_places(site.facts), self.shape, site.module, site.builder, prologue, alone)

    @remembered
    def shared_places(self, facts: Facts) -> SharedPlaces:
        """Which loads are of places that a warp shares, so that others add to their shadows too."""

        def shared(load: I.Load) -> bool:
            objects = facts.points_to.of(load.operands[0])
            return all(self.adds_atomically(facts, o) for o in objects) and not self._in_block(facts).is_loaded_by_one(
                load
            )

        def constant(objects: frozenset[MemoryObject]) -> bool:
            return self._written(facts).isdisjoint(objects | {facts.points_to.unknown})

        return SharedPlaces(facts, self.convergence(facts), recurrences_of(facts), shared, constant, self.lanes)

    @remembered
    def _written(self, facts: Facts) -> frozenset[MemoryObject]:
        """What the kernel writes."""
        written = written_objects(facts.points_to, DataLayout(facts.module)).values()
        return frozenset[MemoryObject]().union(*written)

    @remembered
    def ownership(self, facts: Facts) -> Ownership:
        """Which places only one thread touches."""
        return Ownership(facts, recurrences_of(facts), self.shape)

    @remembered
    def _in_block(self, facts: Facts) -> Ownership:
        """Which places of shared variables only one thread of a block loads."""
        return Ownership(facts, recurrences_of(facts), self.shape, of_block=True)

    @remembered
    def convergence(self, facts: Facts) -> Convergence:
        """Which threads come where."""

        def stable(load: I.Load) -> bool:
            objects = facts.points_to.of(load.operands[0])
            return bool(objects) and self._written(facts).isdisjoint(objects | {facts.points_to.unknown})

        return Convergence(facts.points_to.root, self.lanes, stable)

    def global_error(self, name: str) -> DifferentiationError:
        return STATE.error(name=name.removeprefix(STATE_PREFIX))

    def _adds(self, builder: Builder, facts: Facts, load: I.Load, pointer: Value, adjoint: Value) -> bool:
        if self._touches_once(facts, load, load.operands[0], self._inputs):
            # The first addition to a zero is the last one.
            store_number(builder, adjoint, pointer, element_alignment(adjoint.type, load.align))
            return True
        if not any(self.adds_atomically(facts, o) for o in facts.points_to.of(load.operands[0])):
            return False
        if self._in_block(facts).is_loaded_by_one(load):
            return False
        if isinstance(adjoint.type, T.StructType | T.ArrayType):
            raise facts.refused(load, SHARED_STRUCTURE)
        add_atomically(builder, pointer, adjoint)
        return True

    def check_copy(self, call: I.CallBase, facts: Facts) -> None:
        if any(map(self.shares, facts.points_to.of(call.operands[1]))) and facts.active_memory(call.operands[1]):
            raise facts.refused(call, SHARED_COPY)


def recurrences_of(facts: Facts) -> Recurrences:
    """What is known of the loops of a thread."""
    code = facts.points_to.root
    return Recurrences.of(code, facts.module)


def add_atomically(builder: Builder, pointer: Value, term: Value) -> None:
    """`*pointer += term`, whoever else does that."""
    if isinstance(term.type, T.VectorType):
        for lane in range(term.type.count):
            index = const_int(T.I64, lane)
            address = builder.gep(term.type.element, pointer, [index])
            add_atomically(builder, address, builder.extract_element(term, index))
        return
    builder.insert(I.AtomicRMW(term.type, "atomicrmw", [pointer, term], "fadd", "monotonic"))


def barrier(module: Module, builder: Builder, aligned: bool = False) -> None:
    """A barrier of the block; threads that have left do not hold it up."""
    builder.call(barrier_function(module, aligned), [const_int(T.I32, 0)], attributes=("convergent",))


def barrier_function(module: Module, aligned: bool) -> Function:
    """What a barrier calls. Aligned: all threads of a warp come to it together."""
    words = ("convergent", "nocallback", "nounwind")
    name = ALIGNED_BARRIER if aligned else _BARRIER
    return Declarations(module).function(name, T.FunctionType(T.VOID, (T.I32,)), words)


def is_shared_memory(item: MemoryObject) -> bool:
    """Whether an object is a variable that the threads of a block share."""
    return isinstance(item.site, GlobalVariable) and item.site.name.startswith(SHARED)


def _in_order(facts: Facts) -> set[MemoryObject]:
    """The objects in which a place may be stored to once, and stored to again, added to or loaded."""
    stored: Counter[MemoryObject] = Counter()
    added: set[MemoryObject] = set()
    loaded: set[MemoryObject] = set()
    cfg = Cfg(facts.points_to.root)
    for block in cfg.rpo:
        for instruction in block.instructions:
            match instruction:
                case I.CallBase() if call_effect(instruction) not in (Effect.MEMORY_SET, Effect.MEMORY_COPY):
                    pass
                case _ if not facts.has_adjoint(instruction):
                    pass
                case I.Store():
                    times = 2 if cfg.reaches(block, block) else 1
                    stored.update(dict.fromkeys(facts.points_to.of(instruction.operands[1]), times))
                case I.CallBase():
                    stored.update(dict.fromkeys(facts.points_to.of(instruction.operands[0]), 2))
                case I.AtomicRMW():
                    added |= facts.points_to.of(instruction.operands[0])
                case I.Load():
                    loaded |= facts.points_to.of(instruction.operands[0])
                case _:
                    pass
    return {o for o, times in stored.items() if times > 1 or o in added or o in loaded} | (added & loaded)


def refuse_disorder(facts: Facts, threads: GridThreads) -> None:
    """Refuses what would be reversed in another order than it was done in.

    Raises DifferentiationError.
    """
    between = threads.exchanged(facts)
    names = ", ".join(sorted(f"`{o.site.name}`" for o in between if o.site is not None and o.kind == "buffer"))
    convergence = threads.convergence(facts)
    for block in convergence.cfg.rpo:
        for instruction in block.instructions:
            if block in convergence.leaves_block and _exchanges(facts, instruction, between):
                raise facts.refused(instruction, LEAVES_BLOCK)
            if block in convergence.leaves_warp and is_shuffle(instruction) and facts.has_adjoint(instruction):
                raise facts.refused(instruction, LEAVES_WARP)
            if names and _orders_blocks(instruction):
                raise facts.refused(instruction, BLOCKS_EXCHANGE, names=names)
            name = callee_name(instruction)
            if between and name.startswith(_BARRIERS) and effect(name) is None:
                raise facts.refused(instruction, PART_OF_BLOCK, name=name)


def _exchanges(facts: Facts, instruction: I.Instruction, between: frozenset[MemoryObject]) -> bool:
    """Whether the reverse of an instruction touches the shadows of some objects."""
    match instruction:
        case I.Load() | I.AtomicRMW():
            pointers = instruction.operands[:1]
        case I.Store():
            pointers = instruction.operands[1:]
        case I.CallBase() if call_effect(instruction) in (Effect.MEMORY_SET, Effect.MEMORY_COPY):
            pointers = instruction.operands[:2]
        case _:
            return False
    return facts.has_adjoint(instruction) and any(not between.isdisjoint(facts.points_to.of(p)) for p in pointers)


def _orders_blocks(instruction: I.Instruction) -> bool:
    """What lets blocks wait for one another: a fence for the whole device."""
    if isinstance(instruction, I.Fence):
        return not any(w in instruction.ordering for w in ('syncscope("block")', 'syncscope("singlethread")'))
    return callee_name(instruction) in _DEVICE_FENCES
