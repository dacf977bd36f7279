"""The public kernel object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.core import Tracer

from jax_enzyme.display import pages
from jax_enzyme.errors import ArgumentError, JaxEnzymeError, LoweringError, SignatureError
from jax_enzyme.frontends import Program
from jax_enzyme.frontends.spelling import spelling
from jax_enzyme.options import Options
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.bound import Operand, bind
from jax_enzyme.primitives.calls import Calls, calls_of
from jax_enzyme.primitives.joining import joined
from jax_enzyme.primitives.known import known_integers
from jax_enzyme.primitives.tuning import Subject, check_timed, fastest
from jax_enzyme.signature import (
    RETURN,
    Actual,
    Binding,
    Param,
    Signature,
    arguments,
    inspect_signature,
    match,
    result_of,
    returned,
)
from jax_enzyme.signature import bind as bind_arguments
from jax_enzyme.signature.call import does_not_fit, fits
from jax_enzyme.signature.params import INTEGERS
from jax_enzyme.xla_ffi.backend import Backend, platforms_of
from jax_enzyme.xla_ffi.call import signature_dtype
from jax_enzyme.xla_ffi.function import Function, Specialised, function

if TYPE_CHECKING:
    from jax_enzyme.codegen.inspection import Report

Others = tuple[tuple[str, "Kernel"], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A kernel: an immutable value, equal to any other of the same contents. Call it like a function of arrays.
    `others` are implementations for other platforms: see `on`."""

    program: Program
    signature: Signature
    options: Options = field(default_factory=Options)
    others: Others = ()
    backend: Backend | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", _description(self))  # what help() shows

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs or self.signature.formals or len(args) != len(self._integers):
                args = match(self.signature, args, kwargs)
            return self._result(args)
        except JaxEnzymeError as error:
            raise compat.at_the_call(error) from None
        except (TypeError, ValueError) as error:
            return self._again(args, error)

    def _result(self, args: Sequence[Any]) -> Any:
        """The result for values of the signature's parameters, in its order."""
        integers = self._integers
        for value in args:
            if isinstance(value, Tracer):
                return self._bind(args)
            if isinstance(value, np.ndarray):
                if isinstance(value, np.ma.MaskedArray):
                    self.binding(args)  # an error: jax.jit takes it for the array that it was last called with
                if not value.dtype.isnative:
                    return self._result(tuple(map(_plain, args)))
        for place, param in self._whole:
            _check_range(param, args[place])
        static: tuple[tuple[str, int], ...] = ()
        dynamic = args
        if self._any_integer:
            values = [_constant(value, i) if i else None for i, value in zip(integers, args, strict=True)]
            static = tuple((i.name, v) for i, v in zip(integers, values, strict=True) if i and v is not None)
            dynamic = tuple(value for v, value in zip(values, args, strict=True) if v is None)
        return self._calls.get(static, lambda: _compiled_call(replace(self), static))(*dynamic)

    def _again(self, args: Sequence[Any], error: Exception) -> Any:
        """After jax.jit has refused arguments, or a handler has reported a failure."""
        plain = tuple(map(_plain, args))
        try:
            if any(v is not given for v, given in zip(plain, args, strict=True)):
                return self._result(plain)
            self.binding(args)  # where an argument is to blame, it is named
        except JaxEnzymeError as named:
            raise compat.at_the_call(named) from None
        except (TypeError, ValueError) as again:
            error = again
        raise compat.as_reported(error) from None

    @property
    def __name__(self) -> str:
        return self.program.symbol

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect_signature(self.signature)

    @cached_property
    def _identity(self) -> tuple[str, Signature, Options, Others]:
        return self.program.key, self.signature, self.options, self.others

    @cached_property
    def _calls(self) -> Calls:
        """Compiled calls for arguments that are no tracers."""
        programs = dict.fromkeys(kernel.program.key for kernel in self.implementations.values())
        return calls_of(self._identity, [calls_of(key) for key in programs])

    def kept(self, which: Hashable, make: Callable[[Kernel], Any]) -> Any:
        """What is compiled of this kernel, by what tells it apart; made, of an equal kernel, where it is not there."""
        return self._calls.get(which, lambda: make(replace(self)))

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Kernel) and self._identity == other._identity)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in arguments(self.signature))
        results = ", ".join(r.name for r in returned(self.signature))
        places: dict[Kernel, list[str]] = {}
        for platform, implementation in self.implementations.items():
            places.setdefault(implementation, []).append(platform)
        runs = "; ".join(
            ", ".join((one.program.lang, " ".join(platforms), *_chosen(one.options)))
            for one, platforms in places.items()
        )
        called = replace(spelling(self.program.symbol), parameters=None)
        return f"Kernel {called}({names}) -> {results} [{runs}]"

    def _repr_html_(self) -> str:
        params = ((p.name, _described(p), "") for p in self.signature.caller_params)
        results = ((r.name, _described(r), "result") for r in self.signature.results)
        return pages.heading(repr(self)) + pages.table((*params, *results))

    def __reduce__(self) -> tuple[type[Kernel], tuple[Program, Signature, Options, Others]]:
        return (Kernel, (self.program, self.signature, self.options, self.others))

    def on(self, platform: str, other: Kernel) -> Kernel:
        """This function, with another implementation on a platform ("cpu", or "cuda", which is "gpu" too):

            >>> signature = "n: i32, x: f32[n], out y: f32[n]"
            >>> body = "y[i] = 2 * x[i];"
            >>> cuda = "__global__ void f(int n, const float *x, float *y) { int i = threadIdx.x; " + body + " }"
            >>> c = "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) " + body + " }"
            >>> on_gpus = je.kernel(cuda, "f", signature, lang="cuda", grid=1, block="n")
            >>> both = on_gpus.on("cpu", je.kernel(c, "f", signature, lang="c"))
            >>> print(both(jnp.ones(3)))
            [2. 2. 2.]

        Which one runs is decided when JAX lowers a program for a platform. Both have the same parameters and results;
        dimensions may be passed in other places and types, or not at all.
        """
        if not isinstance(cast("object", other), Kernel):
            kind = type(other).__name__
            raise SignatureError(f"`on` joins kernels, and this is a {kind}", None, "make it by je.kernel")
        return replace(self, others=joined(self, self.others, platform, other, other.implementations))

    @cached_property
    def implementations(self) -> dict[str, Kernel]:
        """What runs on each platform that there is code for."""
        alone = replace(self, others=()) if self.others else self
        return {**dict.fromkeys(platforms_of(self.program, self.signature), alone), **dict(self.others)}

    @cached_property
    def _integers(self) -> tuple[Param | None, ...]:
        """The caller's parameters; None in the place of those where a Python int is no constant of the kernel."""
        return tuple(
            p if p.is_scalar and p.direction == "in" and p.dtype in INTEGERS else None
            for p in self.signature.caller_params
        )

    @cached_property
    def _whole(self) -> tuple[tuple[int, Param], ...]:
        """The caller's parameters that are integers of any shape, with their places."""
        return tuple((i, p) for i, p in enumerate(self.signature.caller_params) if p.dtype in INTEGERS)

    @cached_property
    def _any_integer(self) -> bool:
        return any(self._integers)

    def specialise(self, binding: Binding) -> Function:
        """The function that this kernel is for one set of dimensions and static integers."""
        every = self.implementations
        here = compat.default_platform() if len(every) > 1 else ""
        first = here if here in every else next(iter(every))
        made = [kernel._specialised(binding, platform) for platform, kernel in every.items()]
        home = next(one for one in made if one.platform == first)
        rest = tuple(one for one in made if one is not home)
        return function(replace(home, others=rest) if rest else home)

    def _specialised(self, binding: Binding, platform: str) -> Specialised:
        return Specialised(self.program, self.signature, binding, self.options, platform, self.backend)

    def inspect(self, *args: Any, wrt: int | str | Sequence[int | str] | None = None, **kwargs: Any) -> Report:
        """What the engine makes of this kernel for arguments of these shapes: activity, what is taped or recomputed and
        why, and the IR of each derived function. Arguments are arrays or `jax.ShapeDtypeStruct`s; `wrt` are the numbers
        or names of those whose derivatives are asked for, all by default. The report prints well.
        """
        from jax_enzyme.codegen.inspection import inspect as report  # LLVM takes a while to load

        binding = self.binding(match(self.signature, args, kwargs))
        return report(self.program, self.signature, binding, self.options, _names(self.signature.caller_params, wrt))

    def tune(self, *args: Any, wrt: int | str | Sequence[int | str] | None = None, **kwargs: Any) -> Kernel:
        """The same kernel with the plan that is the fastest for arguments like these, on this machine.

            >>> source = "double f(int n, double *x) { double s = 0; while (n--) s += x[n] * x[n]; return s; }"
            >>> kernel = je.kernel(source, "f", "n: i32, x: f64[n] -> f64", lang="c")
            >>> x = jnp.arange(4.0)
            >>> tuned = kernel.tune(x)
            >>> print(jax.jit(jax.grad(tuned))(x))
            [0. 2. 4. 6.]

        Plans are options that change no meaning: how dear the tape is taken to be, checkpoints, vectors, threads. Those
        that the kernel's `Options` set otherwise than the default stay. Value and gradient (by the arguments `wrt`, all
        by default, as in `inspect`) are run under `jax.jit` with these arguments and timed, where there is no gradient
        the value alone. A plan whose results differ by more than rounding is left out. The choice is in the options of
        the result, and in the disk cache, for arguments of the same shapes and dtypes: the next time nothing is timed.

        Raises ArgumentError where arguments do not fit, or have no numbers (`tune` is called outside of `jax.jit`);
        LoweringError where the kernel would run on a GPU, or calls MPI.
        """
        try:
            return self._with_plan(fastest(self._subject(match(self.signature, args, kwargs), wrt)))
        except JaxEnzymeError as error:
            raise compat.at_the_call(error) from None

    def _subject(self, args: Sequence[Any], wrt: int | str | Sequence[int | str] | None) -> Subject:
        """What is tuned, for arguments in the order of the signature."""
        params = self.signature.caller_params
        args = [_plain(v) for v in args]
        check_timed(self.__name__, {p.name: v for p, v in zip(params, args, strict=True)})
        binding = self.binding(args)
        if self.specialise(binding).base.communicates:
            raise LoweringError(
                f"`{self.__name__}` calls MPI: processes that time plans by themselves would wait for one another",
                self.program.source_name,
                "set je.Options by hand",
            )
        static = dict(binding.static)
        values = {p.name: jnp.asarray(v) for p, v in zip(params, args, strict=True) if p.name not in static}
        floating = [name for name, v in values.items() if jnp.issubdtype(v.dtype, jnp.inexact)]
        chosen = _names(params, wrt)
        whole = [name for name in chosen or () if name not in floating]
        if whole:
            raise ArgumentError(
                f"there is no derivative by `{whole[0]}`", f"wrt={wrt!r}", "it is no floating-point argument"
            )
        moving = tuple(i for i, name in enumerate(values) if name in (floating if chosen is None else chosen))
        every = self.implementations.items()
        identity = repr([(name, k.program.key, str(k.signature), k.signature.order) for name, k in every])
        return Subject(
            self.__name__,
            identity + repr(binding),
            self.implementations["cpu"].options,
            lambda options: _with_constants(self._with_plan(options), static),
            tuple(values.values()),
            moving,
            wrt is not None,
        )

    def _with_plan(self, options: Options) -> Kernel:
        """The same kernel with other options for what runs on the CPU."""
        others = dict(self.others)
        if "cpu" not in others:
            return replace(self, options=options)
        others["cpu"] = replace(others["cpu"], options=options)
        return replace(self, others=tuple(others.items()))

    def binding(self, args: Sequence[Any]) -> Binding:
        """The dimensions and static integers that arguments (in the order of the signature) stand for."""
        params = self.signature.caller_params
        actuals = [_actual(v, p, n) for v, p, n in zip(args, params, self._integers, strict=True)]
        return bind_arguments(self.signature, actuals, x64=_x64())

    def _bind(self, args: Sequence[Any]) -> Any:
        """Checks arguments (in the order of the signature), converts them and binds the primitive."""
        args = [_plain(v) for v in args]
        params = self.signature.caller_params
        for place, param in self._whole:
            _check_range(param, args[place])
        binding = self.binding(args)
        static = dict(binding.static)
        given = {
            p.name: lax.convert_element_type(v, signature_dtype(p.dtype))
            for p, v in zip(params, args, strict=True)
            if p.name not in static
        }
        primal = self.specialise(binding)
        operands = [Operand(given[primal.buffers[i].name], ()) for i in primal.operands]
        results = bind(primal, (), operands)
        by_name = {primal.buffers[i].name: v for i, v in zip(primal.results, results, strict=True)}
        return result_of(self.signature, [by_name[r.name] for r in self.signature.results])


def _compiled_call(kernel: Kernel, static: tuple[tuple[str, int], ...]) -> Any:
    """A compiled call for arguments that are no tracers. JAX keys its own cache by their types; static integers are
    here. It must not keep the user's own object alive: `kernel` is an equal one."""
    return jax.jit(_with_constants(kernel, dict(static)))


def _with_constants(kernel: Kernel, fixed: Mapping[str, int]) -> Callable[..., Any]:
    """A kernel as a function of its other arguments, in the order of the signature."""
    names = [p.name for p in kernel.signature.caller_params]

    def run(*dynamic: Any) -> Any:
        values = iter(dynamic)
        return kernel._bind([fixed[n] if n in fixed else next(values) for n in names])  # pyright: ignore[reportPrivateUsage]

    run.__name__ = run.__qualname__ = kernel.__name__
    return run


def _chosen(options: Options) -> Iterator[str]:
    """The options that are not the default ones."""
    default = Options()
    for each in fields(options):
        value = getattr(options, each.name)
        if value != getattr(default, each.name):
            yield f"{each.name}={value!r}"


def _plain(value: Any) -> Any:
    """An argument as JAX takes it: what can make itself an array of JAX's (a variable of Flax's) made one, and NumPy
    arrays in this machine's order of bytes, which jax.jit does not look at."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
    convert = None if isinstance(value, jax.Array) else getattr(value, "__jax_array__", None)
    return value if convert is None else convert()


def _constant(value: Any, param: Param) -> int | None:
    """The value of an argument that becomes a constant of the kernel: a Python int, or a NumPy integer of another dtype
    than the parameter's, which is what computing with Python ints and NumPy gives. One of its own dtype is data."""
    if type(value) is int:
        return value
    if isinstance(value, np.integer) and value.dtype != signature_dtype(param.dtype):
        return int(value)
    return None


def _check_range(param: Param, value: Any) -> None:
    """ArgumentError where a weak integer of known value does not fit: JAX would convert it, by leaving bits out."""
    if type(value) is not int:
        weak = isinstance(value, jax.Array) and value.weak_type and jnp.issubdtype(value.dtype, jnp.integer)
        if not weak or not value.size or _holds(param, value.dtype):
            return
        values = known_integers(value)
        if values is None:
            return
        value = next((int(v) for v in (values.min(), values.max()) if not fits(param.dtype, int(v))), 0)
    if not fits(param.dtype, value):
        raise does_not_fit(param, value)


def _holds(param: Param, dtype: np.dtype) -> bool:
    """Whether a parameter can hold every integer of a dtype."""
    known = np.iinfo(dtype)
    return fits(param.dtype, int(known.min)) and fits(param.dtype, int(known.max))


def _actual(value: Any, param: Param, integer: Param | None) -> Actual:
    static = _constant(value, integer) if integer else None
    if static is not None:
        return Actual((), "int64", weak=True, static=static)
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            f"argument `{param.name}` is a masked array: a kernel sees no mask",
            str(param),
            f"pass `{param.name}.filled(value)`, and the mask as an argument of its own where the kernel needs it",
        )
    try:
        kind = jax.typeof(value)
    except (TypeError, ValueError):
        got = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        remedy = f"pass jnp.asarray({param.name})" if isinstance(value, list | tuple) else None
        raise ArgumentError(f"argument `{param.name}` must be an array, got {got}", str(param), remedy) from None
    unknown = [size for size in kind.shape if not isinstance(size, int)]
    if unknown:
        raise ArgumentError(
            f"argument `{param.name}` has a dimension that is not known: {unknown[0]}",
            str(param),
            "a kernel is compiled for sizes that are numbers: export one program for each",
        )
    return Actual(tuple(kind.shape), kind.dtype.name, weak=bool(getattr(kind, "weak_type", False)))


def _names(params: Sequence[Param], wrt: int | str | Sequence[int | str] | None) -> list[str] | None:
    """The parameters that `wrt` means."""
    if wrt is None:
        return None
    known = [p.name for p in params]
    chosen = [wrt] if isinstance(wrt, int | str) else wrt
    for item in chosen:
        if item not in known and not (isinstance(item, int) and -len(known) <= item < len(known)):
            listed = ", ".join(f"{i}: {name}" for i, name in enumerate(known))
            raise ArgumentError(f"wrt={item!r} is no argument", listed, "give numbers or names of arguments")
    return [known[item] if isinstance(item, int) else item for item in chosen]


def _x64() -> bool:
    return bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]


def _described(param: Param) -> str:
    kind = f"{param.dtype}[{','.join(map(str, param.dims))}]" if param.dims else param.dtype
    if param.name == RETURN:
        return f"{kind}, the value that the function returns"
    return f"{kind}, returned with its new contents" if param.direction == "inout" else kind


def _description(kernel: Kernel) -> str:
    signature = kernel.signature
    parameters = "\n".join(f"    {p.name}: {_described(p)}" for p in signature.caller_params)
    results = "\n".join(f"    {r.name}: {_described(r)}" for r in signature.results)
    solved = ", ".join(p.name for p in signature.dimensions)
    note = f"\n\n{solved}: solved from the shapes of the arguments." if solved else ""
    return (
        f"{kernel!r}\n\nMade from {kernel.program.source_name}. Differentiable in its floating-point arguments.\n\n"
        f"Parameters:\n{parameters or '    none'}\n\nResults:\n{results}{note}"
    )
