"""What the checking mode finds out about a kernel's memory before it puts in checks."""

from __future__ import annotations

import pytest

from jax_enzyme.analysis.layout import DataLayout
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.reader import parse
from jax_enzyme.transform.sanitize.alone import is_alone
from jax_enzyme.transform.sanitize.registers import start_unwritten
from jax_enzyme.transform.sanitize.runtime import Runtime

_CALLS = {
    "sin": ("call double @sin(double 1.0)", "declare double @sin(double)", True),
    "length": ("call i64 @strlen(ptr %p)", "declare i64 @strlen(ptr)", True),
    "printed": ("call i32 (ptr, ...) @printf(ptr %p)", "declare i32 @printf(ptr, ...)", True),
    "line": ("call i64 @getline(ptr %p, ptr %p, ptr %p)", "declare i64 @getline(ptr, ptr, ptr)", False),
    "buffer": ("call i32 @setvbuf(ptr %p, ptr %p, i32 0, i64 8)", "declare i32 @setvbuf(ptr, ptr, i32, i64)", False),
    "usable": ("call i64 @malloc_usable_size(ptr %p)", "declare i64 @malloc_usable_size(ptr)", False),
    "unknown": ("call i64 @f(ptr %p)", "declare i64 @f(ptr)", False),
    "through a pointer": ("call double %p(double 1.0)", "", True),
    "one of the library": ("call double %p(ptr @f)", "declare i64 @f(ptr)", False),
}


@pytest.mark.parametrize("name", _CALLS)
def test_libraries_that_free_or_keep_memory(name: str) -> None:
    call, declared, alone = _CALLS[name]
    module = parse(f"{declared}\ndefine void @k(ptr %p) {{\n  %r = {call}\n  ret void\n}}\n")
    assert is_alone(module) is alone


_BODY = """define double @k(double %a, i1 %c, ptr %m) {{
entry:
  %x = alloca double, align 8
  {first}
  br i1 %c, label %then, label %rest
then:
  {then}
  br label %rest
rest:
  %v = load double, ptr %x, align 8
  %r = fadd double %v, 1.0
  ret double %r
}}
"""
_SUM, _STORE = "%s = fadd double %a, 1.0", "store double %s, ptr %x, align 8"
_VARIABLES = {
    "written before it is read": (f"{_SUM}\n{_STORE}", "", 0),
    "what comes from memory": ("%s = load double, ptr %m\nstore double %s, ptr %x, align 8", "", 0),
    "one or another": (f"{_SUM}\n{_STORE}", "%t = load double, ptr %m\nstore double %t, ptr %x, align 8", 1),
    "what is passed": ("store double %a, ptr %x, align 8", "", 1),
    "in a branch": ("", f"{_SUM}\n{_STORE}", 1),
    "a half": (f"{_SUM}\n%h = fptrunc double %s to float\nstore float %h, ptr %x, align 8", "", 1),
}


@pytest.mark.parametrize("name", _VARIABLES)
def test_variables_that_are_written_first_have_no_twins(name: str) -> None:
    first, then, twins = _VARIABLES[name]
    module = parse(_BODY.format(first=first, then=then))
    function = module.functions["k"]
    start_unwritten(function, Runtime(module), DataLayout(module))
    assert sum(isinstance(i, I.Alloca) for i in function.instructions()) == 1 + twins
