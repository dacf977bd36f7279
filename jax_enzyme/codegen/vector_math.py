"""Vector versions of `math.h` from glibc's libmvec, offered to LLVM's vectorisers.

    before    %e = call double @exp(double %x)
    after     %e = call double @llvm.exp.f64(double %x) #1
              #1 = { memory(none) ... "vector-function-abi-variant"="_ZGV_LLVM_N4v_llvm.exp.f64(_ZGVdN4v_exp),..." }

LLVM carries name tables for several vector libraries but no switch for them that we can reach, and without one it
vectorises a loop around `llvm.exp` only to call the scalar function lane by lane. A call that names its vector variants
is vectorised with them. It has to be an intrinsic where there is one, since LLVM makes intrinsics of library calls and
drops their attributes. A call under a condition needs a variant with a mask; libmvec has none, so small wrappers
(`je.masked.*`) replace the arguments of idle lanes by a harmless value.

What is a call for a vector already (iterations in lockstep, vectors in the source) is as many calls of the library as
its lanes take; LLVM would call the scalar function for each.

The functions of libmvec are within 4 ulp, the scalar ones within 1; which elements of a loop are computed by which
depends on the width of the machine. `Options(vector_math=False)` keeps every call scalar.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache, partial

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.host import host
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float
from jax_enzyme.ir.module import Function, GlobalVariable, Module, callee_name, declare, numbered
from jax_enzyme.ir.values import BasicBlock, Constant, ConstantAggregate, Value
from jax_enzyme.transform.rewriting import Change, rewrite

LIBRARY = "libmvec.so.1"
KEPT = "je.vector.functions"
"""What lists the functions that were added, until LLVM has vectorised: nothing else refers to them."""

_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2",
    "expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
_BINARY = ("atan2", "hypot", "pow")
_INTRINSICS = {
    "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10", "log2", "pow", "sin",
    "sinh", "tan", "tanh",
}  # fmt: skip
_PURE = ("nofree", "nosync", "nounwind", "willreturn", "memory(none)")


@dataclass(frozen=True)
class VectorFunction:
    """One function of libmvec, `name`, over vectors of `lanes` elements; `stem` is `exp` for `exp` and `expf`."""

    name: str
    stem: str
    scalar: str
    element: T.FloatType
    lanes: int
    arity: int

    @property
    def type(self) -> T.VectorType:
        return T.VectorType(self.lanes, self.element)

    @property
    def scalar_type(self) -> T.FunctionType:
        return T.FunctionType(self.element, (self.element,) * self.arity)

    @property
    def callee(self) -> str:
        """The intrinsic for the scalar function, or that itself where there is none."""
        if self.stem not in _INTRINSICS:
            return self.scalar
        return f"llvm.{self.stem}.{'f64' if self.element == T.DOUBLE else 'f32'}"

    @property
    def masked_name(self) -> str:
        return f"je.masked.{self.scalar}.{self.lanes}"

    @property
    def variants(self) -> str:
        """What the attribute `vector-function-abi-variant` says of it: without a mask, and with."""
        shape = f"{self.lanes}{'v' * self.arity}_{self.callee}"
        return f"_ZGV_LLVM_N{shape}({self.name}),_ZGV_LLVM_M{shape}({self.masked_name})"


@cache
def vector_functions() -> dict[str, tuple[VectorFunction, ...]]:
    """The vector functions that this machine has, by scalar name; empty where there is no libmvec."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return {}
    letters = [(letter, width) for letter, width, feature in _WIDTHS if host().has(feature)]
    arities = {**dict.fromkeys(_UNARY, 1), **dict.fromkeys(_BINARY, 2)}
    table: dict[str, tuple[VectorFunction, ...]] = {}
    for stem, arity in arities.items():
        for scalar, element, bits in ((stem, T.DOUBLE, 64), (stem + "f", T.FLOAT, 32)):
            candidates = [
                VectorFunction(
                    f"_ZGV{letter}N{width // bits}{'v' * arity}_{scalar}", stem, scalar, element, width // bits, arity
                )
                for letter, width in letters
            ]
            if found := tuple(f for f in candidates if hasattr(library, f.name)):
                table[scalar] = found
    return table


def vector_library() -> str:
    """Which library of vector functions this machine has; empty where there is none. Together with the processor it
    decides what `vector_functions` finds, and asking takes less time."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return ""
    return os.confstr("CS_GNU_LIBC_VERSION") or ""


# The letter of the x86-64 vector ABI, the width in bits, and the processor feature it needs.
_WIDTHS = (("b", 128, "sse4.1"), ("d", 256, "avx2"), ("e", 512, "avx512f"))


def add_vector_math(module: Module) -> bool:
    """Makes the calls of `math.h` in a private module name their vector variants; False where it has no such call.

    A module that reads `errno` is left alone, since the calls are taken to have no effect but their result.
    """
    table = vector_functions()
    if "__errno_location" in module.functions:
        return False
    groups: dict[str, str] = {}

    def pieces(call: I.Instruction) -> Change | None:
        found = _of_lanes(call, table)
        if found is None or not isinstance(call, I.Call):
            return None
        if found.scalar not in groups:
            groups[found.scalar] = _declare(module, table[found.scalar])
        return partial(_in_pieces, call, module.functions[found.name], found.lanes)

    for function in list(module.functions.values()):
        rewrite(function, pieces)
        for instruction in function.instructions():
            scalar = _vectorisable(instruction, table)
            if scalar is None:
                continue
            assert isinstance(instruction, I.Call)
            if scalar not in groups:
                groups[scalar] = _declare(module, table[scalar])
            instruction.operands[-1] = module.functions[table[scalar][0].callee]
            instruction.attributes = (groups[scalar],)
    _keep(module, [name for s in groups for f in table[s] for name in (f.name, f.masked_name)])
    return bool(groups)


def _vectorisable(instruction: I.Instruction, table: dict[str, tuple[VectorFunction, ...]]) -> str | None:
    if not isinstance(instruction, I.Call) or not isinstance(callee := instruction.callee, Function):
        return None
    scalar = scalar_name(callee)
    if scalar not in table or instruction.function_type != table[scalar][0].scalar_type:
        return None
    return None if instruction.bundles or "nobuiltin" in instruction.attributes else scalar


def _of_lanes(call: I.Instruction, table: dict[str, tuple[VectorFunction, ...]]) -> VectorFunction | None:
    """The widest vector function that the lanes of a call for a vector can be given to, all of them."""
    if not isinstance(call, I.Call) or not isinstance(call.type, T.VectorType) or call.type.scalable or call.bundles:
        return None
    parts = callee_name(call).split(".")
    suffix = "" if call.type.element == T.DOUBLE else "f" if call.type.element == T.FLOAT else None
    if len(parts) != 3 or parts[0] != "llvm" or parts[1] not in _INTRINSICS or suffix is None:
        return None
    count = call.type.count
    fitting = [f for f in table.get(parts[1] + suffix, ()) if f.lanes <= count and count % f.lanes == 0]
    pairs = count & (count - 1) == 0  # they are put together two by two
    return max(fitting, key=lambda f: f.lanes) if fitting and pairs else None


def _in_pieces(call: I.Call, callee: Function, lanes: int, at: Builder) -> Value:
    assert isinstance(call.type, T.VectorType)
    starts = range(0, call.type.count, lanes)
    parts: list[Value] = [at.call(callee, [_lanes(at, a, a, start, lanes) for a in call.arguments]) for start in starts]
    while len(parts) > 1:
        lanes *= 2
        parts = [_lanes(at, x, y, 0, lanes) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _lanes(at: Builder, x: Value, y: Value, start: int, count: int) -> Value:
    """So many lanes of two vectors, one behind the other."""
    is_all = x.type == T.VectorType(count, T.scalar(x.type))
    return x if is_all else at.shuffle(x, y, range(start, start + count))


def scalar_name(function: Function) -> str | None:
    """The function of `math.h` that a declaration stands for, `llvm.exp.f32` being `expf`."""
    if not function.is_declaration:
        return None
    match function.name.split("."):
        case ["llvm", stem, "f64"] if stem in _INTRINSICS:
            return stem
        case ["llvm", stem, "f32"] if stem in _INTRINSICS:
            return stem + "f"
        case [name]:
            return name
        case _:
            return None


def _declare(module: Module, vectors: tuple[VectorFunction, ...]) -> str:
    """Declares a scalar function, its vector variants and the masked ones; the attribute group of its calls."""
    name = vectors[0].callee
    kind = vectors[0].scalar_type
    declare(module, name, kind, _PURE)
    for vector in vectors:
        types = (vector.type,) * vector.arity
        callee = Function(
            T.PTR, T.FunctionType(vector.type, types), numbered(types), attributes=_PURE, name=vector.name
        )
        module.functions[vector.name] = callee
        module.functions[vector.masked_name] = _masked(vector, callee)
    number = str(1 + max((int(g) for g in module.attribute_groups), default=-1))
    variants = ",".join(v.variants for v in vectors)
    module.attribute_groups[number] = (*_PURE, f'"vector-function-abi-variant"="{variants}"')
    return f"#{number}"


def _masked(vector: VectorFunction, callee: Function) -> Function:
    mask_type = T.VectorType(vector.lanes, T.I1)
    types = (vector.type,) * vector.arity + (mask_type,)
    *values, mask = arguments = numbered(types)
    block = BasicBlock(name="start")
    at = Builder(block)
    # Inside the domain of every function of the table, and no special case of any.
    harmless = const_float(vector.type, 0.5 if vector.scalar != "acosh" and vector.scalar != "acoshf" else 2.0)
    selected = [at.select(mask, value, harmless) for value in values]
    at.ret(at.call(callee, selected))
    return Function(
        T.PTR,
        T.FunctionType(vector.type, types),
        arguments,
        [block],
        prefix=("internal",),
        attributes=("alwaysinline", *_PURE),
        name=vector.masked_name,
    )


def _keep(module: Module, names: list[str]) -> None:
    """Lists functions in a constant that others could see, since only an attribute refers to them."""
    if not names:
        return
    kind = T.ArrayType(len(names), T.PTR)
    elements: list[Constant] = [module.functions[n] for n in names]
    module.globals[KEPT] = GlobalVariable(T.PTR, kind, ConstantAggregate(kind, elements), is_constant=True, name=KEPT)
