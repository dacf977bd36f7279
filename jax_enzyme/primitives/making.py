"""Kernels are made here: of one source, or of a library of many."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from jax_enzyme.errors import JaxEnzymeError, SignatureError
from jax_enzyme.frontends import (
    Blas,
    Flags,
    Language,
    Libraries,
    Program,
    SourceSet,
    load_function,
    shared_libraries,
    source_set,
    with_constants,
)
from jax_enzyme.options import Options
from jax_enzyme.primitives import compat
from jax_enzyme.primitives.arguments import (
    check_formals,
    check_launched,
    check_names,
    checked_constants,
    checked_flags,
    checked_libraries,
    checked_options,
    without_links,
)
from jax_enzyme.primitives.kernels import Kernel
from jax_enzyme.primitives.suggestion import completed_signature
from jax_enzyme.rules.user import UserRule, attached, check_rules, withholds
from jax_enzyme.signature import Order, Signature, parse, parse_launch
from jax_enzyme.signature.formals import functions_of, with_symbols


def kernel(
    source: object,
    symbol: str | None = None,
    signature: str | None = None,
    *,
    lang: Language | None = None,
    flags: Flags = (),
    compile_commands: str | os.PathLike[str] | None = None,
    blas: Blas = "rules",
    libraries: Libraries = (),
    rules: Sequence[UserRule] = (),
    options: Options | None = None,
    order: Order = "C",
    grid: object = None,
    block: object = None,
    shared: object = None,
    shapes: str = "",
    out: str | Sequence[str] = (),
    inout: str | Sequence[str] = (),
    **constants: int,
) -> Kernel:
    """Makes a kernel of a source: a function that JAX can call, differentiate and map.

    `source` is a path, source text (then `lang` says in which language), LLVM bitcode, or a function for Numba;
    `symbol` the function in it, which may be left out where there is only one; `signature` its parameters, in its own
    order:

        >>> source = "void energy(int n, float *x, float k, float *e) { for (*e = 0; n--;) *e += k * x[n] * x[n]; }"
        >>> energy = je.kernel(source, "energy", "n: i32, x: f32[n], k: f32, out e: f32[]", lang="c")
        >>> x = jnp.arange(3.0)
        >>> print(energy(x, 2.0))
        10.0
        >>> print(jax.jit(jax.grad(energy))(x, 2.0))
        [0. 4. 8.]

    `k: f32` is a number passed by value, `e: f32[]` a pointer to one, `x: f32[n]` an array. An integer that
    occurs in a shape (`n`) is solved from the shapes of the arrays and not passed. `out` arrays are returned;
    `inout` arrays are passed, and returned with their new contents; `scratch` arrays are work space. `-> f64` at the
    end is the value that the function returns, `-> status` a number that raises where it is not zero. The dtypes are
    bool, i8 to i64, u8 to u64, bf16, f16, f32, f64, c64 and c128. `order="F"` reads shapes in Fortran order.
    `A: f64[n][m]` is an array of pointers to rows, `p: {k: f64, x: f64[n]*}*` a pointer to a structure, passed and
    returned as a dict; `docs/signature.md` has the whole language. `constants` are values of integer parameters, or of
    names in shapes, that are the same in every call: `n=3`. Without a signature, `shapes="x[n], y[n]"`, `out="y"` and
    `inout=` say what debug information does not, and what the function certainly touches and writes is found without
    them: see also `je.suggest_signature`.

    `source` may be a sequence of sources, a folder or a pattern as well: see `library`, where `flags`,
    `compile_commands` and `blas` are told of too. `lang` is "c", "c++", "fortran", "rust", "llvm" or "cuda"; `flags` go
    to the compiler, all but a level of optimisation, which is ours. `symbol` may be what the function is called in its
    source: `solver::step`, `solver::step<double>`, `step(double const*, int)`, a Fortran subroutine `step` or
    `module::step`.

    `libraries` are shared libraries in which functions are looked up that the source does not define, before this
    process: names, as the loader and `ctypes.util.find_library` find them, or paths, relative to the working directory
    or the source's folder: `libraries=("libopenblas.so", "build/libtable.so")`. So are `-lname` and `-Lfolder` in
    `flags`.

    `rules` are derivatives of functions that the source calls:
    `je.rule("my_sinc", "(cos(x0) * x0 - sin(x0)) / (x0 * x0)")`, `je.inactive("log_message")`; where the source defines
    one, the rule wins over its body. `grid`, `block` and `shared` are for CUDA: numbers, tuples, or expressions over
    dimensions such as `"(n+255)//256"`.

    Raises SignatureError where the signature does not parse or does not fit the source, CompileError where the source
    does not compile, lacks the symbol or something that it calls, or a library cannot be opened, ArgumentError where an
    argument is none of what it may be.
    """
    try:
        check_names(symbol, lang)
        flags, of_flags = without_links(checked_flags(flags))
        constants = checked_constants(constants)
        check_rules(rules)
        named = (*checked_libraries(libraries), *of_flags)
        said = _Said(shapes, out, inout)
        given = _Given(signature, rules, options, order, grid, block, shared, constants)
        if callable(source):
            parsed = given.parsed(symbol)
            check_formals(parsed, "Python")
            program, parsed = load_function(source, symbol, lang, flags, parsed, as_written=given.is_checked)
            return given.kernel(replace(program, libraries=shared_libraries(named)), parsed)
        sources = source_set(source, lang, flags, compile_commands, blas)
        return given.kernel_of(sources, shared_libraries(named, sources.folders), symbol, said)
    except JaxEnzymeError as error:
        raise compat.at_the_call(error) from None


@dataclass(frozen=True)
class _Said:
    """What is said in the place of a signature."""

    shapes: str
    out: str | Sequence[str]
    inout: str | Sequence[str]


def _is_signature(symbol: str | None) -> bool:
    """Whether the symbol was left out, so that a signature stands in its place."""
    if symbol is not None:
        with suppress(SignatureError):
            parse(symbol, "C", {})
            return True
    return False


def _without_signature(symbol: str | None) -> SignatureError:
    remedy = 'signature="n: i32, x: f64[n], out y: f64[n]": the parameters, in order, as je.suggest_signature shows'
    place = None
    if _is_signature(symbol):
        place = f"symbol={symbol!r}"
        remedy = f"the symbol comes before it, None where the source has one function: signature={symbol!r}"
    return SignatureError("a kernel needs a signature", place, remedy)


@dataclass(frozen=True)
class _Given:
    """What is said of a kernel beside its source."""

    signature: str | None
    rules: Sequence[UserRule]
    options: Options | None
    order: Order
    grid: object
    block: object
    shared: object
    constants: Mapping[str, int]

    def parsed(self, symbol: str | None) -> Signature:
        if self.signature is None:
            raise _without_signature(symbol)
        checked_options(self.options)
        return parse(self.signature, self.order, self.constants)

    @property
    def is_checked(self) -> bool:
        return isinstance(self.options, Options) and self.options.sanitize

    def kernel_of(self, sources: SourceSet, libraries: tuple[str, ...], symbol: str | None, said: _Said) -> Kernel:
        """The kernel of a function of a set of sources, and of what these shared libraries have."""
        given = self
        if self.is_checked:
            sources = sources.as_written
        if self.signature is None and not _is_signature(symbol):
            found = completed_signature(sources.program(symbol, ()), said.shapes, said.out, said.inout)
            given = replace(self, signature=found)
        parsed = given.parsed(symbol)
        names = tuple(functions_of(parsed.formals))
        if names:
            parsed = replace(parsed, formals=with_symbols(parsed.formals, sources.symbols(names)))
        ruled = [rule.symbol for rule in self.rules]
        handed = (*functions_of(parsed.formals), *(name for rule in self.rules for name in rule.derivatives or ()))
        program = sources.program(symbol, handed, ruled)
        return given.kernel(replace(program, libraries=libraries), parsed)

    def kernel(self, program: Program, signature: Signature) -> Kernel:
        program = with_constants(program, signature)
        program = replace(program, ir=attached(program.ir, self.rules))
        _check_rules(self.rules, program)
        if program.lang == "cuda" and not program.device:
            check_launched(signature)
            _check_no_libraries(program)
            program = replace(program, launch=parse_launch(signature, self.grid, self.block, self.shared))
        elif not (self.grid is None and self.block is None and self.shared is None):
            raise _launched_by_nobody(program)
        ruled = [rule.symbol for rule in self.rules]
        program = _without_undefined(program, ruled)
        _check_fits(program, signature)
        _check_defined(program, ruled)
        return Kernel(program, signature, checked_options(self.options))


def library(
    sources: object = None,
    *,
    lang: Language | None = None,
    flags: Flags = (),
    compile_commands: str | os.PathLike[str] | None = None,
    blas: Blas = "rules",
    libraries: Libraries = (),
) -> Library:
    """Names a set of sources once, of which many kernels can be made. Nothing is compiled twice:

        >>> half = "double half(double x) { return x / 2; }"
        >>> mean = "double half(double); double mean(double x, double y) { return half(x + y); }"
        >>> both = je.library([half, mean], lang="c")
        >>> print(both.kernel("half", "x: f64 -> f64"))
        Kernel half(x) -> return [c, cpu]
        >>> print(both.kernel("mean", "x: f64, y: f64 -> f64"))
        Kernel mean(x, y) -> return [c, cpu]

    `sources` is a source or a sequence of them, in any languages: paths of source files, of folders (their own files,
    not those of folders in them), patterns such as `"src/**/*.f90"`, object files and static libraries that hold LLVM
    bitcode, source text, bitcode. Each is compiled by its own compiler; they are linked by LLVM, and all that a kernel
    has no use for is dropped. Fortran modules are compiled in the order of their dependencies. Of a folder, a pattern
    or a static library only what a kernel needs is compiled.

    `flags` are for all of them, or a dictionary of flags by language, name or pattern: `{"c": ("-DNDEBUG",), "*.f":
    ("-fdefault-real-8",)}`. `compile_commands` is the path of a `compile_commands.json`, or of its folder: the flags of
    each source are found there, and without `sources` all files that it names are taken. `lang` is the language of
    what has no suffix. `blas="source"`: routines of BLAS and LAPACK that the sources define are
    differentiated like all else; with "rules" rules take their place, and SciPy's routines. `libraries` are shared
    libraries that have what the sources do not define, as in `kernel`.

    Raises CompileError where a source is not there or is no source, and where a shared library cannot be opened.
    """
    try:
        check_names(None, lang)
        flags, of_flags = without_links(checked_flags(flags))
        named = (*checked_libraries(libraries), *of_flags)
        found = source_set(sources, lang, flags, compile_commands, blas)
        return Library(found, shared_libraries(named, found.folders))
    except JaxEnzymeError as error:
        raise compat.at_the_call(error) from None


class Library:
    """A set of sources: see `library`. Libraries of equal sources, flags and shared libraries are equal."""

    def __init__(self, sources: SourceSet, libraries: tuple[str, ...] = ()) -> None:
        self._sources = sources
        self._libraries = libraries

    def kernel(
        self,
        symbol: str | None = None,
        signature: str | None = None,
        *,
        rules: Sequence[UserRule] = (),
        options: Options | None = None,
        order: Order = "C",
        grid: object = None,
        block: object = None,
        shared: object = None,
        shapes: str = "",
        out: str | Sequence[str] = (),
        inout: str | Sequence[str] = (),
        **constants: int,
    ) -> Kernel:
        """A kernel of one of the functions: the arguments, and what is raised, are those of `je.kernel`."""
        try:
            check_names(symbol, None)
            constants = checked_constants(constants, of_library=True)
            check_rules(rules)
            given = _Given(signature, rules, options, order, grid, block, shared, constants)
            return given.kernel_of(self._sources, self._libraries, symbol, _Said(shapes, out, inout))
        except JaxEnzymeError as error:
            raise compat.at_the_call(error) from None

    def suggest_signature(self, symbol: str | None = None) -> str:
        """The signature of one of the functions, as `je.suggest_signature` tells it, which says what is raised."""
        from jax_enzyme.codegen.suggestion import suggested  # LLVM takes a while to load

        try:
            check_names(symbol, None)
            return suggested(self._sources.program(symbol, ()))
        except JaxEnzymeError as error:
            raise compat.at_the_call(error) from None

    @property
    def functions(self) -> list[str]:
        """What the functions are called that the sources define for others. Compiles all of them."""
        return self._sources.functions()

    @property
    def _identity(self) -> tuple[str, tuple[str, ...]]:
        return self._sources.key, self._libraries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"Library({self._sources.place})"


def _check_rules(rules: Sequence[UserRule], program: Program) -> None:
    if any(rule.symbol == program.symbol for rule in rules):
        raise SignatureError(
            f"there is a rule for `{program.symbol}`, which is the kernel itself",
            remedy="give the rule to a kernel that calls it, or write a jax.custom_jvp around this one",
        )
    if program.lang == "cuda" and withholds(program.ir):
        raise SignatureError(
            "there is a rule for a function that the source defines, which CUDA kernels cannot have",
            remedy="leave the rule out: the engine differentiates the definition",
        )


def _launched_by_nobody(program: Program) -> SignatureError:
    if program.device:
        return SignatureError(
            f"grid=, block= and shared= are for CUDA kernels, and `{program.symbol}` is a host function",
            program.source_name,
            "leave them out: it launches kernels by itself",
        )
    return SignatureError(
        f"grid=, block= and shared= are for CUDA kernels, and this one is {program.lang}",
        program.source_name,
        'leave them out, or say lang="cuda"',
    )


def _check_fits(program: Program, signature: Signature) -> None:
    from jax_enzyme.codegen.fits import check_fits  # LLVM takes a while to load

    check_fits(program, signature)


def _without_undefined(program: Program, ruled: Sequence[str]) -> Program:
    if "extern_weak" not in program.ir:
        return program
    from jax_enzyme.codegen.weak_symbols import without_undefined  # LLVM takes a while to load

    return without_undefined(program, ruled)


def _check_defined(program: Program, ruled: Sequence[str]) -> None:
    from jax_enzyme.codegen.undefined import check_defined  # LLVM takes a while to load

    check_defined(program, ruled)


def _check_no_libraries(program: Program) -> None:
    if program.libraries:
        raise SignatureError(
            "libraries= are shared libraries of the host, and a CUDA kernel cannot call them",
            program.source_name,
            "leave them out, and pass the sources of what the kernel calls; a host function may have them",
        )
