"""Derivatives of functions in LLVM IR, without signatures, shapes or JAX: `je.ad.differentiate`.

The engine knows array functions: pointers to buffers in, a status out. A function of any other type is wrapped into one
of buffers whose sizes nobody says, differentiated, and the derivative wrapped back into a function of plain parameters.

The function is one of a program that goes on around it, so that less holds of it than of a kernel. What is assumed:

    failures        a derivative of a function that ends the process does so, too (`plain_wrapper`)
    memory          what lies behind pointers in the caller's memory has no derivatives, and nothing is known of the
                    size of any (`assumptions`)
    overlaps        parameters that lead to the same memory have derivatives in the same memory (`overlaps`)
    functions       nothing is known of one that is given as a pointer: where a derivative depends on it, it is refused
    variables       those of file scope hold what the program has put there (`transform.live_globals`), and it is
                    constant; so is what they lead to
    the rest        what the function does not use plays no part, whatever it is: all else is made internal, and goes

`docs/differentiate.md` says it for users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import llvmlite.binding as llvm

from jax_enzyme.codegen.host import target_machine
from jax_enzyme.codegen.overlaps import SHARED
from jax_enzyme.codegen.plain import Mode, PlainFunction
from jax_enzyme.errors import ArgumentError, CompileError
from jax_enzyme.ir import types as T
from jax_enzyme.ir.aliases import name_what_aliases_name
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.pass_managers import run_on_module
from jax_enzyme.ir.reader import ReadError, parse, upgraded
from jax_enzyme.ir.writer import to_text
from jax_enzyme.options import Options

Word = Literal["const", "active"]

_LEFT_OUT = ("llvm.global_ctors", "llvm.global_dtors", "llvm.used")
_SUFFIXES = {"forward": ("_jvp",), "reverse": ("_vjp",), "split": ("_augmented", "_pullback", "_tape_size")}
"""Of the names that a mode defines."""


def differentiate(
    module: Module | str | bytes,
    symbol: str,
    mode: Mode = "reverse",
    activity: Sequence[Word] | None = None,
    *,
    options: Options | None = None,
) -> Module:
    """The module with derivatives of the function `symbol` added. `module` is an `ir.Module`, text or bitcode; it stays
    as it is. Parameters are pointers, floating-point numbers and integers; the result is a number, an integer or void.

    `activity` has a word per parameter: `"const"`, no derivative with respect to it (Enzyme's `const`), or `"active"`
    (Enzyme's `dup`, and `out` for numbers in reverse mode). Pointers and floating-point numbers are active by default.
    A floating-point result is always active. What a derivative is called, and its parameters:

    forward   SYMBOL_jvp: the parameters, each active one followed by its tangent: a number after a number, a pointer
              to the tangents after a pointer. Returns {result, tangent} where the result is floating, else the result.
    reverse   SYMBOL_vjp: the parameters, each active one followed by a pointer: for a pointer to the cotangents of
              the memory, for a number to one number. Last, where the result is floating, its cotangent. Returns
              nothing. Cotangents of what is only read are *added to* what is there; for memory that the function
              writes, the cotangent of what it leaves goes in and that of what it found comes out. What the function
              itself leaves in its memory is not to be relied on: ask for `split` to have both.
    split     SYMBOL_augmented: the parameters, then a pointer to SYMBOL_tape_size (an i64 in the module) bytes aligned
              to 16; returns the result. SYMBOL_pullback: the parameters of `reverse` and, in front of the cotangent, a
              floating result; last that tape; returns nothing. In between, the memory that was passed must stay as it
              is. Refused where the size of the tape is only known at run time.

    Where a comparison with an exact value may hide a derivative, there is a ShortcutWarning (`docs/shortcuts.md`).

    Memory that is reached through two parameters must have its memory for derivatives in one place, too. File-scope
    variables hold what the program has put there. Derivatives of a function that ends the process do so, too. All that
    is assumed is in `docs/differentiate.md`. DifferentiationError where a derivative would pass through what only the
    caller knows, CompileError for a module, a name, a mode or words that do not fit, ArgumentError (a TypeError too)
    for arguments of other types.

        >>> square = "define double @square(double %x) { %y = fmul double %x, %x ret double %y }"
        >>> list(je.ad.differentiate(square, "square", "forward").functions)
        ['square', 'square_jvp', 'je.primal.jvp']
    """
    _check_types(module, symbol, activity, options)
    text = _text(module)
    source = _needed(text, symbol)
    function = source.functions.get(symbol)
    if function is None or function.is_declaration:
        raise CompileError(f"the module defines no function `{symbol}`", remedy=_names(parse(text)))
    if mode not in ("forward", "reverse", "split"):
        raise CompileError(f"there is no mode {mode!r}", remedy="forward, reverse or split")
    plain = PlainFunction(source, function, _words(function, activity), options or Options())
    _check_names_are_free(text, [symbol + suffix for suffix in _SUFFIXES[mode]])
    return _linked(text, symbol, list(plain.derivatives(mode)))


def _check_types(module: object, symbol: object, activity: object, options: object) -> None:
    """ArgumentError where an argument is of another type than `differentiate` takes."""
    if not isinstance(module, Module | str | bytes):
        raise ArgumentError(f"a module is an ir.Module, text or bitcode, not {type(module).__name__}")
    if not isinstance(symbol, str):
        raise ArgumentError(f"symbol is the name of a function in the module, not {symbol!r}")
    if activity is not None and (isinstance(activity, str) or not isinstance(activity, Sequence)):
        raise ArgumentError(
            f"activity is a sequence of words, not {activity!r}", remedy='for example ("active", "const")'
        )
    if options is not None and not isinstance(options, Options):
        raise ArgumentError(f"options is a je.Options, not {options!r}")


def _text(module: Module | str | bytes) -> str:
    try:
        return upgraded(to_text(module) if isinstance(module, Module) else module)
    except ReadError as error:
        raise CompileError(str(error), "the given module") from error


def _check_names_are_free(text: str, names: Sequence[str]) -> None:
    """CompileError where the program defines what derivatives would be called. It may declare, and call, them."""
    module = native_from_text(text)
    for value in (*module.functions, *module.global_variables):
        if value.name in names and not value.is_declaration:
            what = f"the module defines `{value.name}` already, which is what a derivative would be called"
            raise CompileError(what, remedy="give that another name, or differentiate a module without it")


def _needed(text: str, symbol: str) -> Module:
    """What a function needs, all but itself internal. What runs before `main` is the program's, and is left out."""
    module = native_from_text(text)
    for value in (*module.functions, *module.global_variables):
        kept = value.name.startswith("llvm.") and value.name not in _LEFT_OUT
        if not value.is_declaration and not kept:
            value.linkage = llvm.Linkage.external if value.name == symbol else llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    run_on_module(passes, module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))
    needed = parse(str(module))
    name_what_aliases_name(needed)
    return needed


def _linked(text: str, symbol: str, pieces: Sequence[Module]) -> Module:
    """The program with the derivatives, which refer to its variables: those that nobody else sees become visible for
    that while."""
    context = llvm.create_context()
    native = native_from_text(text, context)
    used = {name for piece in pieces for name, v in piece.globals.items() if v.initializer is None}
    hidden: dict[str, str] = {}
    for variable in native.global_variables:
        if variable.name in used and variable.linkage in (llvm.Linkage.internal, llvm.Linkage.private):
            hidden[variable.name] = variable.linkage.name
            variable.linkage = llvm.Linkage.external
    for piece in pieces:
        native.link_in(native_from_text(to_text(piece), context))
    module = parse(str(native))
    for name, function in module.functions.items():
        if name.endswith(SHARED) and name.startswith(symbol):
            function.prefix = ("internal",)
    for name, word in hidden.items():
        variable = module.globals[name]
        variable.prefix = (word, *(w for w in variable.prefix if w not in LINKAGE))
    return module


def _names(module: Module) -> str:
    return "it defines " + (", ".join(f"`{n}`" for n, f in module.functions.items() if not f.is_declaration) or "none")


def _words(function: Function, activity: Sequence[Word] | None) -> tuple[bool, ...]:
    """Which parameters are active."""
    if function.function_type.variadic:
        what = f"`{function.name}` takes arguments without names (`...`), which its derivatives could not be given"
        raise CompileError(what, remedy="differentiate a function of named parameters that calls it")
    types = [a.type for a in function.arguments]
    for index, type_ in enumerate((*types, function.function_type.result)):
        if not isinstance(type_, T.PointerType | T.FloatType | T.IntType | T.VoidType):
            what = "the result" if index == len(types) else f"parameter {index + 1}"
            remedy = "pass vectors and structures through pointers"
            raise CompileError(f"{what} of `{function.name}` is of type {type_}", remedy=remedy)
    if activity is None:
        return tuple(not T.is_int(t) for t in types)
    if len(activity) != len(types):
        raise CompileError(f"{len(activity)} words of activity for the {len(types)} parameters of `{function.name}`")
    for index, (word, type_) in enumerate(zip(activity, types, strict=True)):
        if word not in ("const", "active") or (word == "active" and T.is_int(type_)):
            expected = "an integer is const" if T.is_int(type_) else "const or active"
            raise CompileError(f"activity[{index}] is {word!r}", remedy=expected)
    return tuple(word == "active" for word in activity)
