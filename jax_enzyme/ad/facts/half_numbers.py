"""Integers where numbers may lie: work arrays that hold both, as the factors of an FFT behind its twiddles. In C these
are the integers that may be bits of a number as far as is known, and need not be.

Where the parts begin is known at run time alone; what a half of a word is, is decided by what was stored there last. A
right program reads an integer where an integer was stored, and never again reads a number after an integer was stored
over a half of it. One that does all the same is not to get a derivative in silence: the shadow of the word tells, in
codes that are no numbers (signalling ones, so that whatever is added to them makes them lasting).

    forward     store integer   over a tangent: the code of this half; zero, where the other half is an integer already
                load integer    from a tangent that is not the code of this half: all tangents become NaN in the end
    reverse     load integer    what the half was read for is unknown: its code joins what is there
                store integer   takes the code of its half away; an adjoint that is there becomes NaN for good
    both        load, store     of numbers need nothing: what they meet is NaN
    reverse     copy of words   joins the codes of what was read in the copy with those of what was copied

An `int` beside `double` in a union (`Activity.beside`) is read ahead of the tag as well, and words are copied in
registers:

    forward     load integer    its tangent is NaN where that of the word is not the code of this half, else zero
    reverse     load integer    its code joins what is there where its own adjoint is not zero
                sums            of adjoints join codes as copies do
                arithmetic      makes lasting NaN of the codes of its result

Integers that only decide (what is compared, counted and indexed with) have no part in that.
"""

from __future__ import annotations

from math import nan

from jax_enzyme.ad.facts.tagged import tangent
from jax_enzyme.analysis.activity import Activity
from jax_enzyme.analysis.number_bytes import WORD
from jax_enzyme.analysis.tbaa import is_equivalenced, is_fortran_integer, number_access
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantFloat, Value

_HALF = 4
_LOWER, _UPPER, _BOTH = (0x7FF4_0000_0000_0001 + half for half in range(3))
JOINED_WORDS = f"""\
  %left = bitcast double %y to i64
  %right = bitcast double %x to i64
  %left.code = sub i64 %left, {_LOWER}
  %right.code = sub i64 %right, {_LOWER}
  %left.known = icmp ult i64 %left.code, 3
  %right.known = icmp ult i64 %right.code, 3
  %codes = and i1 %left.known, %right.known
  %same = icmp eq i64 %left, %right
  %code = select i1 %same, double %y, double 0x{_BOTH:016X}
  %some = select i1 %codes, double %code, double %sum
  %no.right = fcmp oeq double %x, 0.0
  %no.left = fcmp oeq double %y, 0.0
  %one = select i1 %no.right, double %y, double %some
  %word = select i1 %no.left, double %x, double %one
"""
"""The shadow `%word` that two, `%x` and `%y`, have together, in LLVM IR: their `%sum` makes lasting NaN of codes."""
JOIN_NAME = "je.join.words"
JOIN = f"""
define internal double @{JOIN_NAME}(double %y, double %x) alwaysinline nounwind {{
  %sum = fadd reassoc nsz contract double %y, %x
{JOINED_WORDS}  ret double %word
}}
"""
"""It as a function."""
_NOTHING = const_float(T.DOUBLE, 0.0)
_LASTING = const_float(T.DOUBLE, nan)


def takes_half(module: Module, activity: Activity, store: I.Store, original: I.Instruction) -> bool:
    """Whether an integer that is no number's bits is stored where, as far as is known, doubles that vary may lie, and
    nothing else that varies; in C, only where such integers are read."""
    value = store.operands[0]
    if not isinstance(value.type, T.IntType) or value.type.bits >= WORD or value in activity.varied:
        return False
    in_fortran = is_fortran_integer(module, original) or is_equivalenced(module, original)
    return (in_fortran or activity.keeps_halves(store.operands[1])) and activity.numbers.are_doubles(store)


class HalfWord:
    """The shadow of the word around an integer, as it is read where it is made. An integer that is as long has both
    halves, and one that is shorter has the half in which it lies."""

    def __init__(self, builder: Builder, shadow: Value, kind: T.Type) -> None:
        self._builder = builder
        self._is_word = isinstance(kind, T.IntType) and kind.bits == WORD
        address = builder.cast("ptrtoint", shadow, T.I64)
        within = builder.binary("and", address, const_int(T.I64, WORD // 8 - 1))
        self._is_upper = builder.icmp("uge", within, const_int(T.I64, _HALF))
        self._place = builder.gep(T.I8, shadow, [builder.binary("sub", const_int(T.I64, 0), within)])
        self._old = old = builder.load(T.DOUBLE, self._place)
        old.metadata = number_access(T.DOUBLE)
        self._bits = builder.cast("bitcast", old, T.I64)
        self._is_zero = builder.fcmp("oeq", old, _NOTHING)
        self._is_own = self._is(self._code(_LOWER, _UPPER))
        self._is_known = builder.binary("or", self._is_zero, self._is_own)

    def is_of_number(self) -> Value:
        """Whether a tangent other than zero is of what the integer is a part of."""
        return self._builder.binary("xor", self._is_known, const_int(T.I1, 1))

    def overwrite_forward(self) -> None:
        """An integer takes the place of what there was."""
        rest_gone = self._builder.binary("or", self._is_zero, self._is(self._code(_UPPER, _LOWER)))
        self._keep(self._builder.select(rest_gone, _NOTHING, self._number(_LOWER, _UPPER)))

    def tangent(self, kind: T.Type) -> Value:
        """That of the integer: of no number, as far as is known, where the word has none."""
        return tangent(self._builder, kind, [self._builder.select(self._is_known, const_int(T.I64, 0), self._bits)])

    def read_backward(self, varies: Value | None = None) -> None:
        """An integer was read; `varies` says whether something that depends on it was computed of it, if not always."""
        rest = self._builder.select(self._has_other(), _nan(_BOTH), _LASTING)
        read = self._builder.select(self._is_known, self._number(_LOWER, _UPPER), rest)
        self._keep(read if varies is None else self._builder.select(varies, read, self._old))

    def overwrite_backward(self) -> None:
        """An integer had taken the place of what there was."""
        rest = self._builder.select(self._has_other(), self._number(_UPPER, _LOWER), _LASTING)
        self._keep(self._builder.select(self._is_known, _NOTHING, rest))

    def _has_other(self) -> Value:
        """Whether the other half was read as an integer."""
        other = self._is(self._code(_UPPER, _LOWER))
        return self._builder.binary("or", other, self._is(const_int(T.I64, _BOTH)))

    def _is(self, code: Value) -> Value:
        return self._builder.icmp("eq", self._bits, code)

    def _code(self, lower: int, upper: int) -> Value:
        """One of two codes, by where the integer is."""
        if self._is_word:
            return const_int(T.I64, _BOTH)
        return self._builder.select(self._is_upper, const_int(T.I64, upper), const_int(T.I64, lower))

    def _number(self, lower: int, upper: int) -> Value:
        """The same as a number."""
        return _nan(_BOTH) if self._is_word else self._builder.select(self._is_upper, _nan(upper), _nan(lower))

    def _keep(self, value: Value) -> None:
        self._builder.store(value, self._place).metadata = number_access(T.DOUBLE)


def lasting(builder: Builder, adjoint: Value) -> Value:
    """The adjoint of what is computed, and no copy of a word: none of its codes is one of what it is computed of."""
    vector = adjoint.type
    words = T.VectorType(vector.count, T.I64, vector.scalable) if isinstance(vector, T.VectorType) else T.I64
    code = builder.binary("sub", builder.cast("bitcast", adjoint, words), const_int(words, _LOWER))
    known = builder.icmp("ult", code, const_int(words, _BOTH - _LOWER + 1))
    return builder.select(known, const_float(adjoint.type, nan), adjoint)


def _nan(code: int) -> ConstantFloat:
    return ConstantFloat(T.DOUBLE, f"0x{code:016X}")
