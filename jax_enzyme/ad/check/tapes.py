"""The structural check of a reverse derivative: what the emitted sweeps do with the tape, and with values from it.

It runs on every derivative, on the emitted functions, and finds addresses, loops, iteration counters and dominance in
them by itself; of the plan it knows the layout of the tape (which slot belongs to which value). Invariants:

tape        slots of a frame do not overlap and stay inside it
write       a slot is written once for each value that it belongs to, of which no iteration of the innermost loop
            around them has two; in the block that defines the value, at the index that consists of the counters of
            exactly the loops around that block (inside the slot's frame), a counter being a phi that starts at 0 and
            grows by 1, but those in whose iterations the value is the same (`check.reloads`)
            (where the slot is packed: the tables' entries of one iteration)
read        reverse reads a value from its slot, with its type, at the index that consists of the iteration variables of
            the slot's loops, each of which has one variable; where the value's definition does not dominate the place
            that is being reversed, the value ends in a `select` before anything depends on it
variables   facts are sets of stack variables of the reverse function; meet is intersection; a store adds its variable;
            the edge on which reverse leaves a loop takes its variable away. Each loop that is reversed has one of
            its own, and one test: whether that is 0, or the last number of this loop, if it is turned
            Every load is of a variable in the set: so adjoints are zeroed and iterations set before use. An adjoint
            that is loaded is stored again in the same block: as zero (taken), or as a sum with itself (added to)
control     every edge of reverse leads to a predecessor, or to a dominator, of the block that is being reversed
copy        memory that a loop reads is copied to its slot in the block in front of the loop, behind all stores there
reload      memory of the primal that reverse loads from cannot be written after the load that it repeats, by an
            argument that looks for stores that control can come to, and tells memory apart by where pointers come from
shadows     memory for shadows that a derivative makes is zero before it is used (`check.shadows`)
late sums   local arrays of adjoints are full when they are read (`check.late_sums`)
aliasing    where pointers come back from the tape, parameters are not `noalias`

An error here is a defect of the engine: it is raised before a wrong derivative can run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from jax_enzyme.ad.check.errors import EmissionError
from jax_enzyme.ad.check.tape_addresses import Place, Sweep, name_of
from jax_enzyme.ad.emit.emission import Forward, Reverse
from jax_enzyme.ad.emit.nodes import TAKE
from jax_enzyme.ad.emit.runtime import ARENA
from jax_enzyme.ad.facts.half_numbers import JOIN_NAME
from jax_enzyme.ad.plan.snapshots import Snapshot
from jax_enzyme.ad.plan.tape import Slot, Tape
from jax_enzyme.ad.plan.taping import ForwardPointer
from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.dominators import Dominators
from jax_enzyme.analysis.fixpoint import fixpoint
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.objects import MemoryObject, call_effect
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import BasicBlock, Value, int_value, is_zero
from jax_enzyme.rules.effects import Effect


class _ForwardCheck(Sweep):
    def __init__(self, forward: Forward, tape: Tape) -> None:
        super().__init__(forward.function, tape, forward.tape)
        self.blocks = forward.blocks
        self.loops = Loops(self.cfg, Dominators(self.cfg))
        self.twin_of = {i: twin for block, twin in forward.blocks.items() for i in block.instructions}
        self.counters: dict[Value, Loop] = {p: x for x in self.loops for p in x.header.instructions if _counts(p, x)}
        for loop in sorted(tape.frames, key=lambda loop: len(list(loop.ancestors))):
            if tape.frames[loop].length is None:
                self._find_node(loop)
            else:
                self._find_row(loop)

    def _find_node(self, loop: Loop) -> None:
        """The variable that holds the newest node of a loop: in its header the result of an allocation goes there."""
        header = self.blocks[loop.header]
        for instruction in header.instructions:
            if isinstance(instruction, I.Store) and _allocates(instruction.operands[0]):
                variable = instruction.operands[1]
                if isinstance(variable, I.Alloca):
                    self.nodes[variable] = loop
                    if self.tape.node_threads is not None:
                        self.nodes[instruction.operands[0]] = loop

    def _find_row(self, loop: Loop) -> None:
        """The row of a loop: in front of it an allocation, of as many frames, goes into its slot."""
        for store in self.blocks[loop.front].instructions:
            row = store.operands[0] if isinstance(store, I.Store) else None
            if not isinstance(row, I.CallBase) or not _allocates(row):
                continue
            place = self.place(store.operands[1])
            if place is None or place.key != ("last", loop):
                continue
            size = next((v for v in _steps_of(row.operands[1]) if v.opcode == "mul"), None)
            if size is None or int_value(size.operands[1]) != self.tape.row_step(loop).count:
                raise self.fail("a row of the tape has another size than its frames")
            self.nodes[row] = loop

    def is_current(self, loop: Loop, number: Value) -> bool:
        counted = self.counters.get(number)
        return counted is not None and counted.header is self.blocks[loop.header]

    def run(self) -> set[object]:
        """Checks every write; the keys of the slots that are written."""
        written: set[object] = set()
        for store in self.stores():
            place = self.place(store.operands[1])
            if place is None:
                continue
            if isinstance(place.key, MemoryObject):
                self._check_item(store, place)
                continue
            place = self._own(place, self.block_of[store])
            if place.key in written and not isinstance(place.key, tuple):
                raise self.fail(f"the slot of {name_of(place.key)} is written twice")
            written.add(place.key)
            self._write(store, place)
        for call in self._copies():
            place = self.place(call.operands[0])
            if place is not None and isinstance(place.key, Snapshot):
                self._check_copy(call, place, place.key)
                written.add(place.key)
        self._check_turns()
        return written

    def _copies(self) -> Iterator[I.CallBase]:
        for instruction in self.block_of:
            if isinstance(instruction, I.CallBase) and call_effect(instruction) is Effect.MEMORY_COPY:
                yield instruction

    def _check_copy(self, call: I.CallBase, place: Place, snapshot: Snapshot) -> None:
        """Memory that a loop reads is copied right in front of it, as much as there is room for."""
        block = self.block_of[call]
        counters = [self._counter(v, place) for v in self.indices(place)]
        if counters != self._nest(block, place):
            raise self.fail(f"{snapshot} is copied to the place of other iterations than those around it")
        front = snapshot.loop.preheader
        if front is None or block is not self.blocks[front] or int_value(call.operands[2]) != snapshot.size:
            raise self.fail(f"{snapshot} is copied elsewhere than there, or not as much of it as is kept")
        rest = block.instructions[block.instructions.index(call) :]
        if any(isinstance(i, I.Store) and self.place(i.operands[1]) is None for i in rest):
            raise self.fail(f"{snapshot} is copied before it is as the loop finds it")

    def _own(self, place: Place, block: BasicBlock) -> Place:
        """Of values that share a slot, the one that a block defines."""
        own = [key for key in place.keys if isinstance(key, I.Instruction) and self.twin_of.get(key) is block]
        return replace(place, keys=tuple(own[:1])) if own else place

    def _check_turns(self) -> None:
        """Where values share a slot, no iteration of the innermost loop around goes through two of their blocks."""
        blocks: dict[Slot, list[BasicBlock]] = {}
        for key, slot in self.tape.slots.items():
            if isinstance(key, I.Instruction) and key in self.twin_of:
                blocks.setdefault(slot, []).append(self.twin_of[key])
        for slot, own in blocks.items():
            loop = self.loops.loop_of[own[0]] if len(own) > 1 else None
            for block in own if len(own) > 1 else ():
                if loop is None or self.loops.loop_of[block] is not loop or slot.repeated:
                    raise self.fail("values of several loops are kept at one place")
                if not _after(block, loop).isdisjoint(own):
                    raise self.fail("two values of one iteration are kept at one place")

    def _check_item(self, store: I.Store, place: Place) -> None:
        """An object that is there in each iteration of some loops is that of the current ones."""
        counters = [self._counter(v, place) for v in self.indices(place)]
        if self._nest(self.block_of[store], place)[: len(counters)] != counters:
            raise self.fail(f"{name_of(place.key)} is written in another iteration than its own")

    def _write(self, store: I.Store, place: Place) -> None:
        block = self.block_of[store]
        around = self._nest(block, place)
        counters = [self._counter(v, place) for v in self.indices(place)]
        if isinstance(place.key, tuple):
            # The last node of a loop is kept after it, a row in front: in the loops that are around it.
            is_row = store.operands[0] in self.nodes
            around = self._nest(block if is_row else self.cfg.preds[block][0], place)[: len(counters)]
        elif not isinstance(place.key, Value):
            raise self.fail(f"a slot of nothing: {place.key}")
        else:
            self._check_block(place.key, block)
            repeated = {self.blocks[loop.header] for loop in place.slot.repeated}
            around = [loop for loop in around if loop.header not in repeated]
        if counters != around:
            raise self.fail(f"{name_of(place.key)} is kept at the index of other loops than those around it")
        if place.slot.type != store.operands[0].type:
            raise self.fail(f"{name_of(place.key)} is kept with another type than its slot's")
        if isinstance(place.key, ForwardPointer) and place.key.what == "shadow":
            self._check_shadow(store.operands[0])

    def _check_block(self, key: Value, block: BasicBlock) -> None:
        home = key.of if isinstance(key, ForwardPointer) else key
        if isinstance(home, I.Instruction) and self.twin_of.get(home) is not block:
            raise self.fail(f"{name_of(key)} is kept in another block than the one that defines it")

    def _nest(self, block: BasicBlock, place: Place) -> list[Loop]:
        """The loops around a block, outermost first, from the slot's frame on inwards."""
        loop = self.loops.loop_of[block]
        nest = list(reversed(list(loop.ancestors))) if loop is not None else []
        frame = place.slot.frame.loop
        if frame is not None:
            header = self.blocks[frame.header]
            nest = nest[next((i + 1 for i, x in enumerate(nest) if x.header is header), len(nest)) :]
        return nest

    def _counter(self, value: Value, place: Place) -> Loop:
        loop = self.counters.get(value)
        if loop is None:
            raise self.fail(f"{name_of(place.key)} is kept at an index that counts no iterations")
        return loop

    def _check_shadow(self, value: Value) -> None:
        value = I.base_of(value)
        if not _allocates(value):
            return
        assert isinstance(value, I.CallBase)
        block = self.block_of[value]
        following = block.instructions[block.instructions.index(value) + 1 :]
        first = next((i for i in following if value in i.operands), None)
        if first is None or not _clears(first, value, value.operands[1]):
            raise self.fail("the shadow of a local variable is not zeroed")


class _ReverseCheck(Sweep):
    def __init__(self, reverse: Reverse, tape: Tape, code: Function) -> None:
        super().__init__(reverse.function, tape, reverse.tape)
        self.reverse = reverse
        self.code = code
        self.code_cfg = Cfg(code)
        self.dominators = Dominators(self.code_cfg)
        self.home: dict[Value, BasicBlock] = {i: b for b in self.code_cfg.rpo for i in b.instructions}
        entry = [i for i in self.function.entry.instructions if isinstance(i, I.Alloca)]
        self.variables: dict[Value, int] = {variable: bit for bit, variable in enumerate(entry)}
        self.iteration: dict[BasicBlock, Value] = {}
        """The variable of each loop, by its header."""
        self._find_nodes()

    @cached_property
    def users(self) -> Uses:
        return uses(self.function)

    def run(self) -> set[object]:
        """Checks the whole sweep; the keys of the slots that are read."""
        self._check_control()
        self._check_variables()
        self._check_adjoints()
        read: set[object] = set()
        pointers = False
        for load in self.loads():
            place = self.place(load.operands[0])
            if place is not None and isinstance(place.key, Snapshot):
                read.add(place.key)
            if place is None or isinstance(place.key, MemoryObject | Snapshot):
                self._check_source(load, place)
                if place is not None:
                    self._check_iterations(load, place)
                continue
            pointers |= T.is_pointer(load.type) and not isinstance(place.key, tuple)
            place = self._own(load, place)
            read.add(place.key)
            self._read(load, place)
        if pointers and any("noalias" in a.attributes for a in self.function.arguments):
            raise self.fail("parameters are noalias although pointers come back from the tape")
        return read

    # -- nodes

    def _find_nodes(self) -> None:
        """Which loop's node or row each pointer variable holds: it is set from the slot of the row or the last node."""
        positions = self.tape.node_threads is not None
        kind = T.I64 if positions else T.PTR
        pending = [s for s in self.stores() if s.operands[1] in self.variables and s.operands[0].type == kind]
        changed = True
        while changed:
            changed = False
            for store in pending:
                value, variable = store.operands
                if variable in self.nodes or not isinstance(value, I.Load):
                    continue
                place = self.place(value.operands[0])
                if place is not None and isinstance(place.key, tuple) and place.key[0] == "last":
                    self.nodes[variable] = place.key[1]
                    changed = True
        for store in pending:
            if not positions:
                self._check_node(store)
            elif store.operands[1] in self.nodes:
                self._check_position(store)

    def _check_node(self, store: I.Store) -> None:
        value, variable = store.operands
        source = value.operands[0] if isinstance(value, I.Load) else None
        if isinstance(source, I.Load) and source.operands[0] is variable:
            return  # on to the node before
        place = self.place(source) if source is not None else None
        if place is None or place.key != ("last", self.nodes.get(variable)):
            raise self.fail("a node of the tape is taken from elsewhere than its slot")

    def _check_position(self, store: I.Store) -> None:
        """The last node comes from its slot; the one before the current has a slot as well, or lies right before it."""
        value, variable = store.operands
        loop = self.nodes[variable]
        place = self.place(value.operands[0]) if isinstance(value, I.Load) else None
        right = place is not None and place.key in (("last", loop), ("before", loop))
        if isinstance(value, I.BinaryOp) and value.opcode == "sub" and ("before", loop) not in self.tape.slots:
            current, by = value.operands
            of_own = isinstance(current, I.Load) and current.operands[0] is variable
            right = of_own and int_value(by) == self.tape.node_size(loop)
        if not right:
            raise self.fail("a node of the tape is taken from elsewhere than its slot")

    def is_current(self, loop: Loop, number: Value) -> bool:
        variable = number.operands[0] if isinstance(number, I.Load) else None
        return variable in self.variables and self.iteration.setdefault(loop.header, variable) is variable

    # -- control

    def _check_control(self) -> None:
        positions = self.reverse.positions
        for block in self.cfg.rpo:
            here = positions.get(block)
            if here is None:
                continue
            if isinstance(block.terminator, I.Return) and here is not self.code_cfg.entry:
                raise self.fail(f"reverse ends at {here.name}")
            for target in block.successors:
                there = positions[target]
                if there is here or there in self.code_cfg.preds[here] or self.dominators.dominates(there, here):
                    continue
                raise self.fail(f"reverse goes from {here.name} to {there.name}, which control does not come from")

    # -- variables

    def _check_variables(self) -> None:
        """Sets of variables are the bits of integers."""
        everything, ends = (1 << len(self.variables)) - 1, self._find_ends()
        gained = {block: self._stored(block) for block in self.cfg.rpo}

        def at_start(block: BasicBlock, after: Mapping[BasicBlock, int]) -> int:
            known = 0 if block is self.cfg.entry else everything
            for source in self.cfg.preds[block]:
                ended = ends.get(source, 0) if source.terminator.targets[0] is block else 0
                known &= after.get(source, everything) & ~ended
            return known

        def at_end(block: BasicBlock, after: Mapping[BasicBlock, int]) -> int:
            return at_start(block, after) | gained[block]

        found = fixpoint(self.cfg.rpo, self.cfg.succs.__getitem__, at_end, everything)
        for block in self.cfg.rpo:
            self._check_loads(block, at_start(block, found))

    def _stored(self, block: BasicBlock) -> int:
        bits = 0
        for instruction in block.instructions:
            bit = self.variables.get(instruction.operands[1]) if isinstance(instruction, I.Store) else None
            if bit is not None:
                bits |= 1 << bit
        return bits

    def _check_loads(self, block: BasicBlock, known: int) -> None:
        found = set[Value]()
        for instruction in block.instructions:
            if isinstance(instruction, I.Store):
                found.add(instruction.operands[1])
            elif isinstance(instruction, I.Load) and isinstance(variable := instruction.operands[0], I.Alloca):
                bit = self.variables.get(variable)
                if variable not in found and (bit is None or not known >> bit & 1):
                    raise self.fail(f"a variable is read in {block.name} before it is set")

    def _find_ends(self) -> dict[BasicBlock, int]:
        """The blocks that test whether a loop is to be left, and the bits of the variables that they look at."""
        turned = {loop.header: last for loop, last in self.reverse.turned.items()}
        headers = {loop.header for loop in Loops(self.code_cfg, self.dominators)}
        reversed_ = {header for block in self.cfg.rpo if (header := self.reverse.positions.get(block)) in headers}
        found: dict[BasicBlock, int] = {}
        for block in self.cfg.rpo:
            header, test = self.reverse.positions.get(block), _test_of(block)
            if header not in headers or test is None or test[0] not in self.variables:
                continue
            variable, number = test
            if number != turned.get(header, 0):
                raise self.fail(f"the loop of {header.name} is left at another number than its last")
            if self.iteration.setdefault(header, variable) is not variable:
                raise self.fail(f"the loop of {header.name} is left by the number of another loop")
            if not self._steps_on(block.terminator.targets[1], variable, "add" if header in turned else "sub"):
                raise self.fail(f"the loop of {header.name} does not go on to the iteration next to it")
            found[block] = 1 << self.variables[variable]
            reversed_.discard(header)
        if reversed_:
            raise self.fail("a loop is reversed and not left")
        if len(set(self.iteration.values())) < len(self.iteration):
            raise self.fail("two loops count in one variable")
        return found

    @staticmethod
    def _steps_on(block: BasicBlock, variable: Value, step: str) -> bool:
        """Whether a block makes one more or one less of what is in a variable."""
        stores = [i for i in block.instructions if isinstance(i, I.Store) and i.operands[1] is variable]
        value = stores[0].operands[0] if len(stores) == 1 else None
        if not isinstance(value, I.BinaryOp) or value.opcode != step or int_value(value.operands[1]) != 1:
            return False
        return isinstance(value.operands[0], I.Load) and value.operands[0].operands[0] is variable

    def _check_adjoints(self) -> None:
        adjoints: set[Value] = {
            v for v in self.variables if isinstance(v, I.Alloca) and _is_adjoint(v) and v not in self.reverse.late_sums
        }
        start: dict[Value, Value] = {}
        for instruction in self.function.entry.instructions:
            if isinstance(instruction, I.Store):
                start.setdefault(instruction.operands[1], instruction.operands[0])
        if not all(variable in start and is_zero(start[variable]) for variable in adjoints):
            raise self.fail("an adjoint does not start as zero")
        for block in self.cfg.rpo:
            self._check_adjoints_in(block, adjoints)

    def _check_adjoints_in(self, block: BasicBlock, adjoints: set[Value]) -> None:
        read: dict[Value, I.Load] = {}
        for instruction in block.instructions:
            if isinstance(instruction, I.Load) and instruction.operands[0] in adjoints:
                if instruction.operands[0] in read:
                    raise self.fail(f"an adjoint is read twice in {block.name}")
                read[instruction.operands[0]] = instruction
            elif isinstance(instruction, I.Store) and instruction.operands[1] in adjoints:
                value, variable = instruction.operands
                old = read.pop(variable, None)
                if not is_zero(value) and (old is None or not _adds_to(value, old)):
                    raise self.fail(f"an adjoint is overwritten in {block.name}")
        if read:
            raise self.fail(f"an adjoint is read in {block.name} and neither taken nor added to")

    # -- reads

    def _own(self, load: I.Load, place: Place) -> Place:
        """Of values that share a slot, the one that a load is."""
        own = self.reverse.kept.get(load, place.key)
        if own not in place.keys:
            raise self.fail(f"{name_of(own)} is read at the place of another value")
        return replace(place, keys=(own,))

    def _read(self, load: I.Load, place: Place) -> None:
        if load.type != place.slot.type:
            raise self.fail(f"{name_of(place.key)} is read with another type than its slot's")
        position, elsewhere = self._check_iterations(load, place)
        if isinstance(place.key, Value) and not elsewhere:
            self._check_dominates(load, place.key, position)

    def _check_iterations(self, load: I.Load, place: Place) -> tuple[BasicBlock, bool]:
        """Where in the forward sweep a load belongs, and whether it reads what another iteration left."""
        position = self.reverse.positions.get(self.block_of[load])
        if position is None:
            raise self.fail(f"{name_of(place.key)} is read before reverse begins")
        elsewhere = False
        for loop, index in zip(place.slot.nest, self.indices(place), strict=True):
            elsewhere |= not self._is_iteration(loop, index, position, place)
        return position, elsewhere

    def _is_iteration(self, loop: Loop, index: Value, position: BasicBlock, place: Place) -> bool:
        """Whether an index is the current iteration of a loop; False for that of another iteration, of a loop that is
        over (what was stored there is computed again)."""
        if position not in loop.blocks and not isinstance(place.key, tuple):
            return False
        variable = index.operands[0] if isinstance(index, I.Load) else None
        if variable is None or variable not in self.variables:
            raise self.fail(f"{name_of(place.key)} is read at an index that is not the current iteration")
        if self.iteration.setdefault(loop.header, variable) is not variable:
            raise self.fail(f"{name_of(place.key)} is read at the iteration of another loop")
        return True

    def _check_dominates(self, load: I.Load, key: Value, position: BasicBlock) -> None:
        home = key.of if isinstance(key, ForwardPointer) else key
        block = self.home.get(home)
        if block is None or self.dominators.dominates(block, position):
            return
        if not self._is_chosen(load):
            raise self.fail(f"{name_of(key)} is read where it need not have been written")

    def _is_chosen(self, load: I.Load) -> bool:
        """Whether nothing depends on a value but by way of a `select`."""
        found = Reached[Value]([load])
        for value in found:
            for user, _ in self.users.get(value, ()):
                if isinstance(user, I.Select):
                    continue
                if isinstance(user, I.Load | I.Store | I.CallBase | I.Phi) or user.is_terminator:
                    return isinstance(user, I.Call) and "memory(none)" in " ".join(user.attributes)
                found.add([user])
        return True

    def _check_source(self, load: I.Load, place: Place | None) -> None:
        """A load from the primal's memory, or from a copy of it, repeats one of the code."""
        if place is not None and isinstance(place.key, Snapshot):
            if self.reverse.recalls.get(load, (load, None))[1] is not place.key:
                raise self.fail("a copy of memory is read, and nothing says for which load")
            return
        root = I.base_of(load.operands[0])
        if (place is not None or root in self.reverse.primal) and load not in self.reverse.reloads:
            raise self.fail("memory of the primal is read, and nothing says that it is unchanged")


def check_emission(tape: Tape, code: Function, forward: Forward | None, reverse: Reverse) -> None:
    """Raises EmissionError where a routine's sweeps break a rule. Without `forward` (a pullback alone) its writes are
    those that the forward sweep was checked for when it was made."""
    read = _ReverseCheck(reverse, tape, code).run()
    if forward is None:
        return
    written = _ForwardCheck(forward, tape).run()
    for key in read:
        if key not in written:
            raise EmissionError(reverse.function, f"{name_of(key)} is read from the tape but never written to it")


def _counts(phi: Value, loop: Loop) -> bool:
    """Whether a phi of a loop's header is the number of the iteration: 0, then one more each time."""
    if not isinstance(phi, I.Phi) or phi.type != T.I64:
        return False
    for value, block in phi.incoming:
        if block in loop.blocks:
            if not isinstance(value, I.BinaryOp) or value.opcode != "add" or value.operands[0] is not phi:
                return False
            if int_value(value.operands[1]) != 1:
                return False
        elif int_value(value) != 0:
            return False
    return True


def _test_of(block: BasicBlock) -> tuple[Value, int] | None:
    """The variable and the number that a block compares, to go on at its first successor where they are equal."""
    last = block.terminator
    condition = last.operands[0] if isinstance(last, I.CondBranch) else None
    if not isinstance(condition, I.Compare) or condition.predicate != "eq":
        return None
    variable, number = condition.operands[0], int_value(condition.operands[1])
    if not isinstance(variable, I.Load) or variable.type != T.I64 or number is None:
        return None
    return variable.operands[0], number


def _after(block: BasicBlock, loop: Loop) -> frozenset[BasicBlock]:
    """The blocks that the same iteration of a loop may go through after one."""
    return frozenset(
        reached(
            [t for t in block.successors if t in loop.blocks and t is not loop.header],
            lambda here: [t for t in here.successors if t in loop.blocks and t is not loop.header],
        )
    )


def _steps_of(value: Value) -> Iterator[I.BinaryOp]:
    """The arithmetic that a value is made by, from its end to its start."""
    while isinstance(value, I.BinaryOp):
        yield value
        value = value.operands[0]


def _allocates(value: Value) -> bool:
    return callee_name(value) in ("je.arena.allocate", TAKE)


def _clears(instruction: I.Instruction, pointer: Value, size: Value) -> bool:
    if not callee_name(instruction).startswith("llvm.memset"):
        return False
    target, value, length = instruction.operands[:3]
    return target is pointer and int_value(value) == 0 and length is size


def _is_adjoint(variable: I.Alloca) -> bool:
    return (
        not T.is_int(variable.allocated_type)
        and not T.is_pointer(variable.allocated_type)
        and (variable.allocated_type != ARENA)
    )


def _adds_to(value: Value, old: Value) -> bool:
    """Whether a value is another one with terms added, each on the right; member by member for aggregates."""
    while value is not old:
        adds = isinstance(value, I.InsertValue | I.BinaryOp) and value.opcode in ("insertvalue", "fadd")
        if not isinstance(value, I.Instruction) or not (adds or callee_name(value) == JOIN_NAME):
            return False
        value = value.operands[0]
    return True
