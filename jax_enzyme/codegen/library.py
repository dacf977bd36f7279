"""The rules of BLAS, LAPACK and MPI as LLVM IR: compiled from `rules/blas` and `rules/mpi` when a kernel first calls
one, then kept."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

from jax_enzyme.analysis.equality import KNOWN
from jax_enzyme.analysis.tbaa import READS_INTEGER, accessed_type, kept_access
from jax_enzyme.cache import DiskCache, digest
from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.pipelines import Pipeline
from jax_enzyme.frontends import toolchain
from jax_enzyme.frontends.clang import compile_c
from jax_enzyme.frontends.source import Source
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import linking
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.keywords import LINKAGE
from jax_enzyme.ir.metadata import MDValue
from jax_enzyme.ir.module import Function, Module, callee_of, declared_name
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.values import GlobalValue
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.blas.table import bodies, routine
from jax_enzyme.rules.mpi.table import failure, library_of, under_way
from jax_enzyme.transform.unprototyped_calls import fits

_FORMAT = "5"
# Products of complex numbers as in BLAS itself: without a look whether a result that is no number could be infinite.
# Nobody sees the lines of rules, and debug information would be more than half of their text.
_FLAGS = ("-fcx-limited-range", "-g0")
_NUMBERS = {
    "s": "LETTER=s REAL_LETTER=s SCALAR=float REAL=float SINGLE",
    "d": "LETTER=d REAL_LETTER=d SCALAR=double REAL=double",
    "c": "LETTER=c REAL_LETTER=s SCALAR=complex_float REAL=float COMPLEX",
    "z": "LETTER=z REAL_LETTER=d SCALAR=complex_double REAL=double COMPLEX",
}
_INCLUDE = re.compile(r'^#include "(\w+\.h)"$', re.M)
_KEPT_ATTRIBUTES = ("nounwind", "willreturn", "norecurse", "memory(")
_SCOPE = "llvm.experimental.noalias.scope.decl"  # of metadata that is not kept
Numbers = str | tuple[str, ...]
UNDER_WAY = "under_way"
_TWO_FLOATS = T.StructType((T.FLOAT, T.FLOAT))


def link_bodies(module: Module) -> None:
    """Defines, in place, the routines that a module calls and only the library has, such as `cblas_dgemm`. They call
    Fortran's routines, and are the kernel's own code from then on: to be done before it is optimised."""
    declared = [name for name, function in module.functions.items() if function.is_declaration]
    _link(module, {name: bodies()[name] for name in declared if name in bodies()})


def with_rules(module: Module) -> Module:
    """The module with the rules of all routines that it calls, as internal functions. Those call the routines again,
    and others: see `rules.blas.table` for what they may be. A copy where there are any: what is made by one plan shares
    the functions that it declares."""
    declared = [(name, f.function_type) for name, f in module.functions.items() if f.is_declaration]
    active = [r for name, kind in declared if (r := routine(name, kind)) is not None and r.is_active]
    wanted = {name: r.letter for r in active for name in (r.jvp, r.forward, r.reverse)}
    named = {name: of for name, _ in declared if (of := library_of(name)) is not None and under_way(name) is None}
    if not wanted and not named:
        return module
    module = clone(module)
    _link(module, wanted | named)
    return module


def link_under_way(module: Module) -> None:
    """Adds, in place, what is known of MPI's requests, where a module calls it and no derivative follows."""
    declared = [name for name, function in module.functions.items() if function.is_declaration]
    _link(module, {name: (*of, UNDER_WAY) for name in declared if under_way(name) and (of := library_of(name))})


def link_failure(module: Module, interface: str) -> Function:
    """Adds, in place, the function that ends all processes of MPI when a kernel fails, of the number of the failure and
    the address of its text or 0."""
    name = failure(interface)
    adopt(module, definitions((interface, "d"), frozenset({name})))
    return module.functions[name]


def _link(module: Module, numbers: Mapping[str, Numbers]) -> None:
    for kind in sorted(set(numbers.values()), key=str):
        adopt(module, definitions(kind, frozenset(name for name, of in numbers.items() if of == kind)))


def adopt(module: Module, library: Module) -> None:
    """Moves the functions and globals of `library` into `module`, where they define what is declared by that name and
    with that type; what the module defines itself is used instead."""
    replaced: dict[int, GlobalValue] = {}
    for name, body in library.struct_bodies.items():
        module.struct_bodies.setdefault(name, body)
    for name, variable in library.globals.items():
        replaced[id(variable)] = module.globals.setdefault(name, variable)
    adopted: list[Function] = []
    for name, function in library.functions.items():
        present = module.functions.setdefault(name, function)
        replaced[id(function)] = present
        if function.is_declaration:
            continue
        if present is not function and present.is_declaration and _fits(module, present, function.function_type):
            if present.function_type.variadic:
                present.value_type = function.value_type
            behind = present.arguments[len(function.arguments) :]
            present.arguments, present.blocks = [*function.arguments, *behind], function.blocks
            present.prefix, present.attributes, present.metadata = function.prefix, function.attributes, []
            _return_integer(present, function.function_type.result)
            adopted.append(present)
        elif present is function:
            adopted.append(function)
    for function in adopted:
        for instruction in function.instructions():
            instruction.operands = [replaced.get(id(v), v) for v in instruction.operands]


def _fits(module: Module, function: Function, defined: T.FunctionType) -> bool:
    """Whether a declaration can be of a function: lengths of character arguments may follow, as Fortran passes them,
    and an index that is returned may be as narrow as `int` (`cblas_idamax`, in headers older and newer). One that says
    nothing of parameters can be if all calls are."""
    declared = function.function_type
    if declared.variadic:
        calls = (i for f in module.functions.values() for i in f.instructions() if callee_of(i) is function)
        return not declared.parameters and all(isinstance(i, I.CallBase) and fits(defined, i) for i in calls)
    count = len(defined.parameters)
    returned = declared.result == defined.result or (declared.result, defined.result) == (T.I32, T.I64)
    same = returned and declared.parameters[:count] == defined.parameters
    return same and all(map(T.is_int, declared.parameters[count:]))


def _return_integer(function: Function, defined: T.Type) -> None:
    """Cuts what a body returns to what the declaration says."""
    declared = function.function_type.result
    if declared == defined:
        return
    for block in function.blocks:
        if isinstance(block.terminator, I.Return):
            value = block.instructions.pop().operands[0]
            at = Builder(block)
            at.ret(at.cast("trunc", value, declared))


def definitions(numbers: Numbers, symbols: frozenset[str]) -> Module:
    """A new module that defines functions of the library (`je_dgemm_jvp`), internal, and all that they call. `numbers`
    says which numbers they are about: the letter s, d, c or z; in the rules of MPI, with its binary interface, and
    `UNDER_WAY` for those in `under_way.c`. Their variables are those of all kinds: one may begin a message, and the
    rules of another wait for it."""
    module = parse(_text(numbers, symbols))
    if isinstance(numbers, tuple):
        _name_by_numbers(module, "_".join(numbers[1:]))
    for function in module.functions.values():
        function.attributes = _plain(module, function.attributes)
        if not function.is_declaration:
            function.prefix = ("internal", *(word for word in function.prefix if word not in LINKAGE))
            if function.name in symbols:
                _return_structure(function)
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if declared_name(i) != _SCOPE]
        for instruction in function.instructions():
            instruction.metadata = _said(module, instruction)
            if isinstance(instruction, I.Compare):
                instruction.metadata.append(KNOWN)
            if isinstance(instruction, I.CallBase):
                instruction.attributes = _plain(module, instruction.attributes)
    module.attribute_groups, module.metadata, module.named_metadata = {}, {}, {}
    return module


def _name_by_numbers(module: Module, kind: str) -> None:
    """Gives what the rules of MPI call a name of its own for each kind of numbers, as the rules have: a module may have
    those of several kinds, and optimised before. So it does to their texts: a kernel's own are called the same."""
    for function in module.functions.values():
        if not function.is_declaration and library_of(function.name) is None:
            function.name = f"{function.name}_{kind}"
    for variable in module.globals.values():
        if "private" in variable.prefix:
            variable.name = f"je_mpi{variable.name}_{kind}"
    module.functions = {function.name: function for function in module.functions.values()}
    module.globals = {variable.name: variable for variable in module.globals.values()}


def _said(module: Module, instruction: I.Instruction) -> list[tuple[str, MDValue]]:
    """What an access, or a copy of a loop's making, says that it is of: integers here are no numbers' bits, unless they
    are wide enough for a complex number that LLVM moves as a whole."""
    value = instruction.operands[0] if isinstance(instruction, I.Store) else instruction
    is_integer = isinstance(instruction, I.Load | I.Store) and value.type in (T.I8, T.I32)
    if is_integer or (isinstance(instruction, I.CallBase) and accessed_type(module, instruction) == T.I1):
        return [READS_INTEGER]
    return kept_access(module, instruction)


def _plain(module: Module, words: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that concern meaning, not the processor, without groups."""
    spelled = (w for word in words for w in module.attribute_groups.get(word.removeprefix("#"), (word,)))
    return tuple(word for word in spelled if word.startswith(_KEPT_ATTRIBUTES))


def _return_structure(function: Function) -> None:
    """C returns two floats in one vector register; rules return a structure for every kind of number."""
    kind = function.function_type
    if kind.result != T.VectorType(2, T.FLOAT):
        return
    function.value_type = T.FunctionType(_TWO_FLOATS, kind.parameters)
    for block in function.blocks:
        if not isinstance(block.terminator, I.Return):
            continue
        pair = block.instructions.pop().operands[0]
        at = Builder(block)
        at.ret(at.pack(_TWO_FLOATS, [at.extract_element(pair, index) for index in range(2)]))


@functools.lru_cache(maxsize=64)
def _text(numbers: Numbers, symbols: frozenset[str]) -> str:
    """The definitions of some symbols, and of all that they need, as the text of a module."""
    return linking.reachable(_library(numbers), symbols)


def _library(numbers: Numbers) -> str:
    """The IR of all rules for one kind of numbers, optimised as far as it stays differentiable, from the cache if it is
    there. Accesses say what type they are of, from which LLVM draws no conclusions: numbers are one or pairs of them as
    each rule likes."""
    folder = "blas" if isinstance(numbers, str) else "mpi"
    source = _expanded(folder, "under_way.c" if UNDER_WAY in numbers else "library.c")
    cache = DiskCache.named("library")
    key = digest(_FORMAT, toolchain.zig().version, host().compiler, repr(numbers), source)
    entry = cache.get(key)
    if entry is None:
        flags = [*_FLAGS, *(f"-D{definition}" for definition in _definitions(numbers))]
        entry = _optimised(compile_c(Source("c", f"{folder}.c", source.encode()), flags)).encode()
        cache.put(key, entry)
    return entry.decode()


def _definitions(numbers: Numbers) -> list[str]:
    if isinstance(numbers, str):
        return _NUMBERS[numbers].split()
    interface, letter, *_ = numbers
    real, width = "float" if letter in "sc" else "double", 2 if letter in "cz" else 1
    return [f"ABI={interface}", f"ABI_{interface}", f"LETTER={letter}", f"REAL={real}", f"WIDTH={width}"]


def _expanded(folder: str, name: str) -> str:
    """A source with what it includes put in."""
    text = resources.files(f"jax_enzyme.rules.{folder}").joinpath(name).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda match: _expanded(folder, match[1]), text)


def _optimised(text: str) -> str:
    module = parse(text)
    for function in module.functions.values():
        for instruction in function.instructions():
            instruction.metadata = _said(module, instruction)
    native = native_from_text(to_text(module, debug=False))
    pipeline = Pipeline(2)
    return str(pipeline.run(native, pipeline.builder()))
