"""The least and the greatest number in a table: a loop that LLVM vectorises for the machine that it runs on.

    define internal i1 @je.least.most.4.8(ptr %first, i64 %count, ptr %found)         every 8 bytes a number of 4

Gives whether none of them is what nothing has written, or below that: no index is. Of no numbers both are 0.
"""

from __future__ import annotations

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, define
from jax_enzyme.ir.values import Argument, BasicBlock, Value
from jax_enzyme.rules.declare import Declarations
from jax_enzyme.transform.sanitize.scalars import pattern_of

_ZERO = const_int(T.I64, 0)
_ATTRIBUTES = ("nounwind", "willreturn", "memory(read, argmem: readwrite)")


def least_most(module: Module, size: int, stride: int) -> Function:
    """The function, which is made where the module has none yet."""
    name = f"je.least.most.{size}.{stride}"
    if name not in module.functions:
        kinds = (T.PTR, T.I64, T.PTR)
        arguments = [Argument(t, ("captures(none)",) if t == T.PTR else (), i) for i, t in enumerate(kinds)]
        blocks = _blocks(Declarations(module), T.IntType(8 * size), stride, *arguments)
        define(module, name, T.I1, arguments, blocks, attributes=_ATTRIBUTES)
    return module.functions[name]


def _blocks(
    declarations: Declarations, kind: T.IntType, stride: int, first: Value, count: Value, found: Value
) -> list[BasicBlock]:
    entry, some, body, done, none = (BasicBlock(name=n) for n in ("entry", "some", "body", "done", "none"))
    Builder(entry).cond_br(Builder(entry).icmp("sgt", count, _ZERO), some, none)
    (at, counter), last = Builder(some).enter(body), (1 << (kind.bits - 1)) - 1
    ends = [at.phi(kind, [(const_int(kind, end), some)]) for end in (last, -last - 1)]
    place = at.gep(T.I8, first, [at.binary("mul", counter, const_int(T.I64, stride))], ())
    number = at.load(kind, place, 1)
    further: list[Value] = []
    for phi, which in zip(ends, ("smin", "smax"), strict=True):
        further.append(declarations.invoke(at, f"llvm.{which}.i{kind.bits}", kind, [phi, number]))
        phi.add(further[-1], body)
    at.count_on(counter, body, count, done)
    at = Builder(done)
    for index, value in enumerate(further):
        at.store(value if kind == T.I64 else at.cast("sext", value, T.I64), at.offset(found, 8 * index), 8)
    pattern = pattern_of(kind)
    assert pattern is not None
    at.ret(at.icmp("sgt", further[0], pattern[1]))
    at = Builder(none)
    for index in range(2):
        at.store(_ZERO, at.offset(found, 8 * index), 8)
    at.ret(const_int(T.I1, 1))
    return [entry, some, body, done, none]
