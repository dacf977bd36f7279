"""Declares the functions that formulas call, in the module that is being built.

A function has three possible homes: an LLVM intrinsic (preferred: the optimiser knows it, and it takes vectors), the C
library, or a helper of ours (`je.*`, such as the digamma function). Helpers are only *declared* here, so that
differentiating again sees a call with a rule; `rules.helpers.link` adds their bodies when no derivative is to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_float, const_int
from jax_enzyme.ir.module import Function, Module, declare
from jax_enzyme.ir.values import Poison, Value
from jax_enzyme.rules.complex import ANALYTIC

PURE = ("nounwind", "willreturn", "memory(none)")

INTRINSICS: Mapping[str, str] = {
    **{
        name: name
        for name in (
            "sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 exp10 log log2 log10 pow powi sqrt fma fabs "
            "copysign floor ceil trunc rint nearbyint round roundeven maximum minimum ldexp"
        ).split()
    },
    "fmax": "maxnum",
    "fmin": "minnum",
}
LIBRARY = frozenset(
    "asinh acosh atanh cbrt hypot expm1 log1p erf erfc tgamma lgamma j0 j1 jn y0 y1 yn fmod remainder fdim".split()
)
HELPERS = frozenset(
    "digamma polygamma frexp_exponent frexp_fraction modf_fraction remquo_quotient lgamma_sign digit_size".split()
    + ["cpowi_re", "cpowi_im"]
    + [f"{function.name}_{part}" for function in ANALYTIC for part in ("re", "im")]
)
_INTEGER_RESULTS = frozenset({"frexp_exponent", "remquo_quotient", "lgamma_sign"})
_PARAMETERS: Mapping[str, str] = {
    "powi": "fi", "ldexp": "fi", "jn": "if", "yn": "if", "polygamma": "if",
    "cpowi_re": "ffi", "cpowi_im": "ffi",
}  # fmt: skip
_SUFFIX = {"float": "f", "double": "", "x86_fp80": "l", "fp128": "l", "ppc_fp128": "l"}
_OVERLOAD = {
    "half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64",
    "x86_fp80": "f80", "fp128": "f128", "ppc_fp128": "ppcf128",
}  # fmt: skip


def parameter_letters(name: str, count: int) -> str:
    """`f` or `i` for each argument of a function that formulas may call."""
    return _PARAMETERS.get(name, "f" * count)


def overload(type_: T.Type) -> str:
    """The suffix that an intrinsic's name has for a type: `f64`, `v4f32`, `i32`."""
    match type_:
        case T.VectorType(count, element, scalable):
            return f"{'nx' if scalable else ''}v{count}{overload(element)}"
        case T.FloatType(kind):
            return _OVERLOAD[kind]
        case T.IntType(bits):
            return f"i{bits}"
        case _:
            raise ValueError(f"no intrinsic is overloaded by {type_}")


class Declarations:
    """Finds or declares functions in `module`."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def function(self, name: str, type_: T.FunctionType, attributes: tuple[str, ...] = ()) -> Function:
        """The function of that name and type, declared if it is new to the module."""
        found = self.module.symbol(name)
        if found is None:
            found = declare(self.module, name, type_, attributes)
        if not isinstance(found, Function) or found.value_type != type_:
            raise ValueError(f"the module has a symbol {name} that is no {type_}: a derivative needs the C function")
        return found

    def invoke(
        self,
        builder: Builder,
        name: str,
        result: T.Type,
        arguments: Sequence[Value] = (),
        words: tuple[str, ...] = (),
        attributes: tuple[str, ...] = (),
    ) -> I.Call:
        """Calls the function of that name, which takes what it is given; declared with those words if it is new."""
        type_ = T.FunctionType(result, tuple(a.type for a in arguments))
        return builder.call(self.function(name, type_, words), arguments, attributes=attributes)

    def memory(self, builder: Builder, name: str, *arguments: Value) -> I.Call:
        """Calls `malloc`, `calloc`, `aligned_alloc` or `free` of the C library, or LLVM's `memcpy`, `memmove`
        or `memset`. Sizes have 64 bits."""
        if name.startswith("mem"):
            pointers = "p0" if name == "memset" else "p0.p0"
            name, arguments = f"llvm.{name}.{pointers}.i64", (*arguments, const_int(T.I1, 0))
        result = T.PTR if name.endswith("alloc") else T.VOID
        return self.invoke(builder, name, result, arguments)

    def call(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.Type) -> Value:
        """Calls a function by its canonical name on floating-point arguments of `type_`, and integers where it has
        them. Integer results are i32, or a vector of them."""
        arguments = self._adapted(builder, name, arguments, type_)
        if name == "powi" and T.scalar(arguments[1].type) != T.I32:
            return self.call(builder, "pow", [arguments[0], _to_float(builder, arguments[1], type_)], type_)
        if name in INTRINSICS:
            return self._intrinsic(builder, name, arguments, type_)
        if isinstance(type_, T.VectorType):
            return self._by_lane(builder, name, arguments, type_)
        if name in HELPERS:
            return self._helper(builder, name, arguments, type_)
        return self._library(builder, name, arguments, type_)

    def _adapted(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.Type) -> list[Value]:
        """The arguments with integers in the width that the function takes."""
        adapted = list(arguments)
        for index, letter in enumerate(parameter_letters(name, len(adapted))):
            if letter == "i" and name != "powi":
                adapted[index] = _to_i32(builder, adapted[index])
        if name == "ldexp" and isinstance(type_, T.VectorType):
            adapted[1] = splat(builder, adapted[1], type_)
        return adapted

    def _intrinsic(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.Type) -> Value:
        suffixes = [overload(type_)]
        if name in ("powi", "ldexp"):
            suffixes.append(overload(arguments[1].type))
        symbol = ".".join(["llvm", INTRINSICS[name], *suffixes])
        return self.invoke(builder, symbol, type_, arguments)

    def _library(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.Type) -> Value:
        assert isinstance(type_, T.FloatType)
        symbol = name + _SUFFIX[type_.kind] if name in LIBRARY else name
        if name not in LIBRARY and symbol not in self.module.functions and not self._has_user_rules:
            raise ValueError(f"a formula calls {name}, which is neither known nor in the module")
        return self.invoke(builder, symbol, type_, arguments, PURE, PURE)

    @property
    def _has_user_rules(self) -> bool:
        """Their formulas may call anything that the process has."""
        return "je.rules" in self.module.named_metadata

    def _helper(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.Type) -> Value:
        """Helpers exist for doubles only: what is narrower is widened and rounded once."""
        widened = [_convert(builder, a, T.DOUBLE) if T.is_float(a.type) else a for a in arguments]
        result: T.Type = T.I32 if name in _INTEGER_RESULTS else T.DOUBLE
        value = self.invoke(builder, f"je.{name}.f64", result, widened, PURE, PURE)
        return value if result == T.I32 else _convert(builder, value, type_)

    def _by_lane(self, builder: Builder, name: str, arguments: Sequence[Value], type_: T.VectorType) -> Value:
        if type_.scalable:
            raise ValueError(f"{name} has no form for vectors of unknown length")
        found: list[Value] = []
        for lane in range(type_.count):
            parts = [builder.extract_element(a, lane) if isinstance(a.type, T.VectorType) else a for a in arguments]
            found.append(self.call(builder, name, parts, type_.element))
        return builder.pack(T.VectorType(type_.count, found[0].type), found)


def splat(builder: Builder, value: Value, like: T.Type) -> Value:
    """`value` in every lane of a vector as long as `like`; itself where it is a vector already or `like` is none."""
    if not isinstance(like, T.VectorType) or isinstance(value.type, T.VectorType):
        return value
    vector = T.VectorType(like.count, value.type, like.scalable)
    first = builder.insert_element(Poison(vector), value, 0)
    mask_type = T.VectorType(like.count, T.I32, like.scalable)
    return builder.insert(
        I.ShuffleVector(vector, "shufflevector", [first, Poison(vector)], (0,) * like.count, mask_type)
    )


def real_constant(builder: Builder, value: float, type_: T.Type) -> Value:
    """A floating-point constant of any type; the wide types get the double that is nearest to the number."""
    kind = T.scalar(type_)
    if isinstance(kind, T.FloatType) and kind.kind in ("half", "bfloat", "float", "double"):
        return const_float(type_, value)
    return splat(builder, builder.cast("fpext", const_float(T.DOUBLE, value), kind), type_)


def _width(type_: T.Type) -> int:
    kind = T.scalar(type_)
    assert isinstance(kind, T.FloatType)
    return {"half": 16, "bfloat": 16, "float": 32, "double": 64}.get(kind.kind, 128)


def _convert(builder: Builder, value: Value, type_: T.Type) -> Value:
    if T.scalar(value.type) == T.scalar(type_):
        return value
    return builder.cast("fpext" if _width(value.type) < _width(type_) else "fptrunc", value, type_)


def _to_float(builder: Builder, value: Value, type_: T.Type) -> Value:
    if isinstance(value.type, T.VectorType):
        return builder.cast("sitofp", value, type_)
    return splat(builder, builder.cast("sitofp", value, T.scalar(type_)), type_)


def _to_i32(builder: Builder, value: Value) -> Value:
    """An integer argument as C's int. Wider ones are clamped: they are exponents, and these lie far inside."""
    kind = T.scalar(value.type)
    assert isinstance(kind, T.IntType)
    if kind.bits == 32:
        return value
    to = T.VectorType(value.type.count, T.I32) if isinstance(value.type, T.VectorType) else T.I32
    if kind.bits < 32:
        return builder.cast("sext", value, to)
    low, high = const_int(value.type, -(1 << 30)), const_int(value.type, 1 << 30)
    value = builder.select(builder.icmp("slt", value, low), low, value)
    value = builder.select(builder.icmp("sgt", value, high), high, value)
    return builder.cast("trunc", value, to)
