"""All passes that `jax-enzyme opt` knows, LLVM's and ours, in one table by name.

A pass is an immutable value that maps a module to a new module. To add one of ours, write its row in `OURS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType

from jax_enzyme.classes import dataclass
from jax_enzyme.codegen.optimise import optimised_text
from jax_enzyme.codegen.vector_math import add_vector_math
from jax_enzyme.ir import passes as llvm_passes
from jax_enzyme.ir.clone import clone, clone_without_debug
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.rules.helpers import link
from jax_enzyme.transform.dynamic_casts import lower_dynamic_casts
from jax_enzyme.transform.lower_calls import lower_calls
from jax_enzyme.transform.pointer_tables import choose_by_index
from jax_enzyme.transform.relative_tables import absolute_tables
from jax_enzyme.transform.scopes import drop_scopes
from jax_enzyme.transform.streams import withhold_streams
from jax_enzyme.transform.thread_locals import emulate_thread_locals
from jax_enzyme.transform.variadic import lower_variadic


@dataclass(frozen=True)
class Pass(ABC):
    """`name` is what the command line calls it, `summary` one line for `--list`."""

    name: str
    summary: str

    @abstractmethod
    def run(self, module: Module) -> Module:
        """A new module; the given one stays as it is."""


@dataclass(frozen=True)
class LlvmPass(Pass):
    """One of LLVM's passes, on every function."""

    def run(self, module: Module) -> Module:
        return llvm_passes.run(module, [self.name])


@dataclass(frozen=True)
class Pipeline(Pass):
    """One of LLVM's -O pipelines, without vectorising and unrolling."""

    level: int

    def run(self, module: Module) -> Module:
        return llvm_passes.optimise(module, self.level)


@dataclass(frozen=True)
class OwnPass(Pass):
    """A function of this package."""

    function: Callable[[Module], Module]

    def run(self, module: Module) -> Module:
        return self.function(module)


def _inline(module: Module) -> Module:
    keep = [f.name for f in module.functions.values() if f.blocks and not {"internal", "private"} & set(f.prefix)]
    return llvm_passes.inline_everything(module, keep)


def _without_scopes(module: Module) -> Module:
    copy = clone(module)
    drop_scopes(copy)
    return copy


def _linked(module: Module) -> Module:
    copy = clone(module)
    link(copy)
    return copy


def _with_vector_math(module: Module) -> Module:
    copy = clone(module)
    add_vector_math(copy)
    return copy


def _for_this_machine(module: Module) -> Module:
    return parse(optimised_text(clone_without_debug(module)))


OURS = (
    OwnPass("inline", "inline every call of what is defined here and not recursive", _inline),
    OwnPass("lower-calls", "library calls without a derivative become calls that have one", lower_calls),
    OwnPass("variadic", "functions that read their unnamed arguments take them in memory", lower_variadic),
    OwnPass("dynamic-casts", "`dynamic_cast` becomes comparisons of table pointers", lower_dynamic_casts),
    OwnPass("absolute-tables", "tables of distances of addresses become tables of addresses", absolute_tables),
    OwnPass("pointer-tables", "small local tables of pointers become choices by the index", choose_by_index),
    OwnPass("withhold-streams", "functions over C++ streams lose their bodies", withhold_streams),
    OwnPass("thread-locals", "thread-local variables by calls of the run time", emulate_thread_locals),
    OwnPass("drop-scopes", "remove alias scopes", _without_scopes),
    OwnPass("strip-debug", "remove debug information", clone_without_debug),
    OwnPass("link-helpers", "add the bodies of the `je.*` helpers that are called", _linked),
    OwnPass("vector-math", "name the vector variants of calls of math.h", _with_vector_math),
    OwnPass("optimise", "-O3 with both vectorisers, for this machine", _for_this_machine),
    OwnPass("normalise", "through LLVM and back", llvm_passes.normalise),
)

PASSES: Mapping[str, Pass] = MappingProxyType(
    {
        p.name: p
        for p in (
            *OURS,
            *(
                Pipeline(f"O{level}", f"LLVM's -O{level} without vectorising and unrolling", level)
                for level in (1, 2, 3)
            ),
            *(LlvmPass(name, "LLVM's pass of this name") for name in llvm_passes.NAMES),
        )
    }
)
