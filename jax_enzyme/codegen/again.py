"""Reverse sweeps that run once more with their masks, where a cotangent that they leave is no number.

    before    %status = call i64 @f(...)        after    save what f writes over
                                                         %status = call i64 @f(...)
                                                         if some cotangent is NaN: restore, call @je.careful(...)

`f` has no masks (`transform.unmasked`), `je.careful`, of another module, is the same with them. Both start from the
same contents of all buffers; which of them a result is of depends on what goes in alone, and so does each of its bits.
"""

from __future__ import annotations

from jax_enzyme.ad.emit.runtime import defined
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.values import ConstantNull, Value
from jax_enzyme.rules.declare import Declarations

CAREFUL = "je.careful"
_LINE = 64
_INFINITE = {
    "f16": (16, 0xF800), "bf16": (16, 0xFF00), "f32": (32, 0xFF000000), "c64": (32, 0xFF000000),
    "f64": (64, 0xFFE0000000000000), "c128": (64, 0xFFE0000000000000),
}  # fmt: skip
"""How many bits the numbers of a buffer have, and those of infinity without the sign, one place to the left."""
_LOOK = """
define internal i1 @je.some_nan.iN(ptr %p, i64 %count, iN %infinity) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %found = phi i1 [ false, %entry ], [ %either, %loop ]
  %at = getelementptr inbounds iN, ptr %p, i64 %i
  %bits = load iN, ptr %at, align 1
  %size = shl iN %bits, 1
  %is_nan = icmp ugt iN %size, %infinity
  %either = or i1 %found, %is_nan
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %exit

exit:
  ret i1 %either
}
"""


class Again:
    """What it takes to run a function once more, which is handed buffers as `careful` says: the contents of those that
    it writes over, in a block of memory that is made at the start, and a look at what it leaves."""

    def __init__(self, module: Module, buffers: tuple[Buffer, ...], careful: tuple[Buffer, ...], at: Builder) -> None:
        self._buffers, self.careful = buffers, careful
        self._calls = Declarations(module)
        kind = T.FunctionType(T.I64, (T.PTR,) * len(buffers))
        self.function = self._calls.function(CAREFUL, kind)
        self._offsets: dict[int, int] = {}
        size = 0
        for index, buffer in enumerate(buffers):
            if buffer.io == "inout" and buffer.nbytes:
                self._offsets[index] = size
                size += -(-buffer.nbytes // _LINE) * _LINE
        self._saved = self._calls.memory(at, "malloc", const_int(T.I64, size)) if size else None

    def is_missing(self, at: Builder) -> Value | None:
        """Whether that memory could not be had; None where none is needed."""
        return None if self._saved is None else at.icmp("eq", self._saved, ConstantNull(T.PTR))

    def save(self, at: Builder, operands: list[Value]) -> None:
        """Before the first run."""
        for index, place in self._places(at):
            self._calls.memory(at, "memcpy", place, operands[index], const_int(T.I64, self._buffers[index].nbytes))

    def is_needed(self, at: Builder, operands: list[Value]) -> Value:
        """Whether a cotangent is no number."""
        found: Value = const_int(T.I1, 0)
        for buffer, pointer in zip(self._buffers, operands, strict=True):
            if buffer.role == "shadow" and buffer.is_result and buffer.nbytes:
                bits, infinity = _INFINITE[buffer.dtype]
                look = defined(self._calls.module, f"je.some_nan.i{bits}", _LOOK.replace("iN", f"i{bits}"))
                count = const_int(T.I64, 8 * buffer.nbytes // bits)
                found = at.binary("or", found, at.call(look, [pointer, count, const_int(T.IntType(bits), infinity)]))
        return found

    def restored(self, at: Builder, operands: list[Value]) -> list[Value]:
        """Buffers for the second run: of one whose contents mean nothing afterwards the copy, since it may be the
        caller's own."""
        operands = list(operands)
        for index, place in self._places(at):
            if self._buffers[index].discard:
                operands[index] = place
            else:
                self._calls.memory(at, "memcpy", operands[index], place, const_int(T.I64, self._buffers[index].nbytes))
        return operands

    def end(self, at: Builder) -> None:
        """Where control leaves."""
        if self._saved is not None:
            self._calls.memory(at, "free", self._saved)

    def _places(self, at: Builder) -> list[tuple[int, Value]]:
        saved = self._saved
        return [] if saved is None else [(index, at.offset(saved, begin)) for index, begin in self._offsets.items()]
