"""The reverse of a warp shuffle: what a lane gave away comes back from every lane that took it.

    forward    y[l] = x[source(l)]                  reverse    x'[s] = sum of y'[l] over the lanes l with source(l) = s

Where the lanes' sources are known when the derivative is made, as for butterflies and shifts, lane s finds the lanes
that read it by `s xor c` or `s + d`: one shuffle each. Otherwise it asks all lanes in turn. Lanes that do not take part
in the shuffle, because they have left or the warp is not full, are told by a ballot; they give nothing.
"""

from __future__ import annotations

from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.registers import WARP_WORDS, lane_number

_FULL = (1 << WARP_SIZE) - 1
_MOST_MOVES = 4
"""Where lanes take from more distances, a lane asks all others in turn."""
_BACK = "je.shuffle.back."

_ASK_ALL = """
declare TYPE @__je_shuffle_KIND(i32, TYPE, i32) convergent nounwind
declare i32 @__je_shuffle_i32(i32, i32, i32) convergent nounwind
declare i32 @__je_ballot(i32, i32) convergent nounwind
declare i32 @__je_lane() nounwind willreturn memory(none)

define internal TYPE @je.shuffle.back.KIND(i32 %mask, TYPE %given, i32 %source) convergent nounwind {
entry:
  %self = call i32 @__je_lane()
  %present = call i32 @__je_ballot(i32 %mask, i32 1) convergent
  br label %loop

loop:
  %lane = phi i32 [ 0, %entry ], [ %next, %loop ]
  %total = phi TYPE [ ZERO, %entry ], [ %sum, %loop ]
  %theirs = call TYPE @__je_shuffle_KIND(i32 %mask, TYPE %given, i32 %lane) convergent
  %from = call i32 @__je_shuffle_i32(i32 %mask, i32 %source, i32 %lane) convergent
  %wrapped = and i32 %from, 31
  %mine = icmp eq i32 %wrapped, %self
  %bits = lshr i32 %present, %lane
  %there = trunc i32 %bits to i1
  %takes = and i1 %mine, %there
  %part = select i1 %takes, TYPE %theirs, TYPE ZERO
  %sum = fadd reassoc nsz contract TYPE %total, %part
  %next = add nuw nsw i32 %lane, 1
  %more = icmp ult i32 %next, 32
  br i1 %more, label %loop, label %exit

exit:
  ret TYPE %sum
}
"""


@dataclass(frozen=True)
class Move:
    """Lanes `s` of the set `lanes` were read by lane `s xor by`, or `s + by`."""

    by: int
    exclusive: bool
    lanes: int

    @property
    def is_own(self) -> bool:
        return self.by == 0


def moves(sources: list[int]) -> tuple[Move, ...] | None:
    """Who reads each lane, for the lane that each lane reads; None where too many do."""
    readers = [(lane, s % WARP_SIZE) for lane, s in enumerate(sources)]
    bits = {lane ^ s for lane, s in readers}
    if len(bits) == 1 and len(readers) == WARP_SIZE:
        return (Move(bits.pop(), True, _FULL),)
    shifts: dict[int, int] = {}
    for lane, s in readers:
        shifts[lane - s] = shifts.get(lane - s, 0) | 1 << s
    return tuple(Move(by, False, lanes) for by, lanes in shifts.items()) if len(shifts) <= _MOST_MOVES else None


def shuffle_adjoint(
    module: Module,
    builder: Builder,
    name: str,
    arguments: tuple[Value, Value, Value],
    known: tuple[Move, ...] | None,
    everyone: bool,
) -> Value:
    """The adjoint of what this lane passes into the shuffle `name`. `arguments` are the mask, the adjoint of what the
    lane gets, and the lane that it reads; `everyone` says that all lanes of the warp take part."""
    mask, adjoint, source = arguments
    if known is None:
        return builder.call(warp_helper(module, _BACK, _ASK_ALL, adjoint.type), [mask, adjoint, source])
    declarations = Declarations(module)
    lane = lane_number(module, builder)
    present: Value | None = None
    total: Value | None = None
    for move in known:
        part = adjoint
        valid: Value | None = None
        if not move.is_own:
            if present is None and not everyone:
                present = _call(builder, declarations, "__je_ballot", T.I32, [mask, const_int(T.I32, 1)])
            word = "xor" if move.exclusive else "add"
            reader = builder.binary(word, lane, const_int(T.I32, move.by))
            reader = builder.binary("and", reader, const_int(T.I32, WARP_SIZE - 1))
            part = _call(builder, declarations, name, adjoint.type, [mask, adjoint, reader])
            valid = None if present is None else _bit(builder, present, reader)
        if move.lanes != _FULL:
            among = _bit(builder, const_int(T.I32, move.lanes), lane)
            valid = among if valid is None else builder.binary("and", valid, among)
        if valid is not None:
            part = builder.select(valid, part, zero(part.type))
        total = part if total is None else builder.binary("fadd", total, part)
    assert total is not None
    return total


def _call(builder: Builder, declarations: Declarations, name: str, result: T.Type, arguments: list[Value]) -> Value:
    return declarations.invoke(builder, name, result, arguments, WARP_WORDS, ("convergent",))


def _bit(builder: Builder, word: Value, number: Value) -> Value:
    return builder.cast("trunc", builder.binary("lshr", word, number), T.I1)


def warp_helper(module: Module, prefix: str, text: str, type_: T.Type) -> Function:
    """A function of the module over what the lanes of a warp do together, for one type of numbers: what `text` defines,
    with TYPE, KIND and ZERO as words for the type."""
    assert isinstance(type_, T.FloatType)
    kind = {"float": "f32", "double": "f64"}[type_.kind]
    text = text.replace("TYPE", str(type_)).replace("KIND", kind).replace("ZERO", "0.0")
    return defined(module, f"{prefix}{kind}", text)
