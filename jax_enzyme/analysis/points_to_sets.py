"""Points-to sets with offsets, and what instructions make of them.

    %q = add %p, 8          %p leads to offset 0 of a local variable, %q to offset 8
    %d = sub %q, %p         a number: 8
    %n = trunc i64 %p       may be a part of a pointer, which leads nowhere unless nothing else does

What is not understood leads anywhere in the same objects (`anywhere`).
"""

from __future__ import annotations

from math import gcd
from typing import cast

from jax_enzyme.analysis.congruence import ANY, Congruence
from jax_enzyme.analysis.objects import HEAP_ALIGNMENT, MemoryObject, Objects, is_defined_call, is_heap_block
from jax_enzyme.analysis.offsets import (
    ANYWHERE,
    MOST,
    Offsets,
    constant,
    fewer,
    masked,
    merge,
    multiples,
    products,
    shifted,
    sums,
)
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reach import Reached
from jax_enzyme.ir.values import ConstantInt, Poison, Undef, Value

Place = dict[MemoryObject | None, Offsets]
"""The offsets in each object that a value may lead to; under None what it is as a plain integer."""
MANY_STORED = 4
"""So many congruences are kept for each object in what is stored in one place."""
MANY_FIELDS = 128
"""With pointers stored at more offsets in an object, each of them may be anywhere in it."""
NOWHERE: Place = {}
_SMALL = 1 << 12
"""What is left of an address by a mask below this is a number."""
_NUMBER = frozenset([None])
PART: Offsets = frozenset()
"""The offsets of what may be a part of a pointer, as far as is known, but most often is a number beside one: an integer
of less than 64 bits, a floating-point number. A pointer that is made of nothing but such parts leads anywhere."""


def computed(instruction: I.BinaryOp, xs: Offsets, ys: Offsets) -> Offsets:
    """What is no address any more."""
    by = constant(ys)
    match instruction.opcode:
        case "mul":
            return products(xs, ys)
        case "shl" if by is not None and 0 <= by < 63:
            return multiples(xs, 1 << by)
        case "ashr" | "lshr" if by is not None:
            return shifted(instruction, xs, by)
        case "urem" if by is not None and by > 0:
            return frozenset([Congruence.bounded(0, by - 1, 1)])
        case _:
            return ANYWHERE


def objects_in(place: Place) -> Objects:
    return cast(Objects, frozenset(place) - _NUMBER)


def anywhere(type_: T.Type, place: Place) -> Place:
    """A value of a type that leads into the same objects."""
    within = PART if _is_part(type_) else ANYWHERE
    return {o: ANYWHERE if o is None else within if cs else PART for o, cs in place.items()}


def as_number(place: Place) -> Offsets:
    """A value as a plain integer; where it may be an address, by how that is aligned: the distance of two pointers, one
    of which was null as far as was known at first, is told as the other one still."""
    found = place.get(None, PART)
    for item, offsets in place.items():
        if item is None or not offsets:
            continue
        if not is_heap_block(item):
            return ANYWHERE
        found |= {Congruence.of(at.offset, gcd(at.modulus, HEAP_ALIGNMENT)) for at in offsets}
    return (found if len(found) <= MOST else fewer(found, MOST // 2)) or ANYWHERE


def is_number(place: Place) -> bool:
    return None in place and not any(cs for o, cs in place.items() if o is not None)


def _is_part(type_: T.Type) -> bool:
    scalar = T.scalar(type_)
    return isinstance(scalar, T.FloatType) or (isinstance(type_, T.IntType) and type_.bits < 64)


def is_address(type_: T.Type) -> bool:
    return T.is_pointer(type_) or type_ == T.I64


def added(x: Place, y: Place) -> Place:
    """An address and a number, whichever of the two is which."""
    found: Place = {}
    for one, other in ((x, y), (y, x)):
        by = other.get(None)
        for item, offsets in one.items():
            if by is not None and (item is not None or one is x):
                merge(found, {item: sums(offsets, by)}, MOST)
            elif item is not None:
                found.setdefault(item, ANYWHERE if offsets else PART)
    return found


def difference(x: Place, y: Place) -> Place:
    """Of two pointers into the same object, or both null, as C has it: a number. Others are not understood."""
    found: Place = {}
    for item in x.keys() & y.keys():
        merge(found, {None: sums(x[item], multiples(y[item], -1))}, MOST)
    apart = (x.keys() | y.keys()) - (x.keys() & y.keys())
    found.update({k: PART if found else ANYWHERE for k in apart if k is not None})
    found.setdefault(None, ANYWHERE)
    return found


def arithmetic(instruction: I.BinaryOp, x: Place, y: Place) -> Place | None:
    """What is computed of two integers; None where it is made of both in a way that is not followed to the byte."""
    b = as_number(y)
    match instruction.opcode:
        case "add":
            return added(x, y)
        case "or" if "disjoint" in instruction.flags and is_number(y):
            return added(x, y)
        case "sub" if is_number(y):
            return {**y, **{k: sums(cs, multiples(b, -1)) for k, cs in x.items()}}
        case "sub":
            return difference(x, y)
        case "and" if is_number(y) and (mask := constant(b)) is not None:
            found: Place = {None: masked(as_number(x), mask)}
            return found if 0 <= mask < _SMALL else {**anywhere(instruction.type, x), **found}
        case "and" | "or" | "xor":
            return None
        case _:
            return {None: computed(instruction, as_number(x), b)}


def truncated(type_: T.Type, place: Place) -> Place:
    """The low bits of what leads to a place."""
    number = {None: frozenset(c.cut() for c in place[None])} if None in place else {}
    return {**anywhere(type_, place), **number}


def handed_on(instruction: I.Instruction) -> list[Value]:
    """The operands whose pointers may be in the result of an instruction that hands pointers on."""
    if isinstance(instruction, I.GetElementPtr) or instruction.opcode == "extractelement":
        return instruction.operands[:1]
    return instruction.operands[1:] if isinstance(instruction, I.Select) else instruction.operands


def taken_from(part: I.ExtractValue) -> list[Value] | None:
    """The values one of which a part of a structure is, by way of the functions that return it; None where they are not
    all found."""
    found: list[Value] = []
    wholes = Reached[Value](part.operands)
    for whole in wholes:
        match whole:
            case I.InsertValue(operands=[_, member], indices=indices) if indices == part.indices:
                found.append(member)
            case I.InsertValue(operands=[rest, _], indices=indices) if len(indices) == len(part.indices):
                wholes.add([rest])
            case I.Phi() | I.Select() | I.Freeze():
                wholes.add(I.merged(whole))
            case I.CallBase() if is_defined_call(whole):
                wholes.add(cast(Function, whole.callee).returned())
            case Poison() | Undef():
                pass
            case _:
                return None
    return found


def addresses_within(number: Value) -> list[Value] | None:
    """The pointers that an integer is an address of, moved on or aligned: `(long)p + 7 & ~7`; None where it may be
    another number."""
    found: list[Value] = []
    sums = Reached[Value]([number])
    for item in sums:
        match item:
            case I.Cast(opcode="ptrtoint" | "ptrtoaddr", operands=[pointer]):
                found.append(pointer)
            case I.BinaryOp(opcode="add" | "sub" | "and" | "or", operands=[base, ConstantInt()]):
                sums.add([base])
            case I.Phi() | I.Select() | I.Freeze():
                sums.add(I.merged(item))
            case ConstantInt(value=0) | Poison() | Undef():
                pass
            case _:
                return None
    return found


def functions_for(call: I.CallBase, objects: Objects) -> list[Function]:
    """Those of some objects that are functions of a call's own type."""
    return [o.site for o in objects if isinstance(o.site, Function) and o.site.value_type == call.function_type]


def compact(fields: dict[Congruence, Place]) -> None:
    """Leaves less than half as many places: what others include goes, as the first steps of a loop whose later ones are
    known up to a stride; if that is not enough, pointers may be anywhere."""
    for at in list(fields):
        wider = next((b for b in fields if b.includes(at)), None)
        if wider is not None:
            merge(fields[wider], fields.pop(at), MANY_STORED)
    if len(fields) > MANY_FIELDS // 2:
        everything: Place = {}
        for held in fields.values():
            merge(everything, held, MANY_STORED)
        fields.clear()
        fields[ANY] = everything
