"""The forward sweep of reverse mode: the primal, storing what the plan tapes.

    before   %y = call double @llvm.exp.f64(double %x)      after   %y = call double @llvm.exp.f64(double %x)
                                                                    store double %y, ptr %slot

Local objects that reverse reads live in the tape instead of the stack or the heap. A loop without a bound gets a row
of frames in front of it, or a node at the start of each iteration, from the arena. Where reverse needs shadows of
pointers that only the forward sweep can find, the forward sweep carries shadow pointers along, as forward mode does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jax_enzyme.ad.emit.addresses import element_alignment, holds_address
from jax_enzyme.ad.emit.copies import pointers_in
from jax_enzyme.ad.emit.emission import Forward
from jax_enzyme.ad.emit.kept import KeptMemory, padded
from jax_enzyme.ad.emit.library import LibraryCalls, shadow_arguments
from jax_enzyme.ad.emit.nodes import Nodes
from jax_enzyme.ad.emit.runtime import Runtime
from jax_enzyme.ad.emit.shadows import ShadowedCopy, holds_shadow
from jax_enzyme.ad.facts.causes import ALLOCATOR, GLOBAL, IN_ONE_PLACE, MIXED_COPY, ORIGIN, REALLOCATED
from jax_enzyme.ad.facts.copying import whole
from jax_enzyme.ad.facts.functions import Facts
from jax_enzyme.ad.facts.one_plane import (
    is_moved_on,
    is_own,
    is_pointer_among_numbers,
    may_hold_pointer,
    numbers_under,
    own_texts,
)
from jax_enzyme.ad.facts.room import room
from jax_enzyme.ad.plan.shared_tapes import late_residents
from jax_enzyme.ad.plan.state import State, heads
from jax_enzyme.ad.plan.tape import Slot, address, marked
from jax_enzyme.ad.plan.taping import Plan
from jax_enzyme.analysis.loops import Loop
from jax_enzyme.analysis.objects import ALLOCATORS, MemoryObject, call_effect, called_routine
from jax_enzyme.analysis.polynomials import Atom, Iteration, emit
from jax_enzyme.analysis.tbaa import copied_type, kept_access
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, zero
from jax_enzyme.ir.module import Function, GlobalVariable, callee_name
from jax_enzyme.ir.values import (
    Argument,
    BasicBlock,
    Constant,
    ConstantInt,
    ConstantNull,
    GlobalValue,
    Value,
    int_value,
)
from jax_enzyme.rules.blas.table import Routine
from jax_enzyme.rules.effects import Effect, allocated


@dataclass(frozen=True, eq=False)
class ForwardSweep:
    """The forward sweep of an inner routine: `shadowed` parameters come with their shadows, behind the parameters; then
    comes the arena. The results are packed: the routine's own, its shadow where pointers in it have one, the frame."""

    function: Function
    shadowed: tuple[Argument, ...]
    returns_shadow: bool


@dataclass(frozen=True, eq=False)
class Around:
    """What the forward sweeps of all routines share. `inner` has them by their functions, `originals` leads from these
    to those of the module, `states` has those of the loops that are checkpointed."""

    facts: Facts
    runtime: Runtime
    inner: Mapping[Function, ForwardSweep]
    originals: Mapping[Function, Function]
    carries_shadows: bool
    states: Mapping[Function, State]


class Augmenter(ShadowedCopy):
    """Emits the forward sweep of one routine into `target`, whose parameters are mapped by `arguments`. `shadows` has
    those of buffers and static objects (or of parameters), and is empty where no shadow pointer is needed. `own` is
    this sweep unless it is the root's. `nodes` says how nodes are made."""

    def __init__(
        self,
        plan: Plan,
        around: Around,
        target: Function,
        arguments: dict[Value, Value],
        shadows: dict[Value, Value],
        tape: Value | None,
        arena: Value,
        nodes: Callable[[Builder, Value], Nodes],
        own: ForwardSweep | None,
    ) -> None:
        super().__init__(around.facts, plan.recipes.layout, plan.code.cfg.rpo, arguments, shadows)
        self._plan = plan
        self._around = around
        self._runtime = around.runtime
        self._target = target
        self._arena = arena
        self._states = around.states
        self._own = own
        self._tape = tape if tape is not None else self._allocate(plan.tape.root.size)
        self._way = nodes(self.builder, arena)
        self._nodes: dict[Loop, Value] = {}
        self._rows: dict[Loop, Value] = {}
        self._begins: dict[I.Instruction, MemoryObject] = {}
        self._freed_late = {o for o in plan.residents if o.kind == "heap"}
        self._late = late_residents(plan)
        self._kept = frozenset[MemoryObject]().union(*(state.kept for state in around.states.values()))
        self._kept_memory = KeptMemory(around.runtime)
        self._heads = heads(around.states.values())
        self._alive: Value = ConstantNull(T.PTR)

    def run(self) -> Forward:
        code = self._plan.code
        for loop, frame in self._plan.tape.frames.items():
            if frame.length is None:
                self._nodes[loop] = self.builder.alloca(self._way.type)
        if self._heads and self._own is None:
            type_ = T.ArrayType(len(self._heads), T.PTR)
            self._alive = self.builder.alloca(type_)
            self.builder.store(zero(type_), self._alive)
        for item in (o for o in self._plan.residents if o not in self._late):
            begin = self._plan.recipes.begin(item)
            if begin is not None:
                self._begins[begin] = item
                continue
            assert item.site is not None
            self.values[item.site] = self._at(self._plan.tape.slots[item])
        if self._own is not None:
            for argument in code.function.arguments:
                self._keep(argument)
        for block, twin in self.blocks.items():
            self.builder.block = twin
            self._emit(block)
        self.finish(self._target)
        return Forward(self._target, self._tape, self.blocks)

    def value(self, value: Value) -> Value:
        if isinstance(value, Function):
            return self._around.originals.get(value, value)
        return super().value(value)

    def _allocate(self, size: int) -> Value:
        """Memory from the arena, for as long as the derivative runs."""
        if size == 0:
            return ConstantNull(T.PTR)
        return self.builder.call(self._runtime.arena("allocate"), [self._arena, ConstantInt(T.I64, whole(size))])

    def _iteration(self, loop: Loop) -> Value:
        return self.values[self._plan.code.iteration[loop]]

    def _at(self, slot: Slot) -> Value:
        frame = slot.frame.loop
        if frame is None:
            base = self._tape
        elif frame in self._rows:
            base = self.builder.gep(self._plan.tape.row_step(frame), self._rows[frame], [self._iteration(frame)])
        else:
            base = self._way.frame(self.builder, self._newest(frame))
        return address(self.builder, slot, base, self._iteration)

    def _newest(self, loop: Loop) -> Value:
        """The node of the current iteration."""
        return self.builder.load(self._way.type, self._nodes[loop])

    def _emit(self, block: BasicBlock) -> None:
        phis = [i for i in block.instructions if isinstance(i, I.Phi)]
        for phi in phis:
            self.merge(phi)
        loop = self._plan.code.loop_of(block)
        if loop is not None and loop.header is block and loop in self._nodes:
            self._new_node(loop)
        preds = self._plan.code.cfg.preds[block]
        for left in self._plan.code.left(preds[0], block) if preds else ():
            if left in self._nodes:
                self._keep_last(left, self._newest(left))
        for phi in phis:
            self._keep(phi)
        for instruction in block.instructions[len(phis) :]:
            if instruction.is_terminator:
                self._enter_from(block)
            if isinstance(instruction, I.Return):
                self._keep_late()
            self._instruction(instruction)

    def _keep_late(self) -> None:
        """Copies the objects to the tape that were memory of their own so far."""
        for item in self._late:
            assert item.site is not None
            memory, size = self.values[item.site], self._plan.recipes.object_size(item) or 0
            self._runtime.copy(self.builder, self._at(self._plan.tape.slots[item]), memory, size)
            if item.kind == "heap":
                self._runtime.free(self.builder, memory)

    def _enter_from(self, block: BasicBlock) -> None:
        """Starts the chain of nodes, or takes the row, of the loop that a block is in front of; copies what memory the
        loop reads."""
        for loop, frame in self._plan.tape.frames.items():
            if loop.preheader is not block:
                continue
            if frame.length is None:
                self.builder.store(self._way.none, self._nodes[loop])
            else:
                length = emit(self.builder, frame.length, T.I64, self._atom)
                self._rows[loop] = self._way.row(self.builder, self._arena, loop, length)
                self._keep_last(loop, self._rows[loop])
        for snapshot in self._plan.snapshots:
            if snapshot.loop.preheader is block:
                distance = emit(self.builder, snapshot.offset, T.I64, self._atom)
                start = self.builder.gep(T.I8, self.value(snapshot.base), [distance])
                self._runtime.copy(self.builder, self._at(self._plan.tape.slots[snapshot]), start, snapshot.size)

    def _atom(self, atom: Atom) -> Value:
        if isinstance(atom, Iteration):
            return self._iteration(atom.loop)
        value = self.value(atom.value)
        return self.builder.cast("ptrtoint", value, T.I64) if T.is_pointer(value.type) else value

    def _keep_last(self, loop: Loop, node: Value) -> None:
        slot = self._plan.tape.slots["last", loop]
        marked(slot, self.builder.store(node, self._at(slot)))

    def _new_node(self, loop: Loop) -> None:
        node = self._way.make(self.builder, self._arena, loop, self._newest(loop))
        self.builder.store(node, self._nodes[loop])

    def _keep(self, value: Value) -> None:
        """Stores a value, and its shadow pointer, where the plan has slots for them."""
        if value in self._plan.taped:
            self._store(self.values[value], self._plan.tape.slots[value])
        pointer = self._plan.pointers.get((value, "shadow"))
        if pointer is not None and pointer in self._plan.taped:
            self._store(self.shadow(value), self._plan.tape.slots[pointer])

    def _store(self, value: Value, slot: Slot) -> None:
        if value.type == T.I1:
            value = self.builder.cast("zext", value, T.I8)
        marked(slot, self.builder.store(value, self._at(slot), element_alignment(value.type, None)))

    def _instruction(self, instruction: I.Instruction) -> None:
        if instruction in self._begins:
            item = self._begins[instruction]
            assert item.site is not None
            self.values[item.site] = self._at(self._plan.tape.slots[item])
            return
        if self._is_resident(instruction):
            self._fill_calloc(instruction)
            self._keep(instruction)
            return
        if isinstance(instruction, I.CallBase):
            if self._dropped(instruction) or self._keeps_memory(instruction):
                return
            sweep = self._around.inner.get(instruction.callee) if isinstance(instruction.callee, Function) else None
            if sweep is not None:
                self._inner_call(instruction, sweep)
                return
            routine = called_routine(instruction)
            if routine is not None and self.facts.has_adjoint(instruction):
                self._library_call(instruction, routine)
                return
        if isinstance(instruction, I.Return) and self._own is not None:
            self._return(instruction, self._own)
            return
        twin = self.twin(instruction)
        twin.metadata += kept_access(self.facts.module, instruction)
        if self._around.carries_shadows:
            self._companion(instruction, twin)
        if not instruction.is_terminator and not isinstance(instruction.type, T.VoidType):
            self._keep(instruction)

    def _inner_call(self, call: I.CallBase, sweep: ForwardSweep) -> None:
        state = self._states.get(call.callee) if isinstance(call.callee, Function) else None
        more = [self._arena] if state is None else [*self._addresses(state), self._arena, self._alive]
        results = self.builder.call(sweep.function, self.arguments(call, sweep.shadowed, *more))
        index = 0
        if not isinstance(call.type, T.VoidType):
            self.values[call] = self.builder.extract_value(results, 0, call.type)
            index = 1
        if sweep.returns_shadow:
            self.companions[call] = self.builder.extract_value(results, index, call.type)
            index += 1
        frame = self._plan.pointers.get((call, "frame"))
        if frame is not None and frame in self._plan.taped:
            at = self._plan.tape.slots[frame]
            self._store(self.builder.extract_value(results, index, T.PTR), at)
        if index:
            self._keep(call)

    def _addresses(self, state: State) -> list[Value]:
        """Where the state of a loop is: its objects, and shadows that move."""
        found = [self.values[item.site] for item, _ in state.fixed if item.site is not None]
        found += [self.companions[item.site] for item, _ in state.moved if item.site is not None]
        return found

    def _keeps_memory(self, call: I.CallBase) -> bool:
        """Allocations and releases of memory that a checkpointed loop needs again."""
        effect = call_effect(call)
        freed = self.facts.points_to.of(call.operands[0]) if effect is Effect.FREE else frozenset[MemoryObject]()
        if not self._kept.isdisjoint(freed):
            for item in self._heads:
                if item in freed:
                    self._kept_memory.free(self.builder, self._head(item), self.value(call.operands[0]))
            return True
        item = self.facts.points_to.objects.get(call)
        if effect is not Effect.ALLOCATE or item not in self._kept:
            return False
        size = self._allocated_bytes(call)
        if item in self._heads:
            node, memory = self._kept_memory.allocate(self.builder, self._head(item), self._arena, size)
        else:
            node = None
            memory = self.builder.call(self._runtime.arena("allocate"), [self._arena, padded(self.builder, size)])
        if call.callee.name == "calloc":
            self._runtime.clear(self.builder, memory, size)
        self.values[call] = memory
        if call in self.facts.dynamic:
            self.companions[call] = self._zeroed(size, call)
            if node is not None and any(item in state.followed for state in self._states.values()):
                self._kept_memory.follow(self.builder, node, self.companions[call])
        self._keep(call)
        return True

    def _head(self, item: MemoryObject) -> Value:
        """Where the first node of the list of one kind of memory is."""
        return self.builder.offset(self._alive, 8 * self._heads[item])

    def _library_call(self, call: I.CallBase, routine: Routine) -> None:
        shadows = shadow_arguments(call, routine, self.facts.shadowed_memory, self.shadow)
        stable = 0
        for bit, index in enumerate(routine.floats):
            written = call.operands[index]
            shared = routine.writes(index) and is_pointer_among_numbers(self._runtime.words, written)
            if shared and not self.facts.has_frames:
                raise self.facts.refused(call, IN_ONE_PLACE)
            if self._plan.recipes.stays(call, call.operands[index]):
                stable |= 1 << bit
        calls = LibraryCalls(self._runtime.declarations)
        result, frame = calls.forward(self.builder, call, routine, self.value, shadows, stable, self._arena)
        if result is None and T.is_int(call.type):
            result = zero(call.type)  # the rule has looked at it
        if result is not None:
            self.values[call] = result
            self._keep(call)
        kept = self._plan.pointers.get((call, "frame"))
        if kept is not None and kept in self._plan.taped:
            self._store(frame, self._plan.tape.slots[kept])

    def _return(self, instruction: I.Return, sweep: ForwardSweep) -> None:
        results = [self.value(v) for v in instruction.operands]
        if sweep.returns_shadow:
            results.append(self.shadow(instruction.operands[0]))
        self.builder.ret(self.builder.pack(sweep.function.function_type.result, [*results, self._tape]))

    def _is_resident(self, instruction: I.Instruction) -> bool:
        item = self.facts.points_to.objects.get(instruction)
        return item in self._plan.residents and item not in self._late

    def _fill_calloc(self, instruction: I.Instruction) -> None:
        if callee_name(instruction) == "calloc":
            size = self._plan.recipes.object_size(self.facts.points_to.objects[instruction]) or 0
            self._runtime.clear(self.builder, self.values[instruction], ConstantInt(T.I64, size))

    def _dropped(self, call: I.CallBase) -> bool:
        """Markers mean nothing in the new function, but for those of variables that are its own as well, and that
        nothing reads in the end: in each iteration one begins anew. A resident object is not freed."""
        match call_effect(call):
            case Effect.IGNORED:
                objects = self.facts.points_to.objects
                own = [o for o in call.operands if isinstance(self.values.get(o), I.Alloca)]
                return not own or any(objects.get(o) in self._late for o in own)
            case Effect.FREE:
                return not self._freed_late.isdisjoint(self.facts.points_to.of(call.operands[0]))
            case _:
                return False

    # -- shadow pointers -----------------------------------------------------------------------------------------------

    def carries(self, value: Value) -> bool:
        wanted = self._around.carries_shadows and not isinstance(value, I.CmpXchg)
        return wanted and holds_shadow(self.facts, self.layout, value)

    def is_own_shadow(self, pointer: Value) -> bool:
        return not self.facts.shadowed_memory(pointer)

    def companion(self, value: Value) -> Value:
        """A word that holds a number here, and an address elsewhere, leaves a place without an adjoint."""
        known = value in self.companions or isinstance(value, Constant)
        return self.shadow(value) if known or not self.facts.activity.value(value) else zero(value.type)

    def global_shadow(self, value: GlobalValue) -> Value:
        found = self.companions.get(value)
        if found is None and isinstance(value, GlobalVariable) and self.facts.shadowed_memory(value):
            raise self.facts.refused(next(self._plan.code.function.instructions()), GLOBAL, name=value.name)
        return self.value(value) if found is None else found

    def _companion(self, instruction: I.Instruction, twin: I.Instruction) -> None:
        if instruction in self.facts.compared:
            self.compare_distances(self._runtime.module, instruction)
        match instruction:
            case I.Store() if self.facts.shadowed_memory(instruction.operands[1]):
                self._store_companion(instruction)
            case I.Load() if self.carries(instruction):
                pointer = self.shadow(instruction.operands[0])
                self.companions[instruction] = self.builder.load(instruction.type, pointer, instruction.align)
            case I.CallBase():
                self._call_companion(instruction, twin)
            case I.Alloca() if instruction in self.facts.dynamic:
                self.companions[instruction] = self._zeroed(self.local_size(instruction), instruction)
            case _ if self.carries(instruction) and instruction not in self.companions:
                self.address(instruction, twin)
            case _:
                pass

    def _store_companion(self, store: I.Store) -> None:
        value, target = store.operands
        if T.is_pointer(value.type) or self.carries(value):
            if any(item.kind == "buffer" for item in numbers_under(self.facts.activity, store)):
                raise self.facts.refused(store, IN_ONE_PLACE)
            self._store_shadow(store, self.shadow(value), self.shadow(target))
        elif self._replaces_pointer(store, target, self.layout.store_size(value.type)):
            self.builder.store(zero(value.type), self.shadow(target), store.align)

    def _store_shadow(self, store: I.Store, shadow: Value, target: Value, start: int = 0) -> None:
        """Of a record its pointers alone: what lies beside them are adjoints, maybe seeds already."""
        layout = self.layout
        parts = layout.parts(shadow.type)
        if not parts:
            self.builder.store(shadow, target, store.align if shadow.type == store.operands[0].type else 1)
        for index, (offset, part) in enumerate(parts):
            if part == T.I64:
                raise self.facts.refused(store, ORIGIN)  # an address, or a number that has its adjoint there
            at = self.builder.offset(target, offset)
            if holds_address(layout, part):
                self._store_shadow(store, self.builder.extract_value(shadow, index, part), at, start + offset)
            elif self._is_pointer_at(store, start + offset, layout.store_size(part)):
                self.builder.store(zero(part), at, 1)

    def _is_pointer_at(self, store: I.Store, start: int, size: int) -> bool:
        """Whether a part of a record that is stored takes the place of a pointer."""
        value, target = store.operands
        if not self._replaces_pointer(store, target, self.layout.store_size(value.type)):
            return False
        found = self._runtime.words.pointers(target, start + size)
        return found is None or any(distance > start - 8 for distance, _ in found)

    def _replaces_pointer(self, instruction: I.Instruction, target: Value, size: int | None) -> bool:
        """Whether numbers, or integers, are written where a pointer may have been, in memory of the kernel's own."""
        if not may_hold_pointer(self._runtime.words, target, size):
            return False
        if is_own(self.facts.points_to.written(target)):
            return True
        if not self.facts.has_frames:
            raise self.facts.refused(instruction, IN_ONE_PLACE)
        return False

    def _zeroed(self, size: Value, site: Value) -> Value:
        """Memory for a shadow, from the arena."""
        if behind := self.facts.behind(site):
            size = self.builder.binary("add", size, ConstantInt(T.I64, behind))
        size = padded(self.builder, size)
        shadow = self.builder.call(self._runtime.arena("allocate"), [self._arena, size])
        self._runtime.clear(self.builder, shadow, size)
        return shadow

    def _call_companion(self, call: I.CallBase, twin: I.Instruction) -> None:
        effect = call_effect(call)
        if effect is Effect.ALLOCATE and call in self.facts.dynamic:
            measured = self.facts.points_to.objects[call] in self.facts.measured
            size = room(self._runtime.declarations, self.builder, twin) if measured else self._allocated_bytes(call)
            self.companions[call] = self._zeroed(size, call)
        elif effect is Effect.MEMORY_COPY and self.facts.shadowed_memory(call.operands[0]):
            self._copy_pointers(call, twin)
        elif effect is Effect.MEMORY_SET and self.facts.shadowed_memory(call.operands[0]):
            self._clear_pointers(call, twin)
        elif effect is Effect.REALLOCATE and self.carries(call):
            raise self.facts.refused(call, REALLOCATED)

    def _clear_pointers(self, call: I.CallBase, twin: I.Instruction) -> None:
        """What is written is no pointer."""
        if self._replaces_pointer(call, call.operands[0], int_value(call.operands[2])):
            length = self.builder.wide(twin.operands[2])
            self._runtime.clear(self.builder, self.shadow(call.operands[0]), length)

    def _copy_pointers(self, call: I.CallBase, twin: I.Instruction) -> None:
        """Shadows of pointers are copied with the pointers. In buffers, what lies beside them are adjoints, maybe seeds
        already."""
        target, source = call.operands[:2]
        points_to, words = self.facts.points_to, self._runtime.words
        held = any(not self.facts.shadowed.isdisjoint(points_to.contents[o]) for o in points_to.of(source))
        if not held or copied_type(self.facts.module, call) is not None:
            self._clear_pointers(call, twin)
            return
        targets = points_to.of(target)
        if all(map(words.is_array, targets)) and (self.facts.has_frames or not self._loads_pointers(targets)):
            return
        to, at, length = self.shadow(target), self.shadow(source), self.builder.wide(twin.operands[2])
        is_active = self.facts.active_memory(target) or self.facts.active_memory(source)
        is_own_target = is_own(points_to.written(target))
        if not is_active or (is_own_target and is_moved_on(points_to, self.facts.shadowed, source)):
            texts = [(self.shadow(t), size) for t, size in own_texts(points_to, self.facts.shadowed, source)]
            length = self._runtime.apart_from_texts(self.builder, to, at, texts, length)
            self._runtime.move(self.builder, to, at, length)
            return
        pattern = pointers_in(words, target, source, call.operands[2])
        if pattern is None:
            raise self.facts.refused(call, MIXED_COPY, held="numbers and pointers")
        if pattern.pieces:
            helper = self._runtime.helper(pattern.name, pattern.text())
            self.builder.call(helper, [to, at, length])

    def _loads_pointers(self, items: frozenset[MemoryObject]) -> bool:
        """Whether pointers are loaded from these objects: what is known of a copy may be more than what it holds."""
        points_to = self.facts.points_to
        loads = (i for f in points_to.functions for i in f.instructions() if isinstance(i, I.Load))
        pointers = (i for i in loads if not T.is_float(i.type) and points_to.of(i))
        return any(not items.isdisjoint(points_to.of(i.operands[0])) for i in pointers)

    def _allocated_bytes(self, call: I.CallBase) -> Value:
        """The number of bytes that an allocation asks for."""
        name = call.callee.name
        if name in ALLOCATORS or name == "aligned_alloc":
            return self.builder.product(self.value(call.operands[i]) for i in allocated(name) or ())
        raise self.facts.refused(call, ALLOCATOR)
