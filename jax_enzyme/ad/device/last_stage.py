"""The function of a second launch, in which threads go over some numbers of each buffer that is left to finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jax_enzyme.classes import dataclass
from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int, zero
from jax_enzyme.ir.module import Module, define
from jax_enzyme.ir.values import Argument, BasicBlock, Value


@dataclass(frozen=True)
class Threads:
    """Those that share the work: how many there are, and what builds the number of one."""

    count: int
    number: Callable[[Builder], Value]


def add_last_stage(
    module: Module,
    name: str,
    arguments: Sequence[Argument],
    threads: Threads,
    parts: Iterable[tuple[int, Callable[[Builder, Value], None]]],
) -> None:
    """Adds the function to the module. Each part is done for so many numbers, given the number as i64."""
    at = Builder(BasicBlock(name="entry"))
    blocks = [at.block]
    thread, step = threads.number(at), const_int(T.I64, threads.count)
    for numbers, part in parts:
        loop, after = BasicBlock(name="loop"), BasicBlock(name="after")
        before, count = at.block, const_int(T.I64, numbers)
        at.cond_br(at.icmp("ult", thread, count), loop, after)
        at = Builder(loop)
        number = at.phi(T.I64, [(thread, before)])
        part(at, number)
        following = at.binary("add", number, step, ("nuw", "nsw"))
        number.add(following, loop)
        at.cond_br(at.icmp("ult", following, count), loop, after)
        at = Builder(after)
        blocks += [loop, after]
    at.ret(zero(T.I64))
    define(module, name, T.I64, list(arguments), blocks, ())


def add_to(at: Builder, type_: T.Type, memory: Value, number: Value, value: Value) -> None:
    """Adds to one number of an array."""
    place = at.gep(type_, memory, [number])
    at.store(at.binary("fadd", at.load(type_, place), value), place)
