"""Derivatives in blocks of 128 threads, where the kernel's blocks have more than 256 and nothing depends on them.

    a block of 1024 has 64 registers for each thread, and derivatives take more than their kernel

    before    grid (n, 1, 1), block (1024, 1, 1)       after    grid (8 n, 1, 1), block (128, 1, 1)
              ctaid.x * 1024 + tid.x                            ctaid.x * 128 + tid.x
              ctaid.x                                           ctaid.x / 8
              tid.x                                             ctaid.x % 8 * 128 + tid.x

What threads of a block do together, barriers and shared memory, binds them to it. Warps stay as they are: of the axes
along which a block extends, the slowest one is divided first.
"""

from __future__ import annotations

from dataclasses import replace

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Module, callee_name
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.effects import Effect, effect
from jax_enzyme.signature.launch import MAX_GRID, Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE
from jax_enzyme.transform.device.flat import SHARED, STATE
from jax_enzyme.transform.device.registers import REGISTER, register
from jax_enzyme.transform.rewriting import Change, remove_dead, rewrite

_MOST = 256
_WANTED = 128
"""Threads of a block in which NVIDIA's assembler gives each as many registers as it can use. (In one of 256 it was seen
to stop at 128.)"""
_KNOWN = tuple(f"{REGISTER}{kind}.{axis}" for kind in ("tid", "ctaid") for axis in "xyz")
_BLOCK = (Effect.BARRIER, Effect.FENCE)


def in_smaller_blocks(function: DeviceFunction) -> DeviceFunction:
    """The same of a function in canonical form, with more blocks; itself where its blocks are no larger, or matter."""
    split = _split(function.shape)
    if split is None or not _is_free(function.module):
        return function
    axis, parts = split
    module = clone(function.module)
    extents = (function.shape.grid["xyz".index(axis)], function.shape.block["xyz".index(axis)])
    for code in list(module.functions.values()):
        rewrite(code, _Division(module, axis, parts, *extents).change)
        remove_dead(code)
    return replace(function, module=module, shape=_divided(function.shape, axis, parts))


def _split(shape: Shape) -> tuple[str, int] | None:
    """The axis that is divided, and into how many parts."""
    (axis,) = [a for a, extent in zip("xyz", shape.block, strict=True) if extent > 1][-1:] or ("",)
    if shape.threads <= _MOST:
        return None
    place = "xyz".index(axis)
    for parts in range(-(-shape.threads // _WANTED), shape.block[place] + 1):
        fits = shape.grid[place] * parts <= MAX_GRID[place]
        if shape.block[place] % parts == 0 and shape.threads // parts % WARP_SIZE == 0 and fits:
            return axis, parts
    return None


def _divided(shape: Shape, axis: str, parts: int) -> Shape:
    def scaled(extents: tuple[int, int, int], up: int, down: int) -> tuple[int, int, int]:
        x, y, z = (e * up // down if a == axis else e for a, e in zip("xyz", extents, strict=True))
        return x, y, z

    return replace(shape, grid=scaled(shape.grid, parts, 1), block=scaled(shape.block, 1, parts))


def _is_free(module: Module) -> bool:
    """Whether nothing in a module depends on what a block is."""
    if any(name.startswith((SHARED, STATE)) for name in module.globals):
        return False
    for function in module.functions.values():
        for instruction in function.instructions():
            name = callee_name(instruction)
            if isinstance(instruction, I.Fence | I.CmpXchg) or effect(name) in _BLOCK:
                return False
            other = name.startswith("llvm.nvvm.bar") or name.startswith("__je_barrier")
            if other or (name.startswith(REGISTER) and name not in (*_KNOWN, f"{REGISTER}laneid")):
                return False
            if isinstance(instruction, I.CallBase) and name == "":
                return False  # inline assembly may read any register
    return True


class _Division:
    """Of one axis, with so many blocks and threads along it."""

    def __init__(self, module: Module, axis: str, parts: int, blocks: int, threads: int) -> None:
        self._module = module
        self._axis = axis
        self._parts = parts
        self._blocks = blocks * parts
        self._before = threads
        self._threads = threads // parts

    def change(self, instruction: I.Instruction) -> Change | None:
        if self._is_whole(instruction):
            return lambda at: self._number(at, instruction.type)
        name = callee_name(instruction)
        if name == f"{REGISTER}tid.{self._axis}":
            return self._thread
        if name == f"{REGISTER}ctaid.{self._axis}":
            return lambda at: at.binary("udiv", self._block(at), const_int(T.I32, self._parts))
        return None

    def _block(self, at: Builder) -> Value:
        return register(self._module, at, f"ctaid.{self._axis}", self._blocks)

    def _own(self, at: Builder) -> Value:
        return register(self._module, at, f"tid.{self._axis}", self._threads)

    def _thread(self, at: Builder) -> Value:
        part = at.binary("urem", self._block(at), const_int(T.I32, self._parts))
        first = at.binary("mul", part, const_int(T.I32, self._threads), ("nuw", "nsw"))
        return at.binary("add", first, self._own(at), ("nuw", "nsw"))

    def _number(self, at: Builder, type_: T.Type) -> Value:
        """The number of a thread along the axis, of all of them."""
        block, own = self._block(at), self._own(at)
        if type_ != T.I32:
            block, own = at.cast("zext", block, type_), at.cast("zext", own, type_)
        return at.binary("add", at.binary("mul", block, const_int(type_, self._threads)), own)

    def _is_whole(self, value: I.Instruction) -> bool:
        """Whether an instruction is `ctaid * threads + tid`."""
        if not isinstance(value, I.BinaryOp) or not (value.opcode == "add" or "disjoint" in value.flags):
            return False
        if value.type not in (T.I32, T.I64):
            return False
        for scaled, own in (value.operands, value.operands[::-1]):
            if self._is(own, "tid") and isinstance(scaled, I.BinaryOp) and self._is(scaled.operands[0], "ctaid"):
                known = int_value(scaled.operands[1])
                factor = 1 << known if scaled.opcode == "shl" and known is not None and 0 <= known < 32 else known
                if scaled.opcode in ("mul", "shl") and factor == self._before:
                    return True
        return False

    def _is(self, value: Value, kind: str) -> bool:
        while isinstance(value, I.Cast) and value.opcode == "zext":
            value = value.operands[0]
        return callee_name(value) == f"{REGISTER}{kind}.{self._axis}" if isinstance(value, I.Call) else False
