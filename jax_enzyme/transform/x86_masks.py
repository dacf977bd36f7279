"""Intrinsics for x86's instructions with masks (AVX-512), in terms that every part of the engine knows.

    before    %r = call <8 x double> @llvm.x86.avx512.mask.gather.qpd.512(%old, ptr %base, <8 x i64> %at, %mask, i32 8)
    after     %places = <8 x ptr> of getelementptr i8, ptr %base, i64 (8 * each of %at)
              %r = call <8 x double> @llvm.masked.gather.v8f64.v8p0(<8 x ptr> %places, <8 x i1> %mask, %old)

`x86_vectors` asks for them by name. None is an instruction that is told to round otherwise than all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.declare import Declarations, overload

_NEAREST = 4
"""As the processor is set to round, which is to the nearest."""
_DIRECTIONS = {0: "roundeven", 1: "floor", 2: "ceil", 3: "trunc", 4: "rint"}

Lowering = Callable[[Builder, Declarations, "re.Match[str]", I.Call], Value | None]


def vector(value: Value | T.Type) -> T.VectorType:
    found = value.type if isinstance(value, Value) else value
    assert isinstance(found, T.VectorType)
    return found


def _rounds_as_usual(call: I.Call) -> bool:
    """Whether what an instruction is told of rounding, in its last argument, is what other instructions do."""
    return int_value(call.arguments[-1]) == _NEAREST


def _chosen(at: Builder, value: Value, old: Value, mask: Value) -> Value:
    """Lanes of a value where a mask of bits has them, of another one elsewhere."""
    count = vector(value).count
    bits = T.IntType(count)
    return at.select(at.cast("bitcast", at.narrow(mask, bits), T.VectorType(count, T.I1)), value, old)


def _moved_together(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """`compress` puts the lanes that a mask has side by side; `expand` takes lanes that lie so apart."""
    x, old, mask = call.arguments
    kind = vector(call)
    source, place, found = [at.extract_element(x, lane) for lane in range(kind.count)], const_int(T.I64, 0), old
    taken: list[Value] = []
    for lane in range(kind.count):
        has = at.extract_element(mask, lane)
        if match["how"] == "compress":
            found = at.select(has, at.insert_element(found, source[lane], place), found)
        else:
            taken.append(at.select(has, at.extract_element(x, place), at.extract_element(old, lane)))
        place = at.binary("add", place, at.cast("zext", has, T.I64))
    return found if match["how"] == "compress" else at.pack(kind, taken)


def _addresses(at: Builder, base: Value, indices: Value, scale: int, count: int) -> Value:
    places: list[Value] = []
    for lane in range(count):
        index = at.extract_element(indices, lane)
        wide = index if index.type == T.I64 else at.cast("sext", index, T.I64)
        places.append(at.gep(T.I8, base, [at.binary("mul", wide, const_int(T.I64, scale))]))
    return at.pack(T.VectorType(count, T.PTR), places)


def gathered(
    at: Builder, declarations: Declarations, old: Value, base: Value, indices: Value, mask: Value, scale: int
) -> Value:
    """Lanes from where a mask of truths has them, of `old` elsewhere. Two `float` by indices of 64 bits come in a
    vector of four, the others zero; of four indices of 32 bits two `double` need two."""
    kind = vector(old)
    used = min(kind.count, vector(indices).count)
    part, lanes = T.VectorType(used, kind.element), list(range(used))
    addresses, mask = _addresses(at, base, indices, scale, used), _first(at, mask, used)
    name = f"llvm.masked.gather.{overload(part)}.v{used}p0"
    found = declarations.invoke(at, name, part, [addresses, mask, _first(at, old, used)])
    others = [used] * (kind.count - used)
    return at.shuffle(found, zero(part), [*lanes, *others]) if others else found


def _first(at: Builder, value: Value, used: int) -> Value:
    """The first lanes of a vector."""
    return value if vector(value).count == used else at.shuffle(value, None, list(range(used)))


def _gathered(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    old, base, indices, mask, scale = call.arguments
    return gathered(at, declarations, old, base, indices, mask, _scale(scale))


def _scale(value: Value) -> int:
    found = int_value(value)
    assert found is not None
    return found


def _scattered(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> None:
    base, mask, indices, value, scale = call.arguments
    used = min(vector(value).count, vector(indices).count)
    value, mask = _first(at, value, used), _first(at, mask, used)
    kind, addresses = vector(value), _addresses(at, base, indices, _scale(scale), used)
    name = f"llvm.masked.scatter.{overload(kind)}.v{kind.count}p0"
    declarations.invoke(at, name, T.VOID, [value, addresses, mask])


def _rounded(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """To whole numbers: with digits behind the point (the upper half of the choice) it is refused as it was."""
    x, how, old, mask = call.arguments[:4]
    return _chosen(at, declarations.call(at, _DIRECTIONS[(int_value(how) or 0) & 7], [x], x.type), old, mask)


def _rounds_to_whole(call: I.Call) -> bool:
    how = int_value(call.arguments[1])
    return how is not None and how >> 4 == 0 and how & 7 in _DIRECTIONS


def multiplied(at: Builder, declarations: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """Products less a third number in even lanes, and plus it in odd ones."""
    x, y, z = call.arguments[:3]
    count = vector(call).count
    less, more = (declarations.call(at, "fma", [x, y, term], x.type) for term in (at.unary("fneg", z), z))
    return at.shuffle(less, more, [lane + count * (lane % 2) for lane in range(count)])


def _narrowed(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    x, old, mask = call.arguments[:3]
    return _chosen(at, at.cast("fptrunc", x, vector(call)), old, mask)


def _by_bits(at: Builder, _: Declarations, match: re.Match[str], call: I.Call) -> Value:
    """`pternlog`: each bit by a table of the three bits there."""
    *given, how = call.arguments
    return at.by_table(int_value(how) or 0, given)


_TABLE: tuple[tuple[re.Pattern[str], Callable[[I.Call], bool], Lowering], ...] = (
    (re.compile(r"mask\.(?P<how>compress|expand)\.v\d+(?:f|i)(?:32|64)"), lambda _: True, _moved_together),
    (re.compile(r"mask\.gather\.?(?:[dq]p[sdiq]\.512|3(?:div|siv)\d\.(?:df|di|sf|si))"), lambda _: True, _gathered),
    (re.compile(r"mask\.scatter\.?(?:[dq]p[sdiq]\.512|(?:div|siv)\d\.(?:df|di|sf|si))"), lambda _: True, _scattered),
    (re.compile(r"mask\.rndscale\.p[sd]\.(?:128|256|512)"), _rounds_to_whole, _rounded),
    (re.compile(r"vfmaddsub\.p[sd]\.512"), _rounds_as_usual, multiplied),
    (re.compile(r"mask\.cvtpd2ps\.512"), _rounds_as_usual, _narrowed),
    (re.compile(r"pternlog\.[dq]\.(?:128|256|512)"), lambda _: True, _by_bits),
)


def masked_lowering(name: str, call: I.Call) -> tuple[Lowering, re.Match[str]] | None:
    """What makes other terms of a call of an intrinsic of that name, behind `llvm.x86.avx512.`; None where nothing."""
    for pattern, fits, lowering in _TABLE:
        if (match := pattern.fullmatch(name)) and fits(call):
            return lowering, match
    return None
