"""Memory that is read before anything is written to it.

Every variable, and all that is allocated, starts with a pattern that programs do not compute (`csrc/checked.cc`), and
what is read is compared with it, where the number is used for more than to be moved. Copies of memory carry the pattern
along, so that what was never written is found wherever it is used. Of a number of double precision the upper half
tells: the lower one may be what a union was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Uses, callee_name, declared_callee, uses
from jax_enzyme.ir.values import ConstantFloat, ConstantInt, Value, int_value

WORD = 0xFFB5A5A5
NARROW = "je_checked_narrow"
_NUMBER = re.compile(r"\.v\d+.*$")
_OF_ARGUMENT = re.compile(r"(.*)\.argument\.(\d+)$")  # see `records`
MOVES = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")


def pattern_of(type_: T.Type) -> tuple[T.Type, Value] | None:
    """The integer type in which a number is compared, and the pattern in it; None where it is not looked for."""
    if type_ in (T.FLOAT, T.I32):
        return T.I32, const_int(T.I32, WORD)
    if type_ in (T.DOUBLE, T.I64):
        return T.I64, const_int(T.I64, WORD << 32 | WORD)
    return None


def holds_pattern(at: Builder, value: Value) -> Value:
    found = pattern_of(value.type)
    assert found is not None
    integer, pattern = found
    bits = value if value.type == integer else at.cast("bitcast", value, integer)
    if value.type == T.DOUBLE:
        bits, pattern = at.binary("lshr", bits, const_int(T.I64, 32)), const_int(T.I64, WORD)
    return at.icmp("eq", bits, pattern)


def compared_with_pattern(condition: Value) -> Value | None:
    """The number of which `holds_pattern` has made a condition."""
    if not isinstance(condition, I.Compare) or condition.opcode != "icmp":
        return None
    number, pattern = condition.operands
    if condition.predicate == "uge" and (least := least_of_narrow(number.type)) is not None:
        return number if int_value(pattern) == int_value(least) else None
    if condition.predicate != "eq":
        return None
    if isinstance(number, I.BinaryOp) and number.opcode == "lshr" and int_value(pattern) == WORD:
        bits = number.operands[0]
        if isinstance(bits, I.Cast) and bits.operands[0].type == T.DOUBLE and int_value(number.operands[1]) == 32:
            return bits.operands[0]
    if isinstance(number, I.Cast) and number.opcode == "bitcast" and number.operands[0].type == T.FLOAT:
        number = number.operands[0]
    found = pattern_of(number.type)
    return number if found is not None and int_value(pattern) == int_value(found[1]) else None


def is_pattern(constant: ConstantInt | ConstantFloat) -> bool:
    """Whether a constant is the pattern of `scalars`."""
    if isinstance(constant, ConstantInt):
        found = pattern_of(constant.type)
        return found is not None and constant.value == int_value(found[1])
    return constant.text.upper().endswith(("B5A5A5FFB5A5A5", "F6B4B4A0000000"))


def least_of_narrow(type_: T.Type) -> Value | None:
    """Of numbers of 8 and 16 bits, the least that could be the pattern (see `narrow`), without a sign; None for
    others."""
    if not isinstance(type_, T.IntType) or type_.bits not in (8, 16):
        return None
    return const_int(type_, int("A5" * (type_.bits // 8), 16))


def moved_from(value: Value) -> Value:
    """What was read, of a value that is only moved: to the lowest bit and back, if it is C++'s `bool`."""
    match value:
        case I.Cast(opcode="zext") if isinstance(bit := value.operands[0], I.Cast) and _is_bit(bit):
            return bit.operands[0]
        case I.Cast(opcode="bitcast"):
            return value.operands[0]
        case _:
            return value


def _is_bit(value: Value) -> bool:
    return isinstance(value, I.Cast) and value.opcode == "trunc" and value.type == T.I1


def is_computed_with(
    load: I.Instruction, users: Uses, but: Callable[[Value], Value | None] = lambda user: None
) -> bool:
    """Whether a number that was read is used for more than to be moved, `but` by users for which that gives the
    number."""
    return any(computed_with(load, users, but))


def computed_with(
    load: I.Instruction, users: Uses, but: Callable[[Value], Value | None] = lambda user: None
) -> Iterator[I.Instruction]:
    """What uses a number that was read for more than to move it. A word that goes back with some bits changed is one of
    bit fields of which one is written."""
    for user, index in users.get(load, ()):
        match user:
            case _ if but(user) is load:
                continue
            case I.Cast(opcode="bitcast") if all(_is_of_check(u, load, users, but) for u, _ in users.get(user, ())):
                continue
            case I.Cast() if _is_bit(user) and all(_is_moved_bit(u, users) for u, _ in users.get(user, ())):
                continue
            case I.Store() | I.Return() | I.Phi() | I.InsertValue() | I.Freeze():
                continue
            case I.Select() if index > 0:
                continue
            case I.BinaryOp(opcode="and" | "or") if _goes_back(user, load.operands[0], users):
                continue
            case I.CallBase() if declared_callee(user) is None:
                continue
            case _:
                yield user


def _is_of_check(user: Value, load: Value, users: Uses, but: Callable[[Value], Value | None]) -> bool:
    """Whether a user of a number's bits is what `holds_pattern` has made of them."""
    return but(user) is load or (
        isinstance(user, I.BinaryOp)
        and user.opcode == "lshr"
        and all(but(later) is load for later, _ in users.get(user, ()))
    )


def _is_moved_bit(user: Value, users: Uses) -> bool:
    return (
        isinstance(user, I.Cast)
        and user.opcode == "zext"
        and all(isinstance(later, I.Store) for later, _ in users.get(user, ()))
    )


def packed_widths(functions: Iterable[Function]) -> frozenset[int]:
    """The widths of words of which bit fields are written: the bits that no field has are never written."""
    found: set[int] = set()
    for function in functions:
        users = uses(function) if function.blocks else {}
        for load in (i for i in function.instructions() if isinstance(i, I.Load)):
            if not isinstance(load.type, T.IntType):
                continue
            if any(_is_some_bits(u) and _goes_back(u, load.operands[0], users) for u, _ in users.get(load, ())):
                found.add(load.type.bits)
    return frozenset(found)


def takes_bit_field(load: I.Instruction, users: Uses) -> bool:
    """Whether of a word that is read only some bits are taken, as of bit fields."""
    return all(_is_some_bits(user) for user, _ in users.get(load, ()))


def _is_some_bits(user: Value) -> bool:
    if isinstance(user, I.Cast):
        return user.opcode == "trunc" and user.type != T.I1  # C++'s `bool`
    return (
        isinstance(user, I.BinaryOp)
        and user.opcode in ("and", "shl", "lshr", "ashr")
        and int_value(user.operands[1]) is not None
    )


def _goes_back(word: I.Instruction, address: Value, users: Uses) -> bool:
    """Whether a word is, with more bits changed at most, written to an address, and nothing else."""
    for user, index in users.get(word, ()):
        match user:
            case I.Store() if index == 0 and user.operands[1] is address:
                continue
            case I.BinaryOp(opcode="and" | "or") if _goes_back(user, address, users):
                continue
            case _:
                return False
    return True


def variable_name(alloca: I.Alloca) -> str:
    """What the source calls a variable, for messages. `registers` has numbered them; what front ends need for
    themselves has a name with a point."""
    name = _NUMBER.sub("", alloca.name)
    if (argument := _OF_ARGUMENT.match(name)) is not None:
        return f"argument `{argument[1]}`"
    if name.endswith(".local"):  # of `private_globals`
        return f"variable `{name.removesuffix('.local')}`"
    return "a local variable" if not name or "." in name else f"local variable `{name}`"


def element_of_argument(alloca: I.Alloca) -> int | None:
    """The size of an element of an argument that the engine has put together: a pointer, a structure."""
    argument = _OF_ARGUMENT.match(_NUMBER.sub("", alloca.name))
    return None if argument is None else int(argument[2])


def is_of_source(alloca: I.Alloca) -> bool:
    """Whether a variable, once `registers` has numbered them, is none of the engine's own."""
    return _NUMBER.search(alloca.name) is not None


def is_lifetime(instruction: I.Instruction, which: str = "") -> bool:
    return callee_name(instruction).startswith(f"llvm.lifetime.{which}")
