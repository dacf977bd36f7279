"""Completes a module with functions of a library: LLVM's linker, over texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import llvmlite.binding as llvm

from jax_enzyme.classes import dataclass
from jax_enzyme.ir.keywords import LINKAGE, LOCAL
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.pass_managers import run_on_module
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.symbol_lines import Line, declarations, symbol_lines
from jax_enzyme.ir.writer import has_debug_info, is_debug_version, to_text

# Nothing stands in another module's way, or is looked for in one.
_OWN = frozenset("private internal available_externally linkonce linkonce_odr appending common".split())
_OF_LLVM = "llvm."
_UNITS, _FLAGS = "llvm.dbg.cu", "llvm.module.flags"
_SEEN = frozenset("default hidden protected dllimport dllexport dso_local dso_preemptable".split())
"""Who sees a symbol outside of a shared library."""
_LOCAL = (llvm.Linkage.internal, llvm.Linkage.private)
_STRONG = ("external",)
_SIZED = ("external", "common", "weak", "weak_odr")
_EXTERNAL = (llvm.Linkage.external, llvm.Linkage.common, llvm.Linkage.weak_any, llvm.Linkage.weak_odr)
_REPLACED = ("common", "weak")
COMES_WITH = "je.comes_with."
"""A constant whose name begins so, and ends with that of a function, names what is needed where the function is a root:
what its caller has to know, and it does not say itself."""
_KEPT = {
    llvm.Linkage.internal: llvm.Linkage.external,
    llvm.Linkage.private: llvm.Linkage.external,
    llvm.Linkage.available_externally: llvm.Linkage.external,
    llvm.Linkage.linkonce_any: llvm.Linkage.weak_any,
    llvm.Linkage.linkonce_odr: llvm.Linkage.weak_odr,
}
"""For what is dropped where nothing refers to it, what it becomes where it is wanted all the same."""


@dataclass(frozen=True)
class Names:
    """What a module has for others and wants of them. `strong` may be defined once in a program; `defined` are those,
    and the ones of which any will do (inline functions, templates, COMMON blocks); `local` are its own; `sizes` are
    those of variables that others see. `shared` are those that another module may have in place of these: COMMON blocks
    without a value, and what is weak."""

    functions: tuple[str, ...]
    strong: frozenset[str]
    defined: frozenset[str]
    local: frozenset[str]
    needed: frozenset[str]
    shared: frozenset[str]
    sizes: Mapping[str, int]


def names(program: str) -> Names:
    """The names of a module."""
    functions: list[str] = []
    variables: list[Line] = []
    shared: set[str] = set()
    strong, defined, local, needed, aliases = set[str](), set[str](), set[str](), set[str](), set[str]()
    for line in symbol_lines(program):
        name = line.name
        if name.startswith(_OF_LLVM):
            continue
        if line.is_alias:
            aliases.add(name)
            continue
        if line.is_declaration:
            needed.add(name)
            continue
        if line.is_function:
            functions.append(name)
        if line.linkage in LOCAL:
            local.add(name)
            continue
        defined.add(name)
        if not line.is_function and line.linkage in _SIZED:
            variables.append(line)
        if line.linkage in _STRONG:
            strong.add(name)
        if line.linkage in _REPLACED:
            shared.add(name)
    return Names(
        tuple(functions),
        frozenset(strong),
        frozenset(defined | aliases),
        frozenset(local),
        frozenset(needed - aliases),
        frozenset(shared),
        _sizes(program, variables),
    )


def _sizes(program: str, variables: Sequence[Line]) -> dict[str, int]:
    """How many bytes variables of a module take."""
    if not variables:
        return {}
    module = native_from_text(declarations(program, variables))
    layout = llvm.create_target_data(module.data_layout)
    return {value.name: layout.get_abi_size(value.global_value_type) for value in module.global_variables}


def reduced(program: str, wanted: Collection[str]) -> tuple[str, Names]:
    """The program without what `wanted`, of what it defines for others, have no use for; with its names. A compiler
    writes what is inline, and of templates what is used alone: LLVM does not read what is needed as it is."""
    found = names(program)
    if found.strong == frozenset(wanted) and _needs_all(program, wanted):
        return program, found
    module = native_from_text(program)
    _drop_all_but(module, wanted)
    text = str(module)
    return text, names(text)


_NAMED = re.compile(r'@(?:"([^"\n]*)"|([-$.\w]+))')
_LITERAL = " = private unnamed_addr constant ["


def _needs_all(program: str, roots: Collection[str]) -> bool:
    """Whether the roots, and what LLVM itself looks at, name all symbols of a program, directly or not. Strings are in
    nobody's way."""
    uses: dict[str, set[str]] = {}
    own = set[str]()
    for line in program.split("\n"):
        of_symbol = line.startswith(("@", "define ", "declare "))
        if not of_symbol and not (line.startswith("  ") and "@" in line):
            continue
        if line.startswith("@.str") and _LITERAL in line:
            continue
        named = [quoted or plain for quoted, plain in _NAMED.findall(line)]
        if of_symbol:
            own = uses[named[0]] = set()
        own.update(named)
    of_llvm = [name for name in uses if name.startswith(_OF_LLVM)]
    needed = reached([*roots, *of_llvm], lambda name: uses.get(name, ()))
    return uses.keys() <= needed.keys() and not any(name.startswith(COMES_WITH) for name in uses)


def excerpt(program: str, wanted: Collection[str]) -> str:
    """The same program, in which others see what they saw before of what is left."""
    module = native_from_text(program)
    inline = [value for value in module.global_variables if value.linkage is llvm.Linkage.linkonce_odr]
    kept = {value.name: value for value in inline if value.name in wanted}
    for value in kept.values():
        value.linkage = llvm.Linkage.weak_odr  # is dropped otherwise where nobody refers to it
    hidden = _drop_all_but(module, wanted)
    for value in (*module.functions, *module.global_variables):
        if value.name in hidden:
            value.linkage = llvm.Linkage.external
        elif value.name in kept:
            value.linkage = llvm.Linkage.linkonce_odr
    return str(module)


def _drop_all_but(module: llvm.ModuleRef, wanted: Collection[str]) -> set[str]:
    """Makes all else a module's own, drops what nobody has a use for then, and says what others saw before."""
    _show(module, wanted)
    hidden: set[str] = set()
    for value in (*module.functions, *module.global_variables):
        inside = not value.is_declaration and value.name not in wanted and not value.name.startswith(_OF_LLVM)
        if inside and value.linkage is llvm.Linkage.external:
            value.linkage = llvm.Linkage.internal
            hidden.add(value.name)
    _drop_dead(module)
    return hidden


def same(first: str, second: str, wanted: Collection[str]) -> bool:
    """Whether two programs make the same of what is `wanted` of them, but for debug information and for what others
    see of it."""
    return first == second or _essence(first, wanted) == _essence(second, wanted)


def _essence(program: str, wanted: Collection[str]) -> str:
    module = parse(reduced(program, wanted)[0])
    for symbol in (*module.functions.values(), *module.globals.values(), *module.aliases.values()):
        symbol.prefix = tuple(word for word in symbol.prefix if word not in _SEEN)
    module.named_metadata = {}  # the flags of the compiler
    return to_text(module, debug=False)


def linked(programs: Sequence[str], roots: Collection[str]) -> str:
    """One program of several, in which all but `roots` is its own business, and nothing is left that they have no use
    for. RuntimeError where LLVM finds that they do not go together."""
    context = llvm.create_context()
    modules = [native_from_text(text, context) for text in programs]
    # A root is what a module has for others, rather than a function of another one's own that is called the same.
    shared = {f.name for m in modules for f in m.functions if not f.is_declaration and f.linkage not in _LOCAL}
    for module in modules:
        local = {f.name for f in module.functions if f.linkage in _LOCAL}
        _show(module, set(roots) - (shared & local))
    first, *rest = modules
    for module in rest:
        first.link_in(module)
    for value in (*first.functions, *first.global_variables):
        inside = not value.is_declaration and not _is_wanted(value.name, roots) and not value.name.startswith(_OF_LLVM)
        if inside and value.linkage in _EXTERNAL:
            value.linkage = llvm.Linkage.internal
    _drop_dead(first)
    return str(first)


def _show(module: llvm.ModuleRef, roots: Collection[str]) -> None:
    """Keeps the linker from giving a function of a file's own another name, and an inline function or an instance of a
    template from being dropped as one that nobody calls."""
    for function in module.functions:
        if function.name in roots and not function.is_declaration and function.linkage in _KEPT:
            function.linkage = _KEPT[function.linkage]
    for variable in module.global_variables:
        if variable.name.startswith(COMES_WITH) and not _is_wanted(variable.name, roots):
            variable.linkage = llvm.Linkage.internal


def _is_wanted(name: str, roots: Collection[str]) -> bool:
    return name.removeprefix(COMES_WITH) in roots


_IMPORTS = re.compile(r"^(!\d+ = distinct !DICompileUnit\(.*?), imports: !\d+", re.M)


def linkable(library: Module, *, debug: bool = False) -> str:
    """A private module as `link` takes libraries: without target, flags and, unless `debug` says so, debug information;
    what others see of it is there only where something refers to it, as LLVM takes this linkage."""
    for symbol in (*library.functions.values(), *library.globals.values()):
        defined = bool(symbol.blocks) if isinstance(symbol, Function) else symbol.initializer is not None
        if defined and _OWN.isdisjoint(symbol.prefix):
            symbol.prefix = _optional(symbol)
    traced = has_debug_info(library)
    kept = {_UNITS: library.named_metadata.get(_UNITS, [])} if debug and traced else {}
    if kept:
        flags = library.named_metadata.get(_FLAGS, [])
        kept[_FLAGS] = [flag for flag in flags if is_debug_version(library, flag)]
    library.triple = library.data_layout = library.identifier = ""
    library.named_metadata = kept
    return to_text(library, debug=debug or not traced)


def _optional(symbol: Function | GlobalVariable) -> tuple[str, ...]:
    return ("linkonce_odr", *(word for word in symbol.prefix if word not in LINKAGE or word in ("hidden", "protected")))


def link(program: str, libraries: Sequence[str]) -> str:
    """The program, and of each library the functions that it calls, directly or not, and does not define. RuntimeError
    where LLVM finds that the two do not go together."""
    context = llvm.create_context()
    module = native_from_text(program, context)
    target = f'target datalayout = "{module.data_layout}"\ntarget triple = "{module.triple}"\n'
    for library in libraries:
        module.link_in(native_from_text(target + library, context))
    return str(module)


def without_imports(program: str) -> str:
    """The program without what its debug information says of `using` declarations, and of all that only they name: a
    header of the C++ library makes hundreds of them."""
    parsed = native_from_text(_IMPORTS.sub(r"\1", program))
    return str(parsed)


def reachable(program: str, roots: Collection[str]) -> str:
    """The program without the functions and variables that the roots do not need."""
    module = native_from_text(program)
    _show(module, roots)
    for function in module.functions:
        if not function.is_declaration and function.name not in roots and function.linkage is llvm.Linkage.external:
            function.linkage = llvm.Linkage.linkonce_odr
    _drop_dead(module)
    return str(module)


def _drop_dead(module: llvm.ModuleRef) -> None:
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.add_strip_dead_debug_info_pass()
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(module.triple or llvm.get_default_triple()).create_target_machine()
    run_on_module(passes, module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
