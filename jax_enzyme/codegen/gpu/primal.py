"""A CUDA kernel as a device function.

before    "n: i32, a: f64, x: f64[n], out y: f64[n]", n = 300, grid 2, block 256

          define ptx_kernel void @axpy(i32 %n, double %a, ptr %x, ptr %y) { ... ntid.x() ... tid.y() ... }

after     define i64 @je.primal(ptr %a, ptr %x, ptr %y) {      ; see transform.bind
            %1 = load double, ptr %a
            call void @axpy(i32 300, double %1, ptr %x, ptr %y)
            ret i64 0
          }
          define void @axpy(i32 %n, double %a, ptr %x, ptr %y) { ... 256 ... 0 ... }
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.frontends.program import Program
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import ArrayFunction
from jax_enzyme.ir.builder import const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.inlining import mark_for_inlining
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.passes import optimise
from jax_enzyme.ir.reader import parse
from jax_enzyme.signature import Binding, Signature
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.bind import bind
from jax_enzyme.transform.input_writes import input_writes, refused
from jax_enzyme.transform.retyping import literal_structures
from jax_enzyme.transform.rewriting import substitute

_REGISTER = "llvm.nvvm.read.ptx.sreg."
_KERNEL = ("ptx_kernel",)


def device_primal(program: Program, signature: Signature, binding: Binding) -> DeviceFunction:
    """The kernel itself, as its compiler left it: not inlined, not optimised."""
    assert program.launch is not None
    shape = program.launch.shape(dict(binding.dims))
    module = parse(program.ir)
    literal_structures(module)
    bound = bind(module, program.symbol, signature, binding)
    fix_launch(bound.module, shape)
    for variable in bound.module.globals.values():
        if "addrspace(4)" in variable.prefix:  # Nobody sets it: what callers set is a buffer by now.
            variable.is_constant = True
            variable.prefix = tuple(w for w in variable.prefix if w != "externally_initialized")
    for function in bound.module.functions.values():
        function.prefix = tuple(w for w in function.prefix if w not in _KERNEL)
    _check_inputs(bound)
    return DeviceFunction(bound.module, (bound.symbol,), bound.buffers, shape)


def fix_launch(module: Module, shape: Shape) -> None:
    """Replaces, in place, the extents of block and grid by constants, and indices along an extent of 1 by 0."""
    for function in module.functions.values():
        found = ((i, _constant(i, shape)) for i in function.instructions())
        substitute(function, {i: const_int(T.I32, known) for i, known in found if known is not None})


def _constant(instruction: I.Instruction, shape: Shape) -> int | None:
    name = callee_name(instruction)
    if not name.startswith(_REGISTER):
        return None
    kind, _, axis = name.removeprefix(_REGISTER).partition(".")
    extents = {"ntid": shape.block, "nctaid": shape.grid, "tid": shape.block, "ctaid": shape.grid}.get(kind)
    if extents is None or axis not in ("x", "y", "z"):
        return None
    extent = extents["xyz".index(axis)]
    if kind in ("ntid", "nctaid"):
        return extent
    return 0 if extent == 1 else None


def _check_inputs(bound: ArrayFunction) -> None:
    """JAX's arrays must never change. Before inlining many a pointer seems to lead to where it never does: on suspicion
    the optimised kernel decides. What is suspect even then is refused, as there is no memory for a copy on a GPU."""
    if not input_writes(bound):
        return
    flat = clone(bound.module)
    mark_for_inlining(flat, [bound.symbol])
    function = replace(bound, module=optimise(flat))
    for write in input_writes(function):
        raise refused(function, write)
