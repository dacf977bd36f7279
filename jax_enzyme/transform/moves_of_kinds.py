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

from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import Objects
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.marks import LOOP, REVERSED, unmark
from jax_enzyme.ir.module import Function, uses
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import Argument, BasicBlock, Poison, Undef, Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.kinds import of_table
from jax_enzyme.transform.rewriting import locate, replace_values

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

    def move(self) -> None:
        for web in self._found():
            self._move(web)
        if not self._slots:
            return
        for block in self._function.blocks:  # iterations share the places
            unmark(self._moves.declarations.module, block.terminator)
            kept = [(kind, node) for kind, node in block.terminator.metadata if kind not in (LOOP, REVERSED)]
            block.terminator.metadata = kept

    def _found(self) -> list[list[Value]]:
        """Words that are merged with each other, where one is of such memory, or becomes a part of it."""
        beside: dict[Value, list[Value]] = {}
        begin = dict.fromkeys(s.operands[0] for s in self._stores())
        begin |= dict.fromkeys(i for i in self._homes if i in self._loads and (self._takers(i) or self._merges(i)))
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
            return stored or any(map(self._takers, web))
        if any(self._is_unknown(word) for word in web):
            return False
        stored = any(self._stored(word) for word in web)
        held = any(word in self._loads or _numbers_in(word) for word in web)
        return held and (stored or any(map(self._takers, web)))

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

    def _takers(self, word: Value) -> list[tuple[I.Instruction, T.Type, int]]:
        """Numbers that are taken out of a word, and their halves as integers: each with its type, and where it is."""
        found: list[tuple[I.Instruction, T.Type, int]] = []
        pending: list[tuple[Value, int]] = [(word, 0)]
        for value, at in pending:
            for user, _ in self._users.get(value, ()):
                match user:
                    case I.Cast(opcode="bitcast") if value is word and user.type == T.I64:
                        pending.append((user, 0))
                    case I.Cast(opcode="bitcast", type=T.FloatType()):
                        found.append((user, user.type, at))
                    case I.Cast(opcode="trunc") if user.type == T.I32:
                        pending.append((user, at))
                        if any(u.opcode != "bitcast" for u, _ in self._users.get(user, ())):
                            found.append((user, T.I32, at))
                    case I.BinaryOp(opcode="lshr", operands=[_, by]) if int_value(by) == 32 and value.type == T.I64:
                        pending.append((user, 4))
                    case _:
                        pass
        return found

    def _move(self, web: list[Value]) -> None:
        in_registers = not self._pointers.isdisjoint([*web, *(s for w in web for s in self._stored(w))])
        move = _Move(self._moves, self._function, self._homes, self._loads, self._entry, in_registers)
        for word in web:
            self._slots[word] = move.slots[word] = move.made(word)
        for word in web:
            move.place(word)
        for word in web:
            for store in self._stored(word):
                move.store(store, word)
            if not in_registers:
                takers = self._takers(word)
                taken: dict[Value, Value] = {user: move.take(user, type_, word, at) for user, type_, at in takers}
                replace_values(self._function, taken)
        if not in_registers:
            self._drop_unused(web)

    def _parts(self, value: Value) -> list[Value]:
        """What may be on the way from a word to what is taken out of it, and that."""
        users = [user for user, _ in self._users.get(value, ())]
        casts = [u for u in users if u.opcode == "bitcast" and (T.is_int(value.type) or u.type == T.I64)]
        return [*casts, *(u for u in users if u.opcode in ("trunc", "lshr"))]

    def _drop_unused(self, web: list[Value]) -> None:
        """Words that nothing else needs, phis that only need each other among them, and parts that were taken."""
        words = dict.fromkeys(word for word in web if word in self._loads or _is_merged(word))
        users = uses(self._function)
        parts = reached(web, self._parts)
        gone = set[Value]()
        for part in reversed(list(parts)):
            if part in self._homes and part not in words and all(user in gone for user, _ in users.get(part, ())):
                gone.add(part)
        needed = [w for w in words if any(u not in words and u not in gone for u, _ in users.get(w, ()))]
        kept = reached(needed, I.merged)
        for value in (*gone, *(w for w in words if w not in kept)):
            assert isinstance(value, I.Instruction)
            self._homes[value].instructions.remove(value)


@dataclass(frozen=True, eq=False)
class _Move:
    """Emits what moves the words of one web."""

    moves: Moves
    function: Function
    homes: Mapping[Value, BasicBlock]
    loads: Set[Value]
    entry: Builder
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

    def take(self, user: I.Instruction, type_: T.Type, word: Value, offset: int) -> Value:
        at = Builder.before(self.homes[user], user)
        first = at.place
        found = at.load(type_, at.offset(self.slots[word], offset) if offset else self.slots[word], 4)
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
        if self.in_registers:
            size = const_int(T.I64, _BYTES[word.type])
            kind = next(
                (n.type.size for n, at_ in _numbers_in(word) if at_ == 0 and isinstance(n.type, T.FloatType)), 1
            )
            of_table(self.moves.declarations, at, "put", slot, size, const_int(T.I32, kind))
            return
        numbers, first = _numbers_in(word), at.place
        for number, offset in numbers:
            at.store(number, at.offset(slot, offset) if offset else slot, 4)
        if not numbers:
            at.store(word, slot, 4)
        elif len(numbers) == 1 and numbers[0][0].type != T.DOUBLE and word.type == T.I64:
            self._put_half(at, word, slot, 4 - numbers[0][1])
        if isinstance(word, I.Instruction):
            locate(word, at.block.instructions[first : at.place])

    def _put_half(self, at: Builder, word: Value, slot: Value, offset: int) -> None:
        """The half of a word beside a number, which is an integer, or nothing."""
        half: Value = zero(T.I32)
        if isinstance(word, I.BinaryOp) and word.opcode == "or":
            other = next(v for v in word.operands if not _numbers_in(v))
            shifted = at.binary("lshr", other, const_int(T.I64, 32)) if offset else other
            half = at.cast("trunc", shifted, T.I32)
        at.store(half, at.offset(slot, offset) if offset else slot, 4)

    def _behind(self, word: Value) -> Builder:
        if not isinstance(word, I.Instruction):
            return Builder.behind_variables(self.function)
        return Builder.behind(self.homes[word], word)


def _is_merged(word: Value) -> bool:
    return isinstance(word, I.Phi | I.Select | I.Freeze)


def _numbers_in(word: Value, at: int = 0) -> list[tuple[Value, int]]:
    """The numbers that a word is built of, and where they are in it."""
    match word:
        case I.Cast(opcode="bitcast", operands=[number]) if isinstance(number.type, T.FloatType):
            return [(number, at)] if number.type in (T.FLOAT, T.DOUBLE) else []
        case I.Cast(opcode="zext", operands=[half]) if half.type == T.I32:
            return _numbers_in(half, at)
        case I.BinaryOp(opcode="shl", operands=[low, by]) if int_value(by) == 32 and at == 0:
            return _numbers_in(low, 4) if isinstance(low, I.Cast) and low.opcode == "zext" else []
        case I.BinaryOp(opcode="or", operands=[one, other]):
            return [*_numbers_in(one, at), *_numbers_in(other, at)]
        case _:
            return []


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
