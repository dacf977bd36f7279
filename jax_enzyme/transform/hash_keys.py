"""Rust's hash maps have the same keys in each call of a kernel, so that what they hold comes in one order.

    before    @KEYS = external thread_local global %Storage              after    @KEYS = internal thread_local global
                                                                                     %Storage zeroinitializer
              declare { i64, i64 } @hashmap_random_keys()                         define internal { i64, i64 }
                                                                                     @hashmap_random_keys() {
                                                                                    ret { i64, i64 } { i64 1, i64 2 }
                                                                                  }

`RandomState::new` draws keys from the system once for each thread, and counts on from there. Programs may not depend on
the order; a derivative that runs the kernel again, and adds up in another order than the first run did, would depend on
it all the same. The variable is the kernel's own then, and starts each call as it starts a program (`private_globals`).
"""

from __future__ import annotations

import re

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.module import Function, GlobalVariable, Module
from jax_enzyme.ir.values import BasicBlock, ConstantAggregate, ConstantInt, ZeroInitializer

_PAIR = T.StructType((T.I64, T.I64))
_DRAWN = re.compile(r"_(?:R|ZN)\w*3std3sys\w*19hashmap_random_keys")
_KEPT = re.compile(r"_(?:R|ZN)\w*3std4hash6random\w*11RandomState3new4KEYS\w*VAL")
_KEYS = (0x243F6A8885A308D3, 0x13198A2E03707344)
"""Digits of pi: what a hash function mixes in may be any numbers but simple ones."""


def fix_hash_keys(module: Module) -> Module:
    """A copy of the module with keys of its own; the module itself where it draws none."""
    if not any(map(_draws, module.functions.values())):
        return module
    module = clone(module)
    for function in filter(_draws, module.functions.values()):
        entry = BasicBlock()
        Builder(entry).ret(ConstantAggregate(_PAIR, [ConstantInt(T.I64, key) for key in _KEYS]))
        function.blocks = [entry]
        function.prefix = ("internal", *function.prefix)
    for variable in filter(_keeps, module.globals.values()):
        variable.initializer = ZeroInitializer(variable.value_type)
        variable.prefix = ("internal", *(word for word in variable.prefix if word != "external"))
    return module


def _draws(function: Function) -> bool:
    drawn = function.is_declaration and function.function_type == T.FunctionType(_PAIR, ())
    return drawn and _DRAWN.match(function.name) is not None


def _keeps(variable: GlobalVariable) -> bool:
    return variable.initializer is None and _KEPT.match(variable.name) is not None
