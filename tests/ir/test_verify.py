"""What is no LLVM IR is not taken for it: rules broken once each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import VerifyError, parse_checked
from tests.support.verified import verify

_TEXT = """
%pair = type { i32, double }
declare double @g(double)
define double @f(double %x, i32 %n, ptr %p, %pair %q) {
entry:
  %c = icmp slt i32 %n, 3
  %y = fadd double %x, 1.0
  %z = call double @g(double %y)
  %e = extractvalue %pair %q, 1
  %s = sitofp i32 %n to double
  %m = select i1 %c, double %y, double %z
  br i1 %c, label %then, label %join
then:
  %t = fmul double %z, %e
  store double %t, ptr %p
  br label %join
join:
  %r = phi double [ %m, %entry ], [ %t, %then ]
  switch i32 %n, label %out [
    i32 1, label %out
    i32 2, label %then2
  ]
then2:
  br label %out
out:
  ret double %r
}
"""


def _named(function: Function) -> dict[str, I.Instruction]:
    return {i.name: i for i in function.instructions()}


def _drop_terminator(f: Function) -> None:
    f.blocks[1].instructions.pop()


def _terminator_inside(f: Function) -> None:
    f.blocks[1].instructions.insert(0, I.Unreachable(T.VOID, "unreachable", []))


def _late_phi(f: Function) -> None:
    f.blocks[2].instructions.insert(0, I.Freeze(T.I1, "freeze", [V.ConstantInt(T.I1, 1)]))


def _foreign_block(f: Function) -> None:
    f.blocks[1].terminator.targets[0] = V.BasicBlock(name="elsewhere")


def _missing_edge(f: Function) -> None:
    phi = _named(f)["r"]
    phi.operands.pop()
    phi.targets.pop()


def _uneven_phi(f: Function) -> None:
    _named(f)["r"].operands.pop()


def _used_too_early(f: Function) -> None:
    block = f.entry
    block.instructions[1], block.instructions[2] = block.instructions[2], block.instructions[1]


def _not_dominating(f: Function) -> None:
    f.blocks[-1].terminator.operands[0] = _named(f)["t"]


def _foreign_instruction(f: Function) -> None:
    f.blocks[-1].terminator.operands[0] = I.Freeze(T.DOUBLE, "freeze", [V.Undef(T.DOUBLE)])


def _foreign_argument(f: Function) -> None:
    f.blocks[-1].terminator.operands[0] = V.Argument(T.DOUBLE)


def _foreign_global(f: Function) -> None:
    _named(f)["z"].operands[-1] = Function(T.PTR, T.FunctionType(T.DOUBLE, (T.DOUBLE,)), name="h")


def _void_operand(f: Function) -> None:
    f.blocks[-1].terminator.operands[0] = f.blocks[1].instructions[1]


def _entry_loop(f: Function) -> None:
    f.blocks[1].terminator.targets[0] = f.entry


def _twice(f: Function) -> None:
    f.entry.instructions.insert(1, f.entry.instructions[0])


def _operand(name: str, index: int, value: V.Value) -> Callable[[Function], None]:
    def change(f: Function) -> None:
        _named(f)[name].operands[index] = value

    return change


def _type(name: str, type_: T.Type) -> Callable[[Function], None]:
    def change(f: Function) -> None:
        _named(f)[name].type = type_

    return change


def _index(f: Function) -> None:
    extract = _named(f)["e"]
    assert isinstance(extract, I.ExtractValue)
    extract.indices = (2,)


def _same_case(f: Function) -> None:
    f.blocks[2].terminator.operands[1] = V.ConstantInt(T.I32, 2)


def _call_type(f: Function) -> None:
    call = _named(f)["z"]
    assert isinstance(call, I.Call)
    call.function_type = T.FunctionType(T.DOUBLE, (T.I32,))


def _parameters(f: Function) -> None:
    f.arguments.pop()


@pytest.mark.parametrize(
    "change",
    [
        _drop_terminator,
        _terminator_inside,
        _late_phi,
        _foreign_block,
        _missing_edge,
        _uneven_phi,
        _used_too_early,
        _not_dominating,
        _foreign_instruction,
        _foreign_argument,
        _foreign_global,
        _void_operand,
        _entry_loop,
        _twice,
        _operand("y", 1, V.ConstantFloat(T.FLOAT, "1.0")),
        _operand("c", 1, V.ConstantInt(T.I64, 1)),
        _operand("m", 0, V.ConstantInt(T.I32, 1)),
        _operand("s", 0, V.ConstantFloat(T.DOUBLE, "1.0")),
        _operand("z", 0, V.ConstantInt(T.I32, 1)),
        _operand("r", 0, V.ConstantInt(T.I32, 1)),
        _type("y", T.I32),
        _type("c", T.I32),
        _type("e", T.I32),
        _index,
        _same_case,
        _call_type,
        _parameters,
    ],
)
def test_broken(change: Callable[[Function], None]) -> None:
    module = parse(_TEXT)
    verify(module)
    change(module.functions["f"])
    with pytest.raises((ValueError, AssertionError)):
        verify(module)


def test_llvm_has_the_last_word() -> None:
    module = parse("declare double @llvm.sqrt.f64(double)")
    module.functions["llvm.sqrt.f64"].attributes = ("section",)
    with pytest.raises(VerifyError, match="LLVM rejects the module"):
        parse_checked(module)


def test_invoke_results_are_available_on_the_normal_edge_only() -> None:
    text = """
        declare i32 @p(...)
        declare i32 @g()
        define i32 @f() personality ptr @p {
          %r = invoke i32 @g() to label %fine unwind label %pad
        fine:
          ret i32 %r
        pad:
          %l = landingpad { ptr, i32 } cleanup
          ret i32 0
        }
        """
    module = parse(text)
    verify(module)
    function = module.functions["f"]
    function.blocks[2].terminator.operands[0] = function.entry.terminator
    with pytest.raises(VerifyError, match="not dominate"):
        verify(module)


def test_unreachable_code_may_use_anything() -> None:
    verify(
        parse("define i32 @f() {\n  ret i32 0\ndead:\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  br label %dead\n}")
    )
