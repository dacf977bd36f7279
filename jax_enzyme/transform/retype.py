"""Integers that carry the bits of floating-point numbers or pointers become those.

    before    %bits = load i64, ptr %a                      after    %bits = load double, ptr %a
              store i64 %bits, ptr %b                                store double %bits, ptr %b

              %bits = load i64, ptr %p                      after    %bits = load double, ptr %p
              %sign = and i64 %bits, 9223372036854775807             %sign = call double @llvm.fabs.f64(double %bits)
              %x = bitcast i64 %sign to double

A *web* is a set of integer values that are copies of each other, through phis, selects, stores and the bit operations
that are known (fabs, copysign, change of sign). It is retyped as a whole. That it holds numbers is *known* from
bitcasts, from the source's own types (TBAA) or from the signature's buffers; then whatever else uses the bits gets them
by a bitcast, and a derivative through that is refused. Where it is only *likely*, since numbers of one kind may lie at
that place in memory (`analysis.words`), the web must have no other use: then an integer that is copied as a number is
the same integer after. Pointers that are copied as integers are told by casts, by the source's types, and where nothing
but pointers lies at the place.

Vectors and words that hold several numbers, or other things besides, are taken apart before (`lanes`). What becomes a
number here is known of its memory from then on, so this is repeated until nothing changes. Each time some loads, stores
or bit operations of integers become such of numbers, for good, or are split into shorter ones: that comes to an end.
"""

from __future__ import annotations

from functools import reduce

from jax_enzyme.analysis.lanes import size
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject
from jax_enzyme.analysis.tbaa import accessed_type
from jax_enzyme.analysis.words import DTYPES, Words
from jax_enzyme.classes import dataclass, field
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction, of_module
from jax_enzyme.ir.builder import Builder, const_float, zero
from jax_enzyme.ir.clone import clone, twin_of
from jax_enzyme.ir.module import Function, Module, Uses, take_apart, uses
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import Argument, BasicBlock, Constant, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.bit_extremes import choose_extremes
from jax_enzyme.transform.bit_operations import as_number, bit_operation, parts_of_signs
from jax_enzyme.transform.half_words import name_conversions
from jax_enzyme.transform.lanes import split_mixed_loads, split_words
from jax_enzyme.transform.lines_of_bits import name_lines
from jax_enzyme.transform.moved_words import may_be_read_apart, read_apart
from jax_enzyme.transform.number_fields import name_numbers
from jax_enzyme.transform.rewriting import forget_records, phis, place, remove_dead, replace_operands, substitute


def retype(function: ArrayFunction) -> ArrayFunction:
    """The array function with such webs retyped in a copy of the module; itself where there are none."""
    function = of_module(split_mixed_loads)(function)
    if not (_has_words(function.module) or may_be_read_apart(function.module)):
        return function
    result = ArrayFunction(clone(function.module), function.symbol, function.buffers)
    functions = list(result.module.functions.values())
    changed = name_conversions(functions) | choose_extremes(functions)
    is_apart = False
    while True:
        words = _words(result)
        if split_words(result.module, words.points_to.functions, words):
            changed = True
            words = _words(result)
        webs = _Retyping(result, words).webs
        if not webs:
            if is_apart or not read_apart(result.module, words):
                break
            is_apart = True
        changed = True
        for target in words.points_to.functions:
            _Rewriting(target, [w for w in webs if w[0].function is target], Declarations(result.module)).run()
    declarations = Declarations(result.module)
    for naming in (name_numbers, name_lines):
        changed |= any([naming(f, declarations) for f in list(result.module.functions.values())])
    if not changed:
        take_apart(result.module)
        return function
    return result


def _has_words(module: Module) -> bool:
    return any(_starts(i) or _is_between(i) for f in module.functions.values() for i in f.instructions())


def _is_between(instruction: I.Instruction) -> bool:
    """Whether it takes a number for an integer, or the other way round."""
    return instruction.opcode == "bitcast" and T.is_float(instruction.type) != T.is_float(instruction.operands[0].type)


def _words(function: ArrayFunction) -> Words:
    root = function.module.functions[function.symbol]
    return Words(PointsTo(function.module, root), dict(zip(root.arguments, function.buffers, strict=True)))


@dataclass(eq=False)
class _Web:
    """`members` are integer values, `stores` put one of them into memory. `known` is what certainly is in it.
    `cut` says that a number in memory is met at another place than its start, or has other things beside it."""

    function: Function
    members: dict[I.Instruction, None] = field(default_factory=dict)
    stores: dict[I.Store, None] = field(default_factory=dict)
    known: set[T.Type] = field(default_factory=set)
    likely: set[T.Type] = field(default_factory=set)
    closed: bool = True
    possible: bool = True
    cut: bool = False


class _Retyping:
    """Finds the webs of a module, and what each is to become."""

    def __init__(self, function: ArrayFunction, words: Words) -> None:
        self._module = function.module
        self._layout = DataLayout(self._module)
        root = self._module.functions[function.symbol]
        self._words = words
        self._points_to = words.points_to
        self._declared: dict[MemoryObject, T.Type | None] = {
            self._points_to.objects[a]: DTYPES.get(b.dtype)
            for a, b in zip(root.arguments, function.buffers, strict=True)
            if a in self._points_to.objects
        }
        self._inner: dict[Value, list[I.Instruction]] = {}
        self.webs: list[tuple[_Web, T.Type]] = []
        for target in self._points_to.functions:
            self._find(target)

    # -- finding webs

    def _find(self, function: Function) -> None:
        if not any(_starts(i) for i in function.instructions()):
            return
        users = uses(function)
        self._inner = {}
        for user in function.instructions():
            if bit_operation(user) is not None:
                for part in [part for operand in user.operands for part in parts_of_signs(operand)]:
                    self._inner.setdefault(part, []).append(user)
        seen: set[Value] = set()
        for instruction in function.instructions():
            if _starts(instruction) and instruction not in seen:
                web = self._grow(function, instruction, users)
                seen.update(web.members)
                seen.update(web.stores)
                type_ = self._type(web)
                if type_ is not None:
                    self.webs.append((web, type_))

    def _grow(self, function: Function, start: I.Instruction, users: Uses) -> _Web:
        web, found = _Web(function), Reached([start])
        for value in found:
            if isinstance(value, I.Store):
                web.stores[value] = None
                self._note_access(web, value, value.operands[1], value.operands[0].type)
                found.add(self._origins(web, [value.operands[0]]))
                continue
            web.members[value] = None
            match value:
                case I.Load():
                    self._note_access(web, value, value.operands[0], value.type)
                case I.Cast():
                    web.known.add(T.scalar(value.operands[0].type))
                case I.Phi() | I.Freeze() | I.Select():
                    found.add(self._origins(web, I.merged(value)))
                case _:
                    found.add(self._origins(web, _carried(value)))
            for user, index in users.get(value, ()):
                found.add(self._use(web, value, user, index))
        return web

    def _origins(self, web: _Web, values: list[Value]) -> list[I.Instruction]:
        """Operands that are copies themselves; constants will do; anything else is no copy of a number."""
        found: list[I.Instruction] = []
        for value in values:
            if isinstance(value, I.Instruction) and _is_member(value):
                found.append(value)
            elif not isinstance(value, Constant):
                web.closed = False
        return found

    def _use(self, web: _Web, value: I.Instruction, user: I.Instruction, index: int) -> list[I.Instruction]:
        match user:
            case I.Store() if index == 0:
                return [user]
            case I.Cast(opcode="bitcast") if T.is_float(user.type):
                web.known.add(T.scalar(user.type))
            case I.Cast(opcode="inttoptr"):
                web.known.add(T.PTR)
            case I.Compare():
                pass
            case I.Phi() | I.Freeze() | I.Select():
                return [user]
            case I.BinaryOp() if user in self._inner:
                return list(self._inner[user])
            case I.BinaryOp() if value in _carried(user):
                return [user]
            case _:
                web.closed = False
        return []

    def _note_access(self, web: _Web, access: I.Load | I.Store, pointer: Value, type_: T.Type) -> None:
        if not I.is_plain(access):
            web.possible = False
        objects = self._points_to.of(pointer)
        declared = {self._declared.get(o) for o in objects}
        size = self._layout.store_size(type_)
        pointers = self._words.pointers(pointer, size)
        if objects and len(declared) == 1 and isinstance(kind := declared.pop(), T.FloatType) and not pointers:
            web.known.add(kind)
            return
        named = accessed_type(self._module, access)
        if named is not None:
            web.known.add(named)
            return
        numbers = self._words.numbers(pointer, size, access)
        held = (numbers or frozenset()) | (pointers or frozenset())
        for offset, kind in held:
            web.likely.add(kind)
            web.cut |= offset % self._layout.store_size(kind) != 0
        web.cut |= bool(held) and sum(self._layout.store_size(kind) for _, kind in held) < size
        if not isinstance(access, I.Store) and self._points_to.of(access):
            web.likely.add(T.PTR)

    def _type(self, web: _Web) -> T.Type | None:
        """What a web is retyped to, or None."""
        if not web.possible:
            return None
        if not web.known and not any(isinstance(m, I.Load) for m in web.members):
            return None
        sure = bool(web.known)
        # A number that is somewhere called an integer is one whose bits are looked at.
        kinds = {k for k in web.known if k != T.I1} or web.known or web.likely
        if len(kinds) != 1 or not (sure or (web.closed and not web.cut)):
            return None
        (kind,) = kinds
        sizes = {self._layout.store_size(m.type) for m in web.members}
        sizes |= {self._layout.store_size(s.operands[0].type) for s in web.stores}
        computes = any(isinstance(m, I.BinaryOp) for m in web.members)
        if kind == T.PTR and any(map(T.is_float, web.likely)):
            return None  # a number may come in where an address does: such a word is both
        if kind == T.PTR and sure and not computes and sizes == {8}:
            scalars = all(not isinstance(m.type, T.VectorType) for m in web.members)
            return T.PTR if scalars else None
        if not isinstance(kind, T.FloatType) or not size(kind) or len(sizes) != 1:
            return None
        count, rest = divmod(sizes.pop(), kind.size)
        if rest or count == 0:
            return None
        if computes and any(T.scalar(m.type) != T.IntType(8 * kind.size) for m in web.members):
            return None
        return kind if count == 1 else T.VectorType(count, kind)


class _Rewriting:
    """Gives the webs of one function their types, all in one go: there may be as many as it has lines."""

    def __init__(self, function: Function, webs: list[tuple[_Web, T.Type]], declarations: Declarations) -> None:
        self._function = function
        self._declarations = declarations
        self._types: dict[I.Instruction, T.Type] = {m: t for web, t in webs for m in (*web.members, *web.stores)}
        self._twins: dict[Value, Value] = {}
        self._made: dict[I.Instruction, list[I.Instruction]] = {}
        self._ahead: dict[I.Instruction, list[I.Instruction]] = {}

    def run(self) -> None:
        function = self._function
        if not self._types:
            return
        found = [(b, i) for b in function.blocks for i in b.instructions if i in self._types]
        for _, member in found:
            if not isinstance(member, I.Store):
                self._make_twin(member)
        for _, member in found:
            self._exchange(member)
        for block in function.blocks:
            block.instructions = [
                new for old in block.instructions for new in (*self._ahead.get(old, ()), *self._made.get(old, (old,)))
            ]
        self._give_bits()
        forget_records(function, set(self._twins))
        remove_dead(function)

    def _make_twin(self, member: I.Instruction) -> None:
        """What takes a member's place, with the member's operands for now."""
        built, type_ = Builder(BasicBlock()), self._types[member]
        twin: Value
        match member:
            case I.Cast():
                twin = member.operands[0]
                if twin.type != type_:
                    twin = built.cast("bitcast", twin, type_)
            case I.BinaryOp():
                twin = self._operation(built, member, type_)
            case _:
                twin = built.insert(twin_of(member))
                twin.type, twin.operands = type_, list(member.operands)
                twin.metadata = [(kind, node) for kind, node in member.metadata if kind != "range"]
        self._twins[member] = twin
        self._made[member] = built.block.instructions
        if not isinstance(member, I.Load | I.Phi | I.Select | I.Freeze):
            place(member, built.block.instructions)

    def _operation(self, built: Builder, member: I.Instruction, type_: T.Type) -> Value:
        made = bit_operation(member)
        assert made is not None
        name, operands = made
        given: dict[Value, Value] = {Argument(type_, (), i): v for i, v in enumerate(operands)}
        result = self._as_numbers(built, name, list(given))
        replace_operands(built.block.instructions, given)
        return result

    def _as_numbers(self, built: Builder, name: str, operands: list[Value]) -> Value:
        """A bit operation as one on numbers."""
        x, *factors = operands
        type_ = x.type
        match name:
            case "fneg":
                return built.unary("fneg", x)
            case "mulsign":
                return built.binary("fmul", x, self._sign(built, factors))
            case "copysign":
                sign = factors[0] if len(factors) == 1 else self._sign(built, factors)
                return self._declarations.call(built, "copysign", [x, sign], type_)
            case _:
                size = self._declarations.call(built, "fabs", [x], type_)
                negative = built.unary("fneg", size)
                if name != "orsign":
                    return negative if name == "minus_fabs" else size
                is_negative = built.fcmp("olt", self._sign(built, factors), zero(type_))
                return built.select(is_negative, negative, x)

    def _sign(self, built: Builder, factors: list[Value]) -> Value:
        """A one with the sign of a product. (Of zeros and NaN, too, the sign counts.)"""
        type_ = factors[0].type
        one = const_float(type_, 1)
        signs = [self._declarations.call(built, "copysign", [one, f], type_) for f in factors]
        return reduce(lambda a, b: built.binary("fmul", a, b), signs)

    def _exchange(self, member: I.Instruction) -> None:
        """Gives a twin, or a store, the twins of what it is made of."""
        type_ = self._types[member]
        if isinstance(member, I.Store):
            member.operands[0] = self._value(type_, member, member.operands[0])
            return
        made = self._made[member]
        if isinstance(member, I.Phi):
            assert isinstance(made[0], I.Phi)
            made[0].operands = [self._value(type_, b.terminator, v) for v, b in member.incoming]
        elif isinstance(member, I.BinaryOp):
            raw = _carried(member)
            for instruction in made:
                instruction.operands = [self._value(type_, member, v) if v in raw else v for v in instruction.operands]
        elif isinstance(member, I.Select | I.Freeze):
            first = 1 if isinstance(member, I.Select) else 0
            made[0].operands[first:] = [self._value(type_, member, v) for v in made[0].operands[first:]]

    def _value(self, type_: T.Type, before: I.Instruction, value: Value) -> Value:
        """An operand in its web's type."""
        twin = self._twins.get(value)
        if twin is not None and twin.type == type_:
            return twin
        number = as_number(value, type_) if isinstance(value, Constant) else None
        if number is not None:
            return number
        cast = I.Cast(type_, "inttoptr" if type_ == T.PTR else "bitcast", [value])
        self._ahead.setdefault(before, []).append(cast)
        return cast

    def _give_bits(self) -> None:
        """Whatever still uses a member gets the bits of the number."""
        users = uses(self._function)
        back: dict[Value, Value] = {}
        behind: dict[Value, I.Instruction] = {}
        for member, twin in self._twins.items():
            type_ = twin.type
            for user, _ in users.get(member, ()):
                if user.opcode in ("bitcast", "inttoptr") and user.type == type_:
                    back[user] = twin
                    continue
                if member not in behind:
                    behind[member] = I.Cast(member.type, "ptrtoint" if type_ == T.PTR else "bitcast", [twin])
                user.operands[:] = [behind[member] if v is member else v for v in user.operands]
        self._place_behind({cast: cast.operands[0] for cast in behind.values()})
        substitute(self._function, back)

    def _place_behind(self, casts: dict[I.Instruction, Value]) -> None:
        """Puts each cast behind what it is of: behind all phis where that is one, at the start where it is no
        instruction."""
        behind: dict[Value, list[I.Instruction]] = {}
        for cast, twin in casts.items():
            behind.setdefault(twin if isinstance(twin, I.Instruction) else self._function, []).append(cast)
        for block in self._function.blocks if behind else ():
            count = len(phis(block))
            first = [self._function] if block is self._function.entry else []
            placed = [*block.instructions[:count]]
            placed += [c for twin in (*first, *placed) for c in behind.get(twin, ())]
            for instruction in block.instructions[count:]:
                placed += (instruction, *behind.get(instruction, ()))
            block.instructions = placed


# -- which instructions belong to webs -------------------------------------------------------------------------------


def _starts(instruction: I.Instruction) -> bool:
    """Loads and stores of integers are where webs are worth looking for, and bit operations on numbers."""
    if isinstance(instruction, I.Load):
        return _wide(instruction.type)
    if isinstance(instruction, I.Store):
        return _wide(instruction.operands[0].type) and isinstance(instruction.operands[0], I.Instruction)
    return isinstance(instruction, I.BinaryOp) and bit_operation(instruction) is not None


def _wide(type_: T.Type) -> bool:
    kind = T.scalar(type_)
    if not isinstance(kind, T.IntType) or (isinstance(type_, T.VectorType) and type_.scalable):
        return False
    return kind.bits in (16, 32, 64, 128)


def _is_member(value: I.Instruction) -> bool:
    if not _wide(value.type):
        return False
    if isinstance(value, I.Cast):
        source = value.operands[0].type
        return (value.opcode == "bitcast" and T.is_float(source)) or (value.opcode == "ptrtoint" and source == T.PTR)
    if isinstance(value, I.BinaryOp):
        return bit_operation(value) is not None
    return isinstance(value, I.Load | I.Phi | I.Select | I.Freeze)


def _carried(value: Value) -> list[Value]:
    """The operands of a bit operation that are numbers."""
    made = bit_operation(value)
    return [] if made is None else made[1]
