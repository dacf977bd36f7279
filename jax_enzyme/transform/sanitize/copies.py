"""Copies of memory whose source and destination overlap: of `memcpy` that is undefined, of `memmove` it is not.

before    call void @llvm.memcpy(ptr %b, ptr %a, i64 %n)        after    %d = sub i64 %b, %a
                                                                         (fails where 0 < |%d| < %n)
                                                                         call void @llvm.memcpy(ptr %b, ...)
"""

from __future__ import annotations

from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Uses, callee_name
from jax_enzyme.ir.values import Value
from jax_enzyme.transform.insertion import Check
from jax_enzyme.transform.sanitize.accesses import local_offset
from jax_enzyme.transform.sanitize.provenance import Known, Provenance, may_be_found, root_of
from jax_enzyme.transform.sanitize.runtime import Runtime


def copy_checks(call: I.Instruction, provenance: Provenance, users: Uses, runtime: Runtime) -> list[Check]:
    """What is to be checked before a copy of memory. A variable whose address nobody is told is copied elsewhere, or in
    itself."""
    if not isinstance(call, I.Call) or not callee_name(call).startswith("llvm.memcpy."):
        return []
    pointers, size = call.arguments[:2], call.arguments[2]
    target, source = map(provenance.of, pointers)
    if target is None or source is None:
        return []
    if target is not source:
        roots = [root_of(p) for p in pointers]
        if isinstance(target, Known) and isinstance(source, Known):
            return []
        if any(isinstance(root, I.Alloca) and not may_be_found(root, users) for root in roots):
            return []
    status = runtime.failure("copies memory to where it overlaps itself, by `memcpy`", call)

    def offset(at: Builder, pointer: Value) -> Value:
        inside = local_offset(at, pointer, target, provenance.layout) if target is source else None
        return inside or at.cast("ptrtoint", pointer, T.I64)

    def overlaps(at: Builder) -> Value:
        zero, wide = const_int(T.I64, 0), at.wide(size)
        apart = at.binary("sub", offset(at, pointers[0]), offset(at, pointers[1]))
        near = at.binary("or", at.icmp("ult", apart, wide), at.icmp("ult", at.binary("sub", zero, apart), wide))
        return at.binary("and", at.icmp("ne", apart, zero), near)

    return [Check(overlaps, lambda at: status)]
