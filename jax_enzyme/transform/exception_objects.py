"""The memory of C++ exceptions that handlers look at, or that have destructors.

    allocated       malloc; where something throws again, behind a number of handlers
    caught          one handler more has it
    thrown again    it is on its way once more, which a negative number tells
    left            by a handler. By the last one, if it is not on its way again: its destructor, and its memory goes

So counts the Itanium C++ ABI for exceptions (2.5, `handlerCount`). Those that a library throws have no object here, and
are null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from jax_enzyme.ir import types as T
from jax_enzyme.ir.builder import Builder, const_int
from jax_enzyme.ir.module import Function, Module, define, numbered
from jax_enzyme.ir.reach import reached
from jax_enzyme.ir.values import BasicBlock, ConstantNull, Value
from jax_enzyme.rules.declare import Declarations

_HEADER = 16
"""Bytes in front of an exception, which keep its alignment."""
_ZERO = const_int(T.I64, 0)


class ExceptionObjects:
    """Of a private module, to which the functions that are called here are added; `destructors` by the numbers of what
    throws."""

    def __init__(self, module: Module, destructors: Mapping[int, Function], *, are_counted: bool) -> None:
        self._module, self._destructors, self._are_counted = module, destructors, are_counted
        self._declarations = Declarations(module)

    def allocate(self, builder: Builder, size: Value) -> Value:
        if not self._are_counted:
            return self._declarations.memory(builder, "malloc", size)
        block = self._declarations.memory(builder, "malloc", builder.binary("add", size, const_int(T.I64, _HEADER)))
        builder.store(const_int(T.I64, 0), block, 8)
        return builder.offset(block, _HEADER)

    def free(self, builder: Builder, exception: Value) -> None:
        block = builder.offset(exception, -_HEADER) if self._are_counted else exception
        self._declarations.memory(builder, "free", block)

    def leave(self, builder: Builder, number: Value, exception: Value) -> None:
        """A handler ends."""
        if self._are_counted or self._destructors:
            builder.call(self._left, [number, exception])
        else:
            self.free(builder, exception)

    @cached_property
    def caught(self) -> Function:
        def body(at: Builder, _: BasicBlock, exception: Value) -> Builder:
            handlers = self._handlers(at, exception)
            others = at.select(at.icmp("slt", handlers, _ZERO), at.binary("sub", _ZERO, handlers), handlers)
            return self._has(at, exception, at.binary("add", others, const_int(T.I64, 1)))

        return self._function("caught", (T.PTR,), body)

    @cached_property
    def thrown_again(self) -> Function:
        def body(at: Builder, _: BasicBlock, exception: Value) -> Builder:
            return self._has(at, exception, at.binary("sub", _ZERO, self._handlers(at, exception)))

        return self._function("thrown.again", (T.PTR,), body)

    @cached_property
    def _left(self) -> Function:
        def body(at: Builder, done: BasicBlock, number: Value, exception: Value) -> Builder:
            if self._are_counted:
                handlers = self._handlers(at, exception)
                goes_on = at.icmp("slt", handlers, _ZERO)
                step = at.select(goes_on, const_int(T.I64, 1), const_int(T.I64, -1))
                self._has(at, exception, others := at.binary("add", handlers, step))
                stays = at.select(goes_on, const_int(T.I1, 1), at.icmp("ne", others, _ZERO))
                at.cond_br(stays, done, last := BasicBlock())
                at = Builder(last)
            for known, destructor in self._destructors.items():
                end, rest = BasicBlock(), BasicBlock()
                at.cond_br(at.icmp("eq", number, const_int(T.I64, known)), end, rest)
                Builder(end).call(destructor, [exception])
                Builder(end).br(rest)
                at = Builder(rest)
            self.free(at, exception)
            return at

        return self._function("left", (T.I64, T.PTR), body)

    def _handlers(self, at: Builder, exception: Value) -> Value:
        return at.load(T.I64, at.offset(exception, -_HEADER), 8)

    def _has(self, at: Builder, exception: Value, handlers: Value) -> Builder:
        at.store(handlers, at.offset(exception, -_HEADER), 8)
        return at

    def _function(self, what: str, types: tuple[T.Type, ...], body: Callable[..., Builder]) -> Function:
        """A function whose last parameter is an exception, which does nothing where that is null."""
        parameters = numbered(types)
        entry, some, done = BasicBlock(), BasicBlock(), BasicBlock()
        start = Builder(entry)
        start.cond_br(start.icmp("eq", parameters[-1], ConstantNull(T.PTR)), done, some)
        body(Builder(some), done, *parameters).br(done)
        Builder(done).ret()
        blocks = list(reached([entry], lambda block: block.successors))
        return define(self._module, self._module.unused(f"je.exception.{what}"), T.VOID, parameters, blocks)
