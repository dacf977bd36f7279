"""What LLVM calls to round numbers to `bfloat`, where the processor has no instruction for that.

The compiler's run-time library has these functions only when it is newer than many systems are (libgcc 13), so modules
with such numbers bring their own. Bodies are of integers: rounding in them would call them again.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.ir.native import native_from_text

# To the nearest, ties to even; a number that is not one stays so, and is quiet. From double precision by way of single
# precision rounded to odd (Boldo and Melquiond 2008), so that nothing is rounded twice. Nothing in the IR calls
# them before code is generated: their linkage keeps them until then.
_FUNCTIONS = """
define weak_odr hidden bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %upper, 64
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
define weak_odr hidden bfloat @__truncdfbf2(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %bits = bitcast float %near to i32
  %last = and i32 %bits, 1
  %even = icmp eq i32 %last, 0
  %inexact = fcmp one double %back, %x
  %moves = and i1 %even, %inexact
  %bits.of.x = bitcast double %x to i64
  %bits.of.back = bitcast double %back to i64
  %size = and i64 %bits.of.x, 9223372036854775807
  %size.of.back = and i64 %bits.of.back, 9223372036854775807
  %beyond = icmp ugt i64 %size.of.back, %size
  %step = select i1 %beyond, i32 -1, i32 1
  %moved = add i32 %bits, %step
  %chosen = select i1 %moves, i32 %moved, i32 %bits
  %odd = bitcast i32 %chosen to float
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}
"""


def add_bfloat_rounding(native: llvm.ModuleRef, context: llvm.ContextRef) -> None:
    """Defines the functions, in place, in a module of this context; what the module defines itself stays."""
    target = f'target datalayout = "{native.data_layout}"\ntarget triple = "{native.triple}"\n'
    native.link_in(native_from_text(target + _FUNCTIONS, context))
