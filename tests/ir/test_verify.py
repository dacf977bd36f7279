"""Every rule that the checker knows, broken once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.reader import parse
from jax_enzyme.ir.verify import VerifyError, verify

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
    ("change", "message"),
    [
        (_drop_terminator, "@f, block %then: does not end in a terminator"),
        (_terminator_inside, "unreachable: a terminator in the middle"),
        (_late_phi, "a phi after other instructions"),
        (_foreign_block, "names a block of another function"),
        (_missing_edge, "its edges are not those of the block: [entry, then]"),
        (_uneven_phi, "1 values for 2 blocks"),
        (_used_too_early, "operand 0 (%y) does not dominate its use"),
        (_not_dominating, "block %out: ret double %t: operand 0 (%t) does not dominate its use"),
        (_foreign_instruction, "is an instruction of another function"),
        (_foreign_argument, "is an argument of another function"),
        (_foreign_global, "(@h) is not in the module"),
        (_void_operand, "has no value"),
        (_entry_loop, "the entry block has a predecessor"),
        (_twice, "occurs twice"),
        (_operand("y", 1, V.ConstantFloat(T.FLOAT, "1.0")), "expected an operand of type double, got float"),
        (_operand("c", 1, V.ConstantInt(T.I64, 1)), "expected an operand of type i32, got i64"),
        (_operand("m", 0, V.ConstantInt(T.I32, 1)), "condition of type i32"),
        (_operand("s", 0, V.ConstantFloat(T.DOUBLE, "1.0")), "sitofp from double to double"),
        (_operand("z", 0, V.ConstantInt(T.I32, 1)), "arguments are (i32), the function's type is double (double)"),
        (_operand("r", 0, V.ConstantInt(T.I32, 1)), "expected an operand of type double, got i32"),
        (_type("y", T.I32), "fadd of i32"),
        (_type("c", T.I32), "gives no i32"),
        (_type("e", T.I32), "the element is of type double, not i32"),
        (_index, "no element 2 in %pair"),
        (_same_case, "a case occurs twice"),
        (_call_type, "arguments are (double)"),
        (_parameters, "its arguments are not those of its type"),
    ],
)  # fmt: skip
def test_broken(change: Callable[[Function], None], message: str) -> None:
    module = parse(_TEXT)
    verify(module)
    change(module.functions["f"])
    with pytest.raises(VerifyError) as caught:
        verify(module)
    assert message in str(caught.value)


def test_llvm_has_the_last_word() -> None:
    module = parse("declare double @llvm.sqrt.f64(double)")
    module.functions["llvm.sqrt.f64"].attributes = ("section",)
    with pytest.raises(VerifyError, match="LLVM rejects the module"):
        verify(module)


def test_messages_name_the_source_line() -> None:
    module = parse(
        """
        define i32 @f(i32 %x) !dbg !1 {
          %a = add i32 %x, 1, !dbg !2
          ret i32 %a
        }
        !1 = distinct !DISubprogram(name: "f", file: !3, line: 1)
        !2 = !DILocation(line: 4, column: 9, scope: !1)
        !3 = !DIFile(filename: "kernel.c", directory: "/")
        """
    )
    module.functions["f"].entry.instructions[0].operands[1] = V.ConstantInt(T.I64, 1)
    with pytest.raises(VerifyError, match=r"kernel\.c:4:9"):
        verify(module)


def test_names_in_the_module_s_tables() -> None:
    module = Module()
    module.functions["a"] = Function(T.PTR, T.FunctionType(T.VOID, ()), name="b")
    with pytest.raises(VerifyError, match="@b is stored in the module under the name 'a'"):
        verify(module)


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
    with pytest.raises(VerifyError, match="does not dominate"):
        verify(module)


def test_unreachable_code_may_use_anything() -> None:
    verify(
        parse("define i32 @f() {\n  ret i32 0\ndead:\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  br label %dead\n}")
    )
