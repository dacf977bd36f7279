"""Builds IR with the rules' own emitter and runs it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.ir.writer import to_text
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.rules.helpers import link

_C = {"double": ctypes.c_double, "float": ctypes.c_float, "i32": ctypes.c_int, "i64": ctypes.c_int64}


def define(module: Module, name: str, result: T.Type, parameters: Sequence[T.Type]) -> tuple[Function, Builder]:
    """A new function with one block, and a builder in it."""
    arguments = [Argument(t, name=f"x{i}", index=i) for i, t in enumerate(parameters)]
    type_ = T.FunctionType(result, tuple(parameters))
    function = Function(T.PTR, type_, name=name, arguments=arguments, blocks=[BasicBlock(name="entry")])
    module.functions[name] = function
    return function, Builder(function.entry)


def build(name: str, result: T.Type, parameters: Sequence[T.Type], body: Callable[..., Value]) -> Module:
    """A module with one function; `body(builder, declarations, *arguments)` gives its result."""
    module = Module()
    function, builder = define(module, name, result, parameters)
    builder.ret(body(builder, Declarations(module), *function.arguments))
    return module


class Compiled:
    """A module in machine code. Functions are called with numbers."""

    def __init__(self, module: Module, level: int = 2) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for library in ("libm.so.6", "libgcc_s.so.1"):
            llvm.load_library_permanently(library)
        link(module)
        self.functions = dict(module.functions)
        parsed = llvm.parse_assembly(to_text(module))
        parsed.verify()
        # Half precision is converted by instructions that only the host's own feature set has.
        features = llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level)
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(level))
        passes.getModulePassManager().run(parsed, passes)
        self.text = str(parsed)
        self.engine = llvm.create_mcjit_compiler(parsed, machine)
        self.engine.finalize_object()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        type_ = self.functions[name].function_type
        prototype = ctypes.CFUNCTYPE(_C[str(type_.result)], *(_C[str(t)] for t in type_.parameters))
        function = prototype(self.engine.get_function_address(name))
        function.owner = self  # the code lives as long as what calls it
        return function
