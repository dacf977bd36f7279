"""What a kernel in C writes to files, and whether it may read it again.

What goes to the console is gone. What goes to a file, a pipe or a stream in memory may come back: through a function
that reads and is called after it, or through one of which nothing is known. Statements of Fortran: `fortran_io`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from jax_enzyme.analysis.cfg import Cfg
from jax_enzyme.analysis.flow import rule_of
from jax_enzyme.analysis.objects import called_routine
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir.module import Function, GlobalVariable, declared_name
from jax_enzyme.ir.values import BasicBlock, Value, int_value
from jax_enzyme.rules.files import CONSOLE, STREAMS, may_share, printer, reads, redirects
from jax_enzyme.rules.rule import Kind
from jax_enzyme.rules.table import Rules


class Files:
    """Facts about the calls, in some functions, that print."""

    def __init__(self, functions: Iterable[Function], rules: Rules) -> None:
        self._functions = tuple(functions)
        self._rules = rules

    @property
    def are_read(self) -> bool:
        """Whether the kernel may read what is written to files, with or without a derivative (a rule says)."""
        return any(reads(call.callee.name) for call in self._calls) or bool(self._sharing)

    def goes_to_console(self, call: I.CallBase) -> bool:
        """Whether all that a function writes, which only prints, is seen outside of the program."""
        place = printer(call.callee.name).stream
        return not self._redirected and (place is None or _is_console(call.operands[place]))

    def reader_after(self, call: I.CallBase) -> str | None:
        """A function that may read what a call has written to a file; None where there is none."""
        if self.goes_to_console(call):
            return None
        found = (c for c in self._calls if reads(c.callee.name) and rule_of(c, self._rules) is None)
        reader = next((c for c in found if self._follows(call, c)), None)
        return reader.callee.name if reader is not None else next(iter(self._sharing), None)

    @cached_property
    def _calls(self) -> Sequence[I.CallBase]:
        """All calls of functions without a body."""
        every = (i for f in self._functions for i in f.instructions() if isinstance(i, I.CallBase))
        return [call for call in every if _is_outside(call)]

    @cached_property
    def _sharing(self) -> Sequence[str]:
        return [call.callee.name for call in self._calls if may_share(call.callee.name) and not self._is_known(call)]

    @cached_property
    def _redirected(self) -> bool:
        return any(redirects(call.callee.name) for call in self._calls)

    @cached_property
    def _places(self) -> Mapping[Value, tuple[Function, BasicBlock, int]]:
        return {
            instruction: (function, block, index)
            for function in self._functions
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def _is_known(self, call: I.CallBase) -> bool:
        rule = rule_of(call, self._rules)
        return (rule is not None and rule.kind is not Kind.REFUSED) or called_routine(call) is not None

    def _follows(self, first: I.CallBase, second: I.CallBase) -> bool:
        """Whether the second call may come after the first."""
        (home, block, index), (other_home, other_block, other_index) = self._places[first], self._places[second]
        if home is not other_home or (block is other_block and index < other_index):
            return True
        return Cfg(home).reaches(block, other_block)


def _is_outside(call: I.CallBase) -> bool:
    name = declared_name(call)
    return bool(name) and not name.startswith("llvm.")


def _is_console(stream: Value) -> bool:
    """Whether a stream, or the number of a file, is that of the standard output or the standard error."""
    match stream:
        case I.Load(operands=[GlobalVariable(name=name)]):
            return name in STREAMS
        case I.Select():
            return all(map(_is_console, stream.operands[1:]))
        case _:
            return int_value(stream) in CONSOLE
