"""Numba functions and plain Python ones that Numba can compile. Numba is not installed along with this package.

A kernel is compiled for the types that its signature says, by a compiler context of its own: what the program runs
elsewhere stays as it is, and LLVM's passes are left to the engine. Numba passes arrays as what describes them and
returns a status; a wrapper makes that a C function of the signature:

    def f(x, y): ...                               x: f64[n], out y: f64[n]

    int64_t f(double *x, double *y, int64_t n)     n goes in last: sizes that no parameter carries are known to the
                                                   caller, but not inside the function
"""

from __future__ import annotations

import importlib
import types as python
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from jax_enzyme.errors import CompileError, SignatureError
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.numba_isolation import Isolation, options_of
from jax_enzyme.frontends.numba_printing import lower_print
from jax_enzyme.frontends.numba_raising import convention, statuses
from jax_enzyme.frontends.program import Program
from jax_enzyme.frontends.runtime_library import complete
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import Value
from jax_enzyme.signature import Param, Signature
from jax_enzyme.transform.openmp import mark_behind

_NUMBA_NAMES = {
    "bool": "boolean", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
C_NAMES = {
    "bool": "_Bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long", "u8": "unsigned char",
    "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long long", "f32": "float", "f64": "double",
    "c64": "_Complex float", "c128": "_Complex double",
}  # fmt: skip
_PARTS = {"c64": "float", "c128": "double"}
_WRAPPER_FLAGS = (
    "cc", "-x", "c", "-mcpu=baseline", "-O2", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-g0", "-w",
    "-fno-sanitize=all", "-fno-stack-protector", "-fno-strict-aliasing", "{flags}", "{source}", "-o", "{output}",
)  # fmt: skip
# Numba's own reference counting, which `runtime/numba_memory.cpp` has in a form that is easier to follow.
_COUNTING = ("NRT_incref", "NRT_decref")

# Is called before each loop over `prange`.
_PRANGE = "je_prange"

# Variables that hold addresses of this process are called so. A stored program must not call any.
_ADDRESS = "numba.dynamic.globals."

# What calls itself does so through a variable, which Numba fills when it links.
_UNRESOLVED = ".numba.unresolved$"


def load_numba(
    source: Source, symbol: str | None, signature: Signature, *, as_written: bool = False
) -> tuple[Program, Signature]:
    """The program of a function for the types of a signature, and that signature with the sizes that the program needs
    besides its parameters. `as_written`: with its lines, for the checking mode. CompileError where Numba is missing or
    cannot compile the function."""
    function = getattr(source.function, "py_func", source.function)
    if not isinstance(function, python.FunctionType):
        raise CompileError("this is neither a Python function nor one of Numba's", source.name)
    check_count(function, signature, source.name)
    carried = {p.name for p in signature.params}
    sizes = tuple(Param(name, "i64") for name in sorted(signature.shape_names - carried))
    whole = replace(signature, params=(*signature.params, *sizes))
    name = symbol or function.__name__
    modules, entry = _compile(function, source.function, signature, source.name, as_written)
    if any(_ADDRESS in text and _calls_address(parse(text)) for text in modules):
        raise CompileError(
            f"`{function.__name__}` calls a function by its address in this process, such as one of ctypes or cffi",
            source.name,
            "write it in Python, or make a kernel of its source, in C or another language",
        )
    _, target = _contexts()
    raised = {status: target.texts[status] for status in sorted(statuses(map(parse, modules)) & target.texts.keys())}
    wrapper = toolchain.compile_cached(
        Source("c", "wrapper.c", _wrapper(name, entry, whole, len(sizes), raised).encode()),
        toolchain.Recipe(toolchain.zig(), _WRAPPER_FLAGS),
        (),
    )
    ir = linking.reachable(linking.link(wrapper, [_plain(text, with_lines=as_written) for text in modules]), {name})
    return Program(complete(toolchain.portable(ir), name), name, "numba", source.name), whole


def _plain(text: str, *, with_lines: bool) -> str:
    """Numba's module in a form that links like any other."""
    module = parse(text)
    mark_behind(module, _PRANGE)
    for counting in filter(None, map(module.functions.get, _COUNTING)):
        counting.blocks, counting.prefix, counting.attributes, counting.metadata = [], (), (), []
    for name, variable in module.globals.items():
        if name.startswith(_UNRESOLVED):
            variable.name = "je." + name.removeprefix(_UNRESOLVED)
            variable.prefix, variable.is_constant = ("internal",), True
            variable.initializer = _function(module, name.removeprefix(_UNRESOLVED))
    return linking.linkable(module, debug=with_lines)


def _calls_address(module: Module) -> bool:
    """Does a module call a function that it knows by its address alone?"""
    for function in module.functions.values():
        found: set[Value] = set()
        for instruction in function.instructions():
            first = instruction.operands[0] if instruction.operands else None
            if isinstance(instruction, I.CallBase) and instruction.callee in found:
                return True
            if isinstance(instruction, I.Load) and isinstance(first, GlobalVariable):
                found |= {instruction} if first.name.startswith(_ADDRESS) else set()
            elif isinstance(instruction, I.Cast) and first in found:
                found.add(instruction)
    return False


def _function(module: Module, name: str) -> Function:
    """The function of that name, declared if need be (what links them looks at names alone)."""
    return module.functions.setdefault(name, Function(T.PTR, T.FunctionType(T.VOID, ()), name=name))


def imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CompileError(
            "Python functions are compiled by Numba, which is not installed", None, "pip install numba"
        ) from None


def _compile(
    function: python.FunctionType, original: object, signature: Signature, place: str, with_lines: bool
) -> tuple[list[str], str]:
    """LLVM's modules of a function and of what it calls, not optimised, and its symbol in the first."""
    numba, compiler = imported("numba"), imported("numba.core.compiler")
    typing_context, target = _contexts()
    cpu = imported("numba.core.registry").cpu_target
    arguments = tuple(numba_type(numba.types, p, signature.order) for p in signature.params)
    flags = compiler.Flags()
    own = {"_toplevel_typing_context": typing_context, "_toplevel_target_context": target}
    if with_lines:
        own["options"] = _with_lines()
    with imported("numba.core.compiler_lock").global_compiler_lock, _swapped(cpu, own):
        cpu.options.parse_as_flags(flags, options_of(original))
        flags.nrt = True
        try:
            isolation = Isolation(numba)
            copy = isolation.function(function, original if original is not function else None)
            type(target).parallel = isolation.parallel
            result = compiler.compile_extra(typing_context, target, copy, arguments, None, flags, {})
        except numba.core.errors.NumbaError as error:
            raise CompileError(f"Numba cannot compile the function:\n{error}", place) from None
        _check_result(numba.types, result.signature.return_type, signature, place)
        called = [compiled.library for own in isolation.functions.values() for compiled in own.overloads.values()]
        modules = [library.get_llvm_str() for library in (result.library, *called)]
        entry = result.fndesc.llvm_func_name
        for number, made in enumerate(isolation.classes.values()):
            # Numba names a class by its address, which is another one each time. Names are also data, of their length.
            address = f"{id(made.class_type):x}"
            fixed = f"{number:0{len(address)}x}"
            modules, entry = [text.replace(address, fixed) for text in modules], entry.replace(address, fixed)
        return modules, entry


@lru_cache(maxsize=1)
def _contexts() -> tuple[Any, Any]:
    """Numba's two contexts for compiling, apart from those of the rest of the program, and without LLVM's passes."""
    codegen = imported("numba.core.codegen")

    class Library(codegen.JITCodeLibrary):
        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            """The engine optimises."""

    prange = imported("numba").prange

    def _say(builder: Any) -> None:
        """That a loop follows whose iterations may run in any order."""
        llvm = imported("llvmlite.ir")
        kind = llvm.FunctionType(llvm.VoidType(), ())
        said = imported("numba.core.cgutils").get_or_insert_function(builder.module, kind, _PRANGE)
        if said.is_declaration:  # Numba links what it compiles
            said.linkage = "internal"
            llvm.IRBuilder(said.append_basic_block()).ret_void()
        builder.call(said, ())

    numba = imported("numba")
    njit = numba.njit
    instead = (
        # Numba's makes its message at run time, which is more code than most kernels are.
        (imported("numba.np.arrayobj").raise_with_shape_context, njit(_shapes_differ)),
        # Numba's call what is in its process, by the address.
        (numba.get_num_threads, njit(_one)),
        (numba.get_thread_id, njit(_none)),
        (numba.set_num_threads, njit(_as_it_is)),
    )

    class Typing(imported("numba.core.typing").Context):
        def resolve_value_type(self, val: Any) -> Any:
            return super().resolve_value_type(next((own for theirs, own in instead if val is theirs), val))

    class Target(imported("numba.core.cpu").CPUContext):
        texts: dict[int, str]
        parallel = False

        @property
        def call_conv(self) -> Any:
            return convention(self, self.texts)

        def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
            if fn is print:
                return lambda builder, args: lower_print(self, builder, sig, args)
            found = super().get_function(fn, sig, _firstcall)
            if self.parallel and getattr(fn, "typing_key", None) is prange:
                return lambda builder, args, *rest: (_say(builder), found(builder, args, *rest))[1]
            return found

    typing_context = Typing()
    Target.texts = {}
    target = Target(typing_context, "cpu")
    target.codegen()._library_class = Library
    return typing_context, target


def _shapes_differ(source: object, target: object) -> None:
    """Is compiled by Numba, in place of its own."""
    raise ValueError("cannot assign slice from input of different size")


def _one() -> int:
    return 1


def _none() -> int:
    return 0


def _as_it_is(_: int) -> None:
    """There is one thread."""


@lru_cache(maxsize=1)
def _with_lines() -> Any:
    """Numba's options, and where in the source each instruction comes from; else the code stays as it is."""

    class Options(imported("numba.core.registry").cpu_target.options):
        def finalize(self, flags: Any, options: Any) -> None:
            super().finalize(flags, options)
            flags.debuginfo = flags.dbg_directives_only = True

    return Options


@contextmanager
def _swapped(cpu: Any, own: Mapping[str, Any]) -> Generator[None, None, None]:
    """Makes Numba compile with contexts, and options, of our own. What it has compiled before is known to its own
    contexts only."""
    before = {name: getattr(cpu, name) for name in own}
    vars(cpu).update(own)
    try:
        yield
    finally:
        vars(cpu).update(before)


def check_count(function: python.FunctionType, signature: Signature, place: str) -> None:
    there, given = function.__code__.co_argcount, len(signature.params)
    least = there - len(function.__defaults__ or ())
    if not least <= given <= there:
        raise SignatureError(
            f"{given} parameters in the signature, but `{function.__name__}` has {there}",
            place,
            "the signature lists the function's parameters, in its order",
        )


def numba_type(types: Any, param: Param, order: str) -> Any:
    if param.dtype not in _NUMBA_NAMES:
        raise CompileError(f"Numba on the CPU has no {param.dtype}, the type of `{param.name}`")
    element = getattr(types, _NUMBA_NAMES[param.dtype])
    return element if param.by_value else types.Array(element, param.rank, order if param.rank > 1 else "C")


def _check_result(types: Any, found: Any, signature: Signature, place: str) -> None:
    wanted = None if signature.result in (None, "status") else getattr(types, _NUMBA_NAMES[signature.result])
    if wanted is not None and found != wanted:
        hint = next((f"-> {dtype}" for dtype, name in _NUMBA_NAMES.items() if str(found) == name), None)
        raise SignatureError(
            f"the signature says `-> {signature.result}`, but Numba finds that the function returns {found}",
            place,
            f"write `{hint}`" if hint else "return one number, or nothing",
        )
    if wanted is None and str(found) not in ("none", "Optional(none)") and signature.result is None:
        raise SignatureError(
            f"the function returns {found}, and the signature has no `->`",
            place,
            "declare what is returned, for example `-> f64`",
        )


# -- the wrapper -------------------------------------------------------------------------------------------------------


def _wrapper(name: str, entry: str, signature: Signature, added: int, raised: Mapping[int, str]) -> str:
    """C source of the kernel: a function of the signature that calls what Numba made. `raised` has the texts of the
    statuses that stand for exceptions."""
    params = signature.params
    own = params[: len(params) - added]
    declared = ", ".join(f"{C_NAMES[p.dtype]} {'' if p.by_value else '*'}{p.name}" for p in params) or "void"
    passed: list[str] = []
    types: list[str] = []
    for param in own:
        for type_, value in passed_as(param, signature.order):
            types.append(type_)
            passed.append(value)
    result = "void" if signature.result in (None, "status") else C_NAMES[signature.result]
    cell = "void *" if result == "void" else result
    return "\n".join(
        [
            f'extern int entry_(void *, void *{"".join(", " + t for t in types)}) __asm__("{entry}");',
            "extern _Noreturn void python_exception(const char *);",
            f'extern {result} kernel_({declared}) __asm__("{name}");',
            f"{result} kernel_({declared}) {{",
            f"  {cell} result_; void *exception_ = 0;",
            f"  const int status_ = entry_(&result_, &exception_{''.join(', ' + v for v in passed)});",
            # 0: a value was returned; -2: None was.
            *(f"  if (status_ == {status}) python_exception({_c_text(text)});" for status, text in raised.items()),
            '  if (status_ != 0 && status_ != -2) python_exception("a Python exception");',
            "  return result_;" if result != "void" else "",
            "}",
            "",
        ]
    )


def _c_text(text: str) -> str:
    """A literal of C."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def passed_as(param: Param, order: str) -> Iterator[tuple[str, str]]:
    """The C types and values by which Numba passes a parameter."""
    if param.by_value:
        if param.dtype in _PARTS:
            yield _PARTS[param.dtype], f"__real__ {param.name}"
            yield _PARTS[param.dtype], f"__imag__ {param.name}"
        else:
            yield C_NAMES[param.dtype], param.name
        return
    extents = [f"(long long)({str(dim).replace('//', '/')})" for dim in param.dims or ()]
    size = f"(long long)sizeof(*{param.name})"
    yield "void *", "(void *)0"
    yield "void *", "(void *)0"
    yield "long long", " * ".join(extents) or "1"
    yield "long long", size
    yield "void *", param.name
    for extent in extents:
        yield "long long", extent
    for axis in range(len(extents)):
        faster = extents[:axis] if order == "F" else extents[axis + 1 :]
        yield "long long", " * ".join([size, *faster])
