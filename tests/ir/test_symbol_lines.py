"""What lines of text say of symbols, against what LLVM reads."""

from __future__ import annotations

import llvmlite.binding as llvm

from jax_enzyme.ir import linking
from jax_enzyme.ir.native import native_from_text
from jax_enzyme.ir.symbol_lines import symbol_lines

_PROGRAM = r"""
target datalayout = "e-m:e-i64:64-i128:128-f80:128-n8:16:32:64-S128"
%"pair @ {of}" = type { i8, [3 x double], <{ i8, i32 }> }
%list = type opaque
@plain = global %"pair @ {of}" zeroinitializer
@"quoted name" = dso_local local_unnamed_addr global <{ i8, double }> zeroinitializer, section "an @other(", align 8
@"caf\C3\A9 \22" = common global i32 0
@block = weak_odr thread_local(initialexec) global [4 x { i8, i64 }] zeroinitializer
@narrow = weak externally_initialized global i16 3
@far = global ptr addrspace(3) null
@.str = private unnamed_addr constant [22 x i8] c"define double @none()\00"
@0 = private constant i8 1
@elsewhere = external dso_local global %list
@perhaps = extern_weak global i8
@llvm.used = appending global [1 x ptr] [ptr @inner]
@other = hidden alias double (double), ptr @outer
$any = comdat any

define hidden noundef nofpclass(nan) double @outer(double noundef %x) #0 {
  %r = call double @inner(double %x)
  %s = call double @exp(double %r)
  ret double %s
}
define internal double @inner(double %x) {
  ret double %x
}
define linkonce_odr double @any(double %x) comdat {
  ret double %x
}
define available_externally double @seen(double %x) {
  ret double %x
}
declare double @exp(double)
declare extern_weak void @"a hook"()
attributes #0 = { "text"="define @none(" }
"""


def test_lines_say_what_llvm_reads() -> None:
    """Names, linkage, whether there is a body or a value."""
    module = native_from_text(_PROGRAM)
    read = {
        value.name: (llvm.Linkage(value.linkage).name, value.is_function, value.is_declaration)
        for value in (*module.functions, *module.global_variables)
    }
    spelled = {"weak": "weak_any", "linkonce": "linkonce_any", "extern_weak": "external_weak"}
    lines = {
        line.name: (spelled.get(line.linkage, line.linkage), line.is_function, line.is_declaration)
        for line in symbol_lines(_PROGRAM)
        if not line.is_alias
    }
    assert lines == read
    assert [line.name for line in symbol_lines(_PROGRAM) if line.is_alias] == ["other"]


def test_names_of_a_module() -> None:
    """With the sizes of what others see."""
    found = linking.names(_PROGRAM)
    assert found.functions == ("outer", "inner", "any", "seen")
    assert found.needed == {"elsewhere", "perhaps", "exp", "a hook"}
    assert found.local == {"inner", ".str", ""}
    assert found.strong == {"plain", "quoted name", "far", "outer"}
    assert found.shared == {'café "', "narrow"}
    assert found.sizes == {"plain": 40, "quoted name": 9, 'café "': 4, "block": 64, "narrow": 2, "far": 8}


def test_a_program_of_which_all_is_needed_stays_as_it_is() -> None:
    program = """
@table = internal constant [1 x ptr] [ptr @last]
define double @f(double %x) {
  %p = load ptr, ptr @table
  %y = call double @"a template"(double %x)
  %z = call double %p(double %y)
  ret double %z
}
define linkonce_odr double @"a template"(double %x) {
  ret double %x
}
define internal double @last(double %x) {
  ret double %x
}
"""
    assert linking.reduced(program, {"f"})[0] is program
    text = '@.str.7 = private unnamed_addr constant [2 x i8] c"@\\00", align 1\n' + program
    assert linking.reduced(text, {"f"})[0] is text  # only what LLVM has computed needed the string
    unused = "@g = global i32 0\n", "@unused = internal global i32 0\n", "declare void @h()\n"
    for more in unused:  # visible to others so far, of the module's own, of another module
        text, found = linking.reduced(more + program, {"f"})
        assert not {"@g", "@unused", "@h"} & set(text.split()) and found.strong == {"f"} and not found.needed
    assert (
        "@f" not in linking.reduced(program, {"last"})[0]
        and "define internal" not in linking.reduced(program, {"last"})[0]
    )
