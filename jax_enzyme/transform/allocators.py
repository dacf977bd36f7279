"""Allocators of other languages become those of C, which the engine and LLVM know best.

    before    %p = call ptr @_Znwm(i64 %n)
              %q = call ptr @__rust_alloc_zeroed(i64 %n, i64 8)
              %r = call ptr @__rust_realloc(ptr %q, i64 %n, i64 8, i64 %m)
              call void @_ZdlPvm(ptr %p, i64 %n)

    after     %p = call ptr @malloc(i64 %n)
              %q = call ptr @calloc(i64 %n, i64 1)
              %r = call ptr @malloc(i64 %m)
              %c = call i64 @llvm.umin.i64(i64 %n, i64 %m)
              call void @llvm.memcpy(ptr %r, ptr %q, i64 %c, i1 false)
              call void @free(ptr %q)
              call void @free(ptr %p)

`aligned_alloc` stands for what asks for more alignment than `malloc` gives. That C++'s `new` never returns null is
lost, and not needed: without memory the kernel fails where it touches it, as most C does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Module, declared_callee
from jax_enzyme.ir.values import Value, int_value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.rewriting import Change, drop_edge, lower

_MALLOC_ALIGN = 16


def lower_allocators(module: Module) -> Module:
    """A copy of the module with C's allocators for all others; the module itself where there are none."""
    return lower(module, _change)


def _change(instruction: I.Instruction, declarations: Declarations) -> Change | None:
    lowering = _lowering(instruction)
    if lowering is None:
        return None
    assert isinstance(instruction, I.CallBase)

    def change(builder: Builder) -> Value | None:
        value = lowering(_Site(builder, declarations, instruction.arguments))
        if isinstance(instruction, I.Invoke):
            drop_edge(instruction.targets[1], builder.block)
            builder.br(instruction.targets[0])
        return value

    return change


class _Site:
    """A call to rewrite, and the means to do it."""

    def __init__(self, builder: Builder, declarations: Declarations, arguments: list[Value]) -> None:
        self.builder = builder
        self.arguments = arguments
        self._declarations = declarations

    def call(self, name: str, result: T.Type, *arguments: Value) -> Value:
        return self._declarations.invoke(self.builder, name, result, arguments)

    def memory(self, name: str, *arguments: Value) -> Value:
        return self._declarations.memory(self.builder, name, *arguments)

    def allocate(self, size: Value, align: Value | None = None) -> Value:
        wanted = None if align is None else int_value(align)
        if align is None or (wanted is not None and wanted <= _MALLOC_ALIGN):
            return self.memory("malloc", size)
        # C wants a size that is a multiple of the alignment.
        less = self.builder.binary("sub", align, const_int(T.I64, 1))
        padded = self.builder.binary("add", size, less)
        keep = self.builder.binary("xor", less, const_int(T.I64, -1))
        return self.memory("aligned_alloc", align, self.builder.binary("and", padded, keep))


_Lowering = Callable[[_Site], Value | None]


def _new(site: _Site) -> Value:
    return site.allocate(site.arguments[0])


def _new_aligned(site: _Site) -> Value:
    return site.allocate(site.arguments[0], site.arguments[1])


def _free(site: _Site) -> None:
    site.memory("free", site.arguments[0])


def _zeroed(site: _Site) -> Value:
    size, align = site.arguments
    wanted = int_value(align)
    if wanted is not None and wanted <= _MALLOC_ALIGN:
        return site.memory("calloc", size, const_int(T.I64, 1))
    memory = site.allocate(size, align)
    site.memory("memset", memory, const_int(T.I8, 0), size)
    return memory


def _resized(site: _Site) -> Value:
    old, before, align, after = site.arguments
    new = site.allocate(after, align)
    site.memory("memcpy", new, old, site.call("llvm.umin.i64", T.I64, before, after))
    site.memory("free", old)
    return new


def _nothing(site: _Site) -> None:
    del site


_PATTERNS: tuple[tuple[re.Pattern[str], _Lowering], ...] = (
    (re.compile(r"_Zn[wa]m(RKSt9nothrow_t)?$"), _new),
    (re.compile(r"_Zn[wa]mSt11align_val_t(RKSt9nothrow_t)?$"), _new_aligned),
    (re.compile(r"_Zd[la]Pv(m)?(St11align_val_t)?(RKSt9nothrow_t)?$"), _free),
    (re.compile(r"cfree$"), _free),
    (re.compile(r"(_R.*_)?__rust_alloc$"), _new_aligned),
    (re.compile(r"(_R.*_)?__rust_alloc_zeroed$"), _zeroed),
    (re.compile(r"(_R.*_)?__rust_dealloc$"), _free),
    (re.compile(r"(_R.*_)?__rust_realloc$"), _resized),
    (re.compile(r"(_R.*)?__rust_no_alloc_shim_is_unstable(_v2)?$"), _nothing),
)


def _lowering(instruction: I.Instruction) -> _Lowering | None:
    """How an instruction is rewritten, None if it stays."""
    callee = declared_callee(instruction)
    if callee is None or any(t != T.I64 and not T.is_pointer(t) for t in callee.function_type.parameters):
        return None
    return next((lowering for pattern, lowering in _PATTERNS if pattern.match(callee.name)), None)
