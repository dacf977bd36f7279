"""How two parts of what a loop adds up, multiplies or compares become one, and what changes nothing there.

max       %more = fcmp ogt double %part, %total          -inf
          %best = select i1 %more, double %part, double %total
max       %best = call double @llvm.maxnum.f64(%total, %part)      no number (NaN)
product   %all = fmul double %total, %part               1

Of a maximum in which what is no number gives way to any, as in `m > a ? m : a` and `fmax(m, a)`, a part begins with
that: what no iteration came to may be none in the whole, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan

from jax_enzyme.analysis.accumulation import SET, Chain, says_any
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.values import Constant, Value
from jax_enzyme.transform.nested_choices import worst

_CALLS = {
    "llvm.max": "ogt", "llvm.min": "olt",
    "llvm.smax.": "sgt", "llvm.smin.": "slt", "llvm.umax.": "ugt", "llvm.umin.": "ult",
}  # fmt: skip
"""Which of two numbers a function returns, by how its name begins."""
_OF_NUMBERS = ("llvm.maxnum.", "llvm.minnum.", "llvm.maximumnum.", "llvm.minimumnum.")
"""Functions that return the other one where one is no number."""


def neutral(sum_: Chain) -> Constant | None:
    """What changes nothing where it is joined; None where a part may begin with what the whole begins with."""
    type_ = sum_.start.type
    match sum_.kind:
        case "fadd":
            return const_float(type_, -0.0)
        case "fmul":
            return const_float(type_, 1.0)
        case "add" | "xor":
            return const_int(type_, 0)
        case "mul":
            return const_int(type_, 1)
        case _:
            return None


def nothing(sum_: Chain) -> Value:
    """What changes nothing, of a kind that no other value decides."""
    type_, kind = sum_.start.type, sum_.kind
    if (known := neutral(sum_)) is not None:
        return known
    if kind in ("and", "or"):
        return const_int(type_, -1 if kind == "and" else 0)
    if _gives_way(sum_):
        return const_float(type_, nan)
    if kind.startswith("select "):
        _, which, relation = kind.split()
        return worst(type_, relation[0] + ("gt" if which == "max" else "lt"))
    return worst(type_, next(relation for name, relation in _CALLS.items() if kind.startswith(name)))


def _gives_way(sum_: Chain) -> bool:
    """Does what is no number give way to any other, in a maximum or a minimum?"""
    if not T.is_float(sum_.start.type) or any("nnan" in flags for flags in map(_flags, sum_.steps)):
        return False
    sample = sum_.sample
    if not isinstance(sample, I.Select):
        return sum_.kind.startswith(_OF_NUMBERS)
    compared = sample.operands[0]
    assert isinstance(compared, I.Compare)
    return sample.operands[1 if compared.predicate.startswith("u") else 2] not in sum_.steps


def _flags(step: Value) -> tuple[str, ...]:
    """Those of an instruction, and of what it chooses by."""
    if not isinstance(step, I.Instruction):
        return ()
    compared = step.operands[0] if isinstance(step, I.Select) else step
    return (*step.flags, *(compared.flags if isinstance(compared, I.Instruction) else ()))


def with_part(at: Builder, sum_: Chain, total: Value, part: Value) -> Value:
    """A total with a part that began with nothing."""
    both = join(at, sum_, [sum_], {sum_.start: total}, {sum_.start: part})
    if isinstance(sum_.sample, I.Select) and _gives_way(sum_):
        return at.select(at.fcmp("uno", part, part), total, both)
    return both


def join(
    at: Builder, sum_: Chain, sums: Iterable[Chain], totals: Mapping[Value, Value], parts: Mapping[Value, Value]
) -> Value:
    """Two parts of a sum as one, of all `sums` by what they start with."""
    total, part = totals[sum_.start], parts[sum_.start]
    if sum_.kind == SET:
        number = next(v for v in sum_.sample.operands if v not in sum_.steps and v.type == total.type)
        return at.select(at.icmp("eq", part, number), number, total)
    match sum_.sample:
        case I.Select() as chosen if sum_.kind not in ("and", "or"):
            leader = sum_.leader or sum_
            any_ = next((s for s in sums if s.leader is leader and says_any(s)), None)
            compared = leader.sample.operands[0]
            assert isinstance(compared, I.Compare)
            both = (totals[leader.start], parts[leader.start])
            holds = at.insert(_compare(compared, *(both[o not in leader.steps] for o in compared.operands)))
            if any_ is not None:
                stays = leader.sample.operands[1] in leader.steps
                chosen_any = at.icmp("eq" if stays else "ne", parts[any_.start], const_int(any_.start.type, 0))
                holds = at.binary("or" if stays else "and", holds, chosen_any)
            return at.select(holds, *(total if o in sum_.steps else part for o in chosen.operands[1:]))
        case I.Call() as call if sum_.kind != "fadd":
            return at.call(call.callee, [total, part], call.function_type)
        case _:
            return at.binary(sum_.kind, total, part)


def _compare(compared: I.Compare, left: Value, right: Value) -> I.Compare:
    """A comparison of other values by the same predicate."""
    return I.Compare(compared.type, compared.opcode, [left, right], compared.predicate, flags=compared.flags)
