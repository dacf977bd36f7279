"""Cotangents that every block of a large grid adds to, such as that of a weight: in copies, which are summed at the
end.

    before    atomicrmw fadd ptr %w_bar, double %x                  grid of 200,000 blocks

    after     %copy = getelementptr i8, ptr %copies, (block number % 32) * 256
              atomicrmw fadd ptr %copy, double %x
              ... a second stage, one block: %w_bar[i] += %copies[0][i] + ... + %copies[31][i]

Additions to one address wait for each other: they take some 5 ns each on an H200, however many multiprocessors there
are (`docs/cuda.md`). Copies lie in lines of their own. This is done to what is launched, once it is derived, to shadows
that nothing but atomic additions touches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from jax_enzyme.ad.device.counting import widened
from jax_enzyme.ad.device.last_stage import Threads, add_last_stage, add_to
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir.arrays import Buffer
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.clone import clone
from jax_enzyme.ir.device import DeviceFunction
from jax_enzyme.ir.module import Function, Module
from jax_enzyme.ir.values import Value
from jax_enzyme.signature.launch import Shape
from jax_enzyme.transform.device.registers import block_number, thread_in_block
from jax_enzyme.transform.input_writes import accesses_behind
from jax_enzyme.transform.rewriting import add_parameter, replace_values

_TYPES: dict[str, T.FloatType] = {"f32": T.FLOAT, "f64": T.DOUBLE, "c64": T.FLOAT, "c128": T.DOUBLE}
_LINE = 256
"""Bytes at which copies begin: no two share a line of a cache."""
_COPIES = 32
_FEW_COPIES = 4
_FEW_BLOCKS = 1024
"""Where there are fewer blocks, they wait for less time than a second launch takes."""
_LOADS_PER_THREAD = 32
"""So many numbers at most a thread of the last block adds up, on average."""


def in_copies(function: DeviceFunction) -> DeviceFunction:
    """The same derivative with copies of small shadows; itself where there are none, or where it has stages already."""
    symbol, *others = function.symbols
    if others or prod(function.shape.grid) < _FEW_BLOCKS:
        return function
    target = function.module.functions[symbol]
    used = {v for f in function.module.functions.values() for i in f.instructions() for v in i.operands}
    counts: dict[int, int] = {}
    for number, (argument, buffer) in enumerate(zip(target.arguments, function.buffers, strict=True)):
        count = _copies(buffer, function.shape) if buffer.role == "shadow" else 0
        if count and _only_sums(list(accesses_behind(argument, target)), _TYPES[buffer.dtype], used):
            counts[number] = count
    if not counts:
        return function
    module = clone(function.module)
    target = module.functions[symbol]
    more: list[Buffer] = []
    at = Builder.on_top(target)
    for number, count in counts.items():
        buffer = function.buffers[number]
        more.append(Buffer(f"{buffer.name}_copies", "u8", (count, _stride(buffer)), "scratch", "tape", zero=True))
        parameter = add_parameter(target, more[-1].name)
        block = at.binary("and", block_number(module, at, function.shape), const_int(T.I64, count - 1))
        copy = at.gep(T.I8, parameter, [at.binary("mul", block, const_int(T.I64, _stride(buffer)))])
        replace_values(target, {target.arguments[number]: copy})
    buffers = (*function.buffers, *more)
    last = _last_stage(module, target, function, counts)
    count = None if function.count is None else widened(function.count, buffers)
    return replace(
        function, module=module, symbols=(symbol, last), buffers=buffers, count=count, last_in_one_block=True
    )


def _only_sums(found: list[I.Instruction], type_: T.Type, used: set[Value]) -> bool:
    """Whether all that happens to some memory is that numbers are added to it, atomically."""
    sums = (isinstance(i, I.AtomicRMW) and i.operation == "fadd" and i.type == type_ and i not in used for i in found)
    return bool(found) and all(sums)


def _copies(buffer: Buffer, shape: Shape) -> int:
    """How many copies a buffer has: a power of two, or 0."""
    type_ = _TYPES.get(buffer.dtype)
    if type_ is None or buffer.nbytes == 0:
        return 0
    most = min(_COPIES, _LOADS_PER_THREAD * shape.threads // _numbers(buffer))
    return 0 if most < _FEW_COPIES else 1 << (most.bit_length() - 1)


def _numbers(buffer: Buffer) -> int:
    return buffer.nbytes // (4 if _TYPES[buffer.dtype] == T.FLOAT else 8)


def _stride(buffer: Buffer) -> int:
    return -(-buffer.nbytes // _LINE) * _LINE


def _last_stage(module: Module, target: Function, function: DeviceFunction, counts: dict[int, int]) -> str:
    """Adds the function of the second launch: the threads of its one block add up the copies of some numbers each."""
    name = f"{target.name}.sums"
    arguments = [replace(a, attributes=()) for a in target.arguments]
    own = zip(arguments[len(function.buffers) :], counts.items(), strict=True)
    parts = [_sum(function.buffers[number], arguments[number], copies, count) for copies, (number, count) in own]
    threads = Threads(
        function.shape.threads, lambda at: at.cast("zext", thread_in_block(module, at, function.shape), T.I64)
    )
    add_last_stage(module, name, arguments, threads, parts)
    return name


def _sum(buffer: Buffer, memory: Value, copies: Value, count: int) -> tuple[int, Callable[[Builder, Value], None]]:
    type_ = _TYPES[buffer.dtype]

    def part(at: Builder, index: Value) -> None:
        terms: list[Value] = [
            at.load(type_, at.gep(type_, at.offset(copies, n * _stride(buffer)), [index])) for n in range(count)
        ]
        while len(terms) > 1:
            terms = [at.binary("fadd", a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
        add_to(at, type_, memory, index, terms[0])

    return _numbers(buffer), part
