"""Rows that a table of pointers leads to become parts of one block of memory.

    before   %t = malloc(8 m)                         after   %b = malloc(size m)
             for i: %r = malloc(size)                         for i: %r = %b + size i
                    store ptr %r, ptr (%t + 8 i)                     store ptr %r, ptr (%t + 8 i)
             %p = load ptr, ptr (%t + 8 j)                    %p = %b + size j

So rows are told apart as those of a matrix are, in the reverse sweep too, and no tape has their addresses. Each element
of such a table is stored once, in one loop, and nothing but loads and stores of elements is done with the table;
nothing but accesses, and `free`, with the rows. Tables that point into one block already, row by row, are read in the
same way. Pointers that change places (`w = u; u = v; v = w`) may lead to any of several such tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, reduce

from jax_enzyme.analysis.extents import allocation_size
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.loops import Loop, Loops
from jax_enzyme.analysis.polynomials import Leaf, Polynomial, TooComplex, emit
from jax_enzyme.analysis.recurrences import Recurrences
from jax_enzyme.analysis.trips import full_count
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.marks import is_common, mark_common
from jax_enzyme.ir.module import Function, Module, Uses, callee_name, uses
from jax_enzyme.ir.reach import Reached, reached
from jax_enzyme.ir.values import Argument, BasicBlock, ConstantNull, Value, int_value
from jax_enzyme.transform.rewriting import count_iterations, local, on_copy, substitute

_BYTES = 8
"""Of an element of a table."""
_ALIGN = 16
"""Of what `malloc` gives."""
_ROOM = 2
"""A block has room for a row of each element: most of them there should be."""
_MAKERS = ("malloc", "calloc")


def join_rows(function: ArrayFunction) -> ArrayFunction:
    """The array function without loads of such pointers, in a copy of the module; the function itself where it has
    none."""
    root = function.module.functions[function.symbol]
    if not any(_is_kept(i) for i in root.instructions()):
        return function
    return on_copy(function, lambda module, copy: _Rows(module, copy).run())


def _is_kept(instruction: I.Instruction) -> bool:
    """Is a pointer stored in what may be a table?"""
    if not isinstance(instruction, I.Store) or not T.is_pointer(instruction.operands[0].type):
        return False
    return _may_be_table(I.base_of(instruction.operands[1]))


@dataclass(eq=False)
class _Tables:
    """Tables, of which pointers may lead to any; all these pointers, and what is done there."""

    roots: list[Value] = field(default_factory=list)
    pointers: dict[Value, None] = field(default_factory=dict)
    loads: list[I.Load] = field(default_factory=list)
    stores: list[I.Store] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Filled:
    """How a table is filled: element number i holds `start`, `offset` bytes and i times `size`. `made`: what makes a
    row, of which the rows take the place."""

    start: Value | None
    size: int
    offset: int = 0
    made: I.Call | None = None


class _Rows:
    """The tables of one function, and its rewriting in place."""

    def __init__(self, module: Module, root: Function) -> None:
        self._module = module
        self._root = root
        self._loops = Loops.of(root)
        self._layout = DataLayout(module)
        self._uses: Uses = uses(root)

    @cached_property
    def _facts(self) -> Recurrences:
        return Recurrences(self._root, self._loops, self._module)

    def run(self) -> bool:
        """Whether anything was changed."""
        if self._loops.irreducible:
            return False
        found: list[tuple[_Tables, dict[Value, _Filled]]] = []
        seen: set[Value] = set()
        for instruction in self._root.instructions():
            if instruction in seen or not _may_be_table(instruction):
                continue
            tables = self._tables(instruction)
            if tables is None:
                continue
            seen.update(tables.roots)
            filled = self._filled(tables)
            if filled is not None and tables.loads:
                found.append((tables, filled))
        for tables, filled in found:
            self._rewrite(tables, filled)
        return bool(found)

    # -- what is done with tables

    def _tables(self, first: Value) -> _Tables | None:
        """A table, and those that its pointers may lead to as well; None where anything else is done with them."""
        found, pointers = _Tables(), Reached([first])
        for pointer in pointers:
            found.pointers[pointer] = None
            match pointer:
                case I.GetElementPtr() if _offset(self._layout, pointer) is not None:
                    pointers.add(pointer.operands[:1])
                case I.Phi() | I.Select():
                    pointers.add(I.merged(pointer))
                case _ if _may_be_table(pointer):
                    found.roots.append(pointer)
                case _:
                    return None
            for user, index in self._uses.get(pointer, ()):
                if isinstance(user, I.Phi | I.Select) or (isinstance(user, I.GetElementPtr) and index == 0):
                    pointers.add([user])
                elif not _takes(user, index, found):
                    return None
        return found if all(s.operands[0] not in found.pointers for s in found.stores) else None

    # -- how they are filled

    def _filled(self, tables: _Tables) -> dict[Value, _Filled] | None:
        """How each of some tables is filled, all with rows of one size; None where that is not known, or one of them
        may be read before."""
        stores: dict[Value, list[I.Store]] = {root: [] for root in tables.roots}
        for store in tables.stores:
            root = I.base_of(store.operands[1])
            if root not in stores:
                return None
            stores[root].append(store)
        found: dict[Value, _Filled] = {}
        for root, own in stores.items():
            filled = (self._with_rows(root, own) or self._within_block(root, own)) if own else None
            if filled is None or not all(any(self._loops.precedes(s, load) for s in own) for load in tables.loads):
                return None
            start = filled.start
            inside = [p for p in tables.pointers if p not in stores and isinstance(p, I.Instruction)]
            if isinstance(start, I.Instruction) and not all(self._loops.precedes(start, p) for p in inside):
                return None
            found[root] = filled
        if len({f.size for f in found.values()}) != 1:
            return None
        made = [f.made for f in found.values() if f.made is not None]
        return found if not made or self._are_rows([*made, *tables.loads], tables) else None

    def _with_rows(self, root: Value, stores: list[I.Store]) -> _Filled | None:
        """A table that one loop fills with rows that it makes, each in a place of its own, once."""
        (store, *others), made = stores, stores[0].operands[0]
        if others or not isinstance(made, I.Call) or callee_name(made) not in _MAKERS:
            return None
        size, block = allocation_size(made), self._facts.block_of[made]
        loop = self._loops.loop_of[block]
        elements = self._elements(root)
        if size is None or loop is None or loop.parent is not None or elements is None:
            return None
        if elements > _ROOM * self._most(loop):
            return None
        if self._loops.loop_of[self._facts.block_of[store]] is not loop or not self._moves_on(store, root, loop):
            return None
        place = store.operands[1]
        index = place.operands[1:] if isinstance(place, I.GetElementPtr) and place.operands[0] is root else None
        if index is None or not all(self._is_there(v, made) for v in (root, *index)):
            return None
        if self._loops.loop_of[self._facts.block_of[root]] is not None:
            return None
        return _Filled(None, -(-size // _ALIGN) * _ALIGN, made=made)

    def _within_block(self, root: Value, stores: list[I.Store]) -> _Filled | None:
        """A table whose elements point into one block of memory, as far behind its start as it says."""
        starts = {I.base_of(store.operands[0]) for store in stores}
        start = starts.pop()
        # One that a loop makes anew may leave pointers into the one before.
        is_one = isinstance(start, I.Call) and self._loops.loop_of.get(self._facts.block_of[start]) is None
        if starts or start is root or not (is_one or isinstance(start, Argument | I.Alloca)):
            return None
        pairs: list[tuple[Polynomial, Polynomial]] = []
        for store in stores:
            value, place = self._behind(store.operands[0], start), self._behind(store.operands[1], root)
            if value is None or place is None:
                return None
            pairs.append((value, place))
        each = _each(pairs)
        offsets = {(value - place * Polynomial.constant(each)).value for value, place in pairs}
        offset = offsets.pop()
        return None if each <= 0 or offsets or offset is None else _Filled(start, each * _BYTES, offset)

    def _behind(self, pointer: Value, start: Value) -> Polynomial | None:
        try:
            return self._facts.form(pointer).polynomial - self._facts.form(start).polynomial
        except TooComplex:
            return None

    def _moves_on(self, store: I.Store, root: Value, loop: Loop) -> bool:
        """Does each iteration of a loop store to an element of its own?"""
        place = self._behind(store.operands[1], root)
        line = None if place is None else place.linear
        return line is not None and list(line) == [self._facts.iteration(loop)] and abs(*line.values()) == _BYTES

    def _most(self, loop: Loop) -> int:
        """How many iterations a loop has that is not left early, where that is known; else 0."""
        exact = full_count(self._facts, loop).exact
        return 0 if exact is None or exact.value is None else exact.value + 1

    def _elements(self, root: Value) -> int | None:
        match root:
            case I.Alloca(allocated_type=T.ArrayType() as kind) if int_value(root.operands[0]) == 1:
                return kind.count
            case I.CallBase():
                size = allocation_size(root)
                return None if size is None or size % _BYTES else size // _BYTES
            case _:
                return None

    def _is_there(self, value: Value, before: I.Instruction) -> bool:
        """Is a value known in front of an instruction?"""
        if not isinstance(value, I.Instruction):
            return True
        return self._loops.precedes(value, before)

    # -- what is done with rows

    def _are_rows(self, given: Iterable[I.Instruction], tables: _Tables) -> bool:
        """Are rows accessed, and freed, and held by their tables alone?"""
        rows = Reached[Value](given)
        joined: list[I.Instruction] = []
        for row in rows:
            for user, index in self._uses.get(row, ()):
                match user:
                    case I.Load() | I.GetElementPtr():
                        pass
                    case I.Store() if index == 1 or user in tables.stores:
                        pass
                    case I.Phi() | I.Select():
                        joined.append(user)
                        rows.add([user])
                    case I.Compare(operands=[_, ConstantNull()]):
                        pass
                    case I.Call() if callee_name(user) == "free" or callee_name(user).startswith("llvm."):
                        pass
                    case _:
                        return False
        return all(v in rows for i in joined for v in I.merged(i))

    # -- rewriting

    def _rewrite(self, tables: _Tables, filled: dict[Value, _Filled]) -> None:
        size = next(iter(filled.values())).size
        starts = {root: self._block(root, f) if f.start is None else self._there(f) for root, f in filled.items()}
        companion = self._companions(starts, size)
        replaced: dict[Value, Value] = {load: companion(load.operands[0]) for load in tables.loads}
        for store in tables.stores:
            made = filled[I.base_of(store.operands[1])].made
            if made is None:
                continue
            place = store.operands[1]
            assert isinstance(place, I.GetElementPtr)
            at = Builder.before(self._facts.block_of[made], made)
            replaced[made] = self._further(at, place, starts[place.operands[0]], size)
        made = [root for root, f in filled.items() if f.made is not None and isinstance(root, I.Instruction)]
        blocks = {root: starts[root] for root in made}
        if blocks:
            self._leave_to_blocks(replaced, blocks)
        carried = [
            i for i in self._root.instructions() if isinstance(i, I.Phi) and any(v in replaced for v in i.operands)
        ]
        substitute(self._root, replaced)
        self._by_number(carried)

    def _by_number(self, carried: list[I.Phi]) -> None:
        """Rows that a loop carries into the next iteration (optimisers save loads) follow from its number, in place."""
        facts = Recurrences.of(self._root, self._module)
        known: dict[Value, Value] = {}
        for phi in carried:
            loop = facts.loops.loop_of[facts.block_of[phi]]
            if loop is None or phi not in loop.header.instructions or loop.preheader is None or len(loop.latches) != 1:
                continue
            try:
                place = facts.form(phi).polynomial
            except TooComplex:
                continue
            starts = [a.value for a in place.atoms if isinstance(a, Leaf) and T.is_pointer(a.value.type)]
            number = facts.iteration(loop)
            if len(starts) != 1 or (place - Polynomial.atom(facts.leaf(starts[0]))).atoms != (number,):
                continue
            if isinstance(starts[0], I.Instruction) and not facts.dominators.dominates(
                facts.block_of[starts[0]], loop.preheader
            ):
                continue
            counter = count_iterations(loop, [loop.preheader])
            at = Builder.behind_phis(loop.header)
            further = emit(at, place - Polynomial.atom(facts.leaf(starts[0])), T.I64, lambda _, c=counter: c)
            known[phi] = at.gep(T.I8, starts[0], [further])
        substitute(self._root, known)

    def _there(self, filled: _Filled) -> Value:
        """Where the first element of a table points that points into a block."""
        start = filled.start
        assert start is not None
        if not filled.offset:
            return start
        if not isinstance(start, I.Instruction):
            return Builder.on_top(self._root).offset(start, filled.offset)
        return Builder.behind(self._facts.block_of[start], start).offset(start, filled.offset)

    def _block(self, root: Value, filled: _Filled) -> Value:
        """The memory of all rows of a table, made where the table is."""
        made = filled.made
        assert made is not None and isinstance(root, I.Instruction)
        at = Builder.behind(self._facts.block_of[root], root)
        callee = made.operands[-1]
        assert isinstance(callee, Function)
        total = (self._elements(root) or 0) * filled.size
        arguments = [const_int(a.type, 1) for a in made.arguments[1:]]
        memory = at.call(callee, [const_int(made.arguments[0].type, total), *arguments])
        if is_common(made):
            mark_common(memory)
        return memory

    def _companions(self, starts: dict[Value, Value], size: int) -> Callable[[Value], Value]:
        """What makes of the address of an element, in place, the row that it holds."""
        made = dict(starts)

        def companion(pointer: Value) -> Value:
            if pointer in made:
                return made[pointer]
            assert isinstance(pointer, I.Instruction)
            block = self._facts.block_of[pointer]
            match pointer:
                case I.Phi():
                    phi = I.Phi(T.PTR, "phi", [], targets=[])
                    made[pointer] = phi
                    phi.incoming = [(companion(v), b) for v, b in pointer.incoming]
                    block.instructions.insert(0, phi)
                case I.Select():
                    then, other = (companion(v) for v in pointer.operands[1:])
                    at = Builder.behind(block, pointer)
                    made[pointer] = at.select(pointer.operands[0], then, other)
                case _:
                    assert isinstance(pointer, I.GetElementPtr)
                    start = companion(pointer.operands[0])
                    at = Builder.behind(block, pointer)
                    made[pointer] = self._further(at, pointer, start, size)
            return made[pointer]

        return companion

    def _further(self, at: Builder, place: I.GetElementPtr, start: Value, size: int) -> Value:
        offset = _offset(self._layout, place)
        assert offset is not None
        index, each = offset
        return at.gep(T.I8, start, [at.binary("mul", index, const_int(T.I64, each * (size // _BYTES)), ("nsw",))])

    def _leave_to_blocks(self, replaced: dict[Value, Value], blocks: dict[I.Instruction, Value]) -> None:
        """Rows are not freed, nor is one of them missing, but all together."""
        free: Value | None = None
        for block in self._root.blocks:
            for instruction in block.instructions.copy():
                if not any(v in replaced for v in self._sources(instruction)):
                    continue
                if isinstance(instruction, I.Compare):
                    at = Builder.before(block, instruction)
                    made = [b for root, b in blocks.items() if self._loops.precedes(root, instruction)]
                    missing = [at.icmp("eq", memory, zero(T.PTR)) for memory in made]
                    found = reduce(lambda one, other: at.binary("or", one, other), missing)
                    is_equal = instruction.predicate == "eq"
                    replaced[instruction] = found if is_equal else at.binary("xor", found, const_int(T.I1, 1))
                elif callee_name(instruction) == "free":
                    free = instruction.operands[-1]
                    block.instructions.remove(instruction)
        if free is not None:
            for root, memory in blocks.items():
                self._free_at_end(free, self._facts.block_of[root], memory)

    def _free_at_end(self, free: Value, home: BasicBlock, memory: Value) -> None:
        """A block is freed where the function returns, if that comes by where it is made."""
        ends = [b for b in self._root.blocks if isinstance(b.terminator, I.Return)]
        if all(self._loops.dominators.dominates(home, b) for b in ends):
            for block in ends:
                Builder.at_end(block).call(free, [memory])
            return
        place = local(self._root, T.PTR, _BYTES)
        Builder(self._root.entry, 1).store(zero(T.PTR), place, _BYTES)
        index = next(n for n, i in enumerate(home.instructions) if i is memory)
        Builder(home, index + 1).store(memory, place, _BYTES)
        for block in ends:
            at = Builder.at_end(block)
            at.call(free, [at.load(T.PTR, place, _BYTES)])

    @staticmethod
    def _sources(instruction: I.Instruction) -> list[Value]:
        """What a pointer that is compared or freed may be."""
        if not isinstance(instruction, I.Call | I.Compare):
            return []
        given = [v for v in instruction.operands if T.is_pointer(v.type) and not isinstance(v, Function)]
        return list(reached(given, I.merged))


def _may_be_table(value: Value) -> bool:
    if isinstance(value, I.Alloca):
        kind = value.allocated_type
        return isinstance(kind, T.ArrayType) and T.is_pointer(kind.element)
    return isinstance(value, I.Call) and callee_name(value) == "malloc"


def _takes(user: I.Instruction, index: int, tables: _Tables) -> bool:
    """Is what uses the address of an element one of those that tables may have? It is noted there."""
    match user:
        case I.Load() if T.is_pointer(user.type) and I.is_plain(user):
            tables.loads.append(user)
        case I.Store() if index == 1 and T.is_pointer(user.operands[0].type) and I.is_plain(user):
            tables.stores.append(user)
        case I.Call():
            return callee_name(user) == "free" or callee_name(user).startswith("llvm.lifetime.")
        case _:
            return False
    return True


def _offset(layout: DataLayout, address: I.GetElementPtr) -> tuple[Value, int] | None:
    """How far behind its start an address lies: a number, and how many bytes that counts."""
    *front, last = address.operands[1:]
    kind = address.source_type
    if last.type != T.I64 or any(int_value(v) != 0 for v in front) or len(front) > 1:
        return None
    if front:
        return (last, layout.alloc_size(kind.element)) if isinstance(kind, T.ArrayType) else None
    return last, layout.alloc_size(kind)


def _each(pairs: list[tuple[Polynomial, Polynomial]]) -> int:
    """How many times further than places values go on, or 0; both are distances."""
    for value, place in pairs:
        for atom, step in (place.linear or {}).items():
            further = (value.linear or {}).get(atom, 0)
            return 0 if further % step else further // step
    further, step = ((last - first).value for first, last in zip(pairs[0], pairs[-1], strict=True))
    return further // step if step and further and further % step == 0 else 0
