"""Special registers as numbers of the launch, or with the ranges that the launch gives them; shuffles in one form.

before    %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()       after    %t = call range(i32 0, 128) i32 @llvm...tid.x()
          %b = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()               128
          %y = call float @llvm.nvvm.shfl.sync.bfly.f32(                %y = call float @__je_shuffle_f32(
                 i32 %mask, float %x, i32 1, i32 31)                           i32 %mask, float %x, i32 %source)

The lane that a shuffle reads from is a number like any other then, whatever the source's way to say it.
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.cuda.shuffles import WARP_SIZE, source_lane
from jax_enzyme.transform.rewriting import Change, rewrite

REGISTER = "llvm.nvvm.read.ptx.sreg."
LANE = "__je_lane"
WARP_ADD = "je.warp.add."
"""How functions begin that add what the lanes of a warp have to memory."""
EXACT = "je.exact."
"""How functions begin that keep sums in integers."""
WARP_WORDS = ("convergent", "nounwind")
"""Attributes of what the lanes of a warp do together."""

_LANE_WORDS = ("nounwind", "willreturn", "memory(none)")
_SHUFFLE = "llvm.nvvm.shfl.sync."
_AXES = "xyz"


def lower_registers(module: Module, shape: Shape) -> None:
    """Rewrites all functions of a private module."""
    for function in list(module.functions.values()):
        rewrite(function, lambda instruction: _change(module, instruction, shape))


def register(module: Module, at: Builder, name: str, extent: int) -> Value:
    """A special register such as `tid.x`, which is less than `extent`."""
    if extent == 1:
        return const_int(T.I32, 0)
    words = ("nocallback", "nofree", "nosync", "nounwind", "speculatable", "willreturn", "memory(none)")
    call = Declarations(module).invoke(at, REGISTER + name, T.I32, words=words)
    call.return_attributes = (f"range(i32 0, {extent})",)
    return call


def lane_number(module: Module, at: Builder) -> Value:
    """The number of the thread in its warp (i32)."""
    return Declarations(module).invoke(at, LANE, T.I32, words=_LANE_WORDS)


def declare_registers(module: Module) -> None:
    """Declares, in place, what derivatives call: code that is emitted for several modules can name it then."""
    at = Builder(BasicBlock())
    for kind in ("tid", "ctaid"):
        for axis in _AXES:
            register(module, at, f"{kind}.{axis}", 2)
    lane = lane_number(module, at)
    assert isinstance(lane, I.Call) and isinstance(lane.callee, Function)
    lane.callee.attributes = _LANE_WORDS
    for name in ("__je_ballot", "__je_shuffle_i32"):
        count = 2 if name == "__je_ballot" else 3
        Declarations(module).function(name, T.FunctionType(T.I32, (T.I32,) * count), WARP_WORDS)


def thread_number(module: Module, at: Builder, shape: Shape) -> Value:
    """The number of the thread in the grid (i64), x running fastest, threads before blocks."""
    blocks = block_number(module, at, shape)
    inside = _linear(module, at, "tid", shape.block)
    first = at.binary("mul", blocks, const_int(T.I64, shape.threads), ("nuw", "nsw"))
    return at.binary("add", first, inside, ("nuw", "nsw"))


def block_number(module: Module, at: Builder, shape: Shape) -> Value:
    """The number of the block in the grid (i64)."""
    return _linear(module, at, "ctaid", shape.grid)


def thread_in_block(module: Module, at: Builder, shape: Shape) -> Value:
    """The number of the thread in its block (i32)."""
    return at.cast("trunc", _linear(module, at, "tid", shape.block), T.I32)


def _linear(module: Module, at: Builder, kind: str, extents: tuple[int, int, int]) -> Value:
    narrow = (register(module, at, f"{kind}.{axis}", e) for axis, e in zip(_AXES, extents, strict=True))
    x, y, z = (at.cast("zext", v, T.I64, ("nneg",)) for v in narrow)
    if extents[2] > 1:
        y = at.binary("add", at.binary("mul", z, const_int(T.I64, extents[1]), ("nuw", "nsw")), y, ("nuw", "nsw"))
    if extents[1] > 1 or extents[2] > 1:
        x = at.binary("add", at.binary("mul", y, const_int(T.I64, extents[0]), ("nuw", "nsw")), x, ("nuw", "nsw"))
    return x


def _change(module: Module, instruction: I.Instruction, shape: Shape) -> Change | None:
    name = callee_name(instruction)
    if not isinstance(instruction, I.Call) or not name.startswith((REGISTER, _SHUFFLE)):
        return None
    if name.startswith(_SHUFFLE):
        return lambda at: _shuffle(module, at, instruction, name.removeprefix(_SHUFFLE))
    known = _register(instruction, name.removeprefix(REGISTER), shape)
    return None if known is instruction else lambda _: known


def _register(call: I.Call, name: str, shape: Shape) -> Value:
    kind, _, axis = name.partition(".")
    extents = {"tid": shape.block, "ntid": shape.block, "ctaid": shape.grid, "nctaid": shape.grid}.get(kind)
    if extents is not None and axis and axis in _AXES:
        extent = extents[_AXES.index(axis)]
        if kind.startswith("n"):
            return const_int(T.I32, extent)
        if extent == 1:
            return const_int(T.I32, 0)
        call.return_attributes = (f"range(i32 0, {extent})",)
    elif kind == "warpsize":
        return const_int(T.I32, WARP_SIZE)
    return call


def _shuffle(module: Module, at: Builder, call: I.Call, name: str) -> Value:
    mode, kind = name.split(".")
    mask, value, offset, clamp = call.arguments
    source, inside = source_lane(at, mode, lane_number(module, at), offset, clamp)
    name = f"__je_shuffle_{kind.removesuffix('p')}"
    made = Declarations(module).invoke(at, name, value.type, [mask, value, source], WARP_WORDS)
    if not kind.endswith("p"):
        return made
    return at.pack(call.type, [made, inside])
