"""Words of memory in which numbers of several sizes may lie are moved in memory, as what lies there.

    before    %w = load i64, ptr %p              after     call void @llvm.memcpy(ptr %slot, ptr %p, i64 8)
              store i64 %w, ptr %q                         call void @llvm.memcpy(ptr %q, ptr %slot, i64 8)

    merged    %w = phi i64 [ %a, %one ], ...     in %one   call void @llvm.memcpy(ptr %next, ptr %slot.a, i64 8)
                                                 then      call void @llvm.memcpy(ptr %slot.w, ptr %next, i64 8)

    built     %w = bitcast double %d to i64                store double %d, ptr %slot
              %v = zext i32 (bitcast float %f) to i64      store float %f, ptr %slot; store i32 0, ptr (%slot + 4)
    taken     %d = bitcast i64 %w to double                %d = load double, ptr %slot
              %f = bitcast i32 (trunc i64 %w) to float     %f = load float, ptr %slot

What is loaded as a double, and only stored, or taken apart, may be anything too: so LLVM moves eight bytes.
So an adjoint goes back as that of a double, or as those of two floats, as copies of memory have them
(`ad.emit.kinds`). Where a word may be a pointer it stays in its register, and only what is known of it is moved so.
Vectors of numbers are accessed number by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from jax_enzyme.analysis.lanes import Lanes, run
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.marks import LOOP, REVERSED, unmark
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Poison, Undef, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.kinds import of_table
from jax_enzyme.transform.parts import Parts
from jax_enzyme.transform.rewriting import locate, remove_dead, replace_values

_BYTES: Mapping[T.Type, int] = {T.I32: 4, T.I64: 8, T.FLOAT: 4, T.DOUBLE: 8}


@dataclass(frozen=True, eq=False)
class Moves:
    """In functions of a module, in place. `stored` are words in registers, of which what their memory holds is told;
    `places` is where words are kept."""

    points_to: PointsTo
    mixed: Objects
    declarations: Declarations
    twins: Mapping[Value, Value]
    stored: set[Value] = field(default_factory=set)
    places: set[Value] = field(default_factory=set)

    def rewrite(self, code: Function) -> None:
        loads, pointers, targets = set[Value](), set[Value](), set[Value]()
        vectors: list[I.Load | I.Store] = []
        for access in code.instructions():
            if not isinstance(access, I.Load | I.Store) or not I.is_plain(access) or not self._is_of_mixed(access):
                continue
            twin, type_ = self.twins[access], I.accessed_value(access).type
            if isinstance(type_, T.VectorType) and isinstance(type_.element, T.FloatType):
                assert isinstance(twin, I.Load | I.Store)
                vectors.append(twin)
            elif type_ in _BYTES:
                (loads if isinstance(access, I.Load) else targets).add(twin)
                if self.points_to.of(I.accessed_value(access)):
                    pointers.add(twin)
        function = self.twins[code]
        assert isinstance(function, Function)
        for access in vectors:
            _split(function, access)
        if loads or targets:
            _Webs(self, function, loads, targets, pointers).move()

    def _is_of_mixed(self, access: I.Load | I.Store) -> bool:
        return not self.mixed.isdisjoint(self.points_to.of(access.operands[-1]))


class _Webs:
    """The words of a function that come together, each with a place in memory: those that are stored, and those of
    which numbers are taken. `loads` and `targets` are of such memory."""

    def __init__(
        self, moves: Moves, function: Function, loads: Set[Value], targets: Set[Value], pointers: Set[Value]
    ) -> None:
        self._moves, self._function = moves, function
        self._loads, self._targets, self._pointers = loads, targets, pointers
        self._users = uses(function)
        self._homes: dict[Value, BasicBlock] = {i: block for block in function.blocks for i in block.instructions}
        self._entry = Builder(function.entry, 0)
        self._slots: dict[Value, Value] = {}
        self._parts = Parts(function, lanes := Lanes(across=True), lambda _: False)
        self._lanes = lanes
        self._takers: dict[Value, list[tuple[I.Instruction, int]]] = {}
        for user in function.instructions():
            first = run(lanes.of(user)) if lanes.is_move(user) and self._is_taken(user) else None
            if first is not None and first[0].type != user.type:
                self._takers.setdefault(first[0], []).append((user, first[1]))

    def move(self) -> None:
        for web in self._found():
            self._move(web)
        if not self._slots:
            return
        self._parts.insert()
        remove_dead(self._function)
        for block in self._function.blocks:  # iterations share the places
            unmark(self._moves.declarations.module, block.terminator)
            kept = [(kind, node) for kind, node in block.terminator.metadata if kind not in (LOOP, REVERSED)]
            block.terminator.metadata = kept

    def _found(self) -> list[list[Value]]:
        """Words that are merged with each other, where one is of such memory, or becomes a part of it."""
        beside: dict[Value, list[Value]] = {}
        begin = dict.fromkeys(s.operands[0] for s in self._stores())
        begin |= dict.fromkeys(i for i in self._homes if i in self._loads and (i in self._takers or self._merges(i)))
        pending = list(begin)
        for word in pending:
            beside.setdefault(word, [])
            onward = [*self._merges(word), *(v for v in I.merged(word) if not isinstance(v, Undef | Poison))]
            for other in onward:
                if other not in beside:
                    pending.append(other)
                    beside[other] = []
                beside[word].append(other)
                beside[other].append(word)
        webs: list[list[Value]] = []
        done = set[Value]()
        for word in begin:
            if word not in done:
                web = list(reached([word], lambda w: beside[w]))
                done.update(web)
                if self._is_moved(web):
                    webs.append(web)
        return webs

    def _is_moved(self, web: list[Value]) -> bool:
        if T.is_float(web[0].type):  # what is only moved may be anything
            stored = any(map(self._stored, web)) and any(w in self._loads and self._only_moves(w) for w in web)
            return stored or any(word in self._takers for word in web)
        if any(self._is_unknown(word) for word in web):
            return False
        stored = any(self._stored(word) for word in web)
        held = any(word in self._loads or _numbers_in(word, self._lanes) for word in web)
        return held and (stored or any(word in self._takers for word in web))

    def _only_moves(self, load: Value) -> bool:
        return all(isinstance(user, I.Store) or _is_merged(user) for user, _ in self._users.get(load, ()))

    def _is_unknown(self, word: Value) -> bool:
        """Whether nobody tells what a word holds."""
        return isinstance(word, Argument) or (isinstance(word, I.Load) and word not in self._loads)

    def _stores(self) -> list[I.Store]:
        return [i for i in self._homes if isinstance(i, I.Store) and i in self._targets]

    def _stored(self, word: Value) -> list[I.Store]:
        found = (user for user, index in self._users.get(word, ()) if index == 0 and user in self._targets)
        return [user for user in found if isinstance(user, I.Store)]

    def _merges(self, word: Value) -> list[Value]:
        """What a word is merged into."""
        users = self._users.get(word, ())
        return [u for u, n in users if isinstance(u, I.Phi | I.Freeze) or (isinstance(u, I.Select) and n > 0)]

    def _is_taken(self, part: I.Instruction) -> bool:
        """Whether a part of a word may be a number, or is half of one as an integer."""
        is_half = part.opcode == "trunc" and part.type == T.I32
        used = self._users.get(part, ()) if is_half else ()
        return isinstance(part.type, T.FloatType) or any(user.opcode != "bitcast" for user, _ in used)

    def _move(self, web: list[Value]) -> None:
        in_registers = not self._pointers.isdisjoint([*web, *(s for w in web for s in self._stored(w))])
        move = _Move(
            self._moves, self._function, self._homes, self._loads, self._entry, self._lanes, self._parts, in_registers
        )
        for word in web:
            self._slots[word] = move.slots[word] = move.made(word)
        for word in web:
            move.place(word)
        for word in web:
            for store in self._stored(word):
                move.store(store, word)
            if not in_registers:
                taken: dict[Value, Value] = {u: move.take(u, word, at) for u, at in self._takers.get(word, ())}
                replace_values(self._function, taken)


@dataclass(frozen=True, eq=False)
class _Move:
    """Emits what moves the words of one web."""

    moves: Moves
    function: Function
    homes: Mapping[Value, BasicBlock]
    loads: Set[Value]
    entry: Builder
    lanes: Lanes
    parts: Parts
    in_registers: bool
    slots: dict[Value, Value] = field(default_factory=dict)

    def made(self, word: Value) -> Value:
        slot = self.entry.alloca(word.type)
        self.moves.places.add(slot)
        return slot

    def place(self, word: Value) -> None:
        """What puts a word where it is kept."""
        slot = self.slots[word]
        match word:
            case I.Load() if word in self.loads:
                self._copy(self._behind(word), word, slot, word.operands[0])
            case I.Phi():
                before = self.made(word)
                for value, block in word.incoming:
                    if value in self.slots:
                        self._copy(Builder.before(block, block.terminator), word, before, self.slots[value])
                self._copy(Builder.behind_phis(self.homes[word]), word, slot, before)
            case I.Select(operands=[condition, then, other]):
                at = self._behind(word)
                chosen = at.select(condition, self.slots.get(then, slot), self.slots.get(other, slot))
                self._copy(at, word, slot, chosen)
            case I.Freeze(operands=[value]) if value in self.slots:
                self._copy(self._behind(word), word, slot, self.slots[value])
            case I.Freeze():
                pass
            case _:
                self._put(self._behind(word), word, slot)

    def store(self, store: I.Store, word: Value) -> None:
        at = Builder.before(self.homes[store], store)
        self._copy(at, store, store.operands[1], self.slots[word])
        if self.in_registers:
            self.moves.stored.add(store)
        else:
            at.block.instructions.remove(store)

    def take(self, user: I.Instruction, word: Value, offset: int) -> Value:
        at = Builder.before(self.homes[user], user)
        first = at.place
        found = at.load(user.type, at.offset(self.slots[word], offset) if offset else self.slots[word], 4)
        locate(user, at.block.instructions[first : at.place])
        return found

    def _copy(self, at: Builder, for_: I.Instruction, to: Value, source: Value) -> None:
        word = for_.operands[0] if isinstance(for_, I.Store) else for_
        first, size = at.place, const_int(T.I64, _BYTES[word.type])
        if self.in_registers:
            of_table(self.moves.declarations, at, "copy", to, source, size)
        else:
            self.moves.declarations.memory(at, "memcpy", to, source, size)
        locate(for_, at.block.instructions[first : at.place])

    def _put(self, at: Builder, word: Value, slot: Value) -> None:
        """A word that is computed, or built of numbers."""
        numbers = _numbers_in(word, self.lanes)
        if self.in_registers:
            size = const_int(T.I64, _BYTES[word.type])
            kind = next((_BYTES[n.type] for n, offset in numbers if offset == 0), 1)
            of_table(self.moves.declarations, at, "put", slot, size, const_int(T.I32, kind))
            return
        if len(numbers) == 1 and _BYTES[word.type] > _BYTES[numbers[0][0].type]:  # an integer beside it, or nothing
            offset = 4 - numbers[0][1]
            numbers.append((self.parts.part(word, offset, T.I32), offset))
        first = at.place
        for number, offset in numbers or [(word, 0)]:
            at.store(number, at.offset(slot, offset) if offset else slot, 4)
        if isinstance(word, I.Instruction):
            locate(word, at.block.instructions[first : at.place])

    def _behind(self, word: Value) -> Builder:
        if not isinstance(word, I.Instruction):
            return Builder.behind_variables(self.function)
        return Builder.behind(self.homes[word], word)


def _is_merged(word: Value) -> bool:
    return isinstance(word, I.Phi | I.Select | I.Freeze)


def _numbers_in(word: Value, lanes: Lanes) -> list[tuple[Value, int]]:
    """The numbers that a word is built of, and where they are in it."""
    return [
        (number, at)
        for at, number in lanes.numbers(word)
        if number.type in (T.FLOAT, T.DOUBLE) and at % 4 == 0 and at + _BYTES[number.type] <= _BYTES[word.type]
        if number is not word
    ]


def _split(function: Function, access: I.Load | I.Store) -> None:
    """Accesses a vector number by number."""
    type_ = I.accessed_value(access).type
    assert isinstance(type_, T.VectorType) and isinstance(type_.element, T.FloatType)
    block = next(b for b in function.blocks if access in b.instructions)
    at = Builder.before(block, access)
    first, pointer, size = at.place, access.operands[-1], type_.element.size
    whole: Value = Poison(type_)
    for lane in range(type_.count):
        place = at.offset(pointer, size * lane) if lane else pointer
        if isinstance(access, I.Load):
            whole = at.insert_element(whole, at.load(type_.element, place, size), lane)
        else:
            at.store(at.extract_element(access.operands[0], lane), place, size)
    locate(access, block.instructions[first : at.place])
    block.instructions.remove(access)
    if isinstance(access, I.Load):
        replace_values(function, {access: whole})
