"""Small array functions for the tests of code generation."""

from __future__ import annotations

from jax_enzyme.ir.arrays import ArrayFunction, Buffer
from jax_enzyme.ir.reader import read


def array_function(text: str, *buffers: Buffer, symbol: str = "je.primal") -> ArrayFunction:
    """An array function in textual IR."""
    return ArrayFunction(read(text), symbol, buffers)


def vector(name: str, n: int, io: str = "in", dtype: str = "f64") -> Buffer:
    """A buffer of n numbers; an `out` one is filled with zeros, as the binder does it."""
    return Buffer(name, dtype, (n,), io, zero=io == "out")  # type: ignore[arg-type]


def elementwise(expression: str, n: int, type_: str = "double", declarations: str = "") -> str:
    """`for (i = 0; i < n; i++) y[i] = f(x[i])`: `expression` makes %y of %x."""
    return f"""
define i64 @je.primal(ptr noalias %in, ptr noalias %out) {{
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds {type_}, ptr %in, i64 %i
  %x = load {type_}, ptr %from
  {expression}
  %to = getelementptr inbounds {type_}, ptr %out, i64 %i
  store {type_} %y, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, {n}
  br i1 %more, label %loop, label %done

done:
  ret i64 0
}}
{declarations}
"""
