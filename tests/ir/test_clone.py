"""Copies share nothing that can change."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ref

import pytest

from jax_enzyme import collector
from jax_enzyme.collector import collector_paused
from jax_enzyme.ir import values as V
from jax_enzyme.ir.clone import clone, clone_function, clone_with_map, own, own_with_map
from jax_enzyme.ir.instructions import CallBase
from jax_enzyme.ir.metadata import MDConstant
from jax_enzyme.ir.module import Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.divisions import hide_divisors
from tests.ir.support import FIXTURES
from tests.support.verified import verify


def _values(module: Module) -> set[int]:
    found = [*module.globals.values(), *module.aliases.values(), *module.functions.values()]
    ids = {id(value) for value in found}
    for function in module.functions.values():
        ids |= {id(a) for a in function.arguments} | {id(b) for b in function.blocks}
        for instruction in function.instructions():
            ids |= {id(instruction), id(instruction.operands), id(instruction.targets), id(instruction.metadata)}
            ids |= {id(record) for record in instruction.records}
            if isinstance(instruction, CallBase):
                ids |= {id(instruction.parameter_attributes), id(instruction.bundles)}
    naming = [n for n in module.metadata.values() if any(isinstance(v, MDConstant) for v in n.operands)]
    return ids | {id(node) for node in naming}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_copy_shares_no_value(path: Path) -> None:
    module = parse(path.read_text())
    copy, mapping = clone_with_map(module)
    assert not _values(module) & _values(copy)
    assert to_text(copy) == to_text(module)
    assert all(mapping[f] is copy.functions[name] for name, f in module.functions.items())
    verify(copy)


def test_change_of_a_copy_leaves_the_original() -> None:
    module = parse("@x = global i32 1\ndefine ptr @f() {\n  ret ptr @x\n}")
    before = to_text(module)
    copy = clone(module)
    copy.globals["x"].name = "y"
    copy.functions["f"].entry.instructions.clear()
    copy.metadata.clear()
    assert to_text(module) == before


def test_clone_function() -> None:
    module = parse(
        """
        @where = global ptr null
        define i64 @f(i64 %n, i64 %k) {
        entry:
          store ptr blockaddress(@f, %again), ptr @where
          br label %again
        again:
          %r = call i64 @f(i64 %n, i64 %k)
          ret i64 %r
        }
        """
    )
    function = module.functions["f"]
    substitution: dict[V.Value, V.Value] = {}
    copy = clone_function(function, "g", substitution)
    module.functions["g"] = copy
    verify(module)
    store, _ = copy.entry.instructions
    address = store.operands[0]
    assert isinstance(address, V.BlockAddress) and address.function is copy and address.block is copy.blocks[1]
    call = copy.blocks[1].instructions[0]
    assert call.operands == [*copy.arguments, function]
    assert substitution[function.blocks[1]] is copy.blocks[1] and function not in substitution


def test_clone_function_with_substitution() -> None:
    module = parse("declare i64 @h(i64)\ndefine i64 @f(i64 %n) {\n  %r = call i64 @f(i64 %n)\n  ret i64 %r\n}")
    function = module.functions["f"]
    five = V.ConstantInt(function.arguments[0].type, 5)
    copy = clone_function(function, "g", {function.arguments[0]: five, function: module.functions["h"]})
    module.functions["g"] = copy
    assert copy.entry.instructions[0].operands == [five, module.functions["h"]]
    verify(module)


def test_copy_of_a_function_in_a_comdat() -> None:
    """C++ puts functions of templates into comdats of their own name, which a copy under another name has not."""
    module = parse("$f = comdat any\ndefine linkonce_odr i32 @f() comdat {\n  ret i32 1\n}\n")
    module.functions["g"] = clone_function(module.functions["f"], "g")
    verify(module)


def test_what_was_made_without_the_collector_counts_as_old() -> None:
    with collector_paused():
        made: list[object] = []
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert any(made is old for old in gc.get_objects(generation=2))


def test_garbage_is_collected_as_often_as_its_cost_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are dropped are few objects with much memory behind them, and parts of cycles."""

    class Node:
        def __init__(self) -> None:
            self.own = self

    for cost, is_there in ((1e9, True), (0.0, False)):
        monkeypatch.setattr(collector, "_cost", cost)
        with collector_paused():
            node = ref(Node())
        assert (node() is not None) == is_there


def test_a_module_that_nobody_needs_as_it_is_is_changed_itself() -> None:
    divided = "define i32 @f(i32 %a, i32 %b) {\n  %q = sdiv i32 %a, %b\n  ret i32 %q\n}\n"
    module = parse(divided)
    assert own(module) is not module
    hidden = hide_divisors(module)
    assert hidden is not module and to_text(module) == to_text(parse(divided))
    module.is_spent = True
    same, twins = own_with_map(module)
    assert same is module and all(twins[i] is i for i in module.functions["f"].instructions())
    assert not clone(module).is_spent
    result = hide_divisors(module)
    assert result is module and to_text(result) == to_text(hidden)
    verify(result)
