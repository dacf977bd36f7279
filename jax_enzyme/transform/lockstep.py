"""Iterations of a loop with loops inside in lockstep: eight at a time, each number a vector with a lane for each.

    before    for i < n: { for j: u[j] = x[d * i + j] - m[j];  for j: s += L[j] * u[j] }

    after     for blocks of eight i, as long as more than none are left:
                  for j: U[j] = {x[d * i + j], x[d * (i + 1) + j], ...} - {m[j], m[j], ...}
                  for j: S += {L[j], L[j], ...} * U[j]
              for the rest of i, one at least: as before

LLVM makes vectors of innermost loops, and short ones, or those that add up in order, are not worth it or must not be.
What is proved is in `analysis.lockstep`; here it is used as follows. Each iteration does the same operations on the
same numbers in the same order as before, so that nothing rounds otherwise, but for sums whose order is free.

- What is the same for all iterations stays one number, computed once for eight; so do the way that is taken and the
  counters, which are those of the first of the eight. An address that is so much more for each next one is computed for
  the first, and for the others from that.
- Memory that is renewed has copies, eight numbers side by side where there was one. Where iterations find zeros there,
  the first of all finds what was there before, which is cleared, as the loop would have. The iterations at the end use
  the memory itself: what they leave there is what the loop left.
- What is added to memory are sums from zero on (-0.0, which changes no number), which are added up before they are
  stored; where data say the place, each lane is added to what is there by then. Free sums that the loop hands on are
  such vectors until the eight are done with.
- A sum in order adds up the lanes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.lockstep import ELEMENTWISE, InLockstep, Lockstep
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.objects import call_effect
from jax_enzyme.analysis.private_memory import Renewal
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import SUM_FLAGS, Builder, const_float, const_int
from jax_enzyme.ir.clone import clone, with_operands
from jax_enzyme.ir.marks import LOCKSTEP, LOCKSTEP_BACK, LOCKSTEP_OPEN
from jax_enzyme.ir.metadata import MDNode
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantAggregate, ConstantSplat, Poison, Undef, Value, int_value
from jax_enzyme.rules.declare import Declarations, overload, splat
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.joined_ends import first_ends, join_ends
from jax_enzyme.transform.loop_hints import ask
from jax_enzyme.transform.rewriting import computed_before, local, phis, split_before

_ALIGNMENT = 64
_STACK = 1 << 17
"""So many bytes at most have all copies of memory, of all loops together."""
_LARGEST_COPY = 1 << 12
"""Bytes of a copy between two places that is made one number at a time."""
_OF_VECTORS = tuple(
    f"llvm.{name}."
    for name in "acos asin atan atan2 cos cosh exp exp10 exp2 log log10 log2 pow sin sinh tan tanh".split()
)
"""Functions of `math.h` that are called for vectors: those that a library has, or for each number."""
_NUMBERS: Mapping[T.Type, int] = {T.DOUBLE: 8, T.FLOAT: 4, T.I64: 8, T.I32: 4}
"""Of what copies may be, with their sizes."""


def in_lockstep(function: ArrayFunction) -> ArrayFunction:
    """The array function, its loops regular, with the iterations of some in lockstep, in a copy of the module; the
    function itself where there are none."""
    prepared = _prepared(function)
    if prepared is None:
        return function
    module, found = prepared.module, prepared.facts.found()
    root = module.functions[function.symbol]
    left = _STACK
    for share in found:
        needed = share.width * sum(size for _, _, size in share.renewed.values())
        if needed <= left:
            left -= needed
            rest = _Rewriting(module, root, share).run()
            if rest is not None and not share.sites:
                _Rewriting(module, root, replace(share, width=share.width // 2)).run(rest)
    return replace(function, module=module) if found else function


def note_lockstep(function: ArrayFunction) -> ArrayFunction:
    """The array function, in canonical form, with the loops noted in place of which iterations will run in lockstep,
    and those whose reverse may: what derivatives keep of these lies side by side. Others wait for derivatives."""
    prepared = _prepared(function)
    if prepared is None:
        return function
    facts = prepared.facts
    noted = dict[BasicBlock, tuple[str, ...]]()
    for loop in facts.waiting():
        noted[prepared.origins[loop.header]] = (LOCKSTEP_OPEN,)
    for share in facts.found():
        back = (LOCKSTEP_BACK,) if facts.reverse_gains(share.loop) else ()
        noted[prepared.origins[share.loop.header]] = (LOCKSTEP, *back)
    for loop in Loops.of(function.module.functions[function.symbol]) if noted else ():
        for latch in loop.latches:
            kinds = noted.get(loop.header, ())
            latch.terminator.metadata = [*latch.terminator.metadata, *((kind, MDNode()) for kind in kinds)]
    return function


def has_lockstep(function: ArrayFunction) -> bool:
    """Whether loops are noted, so that derivatives may have some."""
    ends = (block.terminator for block in function.module.functions[function.symbol].blocks)
    return any(kind in (LOCKSTEP, LOCKSTEP_OPEN) for end in ends for kind, _ in end.metadata)


@dataclass(frozen=True)
class _Prepared:
    """A copy of a module in which loops have one end and numbers are copied one by one, what is known of it, and the
    blocks that its own are copies of."""

    module: Module
    facts: InLockstep
    origins: Mapping[BasicBlock, BasicBlock]


def _prepared(function: ArrayFunction) -> _Prepared | None:
    """None where no loop may gain."""
    root = function.module.functions[function.symbol]
    loops = Loops.of(root)
    if not any(loop.children for loop in loops):
        return None
    has_several = first_ends(loops, _has_inner) is not None
    if not has_several and not InLockstep(function.module, root).candidates():
        return None
    module = clone(function.module)
    origins = dict(zip(module.functions[function.symbol].blocks, root.blocks, strict=True))
    root = module.functions[function.symbol]
    if has_several:
        join_ends(root, _has_inner)
    facts = InLockstep(module, root)
    if _copy_by_number(root, facts.candidates()):
        facts = InLockstep(module, root)
    return _Prepared(module, facts, origins)


def _has_inner(loop: Loop) -> bool:
    return bool(loop.children)


def _copy_by_number(root: Function, loops: list[Loop]) -> bool:
    """Copies of a few numbers in some loops become loops."""
    found = False
    for loop in loops:
        inside = [b for b in root.blocks if b in loop.blocks]
        sizes: dict[Value, set[T.Type]] = {}
        for access in (i for b in inside for i in b.instructions if isinstance(i, I.Load | I.Store)):
            sizes.setdefault(I.base_of(access.operands[-1]), set()).add(I.accessed_value(access).type)
        for block in inside:
            here = block
            while (copy := next(filter(None, (_short_copy(i, sizes) for i in here.instructions)), None)) is not None:
                here = _copy_loop(root, here, *copy)
                found = True
    return found


def _short_copy(instruction: I.Instruction, types: Mapping[Value, set[T.Type]]) -> tuple[I.Call, T.Type, int] | None:
    """A copy from or to memory that is accessed by numbers of one type, with that and how many they are."""
    if not isinstance(instruction, I.Call) or not callee_name(instruction).startswith("llvm.memcpy."):
        return None
    size, is_volatile = map(int_value, instruction.operands[2:4])
    accessed = {t for p in instruction.operands[:2] if len(of := types.get(I.base_of(p), ())) == 1 for t in of}
    if is_volatile != 0 or size is None or not 0 < size <= _LARGEST_COPY or len(accessed) != 1:
        return None
    (type_,) = accessed
    each = _NUMBERS.get(type_)
    return None if each is None or size % each else (instruction, type_, size // each)


def _copy_loop(root: Function, block: BasicBlock, call: I.Call, type_: T.Type, count: int) -> BasicBlock:
    """What is behind the loop that a copy becomes."""
    after, each = split_before(root, block, block.instructions.index(call)), BasicBlock()
    del after.instructions[0]
    root.blocks.insert(root.blocks.index(after), each)
    at, number = Builder(block).enter(each)
    target, source = call.operands[:2]
    at.store(at.load(type_, at.gep(type_, source, [number]), 1), at.gep(type_, target, [number]), 1)
    at.count_on(number, each, const_int(T.I64, count), after)
    return after


class _Rewriting:
    """Puts a loop for blocks of iterations in front of a loop."""

    def __init__(self, module: Module, root: Function, share: Lockstep) -> None:
        self._module = module
        self._root = root
        self._share = share
        self._added_to = frozenset(share.added.values())
        self._added_to_apart = frozenset(share.apart.values())
        self._width = share.width
        self._layout = DataLayout(module)
        self._declarations = Declarations(module)
        self._copies: dict[Value, Value] = {}
        self._blocks: dict[BasicBlock, BasicBlock] = {}
        self._wide: dict[Value, Value] = {}
        self._loaded: dict[Value, Value] = {}
        self._phis: list[tuple[I.Phi, I.Phi]] = []

    def run(self, count: Value | None = None) -> Value | None:
        """How many iterations are left behind the blocks; None where that is a constant. `count`: how many there are,
        where blocks of others come before."""
        share, loop = self._share, self._share.loop
        before, (latch,) = loop.preheader, loop.latches
        assert before is not None
        old = [b for b in self._root.blocks if b in loop.blocks]
        self._blocks = {b: BasicBlock() for b in old}
        enter, start, after, rest = (BasicBlock() for _ in range(4))
        before.instructions.pop()
        at = Builder(before)
        if count is None and not isinstance(share.count, int):
            count = computed_before(at, share.count)
        times = self._times(at, count)
        Builder(before).cond_br(Builder(before).icmp("ne", times, const_int(T.I64, 0)), enter, rest)
        made = self._memory(enter, start)
        header = self._blocks[loop.header]
        _, number = Builder(start).enter(header)
        for block in share.blocks:
            self._run_block(block)
        self._connect(start)
        end = Builder(self._blocks[latch])
        end.count_on(number, header, times, after)
        self._blocks[latch].terminator.metadata, latch.terminator.metadata = latch.terminator.metadata, []
        self._go_on(before, after, rest, times)
        place = self._root.blocks.index(loop.header)
        self._root.blocks[place:place] = [enter, *made, start, *self._blocks.values(), after, rest]
        for block in old:
            if any(t in loop.blocks and self._is_back(block, t) for t in block.successors):
                ask(self._module, block.terminator, "disable")
        loop.preheader = rest
        if count is None:
            return None
        at = Builder.at_end(rest)
        return at.binary("sub", count, at.binary("mul", times, const_int(T.I64, self._width)))

    def _times(self, at: Builder, count: Value | None) -> Value:
        """How many blocks of iterations there are, such that one iteration at least is left."""
        if count is None:
            assert isinstance(self._share.count, int)
            return const_int(T.I64, (self._share.count - 1) // self._width)
        last = at.binary("sub", count, const_int(T.I64, 1))
        return at.binary("udiv", last, const_int(T.I64, self._width))

    def _is_back(self, block: BasicBlock, target: BasicBlock) -> bool:
        return any(block in c.latches and target is c.header for c in _within(self._share.loop))

    # -- memory

    def _memory(self, before: BasicBlock, start: BasicBlock) -> list[BasicBlock]:
        """Makes the copies of memory, and what fills them between two blocks."""
        made: list[BasicBlock] = []
        for site, (renewed, each, size) in self._share.renewed.items():
            kind = T.ArrayType(size * self._width, T.I8)
            wide = self._wide[site] = local(self._root, kind, _ALIGNMENT)
            if renewed.how is Renewal.WRITTEN:
                continue
            at = Builder(before)
            zeros = (wide, const_int(T.I8, 0), const_int(T.I64, size * self._width))
            self._declarations.memory(at, "memset", *zeros)
            block, behind = BasicBlock(), BasicBlock()
            at, number = at.enter(block, const_int(T.I64, renewed.first // each))
            type_ = T.IntType(8 * each)
            place = at.gep(type_, site, [number])
            value = at.load(type_, place, 1)
            at.store(value, at.gep(T.VectorType(self._width, type_), wide, [number]), each)
            at.store(const_int(type_, 0), place, 1)
            at.count_on(number, block, const_int(T.I64, renewed.end // each), behind)
            made += [block, behind]
            before = behind
        Builder(before).br(start)
        return made

    def _wide_address(self, at: Builder, pointer: Value) -> Value:
        """Where the copies of a number are: each byte is so many times as far."""
        if pointer in self._wide:
            return self._wide[pointer]
        assert isinstance(pointer, I.GetElementPtr)
        address = self._wide_address(at, pointer.operands[0])
        constant, steps = self._layout.steps(pointer.source_type, pointer.operands[1:])
        for index, size in steps:
            address = at.gep(T.ArrayType(size * self._width, T.I8), address, [self._first(index)], ())
        return at.gep(T.I8, address, [const_int(T.I64, constant * self._width)], ()) if constant else address

    # -- values

    def _first(self, value: Value) -> Value:
        """A value of the first iteration: where it is the same for all, or so much more for the next one."""
        return self._copies.get(value, value)

    def _vector(self, type_: T.Type) -> T.VectorType:
        return T.VectorType(self._width, type_)

    def _lanes(self, at: Builder, value: Value) -> Value:
        """A value of all iterations."""
        vector = self._vector(value.type)
        if value not in self._share.shapes:
            match value:
                case Poison() | Undef():
                    return type(value)(vector)
                case Constant():
                    return ConstantSplat(vector, value)
                case _:
                    return splat(at, self._first(value), vector)
        step = self._share.shapes[value]
        if step is None:
            return self._copies[value]
        if T.is_pointer(value.type):
            return at.pack(vector, [self._place(at, value, lane) for lane in range(self._width)])
        steps: list[Constant] = [const_int(value.type, step * lane) for lane in range(self._width)]
        return at.binary("add", splat(at, self._first(value), vector), ConstantAggregate(vector, steps))

    def _place(self, at: Builder, pointer: Value, lane: int) -> Value:
        """An address of one iteration."""
        step = self._share.shapes.get(pointer, 0)
        if step is None:
            return at.extract_element(self._copies[pointer], lane)
        first, distance = self._first(pointer), const_int(T.I64, step * lane)
        return at.gep(T.I8, first, [distance], ()) if step * lane else first

    # -- instructions

    def _run_block(self, block: BasicBlock) -> None:
        at = Builder(self._blocks[block])
        is_last = block is self._share.loop.latches[0]
        for instruction in block.instructions:
            if instruction in self._share.ordered:
                self._copies[instruction] = at.phi(instruction.type)
            elif instruction in self._share.ordered.values():
                self._copies[instruction] = self._in_order(at, instruction)
            elif isinstance(instruction, I.Phi):
                self._phi(at, instruction)
            elif isinstance(instruction, I.Load):
                self._copies[instruction] = self._load(at, instruction)
            elif isinstance(instruction, I.Store):
                self._store(at, instruction)
            elif isinstance(instruction, I.Branch | I.CondBranch):
                if not is_last:
                    copy = with_operands(instruction, [self._first(o) for o in instruction.operands])
                    copy.targets = [self._blocks[t] for t in instruction.targets]
                    copy.metadata = []
                    at.insert(copy)
            elif isinstance(instruction, I.Call) and call_effect(instruction) in (Effect.IGNORED, Effect.MEMORY_SET):
                if instruction in self._share.sites:
                    wide = self._wide_address(at, instruction.operands[0])
                    size = int_value(instruction.operands[2])
                    assert size is not None
                    fill = (wide, self._first(instruction.operands[1]), const_int(T.I64, size * self._width))
                    self._declarations.memory(at, "memset", *fill)
            else:
                self._copies[instruction] = self._computed(at, instruction)

    def _phi(self, at: Builder, phi: I.Phi) -> None:
        shape = self._share.shapes.get(phi, 0)
        copy = at.phi(phi.type if shape is not None else self._vector(phi.type))
        copy.flags = phi.flags
        self._copies[phi] = copy
        self._phis.append((phi, copy))

    def _computed(self, at: Builder, instruction: I.Instruction) -> Value:
        if self._share.shapes.get(instruction, 0) is not None:
            copy = with_operands(instruction, [self._first(o) for o in instruction.operands])
            copy.metadata, copy.records = [], ()
            return at.insert(copy)
        if isinstance(instruction, I.Call):
            return self._called(at, instruction)
        operands = [self._lanes(at, o) for o in instruction.operands]
        match instruction:
            case I.Select() if instruction.operands[0] not in self._share.shapes:
                operands[0] = self._first(instruction.operands[0])
            case I.GetElementPtr():
                given = zip(instruction.operands, operands, strict=True)
                operands = [o if isinstance(o, Constant) and o.type != T.PTR else lanes for o, lanes in given]
            case _:
                pass
        vector = self._vector(instruction.type)
        return at.insert(replace(instruction, type=vector, operands=operands, metadata=[], records=()))

    def _called(self, at: Builder, call: I.Call) -> Value:
        vector, name = self._vector(call.type), callee_name(call)
        if name.startswith((*ELEMENTWISE, *_OF_VECTORS)):
            given = [self._lanes(at, a) for a in call.arguments]
            made = self._declarations.invoke(at, f"{name.rsplit('.', 1)[0]}.{overload(vector)}", vector, given)
            made.flags = tuple(f for f in call.flags if f != "tail")
            return made
        arguments = [self._lanes(at, a) if a in self._share.shapes else None for a in call.arguments]
        results: list[Value] = []
        for lane in range(self._width):
            own = [
                self._first(a) if v is None else at.extract_element(v, lane)
                for a, v in zip(call.arguments, arguments, strict=True)
            ]
            copy = with_operands(call, [*own, call.callee])
            copy.metadata, copy.records = [], ()
            results.append(at.insert(copy))
        return at.pack(vector, results)

    def _in_order(self, at: Builder, addition: I.Instruction) -> Value:
        """A sum in order, with what each iteration adds to it."""
        start = next(o for o in addition.operands if o in self._share.ordered)
        total = self._copies[start]
        parts = {o: self._lanes(at, o) for o in addition.operands if o is not start and not isinstance(o, Function)}
        for lane in range(self._width):
            own = {start: total, **{o: at.extract_element(vector, lane) for o, vector in parts.items()}}
            copy = with_operands(addition, [own.get(o, o) for o in addition.operands])
            copy.metadata, copy.records = [], ()
            total = at.insert(copy)
        return total

    # -- accesses

    def _load(self, at: Builder, load: I.Load) -> Value:
        pointer, site = load.operands[0], self._share.sites.get(load)
        if load in self._added_to:
            self._loaded[load] = self._kept(load, at.load(load.type, self._first(pointer), load.align))
        if load in self._added_to or load in self._added_to_apart:
            return ConstantSplat(self._vector(load.type), const_float(load.type, -0.0))
        if site is not None:
            return self._kept(load, at.load(self._vector(load.type), self._wide_address(at, pointer), load.align))
        if pointer not in self._share.shapes:
            return self._kept(load, at.load(load.type, self._first(pointer), load.align))
        size = self._layout.store_size(load.type)
        match self._share.shapes[pointer]:
            case step if step == size and T.is_float(load.type):
                return self._kept(
                    load, at.load(self._vector(load.type), self._first(pointer), self._layout.alignment(load))
                )
            case step if step == -size and T.is_float(load.type):
                found = at.load(
                    self._vector(load.type), self._place(at, pointer, self._width - 1), self._layout.alignment(load)
                )
                return at.shuffle(self._kept(load, found), None, range(self._width)[::-1])
            case _:
                places = [self._place(at, pointer, lane) for lane in range(self._width)]
                return at.pack(
                    self._vector(load.type), [self._kept(load, at.load(load.type, p, load.align)) for p in places]
                )

    def _store(self, at: Builder, store: I.Store) -> None:
        value, pointer = store.operands
        site = self._share.sites.get(store)
        if store in self._share.added:
            total = self._added_up(at, self._lanes(at, value), self._loaded[self._share.added[store]])
            self._kept(store, at.store(total, self._first(pointer), store.align))
            return
        if store in self._share.apart:
            self._add_apart(at, store, self._share.apart[store])
            return
        if site is None and not {value, pointer} & self._share.shapes.keys():
            self._kept(store, at.store(self._first(value), self._first(pointer), store.align))
            return
        lanes = self._lanes(at, value)
        if site is not None:
            self._kept(store, at.store(lanes, self._wide_address(at, pointer), store.align))
            return
        size = self._layout.store_size(value.type)
        match self._share.shapes.get(pointer):
            case step if step == size and T.is_float(value.type):
                self._kept(store, at.store(lanes, self._first(pointer), self._layout.alignment(store)))
            case step if step == -size and T.is_float(value.type):
                last = self._place(at, pointer, self._width - 1)
                self._kept(
                    store,
                    at.store(at.shuffle(lanes, None, range(self._width)[::-1]), last, self._layout.alignment(store)),
                )
            case _:
                for lane in range(self._width):
                    place = self._place(at, pointer, lane)
                    self._kept(store, at.store(at.extract_element(lanes, lane), place, store.align))

    def _add_apart(self, at: Builder, store: I.Store, load: I.Instruction) -> None:
        """One iteration after the other adds to what it finds."""
        lanes = self._lanes(at, store.operands[0])
        for lane in range(self._width):
            place = self._place(at, store.operands[1], lane)
            found = self._kept(load, at.load(load.type, place, store.align))
            total = at.binary("fadd", found, at.extract_element(lanes, lane), SUM_FLAGS)
            self._kept(store, at.store(total, place, store.align))

    @staticmethod
    def _kept(old: I.Instruction, new: I.Load | I.Store) -> I.Load | I.Store:
        """What says of which type memory is holds for eight numbers as for one; what says that accesses are apart holds
        within one iteration."""
        new.metadata = [(kind, node) for kind, node in old.metadata if kind == "tbaa"]
        return new

    def _added_up(self, at: Builder, vector: Value, start: Value) -> Value:
        assert isinstance(vector.type, T.VectorType)
        name = f"llvm.vector.reduce.fadd.{overload(vector.type)}"
        made = self._declarations.invoke(at, name, start.type, [start, vector])
        made.flags = SUM_FLAGS
        return made

    # -- what goes around

    def _connect(self, start: BasicBlock) -> None:
        """What phis of the copies become, once all is copied."""
        share, loop = self._share, self._share.loop

        def block_of(block: BasicBlock) -> BasicBlock:
            return self._blocks.get(block, start)

        for phi in share.ordered:
            copy = self._copies[phi]
            assert isinstance(copy, I.Phi)
            copy.incoming = [(self._first(v), block_of(b)) for v, b in phi.incoming]
        steps = dict(share.counters)
        for phi, copy in self._phis:
            if phi in steps:
                ends = loop.ends(phi)
                assert ends is not None
                at = Builder(self._blocks[loop.latches[0]])
                following = at.binary("add", copy, const_int(phi.type, steps[phi] * self._width))
                copy.incoming = [(ends[0], start), (following, at.block)]
                continue
            incoming: list[tuple[Value, BasicBlock]] = []
            for value, source in phi.incoming:
                block = block_of(source)
                if share.shapes.get(phi, 0) is not None:
                    incoming.append((self._first(value), block))
                elif phi in share.free and source not in loop.blocks:
                    zeros = ConstantSplat(self._vector(phi.type), const_float(phi.type, -0.0))
                    incoming.append((Builder.at_end(start).insert_element(zeros, value, 0), start))
                else:
                    incoming.append((self._at_end(block, lambda at, v=value: self._lanes(at, v)), block))
            copy.incoming = incoming

    def _at_end(self, block: BasicBlock, make: Callable[[Builder], Value]) -> Value:
        """What is computed behind all else in a block, whose end may be missing yet."""
        has_end = bool(block.instructions) and isinstance(block.instructions[-1], I.Branch | I.CondBranch)
        end = [block.instructions.pop()] if has_end else []
        made = make(Builder(block))
        block.instructions += end
        return made

    def _go_on(self, before: BasicBlock, after: BasicBlock, rest: BasicBlock, times: Value) -> None:
        """The loop itself begins where the copies end."""
        share, loop = self._share, self._share.loop
        at, join = Builder(after), Builder(rest)
        steps = dict(share.counters)
        for phi in phis(loop.header):
            ends = loop.ends(phi)
            assert ends is not None
            if phi in steps:
                done = at.narrow(times, phi.type)
                distance = at.binary("mul", done, const_int(phi.type, steps[phi] * self._width))
                value = at.binary("add", ends[0], distance)
            elif phi in share.free:
                value = self._added_up(at, self._lanes(at, ends[1]), const_float(phi.type, -0.0))
            else:
                value = self._first(ends[1])
            index = next(n for n, t in enumerate(phi.targets) if t not in loop.blocks)
            phi.operands[index], phi.targets[index] = join.phi(phi.type, [(ends[0], before), (value, after)]), rest
        at.br(rest)
        join.br(loop.header)


def _within(loop: Loop) -> list[Loop]:
    return [loop, *(inner for child in loop.children for inner in _within(child))]
