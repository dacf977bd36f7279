"""An `int` that has the place of a `double` for itself is read and written as a whole word.

    struct A { double k; };  struct D { int n; };  std::variant<A, D>

    before    store i32 %n, ptr %p, align 8                after    %word = zext i32 %n to i64
                                                                    store i64 %word, ptr %p, align 8
              %m = load i32, ptr %q, align 8                        %word = load i64, ptr %q, align 8
              %y = sitofp i32 %m to double                          %high = shl i64 %word, 32
                                                                    %m.word = ashr i64 %high, 32
                                                                    %y = sitofp i64 %m.word to double

What is known of integers that share their place with numbers is known of words (`ad.facts.tagged`), in derivatives of
any order; halves have codes in first derivatives alone (`ad.facts.half_numbers`). So this is done where it can be done
of all integers that are shorter than the doubles whose place they share, or of none: each begins where a double does,
nothing else is in the rest of that, and what is read becomes numbers as it is, or decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.analysis.accesses import reachable_objects
from jax_enzyme.analysis.decisions import decides, only_decides
from jax_enzyme.analysis.extents import inside, room
from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.analysis.memory import PointsTo
from jax_enzyme.analysis.objects import MemoryObject, call_effect, copy_operands, is_copy
from jax_enzyme.analysis.words import Words
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, Uses, uses
from jax_enzyme.ir.values import Argument, GlobalValue, Value
from jax_enzyme.rules.effects import Effect
from jax_enzyme.transform.rewriting import Change, on_copy, rewrite

_DOUBLE, _HALF = 8, 32
_SHIFTS = {"sitofp": "ashr", "uitofp": "lshr"}
_ALONE = frozenset({(0, T.DOUBLE)})
_TOUCHES_NONE = (Effect.ALLOCATE, Effect.FREE, Effect.MEMORY_SET, Effect.IGNORED)

_Access = I.Load | I.Store


def widen(function: ArrayFunction) -> ArrayFunction:
    """The array function with such integers as words, in a copy of the module; itself where there are none."""
    if not any(_is_made_number(i) for f in function.module.functions.values() for i in f.instructions()):
        return function

    def change(module: Module, root: Function) -> bool:
        return _widened(Words(PointsTo(module, root), dict(zip(root.arguments, function.buffers, strict=True))))

    return on_copy(function, change)


def _is_made_number(instruction: I.Instruction) -> bool:
    """Whether a number is made of an integer that may have a double's place for itself."""
    return instruction.opcode in _SHIFTS and isinstance(load := instruction.operands[0], I.Load) and _is_half(load)


def _is_half(access: _Access) -> bool:
    aligned = access.align is not None and access.align >= _DOUBLE
    return I.accessed_value(access).type == T.I32 and aligned and I.is_plain(access)


def _widened(words: Words) -> bool:
    """Does it in place; whether there was anything to do."""
    halves = _Halves(words)
    found: dict[I.Instruction, None] = {}
    used: dict[Function, Uses] = {}
    for target in words.points_to.functions:
        used[target] = uses(target)
        for access in target.instructions():
            if halves.is_one(access):
                if not halves.has_all(access) or (isinstance(access, I.Load) and not _is_number(access, used[target])):
                    return False
                found[access] = None
    if not any(isinstance(access, I.Load) for access in found) or halves.are_parted():
        return False
    for target, users in used.items():
        rewrite(target, lambda i, users=users: _whole(i, users) if i in found else None)
    return True


def _is_number(load: I.Load, users: Uses) -> bool:
    """Whether an integer becomes a number as it is, or decides."""
    return all(u.opcode in _SHIFTS or decides(u) or only_decides(u, users) for u, _ in users.get(load, ()))


class _Halves:
    """Accesses of integers that are shorter than the doubles that may lie at their places."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._points_to = words.points_to
        self._layout = DataLayout(words.points_to.module)
        self._objects: dict[MemoryObject, None] = {}

    def is_one(self, instruction: I.Instruction) -> bool:
        """Whether it is one, or one of which that is not known; also one of several integers at once."""
        accessed = I.accessed(instruction)
        if accessed is None or T.is_float(accessed[1]) or accessed[1] == T.PTR:
            return False
        pointer, type_ = accessed
        size = self._layout.store_size(type_)
        numbers = self._words.numbers(pointer, size)
        is_whole = type_ == T.I64 and isinstance(instruction, _Access)
        if numbers is None:
            return not is_whole
        return any(kind == T.DOUBLE and (not is_whole or place) for place, kind in numbers)

    def has_all(self, access: I.Instruction) -> bool:
        """Whether it has all of a double's place, in memory that is the program's own."""
        pointer = access.operands[-1]
        if not isinstance(access, _Access) or not _is_half(access) or self._words.numbers(pointer, _DOUBLE) != _ALONE:
            return False
        if self._words.pointers(pointer, _DOUBLE):
            return False
        for item, places in self._points_to.places(pointer).items():
            self._objects[item] = None
            if isinstance(item.site, Argument | GlobalValue):
                return False
            size = room(self._layout, item)
            if any(inside(p, _DOUBLE, size) != inside(p, _DOUBLE // 2, size) for p in places):
                return False
        return True

    def are_parted(self) -> bool:
        """Whether a copy may end within a word of theirs, or a function that is not known here access a part of one."""
        calls = (i for i in self._points_to.instructions() if isinstance(i, I.CallBase))
        return any(not self._objects.keys().isdisjoint(self._parted(call)) for call in calls)

    def _parted(self, call: I.CallBase) -> Iterable[MemoryObject]:
        """Objects of which a call may touch a part of a word."""
        if is_copy(call):
            target, source, size = copy_operands(call)
            ends_within = size is not None and size % _DOUBLE
            return self._points_to.of(target) | self._points_to.of(source) if ends_within else ()
        if call_effect(call) in _TOUCHES_NONE or self._points_to.callees(call):
            return ()
        return reachable_objects(self._points_to, call)


def _whole(access: I.Instruction, users: Uses) -> Change:
    def change(builder: Builder) -> Value | None:
        pointer = access.operands[-1]
        if isinstance(access, I.Store):
            builder.store(builder.cast("zext", access.operands[0], T.I64), pointer, access.align)
            return None
        assert isinstance(access, I.Load)
        word = builder.load(T.I64, pointer, access.align)
        made = [(user, _SHIFTS[user.opcode]) for user, _ in users.get(access, ()) if user.opcode in _SHIFTS]
        if made:
            half = const_int(T.I64, _HALF)
            high = builder.binary("shl", word, half)
            integers = {shift: builder.binary(shift, high, half) for shift in dict.fromkeys(s for _, s in made)}
            for user, shift in made:
                user.operands[0] = integers[shift]
        return builder.cast("trunc", word, T.I32) if len(made) < len(users.get(access, ())) else None

    return change
