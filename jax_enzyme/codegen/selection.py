"""Whether this processor has the instructions that a source names.

LLVM ends the process where it can select no instruction for an intrinsic of a processor (`_mm256_sm4key4_epi32` on one
without SM4). So each that is called is tried beforehand, in a process of its own:

    define <8 x i32> @tried(<8 x i32> %0, <8 x i32> %1) {
      %r = call <8 x i32> @llvm.x86.vsm4key4256(<8 x i32> %0, <8 x i32> %1)
      ret <8 x i32> %r
    }
"""

from __future__ import annotations

from collections.abc import Iterable

from jax_enzyme.codegen.host import host
from jax_enzyme.codegen.pipelines import clang_of_the_same_version, run_clang
from jax_enzyme.errors import CompileError
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.debug import location
from jax_enzyme.ir.module import Function, Module, callee_name
from jax_enzyme.ir.values import int_value

_PROCESSORS = ("x86", "aarch64", "arm", "ppc", "riscv", "s390", "loongarch", "mips", "wasm")
_PREFIXES = tuple(f"llvm.{name}." for name in _PROCESSORS)


def check_selected(module: Module) -> None:
    """CompileError where a function of the module calls an intrinsic that this processor has no instruction for."""
    if not any(name.startswith(_PREFIXES) for name in module.functions) or not clang_of_the_same_version():
        return
    calls: dict[str, I.CallBase] = {}
    for function in module.functions.values():
        for instruction in function.instructions():
            if isinstance(instruction, I.CallBase) and callee_name(instruction).startswith(_PREFIXES):
                calls.setdefault(callee_name(instruction), instruction)
    if _is_selected(calls.values()):
        return
    for name, call in calls.items():
        if not _is_selected([call]):
            raise CompileError(
                f"this processor ({host().cpu}) has no instruction for the intrinsic `{name}`",
                location(module, call),
                "give the source for this processor; loops in plain C are made into its vector instructions",
            )


def _is_selected(calls: Iterable[I.CallBase]) -> bool:
    text = "\n".join(_tried(call) for call in calls)
    return run_clang(text.encode(), (f"--target={host().triple}", "-O0"), host()).returncode == 0


def _tried(call: I.CallBase) -> str:
    """A function of all operands that need not be constants."""
    callee = call.callee
    assert isinstance(callee, Function)
    kinds = [str(argument.type) for argument in callee.arguments]
    taken: list[str] = []
    given: list[str] = []
    for number, (kind, argument, operand) in enumerate(zip(kinds, callee.arguments, call.arguments, strict=True)):
        constant = int_value(operand) if "immarg" in argument.attributes else None
        given.append(f"{kind} {f'%a{number}' if constant is None else constant}")
        if constant is None:
            taken.append(given[-1])
    result = callee.function_type.result
    name = callee.name
    called = f"call {result} @{name}({', '.join(given)})"
    body = f"  {called}\n  ret void" if result == T.VOID else f"  %r = {called}\n  ret {result} %r"
    return (
        f"declare {result} @{name}({', '.join(kinds)})\n"
        f'define {result} @"tried.{name}"({", ".join(taken)}) {{\n{body}\n}}\n'
    )
